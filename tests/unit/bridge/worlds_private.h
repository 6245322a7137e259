/* worlds_private.h - what the files that make a small world share: how its rows are read, and who
 * adds which of them. */
#ifndef SLINC_TESTS_BRIDGE_WORLDS_PRIVATE_H
#define SLINC_TESTS_BRIDGE_WORLDS_PRIVATE_H

#include "worlds.h"

#include <inttypes.h>

enum {
    SECOND_US = 1000000,
    LED_FROM_S = 1, /* loop time at second 0 */
};

#define CLUSTER   "kube-uid"
#define RELEASE   "slurm/bridge"
#define SCHEDULER "slurm-bridge-scheduler"

/* Also of a number, which needs no quotes in YAML then. */
static inline const char *text_of(struct small_world *small, const struct json *value,
                                  const char *fallback)
{
    struct str text = json_str(value);

    if (json_is_number(value))
        return arena_printf(&small->arena, "%" PRId64, json_i64_or(value, 0));
    return json_is_string(value) ? arena_strndup(&small->arena, text.at, text.len) : fallback;
}

static inline const char *member(struct small_world *small, const struct json *row, const char *key,
                                 const char *fallback)
{
    return text_of(small, json_get(row, key), fallback);
}

/* Adds the rows of this list, in their order. */
static inline void each(struct small_world *small, const struct json *given, const char *key,
                        void (*add)(struct small_world *small, const struct json *row))
{
    struct json_iter iter = json_iter(json_get(given, key));
    const struct json *row;

    while (json_next_item(&iter, &row))
        add(small, row);
}

/* Pods, nodes, owners, groups and storage; while the caches are being listed. */
void small_world_add_kube(struct small_world *small, const struct json *given);
/* Nodes and jobs, as they were read one by one. */
void small_world_add_slurm(struct small_world *small, const struct json *given);
/* The last whole list of jobs, and our writes to them. */
void small_world_list_jobs(struct small_world *small, const struct json *given, int64_t at_us);
/* What the bridge remembers of its units; when their pods and Slurm's nodes are there. */
void small_world_add_submits(struct small_world *small, const struct json *given);

#endif
