/* sim_configcopy_promises.c - what the example controller promises, whatever happens to it.
 *
 * 1. A ConfigMap without both of its marks is never touched, and no other kind at all.
 * 2. Only the holder of the lease writes, and there is never more than one.
 * 3. Two minutes after the world has calmed down, every copy is there, equal to its source, and
 *    there is no copy too many.
 * 4. It does not write without need: nothing when all is right, and never more than a few writes
 *    per change that people made. */
#include "sim_configcopy.h"

enum { WRITES_PER_CHANGE = 2 * TARGETS };

static bool is_our_process(const char *user)
{
    return strncmp(user, "replica-", strlen("replica-")) == 0;
}

static const struct json *label(const struct json *object, const char *name)
{
    return json_at(object, "metadata", "labels", name);
}

static bool is_labelled(const struct json *object, const char *name)
{
    return str_is(json_str(label(object, name)), "true");
}

static bool bears_our_marks(const struct json *object)
{
    return is_labelled(object, CONFIGCOPY_MANAGED) &&
           json_exists(json_at(object, "metadata", "annotations", CONFIGCOPY_SOURCE));
}

/* ---- 1: what is not ours is not touched ---- */

void promises_on_change(void *context, const struct api_change *change)
{
    struct scene *scene = context;
    const struct json *object = change->old ? change->old : change->next;
    struct str name = json_str(json_at(object, "metadata", "name"));
    struct str ns = json_str(json_at(object, "metadata", "namespace"));

    scene->changes += strcmp(change->user, "people") == 0;
    if (!is_our_process(change->user) || strcmp(change->kind->plural, "leases") == 0)
        return;
    if (strcmp(change->kind->plural, "configmaps") != 0)
        world_break(scene->world, "%s wrote %s " STR_FMT, change->user, change->kind->plural,
                    STR_ARG(name));
    if (change->old && !bears_our_marks(change->old))
        world_break(scene->world, "%s touched a ConfigMap that is not ours: " STR_FMT "/" STR_FMT,
                    change->user, STR_ARG(ns), STR_ARG(name));
    if (change->next && !bears_our_marks(change->next))
        world_break(scene->world, "%s left a ConfigMap without marks: " STR_FMT "/" STR_FMT,
                    change->user, STR_ARG(ns), STR_ARG(name));
    if (str_is(ns, scene_source_ns))
        world_break(scene->world, "%s wrote into the source namespace: " STR_FMT, change->user,
                    STR_ARG(name));
}

/* ---- 2: only the leader acts ---- */

static bool believes_to_lead(const struct scene *scene, const char *user)
{
    for (unsigned i = 0; i < REPLICAS; i++)
        if (strcmp(scene->replicas[i].process.user, user) == 0)
            return scene->replicas[i].app && app_is_leader(scene->replicas[i].app);
    return false;
}

void promises_on_send(struct scene *scene, const char *user, const char *method, const char *path)
{
    struct world *world = scene->world;
    const struct json *lease = api_store_find(world->store, "leases", "system", "configcopy");

    if (strcmp(method, "GET") == 0 || strstr(path, "/leases"))
        return;
    scene->sent++;
    if (!believes_to_lead(scene, user))
        world_break(world, "%s sends %s %s and knows that it may not", user, method, path);
    if (!str_is(json_str(json_at(lease, "spec", "holderIdentity")), user))
        world_break(world, "%s sends %s %s without holding the lease", user, method, path);
}

void promises_after_step(struct scene *scene)
{
    unsigned leaders = 0;

    for (unsigned i = 0; i < REPLICAS; i++)
        leaders += scene->replicas[i].app && app_is_leader(scene->replicas[i].app);
    if (leaders > 1)
        world_break(scene->world, "%u leaders at once", leaders);
}

/* ---- 3: copies are right ---- */

static bool same_content(const struct json *a, const struct json *b)
{
    return json_equal(json_get(a, "data"), json_get(b, "data"));
}

static void check_copy(struct scene *scene, const struct json *source, const struct json *ns,
                       const char *target, const char *name)
{
    struct world *world = scene->world;
    const struct json *found = api_store_find(world->store, "configmaps", target, name);
    bool wanted = is_labelled(source, CONFIGCOPY_COPY) && is_labelled(ns, CONFIGCOPY_TARGET);

    if (wanted && !found)
        world_break(world, "%s has no copy of %s", target, name);
    if (found && !bears_our_marks(found))
        return;
    if (found && !wanted)
        world_break(world, "%s still has a copy of %s", target, name);
    if (found && wanted && !same_content(source, found))
        world_break(world, "the copy of %s in %s differs", name, target);
}

void promises_when_settled(struct scene *scene)
{
    const struct api_store *store = scene->world->store;

    for (unsigned t = 0; t < TARGETS; t++)
        for (unsigned s = 0; s < SOURCES; s++) {
            char target[16], name[16];

            scene_target_name(target, t);
            scene_source_name(name, s);

            const struct json *ns = api_store_find(store, "namespaces", "", target);

            if (ns)
                check_copy(scene, api_store_find(store, "configmaps", scene_source_ns, name), ns,
                           target, name);
        }
}

/* ---- 4: no write without need ---- */

void promises_at_the_end(struct scene *scene)
{
    struct world *world = scene->world;

    if (scene->sent > scene->settled_sent)
        world_break(world, "%llu writes when all was right",
                    (unsigned long long)(scene->sent - scene->settled_sent));
    if (scene->sent > scene->changes * WRITES_PER_CHANGE)
        world_break(world, "%llu writes for %llu changes", (unsigned long long)scene->sent,
                    (unsigned long long)scene->changes);
    promises_when_settled(scene);
}
