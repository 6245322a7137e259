/* node_show.h - what a Kubernetes node shows of its Slurm node: a taint and a condition. */
#ifndef SLINC_BRIDGE_NODE_SHOW_H
#define SLINC_BRIDGE_NODE_SHOW_H

#include "bridge/world/world.h"

/* Adds the taint, or puts its value right. */
void node_show_taint(const struct bridge_world *world, const struct kube_node *node,
                     struct plan *plan);
void node_hide_taint(const struct bridge_world *world, const struct kube_node *node,
                     struct plan *plan);

struct node_word {
    bool available;
    const char *reason, *message;
};

bool node_has_condition(const struct kube_node *node);
/* Whether the words were new, and are written by this plan. */
bool node_show_condition(const struct bridge_world *world, const struct kube_node *node,
                         const struct node_word *word, struct plan *plan);
void node_hide_condition(const struct bridge_world *world, const struct kube_node *node,
                         struct plan *plan);

/* One that node_hide_taint would remove. */
bool node_shows_taint(const struct bridge_world *world, const struct kube_node *node);

#endif
