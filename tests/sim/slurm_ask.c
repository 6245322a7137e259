/* slurm_ask.c - job descriptions: reading them by one table, and what is wrong with them.
 *
 * An update is the same description over a record that is there already. */
#include "slurm_private.h"

#include <stddef.h>
#include <stdio.h>

enum field_kind { FIELD_TEXT, FIELD_HOSTS, FIELD_NUMBER, FIELD_BOOL, FIELD_IGNORED };

struct field {
    const char *name;
    enum field_kind kind;
    size_t at;    /* in struct ctld_job, or the number of the text */
    bool pending; /* can be changed only before the start */
};

#define NUMBER(name, member, pending)                                                              \
    { name, FIELD_NUMBER, offsetof(struct ctld_job, member), pending }
#define BOOL(name, member) { name, FIELD_BOOL, offsetof(struct ctld_job, member), false }
#define IGNORED(name)      { name, FIELD_IGNORED, 0, false }

/* clang-format off */
static const struct field fields[] = {
    { "name", FIELD_TEXT, JOB_NAME, false },
    { "partition", FIELD_TEXT, JOB_PARTITION, true },
    { "account", FIELD_TEXT, JOB_ACCOUNT, false },
    { "qos", FIELD_TEXT, JOB_QOS, false },
    { "admin_comment", FIELD_TEXT, JOB_ADMIN_COMMENT, false },
    { "comment", FIELD_TEXT, JOB_COMMENT, false },
    { "extra", FIELD_TEXT, JOB_EXTRA, false },
    { "constraints", FIELD_TEXT, JOB_FEATURES, true },
    { "tres_per_node", FIELD_TEXT, JOB_TRES_PER_NODE, true },
    { "licenses", FIELD_TEXT, JOB_LICENSES, false },
    { "reservation", FIELD_TEXT, JOB_RESERVATION, true },
    { "current_working_directory", FIELD_TEXT, JOB_DIRECTORY, false },
    { "wckey", FIELD_TEXT, JOB_WCKEY, false },
    { "mcs_label", FIELD_TEXT, JOB_MCS, false },
    { "required_nodes", FIELD_HOSTS, JOB_REQUIRED, true },
    { "excluded_nodes", FIELD_HOSTS, JOB_EXCLUDED, true },
    NUMBER("minimum_nodes", min_nodes, true), NUMBER("maximum_nodes", max_nodes, true),
    NUMBER("tasks", tasks, true), NUMBER("tasks_per_node", tasks_per_node, true),
    NUMBER("cpus_per_task", cpus_per_task, true),
    NUMBER("memory_per_node", memory_per_node, true), NUMBER("memory_per_cpu", memory_per_cpu, true),
    NUMBER("time_limit", time_limit, false), NUMBER("priority", priority, false),
    BOOL("requeue", requeue), BOOL("immediate", immediate),
    /* read elsewhere, or without meaning here */
    IGNORED("nodes"), IGNORED("flags"), IGNORED("shared"), IGNORED("environment"), IGNORED("hold"),
    IGNORED("script"), IGNORED("array"), IGNORED("user_id"), IGNORED("group_id"), IGNORED("job_id"),
    IGNORED("step_id"), IGNORED("nice"), IGNORED("minimum_cpus"), IGNORED("minimum_cpus_per_node"),
    IGNORED("maximum_cpus"), IGNORED("threads_per_core"), IGNORED("standard_output"), IGNORED("standard_error"),
    IGNORED("standard_input"), IGNORED("dependency"), IGNORED("begin_time"), IGNORED("deadline"), IGNORED("kill_on_node_fail"),
    IGNORED("oversubscribe"), IGNORED("network"), IGNORED("prefer"), IGNORED("tres_per_job"), IGNORED("tres_per_task"),
    IGNORED("tres_per_socket"), IGNORED("sockets_per_node"), IGNORED("cores_per_socket"), IGNORED("time_minimum"),
    IGNORED("contiguous"), IGNORED("container"), IGNORED("argv"), IGNORED("profile"), IGNORED("mail_user"),
};
/* clang-format on */

/* ---- reading ---- */

void ctld_join(const struct json *list, struct buf *out)
{
    struct json_iter iter = json_iter(list);
    const struct json *item;

    if (json_is_string(list))
        buf_add_str(out, json_str(list));
    while (json_is_array(list) && json_next_item(&iter, &item))
        buf_printf(out, "%s" STR_FMT, out->len > 0 ? "," : "", STR_ARG(json_str(item)));
}

/* -1: infinite; what is not set leaves the record as it is. */
static void read_number(const struct json *value, int64_t *number)
{
    if (json_bool_or(json_get(value, "infinite"), false))
        *number = -1;
    else if (json_is_object(value) && json_bool_or(json_get(value, "set"), true))
        *number = json_i64_or(json_get(value, "number"), *number);
    else if (json_is_number(value))
        *number = json_i64_or(value, *number);
}

/* As Slurm shows it: folded. What cannot be folded is refused later. */
static void set_hosts(char **slot, const char *hosts)
{
    auto_arena struct arena arena;
    auto_buf struct buf folded;
    const struct hostlist *list;
    struct hostlist_iter iter;
    struct str *names, name;
    size_t count = 0;

    arena_init(&arena, CTLD_MAX_MEMORY);
    buf_init(&folded, HOSTLIST_MAX_TEXT);
    ctld_set(slot, hosts);
    if (hostlist_parse(&arena, str_of(hosts), HOSTLIST_MAX_NAMES, &list, NULL) < 0)
        return;
    names = arena_alloc_array(&arena, hostlist_count(list) + 1, sizeof(*names));
    iter = hostlist_iter(list);
    while (hostlist_next(&iter, &name))
        names[count++] = (struct str){ arena_strndup(&arena, name.at, name.len), name.len };
    if (hostlist_fold(names, count, &folded, NULL) == 0)
        ctld_set(slot, buf_text(&folded));
}

static void read_field(const struct field *field, const struct json *value, struct ctld_job *job)
{
    auto_buf struct buf text;

    buf_init(&text, CTLD_MAX_BODY);
    switch (field->kind) {
    case FIELD_TEXT:
        ctld_set_str(&job->text[field->at], json_str(value));
        break;
    case FIELD_HOSTS: /* an empty list says nothing, an empty text clears */
        ctld_join(value, &text);
        if (text.len > 0 || json_is_string(value))
            set_hosts(&job->text[field->at], buf_text(&text));
        break;
    case FIELD_NUMBER:
        read_number(value, (int64_t *)(void *)((char *)job + field->at));
        break;
    case FIELD_BOOL:
        *(bool *)((char *)job + field->at) = json_bool_or(value, false);
        break;
    case FIELD_IGNORED:
        break;
    }
}

static const struct field *find_field(struct str name)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (str_is(name, fields[i].name))
            return &fields[i];
    return NULL;
}

static const char *type_words(const struct json *value)
{
    static const char *const words[] = {
        [JSON_NULL] = "null",     [JSON_BOOL] = "boolean", [JSON_NUMBER] = "64 bit integer",
        [JSON_STRING] = "string", [JSON_ARRAY] = "list",   [JSON_OBJECT] = "dictionary",
    };

    return words[json_type(value)];
}

/* "2" or "1-3" */
static void read_node_count(struct ctld_job *job, struct str text)
{
    struct str least = text, most = text;

    (void)str_cut(text, '-', &least, &most);
    (void)str_to_i64(least, 1, INT32_MAX, &job->min_nodes, NULL);
    (void)str_to_i64(most, 1, INT32_MAX, &job->max_nodes, NULL);
}

bool ctld_ask_has_word(const struct json *value, const char *word)
{
    auto_buf struct buf text;

    buf_init(&text, CTLD_MAX_BODY);
    ctld_join(value, &text);
    return ctld_list_has(buf_text(&text), str_of(word));
}

static void read_rest(struct ctld_job *job, const struct json *ask)
{
    if (json_exists(json_get(ask, "shared")))
        job->exclusive = ctld_ask_has_word(json_get(ask, "shared"), "none");
    if (ctld_ask_has_word(json_get(ask, "flags"), "EXTERNAL_JOB"))
        job->external = true;
}

void ctld_ask_read(struct ctld_call *call, const struct json *ask, const char *where,
                   struct ctld_job *job)
{
    struct json_iter iter = json_iter(ask);
    const struct json *value;
    struct str key;
    char source[200];

    if (json_is_string(json_get(ask, "nodes"))) /* minimum_nodes and maximum_nodes win */
        read_node_count(job, json_str(json_get(ask, "nodes")));
    while (json_next_member(&iter, &key, &value)) {
        const struct field *field = find_field(key);

        if (field && field->kind == FIELD_HOSTS && json_is_string(value))
            ctld_warn(call, "", "Expected a list, found a string");
        if (field) {
            read_field(field, value, job);
            continue;
        }
        (void)snprintf(source, sizeof(source), "#/%s" STR_FMT "/", where, STR_ARG(key));
        ctld_warn(call, source,
                  "Ignoring unknown field \"" STR_FMT "\" of type %s in DATA_PARSER_JOB_DESC_MSG",
                  STR_ARG(key), type_words(value));
    }
    read_rest(job, ask);
}

/* ---- refusing ---- */

static bool knows_nodes(const struct slurm_store *store, const char *hosts)
{
    auto_arena struct arena arena;
    const struct hostlist *list;
    struct hostlist_iter iter;
    struct str name;

    arena_init(&arena, CTLD_MAX_MEMORY);
    if (hostlist_parse(&arena, str_of(hosts), HOSTLIST_MAX_NAMES, &list, NULL) < 0)
        return false;
    iter = hostlist_iter(list);
    while (hostlist_next(&iter, &name))
        if (!map_has(&store->state.nodes, name))
            return false;
    return true;
}

/* Each word is a feature of some node. */
static bool knows_features(const struct slurm_store *store, const char *wanted)
{
    struct str rest = str_of(wanted);

    while (rest.len > 0) {
        size_t length = strcspn(rest.at, "&|");
        struct str word = str_trim(str_sub(rest, 0, length));
        bool known = word.len == 0;

        map_each (item, &store->state.nodes) {
            const struct ctld_node *node = item->value;

            known |= ctld_list_has(node->text[NODE_FEATURES], word);
        }
        if (!known)
            return false;
        rest = str_sub(rest, length + 1, rest.len);
    }
    return true;
}

static bool knows_gres(const struct slurm_store *store, const char *wanted)
{
    struct str rest = str_of(wanted), item;
    struct ctld_gres ask;

    while (rest.len > 0 && str_next(&rest, ',', &item))
        if (!ctld_gres_ask(item, &ask) || strcmp(ask.name, "gpu") != 0) /* GresTypes=gpu */
            return false;
    return true;
}

int ctld_job_check(const struct slurm_store *store, const struct ctld_job *job)
{
    if (!ctld_partition_find(&store->state, job->text[JOB_PARTITION]))
        return 2000;
    if (!knows_nodes(store, job->text[JOB_REQUIRED]) ||
        !knows_nodes(store, job->text[JOB_EXCLUDED]))
        return 2018;
    if (!knows_features(store, job->text[JOB_FEATURES]))
        return 2029;
    if (!knows_gres(store, job->text[JOB_TRES_PER_NODE]))
        return 2072;
    if (job->text[JOB_LICENSES][0])
        return 2048;
    if (job->text[JOB_RESERVATION][0] && !ctld_resv_find(&store->state, job->text[JOB_RESERVATION]))
        return 2053;
    if (strlen(job->text[JOB_EXTRA]) > CTLD_MAX_EXTRA)
        return 2012;
    return 0;
}

bool ctld_ask_wants_pending(const struct json *ask)
{
    struct json_iter iter = json_iter(ask);
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value)) {
        const struct field *field = find_field(key);

        if (field && field->pending)
            return true;
    }
    return false;
}
