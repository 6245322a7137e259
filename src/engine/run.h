/* run.h - the frame of every subcommand that keeps running: the loop, signals, and a clean end.
 *
 * The first SIGTERM or SIGINT begins a clean stop: no new plans, what is in flight is finished,
 * then the lease is given up so that another may take it at once. It takes 30 s at most. A second
 * signal ends the process at once. */
#ifndef SLINC_ENGINE_RUN_H
#define SLINC_ENGINE_RUN_H

#include "engine/engine.h"
#include "engine/health.h"
#include "kube/lease.h"

/* What the process says with its exit code. */
enum run_exit {
    RUN_OK = 0,      /* stopped cleanly */
    RUN_FAILED = 1,  /* could not start, or run_fail */
    RUN_USAGE = 2,   /* wrong flags */
    RUN_HURRIED = 3, /* stopped, but not all was finished: time was up, or a second signal */
};

enum { RUN_STOP_US = 30000000 };

struct run_options {
    struct engine *engine; /* each of these may be NULL */
    struct kube_lease *lease;
    const char *lease_name; /* of leader_election_master_status */
    struct health *health;
    struct metrics *metrics; /* gets the two families that know the process and the lease */
    /* Asked when nothing is in flight: whether the lease may be released, so that a successor acts
     * at once. Else it expires. NULL: always. */
    bool (*may_release)(void *context);
    void *may_release_context;
    int64_t stop_us;      /* for the whole stop; 0 = RUN_STOP_US */
    bool without_signals; /* for loops on virtual time */
};

struct run;

/* All are borrowed, metrics are not written after run_free; the loop may be virtual if it is
 * without signals. */
struct run *run_new(struct loop *loop, const struct run_options *options);
void run_free(struct run *run);

enum run_exit run_loop(struct run *run); /* until the end */
void run_stop(struct run *run);          /* as a signal: clean, and at once when called again */
/* Something that the process cannot live with: says it, stops cleanly, exits with RUN_FAILED. */
void run_fail(struct run *run, const struct err *why);

#endif
