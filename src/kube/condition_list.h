/* condition_list.h - status.conditions of a custom resource: a list with one entry per type.
 *
 * A merge patch replaces a list as a whole, so the new list is the old one with our entries
 * changed: entries of others stay, and lastTransitionTime moves only with the status. */
#ifndef SLINC_KUBE_CONDITION_LIST_H
#define SLINC_KUBE_CONDITION_LIST_H

#include "codec/json.h"

#include <stdint.h>

enum kube_truth { KUBE_FALSE, KUBE_TRUE, KUBE_UNKNOWN_TRUTH };

struct kube_condition_want {
    const char *type;
    enum kube_truth status;
    const char *reason;  /* CamelCase; the API wants one */
    const char *message; /* for people; NULL for none */
};

/* The list with these conditions in it, or NULL when `live` says all of it already.
 * wall_us: the time of a transition, by the wall clock. */
struct json_mut *kube_condition_list(struct json_build *build, const struct json *live,
                                     const struct kube_condition_want *wanted, size_t count,
                                     int64_t generation, int64_t wall_us);

/* The entry of this type; NULL when there is none. */
const struct json *kube_condition_entry(const struct json *list, const char *type);

#endif
