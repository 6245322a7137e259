/* ending.h - which pods still run on a node though Slurm has given their place to others.
 *
 * Where a kubelet and a slurmd share a node, a job of Slurm's own may start there as soon as Slurm
 * has ended the job of a pod; the pod needs its grace period. The prolog of such a job asks here
 * (docs/bridge.md), and waits. */
#ifndef SLINC_BRIDGE_ENDING_H
#define SLINC_BRIDGE_ENDING_H

#include "bridge/world/world.h"
#include "engine/metrics.h"
#include "io/http_server.h"

extern const struct metric_family ending_metrics[];
extern const size_t ending_metric_count;

struct ending {
    unsigned stay, unread;        /* unread: Slurm has not been asked since */
    const struct kube_pod *first; /* of those that stay; NULL */
};

/* Pure. since_us: only what was read of Slurm from then on (loop time) proves that a pod still has
 * its job. unread is called for each job that was not. */
struct ending ending_look(const struct bridge_world *world, struct str slurm_name, int64_t since_us,
                          void (*unread)(void *context, const struct slurm_job *job),
                          void *context);

/* How often anybody's questions may make the bridge ask Slurm: all of the network
 * may ask. */
struct ending_allowance {
    int64_t from_us;
    unsigned used;
};
/* False: not now. Who asks asks again. */
bool ending_may_read(struct ending_allowance *allowance, int64_t now_us);

/* GET /v1/nodes/NAME/ending?job=ID&waited=MILLISECONDS: a line with the number of such pods, also
 * of those of which it is not known yet. NAME is Slurm's. With `last` the job starts in any case:
 * that is counted, and told on a pod. 503 while it cannot be known. context: the bridge. */
#define ENDING_PATH "/v1/nodes/"
void ending_serve(void *context, const struct http_view *view, struct http_responder *responder);

#endif
