/* slurm_facts.h - what Slurm last said, for one Controller, as plain values.
 *
 * slurm_clusters.c fills them; plans read them, and a test can write them down. */
#ifndef SLINC_OPERATOR_SLURM_FACTS_H
#define SLINC_OPERATOR_SLURM_FACTS_H

#include <stdbool.h>
#include <stdint.h>

struct slurm_cache;

enum { SLURM_FACTS_REASON = 240, CONFIG_VERSION = 34 };

struct slurm_facts {
    bool has_restapi;                /* a RestApi refers to the Controller */
    bool is_known;                   /* Slurm was asked since there is a RestApi */
    bool is_reachable;               /* the last ping was answered, and a slurmctld responds */
    int64_t since_us;                /* unreachable: wall clock of the first ping that failed; and
                                        without a RestApi: since when */
    char reason[SLURM_FACTS_REASON]; /* unreachable: why the first one failed */
    int active;                      /* reachable: ordinal of the first slurmctld that responds */
    bool has_conf_hash;              /* from Slurm 26.05 on */
    uint32_t conf_hash;              /* of the slurm.conf that slurmctld has read */
    /* The last reconfigure that slurmctld took: for which files (reconfigure.h), and when. */
    char reconfigured[CONFIG_VERSION];
    int64_t reconfigured_us; /* wall clock */
    /* What Slurm has: all four or none. None while no NodeSet refers to the Controller, and without
     * a client. Read them by slurm_view.h, which says how well something is known. */
    struct slurm_cache *nodes, *jobs, *partitions, *reservations;
    /* Whether slurmdbd answers from its database. Known while Slurm is reachable and the Controller
     * refers to an Accounting. */
    enum slurm_accounting { ACCOUNTING_NOT_KNOWN, ACCOUNTING_ANSWERS, ACCOUNTING_LOST } accounting;
    int64_t accounting_since_us; /* lost: wall clock of the first question that failed */
    char accounting_reason[SLURM_FACTS_REASON]; /* lost: in Slurm's words */
    bool is_suspicious; /* slurmctld may have been restarted, and may have lost records */
};

#endif
