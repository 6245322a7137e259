/* why.h - what the bridge thinks of one pod, as JSON, for `slinc why`.
 *
 * It calls the functions that decide, on the caches by which they decide, and changes nothing: so
 * it cannot say anything else than the plan does. */
#ifndef SLINC_BRIDGE_WHY_H
#define SLINC_BRIDGE_WHY_H

#include "bridge/unit/unit.h"
#include "bridge/why_start.h"
#include "io/http_server.h"

/* The pod's unit and its phase; its job, as Slurm showed it last; the job description that its pods
 * become; which nodes fit. read: the job that its label names, where it was read for this answer
 * alone; NULL. ifs: what slurmctld was asked, about a change if is_change; NULL. */
void why_write(const struct bridge_world *world, const struct kube_pod *pod,
               const struct slurm_job *read, const struct slurm_what_ifs *ifs, bool is_change,
               struct arena *arena, struct buf *out);

/* Questions whose answers wait for Slurm: a job that the caches do not have yet, because another
 * replica submitted it just now, is read for whoever asks. */
struct why_reads {
    const struct bridge_world *world;
    struct slurm_client *slurm;
    struct list list; /* private */
    int64_t next_us;  /* when slurmctld may be asked again when jobs would start */
};

void why_reads_init(struct why_reads *reads, const struct bridge_world *world,
                    struct slurm_client *slurm);
void why_reads_stop(struct why_reads *reads); /* those under way get no answer */

/* "NAMESPACE/NAME". Answers once, at once or later: 200 with JSON, else with a line of text. With
 * an agent slurmctld is asked when its job would start, for one pod in a while. change: as in
 * why_start_ask; NULL. */
typedef void (*why_answer)(void *context, int status, struct str text);
void why_ask(struct why_reads *reads, struct str pod, const struct slurm_change *change,
             why_answer answer, void *context);

/* GET /debug/why?pod=NAMESPACE/NAME (with &timelimit=, &cpus= and &partition= for a change), and
 * /debug/why?rules for the table of rules; context is the bridge. */
void why_serve(void *context, const struct http_view *view, struct http_responder *responder);

#endif
