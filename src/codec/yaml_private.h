/* yaml_private.h - what the yaml*.c files share: nodes as read, scalars as meant, and what was put
 * out so far. */
#ifndef SLINC_CODEC_YAML_PRIVATE_H
#define SLINC_CODEC_YAML_PRIVATE_H

#include "base/arena.h"
#include "codec/yaml.h"

enum yaml_tag { TAG_NONE, TAG_NULL, TAG_BOOL, TAG_INT, TAG_FLOAT, TAG_STR, TAG_SEQ, TAG_MAP };

enum yaml_node_kind { NODE_SCALAR, NODE_SEQUENCE, NODE_MAPPING, NODE_ALIAS };

struct yaml_node {
    enum yaml_node_kind kind;
    enum yaml_tag tag;
    bool plain;                      /* a scalar without quotes */
    bool open;                       /* its end was not read yet */
    size_t line, column;             /* from 1 */
    struct str text;                 /* of a scalar */
    struct yaml_node *target;        /* of an alias */
    struct yaml_node *child, **tail; /* items; of a mapping: key, value, key, value ... */
    struct yaml_node *next;          /* in the same container */
};

/* Sets an error that names the place; gives the negated class. A macro for the reason err_set is
 * one. */
#define yaml_fail_at(node, err, class, ...)                                                        \
    (yaml_write_error((node), (err), (class), __VA_ARGS__), err_negated(class))
void yaml_write_error(const struct yaml_node *node, struct err *err, enum err_class class,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---- what a scalar means ---- */

enum yaml_scalar_kind {
    SCALAR_TEXT,
    SCALAR_NULL,
    SCALAR_BOOL,
    SCALAR_I64,
    SCALAR_U64, /* above INT64_MAX */
    SCALAR_F64,
    SCALAR_NOT_FINITE, /* an error, never given out */
};

struct yaml_scalar {
    enum yaml_scalar_kind kind;
    bool boolean;
    int64_t i64;
    uint64_t u64;
    double f64;
};

/* By the tag, the quotes and the spelling of a scalar node. */
int yaml_resolve(const struct yaml_node *node, struct yaml_scalar *ret_scalar, struct err *err);

/* ---- nodes to JSON ---- */

struct yaml_output {
    const struct yaml_limits *limits;
    struct arena *arena;      /* of the document at hand */
    struct json_build *build; /* values of the document at hand */
    size_t values, bytes;     /* put out so far, of all documents */
    unsigned collected;       /* mappings looked through so far */
};

/* The value of the node; depth is the number of containers around it. */
int yaml_convert(struct yaml_output *output, const struct yaml_node *place, unsigned depth,
                 struct json_mut **ret_value, struct err *err);

#endif
