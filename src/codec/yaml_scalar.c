/* yaml_scalar.c - what a scalar means: null, a boolean, a number or text.
 *
 * Holds   the spellings are those of sigs.k8s.io/yaml (YAML 1.1 and a little of 1.2); what has no
 *         other meaning is text, so the only errors are a tag that does not fit, and .inf and .nan,
 *         which JSON has not. */
#include "codec/yaml_private.h"

static bool is_word(struct str text, struct yaml_scalar *ret)
{
    static const struct {
        const char *spellings[6];
        struct yaml_scalar scalar;
    } words[] = {
        { { "", "~", "null", "Null", "NULL" }, { .kind = SCALAR_NULL } },
        { { "true", "True", "TRUE" }, { .kind = SCALAR_BOOL, .boolean = true } },
        { { "y", "Y", "yes", "Yes", "YES" }, { .kind = SCALAR_BOOL, .boolean = true } },
        { { "on", "On", "ON" }, { .kind = SCALAR_BOOL, .boolean = true } },
        { { "false", "False", "FALSE" }, { .kind = SCALAR_BOOL } },
        { { "n", "N", "no", "No", "NO" }, { .kind = SCALAR_BOOL } },
        { { "off", "Off", "OFF" }, { .kind = SCALAR_BOOL } },
        { { ".nan", ".NaN", ".NAN" }, { .kind = SCALAR_NOT_FINITE } },
        { { ".inf", ".Inf", ".INF" }, { .kind = SCALAR_NOT_FINITE } },
        { { "+.inf", "+.Inf", "+.INF" }, { .kind = SCALAR_NOT_FINITE } },
        { { "-.inf", "-.Inf", "-.INF" }, { .kind = SCALAR_NOT_FINITE } },
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        for (const char *const *spelling = words[i].spellings; *spelling; spelling++) {
            if (str_is(text, *spelling)) {
                *ret = words[i].scalar;
                return true;
            }
        }
    }
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static unsigned digit_value(char c)
{
    if (is_digit(c))
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 16;
}

/* Takes 0x, 0o, 0b or a leading 0 off; the base that it stands for. */
static unsigned take_base(struct str *digits)
{
    static const struct {
        const char prefix[3];
        unsigned base;
    } bases[] = { { "0x", 16 }, { "0X", 16 }, { "0o", 8 }, { "0O", 8 }, { "0b", 2 }, { "0B", 2 } };

    for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
        if (str_starts(*digits, str_of(bases[i].prefix))) {
            *digits = str_sub(*digits, 2, digits->len);
            return bases[i].base;
        }
    }
    return digits->len > 1 && digits->at[0] == '0' ? 8 : 10;
}

static bool is_integer(struct str text, struct yaml_scalar *ret)
{
    bool negative = text.len > 0 && text.at[0] == '-';
    bool sign = negative || (text.len > 0 && text.at[0] == '+');
    struct str digits = str_sub(text, sign, text.len);
    unsigned base = take_base(&digits);
    uint64_t value = 0;

    if (digits.len == 0)
        return false;
    for (size_t i = 0; i < digits.len; i++) {
        unsigned digit = digit_value(digits.at[i]);

        if (digit >= base || value > (UINT64_MAX - digit) / base)
            return false;
        value = value * base + digit;
    }
    if (value > (uint64_t)INT64_MAX + negative) {
        if (sign)
            return false;
        *ret = (struct yaml_scalar){ .kind = SCALAR_U64, .u64 = value };
        return true;
    }
    *ret =
        (struct yaml_scalar){ .kind = SCALAR_I64, .i64 = (int64_t)(negative ? 0 - value : value) };
    return true;
}

static struct str take_digits(struct str *rest)
{
    size_t count = 0;
    struct str digits;

    while (count < rest->len && is_digit(rest->at[count]))
        count++;
    digits = str_sub(*rest, 0, count);
    *rest = str_sub(*rest, count, rest->len);
    return digits;
}

static bool take_one_of(struct str *rest, const char *choices, char *ret)
{
    if (rest->len == 0 || rest->at[0] == '\0' || !strchr(choices, rest->at[0]))
        return false;
    *ret = rest->at[0];
    *rest = str_sub(*rest, 1, rest->len);
    return true;
}

/* Writes a float of YAML's grammar as JSON has it: no '+', no leading zeros, digits on both sides
 * of the point. */
static bool float_to_json(struct str text, struct buf *out)
{
    struct str whole, fraction = STR(""), exponent;
    char c;

    if (take_one_of(&text, "+-", &c) && c == '-')
        buf_add_char(out, '-');
    whole = take_digits(&text);
    if (take_one_of(&text, ".", &c))
        fraction = take_digits(&text);
    if (whole.len == 0 && fraction.len == 0)
        return false;
    while (whole.len > 0 && whole.at[0] == '0')
        whole = str_sub(whole, 1, whole.len);
    buf_add_str(out, whole.len > 0 ? whole : STR("0"));
    buf_add_char(out, '.');
    buf_add_str(out, fraction.len > 0 ? fraction : STR("0"));
    if (take_one_of(&text, "eE", &c)) {
        buf_add_char(out, 'e');
        if (take_one_of(&text, "+-", &c))
            buf_add_char(out, c);
        exponent = take_digits(&text);
        buf_add_str(out, exponent);
        if (exponent.len == 0)
            return false;
    }
    return text.len == 0;
}

/* The JSON reader rounds correctly and knows no locale; what overflows it is no number. */
static bool is_float(struct str text, struct yaml_scalar *ret)
{
    auto_json_doc struct json_doc *doc = NULL;
    auto_buf struct buf number = { 0 };

    buf_init(&number, text.len + 4);
    if (!float_to_json(text, &number))
        return false;
    if (json_parse(buf_str(&number), number.len, &doc, NULL) < 0)
        return false;
    *ret = (struct yaml_scalar){ .kind = SCALAR_F64, .f64 = json_f64_or(json_root(doc), 0) };
    return true;
}

static bool is_number(struct str text, struct yaml_scalar *ret)
{
    auto_buf struct buf plain = { 0 };

    if (text.len == 0 || !(is_digit(text.at[0]) || strchr("+-.", text.at[0])))
        return false;
    buf_init(&plain, text.len);
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] != '_' || text.at[0] == '.')
            buf_add_char(&plain, text.at[i]);
    return is_integer(buf_str(&plain), ret) || is_float(buf_str(&plain), ret);
}

static struct yaml_scalar meaning_of(struct str text)
{
    struct yaml_scalar scalar = { 0 };

    if (is_word(text, &scalar) || is_number(text, &scalar))
        return scalar;
    return (struct yaml_scalar){ .kind = SCALAR_TEXT };
}

static bool tag_fits(enum yaml_tag tag, enum yaml_scalar_kind kind)
{
    switch (tag) {
    case TAG_NULL:
        return kind == SCALAR_NULL;
    case TAG_BOOL:
        return kind == SCALAR_BOOL;
    case TAG_INT:
        return kind == SCALAR_I64 || kind == SCALAR_U64;
    case TAG_FLOAT:
        return kind == SCALAR_I64 || kind == SCALAR_U64 || kind == SCALAR_F64;
    default:
        return true;
    }
}

int yaml_resolve(const struct yaml_node *node, struct yaml_scalar *ret_scalar, struct err *err)
{
    struct yaml_scalar scalar = { .kind = SCALAR_TEXT };

    if (node->tag != TAG_STR && (node->tag != TAG_NONE || node->plain))
        scalar = meaning_of(node->text);
    if (scalar.kind == SCALAR_NOT_FINITE)
        return yaml_fail_at(node, err, ERR_INVALID, "JSON has no number \"" STR_FMT "\"",
                            STR_ARG(node->text));
    if (!tag_fits(node->tag, scalar.kind))
        return yaml_fail_at(node, err, ERR_INVALID, "\"" STR_FMT "\" does not fit its tag",
                            STR_ARG(node->text));
    *ret_scalar = scalar;
    return 0;
}
