/* job_ask.c - the description of a job as one table: a row per field, with the annotation that may
 * set it. Reading annotations, writing the request, the hash and the reference all walk the table,
 * so a field that is in it is nowhere forgotten.
 *
 * Holds: a number that Slurm would cut to its field's width, or read as "unlimited" or "all of the
 * node", never comes from an annotation. */
#include "bridge/job_ask.h"

#include "bridge/names.h"
#include "codec/quantity.h"

#include <inttypes.h>
#include <strings.h>

enum {
    MAX_TEXT = 4096, /* bytes of one annotation's value */
    MAX_SHOWN = 48,  /* of it in a message */
    MIB = 1 << 20,
};

enum form {                /* of the annotation */
            FORM_NONE,     /* there is none */
            FORM_TEXT,     /* as it stands */
            FORM_NUMBER,   /* base 10 */
            FORM_CPUS,     /* a quantity, rounded up to whole CPUs */
            FORM_MEMORY,   /* a quantity of bytes, rounded up to MiB: 0 would mean all of the node's
                            */
            FORM_EXCLUSIVE /* only "false" means shared */
};

enum shape {               /* of the field in the request */
             SHAPE_TEXT,   /* a string; absent when not said */
             SHAPE_LIST,   /* a hostlist as the only item of an array; absent when not said */
             SHAPE_NUMBER, /* an integer; absent when not said */
             SHAPE_LIMIT,  /* {set, infinite, number}; {set: false} when not said */
             SHAPE_DIGITS, /* a number as a string */
             SHAPE_SHARED, /* ["none"] for whole nodes, else [] */
};

struct job_field {
    const char *suffix; /* of the annotation */
    enum form form;
    int64_t least; /* of FORM_NUMBER */
    size_t offset;
    const char *field; /* slurmrestd's name of it */
    enum shape shape;
    const char *meaning;
};

#define AT(member) offsetof(struct job_ask, member)

/* Slurm ends a job with a time limit of 0 at once, and refuses node counts of 0; a priority of 0
 * holds the job. */
static const struct job_field fields[] = {
    { "account", FORM_TEXT, 0, AT(account), "account", SHAPE_TEXT, "account to charge" },
    { "constraints", FORM_TEXT, 0, AT(constraints), "constraints", SHAPE_TEXT,
      "features that the nodes must have" },
    { "cpu-per-task", FORM_CPUS, 0, AT(cpus_per_task), "cpus_per_task", SHAPE_NUMBER,
      "CPUs on each node, in place of what the pods ask for" },
    { "exclusive", FORM_EXCLUSIVE, 0, AT(exclusive), "shared", SHAPE_SHARED,
      "whether the job gets whole nodes" },
    { "gres", FORM_TEXT, 0, AT(gres), "tres_per_node", SHAPE_TEXT,
      "devices on each node, in place of what the pods ask for" },
    { "group-id", FORM_TEXT, 0, AT(group_id), "group_id", SHAPE_TEXT,
      "group of the job, by name or number" },
    { "job-name", FORM_TEXT, 0, AT(name), "name", SHAPE_TEXT,
      "name of the job; the pod's when absent" },
    { "licenses", FORM_TEXT, 0, AT(licenses), "licenses", SHAPE_TEXT, "licenses to take" },
    { "max-nodes", FORM_NUMBER, 1, AT(max_nodes), "maximum_nodes", SHAPE_NUMBER,
      "the most nodes that the job may get" },
    { "mem-per-node", FORM_MEMORY, 0, AT(memory), "memory_per_node", SHAPE_LIMIT,
      "memory on each node, in place of what the pods ask for" },
    { "min-nodes", FORM_NUMBER, 1, AT(min_nodes), "minimum_nodes", SHAPE_NUMBER,
      "the fewest nodes that will do" },
    { "partition", FORM_TEXT, 0, AT(partition), "partition", SHAPE_TEXT,
      "partition, in place of the configured one" },
    { "priority", FORM_NUMBER, 0, AT(priority), "priority", SHAPE_LIMIT,
      "priority of the job; 0 holds it" },
    { "qos", FORM_TEXT, 0, AT(qos), "qos", SHAPE_TEXT, "quality of service" },
    { "reservation", FORM_TEXT, 0, AT(reservation), "reservation", SHAPE_TEXT,
      "reservation to run in" },
    { "timelimit", FORM_NUMBER, 1, AT(time_limit), "time_limit", SHAPE_LIMIT,
      "time limit in minutes" },
    { "user-id", FORM_TEXT, 0, AT(user_id), "user_id", SHAPE_TEXT,
      "user of the job, by name or number" },
    { "wckey", FORM_TEXT, 0, AT(wckey), "wckey", SHAPE_TEXT, "workload characterization key" },

    { "", FORM_NONE, 0, AT(mcs_label), "mcs_label", SHAPE_TEXT, "" },
    { "", FORM_NONE, 0, AT(nodes), "nodes", SHAPE_DIGITS, "" },
    { "", FORM_NONE, 0, AT(tasks_per_node), "tasks_per_node", SHAPE_NUMBER, "" },
    { "", FORM_NONE, 0, AT(excluded_nodes), "excluded_nodes", SHAPE_LIST, "" },
    { "", FORM_NONE, 0, AT(required_nodes), "required_nodes", SHAPE_LIST, "" },
};

static const struct job_field *const fields_end = fields + sizeof(fields) / sizeof(fields[0]);

/* ---- members by offset ---- */

static bool is_text(const struct job_field *field)
{
    return field->shape == SHAPE_TEXT || field->shape == SHAPE_LIST;
}

static void *member(struct job_ask *ask, const struct job_field *field)
{
    return (char *)ask + field->offset;
}

static const void *value_of(const struct job_ask *ask, const struct job_field *field)
{
    return (const char *)ask + field->offset;
}

static const char *text_of(const struct job_ask *ask, const struct job_field *field)
{
    return *(const char *const *)value_of(ask, field);
}

static int64_t number_of(const struct job_ask *ask, const struct job_field *field)
{
    if (field->shape == SHAPE_SHARED)
        return *(const bool *)value_of(ask, field);
    return *(const int64_t *)value_of(ask, field);
}

void job_ask_init(struct job_ask *ask)
{
    *ask = (struct job_ask){ .exclusive = true };
    for (const struct job_field *field = fields; field < fields_end; field++) {
        if (is_text(field))
            *(const char **)member(ask, field) = "";
        else if (field->shape != SHAPE_SHARED)
            *(int64_t *)member(ask, field) = -1;
    }
    ask->nodes = 1;
}

/* ---- annotations ---- */

static void write_form(const struct job_field *field, struct buf *out)
{
    switch (field->form) {
    case FORM_NONE:
        break;
    case FORM_TEXT:
        buf_printf(out, "a text of at most %d bytes without control characters", MAX_TEXT);
        break;
    case FORM_NUMBER:
        buf_printf(out, "a whole number from %" PRId64 " to %d", field->least, INT32_MAX);
        break;
    case FORM_CPUS:
        buf_printf(out, "a Kubernetes quantity above 0 and up to %d, as 2 or 1500m",
                   JOB_ASK_MAX_CPUS);
        break;
    case FORM_MEMORY:
        buf_add_text(out, "a Kubernetes quantity of bytes above 0 and below 8Ei, as 4Gi");
        break;
    case FORM_EXCLUSIVE:
        buf_add_text(out, "`false` to share nodes; anything else for whole nodes");
        break;
    }
}

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

static int refuse(const struct job_field *field, struct str value, struct err *err)
{
    auto_buf struct buf form = { .max = 128 }, shown = { .max = 64 };

    write_form(field, &form);
    show_value(value, &shown);
    return err_set(err, ERR_INVALID, "%s%s: \"%s\" is not %s", BRIDGE_ANNOTATION_PREFIX,
                   field->suffix, buf_text(&shown), buf_text(&form));
}

static bool is_plain(struct str value)
{
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.at[i] < ' ' || value.at[i] == 0x7f)
            return false;
    return value.len <= MAX_TEXT;
}

static bool parse_number(struct str value, int64_t least, int64_t *ret_number)
{
    /* Go's parser, which these annotations were made for, takes a plus sign. */
    if (str_starts(value, STR("+")))
        value = str_sub(value, 1, value.len);
    return str_to_i64(value, least, INT32_MAX, ret_number, NULL) == 0;
}

static bool parse_cpus(struct str value, int64_t *ret_cpus)
{
    struct quantity quantity;
    int64_t cpus;

    if (quantity_parse(value, &quantity, NULL) < 0 ||
        quantity_ceil_units(&quantity, &cpus, NULL) < 0 || cpus < 1 || cpus > JOB_ASK_MAX_CPUS)
        return false;
    *ret_cpus = cpus;
    return true;
}

static bool parse_memory(struct str value, int64_t *ret_mib)
{
    struct quantity quantity;
    int64_t mib;

    if (quantity_parse(value, &quantity, NULL) < 0 ||
        quantity_ceil_mib(&quantity, &mib, NULL) < 0 || mib < 1 || mib > INT64_MAX / MIB)
        return false;
    *ret_mib = mib;
    return true;
}

static bool is_false(struct str value)
{
    struct str text = str_trim(value);

    return text.len == 5 && strncasecmp(text.at, "false", text.len) == 0;
}

static bool take_value(struct job_ask *ask, struct arena *arena, const struct job_field *field,
                       struct str value)
{
    switch (field->form) {
    case FORM_TEXT:
        if (!is_plain(value))
            return false;
        *(const char **)member(ask, field) = arena_strndup(arena, value.at, value.len);
        return true;
    case FORM_NUMBER:
        return parse_number(value, field->least, member(ask, field));
    case FORM_CPUS:
        return parse_cpus(value, member(ask, field));
    case FORM_MEMORY:
        return parse_memory(value, member(ask, field));
    case FORM_EXCLUSIVE:
        *(bool *)member(ask, field) = !is_false(value);
        return true;
    case FORM_NONE:
        break;
    }
    return true;
}

static const struct job_field *find_annotation(struct str key)
{
    struct str prefix = STR(BRIDGE_ANNOTATION_PREFIX);

    if (!str_starts(key, prefix))
        return NULL;
    for (const struct job_field *field = fields; field < fields_end; field++)
        if (field->form != FORM_NONE && str_is(str_sub(key, prefix.len, key.len), field->suffix))
            return field;
    return NULL;
}

int job_ask_annotate(struct job_ask *ask, struct arena *arena, const struct kube_pairs *annotations,
                     struct err *err)
{
    struct job_ask next = *ask;

    for (unsigned i = 0; i < annotations->count; i++) {
        const struct kube_pair *pair = &annotations->at[i];
        const struct job_field *field = find_annotation(pair->key);

        if (field && !take_value(&next, arena, field, pair->value))
            return refuse(field, pair->value, err);
    }
    *ask = next;
    return 0;
}

/* ---- the request ---- */

static struct json_mut *new_limit(struct json_build *build, int64_t number)
{
    struct json_mut *limit = json_new_object(build);

    json_put_bool(build, limit, "set", number >= 0);
    if (number < 0)
        return limit;
    json_put_bool(build, limit, "infinite", false);
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

static struct json_mut *new_digits(struct json_build *build, int64_t number)
{
    auto_buf struct buf digits = { .max = 32 };

    buf_printf(&digits, "%" PRId64, number);
    return json_new_str(build, buf_str(&digits));
}

/* NULL: not sent. */
static struct json_mut *new_field(struct json_build *build, const struct job_ask *ask,
                                  const struct job_field *field)
{
    const char *text = is_text(field) ? text_of(ask, field) : "";
    int64_t number = is_text(field) ? -1 : number_of(ask, field);

    switch (field->shape) {
    case SHAPE_TEXT:
        return text[0] ? json_new_str(build, str_of(text)) : NULL;
    case SHAPE_LIST:
        return text[0] ? new_list(build, text) : NULL;
    case SHAPE_NUMBER:
        return number >= 0 ? json_new_i64(build, number) : NULL;
    case SHAPE_LIMIT:
        return new_limit(build, number);
    case SHAPE_DIGITS:
        return new_digits(build, number);
    case SHAPE_SHARED:
        return new_list(build, number ? "none" : "");
    }
    return NULL;
}

struct json_mut *job_ask_json(struct json_build *build, const struct job_ask *ask)
{
    struct json_mut *job = json_new_object(build);

    json_put_text(build, job, "current_working_directory", "/tmp");
    json_put(build, job, "flags", new_list(build, "EXTERNAL_JOB"));
    for (const struct job_field *field = fields; field < fields_end; field++) {
        struct json_mut *value = new_field(build, ask, field);

        if (value)
            json_put(build, job, field->field, value);
    }
    return job;
}

/* ---- the hash: FNV-1a of all members, texts with their NUL ---- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash;
}

static uint64_t hash_number(uint64_t hash, int64_t number)
{
    unsigned char bytes[8];

    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)((uint64_t)number >> (8 * i));
    return hash_bytes(hash, bytes, sizeof(bytes));
}

uint64_t job_ask_hash(const struct job_ask *ask)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (const struct job_field *field = fields; field < fields_end; field++)
        if (is_text(field))
            hash = hash_bytes(hash, text_of(ask, field), strlen(text_of(ask, field)) + 1);
        else
            hash = hash_number(hash, number_of(ask, field));
    return hash;
}

/* ---- the reference ---- */

void job_ask_reference(struct buf *out)
{
    buf_add_text(out, "| annotation | value | field of the job | meaning |\n");
    buf_add_text(out, "|---|---|---|---|\n");
    for (const struct job_field *field = fields; field < fields_end; field++) {
        if (field->form == FORM_NONE)
            continue;
        buf_printf(out, "| `%s%s` | ", BRIDGE_ANNOTATION_PREFIX, field->suffix);
        write_form(field, out);
        buf_printf(out, " | `%s` | %s |\n", field->field, field->meaning);
    }
}
