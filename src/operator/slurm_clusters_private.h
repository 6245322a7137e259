/* slurm_clusters_private.h - one Slurm cluster, shared by slurm_clusters.c and slurm_actions.c. */
#ifndef SLINC_OPERATOR_SLURM_CLUSTERS_PRIVATE_H
#define SLINC_OPERATOR_SLURM_CLUSTERS_PRIVATE_H

#include "codec/digest.h"
#include "engine/slurm_lane.h"
#include "operator/slurm_address.h"
#include "operator/slurm_clusters.h"

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
    struct http_transport *transport; /* both, and the client of the lane, or none */
    struct slurm_token *token;
    struct slurm_lane lane;           /* its poller is NULL while no NodeSet refers to this one */
    struct slurm_call *call;          /* the ping, or the question for the configuration after it */
    struct slurm_call *database_call; /* to slurmdbd; it may wait for its database for long */
    int64_t ask_from_us;              /* loop time of the next ping */
    int64_t database_from_us;         /* loop time of the next question to slurmdbd */
    unsigned reads_left;              /* of nodes whose jobs changed, in this second */
    bool is_seen;                     /* its Controller is there */
};

struct slurm_clusters {
    struct slurm_service service;
    struct slurm_clusters_options options;
    struct map all;            /* struct cluster by key */
    struct slurm_lane nowhere; /* of actions on a Controller that is not known */
    struct loop_timer timer;
};

/* slurmctld has read its files of this version. */
void slurm_cluster_reconfigured(struct cluster *cluster, const char *version);

#endif
