/* tally.h - Slurm's jobs and nodes, added up in one pass: by partition, for the whole cluster, by
 * account, user and QOS, and node by node.
 *
 * Pure: the caches and a clock value in, sums out. Everything lives in the arena it is given; names
 * are borrowed from the caches. A kind that is not to be shown (stale, or hidden from our user) is
 * NULL in the view, and nothing is said about it. */
#ifndef SLINC_EXPORTER_TALLY_H
#define SLINC_EXPORTER_TALLY_H

#include "base/arena.h"
#include "base/map.h"
#include "exporter/tres.h"
#include "slurm/cache.h"
#include "slurm/reason.h"

enum {
    TALLY_GRES_KINDS = 32,             /* different generic resources of one cluster */
    TALLY_GRES = TALLY_GRES_KINDS + 1, /* the last one is "other" */
    TALLY_MAX_PARTITIONS = 1000,       /* more are counted under "other" */
    TALLY_MAX_REASONS = 250,           /* of one partition; more are counted under "other" */
    TALLY_MAX_OWNERS = 100000,
    TALLY_MAX_ARRAYS = 100000, /* with tasks that run */
};

enum tally_job_state {
    TALLY_JOB_PENDING,
    TALLY_JOB_CONFIGURING,
    TALLY_JOB_RUNNING,
    TALLY_JOB_SUSPENDED,
    TALLY_JOB_COMPLETING,
    TALLY_JOB_STATES,
};

enum tally_node_state { /* a node is in exactly one */
                        TALLY_NODE_IDLE,
                        TALLY_NODE_MIXED,
                        TALLY_NODE_ALLOCATED,
                        TALLY_NODE_COMPLETING,
                        TALLY_NODE_PLANNED,
                        TALLY_NODE_RESERVED,
                        TALLY_NODE_MAINT,
                        TALLY_NODE_DRAINING,
                        TALLY_NODE_DRAINED,
                        TALLY_NODE_DOWN,
                        TALLY_NODE_FAIL,
                        TALLY_NODE_POWERED_DOWN,
                        TALLY_NODE_POWERING,
                        TALLY_NODE_UNKNOWN,
                        TALLY_NODE_STATES,
};

enum tally_holder { /* who has it; the four add up to the whole */
                    TALLY_POD,
                    TALLY_JOB,
                    TALLY_IDLE,
                    TALLY_UNUSABLE,
                    TALLY_HOLDERS,
};

enum tally_owner_kind { TALLY_ACCOUNT, TALLY_USER, TALLY_QOS, TALLY_OWNER_KINDS };
enum { TALLY_RUNS, TALLY_WAITS, TALLY_STANDINGS };

extern const char *const tally_job_state_names[TALLY_JOB_STATES];
extern const char *const tally_node_state_names[TALLY_NODE_STATES];
extern const char *const tally_holder_names[TALLY_HOLDERS];
extern const char *const tally_standing_names[TALLY_STANDINGS];

enum tally_kind {
    KIND_JOBS,
    KIND_NODES,
    KIND_PARTITIONS,
    KIND_RESERVATIONS,
    KIND_DIAG,
    KIND_LICENSES,
    TALLY_KINDS,
};

enum tally_hidden {
    HIDES_JOBS,
    HIDES_NODES,
    HIDES_RESERVATIONS,
    HIDES_USERS,
    HIDES_UNKNOWN,
    TALLY_HIDDEN
};
extern const char *const tally_hidden_names[TALLY_HIDDEN];

struct tally_health { /* how well Slurm is heard */
    struct {
        bool is_up;
        double age_s; /* since the last good read began; negative: there was none */
    } kinds[TALLY_KINDS];
    bool hides[TALLY_HIDDEN];
    bool knows_hidden;                         /* else nothing is said about it */
    char cluster[64], version[32], parser[16]; /* "" while they are not known */
    size_t folded[TALLY_OWNER_KINDS];          /* names under "other" */
};

struct tally_view { /* what the pass reads; all borrowed */
    const struct slurm_cache *jobs, *nodes, *partitions, *reservations; /* NULL: not shown */
    const struct json *diag, *licenses;                                 /* the same */
    const struct tally_health *health;                                  /* NULL: not told */
    int64_t now_s;                                                      /* since 1970 */
    bool shows_users;
};

struct tally_pending {
    double jobs, nodes, cpus, memory_bytes, gres[TALLY_GRES];
    int64_t since_s; /* of the one that waits longest; 0: none */
};

/* What an autoscaler needs to know of a group. */
struct tally_size {
    double busy;         /* usable nodes in use */
    double free_nodes;   /* the rest of these, added up */
    double whole_nodes;  /* for jobs of several nodes, and for those that share none */
    double shared_nodes; /* for the other jobs of one node */
    double node_cpus, node_memory_bytes, node_gres[TALLY_GRES]; /* of the largest node */
};

struct tally_group { /* one partition, one NodeSet of slurm.conf, or the whole cluster */
    const char *name;
    double jobs[TALLY_JOB_STATES];
    struct tally_pending pending[SLURM_REASON_CLASSES];
    struct map reasons; /* Slurm's word -> struct tally_reason */
    double nodes[TALLY_NODE_STATES];
    double cpus[TALLY_HOLDERS], memory_bytes[TALLY_HOLDERS], gres[TALLY_GRES][TALLY_HOLDERS];
    struct tally_size size; /* complete when nodes were added up before jobs */
    bool has_jobs, has_nodes;
};

struct tally_reason {
    const char *name;
    double jobs[SLURM_REASON_CLASSES];
};

struct tally_owner { /* one account, user or QOS */
    const char *name;
    double jobs[TALLY_STANDINGS], nodes[TALLY_STANDINGS], cpus[TALLY_STANDINGS];
    double memory_bytes[TALLY_STANDINGS];
    double gres[TALLY_GRES][TALLY_STANDINGS];
    double billing; /* of what runs */
};

struct tally_node {
    const struct slurm_node *node;
    enum tally_node_state state;
    double cpus[TALLY_HOLDERS], memory_bytes[TALLY_HOLDERS];
    struct tres has, used, pods; /* generic resources: all, in use, in use by pods */
};

struct tally {
    struct arena *arena;
    const struct tally_view *view;
    struct tally_group cluster; /* everything once */
    struct map partitions;      /* struct tally_group: a job counts in each that it lists */
    struct map nodesets;        /* struct tally_group: a job that waits counts in one (demand.h) */
    struct map array_tasks;     /* id of an array -> double: how many of its tasks hold nodes */
    struct map owners[TALLY_OWNER_KINDS]; /* struct tally_owner */
    struct tally_node *nodes;
    size_t node_count;
    const char *gres_names[TALLY_GRES];
    unsigned gres_count; /* the names in use, without "other" */
    bool has_other_gres;
};

void tally_init(struct tally *tally, const struct tally_view *view, struct arena *arena);
void tally_done(struct tally *tally); /* the maps; the rest is the arena's */

void tally_jobs(struct tally *tally);  /* needs view->jobs */
void tally_nodes(struct tally *tally); /* needs view->nodes; who holds what needs view->jobs */

/* ---- the rules, for others and for tests ---- */

enum tally_node_state tally_node_state_of(const struct slurm_node *node);
bool tally_node_is_usable(enum tally_node_state state);

/* False for a job that has ended. */
bool tally_job_state_of(const struct slurm_job *job, enum tally_job_state *ret_state);
enum tally_holder tally_holder_of(const struct slurm_job *job); /* TALLY_POD or TALLY_JOB */

/* What a waiting job asks for: an array's record stands for all its waiting tasks, of which at most
 * `%n` run at once, less those that run already. */
struct tally_request {
    double tasks, at_once; /* at_once: how many of them may start now */
    struct tres each;      /* of one task */
    bool is_exclusive;     /* it shares its nodes with nobody */
};
void tally_request_of(const struct tally *tally, const struct slurm_job *job,
                      struct tally_request *ret_request);

/* What a job holds, as a whole. */
void tally_allocation_of(const struct slurm_job *job, struct tres *ret_tres);

unsigned tally_gres_index(struct tally *tally, struct str name); /* of gres_names */
/* The group of this name in `groups` (partitions or nodesets), or the one named "other". */
struct tally_group *tally_group(struct tally *tally, struct map *groups, struct str name);

#endif
