/* poller_private.h - what the files of the poller share. */
#ifndef SLINC_SLURM_POLLER_PRIVATE_H
#define SLINC_SLURM_POLLER_PRIVATE_H

#include "base/list.h"
#include "base/map.h"
#include "slurm/cache_private.h"
#include "slurm/poller.h"

enum {
    SLURM_READS_AT_ONCE = 8,     /* of single jobs, in one poll */
    SLURM_STATE_QUERY = 15000,   /* bytes of one query, about 1,000 ids; four times that would do */
    SLURM_STARTS_AT_ONCE = 8,    /* of jobs that have started, beside these */
    SLURM_STATES_AT_ONCE = 5000, /* in one callback, 1 to 2 us each */
    SLURM_ID_TEXT = 24,
};

enum feed_phase {
    FEED_STOPPED,
    FEED_WAITS,      /* for its period; the timer runs */
    FEED_LISTS,      /* a list was asked for, or arrives */
    FEED_COMMITS,    /* slice by slice; the timer runs */
    FEED_ASKS_STATE, /* jobs only, as all that follow: a query is under way */
    FEED_COMPARES,   /* slice by slice */
    FEED_READS,      /* those that differ */
};

struct feed_row {
    const struct slurm_kind *kind;
    enum slurm_endpoint list, one;
    bool hastens; /* while something is expected */
};

struct feed {
    struct slurm_poller *poller;
    const struct feed_row *row;
    struct slurm_cache *cache;
    enum feed_phase phase;
    struct loop_timer timer;
    struct slurm_call *call;
    struct json_doc *doc; /* states while they are worked through */
    struct json_iter iter;
    struct slurm_merge *merge; /* while a list arrives */
    struct err flaw;           /* of the first element that could not be read */
    int64_t update_time;       /* for the next list; 0: all of it */
    int64_t updated_us;        /* when it came */
    int64_t asked_time;        /* the one that the list under way was asked for with */
    int64_t next_update;       /* what the list under way said */
    int64_t started_us;        /* of the poll under way */
    int64_t good_us;           /* the start of the last good poll; INT64_MIN = never */
    uint64_t suspicions_then;  /* when the list was asked for */
    size_t poll_bytes;         /* of the last poll: states, or a list that is asked for by period */
    int64_t owed_until_us;     /* slurmrestd would be left alone until then for all lists so far */
    unsigned failures;         /* in a row */
    bool again;                /* somebody wants a poll that starts after the one under way */
    struct slurm_feed_stats stats;
    char last_error[240];
};

/* Whom a round of states is about. Jobs that wait are asked for most often: that they start is what
 * somebody waits for, and there are few of them when many run. */
enum job_round { ROUND_WAITING, ROUND_TRACKED, ROUND_ALL };

struct job_read {
    int64_t id;
    bool started; /* it was waiting and runs now */
};

/* A job that has started, as its nodes show it. They do not show whose job it is: so it counts only
 * when slurmctld has not been restarted since we knew the id, for else the id may be another's. */
struct job_start {
    const struct slurm_object *job;
    struct json_doc *layout; /* for options.layout_read; NULL */
    int64_t sent_us;
};

struct job_starts {
    struct job_start *at;
    size_t count, capacity;
};

/* Reads of started jobs, beside the polls. */
struct start_reads {
    int64_t *ids; /* that wait for their turn, from next on */
    size_t count, capacity, next;
    unsigned reading;
    struct list reads;                   /* struct slurm_nodes_read */
    struct job_starts answered, checked; /* not yet, and just now held against the boot time */
    struct slurm_call *boot_call;
    struct loop_timer look_timer;
    int64_t look_from_us;
};

/* What only jobs need. */
struct job_poll {
    bool wants_list;
    int64_t wanted_us;       /* only a list that began since is the one that is wanted */
    enum job_round about;    /* the states under way */
    int64_t all_from_us;     /* the next round about all, where mostly the tracked are asked for */
    int64_t tracked_from_us; /* and about all that are tracked, where some of them wait */
    int64_t list_from_us;    /* no whole list before */
    int64_t calm_from_us;    /* and none before this, while nothing is suspected */
    uint64_t round;          /* entries that the states under way have named */
    size_t asked;            /* of the tracked ids */
    struct job_read *reads;
    size_t count, capacity, next;
    int64_t reads_until_us; /* then the rest of them is left to the next round */
    unsigned reading;
    unsigned failed, well; /* reads of the round under way that have ended so */
    int64_t highest;       /* every id up to it that answers about all have named was read */
    int64_t next_highest;  /* what it will be after the reads under way */
    struct map parts;      /* struct job_part, by id as text: see poller_parts.c */
    bool lost;             /* the states lack a job that has not ended */
    bool fell;             /* the states have a new job below the highest id */
};

struct slurm_poller {
    struct slurm_client *client;
    struct loop *loop;
    struct slurm_poller_options options;
    struct feed feeds[SLURM_FEEDS];
    struct job_poll jobs;
    struct start_reads starts;
    struct map tracked; /* by id as text; in order */
    size_t max_list;    /* SLURM_MAX_LIST; less in tests */
    struct list reads;  /* struct slurm_read */
    int64_t expect_until_us;
    bool suspicious; /* until a whole job list has been merged */
    bool unreached;  /* a 502 came: until the boot time shows that it was no restart */
    int64_t unreached_from_us, unreached_us; /* when the first of them came, and the last */
    uint64_t suspicions, unreached_count;
    char why[120];
    struct loop_timer conf_timer;
    struct slurm_call *conf_call;
    int64_t boot_time, next_job_id;
    int64_t conf_taken_us; /* when they came: an answer asked for before may be older */
    int64_t boot_known_us; /* when the answer was asked for that first showed this boot time */
};

/* ---- poller.c ---- */
void slurm_feed_flawed(struct feed *feed, const char *why); /* counts and names a failure */
void slurm_feed_list(struct feed *feed);                    /* asks for the list */
void slurm_feed_good(struct feed *feed); /* the poll has ended well: waits for the next */
void slurm_feed_failed(struct feed *feed, const char *why);
void slurm_feed_wait(struct feed *feed, int64_t us);
/* Counts the answer; a reason for suspicion is one here too. */
void slurm_feed_count(struct feed *feed, const struct slurm_answer *answer);

/* Whether nothing may be believed gone: a restart is suspected, or slurmctld was not reached. */
bool slurm_is_in_doubt(const struct slurm_poller *poller);
void slurm_ask_conf_now(struct slurm_poller *poller); /* before its time */
/* What an answer of /conf says about restarts. True when it shows the boot time known before. */
bool slurm_take_conf(struct slurm_poller *poller, const struct slurm_answer *answer);

/* ---- poller_jobs.c ---- */
void slurm_jobs_poll(struct feed *feed);
void slurm_jobs_listed(struct feed *feed); /* a whole list was merged */
/* One that the poll waited for; whether the answer told anything. */
void slurm_jobs_read_ended(struct feed *feed, const char *key, bool well);
void slurm_jobs_want_read(struct job_poll *jobs, int64_t id, bool started);
void slurm_jobs_wants_list(struct slurm_poller *poller);
struct str slurm_id_key(int64_t id, char text[SLURM_ID_TEXT]);

/* ---- poller_parts.c ---- */
/* The record whose state this is, when the round has not named it before; else 0. */
int64_t slurm_part_note(struct feed *feed, const struct slurm_brief *brief);
/* Whether states name this job, which belongs to an array, by its own id. */
bool slurm_part_is_named(const struct slurm_poller *poller, const struct slurm_object *job);
void slurm_part_unread(struct slurm_poller *poller, const char *key); /* reading it failed */
/* After a round about all, before and after what is missing was judged. */
void slurm_parts_compare(struct feed *feed);
void slurm_parts_forget(struct feed *feed);

/* ---- poller_start.c ---- */
void slurm_start_read(struct slurm_poller *poller, int64_t id);
bool slurm_start_is_believable(const struct slurm_poller *poller, const struct slurm_entry *entry);
void slurm_starts_done(struct slurm_poller *poller);

/* ---- poller_read.c ---- */
void slurm_read_start(struct feed *feed, struct str key, bool of_poll);
bool slurm_read_is_under_way(const struct feed *feed, const char *key);
void slurm_reads_cancel(struct slurm_poller *poller);
/* Before the cache takes it: suspects when such a change does not happen without a restart. */
void slurm_job_check(struct slurm_poller *poller, const struct slurm_object *object,
                     int64_t started_us);

#endif
