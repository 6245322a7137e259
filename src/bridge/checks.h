/* checks.h - the bridge's checks (engine/checks.h) and the facts that they read. */
#ifndef SLINC_BRIDGE_CHECKS_H
#define SLINC_BRIDGE_CHECKS_H

#include "bridge/world/config.h"
#include "engine/checks.h"
#include "slurm/agent.h"
#include "slurm/sight.h"

struct check_facts {
    const struct bridge_config *config;
    const char *slurm_error;       /* of the last call; "" when Slurm answers */
    unsigned version;              /* of slurmrestd: 44 is v0.0.44; 0: not known */
    const struct slurm_site *site; /* NULL: slurmctld does not tell */
    enum slurm_sight job_visibility;
    const char *job_visibility_why;          /* "" before that was answered */
    bool lacks_user;                         /* it was, and nothing says whose the token is */
    bool partitions_known, partition_exists; /* the one of the config */
    size_t slurm_nodes, labelled_nodes;      /* there now; Kubernetes nodes to be registered */
    int64_t skew_us;                         /* of the API server's clock against ours */
    bool has_skew;
    bool pods_read, daemonsets_read;
    bool has_agent;
    struct slurm_agent_status agent; /* of has_agent */
};

enum { CHECK_COUNT = 13 };
extern const struct check checks_table[CHECK_COUNT];

struct bridge;
struct checks *bridge_checks_new(struct loop *loop, struct bridge *bridge);

#endif
