/* protobuf.c - the wire format of Protocol Buffers.
 *
 * A message is a sequence of fields: a varint key (number * 8 + wire type), then the content by
 * wire type: a varint, 8 bytes, a length and that many bytes, a group (fields up to an end key), 4
 * bytes.
 *
 * Holds: no read passes the end of the input; no length is believed before it was compared with
 * what is left; depth and count of items are bounded, so work and memory are linear in the input.
 */
#include "codec/protobuf.h"

enum wire_type { WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES, WIRE_GROUP, WIRE_GROUP_END, WIRE_FIXED32 };

enum { MAX_VARINT = 10, VARINT_BITS = 7, VARINT_MORE = 0x80, WIRE_BITS = 3, WIRE_MASK = 7 };

struct decoder {
    struct arena *arena;
    unsigned items, depth;
};

/* One field as it stands in the input. */
struct wire_field {
    uint64_t number;
    unsigned wire;
    uint64_t value;   /* WIRE_VARINT */
    struct str bytes; /* WIRE_BYTES */
};

/* ---- reading the wire ---- */

static int read_varint(struct str *rest, uint64_t *ret_value, struct err *err)
{
    uint64_t value = 0;

    for (size_t i = 0; i < MAX_VARINT && i < rest->len; i++) {
        unsigned char byte = (unsigned char)rest->at[i];

        if (i == MAX_VARINT - 1 && byte > 1)
            return err_set(err, ERR_INVALID, "a varint is larger than 64 bits");
        value |= (uint64_t)(byte & (VARINT_MORE - 1)) << (VARINT_BITS * i);
        if (!(byte & VARINT_MORE)) {
            *rest = str_sub(*rest, i + 1, rest->len);
            *ret_value = value;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "a varint has no end");
}

static int take_bytes(struct str *rest, uint64_t length, struct str *ret_bytes, struct err *err)
{
    if (length > rest->len)
        return err_set(err, ERR_INVALID, "a field of %llu bytes where %zu are left",
                       (unsigned long long)length, rest->len);
    *ret_bytes = str_sub(*rest, 0, (size_t)length);
    *rest = str_sub(*rest, (size_t)length, rest->len);
    return 0;
}

static int read_key(struct str *rest, struct wire_field *ret_field, struct err *err)
{
    uint64_t key = 0;
    int result = read_varint(rest, &key, err);

    if (result < 0)
        return result;
    *ret_field =
        (struct wire_field){ .number = key >> WIRE_BITS, .wire = (unsigned)(key & WIRE_MASK) };
    if (ret_field->number == 0 || ret_field->number > (UINT32_MAX >> WIRE_BITS))
        return err_set(err, ERR_INVALID, "a field has the number %llu",
                       (unsigned long long)ret_field->number);
    return 0;
}

static int read_content(struct str *rest, struct wire_field *field, struct err *err)
{
    uint64_t length = 0;
    int result;

    switch (field->wire) {
    case WIRE_VARINT:
        return read_varint(rest, &field->value, err);
    case WIRE_FIXED64:
        return take_bytes(rest, sizeof(uint64_t), &field->bytes, err);
    case WIRE_FIXED32:
        return take_bytes(rest, sizeof(uint32_t), &field->bytes, err);
    case WIRE_BYTES:
        result = read_varint(rest, &length, err);
        return result < 0 ? result : take_bytes(rest, length, &field->bytes, err);
    default:
        return err_set(err, ERR_INVALID, "wire type %u", field->wire);
    }
}

/* Groups are unknown to proto3 and skipped as a whole; they may stand inside each other. */
static int skip_group(struct str *rest, uint64_t number, struct err *err)
{
    uint64_t open[PROTOBUF_MAX_DEPTH] = { number };
    unsigned depth = 1;

    while (depth > 0) {
        struct wire_field field;
        int result = read_key(rest, &field, err);

        if (result < 0)
            return result;
        if (field.wire == WIRE_GROUP_END) {
            if (field.number != open[--depth])
                return err_set(err, ERR_INVALID, "a group ends that did not begin");
        } else if (field.wire == WIRE_GROUP) {
            if (depth == PROTOBUF_MAX_DEPTH)
                return err_set(err, ERR_TOO_BIG, "groups are more than %d deep",
                               PROTOBUF_MAX_DEPTH);
            open[depth++] = field.number;
        } else if ((result = read_content(rest, &field, err)) < 0) {
            return result;
        }
    }
    return 0;
}

/* The next field that is no group; *ret_found is false at the end. */
static int next_field(struct str *rest, struct wire_field *ret_field, bool *ret_found,
                      struct err *err)
{
    *ret_found = false;
    while (rest->len > 0) {
        int result = read_key(rest, ret_field, err);

        if (result == 0 && ret_field->wire == WIRE_GROUP) {
            if ((result = skip_group(rest, ret_field->number, err)) < 0)
                return result;
            continue;
        }
        if (result == 0)
            result = read_content(rest, ret_field, err);
        if (result < 0)
            return result;
        *ret_found = true;
        return 0;
    }
    return 0;
}

/* ---- reading messages ---- */

static unsigned wire_of(enum protobuf_type type)
{
    return type == PROTOBUF_BOOL || type == PROTOBUF_INT64 ? WIRE_VARINT : WIRE_BYTES;
}

static const struct protobuf_field *row_of(const struct protobuf_message *message,
                                           const struct wire_field *field)
{
    for (const struct protobuf_field *row = message->fields; row->number; row++)
        if (row->number == field->number && wire_of(row->type) == field->wire)
            return row;
    return NULL;
}

static size_t item_size(const struct protobuf_field *row)
{
    return row->type == PROTOBUF_MESSAGE ? row->message->size : sizeof(struct str);
}

static void *member(void *value, const struct protobuf_field *row)
{
    return (char *)value + row->offset;
}

/* Repeated fields are counted first, so that each gets one array. */
static int make_arrays(struct decoder *decoder, const struct protobuf_message *message,
                       struct str rest, void *value, struct err *err)
{
    struct wire_field field;
    bool found = true;
    int result;

    while ((result = next_field(&rest, &field, &found, err)) == 0 && found) {
        const struct protobuf_field *row = row_of(message, &field);

        if (!row || wire_of(row->type) == WIRE_VARINT)
            continue;
        if (++decoder->items > PROTOBUF_MAX_ITEMS)
            return err_set(err, ERR_TOO_BIG, "more than %d fields", PROTOBUF_MAX_ITEMS);
        if (row->is_repeated)
            ((struct protobuf_list *)member(value, row))->count++;
    }
    if (result < 0)
        return result;
    for (const struct protobuf_field *row = message->fields; row->number; row++) {
        struct protobuf_list *list = member(value, row);

        if (!row->is_repeated || list->count == 0)
            continue;
        list->at = arena_alloc_array(decoder->arena, list->count, item_size(row));
        list->count = 0; /* counts again while it is filled */
    }
    return 0;
}

static int read_message(struct decoder *decoder, const struct protobuf_message *message,
                        struct str bytes, void *value, struct err *err);

static int read_item(struct decoder *decoder, const struct protobuf_field *row, struct str bytes,
                     void *item, struct err *err)
{
    if (row->type == PROTOBUF_MESSAGE)
        return read_message(decoder, row->message, bytes, item, err);
    if (!str_is_utf8(bytes))
        return err_set(err, ERR_INVALID, "field %u is not UTF-8", row->number);
    *(struct str *)item = bytes;
    return 0;
}

static int read_field(struct decoder *decoder, const struct protobuf_field *row,
                      const struct wire_field *field, void *value, struct err *err)
{
    void *at = member(value, row);

    if (row->type == PROTOBUF_BOOL) {
        *(bool *)at = field->value != 0;
    } else if (row->type == PROTOBUF_INT64) {
        *(int64_t *)at = (int64_t)field->value;
    } else if (row->is_repeated) {
        struct protobuf_list *list = at;
        char *item = (char *)list->at + list->count++ * item_size(row);

        return read_item(decoder, row, field->bytes, item, err);
    } else if (row->type == PROTOBUF_MESSAGE) {
        void *inner = arena_alloc(decoder->arena, row->message->size);

        *(void **)at = inner;
        return read_message(decoder, row->message, field->bytes, inner, err);
    } else {
        return read_item(decoder, row, field->bytes, at, err);
    }
    return 0;
}

static void set_empty_strings(const struct protobuf_message *message, void *value)
{
    for (const struct protobuf_field *row = message->fields; row->number; row++)
        if (row->type == PROTOBUF_STRING && !row->is_repeated)
            *(struct str *)member(value, row) = STR("");
}

static int read_message(struct decoder *decoder, const struct protobuf_message *message,
                        struct str bytes, void *value, struct err *err)
{
    struct wire_field field;
    bool found = true;
    int result;

    if (decoder->depth == PROTOBUF_MAX_DEPTH)
        return err_set(err, ERR_TOO_BIG, "messages are more than %d deep", PROTOBUF_MAX_DEPTH);
    decoder->depth++;
    set_empty_strings(message, value);
    if (make_arrays(decoder, message, bytes, value, err) < 0)
        return err_wrap(err, "%s", message->name);
    while ((result = next_field(&bytes, &field, &found, err)) == 0 && found) {
        const struct protobuf_field *row = row_of(message, &field);

        if (row && (result = read_field(decoder, row, &field, value, err)) < 0)
            break;
    }
    decoder->depth--;
    return result < 0 ? err_wrap(err, "%s", message->name) : 0;
}

int protobuf_decode(const struct protobuf_message *message, struct str bytes, struct arena *arena,
                    void *ret_value, struct err *err)
{
    struct decoder decoder = { .arena = arena };
    struct err why = { .class = 0 };
    void *value = arena_alloc(arena, message->size);
    int result = read_message(&decoder, message, bytes, value, &why);

    if (result < 0) {
        if (err)
            *err = why;
        return result;
    }
    memcpy(ret_value, value, message->size);
    return 0;
}

/* ---- writing ---- */

static size_t varint_size(uint64_t value)
{
    size_t size = 1;

    for (; value >= VARINT_MORE; value >>= VARINT_BITS)
        size++;
    return size;
}

static void write_varint(uint64_t value, struct buf *out)
{
    for (; value >= VARINT_MORE; value >>= VARINT_BITS)
        buf_add_char(out, (char)(unsigned char)(value | VARINT_MORE));
    buf_add_char(out, (char)value);
}

static size_t message_size(const struct protobuf_message *message, const void *value);

static uint64_t key_of(const struct protobuf_field *row)
{
    return ((uint64_t)row->number << WIRE_BITS) | wire_of(row->type);
}

/* The bytes of a string or a message without its key and length. */
static size_t content_size(const struct protobuf_field *row, const void *item)
{
    if (row->type == PROTOBUF_MESSAGE)
        return message_size(row->message, item);
    return ((const struct str *)item)->len;
}

/* The number of items of a field that are written, and where they are. */
static size_t items_of(const struct protobuf_field *row, const void *value, const char **ret_items)
{
    const void *at = (const char *)value + row->offset;

    if (row->is_repeated) {
        *ret_items = ((const struct protobuf_list *)at)->at;
        return ((const struct protobuf_list *)at)->count;
    }
    if (row->type == PROTOBUF_MESSAGE) {
        *ret_items = *(const char *const *)at;
        return *ret_items ? 1 : 0;
    }
    *ret_items = at;
    return ((const struct str *)at)->len > 0 ? 1 : 0;
}

static uint64_t number_of(const struct protobuf_field *row, const void *value)
{
    const void *at = (const char *)value + row->offset;

    return row->type == PROTOBUF_BOOL ? *(const bool *)at : (uint64_t)*(const int64_t *)at;
}

static size_t message_size(const struct protobuf_message *message, const void *value)
{
    size_t size = 0;

    for (const struct protobuf_field *row = message->fields; row->number; row++) {
        const char *items;
        size_t count;

        if (wire_of(row->type) == WIRE_VARINT) {
            uint64_t number = number_of(row, value);

            size += number ? varint_size(key_of(row)) + varint_size(number) : 0;
            continue;
        }
        count = items_of(row, value, &items);
        for (size_t i = 0; i < count; i++) {
            size_t content = content_size(row, items + i * item_size(row));

            size += varint_size(key_of(row)) + varint_size(content) + content;
        }
    }
    return size;
}

static void write_items(const struct protobuf_field *row, const void *value, struct buf *out)
{
    const char *items;
    size_t count = items_of(row, value, &items);

    for (size_t i = 0; i < count; i++) {
        const char *item = items + i * item_size(row);

        write_varint(key_of(row), out);
        write_varint(content_size(row, item), out);
        if (row->type == PROTOBUF_MESSAGE)
            protobuf_encode(row->message, item, out);
        else
            buf_add_str(out, *(const struct str *)(const void *)item);
    }
}

void protobuf_encode(const struct protobuf_message *message, const void *value, struct buf *out)
{
    for (const struct protobuf_field *row = message->fields; row->number; row++) {
        if (wire_of(row->type) == WIRE_BYTES) {
            write_items(row, value, out);
        } else if (number_of(row, value)) {
            write_varint(key_of(row), out);
            write_varint(number_of(row, value), out);
        }
    }
}
