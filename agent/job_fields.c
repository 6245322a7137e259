/* job_fields.c - the table of fields of a job description: a row for each that the agent takes.
 *
 * A field that is not in the table is refused, and the whole description with it: a job that means
 * something else than its description is worse than none.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "job_fields.h"

#include <stddef.h>

enum kind {
    TEXT,       /* char * */
    JOINED,     /* char *, of a list of texts */
    NUMBER,     /* of the member's width; {set, infinite, number} or plain */
    TIME,       /* time_t; the same */
    OFFSET,     /* uint32_t, above NICE_OFFSET */
    YES_NO,     /* uint16_t */
    NODE_COUNT, /* min_nodes and max_nodes: "2", "2-4" */
    FLAGS,      /* bits of bitflags by their words */
    SHARED,     /* uint16_t, by a word */
    ID,         /* uint32_t, a number in a text */
};

struct row {
    const char *name;
    enum kind kind;
    size_t offset, width; /* of the member */
    uint64_t most;        /* of a number; 0: all but the two highest of the width */
    uint64_t implies;     /* bits of bitflags */
};

#define AT(member) offsetof(job_desc_msg_t, member), sizeof(((job_desc_msg_t *)NULL)->member)

/* clang-format off */
static const struct row rows[] = {
    { "account", TEXT, AT(account), 0, 0 },
    { "admin_comment", TEXT, AT(admin_comment), 0, 0 },
    { "begin_time", TIME, AT(begin_time), 0, 0 },
    { "comment", TEXT, AT(comment), 0, 0 },
    { "constraints", TEXT, AT(features), 0, 0 },
    { "cpus_per_task", NUMBER, AT(cpus_per_task), 0, 0 },
    { "current_working_directory", TEXT, AT(work_dir), 0, 0 },
    { "deadline", TIME, AT(deadline), 0, 0 },
    { "dependency", TEXT, AT(dependency), 0, 0 },
    { "excluded_nodes", JOINED, AT(exc_nodes), 0, 0 },
    { "extra", TEXT, AT(extra), 0, 0 },
    { "flags", FLAGS, AT(bitflags), 0, 0 },
    { "group_id", ID, AT(group_id), 0, 0 },
    { "immediate", YES_NO, AT(immediate), 0, 0 },
    { "licenses", TEXT, AT(licenses), 0, 0 },
    { "maximum_nodes", NUMBER, AT(max_nodes), 0, 0 },
    { "mcs_label", TEXT, AT(mcs_label), 0, 0 },
    { "memory_per_node", NUMBER, AT(pn_min_memory), UINT64_C(1) << 62, 0 },
    { "minimum_nodes", NUMBER, AT(min_nodes), 0, 0 },
    { "name", TEXT, AT(name), 0, 0 },
    { "network", TEXT, AT(network), 0, 0 },
    { "nice", OFFSET, AT(nice), 0, 0 },
    { "nodes", NODE_COUNT, AT(min_nodes), 0, 0 },
    { "partition", TEXT, AT(partition), 0, 0 },
    { "prefer", TEXT, AT(prefer), 0, 0 },
    { "priority", NUMBER, AT(priority), 0, 0 },
    { "qos", TEXT, AT(qos), 0, 0 },
    { "required_nodes", JOINED, AT(req_nodes), 0, 0 },
    { "required_switches", NUMBER, AT(req_switch), 0, 0 },
    { "reservation", TEXT, AT(reservation), 0, 0 },
    { "segment_size", NUMBER, AT(segment_size), 0, 0 },
    { "shared", SHARED, AT(shared), 0, 0 },
    { "tasks", NUMBER, AT(num_tasks), 0, JOB_NTASKS_SET },
    { "tasks_per_node", NUMBER, AT(ntasks_per_node), 0, 0 },
    { "time_limit", NUMBER, AT(time_limit), 0, 0 },
    { "tres_per_node", TEXT, AT(tres_per_node), 0, 0 },
    { "tres_per_task", TEXT, AT(tres_per_task), 0, 0 },
    { "user_id", ID, AT(user_id), 0, 0 },
    { "wait_for_switch", NUMBER, AT(wait4switch), 0, 0 },
    { "wckey", TEXT, AT(wckey), 0, 0 },
};

static const struct {
    const char *word;
    uint64_t value;
} flags[] = {
    { "EXTERNAL_JOB", EXTERNAL_JOB },
    { "KILL_INVALID_DEPENDENCY", KILL_INV_DEP },
    { "NO_KILL_INVALID_DEPENDENCY", NO_KILL_INV_DEP },
}, shared[] = {
    { "none", JOB_SHARED_NONE },
    { "oversubscribe", JOB_SHARED_OK },
    { "user", JOB_SHARED_USER },
    { "mcs", JOB_SHARED_MCS },
    { "topo", JOB_SHARED_TOPO },
};
/* clang-format on */

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* ---- members ---- */

static void put_number(job_desc_msg_t *desc, const struct row *row, uint64_t number)
{
    char *at = (char *)desc + row->offset;

    switch (row->width) {
    case 2:
        *(uint16_t *)(void *)at = (uint16_t)number;
        return;
    case 4:
        *(uint32_t *)(void *)at = (uint32_t)number;
        return;
    default:
        *(uint64_t *)(void *)at = number;
    }
}

/* The two highest numbers of a width mean "not said" and "infinite". */
static uint64_t infinite(const struct row *row)
{
    return row->width == 8 ? INFINITE64 : (UINT64_C(1) << (8 * row->width)) - 1;
}

static int refuse(const struct row *row, struct err *err)
{
    return err_set(err, ERR_INVALID, "the agent cannot read the field '%s'", row->name);
}

/* ---- kinds ---- */

static int read_text(const struct row *row, const struct json *value, job_desc_msg_t *desc,
                     struct err *err)
{
    struct str text = json_str(value);

    if (!json_is_string(value) || memchr(text.at, '\0', text.len))
        return refuse(row, err);
    *(const char **)(void *)((char *)desc + row->offset) = text.at; /* JSON ends it with a NUL */
    return 0;
}

static int read_joined(const struct row *row, const struct json *value, job_desc_msg_t *desc,
                       struct arena *texts, struct err *err)
{
    struct json_iter iter = json_iter(value);
    auto_buf struct buf joined = { .max = 16 << 20 };
    const struct json *item;

    if (!json_is_array(value))
        return read_text(row, value, desc, err);
    while (json_next_item(&iter, &item)) {
        struct str text = json_str(item);

        if (text.len == 0 || memchr(text.at, '\0', text.len))
            return refuse(row, err);
        if (joined.len > 0)
            buf_add_char(&joined, ',');
        buf_add_str(&joined, text);
    }
    if (buf_check(&joined, row->name, err) < 0)
        return -ERR_INVALID;
    *(const char **)(void *)((char *)desc + row->offset) = arena_strdup(texts, buf_text(&joined));
    return 0;
}

static int read_number(const struct row *row, const struct json *value, job_desc_msg_t *desc,
                       struct err *err)
{
    uint64_t most = row->kind == TIME ? INT64_MAX : row->most ? row->most : infinite(row) - 2;
    bool is_said = json_is_number(value) || json_bool_or(json_get(value, "set"), false);
    const struct json *plain = json_is_number(value) ? value : json_get(value, "number");
    uint64_t number = json_u64_or(plain, UINT64_MAX);

    if (row->kind != TIME && json_bool_or(json_get(value, "infinite"), false)) {
        put_number(desc, row, infinite(row));
        return 0;
    }
    if (!is_said || number > most)
        return refuse(row, err);
    put_number(desc, row, number);
    desc->bitflags |= row->implies;
    return 0;
}

static int read_offset(const struct row *row, const struct json *value, job_desc_msg_t *desc,
                       struct err *err)
{
    int64_t number = json_i64_or(value, INT64_MAX), most = NICE_OFFSET - 3;

    if (number > most || number < -most)
        return refuse(row, err);
    put_number(desc, row, (uint64_t)(number + NICE_OFFSET));
    return 0;
}

static int read_node_count(const struct row *row, const struct json *value, job_desc_msg_t *desc,
                           struct err *err)
{
    struct str least = json_str(value), most = least;
    uint64_t from, to;

    (void)str_cut(json_str(value), '-', &least, &most);
    if (str_to_u64(least, 1, NO_VAL - 1, &from, NULL) < 0 ||
        str_to_u64(most, from, NO_VAL - 1, &to, NULL) < 0)
        return refuse(row, err);
    desc->min_nodes = (uint32_t)from;
    desc->max_nodes = (uint32_t)to;
    return 0;
}

static int read_flags(const struct row *row, const struct json *value, job_desc_msg_t *desc,
                      struct err *err)
{
    struct json_iter iter = json_iter(value);
    const struct json *item;

    if (!json_is_array(value))
        return refuse(row, err);
    while (json_next_item(&iter, &item)) {
        size_t i = 0;

        while (i < COUNT(flags) && !str_is(json_str(item), flags[i].word))
            i++;
        if (i == COUNT(flags))
            return refuse(row, err);
        desc->bitflags |= flags[i].value;
    }
    return 0;
}

static int read_shared(const struct row *row, const struct json *value, job_desc_msg_t *desc,
                       struct err *err)
{
    struct str word = json_is_array(value) ? json_str(json_item(value, 0)) : json_str(value);

    if (json_is_array(value) && json_len(value) == 0)
        return 0;
    for (size_t i = 0; i < COUNT(shared); i++)
        if (str_is(word, shared[i].word) && json_len(value) <= 1) {
            put_number(desc, row, shared[i].value);
            return 0;
        }
    return refuse(row, err);
}

/* Names of users and groups are slurmrestd's business: it may know other users than this process.
 */
static int read_id(const struct row *row, const struct json *value, job_desc_msg_t *desc,
                   struct err *err)
{
    uint64_t number;

    if (str_to_u64(json_str(value), 0, NO_VAL - 2, &number, NULL) < 0)
        return refuse(row, err);
    put_number(desc, row, number);
    return 0;
}

static int read_row(const struct row *row, const struct json *value, job_desc_msg_t *desc,
                    struct arena *texts, struct err *err)
{
    switch (row->kind) {
    case TEXT:
        return read_text(row, value, desc, err);
    case JOINED:
        return read_joined(row, value, desc, texts, err);
    case NUMBER:
    case TIME:
        return read_number(row, value, desc, err);
    case OFFSET:
        return read_offset(row, value, desc, err);
    case YES_NO:
        if (!json_is_bool(value))
            return refuse(row, err);
        put_number(desc, row, json_bool_or(value, false));
        return 0;
    case NODE_COUNT:
        return read_node_count(row, value, desc, err);
    case FLAGS:
        return read_flags(row, value, desc, err);
    case SHARED:
        return read_shared(row, value, desc, err);
    case ID:
        return read_id(row, value, desc, err);
    }
    return refuse(row, err);
}

int job_fields_read(const struct json *job, job_desc_msg_t *desc, struct arena *texts,
                    struct err *err)
{
    struct json_iter iter = json_iter(job);
    const struct json *value;
    struct str key;

    if (!json_is_object(job))
        return err_set(err, ERR_INVALID, "there is no job description");
    while (json_next_member(&iter, &key, &value)) {
        size_t i = 0;

        while (i < COUNT(rows) && !str_is(key, rows[i].name))
            i++;
        if (i == COUNT(rows))
            return err_set(err, ERR_INVALID, "the agent does not know the field '" STR_FMT "'",
                           STR_ARG(str_sub(key, 0, 60)));
        if (read_row(&rows[i], value, desc, texts, err) < 0)
            return -ERR_INVALID;
    }
    return 0;
}

void job_fields_from(const slurm_job_info_t *job, job_desc_msg_t *ret_desc)
{
    slurm_init_job_desc_msg(ret_desc);
    ret_desc->account = job->account;
    ret_desc->cpus_per_task = job->cpus_per_task;
    ret_desc->deadline = job->deadline;
    ret_desc->exc_nodes = job->exc_nodes;
    ret_desc->features = job->features;
    ret_desc->licenses = job->licenses;
    ret_desc->max_nodes = job->max_nodes ? job->max_nodes : NO_VAL;
    ret_desc->min_nodes = job->num_nodes ? job->num_nodes : NO_VAL;
    ret_desc->ntasks_per_node = job->ntasks_per_node ? job->ntasks_per_node : NO_VAL16;
    ret_desc->num_tasks = job->num_tasks;
    ret_desc->partition = job->partition;
    ret_desc->pn_min_memory = job->pn_min_memory;
    ret_desc->qos = job->qos;
    ret_desc->req_nodes = job->req_nodes;
    ret_desc->reservation = job->resv_name;
    ret_desc->time_limit = job->time_limit;
    ret_desc->tres_per_node = job->tres_per_node;
    ret_desc->tres_per_task = job->tres_per_task;
    ret_desc->user_id = job->user_id;
    ret_desc->group_id = job->group_id;
    ret_desc->work_dir = job->work_dir;
    ret_desc->bitflags = job->bitflags & EXTERNAL_JOB;
}
