/* slurm_executor_private.h - the actions as data, and what the files of the executor share. */
#ifndef SLINC_BRIDGE_SLURM_EXECUTOR_PRIVATE_H
#define SLINC_BRIDGE_SLURM_EXECUTOR_PRIVATE_H

#include "bridge/slurm/slurm_action.h"
#include "bridge/unit/job_change.h"
#include "engine/slurm_lane.h"

/* The detail of an action; all of it lives in the plan's arena. */
struct job_action {
    struct slurm_action base; /* its name is the id of the job; of a submit, its pod or group */

    struct str key; /* submit: of the unit. Of a job: as it was planned on, with its attempt */
    struct str uid; /* submit: in the job's key; "" */
    unsigned attempt;
    struct job_desc job;
    const struct str *pods;
    unsigned pod_count;
    bool at_once;

    int64_t job_id; /* all but submit */
    const char *sluid;
    const char *why;
    const char *misfit;         /* cancel: a node that will not do; NULL */
    uint64_t misfit_devices;    /* because of its devices, of this version; 0 */
    uint32_t wait_status;       /* complete */
    struct field_hashes hashes; /* sync: what counts until the job is as `job` says */
};

extern const struct slurm_call_type call_submit, call_cancel, call_complete, call_look, call_layout,
    call_update_job, call_sync, call_remember; /* a sync that has nothing to send */

enum { QUEUED_SLICES = 20, QUEUED_SLICE_US = 100000 };

struct pause { /* grows while refusals follow each other, without a success between */
    unsigned level;
    int64_t until_us;
};

struct slurm_executor {
    struct slurm_service service;
    struct slurm_executor_options options;
    struct slurm_lane lane;
    struct slurm_cache *jobs;
    int64_t message_timeout_s;
    int64_t cancels_until_us; /* a cancel without a clear answer may take effect until then */
    unsigned completes_in_flight;

    struct list submits; /* struct submit_task: wait until fewer are in flight */
    unsigned submits_in_flight;
    unsigned queued[QUEUED_SLICES]; /* submits taken, by tenths of a second */
    int64_t queued_slice;           /* the youngest of these, counted from 0 */
    struct loop_timer submit_timer;
    int64_t next_submit_us; /* when the throttle lets the next one through */
    struct pause full;
    char full_why[280];
    int64_t denied_us; /* since when submits are denied, whatever they ask for; 0: they are not */
    struct loop_timer settle_timer;
    int64_t list_asked_us; /* when a whole list was last asked for, to settle */
};

enum slurm_executor_metric {
    EXECUTOR_SUBMITS,
    EXECUTOR_SUBMIT_SECONDS,
    EXECUTOR_CANCELS,
    EXECUTOR_COMPLETES,
    EXECUTOR_DUPLICATES,
    EXECUTOR_NODE_CALLS,
    EXECUTOR_NODES_PER_CALL,
    EXECUTOR_METRICS, /* how many there are */
};

void job_action_write(const struct slurm_action *action, struct json_build *build,
                      struct json_mut *into);
void job_action_write_submit(const struct slurm_action *action, struct json_build *build,
                             struct json_mut *into);

struct slurm_executor *executor_of(const struct slurm_task *task);
const struct job_action *job_action_of(const struct slurm_action *action);
struct str job_action_unit(const struct job_action *action); /* of its key: without the attempt */
/* Why the job that an action is about must not be touched now; NULL when it may be. */
const char *job_objection(struct slurm_task *task);
/* Whether the cache shows a job of the unit, but this one, that has not ended. */
bool has_live_job(const struct slurm_executor *executor, struct str unit, int64_t but_id);
/* The unit's job is as the submit says. */
void sync_submitted(struct unit_state *unit, int64_t job_id, const struct job_desc *desc);

/* ---- slurm_executor_submit.c ---- */
void submit_done(struct slurm_executor *executor);
/* The last submit of the unit made no job, and the same one would not for the next minutes. */
void submit_keep_refusal(struct slurm_executor *executor, struct unit_state *unit);

/* ---- slurm_executor_unresolved.c ---- */
/* is_answered: see struct submit_record. */
void submit_unresolved(struct slurm_executor *executor, struct str key, int64_t settles_us,
                       bool is_answered);

/* ---- slurm_executor_cancel.c ---- */
void cancels_answered(struct slurm_executor *executor, const struct slurm_answer *answer);

#endif
