/* job_fields.h - a job description of slurmrestd's JSON as libslurm wants it.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SLINC_AGENT_JOB_FIELDS_H
#define SLINC_AGENT_JOB_FIELDS_H

#include "base/arena.h"
#include "base/buf.h"
#include "codec/json.h"

#include <slurm/slurm.h>

/* Writes what the description says over *desc, which has begun as slurm_init_job_desc_msg or
 * job_fields_from leaves it. Texts are borrowed from the JSON and from `texts`. -ERR_INVALID names
 * a field that the agent does not know, or cannot read: then nothing may be sent. */
int job_fields_read(const struct json *job, job_desc_msg_t *desc, struct arena *texts,
                    struct err *err);

/* A new description of the same size and place as this job's. Texts are borrowed from the job. */
void job_fields_from(const slurm_job_info_t *job, job_desc_msg_t *ret_desc);

#endif
