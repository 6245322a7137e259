/* accounting.h - the custom resource Accounting: slurmdbd as a StatefulSet of one pod, with its
 * configuration in a Secret; or the address of a slurmdbd that runs elsewhere. */
#ifndef SLINC_OPERATOR_ACCOUNTING_H
#define SLINC_OPERATOR_ACCOUNTING_H

#include "operator/sync.h"

/* What must exist for one Accounting; the key is "namespace/name". */
void accounting_plan(const struct operator_world *world, const struct kube_object *accounting,
                     struct plan *plan);

/* ---- accounting_build.c: the wanted children ---- */

int accounting_service(struct json_build *build, const struct kube_object *accounting,
                       struct json_mut **ret_service, struct err *err);

/* The text of slurmdbd.conf. -ERR_NOT_FOUND when the Secret with the password of the database is
 * missing. */
int accounting_conf(const struct operator_world *world, const struct kube_object *accounting,
                    struct arena *arena, struct buf *out, struct err *err);

struct json_mut *accounting_secret(struct json_build *build, const struct kube_object *accounting,
                                   struct str conf);

/* live: the StatefulSet that exists, or NULL. */
int accounting_statefulset(struct json_build *build, const struct operator_world *world,
                           const struct kube_object *accounting, struct str conf,
                           const struct kube_object *live, struct json_mut **ret_statefulset,
                           struct err *err);

#endif
