/* unit_state.h - what this process remembers of a unit beside the caches, and could do without.
 *
 * A crash loses it, and nothing depends on its being there: what was submitted is found again by
 * the key that every job carries, and the delay after a take-over covers submits that another
 * process sent. It saves writes, keeps refused submits from being repeated, and times
 * the steps. */
#ifndef SLINC_BRIDGE_UNIT_STATE_H
#define SLINC_BRIDGE_UNIT_STATE_H

#include "base/buf.h"
#include "base/str.h"
#include "bridge/world/field_hashes.h"
#include "bridge/world/wake.h"
#include "slurm/error.h"

#include <stdbool.h>
#include <stdint.h>

enum submit_state {
    SUBMIT_NONE,       /* none of ours is on its way; if it made a job, the job cache has it */
    SUBMIT_SENT,       /* on its way: only its answer moves it */
    SUBMIT_UNRESOLVED, /* may have made a job, now or later: a list begun after settles_us tells,
                       and the executor then moves it to NONE or REFUSED */
    SUBMIT_REFUSED,    /* made none, and the same submit would not today */
};

const char *submit_state_name(enum submit_state state); /* "sent" ... */

struct submit_record {
    enum submit_state state;
    unsigned attempt;   /* of the last submit; 0 = never submitted */
    uint64_t hash;      /* job_desc_hash of it */
    uint64_t site;      /* capacity_generation when it was refused */
    int64_t sent_us;    /* loop times */
    int64_t settles_us; /* UNRESOLVED */
    bool is_answered;   /* UNRESOLVED: by slurmctld, with an error: without a job it was refused */
    bool at_once;       /* of the last submit: an immediate one */
    int64_t again_us; /* REFUSED: the same submit may be tried again then, though nothing changed */
    enum slurm_class class; /* of the last answer, whatever the state now is, and its words; */
    int number;             /* DONE, 0 and "" when it went well */
    char text[240];
};

/* What a job that waits was last submitted or updated with, and the change that Slurm refused. */
struct last_applied {
    int64_t job_id;             /* 0: of no job */
    struct field_hashes hashes; /* unknown: a field that an update may have changed */
    /* Slurm made the update, and its note still says "unknown" for the changed fields: a second
     * update writes their hashes. */
    bool needs_final_note;
    uint64_t refused; /* job_desc_hash of a change that Slurm refused; submit.text says why */
    uint64_t site;    /* capacity_generation at that time */
    int64_t again_us; /* the same change may be tried again then, though nothing changed */
};

/* The API server refused what the running job of the unit needs: a claim, what is said of it on the
 * pod, a Binding. The write is tried again and again until given_back_us; then the job is given
 * back, and there is no other one before submit_us. The times are loop times. */
struct write_refusal {
    int64_t again_us, given_back_us, submit_us; /* 0: nothing was refused */
    unsigned tries, jobs; /* of this job; jobs given back since pods were bound, with this one */
    char *text;           /* what was refused, in the server's words; NULL */
};

enum {
    UNIT_STATE_MAX_MISFITS = 32, /* the last nodes given back count */
    UNIT_STATE_MAX_GIVEN_UP = 8, /* the last of them count */
};

/* A node that was given back. While Kubernetes' rules object, the next job excludes it. Its devices
 * are no matter of these rules: for them it is left out until their record or their slices are
 * others (node_devices_version), or for a time that grows. */
struct misfit {
    char *name;       /* in Slurm */
    char *why;        /* its devices did not do; NULL: for other reasons */
    uint64_t devices; /* their version at that time */
    int64_t until_us; /* loop time */
    unsigned times;
};

struct unit_state {
    struct str key; /* "namespace/uid" */
    struct submit_record submit;
    struct last_applied last_applied;
    bool queues;          /* an immediate try was refused: the next is queued */
    bool prefers_nothing; /* a preference was refused: the next submit has none */
    bool ends_by_cancel;  /* its job could not be completed */
    struct misfit misfits[UNIT_STATE_MAX_MISFITS]; /* the last one last */
    unsigned misfit_count;
    /* Attempts whose jobs we wanted cancelled: a cancel without an answer may come late, so nothing
     * is bound by them any more. */
    unsigned given_up[UNIT_STATE_MAX_GIVEN_UP];
    unsigned given_up_count;
    struct write_refusal write_refusal;
    unsigned phase;         /* at its last plan (place.h) */
    bool is_placing;        /* then its job ran, and some of its pods were not bound */
    unsigned woken_by;      /* enum wake; only unit_states_wait changes it */
    uint64_t nodes_version; /* of its pod, when it was last planned (filter.h) */
    unsigned members;       /* that were there at the last look */
    int64_t grown_us;       /* when there were more than before */
    int64_t lost_us;        /* since when it is bound and has no job; 0 = it has one */
    bool is_rebooking;      /* and others wait for it to get one: not for ever */
    int64_t seen_us, submitted_us, allocated_us, bound_us; /* loop times; 0 = not yet */
};

struct unit_states;

struct unit_states *unit_states_new(void);
void unit_states_free(struct unit_states *states);

const struct unit_state *unit_states_get(const struct unit_states *states,
                                         struct str key);                        /* or NULL */
struct unit_state *unit_states_find(struct unit_states *states, struct str key); /* or NULL */
struct unit_state *unit_states_need(struct unit_states *states,
                                    struct str key); /* made when missing */
void unit_states_forget(struct unit_states *states, struct str key);
/* Forgets what jobs were last submitted with: another leader may have changed them since. */
void unit_states_forget_applied(struct unit_states *states);
/* How many are in this state; O(1). */
size_t unit_states_in(const struct unit_states *states, enum submit_state state);
/* The only way to move a submit: keeps the counts. */
void unit_states_move(struct unit_states *states, struct unit_state *unit, enum submit_state state);

/* A node that did not fit. devices: because of these, of this version, for this reason; 0. */
void unit_state_add_misfit(struct unit_state *unit, const char *slurm_name, uint64_t devices,
                           const char *why, int64_t now_us);
void unit_state_give_up(struct unit_state *unit, unsigned attempt);
unsigned unit_state_attempt(
    const struct unit_state *unit); /* the last, of submits and of those given up */
bool unit_state_has_given_up(const struct unit_state *unit, unsigned attempt); /* takes NULL */

/* A write for its running job was refused. Only the first of those that are sent together counts.
 */
void unit_state_refuse_write(struct unit_state *unit, const char *text, int64_t now_us);
void unit_state_forget_refusal(struct unit_state *unit);

/* What the unit waits for now. */
void unit_states_wait(struct unit_states *states, struct unit_state *unit, unsigned woken_by);
size_t unit_states_waiting(const struct unit_states *states, enum wake source); /* O(1) */

typedef void (*unit_states_visit)(void *context, const struct unit_state *unit);
void unit_states_each(const struct unit_states *states, unit_states_visit visit, void *context);
/* Those that wait for this source, the one that has waited longest first. */
void unit_states_each_waiting(const struct unit_states *states, enum wake source,
                              unit_states_visit visit, void *context);

#endif
