/* claim_json.c - claims for devices as JSON, as kube-scheduler writes them. */
#include "device/claim_json.h"

#include "codec/digest.h"
#include "codec/json_format.h"
#include "codec/timestamp.h"
#include "device/names.h"
#include "kube/owners.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    MAX_CONFIG = 1 << 20,
    UUID_TEXT = 37,
    MAX_NUMBER = 24,
};

/* ---- the claim ---- */

struct json_mut *claim_json(struct json_build *build, const struct pod_claim *claim,
                            const struct kube_pod *pod)
{
    struct json_mut *owner = kube_owner_reference(build, &pod->object);
    struct json_mut *requests = json_new_array(build), *object;

    (void)json_remove(owner, STR("blockOwnerDeletion")); /* as kube-scheduler has it */
    for (unsigned i = 0; i < claim->request_count; i++)
        json_push(requests, json_format(build,
                                        "{'name':%s,'exactly':{'deviceClassName':%s,"
                                        "'allocationMode':'ExactCount','count':%l}}",
                                        claim->requests[i].name, claim->requests[i].class,
                                        claim->requests[i].count));
    object = json_format(build,
                         "{'metadata':{'name':%s,'finalizers':['" DEVICE_CLAIM_FINALIZER "'],"
                         "'ownerReferences':[%m]},'spec':{'devices':{'requests':%m}}}",
                         claim->name, owner, requests);
    if (claim->kind == POD_CLAIM_EXTENDED)
        json_put_text(build, json_object_at(build, object, "metadata", "annotations"),
                      DEVICE_EXTENDED_CLAIM, "true");
    return object;
}

/* ---- its allocation ---- */

/* Some UUID that is always the same for the same claim and device. */
static void write_uuid(const char *claim, const char *device, char ret_text[UUID_TEXT])
{
    auto_buf struct buf seed = { .max = 2 * KUBE_MAX_NAME + 2 };
    char hex[DIGEST_HEX];

    buf_printf(&seed, "%s/%s", claim, device);
    digest_sha256(buf_str(&seed), hex);
    (void)snprintf(ret_text, UUID_TEXT, "%.8s-%.4s-4%.3s-8%.3s-%.12s", hex, hex + 8, hex + 12,
                   hex + 15, hex + 18);
}

static struct json_mut *result_json(struct json_build *build, const char *claim,
                                    const struct chosen_device *chosen)
{
    struct json_mut *result =
        json_format(build, "{'request':%s,'driver':%s,'pool':%s,'device':%s}", chosen->request,
                    chosen->driver, chosen->pool, chosen->device);
    char uuid[UUID_TEXT], cores[MAX_NUMBER];

    if (chosen->cores == 0)
        return result;
    write_uuid(claim, chosen->device, uuid);
    (void)snprintf(cores, sizeof(cores), "%" PRId64, chosen->cores);
    json_put_text(build, result, "shareID", uuid);
    json_put_text(build, json_put_object(build, result, "consumedCapacity"), "cores", cores);
    return result;
}

/* config: entries as a class or a claim has them. */
static void push_config(struct json_build *build, struct json_mut *list, const char *config,
                        const char *source, const char *request)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct json_iter iter;
    const struct json *entry;

    if (!config[0] || json_parse(str_of(config), MAX_CONFIG, &doc, NULL) < 0)
        return;
    iter = json_iter(json_root(doc));
    while (json_next_item(&iter, &entry)) {
        struct json_mut *copy = json_copy(build, entry);

        json_put_text(build, copy, "source", source);
        if (request)
            json_push_str(build, json_put_array(build, copy, "requests"), str_of(request));
        json_push(list, copy);
    }
}

static struct json_mut *config_json(struct json_build *build, const struct claim_status *status)
{
    const struct kube_cache *classes = status->view->classes;
    const struct pod_claim *claim = status->claim;
    const struct choice *choice = status->choice;
    struct json_mut *list = json_new_array(build);

    for (unsigned i = 0; i < claim->request_count; i++) {
        const struct kube_object *class =
            classes ? kube_cache_get(classes, "", claim->requests[i].class) : NULL;

        if (class)
            push_config(build, list, kube_device_class_of(class)->config, "FromClass",
                        claim->requests[i].name);
    }
    if (claim->kind == POD_CLAIM_USER)
        push_config(build, list, claim->found->config, "FromClaim", NULL);
    if (choice->cores[0])
        json_push(list,
                  json_format(build,
                              "{'source':'FromClass','requests':[],'opaque':{'driver':%s,"
                              "'parameters':{'apiVersion':%s,'kind':%s,'cores':%s,'sockets':%l,"
                              "'coresPerSocket':%l,'threadsPerCore':%l,'job':%s}}}",
                              DEVICE_CORES_DRIVER, DEVICE_CORES_VERSION, DEVICE_CORES_KIND,
                              choice->cores, choice->sockets, choice->cores_per_socket,
                              choice->threads, status->job));
    return list;
}

struct json_mut *claim_status_json(struct json_build *build, const struct claim_status *status)
{
    const struct choice *choice = status->choice;
    auto_buf struct buf now = { .max = 64 };
    struct json_mut *results = json_new_array(build);
    struct json_mut *config = config_json(build, status);
    struct json_mut *devices = json_new_object(build);

    (void)timestamp_print(status->wall_us, &now, NULL);
    for (unsigned i = 0; i < choice->count; i++)
        json_push(results, result_json(build, status->claim->name, &choice->devices[i]));
    json_put(build, devices, "results", results);
    if (json_mut_len(config) > 0)
        json_put(build, devices, "config", config);
    return json_format(build,
                       "{'allocation':{'allocationTimestamp':%s,'devices':%m,'nodeSelector':"
                       "{'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name',"
                       "'operator':'In','values':[%s]}]}]}},"
                       "'reservedFor':[{'resource':'pods','name':%s,'uid':%s}]}",
                       buf_text(&now), devices, status->node->object.name, status->pod->object.name,
                       status->pod->object.uid);
}

/* ---- what a pod says of its claim ---- */

const char *pod_claims_extended(const struct pod_claims *claims)
{
    for (unsigned i = 0; i < claims->count; i++)
        if (claims->at[i].kind == POD_CLAIM_EXTENDED)
            return claims->at[i].name;
    return "";
}

struct json_mut *extended_claim_json(struct json_build *build, const struct pod_claims *claims)
{
    const char *claim = pod_claims_extended(claims);
    struct json_mut *mappings = json_new_array(build);

    if (!claim[0])
        return json_new_null(build);
    for (unsigned i = 0; i < claims->mapping_count; i++) {
        const struct device_mapping *mapping = &claims->mappings[i];

        json_push(mappings,
                  json_format(build, "{'containerName':%s,'resourceName':%s,'requestName':%s}",
                              mapping->container, mapping->resource, mapping->request));
    }
    return json_format(build, "{'resourceClaimName':%s,'requestMappings':%m}", claim, mappings);
}
