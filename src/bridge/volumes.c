/* volumes.c - has volumes made where a pod will run.
 *
 * A claim that waits for its first consumer is given the annotation by which its provisioner learns
 * the node; the pod is bound when the claim is.
 *
 * Holds: a claim is written only while it names another node, or none. */
#include "bridge/volumes.h"

#include "bridge/tell.h"

enum { MAX_CLAIMS = 64, LOOK_FOR_VOLUME_US = 1000000 };

#define SELECTED_NODE "volume.kubernetes.io/selected-node"

static const struct kube_resource claims = { "", "v1", "persistentvolumeclaims",
                                             "PersistentVolumeClaim", true };

static void select_node(struct plan *plan, const struct kube_object *claim, const char *node)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build);
    struct json_mut *metadata = json_put_object(build, patch, "metadata");

    json_put_text(build, metadata, "uid", claim->uid);
    json_put_text(build, json_put_object(build, metadata, "annotations"), SELECTED_NODE, node);
    plan_merge_patch(plan, NULL, &claims, claim->ns, claim->name, NULL, claim->version, patch);
}

bool plan_volumes(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                  const struct deals *deals)
{
    const struct kube_object *wanted[MAX_CLAIMS];
    bool all_ready = true, ready;

    for (unsigned i = 0; world->eligible && i < deals->count; i++) {
        const char *node = deals->at[i].node->object.name;
        const struct kube_pod *pod = unit->members[deals->at[i].member].pod;
        unsigned count =
            eligible_claims_to_select(world->eligible, pod, node, wanted, MAX_CLAIMS, &ready);

        for (unsigned k = 0; k < count; k++)
            select_node(plan, wanted[k], node);
        all_ready &= ready;
    }
    if (all_ready)
        return false;
    tell_waiting(world, unit, plan, "VolumesNotBound",
                 "job %s runs; its volumes are being made on its node", unit->job->object.key);
    plan_look_again(plan, LOOK_FOR_VOLUME_US);
    return true;
}
