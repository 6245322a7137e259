/* queue.h - which keys to look at next.
 *
 * A key is queued once however often it is added; while it is being worked on, an addition waits
 * for the end. Keys of one namespace take turns with those of others. A key that failed comes back
 * after a growing pause (50 ms doubling to 15 s, jittered), one that asked for it at a given time.
 */
#ifndef SLINC_ENGINE_QUEUE_H
#define SLINC_ENGINE_QUEUE_H

#include "base/rand.h"
#include "base/str.h"
#include "io/loop.h"

enum { QUEUE_RETRY_MIN_US = 50000, QUEUE_RETRY_MAX_US = 15000000 };

struct queue;

/* ready is called from the loop whenever there is something to take. */
struct queue *queue_new(struct loop *loop, struct rand *rand, size_t max_keys,
                        void (*ready)(void *context), void *context);
void queue_free(struct queue *queue);

/* The namespace of a key is what stands before its first '/'. */
void queue_add(struct queue *queue, struct str key);
void queue_add_after(struct queue *queue, struct str key,
                     int64_t delay_us); /* the earliest time counts */

/* Takes the next key into work; false when nothing is due. *ret_key is valid until queue_done. */
bool queue_take(struct queue *queue, struct str *ret_key);
void queue_done(struct queue *queue, struct str key); /* went well: forgets failures */
void queue_failed(struct queue *queue, struct str key,
                  int64_t not_before_us); /* again later; 0 = by back-off */

struct queue_stats {
    size_t waiting, working, delayed;
    uint64_t added, retried, dropped;
    int64_t oldest_waiting_us; /* age of the longest-waiting due key */
};
void queue_stats(const struct queue *queue, struct queue_stats *ret_stats);
unsigned queue_failures(const struct queue *queue, struct str key);

#endif
