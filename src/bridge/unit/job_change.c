/* job_change.c - what an update of a job that waits must say, by the table of fields.
 *
 * Holds: after an update the job is as if it had been submitted so; what slurmctld does with each
 * field is in docs/internals/bridge.md. The size of a job is told as a whole, with the CPUs that
 * follow from it: Slurm would keep those of the larger size. */
#include "bridge/unit/job_change.h"

#include "bridge/unit/job_field.h"

#include <inttypes.h>

/* ---- hashes ---- */

static uint32_t hash_of(const struct job_desc *desc, size_t i)
{
    return job_fields[i].unset == UNSET_IGNORED ? 0 : job_field_hash(desc, &job_fields[i]);
}

void field_hashes_of(const struct job_desc *desc, struct field_hashes *ret_hashes)
{
    *ret_hashes = (struct field_hashes){ 0 };
    for (size_t i = 0; i < job_field_count; i++)
        ret_hashes->at[i] = hash_of(desc, i);
}

void field_hashes_assume_current(struct field_hashes *hashes, const struct job_desc *desc)
{
    for (size_t i = 0; i < job_field_count; i++)
        if (job_fields[i].unset == UNSET_ANEW)
            hashes->at[i] = hash_of(desc, i);
}

void field_hashes_add_unknown(struct field_hashes *hashes, const struct field_hashes *others)
{
    for (size_t i = 0; i < job_field_count; i++)
        if (others->at[i] == FIELD_HASH_UNKNOWN)
            hashes->at[i] = FIELD_HASH_UNKNOWN;
}

void field_hashes_settle(struct field_hashes *hashes, const struct job_desc *desc)
{
    for (size_t i = 0; i < job_field_count; i++)
        if (hashes->at[i] == FIELD_HASH_UNKNOWN)
            hashes->at[i] = hash_of(desc, i);
}

bool field_hashes_have_unknown(const struct field_hashes *hashes)
{
    for (size_t i = 0; i < job_field_count; i++)
        if (hashes->at[i] == FIELD_HASH_UNKNOWN)
            return true;
    return false;
}

static size_t priority(void)
{
    size_t i = 0;

    while (job_fields[i].offset != offsetof(struct job_desc, priority))
        i++;
    return i;
}

bool field_hashes_hold(const struct field_hashes *hashes)
{
    struct job_desc held;

    job_desc_init(&held);
    held.priority = 0;
    return hashes->at[priority()] == hash_of(&held, priority());
}

bool field_hashes_may_hold(const struct field_hashes *hashes)
{
    return field_hashes_hold(hashes) || hashes->at[priority()] == FIELD_HASH_UNKNOWN;
}

const char *field_hashes_need_anew(const struct field_hashes *hashes, const struct job_desc *desc)
{
    for (size_t i = 0; i < job_field_count; i++)
        if (job_fields[i].unset == UNSET_ANEW && hashes->at[i] != hash_of(desc, i))
            return job_fields[i].suffix;
    return NULL;
}

static bool is_noted(size_t i)
{
    return job_fields[i].unset != UNSET_ANEW && job_fields[i].unset != UNSET_IGNORED;
}

/* ---- hashes as text: the version, then row:hash of what was said, all but rows in hex ---- */

/* Another one as soon as a row is another, or the way in which values are hashed. */
static uint32_t version_of_hashes(void)
{
    uint32_t version = 0;
    struct job_desc sample;

    job_desc_init(&sample);
    sample.priority = 1;
    for (size_t i = 0; i < job_field_count; i++) {
        sample.name = job_fields[i].field;
        version = version * 31 + (uint32_t)job_desc_hash(&sample);
    }
    return version;
}

void field_hashes_write(const struct field_hashes *hashes, struct buf *out)
{
    buf_printf(out, "%" PRIx32, version_of_hashes());
    for (size_t i = 0; i < job_field_count; i++) {
        if (!is_noted(i))
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
            str_to_u64(row, next, job_field_count - 1, &i, NULL) < 0 || !is_noted(i) ||
            !read_field_hash(mark, &hashes.at[i]))
            return false;
    *ret_hashes = hashes;
    return true;
}

/* ---- what is sent ---- */

/* NULL: nothing takes it back. */
static struct json_mut *take_back(struct json_build *build, enum unset unset)
{
    struct json_mut *limit;

    if (unset == UNSET_KEEPS || unset == UNSET_SIZE)
        return NULL;
    if (unset == UNSET_EMPTY)
        return json_new_str(build, STR(""));
    if (unset == UNSET_ZERO)
        return json_new_i64(build, 0);
    limit = json_new_object(build);
    json_put_bool(build, limit, "set", unset != UNSET_NEVER);
    if (unset == UNSET_OWN)
        json_put_bool(build, limit, "infinite", true);
    if (unset == UNSET_NO_LIMIT)
        json_put_i64(build, limit, "number", 0);
    return limit;
}

static bool put(struct json_build *build, struct json_mut *fields, const struct job_desc *desc,
                const struct job_field *field)
{
    struct json_mut *value = job_field_json(build, desc, field);

    if (!value)
        value = take_back(build, field->unset);
    if (value)
        json_put(build, fields, field->field, value);
    return value != NULL;
}

bool job_change(struct json_build *build, struct json_mut *fields, const struct job_desc *desc,
                const struct field_hashes *last, bool resized, struct field_hashes *ret_hashes)
{
    bool any = false;

    field_hashes_of(desc, ret_hashes);
    for (size_t i = 0; i < job_field_count; i++) {
        bool differs = last->at[i] != ret_hashes->at[i];

        if (job_fields[i].unset == UNSET_ANEW) {
            ret_hashes->at[i] = last->at[i];
        } else if (job_fields[i].unset == UNSET_SIZE) {
            resized |= differs;
        } else if (differs && put(build, fields, desc, &job_fields[i])) {
            ret_hashes->at[i] = FIELD_HASH_UNKNOWN;
            any = true;
        }
    }
    if (resized) {
        /* Slurm reckons these from a new submit, but not from an update. */
        int64_t nodes = desc->min_nodes > 0 ? desc->min_nodes : desc->nodes;
        int64_t tasks = desc->tasks_per_node > 0 ? desc->tasks_per_node : 1;
        int64_t cpus = tasks * (desc->cpus_per_task > 0 ? desc->cpus_per_task : 1);

        for (size_t i = 0; i < job_field_count; i++)
            if (job_fields[i].unset == UNSET_SIZE && put(build, fields, desc, &job_fields[i]))
                ret_hashes->at[i] = FIELD_HASH_UNKNOWN;
        json_put_i64(build, fields, "minimum_cpus", nodes * cpus); /* fits: 31 and 32 bits */
        json_put_i64(build, fields, "minimum_cpus_per_node", cpus);
    }
    return any || resized;
}
