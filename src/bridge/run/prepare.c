/* prepare.c - what a pod must have before it is bound: our finalizer, and a toleration of the taint
 * of our nodes.
 *
 * Admission has set them where the webhook is on. Elsewhere both go in one write. */
#include "bridge/run/release.h"

#include "bridge/world/names.h"
#include "codec/patch.h"

static bool tolerates_us(const struct bridge_world *world, const struct kube_pod *pod)
{
    for (unsigned i = 0; i < pod->toleration_count; i++) {
        const struct kube_toleration *has = &pod->tolerations[i];
        bool key = !has->key[0] ? has->exists : str_is(str_of(has->key), BRIDGE_TAINT);
        bool value = has->exists || str_is(str_of(has->value), world->config->scheduler_name);

        if (key && value && !has->other && has->seconds < 0 &&
            (has->effect == KUBE_EFFECT_ANY || has->effect == KUBE_NO_EXECUTE))
            return true;
    }
    return false;
}

static struct json_mut *our_toleration(struct json_build *build, const char *scheduler)
{
    struct json_mut *toleration = json_new_object(build);

    json_put_text(build, toleration, "key", BRIDGE_TAINT);
    json_put_text(build, toleration, "operator", "Equal");
    json_put_text(build, toleration, "value", scheduler);
    json_put_text(build, toleration, "effect", "NoExecute");
    return toleration;
}

static bool lacks(const struct bridge_world *world, const struct member *member)
{
    return (member->stage == POD_WAITS || member->stage == POD_BOUND) &&
           !(kube_object_has_finalizer(&member->pod->object, BRIDGE_FINALIZER) &&
             tolerates_us(world, member->pod));
}

bool unit_is_prepared(const struct bridge_world *world, const struct unit *unit)
{
    for (unsigned i = 0; i < unit->member_count; i++)
        if (lacks(world, &unit->members[i]))
            return false;
    return true;
}

/* A list that we make where there was none would take the place of one that others have made since:
 * so only for the version seen. */
static void prepare_pod(const struct bridge_world *world, const struct kube_pod *pod,
                        struct plan *plan)
{
    bool held = kube_object_has_finalizer(&pod->object, BRIDGE_FINALIZER);
    bool tolerant = tolerates_us(world, pod);
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *operations = json_new_array(build);

    patch_op(build, operations, "test", STR("/metadata/uid"),
             json_new_str(build, str_of(pod->object.uid)));
    if ((!held && pod->object.finalizer_count == 0) || (!tolerant && pod->toleration_count == 0))
        patch_op(build, operations, "test", STR("/metadata/resourceVersion"),
                 json_new_str(build, str_of(pod->object.version)));
    if (!held)
        patch_append(build, operations, STR("/metadata/finalizers"), pod->object.finalizer_count,
                     json_new_str(build, STR(BRIDGE_FINALIZER)));
    if (!tolerant)
        patch_append(build, operations, STR("/spec/tolerations"), pod->toleration_count,
                     our_toleration(build, world->config->scheduler_name));
    plan_json_patch(plan, world->pods, &kube_pods, pod->object.ns, pod->object.name, NULL,
                    operations, NULL);
}

void plan_prepare(const struct bridge_world *world, const struct unit *unit, struct plan *plan)
{
    for (unsigned i = 0; i < unit->member_count && plan_has_room(plan); i++)
        if (lacks(world, &unit->members[i]))
            prepare_pod(world, unit->members[i].pod, plan);
}
