/* hostlist.c - parses, asks and walks Slurm host lists.
 *
 * A list is an array of patterns; a pattern is text with brackets between ("rack", [1-2], "node",
 * [01-04], ""), a bracket an array of ranges.
 *
 * Holds: every name that a parsed list stands for passes hostlist_check_name. */
#include "codec/hostlist_private.h"

#include <assert.h>

struct range {
    uint64_t low, high;
    unsigned width; /* digits to write at least: the length of the first number as given */
};

struct bracket {
    const struct range *ranges;
    size_t range_count;
    uint64_t names;     /* how many numbers in all */
    unsigned max_width; /* digits of the longest number */
};

struct pattern {
    const struct str *literals; /* before, between and behind the brackets: one more than those */
    const struct bracket *brackets;
    size_t bracket_count;
};

struct hostlist {
    const struct pattern *patterns;
    size_t pattern_count;
    uint64_t names;
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_separator(char c)
{
    return c == ',' || c == ' ' || c == '\t' || c == '\n';
}

static bool is_name_char(char c)
{
    return is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.';
}

static unsigned digits_of(uint64_t value)
{
    unsigned digits = 1;

    while (value /= 10)
        digits++;
    return digits;
}

unsigned hostlist_written_width(uint64_t value, unsigned width)
{
    unsigned digits = digits_of(value);

    return digits > width ? digits : width;
}

uint64_t hostlist_value_of(struct str digits)
{
    uint64_t value = 0;

    assert(digits.len <= HOSTLIST_MAX_DIGITS);
    for (size_t i = 0; i < digits.len; i++)
        value = value * 10 + (uint64_t)(digits.at[i] - '0');
    return value;
}

/* ---- names ---- */

size_t hostlist_trailing_digits(struct str name)
{
    size_t count = 0;

    while (count < name.len && is_digit(name.at[name.len - 1 - count]))
        count++;
    return count;
}

int hostlist_check_name(struct str name, struct err *err)
{
    if (name.len == 0)
        return err_set(err, ERR_INVALID, "a node name is empty");
    if (name.len > HOSTLIST_MAX_NAME)
        return err_set(err, ERR_TOO_BIG, "node name \"%.40s...\" is longer than %d bytes", name.at,
                       HOSTLIST_MAX_NAME);
    for (size_t i = 0; i < name.len; i++)
        if (!is_name_char(name.at[i]))
            return err_set(err, ERR_INVALID, "a node name has byte 0x%02x at %zu",
                           (unsigned)(unsigned char)name.at[i], i);
    if (name.at[0] == '-' || name.at[0] == '.')
        return err_set(err, ERR_INVALID, "node name \"" STR_FMT "\" starts with '%c'",
                       STR_ARG(name), name.at[0]);
    if (hostlist_trailing_digits(name) > HOSTLIST_MAX_DIGITS)
        return err_set(err, ERR_TOO_BIG, "node name \"" STR_FMT "\" ends in more than %d digits",
                       STR_ARG(name), HOSTLIST_MAX_DIGITS);
    return 0;
}

/* ---- parsing ---- */

struct parser {
    struct arena *arena;
    struct str text;
    size_t at;
    uint64_t max_names;
    struct err *err;
};

static int refuse(const struct parser *parser, enum err_class class, size_t position,
                  const char *what)
{
    return err_set(parser->err, class, "host list, byte %zu: %s", position, what);
}

static bool at_end(const struct parser *parser)
{
    return parser->at == parser->text.len;
}

static char peek(const struct parser *parser)
{
    return at_end(parser) ? '\0' : parser->text.at[parser->at];
}

static void skip_separators(struct parser *parser)
{
    while (!at_end(parser) && is_separator(peek(parser)))
        parser->at++;
}

static int parse_number(struct parser *parser, struct str *ret_digits)
{
    size_t start = parser->at;

    while (is_digit(peek(parser)))
        parser->at++;
    if (parser->at == start)
        return refuse(parser, ERR_INVALID, start, "a number is missing");
    if (parser->at - start > HOSTLIST_MAX_DIGITS)
        return refuse(parser, ERR_TOO_BIG, start, "a number is too long");
    *ret_digits = str_sub(parser->text, start, parser->at);
    return 0;
}

/* "7" or "009-011". As in Slurm the width of the first number counts for all. */
static int parse_range(struct parser *parser, struct range *ret_range)
{
    size_t start = parser->at;
    struct str first, last;
    int status = parse_number(parser, &first);

    if (status < 0)
        return status;
    last = first;
    if (peek(parser) == '-') {
        parser->at++;
        status = parse_number(parser, &last);
        if (status < 0)
            return status;
    }

    struct range range = { hostlist_value_of(first), hostlist_value_of(last), (unsigned)first.len };

    if (range.high < range.low)
        return refuse(parser, ERR_INVALID, start, "a range runs backwards");
    *ret_range = range;
    return 0;
}

/* How many ranges the bracket at hand can hold at most: one more than its commas. */
static size_t ranges_ahead(const struct parser *parser)
{
    size_t count = 1;

    for (size_t i = parser->at; i < parser->text.len && parser->text.at[i] != ']'; i++)
        count += parser->text.at[i] == ',';
    return count;
}

static int parse_bracket(struct parser *parser, struct bracket *ret_bracket)
{
    struct bracket bracket = { 0 };
    size_t start = parser->at++, room = ranges_ahead(parser);
    struct range *ranges;

    if (!memchr(parser->text.at + start, ']', parser->text.len - start))
        return refuse(parser, ERR_INVALID, start, "a bracket is not closed");
    if (room > parser->max_names)
        return refuse(parser, ERR_TOO_BIG, start, "too many names");
    ranges = arena_alloc_array(parser->arena, room, sizeof(*ranges));
    for (;;) {
        struct range *range = &ranges[bracket.range_count++];
        int status = parse_range(parser, range);

        if (status < 0)
            return status;
        /* No overflow: numbers have at most 18 digits, and the sum was below max_names. */
        bracket.names += range->high - range->low + 1;
        if (bracket.names > parser->max_names)
            return refuse(parser, ERR_TOO_BIG, start, "too many names");
        if (hostlist_written_width(range->high, range->width) > bracket.max_width)
            bracket.max_width = hostlist_written_width(range->high, range->width);
        if (peek(parser) != ',')
            break;
        parser->at++;
    }
    if (peek(parser) != ']')
        return refuse(parser, ERR_INVALID, parser->at, "',', '-' or ']' is missing");
    parser->at++;
    bracket.ranges = ranges;
    *ret_bracket = bracket;
    return 0;
}

static struct str parse_literal(struct parser *parser)
{
    size_t start = parser->at;

    while (is_name_char(peek(parser)))
        parser->at++;
    return str_sub(parser->text, start, parser->at);
}

/* How many digits the longest name of a pattern ends in. */
static size_t longest_tail(const struct pattern *pattern)
{
    size_t tail = 0;

    for (size_t i = pattern->bracket_count;; i--) {
        size_t digits = hostlist_trailing_digits(pattern->literals[i]);

        tail += digits;
        if (digits < pattern->literals[i].len || i == 0)
            return tail;
        tail += pattern->brackets[i - 1].max_width;
    }
}

static size_t longest_name(const struct pattern *pattern)
{
    size_t length = pattern->literals[0].len;

    for (size_t i = 0; i < pattern->bracket_count; i++)
        length += pattern->brackets[i].max_width + pattern->literals[i + 1].len;
    return length;
}

/* That every name of the pattern is safe, by its longest. */
static int check_pattern(const struct parser *parser, const struct pattern *pattern, size_t start)
{
    struct str front = pattern->literals[0];

    if (front.len > 0 && (front.at[0] == '-' || front.at[0] == '.'))
        return refuse(parser, ERR_INVALID, start, "a name starts with '-' or '.'");
    if (longest_name(pattern) > HOSTLIST_MAX_NAME)
        return refuse(parser, ERR_TOO_BIG, start, "a name is too long");
    if (longest_tail(pattern) > HOSTLIST_MAX_DIGITS)
        return refuse(parser, ERR_TOO_BIG, start, "a name ends in too many digits");
    return 0;
}

static void *keep(struct arena *arena, const void *from, size_t count, size_t size)
{
    void *copy = arena_alloc_array(arena, count, size);

    if (count > 0)
        memcpy(copy, from, count * size);
    return copy;
}

static int parse_pattern(struct parser *parser, struct pattern *ret_pattern)
{
    struct str literals[HOSTLIST_MAX_BRACKETS + 1];
    struct bracket brackets[HOSTLIST_MAX_BRACKETS];
    size_t start = parser->at, count = 0;

    for (;;) {
        literals[count] = parse_literal(parser);
        if (at_end(parser) || is_separator(peek(parser)))
            break;
        if (peek(parser) != '[')
            return refuse(parser, ERR_INVALID, parser->at, "no node name has this character");
        if (count == HOSTLIST_MAX_BRACKETS)
            return refuse(parser, ERR_TOO_BIG, parser->at, "too many brackets in a name");

        int status = parse_bracket(parser, &brackets[count]);

        if (status < 0)
            return status;
        count++;
    }

    struct pattern pattern = { literals, brackets, count };
    int status = check_pattern(parser, &pattern, start);

    if (status < 0)
        return status;
    pattern.literals = keep(parser->arena, literals, count + 1, sizeof(literals[0]));
    pattern.brackets = keep(parser->arena, brackets, count, sizeof(brackets[0]));
    *ret_pattern = pattern;
    return 0;
}

/* No overflow: each factor, and the product before the last, is at most INT32_MAX. */
static uint64_t pattern_names(const struct pattern *pattern, uint64_t max)
{
    uint64_t names = 1;

    for (size_t i = 0; i < pattern->bracket_count && names <= max; i++)
        names *= pattern->brackets[i].names;
    return names;
}

/* How many patterns the text holds: separators inside brackets do not count. */
static size_t patterns_in(struct str text)
{
    bool inside = false, in_bracket = false;
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool separates = is_separator(c) && !in_bracket;

        count += !separates && !inside;
        inside = !separates;
        in_bracket = c == '[' || (in_bracket && c != ']');
    }
    return count;
}

int hostlist_parse(struct arena *arena, struct str text, uint64_t max_names,
                   const struct hostlist **ret_list, struct err *err)
{
    uint64_t max = max_names > INT32_MAX ? INT32_MAX : max_names;
    size_t room = patterns_in(text);

    if (text.len > HOSTLIST_MAX_TEXT)
        return err_set(err, ERR_TOO_BIG, "host list is longer than %d bytes", HOSTLIST_MAX_TEXT);
    if (room > max)
        return err_set(err, ERR_TOO_BIG, "host list has more than %llu names",
                       (unsigned long long)max);

    struct hostlist *list = arena_alloc(arena, sizeof(*list));
    struct pattern *patterns = arena_alloc_array(arena, room, sizeof(*patterns));
    struct str copy = { arena_strndup(arena, text.at, text.len), text.len };
    struct parser parser = { arena, copy, 0, max, err };

    for (skip_separators(&parser); !at_end(&parser); skip_separators(&parser)) {
        size_t start = parser.at;
        struct pattern *pattern = &patterns[list->pattern_count++];
        int status = parse_pattern(&parser, pattern);

        if (status < 0)
            return status;
        list->names += pattern_names(pattern, max);
        if (list->names > max)
            return refuse(&parser, ERR_TOO_BIG, start, "too many names");
    }
    list->patterns = patterns;
    *ret_list = list;
    return 0;
}

uint64_t hostlist_count(const struct hostlist *list)
{
    return list->names;
}

/* ---- asking ---- */

static bool bracket_has(const struct bracket *bracket, struct str digits)
{
    uint64_t value = hostlist_value_of(digits);

    for (size_t i = 0; i < bracket->range_count; i++) {
        const struct range *range = &bracket->ranges[i];

        if (value >= range->low && value <= range->high &&
            hostlist_written_width(value, range->width) == digits.len)
            return true;
    }
    return false;
}

/* From one place in the name, marks every place behind the bracket and the text after it. */
static void match_bracket(const struct bracket *bracket, struct str literal, struct str name,
                          size_t from, bool *reached)
{
    for (size_t to = from; to < name.len && is_digit(name.at[to]);) {
        if (++to - from > bracket->max_width)
            return;
        if (str_starts(str_sub(name, to, name.len), literal) &&
            bracket_has(bracket, str_sub(name, from, to)))
            reached[to + literal.len] = true;
    }
}

/* Where one bracket follows another the digits can be shared out in several ways: all places that
 * can be reached are kept, so nothing is tried twice. */
static bool pattern_has(const struct pattern *pattern, struct str name)
{
    bool reached[HOSTLIST_MAX_BRACKETS + 1][HOSTLIST_MAX_NAME + 1];

    if (!str_starts(name, pattern->literals[0]) ||
        !str_ends(name, pattern->literals[pattern->bracket_count]))
        return false;
    memset(reached, 0, (pattern->bracket_count + 1) * sizeof(reached[0]));
    reached[0][pattern->literals[0].len] = true;
    for (size_t i = 0; i < pattern->bracket_count; i++)
        for (size_t from = 0; from <= name.len; from++)
            if (reached[i][from])
                match_bracket(&pattern->brackets[i], pattern->literals[i + 1], name, from,
                              reached[i + 1]);
    return reached[pattern->bracket_count][name.len];
}

bool hostlist_contains(const struct hostlist *list, struct str name)
{
    if (name.len > HOSTLIST_MAX_NAME)
        return false;
    for (size_t i = 0; i < list->pattern_count; i++)
        if (pattern_has(&list->patterns[i], name))
            return true;
    return false;
}

/* ---- walking ---- */

struct hostlist_iter hostlist_iter(const struct hostlist *list)
{
    return (struct hostlist_iter){ .list = list };
}

/* The next number of one bracket; false when it starts again from its first. */
static bool turn(struct hostlist_place *place, const struct bracket *bracket)
{
    if (place->value < bracket->ranges[place->range].high) {
        place->value++;
        return true;
    }
    place->range = (place->range + 1) % bracket->range_count;
    place->value = bracket->ranges[place->range].low;
    return place->range != 0;
}

/* Slurm turns the last bracket fastest, then the first, the second and so on. */
static bool turn_pattern(struct hostlist_iter *iter, const struct pattern *pattern)
{
    size_t count = pattern->bracket_count;

    for (size_t i = 0; i < count; i++) {
        size_t which = i == 0 ? count - 1 : i - 1;

        if (turn(&iter->places[which], &pattern->brackets[which]))
            return true;
    }
    return false;
}

static void start_pattern(struct hostlist_iter *iter, const struct pattern *pattern)
{
    for (size_t i = 0; i < pattern->bracket_count; i++)
        iter->places[i] = (struct hostlist_place){ 0, pattern->brackets[i].ranges[0].low };
}

char *hostlist_write_number(char *to, uint64_t value, unsigned width)
{
    unsigned length = hostlist_written_width(value, width);

    for (unsigned i = length; i-- > 0; value /= 10)
        to[i] = (char)('0' + value % 10);
    return to + length;
}

static struct str write_name(struct hostlist_iter *iter, const struct pattern *pattern)
{
    char *to = iter->name;

    for (size_t i = 0; i <= pattern->bracket_count; i++) {
        if (i > 0) {
            const struct hostlist_place *place = &iter->places[i - 1];

            to = hostlist_write_number(to, place->value,
                                       pattern->brackets[i - 1].ranges[place->range].width);
        }
        memcpy(to, pattern->literals[i].at, pattern->literals[i].len);
        to += pattern->literals[i].len;
    }
    *to = '\0';
    return (struct str){ iter->name, (size_t)(to - iter->name) };
}

bool hostlist_next(struct hostlist_iter *iter, struct str *ret_name)
{
    const struct pattern *patterns = iter->list->patterns;

    if (iter->started && !turn_pattern(iter, &patterns[iter->pattern])) {
        iter->pattern++;
        iter->started = false;
    }
    if (iter->pattern >= iter->list->pattern_count)
        return false;
    if (!iter->started)
        start_pattern(iter, &patterns[iter->pattern]);
    iter->started = true;
    *ret_name = write_name(iter, &patterns[iter->pattern]);
    return true;
}
