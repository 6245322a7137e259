/* event_action.h - Events as actions of a plan: told in their stage, behind what they tell of. */
#ifndef SLINC_ENGINE_EVENT_ACTION_H
#define SLINC_ENGINE_EVENT_ACTION_H

#include "engine/plan.h"
#include "kube/event.h"

extern const struct action_type action_event; /* its service is a struct kube_recorder */

/* An Event about the object. A plan that is made again adds it again: it belongs to a change that
 * happens once. */
struct action *plan_event(struct plan *plan, const struct kube_object *regarding,
                          enum kube_event_type type, const char *reason, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The same with what was done in another word than the reason ("ScaleUp"). */
struct action *plan_event_done(struct plan *plan, const struct kube_object *regarding,
                               enum kube_event_type type, const char *reason, const char *done,
                               const char *format, ...) __attribute__((format(printf, 6, 7)));

#endif
