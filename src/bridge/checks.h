/* checks.h - what is wrong with the site, found at the start, and what to do about it.
 *
 * Each check is a row of a table: a name, and a pure function from facts to a finding. A finding is
 * told once, and again when it changes; one that is bad comes with a line that mends it. */
#ifndef SLINC_BRIDGE_CHECKS_H
#define SLINC_BRIDGE_CHECKS_H

#include "bridge/world/config.h"
#include "io/http_server.h"
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

enum check_result { CHECK_UNKNOWN, CHECK_GOOD, CHECK_WARNS, CHECK_BAD };

struct check_finding {
    enum check_result result;
    char what[256]; /* what was found */
    char fix[320];  /* what to do about it; "" when good */
};

struct check {
    const char *name;
    void (*run)(const struct check_facts *facts, struct check_finding *ret_finding);
};

enum { CHECK_COUNT = 13 };
extern const struct check checks_table[CHECK_COUNT];

/* Runs the table again and again while the bridge runs; logs what changed. */
struct bridge;
struct loop;
struct checks;

struct checks *checks_new(struct loop *loop, struct bridge *bridge,
                          const struct bridge_config *config);
void checks_start(struct checks *checks);
void checks_free(struct checks *checks); /* before the bridge */

/* What was found last, as the part "checks" of /debug/state: for `slinc doctor`. */
struct health;
void checks_add_health(struct checks *checks, struct health *health);

/* GET /debug/checks: the same alone, {"checks": [...]}; context is the checks. */
void checks_serve(void *context, const struct http_view *view, struct http_responder *responder);

#endif
