/* heap.c - a binary heap in an array of pointers.
 *
 * Holds: nodes[i] comes before nodes[2i + 1] and nodes[2i + 2]; nodes[i]->place is i + 1. */
#include "base/heap.h"

#include "base/mem.h"

enum { FIRST_CAPACITY = 16 };

void heap_init(struct heap *heap, heap_compare *compare, size_t max)
{
    *heap = (struct heap){ .compare = compare, .max = max };
}

void heap_done(struct heap *heap)
{
    if (!heap)
        return;
    for (size_t i = 0; i < heap->count; i++)
        heap->nodes[i]->place = 0;
    mem_free(heap->nodes);
    heap->nodes = NULL;
    heap->count = heap->capacity = 0;
}

bool heap_has(const struct heap_node *node)
{
    return node->place != 0;
}

static bool comes_before(const struct heap *heap, size_t i, size_t j)
{
    const struct heap_node *a = heap->nodes[i], *b = heap->nodes[j];
    int order = heap->compare(a, b);

    return order != 0 ? order < 0 : a->sequence < b->sequence;
}

static void place(struct heap *heap, struct heap_node *node, size_t i)
{
    heap->nodes[i] = node;
    node->place = i + 1;
}

static void swap(struct heap *heap, size_t i, size_t j)
{
    struct heap_node *node = heap->nodes[i];

    place(heap, heap->nodes[j], i);
    place(heap, node, j);
}

static void sift_up(struct heap *heap, size_t i)
{
    while (i > 0 && comes_before(heap, i, (i - 1) / 2)) {
        swap(heap, i, (i - 1) / 2);
        i = (i - 1) / 2;
    }
}

static void sift_down(struct heap *heap, size_t i)
{
    for (;;) {
        size_t child = 2 * i + 1, least = i;

        if (child < heap->count && comes_before(heap, child, least))
            least = child;
        if (child + 1 < heap->count && comes_before(heap, child + 1, least))
            least = child + 1;
        if (least == i)
            return;
        swap(heap, i, least);
        i = least;
    }
}

/* The node at i may be out of order in either direction; at most one of the two moves it. */
static void settle(struct heap *heap, size_t i)
{
    struct heap_node *node = heap->nodes[i];

    sift_up(heap, i);
    sift_down(heap, node->place - 1);
}

static void grow(struct heap *heap)
{
    size_t capacity = heap->capacity > 0 ? heap->capacity * 2 : FIRST_CAPACITY;

    heap->nodes = mem_resize_array(heap->nodes, capacity, sizeof(*heap->nodes));
    heap->capacity = capacity;
}

int heap_push(struct heap *heap, struct heap_node *node, struct err *err)
{
    if (heap_has(node))
        return err_set(err, ERR_EXISTS, "the node is queued already");
    if (heap->count >= heap->max)
        return err_set(err, ERR_TOO_BIG, "more than %zu nodes queued", heap->max);
    if (heap->count == heap->capacity)
        grow(heap);
    node->sequence = heap->next_sequence++;
    place(heap, node, heap->count++);
    sift_up(heap, heap->count - 1);
    return 0;
}

struct heap_node *heap_first(const struct heap *heap)
{
    return heap->count > 0 ? heap->nodes[0] : NULL;
}

struct heap_node *heap_pop(struct heap *heap)
{
    struct heap_node *node = heap_first(heap);

    if (node)
        heap_remove(heap, node);
    return node;
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
    if (!heap_has(node))
        return;

    size_t i = node->place - 1;
    struct heap_node *last = heap->nodes[--heap->count];

    node->place = 0;
    if (last == node)
        return;
    place(heap, last, i);
    settle(heap, i);
}

void heap_update(struct heap *heap, struct heap_node *node)
{
    if (!heap_has(node))
        return;
    node->sequence = heap->next_sequence++;
    settle(heap, node->place - 1);
}
