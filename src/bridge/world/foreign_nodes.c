/* foreign_nodes.c - a list for each set of partitions that was asked about, kept until a node
 * changes.
 *
 * Holds: a list is whole or empty; half a list would mean other nodes to Slurm. */
#include "bridge/world/foreign_nodes.h"

#include "base/map.h"
#include "base/mem.h"
#include "bridge/world/node_mark.h"
#include "bridge/world/world.h"
#include "codec/hostlist.h"

#include <string.h>

enum { MAX_LISTS = 1024 }; /* pods name partitions: what they make up costs time, not memory */

struct foreign_nodes {
    const struct slurm_cache *slurm_nodes;
    const struct kube_cache *nodes;
    int by_slurm_name;
    const struct slurm_owner *we;
    struct map lists; /* texts by partitions */
};

/* ---- what changes a list ---- */

static void on_slurm_node(void *context, const struct slurm_object *old,
                          const struct slurm_object *next)
{
    struct foreign_nodes *foreign_nodes = context;

    if (!old || !next ||
        strcmp(slurm_node_of(old)->partitions, slurm_node_of(next)->partitions) != 0 ||
        strcmp(slurm_node_of(old)->extra, slurm_node_of(next)->extra) != 0)
        map_clear(&foreign_nodes->lists);
}

static void on_node(void *context, const struct kube_object *old, const struct kube_object *next)
{
    struct foreign_nodes *foreign_nodes = context;

    if (!old || !next ||
        strcmp(world_slurm_name(kube_node_of(old)), world_slurm_name(kube_node_of(next))) != 0)
        map_clear(&foreign_nodes->lists);
}

struct foreign_nodes *foreign_nodes_new(struct slurm_cache *slurm_nodes, struct kube_cache *nodes,
                                        int by_slurm_name, const struct slurm_owner *we)
{
    struct map_options options = { .max = MAX_LISTS, .free_value = mem_free };
    struct foreign_nodes *foreign_nodes = mem_alloc(sizeof(*foreign_nodes));

    foreign_nodes->slurm_nodes = slurm_nodes;
    foreign_nodes->nodes = nodes;
    foreign_nodes->by_slurm_name = by_slurm_name;
    foreign_nodes->we = we;
    map_init(&foreign_nodes->lists, &options);
    slurm_cache_listen(slurm_nodes, on_slurm_node, foreign_nodes);
    kube_cache_listen(nodes, on_node, foreign_nodes);
    return foreign_nodes;
}

void foreign_nodes_free(struct foreign_nodes *foreign_nodes)
{
    if (!foreign_nodes)
        return;
    map_done(&foreign_nodes->lists);
    mem_free(foreign_nodes);
}

/* ---- a list ---- */

static bool is_in(const struct slurm_node *node, const char *partitions)
{
    struct str wanted = str_of(partitions), one;

    while (str_next(&wanted, ',', &one))
        if (slurm_partitions_have(node->partitions, one))
            return true;
    return !partitions[0];
}

static bool is_stranger(const struct foreign_nodes *foreign_nodes, const struct slurm_object *node)
{
    struct str name = str_of(node->key);
    struct kube_index_walk walk =
        kube_cache_by(foreign_nodes->nodes, foreign_nodes->by_slurm_name, name);

    return (!kube_index_next(&walk) || node_is_of_others(slurm_node_of(node), foreign_nodes->we)) &&
           hostlist_check_name(name, NULL) == 0;
}

static char *find(const struct foreign_nodes *foreign_nodes, const char *partitions)
{
    struct slurm_cache_walk walk = slurm_cache_walk(foreign_nodes->slurm_nodes);
    const struct slurm_object *node;
    auto_free struct str *names =
        mem_alloc_array(slurm_cache_count(foreign_nodes->slurm_nodes) + 1, sizeof(*names));
    auto_buf struct buf list;
    size_t count = 0;

    buf_init(&list, HOSTLIST_MAX_TEXT);
    while ((node = slurm_cache_next(&walk)) != NULL)
        if (is_in(slurm_node_of(node), partitions) && is_stranger(foreign_nodes, node))
            names[count++] = str_of(node->key);
    if (count > 0 && (hostlist_fold(names, count, &list, NULL) < 0 || list.overflowed))
        buf_clear(&list);
    return mem_strdup(buf_text(&list));
}

const char *foreign_nodes_in(struct foreign_nodes *foreign_nodes, const char *partitions)
{
    struct str key = str_of(partitions);
    char *list = map_get(&foreign_nodes->lists, key);

    if (list)
        return list;
    if (foreign_nodes->lists.count == MAX_LISTS)
        map_clear(&foreign_nodes->lists);
    list = find(foreign_nodes, partitions);
    (void)map_put(&foreign_nodes->lists, key, list, NULL); /* there is room */
    return list;
}
