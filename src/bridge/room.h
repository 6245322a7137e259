/* room.h - a derived view of Slurm: what each node still has to give, and who waits.
 *
 * Kept up to date by changes of the job and node caches, never by walking them. It only helps to
 * choose how to ask (immediately, or by the queue); Slurm decides what fits. */
#ifndef SLINC_BRIDGE_ROOM_H
#define SLINC_BRIDGE_ROOM_H

#include "bridge/job_desc.h"
#include "slurm/cache.h"

struct room;

/* Listens to both caches, so it comes before their first object. They may go first, if nothing else
 * is done with it than freeing it. */
struct room *room_new(struct slurm_cache *jobs, struct slurm_cache *nodes);
void room_free(struct room *room);

/* Whether some usable node of the partition has what one node of the ask needs, after what running
 * jobs hold and what asks on their way were promised. What the ask does not say counts as nothing.
 * Asks about gres, constraints, licenses, reservations or named nodes, about several nodes or
 * several partitions or none, are never said to fit. */
bool room_fits(const struct room *room, const struct job_desc *desc);
/* Pending jobs that name this partition and may start, ours included: neither held nor waiting for
 * a time or another job, nor at a limit of their account or QOS. */
size_t room_waiting(const struct room *room, const char *partition);

/* An immediate ask was refused there: nothing is said to fit until it is opened again. */
void room_close(struct room *room, const char *partition);
void room_open(struct room *room, const char *partition);

/* An ask for an immediate allocation is on its way: its node is not promised twice. The promise
 * goes with room_withdraw when it came to nothing; else, with room_fulfil, as soon as the cache
 * shows what this job holds. 0 = no promise was made, and may be given to both. */
uint64_t room_promise(struct room *room, const struct job_desc *desc);
void room_withdraw(struct room *room, uint64_t promise);
void room_fulfil(struct room *room, uint64_t promise, int64_t job_id);

/* Another number: what nodes there are, or what they are (size, features, partitions, gres, in
 * service or not), has changed, so that a refused ask is worth another try. */
uint64_t room_generation(const struct room *room);

#endif
