/* parsed.h - JSON for tests, written with single quotes: {'a':1}; or as YAML. */
#ifndef SLINC_TESTS_PARSED_H
#define SLINC_TESTS_PARSED_H

#include "codec/json.h"
#include "codec/yaml.h"

#include <stdio.h>

/* Fails the test when the text is no JSON. */
static inline struct json_doc *parsed(const char *text)
{
    char copy[8192];
    struct json_doc *doc = NULL;
    struct err err = { 0 };

    (void)snprintf(copy, sizeof(copy), "%s", text);
    for (char *c = copy; *c; c++)
        if (*c == '\'')
            *c = '"';
    if (json_parse(str_of(copy), sizeof(copy), &doc, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return doc;
}

/* Fails the test when the text is no YAML. */
static inline struct json_doc *parsed_yaml(const char *text)
{
    struct json_doc *doc = NULL;
    struct err err = { .class = 0 };

    if (yaml_parse_one(str_of(text), NULL, &doc, &err) < 0)
        fail_msg("%s: %s", err.text, text);
    return doc;
}

static inline void assert_json(const struct json_mut *value, const char *wanted)
{
    auto_json_doc struct json_doc *want = parsed(wanted);
    auto_buf struct buf is = { .max = 1 << 20 }, should_be = { .max = 1 << 20 };

    json_mut_write(value, &is);
    json_write(json_root(want), &should_be);
    assert_string_equal(buf_text(&is), buf_text(&should_be));
}

#endif
