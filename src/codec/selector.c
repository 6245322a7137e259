/* selector.c - compiles, matches and prints label selectors.
 *
 * Holds: a compiled selector is valid by the API server's rules and keeps nothing of its input;
 * parsing what was printed gives an equal selector. The grammar is that of apimachinery's labels
 * package, with two differences: NUL and what is not UTF-8 are refused, and there are bounds. */
#include "codec/selector.h"

#include <assert.h>
#include <stdlib.h>

/* The start of a text in an error. */
#define SHOWN(s) (int)((s).len > 80 ? 80 : (s).len), (s).at

enum { MAX_NAME = 63, MAX_SUBDOMAIN = 253 };

struct selector {
    bool nothing;
    struct selector_requirement *requirements; /* sorted by key */
    size_t count;
};

/* How each operator is called in objects, and written in text. */
static const struct op_fact {
    const char *name; /* NULL: in text only */
    bool numeric;     /* compares numbers; in objects, known to node selectors only */
    const char *infix;
    size_t min_values, max_values;
} op_facts[] = {
    [SELECTOR_EQUALS] = { NULL, false, "=", 1, 1 },
    [SELECTOR_NOT_EQUALS] = { NULL, false, "!=", 1, 1 },
    [SELECTOR_IN] = { "In", false, " in ", 1, SELECTOR_MAX_VALUES },
    [SELECTOR_NOT_IN] = { "NotIn", false, " notin ", 1, SELECTOR_MAX_VALUES },
    [SELECTOR_EXISTS] = { "Exists", false, "", 0, 0 },
    [SELECTOR_NOT_EXISTS] = { "DoesNotExist", false, "", 0, 0 },
    [SELECTOR_GREATER] = { "Gt", true, ">", 1, 1 },
    [SELECTOR_LESS] = { "Lt", true, "<", 1, 1 },
};

enum { OP_COUNT = sizeof(op_facts) / sizeof(op_facts[0]) };

/* ---- what may be a key or a value ---- */

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Letters and digits at both ends; '-', '_' and '.' between them. */
static bool is_name(struct str s)
{
    if (s.len == 0 || s.len > MAX_NAME)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        bool inner = i > 0 && i + 1 < s.len && (s.at[i] == '-' || s.at[i] == '_' || s.at[i] == '.');

        if (!str_is_alnum(s.at[i]) && !inner)
            return false;
    }
    return true;
}

/* Lower-case labels joined by dots, as in RFC 1123. */
static bool is_subdomain(struct str s)
{
    struct str label;

    if (s.len > MAX_SUBDOMAIN)
        return false;
    while (str_next(&s, '.', &label)) {
        if (label.len == 0 || label.at[0] == '-' || label.at[label.len - 1] == '-')
            return false;
        for (size_t i = 0; i < label.len; i++)
            if (!is_lower_or_digit(label.at[i]) && label.at[i] != '-')
                return false;
    }
    return true;
}

int selector_check_key(struct str key, struct err *err)
{
    struct str prefix = STR("x"), name = key;

    str_cut(key, '/', &prefix, &name);
    if (is_subdomain(prefix) && is_name(name))
        return 0;
    return err_set(err, ERR_INVALID, "\"%.*s\" is not a label key", SHOWN(key));
}

int selector_check_value(struct str value, struct err *err)
{
    if (value.len == 0 || is_name(value))
        return 0;
    return err_set(err, ERR_INVALID, "\"%.*s\" is not a label value", SHOWN(value));
}

/* A whole number as Go's ParseInt takes it: a '+' in front is allowed. */
static bool read_number(struct str text, int64_t *ret_number)
{
    if (text.len > 1 && text.at[0] == '+' && text.at[1] != '-')
        text = str_sub(text, 1, text.len);
    return str_to_i64(text, INT64_MIN, INT64_MAX, ret_number, NULL) == 0;
}

/* ---- requirements ---- */

static int compare_values(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void sort_values(struct selector_requirement *requirement)
{
    struct str *values = requirement->values;
    size_t kept = 0;

    if (requirement->value_count > 1)
        qsort(values, requirement->value_count, sizeof(*values), compare_values);
    for (size_t i = 0; i < requirement->value_count; i++)
        if (kept == 0 || !str_eq(values[kept - 1], values[i]))
            values[kept++] = values[i];
    requirement->value_count = kept;
}

/* The last step of every way to make one: checks it and puts the values in order. */
static int finish_requirement(struct selector_requirement *requirement, struct err *err)
{
    const struct op_fact *fact = &op_facts[requirement->op];
    size_t count = requirement->value_count;
    int status = selector_check_key(requirement->key, err);

    for (size_t i = 0; i < count && status == 0; i++)
        status = selector_check_value(requirement->values[i], err);
    if (status < 0)
        return status;
    if (count < fact->min_values || count > fact->max_values)
        return err_set(err, count > SELECTOR_MAX_VALUES ? ERR_TOO_BIG : ERR_INVALID,
                       "\"" STR_FMT "\" has %zu values, the operator takes %s",
                       STR_ARG(requirement->key), count,
                       fact->max_values == 0   ? "none"
                       : fact->max_values == 1 ? "one"
                                               : "one or more");
    assert(!fact->numeric || count == 1);
    if (fact->numeric && !read_number(requirement->values[0], &requirement->number))
        return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is not a number to compare with",
                       STR_ARG(requirement->values[0]));
    sort_values(requirement);
    return 0;
}

static bool has_value(const struct selector_requirement *requirement, struct str value)
{
    return requirement->value_count > 0 &&
           bsearch(&value, requirement->values, requirement->value_count,
                   sizeof(*requirement->values), compare_values) != NULL;
}

bool selector_requirement_matches(const struct selector_requirement *requirement,
                                  struct selector_subject labels)
{
    struct str value = STR("");
    bool present = labels.lookup(labels.data, requirement->key, &value);
    int64_t number;

    switch (requirement->op) {
    case SELECTOR_EQUALS:
    case SELECTOR_IN:
        return present && has_value(requirement, value);
    case SELECTOR_NOT_EQUALS:
    case SELECTOR_NOT_IN:
        return !present || !has_value(requirement, value);
    case SELECTOR_EXISTS:
        return present;
    case SELECTOR_NOT_EXISTS:
        return !present;
    case SELECTOR_GREATER:
        return present && read_number(value, &number) && number > requirement->number;
    case SELECTOR_LESS:
        return present && read_number(value, &number) && number < requirement->number;
    }
    return false;
}

/* ---- objects ---- */

/* As Go decodes a string: null and absent are "". */
static int take_string(struct arena *arena, const struct json *value, const char *what,
                       struct str *ret_text, struct err *err)
{
    if (json_exists(value) && !json_is_string(value))
        return err_set(err, ERR_INVALID, "%s is not a string but %s", what,
                       json_type_name(json_type(value)));

    struct str text = json_str(value);

    *ret_text = (struct str){ arena_strndup(arena, text.at, text.len), text.len };
    return 0;
}

static int take_values(struct arena *arena, const struct json *array,
                       struct selector_requirement *requirement, struct err *err)
{
    struct json_iter iter = json_iter(array);
    const struct json *item;

    if (json_exists(array) && !json_is_array(array))
        return err_set(err, ERR_INVALID, "values is not an array");
    if (json_len(array) > SELECTOR_MAX_VALUES)
        return err_set(err, ERR_TOO_BIG, "more than %d values", SELECTOR_MAX_VALUES);
    requirement->values = arena_alloc_array(arena, json_len(array), sizeof(struct str));
    while (json_next_item(&iter, &item)) {
        struct str *value = &requirement->values[requirement->value_count++];
        int status = take_string(arena, item, "a value", value, err);

        if (status < 0)
            return status;
    }
    return 0;
}

static int take_operator(const struct json *value, bool for_nodes, enum selector_op *ret_op,
                         struct err *err)
{
    struct str name = json_str(value);

    for (unsigned op = 0; op < OP_COUNT; op++) {
        if (!op_facts[op].name || (op_facts[op].numeric && !for_nodes))
            continue;
        if (str_is(name, op_facts[op].name)) {
            *ret_op = (enum selector_op)op;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "\"%.*s\" is not an operator", SHOWN(name));
}

int selector_requirement_from_json(struct arena *arena, const struct json *value, bool for_nodes,
                                   struct selector_requirement *ret_requirement, struct err *err)
{
    struct selector_requirement requirement = { 0 };
    int status;

    if (json_exists(value) && !json_is_object(value))
        return err_set(err, ERR_INVALID, "a requirement is not an object");
    status = take_string(arena, json_get(value, "key"), "key", &requirement.key, err);
    if (status == 0)
        status = take_operator(json_get(value, "operator"), for_nodes, &requirement.op, err);
    if (status == 0)
        status = take_values(arena, json_get(value, "values"), &requirement, err);
    if (status == 0)
        status = finish_requirement(&requirement, err);
    if (status == 0)
        *ret_requirement = requirement;
    return status;
}

static bool lookup_json(const void *data, struct str key, struct str *ret_value)
{
    const struct json *value = json_get_str(data, key);

    if (!value)
        return false;
    *ret_value = json_str(value);
    return true;
}

struct selector_subject selector_labels(const struct json *labels)
{
    return (struct selector_subject){ lookup_json, labels };
}

/* Requirements as they come in; then sorted and kept. */
struct draft {
    struct selector_requirement requirements[SELECTOR_MAX_REQUIREMENTS];
    size_t count;
};

static int draft_add(struct draft *draft, struct selector_requirement **ret_slot, struct err *err)
{
    if (draft->count == SELECTOR_MAX_REQUIREMENTS)
        return err_set(err, ERR_TOO_BIG, "more than %d requirements", SELECTOR_MAX_REQUIREMENTS);
    *ret_slot = &draft->requirements[draft->count++];
    **ret_slot = (struct selector_requirement){ 0 };
    return 0;
}

/* Insertion, because requirements with one key must keep their order. */
static void draft_sort(struct draft *draft)
{
    for (size_t i = 1; i < draft->count; i++) {
        struct selector_requirement moved = draft->requirements[i];
        size_t to = i;

        for (; to > 0 && str_cmp(draft->requirements[to - 1].key, moved.key) > 0; to--)
            draft->requirements[to] = draft->requirements[to - 1];
        draft->requirements[to] = moved;
    }
}

static const struct selector *draft_finish(struct arena *arena, struct draft *draft)
{
    struct selector *selector = arena_alloc(arena, sizeof(*selector));

    draft_sort(draft);
    selector->count = draft->count;
    selector->requirements =
        arena_alloc_array(arena, draft->count, sizeof(*selector->requirements));
    if (draft->count > 0)
        memcpy(selector->requirements, draft->requirements,
               draft->count * sizeof(*selector->requirements));
    return selector;
}

/* One "key equals value" for each member; of members with one key the last counts. */
static int draft_map(struct arena *arena, struct draft *draft, const struct json *map,
                     struct err *err)
{
    struct json_iter iter = json_iter(map);
    const struct json *value;
    struct str key;
    int status = 0;

    if (json_exists(map) && !json_is_object(map))
        return err_set(err, ERR_INVALID, "labels are not an object");
    while (status == 0 && json_next_member(&iter, &key, &value)) {
        struct selector_requirement *slot;

        if (json_get_str(map, key) != value)
            continue;
        status = draft_add(draft, &slot, err);
        if (status < 0)
            break;
        slot->key = (struct str){ arena_strndup(arena, key.at, key.len), key.len };
        slot->values = arena_alloc(arena, sizeof(struct str));
        slot->value_count = 1;
        status = take_string(arena, value, "a label", slot->values, err);
        if (status == 0)
            status = finish_requirement(slot, err);
    }
    return status;
}

static int draft_expressions(struct arena *arena, struct draft *draft, const struct json *array,
                             struct err *err)
{
    struct json_iter iter = json_iter(array);
    const struct json *item;
    int status = 0;

    if (json_exists(array) && !json_is_array(array))
        return err_set(err, ERR_INVALID, "matchExpressions is not an array");
    while (status == 0 && json_next_item(&iter, &item)) {
        struct selector_requirement *slot;

        status = draft_add(draft, &slot, err);
        if (status == 0)
            status = selector_requirement_from_json(arena, item, false, slot, err);
    }
    return status;
}

static const struct selector *selector_for_absent(struct arena *arena, enum selector_absent absent)
{
    struct selector *selector = arena_alloc(arena, sizeof(*selector));

    selector->nothing = absent == SELECTOR_ABSENT_MATCHES_NOTHING;
    return selector;
}

int selector_from_json(struct arena *arena, const struct json *value, enum selector_absent absent,
                       const struct selector **ret_selector, struct err *err)
{
    struct draft draft = { .count = 0 };
    int status;

    if (json_exists(value) && !json_is_object(value))
        return err_set(err, ERR_INVALID, "a label selector is not an object");
    status = draft_map(arena, &draft, json_get(value, "matchLabels"), err);
    if (status == 0)
        status = draft_expressions(arena, &draft, json_get(value, "matchExpressions"), err);
    if (status == 0)
        *ret_selector =
            json_exists(value) ? draft_finish(arena, &draft) : selector_for_absent(arena, absent);
    return status;
}

int selector_from_map(struct arena *arena, const struct json *map, enum selector_absent absent,
                      const struct selector **ret_selector, struct err *err)
{
    struct draft draft = { .count = 0 };
    int status = draft_map(arena, &draft, map, err);

    if (status == 0)
        *ret_selector =
            json_exists(map) ? draft_finish(arena, &draft) : selector_for_absent(arena, absent);
    return status;
}

/* ---- text ---- */

enum token { TOKEN_END, TOKEN_WORD, TOKEN_SIGN };

/* Reads one token ahead. Signs are "=", "==", "!=", "!", "(", ")", ",", ">" and "<"; whether a word
 * is the operator "in" depends on where it stands. */
struct parser {
    struct arena *arena;
    struct str text; /* in the arena */
    size_t at;       /* behind the token */
    enum token token;
    struct str word;
    struct err *err;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_sign(char c)
{
    return c != '\0' && strchr("=!(),<>", c) != NULL;
}

static void advance(struct parser *parser)
{
    struct str rest = str_sub(parser->text, parser->at, parser->text.len);
    size_t start = 0, end;

    while (start < rest.len && is_blank(rest.at[start]))
        start++;
    end = start;
    if (end < rest.len && is_sign(rest.at[end])) {
        bool doubled = (rest.at[end] == '=' || rest.at[end] == '!') && end + 1 < rest.len &&
                       rest.at[end + 1] == '=';

        end += doubled ? 2 : 1;
        parser->token = TOKEN_SIGN;
    } else {
        while (end < rest.len && !is_blank(rest.at[end]) && !is_sign(rest.at[end]))
            end++;
        parser->token = end > start ? TOKEN_WORD : TOKEN_END;
    }
    parser->word = str_sub(rest, start, end);
    parser->at += end;
}

static bool at_sign(const struct parser *parser, const char *sign)
{
    return parser->token == TOKEN_SIGN && str_is(parser->word, sign);
}

static bool at_end_or_comma(const struct parser *parser)
{
    return parser->token == TOKEN_END || at_sign(parser, ",");
}

static int expected(const struct parser *parser, const char *what)
{
    return err_set(parser->err, ERR_INVALID, "selector, byte %zu: %s expected, not \"%.*s\"",
                   parser->at - parser->word.len, what, SHOWN(parser->word));
}

/* "(x,y)": the places between commas are values, and may be empty. */
static int parse_set(struct parser *parser, struct selector_requirement *requirement)
{
    size_t room = 1;

    if (!at_sign(parser, "("))
        return expected(parser, "'('");
    for (size_t i = parser->at; i < parser->text.len && parser->text.at[i] != ')'; i++)
        room += parser->text.at[i] == ',';
    if (room > SELECTOR_MAX_VALUES)
        return err_set(parser->err, ERR_TOO_BIG, "more than %d values", SELECTOR_MAX_VALUES);
    requirement->values = arena_alloc_array(parser->arena, room, sizeof(struct str));
    do {
        struct str *value = &requirement->values[requirement->value_count++];

        advance(parser);
        *value = STR("");
        if (parser->token == TOKEN_WORD) {
            *value = parser->word;
            advance(parser);
        }
    } while (at_sign(parser, ","));
    if (!at_sign(parser, ")"))
        return expected(parser, "',' or ')'");
    advance(parser);
    return 0;
}

static int parse_value(struct parser *parser, struct selector_requirement *requirement)
{
    requirement->values = arena_alloc(parser->arena, sizeof(struct str));
    requirement->value_count = 1;
    requirement->values[0] = STR("");
    if (at_end_or_comma(parser))
        return 0;
    if (parser->token != TOKEN_WORD)
        return expected(parser, "a value");
    requirement->values[0] = parser->word;
    advance(parser);
    return 0;
}

static const struct {
    const char *text;
    enum token token;
    enum selector_op op;
} infixes[] = {
    { "=", TOKEN_SIGN, SELECTOR_EQUALS },      { "==", TOKEN_SIGN, SELECTOR_EQUALS },
    { "!=", TOKEN_SIGN, SELECTOR_NOT_EQUALS }, { ">", TOKEN_SIGN, SELECTOR_GREATER },
    { "<", TOKEN_SIGN, SELECTOR_LESS },        { "in", TOKEN_WORD, SELECTOR_IN },
    { "notin", TOKEN_WORD, SELECTOR_NOT_IN },
};

static int parse_operator(struct parser *parser, enum selector_op *ret_op)
{
    for (size_t i = 0; i < sizeof(infixes) / sizeof(infixes[0]); i++) {
        if (parser->token == infixes[i].token && str_is(parser->word, infixes[i].text)) {
            *ret_op = infixes[i].op;
            advance(parser);
            return 0;
        }
    }
    return expected(parser, "an operator");
}

static int parse_requirement(struct parser *parser, struct selector_requirement *requirement)
{
    bool negated = at_sign(parser, "!");
    int status;

    if (negated)
        advance(parser);
    if (parser->token != TOKEN_WORD)
        return expected(parser, "a key");
    requirement->key = parser->word;
    advance(parser);
    if (negated || at_end_or_comma(parser)) {
        requirement->op = negated ? SELECTOR_NOT_EXISTS : SELECTOR_EXISTS;
        return finish_requirement(requirement, parser->err);
    }
    status = parse_operator(parser, &requirement->op);
    if (status < 0)
        return status;
    if (requirement->op == SELECTOR_IN || requirement->op == SELECTOR_NOT_IN)
        status = parse_set(parser, requirement);
    else
        status = parse_value(parser, requirement);
    return status < 0 ? status : finish_requirement(requirement, parser->err);
}

static int parse_requirements(struct parser *parser, struct draft *draft)
{
    advance(parser);
    if (parser->token == TOKEN_END)
        return 0;
    for (;;) {
        struct selector_requirement *slot;
        int status = draft_add(draft, &slot, parser->err);

        if (status == 0)
            status = parse_requirement(parser, slot);
        if (status < 0)
            return status;
        if (parser->token == TOKEN_END)
            return 0;
        if (!at_sign(parser, ","))
            return expected(parser, "','");
        advance(parser);
    }
}

/* A copy in the arena that slices may point into; refuses what is too long or not text. */
static int take_text(struct arena *arena, struct str text, struct str *ret_copy, struct err *err)
{
    if (text.len > SELECTOR_MAX_TEXT)
        return err_set(err, ERR_TOO_BIG, "a selector is longer than %d bytes", SELECTOR_MAX_TEXT);
    if (!str_is_utf8(text) || (text.len > 0 && memchr(text.at, '\0', text.len)))
        return err_set(err, ERR_INVALID, "a selector is not text");
    *ret_copy = (struct str){ arena_strndup(arena, text.at, text.len), text.len };
    return 0;
}

int selector_parse(struct arena *arena, struct str text, const struct selector **ret_selector,
                   struct err *err)
{
    struct draft draft = { .count = 0 };
    struct parser parser = { .arena = arena, .err = err };
    int status = take_text(arena, text, &parser.text, err);

    if (status == 0)
        status = parse_requirements(&parser, &draft);
    if (status == 0)
        *ret_selector = draft_finish(arena, &draft);
    return status;
}

bool selector_matches(const struct selector *selector, struct selector_subject labels)
{
    for (size_t i = 0; i < selector->count; i++)
        if (!selector_requirement_matches(&selector->requirements[i], labels))
            return false;
    return !selector->nothing;
}

bool selector_matches_all(const struct selector *selector)
{
    return !selector->nothing && selector->count == 0;
}

static void print_requirement(const struct selector_requirement *requirement, struct buf *out)
{
    bool is_set = requirement->op == SELECTOR_IN || requirement->op == SELECTOR_NOT_IN;

    buf_add_text(out, requirement->op == SELECTOR_NOT_EXISTS ? "!" : "");
    buf_add_str(out, requirement->key);
    buf_add_text(out, op_facts[requirement->op].infix);
    buf_add_text(out, is_set ? "(" : "");
    for (size_t i = 0; i < requirement->value_count; i++) {
        buf_add_text(out, i > 0 ? "," : "");
        buf_add_str(out, requirement->values[i]);
    }
    buf_add_text(out, is_set ? ")" : "");
}

int selector_print(const struct selector *selector, struct buf *out, struct err *err)
{
    if (selector->nothing)
        return err_set(err, ERR_INVALID, "no text stands for a selector that matches nothing");
    for (size_t i = 0; i < selector->count; i++) {
        buf_add_text(out, i > 0 ? "," : "");
        print_requirement(&selector->requirements[i], out);
    }
    return 0;
}
