/* node_fit.h - whether a worker of a NodeSet fits a Node: nodeName, nodeSelector, required node
 * affinity and taints. Resources and other pods do not count: they are the scheduler's.
 *
 * Compiled once from the template of the workers, then asked of many Nodes. */
#ifndef SLINC_OPERATOR_NODE_FIT_H
#define SLINC_OPERATOR_NODE_FIT_H

#include "base/arena.h"
#include "kube/kinds.h"

struct node_fit;

/* spec: that of worker_template; it must outlive the result. */
int node_fit_new(struct arena *arena, const struct json *spec, const struct node_fit **ret_fit,
                 struct err *err);

struct node_fit_result {
    bool may_start;  /* a worker that was not there before */
    bool may_return; /* one that was there before a cordon, and is gone: create it with was_there */
    bool may_stay;   /* one that is there; a Node that is not ready or unreachable keeps it */
};

struct node_fit_result node_fit(const struct node_fit *fit, const struct kube_node *node);

#endif
