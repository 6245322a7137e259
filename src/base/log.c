/* log.c - lines for people and for machines, from the same fields.
 *
 * Holds: a line has one '\n', at its end, and at most LOG_LINE_MAX bytes; it is valid UTF-8, and as
 * JSON a valid object even when fields had to be left out. Bytes that are not UTF-8 become U+FFFD;
 * characters that steer a terminal or turn text around are written as \uXXXX. */
#include "base/log.h"

#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    VALUE_MAX = 1024, /* of one message or value, as printed; the rest becomes "..." */
    TAIL_MAX = 16,    /* kept free for the end of the line */
};

static struct {
    struct log_options options;
    bool decided; /* the two below are known */
    bool as_json, in_color;
    struct buf line; /* kept from line to line for its memory */
} logger;

static const struct level_row {
    enum log_level level;
    const char *name;  /* in output, padded to one width in text */
    const char *color; /* of the name in text */
} levels[] = {
    { LOG_LEVEL_ERROR, "error", "\033[31m" },
    { LOG_LEVEL_WARN, "warn", "\033[33m" },
    { LOG_LEVEL_INFO, "info", "\033[32m" },
    { LOG_LEVEL_DEBUG, "debug", "\033[36m" },
};

static const char dim[] = "\033[2m", plain[] = "\033[0m";

static const struct {
    const char *name;
    enum log_level level;
} level_names[] = {
    { "error", LOG_LEVEL_ERROR }, { "warn", LOG_LEVEL_WARN },    { "info", LOG_LEVEL_INFO },
    { "debug", LOG_LEVEL_DEBUG }, { "warning", LOG_LEVEL_WARN }, { "dpanic", LOG_LEVEL_ERROR },
    { "panic", LOG_LEVEL_ERROR }, { "fatal", LOG_LEVEL_ERROR },
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const struct level_row *level_row(enum log_level level)
{
    for (size_t i = 0; i < COUNT(levels); i++)
        if (levels[i].level == level)
            return &levels[i];
    return &levels[0];
}

const char *log_level_name(enum log_level level)
{
    return level_row(level)->name;
}

int log_level_parse(struct str text, enum log_level *ret_level, struct err *err)
{
    uint64_t verbosity;

    for (size_t i = 0; i < COUNT(level_names); i++) {
        if (str_eq_nocase(text, str_of(level_names[i].name))) {
            *ret_level = level_names[i].level;
            return 0;
        }
    }
    if (str_to_u64(text, 0, 127, &verbosity, NULL) == 0) {
        *ret_level = verbosity > 0 ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO;
        return 0;
    }
    return err_set(err, ERR_INVALID,
                   "\"%.*s\" is not a log level: error, warn, info, debug or a number to 127",
                   (int)(text.len > 40 ? 40 : text.len), text.at);
}

/* ---- where lines go ---- */

void log_setup(const struct log_options *options)
{
    buf_done(&logger.line);
    logger.options = options ? *options : (struct log_options){ .level = LOG_LEVEL_INFO };
    logger.decided = false;
}

bool log_is_on(enum log_level level)
{
    return level <= logger.options.level;
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value && value[0] != '\0';
}

static void decide_format(void)
{
    bool to_terminal = !logger.options.sink && isatty(STDERR_FILENO);

    switch (logger.options.format) {
    case LOG_FORMAT_AUTO:
        logger.as_json = !to_terminal;
        break;
    case LOG_FORMAT_TEXT:
        logger.as_json = false;
        break;
    case LOG_FORMAT_JSON:
        logger.as_json = true;
        break;
    }
    logger.in_color = !logger.as_json && to_terminal && !is_set("NO_COLOR");
    logger.decided = true;
}

/* A line that cannot be written is lost: there is nowhere to say so, and the work goes on. */
static void write_stderr(struct str line)
{
    while (line.len > 0) {
        ssize_t written = write(STDERR_FILENO, line.at, line.len);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return;
        line = str_sub(line, (size_t)written, line.len);
    }
}

/* ---- characters ---- */

/* Characters that a terminal obeys, that end a line for some readers, or that reverse the order of
 * what follows on the screen. */
static const struct {
    uint32_t first, last;
} steering[] = {
    { 0x0000, 0x001f }, { 0x007f, 0x009f }, { 0x061c, 0x061c }, { 0x200e, 0x200f },
    { 0x2028, 0x202e }, { 0x2066, 0x2069 }, { 0xfeff, 0xfeff },
};

static bool is_steering(uint32_t character)
{
    for (size_t i = 0; i < COUNT(steering); i++)
        if (character >= steering[i].first && character <= steering[i].last)
            return true;
    return false;
}

/* The number of a character whose bytes are known to be well-formed. */
static uint32_t decode(struct str bytes)
{
    static const unsigned char lead_mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t character = (unsigned char)bytes.at[0] & lead_mask[bytes.len];

    for (size_t i = 1; i < bytes.len; i++)
        character = character << 6 | ((unsigned char)bytes.at[i] & 0x3f);
    return character;
}

static void add_character(struct buf *line, struct str bytes, bool quoted)
{
    uint32_t character = decode(bytes);

    if (character == '\n')
        buf_add_text(line, "\\n");
    else if (character == '\t')
        buf_add_text(line, "\\t");
    else if (is_steering(character))
        buf_printf(line, "\\u%04x", (unsigned)character);
    else if (quoted && (character == '"' || character == '\\'))
        buf_printf(line, "\\%c", (int)character);
    else
        buf_add_str(line, bytes);
}

static void add_escaped(struct buf *line, struct str s, bool quoted)
{
    size_t end = line->len + VALUE_MAX;

    while (s.len > 0) {
        size_t length = str_utf8_char(s);

        if (line->len >= end) {
            buf_add_text(line, "...");
            return;
        }
        if (length > 0)
            add_character(line, str_sub(s, 0, length), quoted);
        else
            buf_add_text(line, "\xef\xbf\xbd");
        s = str_sub(s, length > 0 ? length : 1, s.len);
    }
}

static void add_quoted(struct buf *line, struct str s)
{
    buf_add_char(line, '"');
    add_escaped(line, s, true);
    buf_add_char(line, '"');
}

/* In text, a value that reads as one word needs no quotes. */
static bool is_one_word(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.at[i];

        if (c <= ' ' || c >= 0x7f || c == '"' || c == '=' || c == '\\')
            return false;
    }
    return s.len > 0;
}

/* ---- lines ---- */

static void add_value(struct buf *line, const struct log_field *field, bool as_json)
{
    switch (field->kind) {
    case LOG_KIND_END:
        break;
    case LOG_KIND_STR:
        if (!as_json && is_one_word(field->str))
            add_escaped(line, field->str, false);
        else
            add_quoted(line, field->str);
        break;
    case LOG_KIND_I64:
        buf_printf(line, "%lld", (long long)field->i64);
        break;
    case LOG_KIND_U64:
        buf_printf(line, "%llu", (unsigned long long)field->u64);
        break;
    case LOG_KIND_BOOL:
        buf_add_text(line, field->flag ? "true" : "false");
        break;
    case LOG_KIND_SECRET:
        buf_add_text(line, as_json ? "\"<hidden>\"" : "<hidden>");
        break;
    }
}

static void add_json_field(struct buf *line, const struct log_field *field)
{
    buf_add_char(line, ',');
    add_quoted(line, str_of(field->key));
    buf_add_char(line, ':');
    add_value(line, field, true);
}

static void add_text_field(struct buf *line, const struct log_field *field)
{
    buf_printf(line, " %s", logger.in_color ? dim : "");
    add_escaped(line, str_of(field->key), false);
    buf_printf(line, "=%s", logger.in_color ? plain : "");
    add_value(line, field, false);
}

static void add_time(struct buf *line, bool to_the_microsecond)
{
    static const struct clock real;
    int64_t now = clock_wall_us(logger.options.clock ? logger.options.clock : &real);
    int64_t below = (now % 1000000 + 1000000) % 1000000;
    time_t seconds = (time_t)((now - below) / 1000000);
    struct tm tm = { .tm_mday = 1 };

    gmtime_r(&seconds, &tm);
    buf_printf(line, "%04d-%02d-%02dT%02d:%02d:%02d.", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
               tm.tm_hour, tm.tm_min, tm.tm_sec);
    if (to_the_microsecond)
        buf_printf(line, "%06dZ", (int)below);
    else
        buf_printf(line, "%03dZ", (int)(below / 1000));
}

static void start_json(struct buf *line, enum log_level level, const char *message)
{
    buf_printf(line, "{\"level\":\"%s\",\"ts\":\"", log_level_name(level));
    add_time(line, true);
    buf_add_text(line, "\",\"msg\":");
    add_quoted(line, str_of(message));
}

static void start_text(struct buf *line, enum log_level level, const char *message)
{
    const struct level_row *row = level_row(level);

    add_time(line, false);
    buf_printf(line, " %s%-5s%s ", logger.in_color ? row->color : "", row->name,
               logger.in_color ? plain : "");
    add_escaped(line, str_of(message), false);
}

/* False when the line has no room for the field; it is then as it was before. */
static bool add_field(struct buf *line, const struct log_field *field)
{
    size_t before = line->len;

    if (logger.as_json)
        add_json_field(line, field);
    else
        add_text_field(line, field);
    if (!line->overflowed)
        return true;
    line->overflowed = false;
    buf_truncate(line, before);
    return false;
}

static void end_line(struct buf *line, bool is_whole)
{
    line->max = LOG_LINE_MAX;
    if (logger.as_json)
        buf_add_text(line, is_whole ? "}\n" : ",\"cut\":true}\n");
    else
        buf_add_text(line, is_whole ? "\n" : " ...\n");
}

void log_write(enum log_level level, const char *message, const struct log_field *fields)
{
    struct buf *line = &logger.line;
    bool is_whole = true;
    int saved_errno = errno; /* to log is not to disturb */

    if (!logger.decided)
        decide_format();
    buf_clear(line);
    line->max = LOG_LINE_MAX - TAIL_MAX;
    if (logger.as_json)
        start_json(line, level, message);
    else
        start_text(line, level, message);
    for (; fields->kind != LOG_KIND_END; fields++)
        is_whole = add_field(line, fields) && is_whole;
    end_line(line, is_whole);
    if (logger.options.sink)
        logger.options.sink(logger.options.context, buf_str(line));
    else
        write_stderr(buf_str(line));
    errno = saved_errno;
}
