/* volume_kinds.c - claims, volumes and storage classes by tables.
 *
 * Holds: a part that is absent is left as it is, so that a patch can be laid over an object. Both
 * sorts of topology rule become a NodeSelector, so that one piece of code reads them. */
#include "kube/volume_kinds.h"

#include <stddef.h>

#define HOSTNAME "kubernetes.io/hostname"
#define TOPOLOGY "a topology rule"

static const struct kube_resource classes = { "storage.k8s.io", "v1", "storageclasses",
                                              "StorageClass", false };

static const struct kube_field claim_fields[] = {
    { { "spec", "volumeName" }, KUBE_STR, offsetof(struct kube_claim, volume) },
    { { "spec", "storageClassName" }, KUBE_STR, offsetof(struct kube_claim, class) },
    { { "spec", "volumeMode" }, KUBE_STR, offsetof(struct kube_claim, mode) },
    { { "spec", "resources", "requests", "storage" },
      KUBE_QUANTITY,
      offsetof(struct kube_claim, size) },
    { { NULL }, KUBE_STR, 0 },
};

static const struct kube_field volume_fields[] = {
    { { "spec", "storageClassName" }, KUBE_STR, offsetof(struct kube_volume, class) },
    { { "spec", "volumeMode" }, KUBE_STR, offsetof(struct kube_volume, mode) },
    { { "spec", "claimRef", "namespace" }, KUBE_STR, offsetof(struct kube_volume, for_ns) },
    { { "spec", "claimRef", "name" }, KUBE_STR, offsetof(struct kube_volume, for_name) },
    { { "spec", "claimRef", "uid" }, KUBE_STR, offsetof(struct kube_volume, for_uid) },
    { { "spec", "capacity", "storage" }, KUBE_QUANTITY, offsetof(struct kube_volume, size) },
    { { "status", "phase" }, KUBE_STR, offsetof(struct kube_volume, phase) },
    { { NULL }, KUBE_STR, 0 },
};

static const struct kube_field class_fields[] = {
    { { "provisioner" }, KUBE_STR, offsetof(struct kube_storage_class, provisioner) },
    { { "volumeBindingMode" }, KUBE_STR, offsetof(struct kube_storage_class, binding_mode) },
    { { NULL }, KUBE_STR, 0 },
};

/* A bit for each mode; one for all that are not known, so that these suit each other. */
static unsigned access_of(const struct json *list)
{
    static const char *const modes[] = { "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany",
                                         "ReadWriteOncePod" };
    const unsigned count = sizeof(modes) / sizeof(modes[0]);
    struct json_iter iter = json_iter(list);
    const struct json *item;
    unsigned access = 0;

    while (json_next_item(&iter, &item)) {
        unsigned i = 0;

        while (i < count && !str_is(json_str(item), modes[i]))
            i++;
        access |= 1u << i;
    }
    return access;
}

static int decode_claim(struct kube_decoder *decoder, const struct json *root, void *object,
                        struct err *err)
{
    const struct json *access = json_at(root, "spec", "accessModes");
    const struct json *selector = json_at(root, "spec", "selector");
    struct kube_claim *claim = object;

    if (access)
        claim->access = access_of(access);
    if (!claim->selector)
        claim->selector = "";
    return selector ? kube_decoder_rule(decoder, selector, TOPOLOGY, &claim->selector, err) : 0;
}

/* Volumes of one node mostly say just that: {key: kubernetes.io/hostname, operator: In, values}. */
static const struct json *only_hosts(const struct json *required)
{
    const struct json *terms = json_get(required, "nodeSelectorTerms");
    const struct json *term = json_item(terms, 0);
    const struct json *expressions = json_get(term, "matchExpressions");
    const struct json *expression = json_item(expressions, 0);
    const struct json *values = json_get(expression, "values");

    if (json_len(terms) != 1 || json_len(expressions) != 1 ||
        json_exists(json_get(term, "matchFields")) ||
        !str_is(json_str(json_get(expression, "key")), HOSTNAME) ||
        !str_is(json_str(json_get(expression, "operator")), "In") ||
        json_len(values) > KUBE_MAX_HOSTS)
        return NULL;
    return values;
}

static void decode_hosts(struct kube_decoder *decoder, const struct json *values,
                         struct kube_volume *volume)
{
    struct json_iter iter = json_iter(values);
    const struct json *item;
    const char **hosts;

    volume->hosts = NULL;
    volume->host_count = 0;
    if (json_len(values) == 0)
        return;
    hosts = kube_decoder_alloc(decoder, json_len(values) * sizeof(*hosts));
    while (json_next_item(&iter, &item))
        hosts[volume->host_count++] = kube_decoder_str(decoder, json_str(item));
    volume->hosts = hosts;
}

static int decode_volume(struct kube_decoder *decoder, const struct json *root, void *object,
                         struct err *err)
{
    const struct json *access = json_at(root, "spec", "accessModes");
    const struct json *affinity = json_at(root, "spec", "nodeAffinity");
    const struct json *required = json_get(affinity, "required");
    struct kube_volume *volume = object;

    if (access)
        volume->access = access_of(access);
    if (!volume->affinity)
        volume->affinity = "";
    if (!affinity)
        return 0;
    decode_hosts(decoder, only_hosts(required), volume);
    return kube_decoder_rule(decoder, required, TOPOLOGY, &volume->affinity, err);
}

/* {"matchLabelExpressions": [{key, values}]} is a term with the operator In. */
static void add_term(struct json_build *build, struct json_mut *terms, const struct json *from)
{
    struct json_iter iter = json_iter(json_get(from, "matchLabelExpressions"));
    struct json_mut *term = json_new_object(build);
    struct json_mut *expressions = json_put_array(build, term, "matchExpressions");
    const struct json *item;

    while (json_next_item(&iter, &item)) {
        struct json_mut *expression = json_new_object(build);

        json_put_str(build, expression, "key", json_str(json_get(item, "key")));
        json_put_text(build, expression, "operator", "In");
        json_put(build, expression, "values", json_copy(build, json_get(item, "values")));
        json_push(expressions, expression);
    }
    json_push(terms, term);
}

static int decode_class(struct kube_decoder *decoder, const struct json *root, void *object,
                        struct err *err)
{
    const struct json *allowed = json_get(root, "allowedTopologies"), *item;
    auto_json_build struct json_build *build = NULL;
    struct kube_storage_class *class = object;
    struct json_iter iter = json_iter(allowed);
    struct json_mut *selector, *terms;
    auto_buf struct buf text;

    buf_init(&text, KUBE_MAX_RULE);
    if (!class->topology)
        class->topology = "";
    if (!allowed)
        return 0;
    build = json_build_new();
    selector = json_new_object(build);
    terms = json_put_array(build, selector, "nodeSelectorTerms");
    while (json_next_item(&iter, &item))
        add_term(build, terms, item);
    if (json_mut_len(terms) > 0)
        json_mut_write(selector, &text);
    return kube_decoder_text(decoder, &text, TOPOLOGY, &class->topology, err);
}

const struct kube_kind kube_claim_kind = {
    .resource = &kube_volume_claims,
    .size = sizeof(struct kube_claim),
    .fields = claim_fields,
    .decode_more = decode_claim,
};

const struct kube_kind kube_volume_kind = {
    .resource = &kube_volumes,
    .size = sizeof(struct kube_volume),
    .fields = volume_fields,
    .decode_more = decode_volume,
};

const struct kube_kind kube_storage_class_kind = {
    .resource = &classes,
    .size = sizeof(struct kube_storage_class),
    .fields = class_fields,
    .decode_more = decode_class,
};
