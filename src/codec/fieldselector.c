/* fieldselector.c - compiles, matches and prints field selectors.
 *
 * Holds: a compiled selector keeps nothing of its input; parsing what was printed gives an equal
 * selector. The grammar is that of apimachinery's fields package, with the same two differences as
 * in selector.c. */
#include "codec/selector_private.h"

#include <stdlib.h>

struct field_term {
    struct str field, value;
    bool equal;
};

struct selector_fields {
    struct field_term terms[SELECTOR_MAX_REQUIREMENTS];
    size_t count;
};

/* Cuts off the part before the next comma that no '\' protects. */
static struct str next_term(struct str *rest)
{
    size_t end = 0;

    while (end < rest->len && rest->at[end] != ',')
        end += rest->at[end] == '\\' && end + 1 < rest->len ? 2 : 1;

    struct str term = str_sub(*rest, 0, end);

    *rest = str_sub(*rest, end + 1, rest->len);
    return term;
}

static int unescape_field(struct arena *arena, struct str text, struct str *ret_value,
                          struct err *err)
{
    char *value = arena_alloc(arena, text.len + 1);
    size_t length = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool escaped = c == '\\' && ++i < text.len;

        if (escaped)
            c = text.at[i];
        if (escaped != (c == '\\' || c == ',' || c == '='))
            return err_set(err, ERR_INVALID,
                           "field selector: byte %zu of \"%.*s\" is escaped wrongly", i,
                           SHOWN(text));
        value[length++] = c;
    }
    *ret_value = (struct str){ value, length };
    return 0;
}

/* The first "!=", "==" or "=" separates; a field's name knows no escapes. */
static int parse_term(struct arena *arena, struct str text, struct field_term *ret_term,
                      struct err *err)
{
    struct field_term term = { .equal = true };
    struct str value;

    if (!str_cut(text, '=', &term.field, &value))
        return err_set(err, ERR_INVALID, "field selector: no operator in \"%.*s\"", SHOWN(text));
    if (term.field.len > 0 && term.field.at[term.field.len - 1] == '!') {
        term.equal = false;
        term.field.len--;
    } else if (value.len > 0 && value.at[0] == '=') {
        value = str_sub(value, 1, value.len);
    }

    int status = unescape_field(arena, value, &term.value, err);

    if (status == 0)
        *ret_term = term;
    return status;
}

static int compare_terms(const void *left, const void *right)
{
    const struct field_term *a = left, *b = right;
    int order = str_cmp(a->field, b->field);

    if (order == 0)
        order = (a->equal > b->equal) - (a->equal < b->equal);
    return order != 0 ? order : str_cmp(a->value, b->value);
}

int selector_fields_parse(struct arena *arena, struct str text,
                          const struct selector_fields **ret_fields, struct err *err)
{
    struct selector_fields *fields = arena_alloc(arena, sizeof(*fields));
    struct str rest;
    int status = selector_take_text(arena, text, &rest, err);

    while (status == 0 && rest.len > 0) {
        struct str part = next_term(&rest);
        struct field_term term = { 0 };

        if (part.len == 0)
            continue;
        status = parse_term(arena, part, &term, err);
        if (status < 0 || (term.field.len == 0 && term.value.len == 0))
            continue; /* a lone operator asks for nothing */
        if (fields->count == SELECTOR_MAX_REQUIREMENTS)
            return err_set(err, ERR_TOO_BIG, "more than %d fields", SELECTOR_MAX_REQUIREMENTS);
        fields->terms[fields->count++] = term;
    }
    if (status < 0)
        return status;
    qsort(fields->terms, fields->count, sizeof(fields->terms[0]), compare_terms);
    *ret_fields = fields;
    return 0;
}

bool selector_fields_match(const struct selector_fields *fields, struct selector_subject subject)
{
    for (size_t i = 0; i < fields->count; i++) {
        struct str value = STR("");

        if (!subject.lookup(subject.data, fields->terms[i].field, &value))
            value = STR("");
        if (str_eq(value, fields->terms[i].value) != fields->terms[i].equal)
            return false;
    }
    return true;
}

void selector_escape_field(struct buf *out, struct str value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] == '\\' || value.at[i] == ',' || value.at[i] == '=')
            buf_add_char(out, '\\');
        buf_add_char(out, value.at[i]);
    }
}

void selector_fields_print(const struct selector_fields *fields, struct buf *out)
{
    for (size_t i = 0; i < fields->count; i++) {
        buf_add_text(out, i > 0 ? "," : "");
        buf_add_str(out, fields->terms[i].field);
        buf_add_text(out, fields->terms[i].equal ? "=" : "!=");
        selector_escape_field(out, fields->terms[i].value);
    }
}
