/* node_refusals.h - what this process remembers of nodes: what Slurm refused to do about each, the
 * last action and its words; and since when a node has another size than in Slurm.
 *
 * Plans tell people of it for as long as they would ask for the same again. A crash loses it: what
 * is still wrong is refused once more. */
#ifndef SLINC_BRIDGE_NODE_REFUSALS_H
#define SLINC_BRIDGE_NODE_REFUSALS_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct node_refusals;

struct node_refusals *node_refusals_new(void);
void node_refusals_free(struct node_refusals *refusals);

/* node: its name in Slurm. action_text: all that was sent; the same text is the same action. */
void node_refusals_add(struct node_refusals *refusals, struct str node, struct str action_text,
                       const char *why);
void node_refusals_done(struct node_refusals *refusals, struct str node, struct str action_text);
void node_refusals_forget(struct node_refusals *refusals, struct str node);

bool node_refusals_have(const struct node_refusals *refusals, struct str node);
/* Why, if this action is the one that was refused; NULL. */
const char *node_refusals_why(const struct node_refusals *refusals, struct str node,
                              struct str action_text);

/* ---- sizes ----
 * A device plugin that restarts and a DaemonSet that is rolled out change what a node can give for
 * some seconds. Plans follow only what has lasted. A crash loses it: the time begins anew. */

struct node_sizes;

struct node_sizes *node_sizes_new(void);
void node_sizes_free(struct node_sizes *sizes);

/* node: its name in Slurm. The time of the first of several differences in a row is kept. */
void node_sizes_record(struct node_sizes *sizes, struct str node, bool differs, int64_t now_us);
/* Loop time; 0 when no difference is recorded. Takes NULL. */
int64_t node_sizes_since(const struct node_sizes *sizes, struct str node);

#endif
