/* nodeset_adopt.c - which pods are of a NodeSet: those of nobody with its labels and a name that it
 * makes are adopted, and those that have lost its labels are released.
 *
 * A pod is known by app.kubernetes.io/name and instance, as the selector says. Its other labels of
 * identity are put back: nodeset_observe.c. */
#include "kube/owners.h"
#include "operator/names.h"
#include "operator/nodeset.h"

static bool has_our_labels(const struct nodeset *nodeset, const struct kube_object *pod)
{
    return str_is(kube_pairs_get(&pod->labels, LABEL_NAME, NULL), "slurmd") &&
           str_is(kube_pairs_get(&pod->labels, LABEL_INSTANCE, NULL), nodeset->sync.object->name);
}

static void plan_owners(struct nodeset *nodeset, const struct kube_object *pod,
                        struct json_mut *owner)
{
    const struct sync *sync = &nodeset->sync;
    struct json_mut *patch =
        json_format(sync->build, "{'metadata':{'uid':%s,'ownerReferences':[%m]}}", pod->uid, owner);

    (void)plan_strategic_patch(sync->plan, sync->world->pods, &kube_pods, pod->ns, pod->name, NULL,
                               NULL, patch, patch);
}

static void adopt(struct nodeset *nodeset)
{
    const struct sync *sync = &nodeset->sync;
    struct kube_index_walk walk =
        kube_cache_by(sync->world->pods, sync->world->pods_by_owner, STR(""));
    const struct kube_object *pod;

    while ((pod = kube_index_next(&walk)) && plan_has_room(sync->plan)) {
        if (pod->deleted_us != 0 || strcmp(pod->ns, sync->object->ns) != 0 ||
            !has_our_labels(nodeset, pod) ||
            (!nodeset->is_daemonset && worker_ordinal(sync->object, pod->name) < 0))
            continue;
        plan_owners(nodeset, pod, kube_owner_reference(sync->build, sync->object));
        nodeset->adopted_count++;
    }
}

int nodeset_plan_owned(struct sync *sync, struct err *err)
{
    struct nodeset *nodeset = nodeset_of(sync);

    (void)err;
    for (size_t i = 0; i < nodeset->count && plan_has_room(sync->plan); i++) {
        const struct kube_object *pod = &nodeset->workers[i].pod->object;

        if (pod->deleted_us == 0 && !has_our_labels(nodeset, pod))
            plan_owners(
                nodeset, pod,
                json_format(sync->build, "{'$patch':'delete','uid':%s}", sync->object->uid));
    }
    adopt(nodeset);
    return 0;
}
