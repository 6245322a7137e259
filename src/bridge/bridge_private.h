/* bridge_private.h - what bridge.c, bridge_slurm.c, wake.c and why.c share. */
#ifndef SLINC_BRIDGE_BRIDGE_PRIVATE_H
#define SLINC_BRIDGE_BRIDGE_PRIVATE_H

#include "bridge/bridge.h"
#include "bridge/ending.h"
#include "bridge/nodes/lent_nodes.h"
#include "bridge/slurm/slurm_action.h"
#include "bridge/timings.h"
#include "bridge/watches.h"
#include "bridge/why.h"
#include "bridge/world/unit_state.h"
#include "bridge/world/world.h"
#include "engine/slurm_health.h"
#include "engine/sweep.h"

enum { BRIDGE_MAX_WHY = 256, BRIDGE_MAX_WATCHES = 16 };

struct bridge {
    struct bridge_options options;
    struct bridge_links links;
    struct rand rand;
    struct kube_client *kube, *lease_kube;
    struct watches *watches;
    struct kube_lease *lease;
    struct metrics *metrics;
    struct engine *engine;
    struct kube_recorder *recorder;
    struct kube_call *identify; /* the first question: which cluster is this? */
    struct loop_timer retry;
    char cluster[64], release[2 * KUBE_MAX_NAME + 2];
    struct slurm_owner owner;

    struct slurm_client *slurm;
    struct slurm_poller *poller;
    struct slurm_sight_check sight;
    bool is_checking, has_site, was_restarted;
    int64_t listed_us; /* when the jobs were last listed as the suspicion began */
    struct slurm_site site;
    char sight_why[BRIDGE_MAX_WHY];
    struct loop_timer look_at_site;
    struct slurm_trouble trouble;
    bool is_unread;       /* the trouble is that Slurm cannot be read */
    bool waits_for_slurm; /* since then the jobs could not be believed: plans may wait for that */
    struct loop_timer look_for_trouble;

    struct slurm_executor *executor;
    struct ending_allowance prolog_reads;
    struct timings timings;
    struct slurm_health slurm_health;
    struct why_reads why_reads;
    struct bridge_world world; /* plans only read it, and what these five keep */
    struct unit_states *unit_states;
    struct node_refusals *node_refusals;
    struct node_sizes *node_sizes;
    struct job_layouts *layouts;
    struct capacity *capacity;
    struct controller units, nodes;
    struct controller_watch unit_watches[BRIDGE_MAX_WATCHES], node_watches[2];
    struct lent_nodes lent_nodes;
    struct sweep sweep; /* the nodes that pods may use have changed */
    unsigned wakes;     /* enum wake: units that wait for these are woken soon */
    struct loop_timer wake_timer;
};

/* ---- bridge_slurm.c: what is known of Slurm beside its caches ---- */

extern const char bridge_became_leader[]; /* why slurmctld is suspected at that moment */
/* How long what a leader before us sent may still take effect. */
int64_t bridge_takeover_delay_us(const struct bridge *bridge);
void bridge_refresh_facts(struct bridge *bridge); /* before every plan */
void bridge_observe_slurm(struct bridge *bridge); /* once there is an executor */
void bridge_slurm_settled(void *context);         /* the poller has read all jobs, or knows again */
void bridge_stop_observing(struct bridge *bridge);

/* ---- wake.c: changes become keys ---- */

bool bridge_may_act(void *context);
void bridge_on_pod(struct controller *controller, const struct kube_object *old,
                   const struct kube_object *next);
void bridge_on_group(void *context, const struct kube_object *old, const struct kube_object *next);
void bridge_look_at_all(struct bridge *bridge);
void bridge_look_at_all_that_wait(struct bridge *bridge);
void bridge_look_at_all_nodes(struct bridge *bridge);
void bridge_on_claim(void *context, const struct kube_object *old, const struct kube_object *next);
void bridge_on_taint_rule(void *context, const struct kube_object *old,
                          const struct kube_object *next);
void bridge_on_slice(void *context, const struct kube_object *old, const struct kube_object *next);
void bridge_on_device_class(void *context, const struct kube_object *old,
                            const struct kube_object *next);
void bridge_on_daemonset(void *context, const struct kube_object *old,
                         const struct kube_object *next);
void bridge_on_owner(void *context, const struct kube_object *owner, bool says_otherwise);
void bridge_on_volume(void *context);
void bridge_wake(struct bridge *bridge, enum wake source); /* the units that wait for it */
void bridge_on_filter(void *context);
void bridge_look_if_other_nodes(void *context, const struct kube_object *pod);
void bridge_on_node(struct controller *controller, const struct kube_object *old,
                    const struct kube_object *next);
void bridge_on_other_pod(struct controller *controller, const struct kube_object *old,
                         const struct kube_object *next);
void bridge_wake_unit(void *context, struct str key);
void bridge_wake_node(void *context, struct str name);
void bridge_take_layout(void *context, const struct slurm_job *job, const struct json *body);
void bridge_on_slurm_job(void *context, const struct slurm_object *before,
                         const struct slurm_object *after);
/* A partition or a reservation: it may be open to others now. */
void bridge_on_slurm_place(void *context, const struct slurm_object *old,
                           const struct slurm_object *next);
void bridge_on_slurm_node(void *context, const struct slurm_object *old,
                          const struct slurm_object *next);

#endif
