/* slurm_action.h - what plans may want of Slurm's jobs, as data; and the service that does it. The
 * service also does what plans want of Slurm's nodes (engine/slurm_nodes.h).
 *
 * Every action is carried out at most once and its answer is written down where plans look: submits
 * in unit_state.h and the job cache, the rest in the caches. So an action counts as done for the
 * engine as soon as its answer is known, whatever it was; the next plan decides. Cancels are
 * gathered and sent as one call.
 *
 * A new job is in the job cache at once, as PENDING. One that was allocated immediately is PENDING
 * and CONFIGURING until it has been read: it runs, but where is not known yet.
 *
 * Holds: nothing is sent without the lease; a submit is on record as SENT before it is sent; an id
 * is only cancelled while the cache shows it with the sluid and key that the plan saw, and
 * slurmctld is not suspected. */
#ifndef SLINC_BRIDGE_SLURM_ACTION_H
#define SLINC_BRIDGE_SLURM_ACTION_H

#include "bridge/unit/job_desc.h"
#include "bridge/world/unit_state.h"
#include "engine/engine.h"
#include "engine/event_action.h"
#include "engine/node_refusals.h"
#include "engine/slurm_nodes.h"
#include "slurm/capacity.h"
#include "slurm/job_layouts.h"

/* The service of these two and of action_slurm_node is a struct slurm_executor. Each has a lane of
 * its own: submits that wait for a slow slurmctld hold up neither cancels nor nodes. */
extern const struct action_type action_slurm;        /* jobs: submits, updates, reads */
extern const struct action_type action_slurm_cancel; /* cancels of jobs */

/* For action_unless.objects of a cancel in a list of pods: whether a pod of the group `about` is
 * placed, or one that bears the id of the job runs, whatever its group is now. With a uid, the job
 * is of a former group: pods that bear the id of another job do not count. */
bool pod_of_group_objects(const struct json *pod, const struct action_unless *unless,
                          const struct slurm_action *cancel);

/* ---- for plans; each copies what it is given into the plan's arena ---- */

struct submit_request {
    struct str key;   /* "namespace/uid" */
    const char *uid;  /* in the job's key; "" for none */
    unsigned attempt; /* the job's key is "<key>.<attempt>", or "<key>@<uid>.<attempt>" */
    const struct job_desc *job;
    const struct str *pods; /* "namespace/name" */
    unsigned pod_count;
    bool at_once;
};
struct action *plan_slurm_submit(struct plan *plan, const struct submit_request *request);
/* unless may be NULL. why is for the log. */
struct action *plan_slurm_cancel(struct plan *plan, const struct slurm_job *job,
                                 const struct action_unless *unless, const char *why);
/* Ends a running job with what happened (slurm_job_complete). Only the agent can. */
struct action *plan_slurm_complete(struct plan *plan, const struct slurm_job *job,
                                   uint32_t wait_status, const char *why);
/* Cancels a job whose node does not fit: the unit's next submit excludes it. devices: because
 * of these (node_devices_version); 0. */
struct action *plan_slurm_give_back(struct plan *plan, const struct slurm_job *job,
                                    const char *misfit, uint64_t devices, const char *why);
struct action *plan_slurm_look(struct plan *plan, const struct slurm_job *job); /* read it now */
/* Reads what it was given on its nodes (job_layouts.h). */
struct action *plan_slurm_layout(struct plan *plan, const struct slurm_job *job);
/* fields: JSON of a job update. */
struct action *plan_slurm_update_job(struct plan *plan, const struct slurm_job *job,
                                     const struct json_mut *fields);
/* The same for a job without a key, which gets one. */
struct action *plan_slurm_adopt(struct plan *plan, const struct slurm_job *job,
                                const struct json_mut *fields);
/* The same, to make the job as `desc` says. The fields that the update changes are unknown in the
 * hashes (job_change) until it was made. The unit state gets the hashes, or the refusal. Without
 * fields only the unit state changes. */
struct action *plan_slurm_sync(struct plan *plan, const struct slurm_job *job,
                               const struct json_mut *fields, const struct job_desc *desc,
                               const struct field_hashes *hashes);

/* ---- the service ---- */

struct slurm_executor;

struct slurm_executor_options {
    struct slurm_client *slurm;
    struct slurm_poller *poller;
    struct kube_client *kube; /* for action_unless */
    struct unit_states *unit_states;
    struct node_refusals *node_refusals;
    struct capacity *capacity;
    struct job_layouts *layouts;
    struct metrics *metrics;
    const struct slurm_owner *owner; /* of our jobs */
    int64_t submits_per_second;      /* 0: no limit */
    /* Asked whenever something is sent: what was gathered, throttled or looked at first may come to
     * that when the lease is lost. NULL: always. */
    bool (*may_act)(void *context);
    /* Why this submit must not be sent now, in words that live in the arena; NULL: it may be. */
    const char *(*object_to_submit)(void *context, struct str key, uint64_t desc_hash,
                                    struct arena *arena);
    /* The unit, or the node, should be planned again. */
    void (*wake_unit)(void *context, struct str key);
    void (*wake_node)(void *context, struct str name);
    void *context;
};

struct slurm_executor *slurm_executor_new(
    const struct slurm_executor_options *options);         /* all borrowed */
void slurm_executor_free(struct slurm_executor *executor); /* what is under way ends without
                                                              callback; submits stay SENT */
void slurm_executor_set_message_timeout(struct slurm_executor *executor,
                                        int64_t seconds); /* of slurmctld */
/* Slurm has no place for more jobs until then (loop time; 0: it has), and why. */
int64_t slurm_executor_pause_us(const struct slurm_executor *executor, const char **ret_why);

/* Since when submits are denied, whatever they ask for, and the pause is for that (loop time); 0:
 * they are not. */
int64_t slurm_executor_denied_us(const struct slurm_executor *executor);
void slurm_executor_forget_denial(
    struct slurm_executor *executor); /* there is reason to try again now */

/* Whether a cancel is on its way, or had no clear answer and may still take effect: until the delay
 * of a new leader (slurm_submit_fence_us) has passed since it was sent. */
bool slurm_executor_has_unanswered_cancels(const struct slurm_executor *executor);

/* Submits that joined the queue in the last two seconds. */
size_t slurm_executor_queued(const struct slurm_executor *executor);

extern const struct metric_family slurm_executor_metrics[];
extern const size_t slurm_executor_metric_count;

#endif
