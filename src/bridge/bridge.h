/* bridge.h - the whole bridge around its plans: caches, informers, the Slurm poller, lease, engine.
 *
 * It gets a loop, transports and a token, and knows nothing else of the world, so the same program
 * runs against a cluster (src/cmd/bridge.c) and in the simulator (tests/sim). */
#ifndef SLINC_BRIDGE_BRIDGE_H
#define SLINC_BRIDGE_BRIDGE_H

#include "bridge/config.h"
#include "engine/engine.h"
#include "engine/health.h"
#include "io/http.h"
#include "kube/lease.h"
#include "slurm/client.h"
#include "slurm/sight.h"

struct bridge_options {
    const struct bridge_config *config; /* borrowed */
    const char *identity;               /* of this process among the replicas */
    const char *lease_ns;
    uint64_t seed;          /* of jitter */
    unsigned max_in_flight; /* calls to the API server at once; 0 = the usual */
    unsigned page;          /* objects per page of a list; 0 = the usual */
    bool observe_only;      /* plans and says what it would do, writes nothing */
    int64_t slurm_fast_us;  /* between polls while something is expected; 0 = the usual */
};

/* All borrowed. The lease has a transport of its own, so that no queue of calls delays a renewal.
 */
struct bridge_links {
    struct loop *loop;
    struct http_transport *api, *lease_api, *slurm;
    struct slurm_token *token;
};

struct bridge;

struct bridge *bridge_new(const struct bridge_links *links, const struct bridge_options *options);
/* Reads which cluster this is, then begins. */
void bridge_start(struct bridge *bridge);
void bridge_free(struct bridge *bridge);

bool bridge_is_leader(const struct bridge *bridge);

/* For the frame around it: clean stop, health, metrics (engine/run.h, engine/health.h). */
struct engine *bridge_engine(const struct bridge *bridge);
struct kube_lease *bridge_lease(const struct bridge *bridge);
struct metrics *bridge_metrics(const struct bridge *bridge);
void bridge_add_health(struct bridge *bridge, struct health *health);
/* What it knows beside the engine's state: leader, fence, suspicion, asks; as JSON. */
void bridge_write_state(const struct bridge *bridge, struct buf *out);

/* What was found out about the other side; for start-up checks and messages. */
struct slurm_client *bridge_slurm(const struct bridge *bridge);
struct kube_client *bridge_kube(const struct bridge *bridge);
const char *bridge_cluster(const struct bridge *bridge); /* UID; "" while it is not known */
/* NULL while slurmctld has not told. */
const struct slurm_site *bridge_site(const struct bridge *bridge, enum slurm_sight *ret_sight,
                                     const char **ret_why);

#endif
