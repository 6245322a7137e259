/* situation.h - the facts about one unit that the rules of place.c read.
 *
 * Facts that cost nothing are gathered for every unit. The others are gathered in parts: a part is
 * gathered when the first rule that needs it is asked, and stays empty if it does not concern the
 * unit. A rule may read the parts of all rules above it. Gathering changes nothing but the
 * situation, and the facts lie in the arena. */
#ifndef SLINC_BRIDGE_SITUATION_H
#define SLINC_BRIDGE_SITUATION_H

#include "bridge/run/bind.h"
#include "bridge/run/device_claims.h"
#include "bridge/run/rebook.h"
#include "bridge/run/volumes.h"
#include "bridge/submit/submit.h"
#include "bridge/submit/submit_mode.h"
#include "bridge/submit/submit_queue.h"
#include "bridge/submit/sync.h"

enum { HELD_TOO_LONG_S = 30 }; /* a device that another claim keeps is waited for */

enum part {
    PART_NONE,   /* the facts that are gathered for every unit */
    PART_BOUND,  /* bound pods, and the job that holds their nodes */
    PART_DESC,   /* the job that would be submitted */
    PART_NODES,  /* the nodes that Kubernetes' rules leave for it */
    PART_QUEUE,  /* whether others are submitted first, and how the job is submitted */
    PART_SYNC,   /* how a job that waits differs from its unit */
    PART_PLACES, /* the nodes that pods of a running job get */
    PART_VOLUMES,
    PART_CLAIMS,
    PARTS, /* how many there are */
};

struct situation {
    const struct bridge_world *world;
    const struct unit *unit;
    struct arena *arena;
    bool has[PARTS];

    bool is_ours;             /* a pod of it has our scheduler */
    bool is_clear;            /* Slurm's caches can be believed */
    bool lacks_slot;          /* a member of a group whose running job has no slot for it */
    bool is_prepared;         /* its pods have our finalizer and toleration */
    bool is_placed;           /* pods of the unit are on its job already */
    enum job_phase job_phase; /* JOB_ENDED: there is no job */
    int64_t outage_us;        /* since when the bridge cannot use Slurm (loop time) */
    int64_t read_left_us;     /* until the job that waits is read again */
    int64_t read_pause_us;    /* between two such reads */

    struct bound_facts bound;  /* PART_BOUND */
    struct claims lost_claims; /* of bound pods */

    struct job_desc desc;       /* PART_DESC */
    uint64_t desc_hash;         /* of the job that would be submitted, or that is being sent */
    const char *invalid;        /* why there is no desc; NULL: there is */
    struct exclusion exclusion; /* PART_NODES */

    int64_t queue_us; /* PART_QUEUE: another unit comes first, for so long; 0: none does */
    enum submit_mode mode;

    struct sync sync; /* PART_SYNC */

    struct assignments assigned; /* PART_PLACES */
    const char *forgotten;      /* an assigned node has a pod whose job Slurm has forgotten; NULL */
    bool has_stale_jobs;        /* of a misfit: the other jobs there may have ended since */
    struct open_claims volumes; /* PART_VOLUMES */
    bool volumes_timed_out;
    struct claims claims; /* PART_CLAIMS */

    struct err err; /* of a part that cannot be gathered; class 0: none */
};

/* The unit and the arena are borrowed. */
void situation_init(struct situation *situation, const struct bridge_world *world,
                    const struct unit *unit, struct arena *arena);
void situation_done(struct situation *situation);

/* Gathers the part, once. is_submittable: the question of the submit queue (place.c). */
void situation_need(struct situation *situation, enum part part,
                    submit_queue_question is_submittable);

/* ---- what several rules and parts ask ---- */

/* Waits for a job: it has none, or what it has cannot be read. */
bool wants_job(const struct situation *situation);
/* Its pods are bound, and no job of theirs is there. */
bool wants_rebooking(const struct situation *situation);

/* The times of the guard: how long a submit must still wait for these reasons; 0: it need not. */
int64_t takeover_delay_left_us(const struct situation *situation);
int64_t backoff_left_us(const struct situation *situation);
int64_t answer_left_us(const struct situation *situation); /* until most answers have come */

#endif
