/* job_desc.c - the description of a job as one table: a row per field, with the annotation that may
 * set it. Reading annotations, writing the request, the hash and the reference all walk the table,
 * so a field that is in it is nowhere forgotten. */
#include "bridge/unit/job_field.h"

#include "bridge/world/names.h"

#include <inttypes.h>

enum { MAX_SHOWN = 48 }; /* bytes of an annotation's value in a message */

#define AT(member)         offsetof(struct job_desc, member)
#define ANY                { 0, 0 }
#define COUNT              { 1, INT32_MAX }
#define RANGE(least, most) { least, most }
#define FORM(form)         JOB_FORM_##form
#define OURS               "", JOB_FORM_NONE, ANY /* no annotation sets it */

/* clang-format off */
/* Slurm ends a job with a time limit of 0 at once, and refuses node counts of 0; a priority of 0
 * holds the job. The two highest numbers of a width mean "not said" and "unlimited". */
const struct job_field job_fields[] = {
    /* annotation, its form and range; member; field of the job, its encoding; what an update says
     * when the field is set no more; meaning */
    { "account", FORM(TEXT), ANY, AT(account), "account", ENCODED_TEXT, UNSET_KEEPS,
      "account to charge" },
    { "begin-time", FORM(BEGIN), ANY, AT(begin_time), "begin_time", ENCODED_LIMIT, UNSET_NEVER,
      "not before; a duration counts from the creation of the pod on" },
    { "comment", FORM(TEXT), ANY, AT(comment), "comment", ENCODED_TEXT, UNSET_EMPTY,
      "what people may read of the job" },
    { "constraints", FORM(TEXT), ANY, AT(constraints), "constraints", ENCODED_TEXT, UNSET_EMPTY,
      "features that the nodes must have" },
    { "cpu-per-task", FORM(CPUS), ANY, AT(cpus_per_task), "cpus_per_task", ENCODED_NUMBER, UNSET_SIZE,
      "CPUs of each pod; at least what the pods request" },
    { "deadline", FORM(TIME), ANY, AT(deadline), "deadline", ENCODED_NUMBER, UNSET_KEEPS,
      "the job is given up when it cannot end before" },
    { "dependency", FORM(DEPENDENCY), ANY, AT(dependency), "dependency", ENCODED_TEXT, UNSET_EMPTY,
      "jobs that must have begun or ended before, as sbatch takes them" },
    { "exclusive", FORM(EXCLUSIVE), ANY, AT(exclusive), "shared", ENCODED_SHARED, UNSET_ANEW,
      "whether the job gets whole nodes" },
    { BRIDGE_GANG, FORM(GANG), ANY, AT(gang), "", ENCODED_NONE, UNSET_IGNORED,
      "of a Job or JobSet: its pods start together, all of them or at least so many" },
    { "gres", FORM(TEXT), ANY, AT(gres), "tres_per_node", ENCODED_TEXT, UNSET_EMPTY,
      "devices on each node; at least what the pods request" },
    { "group-id", FORM(TEXT), ANY, AT(group_id), "group_id", ENCODED_TEXT, UNSET_ANEW,
      "group of the job, by name or number" },
    { "job-name", FORM(TEXT), ANY, AT(name), "name", ENCODED_TEXT, UNSET_KEEPS,
      "name of the job; the pod's when absent" },
    { "licenses", FORM(TEXT), ANY, AT(licenses), "licenses", ENCODED_TEXT, UNSET_EMPTY,
      "licenses to take" },
    { "max-nodes", FORM(NUMBER), COUNT, AT(max_nodes), "maximum_nodes", ENCODED_NUMBER, UNSET_SIZE,
      "the most nodes that the job may get; a gang's pods share nodes when it has more of them" },
    { "mem-per-node", FORM(MEMORY), ANY, AT(memory), "memory_per_node", ENCODED_LIMIT, UNSET_SIZE,
      "memory on each node, at least what the pods request; 0: all that the node has" },
    { "min-nodes", FORM(NUMBER), COUNT, AT(min_nodes), "minimum_nodes", ENCODED_NUMBER, UNSET_SIZE,
      "the fewest nodes that will do" },
    { "network", FORM(TEXT), ANY, AT(network), "network", ENCODED_TEXT, UNSET_EMPTY,
      "network of the job, as sbatch takes it" },
    { "nice", FORM(NUMBER), RANGE(-2147483645, 2147483645), AT(nice), "nice", ENCODED_OFFSET,
      UNSET_ZERO, "what is taken off the job's priority" },
    { "partition", FORM(TEXT), ANY, AT(partition), "partition", ENCODED_TEXT, UNSET_KEEPS,
      "partition, in place of the configured one" },
    { "priority", FORM(NUMBER), RANGE(0, INT32_MAX), AT(priority), "priority", ENCODED_LIMIT,
      UNSET_OWN, "priority of the job; 0 holds it" },
    { "qos", FORM(TEXT), ANY, AT(qos), "qos", ENCODED_TEXT, UNSET_KEEPS, "quality of service" },
    { "reservation", FORM(TEXT), ANY, AT(reservation), "reservation", ENCODED_TEXT, UNSET_EMPTY,
      "reservation to run in" },
    { "segment-size", FORM(NUMBER), RANGE(1, 65533), AT(segment_size), "segment_size",
      ENCODED_LIMIT, UNSET_ANEW,
      "nodes that must lie in one block, where Slurm's topology has blocks" },
    { "switches", FORM(SWITCHES), COUNT, AT(switches), "required_switches", ENCODED_LIMIT,
      UNSET_NO_LIMIT, "the most switches between the nodes, and how long to wait for that" },
    { "timelimit", FORM(NUMBER), COUNT, AT(time_limit), "time_limit", ENCODED_LIMIT, UNSET_OWN,
      "time limit in minutes" },
    { "user-id", FORM(TEXT), ANY, AT(user_id), "user_id", ENCODED_TEXT, UNSET_ANEW,
      "user of the job, by name or number" },
    { "wckey", FORM(TEXT), ANY, AT(wckey), "wckey", ENCODED_TEXT, UNSET_EMPTY,
      "workload characterization key" },

    { OURS, AT(prefer), "prefer", ENCODED_TEXT, UNSET_IGNORED, "" },
    { OURS, AT(mcs_label), "mcs_label", ENCODED_TEXT, UNSET_IGNORED, "" },
    { OURS, AT(nodes), "nodes", ENCODED_NODES, UNSET_SIZE, "" },
    { OURS, AT(tasks), "tasks", ENCODED_NUMBER, UNSET_SIZE, "" },
    { OURS, AT(tasks_per_node), "tasks_per_node", ENCODED_NUMBER, UNSET_SIZE, "" },
    { OURS, AT(gres_per_task), "tres_per_task", ENCODED_TEXT, UNSET_EMPTY, "" },
    { OURS, AT(switch_wait), "wait_for_switch", ENCODED_NUMBER, UNSET_ZERO, "" },
    { OURS, AT(excluded_nodes), "excluded_nodes", ENCODED_LIST, UNSET_IGNORED, "" },
    { OURS, AT(required_nodes), "required_nodes", ENCODED_LIST, UNSET_IGNORED, "" },
};
/* clang-format on */

const size_t job_field_count = sizeof(job_fields) / sizeof(job_fields[0]);
_Static_assert(sizeof(job_fields) / sizeof(job_fields[0]) <= JOB_MAX_FIELDS, "a hash for each");

static const struct job_field *const fields = job_fields;
static const struct job_field *const fields_end =
    job_fields + sizeof(job_fields) / sizeof(job_fields[0]);

/* ---- members by offset ---- */

static bool is_text(const struct job_field *field)
{
    return field->encoding == ENCODED_TEXT || field->encoding == ENCODED_LIST;
}

static void *member(struct job_desc *desc, const struct job_field *field)
{
    return (char *)desc + field->offset;
}

static const void *value_of(const struct job_desc *desc, const struct job_field *field)
{
    return (const char *)desc + field->offset;
}

static const char *text_of(const struct job_desc *desc, const struct job_field *field)
{
    return *(const char *const *)value_of(desc, field);
}

static int64_t number_of(const struct job_desc *desc, const struct job_field *field)
{
    if (field->encoding == ENCODED_SHARED)
        return *(const bool *)value_of(desc, field);
    return *(const int64_t *)value_of(desc, field);
}

void job_desc_init(struct job_desc *desc)
{
    *desc = (struct job_desc){ .exclusive = true };
    for (const struct job_field *field = fields; field < fields_end; field++) {
        if (is_text(field))
            *(const char **)member(desc, field) = "";
        else if (field->encoding != ENCODED_SHARED)
            *(int64_t *)member(desc, field) = field->encoding == ENCODED_OFFSET ? 0 : -1;
    }
    desc->nodes = 1;
}

/* ---- annotations ---- */

/* A value for a message: not too long, and on one line. */
static void show_value(struct str value, struct buf *out)
{
    size_t length = value.len;

    if (length > MAX_SHOWN)
        for (length = MAX_SHOWN; length > 0 && (value.at[length] & 0xc0) == 0x80;)
            length--; /* not in the middle of a character */
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)value.at[i];

        buf_add_char(out, c < ' ' || c == 0x7f ? '?' : value.at[i]);
    }
    buf_add_text(out, length < value.len ? "..." : "");
}

static bool take_value(struct job_desc *desc, struct arena *arena, const struct job_field *field,
                       struct str value)
{
    struct job_value said;

    if (!job_form_read(field->form, field->range, desc->created, value, &said))
        return false;
    if (is_text(field))
        *(const char **)member(desc, field) = arena_strndup(arena, value.at, value.len);
    else if (field->encoding == ENCODED_SHARED)
        *(bool *)member(desc, field) = said.number;
    else
        *(int64_t *)member(desc, field) = said.number;
    if (field->form == JOB_FORM_SWITCHES)
        desc->switch_wait = said.wait;
    return true;
}

static const struct job_field *find_annotation(struct str key)
{
    struct str prefix = STR(BRIDGE_ANNOTATION_PREFIX);

    if (!str_starts(key, prefix))
        return NULL;
    for (const struct job_field *field = fields; field < fields_end; field++)
        if (field->form != JOB_FORM_NONE &&
            str_is(str_sub(key, prefix.len, key.len), field->suffix))
            return field;
    return NULL;
}

int job_desc_annotate(struct job_desc *desc, struct arena *arena,
                      const struct kube_pairs *annotations, struct err *err)
{
    struct job_desc next = *desc;

    for (unsigned i = 0; i < annotations->count; i++) {
        const struct kube_pair *pair = &annotations->at[i];
        const struct job_field *field = find_annotation(pair->key);

        if (field && !take_value(&next, arena, field, pair->value)) {
            auto_buf struct buf form = { .max = 128 }, shown = { .max = 64 };

            job_form_write(field->form, field->range, &form);
            show_value(pair->value, &shown);
            return err_set(err, ERR_INVALID, "%s%s: \"%s\" is not %s", BRIDGE_ANNOTATION_PREFIX,
                           field->suffix, buf_text(&shown), buf_text(&form));
        }
    }
    *desc = next;
    return 0;
}

void job_desc_keep(struct job_desc *desc, struct arena *arena)
{
    for (const struct job_field *field = fields; field < fields_end; field++)
        if (is_text(field))
            *(const char **)member(desc, field) = arena_strdup(arena, text_of(desc, field));
}

int64_t job_desc_least_nodes(const struct job_desc *desc)
{
    return desc->min_nodes > 0 ? desc->min_nodes : 1;
}

bool job_desc_must_queue(const struct job_desc *desc)
{
    return desc->priority == 0 || desc->begin_time >= 0 || desc->dependency[0] ||
           desc->reservation[0] || desc->prefer[0] || desc->user_id[0] || desc->group_id[0];
}

bool job_desc_need(const struct job_desc *desc, struct capacity_need *ret_need)
{
    int64_t tasks = desc->tasks_per_node > 1 ? desc->tasks_per_node : 1;
    int64_t each = desc->cpus_per_task > 1 ? desc->cpus_per_task : 1;
    bool is_absurd = tasks > INT32_MAX || each > INT32_MAX;

    *ret_need = (struct capacity_need){ .partition = desc->partition,
                                        .gres = desc->gres,
                                        .excluded_nodes = desc->excluded_nodes,
                                        .cpus = is_absurd ? INT64_MAX / 2 : tasks * each,
                                        .memory = desc->memory > 0 ? desc->memory : 0,
                                        .exclusive = desc->exclusive };
    return desc->partition[0] && !desc->gres_per_task[0] && !desc->constraints[0] &&
           !desc->licenses[0] && !desc->reservation[0] && !desc->required_nodes[0] &&
           desc->nodes <= 1 && desc->min_nodes <= 1 && desc->max_nodes <= 1;
}

/* A deadline may have passed, the job of a dependency be forgotten, the pods be where they would
 * rather not be: all would be refused. */
void job_desc_drop_waits(struct job_desc *desc)
{
    desc->begin_time = desc->deadline = -1;
    desc->dependency = desc->prefer = "";
    desc->segment_size = desc->switches = desc->switch_wait = -1;
    if (desc->priority == 0)
        desc->priority = -1;
}

/* ---- the request ---- */

static struct json_mut *new_limit(struct json_build *build, int64_t number)
{
    struct json_mut *limit = json_new_object(build);

    json_put_bool(build, limit, "set", true);
    json_put_i64(build, limit, "number", number);
    return limit;
}

static struct json_mut *new_list(struct json_build *build, const char *item)
{
    struct json_mut *list = json_new_array(build);

    if (item[0])
        json_push_str(build, list, str_of(item));
    return list;
}

static struct json_mut *new_nodes(struct json_build *build, const struct job_desc *desc)
{
    auto_buf struct buf text = { .max = 64 };

    if (desc->tasks >= 0)
        buf_printf(&text, "%" PRId64 "-%" PRId64, desc->min_nodes, desc->max_nodes);
    else
        buf_printf(&text, "%" PRId64, desc->nodes);
    return json_new_str(build, buf_str(&text));
}

static bool is_said(const struct job_desc *desc, const struct job_field *field)
{
    switch (field->encoding) {
    case ENCODED_NONE:
        return false;
    case ENCODED_TEXT:
    case ENCODED_LIST:
        return text_of(desc, field)[0] != '\0';
    case ENCODED_NUMBER:
    case ENCODED_LIMIT:
        return number_of(desc, field) >= 0;
    case ENCODED_OFFSET:
        return number_of(desc, field) != 0;
    case ENCODED_NODES:
    case ENCODED_SHARED:
        return true;
    }
    return false;
}

struct json_mut *job_field_json(struct json_build *build, const struct job_desc *desc,
                                const struct job_field *field)
{
    const char *text = is_text(field) ? text_of(desc, field) : "";
    int64_t number = is_text(field) ? -1 : number_of(desc, field);

    if (!is_said(desc, field))
        return NULL;
    switch (field->encoding) {
    case ENCODED_NONE:
        break;
    case ENCODED_TEXT:
        return json_new_str(build, str_of(text));
    case ENCODED_LIST:
        return new_list(build, text);
    case ENCODED_NUMBER:
    case ENCODED_OFFSET:
        return json_new_i64(build, number);
    case ENCODED_LIMIT:
        return new_limit(build, number);
    case ENCODED_NODES:
        return new_nodes(build, desc);
    case ENCODED_SHARED:
        return new_list(build, number ? "none" : "");
    }
    return NULL;
}

struct json_mut *job_desc_json(struct json_build *build, const struct job_desc *desc)
{
    struct json_mut *job = json_new_object(build);

    json_put_text(build, job, "current_working_directory", "/tmp");
    json_put(build, job, "flags", new_list(build, "EXTERNAL_JOB"));
    for (const struct job_field *field = fields; field < fields_end; field++) {
        struct json_mut *value = job_field_json(build, desc, field);

        if (value)
            json_put(build, job, field->field, value);
    }
    return job;
}

/* ---- the hash: FNV-1a of all members, texts with their NUL ---- */

#define HASH_BEGIN UINT64_C(14695981039346656037)

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash;
}

static uint64_t hash_field(uint64_t hash, const struct job_desc *desc,
                           const struct job_field *field)
{
    unsigned char bytes[8];

    if (is_text(field))
        return hash_bytes(hash, text_of(desc, field), strlen(text_of(desc, field)) + 1);
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)((uint64_t)number_of(desc, field) >> (8 * i));
    return hash_bytes(hash, bytes, sizeof(bytes));
}

uint64_t job_desc_hash(const struct job_desc *desc)
{
    uint64_t hash = HASH_BEGIN;

    for (const struct job_field *field = fields; field < fields_end; field++)
        hash = hash_field(hash, desc, field);
    return hash;
}

uint32_t job_field_hash(const struct job_desc *desc, const struct job_field *field)
{
    uint64_t hash;

    if (!is_said(desc, field))
        return 0;
    hash = hash_field(HASH_BEGIN, desc, field);
    return (uint32_t)(hash ^ hash >> 32) | 1; /* never 0 */
}

/* ---- the reference ---- */

void job_desc_reference(struct buf *out)
{
    buf_add_text(out, "| annotation | value | field of the job | meaning |\n");
    buf_add_text(out, "|---|---|---|---|\n");
    for (const struct job_field *field = fields; field < fields_end; field++) {
        if (field->form == JOB_FORM_NONE)
            continue;
        buf_printf(out, "| `%s%s` | ", BRIDGE_ANNOTATION_PREFIX, field->suffix);
        job_form_write(field->form, field->range, out);
        buf_printf(out, " | %s%s%s | %s |\n", field->field[0] ? "`" : "", field->field,
                   field->field[0] ? "`" : "", field->meaning);
    }
}
