/* json_build.c - trees of values under construction, owned by a build and freed with it.
 *
 * Holds   no value is NULL, since json_memory never gives that;
 *         strings are UTF-8: what is not is repaired on the way in. */
#include "codec/json_private.h"

#include <assert.h>
#include <math.h>

static yyjson_mut_doc *mut_doc_of(struct json_build *build)
{
    return (yyjson_mut_doc *)build;
}

/* ---- values ---- */

struct json_build *json_build_new(void)
{
    return (struct json_build *)yyjson_mut_doc_new(&json_memory);
}

void json_build_free(struct json_build *build)
{
    yyjson_mut_doc_free(mut_doc_of(build));
}

void json_build_freep(struct json_build **build)
{
    json_build_free(*build);
}

/* The address of a new value, which cannot be NULL. */
static struct json_mut *made(yyjson_mut_val *val)
{
    assert(val);
    return (struct json_mut *)val;
}

struct json_mut *json_new_object(struct json_build *build)
{
    return made(yyjson_mut_obj(mut_doc_of(build)));
}

struct json_mut *json_new_array(struct json_build *build)
{
    return made(yyjson_mut_arr(mut_doc_of(build)));
}

static yyjson_mut_val *new_repaired(struct json_build *build, struct str text)
{
    auto_buf struct buf repaired = { 0 };

    buf_init(&repaired, text.len * 3); /* at worst every byte becomes U+FFFD */
    while (text.len > 0)
        json_move_char(&repaired, &text);
    return yyjson_mut_strncpy(mut_doc_of(build), buf_text(&repaired), repaired.len);
}

struct json_mut *json_new_str(struct json_build *build, struct str text)
{
    if (!str_is_utf8(text))
        return made(new_repaired(build, text));
    return made(yyjson_mut_strncpy(mut_doc_of(build), text.at, text.len));
}

struct json_mut *json_new_i64(struct json_build *build, int64_t value)
{
    return made(yyjson_mut_sint(mut_doc_of(build), value));
}

struct json_mut *json_new_u64(struct json_build *build, uint64_t value)
{
    return made(yyjson_mut_uint(mut_doc_of(build), value));
}

struct json_mut *json_new_f64(struct json_build *build, double value)
{
    return isfinite(value) ? made(yyjson_mut_real(mut_doc_of(build), value)) : json_new_null(build);
}

struct json_mut *json_new_bool(struct json_build *build, bool value)
{
    return made(yyjson_mut_bool(mut_doc_of(build), value));
}

struct json_mut *json_new_null(struct json_build *build)
{
    return made(yyjson_mut_null(mut_doc_of(build)));
}

struct json_mut *json_copy(struct json_build *build, const struct json *value)
{
    return value ? made(yyjson_val_mut_copy(mut_doc_of(build), val_of(value)))
                 : json_new_null(build);
}

/* ---- members ---- */

struct json_mut *json_put_key(struct json_build *build, struct json_mut *object, struct str key,
                              struct json_mut *value)
{
    bool done = yyjson_mut_obj_put(mut_of(object), mut_of(json_new_str(build, key)), mut_of(value));

    assert(done && value);
    return value;
}

struct json_mut *json_put(struct json_build *build, struct json_mut *object, const char *key,
                          struct json_mut *value)
{
    return json_put_key(build, object, str_of(key), value);
}

struct json_mut *json_put_str(struct json_build *build, struct json_mut *object, const char *key,
                              struct str text)
{
    return json_put(build, object, key, json_new_str(build, text));
}

struct json_mut *json_put_text(struct json_build *build, struct json_mut *object, const char *key,
                               const char *text)
{
    return json_put(build, object, key, json_new_str(build, str_of(text)));
}

struct json_mut *json_put_i64(struct json_build *build, struct json_mut *object, const char *key,
                              int64_t value)
{
    return json_put(build, object, key, json_new_i64(build, value));
}

struct json_mut *json_put_u64(struct json_build *build, struct json_mut *object, const char *key,
                              uint64_t value)
{
    return json_put(build, object, key, json_new_u64(build, value));
}

struct json_mut *json_put_bool(struct json_build *build, struct json_mut *object, const char *key,
                               bool value)
{
    return json_put(build, object, key, json_new_bool(build, value));
}

struct json_mut *json_put_object(struct json_build *build, struct json_mut *object, const char *key)
{
    return json_put(build, object, key, json_new_object(build));
}

struct json_mut *json_put_array(struct json_build *build, struct json_mut *object, const char *key)
{
    return json_put(build, object, key, json_new_array(build));
}

struct json_mut *json_append(struct json_build *build, struct json_mut *object, struct str key,
                             struct json_mut *value)
{
    bool done = yyjson_mut_obj_add(mut_of(object), mut_of(json_new_str(build, key)), mut_of(value));

    assert(done);
    return value;
}

bool json_remove(struct json_mut *object, struct str key)
{
    return yyjson_mut_obj_remove_keyn(mut_of(object), key.at, key.len) != NULL;
}

struct json_mut *json_object_at_path(struct json_build *build, struct json_mut *object,
                                     const char *const *keys)
{
    for (; *keys; keys++) {
        struct json_mut *next = json_mut_get(object, str_of(*keys));

        if (json_mut_type(next) != JSON_OBJECT)
            next = json_put_object(build, object, *keys);
        object = next;
    }
    return object;
}

struct json_mut *json_put_at_path(struct json_build *build, struct json_mut *object,
                                  struct json_mut *value, const char *const *keys)
{
    for (; keys[1]; keys++)
        object = json_object_at(build, object, keys[0]);
    return json_put(build, object, keys[0], value);
}

/* ---- items ---- */

void json_push(struct json_mut *array, struct json_mut *item)
{
    bool done = yyjson_mut_arr_append(mut_of(array), mut_of(item));

    assert(done);
}

void json_push_str(struct json_build *build, struct json_mut *array, struct str text)
{
    json_push(array, json_new_str(build, text));
}

void json_insert(struct json_mut *array, size_t index, struct json_mut *item)
{
    bool done = yyjson_mut_arr_insert(mut_of(array), mut_of(item), index);

    assert(done);
}

void json_replace_item(struct json_mut *array, size_t index, struct json_mut *item)
{
    yyjson_mut_val *old = yyjson_mut_arr_replace(mut_of(array), index, mut_of(item));

    assert(old);
}

void json_remove_item(struct json_mut *array, size_t index)
{
    yyjson_mut_val *old = yyjson_mut_arr_remove(mut_of(array), index);

    assert(old);
}

/* ---- looking at what was built ---- */

enum json_type json_mut_type(const struct json_mut *value)
{
    return json_type_from_yyjson(yyjson_mut_get_type(mut_of(value)));
}

size_t json_mut_len(const struct json_mut *value)
{
    return yyjson_mut_is_ctn(mut_of(value)) ? unsafe_yyjson_get_len(mut_of(value)) : 0;
}

struct json_mut *json_mut_get(const struct json_mut *object, struct str key)
{
    yyjson_mut_obj_iter iter;
    yyjson_mut_val *at, *found = NULL;

    if (!yyjson_mut_obj_iter_init(mut_of(object), &iter))
        return NULL;
    while ((at = yyjson_mut_obj_iter_next(&iter)))
        if (unsafe_yyjson_equals_strn(at, key.at, key.len))
            found = yyjson_mut_obj_iter_get_val(at);
    return (struct json_mut *)found;
}

struct json_mut *json_mut_item(const struct json_mut *array, size_t index)
{
    return (struct json_mut *)yyjson_mut_arr_get(mut_of(array), index);
}

struct json_doc *json_freeze(const struct json_mut *value)
{
    return (struct json_doc *)yyjson_mut_val_imut_copy(mut_of(value), &json_memory);
}
