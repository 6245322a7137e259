/* pod_end.h - how a pod ended, read of its status. Private to src/kube; the struct is in kinds.h.
 */
#ifndef SLINC_KUBE_POD_END_H
#define SLINC_KUBE_POD_END_H

#include "kube/kinds.h"

/* For decode_more of pods: fills in pod->end, when the pod has ended or is being deleted. */
int kube_pod_end_decode(struct kube_decoder *decoder, const struct json *root, struct kube_pod *pod,
                        struct err *err);

#endif
