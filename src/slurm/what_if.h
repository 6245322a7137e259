/* what_if.h - a few questions to slurmctld, one after the other: when would this job start? They
 * change nothing, and only the agent answers them. */
#ifndef SLINC_SLURM_WHAT_IF_H
#define SLINC_SLURM_WHAT_IF_H

#include "slurm/agent.h"
#include "slurm/cache.h"

enum { SLURM_WHAT_IFS = 5, SLURM_WHAT_IF_BODY = 64 << 10 };

/* What would be another in the job's description. */
struct slurm_change {
    int64_t time_limit, cpus; /* minutes, of each task; 0: as they are */
    char partition[128];      /* "": as it is */
};
void slurm_change_write(const struct slurm_change *change, struct buf *out); /* members of JSON */

struct slurm_what_if {
    char change[96]; /* in words; "" for the job as it is */
    char *body;      /* of slurm_will_run */
    bool is_answered;
    int64_t start_time; /* seconds since 1970; 0: error says why it would not start */
    char nodes[256], error[240];
};

struct slurm_what_ifs {
    struct slurm_what_if at[SLURM_WHAT_IFS];
    unsigned count;
    int64_t soon; /* the first start that is not later than this ends the questions; 0: none does */

    struct slurm_client *client; /* private from here on */
    struct slurm_call *call;
    unsigned next;
    void (*done)(void *context);
    void *context;
};

/* Adds a question; false when there are as many as may be asked. The text is copied. */
bool slurm_what_if_add(struct slurm_what_ifs *ifs, const char *change, struct str body);

/* done is called once, from the loop, when all are answered or one could not be asked. */
void slurm_what_ifs_ask(struct slurm_what_ifs *ifs, struct slurm_client *client,
                        void (*done)(void *context), void *context);
void slurm_what_ifs_done(struct slurm_what_ifs *ifs); /* what is under way ends without callback */

/* Members of a JSON object: "willRun", and "sooner" with what lets it start sooner; "whatIf" of a
 * change. jobs: to find the one that it waits for. Nothing when nobody could be asked. */
void slurm_what_ifs_write(const struct slurm_what_ifs *ifs, const struct slurm_cache *jobs,
                          bool is_change, struct buf *out);

#endif
