/* story.h - an answer to "why?": the result in one line, then the evidence. It is written as text
 * or as JSON, so that both say the same. */
#ifndef SLINC_CLI_STORY_H
#define SLINC_CLI_STORY_H

#include "base/arena.h"
#include "base/buf.h"
#include "codec/json.h"

enum { STORY_MAX_LINES = 64, STORY_MAX_PARTS = 8 };

enum story_result {
    STORY_READY,
    STORY_RUNNING,
    STORY_BOUND,
    STORY_WAITING,
    STORY_NEVER,
    STORY_FAILED,
    STORY_ENDED,
};

struct story {
    struct arena *arena;
    enum story_result result;
    const char *summary;
    struct {
        const char *about, *text;
    } lines[STORY_MAX_LINES];
    unsigned line_count;
    struct { /* documents that the lines were read from; only in JSON */
        const char *key;
        const struct json *value;
    } parts[STORY_MAX_PARTS];
    unsigned part_count;
};

const char *story_result_name(enum story_result result); /* "waiting" */
/* For `--exit-code`: 0, 10 waits, 11 never, 12 failed. */
int story_exit_code(enum story_result result);

void story_conclude(struct story *story, enum story_result result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* An empty text adds nothing. */
void story_add(struct story *story, const char *about, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void story_attach(struct story *story, const char *key, const struct json *value);

void story_write_text(const struct story *story, bool colours, struct buf *out);
void story_write_json(const struct story *story, struct buf *out);

#endif
