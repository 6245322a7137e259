/* requests.h - amounts of resources by name, added up the way Kubernetes does. Private to kinds. */
#ifndef SLINC_KUBE_REQUESTS_H
#define SLINC_KUBE_REQUESTS_H

#include "kube/kinds.h"

/* The effective request of a pod: the larger of what runs side by side and of what the init
 * containers need in their turn, then pod-level resources in place of the sums, then overhead. The
 * effective limits by the same rule; but overhead is no limit where there is none. */
int kube_requests_decode(struct kube_decoder *decoder, const struct json *spec,
                         struct kube_requests *ret_requests, struct kube_requests *ret_limits,
                         struct err *err);

/* What of a ResourceList is no column of its own; over `base`, so that a patch works too. */
int kube_extended_decode(struct kube_decoder *decoder, const struct json *list,
                         const struct kube_amounts *base, struct kube_amounts *ret_amounts,
                         struct err *err);

#endif
