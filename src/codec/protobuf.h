/* protobuf.h - Protocol Buffers (proto3) messages, read and written by tables of fields.
 *
 * A message is a plain struct and a table with one row per field. Kinds of fields: bool, int64
 * (also enums and int32), string, message; each alone or repeated, except bool and int64. A map is
 * a repeated message with the fields 1 (key) and 2 (value).
 *
 * Reading skips fields that the table does not name and fields of another wire type. Fields that
 * are absent are zero, "" or NULL. Of a field that is not repeated the last one counts. Writing
 * leaves out fields that are zero, "" or NULL; so `optional` strings are absent when they are
 * empty. */
#ifndef SLINC_CODEC_PROTOBUF_H
#define SLINC_CODEC_PROTOBUF_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROTOBUF_MAX_DEPTH = 16,   /* messages inside each other */
    PROTOBUF_MAX_ITEMS = 4096, /* messages and repeated strings in all */
};

enum protobuf_type {
    PROTOBUF_BOOL,    /* bool */
    PROTOBUF_INT64,   /* int64_t */
    PROTOBUF_STRING,  /* struct str; repeated: struct protobuf_list of struct str */
    PROTOBUF_MESSAGE, /* pointer to its struct; repeated: struct protobuf_list of the structs */
};

struct protobuf_list {
    void *at; /* an array; NULL when count is 0 */
    size_t count;
};

struct protobuf_field {
    uint32_t number; /* 0 behind the last row */
    enum protobuf_type type;
    bool is_repeated;
    size_t offset;
    const struct protobuf_message *message; /* of PROTOBUF_MESSAGE */
};

struct protobuf_message {
    const char *name; /* for errors */
    size_t size;      /* of the struct */
    const struct protobuf_field *fields;
};

/* Fills *ret_value (message->size bytes). Strings are borrowed from `bytes`, structs and arrays
 * come from the arena, which needs room for PROTOBUF_MAX_ITEMS of the largest struct. -ERR_INVALID
 * for bytes that are no message and for strings that are not UTF-8, -ERR_TOO_BIG above the bounds.
 */
int protobuf_decode(const struct protobuf_message *message, struct str bytes, struct arena *arena,
                    void *ret_value, struct err *err);

/* Appends the message; fields in the order of the table. */
void protobuf_encode(const struct protobuf_message *message, const void *value, struct buf *out);

#endif
