/* queue.h - which keys to look at next.
 *
 * A key is queued once however often it is added; while it is being worked on, an addition waits
 * for the end. Keys of one namespace take turns with those of others. A key that failed comes back
 * after a growing pause (50 ms doubling to 15 s, jittered), one that asked for it at a given time.
 *
 * An addition brings a delayed key forward to now. One that backs off comes forward too, but not
 * closer to its failure than a second: keys that fail and wake each other must not run hot. */
#ifndef SLINC_ENGINE_QUEUE_H
#define SLINC_ENGINE_QUEUE_H

#include "base/rand.h"
#include "base/str.h"
#include "io/loop.h"

enum {
    QUEUE_RETRY_MIN_US = 50000,
    QUEUE_RETRY_MAX_US = 15000000, /* jitter included */
    QUEUE_CALM_US = 1000000,       /* between a failure and a try that an addition asked for */
};

struct queue;

/* ready is called from the loop when keys became due since the last call. */
struct queue *queue_new(struct loop *loop, struct rand *rand, size_t max_keys,
                        void (*ready)(void *context), void *context);
void queue_free(struct queue *queue);

/* The namespace of a key is what stands before its first '/'. */
void queue_add(struct queue *queue, struct str key);
void queue_add_after(struct queue *queue, struct str key,
                     int64_t delay_us); /* the earliest time counts */

/* Takes the next key into work; false when nothing is due. *ret_key is valid until queue_done or
 * queue_failed, which are for keys in work only. */
bool queue_take(struct queue *queue, struct str *ret_key);
void queue_done(struct queue *queue, struct str key); /* went well: forgets failures */
/* Again later; not_before_us on the loop's clock, 0 = by back-off. Additions made during the work
 * are covered by that. */
void queue_failed(struct queue *queue, struct str key, int64_t not_before_us);
/* Neither went well nor failed: waits again as if just added; failures stay as they were. */
void queue_put_back(struct queue *queue, struct str key);

struct queue_stats {
    size_t waiting, working, delayed;
    uint64_t added, retried, dropped;
};
void queue_stats(const struct queue *queue, struct queue_stats *ret_stats);
unsigned queue_failures(const struct queue *queue, struct str key);
int64_t queue_waited_us(const struct queue *queue, struct str key); /* of a key in work: before */

enum queue_state { QUEUE_WAITING, QUEUE_DELAYED, QUEUE_BACKING_OFF, QUEUE_WORKING };

struct queue_view {
    struct str key;
    enum queue_state state;
    unsigned failures;
    int64_t since_us; /* when it came into this state */
    int64_t due_us;   /* of delayed keys and those that back off */
};
/* Every key, in the order in which they became known. The visitor must not change the queue. */
void queue_each(const struct queue *queue,
                void (*visit)(void *context, const struct queue_view *view), void *context);

#endif
