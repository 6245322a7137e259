/* calls.h - one request from its JSON to libslurm and back to JSON.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SLINC_AGENT_CALLS_H
#define SLINC_AGENT_CALLS_H

#include "answer.h"
#include "frame.h"

#include <slurm/slurm.h>

/* text: the body of the request; of AGENT_STATES the query. Blocks. A request that cannot be read,
 * or that asks for what the agent does not know, is answered before libslurm is called. */
void calls_run(enum agent_call call, int64_t job_id, struct str text, struct agent_answer *answer);

/* ---- for calls.c ---- */

/* The JSON of a job as slurmrestd shows it: the fields that clients of ours read. */
void job_answer(const job_info_msg_t *found, struct agent_answer *answer);
/* The words of a job's state. */
void job_answer_state(struct agent_answer *answer, struct json_mut *object, const char *key,
                      uint32_t state);
/* Whether libslurm is of the version whose layouts layout_answer reads. */
bool layout_is_known(void);
/* What slurm_get_resource_layout gave; it is freed. */
void layout_answer(void *layout, struct agent_answer *answer);

#endif
