/* buf.c - growing a bounded text.
 *
 * Holds: len <= max; once data is set, data[len] is NUL and cap > len; a write is taken whole or
 * not at all. */
#include "base/buf.h"

#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>

enum { FIRST_CAP = 64 };

void buf_init(struct buf *buf, size_t max)
{
    /* One byte is kept for the NUL, so that max + 1 never wraps. */
    *buf = (struct buf){ .max = max == SIZE_MAX ? max - 1 : max };
}

void buf_done(struct buf *buf)
{
    if (!buf)
        return;
    mem_free(buf->data);
    *buf = (struct buf){ .max = buf->max };
}

void buf_clear(struct buf *buf)
{
    buf_truncate(buf, 0);
    buf->overflowed = false;
}

/* Room for `length` more bytes and the NUL; false, and marked, when they pass the maximum. */
static bool buf_reserve(struct buf *buf, size_t length)
{
    if (buf->overflowed || length > buf->max - buf->len) {
        buf->overflowed = true;
        return false;
    }

    size_t needed = buf->len + length + 1;

    if (needed <= buf->cap)
        return true;

    size_t cap = buf->cap > SIZE_MAX / 2 ? SIZE_MAX : buf->cap * 2;

    if (cap < FIRST_CAP)
        cap = FIRST_CAP;
    if (cap > buf->max + 1)
        cap = buf->max + 1;
    if (cap < needed)
        cap = needed;
    buf->data = mem_resize_array(buf->data, cap, 1);
    buf->cap = cap;
    return true;
}

void buf_add(struct buf *buf, const void *bytes, size_t length)
{
    if (!buf_reserve(buf, length))
        return;
    if (length > 0)
        memcpy(buf->data + buf->len, bytes, length);
    buf->len += length;
    buf->data[buf->len] = '\0';
}

void buf_add_str(struct buf *buf, struct str s)
{
    buf_add(buf, s.at, s.len);
}

void buf_add_text(struct buf *buf, const char *text)
{
    buf_add_str(buf, str_of(text));
}

void buf_add_char(struct buf *buf, char c)
{
    buf_add(buf, &c, 1);
}

void buf_vprintf(struct buf *buf, const char *format, va_list args)
{
    va_list again;

    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);

    if (length < 0)
        buf->overflowed = true; /* unprintable, or longer than INT_MAX */
    else if (buf_reserve(buf, (size_t)length)) {
        vsnprintf(buf->data + buf->len, (size_t)length + 1, format, again);
        buf->len += (size_t)length;
    }
    va_end(again);
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    buf_vprintf(buf, format, args);
    va_end(args);
}

void buf_drop_front(struct buf *buf, size_t length)
{
    if (length > buf->len)
        length = buf->len;
    if (length == 0)
        return;
    buf->len -= length;
    memmove(buf->data, buf->data + length, buf->len + 1);
}

void buf_truncate(struct buf *buf, size_t length)
{
    if (length >= buf->len)
        return;
    buf->len = length;
    buf->data[length] = '\0';
}

struct str buf_str(const struct buf *buf)
{
    return (struct str){ buf_text(buf), buf->len };
}

const char *buf_text(const struct buf *buf)
{
    return buf->data ? buf->data : "";
}

int buf_check(const struct buf *buf, const char *what, struct err *err)
{
    if (!buf->overflowed)
        return 0;
    return err_set(err, ERR_TOO_BIG, "%s is longer than %zu bytes", what, buf->max);
}
