/* config.c - the config file, by one table: a row per key with its form, default and meaning.
 *
 * The defaults are read from the table by the same code as the file, so a default that its own key
 * would refuse cannot exist.
 *
 * Holds: every text is bounded and free of control characters; what is wrong names its key. */
#include "bridge/world/config.h"

#include "base/mem.h"
#include "bridge/world/config_rules.h"
#include "bridge/world/job_desc_form.h"
#include "codec/selector.h"
#include "codec/yaml.h"
#include "io/reload.h"

#include <strings.h>
#include <sys/stat.h>

enum {
    MAX_FILE = 1 << 20,     /* bytes; what a ConfigMap holds */
    MAX_VALUES = 1 << 16,   /* scalars, keys, lists and maps in it */
    MAX_ARENA = 64 << 20,   /* a fuse */
    MAX_TEXT = 4096,        /* bytes of one text */
    MAX_NAMESPACES = 10000, /* managed by name; more want the selector */
    MAX_WARNINGS = 32,      /* lines */
    MAX_SHOWN = 64,         /* bytes of an unknown key */
    MAX_COUNT = 1000000000,
};

enum form {
    FORM_TEXT,
    FORM_NAME,
    FORM_URL,
    FORM_PATH,
    FORM_NAMESPACES,
    FORM_SELECTOR,
    FORM_BOOL,
    FORM_COUNT,
    FORM_PIN,
    FORM_TRUST,
    FORM_LABELS,
    FORM_PRIORITIES,
    FORM_USERS,
    FORM_DEVICES,
};

static const struct {
    const char *name, *wanted;
} forms[] = {
    [FORM_TEXT] = { "text", "a text of one line; numbers, yes and no need quotes" },
    [FORM_NAME] = { "name", "a name of at most 63 letters, digits, '-', '_' and '.'" },
    [FORM_URL] = { "URL", "a URL that begins with http://, https:// or unix://" },
    [FORM_PATH] = { "path", "the path of a file, from the root" },
    [FORM_NAMESPACES] = { "list of names", "a list of namespace names" },
    [FORM_SELECTOR] = { "label selector", "a label selector: matchLabels, matchExpressions" },
    [FORM_BOOL] = { "true or false", "true or false" },
    [FORM_COUNT] = { "whole number", "a whole number from 0 to 1000000000" },
    [FORM_PIN] = { "never or auto", "never or auto" },
    [FORM_TRUST] = { "all, own or none", "all, own or none (true is all, false is none)" },
    [FORM_LABELS] = { "list of label keys", "" }, /* config_rules.c says it itself */
    [FORM_PRIORITIES] = { "map", "" },
    [FORM_USERS] = { "list of rules", "" },
    [FORM_DEVICES] = { "list of rows", "" },
};

_Static_assert(MAX_COUNT == 1000000000, "as the text says");

struct key {
    const char *name;
    enum form form;
    size_t offset;
    const char *fallback; /* YAML */
    const char *meaning;
};

#define AT(member) offsetof(struct bridge_config, member)

static const struct key keys[] = {
    { "schedulerName", FORM_NAME, AT(scheduler_name), "slurm-bridge-scheduler",
      "pods with this `schedulerName` are ours; also the value of our taint" },
    { "slurmRestApi", FORM_URL, AT(slurm_rest_api), "http://slurm-restapi.slurm:6820",
      "where slurmrestd answers" },
    { "slurmRestCaFile", FORM_PATH, AT(slurm_rest_ca_file), "\"\"",
      "the CA of an https:// slurmRestApi, which may change at any time; empty: the system's" },
    { "managedNamespaces", FORM_NAMESPACES, AT(managed_namespaces), "[slurm-bridge]",
      "pods created in these namespaces get our scheduler" },
    { "managedNamespaceSelector", FORM_SELECTOR, AT(managed_namespace_selector), "null",
      "the same by labels of the namespace; takes the place of the list, and `{}` means all" },
    { "mcsLabel", FORM_TEXT, AT(mcs_label), "kubernetes", "MCS label of our jobs; empty for none" },
    { "partition", FORM_TEXT, AT(partition), "slurm-bridge",
      "partition of jobs that name none; empty for Slurm's default" },
    { "sharedNodes", FORM_BOOL, AT(shared), "false",
      "whether pods share nodes when their annotation `exclusive` is absent" },
    { "submitOnly", FORM_BOOL, AT(submit_only), "false",
      "whether every job goes through the queue, and none asks for an immediate allocation" },
    { "fenceAfterSeconds", FORM_COUNT, AT(fence_after_s), "0",
      "a node that is NotReady for so long, and drained in Slurm, runs nothing any more; 0: never "
      "by time alone" },
    { "maxGraceSeconds", FORM_COUNT, AT(max_grace_s), "0",
      "the most seconds that a pod gets to stop when Slurm ended its job, whatever it asks for; 0: "
      "`KillWait` of Slurm, or 30 where that is not told" },
    { "asksPerSecond", FORM_COUNT, AT(submits_per_second), "0",
      "the most jobs submitted in a second; 0: no limit" },
    { "maxJobsPerNamespace", FORM_COUNT, AT(jobs_per_namespace), "0",
      "the most jobs that pods of one namespace have at a time; 0: no limit" },
    { "nodeMemoryMarginMiB", FORM_COUNT, AT(memory_margin), "100",
      "memory of a node that Slurm is not told of, beside what DaemonSets request; a change of no "
      "more than this is not followed" },
    { "nodeResizeSeconds", FORM_COUNT, AT(resize_after_s), "60",
      "how long the size of a node must have been another one before Slurm's node is made anew" },
    { "drainToResize", FORM_BOOL, AT(drains_to_resize), "false",
      "whether a busy node is drained for more CPUs, memory or devices; else they come when it is "
      "idle" },
    { "nodeFeatures", FORM_LABELS, AT(node_features), "[]",
      "labels of nodes that become Slurm features: the value, or the last part of the key where "
      "that is empty or `true`" },
    { "podDeadlineAsTimeLimit", FORM_BOOL, AT(pod_deadline), "false",
      "whether `activeDeadlineSeconds` of a pod gives its job a time limit, as a Job's does" },
    { "gracePeriodInTimeLimit", FORM_BOOL, AT(adds_grace), "false",
      "whether time limits that come from deadlines are longer by the pods' "
      "`terminationGracePeriodSeconds`, which begin with the deadline" },
    { "priorityClasses", FORM_PRIORITIES, AT(priorities), "{}",
      "what a priority class is in Slurm: a QOS when a text, a priority when a number" },
    { "users", FORM_USERS, AT(users), "[]",
      "who pods are in Slurm; the first rule whose `namespace`, `serviceAccount`, `creator` and "
      "`creatorGroup` (of whoever made the pod or its workload) match (`*` "
      "stands for any characters) gives `user`, `group`, `account` and `qos`, and opens "
      "`partitions` and `reservations` that Slurm would not (lists by comma, `*` as before)" },
    { "pinCpus", FORM_PIN, AT(pins_cpus), "never",
      "`auto`: pods that share nodes run on the cores that Slurm chose, and only on nodes with "
      "`slinc dra`; see docs/devices.md" },
    { "devices", FORM_DEVICES, AT(devices),
      "[{class: gpu.nvidia.com, where: {type: gpu}, gres: gpu}, {class: gpu.example.com, gres: "
      "gpu}, "
      "{class: cores.slinky.slurm.net, gres: cpu}, "
      "{resource: nvidia.com/gpu, gres: gpu}, "
      "{resource: amd.com/gpu, gres: gpu}]",
      "what devices are in Slurm: a DeviceClass (its `driver`, and the attributes `where` of its "
      "devices) or the `resource` of a device plugin, and the `gres` and `type` that stand for it; "
      "see docs/devices.md" },
    { "trustAnnotations", FORM_TRUST, AT(trust), "all",
      "what annotations may say. `all`: everything. `own`: not the user, the group, a priority "
      "above 0, a nice below 0, and a partition or reservation that is not open to the job's user; "
      "pods that say so are refused. `none`: nor account and QOS; all but the last are ignored" },
    { "controllerAccounts", FORM_TEXT, AT(controller_accounts),
      "\"system:kube-controller-manager,system:serviceaccount:kube-system:*,"
      "system:serviceaccount:jobset-system:*,system:serviceaccount:lws-system:*\"",
      "accounts that make pods and workloads for others (list by comma): whoever made the owner "
      "made these" },
    { "jwtKeyFile", FORM_PATH, AT(jwt_key_file), "\"\"",
      "Slurm's JWT key, to sign short-lived tokens of our own; empty: the token file is used" },
    { "jwtUser", FORM_TEXT, AT(jwt_user), "\"\"",
      "the user of those tokens (empty: slurm); of a token from a file, where no claim of it names "
      "its user" },
};

enum { KEY_COUNT = sizeof(keys) / sizeof(keys[0]) };

/* ---- values ---- */

static int refuse(const struct key *key, struct err *err)
{
    return err_set(err, ERR_INVALID, "%s: wants %s", key->name, forms[key->form].wanted);
}

static bool is_url(struct str text)
{
    static const char *const schemes[] = { "http://", "https://", "unix://" };

    if (memchr(text.at, ' ', text.len))
        return false;
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        if (str_starts(text, str_of(schemes[i])) && text.len > strlen(schemes[i]))
            return true;
    return false;
}

static bool is_namespace(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool inside = c == '-' && i > 0 && i + 1 < name.len;

        if (!inside && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9'))
            return false;
    }
    return name.len > 0 && name.len <= 63;
}

static bool text_is(enum form form, struct str text)
{
    if (!job_form_is_line(text, MAX_TEXT))
        return false;
    switch (form) {
    case FORM_NAME:
        return text.len > 0 && selector_check_value(text, NULL) == 0;
    case FORM_URL:
        return is_url(text);
    case FORM_PATH:
        return text.len == 0 || text.at[0] == '/';
    case FORM_TEXT:
    case FORM_NAMESPACES:
    case FORM_SELECTOR:
    case FORM_BOOL:
    case FORM_COUNT:
    case FORM_PIN:
    case FORM_TRUST:
    case FORM_LABELS:
    case FORM_PRIORITIES:
    case FORM_USERS:
    case FORM_DEVICES:
        break;
    }
    return true;
}

static int take_text(struct bridge_config *config, const struct key *key, const struct json *value,
                     const char **place, struct err *err)
{
    struct str text = json_str(value);

    if (!json_is_string(value) || !text_is(key->form, text))
        return refuse(key, err);
    *place = arena_strndup(&config->arena, text.at, text.len);
    return 0;
}

static int take_namespaces(struct bridge_config *config, const struct key *key,
                           const struct json *value, struct err *err)
{
    struct json_iter iter = json_iter(value);
    const struct json *item;
    struct str *names;
    unsigned count = 0;

    if (!json_is_array(value))
        return refuse(key, err);
    if (json_len(value) > MAX_NAMESPACES)
        return err_set(err, ERR_TOO_BIG, "%s: more than %d; managedNamespaceSelector has no limit",
                       key->name, MAX_NAMESPACES);
    names = arena_alloc_array(&config->arena, json_len(value), sizeof(*names));
    while (json_next_item(&iter, &item)) {
        struct str name = json_str(item);

        if (!is_namespace(name))
            return err_set(err, ERR_INVALID, "%s: wants %s; item %u is none", key->name,
                           forms[key->form].wanted, count + 1);
        names[count++] = (struct str){ arena_strndup(&config->arena, name.at, name.len), name.len };
    }
    config->managed_namespaces = names;
    config->managed_namespace_count = count;
    return 0;
}

static int take_selector(const struct key *key, const struct json *value, const struct json **place,
                         struct err *err)
{
    auto_arena struct arena arena;
    const struct selector *selector;

    arena_init(&arena, MAX_ARENA);
    if (!json_is_object(value))
        return refuse(key, err);
    if (selector_from_json(&arena, value, SELECTOR_ABSENT_MATCHES_NOTHING, &selector, err) < 0)
        return err_wrap(err, "%s", key->name);
    *place = value;
    return 0;
}

static int take_count(const struct key *key, const struct json *value, int64_t *place,
                      struct err *err)
{
    int64_t number = json_i64_or(value, -1);

    if (number < 0 || number > MAX_COUNT)
        return refuse(key, err);
    *place = number;
    return 0;
}

const char *trust_name(enum trust trust)
{
    static const char *const names[] = { "all", "own", "none" };

    return names[trust];
}

/* true and false are words of older files. */
static int take_trust(const struct key *key, const struct json *value, enum trust *place,
                      struct err *err)
{
    if (json_is_bool(value)) {
        *place = json_bool_or(value, false) ? TRUST_ALL : TRUST_NONE;
        return 0;
    }
    for (enum trust trust = TRUST_ALL; trust <= TRUST_NONE; trust++)
        if (str_is(json_str(value), trust_name(trust))) {
            *place = trust;
            return 0;
        }
    return refuse(key, err);
}

static int take_rules(struct bridge_config *config, const struct key *key, const struct json *value,
                      struct err *err)
{
    int rc;

    if (key->form == FORM_LABELS)
        rc = config_take_labels(config, value, err);
    else if (key->form == FORM_PRIORITIES)
        rc = config_take_priorities(config, value, err);
    else if (key->form == FORM_DEVICES)
        rc = device_table_read(&config->arena, value, &config->devices, err);
    else
        rc = config_take_users(config, value, err);
    return rc < 0 ? err_wrap(err, "%s", key->name) : 0;
}

static int take_value(struct bridge_config *config, const struct key *key, const struct json *value,
                      struct err *err)
{
    void *place = (char *)config + key->offset;

    switch (key->form) {
    case FORM_TEXT:
    case FORM_NAME:
    case FORM_URL:
    case FORM_PATH:
        return take_text(config, key, value, place, err);
    case FORM_NAMESPACES:
        return take_namespaces(config, key, value, err);
    case FORM_SELECTOR:
        return take_selector(key, value, place, err);
    case FORM_BOOL:
        if (!json_is_bool(value))
            return refuse(key, err);
        *(bool *)place = json_bool_or(value, false);
        return 0;
    case FORM_COUNT:
        return take_count(key, value, place, err);
    case FORM_PIN:
        if (!str_is(json_str(value), "auto") && !str_is(json_str(value), "never"))
            return refuse(key, err);
        *(bool *)place = str_is(json_str(value), "auto");
        return 0;
    case FORM_TRUST:
        return take_trust(key, value, place, err);
    case FORM_LABELS:
    case FORM_PRIORITIES:
    case FORM_USERS:
    case FORM_DEVICES:
        return take_rules(config, key, value, err);
    }
    return err_set(err, ERR_BUG, "%s has form %d", key->name, (int)key->form);
}

/* ---- the file ---- */

static const struct key *find_key(struct str name)
{
    for (const struct key *key = keys; key < keys + KEY_COUNT; key++)
        if (name.len == strlen(key->name) && strncasecmp(name.at, key->name, name.len) == 0)
            return key;
    return NULL;
}

struct unknown_keys {
    struct buf lines;
    unsigned count;
};

/* null says nothing, as an absent key does. */
static int take_members(struct bridge_config *config, const struct json *root, struct err *err)
{
    struct unknown_keys unknown = { .lines = { .max = MAX_FILE } };
    struct json_iter iter = json_iter(root);
    bool seen[KEY_COUNT] = { false };
    const struct json *value;
    struct str name;
    int rc = 0;

    while (rc == 0 && json_next_member(&iter, &name, &value)) {
        const struct key *key = find_key(name);

        if (!key) {
            if (unknown.count++ < MAX_WARNINGS) {
                buf_add_text(&unknown.lines, "unknown key ");
                json_escape(&unknown.lines, str_sub(name, 0, MAX_SHOWN));
                buf_add_text(&unknown.lines, " is ignored\n");
            }
            continue;
        }
        if (seen[key - keys])
            rc = err_set(err, ERR_INVALID, "%s: is there twice, in different letter case",
                         key->name);
        else if (json_exists(value))
            rc = take_value(config, key, value, err);
        seen[key - keys] = true;
    }
    if (unknown.count > MAX_WARNINGS)
        buf_printf(&unknown.lines, "%u more unknown keys are ignored\n",
                   unknown.count - MAX_WARNINGS);
    config->warnings = arena_strdup(&config->arena, buf_text(&unknown.lines));
    buf_done(&unknown.lines);
    return rc;
}

/* What config takes from the document it may keep pointing to. */
static int take_document(struct bridge_config *config, struct str text, struct json_doc **ret_doc,
                         struct err *err)
{
    const struct yaml_limits limits = { .max_bytes = MAX_FILE, .max_values = MAX_VALUES };
    int rc = yaml_parse_one(text, &limits, ret_doc, err);

    if (rc < 0)
        return rc;
    if (json_exists(json_root(*ret_doc)) && !json_is_object(json_root(*ret_doc)))
        return err_set(err, ERR_INVALID, "wants keys and values, and is one %s",
                       json_type_name(json_type(json_root(*ret_doc))));
    return take_members(config, json_root(*ret_doc), err);
}

static int take_defaults(struct bridge_config *config, struct err *err)
{
    auto_json_doc struct json_doc *doc = NULL; /* holds no selector: nothing points there */
    auto_buf struct buf text = { .max = MAX_FILE };

    for (const struct key *key = keys; key < keys + KEY_COUNT; key++)
        buf_printf(&text, "%s: %s\n", key->name, key->fallback);
    if (take_document(config, buf_str(&text), &doc, err) < 0)
        return err_wrap(err, "default");
    return 0;
}

int bridge_config_parse(struct str text, struct bridge_config *ret_config, struct err *err)
{
    struct bridge_config config = { 0 };
    int rc;

    arena_init(&config.arena, MAX_ARENA);
    rc = take_defaults(&config, err);
    if (rc == 0)
        rc = take_document(&config, text, &config.doc, err);
    if (rc < 0)
        bridge_config_done(&config);
    else
        *ret_config = config;
    return rc;
}

int bridge_config_load(const char *path, struct bridge_config *ret_config, struct err *err)
{
    struct stat info;
    size_t length;
    char *bytes;
    int rc;

    /* An empty file is legal here, and nowhere else. */
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0)
        return bridge_config_parse(STR(""), ret_config, err);
    rc = reload_read(path, MAX_FILE, &bytes, &length, err);
    if (rc < 0)
        return err_wrap(err, "config");
    rc = bridge_config_parse((struct str){ bytes, length }, ret_config, err);
    mem_free_secret(bytes, length + 1);
    return rc < 0 ? err_wrap(err, "%s", path) : 0;
}

void bridge_config_done(struct bridge_config *config)
{
    if (!config)
        return;
    json_doc_free(config->doc);
    arena_done(&config->arena);
    *config = (struct bridge_config){ 0 };
}

void bridge_config_reference(struct buf *out)
{
    buf_add_text(out, "| key | type | default | meaning |\n|---|---|---|---|\n");
    for (const struct key *key = keys; key < keys + KEY_COUNT; key++)
        buf_printf(out, "| `%s` | %s | `%s` | %s |\n", key->name, forms[key->form].name,
                   key->fallback, key->meaning);
}
