/* conditions.h - conditions of pods and nodes that are not Kubernetes' own, and its own of nodes
 * that are in trouble. Private to kinds. */
#ifndef SLINC_KUBE_CONDITIONS_H
#define SLINC_KUBE_CONDITIONS_H

#include "kube/kinds.h"

struct kube_conditions {
    const char *const *known;         /* types that are not kept; ends with NULL */
    const char *const *quiet;         /* types that are kept only while they are True; NULL: none */
    const struct json *ready;         /* out: the condition of this type; NULL: none */
    const struct kube_condition **at; /* in and out: of the object */
    unsigned *count;
};

/* What `list` makes of the conditions that are there: by type, as kinds.h says. */
int kube_conditions_decode(struct kube_decoder *decoder, const struct json *list,
                           struct kube_conditions *conditions, struct err *err);

#endif
