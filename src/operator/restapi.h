/* restapi.h - the custom resource RestApi: slurmrestd as a Deployment behind a Service. */
#ifndef SLINC_OPERATOR_RESTAPI_H
#define SLINC_OPERATOR_RESTAPI_H

#include "operator/sync.h"

/* What must exist for one RestApi; the key is "namespace/name". */
void restapi_plan(const struct operator_world *world, const struct kube_object *restapi,
                  struct plan *plan);

/* ---- restapi_build.c: the wanted children ---- */

int restapi_service(struct json_build *build, const struct kube_object *restapi,
                    struct json_mut **ret_service, struct err *err);

/* controller: the Controller that it refers to. live: the Deployment that exists, or NULL. */
int restapi_deployment(struct json_build *build, const struct operator_world *world,
                       const struct kube_object *restapi, const struct kube_object *controller,
                       const struct kube_object *live, struct json_mut **ret_deployment,
                       struct err *err);

#endif
