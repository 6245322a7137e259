/* http_reader.h - reads the requests of one connection, one after the other, by a grammar that
 * leaves no doubt about where a request ends.
 *
 * Two readers that disagree about the end of a request make two requests of one: the second was
 * hidden in the first by somebody who may not send it. So whatever the standard lets a reader guess
 * is refused: lines without CR, folded lines, a body for GET, HEAD and DELETE, a length twice or
 * beside chunks, chunk extensions, trailers. After a refusal the bytes that follow mean nothing. */
#ifndef SLINC_IO_HTTP_READER_H
#define SLINC_IO_HTTP_READER_H

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_READER_MAX_LINES = 512 };

enum http_progress {
    HTTP_INCOMPLETE, /* more bytes are needed; all that came were taken */
    HTTP_COMPLETE,   /* a request is here; bytes behind it are left */
    HTTP_REFUSED,    /* status and why say what to answer before the connection is closed */
};

struct http_line { /* of the head */
    const char *name, *value;
};

struct http_reader {
    size_t max_head, max_body;
    bool delete_has_body; /* may be set after http_reader_init */
    unsigned state;       /* private */
    struct buf head;
    uint64_t left; /* of the body or of the chunk */
    unsigned digits;
    bool is_chunked, has_length, may_have_body;
    unsigned hosts;

    /* Of a complete request; borrowed until http_reader_next. */
    const char *method; /* static */
    const char *path;   /* as sent, without the query */
    struct str query;   /* without the '?' */
    struct http_line *lines;
    size_t line_count;
    struct buf body;
    bool is_http_1_0;
    bool closes;           /* the client sends no further request on this connection */
    bool expects_continue; /* the client waits for status 100 before it sends the body */

    int status; /* of a refused one */
    const char *why;
};

void http_reader_init(struct http_reader *reader, size_t max_head, size_t max_body);
void http_reader_done(struct http_reader *reader);

/* Takes bytes from the front of *in. Not to be called again after a complete request, before
 * http_reader_next, nor after a refusal. */
enum http_progress http_reader_take(struct http_reader *reader, struct str *in);

void http_reader_next(struct http_reader *reader);            /* forgets the request */
bool http_reader_has_begun(const struct http_reader *reader); /* a byte of a request has come */

const char *http_reader_header(const struct http_reader *reader, const char *name); /* or NULL */

#endif
