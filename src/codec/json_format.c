/* json_format.c - writes the text of the value, then reads it. */
#include "codec/json_format.h"

#include "codec/json_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_TEXT = 16 << 20 };

static void put_value(struct buf *out, char letter, va_list *args)
{
    const char *text;
    const struct json_mut *value;

    switch (letter) {
    case 's':
        text = va_arg(*args, const char *);
        if (text)
            json_escape(out, str_of(text));
        else
            buf_add_text(out, "null");
        break;
    case 'd':
        buf_printf(out, "%d", va_arg(*args, int));
        break;
    case 'l':
        buf_printf(out, "%lld", (long long)va_arg(*args, int64_t));
        break;
    case 'b':
        buf_add_text(out, va_arg(*args, int) ? "true" : "false");
        break;
    case 'j':
        json_write(va_arg(*args, const struct json *), out);
        break;
    case 'm':
        value = va_arg(*args, const struct json_mut *);
        if (value)
            json_mut_write(value, out);
        else
            buf_add_text(out, "null");
        break;
    default:
        (void)fprintf(stderr, "json_format: %%%c is not known\n", letter);
        abort();
    }
}

struct json_mut *json_format(struct json_build *build, const char *format, ...)
{
    auto_json_doc struct json_doc *doc = NULL;
    yyjson_read_err wrong = { 0 };
    auto_buf struct buf text;
    va_list args;

    buf_init(&text, MAX_TEXT);
    va_start(args, format);
    for (const char *at = format; *at; at++) {
        if (*at == '%')
            put_value(&text, *++at, &args);
        else
            buf_add_char(&text, *at == '\'' ? '"' : *at);
    }
    va_end(args);
    /* Not json_parse: a value that is put in may be as deep as that lets it be, and gets deeper. */
    doc = (struct json_doc *)yyjson_read_opts((char *)buf_text(&text), text.len, YYJSON_READ_NOFLAG,
                                              &json_memory, &wrong);
    if (!doc) {
        (void)fprintf(stderr, "json_format: %s: %s\n", format, wrong.msg);
        abort();
    }
    return json_copy(build, json_root(doc));
}
