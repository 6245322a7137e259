/* mutate.c - what a pod needs before Slurm can place it, as one JSON patch.
 *
 * Our scheduler's name, room on our nodes (the toleration), our finalizer, which keeps its record
 * until its job has ended, the word of its Job or JobSet that its pods start together, and, with
 * `pinCpus: auto`, an entry for the claim that limits it to its cores. One write, at the one moment
 * where it costs none.
 *
 * Holds: a pod that is as it should be is not touched; only what is new is changed (an update may
 * not change these fields, and would fail for it); a pod of another scheduler gets no finalizer,
 * for nobody would take it off. */
#include "admit/admit_private.h"
#include "bridge/unit/pod_owner.h"
#include "bridge/world/config.h"
#include "bridge/world/names.h"
#include "codec/json_format.h"
#include "codec/patch.h"
#include "device/names.h"
#include "kube/workload_kinds.h"

#define DEFAULT_SCHEDULER "default-scheduler"
#define GANG_ANNOTATION   BRIDGE_ANNOTATION_PREFIX BRIDGE_GANG
#define EXCLUSIVE         BRIDGE_ANNOTATION_PREFIX "exclusive"

enum { MAX_POINTER = 256, MAX_ARENA = 16 << 20, MAX_CREATOR = 64 << 10 };

/* ---- pieces of patches ---- */

/* To the end of a list that may not be there yet. */
static void append(struct json_build *build, struct json_mut *ops, const struct json *list,
                   const char *path, struct json_mut *item)
{
    auto_buf struct buf pointer = { .max = MAX_POINTER };
    struct json_mut *array;

    buf_add_text(&pointer, path);
    if (json_is_array(list)) {
        buf_add_text(&pointer, "/-");
        patch_op(build, ops, "add", buf_str(&pointer), item);
        return;
    }
    array = json_new_array(build);
    json_push(array, item);
    patch_op(build, ops, "add", buf_str(&pointer), array);
}

static void annotate(struct json_build *build, struct admit_mutation *mutation, const char *key,
                     struct str value)
{
    auto_buf struct buf pointer = { .max = MAX_POINTER };
    struct json_mut *all;

    buf_add_text(&pointer, "/metadata/annotations");
    if (mutation->has_annotations) {
        patch_pointer_add(&pointer, str_of(key));
        patch_op(build, mutation->ops, "add", buf_str(&pointer), json_new_str(build, value));
        return;
    }
    mutation->has_annotations = true;
    all = json_new_object(build);
    json_put_str(build, all, key, value);
    patch_op(build, mutation->ops, "add", buf_str(&pointer), all);
}

/* ---- who made it ---- */

/* A name with a line in it would say two. */
static void add_name(struct buf *out, struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        buf_add_char(out, name.at[i] == '\n' ? '?' : name.at[i]);
}

static void add_maker(const struct admit_request *request, struct buf *out)
{
    struct json_iter groups = json_iter(request->review.groups);
    const struct json *group;

    add_name(out, request->review.user);
    while (json_next_item(&groups, &group)) {
        buf_add_char(out, '\n');
        add_name(out, json_str(group));
    }
    if (out->overflowed) { /* the policy refuses it: half of the groups would be another person */
        buf_clear(out);
        add_name(out, request->review.user);
    }
}

/* A controller makes it for whoever made its owner, and its word names this owner: labels and owner
 * references are the tenants' to change, and a controller adopts what fits. What a template says of
 * that is forged. The policy that the chart brings lets nobody write another name than his own, nor
 * change it. */
static void sign(const struct admit_request *request, struct json_build *build,
                 struct admit_mutation *mutation)
{
    const struct json *object = request->review.object;
    auto_buf struct buf creator = { .max = MAX_CREATOR };
    struct str owner = admit_owner(object).uid;

    if (request->review.user.len == 0)
        return;
    if (owner.len > 0 &&
        bridge_config_is_like_any(request->config->controller_accounts, request->review.user))
        buf_printf(&creator, BRIDGE_CREATOR_IS_OWNERS STR_FMT, STR_ARG(owner));
    else
        add_maker(request, &creator);
    if (!str_eq(admit_annotation(object, BRIDGE_CREATOR_ANNOTATION), buf_str(&creator)))
        annotate(build, mutation, BRIDGE_CREATOR_ANNOTATION, buf_str(&creator));
}

void admit_mutate_workload(const struct admit_request *request, struct json_build *build,
                           struct admit_mutation *ret_mutation)
{
    *ret_mutation =
        (struct admit_mutation){ .ops = json_new_array(build),
                                 .has_annotations = json_is_object(
                                     json_at(request->review.object, "metadata", "annotations")) };
    if (json_is_object(json_get(request->review.object, "metadata")))
        sign(request, build, ret_mutation);
}

/* ---- scheduler ---- */

/* Whether the pod will be ours. */
static bool take_scheduler(const struct admit *admit, struct json_build *build,
                           struct json_mut *ops, const struct json *pod)
{
    struct str scheduler = json_str(json_at(pod, "spec", "schedulerName"));
    struct str ours = str_of(admit->config->scheduler_name);

    if (str_eq(scheduler, ours))
        return true;
    if (scheduler.len > 0 && !str_is(scheduler, DEFAULT_SCHEDULER))
        return false;
    patch_op(build, ops, "add", STR("/spec/schedulerName"), json_new_str(build, ours));
    return true;
}

/* ---- toleration, finalizer ---- */

static bool is_our_toleration(const struct admit *admit, const struct json *toleration)
{
    struct str how = json_str_or(json_get(toleration, "operator"), STR("Equal"));

    return str_is(json_str(json_get(toleration, "key")), BRIDGE_TAINT) &&
           (how.len == 0 || str_is(how, "Equal")) &&
           str_is(json_str(json_get(toleration, "value")), admit->config->scheduler_name) &&
           str_is(json_str(json_get(toleration, "effect")), "NoExecute");
}

static void tolerate(const struct admit *admit, struct json_build *build, struct json_mut *ops,
                     const struct json *pod)
{
    const struct json *tolerations = json_at(pod, "spec", "tolerations");
    struct json_iter iter = json_iter(tolerations);
    const struct json *toleration;
    struct json_mut *ours;

    while (json_next_item(&iter, &toleration))
        if (is_our_toleration(admit, toleration))
            return;
    ours = json_new_object(build);
    json_put_text(build, ours, "key", BRIDGE_TAINT);
    json_put_text(build, ours, "operator", "Equal");
    json_put_text(build, ours, "value", admit->config->scheduler_name);
    json_put_text(build, ours, "effect", "NoExecute");
    append(build, ops, tolerations, "/spec/tolerations", ours);
}

static void finalize(struct json_build *build, struct json_mut *ops, const struct json *pod)
{
    const struct json *finalizers = json_at(pod, "metadata", "finalizers");
    struct json_iter iter = json_iter(finalizers);
    const struct json *finalizer;

    while (json_next_item(&iter, &finalizer))
        if (str_is(json_str(finalizer), BRIDGE_FINALIZER))
            return;
    append(build, ops, finalizers, "/metadata/finalizers",
           json_new_str(build, STR(BRIDGE_FINALIZER)));
}

/* ---- annotations of owners ---- */

/* NULL when it is not there, or is another of that name. */
static const struct kube_object *find_owner(const struct kube_cache *cache, struct str ns,
                                            struct str name, struct str uid,
                                            struct admit_mutation *mutation)
{
    auto_buf struct buf names = { .max = 2 * KUBE_MAX_NAME + 2 };
    const struct kube_object *found;
    size_t start;

    if (!kube_cache_is_synced(cache)) {
        mutation->not_known = kube_cache_kind(cache)->resource->plural;
        mutation->is_early = true;
        return NULL;
    }
    buf_add_str(&names, ns);
    buf_add_char(&names, '\0');
    start = names.len;
    buf_add_str(&names, name);
    if (names.overflowed)
        return NULL;
    found = kube_cache_get(cache, names.data, names.data + start);
    if (found && str_is(uid, found->uid))
        return found;
    mutation->is_early = true;
    return NULL;
}

/* A Job's own word counts before that of the JobSet above it. */
static struct str owners_gang(const struct admit *admit, const struct admit_request *request,
                              struct admit_mutation *mutation, bool *ret_found)
{
    struct admit_owner owner = admit_owner(request->review.object);
    struct str ns = request->review.ns, value = STR("");
    const struct kube_object *job, *jobset;

    *ret_found = false;
    if (!admit->world || !str_is(owner.kind, "Job") || !str_starts(owner.version, STR("batch/")))
        return value;
    job = find_owner(admit->world->jobs, ns, owner.name, owner.uid, mutation);
    if (!job)
        return value;
    value = kube_pairs_get(&job->annotations, GANG_ANNOTATION, ret_found);
    if (*ret_found || !kube_owner_is(&job->owner, &kube_jobset_kind))
        return value;
    jobset = find_owner(admit->world->optional[OPTIONAL_JOBSETS].cache, ns, str_of(job->owner.name),
                        str_of(job->owner.uid), mutation);
    return jobset ? kube_pairs_get(&jobset->annotations, GANG_ANNOTATION, ret_found) : value;
}

/* ---- what the bridge will go by ---- */

/* As much of the pod as says who owns it. It may have no name yet. */
static const struct kube_object *decode_pod(const struct admit_request *request)
{
    auto_json_build struct json_build *build = json_build_new();
    const struct json *pod = request->review.object, *metadata = json_get(pod, "metadata");
    auto_buf struct buf ns = { .max = KUBE_MAX_NAME };
    const struct kube_object *object = NULL;
    struct err err = { .class = 0 };

    buf_add_str(&ns, request->review.ns);

    struct json_mut *small = json_format(
        build,
        "{'metadata':{'name':'-','namespace':%s,'labels':%j,'annotations':%j,'ownerReferences':%j},"
        "'spec':{'schedulingGroup':%j}}",
        buf_text(&ns), json_get(metadata, "labels"), json_get(metadata, "annotations"),
        json_get(metadata, "ownerReferences"), json_at(pod, "spec", "schedulingGroup"));
    auto_json_doc struct json_doc *doc = json_freeze(small);

    return kube_object_predicted(&kube_pod_kind, json_root(doc), &object, &err) < 0 ? NULL : object;
}

/* The value that counts for the job of this pod, in the arena. */
static struct str annotation_that_counts(const struct admit *admit,
                                         const struct admit_request *request, const char *key,
                                         struct arena *arena, struct admit_mutation *mutation,
                                         bool *ret_found)
{
    const struct kube_object *pod = admit->world ? decode_pod(request) : NULL;
    struct pod_owner owner;
    struct str value;

    if (!pod) {
        *ret_found = admit_has_annotation(request->review.object, key);
        return admit_annotation(request->review.object, key);
    }
    pod_owner_find(admit->world, kube_pod_of(pod), arena, &owner);
    mutation->is_early |= owner.wanting != NULL;
    value = pod_owner_says(&owner, key, ret_found);
    value.at = arena_strndup(arena, value.at, value.len);
    kube_object_unref(pod);
    return value;
}

/* ---- cores ---- */

/* One that names a request of the claim has only that, which may not exist. */
static bool names_cores(const struct json *claims)
{
    struct json_iter iter = json_iter(claims);
    const struct json *claim;

    while (json_next_item(&iter, &claim))
        if (str_is(json_str(json_get(claim, "name")), DEVICE_CPU_CLAIM) &&
            json_str(json_get(claim, "request")).len == 0)
            return true;
    return false;
}

/* All containers share the cores of the pod. */
static void claim_cores_for(struct json_build *build, struct json_mut *ops, const struct json *pod,
                            const char *list)
{
    struct json_iter iter = json_iter(json_at(pod, "spec", list));
    const struct json *container;

    for (unsigned i = 0; json_next_item(&iter, &container); i++) {
        const struct json *resources = json_get(container, "resources");
        const struct json *claims = json_get(resources, "claims");
        struct json_mut *claim = json_format(build, "{'name':%s}", DEVICE_CPU_CLAIM);
        auto_buf struct buf pointer = { .max = MAX_POINTER };

        buf_printf(&pointer, "/spec/%s/%u/resources", list, i);
        if (names_cores(claims))
            continue;
        if (json_is_object(resources)) {
            buf_add_text(&pointer, "/claims");
            append(build, ops, claims, buf_text(&pointer), claim);
        } else if (json_is_object(container)) {
            patch_op(build, ops, "add", buf_str(&pointer),
                     json_format(build, "{'claims':[%m]}", claim));
        }
    }
}

/* The bridge makes the claim before it binds the pod. Its name is that of no other claim: a pod
 * has no UID yet, and a pod that was copied gets another name. */
static void pin(const struct admit *admit, const struct admit_request *request,
                struct json_build *build, struct admit_mutation *mutation)
{
    const struct json *pod = request->review.object, *claim;
    const struct json *claims = json_at(pod, "spec", "resourceClaims");
    struct json_iter iter = json_iter(claims);
    auto_buf struct buf name = { .max = KUBE_MAX_NAME }, pointer = { .max = MAX_POINTER };
    struct json_mut *ops = mutation->ops;
    auto_arena struct arena arena;
    struct str exclusive;
    bool says;

    arena_init(&arena, MAX_ARENA);
    if (!request->config->pins_cpus ||
        admit_names_resource(pod, DEVICE_CLASS_PREFIX DEVICE_CORES_DRIVER))
        return;
    exclusive = annotation_that_counts(admit, request, EXCLUSIVE, &arena, mutation, &says);
    if (!bridge_config_pins(request->config, says, exclusive))
        return;
    buf_printf(&name, DEVICE_CPU_CLAIM "-" STR_FMT, STR_ARG(request->review.uid));
    for (unsigned i = 0; json_next_item(&iter, &claim); i++)
        if (pointer.len == 0 && str_is(json_str(json_get(claim, "name")), DEVICE_CPU_CLAIM))
            buf_printf(&pointer, "/spec/resourceClaims/%u/resourceClaimName", i);
    if (pointer.len > 0)
        patch_op(build, ops, "add", buf_str(&pointer), json_new_str(build, buf_str(&name)));
    else
        append(build, ops, claims, "/spec/resourceClaims",
               json_format(build, "{'name':%s,'resourceClaimName':%s}", DEVICE_CPU_CLAIM,
                           buf_text(&name)));
    claim_cores_for(build, ops, pod, "initContainers");
    claim_cores_for(build, ops, pod, "containers");
}

void admit_mutate(const struct admit *admit, const struct admit_request *request,
                  struct json_build *build, struct admit_mutation *ret_mutation)
{
    struct json_mut *ops = json_new_array(build);
    bool found;
    struct str value;

    *ret_mutation =
        (struct admit_mutation){ .ops = ops,
                                 .has_annotations = json_is_object(
                                     json_at(request->review.object, "metadata", "annotations")) };
    /* Whoever names a node goes past every scheduler, and so past Slurm. A pod of a DaemonSet
     * belongs to its node. */
    if (json_str(json_at(request->review.object, "spec", "nodeName")).len > 0 &&
        !admit_is_of_daemonset(request))
        patch_op(build, ops, "remove", STR("/spec/nodeName"), NULL);
    if (!take_scheduler(admit, build, ops, request->review.object))
        return;
    tolerate(admit, build, ops, request->review.object);
    finalize(build, ops, request->review.object);
    sign(request, build, ret_mutation);
    pin(admit, request, build, ret_mutation);
    if (admit_has_annotation(request->review.object, GANG_ANNOTATION))
        return;
    value = owners_gang(admit, request, ret_mutation, &found);
    if (found)
        annotate(build, ret_mutation, GANG_ANNOTATION, value);
}
