/* operator.h - the whole operator around its plans: caches, informers, lease, engine, Events.
 *
 * It gets a loop and transports and knows nothing else of the world, so the same program runs
 * against a cluster (src/cmd/cmd_operator.c) and in the simulator (tests/sim). */
#ifndef SLINC_OPERATOR_OPERATOR_H
#define SLINC_OPERATOR_OPERATOR_H

#include "engine/engine.h"
#include "engine/health.h"
#include "kube/lease.h"
#include "operator/slurm_clusters.h"

struct operator_options {
    const char *identity; /* of this process among the replicas */
    const char *lease_ns;
    uint64_t seed;                 /* of jitter */
    unsigned page;                 /* objects per page of a list; 0 = the usual */
    const char *const *namespaces; /* watched; borrowed */
    const char *dns_domain;        /* of Services; NULL: "cluster.local". Borrowed */
    /* What makes SSH host keys (`slinc`, an absolute path); NULL: placeholders. Borrowed. */
    const char *host_keys_program;
    unsigned namespace_count; /* 0: all */
    /* Types of Node conditions that explain a drain, with commas between; may be NULL. Borrowed. */
    const char *propagated_conditions;
    unsigned max_unregistered; /* workers of a Slurm cluster; 0 = the usual */
};

/* All borrowed. */
struct operator_links {
    struct loop *loop;
    struct http_transport *api, *lease_api;
    slurm_connect connect_slurm; /* NULL: it does not speak to Slurm */
    void *connect_context;
};

struct slurm_operator;

struct slurm_operator *operator_new(const struct operator_links *links,
                                    const struct operator_options *options);
void operator_start(struct slurm_operator *program);
void operator_free(struct slurm_operator *program);

bool operator_is_leader(const struct slurm_operator *program);

/* For the frame around it (engine/run.h, engine/health.h). */
struct engine *operator_engine(const struct slurm_operator *program);
struct kube_lease *operator_lease(const struct slurm_operator *program);
struct metrics *operator_metrics(const struct slurm_operator *program);
void operator_add_health(struct slurm_operator *program, struct health *health);

#endif
