/* json.c - JSON texts read into documents, and everything that looks into one.
 *
 * Holds   parsed trees are at most JSON_MAX_DEPTH deep, so walkers may recurse;
 *         the values of a document lie in one array in the order of the text, a container before
 *         what it holds (yyjson's layout; iteration and the depth check use it). */
#include "codec/json.h"

#include "base/mem.h"
#include "codec/json_private.h"

#include <inttypes.h>

/* ---- memory: yyjson gets ours, so that it never sees NULL either ---- */

static void *memory_get(void *context, size_t size)
{
    return mem_resize_array(NULL, 1, size);
}

static void *memory_resize(void *context, void *old, size_t old_size, size_t size)
{
    return mem_resize_array(old, 1, size);
}

static void memory_free(void *context, void *memory)
{
    mem_free(memory);
}

const yyjson_alc json_memory = { memory_get, memory_resize, memory_free, NULL };

/* ---- documents ---- */

/* The depth of the tree, or `deepest` when it is not deeper than that. A container of n values is
 * at most n deep, so those that cannot matter are stepped over unseen: this is what keeps the check
 * of a long list of small objects cheap. */
static unsigned depth_beyond(unsigned deepest, yyjson_val *val)
{
    const yyjson_val *const end = unsafe_yyjson_get_next(val);
    const yyjson_val *ends[JSON_MAX_DEPTH]; /* of the containers around val */
    unsigned depth = 0;

    while (val < end) {
        yyjson_val *next = unsafe_yyjson_get_next(val);

        while (depth > 0 && val >= ends[depth - 1])
            depth--;
        if (!unsafe_yyjson_is_ctn(val) || depth + (size_t)(next - val) <= deepest) {
            val = next;
            continue;
        }
        if (depth == JSON_MAX_DEPTH)
            return JSON_MAX_DEPTH + 1;
        ends[depth++] = next;
        if (depth > deepest)
            deepest = depth;
        val++;
    }
    return deepest;
}

static int parse_error(struct str text, const yyjson_read_err *found, struct err *err)
{
    size_t line = 1, column = 1, character = 0;

    yyjson_locate_pos(text.at, text.len, found->pos, &line, &column, &character);
    return err_set(err, ERR_INVALID, "JSON line %zu column %zu (byte %zu): %s", line, column,
                   found->pos, found->msg);
}

int json_parse(struct str text, size_t max_bytes, struct json_doc **ret_doc, struct err *err)
{
    yyjson_read_err found = { 0 };
    yyjson_doc *doc;

    if (text.len > max_bytes)
        return err_set(err, ERR_TOO_BIG, "JSON of %zu bytes, at most %zu are read", text.len,
                       max_bytes);
    if (text.len == 0)
        return err_set(err, ERR_INVALID, "JSON: the text is empty");

    /* Not changed: without the in-situ flag yyjson reads a copy. */
    doc = yyjson_read_opts((char *)text.at, text.len, YYJSON_READ_NOFLAG, &json_memory, &found);
    if (!doc)
        return parse_error(text, &found, err);
    if (depth_beyond(JSON_MAX_DEPTH, yyjson_doc_get_root(doc)) > JSON_MAX_DEPTH) {
        yyjson_doc_free(doc);
        return err_set(err, ERR_TOO_BIG, "JSON: nested deeper than %d levels", JSON_MAX_DEPTH);
    }
    *ret_doc = (struct json_doc *)doc;
    return 0;
}

void json_doc_free(struct json_doc *doc)
{
    yyjson_doc_free((yyjson_doc *)doc);
}

void json_doc_freep(struct json_doc **doc)
{
    json_doc_free(*doc);
}

const struct json *json_root(const struct json_doc *doc)
{
    return json_of(yyjson_doc_get_root((yyjson_doc *)doc));
}

unsigned json_depth(const struct json *value)
{
    return value ? depth_beyond(0, val_of(value)) : 0;
}

struct json_doc *json_clone(const struct json *value)
{
    auto_json_build struct json_build *build = json_build_new();

    return json_freeze(json_copy(build, value));
}

/* ---- looking in ---- */

enum json_type json_type_from_yyjson(yyjson_type type)
{
    static const enum json_type types[] = {
        [YYJSON_TYPE_NULL] = JSON_NULL,  [YYJSON_TYPE_BOOL] = JSON_BOOL,
        [YYJSON_TYPE_NUM] = JSON_NUMBER, [YYJSON_TYPE_STR] = JSON_STRING,
        [YYJSON_TYPE_ARR] = JSON_ARRAY,  [YYJSON_TYPE_OBJ] = JSON_OBJECT,
    };

    return type < sizeof(types) / sizeof(types[0]) ? types[type] : JSON_ABSENT;
}

enum json_type json_type(const struct json *value)
{
    return json_type_from_yyjson(yyjson_get_type(val_of(value)));
}

const char *json_type_name(enum json_type type)
{
    static const char *const names[] = {
        [JSON_ABSENT] = "nothing", [JSON_NULL] = "null",     [JSON_BOOL] = "boolean",
        [JSON_NUMBER] = "number",  [JSON_STRING] = "string", [JSON_ARRAY] = "array",
        [JSON_OBJECT] = "object",
    };

    return names[type];
}

size_t json_len(const struct json *value)
{
    return yyjson_is_ctn(val_of(value)) ? unsafe_yyjson_get_len(val_of(value)) : 0;
}

/* Not yyjson_obj_getn: that one finds the first of equal keys. */
const struct json *json_get_str(const struct json *object, struct str key)
{
    const yyjson_val *found = NULL;
    yyjson_val *at;
    size_t left;

    if (!json_is_object(object))
        return NULL;
    at = unsafe_yyjson_get_first(val_of(object));
    for (left = json_len(object); left > 0; left--, at = unsafe_yyjson_get_next(at + 1))
        if (unsafe_yyjson_equals_strn(at, key.at, key.len))
            found = at + 1;
    return json_of(found);
}

const struct json *json_item(const struct json *array, size_t index)
{
    return json_of(yyjson_arr_get(val_of(array), index));
}

const struct json *json_at_path(const struct json *value, const char *const *keys)
{
    for (; value && *keys; keys++)
        value = json_get(value, *keys);
    return value;
}

struct str json_str_or(const struct json *value, struct str fallback)
{
    return json_is_string(value) ? text_of(value) : fallback;
}

struct str json_str(const struct json *value)
{
    return json_str_or(value, STR(""));
}

bool json_bool_or(const struct json *value, bool fallback)
{
    return json_is_bool(value) ? unsafe_yyjson_get_bool(val_of(value)) : fallback;
}

struct json_number json_number_of(const struct json *value)
{
    yyjson_val *val = val_of(value);
    struct json_number number = { .real = yyjson_get_num(val) };
    double size = number.real < 0 ? -number.real : number.real;

    if (yyjson_is_uint(val)) {
        number.whole = true;
        number.magnitude = unsafe_yyjson_get_uint(val);
    } else if (yyjson_is_sint(val)) {
        int64_t sint = unsafe_yyjson_get_sint(val);

        number.whole = true;
        number.negative = sint < 0;
        number.magnitude = sint < 0 ? 0 - (uint64_t)sint : (uint64_t)sint;
    } else if (size < 0x1p64) {
        number.negative = number.real < 0;
        number.magnitude = (uint64_t)size;
        number.whole = (double)number.magnitude == size;
    }
    return number;
}

static bool number_to_i64(const struct json *value, int64_t *ret)
{
    struct json_number number = json_number_of(value);

    if (!json_is_number(value) || !number.whole ||
        number.magnitude > (uint64_t)INT64_MAX + number.negative)
        return false;
    *ret = (int64_t)(number.negative ? 0 - number.magnitude : number.magnitude);
    return true;
}

static bool number_to_u64(const struct json *value, uint64_t *ret)
{
    struct json_number number = json_number_of(value);

    if (!json_is_number(value) || !number.whole || number.negative)
        return false;
    *ret = number.magnitude;
    return true;
}

int64_t json_i64_or(const struct json *value, int64_t fallback)
{
    int64_t found = fallback;

    (void)number_to_i64(value, &found);
    return found;
}

uint64_t json_u64_or(const struct json *value, uint64_t fallback)
{
    uint64_t found = fallback;

    (void)number_to_u64(value, &found);
    return found;
}

double json_f64_or(const struct json *value, double fallback)
{
    return json_is_number(value) ? yyjson_get_num(val_of(value)) : fallback;
}

/* ---- members that must be there ---- */

static int want_type(const struct json *object, const char *key, enum json_type type,
                     const struct json **ret, struct err *err)
{
    const struct json *found = json_get(object, key);

    if (json_type(found) != type)
        return err_set(err, ERR_INVALID, "\"%s\": want %s, found %s", key, json_type_name(type),
                       json_type_name(json_type(found)));
    *ret = found;
    return 0;
}

int json_want_str(const struct json *object, const char *key, struct str *ret, struct err *err)
{
    const struct json *found;
    int rc = want_type(object, key, JSON_STRING, &found, err);

    if (rc == 0)
        *ret = text_of(found);
    return rc;
}

int json_want_bool(const struct json *object, const char *key, bool *ret, struct err *err)
{
    const struct json *found;
    int rc = want_type(object, key, JSON_BOOL, &found, err);

    if (rc == 0)
        *ret = unsafe_yyjson_get_bool(val_of(found));
    return rc;
}

int json_want_i64(const struct json *object, const char *key, int64_t min, int64_t max,
                  int64_t *ret, struct err *err)
{
    const struct json *found;
    int64_t value = 0;
    int rc = want_type(object, key, JSON_NUMBER, &found, err);

    if (rc < 0)
        return rc;
    if (!number_to_i64(found, &value) || value < min || value > max)
        return err_set(err, ERR_INVALID,
                       "\"%s\": want a whole number from %" PRId64 " to %" PRId64 ", found %.17g",
                       key, min, max, json_f64_or(found, 0));
    *ret = value;
    return 0;
}

int json_want_u64(const struct json *object, const char *key, uint64_t min, uint64_t max,
                  uint64_t *ret, struct err *err)
{
    const struct json *found;
    uint64_t value = 0;
    int rc = want_type(object, key, JSON_NUMBER, &found, err);

    if (rc < 0)
        return rc;
    if (!number_to_u64(found, &value) || value < min || value > max)
        return err_set(err, ERR_INVALID,
                       "\"%s\": want a whole number from %" PRIu64 " to %" PRIu64 ", found %.17g",
                       key, min, max, json_f64_or(found, 0));
    *ret = value;
    return 0;
}

int json_want_array(const struct json *object, const char *key, const struct json **ret,
                    struct err *err)
{
    return want_type(object, key, JSON_ARRAY, ret, err);
}

int json_want_object(const struct json *object, const char *key, const struct json **ret,
                     struct err *err)
{
    return want_type(object, key, JSON_OBJECT, ret, err);
}

/* ---- going through ---- */

struct json_iter json_iter(const struct json *container)
{
    struct json_iter iter = { .left = json_len(container), .type = json_type(container) };

    if (iter.left > 0)
        iter.next = json_of(unsafe_yyjson_get_first(val_of(container)));
    return iter;
}

bool json_next_item(struct json_iter *iter, const struct json **ret_item)
{
    if (iter->left == 0 || iter->type != JSON_ARRAY)
        return false;
    *ret_item = iter->next;
    iter->next = json_of(unsafe_yyjson_get_next(val_of(iter->next)));
    iter->left--;
    return true;
}

bool json_next_member(struct json_iter *iter, struct str *ret_key, const struct json **ret_value)
{
    yyjson_val *key = val_of(iter->next);

    if (iter->left == 0 || iter->type != JSON_OBJECT)
        return false;
    *ret_key = text_of(key);
    *ret_value = json_of(key + 1);
    iter->next = json_of(unsafe_yyjson_get_next(key + 1));
    iter->left--;
    return true;
}
