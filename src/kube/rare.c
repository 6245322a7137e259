/* rare.c - the parts of a pod's spec that few pods have, in a struct of their own.
 *
 * Holds   both passes of the decoder ask for the same memory; a part that a patch does not name is
 *         the one of the object below it. */
#include "kube/rare.h"

enum { MAX_PORT = 65535 };

#define PLACEMENT "a placement rule"
#define REQUIRED  "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

struct spec {
    const struct json *of; /* the spec itself */
    struct str pod_name;
    bool host_network; /* of the object below a patch */
};

struct part {
    const char *key;
    int (*decode)(struct kube_decoder *decoder, const struct spec *spec, const struct json *value,
                  struct kube_rare *rare, struct err *err);
};

static int check_length(const struct json *list, struct err *err)
{
    if (json_len(list) > KUBE_MAX_ITEMS)
        return err_set(err, ERR_TOO_BIG, "%zu items, more than %d", json_len(list), KUBE_MAX_ITEMS);
    return 0;
}

/* ---- rules about nodes and other pods ---- */

/* A list with nothing in it is no rule. */
static int keep_rule(struct kube_decoder *decoder, const struct json *rule, const char **ret_text,
                     struct err *err)
{
    return kube_decoder_rule(decoder, json_len(rule) > 0 ? rule : NULL, PLACEMENT, ret_text, err);
}

static int decode_affinity(struct kube_decoder *decoder, const struct spec *spec,
                           const struct json *value, struct kube_rare *rare, struct err *err)
{
    static const struct {
        const char *kind, *key;
        size_t offset;
    } rules[] = {
        { "nodeAffinity", REQUIRED, offsetof(struct kube_rare, node_affinity) },
        { "nodeAffinity", PREFERRED, offsetof(struct kube_rare, node_preference) },
        { "podAffinity", REQUIRED, offsetof(struct kube_rare, pod_affinity) },
        { "podAntiAffinity", REQUIRED, offsetof(struct kube_rare, pod_anti_affinity) },
    };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof(rules) / sizeof(rules[0]); i++)
        rc = keep_rule(decoder, json_at(value, rules[i].kind, rules[i].key),
                       (const char **)(void *)((char *)rare + rules[i].offset), err);
    return rc;
}

static int decode_spread(struct kube_decoder *decoder, const struct spec *spec,
                         const struct json *value, struct kube_rare *rare, struct err *err)
{
    struct json_iter iter = json_iter(value);
    const struct json *constraint;
    auto_buf struct buf text;

    buf_init(&text, KUBE_MAX_RULE);
    while (json_next_item(&iter, &constraint)) {
        if (!str_is(json_str(json_get(constraint, "whenUnsatisfiable")), "DoNotSchedule"))
            continue;
        buf_add_char(&text, text.len > 0 ? ',' : '[');
        json_write(constraint, &text);
    }
    if (text.len > 0)
        buf_add_char(&text, ']');
    return kube_decoder_text(decoder, &text, PLACEMENT, &rare->spread, err);
}

/* ---- ports of the node ---- */

struct ports {
    struct kube_decoder *decoder;
    struct kube_port *at; /* NULL: they are only counted */
    unsigned count;
    bool on_host; /* every port of a pod on the host's network is one of the node */
};

static void take_port(struct ports *ports, const struct json *item)
{
    struct str protocol = json_str_or(json_get(item, "protocol"), STR("TCP"));
    int64_t port = json_i64_or(json_get(item, "hostPort"), 0);

    if (port == 0 && ports->on_host)
        port = json_i64_or(json_get(item, "containerPort"), 0);
    if (port <= 0 || port > MAX_PORT)
        return;
    if (ports->at)
        ports->at[ports->count] = (struct kube_port){
            .ip = kube_decoder_str(ports->decoder, json_str(json_get(item, "hostIP"))),
            .protocol =
                str_is(protocol, "TCP") ? "TCP" : kube_decoder_str(ports->decoder, protocol),
            .port = (uint16_t)port,
        };
    ports->count++;
}

static void take_ports(struct ports *ports, const struct json *containers, bool sidecars_only)
{
    struct json_iter iter = json_iter(containers);
    const struct json *container, *item;

    while (json_next_item(&iter, &container)) {
        const struct json *list = kube_decoder_get(ports->decoder, container, "ports");
        struct json_iter items = json_iter(list);

        if (!list ||
            (sidecars_only && !str_is(json_str(json_get(container, "restartPolicy")), "Always")))
            continue;
        while (json_next_item(&items, &item))
            take_port(ports, item);
    }
}

static int decode_ports(struct kube_decoder *decoder, const struct spec *spec,
                        const struct json *value, struct kube_rare *rare, struct err *err)
{
    const struct json *init = kube_decoder_get(decoder, spec->of, "initContainers");
    const struct json *host = kube_decoder_get(decoder, spec->of, "hostNetwork");
    bool on_host = host ? json_bool_or(host, false) : spec->host_network;
    struct ports ports = { .decoder = decoder, .on_host = on_host };
    unsigned count;

    take_ports(&ports, value, false);
    take_ports(&ports, init, true);
    count = ports.count;
    rare->ports = NULL;
    rare->port_count = count;
    if (count == 0)
        return 0;
    if (count > KUBE_MAX_ITEMS)
        return err_set(err, ERR_TOO_BIG, "%u ports, more than %d", count, KUBE_MAX_ITEMS);
    ports.at = kube_decoder_alloc(decoder, count * sizeof(*ports.at));
    ports.count = 0;
    take_ports(&ports, value, false);
    take_ports(&ports, init, true);
    rare->ports = ports.at;
    return 0;
}

/* ---- volumes ---- */

static bool has_claim(const struct json *volume)
{
    return json_exists(json_get(volume, "persistentVolumeClaim")) ||
           json_exists(json_get(volume, "ephemeral"));
}

/* A generic ephemeral volume has a claim that is named after the pod and it. */
static int keep_claim(struct kube_decoder *decoder, const struct spec *spec,
                      const struct json *volume, const char **ret_name, struct err *err)
{
    const struct json *claim = json_get(volume, "persistentVolumeClaim");
    auto_buf struct buf name;

    buf_init(&name, 2 * KUBE_MAX_NAME);
    if (!json_exists(claim)) {
        buf_add_str(&name, spec->pod_name);
        buf_add_char(&name, '-');
    }
    buf_add_str(&name, json_str(json_exists(claim) ? json_get(claim, "claimName")
                                                   : json_get(volume, "name")));
    return kube_decoder_text(decoder, &name, "the name of a claim", ret_name, err);
}

static int decode_volumes(struct kube_decoder *decoder, const struct spec *spec,
                          const struct json *value, struct kube_rare *rare, struct err *err)
{
    struct json_iter iter = json_iter(value);
    const struct json *volume;
    const char **claims;
    bool *own;
    unsigned count = 0;

    rare->volume_claims = NULL;
    rare->volume_claim_count = 0;
    if (check_length(value, err) < 0)
        return -ERR_TOO_BIG;
    while (json_next_item(&iter, &volume))
        count += has_claim(volume);
    if (count == 0)
        return 0;
    claims = kube_decoder_alloc(decoder, count * sizeof(*claims));
    own = kube_decoder_alloc(decoder, count * sizeof(*own));
    rare->volume_claims = claims;
    rare->volume_claim_is_own = own;
    iter = json_iter(value);
    while (json_next_item(&iter, &volume)) {
        if (!has_claim(volume))
            continue;
        own[rare->volume_claim_count] = !json_exists(json_get(volume, "persistentVolumeClaim"));
        if (keep_claim(decoder, spec, volume, &claims[rare->volume_claim_count++], err) < 0)
            return -ERR_TOO_BIG;
    }
    return 0;
}

/* ---- devices ---- */

struct asks {
    struct kube_decoder *decoder;
    struct kube_device_ask *at; /* NULL: they are only counted */
    unsigned count;
};

static int take_ask(struct asks *asks, const struct json *container, struct str resource,
                    const struct json *amount, unsigned order, bool is_init, struct err *err)
{
    struct json_iter requests = json_iter(json_at(container, "resources", "requests"));
    struct kube_device_ask *ask;
    const struct json *other;
    struct str name;

    if (!asks->at) {
        asks->count++;
        return 0;
    }
    ask = &asks->at[asks->count++];
    ask->container = kube_decoder_str(asks->decoder, json_str(json_get(container, "name")));
    ask->resource = kube_decoder_str(asks->decoder, resource);
    ask->order = (uint16_t)order;
    ask->is_init = is_init;
    ask->place = 0;
    while (json_next_member(&requests, &name, &other))
        ask->place = (uint16_t)(ask->place + (str_cmp(name, resource) < 0));
    return kube_decoder_is_counting(asks->decoder)
               ? 0
               : kube_quantity(amount, false, &ask->amount, err);
}

/* Extended resources are those with a '/' in their name. */
static int take_asks(struct asks *asks, const struct json *containers, unsigned order, bool is_init,
                     struct err *err)
{
    struct json_iter iter = json_iter(containers);
    const struct json *container, *amount;
    struct str resource;
    int rc = 0;

    while (json_next_item(&iter, &container)) {
        struct json_iter requests = json_iter(json_at(container, "resources", "requests"));
        bool is_sidecar = str_is(json_str(json_get(container, "restartPolicy")), "Always");

        while (rc == 0 && json_next_member(&requests, &resource, &amount))
            if (memchr(resource.at, '/', resource.len))
                rc =
                    take_ask(asks, container, resource, amount, order, is_init && !is_sidecar, err);
        order++;
    }
    return rc;
}

static int take_all_asks(struct asks *asks, const struct json *init, const struct json *containers,
                         struct err *err)
{
    int rc;

    asks->count = 0;
    rc = take_asks(asks, init, 0, true, err);
    return rc < 0 ? rc : take_asks(asks, containers, (unsigned)json_len(init), false, err);
}

static int decode_asks(struct kube_decoder *decoder, const struct spec *spec,
                       const struct json *value, struct kube_rare *rare, struct err *err)
{
    const struct json *init = kube_decoder_get(decoder, spec->of, "initContainers");
    struct asks asks = { .decoder = decoder };

    rare->device_asks = NULL;
    rare->device_ask_count = 0;
    (void)take_all_asks(&asks, init, value, err); /* counting cannot fail */
    if (asks.count == 0)
        return 0;
    if (asks.count > KUBE_MAX_ITEMS)
        return err_set(err, ERR_TOO_BIG, "%u devices, more than %d", asks.count, KUBE_MAX_ITEMS);
    asks.at = kube_decoder_alloc(decoder, asks.count * sizeof(*asks.at));
    rare->device_asks = asks.at;
    rare->device_ask_count = asks.count;
    return take_all_asks(&asks, init, value, err);
}

static int decode_claims(struct kube_decoder *decoder, const struct spec *spec,
                         const struct json *value, struct kube_rare *rare, struct err *err)
{
    struct json_iter iter = json_iter(value);
    const struct json *item;
    struct kube_claim_ref *refs;
    unsigned count = 0;

    rare->claims = NULL;
    rare->claim_count = 0;
    if (check_length(value, err) < 0)
        return -ERR_TOO_BIG;
    if (json_len(value) == 0)
        return 0;
    refs = kube_decoder_alloc(decoder, json_len(value) * sizeof(*refs));
    while (json_next_item(&iter, &item)) {
        refs[count].name = kube_decoder_str(decoder, json_str(json_get(item, "name")));
        refs[count].claim =
            kube_decoder_str(decoder, json_str(json_get(item, "resourceClaimName")));
        refs[count++].template =
            kube_decoder_str(decoder, json_str(json_get(item, "resourceClaimTemplateName")));
    }
    rare->claims = refs;
    rare->claim_count = count;
    return 0;
}

/* ---- all of it ---- */

static int decode_deadline(struct kube_decoder *decoder, const struct spec *spec,
                           const struct json *value, struct kube_rare *rare, struct err *err)
{
    rare->active_deadline = json_i64_or(value, 0);
    return 0;
}

static const struct part parts[] = {
    { "containers", decode_ports },
    { "containers", decode_asks },
    { "resourceClaims", decode_claims },
    { "volumes", decode_volumes },
    { "affinity", decode_affinity },
    { "topologySpreadConstraints", decode_spread },
    { "activeDeadlineSeconds", decode_deadline },
};

static bool is_empty(const struct kube_rare *rare)
{
    return !rare->node_affinity[0] && !rare->node_preference[0] && !rare->pod_affinity[0] &&
           !rare->pod_anti_affinity[0] && !rare->spread[0] && rare->port_count == 0 &&
           rare->volume_claim_count == 0 && rare->active_deadline == 0 &&
           rare->device_ask_count == 0 && rare->claim_count == 0;
}

static void keep_rare(struct kube_decoder *decoder, const struct kube_rare *rare,
                      struct kube_pod *pod)
{
    struct kube_rare *kept;

    pod->rare = NULL;
    if (is_empty(rare))
        return;
    kept = kube_decoder_alloc(decoder, sizeof(*kept));
    *kept = *rare;
    pod->rare = kept;
}

int kube_rare_decode(struct kube_decoder *decoder, const struct json *root, struct kube_pod *pod,
                     struct err *err)
{
    static const struct kube_rare none = { .node_affinity = "",
                                           .node_preference = "",
                                           .pod_affinity = "",
                                           .pod_anti_affinity = "",
                                           .spread = "" };
    const struct json *name = json_at(root, "metadata", "name");
    struct spec spec = { .of = kube_decoder_get(decoder, root, "spec"),
                         .pod_name = name ? json_str(name) : str_of(pod->object.name),
                         .host_network = pod->host_network };
    struct kube_rare rare = pod->rare ? *pod->rare : none;
    bool says = false;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const struct json *value = kube_decoder_get(decoder, spec.of, parts[i].key);

        if (!value)
            continue;
        says = true;
        if (parts[i].decode(decoder, &spec, value, &rare, err) < 0)
            return err_wrap(err, "spec.%s", parts[i].key);
    }
    if (says)
        keep_rare(decoder, &rare, pod);
    return 0;
}
