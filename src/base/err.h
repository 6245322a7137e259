/* err.h - what went wrong, as a class for the program and a sentence for the person.
 *
 * A function that can fail returns 0 or a negated class, and takes `struct err *err` last. On
 * success err is untouched. err may be NULL when the caller wants the class alone. Each caller may
 * put in front what it was doing: "read token: open /run/token: no such file". */
#ifndef SLINC_BASE_ERR_H
#define SLINC_BASE_ERR_H

#include <stdarg.h>

enum err_class {
    ERR_INVALID = 1, /* the input is wrong; the same call will fail again */
    ERR_TOO_BIG,     /* a bound was reached */
    ERR_NOT_FOUND,   /* a positive fact: the thing is not there */
    ERR_EXISTS,      /* it is there already */
    ERR_CONFLICT,    /* somebody else wrote first; look again */
    ERR_DENIED,      /* credentials or permissions */
    ERR_UNAVAILABLE, /* the other side cannot answer now; it did nothing */
    ERR_TIMEOUT,     /* the deadline passed before anything was sent */
    ERR_UNKNOWN,     /* sent, and whether it took effect is not known */
    ERR_CANCELED,    /* we ended it ourselves */
    ERR_SYSTEM,      /* the operating system refused: files, memory maps, sockets */
    ERR_BUG,         /* cannot happen; a defect of ours */
};

struct err {
    int class;      /* enum err_class, 0 when unset */
    char text[240]; /* cut with "..." when longer */
};

/* Sets class and text; gives -class, so that `return err_set(...)` reads well. A macro, so that
 * compilers and analysers see that what is returned is not 0. */
#define err_set(err, class, ...) (err_write((err), (class), __VA_ARGS__), err_negated(class))
static inline int err_negated(enum err_class class)
{
    return -(int)class;
}
void err_write(struct err *err, enum err_class class, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int err_setv(struct err *err, enum err_class class, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* As err_set with ERR_SYSTEM, and ": " and the text of the errno value `number` behind. */
#define err_system(err, number, ...)                                                               \
    (err_write_system((err), (number), __VA_ARGS__), err_negated(ERR_SYSTEM))
void err_write_system(struct err *err, int number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "<what>: " in front of the text already there; returns -err->class (-ERR_BUG when err is
 * NULL). */
int err_wrap(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The class as a word: "invalid", "too big", "not found" ... */
const char *err_class_name(int class);

#endif
