/* nodeset.h - a NodeSet while it is planned, shared by the files that plan it: one for each verb.
 *
 * A NodeSet has two plans, so that what Slurm does not answer or refuses delays nothing of
 * Kubernetes. Both read the same workers and decide alike who is condemned. */
#ifndef SLINC_OPERATOR_NODESET_H
#define SLINC_OPERATOR_NODESET_H

#include "codec/json_format.h"
#include "operator/node_fit.h"
#include "operator/nodeset_revision.h"
#include "operator/sync.h"
#include "operator/worker.h"
#include "operator/worker_build.h"

/* What Kubernetes does: Service, budget, revisions, pods, claims, labels, conditions, status. */
void nodeset_plan(const struct operator_world *world, const struct kube_object *nodeset,
                  struct plan *plan);
/* What needs Slurm: drains, deletions of drained workers, node records, the reservation. */
void nodeset_slurm_plan(const struct operator_world *world, const struct kube_object *nodeset,
                        struct plan *plan);

/* ---- what both plans read ---- */

struct nodeset {
    struct sync sync;                     /* first: steps get it */
    const struct kube_object *controller; /* that it refers to; NULL: there is none */
    const struct slurm_facts *facts;      /* of its Slurm; NULL: none is known */
    bool is_daemonset;
    int64_t replicas;       /* StatefulSet mode: how many workers are wanted */
    struct worker *workers; /* all pods that the NodeSet controls */
    size_t count;
    struct nodeset_revision revision;
    struct err revision_err;   /* class 0: revision is valid */
    struct json_doc *template; /* what all workers have in common; NULL: see template_err */
    struct err template_err;
    const struct node_fit *fit; /* DaemonSet mode, and with pinToNode; NULL: not known */
    struct daemon_slot *slots;  /* DaemonSet mode: one for each Node that may have a worker */
    size_t slot_count;
    struct worker_create *creates; /* workers that get a pod in this plan */
    size_t create_count;
    size_t adopted_count; /* pods that become workers by this plan */
    bool is_capped;       /* more are missing, and too many have not registered yet */
};

static inline struct nodeset *nodeset_of(struct sync *sync)
{
    return (struct nodeset *)(void *)sync;
}

/* A worker that stays: live and not condemned. */
static inline bool worker_stays(const struct worker *worker)
{
    return worker_is_live(worker) && !worker_is_condemned(worker);
}

/* Whether a worker that was on this Node may come back to it. */
bool nodeset_fits(const struct nodeset *nodeset, const struct kube_object *node);

/* Why Slurm cannot say who is drained; NULL: it can. */
const char *nodeset_slurm_trouble(const struct nodeset *nodeset);

/* ---- nodeset_choose.c: who goes, who is drained ---- */

/* Sets the cause of every worker. */
void nodeset_choose(struct nodeset *nodeset);

/* The order of deletion: the one that is deleted first is smaller. */
int worker_compare(const struct worker *a, const struct worker *b);

/* Sorted by it. */
void workers_sort(struct worker **workers, size_t count);

/* ---- nodeset_daemon.c: one worker for each Node ---- */

struct daemon_slot {
    const struct kube_object *node;
    struct worker *kept;      /* NULL: none is there */
    bool is_taken;            /* a pod that ended or is being deleted is still there */
    bool may_start, may_stay; /* node_fit.h */
    bool was_there; /* no new worker may start, but one that was there before the cordon may */
};

/* Fills the slots, and condemns those that are in the wrong place. */
void nodeset_choose_daemons(struct nodeset *nodeset);

/* ---- nodeset_update.c: who is replaced ---- */

void nodeset_choose_update(struct nodeset *nodeset);       /* because of its revision */
void nodeset_choose_unregistered(struct nodeset *nodeset); /* because Slurm has no node for it */

/* ---- nodeset_adopt.c: which pods are its ---- */

int nodeset_plan_owned(struct sync *sync, struct err *err);

/* ---- nodeset_create.c ---- */

struct worker_create {
    struct worker_identity identity;
    bool was_there; /* on this Node: it tolerates that the Node is cordoned */
};

/* Steps. The pods are created by nodeset_create, after the status. */
int nodeset_plan_shared(struct sync *sync, struct err *err); /* Service and budget */
int nodeset_plan_ssh(struct sync *sync, struct err *err);
int nodeset_plan_revision(struct sync *sync, struct err *err);
int nodeset_plan_failed(struct sync *sync, struct err *err); /* pods that ended go */
int nodeset_plan_pods(struct sync *sync, struct err *err);
int nodeset_plan_claims(struct sync *sync, struct err *err); /* who owns those that exist */
void nodeset_create(struct nodeset *nodeset);

/* ---- nodeset_drain.c ---- */

void nodeset_plan_marks(struct nodeset *nodeset);    /* on pods; before their nodes are drained */
void nodeset_plan_drains(struct nodeset *nodeset);   /* nodes that are to take no more jobs */
void nodeset_plan_undrains(struct nodeset *nodeset); /* what is no longer wanted, if it is ours */

/* ---- nodeset_delete.c ---- */

void nodeset_plan_confirms(struct nodeset *nodeset);  /* that condemned workers are drained: */
void nodeset_plan_deletions(struct nodeset *nodeset); /* their pods go in the stage behind it */
/* A NodeSet that is being deleted: its finalizers go when its workers and its jobs have. */
void nodeset_plan_end(struct nodeset *nodeset);
/* Whether workers are drained before the NodeSet goes. */
bool nodeset_must_drain(const struct nodeset *nodeset);
/* What a NodeSet that is being deleted waits for when its workers are gone; NULL: nothing. */
const char *nodeset_end_waits(const struct nodeset *nodeset);

/* ---- nodeset_observe.c: what Slurm says, on the pods ---- */

int nodeset_plan_observed(struct sync *sync, struct err *err);

/* ---- nodeset_records.c: what Slurm's records say of workers ---- */

/* A worker that registered with other values than those that Slurm has for it. */
bool nodeset_record_is_stale(const struct nodeset *nodeset, const struct worker *worker);
/* Others drain it, and the comment of its node does not say why: the end of the pod, which
 * overwrites the reason, would make it a drain of ours. */
bool nodeset_drain_would_be_lost(const struct nodeset *nodeset, const struct worker *worker);
void nodeset_plan_records(struct nodeset *nodeset);      /* comment, topology, features */
void nodeset_plan_record_marks(struct nodeset *nodeset); /* that it was told; behind it */
void nodeset_plan_prune(struct nodeset *nodeset);        /* records of workers that are no more */

/* ---- nodeset_reservation.c: ScheduledUpdate ---- */

bool nodeset_wants_reservation(const struct nodeset *nodeset);
bool nodeset_has_reservation(const struct nodeset *nodeset);      /* as far as Slurm says */
bool nodeset_may_have_reservation(const struct nodeset *nodeset); /* or does not say */
const char *nodeset_reservation_name(const struct nodeset *nodeset);
void nodeset_plan_reservation(struct nodeset *nodeset);

/* ---- nodeset_status.c ---- */

void nodeset_plan_status(struct nodeset *nodeset);

#endif
