/* slurm_private.h - what the files of the slurmctld model share. */
#ifndef SLINC_SIM_SLURM_PRIVATE_H
#define SLINC_SIM_SLURM_PRIVATE_H

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/rand.h"
#include "codec/bitmap.h"
#include "codec/hostlist.h"
#include "codec/json.h"
#include "slurm_store.h"

enum {
    CTLD_MAX_BODY = 16 << 20,
    CTLD_MAX_ANSWER = 256 << 20,
    CTLD_MAX_MEMORY = 512 << 20, /* of one call */
    CTLD_MAX_LISTENERS = 8,
    CTLD_MAX_GRES = 4,     /* kinds on one node */
    CTLD_MAX_EXTRA = 1024, /* bytes */
    CTLD_MAX_IDS = 8000,   /* in one query: "Insane message length" */
    CTLD_SECOND = 1000000,
};

/* ---- jobs ---- */

enum ctld_phase {
    PHASE_PENDING,
    PHASE_RUNNING,
    PHASE_SUSPENDED,
    PHASE_COMPLETED,
    PHASE_CANCELLED,
    PHASE_FAILED,
    PHASE_TIMEOUT,
    PHASE_NODE_FAIL,
    PHASE_PREEMPTED,
    PHASE_OUT_OF_MEMORY,
};
extern const char *const ctld_phase_names[];

enum ctld_job_text {
    JOB_NAME,
    JOB_PARTITION,
    JOB_ACCOUNT,
    JOB_QOS,
    JOB_USER,
    JOB_ASKED_BY,
    JOB_ADMIN_COMMENT,
    JOB_COMMENT,
    JOB_EXTRA,
    JOB_REQUIRED, /* hostlists */
    JOB_EXCLUDED,
    JOB_NODES,
    JOB_FEATURES,
    JOB_TRES_PER_NODE,
    JOB_LICENSES,
    JOB_RESERVATION,
    JOB_DIRECTORY,
    JOB_WCKEY,
    JOB_MCS,
    JOB_REASON,
    JOB_TEXTS, /* how many there are */
};

/* What a job has on one node. */
struct ctld_piece {
    char *node;
    struct bitmap cores;
    struct bitmap devices[CTLD_MAX_GRES]; /* of each gres of the node */
    int64_t memory;
};

struct ctld_job {
    int64_t id;
    char sluid[16];
    char *text[JOB_TEXTS];
    enum ctld_phase phase;
    int64_t min_nodes, max_nodes;                 /* max 0: as many as min */
    int64_t tasks, tasks_per_node, cpus_per_task; /* 0: not said */
    int64_t memory_per_node, memory_per_cpu;      /* MiB; 0: not said, all of the node */
    int64_t time_limit;                           /* minutes; -1: unlimited, 0: not said */
    int64_t priority;                             /* 0: held */
    int64_t user_id, group_id;                    /* group_id -1: the user's */
    bool held_by_admin, external, batch, exclusive, requeue, immediate;
    unsigned restarts;
    int exit_code, exit_signal;
    int64_t submit_us, eligible_us, start_us, end_us, suspended_us; /* wall clock; 0: not yet */
    int64_t expected_us;       /* wall clock: when backfill would start it; 0: unknown */
    int64_t looked_at_us;      /* monotonic: from then on the scheduler sees it */
    int64_t ran_us;            /* before the last suspension */
    int64_t completing_us;     /* monotonic: until then its nodes are not given back; 0: not */
    struct ctld_piece *pieces; /* while it holds nodes, and after its end */
    unsigned piece_count;
    bool holds; /* the pieces are its own */
};

/* ---- nodes, partitions, reservations ---- */

enum ctld_node_text {
    NODE_NAME,
    NODE_ADDRESS,
    NODE_FEATURES,
    NODE_ACTIVE,
    NODE_COMMENT,
    NODE_EXTRA,
    NODE_REASON,
    NODE_REASON_USER,
    NODE_GRES,
    NODE_TOPOLOGY,
    NODE_TEXTS,
};

struct ctld_gres {
    char name[32], type[32];
    unsigned count;
    bool has_files; /* its devices have names, so that each is known by its index */
    struct bitmap busy;
};

struct ctld_node {
    char *text[NODE_TEXTS];
    unsigned sockets, cores, threads, cpus; /* cores of one socket, threads of one core */
    unsigned weight, line_weight; /* the second: as first made; a restart goes back to it */
    int64_t memory;
    int64_t reason_us, last_busy_us; /* wall clock */
    bool external, dynamic, drained, down;
    struct ctld_gres gres[CTLD_MAX_GRES];
    unsigned gres_count;
    struct bitmap busy; /* the rest follows from the jobs */
    int64_t alloc_memory;
    unsigned jobs;
    bool whole; /* one job has all of it */
    struct {
        unsigned cpus, gres[CTLD_MAX_GRES];
        int64_t memory;
    } shown;            /* what of it is taken, as counted when nodes were last listed */
    int64_t planned_us; /* wall clock: backfill means it for a waiting job from then on */
};

enum ctld_partition_text { PART_NAME, PART_FEATURE, PART_STATE, PART_TEXTS };

struct ctld_partition {
    char *text[PART_TEXTS]; /* the feature is "" for all nodes */
    bool is_default;
    int64_t max_time, default_time; /* minutes; 0: unlimited */
    unsigned max_nodes, tier;
};

enum ctld_resv_text { RESV_NAME, RESV_NODES, RESV_USERS, RESV_PARTITION, RESV_FLAGS, RESV_TEXTS };

struct ctld_resv {
    char *text[RESV_TEXTS];
    int64_t start_us, end_us; /* wall clock */
};

/* What slurmctld saves. */
struct ctld_state {
    struct ctld_job **jobs; /* by id */
    size_t job_count, job_capacity;
    struct map nodes, partitions, reservations; /* by name */
    int64_t next_id;
};

/* A request inside slurmrestd for which slurmctld has no time. */
struct ctld_waiting {
    struct list link;
    uint64_t ticket;
    char *method, *target, *type, *body, *token, *user;
    size_t body_len;
    int64_t deadline_us; /* monotonic: then slurmrestd gives up; 0: it has */
    bool reached_ctld;   /* and so is carried out when slurmctld goes on */
    bool by_agent;
    slurm_store_answered answered; /* NULL: nobody waits any more */
    void *context;
};

struct slurm_store {
    const struct clock *clock;
    struct rand rand;
    struct slurm_store_options options;
    char *texts[4]; /* what the options point at */
    struct ctld_state state, saved;
    bool dirty;
    int64_t save_us, backfill_us; /* monotonic: due */
    int64_t wake_us;              /* monotonic: a cycle out of turn; 0: none */
    int64_t cycle_us;             /* monotonic: the last cycle */
    int64_t boot_us;              /* wall clock */
    int64_t last_backfill_us;
    int64_t changed_us[4]; /* wall clock, by enum ctld_table */
    uint64_t last_sluid, last_ticket;
    enum slurm_store_ctld ctld;
    bool restd_is_down;
    struct list waiting;
    struct {
        slurm_store_listener listener;
        void *context;
    } listeners[CTLD_MAX_LISTENERS];
    unsigned listener_count;
    void (*wake)(void *context);
    void *wake_context;
    struct map users;   /* name -> uid, as they come */
    struct buf scratch; /* texts of views */
};

enum { CTLD_SIG_OOM = 253 }; /* Slurm's own, as a wait status */

enum ctld_table { TABLE_JOBS, TABLE_NODES, TABLE_PARTITIONS, TABLE_RESERVATIONS };

/* One call on its way through the two daemons. Texts live in the arena. */
struct ctld_route;
struct ctld_call {
    struct slurm_store *store;
    struct slurm_store_answer *answer;
    struct arena *arena;
    const struct ctld_route *route;
    unsigned version; /* 45 */
    const char *name; /* behind the path; "" for none */
    struct str query;
    const struct json *body;
    const char *user; /* who asks */
    bool privileged, by_agent;
    bool restd_only, reached_ctld; /* stops at slurmctld's door, and whether it came so far */
    struct buf warnings;           /* items of the array */
    struct {
        int number;
        const char *what, *source; /* NULL: there is none */
    } second;                      /* error of a refusal */
};

struct ctld_route {
    const char *method, *path;
    bool takes_name;
    unsigned since;
    void (*run)(struct ctld_call *call);
    const char *what, *source; /* in its refusals; %s in `what` is the name */
    const char *before;        /* what stands in front of "errors" in a refusal */
    bool is_local;             /* slurmrestd needs no slurmctld for an answer */
};

/* ---- slurm_store.c ---- */
int64_t ctld_now_us(const struct slurm_store *store); /* monotonic */
int64_t ctld_wall_us(const struct slurm_store *store);
void ctld_touch(struct slurm_store *store, enum ctld_table table); /* it has changed */
void ctld_wake(struct slurm_store *store);
const struct ctld_route *ctld_find_route(struct ctld_call *call, const char *method,
                                         struct str target);
/* What slurmrestd answers without slurmctld; false when it needs it. */
bool ctld_serve_restd(struct slurm_store *store, const struct slurm_store_request *request,
                      struct slurm_store_answer *answer);
int64_t ctld_uid(struct slurm_store *store, const char *user);
bool ctld_knows_user(const struct slurm_store *store, struct str name);
const char *ctld_user_of(const struct slurm_store *store, int64_t uid); /* "": nobody */

/* ---- slurm_state.c: records, and copies of them ---- */
void ctld_set(char **slot, const char *text);
void ctld_set_str(char **slot, struct str text);
void ctld_state_init(struct ctld_state *state);
void ctld_state_done(struct ctld_state *state);
void ctld_state_copy(struct ctld_state *to, const struct ctld_state *from); /* over what it held */
struct ctld_job *ctld_job_new(void);
void ctld_job_free(struct ctld_job *job);
void ctld_job_drop_pieces(struct ctld_job *job);
void ctld_job_add(struct ctld_state *state, struct ctld_job *job);
struct ctld_job *ctld_job_find(const struct ctld_state *state, int64_t id);
void ctld_job_remove(struct ctld_state *state, int64_t id);
struct ctld_node *ctld_node_new(const char *name);
void ctld_node_free(void *node);
struct ctld_node *ctld_node_find(const struct ctld_state *state, const char *name);
struct ctld_partition *ctld_partition_find(const struct ctld_state *state, const char *name);
struct ctld_partition *ctld_partition_add(struct ctld_state *state, const char *name);
struct ctld_resv *ctld_resv_find(const struct ctld_state *state, const char *name);
struct ctld_resv *ctld_resv_add(struct ctld_state *state, const char *name);
/* What jobs hold, counted from scratch. */
void ctld_state_recount(struct ctld_state *state);
void ctld_claim(struct ctld_state *state, const struct ctld_job *job);
void ctld_unclaim(struct ctld_state *state, const struct ctld_job *job);

/* ---- slurm_jobs.c: what happens to a job ---- */
bool ctld_job_has_ended(const struct ctld_job *job);
/* Gives it id, sluid and times, and puts it into the table. */
void ctld_job_take(struct slurm_store *store, struct ctld_job *job);
void ctld_job_start(struct slurm_store *store, struct ctld_job *job);
void ctld_job_end(struct slurm_store *store, struct ctld_job *job, enum ctld_phase phase,
                  const char *reason, const char *user);
void ctld_job_requeue(struct slurm_store *store, struct ctld_job *job, const char *reason);
void ctld_job_completed(struct slurm_store *store, struct ctld_job *job); /* gives nodes back */
/* As a plugin of the site does, if it has one: whatever stood there is lost. */
void ctld_rewrite_comment(const struct slurm_store *store, struct ctld_job *job);
void ctld_job_changed(struct slurm_store *store, const struct ctld_job *job, const char *user);
void ctld_job_forget(struct slurm_store *store, struct ctld_job *job, enum slurm_store_event event);
/* Monotonic; INT64_MAX: nothing is due. */
int64_t ctld_job_due_us(const struct slurm_store *store, const struct ctld_job *job);
int64_t ctld_job_ends_us(const struct ctld_job *job);                /* wall clock, by its limit */
void ctld_job_tick(struct slurm_store *store, struct ctld_job *job); /* what is due */
bool ctld_may_touch(const struct ctld_call *call, const struct ctld_job *job);
void ctld_run_job_get(struct ctld_call *call);
void ctld_run_jobs_list(struct ctld_call *call);
void ctld_run_jobs_state(struct ctld_call *call);
void ctld_run_job_cancel(struct ctld_call *call);
void ctld_run_jobs_cancel(struct ctld_call *call);
void ctld_run_resources(struct ctld_call *call);
void ctld_run_job_complete(struct ctld_call *call); /* the agent's */

/* ---- slurm_ask.c: job descriptions ---- */
/* `where` is what stands in front of a field's name in warnings. */
void ctld_ask_read(struct ctld_call *call, const struct json *ask, const char *where,
                   struct ctld_job *job);
bool ctld_ask_has_word(const struct json *value, const char *word); /* of a list */
/* A list of words as Slurm writes it, with commas; a text is such a list already. */
void ctld_join(const struct json *list, struct buf *out);
/* Whether it touches what a started job cannot change. */
bool ctld_ask_wants_pending(const struct json *ask);
/* Slurm's error number, or 0. */
int ctld_job_check(const struct slurm_store *store, const struct ctld_job *job);

/* ---- slurm_submit.c ---- */
void ctld_run_submit(struct ctld_call *call);
void ctld_run_allocate(struct ctld_call *call);
void ctld_run_job_update(struct ctld_call *call);

/* ---- slurm_fit.c: where a job fits ---- */
/* What the partition as a whole can never give, as the reason to wait; NULL: nothing. */
const char *ctld_asks_too_much(const struct slurm_store *store, const struct ctld_job *job);
enum ctld_fit {
    FIT_NOW,     /* with what is free */
    FIT_PLANNED, /* the same, and without delaying those for whom backfill has plans */
    FIT_EVER,    /* if nothing else ran, and all nodes were well */
};
bool ctld_in_partition(const struct ctld_partition *partition, const struct ctld_node *node);
bool ctld_list_has(const char *list, struct str word); /* separated by ',' */
bool ctld_features_fit(const char *wanted, const char *features);
bool ctld_is_reserved(const struct slurm_store *store, const struct ctld_node *node,
                      const char *except);
/* With pieces when it fits and `pieces` is set. */
bool ctld_fit(const struct slurm_store *store, const struct ctld_job *job, enum ctld_fit fit,
              struct ctld_piece **ret_pieces, unsigned *ret_count);
bool ctld_node_could(const struct slurm_store *store, const struct ctld_job *job,
                     const struct ctld_node *node); /* one of its nodes, if nothing else ran */
/* "gres/gpu:t4:2" -> name, type, count; false when it is something else. */
bool ctld_gres_ask(struct str item, struct ctld_gres *ret_gres);
int64_t ctld_job_nodes(const struct ctld_job *job); /* how many it needs at least */
int64_t ctld_job_cpus(const struct ctld_job *job);  /* in all */

/* ---- slurm_schedule.c ---- */
void ctld_schedule(struct slurm_store *store, bool backfill);
/* Decides an immediate allocation: 0 when it has started, else Slurm's error number. */
int ctld_schedule_at_once(struct slurm_store *store, struct ctld_job *job);
bool ctld_has_pending(const struct slurm_store *store);
/* Another job of the partition waits that would come first. */
bool ctld_is_behind(const struct slurm_store *store, const struct ctld_job *job);

/* ---- slurm_nodes.c ---- */
const char *ctld_node_state(const struct ctld_node *node); /* "IDLE" ... */
void ctld_node_count_use(struct ctld_node *node);          /* for those who look */
void ctld_node_add(struct slurm_store *store, struct ctld_node *node, const char *user);
void ctld_node_remove(struct slurm_store *store, struct ctld_node *node, const char *user);
void ctld_node_shape(struct ctld_node *node); /* fills in what was not said */
void ctld_node_fail(struct slurm_store *store, struct ctld_node *node, const char *reason,
                    const char *user);
void ctld_run_node_create(struct ctld_call *call);
void ctld_run_node_update(struct ctld_call *call);
void ctld_run_nodes_update(struct ctld_call *call);
void ctld_run_node_delete(struct ctld_call *call);
void ctld_run_node_get(struct ctld_call *call);
void ctld_run_nodes_list(struct ctld_call *call);

/* ---- slurm_parts.c: partitions, reservations, and what the daemons say of themselves ---- */
void ctld_run_partition_get(struct ctld_call *call);
void ctld_run_partitions_list(struct ctld_call *call);
void ctld_run_resv_get(struct ctld_call *call);
void ctld_run_resvs_list(struct ctld_call *call);
void ctld_run_resv_put(struct ctld_call *call);
void ctld_run_resv_delete(struct ctld_call *call);
void ctld_run_ping(struct ctld_call *call);
void ctld_run_conf(struct ctld_call *call);
void ctld_run_diag(struct ctld_call *call);
void ctld_run_licenses(struct ctld_call *call);
void ctld_run_reconfigure(struct ctld_call *call);

/* ---- slurm_answer.c ---- */
void ctld_put(struct buf *out, const char *key); /* ,"key": without the comma at the start */
void ctld_put_text(struct buf *out, const char *key, const char *text);
void ctld_put_int(struct buf *out, const char *key, int64_t value);
void ctld_put_bool(struct buf *out, const char *key, bool value);
void ctld_put_number(struct buf *out, const char *key, int64_t value); /* set */
void ctld_put_unset(struct buf *out, const char *key);
void ctld_put_infinite(struct buf *out, const char *key);
void ctld_put_words(struct buf *out, const char *key, const char *list); /* split at ',' */
void ctld_plain(struct slurm_store_answer *answer, int status, const char *text);
void ctld_begin(struct ctld_call *call);  /* 200 and '{' */
void ctld_finish(struct ctld_call *call); /* errors, warnings and '}' */
void ctld_finish_error(struct ctld_call *call, int number, const char *what, const char *source);
/* Instead of all that: one error. */
void ctld_refuse(struct ctld_call *call, int number);
void ctld_refuse_as(struct ctld_call *call, int number, const char *what, const char *source);
/* slurmrestd cannot read the parameters. */
void ctld_refuse_request(struct ctld_call *call, const char *part, const char *source);
void ctld_warn(struct ctld_call *call, const char *source, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int ctld_error_status(const struct slurm_store *store, int number);
const char *ctld_error_words(int number);
/* Whether a list with this update_time need not be sent. */
bool ctld_is_unchanged(const struct ctld_call *call, enum ctld_table table);
void ctld_put_last_update(struct ctld_call *call);
struct str ctld_query(const struct ctld_call *call, const char *name); /* "" when absent */

/* ---- slurm_show.c: records as JSON ---- */
void ctld_show_job(struct ctld_call *call, const struct ctld_job *job);
void ctld_show_node(struct ctld_call *call, const struct ctld_node *node);
void ctld_show_partition(struct ctld_call *call, const struct ctld_partition *partition);
void ctld_show_resv(struct ctld_call *call, const struct ctld_resv *resv);
void ctld_show_layout(struct ctld_call *call, const struct ctld_job *job);
void ctld_job_states(const struct ctld_job *job, char words[64]); /* "CANCELLED,COMPLETING" */

/* ---- slurm_ctld.c ---- */
void ctld_waiting_free(struct ctld_waiting *waiting);
/* The times of backfill that nobody waited for have passed. */
void ctld_align_backfill(struct slurm_store *store);

/* ---- slurm_look.c: views and listeners ---- */
void ctld_tell_job(struct slurm_store *store, enum slurm_store_event event,
                   const struct ctld_job *job, const char *user);
void ctld_tell_node(struct slurm_store *store, enum slurm_store_event event,
                    const struct ctld_node *node, const char *user);

#endif
