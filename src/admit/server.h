/* server.h - the bridge's webhook: two paths of engine/webhook.h, and what it counts.
 *
 *     /mutate--v1-pod, /validate--v1-pod   POST of an AdmissionReview (admit.h)
 *
 * An answer is held while the namespace or the Job of a pod is not in the caches yet. */
#ifndef SLINC_ADMIT_SERVER_H
#define SLINC_ADMIT_SERVER_H

#include "admit/admit.h"
#include "engine/webhook.h"

/* webhook_server_new with the paths and counters of the bridge. The webhook borrows admit. */
int admit_server_new(struct loop *loop, struct admit *admit, struct webhook_options options,
                     struct webhook_server **ret_server, struct err *err);

extern const struct metric_family admit_metrics[];
extern const size_t admit_metric_count;

#endif
