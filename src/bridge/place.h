/* place.h - what to do next for one unit: a pod, or the pods of a group. Read place.c first. */
#ifndef SLINC_BRIDGE_PLACE_H
#define SLINC_BRIDGE_PLACE_H

#include "bridge/unit/unit.h"
#include "bridge/world/wake.h"

/* Where a unit is: the row of the table in place.c that matches. The table says in which order rows
 * are asked. */
enum unit_phase {
    UNIT_INHERITED_UNREAD,
    UNIT_INHERITED,
    UNIT_RELEASE_UNREAD,
    UNIT_RELEASE_BEHIND,
    UNIT_GONE,
    UNIT_OVER,
    UNIT_UNINSTALLED,
    UNIT_FOREIGN,
    UNIT_IN_GROUP,
    UNIT_ENDING,
    UNIT_GATED,
    UNIT_BOUND_UNREAD,
    UNIT_JOB_BEHIND,
    UNIT_KEPT_JOB_UNREAD,
    UNIT_DUPLICATED,
    UNIT_GIVEN_UP,

    UNIT_BOUND_NODES_UNREAD,
    UNIT_REBOOK_MISPLACED,
    UNIT_REBOOK_WAITS,
    UNIT_STRAY_ENDS,
    UNIT_STRAY,
    UNIT_JOB_ENDED,
    UNIT_CLAIMS_LOST,
    UNIT_BOUND,
    UNIT_NODE_UNKNOWN,
    UNIT_NODE_NOT_IN_SLURM,

    UNIT_OWNER_UNSEEN,
    UNIT_GROUP_ENDED,
    UNIT_GROUP_INCOMPLETE,
    UNIT_GROUP_GROWS,
    UNIT_INVALID,
    UNIT_NO_NODE_FITS,
    UNIT_SLURM_UNUSABLE,
    UNIT_SLURM_UNREAD,
    UNIT_SLURM_SUSPECTED,
    UNIT_SIGHT_UNKNOWN,
    UNIT_SEES_PART,
    UNIT_USER_UNKNOWN,
    UNIT_JOBS_UNREAD,
    UNIT_DENIED,
    UNIT_SLURM_FULL,
    UNIT_SUBMITTING,
    UNIT_UNANSWERED,
    UNIT_ANSWERED_WITH_ERROR,
    UNIT_UNRESOLVED,
    UNIT_LAST_TENTH,
    UNIT_NAMESPACE_FULL,
    UNIT_REFUSED,
    UNIT_REBOOKING_FIRST,
    UNIT_TAKEOVER_DELAY,
    UNIT_WRITE_REFUSED_BEFORE,
    UNIT_BACKING_OFF,
    UNIT_REBOOKING,
    UNIT_QUEUES,
    UNIT_SUBMIT_SOON,
    UNIT_SUBMITTABLE,

    UNIT_TOO_SMALL,
    UNIT_PENDING_UNUSABLE,
    UNIT_CONFIGURING,
    UNIT_REPLACED,
    UNIT_CHANGE_INVALID,
    UNIT_CHANGE_REFUSED,
    UNIT_PENDING_NO_NODE,
    UNIT_PENDING,
    UNIT_SUSPENDED,
    UNIT_JOB_ENDS,

    /* From here on its job runs, and some of its pods are not bound. */
    UNIT_NODES_UNREAD,
    UNIT_PLACES_UNREAD,
    UNIT_NEIGHBOURS_UNREAD,
    UNIT_MISFIT_AGAIN,
    UNIT_MISFIT,
    UNIT_PLACE_NOT_FREE,
    UNIT_TOO_FEW_PLACES,
    UNIT_NO_PLACE,
    UNIT_BIND_LATER,
    UNIT_NODE_IN_USE,
    UNIT_NODE_FORGOTTEN,
    UNIT_WRITE_REFUSED_LONG,
    UNIT_WRITE_REFUSED,
    UNIT_UNPREPARED,
    UNIT_VOLUMES_TIMED_OUT,
    UNIT_VOLUMES,
    UNIT_LAYOUT_UNREAD,
    UNIT_CLAIM_REFUSED,
    UNIT_DEVICE_MISFIT_AGAIN,
    UNIT_DEVICE_MISFIT,
    UNIT_DEVICES_NOT_READY,
    UNIT_CLAIMS_UNWRITTEN,
    UNIT_ALLOCATED,
    UNIT_PHASES, /* how many there are */
};

const char *unit_phase_name(unsigned phase);        /* "pending" ... */
void wake_write(unsigned sources, struct buf *out); /* enum wake: "job, time" */

/* Pure: the phase of the unit now. */
enum unit_phase unit_phase(const struct bridge_world *world, const struct unit *unit,
                           struct arena *arena);

struct placed {
    enum unit_phase phase;
    enum unit_phase late; /* of members that wait beside bound ones; UNIT_PHASES: there are none */
    unsigned woken_by;    /* enum wake, by all parts of the unit */
};

/* key: "namespace/uid", or of a group. ret_placed may be NULL. */
int place_plan(const struct bridge_world *world, struct str key, struct plan *plan,
               struct placed *ret_placed, struct err *err);

/* Why a job of this description (job_desc_hash) may not be submitted for the unit now, in the words
 * that its pods show; NULL: it may. Asked once more when the submit is sent. */
const char *place_submit_objection(const struct bridge_world *world, struct str key,
                                   uint64_t desc_hash, struct arena *arena);

/* The rules as a Markdown table, in their order. */
void place_reference(struct buf *out);

#endif
