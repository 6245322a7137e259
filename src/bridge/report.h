/* report.h - tells the pod's owner, on the pod, what it waits for.
 *
 * One condition, SlurmPending, is there while a pod waits for longer than a second; PodScheduled
 * says the same to tools that know only that. What is already said is not written again. */
#ifndef SLINC_BRIDGE_REPORT_H
#define SLINC_BRIDGE_REPORT_H

#include "bridge/unit/unit.h"

enum show {
    SHOW_NOT,     /* on no pod: only /debug/state says it */
    SHOW_WAITING, /* it passes by itself: said after a second, later while hundreds of pods wait */
    SHOW_TROUBLE, /* it does not pass by itself: said after a second, however many pods wait */
    SHOW_OUTAGE,  /* the bridge cannot use Slurm: at a bounded rate, each pod within a minute, a few
                     within seconds; an event on their namespace says it once */
};

struct report {
    enum show show;
    const char *reason, *text; /* of the condition; the reason is a CamelCase word */
    const char *event;         /* the reason of an event with the same text; NULL: none */
    bool is_normal;            /* the event is no warning */
    bool repeats;              /* the event is not only for words that are new */
    int64_t since_us;          /* of an outage: loop time */
};

/* Tells all members of the unit that are in its stage. */
void plan_report(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                 const struct report *report);

/* Pure: how long after the outage began, or the pod was created, a pod says so, while so many wait.
 */
int64_t report_outage_delay_us(size_t waiting, const char *uid);

#endif
