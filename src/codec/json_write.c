/* json_write.c - values as text: as they are, pretty, or canonical for hashes.
 *
 * Holds   what is written is valid JSON in UTF-8, whatever bytes came in. */
#include "codec/json_private.h"

#include "base/mem.h"
#include "codec/timestamp.h"

#include <inttypes.h>

/* ---- as it is ---- */

static void write_text(char *text, size_t length, struct buf *out)
{
    if (text)
        buf_add(out, text, length);
    else
        buf_add_text(out, "null"); /* the value was absent */
    mem_free(text);
}

static void write_value(const struct json *value, yyjson_write_flag flags, struct buf *out)
{
    size_t length = 0;
    char *text = yyjson_val_write_opts(val_of(value), flags, &json_memory, &length, NULL);

    write_text(text, length, out);
}

void json_write(const struct json *value, struct buf *out)
{
    write_value(value, YYJSON_WRITE_NOFLAG, out);
}

void json_write_pretty(const struct json *value, struct buf *out)
{
    write_value(value, YYJSON_WRITE_PRETTY_TWO_SPACES, out);
    buf_add_char(out, '\n');
}

static void write_mut(const struct json_mut *value, yyjson_write_flag flags, struct buf *out)
{
    size_t length = 0;
    char *text = yyjson_mut_val_write_opts(mut_of(value), flags, &json_memory, &length, NULL);

    write_text(text, length, out);
}

void json_mut_write(const struct json_mut *value, struct buf *out)
{
    write_mut(value, YYJSON_WRITE_NOFLAG, out);
}

void json_mut_write_pretty(const struct json_mut *value, struct buf *out)
{
    write_mut(value, YYJSON_WRITE_PRETTY_TWO_SPACES, out);
    buf_add_char(out, '\n');
}

/* ---- one text for all equal values ---- */

static void write_number(const struct json *value, struct buf *out)
{
    struct json_number number = json_number_of(value);

    if (number.whole)
        buf_printf(out, "%s%" PRIu64, number.negative ? "-" : "", number.magnitude);
    else
        json_write(value, out);
}

static void write_array(const struct json *array, struct buf *out)
{
    struct json_iter iter = json_iter(array);
    const struct json *item;
    bool first = true;

    buf_add_char(out, '[');
    while (json_next_item(&iter, &item)) {
        if (!first)
            buf_add_char(out, ',');
        json_write_canonical(item, out);
        first = false;
    }
    buf_add_char(out, ']');
}

static void write_object(const struct json *object, struct buf *out)
{
    size_t count, i;
    auto_free struct json_member *members = json_members_sorted(object, &count);

    buf_add_char(out, '{');
    for (i = 0; i < count; i++) {
        if (i > 0)
            buf_add_char(out, ',');
        json_escape(out, members[i].key);
        buf_add_char(out, ':');
        json_write_canonical(members[i].value, out);
    }
    buf_add_char(out, '}');
}

void json_write_canonical(const struct json *value, struct buf *out)
{
    switch (json_type(value)) {
    case JSON_NUMBER:
        write_number(value, out);
        return;
    case JSON_STRING:
        json_escape(out, json_str(value));
        return;
    case JSON_ARRAY:
        write_array(value, out);
        return;
    case JSON_OBJECT:
        write_object(value, out);
        return;
    case JSON_ABSENT:
    case JSON_NULL:
    case JSON_BOOL:
        json_write(value, out);
        return;
    }
}

/* ---- strings ---- */

void json_move_char(struct buf *out, struct str *rest)
{
    size_t length = str_utf8_char(*rest);

    buf_add_str(out, length > 0 ? str_sub(*rest, 0, length) : STR("\xEF\xBF\xBD"));
    *rest = str_sub(*rest, length > 0 ? length : 1, rest->len);
}

static void escape_char(struct buf *out, struct str *rest)
{
    static const char letters[] = { ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
                                    ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\' };
    unsigned char c = (unsigned char)rest->at[0];

    if (c < sizeof(letters) && letters[c])
        buf_add(out, (const char[]){ '\\', letters[c] }, 2);
    else if (c < 0x20)
        buf_printf(out, "\\u%04x", c);
    else {
        json_move_char(out, rest);
        return;
    }
    *rest = str_sub(*rest, 1, rest->len);
}

static bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void json_escape(struct buf *out, struct str text)
{
    buf_add_char(out, '"');
    while (text.len > 0) {
        size_t plain = 0;

        while (plain < text.len && is_plain(text.at[plain]))
            plain++;
        buf_add(out, text.at, plain);
        text = str_sub(text, plain, text.len);
        if (text.len > 0)
            escape_char(out, &text);
    }
    buf_add_char(out, '"');
}

void json_add_text(struct buf *out, const char *key, const char *text)
{
    if (!text[0])
        return;
    buf_printf(out, ",\"%s\":", key);
    json_escape(out, str_of(text));
}

void json_add_time(struct buf *out, const char *key, int64_t seconds)
{
    int64_t time;

    if (seconds <= 0 || timestamp_of_seconds(seconds, &time, NULL) < 0)
        return;
    buf_printf(out, ",\"%s\":\"", key);
    (void)timestamp_print(time, out, NULL);
    buf_add_char(out, '"');
}
