/* http_text.h - what may stand in a request line, a header and a query: the checks that keep one
 * request from becoming two, and percent-encoding. And a server's own words, as a line of ours. */
#ifndef SLINC_IO_HTTP_TEXT_H
#define SLINC_IO_HTTP_TEXT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

bool http_is_method(struct str method); /* 1 to 16 upper case letters */
bool http_is_path(struct str path);     /* begins with '/'; printable ASCII, no space, no '#' */
bool http_is_header_name(struct str name);
bool http_is_header_value(struct str value); /* no control characters but tab */

/* GET and HEAD: asking twice changes nothing. */
bool http_is_read(struct str method);

/* If the line is this header ("Name: value", any case): true, and its value, trimmed. */
bool http_header_is(struct str line, const char *name, struct str *ret_value);

/* Retry-After in seconds, a day at most; 0 for the date form and for anything else. */
int64_t http_retry_after_us(struct str value);

/* Appends a server's words to a text of `size` bytes: trimmed, whole characters as long as they fit
 * and are UTF-8, control characters as spaces. */
void http_add_words(char *text, size_t size, struct str words);

/* Appends text with everything but letters, digits and -._~ as %XX: fit for one segment of a path,
 * and for a name or a value of a query. */
void http_escape(struct str text, struct buf *out);

/* Appends the decoded value of the first parameter of this name; '+' is a space. "a" is the same as
 * "a=". -ERR_NOT_FOUND when there is none; -ERR_INVALID, with nothing appended, for a broken escape
 * or a NUL; -ERR_TOO_BIG when the buffer is full. */
int http_query_get(struct str query, const char *name, struct buf *out, struct err *err);

#endif
