/* value.h - the three ways in which Slurm writes values: numbers that may be unset or infinite,
 * sets of upper-case words, lists of hosts. */
#ifndef SLINC_SLURM_VALUE_H
#define SLINC_SLURM_VALUE_H

#include "base/buf.h"
#include "base/str.h"
#include "codec/json.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- numbers ---- */

/* `{"set":true,"infinite":false,"number":5}`, or the plain 5 of older versions. At most one of set
 * and infinite holds; number is 0 unless set. All zero is "unset". */
struct slurm_number {
    int64_t number; /* a fraction is cut off */
    bool set, infinite;
};

/* Absent, null, out of range or of another type: unset. */
struct slurm_number slurm_number_of(const struct json *value);
bool slurm_number_equal(struct slurm_number a, struct slurm_number b);
int64_t slurm_number_or(struct slurm_number value, int64_t if_unset, int64_t if_infinite);
struct slurm_number slurm_number_set(int64_t number);

/* Puts `{"set":..,"infinite":..,"number":..}`. */
void slurm_number_put(struct json_build *build, struct json_mut *object, const char *key,
                      struct slurm_number value);

/* ---- sets of words ---- */

enum { SLURM_WORDS_MAX = 64 }; /* in one vocabulary */

struct slurm_vocabulary {
    const char *words[SLURM_WORDS_MAX]; /* ends with NULL when there are fewer */
};

extern const struct slurm_vocabulary slurm_job_states, slurm_job_flags, slurm_node_states,
    slurm_partition_states, slurm_reservation_flags;

enum slurm_job_state { /* the first ones say where the job is, the others how it fares there */
                       SLURM_JOB_PENDING,
                       SLURM_JOB_RUNNING,
                       SLURM_JOB_SUSPENDED,
                       SLURM_JOB_COMPLETED,
                       SLURM_JOB_CANCELLED,
                       SLURM_JOB_FAILED,
                       SLURM_JOB_TIMED_OUT, /* TIMEOUT */
                       SLURM_JOB_NODE_FAIL,
                       SLURM_JOB_PREEMPTED,
                       SLURM_JOB_BOOT_FAIL,
                       SLURM_JOB_DEADLINE,
                       SLURM_JOB_OUT_OF_MEMORY,
                       SLURM_JOB_LAUNCH_FAILED,
                       SLURM_JOB_REVOKED,
                       SLURM_JOB_REQUEUED,
                       SLURM_JOB_REQUEUE_HOLD,
                       SLURM_JOB_SPECIAL_EXIT,
                       SLURM_JOB_RESIZING,
                       SLURM_JOB_CONFIGURING,
                       SLURM_JOB_COMPLETING,
                       SLURM_JOB_STOPPED,
};

enum slurm_job_flag { SLURM_JOB_EXTERNAL }; /* EXTERNAL_JOB */

enum slurm_node_state {
    SLURM_NODE_UNKNOWN,
    SLURM_NODE_DOWN,
    SLURM_NODE_IDLE,
    SLURM_NODE_ALLOCATED,
    SLURM_NODE_ERROR,
    SLURM_NODE_MIXED,
    SLURM_NODE_FUTURE,
    SLURM_NODE_DRAIN,
    SLURM_NODE_FAIL,
    SLURM_NODE_COMPLETING,
    SLURM_NODE_NOT_RESPONDING,
    SLURM_NODE_RESERVED,
    SLURM_NODE_MAINTENANCE,
    SLURM_NODE_PLANNED,
    SLURM_NODE_EXTERNAL,
    SLURM_NODE_DYNAMIC_NORM,
    SLURM_NODE_DYNAMIC_FUTURE,
    SLURM_NODE_CLOUD,
    SLURM_NODE_POWERED_DOWN,
    SLURM_NODE_POWERING_DOWN,
    SLURM_NODE_POWERING_UP,
    SLURM_NODE_BLOCKED,
    SLURM_NODE_INVALID_REG,
};

enum slurm_partition_state {
    SLURM_PARTITION_UP,
    SLURM_PARTITION_DOWN,
    SLURM_PARTITION_DRAIN,
    SLURM_PARTITION_INACTIVE,
};

/* Words that the vocabulary lacks are kept as they came: each version of Slurm adds some. */
struct slurm_words {
    uint64_t known;    /* bit n: the n-th word of the vocabulary */
    const char *other; /* the rest, separated by ','; "" when there is none */
};

static inline bool slurm_words_has(const struct slurm_words *set, unsigned word)
{
    return word < SLURM_WORDS_MAX && set->known >> word & 1;
}

/* Reads an array of words, or a single one. Unknown words are appended to `other`, joined by ','.
 */
uint64_t slurm_words_read(const struct slurm_vocabulary *vocabulary, const struct json *value,
                          struct buf *other);

/* "RUNNING+COMPLETING", known words in the vocabulary's order first. */
void slurm_words_print(const struct slurm_vocabulary *vocabulary, const struct slurm_words *set,
                       struct buf *out);

/* Over for good: none of its resources will be given back to it. COMPLETING still holds some. */
bool slurm_job_has_ended(const struct slurm_words *state);

/* ---- lists ---- */

/* Lists of names come as one text ("n[1-3],m1") or as an array of texts; both give the one text. */
void slurm_list_text(const struct json *value, struct buf *out);

/* Whether the partitions of a node, as Slurm shows them, have this one. Slurm may fold a long list:
 * p[1-3]. A list that cannot be read may have any partition. */
bool slurm_partitions_have(const char *partitions, struct str name);

#endif
