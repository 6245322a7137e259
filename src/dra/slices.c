/* slices.c - what to do about the ResourceSlices of this node and our driver.
 *
 * Reads   the Node (the owner), the slices that are there, the topology.
 * Returns actions; does no I/O.
 * Holds   there is one slice, made of what we want; its pool's generation grows with each change.
 */
#include "dra/slices.h"

#include "codec/digest.h"
#include "codec/json_format.h"
#include "dra/claim.h"
#include "dra/kinds.h"
#include "dra/names.h"
#include "kube/owners.h"

#include <stdio.h>

#define KEY "slice"

/* A hash of the devices and the problem, as we last wrote them. */
static const char applied[] = "slinc.slurm.net/last-applied";

enum { MAX_SPEC = 1 << 20 };

static struct json_mut *device(struct json_build *build, const struct topology *topology,
                               const struct topology_numa *numa)
{
    char name[CLAIM_MAX_DEVICE], cores[64], count[16];

    claim_device_name(numa, name);
    (void)snprintf(count, sizeof(count), "%u", numa->core_count);
    if (numa->core_count == 1)
        (void)snprintf(cores, sizeof(cores), "%u", numa->first_core);
    else
        (void)snprintf(cores, sizeof(cores), "%u-%u", numa->first_core,
                       numa->first_core + numa->core_count - 1);
    return json_format(
        build,
        "{'name':%s,'allowMultipleAllocations':true,'attributes':{"
        "'cores':{'string':%s},'socket':{'int':%d},'numaNode':{'int':%d},"
        "'resource.kubernetes.io/numaNode':{'int':%d},'l3Caches':{'int':%d},"
        "'nodeSockets':{'int':%d},'nodeCoresPerSocket':{'int':%d},"
        "'threadsPerCore':{'int':%d},'smt':{'bool':%b}},"
        "'capacity':{'cores':{'value':%s,'requestPolicy':{'default':'1','validRange':"
        "{'min':'1','step':'1'}}}}}",
        name, cores, (int)numa->socket, (int)numa->number, (int)numa->number, (int)numa->l3_count,
        (int)topology->sockets, (int)topology->cores_per_socket, (int)topology->threads_per_core,
        topology->threads_per_core > 1, count);
}

static struct json_mut *devices(struct json_build *build, const struct topology *topology)
{
    struct topology_numa numas[TOPOLOGY_MAX_NUMA];
    unsigned count = topology ? topology_numas(topology, numas) : 0;
    struct json_mut *list = json_new_array(build);

    for (unsigned i = 0; i < count; i++)
        json_push(list, device(build, topology, &numas[i]));
    return list;
}

static void hash_of(const struct json_mut *list, const char *problem, char ret_hash[DIGEST_HEX])
{
    auto_buf struct buf text;

    buf_init(&text, MAX_SPEC);
    json_mut_write(list, &text);
    buf_add_text(&text, problem ? problem : "");
    digest_sha256(buf_str(&text), ret_hash);
}

static struct json_mut *annotations(struct json_build *build, const char *hash, const char *problem)
{
    struct json_mut *map = json_new_object(build);

    json_put_text(build, map, applied, hash);
    json_put(build, map, DRA_PROBLEM,
             problem ? json_new_str(build, str_of(problem)) : json_new_null(build));
    return map;
}

static void create(const struct slices *slices, const struct kube_object *node, const char *name,
                   struct json_build *build, struct json_mut *list, const char *hash,
                   struct plan *plan)
{
    struct json_mut *marks = annotations(build, hash, slices->problem);

    if (!slices->problem)
        (void)json_remove(marks, str_of(DRA_PROBLEM));
    (void)plan_create(
        plan, slices->slices, &dra_resource_slices, NULL,
        json_format(build,
                    "{'metadata':{'name':%s,'annotations':%m,'ownerReferences':[%m]},"
                    "'spec':{'driver':'" DRA_DRIVER "','nodeName':%s,"
                    "'pool':{'name':%s,'generation':1,'resourceSliceCount':1},'devices':%m}}",
                    name, marks, kube_owner_reference(build, node), slices->node, slices->node,
                    list));
}

static void change(const struct slices *slices, const struct kube_object *found,
                   struct json_build *build, const struct json_mut *list, const char *hash,
                   struct plan *plan)
{
    const struct json *root = ((const struct kube_tree *)(const void *)found)->root;
    int64_t generation = json_i64_or(json_at(root, "spec", "pool", "generation"), 0);

    (void)plan_merge_patch(
        plan, slices->slices, &dra_resource_slices, NULL, found->name, NULL, found->version,
        json_format(build,
                    "{'metadata':{'annotations':%m},'spec':{'pool':{'generation':%l},"
                    "'devices':%m}}",
                    annotations(build, hash, slices->problem), generation + 1, list));
}

static bool is_ours(const struct slices *slices, const struct kube_object *slice)
{
    const struct json *spec =
        json_get(((const struct kube_tree *)(const void *)slice)->root, "spec");

    return str_is(json_str(json_get(spec, "driver")), DRA_DRIVER) &&
           str_is(json_str(json_get(spec, "nodeName")), slices->node);
}

int slices_plan(const struct slices *slices, struct plan *plan, struct err *err)
{
    auto_json_build struct json_build *build = json_build_new();
    const struct kube_object *node = kube_cache_get(slices->nodes, "", slices->node);
    const char *name = arena_printf(plan->arena, "%s-" DRA_DRIVER, slices->node);
    const struct kube_object *found = kube_cache_get(slices->slices, "", name), *slice;
    struct kube_cache_walk walk = kube_cache_walk(slices->slices);
    struct json_mut *list = devices(build, slices->topology);
    char hash[DIGEST_HEX];
    bool is_marked = false;

    (void)err; /* nothing here can fail */
    hash_of(list, slices->problem, hash);
    while ((slice = kube_cache_next(&walk)))
        if (slice != found && is_ours(slices, slice) && slice->deleted_us == 0)
            (void)plan_delete(plan, slices->slices, &dra_resource_slices, NULL, slice->name,
                              slice->uid, NULL);
    if (!node)
        plan_wait(plan, "there is no Node %s", slices->node);
    else if (!found)
        create(slices, node, name, build, list, hash, plan);
    else if (found->deleted_us == 0 &&
             !str_is(kube_pairs_get(&found->annotations, applied, &is_marked), hash))
        change(slices, found, build, list, hash, plan);
    return 0;
}

/* ---- the controller ---- */

static void on_change(struct controller *controller, const struct kube_object *old,
                      const struct kube_object *next)
{
    (void)old;
    (void)next;
    engine_enqueue(controller, STR(KEY));
}

static void on_node(struct controller *controller, const struct kube_object *old,
                    const struct kube_object *next)
{
    if (!old || !next || strcmp(old->uid, next->uid) != 0) /* not each heartbeat */
        engine_enqueue(controller, STR(KEY));
}

static int plan_key(struct controller *controller, struct str key, struct plan *plan,
                    struct err *err)
{
    (void)key;
    return slices_plan(controller->context, plan, err);
}

void slices_init(struct slices *slices, const char *node, struct kube_cache *nodes,
                 struct kube_cache *slice_cache)
{
    *slices = (struct slices){ .node = node,
                               .problem = "the plugin has not looked at the node yet",
                               .nodes = nodes,
                               .slices = slice_cache };
    slices->watches[0] = (struct controller_watch){ nodes, on_node };
    slices->watches[1] = (struct controller_watch){ slice_cache, on_change };
    slices->controller = (struct controller){ .name = "slices",
                                              .watches = slices->watches,
                                              .watch_count = 2,
                                              .plan = plan_key,
                                              .context = slices };
}

void slices_changed(struct slices *slices)
{
    engine_enqueue(&slices->controller, STR(KEY));
}
