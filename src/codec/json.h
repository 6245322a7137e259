/* json.h - JSON read as immutable values, and written as trees that a build owns.
 *
 * A `struct json *` is a value inside a document, borrowed from it. NULL stands for an absent value
 * and every accessor takes it, so chains need no checks:
 *
 *     struct str name = json_str(json_at(pod, "metadata", "name"));
 *
 * Accessors never allocate. Of members with the same key the last one counts, as in Go's
 * encoding/json; only plain iteration and json_write show the others. Numbers are taken by value:
 * 1, 1.0 and 1e0 are the same number. */
#ifndef SLINC_CODEC_JSON_H
#define SLINC_CODEC_JSON_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;       /* an immutable value */
struct json_doc;   /* owns a parsed or frozen tree */
struct json_mut;   /* a value under construction */
struct json_build; /* owns values under construction, freed at once */

enum {
    JSON_MAX_DEPTH = 200, /* containers inside each other; walkers of trees may recurse */
};

enum json_type {
    JSON_ABSENT,
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
};

/* ---- documents ---- */

/* Strict RFC 8259 in UTF-8. Fails with -ERR_TOO_BIG above max_bytes or JSON_MAX_DEPTH, else with
 * -ERR_INVALID, naming line and column. The text is not needed afterwards. */
int json_parse(struct str text, size_t max_bytes, struct json_doc **ret_doc, struct err *err);
void json_doc_free(struct json_doc *doc);
void json_doc_freep(struct json_doc **doc);
const struct json *json_root(const struct json_doc *doc); /* doc may be NULL */

/* A document of its own with a copy of this value (null when absent). */
struct json_doc *json_clone(const struct json *value);

#define auto_json_doc __attribute__((cleanup(json_doc_freep)))

/* ---- looking in ---- */

enum json_type json_type(const struct json *value);
const char *json_type_name(enum json_type type); /* "string", "object" ... for messages */

/* Neither absent nor null: Go reads both alike. */
static inline bool json_exists(const struct json *value)
{
    return json_type(value) > JSON_NULL;
}

static inline bool json_is_null(const struct json *value)
{
    return json_type(value) == JSON_NULL;
}

static inline bool json_is_bool(const struct json *value)
{
    return json_type(value) == JSON_BOOL;
}

static inline bool json_is_number(const struct json *value)
{
    return json_type(value) == JSON_NUMBER;
}

static inline bool json_is_string(const struct json *value)
{
    return json_type(value) == JSON_STRING;
}

static inline bool json_is_array(const struct json *value)
{
    return json_type(value) == JSON_ARRAY;
}

static inline bool json_is_object(const struct json *value)
{
    return json_type(value) == JSON_OBJECT;
}

size_t json_len(const struct json *value); /* items or members; 0 for any other type */
const struct json *json_get_str(const struct json *object, struct str key);
static inline const struct json *json_get(const struct json *object, const char *key)
{
    return json_get_str(object, str_of(key));
}
const struct json *json_item(const struct json *array, size_t index); /* linear, see json_iter */

/* json_at(pod, "spec", "template"): one key per argument, so that keys may hold dots. */
#define json_at(value, ...) json_at_path((value), (const char *const[]){ __VA_ARGS__, NULL })
const struct json *json_at_path(const struct json *value, const char *const *keys);

/* The content, or the fallback when it is absent, of another type or out of range. Strings are
 * also NUL-terminated, and may hold NUL bytes. */
struct str json_str(const struct json *value); /* "" is the fallback */
struct str json_str_or(const struct json *value, struct str fallback);
bool json_bool_or(const struct json *value, bool fallback);
int64_t json_i64_or(const struct json *value, int64_t fallback);
uint64_t json_u64_or(const struct json *value, uint64_t fallback);
double json_f64_or(const struct json *value, double fallback);

/* A member that must be there and be right; else -ERR_INVALID naming the key, what was wanted and
 * what was found. (Never -ERR_NOT_FOUND: a malformed answer is not a fact about the world.) */
int json_want_str(const struct json *object, const char *key, struct str *ret, struct err *err);
int json_want_bool(const struct json *object, const char *key, bool *ret, struct err *err);
int json_want_i64(const struct json *object, const char *key, int64_t min, int64_t max,
                  int64_t *ret, struct err *err);
int json_want_u64(const struct json *object, const char *key, uint64_t min, uint64_t max,
                  uint64_t *ret, struct err *err);
int json_want_array(const struct json *object, const char *key, const struct json **ret,
                    struct err *err);
int json_want_object(const struct json *object, const char *key, const struct json **ret,
                     struct err *err);

/* Over items or members, in the order of the text; over any other type, nothing.
 *
 *     struct json_iter iter = json_iter(json_get(list, "items"));
 *     while (json_next_item(&iter, &pod)) ... */
struct json_iter {
    const struct json *next;
    size_t left;
    enum json_type type;
};
struct json_iter json_iter(const struct json *container);
bool json_next_item(struct json_iter *iter, const struct json **ret_item);
bool json_next_member(struct json_iter *iter, struct str *ret_key, const struct json **ret_value);

/* The members of an object for many lookups, each in logarithmic time. Small objects cost no
 * memory. */
struct json_member {
    struct str key;
    const struct json *value;
};
struct json_index {
    const struct json *object;
    struct json_member *members; /* in byte order of the keys; NULL for a small object */
    size_t count;                /* of different keys */
};
void json_index_init(struct json_index *index, const struct json *object);
void json_index_done(struct json_index *index);
const struct json *json_index_get(const struct json_index *index, struct str key);

#define auto_json_index __attribute__((cleanup(json_index_done)))

/* The same value, whatever the order of members. Two absent values are equal. */
bool json_equal(const struct json *a, const struct json *b);

/* 0 for a scalar, 1 for [] or {}; JSON_MAX_DEPTH + 1 for all that is deeper. */
unsigned json_depth(const struct json *value);

/* ---- writing; an absent value is written as null ---- */

void json_write(const struct json *value, struct buf *out);
void json_write_pretty(const struct json *value, struct buf *out); /* two spaces, newline at end */

/* One text for all equal values: keys in byte order, no spaces, whole numbers without a fraction.
 * For hashes. */
void json_write_canonical(const struct json *value, struct buf *out);

/* `text` as a JSON string with its quotes; what is not UTF-8 becomes U+FFFD. */
void json_escape(struct buf *out, struct str text);

/* A member behind others of an object, as text: ,"key":"text". Nothing for "" and for times up to
 * 1970; seconds: since then, written as RFC 3339. */
void json_add_text(struct buf *out, const char *key, const char *text);
void json_add_time(struct buf *out, const char *key, int64_t seconds);

/* ---- building ----
 * Members keep the order in which they came. Keys and strings are copied in; what is not UTF-8
 * becomes U+FFFD, so what is written is always valid JSON. A value belongs to one container: put
 * it once. Putting into a value of another type is a defect and aborts. */

struct json_build *json_build_new(void);
void json_build_free(struct json_build *build);
void json_build_freep(struct json_build **build);

#define auto_json_build __attribute__((cleanup(json_build_freep)))

struct json_mut *json_new_object(struct json_build *build);
struct json_mut *json_new_array(struct json_build *build);
struct json_mut *json_new_str(struct json_build *build, struct str text);
struct json_mut *json_new_i64(struct json_build *build, int64_t value);
struct json_mut *json_new_u64(struct json_build *build, uint64_t value);
struct json_mut *json_new_f64(struct json_build *build, double value); /* not finite: null */
struct json_mut *json_new_bool(struct json_build *build, bool value);
struct json_mut *json_new_null(struct json_build *build);
struct json_mut *json_copy(struct json_build *build, const struct json *value); /* deep */

/* Replaces an existing member in its place. Each returns the value put. */
struct json_mut *json_put(struct json_build *build, struct json_mut *object, const char *key,
                          struct json_mut *value);
struct json_mut *json_put_key(struct json_build *build, struct json_mut *object, struct str key,
                              struct json_mut *value);
struct json_mut *json_put_str(struct json_build *build, struct json_mut *object, const char *key,
                              struct str text);
struct json_mut *json_put_text(struct json_build *build, struct json_mut *object, const char *key,
                               const char *text);
struct json_mut *json_put_i64(struct json_build *build, struct json_mut *object, const char *key,
                              int64_t value);
struct json_mut *json_put_u64(struct json_build *build, struct json_mut *object, const char *key,
                              uint64_t value);
struct json_mut *json_put_bool(struct json_build *build, struct json_mut *object, const char *key,
                               bool value);
struct json_mut *json_put_object(struct json_build *build, struct json_mut *object,
                                 const char *key); /* a new, empty one */
struct json_mut *json_put_array(struct json_build *build, struct json_mut *object, const char *key);

/* As json_put_key for a key known to be new: does not look for it. */
struct json_mut *json_append(struct json_build *build, struct json_mut *object, struct str key,
                             struct json_mut *value);
bool json_remove(struct json_mut *object, struct str key); /* whether it was there */

/* The object at this path, made where it is missing (what is no object on the way is replaced). */
#define json_object_at(build, object, ...)                                                         \
    json_object_at_path((build), (object), (const char *const[]){ __VA_ARGS__, NULL })
struct json_mut *json_object_at_path(struct json_build *build, struct json_mut *object,
                                     const char *const *keys);

/* json_put_at(build, pod, value, "metadata", "labels", "app"): makes the objects on the way. */
#define json_put_at(build, object, value, ...)                                                     \
    json_put_at_path((build), (object), (value), (const char *const[]){ __VA_ARGS__, NULL })
struct json_mut *json_put_at_path(struct json_build *build, struct json_mut *object,
                                  struct json_mut *value, const char *const *keys);

void json_push(struct json_mut *array, struct json_mut *item);
void json_push_str(struct json_build *build, struct json_mut *array, struct str text);
void json_insert(struct json_mut *array, size_t index, struct json_mut *item); /* index <= len */
void json_replace_item(struct json_mut *array, size_t index, struct json_mut *item);
void json_remove_item(struct json_mut *array, size_t index);

enum json_type json_mut_type(const struct json_mut *value);
size_t json_mut_len(const struct json_mut *value);
struct json_mut *json_mut_get(const struct json_mut *object, struct str key); /* NULL if absent */
struct json_mut *json_mut_item(const struct json_mut *array, size_t index);

void json_mut_write(const struct json_mut *value, struct buf *out);
void json_mut_write_pretty(const struct json_mut *value, struct buf *out);

/* A copy that no longer needs the build. */
struct json_doc *json_freeze(const struct json_mut *value);

#endif
