/* token.h - the custom resource Token: a JWT for Slurm in a Secret, renewed before it runs out. */
#ifndef SLINC_OPERATOR_TOKEN_H
#define SLINC_OPERATOR_TOKEN_H

#include "operator/sync.h"

/* What must exist for one Token; the key is "namespace/name". */
void token_plan(const struct operator_world *world, const struct kube_object *token,
                struct plan *plan);

#endif
