/* watches.c - all that the bridge watches of Kubernetes, as one table.
 *
 * Holds: of pods the server picks out which are ours, so that those of others lie in a cache of
 * their own; an optional kind counts as present when it has been read, and never again as absent.
 */
#include "bridge/watches.h"

#include "base/mem.h"
#include "bridge/submit/submit_queue.h"
#include "bridge/world/names.h"
#include "device/kinds.h"
#include "engine/watch_set.h"
#include "kube/volume_kinds.h"

#include <stdio.h>

enum {
    ALWAYS = 10, /* kinds that every server has */
    KINDS = ALWAYS + OPTIONAL_KINDS,
    MAX_SELECTOR = 300,
};

enum {
    PODS,
    NODES,
    JOBS,
    REPLICASETS,
    STATEFULSETS,
    OTHER_PODS,
    NAMESPACES,
    CLAIMS,
    VOLUMES,
    CLASSES
};

struct watches {
    struct bridge_world *world;
    struct kube_cache *caches[KINDS];
    struct watch_set *set; /* NULL once stopped */
    watches_on_owner on_owner;
    watches_on_volume on_volume;
    void *listener;
};

static const struct {
    const struct kube_kind *kind;
    const char *selector; /* of fields: our scheduler's name follows */
} rows[KINDS] = {
    [PODS] = { &kube_pod_kind, "spec.schedulerName=" },
    [OTHER_PODS] = { &kube_pod_kind, "spec.schedulerName!=" },
    [NODES] = { &kube_node_kind, NULL },
    [JOBS] = { &kube_job_kind, NULL },
    [REPLICASETS] = { &kube_replicaset_kind, NULL },
    [STATEFULSETS] = { &kube_statefulset_kind, NULL },
    [NAMESPACES] = { &kube_namespace_kind, NULL },
    [CLAIMS] = { &kube_claim_kind, NULL },
    [VOLUMES] = { &kube_volume_kind, NULL },
    [CLASSES] = { &kube_storage_class_kind, NULL },
    [ALWAYS + OPTIONAL_PODGROUPS] = { &kube_podgroup_kind, NULL },
    [ALWAYS + OPTIONAL_WORKLOADS] = { &kube_workload_kind, NULL },
    [ALWAYS + OPTIONAL_COSCHEDULING] = { &kube_coscheduling_kind, NULL },
    [ALWAYS + OPTIONAL_LWS] = { &kube_lws_kind, NULL },
    [ALWAYS + OPTIONAL_JOBSETS] = { &kube_jobset_kind, NULL },
    [ALWAYS + OPTIONAL_DEVICE_CLASSES] = { &device_class_kind, NULL },
    [ALWAYS + OPTIONAL_SLICES] = { &device_slice_kind, NULL },
    [ALWAYS + OPTIONAL_TAINT_RULES] = { &device_taint_rule_kind, NULL },
    [ALWAYS + OPTIONAL_CLAIMS] = { &device_claim_kind, NULL },
    [ALWAYS + OPTIONAL_DAEMONSETS] = { &kube_daemonset_kind, NULL },
};

/* ---- making ---- */

static void fill_world(struct bridge_world *world, struct kube_cache *const caches[KINDS])
{
    const struct filter_hooks hooks = world_filter_hooks(world);
    const struct filter_caches filtered = { .pods = caches[PODS],
                                            .other_pods = caches[OTHER_PODS],
                                            .nodes = caches[NODES],
                                            .namespaces = caches[NAMESPACES],
                                            .claims = caches[CLAIMS],
                                            .volumes = caches[VOLUMES],
                                            .classes = caches[CLASSES],
                                            .daemonsets = caches[ALWAYS + OPTIONAL_DAEMONSETS] };

    world->volumes = caches[VOLUMES];
    world->other_pods = caches[OTHER_PODS];
    world->pods = caches[PODS];
    world->nodes = caches[NODES];
    world->namespaces = caches[NAMESPACES];
    world->jobs = caches[JOBS];
    world->replicasets = caches[REPLICASETS];
    world->statefulsets = caches[STATEFULSETS];
    for (unsigned i = 0; i < OPTIONAL_KINDS; i++)
        world->optional[i] = (struct optional){ .cache = caches[ALWAYS + i] };
    world->filter = filter_new(&filtered, &hooks);
    world_add_indexes(world);
    submit_queue_add_index(world);
}

struct watches *watches_new(struct kube_client *client, struct rand *rand,
                            struct bridge_world *world, unsigned page)
{
    struct watches *watches = mem_alloc(sizeof(*watches));
    const struct clock *clock = loop_clock(kube_client_loop(client));
    struct watch_row watched[KINDS];
    char selectors[KINDS][MAX_SELECTOR];

    watches->world = world;
    for (unsigned i = 0; i < KINDS; i++) {
        watches->caches[i] = kube_cache_new(rows[i].kind, clock);
        watched[i] = (struct watch_row){ .cache = watches->caches[i], .is_optional = i >= ALWAYS };
        if (!rows[i].selector)
            continue;
        (void)snprintf(selectors[i], MAX_SELECTOR, "%s%s", rows[i].selector,
                       world->config->scheduler_name);
        watched[i].field_selector = selectors[i];
    }
    watches->set = watch_set_new(client, rand, watched, KINDS, NULL, 0, page);
    fill_world(world, watches->caches);
    return watches;
}

void watches_start(struct watches *watches)
{
    watch_set_start(watches->set);
}

void watches_stop(struct watches *watches)
{
    watch_set_free(watches->set);
    watches->set = NULL;
}

void watches_free(struct watches *watches)
{
    filter_free(watches->world->filter);
    watches->world->filter = NULL;
    for (unsigned i = 0; i < KINDS; i++)
        kube_cache_free(watches->caches[i]);
    mem_free(watches);
}

bool watches_refresh(struct watches *watches)
{
    bool has_changed = false;

    for (unsigned i = 0; i < OPTIONAL_KINDS; i++) {
        struct optional *optional = &watches->world->optional[i];
        enum watch_state state = watch_set_state(watches->set, optional->cache);

        has_changed |= state != optional->state;
        optional->state = state;
    }
    return has_changed;
}

/* ---- owners ---- */

/* The next annotation about the job; NULL at the end. */
static const struct kube_pair *next_word(const struct kube_pairs *annotations, unsigned *at)
{
    while (*at < annotations->count) {
        const struct kube_pair *pair = &annotations->at[(*at)++];

        if (str_starts(pair->key, STR(BRIDGE_ANNOTATION_PREFIX)))
            return pair;
    }
    return NULL;
}

static bool say_the_same(const struct kube_pairs *a, const struct kube_pairs *b)
{
    const struct kube_pair *left, *right;
    unsigned i = 0, k = 0;

    do {
        left = next_word(a, &i);
        right = next_word(b, &k);
    } while (left && right && str_eq(left->key, right->key) && str_eq(left->value, right->value));
    return !left && !right;
}

static void on_owner(void *context, const struct kube_object *old, const struct kube_object *next)
{
    struct watches *watches = context;

    watches->on_owner(watches->listener, next ? next : old,
                      old && next && !say_the_same(&old->annotations, &next->annotations));
}

static void on_volume(void *context, const struct kube_object *old, const struct kube_object *next)
{
    struct watches *watches = context;

    (void)old;
    (void)next;
    watches->on_volume(watches->listener);
}

void watches_listen(struct watches *watches, watches_on_owner owner_changed,
                    watches_on_volume volume_changed, void *context)
{
    watches->on_owner = owner_changed;
    watches->on_volume = volume_changed;
    watches->listener = context;
    for (unsigned i = 0; i < KINDS; i++) {
        if (i == JOBS || i == REPLICASETS || i == STATEFULSETS ||
            (i >= ALWAYS && i < ALWAYS + OPTIONAL_DEVICE_CLASSES))
            kube_cache_listen(watches->caches[i], on_owner, watches);
        if (i == CLAIMS || i == VOLUMES)
            kube_cache_listen(watches->caches[i], on_volume, watches);
    }
}

/* ---- for others ---- */

static void no_keys(struct controller *controller, const struct kube_object *old,
                    const struct kube_object *next)
{
    (void)controller;
    (void)old;
    (void)next;
}

unsigned watches_rows(const struct watches *watches, struct controller_watch *ret_rows,
                      unsigned max)
{
    unsigned count = 0;

    for (unsigned i = 0; i < ALWAYS && count < max; i++)
        if (i != PODS && i != NODES)
            ret_rows[count++] = (struct controller_watch){ watches->caches[i], no_keys };
    return count;
}

void watches_add_health(const struct watches *watches, struct health *health)
{
    watch_set_add_health(watches->set, health);
}
