/* why.h - what the bridge thinks of one pod, as JSON, for `slinc why`.
 *
 * It calls the functions that decide, on the caches by which they decide, and changes nothing: so
 * it cannot say anything else than the plan does. */
#ifndef SLINC_BRIDGE_WHY_H
#define SLINC_BRIDGE_WHY_H

#include "bridge/unit/unit.h"
#include "io/http_server.h"

/* The pod's unit and its phase; its job, as Slurm showed it last; the job description that its pods
 * become; which nodes fit. */
void why_write(const struct bridge_world *world, const struct kube_pod *pod, struct arena *arena,
               struct buf *out);

/* GET /debug/why?pod=NAMESPACE/NAME, and /debug/why?rules for the table of rules; context is the
 * bridge. */
void why_serve(void *context, const struct http_view *view, struct http_responder *responder);

#endif
