/* worker_claims.c - the claims of a worker, and who owns them. */
#include "operator/worker_claims.h"

#include "kube/owners.h"
#include "operator/build.h"
#include "operator/names.h"

static const struct json *templates_of(const struct kube_object *nodeset)
{
    return json_get(operator_spec(nodeset), "volumeClaimTemplates");
}

static struct str template_name(const struct json *claim_template)
{
    return json_str(json_at(claim_template, "metadata", "name"));
}

static bool deletes(const struct kube_object *nodeset, const char *when)
{
    return str_is(
        json_str(json_at(operator_spec(nodeset), "persistentVolumeClaimRetentionPolicy", when)),
        "Delete");
}

/* ---- claims that are to be ---- */

/* The name of a numbered pod is that of the NodeSet and its ordinal. */
const char *worker_claim_name(struct arena *arena, const struct kube_object *nodeset,
                              const struct json *claim_template,
                              const struct worker_identity *identity)
{
    struct str name = template_name(claim_template);

    if (identity->ordinal >= 0)
        return arena_printf(arena, STR_FMT "-%s", STR_ARG(name), identity->name);
    return arena_printf(arena, STR_FMT "-%s-%s", STR_ARG(name), nodeset->name, identity->hostname);
}

struct json_mut *worker_claim(struct json_build *build, struct arena *arena,
                              const struct kube_object *nodeset, const struct json *claim_template,
                              const struct worker_identity *identity)
{
    const struct json *metadata = json_get(claim_template, "metadata");
    struct json_mut *claim =
        json_format(build, "{'metadata':{'name':%s},'spec':%j}",
                    worker_claim_name(arena, nodeset, claim_template, identity),
                    json_get(claim_template, "spec"));
    struct json_mut *labels = json_object_at(build, claim, "metadata", "labels");
    struct json_iter iter = json_iter(json_get(metadata, "labels"));
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value))
        json_put_key(build, labels, key, json_copy(build, value));
    json_put_text(build, labels, LABEL_INSTANCE, nodeset->name);
    json_put_text(build, labels, LABEL_NAME, component_slurmd.app);
    if (json_len(json_get(metadata, "annotations")) > 0)
        json_put_at(build, claim, json_copy(build, json_get(metadata, "annotations")), "metadata",
                    "annotations");
    if (deletes(nodeset, "whenDeleted"))
        json_put_at(build, claim, json_format(build, "[%m]", kube_owner_reference(build, nodeset)),
                    "metadata", "ownerReferences");
    return claim;
}

struct json_mut *worker_claim_volumes(struct json_build *build, struct arena *arena,
                                      const struct kube_object *nodeset,
                                      const struct worker_identity *identity)
{
    struct json_iter iter = json_iter(templates_of(nodeset));
    struct json_mut *volumes = json_new_array(build);
    const struct json *template;

    while (json_next_item(&iter, &template))
        json_push(volumes,
                  json_format(build, "{'name':%j,'persistentVolumeClaim':{'claimName':%s}}",
                              json_at(template, "metadata", "name"),
                              worker_claim_name(arena, nodeset, template, identity)));
    return volumes;
}

/* ---- claims that exist ---- */

/* An owner of this kind and name that is another object: it was deleted, and its claims go too. */
static bool is_predecessor(const struct json *reference, const struct kube_object *object)
{
    return str_is(json_str(json_get(reference, "kind")), object->kind->resource->kind) &&
           str_is(json_str(json_get(reference, "name")), object->name) &&
           !str_is(json_str(json_get(reference, "uid")), object->uid);
}

static bool is_gone(const struct operator_world *world, const struct kube_object *nodeset,
                    const struct json *reference)
{
    const char *name = json_str(json_get(reference, "name")).at;
    const struct kube_object *pod;

    if (!str_is(json_str(json_get(reference, "kind")), kube_pods.kind))
        return is_predecessor(reference, nodeset);
    pod = kube_cache_get(world->pods, nodeset->ns, name);
    return !pod || is_predecessor(reference, pod);
}

/* The garbage collector deletes it, now or in a moment: each of its owners is gone. */
static bool is_collected(const struct operator_world *world, const struct kube_object *nodeset,
                         const struct kube_object *claim)
{
    const struct json *owners = json_at(operator_tree(claim), "metadata", "ownerReferences");
    struct json_iter iter = json_iter(owners);
    const struct json *reference;

    while (json_next_item(&iter, &reference))
        if (!is_gone(world, nodeset, reference))
            return false;
    return json_len(owners) > 0;
}

bool worker_claims_allow(const struct operator_world *world, struct arena *arena,
                         const struct kube_object *nodeset, const struct worker_identity *identity,
                         const char **ret_name)
{
    struct json_iter iter = json_iter(templates_of(nodeset));
    const struct json *template;

    while (json_next_item(&iter, &template)) {
        const char *name = worker_claim_name(arena, nodeset, template, identity);
        const struct kube_object *claim = kube_cache_get(world->claims, nodeset->ns, name);

        if (claim && (claim->deleted_us != 0 || is_collected(world, nodeset, claim))) {
            *ret_name = name;
            return false;
        }
    }
    return true;
}

static bool mounts(const struct kube_pod *pod, const char *claim_name)
{
    for (unsigned i = 0; pod->rare && i < pod->rare->volume_claim_count; i++)
        if (!pod->rare->volume_claim_is_own[i] &&
            strcmp(pod->rare->volume_claims[i], claim_name) == 0)
            return true;
    return false;
}

bool worker_owns_claim(const struct kube_object *nodeset, const struct kube_pod *pod,
                       const char *claim_name)
{
    struct json_iter iter = json_iter(templates_of(nodeset));
    const struct json *template;

    while (mounts(pod, claim_name) && json_next_item(&iter, &template)) {
        struct str claim = str_of(claim_name), name = template_name(template), rest;
        struct str parent = str_of(nodeset->name);

        if (!str_starts(claim, name) || claim.len <= name.len || claim.at[name.len] != '-')
            continue;
        rest = str_sub(claim, name.len + 1, claim.len);
        if (str_starts(rest, parent) && rest.len > parent.len && rest.at[parent.len] == '-')
            return true;
    }
    return false;
}

/* ---- owners ---- */

static bool refers_to(const struct json *reference, const struct kube_object *object)
{
    return object->uid[0] && str_is(json_str(json_get(reference, "uid")), object->uid);
}

enum worker_claim_state worker_claim_owners(struct json_build *build,
                                            const struct kube_object *nodeset,
                                            const struct kube_object *pod, bool is_condemned,
                                            const struct kube_object *claim,
                                            struct json_mut **ret_patch)
{
    const struct kube_object *wanted = is_condemned && deletes(nodeset, "whenScaled") ? pod
                                       : deletes(nodeset, "whenDeleted")              ? nodeset
                                                                                      : NULL;
    struct json_iter iter = json_iter(json_at(operator_tree(claim), "metadata", "ownerReferences"));
    struct json_mut *owners = json_new_array(build);
    bool has_wanted = false, has_unwanted = false, has_other_controller = false;
    const struct json *reference;

    *ret_patch = NULL;
    while (json_next_item(&iter, &reference)) {
        if (is_predecessor(reference, nodeset) || is_predecessor(reference, pod))
            return CLAIM_STALE;
        if (wanted && refers_to(reference, wanted)) {
            has_wanted = true;
        } else if (refers_to(reference, nodeset) || refers_to(reference, pod)) {
            has_unwanted = true;
        } else {
            has_other_controller =
                has_other_controller || json_bool_or(json_get(reference, "controller"), false);
            json_push(owners, json_copy(build, reference));
        }
    }
    if (has_other_controller) {
        if (has_wanted || has_unwanted)
            *ret_patch = json_format(build, "{'metadata':{'ownerReferences':%m}}", owners);
        return CLAIM_CONFLICT;
    }
    if (!has_unwanted && has_wanted == (wanted != NULL))
        return CLAIM_RIGHT;
    if (wanted)
        json_push(owners, kube_owner_reference(build, wanted));
    *ret_patch = json_format(build, "{'metadata':{'ownerReferences':%m}}", owners);
    return CLAIM_REOWN;
}
