/* slurm_action.h - what plans may want of Slurm, as data; and the service that does it.
 *
 * Every action is carried out at most once and its answer is written down where plans look: submits
 * in unit_state.h and the job cache, the rest in the caches. So an action counts as done for the
 * engine as soon as its answer is known, whatever it was; the next plan decides. Cancels, creations
 * of nodes that are alike, equal updates and deletions of nodes are gathered and sent as one call.
 * An action about a node is done when the node cache is as new as its answer.
 *
 * A new job is in the job cache at once, as PENDING. One that was allocated immediately is PENDING
 * and CONFIGURING until it has been read: it runs, but where is not known yet.
 *
 * Holds: nothing is sent without the lease; a submit is on record as SENT before it is sent; an id
 * is only cancelled while the cache shows it with the sluid and key that the plan saw, and
 * slurmctld is not suspected. */
#ifndef SLINC_BRIDGE_SLURM_ACTION_H
#define SLINC_BRIDGE_SLURM_ACTION_H

#include "bridge/slurm/capacity.h"
#include "bridge/slurm/job_layouts.h"
#include "bridge/slurm/node_refusals.h"
#include "bridge/unit/job_desc.h"
#include "bridge/world/unit_state.h"
#include "engine/engine.h"
#include "engine/event_action.h"
#include "slurm/calls.h"
#include "slurm/poller.h"

/* The service of these three is a struct slurm_executor. Each has a lane of its own: submits that
 * wait for a slow slurmctld hold up neither cancels nor nodes. */
extern const struct action_type action_slurm;        /* jobs: submits, updates, reads */
extern const struct action_type action_slurm_cancel; /* cancels of jobs */
extern const struct action_type action_slurm_node;   /* nodes */

/* The executor reads this object from the API server just before it sends the action, and drops the
 * action if the object exists. With a uid, an object of that name with another uid counts as
 * absent. Name NULL: no object of the namespace may have this uid; or, with a unit, no pod of that
 * group may be bound by its job, and no bound pod may have the id of the job that is to be
 * cancelled. */
struct action_unless {
    const struct kube_resource *resource;
    const char *ns, *name, *uid;
    const char *unit; /* the key of a group; NULL */
    int64_t job_id;   /* with a unit: only pods that bear this job's id count; 0: all */
    const struct action_unless *also; /* asked when this one does not object; NULL */
};

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
/* The same for a job whose node does not fit: the unit's next submit excludes it. */
struct action *plan_slurm_give_back(struct plan *plan, const struct slurm_job *job,
                                    const char *misfit, const char *why);
struct action *plan_slurm_look(struct plan *plan, const struct slurm_job *job); /* read it now */
/* Reads what it was given on its nodes (job_layouts.h). */
struct action *plan_slurm_layout(struct plan *plan, const struct slurm_job *job);
/* fields: JSON of a job update. */
struct action *plan_slurm_update_job(struct plan *plan, const struct slurm_job *job,
                                     const struct json_mut *fields);
/* The same, to make the job as `desc` says. The fields that the update changes are unknown in the
 * hashes (job_change) until it was made. The unit state gets the hashes, or the refusal. Without
 * fields only the unit state changes. */
struct action *plan_slurm_sync(struct plan *plan, const struct slurm_job *job,
                               const struct json_mut *fields, const struct job_desc *desc,
                               const struct field_hashes *hashes);

struct action *plan_slurm_create_node(struct plan *plan, const struct slurm_node_ask *desc);
/* fields: JSON of a node update: state, reason, features, extra ... */
struct action *plan_slurm_update_node(struct plan *plan, const char *name,
                                      const struct json_mut *fields);
struct action *plan_slurm_delete_node(struct plan *plan, const char *name,
                                      const struct action_unless *unless);

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
    struct str cluster;
    int64_t submits_per_second; /* 0: no limit */
    /* Asked whenever something is sent: what was gathered, throttled or looked at first may come to
     * that when the lease is lost. NULL: always. */
    bool (*may_act)(void *context);
    /* Why this submit must not be sent now, in words that live in the arena; NULL: it may be. */
    const char *(*may_submit)(void *context, struct str key, uint64_t desc_hash,
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
