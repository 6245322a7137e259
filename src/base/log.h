/* log.h - one line per thing worth telling: a message, and facts as fields.
 *
 *     log_info("bound pod", LOG_STR("pod", name), LOG_I64("job", id));
 *
 * A person at a terminal gets text, everything else one JSON object per line with the keys level,
 * ts, msg and then the fields. Nothing in a value can start a new line or move the cursor. Only the
 * engine and the commands log; the layers below return errors. */
#ifndef SLINC_BASE_LOG_H
#define SLINC_BASE_LOG_H

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* A line is never longer, newline included: up to PIPE_BUF, writers to one pipe do not mix. */
enum { LOG_LINE_MAX = 4096 };

enum log_level {
    LOG_LEVEL_ERROR = -2,
    LOG_LEVEL_WARN,
    LOG_LEVEL_INFO, /* 0: what a zeroed struct log_options asks for */
    LOG_LEVEL_DEBUG,
};

enum log_format {
    LOG_FORMAT_AUTO, /* text when stderr is a terminal and no sink is set */
    LOG_FORMAT_TEXT,
    LOG_FORMAT_JSON,
};

struct log_options {
    enum log_level level;
    enum log_format format;
    const struct clock *clock;                    /* NULL: the real one */
    void (*sink)(void *context, struct str line); /* NULL: stderr; the line ends in '\n' */
    void *context;                                /* for the sink */
};

/* Both pointers inside stay borrowed until the next call. NULL brings the defaults back, which
 * also hold before the first call. */
void log_setup(const struct log_options *options);

/* error, warn, info, debug; and what flags of the zap kind may say besides: warning, dpanic, panic,
 * fatal, 0 for info, any greater number (up to 127) for debug. Case does not matter. */
int log_level_parse(struct str text, enum log_level *ret_level, struct err *err);
const char *log_level_name(enum log_level level);
bool log_is_on(enum log_level level);

enum log_kind {
    LOG_KIND_END, /* behind the last field */
    LOG_KIND_STR,
    LOG_KIND_I64,
    LOG_KIND_U64,
    LOG_KIND_BOOL,
    LOG_KIND_SECRET,
};

struct log_field {
    enum log_kind kind;
    const char *key; /* a literal: letters, digits, '_' */
    union {
        struct str str;
        int64_t i64;
        uint64_t u64;
        bool flag;
    };
};

#define LOG_STR(name, s)      ((struct log_field){ LOG_KIND_STR, name, .str = (s) })
#define LOG_TEXT(name, text)  ((struct log_field){ LOG_KIND_STR, name, .str = str_of(text) })
#define LOG_I64(name, number) ((struct log_field){ LOG_KIND_I64, name, .i64 = (number) })
#define LOG_U64(name, number) ((struct log_field){ LOG_KIND_U64, name, .u64 = (number) })
#define LOG_BOOL(name, value) ((struct log_field){ LOG_KIND_BOOL, name, .flag = (value) })
#define LOG_ERROR(err)        LOG_TEXT("error", (err)->text)
#define LOG_SECRET(name)      ((struct log_field){ LOG_KIND_SECRET, name, .u64 = 0 }) /* <hidden> */
#define LOG_END               ((struct log_field){ LOG_KIND_END, NULL, .u64 = 0 })

/* (message, fields...). The fields are not evaluated when the level is off. */
#define log_error(...) LOG_AT(LOG_LEVEL_ERROR, __VA_ARGS__, LOG_END)
#define log_warn(...)  LOG_AT(LOG_LEVEL_WARN, __VA_ARGS__, LOG_END)
#define log_info(...)  LOG_AT(LOG_LEVEL_INFO, __VA_ARGS__, LOG_END)
#define log_debug(...) LOG_AT(LOG_LEVEL_DEBUG, __VA_ARGS__, LOG_END)

#define LOG_AT(level, message, ...)                                                                \
    (log_is_on(level) ? log_write(level, message, (const struct log_field[]){ __VA_ARGS__ })       \
                      : (void)0)

/* Writes whether or not the level is on; fields end with LOG_END. */
void log_write(enum log_level level, const char *message, const struct log_field *fields);

#endif
