/* unit_end.c - the end of a group is that of its leader, else the worst of its members. */
#include "bridge/unit/unit_end.h"

#include "bridge/world/names.h"

/* Of a LeaderWorkerSet the pod 0, of an MPIJob the launcher. */
static bool is_leader(const struct unit *unit, const struct member *member)
{
    bool found;

    return (unit->kind == GROUP_LWS && member->rank.indexes[GROUP_INDEXES - 1] == 0) ||
           str_is(kube_pairs_get(&member->pod->object.labels, BRIDGE_JOB_ROLE_LABEL, &found),
                  "launcher");
}

/* A pod that was made in the place of one that failed has its indexes, and is beside it. */
static bool was_replaced(const struct unit *unit, unsigned at)
{
    const struct member *member = &unit->members[at];

    for (unsigned i = at > 0 ? at - 1 : 0; i < unit->member_count && i <= at + 1; i++) {
        const struct member *other = &unit->members[i];
        bool has_index = false, is_same = i != at;

        for (unsigned k = 0; k < GROUP_INDEXES; k++) {
            has_index |= member->rank.indexes[k] >= 0;
            is_same &= member->rank.indexes[k] == other->rank.indexes[k];
        }
        if (has_index && is_same && other->pod->object.created_us > member->pod->object.created_us)
            return true;
    }
    return false;
}

struct pod_end unit_end_of(const struct unit *unit, const struct kube_pod **ret_pod)
{
    struct pod_end worst = { .kind = POD_END_COMPLETED, .reason = "" };

    *ret_pod = unit->pod;
    for (unsigned i = 0; i < unit->member_count; i++) {
        const struct member *member = &unit->members[i];
        struct pod_end end = pod_end_of(member->pod);

        if (was_replaced(unit, i))
            continue;
        if (!is_leader(unit, member) && !pod_end_is_worse(&end, &worst))
            continue;
        *ret_pod = member->pod;
        worst = end;
        if (is_leader(unit, member))
            break;
    }
    return worst;
}
