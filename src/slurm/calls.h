/* calls.h - slurmrestd's calls by name: what each needs, in the form in which it cannot go wrong.
 *
 * Each is slurm_send (client.h) with the request filled in; done is called once, from the loop. The
 * answer's body is decoded with object.h. Texts from outside are escaped here; a request that
 * cannot be made from them ends with INVALID before anything is sent.
 *
 * Careful with cancelling as a user who neither owns the job nor may end those of others: Slurm
 * 26.05.5 answers 403 after ten seconds and its slurmctld then hangs until it is restarted. */
#ifndef SLINC_SLURM_CALLS_H
#define SLINC_SLURM_CALLS_H

#include "slurm/client.h"

enum { SLURM_MAX_IDS = 4096 }; /* job ids in one call; twice as many are too long for slurmrestd */

/* ---- reads ----
 * update_time: what the last list said as last_update; the answer is NOT_MODIFIED when nothing has
 * changed since. 0 asks for the list in any case. */

struct slurm_call *slurm_ping_all(struct slurm_client *client, slurm_done done, void *context);
struct slurm_call *slurm_conf_get(struct slurm_client *client, slurm_done done, void *context);

/* Without the detail per core, which would be most of the answer. */
struct slurm_call *slurm_jobs_list(struct slurm_client *client, int64_t update_time,
                                   slurm_done done, void *context);
/* Id and state alone; of all jobs when count is 0. Ids that Slurm does not know are left out. */
struct slurm_call *slurm_jobs_state(struct slurm_client *client, const int64_t *ids, size_t count,
                                    slurm_done done, void *context);
struct slurm_call *slurm_job_get(struct slurm_client *client, int64_t id, slurm_done done,
                                 void *context);
struct slurm_call *slurm_resources_get(struct slurm_client *client, int64_t job_id, slurm_done done,
                                       void *context);

struct slurm_call *slurm_nodes_list(struct slurm_client *client, int64_t update_time,
                                    slurm_done done, void *context);
struct slurm_call *slurm_node_get(struct slurm_client *client, const char *name, slurm_done done,
                                  void *context);
struct slurm_call *slurm_partitions_list(struct slurm_client *client, int64_t update_time,
                                         slurm_done done, void *context);
struct slurm_call *slurm_partition_get(struct slurm_client *client, const char *name,
                                       slurm_done done, void *context);
struct slurm_call *slurm_reservations_list(struct slurm_client *client, int64_t update_time,
                                           slurm_done done, void *context);
struct slurm_call *slurm_reservation_get(struct slurm_client *client, const char *name,
                                         slurm_done done, void *context);

/* Read as JSON trees: "statistics", "licenses", and what the accounting has. */
struct slurm_call *slurm_diag_get(struct slurm_client *client, slurm_done done, void *context);
struct slurm_call *slurm_licenses_list(struct slurm_client *client, slurm_done done, void *context);
/* endpoint: one of SLURM_DB_ACCOUNTS, _ASSOCIATIONS, _QOS, _USERS, _JOBS; query may be NULL. */
struct slurm_call *slurm_db_list(struct slurm_client *client, enum slurm_endpoint endpoint,
                                 const struct slurm_param *query, size_t query_count,
                                 slurm_done done, void *context);

/* ---- jobs ---- (asking for one by the protocol that survives lost answers: submit.h) */

/* body: a whole request as JSON text, {"job":{...}}. */
struct slurm_call *slurm_job_submit(struct slurm_client *client, struct str body, slurm_done done,
                                    void *context);
struct slurm_call *slurm_job_allocate(struct slurm_client *client, struct str body, slurm_done done,
                                      void *context);
/* body: the fields to change. */
struct slurm_call *slurm_job_update(struct slurm_client *client, int64_t id, struct str body,
                                    slurm_done done, void *context);
/* DONE also for a job that has ended already. */
struct slurm_call *slurm_job_cancel(struct slurm_client *client, int64_t id, slurm_done done,
                                    void *context);
/* DONE when the request was taken; then body's `status` has an entry for each job that was not
 * cancelled by it: slurm_classify_status. An empty list of ids is refused: it would mean all. */
struct slurm_call *slurm_jobs_cancel(struct slurm_client *client, const int64_t *ids, size_t count,
                                     slurm_done done, void *context);

/* The same by name: a job's sluid, or its id as text. A sluid is never given to another job, so a
 * request that is carried out late cannot hit one. Where tokens are signed it has one that dies
 * after 12 s, so that it cannot be carried out much later either. Slurm 25.11 (v0.0.44) shows
 * sluids, but refuses them here: below SLURM_CANCEL_BY_SLUID a name must be an id. */
enum { SLURM_CANCEL_BY_SLUID = 45 };
struct slurm_call *slurm_jobs_cancel_named(struct slurm_client *client, const char *const *names,
                                           size_t count, slurm_done done, void *context);

/* ---- nodes ---- */

/* External nodes: Slurm schedules them and somebody else runs them. */
struct slurm_node_ask {
    const char *names;   /* one, or a hostlist of nodes that are alike */
    const char *address; /* never looked up: one for all, or one for each name in their order */
    int64_t cpus, sockets, cores_per_socket, threads_per_core; /* 0: left to Slurm */
    int64_t memory;                                            /* MiB; 0: left to Slurm */
    int64_t weight;                                            /* 0: left to Slurm */
    const char *features, *topology;                           /* NULL: none */
    const char *gres;      /* "gpu:h100:8"; not together with a range: Slurm fails halfway */
    const char *gres_conf; /* "count=8,name=gpu,type=h100,..."; needed with gres */
};

/* The line of slurm.conf that makes these nodes. -ERR_INVALID names what is wrong. */
int slurm_node_line(const struct slurm_node_ask *ask, struct buf *ret_line, struct err *err);
struct slurm_call *slurm_node_create(struct slurm_client *client, const struct slurm_node_ask *ask,
                                     slurm_done done, void *context);

/* body: the fields to change: {"state":["DRAIN"],"reason":"..."}. */
struct slurm_call *slurm_node_update(struct slurm_client *client, const char *name, struct str body,
                                     slurm_done done, void *context);
/* The same for many at once: body also holds "name":[...]. After UNKNOWN_NODE the others may have
 * been changed. */
struct slurm_call *slurm_nodes_update(struct slurm_client *client, struct str body, slurm_done done,
                                      void *context);
/* names: one, or a hostlist. Of a list those that can go do; BUSY and NOT_FOUND then tell of one
 * that could not, so read the nodes. */
struct slurm_call *slurm_node_delete(struct slurm_client *client, const char *names,
                                     slurm_done done, void *context);

/* ---- reservations and the rest ---- */

/* Creates it, or changes it when the name in the body is there already. */
struct slurm_call *slurm_reservation_put(struct slurm_client *client, struct str body,
                                         slurm_done done, void *context);
struct slurm_call *slurm_reservation_delete(struct slurm_client *client, const char *name,
                                            slurm_done done, void *context);
struct slurm_call *slurm_reconfigure(struct slurm_client *client, slurm_done done, void *context);

#endif
