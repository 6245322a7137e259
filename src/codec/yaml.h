/* yaml.h - YAML texts as JSON documents, read as Kubernetes' own tools read them.
 *
 * Plain scalars mean what sigs.k8s.io/yaml makes of them: yes, no, on, off, y and n are booleans,
 * 0x1f, 0o17, 017 and 0b11 are integers, 1_000 is 1000, a date is a string. Keys that are integers
 * or booleans become strings. Merge keys (<<) work, in the order of the text.
 *
 * Stricter than it in what would be a silent surprise: duplicate keys, keys that are floats, tags
 * other than !!str !!int !!float !!bool !!null !!map !!seq, and .inf and .nan are errors. */
#ifndef SLINC_CODEC_YAML_H
#define SLINC_CODEC_YAML_H

#include "base/err.h"
#include "base/str.h"
#include "codec/json.h"

#include <stddef.h>

/* Nesting is bounded by JSON_MAX_DEPTH. Aliases are expanded: values and text count as often as
 * they appear in the result, and the text there may be four times max_bytes. */
struct yaml_limits {
    size_t max_bytes;     /* of the text */
    size_t max_documents; /* in one text */
    size_t max_values;    /* scalars, keys, arrays and objects, of all documents together */
};

extern const struct yaml_limits yaml_limits_default; /* for configuration files and manifests */

struct yaml_docs {
    struct json_doc **docs; /* owned */
    size_t count;           /* 0 for an empty text */
};

/* Every document of the text. Errors name line and column: -ERR_INVALID, or -ERR_TOO_BIG when a
 * limit was reached. limits may be NULL for the default. */
int yaml_parse(struct str text, const struct yaml_limits *limits, struct yaml_docs *ret_docs,
               struct err *err);
void yaml_docs_done(struct yaml_docs *docs);

/* A text that must hold one document at most; an empty one is null. */
int yaml_parse_one(struct str text, const struct yaml_limits *limits, struct json_doc **ret_doc,
                   struct err *err);

#define auto_yaml_docs __attribute__((cleanup(yaml_docs_done)))

#endif
