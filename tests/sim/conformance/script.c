/* script.c - reads conformance scripts, and keeps the values of their calls. */
#include "conformance/script.h"

#include "base/mem.h"
#include "io/reload.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_VALUES = 1000 };

void script_die(const char *what, const char *detail)
{
    (void)fprintf(stderr, "%s: %s\n", what, detail);
    exit(2);
}

struct json_doc *script_read(const char *path)
{
    auto_free char *text = NULL;
    struct json_doc *doc = NULL;
    struct err why = { .class = 0 };
    size_t length = 0;

    if (reload_read(path, SCRIPT_MAX_TEXT, &text, &length, &why) < 0 ||
        json_parse((struct str){ text, length }, SCRIPT_MAX_TEXT, &doc, &why) < 0)
        script_die(path, why.text);
    return doc;
}

void script_values_init(struct map *values)
{
    map_init(values, &(struct map_options){ .max = MAX_VALUES, .free_value = mem_free });
}

void script_save(struct map *values, struct str name, struct str value)
{
    char *copy = mem_strndup(value.at, value.len);

    if (map_put(values, name, copy, NULL) < 0)
        script_die("too many values", copy);
}

void script_fill_in(const struct map *values, struct str text, struct buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        const struct map_item *best = NULL;

        if (text.at[i] == '$')
            map_each (item, values) {
                if (str_starts(str_sub(text, i + 1, text.len), item->key) &&
                    (!best || item->key.len > best->key.len))
                    best = item;
            }
        if (best)
            buf_add_text(out, best->value);
        else
            buf_add_char(out, text.at[i]);
        i += best ? best->key.len : 0;
    }
}
