/* buf.h - text that grows, up to a maximum that its owner must name.
 *
 * Writing past the maximum loses the write and marks the buffer; later writes are ignored. So a
 * writer appends freely and asks once at the end. data is always NUL-terminated after the first
 * write. */
#ifndef SLINC_BASE_BUF_H
#define SLINC_BASE_BUF_H

#include "base/err.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data; /* NULL while nothing was written */
    size_t len, cap, max;
    bool overflowed;
};

void buf_init(struct buf *buf, size_t max);
void buf_done(struct buf *buf);
void buf_clear(struct buf *buf); /* keeps the memory, forgets the overflow */

void buf_add(struct buf *buf, const void *bytes, size_t length);
void buf_add_str(struct buf *buf, struct str s);
void buf_add_text(struct buf *buf, const char *text);
void buf_add_char(struct buf *buf, char c);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *buf, const char *format, va_list args)
    __attribute__((format(printf, 2, 0), nonnull(2)));
void buf_drop_front(struct buf *buf, size_t length); /* clamped */
void buf_truncate(struct buf *buf, size_t length);   /* clamped */

struct str buf_str(const struct buf *buf);
const char *buf_text(const struct buf *buf); /* "" when nothing was written */

/* 0, or -ERR_TOO_BIG naming `what` and the maximum. */
int buf_check(const struct buf *buf, const char *what, struct err *err);

#define auto_buf __attribute__((cleanup(buf_done)))

#endif
