/* slurm_clusters_private.h - one Slurm cluster, shared by slurm_clusters.c and slurm_actions.c. */
#ifndef SLINC_OPERATOR_SLURM_CLUSTERS_PRIVATE_H
#define SLINC_OPERATOR_SLURM_CLUSTERS_PRIVATE_H

#include "base/list.h"
#include "codec/digest.h"
#include "operator/slurm_address.h"
#include "operator/slurm_clusters.h"
#include "slurm/client.h"
#include "slurm/poller.h"

enum { SLURM_MAX_CLUSTER_KEY = 2 * KUBE_MAX_NAME };

/* What a client is made of. */
struct address {
    char url[SLURM_MAX_URL];
    char key_hash[DIGEST_HEX]; /* of the JWT key */
};

struct cluster {
    struct slurm_clusters *clusters;
    char key[SLURM_MAX_CLUSTER_KEY]; /* "namespace/name" */
    struct slurm_facts *facts;
    struct address address;
    struct http_transport *transport; /* all three or none */
    struct slurm_token *token;
    struct slurm_client *client;
    struct slurm_poller *poller;      /* NULL: no NodeSet refers to the Controller */
    struct slurm_call *call;          /* the ping, or the question for the configuration after it */
    struct slurm_call *database_call; /* to slurmdbd; it may wait for its database for long */
    struct list actions;              /* on their way; slurm_actions.c */
    int64_t ask_from_us;              /* loop time of the next ping */
    int64_t database_from_us;         /* loop time of the next question to slurmdbd */
    bool is_seen;                     /* its Controller is there */
};

struct slurm_clusters {
    struct slurm_clusters_options options;
    struct map all; /* struct cluster by key */
    struct loop_timer timer;
};

/* slurmctld has read its files of this version. */
void slurm_cluster_reconfigured(struct cluster *cluster, const char *version);

/* Every action on its way is finished as UNAVAILABLE, for this reason. */
void slurm_actions_end(struct cluster *cluster, const char *reason);

#endif
