/* desk.c - objects for the operator's plans. */
#include "desk.h"

#include "codec/json_format.h"
#include "operator/names.h"
#include "operator/plans.h"
#include "slurm/cache.h"

#include <stdio.h>

static const char ns[] = "site";

void desk_init(struct desk *desk)
{
    *desk = (struct desk){ .loop = NULL };
    clock_init_virtual(&desk->clock, INT64_C(1767225600000000)); /* 2026-01-01 */
    operator_world_init(&desk->world, &desk->clock);
    desk->world.wall_us = clock_wall_us(&desk->clock);
    arena_init(&desk->arena, 16 << 20);
    plan_init(&desk->plan, &desk->arena);
}

void desk_done(struct desk *desk)
{
    for (size_t i = 0; i < DESK_CACHES; i++)
        slurm_cache_free(desk->slurm[i]);
    loop_free(desk->loop);
    operator_world_done(&desk->world);
    arena_done(&desk->arena);
}

static const char *uid_of(struct desk *desk, struct str kind, struct str name)
{
    return arena_printf(&desk->arena, "uid-" STR_FMT "-" STR_FMT, STR_ARG(kind), STR_ARG(name));
}

static void put_missing(struct json_build *build, struct json_mut *metadata, const char *key,
                        const char *text)
{
    if (!json_mut_get(metadata, str_of(key)))
        json_put_text(build, metadata, key, text);
}

static void put_owner(struct desk *desk, struct json_build *build, struct json_mut *metadata,
                      struct str owner)
{
    struct str kind, name;

    if (!str_cut(owner, ' ', &kind, &name))
        return;
    json_put(build, metadata, "ownerReferences",
             json_format(build,
                         "[{'apiVersion':'slinky.slurm.net/v1beta1','kind':%s,'name':%s,'uid':%s,"
                         "'controller':true,'blockOwnerDeletion':true}]",
                         arena_strndup(&desk->arena, kind.at, kind.len), name.at,
                         uid_of(desk, kind, name)));
}

/* What a worker has, where it does not say otherwise. */
static void put_worker(struct desk *desk, struct json_build *build, struct json_mut *pod,
                       const struct json *object)
{
    static const char created[] = "2025-12-31T23:00:00Z";
    struct json_mut *metadata = json_object_at(build, pod, "metadata");
    struct json_mut *spec = json_object_at(build, pod, "spec");
    struct json_mut *status = json_object_at(build, pod, "status");
    struct str set = json_str(json_get(object, "worker"));
    int64_t ordinal;
    struct str node = json_str(json_get(object, "runs"));
    struct str name = json_str(json_at(object, "metadata", "name"));
    struct json_mut *labels = json_object_at(build, metadata, "labels");
    struct str revision = json_str_or(json_get(object, "revision"), STR(DESK_REVISION));

    put_owner(desk, build, metadata, str_of(arena_printf(&desk->arena, "NodeSet %s", set.at)));
    put_missing(build, metadata, "creationTimestamp", created);
    put_missing(build, spec, "hostname", name.at);
    json_put_str(build, labels, "controller.kubernetes.io/hash", revision);
    put_missing(build, labels, LABEL_NAME, "slurmd");
    put_missing(build, labels, LABEL_INSTANCE, set.at);
    put_missing(build, labels, LABEL_CLUSTER, "slurm");
    put_missing(build, labels, LABEL_POD_NAME, name.at);
    put_missing(build, labels, LABEL_POD_HOSTNAME,
                json_str_or(json_at(object, "spec", "hostname"), name).at);
    if (str_to_i64(str_sub(name, set.len + 1, name.len), 0, INT32_MAX, &ordinal, NULL) == 0)
        put_missing(build, labels, LABEL_POD_INDEX,
                    arena_printf(&desk->arena, "%lld", (long long)ordinal));
    if (node.len > 0) {
        put_missing(build, spec, "nodeName", node.at);
        put_missing(build, status, "phase", "Running");
        if (!json_mut_get(status, STR("conditions")))
            json_put_array(build, status, "conditions");
        json_push(json_mut_get(status, STR("conditions")),
                  json_format(build, "{'type':'Ready','status':'True','lastTransitionTime':%s}",
                              created));
    } else {
        put_missing(build, status, "phase", "Pending");
    }
    json_remove(pod, STR("worker"));
    json_remove(pod, STR("runs"));
    json_remove(pod, STR("revision"));
}

int desk_add(struct desk *desk, const struct json *object, struct err *err)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *doc = NULL;
    struct json_mut *copy = json_copy(build, object);
    struct json_mut *metadata = json_object_at(build, copy, "metadata");
    struct str kind = json_str(json_get(object, "kind"));
    struct str name = json_str(json_at(object, "metadata", "name"));
    struct kube_cache *cache = operator_world_cache(&desk->world, kind.at);
    const struct kube_object *decoded = NULL;

    if (!cache)
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is no kind of the operator", STR_ARG(kind));
    if (kube_cache_kind(cache)->resource->namespaced)
        put_missing(build, metadata, "namespace", ns);
    put_missing(build, metadata, "uid", uid_of(desk, kind, name));
    put_missing(build, metadata, "resourceVersion", "1");
    put_owner(desk, build, metadata, json_str(json_get(object, "owner")));
    if (json_exists(json_get(object, "worker")))
        put_worker(desk, build, copy, object);
    json_remove(copy, STR("owner"));
    doc = json_freeze(copy);
    if (kube_object_decode(kube_cache_kind(cache), json_root(doc), &decoded, err) < 0)
        return err_wrap(err, STR_FMT " " STR_FMT, STR_ARG(kind), STR_ARG(name));
    kube_cache_seen(cache, decoded);
    kube_object_unref(decoded);
    return 0;
}

void desk_has_all(struct kube_cache *cache)
{
    struct kube_cache_walk walk = kube_cache_walk(cache);
    const struct kube_object *found[16], *object;
    size_t count = 0;

    while (count < 16 && (object = kube_cache_next(&walk)))
        found[count++] = object;
    kube_cache_relist_begin(cache);
    for (size_t i = 0; i < count; i++)
        kube_cache_seen(cache, found[i]);
    kube_cache_relist_end(cache, 1);
}

static void read_facts(const struct desk *desk, const struct json *value,
                       struct slurm_facts *ret_facts)
{
    struct str unreachable = json_str(json_get(value, "unreachable"));
    const struct json *hash = json_get(value, "conf_hash");

    ret_facts->has_restapi = json_bool_or(json_get(value, "restapi"), true);
    ret_facts->is_known = ret_facts->has_restapi;
    ret_facts->is_reachable = ret_facts->has_restapi && unreachable.len == 0;
    ret_facts->since_us =
        desk->world.wall_us - json_i64_or(json_get(value, "seconds_ago"), 0) * 1000000;
    (void)snprintf(ret_facts->reason, sizeof(ret_facts->reason), STR_FMT, STR_ARG(unreachable));
    if (json_exists(json_get(value, "database")))
        ret_facts->accounting =
            json_str(json_get(value, "database")).len == 0 ? ACCOUNTING_ANSWERS : ACCOUNTING_LOST;
    ret_facts->accounting_since_us = ret_facts->since_us;
    (void)snprintf(ret_facts->accounting_reason, sizeof(ret_facts->accounting_reason), STR_FMT,
                   STR_ARG(json_str(json_get(value, "database"))));
    ret_facts->active = (int)json_i64_or(json_get(value, "active"), 0);
    ret_facts->has_conf_hash = json_exists(hash);
    ret_facts->conf_hash = (uint32_t)json_i64_or(hash, 0);
    (void)snprintf(ret_facts->reconfigured, sizeof(ret_facts->reconfigured), STR_FMT,
                   STR_ARG(json_str(json_get(value, "reconfigured"))));
    ret_facts->reconfigured_us =
        desk->world.wall_us - json_i64_or(json_get(value, "seconds_ago"), 0) * 1000000;
}

static int fill(struct slurm_cache *cache, const struct slurm_kind *kind, const struct json *items,
                int64_t listed_us, struct err *err)
{
    struct json_iter iter = json_iter(items);
    struct slurm_merge *merge = slurm_merge_new(cache, listed_us);
    const struct slurm_object *object;
    const struct json *item;

    while (json_next_item(&iter, &item)) {
        auto_json_build struct json_build *build = json_build_new();
        auto_json_doc struct json_doc *doc = NULL;
        struct json_mut *copy = json_copy(build, item);

        put_missing(build, copy, "comment", "of others");
        doc = json_freeze(copy);
        if (slurm_object_decode(kind, json_root(doc), &object, err) < 0)
            return -err->class;
        slurm_merge_add(merge, object);
    }
    while (!slurm_merge_commit(merge, NULL, NULL))
        ;
    slurm_merge_free(merge);
    return 0;
}

static int read_caches(struct desk *desk, const struct json *value, struct slurm_facts *facts,
                       struct err *err)
{
    const struct {
        const char *key;
        const struct slurm_kind *kind;
        struct slurm_cache **cache;
    } rows[DESK_CACHES] = {
        { "nodes", &slurm_node_kind, &facts->nodes },
        { "jobs", &slurm_job_kind, &facts->jobs },
        { "partitions", &slurm_partition_kind, &facts->partitions },
        { "reservations", &slurm_reservation_kind, &facts->reservations },
    };
    int64_t age_us = json_i64_or(json_get(value, "age"), 0) * 1000000;

    desk->loop = loop_new_virtual(&desk->clock);
    desk->world.loop_us = loop_now_us(desk->loop);
    facts->is_suspicious = json_bool_or(json_get(value, "suspicious"), false);
    for (size_t i = 0; i < DESK_CACHES; i++) {
        desk->slurm[i] = *rows[i].cache = slurm_cache_new(rows[i].kind, desk->loop, NULL);
        if (fill(desk->slurm[i], rows[i].kind, json_get(value, rows[i].key),
                 desk->world.loop_us - age_us, err) < 0)
            return err_wrap(err, "%s", rows[i].key);
    }
    return 0;
}

int desk_slurm(struct desk *desk, const struct json *facts, struct err *err)
{
    struct json_iter iter = json_iter(facts);
    const struct json *value;
    struct str name;

    while (json_next_member(&iter, &name, &value)) {
        const char *key = arena_printf(&desk->arena, "%s/" STR_FMT, ns, STR_ARG(name));
        struct slurm_facts *put = operator_world_slurm_put(&desk->world, str_of(key));

        read_facts(desk, value, put);
        if (json_exists(json_get(value, "nodes")) && read_caches(desk, value, put, err) < 0)
            return err_wrap(err, "slurm");
    }
    return 0;
}

int desk_plan(struct desk *desk, struct str kind, struct str name, struct err *err)
{
    const char *key = arena_printf(&desk->arena, "%s/" STR_FMT, ns, STR_ARG(name));
    const struct operator_plan *row =
        operator_plan_of(arena_strndup(&desk->arena, kind.at, kind.len));

    if (!row)
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is no custom resource", STR_ARG(kind));
    operator_plan_key(row, &desk->world, str_of(key), &desk->plan);
    return 0;
}
