/* pod_owner.c - whose annotations count for one pod. */
#include "bridge/unit/pod_owner.h"

void pod_owner_find(const struct bridge_world *world, const struct kube_pod *pod,
                    struct arena *arena, struct pod_owner *ret_owner)
{
    const struct member member = { .pod = pod };
    struct unit unit = { .kind = world_has_group(world, pod) ? group_of(pod).kind : GROUP_NONE,
                         .pod = pod,
                         .members = &member,
                         .member_count = 1 };

    unit_find_owner(world, arena, &unit);
    *ret_owner = (struct pod_owner){ .wanting = unit.owner.wanting };
    if (unit.owner.object)
        ret_owner->objects[ret_owner->count++] = unit.owner.object;
    for (unsigned i = 0; i < unit.owner.more_count; i++)
        ret_owner->objects[ret_owner->count++] = unit.owner.more[i];
}

struct str pod_owner_says(const struct pod_owner *owner, const char *annotation, bool *ret_found)
{
    for (unsigned i = owner->count; i > 0; i--) {
        struct str value =
            kube_pairs_get(&owner->objects[i - 1]->annotations, annotation, ret_found);

        if (*ret_found)
            return value;
    }
    *ret_found = false;
    return STR("");
}
