/* layouts.h - which cores and GPUs each running job has, as Slurm says it (/resources/{id}).
 *
 * A job is asked about once after it has started, one job at a time and at most twenty a second;
 * a job that has whole nodes is not asked about. Slurm answers only to the owner of a job and to
 * operators: what it does not tell is not known, and nobody asks again. */
#ifndef SLINC_EXPORTER_LAYOUTS_H
#define SLINC_EXPORTER_LAYOUTS_H

#include "codec/bitmap.h"
#include "slurm/cache.h"
#include "slurm/client.h"

struct layouts;

/* Both caches are borrowed and outlive it; the client may be NULL, then nothing is asked. */
struct layouts *layouts_new(struct loop *loop, struct slurm_client *client,
                            struct slurm_cache *jobs, const struct slurm_cache *nodes);
void layouts_free(struct layouts *layouts); /* takes NULL; after it the caches may change no more */

struct layout_node {
    char *name;
    struct bitmap cores, gpus; /* gpus: no bits where Slurm does not name them */
    size_t core_count;         /* of the node: sockets times cores of a socket */
};
/* NULL: not known. */
const struct layout_node *layouts_find(const struct layouts *layouts, const struct slurm_job *job,
                                       const char *node);

/* Changes when there is something new to draw. */
uint64_t layouts_generation(const struct layouts *layouts);

/* Takes what Slurm answered about a job; also for tests. */
int layouts_take(struct layouts *layouts, const struct slurm_job *job, const struct json *body,
                 struct err *err);

#endif
