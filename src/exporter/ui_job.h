/* ui_job.h - one job for the page: who it is, and its life from the pod's creation to its end.
 * Pure. */
#ifndef SLINC_EXPORTER_UI_JOB_H
#define SLINC_EXPORTER_UI_JOB_H

#include "codec/json.h"
#include "slurm/object.h"

/* The pod of a job of the bridge that has one pod; false: it has none, or several. */
bool ui_job_pod(const struct slurm_job *job, struct buf *ns, struct buf *name);

/* {"id","kind","name","state","who","partition","limit","steps":[[name,time]]}; a step that has not
 * come yet has the time 0. pod: as the API server has it; NULL: not known. */
void ui_job_write(const struct slurm_job *job, const struct json *pod, bool shows_users,
                  struct buf *out);

#endif
