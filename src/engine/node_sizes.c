/* node_sizes.c - the time of the first difference in size, by the name of the node.
 *
 * Holds: more than MAX_NODES are not remembered. */
#include "engine/node_sizes.h"

#include "base/map.h"
#include "base/mem.h"

enum { MAX_NODES = 1 << 17 }; /* twice as many as Slurm can have */

struct node_sizes {
    struct map nodes; /* int64_t */
};

struct node_sizes *node_sizes_new(void)
{
    struct map_options options = { .max = MAX_NODES, .free_value = mem_free };
    struct node_sizes *sizes = mem_alloc(sizeof(*sizes));

    map_init(&sizes->nodes, &options);
    return sizes;
}

void node_sizes_free(struct node_sizes *sizes)
{
    if (!sizes)
        return;
    map_done(&sizes->nodes);
    mem_free(sizes);
}

void node_sizes_record(struct node_sizes *sizes, struct str node, bool differs, int64_t now_us)
{
    int64_t *since_us;

    if (!differs) {
        (void)map_remove(&sizes->nodes, node);
        return;
    }
    if (map_has(&sizes->nodes, node))
        return;
    since_us = mem_alloc(sizeof(*since_us));
    *since_us = now_us;
    if (map_put(&sizes->nodes, node, since_us, NULL) < 0)
        mem_free(since_us);
}

int64_t node_sizes_since(const struct node_sizes *sizes, struct str node)
{
    const int64_t *since_us = sizes ? map_get(&sizes->nodes, node) : NULL;

    return since_us ? *since_us : 0;
}
