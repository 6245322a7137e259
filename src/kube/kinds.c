/* kinds.c - pods and nodes by tables: one row per field, one row per part that needs a function.
 *
 * Holds   a part that is absent is left as it is: zero in a new object, unchanged under a patch;
 *         every list from outside has a bound. */
#include "kube/kinds.h"

#include "codec/timestamp.h"
#include "kube/conditions.h"
#include "kube/pod_end.h"
#include "kube/rare.h"
#include "kube/requests.h"

#define IN_POD(member)  offsetof(struct kube_pod, member)
#define IN_NODE(member) offsetof(struct kube_node, member)

static const struct kube_field pod_fields[] = {
    { { "spec", "nodeName" }, KUBE_STR, IN_POD(node_name) },
    { { "spec", "schedulerName" }, KUBE_STR, IN_POD(scheduler_name) },
    { { "spec", "schedulingGroup", "podGroupName" }, KUBE_STR, IN_POD(pod_group) },
    { { "spec", "serviceAccountName" }, KUBE_STR, IN_POD(service_account) },
    { { "spec", "priorityClassName" }, KUBE_STR, IN_POD(priority_class) },
    { { "spec", "priority" }, KUBE_I64, IN_POD(priority) },
    { { "spec", "hostname" }, KUBE_STR, IN_POD(hostname) },
    { { "spec", "hostNetwork" }, KUBE_BOOL, IN_POD(host_network) },
    { { "spec", "terminationGracePeriodSeconds" }, KUBE_I64, IN_POD(termination_grace) },
    { { "status", "phase" }, KUBE_STR, IN_POD(phase) },
    { { "status", "extendedResourceClaimStatus", "resourceClaimName" },
      KUBE_STR,
      IN_POD(extended_claim) },
    { { NULL }, KUBE_STR, 0 },
};

static const struct kube_field node_fields[] = {
    { { "spec", "unschedulable" }, KUBE_BOOL, IN_NODE(unschedulable) },
    { { "status", "allocatable", "cpu" }, KUBE_QUANTITY_MILLI, IN_NODE(cpu_milli) },
    { { "status", "allocatable", "memory" }, KUBE_QUANTITY, IN_NODE(memory) },
    { { "status", "allocatable", "ephemeral-storage" }, KUBE_QUANTITY, IN_NODE(ephemeral) },
    { { "status", "allocatable", "pods" }, KUBE_QUANTITY, IN_NODE(pods) },
    { { NULL }, KUBE_STR, 0 },
};

/* ---- parts ---- */

struct part {
    const char *in, *key;
    bool takes_memory; /* else there is nothing to count */
    /* `in` is the object that holds the value. */
    int (*decode)(struct kube_decoder *decoder, const struct json *in, const struct json *value,
                  void *object, struct err *err);
};

static int decode_parts(const struct part *parts, struct kube_decoder *decoder,
                        const struct json *root, void *object, struct err *err)
{
    const struct json *in = NULL;
    const char *in_key = "";

    for (const struct part *part = parts; part->in; part++) {
        const struct json *value;

        if (strcmp(part->in, in_key) != 0) {
            in_key = part->in;
            in = kube_decoder_get(decoder, root, in_key);
        }
        value = kube_decoder_get(decoder, in, part->key);
        if (!value || (!part->takes_memory && kube_decoder_is_counting(decoder)))
            continue;
        if (part->decode(decoder, in, value, object, err) < 0)
            return err_wrap(err, "%s.%s", part->in, part->key);
    }
    return 0;
}

static int check_length(const struct json *list, struct err *err)
{
    if (json_len(list) > KUBE_MAX_ITEMS)
        return err_set(err, ERR_TOO_BIG, "%zu items, more than %d", json_len(list), KUBE_MAX_ITEMS);
    return 0;
}

static const char *text_of(struct kube_decoder *decoder, const struct json *object, const char *key)
{
    return kube_decoder_str(decoder, json_str(kube_decoder_get(decoder, object, key)));
}

/* ---- taints and tolerations ---- */

static enum kube_effect effect_of(const struct json *item)
{
    static const struct {
        const char *name;
        enum kube_effect effect;
    } effects[] = {
        { "NoSchedule", KUBE_NO_SCHEDULE },
        { "PreferNoSchedule", KUBE_PREFER_NO_SCHEDULE },
        { "NoExecute", KUBE_NO_EXECUTE },
    };
    struct str text = json_str(json_get(item, "effect"));

    for (size_t i = 0; i < sizeof(effects) / sizeof(effects[0]); i++)
        if (str_is(text, effects[i].name))
            return effects[i].effect;
    return KUBE_EFFECT_ANY;
}

/* Nearly every pod tolerates the first two: their names need no room in it. */
static const char *key_of(struct kube_decoder *decoder, const struct json *item)
{
    static const char *const known[] = {
        "node.kubernetes.io/not-ready",           "node.kubernetes.io/unreachable",
        "node.kubernetes.io/memory-pressure",     "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/pid-pressure",        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/network-unavailable", "node.kubernetes.io/out-of-service"
    };
    struct str key = json_str(kube_decoder_get(decoder, item, "key"));

    if (!str_starts(key, STR("node.kubernetes.io/")))
        return kube_decoder_str(decoder, key);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (str_is(key, known[i]))
            return known[i];
    return kube_decoder_str(decoder, key);
}

struct kube_toleration kube_toleration_of(const struct json *item)
{
    struct str how = json_str(json_get(item, "operator"));
    bool exists = str_is(how, "Exists");

    return (struct kube_toleration){
        .key = json_str(json_get(item, "key")).at,
        .value = json_str(json_get(item, "value")).at,
        .seconds = json_i64_or(json_get(item, "tolerationSeconds"), -1),
        .effect = effect_of(item),
        .exists = exists,
        .other = !exists && how.len > 0 && !str_is(how, "Equal"),
    };
}

bool kube_tolerates(const struct kube_toleration *toleration, const struct kube_taint *taint)
{
    if (toleration->other ||
        (toleration->effect != KUBE_EFFECT_ANY && toleration->effect != taint->effect))
        return false;
    if (toleration->key[0] && strcmp(toleration->key, taint->key) != 0)
        return false;
    return toleration->exists || strcmp(toleration->value, taint->value) == 0;
}

static void fill_toleration(struct kube_decoder *decoder, const struct json *item,
                            struct kube_toleration *toleration)
{
    const char *key = key_of(decoder, item), *value = text_of(decoder, item, "value");

    if (kube_decoder_is_counting(decoder))
        return;
    *toleration = kube_toleration_of(item);
    toleration->key = key;
    toleration->value = value;
}

static int decode_tolerations(struct kube_decoder *decoder, const struct json *in,
                              const struct json *value, void *object, struct err *err)
{
    struct json_iter iter = json_iter(value);
    struct kube_toleration *tolerations;
    struct kube_pod *pod = object;
    const struct json *item;
    unsigned count = 0;

    pod->tolerations = NULL;
    pod->toleration_count = 0;
    if (!json_is_array(value) || json_len(value) == 0)
        return 0;
    if (check_length(value, err) < 0)
        return -ERR_TOO_BIG;
    tolerations = kube_decoder_alloc(decoder, json_len(value) * sizeof(*tolerations));
    while (json_next_item(&iter, &item))
        fill_toleration(decoder, item, &tolerations[count++]);
    pod->tolerations = tolerations;
    pod->toleration_count = count;
    return 0;
}

static int decode_taints(struct kube_decoder *decoder, const struct json *in,
                         const struct json *value, void *object, struct err *err)
{
    struct json_iter iter = json_iter(value);
    struct kube_node *node = object;
    const struct json *item;
    struct kube_taint *taints;
    unsigned count = 0;

    node->taints = NULL;
    node->taint_count = 0;
    if (!json_is_array(value) || json_len(value) == 0)
        return 0;
    if (check_length(value, err) < 0)
        return -ERR_TOO_BIG;
    taints = kube_decoder_alloc(decoder, json_len(value) * sizeof(*taints));
    while (json_next_item(&iter, &item))
        taints[count++] = (struct kube_taint){ .key = key_of(decoder, item),
                                               .value = text_of(decoder, item, "value"),
                                               .effect = effect_of(item) };
    node->taints = taints;
    node->taint_count = count;
    return 0;
}

/* ---- pods ---- */

static int decode_requests(struct kube_decoder *decoder, const struct json *in,
                           const struct json *value, void *object, struct err *err)
{
    struct kube_pod *pod = object;

    if (check_length(value, err) < 0)
        return -ERR_TOO_BIG;
    pod->container_count = (uint16_t)json_len(value);
    return kube_requests_decode(decoder, in, &pod->requests, &pod->limits, err);
}

static int decode_gates(struct kube_decoder *decoder, const struct json *in,
                        const struct json *value, void *object, struct err *err)
{
    if (check_length(value, err) < 0)
        return -ERR_TOO_BIG;
    ((struct kube_pod *)object)->gate_count = (unsigned)json_len(value);
    return 0;
}

static int decode_node_selector(struct kube_decoder *decoder, const struct json *in,
                                const struct json *value, void *object, struct err *err)
{
    ((struct kube_pod *)object)->node_selector = kube_decoder_pairs(decoder, value);
    return 0;
}

static int decode_template_claims(struct kube_decoder *decoder, const struct json *in,
                                  const struct json *value, void *object, struct err *err)
{
    struct json_iter iter = json_iter(value);
    struct kube_pod *pod = object;
    const struct json *item;
    struct kube_pair *pairs;
    unsigned count = 0;

    pod->template_claims = (struct kube_pairs){ 0 };
    if (json_len(value) == 0)
        return 0;
    if (check_length(value, err) < 0)
        return -ERR_TOO_BIG;
    pairs = kube_decoder_alloc(decoder, json_len(value) * sizeof(*pairs));
    while (json_next_item(&iter, &item))
        pairs[count++] = (struct kube_pair){ str_of(text_of(decoder, item, "name")),
                                             str_of(text_of(decoder, item, "resourceClaimName")) };
    pod->template_claims = (struct kube_pairs){ pairs, count };
    return 0;
}

static int count_states(const struct json *statuses, struct kube_states *ret_states,
                        struct err *err)
{
    struct json_iter iter = json_iter(statuses);
    struct kube_states states = { 0 };
    const struct json *status;

    if (check_length(statuses, err) < 0)
        return -ERR_TOO_BIG;
    while (json_next_item(&iter, &status)) {
        const struct json *state = json_get(status, "state");

        if (json_exists(json_get(state, "running")))
            states.running++;
        else if (json_exists(json_get(state, "terminated")))
            states.terminated++;
        else
            states.waiting++;
    }
    *ret_states = states;
    return 0;
}

static int decode_states(struct kube_decoder *decoder, const struct json *in,
                         const struct json *value, void *object, struct err *err)
{
    return count_states(value, &((struct kube_pod *)object)->containers, err);
}

static int decode_init_states(struct kube_decoder *decoder, const struct json *in,
                              const struct json *value, void *object, struct err *err)
{
    return count_states(value, &((struct kube_pod *)object)->init_containers, err);
}

static int decode_debug_states(struct kube_decoder *decoder, const struct json *in,
                               const struct json *value, void *object, struct err *err)
{
    return count_states(value, &((struct kube_pod *)object)->debug_containers, err);
}

/* A patch may leave it as it is: by another condition, or by another member of this one. */
static int take_ready(const struct json *list, const struct json *condition, bool *ready,
                      int64_t *since_us, struct err *err)
{
    const struct json *status = json_get(condition, "status");
    const struct json *since = json_get(condition, "lastTransitionTime");

    if (!json_is_array(list) || status)
        *ready = str_is(json_str(status), "True");
    if (!json_is_array(list) || since)
        *since_us = 0;
    if (json_exists(since) && timestamp_parse(json_str(since), since_us, err) < 0)
        return err_wrap(err, "Ready: lastTransitionTime");
    return 0;
}

static const char *const pod_conditions[] = { "PodScheduled",
                                              "Initialized",
                                              "ContainersReady",
                                              "Ready",
                                              "PodReadyToStartContainers",
                                              "DisruptionTarget",
                                              "PodResizePending",
                                              "PodResizeInProgress",
                                              "AllContainersRestarting",
                                              NULL };

static int decode_pod_conditions(struct kube_decoder *decoder, const struct json *in,
                                 const struct json *value, void *object, struct err *err)
{
    struct kube_pod *pod = object;
    struct kube_conditions conditions = { .known = pod_conditions,
                                          .at = &pod->conditions,
                                          .count = &pod->condition_count };
    int rc = kube_conditions_decode(decoder, value, &conditions, err);

    return rc < 0 ? rc
                  : take_ready(value, conditions.ready, &pod->ready, &pod->ready_since_us, err);
}

static const struct part pod_parts[] = {
    { "spec", "containers", true, decode_requests },
    { "spec", "tolerations", true, decode_tolerations },
    { "spec", "schedulingGates", false, decode_gates },
    { "spec", "nodeSelector", true, decode_node_selector },
    { "status", "resourceClaimStatuses", true, decode_template_claims },
    { "status", "conditions", true, decode_pod_conditions },
    { "status", "containerStatuses", false, decode_states },
    { "status", "initContainerStatuses", false, decode_init_states },
    { "status", "ephemeralContainerStatuses", false, decode_debug_states },
    { NULL, NULL, false, NULL },
};

static int decode_pod(struct kube_decoder *decoder, const struct json *root, void *object,
                      struct err *err)
{
    int rc = kube_rare_decode(decoder, root, object, err);

    if (rc == 0)
        rc = kube_pod_end_decode(decoder, root, object, err);
    return rc < 0 ? rc : decode_parts(pod_parts, decoder, root, object, err);
}

bool kube_pod_is_finished(const struct kube_pod *pod)
{
    return strcmp(pod->phase, "Succeeded") == 0 || strcmp(pod->phase, "Failed") == 0;
}

bool kube_pod_is_terminated(const struct kube_pod *pod)
{
    return pod->container_count > 0 && pod->containers.terminated >= pod->container_count &&
           pod->containers.running == 0 && pod->containers.waiting == 0 &&
           pod->init_containers.running == 0 && pod->debug_containers.running == 0;
}

/* ---- nodes ---- */

/* Kubernetes' own; a Node's troubles are kept while they are there: they explain drains. */
static const char *const node_conditions[] = { "Ready", NULL };
static const char *const node_troubles[] = { "MemoryPressure", "DiskPressure", "PIDPressure",
                                             "NetworkUnavailable", NULL };

static int decode_node_conditions(struct kube_decoder *decoder, const struct json *in,
                                  const struct json *value, void *object, struct err *err)
{
    struct kube_node *node = object;
    struct kube_conditions conditions = { .known = node_conditions,
                                          .quiet = node_troubles,
                                          .at = &node->conditions,
                                          .count = &node->condition_count };
    int rc = kube_conditions_decode(decoder, value, &conditions, err);

    return rc < 0 ? rc
                  : take_ready(value, conditions.ready, &node->ready, &node->ready_since_us, err);
}

static int decode_addresses(struct kube_decoder *decoder, const struct json *in,
                            const struct json *value, void *object, struct err *err)
{
    struct json_iter iter = json_iter(value);
    struct kube_node *node = object;
    const struct json *address;

    while (json_next_item(&iter, &address))
        if (str_is(json_str(json_get(address, "type")), "InternalIP")) {
            node->internal_ip = text_of(decoder, address, "address");
            return 0;
        }
    node->internal_ip = "";
    return 0;
}

static int decode_allocatable(struct kube_decoder *decoder, const struct json *in,
                              const struct json *value, void *object, struct err *err)
{
    struct kube_node *node = object;

    return kube_extended_decode(decoder, value, &node->extended, &node->extended, err);
}

static const struct part node_parts[] = {
    { "spec", "taints", true, decode_taints },
    { "status", "allocatable", true, decode_allocatable },
    { "status", "conditions", true, decode_node_conditions },
    { "status", "addresses", true, decode_addresses },
    { NULL, NULL, false, NULL },
};

static int decode_node(struct kube_decoder *decoder, const struct json *root, void *object,
                       struct err *err)
{
    struct kube_node *node = object;

    if (!node->internal_ip)
        node->internal_ip = "";
    return decode_parts(node_parts, decoder, root, object, err);
}

static bool find_label(const void *data, struct str key, struct str *ret_value)
{
    return kube_pairs_find(data, key, ret_value);
}

struct selector_subject kube_labels(const struct kube_pairs *labels)
{
    return (struct selector_subject){ find_label, labels };
}

bool kube_node_has_taint(const struct kube_node *node, const char *key)
{
    for (unsigned i = 0; i < node->taint_count; i++)
        if (strcmp(node->taints[i].key, key) == 0)
            return true;
    return false;
}

int64_t kube_amount_of(const struct kube_amounts *amounts, const char *name)
{
    for (unsigned i = 0; i < amounts->count; i++)
        if (strcmp(amounts->at[i].name, name) == 0)
            return amounts->at[i].amount;
    return 0;
}

const struct kube_kind kube_pod_kind = {
    .resource = &kube_pods,
    .size = sizeof(struct kube_pod),
    .fields = pod_fields,
    .decode_more = decode_pod,
};

const struct kube_kind kube_node_kind = {
    .resource = &kube_nodes,
    .size = sizeof(struct kube_node),
    .fields = node_fields,
    .decode_more = decode_node,
};

static const struct kube_field no_fields[] = { { { NULL }, KUBE_STR, 0 } };

const struct kube_kind kube_namespace_kind = {
    .resource = &kube_namespaces,
    .size = sizeof(struct kube_object),
    .fields = no_fields,
};
