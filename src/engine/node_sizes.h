/* node_sizes.h - since when a node has another size than in Slurm.
 *
 * A device plugin that restarts and a DaemonSet that is rolled out change what a node can give for
 * some seconds. Plans follow only what has lasted. A crash loses it: the time begins anew. */
#ifndef SLINC_ENGINE_NODE_SIZES_H
#define SLINC_ENGINE_NODE_SIZES_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct node_sizes;

struct node_sizes *node_sizes_new(void);
void node_sizes_free(struct node_sizes *sizes);

/* node: its name in Slurm. The time of the first of several differences in a row is kept. */
void node_sizes_record(struct node_sizes *sizes, struct str node, bool differs, int64_t now_us);
/* Loop time; 0 when no difference is recorded. Takes NULL. */
int64_t node_sizes_since(const struct node_sizes *sizes, struct str node);

#endif
