/* eligible_reserve.c - pods that are to be bound together.
 *
 * Rules count pods that are bound. Of pods that go to their nodes side by side each counts for the
 * next as if it were there: it is reserved.
 *
 * Holds   pods are reserved and unreserved within one plan, and no cache changes meanwhile; when
 * all have left, every count is what it was. Nobody is told of either. */
#include "bridge/eligible_private.h"

#include "base/mem.h"

enum { RESERVED_AT_FIRST = 16 };

bool eligible_minds_others(const struct kube_pod *pod)
{
    const struct kube_rare *rare = pod->rare;

    return rare && (rare->pod_affinity[0] || rare->pod_anti_affinity[0] || rare->spread[0]);
}

void eligible_reserve(struct eligible *eligible, const struct kube_pod *pod,
                      const struct kube_node *node)
{
    int place = eligible_place_of(eligible, node->object.name);

    if (place == ELIGIBLE_NO_PLACE)
        return;
    if (eligible->reserved_count == eligible->reserved_room) {
        eligible->reserved_room =
            eligible->reserved_room > 0 ? 2 * eligible->reserved_room : RESERVED_AT_FIRST;
        eligible->reserved = mem_resize_array(eligible->reserved, eligible->reserved_room,
                                              sizeof(*eligible->reserved));
    }
    eligible->reserved[eligible->reserved_count++] = (struct eligible_reserved){ pod, place };
    eligible_pods_reserve(eligible, place, pod, 1);
}

void eligible_unreserve_all(struct eligible *eligible)
{
    while (eligible->reserved_count > 0) {
        const struct eligible_reserved *reserved = &eligible->reserved[--eligible->reserved_count];

        eligible_pods_reserve(eligible, reserved->place, reserved->pod, -1);
    }
}

void eligible_reserve_done(struct eligible *eligible)
{
    mem_free(eligible->reserved);
}

static bool is_by_pods(unsigned code)
{
    return code == ELIGIBLE_SPREAD || code == ELIGIBLE_ATTRACTED || code == ELIGIBLE_AVOIDS ||
           code == ELIGIBLE_REPELLED;
}

enum eligible_objection eligible_objection(struct eligible *eligible, const struct kube_pod *pod,
                                           const struct kube_node *node)
{
    const struct pod_class *pod_class = pod_class_get(eligible, pod);
    int place = eligible_place_of(eligible, node->object.name);
    unsigned code = place == ELIGIBLE_NO_PLACE ? ELIGIBLE_FREE_SLOT : pod_class->result[place].code;

    if (code == ELIGIBLE_FITS)
        return ELIGIBLE_NO_OBJECTION;
    return is_by_pods(code) ? ELIGIBLE_PODS_OBJECT : ELIGIBLE_NODE_OBJECTS;
}
