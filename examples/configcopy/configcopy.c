/* configcopy.c - what to do about the ConfigMaps of one name, in every namespace.
 *
 * Reads   the source of that name, all namespaces, and what has that name in each of them.
 * Returns actions; does no I/O.
 * Holds   only a ConfigMap that bears both our marks is patched or deleted, and only in the version
 *         that bore them; a namespace that is going away is left alone. */
#include "configcopy.h"

#include "codec/patch.h"

const struct kube_kind configcopy_configmap_kind = { .resource = &kube_configmaps };

static const struct kube_field no_fields[] = { { .path = { NULL } } };

const struct kube_kind configcopy_namespace_kind = { .resource = &kube_namespaces,
                                                     .size = sizeof(struct kube_object),
                                                     .fields = no_fields };

/* ---- what things are ---- */

static bool is_labelled(const struct kube_object *object, const char *label)
{
    bool found = false;

    return str_is(kube_pairs_get(&object->labels, label, &found), "true") && found;
}

static bool is_source(const struct configcopy *copy, const struct kube_object *object)
{
    return object && strcmp(object->ns, copy->source_ns) == 0 && object->deleted_us == 0 &&
           is_labelled(object, CONFIGCOPY_COPY);
}

static bool is_target(const struct configcopy *copy, const struct kube_object *ns)
{
    return ns->deleted_us == 0 && is_labelled(ns, CONFIGCOPY_TARGET) &&
           strcmp(ns->name, copy->source_ns) != 0;
}

/* Made by us: both marks, and the annotation names this very source. */
static bool is_ours(const struct configcopy *copy, const struct kube_object *object)
{
    bool found = false;
    struct str source = kube_pairs_get(&object->annotations, CONFIGCOPY_SOURCE, &found);
    struct str ns, name;

    return is_labelled(object, CONFIGCOPY_MANAGED) && found && str_cut(source, '/', &ns, &name) &&
           str_is(ns, copy->source_ns) && str_is(name, object->name);
}

static const struct json *tree(const struct kube_object *object)
{
    return ((const struct kube_tree *)(const void *)object)->root;
}

/* ---- what is copied: data and binaryData, nothing else ---- */

static void put_content(struct json_build *build, struct json_mut *into, const struct json *from)
{
    static const char *const parts[] = { "data", "binaryData" };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (json_len(json_get(from, parts[i])) > 0)
            json_put(build, into, parts[i], json_copy(build, json_get(from, parts[i])));
}

static struct json_doc *content_of(const struct kube_object *object)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *content = json_new_object(build);

    put_content(build, content, tree(object));
    return json_freeze(content);
}

/* ---- what to do in one namespace ---- */

static void make_copy(const struct configcopy *copy, const struct kube_object *source,
                      const char *ns, struct plan *plan)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *object = json_new_object(build);
    const char *from = arena_printf(plan->arena, "%s/%s", source->ns, source->name);

    json_put_at(build, object, json_new_str(build, str_of(source->name)), "metadata", "name");
    json_put_at(build, object, json_new_str(build, STR("true")), "metadata", "labels",
                CONFIGCOPY_MANAGED);
    json_put_at(build, object, json_new_str(build, str_of(from)), "metadata", "annotations",
                CONFIGCOPY_SOURCE);
    put_content(build, object, tree(source));
    (void)plan_create(plan, copy->configmaps, &kube_configmaps, ns, object);
}

static void make_equal(const struct configcopy *copy, const struct kube_object *source,
                       const struct kube_object *found, struct plan *plan)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *is = content_of(found), *should_be = content_of(source);
    struct json_mut *patch = patch_merge_diff(build, json_root(is), json_root(should_be));

    if (patch)
        (void)plan_merge_patch(plan, copy->configmaps, &kube_configmaps, found->ns, found->name,
                               NULL, found->version, patch);
}

static void take_away(const struct configcopy *copy, const struct kube_object *found,
                      struct plan *plan)
{
    (void)plan_delete(plan, copy->configmaps, &kube_configmaps, found->ns, found->name, found->uid,
                      found->version);
}

static void plan_namespace(const struct configcopy *copy, const struct kube_object *source,
                           const struct kube_object *ns, const struct kube_object *found,
                           struct plan *plan)
{
    bool wanted = source && is_target(copy, ns);

    if (ns->deleted_us != 0 || (found && found->deleted_us != 0))
        return;
    if (!found && wanted)
        make_copy(copy, source, ns->name, plan);
    else if (found && !is_ours(copy, found) && wanted)
        plan_wait(plan, "namespace %s has one of its own", ns->name);
    else if (found && is_ours(copy, found) && wanted)
        make_equal(copy, source, found, plan);
    else if (found && is_ours(copy, found))
        take_away(copy, found, plan);
}

int configcopy_plan(const struct configcopy *copy, struct str name, struct plan *plan,
                    struct err *err)
{
    const char *text = arena_strndup(plan->arena, name.at, name.len);
    const struct kube_object *source = kube_cache_get(copy->configmaps, copy->source_ns, text);
    struct kube_cache_walk walk = kube_cache_walk(copy->namespaces);
    const struct kube_object *ns;

    (void)err; /* nothing here can fail */
    if (!is_source(copy, source))
        source = NULL;
    while ((ns = kube_cache_next(&walk)))
        if (strcmp(ns->name, copy->source_ns) != 0)
            plan_namespace(copy, source, ns, kube_cache_get(copy->configmaps, ns->name, text),
                           plan);
    return 0;
}

/* ---- which names a change concerns ---- */

static bool concerns_us(const struct configcopy *copy, const struct kube_object *object)
{
    if (!object)
        return false;
    return is_source(copy, object) || is_ours(copy, object) ||
           is_source(copy, kube_cache_get(copy->configmaps, copy->source_ns, object->name));
}

static void on_configmap(struct controller *controller, const struct kube_object *old,
                         const struct kube_object *next)
{
    if (concerns_us(controller->context, old) || concerns_us(controller->context, next))
        engine_enqueue(controller, str_of(next ? next->name : old->name));
}

/* A namespace came, went or changed its label: every source may have to do with it, and so may
 * what we put there before. */
static void on_namespace(struct controller *controller, const struct kube_object *old,
                         const struct kube_object *next)
{
    const struct configcopy *copy = controller->context;
    struct kube_cache_walk walk = kube_cache_walk(copy->configmaps);
    const char *name = next ? next->name : old->name;
    const struct kube_object *object;

    while ((object = kube_cache_next(&walk)))
        if (is_source(copy, object) || (strcmp(object->ns, name) == 0 && is_ours(copy, object)))
            engine_enqueue(controller, str_of(object->name));
}

static int plan_key(struct controller *controller, struct str key, struct plan *plan,
                    struct err *err)
{
    return configcopy_plan(controller->context, key, plan, err);
}

void configcopy_init(struct configcopy *copy, const char *source_ns, struct kube_cache *configmaps,
                     struct kube_cache *namespaces)
{
    *copy = (struct configcopy){ .source_ns = source_ns,
                                 .configmaps = configmaps,
                                 .namespaces = namespaces };
    copy->watches[0] = (struct controller_watch){ configmaps, on_configmap };
    copy->watches[1] = (struct controller_watch){ namespaces, on_namespace };
    copy->controller = (struct controller){ .name = "configcopy",
                                            .watches = copy->watches,
                                            .watch_count = 2,
                                            .plan = plan_key,
                                            .context = copy };
}
