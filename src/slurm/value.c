/* value.c - numbers, words and lists as slurmrestd writes them.
 *
 * Holds: reading never fails; what is not understood is unset, or kept as text. */
#include "slurm/value.h"

#include "codec/hostlist.h"

#include <math.h>

enum { FOLDED_LIST_MEMORY = 64 << 20 }; /* for a list of the longest text */

/* ---- numbers ---- */

static struct slurm_number plain(const struct json *value)
{
    struct slurm_number result = { 0 };
    double fraction;

    result.number = json_i64_or(value, INT64_MIN);
    result.set = result.number != INT64_MIN;
    if (result.set)
        return result;
    fraction = json_f64_or(value, NAN);
    result.set = fraction > -9e18 && fraction < 9e18; /* also no for what is not a number */
    result.number = result.set ? (int64_t)fraction : 0;
    return result;
}

struct slurm_number slurm_number_of(const struct json *value)
{
    struct slurm_number none = { 0 }, infinite = { .infinite = true };

    if (json_is_number(value))
        return plain(value);
    if (json_bool_or(json_get(value, "infinite"), false))
        return infinite;
    if (json_bool_or(json_get(value, "set"), false) && json_is_number(json_get(value, "number")))
        return plain(json_get(value, "number"));
    return none;
}

bool slurm_number_equal(struct slurm_number a, struct slurm_number b)
{
    return a.number == b.number && a.set == b.set && a.infinite == b.infinite;
}

int64_t slurm_number_or(struct slurm_number value, int64_t if_unset, int64_t if_infinite)
{
    if (value.infinite)
        return if_infinite;
    return value.set ? value.number : if_unset;
}

struct slurm_number slurm_number_set(int64_t number)
{
    return (struct slurm_number){ .number = number, .set = true };
}

void slurm_number_put(struct json_build *build, struct json_mut *object, const char *key,
                      struct slurm_number value)
{
    struct json_mut *wrapped = json_put_object(build, object, key);

    json_put_bool(build, wrapped, "set", value.set);
    json_put_bool(build, wrapped, "infinite", value.infinite);
    json_put_i64(build, wrapped, "number", value.number);
}

/* ---- sets of words ---- */

const struct slurm_vocabulary slurm_job_states = { {
    [SLURM_JOB_PENDING] = "PENDING",
    [SLURM_JOB_RUNNING] = "RUNNING",
    [SLURM_JOB_SUSPENDED] = "SUSPENDED",
    [SLURM_JOB_COMPLETED] = "COMPLETED",
    [SLURM_JOB_CANCELLED] = "CANCELLED",
    [SLURM_JOB_FAILED] = "FAILED",
    [SLURM_JOB_TIMED_OUT] = "TIMEOUT",
    [SLURM_JOB_NODE_FAIL] = "NODE_FAIL",
    [SLURM_JOB_PREEMPTED] = "PREEMPTED",
    [SLURM_JOB_BOOT_FAIL] = "BOOT_FAIL",
    [SLURM_JOB_DEADLINE] = "DEADLINE",
    [SLURM_JOB_OUT_OF_MEMORY] = "OUT_OF_MEMORY",
    [SLURM_JOB_LAUNCH_FAILED] = "LAUNCH_FAILED",
    [SLURM_JOB_REVOKED] = "REVOKED",
    [SLURM_JOB_REQUEUED] = "REQUEUED",
    [SLURM_JOB_REQUEUE_HOLD] = "REQUEUE_HOLD",
    [SLURM_JOB_SPECIAL_EXIT] = "SPECIAL_EXIT",
    [SLURM_JOB_RESIZING] = "RESIZING",
    [SLURM_JOB_CONFIGURING] = "CONFIGURING",
    [SLURM_JOB_COMPLETING] = "COMPLETING",
    [SLURM_JOB_STOPPED] = "STOPPED",
    "RECONFIG_FAIL",
    "POWER_UP_NODE",
    "REQUEUE_FED",
    "RESV_DEL_HOLD",
    "SIGNALING",
    "STAGE_OUT",
    "EXPEDITING",
} };

const struct slurm_vocabulary slurm_job_flags = { {
    [SLURM_JOB_EXTERNAL] = "EXTERNAL_JOB",
    "JOB_WAS_RUNNING",
    "BACKFILL_ATTEMPTED",
    "SCHEDULING_ATTEMPTED",
    "EXACT_TASK_COUNT_REQUESTED",
    "EXACT_CPU_COUNT_REQUESTED",
    "EXACT_MEMORY_REQUESTED",
    "USING_DEFAULT_ACCOUNT",
    "USING_DEFAULT_PARTITION",
    "USING_DEFAULT_QOS",
    "USING_DEFAULT_WCKEY",
    "JOB_IMPLICIT_MAX_NODES",
    "JOB_ACCRUE_TIME_RESET",
    "JOB_PRIORITY_RESET",
    "CRON_JOB",
    "HETEROGENEOUS_JOB",
    "STEPMGR_ENABLED",
    "TESTING_BACKFILL",
    "HAS_STATE_DIRECTORY",
    "JOB_RESIZED",
    "KILL_INVALID_DEPENDENCY",
    "NO_KILL_INVALID_DEPENDENCY",
    "SIBLING_CLUSTER_UPDATE_ONLY",
    "MAGNETIC",
    "PARTITION_ASSIGNED",
    "TOP_PRIO_TMP",
    "SKIP_TRES_STRING_ACCOUNTING",
    "SEND_JOB_ENVIRONMENT",
    "SPREAD_JOB",
    "USE_MINIMUM_NODE_COUNT",
    "RESET_LICENSE_JOB",
    "RESET_LICENSE_TASK",
    "FORCE_REQUEUE_ON_FAIL",
    "MEMORY_BINDING_SET",
    "CPU_BINDING_SET",
    "GRES_ONE_TASK_PER_SHARING",
    "GRES_MULT_TASKS_PER_SHARING",
    "GRES_DISABLE_BINDING",
    "GRES_BINDING_ENFORCED",
    "CONSOLIDATE_SEGMENTS",
    "EXPEDITED_REQUEUE",
} };

const struct slurm_vocabulary slurm_node_states = { {
    [SLURM_NODE_UNKNOWN] = "UNKNOWN",
    [SLURM_NODE_DOWN] = "DOWN",
    [SLURM_NODE_IDLE] = "IDLE",
    [SLURM_NODE_ALLOCATED] = "ALLOCATED",
    [SLURM_NODE_ERROR] = "ERROR",
    [SLURM_NODE_MIXED] = "MIXED",
    [SLURM_NODE_FUTURE] = "FUTURE",
    [SLURM_NODE_DRAIN] = "DRAIN",
    [SLURM_NODE_FAIL] = "FAIL",
    [SLURM_NODE_COMPLETING] = "COMPLETING",
    [SLURM_NODE_NOT_RESPONDING] = "NOT_RESPONDING",
    [SLURM_NODE_RESERVED] = "RESERVED",
    [SLURM_NODE_MAINTENANCE] = "MAINTENANCE",
    [SLURM_NODE_PLANNED] = "PLANNED",
    [SLURM_NODE_EXTERNAL] = "EXTERNAL",
    [SLURM_NODE_DYNAMIC_NORM] = "DYNAMIC_NORM",
    [SLURM_NODE_DYNAMIC_FUTURE] = "DYNAMIC_FUTURE",
    [SLURM_NODE_CLOUD] = "CLOUD",
    [SLURM_NODE_POWERED_DOWN] = "POWERED_DOWN",
    [SLURM_NODE_POWERING_DOWN] = "POWERING_DOWN",
    [SLURM_NODE_POWERING_UP] = "POWERING_UP",
    [SLURM_NODE_BLOCKED] = "BLOCKED",
    [SLURM_NODE_INVALID_REG] = "INVALID_REG",
    "INVALID",
    "UNDRAIN",
    "RESUME",
    "POWER_DOWN",
    "POWER_DOWN_ASAP",
    "POWER_DOWN_FORCE",
    "POWER_UP",
    "POWER_DRAIN",
    "REBOOT_REQUESTED",
    "REBOOT_CANCELED",
    "REBOOT_ISSUED",
} };

const struct slurm_vocabulary slurm_partition_states = { {
    [SLURM_PARTITION_UP] = "UP",
    [SLURM_PARTITION_DOWN] = "DOWN",
    [SLURM_PARTITION_DRAIN] = "DRAIN",
    [SLURM_PARTITION_INACTIVE] = "INACTIVE",
    "UNKNOWN",
} };

const struct slurm_vocabulary slurm_reservation_flags = { {
    "MAINT",       "FLEX",
    "IGNORE_JOBS", "OVERLAP",
    "SPEC_NODES",  "ALL_NODES",
    "STATIC",      "ANY_NODES",
    "REPLACE",     "REPLACE_DOWN",
    "PURGE_COMP",  "MAGNETIC",
    "DAILY",       "HOURLY",
    "WEEKLY",      "WEEKDAY",
    "WEEKEND",     "PART_NODES",
    "TIME_FLOAT",  "SKIP",
    "USER_DELETE", "NO_HOLD_JOBS_AFTER_END",
    "FORCE_START", "TRES_PER_NODE",
} };

static int find_word(const struct slurm_vocabulary *vocabulary, struct str word)
{
    for (int i = 0; i < SLURM_WORDS_MAX && vocabulary->words[i]; i++)
        if (str_is(word, vocabulary->words[i]))
            return i;
    return -1;
}

static uint64_t read_word(const struct slurm_vocabulary *vocabulary, struct str word,
                          struct buf *other)
{
    int found = find_word(vocabulary, word);

    if (found >= 0)
        return UINT64_C(1) << found;
    if (word.len == 0)
        return 0;
    if (other->len > 0)
        buf_add_char(other, ',');
    buf_add_str(other, word);
    return 0;
}

uint64_t slurm_words_read(const struct slurm_vocabulary *vocabulary, const struct json *value,
                          struct buf *other)
{
    struct json_iter iter = json_iter(value);
    const struct json *item;
    uint64_t known = 0;

    if (json_is_string(value))
        return read_word(vocabulary, json_str(value), other);
    if (!json_is_array(value))
        return 0;
    while (json_next_item(&iter, &item))
        known |= read_word(vocabulary, json_str(item), other);
    return known;
}

void slurm_words_print(const struct slurm_vocabulary *vocabulary, const struct slurm_words *set,
                       struct buf *out)
{
    struct str rest = str_of(set->other), word;
    const char *between = "";

    for (unsigned i = 0; i < SLURM_WORDS_MAX && vocabulary->words[i]; i++)
        if (slurm_words_has(set, i)) {
            buf_printf(out, "%s%s", between, vocabulary->words[i]);
            between = "+";
        }
    while (rest.len > 0 && str_next(&rest, ',', &word)) {
        buf_printf(out, "%s" STR_FMT, between, STR_ARG(word));
        between = "+";
    }
}

bool slurm_job_has_ended(const struct slurm_words *state)
{
    const uint64_t ended = UINT64_C(1) << SLURM_JOB_COMPLETED | UINT64_C(1) << SLURM_JOB_CANCELLED |
                           UINT64_C(1) << SLURM_JOB_FAILED | UINT64_C(1) << SLURM_JOB_TIMED_OUT |
                           UINT64_C(1) << SLURM_JOB_NODE_FAIL | UINT64_C(1) << SLURM_JOB_PREEMPTED |
                           UINT64_C(1) << SLURM_JOB_BOOT_FAIL | UINT64_C(1) << SLURM_JOB_DEADLINE |
                           UINT64_C(1) << SLURM_JOB_OUT_OF_MEMORY |
                           UINT64_C(1) << SLURM_JOB_LAUNCH_FAILED |
                           UINT64_C(1) << SLURM_JOB_REVOKED;
    const uint64_t returns = UINT64_C(1) << SLURM_JOB_REQUEUED |
                             UINT64_C(1) << SLURM_JOB_REQUEUE_HOLD |
                             UINT64_C(1) << SLURM_JOB_SPECIAL_EXIT;

    return (state->known & ended) != 0 && (state->known & returns) == 0;
}

/* ---- lists ---- */

void slurm_list_text(const struct json *value, struct buf *out)
{
    struct json_iter iter = json_iter(value);
    const struct json *item;
    bool first = true;

    if (json_is_string(value)) {
        buf_add_str(out, json_str(value));
        return;
    }
    while (json_is_array(value) && json_next_item(&iter, &item)) {
        if (json_str(item).len == 0)
            continue;
        if (!first)
            buf_add_char(out, ',');
        buf_add_str(out, json_str(item));
        first = false;
    }
}

static bool folded_has(const char *partitions, struct str name)
{
    const struct hostlist *list;
    auto_arena struct arena arena;

    arena_init(&arena, FOLDED_LIST_MEMORY);
    return hostlist_parse(&arena, str_of(partitions), HOSTLIST_MAX_NAMES, &list, NULL) < 0 ||
           hostlist_contains(list, name);
}

bool slurm_partitions_have(const char *partitions, struct str name)
{
    struct str rest = str_of(partitions), one;

    if (strchr(partitions, '['))
        return folded_has(partitions, name);
    while (str_next(&rest, ',', &one))
        if (name.len > 0 && str_eq(one, name))
            return true;
    return false;
}
