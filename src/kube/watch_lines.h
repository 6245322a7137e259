/* watch_lines.h - a watch stream, cut into lines, and a line read as an event.
 *
 * Pieces come as the network cuts them. A line that lies whole in one piece is handed out where it
 * lies; only one that is cut is put together in a buffer, up to a maximum. */
#ifndef SLINC_KUBE_WATCH_LINES_H
#define SLINC_KUBE_WATCH_LINES_H

#include "base/buf.h"
#include "codec/json.h"

struct watch_lines {
    struct buf kept;   /* the beginning of a line that is not whole yet */
    struct str piece;  /* what is left of the last one; borrowed */
    size_t max;        /* bytes of a line, without its newline */
    bool kept_is_used; /* the line last handed out lies in `kept` */
};

void watch_lines_init(struct watch_lines *lines, size_t max);
void watch_lines_done(struct watch_lines *lines);
void watch_lines_reset(struct watch_lines *lines); /* for a new stream */

/* The piece must stay until watch_lines_next has returned 0; only then may the next one come. */
void watch_lines_feed(struct watch_lines *lines, struct str piece);

/* 1 and a line that is not empty, valid until the next call; 0 when the piece is used up;
 * -ERR_TOO_BIG for a line over the maximum, after which only a reset helps. */
int watch_lines_next(struct watch_lines *lines, struct str *ret_line, struct err *err);

enum watch_type { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED, WATCH_BOOKMARK, WATCH_ERROR };

struct watch_event {
    enum watch_type type;
    const struct json *object;    /* for an error: a Status */
    struct str ns, name, version; /* of its metadata; "" when absent */
    uint64_t version_number;      /* 0 when it is none */
    int code;                     /* of an error; 0 when absent */
    struct json_doc *doc;         /* private */
};

/* Fails with -ERR_INVALID when it is no event. */
int watch_event_parse(struct str line, struct watch_event *ret_event, struct err *err);
void watch_event_done(struct watch_event *event);

#define auto_watch_event __attribute__((cleanup(watch_event_done)))

#endif
