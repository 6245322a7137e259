/* map.c - an open-addressing table of indexes into an array that keeps the order.
 *
 * Holds: for each item in use exactly one slot names it, and every slot between the one its hash
 * asks for and the one it has is taken (so a search may stop at the first free slot). Removing only
 * leaves a hole in the array; holes are squeezed out when an insertion finds the array full. That
 * is why a walk may remove and must not add. */
#include "base/map.h"

#include "base/mem.h"
#include "base/rand.h"

enum { FIRST_CAPACITY = 8 };

static const size_t largest_max = UINT32_MAX / 8; /* indexes and slot counts fit in 32 bits */

static struct {
    uint64_t word[2];
    bool drawn;
} secret;

void map_set_secret(uint64_t first, uint64_t second)
{
    secret.word[0] = first;
    secret.word[1] = second;
    secret.drawn = true;
}

void map_init(struct map *map, const struct map_options *options)
{
    if (!secret.drawn) {
        rand_secret_bytes(secret.word, sizeof(secret.word));
        secret.drawn = true;
    }
    *map = (struct map){ .options = *options };
    if (map->options.max > largest_max)
        map->options.max = largest_max;
    memcpy(map->secret, secret.word, sizeof(map->secret));
}

/* ---- SipHash-2-4 (Aumasson and Bernstein, 2012) ---- */

static uint64_t rotate(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

static uint64_t read_little_endian(const char *bytes, size_t length)
{
    uint64_t word = 0;

    for (size_t i = 0; i < length; i++)
        word |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
    return word;
}

uint64_t map_hash(struct str key, const uint64_t key_secret[2])
{
    uint64_t v[4] = {
        key_secret[0] ^ 0x736f6d6570736575U,
        key_secret[1] ^ 0x646f72616e646f6dU,
        key_secret[0] ^ 0x6c7967656e657261U,
        key_secret[1] ^ 0x7465646279746573U,
    };
    size_t whole = key.len / 8 * 8;

    for (size_t i = 0; i < whole; i += 8)
        sip_word(v, read_little_endian(key.at + i, 8));
    sip_word(v, read_little_endian(key.at + whole, key.len - whole) | (uint64_t)key.len << 56);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- slots ---- */

static size_t slot_mask(const struct map *map)
{
    return map->capacity * 2 - 1;
}

/* The slot that names the key, or the free one where the search ended. The array must exist. */
static size_t find_slot(const struct map *map, struct str key, uint64_t hash)
{
    size_t slot = hash & slot_mask(map);

    for (; map->slots[slot] != 0; slot = (slot + 1) & slot_mask(map)) {
        const struct map_item *item = &map->items[map->slots[slot] - 1];

        if (item->hash == hash && str_eq(item->key, key))
            break;
    }
    return slot;
}

/* The slot that names the key; false when no slot does. */
static bool lookup(const struct map *map, struct str key, size_t *ret_slot)
{
    if (map->count == 0)
        return false;

    size_t slot = find_slot(map, key, map_hash(key, map->secret));

    if (map->slots[slot] == 0)
        return false;
    *ret_slot = slot;
    return true;
}

/* Frees a slot, and moves back whoever had to step over it, so that no search is cut short. */
static void vacate_slot(struct map *map, size_t free_slot)
{
    size_t mask = slot_mask(map);

    for (size_t slot = (free_slot + 1) & mask; map->slots[slot] != 0; slot = (slot + 1) & mask) {
        size_t home = map->items[map->slots[slot] - 1].hash & mask;

        if (((slot - home) & mask) >= ((slot - free_slot) & mask)) {
            map->slots[free_slot] = map->slots[slot];
            free_slot = slot;
        }
    }
    map->slots[free_slot] = 0;
}

static void fill_slots(struct map *map)
{
    for (size_t i = 0; i < map->filled; i++) {
        size_t slot = map->items[i].hash & slot_mask(map);

        while (map->slots[slot] != 0)
            slot = (slot + 1) & slot_mask(map);
        map->slots[slot] = (uint32_t)(i + 1);
    }
}

/* Squeezes out the holes and chooses a capacity that leaves at least half of it free. */
static void rebuild(struct map *map)
{
    size_t capacity = FIRST_CAPACITY;

    while (capacity < map->count * 2)
        capacity *= 2;

    struct map_item *items = mem_alloc_array(capacity, sizeof(*items));
    size_t filled = 0;

    map_each (item, map)
        items[filled++] = *item;
    mem_free(map->items);
    mem_free(map->slots);
    map->items = items;
    map->slots = mem_alloc_array(capacity * 2, sizeof(*map->slots));
    map->capacity = capacity;
    map->first = 0;
    map->filled = filled;
    fill_slots(map);
}

/* ---- keys and values ---- */

static struct str keep_key(const struct map *map, struct str key)
{
    if (map->options.borrow_keys)
        return (struct str){ key.at ? key.at : "", key.len };
    return (struct str){ mem_strndup(key.at, key.len), key.len };
}

static void drop_key(const struct map *map, struct str key)
{
    if (!map->options.borrow_keys)
        mem_free((char *)key.at);
}

static void drop_value(const struct map *map, void *value)
{
    if (map->options.free_value)
        map->options.free_value(value);
}

static void replace(struct map *map, struct map_item *item, struct str key, void *value)
{
    void *old = item->value;

    if (map->options.borrow_keys)
        item->key = key; /* the old key may go with the old value */
    item->value = value;
    if (old != value)
        drop_value(map, old);
}

int map_put(struct map *map, struct str key, void *value, struct err *err)
{
    size_t slot;

    if (lookup(map, key, &slot)) {
        replace(map, &map->items[map->slots[slot] - 1], key, value);
        return 0;
    }
    if (map->count >= map->options.max)
        return err_set(err, ERR_TOO_BIG, "more than %zu entries", map->options.max);
    if (map->filled == map->capacity)
        rebuild(map);

    uint64_t hash = map_hash(key, map->secret);

    map->items[map->filled] =
        (struct map_item){ .key = keep_key(map, key), .value = value, .hash = hash };
    map->filled++;
    map->count++;
    map->slots[find_slot(map, key, hash)] = (uint32_t)map->filled;
    return 0;
}

void *map_get(const struct map *map, struct str key)
{
    size_t slot;

    return lookup(map, key, &slot) ? map->items[map->slots[slot] - 1].value : NULL;
}

bool map_has(const struct map *map, struct str key)
{
    size_t slot;

    return lookup(map, key, &slot);
}

/* Takes the item out and returns its value; `key` may live in that value. */
static void *detach(struct map *map, size_t slot)
{
    struct map_item *item = &map->items[map->slots[slot] - 1];
    void *value = item->value;

    vacate_slot(map, slot);
    drop_key(map, item->key);
    *item = (struct map_item){ .value = NULL };
    map->count--;
    if (map->count == 0)
        map->first = map->filled = 0;
    while (map->first < map->filled && !map->items[map->first].key.at)
        map->first++; /* so that taking the first item again and again stays cheap */
    return value;
}

void *map_take(struct map *map, struct str key)
{
    size_t slot;

    return lookup(map, key, &slot) ? detach(map, slot) : NULL;
}

bool map_remove(struct map *map, struct str key)
{
    size_t slot;

    if (!lookup(map, key, &slot))
        return false;
    drop_value(map, detach(map, slot));
    return true;
}

/* ---- the whole map ---- */

struct map_item *map_after(const struct map *map, const struct map_item *item)
{
    for (size_t i = (size_t)(item - map->items) + 1; i < map->filled; i++)
        if (map->items[i].key.at)
            return &map->items[i];
    return NULL;
}

struct map_item *map_first(const struct map *map)
{
    return map->count > 0 ? &map->items[map->first] : NULL;
}

void map_clear(struct map *map)
{
    struct map old = *map;

    /* Emptied before the first value is freed: a destructor that looks finds a sound map. */
    map->items = NULL;
    map->slots = NULL;
    map->count = map->first = map->filled = map->capacity = 0;
    map_each (item, &old) {
        drop_key(&old, item->key);
        drop_value(&old, item->value);
    }
    mem_free(old.items);
    mem_free(old.slots);
}

void map_done(struct map *map)
{
    if (map)
        map_clear(map);
}
