/* needs.c - from the resources and claims of a pod to amounts and to claims.
 *
 * Holds: the requests of a claim have as many devices as Kubernetes counts for the pod: init
 * containers use those of the containers that start after them, and only what they need beyond is
 * added. */
#include "device/needs.h"

#include "device/names.h"

#include <inttypes.h>

static int check_row(const struct device_row *row, struct str class, const char *what,
                     const char *name, struct err *err)
{
    if (row)
        return 0;
    return err_set(err, ERR_INVALID,
                   "%s \"%s\" uses DRA device class \"" STR_FMT
                   "\", which the bridge's config (devices) does not know",
                   what, name, STR_ARG(class));
}

/* Cores need few results: one for each NUMA node. */
static int check_count(const struct device_row *row, int64_t count, const char *what,
                       const char *name, struct err *err)
{
    if (!row->class[0] || device_row_is_cpu(row) || count <= CLAIM_MAX_RESULTS)
        return 0;
    return err_set(err, ERR_INVALID,
                   "%s \"%s\" requests %" PRId64
                   " devices of DRA device class \"%s\", and a claim has at most %d",
                   what, name, count, row->class, CLAIM_MAX_RESULTS);
}

static bool is_of_class(const char *resource)
{
    return str_starts(str_of(resource), STR(DEVICE_CLASS_PREFIX));
}

/* ---- claims that pods name ---- */

/* Of a claim that comes from a template the name stands in the status. NULL: not yet. */
static const char *claim_name(const struct kube_pod *pod, const struct kube_claim_ref *ref)
{
    bool found;
    struct str name;

    if (ref->claim[0])
        return ref->claim;
    name = kube_pairs_get(&pod->template_claims, ref->name, &found);
    return found && name.len > 0 ? name.at : NULL;
}

static bool is_cpu_claim(const struct kube_claim_ref *ref)
{
    return strcmp(ref->name, DEVICE_CPU_CLAIM) == 0 &&
           str_starts(str_of(ref->claim), STR(DEVICE_CPU_CLAIM "-"));
}

bool device_needs_cores(const struct kube_pod *pod)
{
    for (unsigned i = 0; pod->rare && i < pod->rare->claim_count; i++)
        if (is_cpu_claim(&pod->rare->claims[i]))
            return true;
    return kube_amount_of(&pod->requests.extended, DEVICE_CLASS_PREFIX DEVICE_CORES_DRIVER) > 0;
}

bool device_needs_more_than_cores(const struct kube_pod *pod)
{
    const struct kube_rare *rare = pod->rare;

    for (unsigned i = 0; rare && i < rare->claim_count; i++)
        if (!is_cpu_claim(&rare->claims[i]))
            return true;
    for (unsigned i = 0; rare && i < rare->device_ask_count; i++)
        if (strcmp(rare->device_asks[i].resource, DEVICE_CLASS_PREFIX DEVICE_CORES_DRIVER) != 0)
            return true;
    return false;
}

static int find_claim(const struct device_view *view, const struct kube_pod *pod,
                      const struct kube_claim_ref *ref,
                      const struct kube_resource_claim **ret_claim, struct err *err)
{
    const char *name = claim_name(pod, ref);
    const struct kube_object *object =
        name && view->claims ? kube_cache_get(view->claims, pod->object.ns, name) : NULL;

    if (!object)
        return err_set(err, ERR_NOT_FOUND, "resourceclaim \"%s\" is not there yet",
                       name ? name : ref->name);
    if (ref->template[0] && strcmp(object->owner.uid, pod->object.uid) != 0)
        return err_set(err, ERR_INVALID, "resourceclaim \"%s\" was not made for this pod", name);
    *ret_claim = kube_resource_claim_of(object);
    return 0;
}

/* A claim ends with the job of its pod, so that two pods cannot have it. */
static int check_users(const struct kube_pod *pod, const struct kube_resource_claim *claim,
                       struct err *err)
{
    for (unsigned i = 0; i < claim->user_count; i++)
        if (strcmp(claim->users[i].uid, pod->object.uid) != 0)
            return err_set(err, ERR_INVALID,
                           "resourceclaim \"%s\" is reserved for pod %s; pods that Slurm places "
                           "cannot share a claim",
                           claim->object.name, claim->users[i].name);
    return 0;
}

static int read_request(const struct device_view *view, const struct kube_resource_claim *claim,
                        const struct claim_request *request, struct device_request *ret_request,
                        struct err *err)
{
    const struct device_row *row = device_row_of_class(view->table, str_of(request->class));
    const char *refused = claim->refused[0] ? claim->refused : request->refused;

    if (!refused[0] && row && device_row_is_cpu(row))
        refused = "cores are requested as a resource of containers";
    if (!refused[0] && (request->count <= 0 || request->count > INT32_MAX))
        refused = "it wants an impossible number of devices";
    if (refused[0])
        return err_set(err, ERR_INVALID, "request \"%s\" of resourceclaim \"%s\" cannot be met: %s",
                       request->name, claim->object.name, refused);
    if (check_row(row, str_of(request->class), "resourceclaim", claim->object.name, err) < 0 ||
        check_count(row, request->count, "resourceclaim", claim->object.name, err) < 0)
        return -ERR_INVALID;
    *ret_request = (struct device_request){ request->name, request->class, row, request->count };
    return 0;
}

static int read_claim(const struct device_view *view, const struct kube_pod *pod,
                      const struct kube_claim_ref *ref, struct arena *arena,
                      struct pod_claim *ret_claim, struct err *err)
{
    const struct kube_resource_claim *claim;
    int rc = find_claim(view, pod, ref, &claim, err);

    if (rc == 0)
        rc = check_users(pod, claim, err);
    if (rc < 0)
        return rc;
    *ret_claim = (struct pod_claim){ .kind = POD_CLAIM_USER,
                                     .name = claim->object.name,
                                     .found = claim,
                                     .requests = arena_alloc_array(arena, claim->request_count + 1,
                                                                   sizeof(struct device_request)) };
    for (unsigned i = 0; rc == 0 && i < claim->request_count; i++)
        rc = read_request(view, claim, &claim->requests[i],
                          &ret_claim->requests[ret_claim->request_count++], err);
    return rc;
}

/* ---- amounts ---- */

static int add_resource(const struct device_view *view, const struct kube_amount *amount,
                        struct device_amounts *amounts, struct err *err)
{
    struct str class = device_class_of_resource(view->classes, str_of(amount->name));
    const struct device_row *row = device_row_of_plugin(view->table, str_of(amount->name));

    if (amount->amount <= 0)
        return 0;
    if (!row)
        row = device_row_of_class(view->table, class);
    if (!row && is_of_class(amount->name))
        return check_row(row, class, "resource", amount->name, err);
    if (row && check_count(row, amount->amount, "resource", amount->name, err) < 0)
        return -ERR_INVALID;
    if (row)
        amounts->at[amounts->count++] = (struct device_amount){ row, amount->amount };
    return 0;
}

static int add_claim(const struct device_view *view, const struct kube_pod *pod,
                     const struct kube_claim_ref *ref, struct arena *arena,
                     struct device_amounts *amounts, struct err *err)
{
    struct pod_claim claim;
    struct device_amount *more;
    int rc = read_claim(view, pod, ref, arena, &claim, err);

    if (rc < 0)
        return rc;
    more = arena_alloc_array(arena, amounts->count + claim.request_count + 1, sizeof(*more));
    for (unsigned i = 0; i < amounts->count; i++)
        more[i] = amounts->at[i];
    amounts->at = more;
    for (unsigned i = 0; i < claim.request_count; i++)
        more[amounts->count++] =
            (struct device_amount){ claim.requests[i].row, claim.requests[i].count };
    return 0;
}

/* Kubernetes has requests and limits equal for every device; where it has not, each name counts
 * once. */
int device_amounts_of(const struct device_view *view, const struct kube_pod *pod,
                      struct arena *arena, struct device_amounts *ret_amounts, struct err *err)
{
    const struct kube_amounts *limits = &pod->limits.extended, *requests = &pod->requests.extended;
    int rc = 0;

    *ret_amounts = (struct device_amounts){ 0 };
    ret_amounts->at =
        arena_alloc_array(arena, limits->count + requests->count + 1, sizeof(*ret_amounts->at));
    for (unsigned i = 0; rc == 0 && i < limits->count; i++)
        rc = add_resource(view, &limits->at[i], ret_amounts, err);
    for (unsigned i = 0; rc == 0 && i < requests->count; i++)
        if (kube_amount_of(limits, requests->at[i].name) == 0)
            rc = add_resource(view, &requests->at[i], ret_amounts, err);
    for (unsigned i = 0; rc == 0 && pod->rare && i < pod->rare->claim_count; i++)
        if (!is_cpu_claim(&pod->rare->claims[i]))
            rc = add_claim(view, pod, &pod->rare->claims[i], arena, ret_amounts, err);
    return rc;
}

/* ---- the claim for resources of containers ---- */

struct ask { /* of a container, that is served by a claim */
    const struct kube_device_ask *ask;
    /* Of an init container: what it needs beyond the devices of later containers. NULL: nothing */
    struct device_request *request;
    struct str class;
    const struct device_row *row;
};

struct asks {
    struct ask *at;
    unsigned count;
};

static int find_asks(const struct device_view *view, const struct kube_pod *pod,
                     const struct kube_node *node, struct arena *arena, struct asks *ret_asks,
                     struct err *err)
{
    unsigned count = pod->rare ? pod->rare->device_ask_count : 0;
    struct ask *list = arena_alloc_array(arena, count + 1, sizeof(*list));

    *ret_asks = (struct asks){ .at = list };
    for (unsigned i = 0; i < count; i++) {
        const struct kube_device_ask *ask = &pod->rare->device_asks[i];
        struct str class = device_class_of_resource(view->classes, str_of(ask->resource));
        const struct device_row *row = device_row_of_class(view->table, class);

        /* The kubelet serves the name by a device plugin where the node has it. */
        bool has_plugin =
            !is_of_class(ask->resource) && kube_amount_of(&node->extended, ask->resource) > 0;

        if (class.len == 0 || ask->amount <= 0 || has_plugin)
            continue;
        if (check_row(row, class, "container", ask->container, err) < 0)
            return -ERR_INVALID;
        list[ret_asks->count++] = (struct ask){ .ask = ask, .class = class, .row = row };
    }
    return 0;
}

static struct device_request *add_request(struct pod_claim *claim, const struct ask *ask,
                                          const char *name, int64_t count)
{
    struct device_request *request = &claim->requests[claim->request_count++];

    *request = (struct device_request){ name, ask->class.at, ask->row, count };
    return request;
}

static void add_mapping(struct pod_claims *claims, const struct ask *ask,
                        const struct device_request *request)
{
    claims->mappings[claims->mapping_count++] =
        (struct device_mapping){ ask->ask->container, ask->ask->resource, request->name };
}

static bool is_same_resource(const struct ask *a, const struct ask *b)
{
    return strcmp(a->ask->resource, b->ask->resource) == 0;
}

/* As kube-scheduler names it. */
static const char *request_name(const struct ask *ask, struct arena *arena)
{
    return arena_printf(arena, "container-%u-request-%u", (unsigned)ask->ask->order,
                        (unsigned)ask->ask->place);
}

/* What an init container needs beyond the devices of those that start after it. */
static int64_t map_later(struct pod_claims *claims, const struct asks *asks, const struct ask *init)
{
    int64_t left = init->ask->amount;

    for (unsigned i = 0; i < asks->count && left > 0; i++) {
        const struct ask *later = &asks->at[i];

        if (later->ask->is_init || later->ask->order < init->ask->order ||
            !is_same_resource(later, init))
            continue;
        add_mapping(claims, init, later->request);
        left -= later->request->count;
    }
    return left;
}

/* One request, named after the largest, for all init containers that need more of a resource; they
 * run one after the other. */
static void add_excess(struct pod_claim *claim, struct asks *asks, struct ask *init, int64_t left,
                       struct arena *arena)
{
    for (unsigned i = 0; left > 0 && !init->request && i < asks->count; i++)
        if (asks->at[i].ask->is_init && is_same_resource(&asks->at[i], init))
            init->request = asks->at[i].request;
    if (left > 0 && !init->request)
        init->request = add_request(claim, init, request_name(init, arena), left);
    if (left > 0 && init->request->count < left) {
        init->request->count = left;
        init->request->name = request_name(init, arena);
    }
}

static int add_extended(const struct device_view *view, const struct kube_pod *pod,
                        const struct kube_node *node, struct arena *arena,
                        struct pod_claims *claims, struct err *err)
{
    struct pod_claim *claim = &claims->at[claims->count];
    struct asks asks;

    if (find_asks(view, pod, node, arena, &asks, err) < 0)
        return -ERR_INVALID;
    if (asks.count == 0)
        return 0;
    claims->count++;
    *claim = (struct pod_claim){
        .kind = POD_CLAIM_EXTENDED,
        .name = arena_printf(arena, DEVICE_CLAIM_PREFIX "%s", pod->object.uid),
        .requests = arena_alloc_array(arena, 2 * asks.count, sizeof(*claim->requests)),
    };
    claims->mappings =
        arena_alloc_array(arena, asks.count * (asks.count + 1), sizeof(*claims->mappings));
    for (unsigned i = 0; i < asks.count; i++)
        if (!asks.at[i].ask->is_init)
            asks.at[i].request = add_request(claim, &asks.at[i], request_name(&asks.at[i], arena),
                                             asks.at[i].ask->amount);
    for (unsigned i = 0; i < asks.count; i++)
        if (asks.at[i].ask->is_init)
            add_excess(claim, &asks, &asks.at[i], map_later(claims, &asks, &asks.at[i]), arena);
    for (unsigned i = 0; i < asks.count; i++)
        if (asks.at[i].request)
            add_mapping(claims, &asks.at[i], asks.at[i].request);
    return 0;
}

/* ---- all claims ---- */

static void add_cpu(const struct device_view *view, const struct kube_claim_ref *ref,
                    struct arena *arena, struct pod_claims *claims)
{
    struct pod_claim *claim = &claims->at[claims->count++];

    *claim = (struct pod_claim){ .kind = POD_CLAIM_CPU,
                                 .name = ref->claim,
                                 .requests = arena_alloc_array(arena, 1, sizeof(*claim->requests)),
                                 .request_count = 1 };
    claim->requests[0] =
        (struct device_request){ "cpu", DEVICE_CORES_DRIVER,
                                 device_row_of_class(view->table, STR(DEVICE_CORES_DRIVER)), 1 };
}

int pod_claims_of(const struct device_view *view, const struct kube_pod *pod,
                  const struct kube_node *node, struct arena *arena, struct pod_claims *ret_claims,
                  struct err *err)
{
    unsigned named = pod->rare ? pod->rare->claim_count : 0;
    int rc;

    *ret_claims = (struct pod_claims){ 0 };
    if (!pod->rare || (named == 0 && pod->rare->device_ask_count == 0))
        return 0;
    ret_claims->at = arena_alloc_array(arena, named + 1, sizeof(*ret_claims->at));
    rc = add_extended(view, pod, node, arena, ret_claims, err);
    for (unsigned i = 0; rc == 0 && i < named; i++)
        if (is_cpu_claim(&pod->rare->claims[i]))
            add_cpu(view, &pod->rare->claims[i], arena, ret_claims);
        else
            rc = read_claim(view, pod, &pod->rare->claims[i], arena,
                            &ret_claims->at[ret_claims->count++], err);
    for (unsigned i = 0; rc == 0 && view->claims && i < ret_claims->count; i++) {
        struct pod_claim *claim = &ret_claims->at[i];
        const struct kube_object *object =
            claim->kind == POD_CLAIM_USER
                ? NULL
                : kube_cache_get(view->claims, pod->object.ns, claim->name);

        if (object)
            claim->found = kube_resource_claim_of(object);
    }
    return rc;
}
