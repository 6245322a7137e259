/* world.c - the caches of the operator, one for each row of operator_kinds. */
#include "operator/world.h"

#include "base/mem.h"
#include "kube/kinds.h"
#include "kube/owners.h"

#include <stdio.h>

enum { MAX_KEY = 2 * KUBE_MAX_NAME, MAX_CLUSTERS = 1 << 20 };

static struct kube_cache **cache_at(const struct operator_world *world, size_t row)
{
    return (struct kube_cache **)(void *)((char *)(uintptr_t)world + operator_kinds[row].cache);
}

static void by_controller_ref(const struct kube_object *object, kube_index_emit emit, void *context)
{
    struct str name = json_str(json_at(operator_spec(object), "controllerRef", "name"));
    char key[MAX_KEY];

    (void)snprintf(key, sizeof(key), "%s/" STR_FMT, object->ns, STR_ARG(name));
    emit(context, str_of(key));
}

static void by_node_name(const struct kube_object *object, kube_index_emit emit, void *context)
{
    const char *node = kube_pod_of(object)->node_name;

    if (node[0] != '\0')
        emit(context, str_of(node));
}

void operator_world_init(struct operator_world *world, const struct clock *clock)
{
    *world = (struct operator_world){ .dns_domain = "cluster.local",
                                      .propagated_conditions = "",
                                      .max_unregistered = OPERATOR_MAX_UNREGISTERED };
    for (size_t i = 0; i < operator_kind_count; i++)
        *cache_at(world, i) = kube_cache_new(operator_kinds[i].kind, clock);
    map_init(&world->slurm, &(struct map_options){ .max = MAX_CLUSTERS, .free_value = mem_free });
    map_init(&world->refused, &(struct map_options){ .max = MAX_CLUSTERS, .free_value = mem_free });
    /* It is the first index of each of these caches, so its number is the same. */
    world->by_controller = kube_cache_add_index(world->restapis, by_controller_ref);
    (void)kube_cache_add_index(world->loginsets, by_controller_ref);
    (void)kube_cache_add_index(world->nodesets, by_controller_ref);
    world->pods_by_owner = kube_cache_add_index(world->pods, kube_index_by_owner);
    (void)kube_cache_add_index(world->revisions, kube_index_by_owner);
    world->pods_by_node = kube_cache_add_index(world->pods, by_node_name);
}

void operator_world_done(struct operator_world *world)
{
    for (size_t i = 0; i < operator_kind_count; i++)
        kube_cache_free(*cache_at(world, i));
    map_done(&world->slurm);
    map_done(&world->refused);
}

struct kube_cache *operator_world_cache(const struct operator_world *world, const char *kind)
{
    for (size_t i = 0; i < operator_kind_count; i++)
        if (strcmp(operator_kinds[i].kind->resource->kind, kind) == 0)
            return *cache_at(world, i);
    return NULL;
}

const struct kube_object *operator_world_ref(struct kube_cache *cache,
                                             const struct kube_object *object, const char *ref)
{
    struct str name = json_str(json_at(operator_spec(object), ref, "name"));

    return name.len > 0 ? kube_cache_get(cache, object->ns, name.at) : NULL;
}

const struct slurm_facts *operator_world_slurm(const struct operator_world *world,
                                               const struct kube_object *controller)
{
    char key[MAX_KEY];

    (void)snprintf(key, sizeof(key), "%s/%s", controller->ns, controller->name);
    return map_get(&world->slurm, str_of(key));
}

struct slurm_facts *operator_world_slurm_put(struct operator_world *world, struct str key)
{
    struct slurm_facts *facts = map_get(&world->slurm, key);

    if (!facts) {
        facts = mem_alloc(sizeof(*facts));
        facts->active = -1;
        (void)map_put(&world->slurm, key, facts, NULL); /* the API server has fewer objects */
    }
    return facts;
}

const char *operator_world_refused(const struct operator_world *world, const char *controller,
                                   const struct kube_object *object)
{
    char key[MAX_KEY + 64];

    (void)snprintf(key, sizeof(key), "%s %s/%s", controller, object->ns, object->name);
    return map_get(&world->refused, str_of(key));
}

void operator_world_refuse(struct operator_world *world, const char *controller, struct str key,
                           const char *text)
{
    char name[MAX_KEY + 64];

    (void)snprintf(name, sizeof(name), "%s " STR_FMT, controller, STR_ARG(key));
    if (text)
        (void)map_put(&world->refused, str_of(name), mem_strdup(text), NULL);
    else
        (void)map_remove(&world->refused, str_of(name));
}
