/* node_fence.c - whether nothing can run on a node any more.
 *
 * Holds: what is not known does not count: an unsynced cache, a suspected slurmctld, a condition
 * without a time. */
#include "bridge/node_state.h"
#include "bridge/nodes.h"

enum { SECOND_US = 1000000 };

#define OUT_OF_SERVICE "node.kubernetes.io/out-of-service"

/* By the node's own clock: so long that a difference of clocks does not matter is up to whoever
 * configures it. */
static bool is_long_not_ready(const struct bridge_world *world, const struct kube_node *node)
{
    int64_t after_us = world->config->fence_after_s * SECOND_US;

    return after_us > 0 && !node->ready && node->ready_since_us > 0 &&
           world->facts.wall_us - node->ready_since_us >= after_us;
}

static bool is_known_out(const struct bridge_world *world, const struct kube_node *node)
{
    const struct slurm_node *slurm =
        world_slurm_node(world, str_of(world_record_name(world, node)));

    return world->facts.slurm_synced && !world->facts.is_suspicious && slurm && node_is_out(slurm);
}

bool node_is_fenced(const struct bridge_world *world, const char *kube_name)
{
    const struct kube_object *object = kube_cache_get(world->nodes, "", kube_name);

    if (!kube_name[0] || !kube_cache_is_synced(world->nodes))
        return false;
    if (!object)
        return true;
    return kube_node_has_taint(kube_node_of(object), OUT_OF_SERVICE) ||
           (is_long_not_ready(world, kube_node_of(object)) &&
            is_known_out(world, kube_node_of(object)));
}
