/* selector.h - Kubernetes label selectors.
 *
 * A selector is compiled once into an arena and then asked of many objects. The empty selector
 * matches everything. A selector that is not there at all matches nothing in most of the API and
 * everything in some of it: whoever compiles one says which. NotIn and != match where the key is
 * absent. */
#ifndef SLINC_CODEC_SELECTOR_H
#define SLINC_CODEC_SELECTOR_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "codec/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SELECTOR_MAX_TEXT = 64 * 1024,   /* bytes of a selector's text */
    SELECTOR_MAX_REQUIREMENTS = 256, /* in one selector */
    SELECTOR_MAX_VALUES = 16 * 1024, /* in one requirement */
};

/* What is asked: the labels of one object. False when it has no such key. */
struct selector_subject {
    bool (*lookup)(const void *data, struct str key, struct str *ret_value);
    const void *data;
};

/* The labels in a JSON object of strings; absent and null have no labels. */
struct selector_subject selector_labels(const struct json *labels);

struct selector;

enum selector_absent {
    SELECTOR_ABSENT_MATCHES_NOTHING, /* as LabelSelectorAsSelector: affinity, spread, policies */
    SELECTOR_ABSENT_MATCHES_ALL,     /* where the API documents that a nil selector selects all */
};

/* "a=b,c!=d,e in (x,y),f notin (z),g,!h", also ==, > and <; as list and watch take it. */
int selector_parse(struct arena *arena, struct str text, const struct selector **ret_selector,
                   struct err *err);

/* A LabelSelector: matchLabels and matchExpressions. */
int selector_from_json(struct arena *arena, const struct json *value, enum selector_absent absent,
                       const struct selector **ret_selector, struct err *err);

/* A plain map of labels, as in a Service or a ReplicationController. */
int selector_from_map(struct arena *arena, const struct json *map, enum selector_absent absent,
                      const struct selector **ret_selector, struct err *err);

bool selector_matches(const struct selector *selector, struct selector_subject labels);
bool selector_matches_all(const struct selector *selector); /* has no requirement */

/* Appends the text for a URL (not yet percent-encoded): sorted by key, values sorted, each once.
 * -ERR_INVALID for the selector that matches nothing: no text says so. */
int selector_print(const struct selector *selector, struct buf *out, struct err *err);

/* A key is [subdomain/]name, a value up to 63 of letters, digits, '-', '_', '.'; as validated by
 * the API server. */
int selector_check_key(struct str key, struct err *err);
int selector_check_value(struct str value, struct err *err);

/* ---- one requirement; node selectors are made of them too ---- */

enum selector_op {
    SELECTOR_EQUALS,
    SELECTOR_NOT_EQUALS,
    SELECTOR_IN,
    SELECTOR_NOT_IN,
    SELECTOR_EXISTS,
    SELECTOR_NOT_EXISTS,
    SELECTOR_GREATER,
    SELECTOR_LESS,
};

struct selector_requirement {
    struct str key;
    enum selector_op op;
    struct str *values; /* sorted, each once */
    size_t value_count;
    int64_t number; /* of SELECTOR_GREATER and SELECTOR_LESS */
};

/* {key, operator, values}; the operators Gt and Lt are known to node selectors only. */
int selector_requirement_from_json(struct arena *arena, const struct json *value, bool for_nodes,
                                   struct selector_requirement *ret_requirement, struct err *err);
bool selector_requirement_matches(const struct selector_requirement *requirement,
                                  struct selector_subject labels);

#endif
