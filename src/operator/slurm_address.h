/* slurm_address.h - where the slurmrestd of a Controller is, and the key for its tokens. */
#ifndef SLINC_OPERATOR_SLURM_ADDRESS_H
#define SLINC_OPERATOR_SLURM_ADDRESS_H

#include "operator/world.h"

enum { SLURM_MAX_URL = 2 * KUBE_MAX_NAME + 64 };

/* The oldest RestApi that refers to the Controller "namespace/name"; NULL: none. */
const struct kube_object *slurm_restapi(const struct operator_world *world, const char *key);

/* -ERR_NOT_FOUND while its Service does not exist. */
int slurm_url(const struct operator_world *world, const struct kube_object *restapi,
              char ret_url[SLURM_MAX_URL], struct err *err);

/* -ERR_NOT_FOUND without the Secret or its key. */
int slurm_jwt_key(const struct operator_world *world, const struct kube_object *controller,
                  struct buf *ret_key, struct err *err);

#endif
