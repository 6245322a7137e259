/* frame.h - what goes between the agent and its workers: a request down, an answer up.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SLINC_AGENT_FRAME_H
#define SLINC_AGENT_FRAME_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

enum { FRAME_MAX = 64 << 20 }; /* bytes of a text */

/* One call of Slurm each, but for the first, with which a worker begins. */
enum agent_call {
    AGENT_START, /* the text is the path of slurm.conf, a NUL, and the token */
    AGENT_PING,
    AGENT_SUBMIT,
    AGENT_ALLOCATE,
    AGENT_STATES,
    AGENT_JOB,
    AGENT_RESOURCES,
    AGENT_UPDATE,
    AGENT_CANCEL,
    AGENT_CANCEL_MANY,
    AGENT_COMPLETE,
    AGENT_WILL_RUN,
    AGENT_CALLS,
};

/* Both ways; the text follows. */
struct frame {
    uint32_t word;   /* down: enum agent_call; up: the status of HTTP */
    uint32_t length; /* of the text */
    int64_t job_id;  /* down: that of the path, 0 for none */
};

/* Whole frames on a socket that blocks. -ERR_NOT_FOUND: the other side has closed it. */
int frame_read(int fd, struct frame *ret_frame, struct buf *ret_text, struct err *err);
int frame_write(int fd, uint32_t word, struct str text, struct err *err);

#endif
