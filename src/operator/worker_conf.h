/* worker_conf.h - slurmd's arguments: where its configuration is, and how it registers its node.
 *
 * The images run the arguments through a shell (Slinky's) or take them as they are and remove one
 * pair of quotes (ours). So the value after --conf stands in single quotes and holds no quote, and
 * nothing in it means anything to a shell.
 *
 * Topology is in the value only when extraConf names it. Otherwise the image adds it from the
 * environment (POD_TOPOLOGY), and only when it is not empty: an empty "Topology=" in front of
 * another item makes Slurm take that item as the topology. */
#ifndef SLINC_OPERATOR_WORKER_CONF_H
#define SLINC_OPERATOR_WORKER_CONF_H

#include "base/arena.h"
#include "operator/kinds.h"

/* The value after --conf: "'Features=big,x Gres=gpu:2'". Keys are written with a capital, items and
 * features are sorted, a key that comes twice has its values joined by commas. Items that
 * worker_conf_check refuses are left out. */
const char *worker_conf(struct arena *arena, const struct kube_object *nodeset);

/* Whether extraConf itself says where the workers are in the network. */
bool worker_conf_has_topology(struct arena *arena, const struct kube_object *nodeset);

/* The generic resources that each worker registers with: "gpu:8"; "": none. */
const char *worker_gres(struct arena *arena, const struct kube_object *nodeset);

/* Names what is wrong with spec.extraConf: an item without "=", too many items, or a character that
 * could mean something to a shell or break a line. */
int worker_conf_check(struct str extra_conf, struct err *err);

#endif
