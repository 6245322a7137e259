/* submit_mode.h - how a job is submitted: an immediate allocation, or a place in the queue. */
#ifndef SLINC_BRIDGE_SUBMIT_MODE_H
#define SLINC_BRIDGE_SUBMIT_MODE_H

#include "bridge/unit/job_desc.h"
#include "bridge/unit/unit.h"

enum submit_mode {
    SUBMIT_AT_ONCE, /* an immediate allocation: decided within the call, one after the other */
    SUBMIT_QUEUED,  /* a submit: looked at within a second, hundreds at a time */
    SUBMIT_SOON,    /* the queue holds only a few of the last two seconds: at once, when they run */
};

enum {
    SUBMIT_CROWD = 512,   /* more pods than this are still to be submitted: a burst, which is
                             queued where there is no agent */
    SUBMIT_TRICKLE = 128, /* submits queued in the last two seconds: no more is a trickle */
};

enum submit_mode submit_mode(const struct bridge_world *world, const struct unit *unit,
                             const struct job_desc *desc);

#endif
