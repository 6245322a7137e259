/* keep_live.c - what differs between a live pod template and the wanted one without restarting
 * pods.
 *
 * The differences that do not count by themselves are taken from the live template. When nothing
 * else differs, that is the result: no write. When something else does, all of the wanted template
 * is written, and they go along. */
#include "codec/covers.h"
#include "operator/build.h"
#include "operator/names.h"

/* The first three name the release of a chart; the last is put on pods as they change. */
static const char *const soft_labels[] = { "helm.sh/chart", "app.kubernetes.io/version",
                                           "app.kubernetes.io/managed-by", LABEL_ACTIVE };
enum { CHART_LABELS = 3 };
/* slurm.conf is brought in by a reconfigure. */
static const char *const soft_annotations[] = { ANNOTATION_CONFIG_HASH };
/* Of a pod's spec: the Slinky operator put the user's list in the place of its own. Here the user's
 * is added to ours, but not at the price of a restart. */
static const char *const appended_lists[][4] = {
    { "tolerations" },
    { "dnsConfig", "searches" },
    { "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution" },
};
/* Their command is a script of ours; another text does the same work. */
static const char *const script_containers[] = { "logfile", "reconfigure", "initconf" };

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
        str_is(key, ANNOTATION_RESTART_OPTIONS))
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

struct json_mut *build_keep_live(struct json_build *build, const struct kube_object *owner,
                                 const struct json *live_template, struct json_mut *wanted)
{
    const struct json *metadata = json_get(operator_tree(owner), "metadata");
    const struct json *of_template = json_at(operator_spec(owner), "template", "metadata");
    struct soft labels = { "labels", soft_labels, sizeof(soft_labels) / sizeof(soft_labels[0]),
                           metadata, of_template };
    struct soft annotations = { "annotations", soft_annotations,
                                sizeof(soft_annotations) / sizeof(soft_annotations[0]), metadata,
                                of_template };
    auto_json_doc struct json_doc *doc = json_freeze(wanted);
    auto_json_doc struct json_doc *kept_doc = NULL;
    struct json_mut *kept = json_copy(build, json_root(doc));
    struct json_mut *kept_metadata = json_object_at(build, kept, "metadata"), *kept_spec;

    if (!json_exists(live_template))
        return wanted;
    take_live_pairs(build, &labels, json_get(live_template, "metadata"), kept_metadata);
    take_live_pairs(build, &annotations, json_get(live_template, "metadata"), kept_metadata);
    kept_spec = json_object_at(build, kept, "spec");
    take_live_lists(build, json_get(live_template, "spec"),
                    json_at(operator_spec(owner), "template", "spec"), kept_spec);
    take_live_scripts(build, json_at(live_template, "spec", "initContainers"),
                      json_mut_get(kept_spec, STR("initContainers")));
    kept_doc = json_freeze(kept);
    return json_covers(live_template, json_root(kept_doc)) ? kept : wanted;
}
