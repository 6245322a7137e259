/* poller.h - keeps the four caches true, for as little as slurmrestd can be asked for.
 *
 * Nodes, partitions and reservations are asked for with update_time: nothing new costs nothing. Of
 * jobs only ids and states are asked for, and then those jobs that differ from the cache, tasks of
 * arrays too; the whole list is read at the start, after a suspicion, and when most jobs differ.
 * What changes about a job without its state is therefore seen only by a direct read
 * (slurm_poller_read) or the next whole list.
 *
 * Suspicion: slurmctld may have been restarted and may have lost its last seconds. It lasts until a
 * whole job list that was asked for afterwards has been merged, and while it lasts nothing is
 * reported as gone, of any kind. A 502 alone is a suspicion only until slurmctld tells that its
 * boot time is still the same (v0.0.45 and later). A job that has ended and then disappears was
 * purged; a job that has not ended is gone only when a whole list lacks it and a direct read says
 * so too. */
#ifndef SLINC_SLURM_POLLER_H
#define SLINC_SLURM_POLLER_H

#include "slurm/cache.h"
#include "slurm/client.h"

struct slurm_poller;

enum slurm_feed { /* one per kind */
                  SLURM_FEED_JOBS,
                  SLURM_FEED_NODES,
                  SLURM_FEED_PARTITIONS,
                  SLURM_FEED_RESERVATIONS,
                  SLURM_FEEDS, /* how many there are */
};

struct slurm_poller_options {
    const struct slurm_owner *owner; /* whose jobs have keys (submit.h), borrowed; NULL: nobody's */
    int64_t fast_us;                 /* between polls while something is expected; 0 = 150 ms */
    int64_t slow_us;                 /* and else; 0 = 2 s */
    int64_t nodes_us;  /* between polls of nodes, for those who show their states to others; 0 =
                          slow_us. Lists may then come in a row, and in the long run take a third
                          of the time of one slurmrestd, whatever their size */
    int64_t conf_us;   /* between looks at slurmctld's boot time; 0 = 30 s */
    int64_t list_us;   /* between whole lists of jobs, for those who need reasons and expected
                          starts, which no state tells; 0: only when one is needed */
    bool tracked_only; /* poll the tracked jobs often, all others every five seconds at most */
    bool nodes_only;   /* of a job that starts read its nodes alone, which is cheap; what else
                          changed about it (times, tres_alloc) is as it was while it waited */
    /* With nodes_only: what such a job has on its nodes (slurm_layout_decode), told when the cache
     * has it as running. NULL: nobody wants to know. */
    void (*layout_read)(void *context, const struct slurm_job *job, const struct json *body);
    /* A list was merged, or it is known again whether slurmctld was restarted; NULL. */
    void (*settled)(void *context);
    void *context;
};

/* The client is borrowed and outlives the poller. Listen to the caches before the start. */
struct slurm_poller *slurm_poller_new(struct slurm_client *client,
                                      const struct slurm_poller_options *options);
void slurm_poller_start(struct slurm_poller *poller);
void slurm_poller_free(struct slurm_poller *poller); /* takes NULL; the caches go with it */

struct slurm_cache *slurm_poller_cache(struct slurm_poller *poller, enum slurm_feed feed);
bool slurm_poller_is_synced(const struct slurm_poller *poller); /* all four */

/* Something should happen soon: poll often until then (loop time). Whatever the periods, a server
 * that is slow or answers at length is asked less often. */
void slurm_poller_expect(struct slurm_poller *poller, int64_t until_us);

void slurm_poller_track(struct slurm_poller *poller, int64_t job_id);
void slurm_poller_untrack(struct slurm_poller *poller, int64_t job_id);

/* Reads this one now, whatever the period. */
void slurm_poller_read(struct slurm_poller *poller, enum slurm_feed feed, const char *key);
/* This one, which is in the cache as waiting, was started by an answer just now: reads where, by
 * its nodes alone where nodes_only lets it. That takes less of slurmctld and up to 100 ms more. */
void slurm_poller_started(struct slurm_poller *poller, const char *key);
/* A write about it was answered just now: older reads no longer count, and it is read at once. */
void slurm_poller_wrote(struct slurm_poller *poller, enum slurm_feed feed, const char *key);
/* Polls this kind now, not after its period, or again when a poll is under way; for writes about
 * many at once. */
void slurm_poller_refresh(struct slurm_poller *poller, enum slurm_feed feed);
/* A whole list of jobs is wanted that begins from now on, as soon as the pace allows; nothing is
 * suspected. slurm_cache_listed_us tells when it has come. */
void slurm_poller_list(struct slurm_poller *poller);

/* ---- suspicion ---- */
void slurm_poller_suspect(struct slurm_poller *poller, const char *why);
/* For answers to others' calls: a slurmctld that cannot be reached is a reason. */
void slurm_poller_heard(struct slurm_poller *poller, const struct slurm_answer *answer);
bool slurm_poller_is_suspicious(const struct slurm_poller *poller);
const char *slurm_poller_why(const struct slurm_poller *poller); /* the last reason; "" = never */

/* ---- for metrics ---- */
struct slurm_feed_stats {
    uint64_t requests, bytes, unchanged;
    uint64_t failures;        /* of polls, and of the reads of single objects */
    unsigned failed_in_a_row; /* polls, since the last good one */
    uint64_t lists;           /* whole ones that were merged */
    uint64_t reads;           /* of single objects */
    int64_t age_us;           /* since the start of the last good poll; INT64_MAX = never. One whose
                                 reads of single objects all failed is not good */
    int64_t took_us;          /* by the last answer */
    const char *last_error;   /* "" when well */
};
void slurm_poller_stats(const struct slurm_poller *poller, enum slurm_feed feed,
                        struct slurm_feed_stats *ret_stats);
uint64_t slurm_poller_suspicions(const struct slurm_poller *poller);

#endif
