/* slurm_store.h - a model of slurmrestd and the slurmctld behind it: jobs, nodes, and what becomes
 * of requests when slurmctld is stopped, killed or started again.
 *
 * It has no sockets, no threads and no time of its own: a request is text, the answer is text, the
 * clock is given, and what slurmctld does by itself (starting jobs, ending them at their time
 * limit, forgetting old ones, saving its state, answering requests that waited) happens in
 * slurm_store_step. So a simulation decides when everything happens, and the same calls with the
 * same seed always give the same answers.
 *
 * Facts about a real 26.05 that it repeats, because programs have fallen over them:
 * - A job that was submitted starts 0.3 to 1 s later even when everything is free. The end of an
 *   external job wakes nobody: the next one starts at the next backfill cycle.
 * - A request that reaches a stopped slurmctld is answered with 504 after MessageTimeout, and is
 *   carried out all the same when slurmctld goes on, unless its token has run out by then.
 * - kill -9 loses what was acknowledged since the last save of state, gives the lost ids to new
 *   jobs, and may show running jobs as pending. A sluid is never given twice.
 * - One node read alone shows its use as it was when all nodes were last listed.
 *
 * Not in it: the accounting (404), array and het jobs, steps, dependencies, job_resources (the
 * detail per core), and an allocate that waits: one without `immediate` is decided at once too.
 *
 * How far it can be trusted is a test: the conformance script runs against this and against a real
 * slurmrestd, and the answers are compared (conformance/slurm_script.json). */
#ifndef SLINC_SIM_SLURM_STORE_H
#define SLINC_SIM_SLURM_STORE_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

#include <stdint.h>

struct slurm_store;

#define CTLD_USER_CLAIM "preferred_username" /* userclaimfield of its AuthAltParameters */

/* 0 or NULL stands for what is written behind. */
struct slurm_store_options {
    uint64_t seed;
    const char *cluster;         /* "sim" */
    const char *slurm_user;      /* "slurm": may do everything */
    struct str jwt_key;          /* checks tokens; empty: they are believed */
    const char *private_data;    /* "none"; or words as in slurm.conf: "jobs,nodes" */
    int64_t message_timeout_s;   /* 10 */
    int64_t min_job_age_s;       /* 300 */
    int64_t backfill_interval_s; /* 30 */
    int64_t save_interval_s;     /* 5: what kill -9 loses at most */
    int64_t start_delay_min_us;  /* 300 ms: from a submit to the cycle that looks at it, */
    int64_t start_delay_max_us;  /* 1 s */
    unsigned max_job_count;      /* 10,000 */
    unsigned max_node_count;     /* 1,024 */
    unsigned oldest_version;     /* 42: of v0.0.NN */
    unsigned newest_version;     /* 45 */
    bool rewrites_comments;      /* a plugin of the site does so, at every submit and update */
    bool refuses_with_500;       /* as before 26.05, where a refusal is 422 */
};

/* Starts with the partition "all" (every node, the default one), made of no nodes. The clock is
 * borrowed. */
struct slurm_store *slurm_store_new(const struct clock *clock,
                                    const struct slurm_store_options *options);
void slurm_store_free(struct slurm_store *store); /* takes NULL; nobody is answered any more */

/* ---- calls ---- */

struct slurm_store_request {
    const char *method;
    struct str target; /* path and query */
    struct str content_type;
    struct str body;
    struct str token; /* X-SLURM-USER-TOKEN; empty: no such header */
    const char *user; /* X-SLURM-USER-NAME; NULL or "": no such header */
    bool by_agent;    /* past slurmrestd, as SlurmUser, and with the paths of the agent's own */
};

struct slurm_store_answer {
    int status; /* 0: nobody listens, the connection is refused; -1: it breaks */
    const char *content_type;
    struct buf body;
};

void slurm_store_answer_init(struct slurm_store_answer *answer);
void slurm_store_answer_done(struct slurm_store_answer *answer);

/* Carried out at once by a slurmctld that is up, whatever its real state: for people and scripts.
 */
void slurm_store_serve(struct slurm_store *store, const struct slurm_store_request *request,
                       struct slurm_store_answer *answer);

/* As the network brings it: `answered` is called once, either now or from a later step or verb of
 * this header. Gives a ticket while there is no answer yet, else 0. */
typedef void (*slurm_store_answered)(void *context, const struct slurm_store_answer *answer);
uint64_t slurm_store_ask(struct slurm_store *store, const struct slurm_store_request *request,
                         slurm_store_answered answered, void *context);
/* Who asked has left: no answer follows. The request lives on inside slurmrestd. */
void slurm_store_forget(struct slurm_store *store, uint64_t ticket);

/* The answer of a gateway in trouble (500, 502, 504), as slurmrestd words it. */
void slurm_store_trouble(struct slurm_store *store, int status,
                         const struct slurm_store_request *request,
                         struct slurm_store_answer *answer);

/* ---- what happens by itself ---- */

/* The monotonic time at which slurm_store_step has something to do; INT64_MAX: never. */
int64_t slurm_store_next_us(const struct slurm_store *store);
void slurm_store_step(struct slurm_store *store); /* all that is due by now */
/* Called when something may be due earlier than it was; must not call back into the store. */
void slurm_store_on_wake(struct slurm_store *store, void (*wake)(void *context), void *context);
int64_t slurm_store_message_timeout_us(const struct slurm_store *store);

/* ---- the daemons ---- */

enum slurm_store_ctld { SLURM_CTLD_UP, SLURM_CTLD_STOPPED, SLURM_CTLD_DOWN };

enum slurm_store_ctld slurm_store_ctld(const struct slurm_store *store);
void slurm_store_stop(struct slurm_store *store);      /* SIGSTOP: requests wait */
void slurm_store_continue(struct slurm_store *store);  /* SIGCONT: and are carried out, late */
void slurm_store_kill(struct slurm_store *store);      /* kill -9; what waited is lost */
void slurm_store_shut_down(struct slurm_store *store); /* saves first */
void slurm_store_start(struct slurm_store *store);     /* from the last saved state */
void slurm_store_save(struct slurm_store *store);      /* now, out of turn */
void slurm_store_set_restd(struct slurm_store *store, bool is_up); /* down: refused connections */

/* ---- looking in, for checks ---- */

/* Borrowed until the store changes; texts are never NULL. */
struct slurm_store_job {
    int64_t id;
    const char *sluid;    /* unique for ever */
    const char *state;    /* "PENDING", "RUNNING" ... */
    const char *reason;   /* "None", "Resources" ... */
    const char *user;     /* the job is this user's, */
    const char *asked_by; /* and this one sent the request */
    const char *name, *partition, *account, *qos;
    const char *admin_comment, *comment, *extra;
    const char *nodes; /* hostlist; "" without an allocation. Kept after the end */
    const char *required_nodes, *excluded_nodes;
    uint64_t priority;                   /* 0: held */
    int64_t time_limit;                  /* minutes; -1: unlimited */
    int64_t submit_us, start_us, end_us; /* wall clock; 0: not yet */
    unsigned node_count, restarts;
    bool external, exclusive;
    bool holds_nodes; /* running, suspended or completing */
    bool has_ended;   /* for good */
};

struct slurm_store_node {
    const char *name;
    const char *state;  /* "IDLE+EXTERNAL+DYNAMIC_NORM" */
    const char *reason; /* of a drain */
    const char *reason_user;
    const char *features, *comment, *extra, *gres;
    unsigned cpus, alloc_cpus, jobs; /* jobs that hold something on it */
    int64_t memory, alloc_memory;    /* MiB */
    unsigned free_devices;           /* of all its gres */
    bool external, is_drained, is_down;
};

typedef void (*slurm_store_see_job)(void *context, const struct slurm_store_job *job);
typedef void (*slurm_store_see_node)(void *context, const struct slurm_store_node *node);
void slurm_store_visit_jobs(const struct slurm_store *store, slurm_store_see_job see,
                            void *context); /* by id */
void slurm_store_visit_nodes(const struct slurm_store *store, slurm_store_see_node see,
                             void *context); /* by age */
/* False when there is none. The view is good until the store changes or is looked at again. */
bool slurm_store_find_job(const struct slurm_store *store, int64_t id,
                          struct slurm_store_job *ret_job);
bool slurm_store_find_node(const struct slurm_store *store, const char *name,
                           struct slurm_store_node *ret_node);
/* Whether this job holds something on this node. */
bool slurm_store_is_on(const struct slurm_store *store, int64_t id, const char *node);
unsigned slurm_store_cpus_on(const struct slurm_store *store, int64_t id, const char *node);
int64_t slurm_store_next_id(const struct slurm_store *store);

enum slurm_store_event {
    SLURM_JOB_TAKEN,   /* submitted, or allocated at once */
    SLURM_JOB_STARTED, /* has an allocation */
    SLURM_JOB_OVER,    /* ended, and holds nothing */
    SLURM_JOB_BACK,    /* requeued: pending again */
    SLURM_JOB_CHANGED,
    SLURM_JOB_FORGOTTEN, /* by its age */
    SLURM_JOB_LOST,      /* by a crash of slurmctld */
    SLURM_NODE_ADDED,
    SLURM_NODE_CHANGED,
    SLURM_NODE_REMOVED,
};

struct slurm_store_change {
    enum slurm_store_event event;
    const char *user;                  /* who did it; "" for slurmctld itself */
    const struct slurm_store_job *job; /* of job events; as it is now, or was last */
    const struct slurm_store_node *node;
};
typedef void (*slurm_store_listener)(void *context, const struct slurm_store_change *change);
void slurm_store_listen(struct slurm_store *store, slurm_store_listener listener, void *context);

/* ---- people: admins and users past REST; -ERR_NOT_FOUND, -ERR_INVALID ---- */

/* A job with a script, as sbatch makes it: never on external nodes. Gives its id, or -class. */
struct slurm_people_ask {
    const char *user, *name, *partition; /* partition NULL: the default */
    unsigned nodes, cpus;                /* cpus on each node; 0 = 1 */
    int64_t time_limit;                  /* minutes; 0: the partition's */
    uint64_t priority;                   /* 0: as all */
    bool exclusive, external;            /* external: as by `sbatch --external` */
    const char *required_nodes;          /* NULL: any */
    const char *admin_comment, *extra;   /* NULL: none */
};
int64_t slurm_people_submit(struct slurm_store *store, const struct slurm_people_ask *ask,
                            struct err *err);
int slurm_people_cancel(struct slurm_store *store, int64_t id, const char *user, struct err *err);
int slurm_people_complete(struct slurm_store *store, int64_t id, int exit_code, struct err *err);
int slurm_people_hold(struct slurm_store *store, int64_t id, bool by_admin, struct err *err);
int slurm_people_release(struct slurm_store *store, int64_t id, struct err *err);
int slurm_people_requeue(struct slurm_store *store, int64_t id, bool hold, struct err *err);
int slurm_people_suspend(struct slurm_store *store, int64_t id, struct err *err);
int slurm_people_resume(struct slurm_store *store, int64_t id, struct err *err);
int slurm_people_preempt(struct slurm_store *store, int64_t id, bool requeue, struct err *err);
int slurm_people_set_priority(struct slurm_store *store, int64_t id, uint64_t priority,
                              struct err *err);
int slurm_people_set_comment(struct slurm_store *store, int64_t id, const char *admin_comment,
                             struct err *err);

/* A node with a slurmd, as registered, or an external one; nodes that are alike may be a hostlist.
 */
struct slurm_people_node {
    const char *names, *features;
    const char *extra; /* NULL: none */
    bool external;
    unsigned sockets, cores, threads; /* per socket, per core; 0 = 1 */
    int64_t memory;
};
int slurm_people_add_nodes(struct slurm_store *store, const struct slurm_people_node *node,
                           struct err *err);
int slurm_people_remove_node(struct slurm_store *store, const char *name, struct err *err);
int slurm_people_drain(struct slurm_store *store, const char *name, const char *user,
                       const char *reason, struct err *err);
int slurm_people_undrain(struct slurm_store *store, const char *name, struct err *err);
/* Its jobs end as NODE_FAIL, or go back into the queue when they may. */
int slurm_people_fail_node(struct slurm_store *store, const char *name, struct err *err);
int slurm_people_resume_node(struct slurm_store *store, const char *name, struct err *err);

/* feature NULL: every node is in it; else those with this feature (a NodeSet). */
struct slurm_people_partition {
    const char *name, *feature;
    bool is_default;
    int64_t max_time, default_time; /* minutes; 0: unlimited */
    unsigned max_nodes, tier;       /* 0: unlimited; 1 */
};
int slurm_people_add_partition(struct slurm_store *store,
                               const struct slurm_people_partition *partition, struct err *err);
int slurm_people_remove_partition(struct slurm_store *store, const char *name, struct err *err);
/* "UP", "DOWN", "DRAIN", "INACTIVE" */
int slurm_people_set_partition(struct slurm_store *store, const char *name, const char *state,
                               struct err *err);
void slurm_people_set_max_jobs(struct slurm_store *store, unsigned max_job_count);
/* Of a reservation from now on; users: separated by ','. */
int slurm_people_reserve(struct slurm_store *store, const char *name, const char *nodes,
                         const char *users, int64_t minutes, struct err *err);
int slurm_people_unreserve(struct slurm_store *store, const char *name, struct err *err);
/* Nobody may know a job any more: scontrol's purge, or a very old age. */
int slurm_people_forget(struct slurm_store *store, int64_t id, struct err *err);

#endif
