/* keep_live.c - what differs between a live pod template and the wanted one without restarting
 * pods.
 *
 * The differences that do not count by themselves are taken from the live template. When nothing
 * else differs, that is the result: no write. When something else does, all of the wanted template
 * is written, and they go along.
 *
 * The Slinky operator dropped every false and 0 of the user. Its pods go on without them until the
 * user wants another template: a label of the workload holds the hash of the one that is wanted. */
#include "codec/covers.h"
#include "codec/digest.h"
#include "engine/child.h"
#include "operator/build.h"
#include "operator/names.h"

/* The first three name the release of a chart; the last is put on pods as they change. */
static const char *const soft_labels[] = { "helm.sh/chart", "app.kubernetes.io/version",
                                           "app.kubernetes.io/managed-by", LABEL_ACTIVE };
enum { CHART_LABELS = 3 };
/* slurm.conf is brought in by a reconfigure, another slurm.key by steps (slurm_keys.h). */
static const char *const soft_annotations[] = { ANNOTATION_CONFIG_HASH, ANNOTATION_SLURM_KEY_HASH };
/* Of a pod's spec: the Slinky operator put the user's list in the place of its own. Here the user's
 * is added to ours, but not at the price of a restart. */
static const char *const appended_lists[][4] = {
    { "tolerations" },
    { "dnsConfig", "searches" },
    { "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution" },
};
/* Their command is a script of ours; another text does the same work. */
static const char *const script_containers[] = { "logfile", "reconfigure", "initconf" };
/* The user's container blocks in custom resources. */
static const char *const container_blocks[] = { "slurmctld", "slurmdbd",    "slurmrestd", "login",
                                                "logfile",   "reconfigure", "initconf" };

enum { MAX_TEXT = 8 << 20, HASH_DIGITS = 16 };

static bool is_one_of(struct str key, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(key, names[i]))
            return true;
    return false;
}

bool build_is_chart_label(struct str key)
{
    return is_one_of(key, soft_labels, CHART_LABELS);
}

struct soft {
    const char *map; /* "labels" or "annotations" */
    const char *const *names;
    size_t count;
    const struct json *owner, *template; /* metadata of the custom resource, and of its template */
};

/* A pair that only the custom resource's own metadata brings does not count either. */
static bool is_soft(const struct soft *soft, struct str key)
{
    if (is_one_of(key, soft->names, soft->count))
        return true;
    if (str_is(key, LABEL_NAME) || str_is(key, LABEL_INSTANCE) || str_is(key, LABEL_COMPONENT) ||
        str_starts(key, STR("slinky.slurm.net/")) || str_is(key, ANNOTATION_DEFAULT_CONTAINER) ||
        str_is(key, ANNOTATION_RESTART_OPTIONS) || str_is(key, ANNOTATION_SLURM_KEYS))
        return false;
    return !json_get_str(json_get(soft->template, soft->map), key);
}

/* Soft pairs of the wanted map go, those of the live one come. */
static void take_live_pairs(struct json_build *build, const struct soft *soft,
                            const struct json *live, struct json_mut *wanted_metadata)
{
    struct json_mut *wanted = json_object_at(build, wanted_metadata, soft->map);
    auto_json_doc struct json_doc *before = json_freeze(wanted);
    struct json_iter iter = json_iter(json_root(before));
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value))
        if (is_soft(soft, key))
            json_remove(wanted, key);
    iter = json_iter(json_get(live, soft->map));
    while (json_next_member(&iter, &key, &value))
        if (is_soft(soft, key))
            json_put_key(build, wanted, key, json_copy(build, value));
}

static const struct json *named_item(const struct json *list, struct str name)
{
    struct json_iter iter = json_iter(list);
    const struct json *item;

    while (json_next_item(&iter, &item))
        if (str_eq(json_str(json_get(item, "name")), name))
            return item;
    return NULL;
}

static void take_live_scripts(struct json_build *build, const struct json *live_list,
                              struct json_mut *wanted_list)
{
    auto_json_doc struct json_doc *names = wanted_list ? json_freeze(wanted_list) : NULL;
    struct json_iter iter = json_iter(json_root(names));
    const struct json *item, *command;

    for (size_t i = 0; json_next_item(&iter, &item); i++) {
        struct str name = json_str(json_get(item, "name"));

        command = json_get(named_item(live_list, name), "command");
        if (json_exists(command) &&
            is_one_of(name, script_containers,
                      sizeof(script_containers) / sizeof(script_containers[0])))
            json_put(build, json_mut_item(wanted_list, i), "command", json_copy(build, command));
    }
}

static const struct json *at_path(const struct json *value, const char *const *path)
{
    for (; *path; path++)
        value = json_get(value, *path);
    return value;
}

static void take_live_lists(struct json_build *build, const struct json *live_spec,
                            const struct json *users_spec, struct json_mut *wanted_spec)
{
    for (size_t i = 0; i < sizeof(appended_lists) / sizeof(appended_lists[0]); i++) {
        const char *const *path = appended_lists[i];
        const struct json *live = at_path(live_spec, path), *users = at_path(users_spec, path);
        struct json_mut *parent = wanted_spec;

        if (json_len(users) == 0 || !json_covers(live, users))
            continue;
        for (; parent && path[1]; path++)
            parent = json_mut_get(parent, str_of(*path));
        if (parent)
            json_put(build, parent, *path, json_copy(build, live));
    }
}

/* ---- what the Slinky operator dropped ---- */

static bool is_zero(const struct json *value)
{
    return json_type(value) == JSON_BOOL ? !json_bool_or(value, true)
                                         : json_is_number(value) && json_i64_or(value, 1) == 0;
}

/* Where the user says false or 0, the live value comes. */
static void take_live_zeros(struct json_build *build, const struct json *users,
                            const struct json *live, struct json_mut *wanted)
{
    struct json_iter iter = json_iter(users);
    const struct json *value, *live_value;
    struct str key;

    while (json_next_member(&iter, &key, &value)) {
        struct json_mut *member = json_mut_get(wanted, key);

        live_value = json_get_str(live, key);
        if (json_is_object(value) && json_mut_type(member) == JSON_OBJECT)
            take_live_zeros(build, value, live_value, member);
        else if (is_zero(value) && json_exists(live_value))
            json_put_key(build, wanted, key, json_copy(build, live_value));
        else if (is_zero(value))
            (void)json_remove(wanted, key);
    }
}

static void take_live_zeros_of_containers(struct json_build *build, const struct json *spec,
                                          const struct json *live_list,
                                          struct json_mut *wanted_list)
{
    auto_json_doc struct json_doc *names = wanted_list ? json_freeze(wanted_list) : NULL;
    struct json_iter iter = json_iter(json_root(names));
    const struct json *item;

    for (size_t i = 0; json_next_item(&iter, &item); i++) {
        struct str name = json_str(json_get(item, "name"));

        for (size_t k = 0; k < sizeof(container_blocks) / sizeof(container_blocks[0]); k++)
            if (str_eq(name, json_str_or(json_at(spec, container_blocks[k], "name"),
                                         str_of(container_blocks[k]))))
                take_live_zeros(build, json_get(spec, container_blocks[k]),
                                named_item(live_list, name), json_mut_item(wanted_list, i));
    }
}

static void take_dropped(struct json_build *build, const struct kube_object *owner,
                         const struct json *live_spec, struct json_mut *wanted_spec)
{
    static const char *const lists[] = { "containers", "initContainers" };
    const struct json *spec = operator_spec(owner);

    take_live_zeros(build, json_at(spec, "template", "spec"), live_spec, wanted_spec);
    for (size_t i = 0; i < 2; i++)
        take_live_zeros_of_containers(build, spec, json_get(live_spec, lists[i]),
                                      json_mut_get(wanted_spec, str_of(lists[i])));
}

static void hash_of(const struct json *template, char ret_hash[DIGEST_HEX])
{
    auto_buf struct buf text = { .max = MAX_TEXT };

    json_write_canonical(template, &text);
    digest_sha256(buf_str(&text), ret_hash);
    ret_hash[HASH_DIGITS] = '\0';
}

/* Whether the live template is one of the Slinky operator, and the user has wanted no other one
 * since it was taken over. */
static bool is_of_slinky(const struct kube_object *live, const char *hash)
{
    bool has_stamp = false, has_hash = false;
    struct str last = kube_pairs_get(&live->labels, LABEL_SLINKY_TEMPLATE, &has_hash);

    (void)kube_pairs_get(&live->labels, CHILD_STAMP, &has_stamp);
    return !has_stamp || (has_hash && str_is(last, hash));
}

/* ---- the workload ---- */

/* The template to write, beside the live one; NULL: they differ in more. */
static struct json_mut *keep_live(struct json_build *build, const struct kube_object *owner,
                                  const struct kube_object *live, struct json_mut *wanted,
                                  struct json_mut *metadata)
{
    const struct json *live_template = json_get(operator_spec(live), "template");
    const struct json *live_spec = json_get(live_template, "spec");
    const struct json *of_owner = json_get(operator_tree(owner), "metadata");
    const struct json *of_template = json_at(operator_spec(owner), "template", "metadata");
    struct soft labels = { "labels", soft_labels, sizeof(soft_labels) / sizeof(soft_labels[0]),
                           of_owner, of_template };
    struct soft annotations = { "annotations", soft_annotations,
                                sizeof(soft_annotations) / sizeof(soft_annotations[0]), of_owner,
                                of_template };
    auto_json_doc struct json_doc *doc = json_freeze(wanted);
    auto_json_doc struct json_doc *kept_doc = NULL, *dropped_doc = NULL;
    struct json_mut *kept = json_copy(build, json_root(doc));
    struct json_mut *kept_metadata = json_object_at(build, kept, "metadata");
    struct json_mut *kept_spec = json_object_at(build, kept, "spec");
    char hash[DIGEST_HEX];

    take_live_pairs(build, &labels, json_get(live_template, "metadata"), kept_metadata);
    take_live_pairs(build, &annotations, json_get(live_template, "metadata"), kept_metadata);
    take_live_lists(build, live_spec, json_at(operator_spec(owner), "template", "spec"), kept_spec);
    take_live_scripts(build, json_get(live_spec, "initContainers"),
                      json_mut_get(kept_spec, STR("initContainers")));
    kept_doc = json_freeze(kept);
    if (json_covers(live_template, json_root(kept_doc)))
        return kept;
    hash_of(json_root(kept_doc), hash);
    take_dropped(build, owner, live_spec, kept_spec);
    dropped_doc = json_freeze(kept);
    if (!is_of_slinky(live, hash) || !json_covers(live_template, json_root(dropped_doc)))
        return NULL;
    json_put_at(build, metadata, json_new_str(build, str_of(hash)), "labels",
                LABEL_SLINKY_TEMPLATE);
    return kept;
}

static bool has_seccomp_profile(const struct kube_object *live)
{
    const struct json *spec = json_at(operator_spec(live), "template", "spec");

    return json_exists(json_at(spec, "securityContext", "seccompProfile"));
}

struct json_mut *build_workload(struct json_build *build, const struct component *component,
                                const struct kube_object *owner, const struct kube_object *live,
                                struct json_mut *template)
{
    struct json_mut *metadata =
        build_metadata(build, component, owner, component->suffix, META_OWNER | META_TEMPLATE);
    struct json_mut *hardened =
        component->needs_no_rights ? build_hardened(build, component, template) : template;
    struct json_mut *kept = NULL;

    if (live)
        kept = keep_live(build, owner, live, hardened, metadata);
    /* A template without a seccomp profile is older than ours, or another operator's: it gets one
     * with the next change that restarts its pods. */
    if (live && !kept && !has_seccomp_profile(live))
        kept = keep_live(build, owner, live, template, metadata);
    template = kept ? kept : hardened;
    return json_format(build,
                       "{'metadata':%m,'spec':{'revisionHistoryLimit':0,"
                       "'selector':{'matchLabels':%m},'template':%m}}",
                       metadata, build_selector(build, component, owner), template);
}
