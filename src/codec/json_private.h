/* json_private.h - what the json*.c files share; nobody else sees yyjson.
 *
 * A `struct json` is a yyjson_val, a `struct json_mut` a yyjson_mut_val, a `struct json_doc` a
 * yyjson_doc and a `struct json_build` a yyjson_mut_doc: they are cast, never converted. */
#ifndef SLINC_CODEC_JSON_PRIVATE_H
#define SLINC_CODEC_JSON_PRIVATE_H

#include "codec/json.h"

#include <yyjson.h>

extern const yyjson_alc json_memory; /* base/mem.h for yyjson, so that it never sees NULL either */

static inline yyjson_val *val_of(const struct json *value)
{
    return (yyjson_val *)value;
}

static inline const struct json *json_of(const yyjson_val *val)
{
    return (const struct json *)val;
}

static inline yyjson_mut_val *mut_of(const struct json_mut *value)
{
    return (yyjson_mut_val *)value;
}

/* Of a string or a key, built or read. */
static inline struct str text_of(const void *val)
{
    return (struct str){ unsafe_yyjson_get_str((void *)val), unsafe_yyjson_get_len((void *)val) };
}

enum json_type json_type_from_yyjson(yyjson_type type);

/* A number by its value, however it was written. */
struct json_number {
    bool whole, negative;
    uint64_t magnitude; /* when whole */
    double real;
};
struct json_number json_number_of(const struct json *value);

/* The members in byte order of their keys, of equal keys the last; the caller frees the array. */
struct json_member *json_members_sorted(const struct json *object, size_t *ret_count);

/* Moves the first character of *rest to out, or U+FFFD for a byte that begins none. */
void json_move_char(struct buf *out, struct str *rest);

#endif
