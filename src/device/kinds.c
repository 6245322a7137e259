/* kinds.c - device classes, slices and claims by tables.
 *
 * Holds: a part that is absent is left as it is, so that a patch can be laid over an object. */
#include "device/kinds.h"

#include "device/names.h"
#include "kube/kinds.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

enum { MAX_DEVICES = 4096, MAX_CONFIG = 1 << 20, MAX_WORDS = 512, MAX_TAINT = 1024 };

static const struct kube_resource classes = { "resource.k8s.io", "v1", "deviceclasses",
                                              "DeviceClass", false };
static const struct kube_resource slices = { "resource.k8s.io", "v1", "resourceslices",
                                             "ResourceSlice", false };
static const struct kube_resource taint_rules = { "resource.k8s.io", "v1beta2", "devicetaintrules",
                                                  "DeviceTaintRule", false };
const struct kube_resource device_resource_claims = { "resource.k8s.io", "v1", "resourceclaims",
                                                      "ResourceClaim", true };

#define IN_CLAIM(member) offsetof(struct kube_resource_claim, member)
#define IN_SLICE(member) offsetof(struct kube_slice, member)
#define IN_RULE(member)  offsetof(struct kube_taint_rule, member)

static const struct kube_field class_fields[] = {
    { { "spec", "extendedResourceName" },
      KUBE_STR,
      offsetof(struct kube_device_class, extended_resource) },
    { { NULL }, KUBE_STR, 0 },
};

static const struct kube_field slice_fields[] = {
    { { "spec", "driver" }, KUBE_STR, IN_SLICE(driver) },
    { { "spec", "nodeName" }, KUBE_STR, IN_SLICE(node) },
    { { "spec", "pool", "name" }, KUBE_STR, IN_SLICE(pool) },
    { { "spec", "pool", "generation" }, KUBE_I64, IN_SLICE(generation) },
    { { "spec", "pool", "resourceSliceCount" }, KUBE_I64, IN_SLICE(slices) },
    { { NULL }, KUBE_STR, 0 },
};

static const struct kube_field rule_fields[] = {
    { { "spec", "deviceSelector", "driver" }, KUBE_STR, IN_RULE(driver) },
    { { "spec", "deviceSelector", "pool" }, KUBE_STR, IN_RULE(pool) },
    { { "spec", "deviceSelector", "device" }, KUBE_STR, IN_RULE(device) },
    { { NULL }, KUBE_STR, 0 },
};

static const struct kube_field claim_fields[] = {
    { { "status", "allocation", "allocationTimestamp" }, KUBE_STR, IN_CLAIM(allocated) },
    { { NULL }, KUBE_STR, 0 },
};

static const char *text_of(struct kube_decoder *decoder, const struct json *object, const char *key)
{
    return kube_decoder_str(decoder, json_str(json_get(object, key)));
}

static int check_length(const struct json *list, struct err *err)
{
    if (json_len(list) > MAX_DEVICES)
        return err_set(err, ERR_TOO_BIG, "%zu items, more than %d", json_len(list), MAX_DEVICES);
    return 0;
}

/* ---- classes ---- */

static int decode_class(struct kube_decoder *decoder, const struct json *root, void *object,
                        struct err *err)
{
    const struct json *config = json_at(root, "spec", "config");
    struct kube_device_class *class = object;

    if (!class->config)
        class->config = "";
    return config ? kube_decoder_rule(decoder, config, "the config of a class", &class->config, err)
                  : 0;
}

/* ---- slices ---- */

/* Of the four types an attribute has one. */
static const char *value_text(struct kube_decoder *decoder, const struct json *value)
{
    const struct json *number = json_get(value, "int"), *truth = json_get(value, "bool");
    const struct json *version = json_get(value, "version");
    char text[24];

    if (number) {
        (void)snprintf(text, sizeof(text), "%" PRId64, json_i64_or(number, 0));
        return kube_decoder_str(decoder, str_of(text));
    }
    if (truth)
        return json_bool_or(truth, false) ? "true" : "false";
    return kube_decoder_str(decoder, json_str(version ? version : json_get(value, "string")));
}

static struct kube_pairs decode_attributes(struct kube_decoder *decoder, struct str driver,
                                           const struct json *attributes)
{
    struct json_iter iter = json_iter(attributes);
    const struct json *value;
    struct kube_pair *pairs;
    struct str name, domain, rest;
    unsigned count = 0;

    if (json_len(attributes) == 0)
        return (struct kube_pairs){ 0 };
    pairs = kube_decoder_alloc(decoder, json_len(attributes) * sizeof(*pairs));
    while (json_next_member(&iter, &name, &value)) {
        bool is_own = str_cut(name, '/', &domain, &rest) && str_eq(domain, driver);

        pairs[count++] =
            (struct kube_pair){ str_of(kube_decoder_str(decoder, is_own ? rest : name)),
                                str_of(value_text(decoder, value)) };
    }
    return (struct kube_pairs){ pairs, count };
}

/* "": one that keeps nobody away. */
static const char *taint_text(struct kube_decoder *decoder, const struct json *taint)
{
    struct str effect = json_str(json_get(taint, "effect"));
    struct str value = json_str(json_get(taint, "value"));
    auto_buf struct buf text = { .max = MAX_TAINT };

    if (!str_is(effect, "NoSchedule") && !str_is(effect, "NoExecute"))
        return "";
    buf_printf(&text, STR_FMT "%s" STR_FMT ":" STR_FMT, STR_ARG(json_str(json_get(taint, "key"))),
               value.len > 0 ? "=" : "", STR_ARG(value), STR_ARG(effect));
    return kube_decoder_str(decoder, buf_str(&text));
}

static const char *first_taint(struct kube_decoder *decoder, const struct json *taints)
{
    struct json_iter iter = json_iter(taints);
    const struct json *taint;
    const char *text = "";

    while (!text[0] && json_next_item(&iter, &taint))
        text = taint_text(decoder, taint);
    return text;
}

static int decode_slice(struct kube_decoder *decoder, const struct json *root, void *object,
                        struct err *err)
{
    const struct json *list = json_at(root, "spec", "devices"), *item;
    struct str driver = json_str(json_at(root, "spec", "driver"));
    struct json_iter iter = json_iter(list);
    struct kube_slice *slice = object;
    struct slice_device *devices;
    unsigned count = 0;

    if (!list)
        return 0;
    if (check_length(list, err) < 0)
        return -ERR_TOO_BIG;
    devices = kube_decoder_alloc(decoder, (json_len(list) + 1) * sizeof(*devices));
    while (json_next_item(&iter, &item))
        devices[count++] = (struct slice_device){
            .name = text_of(decoder, item, "name"),
            .attributes = decode_attributes(decoder, driver, json_get(item, "attributes")),
            .is_shared = json_bool_or(json_get(item, "allowMultipleAllocations"), false),
            .is_part = json_len(json_get(item, "consumesCounters")) > 0,
            .has_conditions = json_len(json_get(item, "bindingConditions")) > 0,
            .taint = first_taint(decoder, json_get(item, "taints")),
        };
    slice->devices = devices;
    slice->device_count = count;
    return 0;
}

static int decode_rule(struct kube_decoder *decoder, const struct json *root, void *object,
                       struct err *err)
{
    struct kube_taint_rule *rule = object;

    (void)err;
    rule->selects = json_is_object(json_at(root, "spec", "deviceSelector"));
    rule->taint = taint_text(decoder, json_at(root, "spec", "taint"));
    return 0;
}

/* ---- what a claim wants ---- */

/* Slurm counts devices that are alike; nobody but Kubernetes' own scheduler reads CEL. */
static const char *why_refused(const struct json *request)
{
    const struct json *exactly = json_get(request, "exactly");
    struct str mode = json_str(json_get(exactly, "allocationMode"));

    if (json_exists(json_get(request, "firstAvailable")))
        return "it has alternatives (firstAvailable)";
    if (json_len(json_get(exactly, "selectors")) > 0)
        return "it has selectors: only the class says which devices";
    if (mode.len > 0 && !str_is(mode, "ExactCount"))
        return "its allocationMode is not ExactCount";
    if (json_bool_or(json_get(exactly, "adminAccess"), false))
        return "it wants adminAccess";
    if (json_len(json_get(exactly, "capacity")) > 0)
        return "it asks for a part of a device (capacity)";
    return "";
}

static int decode_requests(struct kube_decoder *decoder, const struct json *spec,
                           struct kube_resource_claim *claim, struct err *err)
{
    const struct json *list = json_get(spec, "requests"), *item;
    const struct json *config = json_get(spec, "config");
    struct json_iter iter = json_iter(list);
    struct claim_request *requests;

    claim->refused =
        json_len(json_get(spec, "constraints")) > 0 ? "it has constraints between its devices" : "";
    claim->request_count = 0;
    if (check_length(list, err) < 0)
        return -ERR_TOO_BIG;
    requests = kube_decoder_alloc(decoder, (json_len(list) + 1) * sizeof(*requests));
    claim->requests = requests;
    while (json_next_item(&iter, &item)) {
        const struct json *exactly = json_get(item, "exactly");

        requests[claim->request_count++] = (struct claim_request){
            .name = text_of(decoder, item, "name"),
            .class = text_of(decoder, exactly, "deviceClassName"),
            .count = json_i64_or(json_get(exactly, "count"), 1),
            .refused = why_refused(item),
        };
    }
    return kube_decoder_rule(decoder, json_len(config) > 0 ? config : NULL, "the config of a claim",
                             &claim->config, err);
}

/* ---- what it was given ---- */

static const char *decode_cores(struct kube_decoder *decoder, const struct json *config)
{
    struct json_iter iter = json_iter(config);
    const struct json *item;

    while (json_next_item(&iter, &item))
        if (str_is(json_str(json_at(item, "opaque", "driver")), DEVICE_CORES_DRIVER) &&
            str_is(json_str(json_get(item, "source")), "FromClass"))
            return kube_decoder_str(decoder,
                                    json_str(json_at(item, "opaque", "parameters", "cores")));
    return "";
}

static int decode_allocation(struct kube_decoder *decoder, const struct json *allocation,
                             struct kube_resource_claim *claim, struct err *err)
{
    const struct json *list = json_at(allocation, "devices", "results"), *item;
    /* {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "values": [node]}]}]} */
    const struct json *term =
        json_item(json_at(allocation, "nodeSelector", "nodeSelectorTerms"), 0);
    const struct json *field = json_item(json_get(term, "matchFields"), 0);
    struct json_iter iter = json_iter(list);
    struct claim_result *results;

    claim->is_allocated = json_is_object(allocation);
    claim->result_count = 0;
    claim->node = claim->cores = "";
    if (!claim->is_allocated) {
        claim->allocated = "";
        return 0;
    }
    if (check_length(list, err) < 0)
        return -ERR_TOO_BIG;
    claim->node = kube_decoder_str(decoder, json_str(json_item(json_get(field, "values"), 0)));
    claim->cores = decode_cores(decoder, json_at(allocation, "devices", "config"));
    results = kube_decoder_alloc(decoder, (json_len(list) + 1) * sizeof(*results));
    claim->results = results;
    while (json_next_item(&iter, &item))
        if (!json_bool_or(json_get(item, "adminAccess"), false)) /* it keeps nobody off a device */
            results[claim->result_count++] =
                (struct claim_result){ .request = text_of(decoder, item, "request"),
                                       .driver = text_of(decoder, item, "driver"),
                                       .pool = text_of(decoder, item, "pool"),
                                       .device = text_of(decoder, item, "device") };
    return 0;
}

static int decode_users(struct kube_decoder *decoder, const struct json *list,
                        struct kube_resource_claim *claim, struct err *err)
{
    struct json_iter iter = json_iter(list);
    struct claim_user *users;
    const struct json *item;

    claim->user_count = 0;
    if (check_length(list, err) < 0)
        return -ERR_TOO_BIG;
    users = kube_decoder_alloc(decoder, (json_len(list) + 1) * sizeof(*users));
    claim->users = users;
    while (json_next_item(&iter, &item))
        users[claim->user_count++] = (struct claim_user){ .name = text_of(decoder, item, "name"),
                                                          .uid = text_of(decoder, item, "uid") };
    return 0;
}

static int decode_claim(struct kube_decoder *decoder, const struct json *root, void *object,
                        struct err *err)
{
    const struct json *spec = json_at(root, "spec", "devices");
    const struct json *allocation = json_at(root, "status", "allocation");
    const struct json *users = json_at(root, "status", "reservedFor");
    struct kube_resource_claim *claim = object;
    int rc = 0;

    if (!claim->node) /* not over another object */
        claim->node = claim->cores = claim->config = claim->refused = "";
    if (spec)
        rc = decode_requests(decoder, spec, claim, err);
    if (rc == 0 && allocation)
        rc = decode_allocation(decoder, allocation, claim, err);
    return rc == 0 && users ? decode_users(decoder, users, claim, err) : rc;
}

const struct kube_kind device_class_kind = {
    .resource = &classes,
    .size = sizeof(struct kube_device_class),
    .fields = class_fields,
    .decode_more = decode_class,
};

const struct kube_kind device_slice_kind = {
    .resource = &slices,
    .size = sizeof(struct kube_slice),
    .fields = slice_fields,
    .decode_more = decode_slice,
};

const struct kube_kind device_taint_rule_kind = {
    .resource = &taint_rules,
    .size = sizeof(struct kube_taint_rule),
    .fields = rule_fields,
    .decode_more = decode_rule,
};

const struct kube_kind device_claim_kind = {
    .resource = &device_resource_claims,
    .size = sizeof(struct kube_resource_claim),
    .fields = claim_fields,
    .decode_more = decode_claim,
};
