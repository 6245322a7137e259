/* worker_build.h - the children of a NodeSet, as they should be. */
#ifndef SLINC_OPERATOR_WORKER_BUILD_H
#define SLINC_OPERATOR_WORKER_BUILD_H

#include "operator/worker_identity.h"

/* ---- the pod ---- */

struct worker_input {
    const struct operator_world *world;
    struct arena *arena;
    const struct kube_object *nodeset;
    const struct kube_object *controller; /* that it refers to */
    const char *revision;                 /* hash of the NodeSet's revision */
};

/* What all workers of the NodeSet have in common: {metadata: {labels, annotations, ...}, spec}.
 * Built once in a plan; node_fit_new reads its spec. */
int worker_template(const struct worker_input *input, struct json_doc **ret_template,
                    struct err *err);

/* The pod of one worker, ready to create. It tolerates a cordon of its Node when `was_there`: a
 * worker that was on the Node before may come back (upstream #259). */
struct json_mut *worker_pod(struct json_build *build, struct arena *arena,
                            const struct kube_object *nodeset, const struct json_doc *template,
                            const struct worker_identity *identity, bool was_there);

/* The labels of charts do not make a new revision; they are put onto the pods that run. A merge
 * patch {metadata: {labels}}; NULL when the pod has them. */
struct json_mut *worker_chart_labels(struct json_build *build, const struct kube_object *nodeset,
                                     const struct kube_object *pod);

/* ---- shared by the NodeSets of a Controller: write them with plan_shared_child ---- */

/* The headless Service by which workers find each other. */
struct json_mut *worker_service(struct json_build *build, const struct kube_object *controller);

/* The PodDisruptionBudget of busy workers. New ones say "minAvailable: more than there can be",
 * since the number that maxUnavailable is subtracted from is too small in DaemonSet mode and while
 * workers are being removed. One with `maxUnavailable: 0` (the Slinky operator's) stays as it is
 * until `counts_less`: a NodeSet of the Controller is in DaemonSet mode, or has more workers than
 * replicas. It never goes back. live: the one that exists, or NULL. */
struct json_mut *worker_budget(struct json_build *build, const struct kube_object *controller,
                               const struct kube_object *live, bool counts_less);

/* ---- of one NodeSet ---- */

bool nodeset_has_ssh(const struct kube_object *nodeset);
/* The ConfigMap with sshd_config: only wanted with nodeset_has_ssh, never removed. */
struct json_mut *worker_ssh_config(struct json_build *build, const struct kube_object *nodeset,
                                   const struct kube_object *controller);

#endif
