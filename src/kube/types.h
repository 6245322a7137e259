/* types.h - which fields the types of Kubernetes have that custom resources hold without a schema:
 * Container, PodSpec, ServiceSpec, PersistentVolumeClaim, and what is inside of them. */
#ifndef SLINC_KUBE_TYPES_H
#define SLINC_KUBE_TYPES_H

#include "codec/json.h"

/* A type, or "[]" before one. */
bool kube_type_is_known(const char *type);

/* Whether the type has this field, as of the newest Kubernetes that the table knows. */
bool kube_type_has(const char *type, struct str name);

/* "spec.slurmd.command: wants array, found string" */
typedef void (*kube_type_report)(void *context, const char *text);

/* Reports each value below `value` that has not the type of its field; `path` is where the value
 * stands. Fields that the type does not have pass. */
void kube_type_check(const char *type, const char *path, const struct json *value,
                     kube_type_report report, void *context);

#endif
