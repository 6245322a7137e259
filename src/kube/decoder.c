/* decoder.c - the memory of one object: counted first, then filled without a gap.
 *
 * Holds   both passes ask for the same pieces in the same order, so the block is exactly full;
 *         pairs are sorted by key, each key once, and of equal keys the last one counts. */
#include "kube/object_private.h"

#include "base/mem.h"
#include "codec/quantity.h"

#include <stdlib.h>

enum {
    ALIGN = 8,               /* pointers and int64 */
    SHARED_FROM = 8,         /* shorter texts are not worth looking for */
    MAX_COUNTED = 256 << 20, /* a fuse: lists are bounded by whoever decodes them */
};

static size_t round_up(size_t size)
{
    return (size + ALIGN - 1) / ALIGN * ALIGN;
}

void kube_decoder_count(struct kube_decoder *decoder, bool borrows)
{
    decoder->block = NULL;
    decoder->aligned = decoder->text = 0;
    decoder->borrows = borrows;
    memset(decoder->recent, 0, sizeof(decoder->recent));
    decoder->recent_next = 0;
    decoder->found_next = 0;
    decoder->spare_used = 0;
    arena_init(&decoder->overflow, MAX_COUNTED);
}

int kube_decoder_fill(struct kube_decoder *decoder, struct err *err)
{
    size_t size = decoder->aligned + decoder->text;

    if (size > KUBE_MAX_BLOCK)
        return err_set(err, ERR_TOO_BIG, "takes %zu bytes, more than %d", size, KUBE_MAX_BLOCK);
    decoder->block = mem_alloc(size);
    decoder->text = decoder->aligned;
    decoder->aligned = 0;
    memset(decoder->recent, 0, sizeof(decoder->recent));
    decoder->recent_next = 0;
    decoder->found_next = 0;
    return 0;
}

void kube_decoder_done(struct kube_decoder *decoder)
{
    arena_done(&decoder->overflow);
}

bool kube_decoder_is_counting(const struct kube_decoder *decoder)
{
    return !decoder->block;
}

const struct json *kube_decoder_get(struct kube_decoder *decoder, const struct json *object,
                                    const char *key)
{
    unsigned call = decoder->found_next++;

    if (call >= KUBE_DECODER_FOUND)
        return json_get(object, key);
    if (!decoder->block)
        decoder->found[call] = json_get(object, key);
    return decoder->found[call];
}

void *kube_decoder_reserve(struct kube_decoder *decoder, size_t size)
{
    size_t from = decoder->aligned;

    decoder->aligned += round_up(size);
    return decoder->block ? decoder->block + from : NULL;
}

void *kube_decoder_alloc(struct kube_decoder *decoder, size_t size)
{
    char *piece = kube_decoder_reserve(decoder, size);

    if (piece)
        return piece;
    if (round_up(size) > KUBE_DECODER_SPARE - decoder->spare_used)
        return arena_alloc(&decoder->overflow, size);
    piece = decoder->spare + decoder->spare_used;
    decoder->spare_used += round_up(size);
    return memset(piece, 0, size);
}

/* ---- texts ---- */

static const char *find_recent(const struct kube_decoder *decoder, struct str text)
{
    for (unsigned i = 0; i < KUBE_DECODER_RECENT; i++) {
        struct str other = decoder->recent[i].text;

        if (other.len == text.len && memcmp(other.at, text.at, text.len) == 0)
            return decoder->recent[i].copy;
    }
    return NULL;
}

static void remember(struct kube_decoder *decoder, struct str text, const char *copy)
{
    unsigned place = decoder->recent_next++ % KUBE_DECODER_RECENT;

    decoder->recent[place].text = text;
    decoder->recent[place].copy = copy;
}

const char *kube_decoder_str(struct kube_decoder *decoder, struct str text)
{
    const char *copy = "";

    if (text.len == 0)
        return "";
    if (decoder->borrows && text.at[text.len] == '\0') /* else a part of a text of the tree */
        return text.at;
    if (text.len >= SHARED_FROM) {
        const char *found = find_recent(decoder, text);

        if (found)
            return found;
    }
    if (decoder->block) {
        memcpy(decoder->block + decoder->text, text.at, text.len);
        copy = decoder->block + decoder->text; /* the block is zeroed: the NUL is there */
    }
    decoder->text += text.len + 1;
    if (text.len >= SHARED_FROM)
        remember(decoder, text, copy);
    return copy;
}

/* Not by kube_decoder_str: it remembers where a text came from, and this one goes away. */
int kube_decoder_text(struct kube_decoder *decoder, const struct buf *text, const char *what,
                      const char **ret_text, struct err *err)
{
    char *copy;
    int rc = buf_check(text, what, err);

    if (rc < 0)
        return rc;
    *ret_text = "";
    if (text->len == 0)
        return 0;
    copy = kube_decoder_alloc(decoder, text->len + 1);
    memcpy(copy, text->data, text->len);
    *ret_text = copy;
    return 0;
}

int kube_decoder_rule(struct kube_decoder *decoder, const struct json *rule, const char *what,
                      const char **ret_text, struct err *err)
{
    auto_buf struct buf text;

    buf_init(&text, KUBE_MAX_RULE);
    if (json_exists(rule))
        json_write(rule, &text);
    return kube_decoder_text(decoder, &text, what, ret_text, err);
}

/* ---- pairs ---- */

static int compare_pairs(const void *left, const void *right)
{
    const struct kube_pair *a = left, *b = right;

    return str_cmp(a->key, b->key);
}

static bool is_sorted(const struct kube_pair *pairs, unsigned count)
{
    for (unsigned i = 1; i < count; i++)
        if (str_cmp(pairs[i - 1].key, pairs[i].key) >= 0)
            return false;
    return true;
}

/* Go writes maps sorted, so there is nearly never anything to do. */
static unsigned sort_pairs(struct kube_pair *pairs, unsigned count)
{
    unsigned kept = 0;

    if (is_sorted(pairs, count))
        return count;
    qsort(pairs, count, sizeof(*pairs), compare_pairs);
    for (unsigned i = 0; i < count; i++)
        if (kept == 0 || !str_eq(pairs[kept - 1].key, pairs[i].key))
            pairs[kept++] = pairs[i];
    return kept;
}

static void keep_pair(struct kube_decoder *decoder, struct str key, struct str value,
                      struct kube_pair *ret_pair)
{
    struct str kept_key = { kube_decoder_str(decoder, key), key.len };
    struct str kept_value = { kube_decoder_str(decoder, value), value.len };

    if (ret_pair)
        *ret_pair = (struct kube_pair){ kept_key, kept_value };
}

static bool keys_ascend(const struct json *object)
{
    struct json_iter iter = json_iter(object);
    struct str last = STR(""), key;
    const struct json *value;

    while (json_next_member(&iter, &key, &value)) {
        if (str_cmp(last, key) >= 0)
            return false;
        last = key;
    }
    return true;
}

/* Every member is kept with the value that counts for its key, so it does not matter which of
 * equal keys survives the sort. Keys that ascend are all different, and need no look-up. */
static unsigned keep_members(struct kube_decoder *decoder, const struct json *object,
                             struct kube_pair *pairs)
{
    auto_json_index struct json_index index = { 0 };
    struct json_iter iter = json_iter(object);
    bool ascend = keys_ascend(object);
    const struct json *value;
    unsigned count = 0;
    struct str key;

    if (!ascend)
        json_index_init(&index, object);
    while (json_next_member(&iter, &key, &value)) {
        if (!ascend)
            value = json_index_get(&index, key);
        if (json_is_null(value))
            continue;
        keep_pair(decoder, key, json_str(value), pairs ? &pairs[count] : NULL);
        count++;
    }
    return count;
}

struct kube_pairs kube_decoder_pairs(struct kube_decoder *decoder, const struct json *object)
{
    struct kube_pairs none = { 0 };

    return kube_decoder_merged(decoder, &none, object);
}

struct kube_pairs kube_decoder_merged(struct kube_decoder *decoder, const struct kube_pairs *base,
                                      const struct json *patch)
{
    size_t room = base->count + (json_is_object(patch) ? json_len(patch) : 0);
    struct kube_pair *pairs;
    unsigned count = 0;

    if (json_is_null(patch))
        return (struct kube_pairs){ 0 };
    if (!json_is_object(patch) || room == 0)
        return *base;
    pairs = kube_decoder_reserve(decoder, room * sizeof(*pairs));
    for (unsigned i = 0; pairs && i < base->count; i++)
        if (!json_get_str(patch, base->at[i].key))
            pairs[count++] = base->at[i];
    count += keep_members(decoder, patch, pairs ? pairs + count : NULL);
    return pairs ? (struct kube_pairs){ pairs, sort_pairs(pairs, count) }
                 : (struct kube_pairs){ 0 };
}

/* ---- quantities ---- */

int kube_quantity(const struct json *value, bool milli, int64_t *ret_amount, struct err *err)
{
    struct quantity quantity = { 0 };
    int64_t amount;
    int rc;

    if (json_exists(value) && quantity_from_json(value, &quantity, err) < 0)
        return -ERR_INVALID;
    rc = milli ? quantity_ceil_milli(&quantity, &amount, NULL)
               : quantity_ceil_units(&quantity, &amount, NULL);
    if (rc < 0)
        amount = quantity_sign(&quantity) < 0 ? INT64_MIN : INT64_MAX;
    *ret_amount = amount;
    return 0;
}
