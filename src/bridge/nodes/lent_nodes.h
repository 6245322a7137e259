/* lent_nodes.h - the names of the nodes that are lent to Slurm, in a ConfigMap: the parameter of
 * the chart's ValidatingAdmissionPolicy, which cannot read Nodes.
 *
 * A key of the ConfigMap per node, so that the policy finds a name without reading all. Values are
 * empty, because the server bounds the sum of the values. */
#ifndef SLINC_BRIDGE_LENT_NODES_H
#define SLINC_BRIDGE_LENT_NODES_H

#include "engine/engine.h"

struct lent_nodes {
    const struct kube_cache *nodes;
    const char *scheduler_name; /* the value of our taint */
    const char *ns, *name;      /* of the ConfigMap */
    struct controller controller;
    struct controller_watch watch;
};

/* Fills the controller in. All are borrowed, and `lent` outlives the engine. */
void lent_nodes_init(struct lent_nodes *lent, struct kube_cache *nodes, const char *scheduler_name,
                     const char *ns, const char *name);

/* All names are written, whatever the ConfigMap has: the server takes equal data for no change. */
void lent_nodes_plan(const struct lent_nodes *lent, struct plan *plan);

#endif
