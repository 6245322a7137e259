/* volumes.c - has volumes ready where a pod will run.
 *
 * A claim that waits for its first consumer is given the annotation by which its provisioner learns
 * the node. Where nobody makes volumes, one that is free on the node is told which claim it is for,
 * as Kubernetes' scheduler does it; the volume controller then binds the two. The pod is bound when
 * its claims are. When that takes longer than Kubernetes' own scheduler waits, the job is given
 * back.
 *
 * Holds: a claim is written only while it names another node, or none; a volume only while it is
 * free, in the version that was seen to be, and what is written shows at once to all who look for a
 * free one. */
#include "bridge/run/volumes.h"

#define SELECTED_NODE "volume.kubernetes.io/selected-node"
#define BOUND_BY_US   "pv.kubernetes.io/bound-by-controller"

static void select_node(struct plan *plan, const struct kube_object *claim, const char *node)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build);
    struct json_mut *metadata = json_put_object(build, patch, "metadata");

    json_put_text(build, metadata, "uid", claim->uid);
    json_put_text(build, json_put_object(build, metadata, "annotations"), SELECTED_NODE, node);
    plan_merge_patch(plan, NULL, &kube_volume_claims, claim->ns, claim->name, NULL, claim->version,
                     patch);
}

static void take_volume(const struct bridge_world *world, struct plan *plan,
                        const struct kube_object *volume, const struct kube_object *claim)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build);
    struct json_mut *metadata = json_put_object(build, patch, "metadata");
    struct json_mut *claim_ref = json_object_at(build, patch, "spec", "claimRef");

    json_put_text(build, metadata, "uid", volume->uid);
    json_put_text(build, json_put_object(build, metadata, "annotations"), BOUND_BY_US, "yes");
    json_put_text(build, claim_ref, "apiVersion", kube_volume_claims.version);
    json_put_text(build, claim_ref, "kind", kube_volume_claims.kind);
    json_put_text(build, claim_ref, "namespace", claim->ns);
    json_put_text(build, claim_ref, "name", claim->name);
    json_put_text(build, claim_ref, "uid", claim->uid);
    plan_merge_patch(plan, world->volumes, &kube_volumes, NULL, volume->name, NULL, volume->version,
                     patch);
}

static unsigned most_claims(const struct unit *unit, const struct assignments *assigned)
{
    unsigned count = 0;

    for (unsigned i = 0; i < assigned->count; i++) {
        const struct kube_pod *pod = unit->members[assigned->at[i].member].pod;

        count += pod->rare ? pod->rare->volume_claim_count : 0;
    }
    return count;
}

/* Of one that is not bound: there is room for one. */
static const char *words_about(struct arena *arena, const struct filter_claim *open)
{
    if (!open->claim)
        return arena_printf(arena, "persistentvolumeclaim \"%s\" is not there", open->name);
    if (open->volume)
        return arena_printf(arena,
                            "persistentvolumeclaim \"%s\" is being bound to persistentvolume "
                            "\"%s\"",
                            open->name, open->volume->name);
    if (open->step == FILTER_NO_VOLUME)
        return arena_printf(arena, "persistentvolumeclaim \"%s\" finds no free volume on its node",
                            open->name);
    return arena_printf(arena,
                        "its volumes are being made on its node: persistentvolumeclaim \"%s\" "
                        "waits",
                        open->name);
}

/* ---- the plan ---- */

struct open_claims volumes_look(const struct bridge_world *world, const struct unit *unit,
                                const struct assignments *assigned, struct arena *arena)
{
    unsigned max = world->filter ? most_claims(unit, assigned) : 0;
    struct open_claims open = { .at = arena_alloc_array(arena, max + 1, sizeof(*open.at)),
                                .nodes = arena_alloc_array(arena, max + 1, sizeof(*open.nodes)) };

    for (unsigned i = 0; max > 0 && i < assigned->count; i++) {
        const char *node = assigned->at[i].node->object.name;
        const struct kube_pod *pod = unit->members[assigned->at[i].member].pod;
        unsigned known = open.count;

        open.count = filter_unbound_claims(world->filter, pod, node, open.at, known, max);
        for (unsigned k = known; k < open.count; k++)
            open.nodes[k] = node;
    }
    if (open.count > 0)
        open.why = words_about(arena, &open.at[0]);
    return open;
}

void plan_volumes(const struct bridge_world *world, struct plan *plan,
                  const struct open_claims *open)
{
    for (unsigned i = 0; i < open->count; i++) {
        switch (open->at[i].step) {
        case FILTER_WAIT:
        case FILTER_NO_VOLUME:
            break;
        case FILTER_SELECT_NODE:
            select_node(plan, open->at[i].claim, open->nodes[i]);
            break;
        case FILTER_TAKE_VOLUME:
            take_volume(world, plan, open->at[i].volume, open->at[i].claim);
            break;
        }
    }
}
