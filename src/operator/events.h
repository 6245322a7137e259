/* events.h - which Event tells of the answer to a write. */
#ifndef SLINC_OPERATOR_EVENTS_H
#define SLINC_OPERATOR_EVENTS_H

#include "engine/plan.h"
#include "kube/event.h"

struct operator_event {
    enum kube_event_type type;
    const char *reason, *action;
};

/* False: nobody is told. *ret_event comes without a reason. */
bool operator_event_of(const struct action *action, const struct kube_answer *answer,
                       struct operator_event *ret_event);

#endif
