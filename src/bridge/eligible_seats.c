/* eligible_seats.c - pods that are to be bound together.
 *
 * Rules count pods that are bound. Of pods that go to their nodes side by side each counts for the
 * next as if it were there: it has a seat.
 *
 * Holds   seats are taken and left within one plan, and no cache changes meanwhile; when all have
 *         left, every count is what it was. Nobody is told of either. */
#include "bridge/eligible_private.h"

#include "base/mem.h"

enum { SEATS_AT_FIRST = 16 };

bool eligible_minds_others(const struct kube_pod *pod)
{
    const struct kube_rare *rare = pod->rare;

    return rare && (rare->pod_affinity[0] || rare->pod_anti_affinity[0] || rare->spread[0]);
}

void eligible_seat(struct eligible *eligible, const struct kube_pod *pod,
                   const struct kube_node *node)
{
    int place = eligible_place_of(eligible, node->object.name);

    if (place == ELIGIBLE_NO_PLACE)
        return;
    if (eligible->seat_count == eligible->seat_room) {
        eligible->seat_room = eligible->seat_room > 0 ? 2 * eligible->seat_room : SEATS_AT_FIRST;
        eligible->seats =
            mem_resize_array(eligible->seats, eligible->seat_room, sizeof(*eligible->seats));
    }
    eligible->seats[eligible->seat_count++] = (struct eligible_seat){ pod, place };
    eligible_pods_seat(eligible, place, pod, 1);
}

void eligible_leave_seats(struct eligible *eligible)
{
    while (eligible->seat_count > 0) {
        const struct eligible_seat *seat = &eligible->seats[--eligible->seat_count];

        eligible_pods_seat(eligible, seat->place, seat->pod, -1);
    }
}

void eligible_seats_done(struct eligible *eligible)
{
    mem_free(eligible->seats);
}

static bool is_by_pods(unsigned code)
{
    return code == ELIGIBLE_SPREAD || code == ELIGIBLE_ATTRACTED || code == ELIGIBLE_AVOIDS ||
           code == ELIGIBLE_REPELLED;
}

enum eligible_objection eligible_objection(struct eligible *eligible, const struct kube_pod *pod,
                                           const struct kube_node *node)
{
    const struct eligible_shape *shape = eligible_shape_get(eligible, pod);
    int place = eligible_place_of(eligible, node->object.name);
    unsigned code = place == ELIGIBLE_NO_PLACE ? ELIGIBLE_FREE_SLOT : shape->verdict[place].code;

    if (code == ELIGIBLE_FITS)
        return ELIGIBLE_NO_OBJECTION;
    return is_by_pods(code) ? ELIGIBLE_PODS_OBJECT : ELIGIBLE_NODE_OBJECTS;
}
