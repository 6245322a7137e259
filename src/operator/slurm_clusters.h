/* slurm_clusters.h - the Slurm cluster behind each Controller: a client, and what it said last.
 *
 * A client speaks to the Service of the oldest RestApi that refers to the Controller, with tokens
 * signed with the Controller's JWT key. It is made anew when address or key change and ends with
 * the Controller. slurmctld is asked every 10 s who responds; with backups, and while none does,
 * every 2 s. Where the Controller refers to an Accounting, slurmdbd is asked for a short list as
 * often, which comes from its database. Answers become facts of the world (slurm_facts.h); one that
 * differs from the last wakes the Controller's plan. Nothing here blocks, and nothing that Slurm
 * answers is a failure of a plan. Calls to Slurm are actions (slurm_actions.h). */
#ifndef SLINC_OPERATOR_SLURM_CLUSTERS_H
#define SLINC_OPERATOR_SLURM_CLUSTERS_H

#include "io/http.h"
#include "io/loop.h"
#include "operator/world.h"

/* A transport to the slurmrestd at this URL, which the caller frees; NULL with err set. */
typedef struct http_transport *(*slurm_connect)(void *context, const char *url, struct err *err);

struct slurm_clusters_options {
    struct loop *loop;
    struct operator_world *world; /* its facts are written, its caches read */
    slurm_connect connect;
    void *connect_context;
    void (*changed)(void *context, struct str key);       /* facts of this Controller */
    void (*nodes_changed)(void *context, struct str key); /* nodes of its Slurm; may be NULL */
    bool (*may_act)(void *context); /* asked when a call is sent; NULL: always */
    void *changed_context;          /* of all three */
    uint64_t seed;                  /* of the pauses of clients */
};

struct slurm_clusters;

/* All in options is borrowed. */
struct slurm_clusters *slurm_clusters_new(const struct slurm_clusters_options *options);
void slurm_clusters_start(struct slurm_clusters *clusters); /* again: without effect */
void slurm_clusters_free(struct slurm_clusters *clusters);  /* takes NULL */

#endif
