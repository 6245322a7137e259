/* gate.h - whether Slurm may be asked for a job now, and in which way. Both are pure rules. */
#ifndef SLINC_BRIDGE_GATE_H
#define SLINC_BRIDGE_GATE_H

#include "bridge/unit.h"

enum gate {
    GATE_OPEN,
    GATE_LATER,   /* something is awaited; again at again_us at the latest */
    GATE_REFUSED, /* Slurm said no, and nothing that matters has changed since */
};

struct gate_view {
    enum gate gate;
    const char *why;    /* for people; in the arena */
    int64_t again_us;   /* delay after which to look again; 0: only a change opens it */
    int64_t trouble_us; /* LATER because the bridge cannot use Slurm: since when; 0: it can */
};

/* DESIGN 5a: no second ask while one may still take effect, none before a whole job list of our
 * own time, none by who does not see all jobs. */
struct gate_view gate_look(const struct bridge_world *world, const struct unit *unit,
                           uint64_t ask_hash, struct arena *arena);

/* Slurm's caches can be believed: filled, and slurmctld is not suspected of a restart. */
bool gate_slurm_is_clear(const struct bridge_world *world);

/* Jobs were just read again after a restart, and those that are missing are not all known yet: what
 * looks free may be in use by pods that lost theirs. */
bool gate_cover_comes_first(const struct bridge_world *world);

enum gate_way {
    GATE_AT_ONCE, /* an immediate allocation: decided within the call, one after the other */
    GATE_QUEUE,   /* a submit: looked at within a second, hundreds at a time */
    GATE_SOON,    /* the few that were queued just now start in a moment: then it goes at once */
};

enum {
    GATE_CROWD = 512,   /* more pods than this are still to be asked for: a burst */
    GATE_TRICKLE = 128, /* asks queued in the last two seconds: no more is a trickle */
};

enum gate_way gate_way(const struct bridge_world *world, const struct unit *unit,
                       const struct job_ask *ask);

#endif
