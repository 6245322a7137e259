/* job_change.c - the fields of a job that may change while it waits, one row each: how a field that
 * is set no more is taken back.
 *
 * Holds: after an update the job is as if it had been submitted so; what slurmctld does with each
 * is in docs/internals/bridge.md. The size of a job is told as a whole, with the CPUs that follow
 * from it: Slurm would keep those of the larger size. */
#include "bridge/unit/job_change.h"

#include <inttypes.h>

enum unsaid {           /* an update in place of a value */
              KEEPS,    /* none: the job stays as it was */
              EMPTY,    /* "" */
              ZERO,     /* 0 */
              NO_LIMIT, /* {set, number: 0} */
              NEVER,    /* {set: false} */
              OWN,      /* {set, infinite}: Slurm's own */
              SIZE,     /* with the rest of the size */
              ANEW,     /* neither: Slurm changes it of no job */
};

static const struct row {
    const char *field;
    enum unsaid unsaid;
} rows[] = {
    { "account", KEEPS },
    { "begin_time", NEVER },
    { "comment", EMPTY },
    { "constraints", EMPTY },
    { "deadline", KEEPS },
    { "dependency", EMPTY },
    { "licenses", EMPTY },
    { "name", KEEPS },
    { "network", EMPTY },
    { "nice", ZERO },
    { "partition", KEEPS },
    { "priority", OWN },
    { "qos", KEEPS },
    { "required_switches", NO_LIMIT },
    { "reservation", EMPTY },
    { "time_limit", OWN },
    { "tres_per_node", EMPTY },
    { "tres_per_task", EMPTY },
    { "wait_for_switch", ZERO },
    { "wckey", EMPTY },
    { "nodes", SIZE },
    { "minimum_nodes", SIZE },
    { "maximum_nodes", SIZE },
    { "tasks", SIZE },
    { "tasks_per_node", SIZE },
    { "cpus_per_task", SIZE },
    { "memory_per_node", SIZE },
    { "group_id", ANEW },
    { "segment_size", ANEW },
    { "shared", ANEW },
    { "user_id", ANEW },
};

_Static_assert(sizeof(rows) / sizeof(rows[0]) == JOB_CHANGE_FIELDS, "a mark for each");

/* ---- hashes ---- */

void field_hashes_of(const struct job_desc *desc, struct field_hashes *ret_hashes)
{
    for (size_t i = 0; i < JOB_CHANGE_FIELDS; i++)
        ret_hashes->at[i] = job_desc_field_hash(desc, rows[i].field);
}

void field_hashes_assume_current(struct field_hashes *hashes, const struct job_desc *desc)
{
    for (size_t i = 0; i < JOB_CHANGE_FIELDS; i++)
        if (rows[i].unsaid == ANEW)
            hashes->at[i] = job_desc_field_hash(desc, rows[i].field);
}

void field_hashes_add_unknown(struct field_hashes *hashes, const struct field_hashes *others)
{
    for (size_t i = 0; i < JOB_CHANGE_FIELDS; i++)
        if (others->at[i] == FIELD_HASH_UNKNOWN)
            hashes->at[i] = FIELD_HASH_UNKNOWN;
}

void field_hashes_settle(struct field_hashes *hashes, const struct job_desc *desc)
{
    for (size_t i = 0; i < JOB_CHANGE_FIELDS; i++)
        if (hashes->at[i] == FIELD_HASH_UNKNOWN)
            hashes->at[i] = job_desc_field_hash(desc, rows[i].field);
}

bool field_hashes_have_unknown(const struct field_hashes *hashes)
{
    for (size_t i = 0; i < JOB_CHANGE_FIELDS; i++)
        if (hashes->at[i] == FIELD_HASH_UNKNOWN)
            return true;
    return false;
}

static uint32_t hash_of_priority(const struct field_hashes *hashes)
{
    size_t i = 0;

    while (strcmp(rows[i].field, "priority") != 0)
        i++;
    return hashes->at[i];
}

bool field_hashes_hold(const struct field_hashes *hashes)
{
    struct job_desc held;

    job_desc_init(&held);
    held.priority = 0;
    return hash_of_priority(hashes) == job_desc_field_hash(&held, "priority");
}

bool field_hashes_may_hold(const struct field_hashes *hashes)
{
    return field_hashes_hold(hashes) || hash_of_priority(hashes) == FIELD_HASH_UNKNOWN;
}

const char *field_hashes_need_anew(const struct field_hashes *hashes, const struct job_desc *desc)
{
    for (size_t i = 0; i < JOB_CHANGE_FIELDS; i++)
        if (rows[i].unsaid == ANEW && hashes->at[i] != job_desc_field_hash(desc, rows[i].field))
            return rows[i].field;
    return NULL;
}

/* ---- hashes as text: the version, then row:hash of what was said, all but rows in hex ---- */

/* Another one as soon as a row, or the way in which texts, numbers and truths are marked, is. */
static uint32_t version_of_hashes(void)
{
    uint32_t version = 0;
    struct job_desc sample;

    job_desc_init(&sample);
    sample.priority = 1;
    for (size_t i = 0; i < JOB_CHANGE_FIELDS; i++) {
        sample.name = rows[i].field;
        version = version * 31 + job_desc_field_hash(&sample, "name");
        version = version * 31 + job_desc_field_hash(&sample, rows[i].field);
    }
    return version;
}

void field_hashes_write(const struct field_hashes *hashes, struct buf *out)
{
    buf_printf(out, "%" PRIx32, version_of_hashes());
    for (size_t i = 0; i < JOB_CHANGE_FIELDS; i++) {
        if (rows[i].unsaid == ANEW)
            continue;
        if (hashes->at[i] == FIELD_HASH_UNKNOWN)
            buf_printf(out, " %zu:?", i);
        else if (hashes->at[i] != 0)
            buf_printf(out, " %zu:%" PRIx32, i, hashes->at[i]);
    }
}

static bool read_hex(struct str text, uint32_t *ret_number)
{
    uint32_t number = 0;

    if (text.len == 0 || text.len > 8)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        int digit = str_hex_digit(text.at[i]);

        if (digit < 0)
            return false;
        number = number << 4 | (uint32_t)digit;
    }
    *ret_number = number;
    return true;
}

static bool read_field_hash(struct str text, uint32_t *ret_hash)
{
    if (str_is(text, "?")) {
        *ret_hash = FIELD_HASH_UNKNOWN;
        return true;
    }
    return read_hex(text, ret_hash) && *ret_hash % 2 == 1;
}

bool field_hashes_read(struct str note, struct field_hashes *ret_hashes)
{
    struct field_hashes hashes = { 0 };
    struct str part, row, mark;
    uint64_t i, next = 0;
    uint32_t version;

    if (!str_next(&note, ' ', &part) || !read_hex(part, &version) || version != version_of_hashes())
        return false;
    for (; str_next(&note, ' ', &part); next = i + 1)
        if (!str_cut(part, ':', &row, &mark) ||
            str_to_u64(row, next, JOB_CHANGE_FIELDS - 1, &i, NULL) < 0 || rows[i].unsaid == ANEW ||
            !read_field_hash(mark, &hashes.at[i]))
            return false;
    *ret_hashes = hashes;
    return true;
}

/* ---- what is sent ---- */

/* NULL: nothing takes it back. */
static struct json_mut *take_back(struct json_build *build, enum unsaid unsaid)
{
    struct json_mut *limit;

    if (unsaid == KEEPS || unsaid == SIZE)
        return NULL;
    if (unsaid == EMPTY)
        return json_new_str(build, STR(""));
    if (unsaid == ZERO)
        return json_new_i64(build, 0);
    limit = json_new_object(build);
    json_put_bool(build, limit, "set", unsaid != NEVER);
    if (unsaid == OWN)
        json_put_bool(build, limit, "infinite", true);
    if (unsaid == NO_LIMIT)
        json_put_i64(build, limit, "number", 0);
    return limit;
}

static bool put(struct json_build *build, struct json_mut *fields, const struct job_desc *desc,
                const struct row *row)
{
    struct json_mut *value = job_desc_field(build, desc, row->field);

    if (!value)
        value = take_back(build, row->unsaid);
    if (value)
        json_put(build, fields, row->field, value);
    return value != NULL;
}

bool job_change(struct json_build *build, struct json_mut *fields, const struct job_desc *desc,
                const struct field_hashes *last, bool resized, struct field_hashes *ret_hashes)
{
    bool any = false;

    field_hashes_of(desc, ret_hashes);
    for (size_t i = 0; i < JOB_CHANGE_FIELDS; i++) {
        bool differs = last->at[i] != ret_hashes->at[i];

        if (rows[i].unsaid == ANEW) {
            ret_hashes->at[i] = last->at[i];
        } else if (rows[i].unsaid == SIZE) {
            resized |= differs;
        } else if (differs && put(build, fields, desc, &rows[i])) {
            ret_hashes->at[i] = FIELD_HASH_UNKNOWN;
            any = true;
        }
    }
    if (resized) {
        /* Slurm reckons these from a new submit, but not from an update. */
        int64_t nodes = desc->min_nodes > 0 ? desc->min_nodes : desc->nodes;
        int64_t tasks = desc->tasks_per_node > 0 ? desc->tasks_per_node : 1;
        int64_t cpus = tasks * (desc->cpus_per_task > 0 ? desc->cpus_per_task : 1);

        for (size_t i = 0; i < JOB_CHANGE_FIELDS; i++)
            if (rows[i].unsaid == SIZE && put(build, fields, desc, &rows[i]))
                ret_hashes->at[i] = FIELD_HASH_UNKNOWN;
        json_put_i64(build, fields, "minimum_cpus", nodes * cpus); /* fits: 31 and 32 bits */
        json_put_i64(build, fields, "minimum_cpus_per_node", cpus);
    }
    return any || resized;
}
