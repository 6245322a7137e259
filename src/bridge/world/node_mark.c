/* node_mark.c - reads what a node's record in Slurm says of its owner and of its drain.
 *
 * Holds: a drain counts as ours only by its reason. Slurm clears the reason with the drain, and
 * keeps it when the node is also down: so a node that others took out is never drained on top. */
#include "bridge/world/node_mark.h"

#include "bridge/world/names.h"

#include <string.h>

enum { MAX_MARK_MEMORY = 1 << 16, SECOND_US = 1000000 };

#define OUT_OF_SERVICE "node.kubernetes.io/out-of-service"

bool node_is_external(const struct slurm_node *slurm)
{
    return slurm_words_has(&slurm->state, SLURM_NODE_EXTERNAL);
}

bool node_is_out(const struct slurm_node *slurm)
{
    return slurm_words_has(&slurm->state, SLURM_NODE_DRAIN) ||
           slurm_words_has(&slurm->state, SLURM_NODE_DOWN) ||
           slurm_words_has(&slurm->state, SLURM_NODE_FAIL);
}

bool node_is_out_by_us(const struct slurm_node *slurm)
{
    return slurm_words_has(&slurm->state, SLURM_NODE_DRAIN) &&
           str_starts(str_of(slurm->reason), STR(BRIDGE_REASON));
}

/* ---- whose it is ---- */

static const char *text_of(const struct json *mark, const char *key, struct arena *arena)
{
    struct str text = json_str(json_get(mark, key));

    return arena_strndup(arena, text.at, text.len);
}

enum node_owner node_owner(const struct slurm_node *slurm, const struct slurm_owner *we,
                           struct arena *arena, const char **ret_node, const char **ret_whose)
{
    auto_json_doc struct json_doc *doc = NULL;
    const char *cluster, *release;

    if (slurm->extra[0] == '{')
        (void)json_parse(str_of(slurm->extra), NODE_MAX_MARK, &doc, NULL);
    *ret_node = text_of(json_root(doc), "node", arena);
    if (!**ret_node)
        *ret_node = slurm->name;
    cluster = text_of(json_root(doc), "cluster", arena);
    release = text_of(json_root(doc), "release", arena);
    *ret_whose = "";
    if (cluster[0] && !str_is(we->cluster, cluster)) {
        *ret_whose = arena_printf(arena, "Kubernetes cluster %s", cluster);
        return NODE_OTHERS;
    }
    if (!cluster[0] || !release[0])
        return NODE_UNMARKED;
    if (str_is(we->release, release))
        return NODE_OURS;
    *ret_whose = arena_printf(arena, "the bridge %s of this cluster", release);
    return NODE_OTHERS;
}

bool node_is_of_others(const struct slurm_node *slurm, const struct slurm_owner *we)
{
    const char *kube_name, *whose;
    auto_arena struct arena arena;

    arena_init(&arena, MAX_MARK_MEMORY);
    return node_is_external(slurm) &&
           node_owner(slurm, we, &arena, &kube_name, &whose) == NODE_OTHERS;
}

bool node_is_made_for(const struct slurm_node *slurm, const struct slurm_owner *we,
                      const char *kube_name)
{
    const char *marked_node, *whose;
    auto_arena struct arena arena;

    arena_init(&arena, MAX_MARK_MEMORY);
    if (strcmp(slurm->name, kube_name) != 0 && !strstr(slurm->extra, kube_name))
        return false; /* the usual case costs no parsing */
    return node_is_external(slurm) &&
           node_owner(slurm, we, &arena, &marked_node, &whose) == NODE_OURS &&
           strcmp(marked_node, kube_name) == 0;
}

bool node_is_inherited(const struct slurm_node *slurm)
{
    auto_json_doc struct json_doc *doc = NULL;

    if (slurm->extra[0] == '{')
        (void)json_parse(str_of(slurm->extra), NODE_MAX_MARK, &doc, NULL);
    return json_bool_or(json_get(json_root(doc), "inherited"), false);
}

/* A taint without a value is nobody's. */
const char *node_claimed_by(const struct bridge_world *world, const struct kube_node *node)
{
    for (unsigned i = 0; i < node->taint_count; i++)
        if (node->taints[i].effect == KUBE_NO_EXECUTE &&
            strcmp(node->taints[i].key, BRIDGE_TAINT) == 0 && node->taints[i].value[0] &&
            strcmp(node->taints[i].value, world->config->scheduler_name) != 0)
            return node->taints[i].value;
    return "";
}

/* ---- fenced: nothing can run there any more ----
 * What is not known does not count: an unsynced cache, a suspected slurmctld, a condition without a
 * time. */

bool node_is_fenced(const struct bridge_world *world, const char *kube_name)
{
    const struct kube_object *object = kube_cache_get(world->nodes, "", kube_name);
    int64_t after_us = world->config->fence_after_s * SECOND_US;
    const struct slurm_node *slurm;
    const struct kube_node *node;

    if (!kube_name[0] || !kube_cache_is_synced(world->nodes))
        return false;
    if (!object)
        return true;
    node = kube_node_of(object);
    if (kube_node_has_taint(node, OUT_OF_SERVICE))
        return true;
    /* By the node's own clock: whoever configures the time sees that it is longer than clocks
     * differ. */
    if (after_us <= 0 || node->ready || node->ready_since_us <= 0 ||
        world->facts.wall_us - node->ready_since_us < after_us)
        return false;
    if (!world->facts.slurm_synced || world->facts.is_suspicious)
        return false;
    slurm = world_slurm_node(world, str_of(world_record_name(world, node)));
    return slurm && node_is_out(slurm);
}
