/* report.h - tells the pod's owner, on the pod, what it waits for and what became of its job.
 *
 * One condition, SlurmPending, is there while a pod waits for longer than a second; PodScheduled
 * says the same to tools that know only that. What is already said is not written again. */
#ifndef SLINC_BRIDGE_REPORT_H
#define SLINC_BRIDGE_REPORT_H

#include "bridge/unit/unit.h"

/* reason: a CamelCase word. Of a group all members that are in its stage are told. Before a second
 * has passed nothing is written (more while hundreds wait), and the plan looks again when it has.
 * Whether it is written now. */
bool report_waiting(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                    const char *reason, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The same of what does not pass by itself: after a second, however many wait. */
bool report_trouble(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                    const char *reason, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The bridge itself can do nothing in Slurm, since this loop time. Pods say so at a bounded rate,
 * each within a minute, a few within seconds; an event on their namespace says it once. */
void report_slurm_trouble(const struct bridge_world *world, const struct unit *unit,
                          struct plan *plan, int64_t since_us, const char *why);
/* Pure: how long after the trouble began, or the pod was created, a pod says so, while so many
 * wait. */
int64_t report_trouble_delay_us(size_t waiting, const char *uid);

/* It no longer waits: the condition turns False, if there ever was one. */
void report_placed(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                   const struct slurm_job *job, const char *node);

/* Slurm ended its job: the condition SlurmJobEnded, with Slurm's state and reason. Only to the pod
 * as it was seen. Whether it is written now. */
bool report_ended(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                  const char *reason, const char *message);

/* "job 7 waits: Resources (expected to start at 2026-01-01T00:00:00Z)". */
const char *report_why_it_waits(struct arena *arena, const struct slurm_job *job);
/* Slurm's reason as the word of a condition; "Pending" when it gives none. */
const char *report_reason_word(struct arena *arena, const char *reason);

#endif
