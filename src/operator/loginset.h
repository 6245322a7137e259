/* loginset.h - the custom resource LoginSet: pods where people log in over SSH and use Slurm. */
#ifndef SLINC_OPERATOR_LOGINSET_H
#define SLINC_OPERATOR_LOGINSET_H

#include "operator/sync.h"

/* What must exist for one LoginSet; the key is "namespace/name". */
void loginset_plan(const struct operator_world *world, const struct kube_object *loginset,
                   struct plan *plan);

/* ---- loginset_build.c: the wanted children ---- */

struct json_mut *loginset_host_keys(struct json_build *build, const struct kube_object *loginset);
struct json_mut *loginset_ssh_config(struct json_build *build, const struct kube_object *loginset);
int loginset_service(struct json_build *build, const struct kube_object *loginset,
                     struct json_mut **ret_service, struct err *err);

struct loginset_input {
    const struct operator_world *world;
    const struct kube_object *loginset;
    const struct kube_object *controller; /* that it refers to */
    const struct kube_object *host_keys;  /* the Secret that exists */
    const struct kube_object *live;       /* the Deployment that exists, or NULL */
};

int loginset_deployment(struct json_build *build, const struct loginset_input *input,
                        struct json_mut **ret_deployment, struct err *err);

#endif
