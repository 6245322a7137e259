/* submit_guard.h - whether a job may be submitted now, and by which mode. Both are pure rules. */
#ifndef SLINC_BRIDGE_SUBMIT_GUARD_H
#define SLINC_BRIDGE_SUBMIT_GUARD_H

#include "bridge/unit/unit.h"

enum submit_guard {
    GUARD_OPEN,
    GUARD_LATER,   /* something is awaited; again at again_us at the latest */
    GUARD_REFUSED, /* Slurm said no, and nothing that matters has changed since */
};

struct guard_result {
    enum submit_guard guard;
    const char *why;    /* for people; in the arena */
    int64_t again_us;   /* delay after which to look again; 0: only a change opens it */
    int64_t trouble_us; /* LATER because the bridge cannot use Slurm: since when; 0: it can */
};

/* There is no second submit while the first may still take effect, and no submit before a whole job
 * list was read that began after we took the lease. The token must list every job. See Submitting
 * at most once in docs/internals/bridge.md. */
struct guard_result submit_guard_check(const struct bridge_world *world, const struct unit *unit,
                                       uint64_t desc_hash, struct arena *arena);

/* Slurm's caches can be believed: filled, and slurmctld is not suspected of a restart. */
bool slurm_is_clear(const struct bridge_world *world);

/* Jobs were just read again after a restart, and those that are missing are not all known yet: what
 * looks free may be in use by pods that lost theirs. */
bool rebooking_comes_first(const struct bridge_world *world);

enum submit_mode {
    SUBMIT_AT_ONCE, /* an immediate allocation: decided within the call, one after the other */
    SUBMIT_QUEUED,  /* a submit: looked at within a second, hundreds at a time */
    SUBMIT_SOON,    /* the queue holds only a few of the last two seconds: at once, when they run */
};

enum {
    SUBMIT_CROWD = 512,   /* more pods than this are still to be submitted: a burst */
    SUBMIT_TRICKLE = 128, /* submits queued in the last two seconds: no more is a trickle */
};

enum submit_mode submit_mode(const struct bridge_world *world, const struct unit *unit,
                             const struct job_desc *desc);

#endif
