/* absent_action.h - a question in a plan: the API server has none of what a cache does not show.
 *
 * A cache may be late, by seconds and more when its watch stalls. What must not be done while such
 * an object exists stands in the stage behind this. */
#ifndef SLINC_ENGINE_ABSENT_ACTION_H
#define SLINC_ENGINE_ABSENT_ACTION_H

#include "engine/plan.h"

extern const struct action_type action_absent; /* its service is a struct kube_client */

/* Succeeds only if the owner has no object of this resource in its namespace, asked for now. query:
 * narrows the list, already escaped: "labelSelector=app%3Da". */
void plan_confirm_absent(struct plan *plan, const struct kube_resource *resource,
                         const struct kube_object *owner, const char *query);

#endif
