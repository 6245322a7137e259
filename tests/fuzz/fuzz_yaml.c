/* fuzz_yaml.c - any text is refused or read within the limits; what was read is valid JSON, and its
 * JSON text is YAML for the same value (or refused: YAML takes fewer control characters). Texts
 * with one of YAML's own line breaks inside a string are left out of that. */
#include "codec/yaml.h"

#include <stdlib.h>

enum { MAX = 1 << 16 };

static const struct yaml_limits limits = { .max_bytes = MAX,
                                           .max_documents = 5,
                                           .max_values = 2000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static bool has_line_break(struct str text)
{
    static const struct str breaks[] = { STR("\xc2\x85"), STR("\xe2\x80\xa8"),
                                         STR("\xe2\x80\xa9") };

    for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++)
        if (memmem(text.at, text.len, breaks[i].at, breaks[i].len))
            return true;
    return false;
}

static void check(const struct json *value)
{
    auto_json_doc struct json_doc *as_json = NULL, *as_yaml = NULL;
    auto_buf struct buf text = { .max = MAX * 32 };

    must(json_depth(value) <= JSON_MAX_DEPTH);
    json_write(value, &text);
    must(json_parse(buf_str(&text), text.max, &as_json, NULL) == 0);
    must(json_equal(value, json_root(as_json)));
    if (!has_line_break(buf_str(&text)) &&
        yaml_parse_one(buf_str(&text), &limits, &as_yaml, NULL) == 0)
        must(json_equal(value, json_root(as_yaml)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_yaml_docs struct yaml_docs docs = { 0 };
    struct err err = { 0 };

    if (yaml_parse((struct str){ (const char *)data, size }, &limits, &docs, &err) < 0) {
        must(err.class == ERR_INVALID || err.class == ERR_TOO_BIG);
        must(!docs.docs);
        return 0;
    }
    must(docs.count <= limits.max_documents);
    for (size_t i = 0; i < docs.count; i++)
        check(json_root(docs.docs[i]));
    return 0;
}
