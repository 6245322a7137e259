/* job_layouts.h - what running jobs were given on their nodes (`/resources/{id}`): cores and
 * devices. Read once for each job whose pods need it; a crash may lose it. */
#ifndef SLINC_SLURM_JOB_LAYOUTS_H
#define SLINC_SLURM_JOB_LAYOUTS_H

#include "slurm/object.h"

struct job_layouts;

struct job_layouts *job_layouts_new(void);
void job_layouts_free(struct job_layouts *layouts);

/* Takes the body of an answer. sluid: of the job as it was planned on, may be "". -ERR_INVALID when
 * it cannot be read. */
int job_layouts_put(struct job_layouts *layouts, int64_t job_id, const char *sluid,
                    const struct json *body, struct err *err);
void job_layouts_forget(struct job_layouts *layouts, int64_t job_id);

/* NULL: it was not read yet. layouts may be NULL. */
const struct slurm_layout *job_layouts_get(const struct job_layouts *layouts,
                                           const struct slurm_job *job);

#endif
