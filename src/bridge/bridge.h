/* bridge.h - the whole bridge around its plans: caches, informers, the Slurm poller, lease, engine.
 *
 * It gets a loop, transports and a token, and knows nothing else of the world, so the same program
 * runs against a cluster (src/cmd/cmd_bridge.c) and in the simulator (tests/sim). */
#ifndef SLINC_BRIDGE_BRIDGE_H
#define SLINC_BRIDGE_BRIDGE_H

#include "bridge/checks.h"
#include "bridge/world/config.h"
#include "engine/engine.h"
#include "engine/health.h"
#include "io/http.h"
#include "kube/lease.h"
#include "slurm/client.h"
#include "slurm/mark.h"
#include "slurm/sight.h"

struct bridge_options {
    const struct bridge_config *config; /* borrowed */
    const char *identity;               /* of this process among the replicas */
    const char *lease_ns;
    struct slurm_owner owner; /* its secrets; the rest is found out */
    const char *lent_nodes;   /* the ConfigMap in lease_ns for their names; NULL: there is none */
    uint64_t seed;            /* of jitter */
    unsigned max_in_flight;   /* calls to the API server at once; 0 = the usual */
    unsigned page;            /* objects per page of a list; 0 = the usual */
    bool uninstall;           /* gives back all it holds; see bridge_has_left */
    bool observe_only;        /* plans and says what it would do, writes nothing */
    int64_t slurm_fast_us;    /* between polls while something is expected; 0 = the usual */
};

/* All borrowed. The lease has a transport of its own, so that no queue of calls delays a renewal.
 */
struct bridge_links {
    struct loop *loop;
    struct http_transport *api, *lease_api, *slurm;
    struct http_transport *agent; /* slurm/agent.h; NULL: there is none */
    struct slurm_token *token;
};

struct bridge;
struct bridge_world;

struct bridge *bridge_new(const struct bridge_links *links, const struct bridge_options *options);
/* Reads which cluster this is, then begins. */
void bridge_start(struct bridge *bridge);
void bridge_free(struct bridge *bridge);

bool bridge_is_leader(const struct bridge *bridge);

/* No submit and no cancel is without its answer, so the lease may be released and the next leader
 * need not wait. For run_options.may_release; context is the bridge. */
bool bridge_may_release(void *bridge);

/* For the frame around it: clean stop, health, metrics (engine/run.h, engine/health.h). */
struct engine *bridge_engine(const struct bridge *bridge);
struct kube_lease *bridge_lease(const struct bridge *bridge);
struct metrics *bridge_metrics(const struct bridge *bridge);
const struct bridge_world *bridge_world(const struct bridge *bridge); /* for the caches in it */
void bridge_add_health(struct bridge *bridge, struct health *health);

/* Of a bridge that is being removed: no pod has our finalizer, no job and no node in Slurm is ours,
 * no node has our taint. Else what is left. */
bool bridge_has_left(const struct bridge *bridge, struct buf *ret_what_is_left);

/* What is known of the other side, for checks.c; texts are borrowed until the loop runs. */
void bridge_check_facts(const struct bridge *bridge, struct check_facts *ret_facts);

#endif
