/* node_refusals.h - what Slurm refused to do about each node: the last action and Slurm's words.
 *
 * Plans tell people of it for as long as they would ask for the same again. A crash loses it: what
 * is still wrong is refused once more. */
#ifndef SLINC_ENGINE_NODE_REFUSALS_H
#define SLINC_ENGINE_NODE_REFUSALS_H

#include "base/str.h"

#include <stdbool.h>

struct node_refusals;

struct node_refusals *node_refusals_new(void);
void node_refusals_free(struct node_refusals *refusals);

/* node: its name in Slurm. action_text: all that was sent; the same text is the same action. */
void node_refusals_add(struct node_refusals *refusals, struct str node, struct str action_text,
                       const char *why);
void node_refusals_forget(struct node_refusals *refusals, struct str node);

bool node_refusals_have(const struct node_refusals *refusals, struct str node);
/* Why, if this action is the one that was refused; NULL. */
const char *node_refusals_why(const struct node_refusals *refusals, struct str node,
                              struct str action_text);

#endif
