/* err.c - builds error texts of bounded length.
 *
 * Holds: text is always NUL-terminated and never ends in half a UTF-8 character; the arguments of a
 * call may point into the very text being replaced. */
#include "base/err.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_SIZE = sizeof(((struct err *)0)->text) };

/* One byte more than fits in an err, so that a text which is too long can be told from one that
 * just fits. */
struct draft {
    char text[TEXT_SIZE + 1];
    size_t len;
};

static void draft_addv(struct draft *draft, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static void draft_addv(struct draft *draft, const char *format, va_list args)
{
    size_t room = sizeof(draft->text) - draft->len;
    int wanted = vsnprintf(draft->text + draft->len, room, format, args);

    if (wanted < 0)
        draft->text[draft->len] = '\0';
    draft->len += strlen(draft->text + draft->len);
}

static void draft_add(struct draft *draft, const char *text)
{
    size_t room = sizeof(draft->text) - draft->len - 1;
    size_t length = strnlen(text, room);

    memcpy(draft->text + draft->len, text, length);
    draft->len += length;
    draft->text[draft->len] = '\0';
}

/* Where to cut so that a character that began before `limit` and ends after it goes as a whole. */
static size_t cut_before(const char *text, size_t limit)
{
    while (limit > 0 && ((unsigned char)text[limit] & 0xc0) == 0x80)
        limit--;
    return limit;
}

static void draft_store(const struct draft *draft, struct err *err)
{
    static const char dots[] = "...";
    size_t keep = draft->len;
    const char *tail = "";

    if (keep >= sizeof(err->text)) {
        keep = cut_before(draft->text, sizeof(err->text) - sizeof(dots));
        tail = dots;
    }
    memcpy(err->text, draft->text, keep);
    memcpy(err->text + keep, tail, strlen(tail) + 1);
}

int err_setv(struct err *err, enum err_class class, const char *format, va_list args)
{
    struct draft draft = { .len = 0 };

    if (!err)
        return -(int)class;
    draft_addv(&draft, format, args);
    draft_store(&draft, err);
    err->class = (int)class;
    return -(int)class;
}

void err_write(struct err *err, enum err_class class, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)err_setv(err, class, format, args);
    va_end(args);
}

void err_write_system(struct err *err, int number, const char *format, ...)
{
    struct draft draft = { .len = 0 };
    char space[64];
    va_list args;

    if (!err)
        return;
    va_start(args, format);
    draft_addv(&draft, format, args);
    va_end(args);
    draft_add(&draft, ": ");
    draft_add(&draft, strerror_r(number, space, sizeof(space)));
    draft_store(&draft, err);
    err->class = ERR_SYSTEM;
}

int err_wrap(struct err *err, const char *format, ...)
{
    struct draft draft = { .len = 0 };
    va_list args;

    if (!err)
        return -ERR_BUG;
    va_start(args, format);
    draft_addv(&draft, format, args);
    va_end(args);
    draft_add(&draft, ": ");
    draft_add(&draft, err->text);
    draft_store(&draft, err);
    if (!err->class)
        err->class = ERR_BUG; /* wrapping an error that never happened */
    return -err->class;
}

const char *err_class_name(int class)
{
    static const char *const names[] = {
        [ERR_INVALID] = "invalid",         [ERR_TOO_BIG] = "too big",
        [ERR_NOT_FOUND] = "not found",     [ERR_EXISTS] = "exists",
        [ERR_CONFLICT] = "conflict",       [ERR_DENIED] = "denied",
        [ERR_UNAVAILABLE] = "unavailable", [ERR_TIMEOUT] = "timeout",
        [ERR_UNKNOWN] = "unknown",         [ERR_CANCELED] = "canceled",
        [ERR_SYSTEM] = "system",           [ERR_BUG] = "bug",
    };
    const int count = sizeof(names) / sizeof(names[0]);

    return class > 0 && class < count ? names[class] : "none";
}
