/* controller.h - the custom resource Controller: slurmctld as a StatefulSet, its configuration and
 * its Services; or the address of a slurmctld that runs elsewhere. */
#ifndef SLINC_OPERATOR_CONTROLLER_H
#define SLINC_OPERATOR_CONTROLLER_H

#include "operator/slurm_conf.h"
#include "operator/sync.h"

/* What must exist for one Controller; the key is "namespace/name". */
void controller_plan(const struct operator_world *world, const struct kube_object *controller,
                     struct plan *plan);

/* ---- controller_build.c: the wanted children ---- */

struct controller_input {
    struct slurm_conf_input conf; /* the Controller, the world, the shape */
    struct arena *arena;
    const struct kube_object *live; /* the StatefulSet that exists, or NULL */
    const struct json_mut *config;  /* data of the ConfigMap */
    bool service_selects_active;    /* the client Service asks for the label `active` */
    bool keys_may_wait;             /* other slurm.jwks restart no pod yet (slurm_keys.h) */
};

int controller_config_data(struct json_build *build, const struct controller_input *input,
                           struct json_mut **ret_data, struct err *err);
struct json_mut *controller_config(struct json_build *build, const struct controller_input *input);
struct json_mut *controller_internal_service(struct json_build *build,
                                             const struct controller_input *input);
int controller_service(struct json_build *build, const struct controller_input *input,
                       struct json_mut **ret_service, struct err *err);
struct json_mut *controller_service_monitor(struct json_build *build,
                                            const struct kube_object *controller);
/* Whether pods of a StatefulSet that another operator made restart for another value of an option
 * (restart_options.h). */
bool controller_is_first_restart(const struct controller_input *input);
int controller_statefulset(struct json_build *build, const struct controller_input *input,
                           struct json_mut **ret_statefulset, struct err *err);

#endif
