/* rare.h - the parts of a pod's spec that few pods have: struct kube_rare. Private to kinds. */
#ifndef SLINC_KUBE_RARE_H
#define SLINC_KUBE_RARE_H

#include "kube/kinds.h"

/* Sets pod->rare: NULL when the pod says nothing of the kind. Over a base, what the patch does not
 * name stays. */
int kube_rare_decode(struct kube_decoder *decoder, const struct json *root, struct kube_pod *pod,
                     struct err *err);

#endif
