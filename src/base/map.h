/* map.h - values found by text, walked in the order in which they were put in.
 *
 * Keys may come from outside: the hash is keyed with a secret, so nobody can choose keys that
 * collide. The secret is never visible in behaviour: the order of a walk is the order of first
 * insertion, whatever the hash, so that a simulated run repeats byte for byte. */
#ifndef SLINC_BASE_MAP_H
#define SLINC_BASE_MAP_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_item {
    struct str key; /* at is NULL in the hole that a removed item leaves */
    void *value;
    uint64_t hash;
};

struct map_options {
    size_t max;                      /* entries; putting in more fails */
    bool borrow_keys;                /* else copied; borrowed ones usually live in the value */
    void (*free_value)(void *value); /* for replaced and removed values; NULL when not owned */
};

struct map {
    struct map_options options;
    struct map_item *items; /* in order of insertion, with holes */
    uint32_t *slots;        /* by hash: index into items plus one, 0 when free */
    size_t count;           /* items without the holes: what the owner may read */
    size_t first, filled;   /* items in use lie in [first, filled) */
    size_t capacity;        /* of items; a power of two, and there are twice as many slots */
    uint64_t secret[2];
};

void map_init(struct map *map, const struct map_options *options);
void map_done(struct map *map);
void map_clear(struct map *map);

/* Adds, or replaces: the old value is freed, the place in the order stays. -ERR_TOO_BIG at the
 * maximum; the value then still belongs to the caller. */
int map_put(struct map *map, struct str key, void *value, struct err *err);

void *map_get(const struct map *map, struct str key); /* NULL when absent */
bool map_has(const struct map *map, struct str key);  /* for maps that hold NULL values */
bool map_remove(struct map *map, struct str key);     /* frees the value; false when absent */
void *map_take(struct map *map, struct str key);      /* removes and hands over the value */

/* `map_each(item, &map) { use(item->key, item->value); }`. The body may remove any item, the
 * current one too, but must not add; item->value may be assigned. */
#define map_each(item, map)                                                                        \
    for (struct map_item *item = map_first(map); item; item = map_after(map, item))

struct map_item *map_first(const struct map *map); /* NULL when empty */
struct map_item *map_after(const struct map *map, const struct map_item *item);

/* Fixes the secret of all maps made from now on. Without it the first map draws one at random. */
void map_set_secret(uint64_t first, uint64_t second);

uint64_t map_hash(struct str key, const uint64_t secret[2]); /* SipHash-2-4 */

#define auto_map __attribute__((cleanup(map_done)))

#endif
