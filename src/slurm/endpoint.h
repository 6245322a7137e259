/* endpoint.h - what slurmrestd and the agent offer: one row per path, read by the client and by the
 * error table. */
#ifndef SLINC_SLURM_ENDPOINT_H
#define SLINC_SLURM_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SLURM_VERSION_MIN = 42, /* v0.0.42: Slurm 24.11 */
    SLURM_VERSION_MAX = 45, /* v0.0.45: Slurm 26.05 */
};

enum slurm_verb { SLURM_GET, SLURM_POST, SLURM_DELETE };

enum slurm_endpoint {
    SLURM_PING,
    SLURM_CONF,         /* slurmctld's configuration */
    SLURM_JOBS,         /* list; DELETE cancels many */
    SLURM_JOBS_STATE,   /* id and state alone */
    SLURM_JOB,          /* one: read, update, cancel */
    SLURM_JOB_SUBMIT,   /* joins the queue */
    SLURM_JOB_ALLOCATE, /* decided inside the call when the job says `immediate` */
    SLURM_NODES,        /* list; POST updates many */
    SLURM_NODE,
    SLURM_NEW_NODE,
    SLURM_PARTITIONS,
    SLURM_PARTITION,
    SLURM_RESERVATIONS,
    SLURM_RESERVATION,
    SLURM_NEW_RESERVATION, /* creates, and updates when the name is there already */
    SLURM_RESOURCES,       /* what a job was given, node by node */
    SLURM_DIAG,
    SLURM_LICENSES,
    SLURM_SHARES,
    SLURM_RECONFIGURE, /* a GET that acts */
    SLURM_DB_ACCOUNTS,
    SLURM_DB_ASSOCIATIONS,
    SLURM_DB_QOS,
    SLURM_DB_USERS,
    SLURM_DB_USER,
    SLURM_DB_JOBS,
    SLURM_JOB_COMPLETE, /* ends a job with what happened; only the agent can */
    SLURM_WILL_RUN,     /* when and where a job would start; only the agent can */
    SLURM_ENDPOINTS,    /* how many there are */
};

struct slurm_endpoint_row {
    const char *name;  /* for metrics and messages: "job submit" */
    const char *path;  /* below /slurm/v0.0.NN or /slurmdb/v0.0.NN; ends with '/' before a name */
    const char *array; /* what a good answer to a GET must hold; NULL when it is not known */
    bool db;           /* of the accounting: there only when slurmrestd has the plugin */
    bool takes_name;   /* a name follows the path */
    bool bulk;         /* a long list: one at a time per client */
    bool acts;         /* even a GET changes something */
    unsigned since;    /* first version that has it */
    size_t max_answer; /* bytes */
    const char *after; /* what follows the name in the path; NULL: nothing */
    unsigned agent;    /* verbs that the agent answers as well (agent.h): a set of SLURM_VERB */
    bool agent_only;   /* a path of the agent's own: slurmrestd has nothing like it */
};

#define SLURM_VERB(verb) (1u << (verb))

const struct slurm_endpoint_row *slurm_endpoint(enum slurm_endpoint endpoint);
const char *slurm_verb_name(enum slurm_verb verb); /* "GET" ... */

/* Whether a call may change something, so that it must not be sent twice by itself. */
bool slurm_is_write(enum slurm_verb verb, enum slurm_endpoint endpoint);

#endif
