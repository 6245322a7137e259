/* patch.h - JSON merge patches (RFC 7386) and JSON patches (RFC 6902): making and applying them. */
#ifndef SLINC_CODEC_PATCH_H
#define SLINC_CODEC_PATCH_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "codec/json.h"

enum {
    PATCH_MAX_OPS = 10000, /* in one JSON patch */
};

/* ---- merge patches ---- */

/* The target with the patch applied. Members keep the target's order, new ones follow. An absent
 * target is as null, an absent patch changes nothing. */
struct json_mut *patch_merge_apply(struct json_build *build, const struct json *target,
                                   const struct json *patch);

/* The smallest merge patch that makes `to` of `from`; NULL when there is no difference.
 *
 * A merge patch cannot set a member to null: a null member of `to` counts as absent, and applying
 * the difference then gives `to` without it. Arrays are replaced whole. */
struct json_mut *patch_merge_diff(struct json_build *build, const struct json *from,
                                  const struct json *to);

/* ---- JSON patches ---- */

/* The target after every operation in turn: test, add, remove and replace. Nothing is returned
 * unless all went well. A test that fails is -ERR_CONFLICT, all else -ERR_INVALID or (bounds)
 * -ERR_TOO_BIG; the text names the operation by number and path. */
int patch_json_apply(struct json_build *build, const struct json *target, const struct json *ops,
                     struct json_mut **ret_value, struct err *err);

/* Appends {"op", "path", "value"} to `ops`; value is NULL for "remove". */
void patch_op(struct json_build *build, struct json_mut *ops, const char *op, struct str path,
              struct json_mut *value);
/* Appends an item to the list at `path`, which has `count` items now; a list that is empty may be
 * absent and is made, so test the version then. */
void patch_append(struct json_build *build, struct json_mut *ops, struct str path, size_t count,
                  struct json_mut *item);

/* Adds "/" and the key as JSON pointers spell it ('~' and '/' escaped). */
void patch_pointer_add(struct buf *pointer, struct str key);

#endif
