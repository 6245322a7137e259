/* why_private.h - what the files of `why` share. Private to them. */
#ifndef SLINC_CLI_WHY_PRIVATE_H
#define SLINC_CLI_WHY_PRIVATE_H

#include "cli/advice.h"
#include "cli/show.h"
#include "cli/text.h"

#define WHY_JOB_LABEL         "scheduler.slinky.slurm.net/slurm-jobid"
#define WHY_PENDING_CONDITION "SlurmPending"
#define WHY_ENDED_CONDITION   "SlurmJobEnded"

struct why {
    const struct why_facts *facts;
    const struct show_options *options;
    struct arena *arena;
    struct story *story;
    const struct json *job; /* of the view API; NULL: not known */
    int64_t job_id;         /* 0: none */
};

/* ---- why_job.c ---- */
void why_find_job(struct why *why);
void why_of_job(struct why *why);
/* What it became, what Slurm says, when it starts. */
void why_add_job(struct why *why);
struct str why_reason(const struct why *why); /* Slurm's word; "" when it is not known */
/* reason: Slurm's, or that of a condition. */
struct advice why_advice(const struct why *why, struct str reason);
/* Who has to act, and how. reason: "" when nothing is known. */
void why_add_advice(struct why *why, struct str reason);

/* ---- why_nodes.c: which nodes have room, and what is wrong with the others ---- */
void why_add_nodes(struct why *why);

/* ---- why_pod.c, why_nodeset.c ---- */
void why_of_pod(struct why *why);
void why_of_nodeset(struct why *why);
bool why_is_worker(const struct json *pod);
/* One sentence about a worker; ret_serves: jobs may start on it. */
const char *why_worker(struct why *why, const struct json *pod, bool *ret_serves);

/* ---- all of them ---- */
const char *why_text(const struct why *why, const struct json *object, const char *key);
const struct json *why_condition(const struct json *object, const char *type);
bool why_is_true(const struct json *condition);
const char *why_clock(const struct why *why, const struct json *time); /* "-" when absent */
void why_add_events(struct why *why);

#endif
