/* history.h - what happens to jobs over time: starts and ends, each counted once.
 *
 * A job is known by its id and time of submission, because Slurm gives ids again after it lost its
 * last seconds, and a full list tells of every job anew. Only what happened since the process
 * started is counted. */
#ifndef SLINC_EXPORTER_HISTORY_H
#define SLINC_EXPORTER_HISTORY_H

#include "engine/metrics.h"
#include "slurm/object.h"

struct history;

struct history *history_new(struct metrics *metrics, int64_t since_s); /* metrics: borrowed */
void history_free(struct history *history);                            /* takes NULL */

/* A change as slurm_cache_listen tells it; context is the history. */
void history_take(void *context, const struct slurm_object *old, const struct slurm_object *next);

#endif
