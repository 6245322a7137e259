/* capacity.h - a derived view of Slurm: what each node still has to give, and who waits.
 *
 * Kept up to date by changes of the job and node caches, never by walking them. It only helps to
 * choose the mode of a submit (immediate or queued); Slurm decides what fits. */
#ifndef SLINC_SLURM_CAPACITY_H
#define SLINC_SLURM_CAPACITY_H

#include "io/loop.h"
#include "slurm/cache.h"

struct capacity;

/* Listens to both caches, so it comes before their first object. They may go first, if nothing else
 * is done with it than freeing it. */
struct capacity *capacity_new(struct loop *loop, struct slurm_cache *jobs,
                              struct slurm_cache *nodes);
void capacity_free(struct capacity *capacity);

/* What a job needs of its only node. */
struct capacity_need {
    const char *partition; /* one; a list of them fits nowhere */
    const char *gres;      /* "gres/gpu:a=2,gres/nic=1"; "" */
    const char *excluded_nodes;
    int64_t cpus, memory; /* MiB */
    bool exclusive;
};

/* Whether some usable node of the partition has what the job needs, after what running jobs hold
 * and what submits on their way have reserved. */
bool capacity_fits(const struct capacity *capacity, const struct capacity_need *need);
/* Pending jobs that name this partition and may start, ours included: neither held nor waiting for
 * a time or another job, nor at a limit of their account or QOS. */
size_t capacity_waiting(const struct capacity *capacity, const char *partition);

/* The most devices of a gres that a node has, free or not, and which node ("": none has any). type
 * "": of all types. */
int64_t capacity_most(const struct capacity *capacity, const char *gres, const char *type,
                      const char **ret_node);

/* An immediate submit was refused there: nothing is said to fit for a second, or longer, up to a
 * minute, when refusals follow each other without one that was taken. */
void capacity_refused(struct capacity *capacity, const char *partition);
void capacity_taken(struct capacity *capacity, const char *partition);

/* A submit for an immediate allocation is on its way: its node is not reserved twice. The
 * reservation goes with capacity_unreserve when it came to nothing; else, with capacity_confirm, as
 * soon as the cache shows what this job holds. 0 = nothing was reserved, and may be given to both.
 */
uint64_t capacity_reserve(struct capacity *capacity, const struct capacity_need *need);
void capacity_unreserve(struct capacity *capacity, uint64_t reserved);
void capacity_confirm(struct capacity *capacity, uint64_t reserved, int64_t job_id);

/* Another number: what nodes there are, or what they are (size, features, partitions, gres, in
 * service or not), has changed, so that a refused submit is worth another try. */
uint64_t capacity_generation(const struct capacity *capacity);

#endif
