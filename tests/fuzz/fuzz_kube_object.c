/* fuzz_kube_object.c - any JSON is refused or becomes an object: pairs in order, texts in place,
 * the same twice; and any JSON object can be predicted on it as a patch. */
#include "kube/kinds.h"

#include <stdlib.h>

enum { MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const drop[] = { "status.images", "spec", NULL };
static const struct kube_kind tree_kind = { .resource = &kube_configmaps };
static const struct kube_kind lean_kind = { .resource = &kube_configmaps, .drop = drop };
static const struct kube_kind *const kinds[] = { &kube_pod_kind, &kube_node_kind, &tree_kind,
                                                 &lean_kind };

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_pairs(const struct kube_pairs *pairs)
{
    for (unsigned i = 0; i < pairs->count; i++) {
        must(pairs->at[i].key.at[pairs->at[i].key.len] == '\0');
        must(pairs->at[i].value.at[pairs->at[i].value.len] == '\0');
        must(i == 0 || str_cmp(pairs->at[i - 1].key, pairs->at[i].key) < 0);
    }
}

static void check_amounts(const struct kube_amounts *amounts)
{
    for (unsigned i = 1; i < amounts->count; i++)
        must(strcmp(amounts->at[i - 1].name, amounts->at[i].name) <= 0);
}

static void check_pod(const struct kube_pod *pod)
{
    must(pod->phase && pod->node_name && pod->hostname && pod->scheduler_name);
    check_amounts(&pod->requests.extended);
    check_pairs(&pod->node_selector);
    must(pod->toleration_count <= KUBE_MAX_ITEMS);
    for (unsigned i = 0; i < pod->toleration_count; i++)
        must(strlen(pod->tolerations[i].key) + strlen(pod->tolerations[i].value) < MAX);
    must(!kube_pod_is_terminated(pod) || pod->containers.running == 0);
    (void)kube_pod_is_finished(pod);
}

static void check(const struct kube_object *object)
{
    must(object->name[0] && strlen(object->name) <= KUBE_MAX_NAME);
    must(object->ns && object->uid && object->version && object->owner.kind);
    check_pairs(&object->labels);
    check_pairs(&object->annotations);
    for (unsigned i = 0; i < object->finalizer_count; i++)
        must(object->finalizers[i].at[object->finalizers[i].len] == '\0');
    if (object->kind == &kube_pod_kind)
        check_pod(kube_pod_of(object));
    if (object->kind == &kube_node_kind) {
        check_amounts(&kube_node_of(object)->extended);
        must(kube_node_of(object)->internal_ip);
    }
}

static void check_patched(const struct kube_object *object, const struct json *patch)
{
    const struct kube_object *next = NULL;

    if (kube_object_patched(object, patch, &next, NULL) < 0)
        return;
    check(next);
    /* What it leans on stays alive with it. */
    if (object->kind->size > 0)
        must(strcmp(next->uid, object->uid) == 0 && strcmp(next->version, object->version) == 0);
    kube_object_unref(next);
}

static void check_kind(const struct kube_kind *kind, const struct json *root)
{
    const struct kube_object *object = NULL, *again = NULL;
    struct err err = { 0 };

    if (kube_object_decode(kind, root, &object, &err) < 0) {
        must(err.class == ERR_INVALID || err.class == ERR_TOO_BIG);
        if (kube_object_predicted(kind, root, &object, NULL) < 0)
            return;
    } else {
        must(object->uid[0] && object->version[0]);
    }
    check(object);
    must(kube_object_predicted(kind, root, &again, NULL) == 0);
    must(again->size == object->size);
    check_patched(object, root);
    check_patched(again, json_get(root, "spec"));
    kube_object_unref(object);
    kube_object_unref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_json_doc struct json_doc *doc = NULL;

    if (json_parse((struct str){ (const char *)data, size }, MAX, &doc, NULL) < 0)
        return 0;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        check_kind(kinds[i], json_root(doc));
    return 0;
}
