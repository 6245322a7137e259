/* http_text.c - the small grammars of HTTP that are ours to check.
 *
 * Holds: what passes a check here cannot end a line, so it cannot add a header or a request. */
#include "io/http_text.h"

enum { MAX_METHOD = 16, DAY_SECONDS = 86400, US_PER_SECOND = 1000000 };

bool http_is_method(struct str method)
{
    if (method.len == 0 || method.len > MAX_METHOD)
        return false;
    for (size_t i = 0; i < method.len; i++)
        if (method.at[i] < 'A' || method.at[i] > 'Z')
            return false;
    return true;
}

bool http_is_read(struct str method)
{
    return str_is(method, "GET") || str_is(method, "HEAD");
}

bool http_is_path(struct str path)
{
    if (path.len == 0 || path.at[0] != '/')
        return false;
    for (size_t i = 0; i < path.len; i++)
        if (path.at[i] <= ' ' || path.at[i] > '~' || path.at[i] == '#')
            return false;
    return true;
}

bool http_is_header_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.at[i] == '\0' ||
            (!str_is_alnum(name.at[i]) && !strchr("!#$%&'*+-.^_`|~", name.at[i])))
            return false;
    return name.len > 0;
}

bool http_is_header_value(struct str value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.at[i];

        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

bool http_header_is(struct str line, const char *name, struct str *ret_value)
{
    struct str before, after;

    if (!str_cut(line, ':', &before, &after) || !str_eq_nocase(before, str_of(name)))
        return false;
    *ret_value = str_trim(after);
    return true;
}

int64_t http_retry_after_us(struct str value)
{
    uint64_t seconds;

    if (str_to_u64(value, 0, UINT64_MAX, &seconds, NULL) < 0)
        return 0;
    return (int64_t)(seconds > DAY_SECONDS ? DAY_SECONDS : seconds) * US_PER_SECOND;
}

/* --- what a server says --- */

void http_add_words(char *text, size_t size, struct str words)
{
    size_t length = strlen(text);

    words = str_trim(words);
    while (words.len > 0) {
        size_t step = str_utf8_char(words);

        if (step == 0 || length + step >= size)
            break;
        memcpy(text + length, words.at, step);
        if (step == 1 && ((unsigned char)text[length] < ' ' || text[length] == 127))
            text[length] = ' ';
        length += step;
        words = str_sub(words, step, words.len);
    }
    text[length] = '\0';
}

/* --- percent-encoding --- */

void http_escape(struct str text, struct buf *out)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];

        if (str_is_alnum(text.at[i]) || c == '-' || c == '.' || c == '_' || c == '~') {
            buf_add_char(out, text.at[i]);
            continue;
        }

        char escape[3] = { '%', digits[c >> 4], digits[c & 15] };

        buf_add(out, escape, sizeof(escape));
    }
}

/* One character off the front of *rest; -1 when it is a broken escape or a NUL. */
static int next_decoded(struct str *rest)
{
    char c = rest->at[0];
    size_t used = 1;
    int decoded = c == '+' ? ' ' : (unsigned char)c;

    if (c == '%') {
        int high = rest->len > 2 ? str_hex_digit(rest->at[1]) : -1;
        int low = rest->len > 2 ? str_hex_digit(rest->at[2]) : -1;

        decoded = high < 0 || low < 0 ? -1 : high * 16 + low;
        used = decoded < 0 ? 1 : 3;
    }
    *rest = str_sub(*rest, used, rest->len);
    return decoded == 0 ? -1 : decoded;
}

static bool decodes_to(struct str encoded, const char *text)
{
    while (encoded.len > 0 && *text)
        if (next_decoded(&encoded) != (unsigned char)*text++)
            return false;
    return encoded.len == 0 && *text == '\0';
}

static int add_decoded(struct str encoded, const char *name, struct buf *out, struct err *err)
{
    size_t start = out->len;

    while (encoded.len > 0) {
        int c = next_decoded(&encoded);

        if (c < 0) {
            buf_truncate(out, start);
            return err_set(err, ERR_INVALID, "query parameter %s: broken escape", name);
        }
        buf_add_char(out, (char)c);
    }
    buf_add(out, "", 0); /* an empty value is a text too */
    return buf_check(out, name, err);
}

int http_query_get(struct str query, const char *name, struct buf *out, struct err *err)
{
    struct str rest = query, part;

    while (str_next(&rest, '&', &part)) {
        struct str key = part, value = STR("");

        str_cut(part, '=', &key, &value);
        if (key.len > 0 && decodes_to(key, name))
            return add_decoded(value, name, out, err);
    }
    return err_set(err, ERR_NOT_FOUND, "there is no query parameter %s", name);
}
