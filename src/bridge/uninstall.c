/* uninstall.c - whether anything of a bridge that is being removed is left. */
#include "bridge/nodes/node_show.h"
#include "bridge/nodes/node_state.h"
#include "bridge/unit/unit.h"
#include "bridge/world/names.h"
#include "slurm/submit.h"

static size_t count_held_pods(const struct bridge_world *world)
{
    struct kube_cache_walk walk = kube_cache_walk(world->pods);
    const struct kube_object *pod;
    size_t count = 0;

    while ((pod = kube_cache_next(&walk)) != NULL)
        count += kube_object_has_finalizer(pod, BRIDGE_FINALIZER);
    return count;
}

static size_t count_live_jobs(const struct bridge_world *world)
{
    struct slurm_cache_walk walk = slurm_cache_walk(world->slurm_jobs);
    const struct slurm_object *object;
    size_t count = 0;

    while ((object = slurm_cache_next(&walk)) != NULL) {
        auto_buf struct buf key;
        unsigned attempt;

        buf_init(&key, SLURM_MAX_KEY);
        count += job_phase(slurm_job_of(object)) != JOB_ENDED &&
                 world_job_key(world, slurm_job_of(object), &key, &attempt);
    }
    return count;
}

/* Nodes of ours in Slurm, and Kubernetes nodes with our taint. */
static size_t count_nodes(const struct bridge_world *world)
{
    struct slurm_cache_walk walk = slurm_cache_walk(world->slurm_nodes);
    struct kube_cache_walk kube_walk = kube_cache_walk(world->nodes);
    const struct slurm_object *object;
    const struct kube_object *node;
    size_t count = 0;

    while ((object = slurm_cache_next(&walk)) != NULL) {
        const char *kube_name, *whose;
        auto_arena struct arena arena;

        arena_init(&arena, 1u << 20);
        count += node_is_external(slurm_node_of(object)) &&
                 node_owner(slurm_node_of(object), world->owner, &arena, &kube_name, &whose) ==
                     NODE_OURS;
    }
    while ((node = kube_cache_next(&kube_walk)) != NULL)
        count += node_shows_taint(world, kube_node_of(node));
    return count;
}

bool world_holds_nothing(const struct bridge_world *world, struct buf *ret_what_is_left)
{
    size_t pods = count_held_pods(world), jobs = count_live_jobs(world), nodes = count_nodes(world);

    buf_printf(ret_what_is_left, "%zu pods with our finalizer, %zu jobs, %zu nodes", pods, jobs,
               nodes);
    return pods == 0 && jobs == 0 && nodes == 0;
}
