/* heap.h - a queue by priority through nodes that live inside their owners: timers, delayed keys.
 *
 * The smallest comes out first; among equals, the one pushed first. A node that is all zero counts
 * as not queued. The heap owns nothing but its own array. */
#ifndef SLINC_BASE_HEAP_H
#define SLINC_BASE_HEAP_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_node {
    size_t place;      /* index in the array plus one; 0 when not queued */
    uint64_t sequence; /* when it was pushed, for order among equals */
};

/* Negative when a comes before b, 0 when they are equal. */
typedef int heap_compare(const struct heap_node *a, const struct heap_node *b);

struct heap {
    heap_compare *compare;
    struct heap_node **nodes;
    size_t count, capacity, max;
    uint64_t next_sequence;
};

void heap_init(struct heap *heap, heap_compare *compare, size_t max);
void heap_done(struct heap *heap); /* nodes still queued become not queued */

/* -ERR_TOO_BIG at the maximum, -ERR_EXISTS when the node is queued already. */
int heap_push(struct heap *heap, struct heap_node *node, struct err *err);

struct heap_node *heap_first(const struct heap *heap); /* NULL when empty */
struct heap_node *heap_pop(struct heap *heap);         /* NULL when empty */

void heap_remove(struct heap *heap, struct heap_node *node); /* does nothing when not queued */

/* To be called after the node's key was changed, before anything else is asked of the heap. Counts
 * as a new push: it goes behind its equals. Does nothing when not queued. */
void heap_update(struct heap *heap, struct heap_node *node);

bool heap_has(const struct heap_node *node);

/* The owner of a node: heap_item(node, struct timer, queued). */
#define heap_item(node, type, member) ((type *)(void *)((char *)(node) - offsetof(type, member)))

#endif
