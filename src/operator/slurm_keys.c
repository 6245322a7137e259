/* slurm_keys.c - the keys of auth/slurm: which are in slurm.jwks, and who has read them. */
#include "operator/slurm_keys.h"

#include "codec/base64.h"
#include "codec/digest.h"
#include "codec/json_format.h"
#include "engine/child.h"
#include "operator/build.h"
#include "operator/names.h"
#include "operator/worker_identity.h"

#include <stdio.h>

enum {
    MAX_TEXT = 64 << 10,
    MAX_NAME = KUBE_MAX_NAME + 64,
    MAX_KEYS = 2,
    MAX_OWNERS = 64,
    ID_DIGITS = 16,
    LOOK_AGAIN_US = 2000000,
};

struct keys {
    const char *at[MAX_KEYS]; /* in base64; the first one signs */
    size_t count;
    struct str mark; /* of the pods that have read them */
};

static struct str secret_of(const struct kube_object *owner)
{
    return json_str(json_at(operator_spec(owner), "slurmKeyRef", "name"));
}

static void name_kept(const struct kube_object *owner, char ret_name[MAX_NAME])
{
    (void)snprintf(ret_name, MAX_NAME, STR_FMT "-jwks", STR_ARG(secret_of(owner)));
}

/* The Secret with slurm.jwks; NULL: there is none yet. */
static const struct kube_object *kept_of(const struct operator_world *world,
                                         const struct kube_object *owner)
{
    char name[MAX_NAME];

    name_kept(owner, name);
    return secret_of(owner).len > 0 ? kube_cache_get(world->secrets, owner->ns, name) : NULL;
}

static bool has_same_secret(const struct kube_object *a, const struct kube_object *b)
{
    return strcmp(a->ns, b->ns) == 0 && str_eq(secret_of(a), secret_of(b));
}

struct str slurm_keys_mark(const struct operator_world *world, const struct kube_object *owner)
{
    const struct kube_object *kept = kept_of(world, owner);

    return kept ? kube_pairs_get(&kept->annotations, ANNOTATION_SLURM_KEYS, NULL) : STR("");
}

/* ---- the keys ---- */

static void read_keys(const struct sync *sync, struct keys *ret_keys)
{
    const struct kube_object *kept = kept_of(sync->world, sync->object);
    const struct json *data = kept ? json_get(operator_tree(kept), "data") : NULL, *key;
    auto_buf struct buf text = { .max = MAX_TEXT };
    auto_json_doc struct json_doc *doc = NULL;
    struct json_iter iter;

    *ret_keys = (struct keys){ .mark = slurm_keys_mark(sync->world, sync->object) };
    if (base64_decode(json_str(json_get(data, "slurm.jwks")), 0, &text, NULL) < 0 ||
        json_parse(buf_str(&text), MAX_TEXT, &doc, NULL) < 0)
        return;
    iter = json_iter(json_get(json_root(doc), "keys"));
    while (ret_keys->count < MAX_KEYS && json_next_item(&iter, &key))
        if (json_str(json_get(key, "k")).len > 0) /* everybody could sign with an empty one */
            ret_keys->at[ret_keys->count++] =
                arena_strdup(sync->plan->arena, json_str(json_get(key, "k")).at);
}

/* NULL: there is none, which the StatefulSet's step tells, or it is empty. */
static const char *users_key(const struct sync *sync)
{
    const struct kube_object *secret =
        operator_world_ref(sync->world->secrets, sync->object, "slurmKeyRef");
    struct str name = json_str(json_at(sync->spec, "slurmKeyRef", "key"));
    const struct json *value =
        secret ? json_get_str(json_get(operator_tree(secret), "data"), name) : NULL;

    return json_str(value).len > 0 ? json_str(value).at : NULL;
}

static void write_keys(const struct keys *keys, struct json_build *build, struct buf *out)
{
    struct json_mut *list = json_new_array(build);

    for (size_t i = 0; i < keys->count; i++) {
        char id[DIGEST_HEX];

        digest_sha256(str_of(keys->at[i]), id);
        id[ID_DIGITS] = '\0';
        json_push(list, json_format(build, "{'alg':'HS256','kty':'oct','kid':%s,'use':%s,'k':%s}",
                                    id, i == 0 ? "default" : "sig", keys->at[i]));
    }
    json_mut_write(json_format(build, "{'keys':%m}", list), out);
}

/* ---- who has read them ---- */

static bool has_mark(const struct json *metadata, struct str mark)
{
    return str_eq(json_str(json_at(metadata, "annotations", ANNOTATION_SLURM_KEYS)), mark);
}

static bool workload_has(const struct operator_world *world, const struct kube_object *owner,
                         const char *suffix, bool is_deployment, struct str mark)
{
    char name[MAX_NAME];
    const struct kube_object *workload;

    (void)snprintf(name, sizeof(name), "%s%s", owner->name, suffix);
    workload =
        kube_cache_get(is_deployment ? world->deployments : world->statefulsets, owner->ns, name);
    return !workload ||
           (has_mark(json_at(operator_spec(workload), "template", "metadata"), mark) &&
            sync_is_rolled_out(operator_tree(workload),
                               json_i64_or(json_get(operator_spec(workload), "replicas"), 1)));
}

static bool workers_have(const struct operator_world *world, const struct kube_object *nodeset,
                         struct str mark)
{
    struct kube_index_walk walk =
        kube_cache_by(world->pods, world->pods_by_owner, str_of(nodeset->uid));
    const struct kube_object *pod;

    while ((pod = kube_index_next(&walk)))
        if (!str_eq(kube_pairs_get(&pod->annotations, ANNOTATION_SLURM_KEYS, NULL), mark))
            return false;
    return true;
}

/* The first by name: caches have no order, and what is said must not change by itself. */
static const struct kube_object *first_of(const struct kube_object *one,
                                          const struct kube_object *other)
{
    int order = one ? strcmp(one->ns, other->ns) : 1;

    if (order == 0)
        order = strcmp(one->name, other->name);
    return order < 0 ? one : other;
}

/* The first that refers to this Controller and does not have the mark; NULL: none. */
static const struct kube_object *late_of(const struct operator_world *world,
                                         const struct kube_object *controller, struct str mark)
{
    const struct {
        const struct kube_cache *cache;
        const struct component *component; /* NULL: workers */
    } rows[] = { { world->nodesets, NULL },
                 { world->loginsets, &component_login },
                 { world->restapis, &component_slurmrestd } };
    char key[2 * KUBE_MAX_NAME];

    (void)snprintf(key, sizeof(key), "%s/%s", controller->ns, controller->name);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct kube_index_walk walk =
            kube_cache_by(rows[i].cache, world->by_controller, str_of(key));
        const struct kube_object *found, *first = NULL;

        while ((found = kube_index_next(&walk)))
            if (rows[i].component
                    ? !workload_has(world, found, rows[i].component->suffix, true, mark)
                    : !workers_have(world, found, mark))
                first = first_of(first, found);
        if (first)
            return first;
    }
    return NULL;
}

/* The first of all that have these keys; slurmctld comes last. */
static const struct kube_object *late_of_all(const struct sync *sync, struct str mark)
{
    const struct operator_world *world = sync->world;
    struct kube_cache_walk accountings = kube_cache_walk(world->accountings);
    struct kube_cache_walk controllers = kube_cache_walk(world->controllers);
    const struct kube_object *found, *late, *first = NULL, *slurmctld = NULL;

    while ((found = kube_cache_next(&accountings)))
        if (has_same_secret(found, sync->object) && !spec_flag(found, "external") &&
            !workload_has(world, found, component_slurmdbd.suffix, false, mark))
            first = first_of(first, found);
    if (first)
        return first;
    while ((found = kube_cache_next(&controllers))) {
        if (!has_same_secret(found, sync->object) || spec_flag(found, "external"))
            continue;
        if ((late = late_of(world, found, mark)))
            first = first_of(first, late);
        if (!workload_has(world, found, component_slurmctld.suffix, false, mark))
            slurmctld = first_of(slurmctld, found);
    }
    return first ? first : slurmctld;
}

bool slurm_keys_reached_others(const struct sync *sync)
{
    const struct kube_object *late = late_of_all(sync, slurm_keys_mark(sync->world, sync->object));

    return !late || late->kind == operator_kind_of("Controller");
}

bool slurm_keys_are_new(const struct sync *sync)
{
    const char *users = users_key(sync);
    struct keys keys;

    read_keys(sync, &keys);
    return users && keys.count == MAX_KEYS && strcmp(keys.at[0], users) != 0;
}

/* ---- the next step ---- */

/* Whether the keys change. What is signed with must be accepted by all before. */
static bool take_step(struct keys *keys, const char *users)
{
    const char *first = keys->count > 0 ? keys->at[0] : users;
    bool has_second = keys->count == MAX_KEYS;

    if (strcmp(first, users) == 0 && keys->count == 1)
        return false;
    if (strcmp(first, users) == 0)
        *keys = (struct keys){ { users }, 1, keys->mark };
    else if (has_second && strcmp(keys->at[1], users) == 0)
        *keys = (struct keys){ { users, first }, MAX_KEYS, STR("") };
    else
        *keys = (struct keys){ { first, users }, MAX_KEYS, STR("") };
    return true;
}

/* All Controllers that have these keys, by name. */
static size_t owners_of(const struct sync *sync, const struct kube_object *ret_owners[MAX_OWNERS])
{
    struct kube_cache_walk walk = kube_cache_walk(sync->world->controllers);
    const struct kube_object *found;
    size_t count = 0, at;

    while (count < MAX_OWNERS && (found = kube_cache_next(&walk))) {
        if (!has_same_secret(found, sync->object) || spec_flag(found, "external") ||
            found->deleted_us != 0)
            continue;
        for (at = count++; at > 0 && strcmp(ret_owners[at - 1]->name, found->name) > 0; at--)
            ret_owners[at] = ret_owners[at - 1];
        ret_owners[at] = found;
    }
    return count;
}

int slurm_keys_plan(struct sync *sync, struct err *err)
{
    const struct kube_object *owners[MAX_OWNERS];
    const char *users = users_key(sync);
    auto_buf struct buf text = { .max = MAX_TEXT }, encoded = { .max = 2 * MAX_TEXT };
    char digest[DIGEST_HEX];
    char name[MAX_NAME];
    struct json_mut *wanted;
    struct keys keys;

    if (spec_flag(sync->object, "external"))
        return 0;
    read_keys(sync, &keys);
    if (keys.count ==
        MAX_KEYS) /* the condition names the pods that are late, also without the Secret */
        plan_look_again(sync->plan, LOOK_AGAIN_US);
    if (!users || (keys.count == MAX_KEYS && late_of_all(sync, keys.mark)) ||
        !take_step(&keys, users))
        return 0;
    write_keys(&keys, sync->build, &text);
    base64_encode(buf_str(&text), 0, &encoded);
    if (buf_check(&encoded, "slurm.jwks", err) < 0)
        return -ERR_TOO_BIG;
    name_kept(sync->object, name);
    wanted = json_format(sync->build, "{'metadata':{'name':%s},'data':{'slurm.jwks':%s}}", name,
                         buf_text(&encoded));
    digest_sha256(buf_str(&text), digest);
    if (keys.count == MAX_KEYS)
        keys.mark = str_sub(str_of(digest), 0, ID_DIGITS);
    if (keys.mark.len > 0)
        json_put_at(sync->build, wanted, json_new_str(sync->build, keys.mark), "metadata",
                    "annotations", ANNOTATION_SLURM_KEYS);
    return plan_shared_child(sync->plan, sync->world->secrets, owners, owners_of(sync, owners),
                             wanted, err);
}

struct kube_condition_want want_keys(const struct sync *sync)
{
    static const char type[] = "KeyRollout";
    const struct kube_object *late;
    struct keys keys;

    read_keys(sync, &keys);
    if (keys.mark.len == 0)
        return (struct kube_condition_want){ .type = NULL };
    if (keys.count < MAX_KEYS)
        return (struct kube_condition_want){ type, KUBE_FALSE, "Settled",
                                             "all daemons sign with the key of the Secret" };
    late = late_of_all(sync, keys.mark);
    return (struct kube_condition_want){
        type, KUBE_TRUE, slurm_keys_are_new(sync) ? "Accepting" : "Signing",
        late ? arena_printf(sync->plan->arena, "a new slurm.key waits for pods of %s %s",
                            late->kind->resource->kind, late->name)
             : "a new slurm.key is rolled out"
    };
}

/* ---- in pods ---- */

/* Of a template: the volume with slurm.key, whatever its name is. */
static bool has_key_file(const struct json *volume)
{
    struct json_iter sources = json_iter(json_at(volume, "projected", "sources"));
    const struct json *source;

    while (json_next_item(&sources, &source))
        if (str_is(json_str(json_get(json_item(json_at(source, "secret", "items"), 0), "path")),
                   "slurm.key"))
            return true;
    return false;
}

void slurm_keys_put(struct json_build *build, const struct kube_object *owner, struct str mark,
                    struct json_mut *template)
{
    struct json_mut *volumes = json_mut_get(json_mut_get(template, STR("spec")), STR("volumes"));
    auto_json_doc struct json_doc *names = volumes ? json_freeze(volumes) : NULL;
    struct json_iter iter = json_iter(json_root(names));
    const struct json *volume;
    char name[MAX_NAME];

    if (mark.len == 0)
        return;
    name_kept(owner, name);
    json_put_at(build, template, json_new_str(build, mark), "metadata", "annotations",
                ANNOTATION_SLURM_KEYS);
    for (size_t i = 0; json_next_item(&iter, &volume); i++) {
        struct json_mut *sources =
            json_mut_get(json_mut_get(json_mut_item(volumes, i), STR("projected")), STR("sources"));

        if (sources && has_key_file(volume))
            json_push(sources, json_format(build,
                                           "{'secret':{'name':%s,'items':[{'key':'slurm.jwks',"
                                           "'path':'slurm.jwks'}]}}",
                                           name));
    }
}
