/* oci_state.c - reads two members of one JSON object.
 *
 * The hook is a static program without a JSON library, so this walks over the object and skips
 * what it does not know. Nesting is counted, not recursed into. */
#include "dra/hook/oci_state.h"

static void skip_space(struct str *rest)
{
    while (rest->len > 0 && strchr(" \t\r\n", rest->at[0]) && rest->at[0])
        *rest = str_sub(*rest, 1, rest->len);
}

static bool take_char(struct str *rest, char wanted)
{
    skip_space(rest);
    if (rest->len == 0 || rest->at[0] != wanted)
        return false;
    *rest = str_sub(*rest, 1, rest->len);
    return true;
}

/* The text between the quotes, escapes and all. */
static bool take_string(struct str *rest, struct str *ret_text)
{
    size_t i;

    if (!take_char(rest, '"'))
        return false;
    for (i = 0; i < rest->len && rest->at[i] != '"'; i++)
        if (rest->at[i] == '\\')
            i++;
    if (i >= rest->len)
        return false;
    *ret_text = str_sub(*rest, 0, i);
    *rest = str_sub(*rest, i + 1, rest->len);
    return true;
}

/* A number, a word, or a container with all that is in it: up to the ',' or '}' behind it. */
static bool take_value(struct str *rest, struct str *ret_text)
{
    struct str start, text;
    size_t depth = 0;

    skip_space(rest);
    start = *rest;
    while (rest->len > 0) {
        char c = rest->at[0];

        if (depth == 0 && (c == ',' || c == '}'))
            break;
        if (c == '"') {
            if (!take_string(rest, &text))
                return false;
            continue;
        }
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && depth > 0)
            depth--;
        *rest = str_sub(*rest, 1, rest->len);
    }
    *ret_text = str_trim(str_sub(start, 0, start.len - rest->len));
    return rest->len > 0 && ret_text->len > 0;
}

int oci_state_read(struct str json, struct oci_state *ret_state, struct err *err)
{
    struct oci_state state = { .id = STR("") };
    struct str key, value;

    if (!take_char(&json, '{'))
        return err_set(err, ERR_INVALID, "the state of the container is no JSON object");
    do {
        if (!take_string(&json, &key) || !take_char(&json, ':') || !take_value(&json, &value))
            return err_set(err, ERR_INVALID, "the state of the container is broken JSON");
        if (str_is(key, "pid") && str_to_i64(value, 1, INT32_MAX, &state.pid, err) < 0)
            return err_wrap(err, "the pid in the state of the container");
        if (str_is(key, "id") && value.at[0] == '"')
            state.id = str_sub(value, 1, value.len - 1);
    } while (take_char(&json, ','));
    if (state.pid == 0 || state.id.len == 0)
        return err_set(err, ERR_INVALID, "the state of the container has no id or no pid");
    *ret_state = state;
    return 0;
}
