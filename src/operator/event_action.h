/* event_action.h - Events as actions of a plan: told when what they tell of is carried out. */
#ifndef SLINC_OPERATOR_EVENT_ACTION_H
#define SLINC_OPERATOR_EVENT_ACTION_H

#include "engine/plan.h"
#include "kube/event.h"

extern const struct action_type action_event; /* its service is a struct event_teller */

/* Carries them out: from whom they come is the recorder's. Borrowed. */
struct event_teller {
    struct loop *loop;
    struct kube_recorder *recorder;
};

/* An Event about this custom resource. action: what was done ("ScaleUp"). A plan that is made again
 * adds it again: it belongs to a change that happens once. */
void plan_event(struct plan *plan, const struct kube_object *object, enum kube_event_type type,
                const char *reason, const char *action, const char *note, ...)
    __attribute__((format(printf, 6, 7)));

#endif
