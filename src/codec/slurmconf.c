/* slurmconf.c - the slurm.conf writer, and the reader that proves it right.
 *
 * Holds: conf_parse of what conf_line wrote gives the same pairs on one line. The reader follows
 * Slurm's own steps: per line cut the comment, join continued lines, drop the escapes, and only
 * then look for pairs. */
#include "codec/slurmconf.h"

#include "base/mem.h"
#include "codec/hostlist.h"

#include <string.h>

static bool is_key_char(char c)
{
    return str_is_alnum(c) || c == '_' || c == '.';
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_op(char c)
{
    return c == '+' || c == '-' || c == '*' || c == '/';
}

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

bool conf_key_is(const struct conf_pair *pair, const char *key)
{
    return str_eq_nocase(pair->key, str_of(key));
}

/* ---- writing ---- */

void conf_begin(struct conf *conf, struct buf *out)
{
    *conf = (struct conf){ out };
}

static int check_key(struct str key, struct err *err)
{
    if (key.len == 0 || key.len > CONF_MAX_KEY)
        return err_set(err, ERR_INVALID, "an option's name has %zu bytes, not 1 to %d", key.len,
                       CONF_MAX_KEY);
    for (size_t i = 0; i < key.len; i++)
        if (!is_key_char(key.at[i]))
            return err_set(err, ERR_INVALID, "an option's name has byte 0x%02x at %zu",
                           (unsigned)(unsigned char)key.at[i], i);
    if (str_eq_nocase(key, STR("include")))
        return err_set(err, ERR_INVALID, STR_FMT " is not an option", STR_ARG(key));
    return 0;
}

/* Quotes also go around what is not ASCII, where blanks depend on the locale. */
static bool needs_quotes(struct str value)
{
    for (size_t i = 0; i < value.len; i++)
        if (is_blank(value.at[i]) || (unsigned char)value.at[i] >= 0x80)
            return true;
    return value.len == 0;
}

static int check_value(struct str key, struct str value, struct err *err)
{
    bool is_quoted = needs_quotes(value);

    if (value.len > CONF_MAX_VALUE)
        return err_set(err, ERR_TOO_BIG, STR_FMT ": the value is longer than %d bytes",
                       STR_ARG(key), CONF_MAX_VALUE);
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];

        if ((is_control(c) && c != '\t') || (c == '"' && (i == 0 || is_quoted)))
            return err_set(err, ERR_INVALID, STR_FMT ": the value has byte 0x%02x at %zu%s",
                           STR_ARG(key), (unsigned)(unsigned char)c, i,
                           c == '"' ? " (a double quote)" : "");
    }
    if (!str_is_utf8(value))
        return err_set(err, ERR_INVALID, STR_FMT ": the value is not UTF-8", STR_ARG(key));
    return 0;
}

static int check_pair(const struct conf_pair *pair, struct err *err)
{
    int status = check_key(pair->key, err);

    if (status < 0)
        return status;
    if (pair->op && !is_op(pair->op))
        return err_set(err, ERR_INVALID, STR_FMT ": no such operator", STR_ARG(pair->key));
    return check_value(pair->key, pair->value, err);
}

static void write_value(struct buf *out, struct str value)
{
    const char *quote = needs_quotes(value) ? "\"" : "";

    buf_add_text(out, quote);
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] == '#' || value.at[i] == '\\')
            buf_add_char(out, '\\');
        buf_add_char(out, value.at[i]);
    }
    buf_add_text(out, quote);
}

static void write_pair(struct buf *out, const struct conf_pair *pair)
{
    buf_add_str(out, pair->key);
    if (pair->op)
        buf_add_char(out, pair->op);
    buf_add_char(out, '=');
    write_value(out, pair->value);
}

int conf_line(struct conf *conf, const struct conf_pair *pairs, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        int status = check_pair(&pairs[i], err);

        if (status < 0)
            return status;
    }
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_add_char(conf->out, ' ');
        write_pair(conf->out, &pairs[i]);
    }
    buf_add_char(conf->out, '\n');
    return 0;
}

int conf_option(struct conf *conf, const char *key, struct str value, struct err *err)
{
    struct conf_pair pair = { .key = str_of(key), .value = value };

    return conf_line(conf, &pair, 1, err);
}

int conf_end(struct conf *conf, struct err *err)
{
    return buf_check(conf->out, "configuration", err);
}

/* ---- reading ---- */

struct reader {
    struct str rest;
    size_t line;       /* the number of the next line */
    size_t start;      /* the number of the first line of the joined one */
    struct buf joined; /* one line as Slurm sees it */
    struct arena *arena;
    struct conf_pair *pairs; /* growing; copied into the arena at the end */
    size_t count, room;
};

/* Everything behind a '#' that no '\' protects. */
static struct str without_comment(struct str line)
{
    bool escaped = false;

    for (size_t i = 0; i < line.len; i++) {
        if (line.at[i] == '#' && !escaped)
            return str_sub(line, 0, i);
        escaped = line.at[i] == '\\' && !escaped;
    }
    return line;
}

/* Whether a single '\' stands at the end; blanks may follow it. The line is cut before it. */
static bool cut_continuation(struct str *line)
{
    size_t end = line->len, slashes = 0;

    while (end > 0 && is_blank(line->at[end - 1]))
        end--;
    while (slashes < end && line->at[end - 1 - slashes] == '\\')
        slashes++;
    if (slashes % 2 == 0)
        return false;
    *line = str_sub(*line, 0, end - 1);
    return true;
}

/* Reads one line, with those it is continued on. False at the end of the text. */
static bool next_line(struct reader *reader)
{
    struct str line;
    bool more = true;

    buf_clear(&reader->joined);
    reader->start = reader->line + 1;
    while (more && str_next(&reader->rest, '\n', &line)) {
        reader->line++;
        line = without_comment(line);
        more = cut_continuation(&line);
        buf_add_str(&reader->joined, line);
    }
    return reader->line >= reader->start;
}

/* Drops each '\' and keeps what follows it; a copy for the pairs to point into. */
static struct str unescape(struct arena *arena, struct str line)
{
    char *copy = arena_alloc(arena, line.len + 1);
    size_t length = 0;

    for (size_t i = 0; i < line.len; i++) {
        if (line.at[i] == '\\' && ++i == line.len)
            break;
        copy[length++] = line.at[i];
    }
    return (struct str){ copy, length };
}

static struct str skip_blanks(struct str s)
{
    while (s.len > 0 && is_blank(s.at[0]))
        s = str_sub(s, 1, s.len);
    return s;
}

static struct str cut_while(struct str *rest, bool (*wanted)(char))
{
    size_t length = 0;

    while (length < rest->len && wanted(rest->at[length]))
        length++;

    struct str part = str_sub(*rest, 0, length);

    *rest = str_sub(*rest, length, rest->len);
    return part;
}

static bool is_not_blank(char c)
{
    return !is_blank(c);
}

/* A quoted value ends at the second quote, if a blank or the end follows; what only looks quoted
 * is a plain value up to the next blank. */
static struct str cut_value(struct str *rest)
{
    struct str inside, behind;

    if (rest->len > 0 && rest->at[0] == '"' &&
        str_cut(str_sub(*rest, 1, rest->len), '"', &inside, &behind) &&
        (behind.len == 0 || is_blank(behind.at[0]))) {
        *rest = behind;
        return inside;
    }
    return cut_while(rest, is_not_blank);
}

static int read_pair(struct str *rest, struct conf_pair *ret_pair)
{
    struct conf_pair pair = { .key = cut_while(rest, is_key_char) };

    *rest = skip_blanks(*rest);
    if (rest->len > 1 && is_op(rest->at[0]) && rest->at[1] == '=') {
        pair.op = rest->at[0];
        *rest = str_sub(*rest, 1, rest->len);
    }
    if (pair.key.len == 0 || rest->len == 0 || rest->at[0] != '=')
        return -ERR_INVALID;
    *rest = skip_blanks(str_sub(*rest, 1, rest->len));
    if (rest->len == 0)
        return -ERR_INVALID;
    pair.value = cut_value(rest);
    *ret_pair = pair;
    return 0;
}

/* "Include <file>": the one line that is not made of pairs. */
static bool read_include(struct str line, struct conf_pair *ret_pair)
{
    struct conf_pair pair = { .key = cut_while(&line, is_key_char) };

    if (!str_eq_nocase(pair.key, STR("include")) || line.len == 0 || !is_blank(line.at[0]))
        return false;
    line = skip_blanks(line);
    pair.value = cut_while(&line, is_not_blank);
    if (pair.value.len == 0 || skip_blanks(line).len > 0)
        return false;
    *ret_pair = pair;
    return true;
}

static int keep_pair(struct reader *reader, struct conf_pair pair, struct err *err)
{
    if (reader->count == CONF_MAX_PAIRS)
        return err_set(err, ERR_TOO_BIG, "line %zu: more than %d options", reader->start,
                       CONF_MAX_PAIRS);
    if (reader->count == reader->room) {
        reader->room = reader->room > 0 ? reader->room * 2 : 64;
        reader->pairs = mem_resize_array(reader->pairs, reader->room, sizeof(pair));
    }
    pair.line = reader->start;
    reader->pairs[reader->count++] = pair;
    return 0;
}

static int read_line(struct reader *reader, struct err *err)
{
    struct str rest = skip_blanks(unescape(reader->arena, buf_str(&reader->joined)));
    struct conf_pair pair;
    int status = 0;

    if (rest.len > 0 && memchr(rest.at, '\0', rest.len))
        return err_set(err, ERR_INVALID, "line %zu: a NUL byte", reader->start);
    if (read_include(rest, &pair))
        return keep_pair(reader, pair, err);
    for (; status == 0 && rest.len > 0; rest = skip_blanks(rest)) {
        if (read_pair(&rest, &pair) < 0)
            return err_set(err, ERR_INVALID, "line %zu: not Key=Value", reader->start);
        status = keep_pair(reader, pair, err);
    }
    return status;
}

static void reader_done(struct reader *reader)
{
    buf_done(&reader->joined);
    mem_free(reader->pairs);
}

int conf_parse(struct arena *arena, struct str text, const struct conf_pair **ret_pairs,
               size_t *ret_count, struct err *err)
{
    __attribute__((cleanup(reader_done))) struct reader reader = { .rest = text, .arena = arena };

    if (text.len > CONF_MAX_TEXT)
        return err_set(err, ERR_TOO_BIG, "configuration is longer than %d bytes", CONF_MAX_TEXT);
    buf_init(&reader.joined, CONF_MAX_TEXT);
    while (next_line(&reader)) {
        int status = read_line(&reader, err);

        if (status < 0)
            return status;
    }

    struct conf_pair *pairs = arena_alloc_array(arena, reader.count, sizeof(*pairs));

    if (reader.count > 0)
        memcpy(pairs, reader.pairs, reader.count * sizeof(*pairs));
    *ret_pairs = pairs;
    *ret_count = reader.count;
    return 0;
}

/* ---- names that end up in Slurm's files and commands ---- */

static int check_name(const char *what, struct str name, const char *allowed, struct err *err)
{
    if (name.len == 0)
        return err_set(err, ERR_INVALID, "%s name is empty", what);
    if (name.len > CONF_MAX_NAME)
        return err_set(err, ERR_TOO_BIG, "%s name \"%.20s...\" is longer than %d bytes", what,
                       name.at, CONF_MAX_NAME);
    for (size_t i = 0; i < name.len; i++)
        if (!str_is_alnum(name.at[i]) && (!name.at[i] || !strchr(allowed, name.at[i])))
            return err_set(err, ERR_INVALID, "%s name has byte 0x%02x at %zu", what,
                           (unsigned)(unsigned char)name.at[i], i);
    if (!str_is_alnum(name.at[0]) && name.at[0] != '_')
        return err_set(err, ERR_INVALID, "%s name \"" STR_FMT "\" starts with '%c'", what,
                       STR_ARG(name), name.at[0]);
    return 0;
}

static int check_meaning(const char *what, struct str name, const char *taken, struct err *err)
{
    if (str_eq_nocase(name, str_of(taken)))
        return err_set(err, ERR_INVALID,
                       "\"" STR_FMT "\" cannot be a %s name: Slurm means %s by it", STR_ARG(name),
                       what, taken);
    return 0;
}

int conf_check_node_name(struct str name, struct err *err)
{
    int status = hostlist_check_name(name, err);

    if (status == 0)
        status = check_meaning("node", name, "DEFAULT", err);
    if (status == 0)
        status = check_meaning("node", name, "ALL", err);
    return status;
}

int conf_check_partition_name(struct str name, struct err *err)
{
    int status = check_name("partition", name, "-_.", err);

    return status < 0 ? status : check_meaning("partition", name, "DEFAULT", err);
}

int conf_check_features(struct str list, struct err *err)
{
    struct str feature;
    size_t count = 0;

    if (list.len == 0)
        return 0;
    while (str_next(&list, ',', &feature)) {
        int status = check_name("feature", feature, "-_.:/=", err);

        if (status < 0)
            return status;
        if (++count > CONF_MAX_FEATURES)
            return err_set(err, ERR_TOO_BIG, "more than %d features", CONF_MAX_FEATURES);
    }
    return 0;
}
