/* watches.c - all that the bridge watches of Kubernetes, as one table.
 *
 * Holds: of pods the server picks out which are ours, so that those of others lie in a cache of
 * their own; an optional kind counts as present when it has been read, and never again as absent.
 */
#include "bridge/watches.h"

#include "base/log.h"
#include "base/mem.h"
#include "bridge/admit.h"
#include "bridge/kinds_volume.h"
#include "bridge/names.h"
#include "kube/discovery.h"

#include <stdio.h>

enum {
    ALWAYS = 11, /* kinds that every server has */
    KINDS = ALWAYS + OPTIONAL_KINDS,
    LOOK_FOR_KINDS_US = 60000000, /* definitions get installed while we run */
    RETRY_US = 1000000,
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
    CLASSES,
    CSI_NODES
};

struct watched {
    struct watches *watches;
    struct kube_cache *cache;
    struct kube_informer *informer;
    bool is_started, is_absent;
    enum optional_kind kind; /* of optional ones */
};

struct watches {
    struct kube_client *client;
    struct bridge_world *world;
    struct loop *loop;
    struct kube_discovery *discovery;
    struct loop_timer again;
    struct watched kinds[KINDS];
    watches_words words;
    void *words_context;
};

static const struct {
    const struct kube_kind *kind;
    const char *selector; /* of fields: our scheduler's name follows */
} rows[KINDS] = {
    [PODS] = { &kube_pod_kind, "spec.schedulerName=" },
    [OTHER_PODS] = { &kube_pod_kind, "spec.schedulerName!=" },
    [NODES] = { &kube_node_kind, NULL },
    [JOBS] = { &bridge_job_kind, NULL },
    [REPLICASETS] = { &bridge_replicaset_kind, NULL },
    [STATEFULSETS] = { &bridge_statefulset_kind, NULL },
    [NAMESPACES] = { &bridge_namespace_kind, NULL },
    [CLAIMS] = { &bridge_claim_kind, NULL },
    [VOLUMES] = { &bridge_volume_kind, NULL },
    [CLASSES] = { &bridge_storage_class_kind, NULL },
    [CSI_NODES] = { &bridge_csi_node_kind, NULL },
    [ALWAYS + OPTIONAL_PODGROUPS] = { &bridge_podgroup_kind, NULL },
    [ALWAYS + OPTIONAL_WORKLOADS] = { &bridge_workload_kind, NULL },
    [ALWAYS + OPTIONAL_COSCHEDULING] = { &bridge_coscheduling_kind, NULL },
    [ALWAYS + OPTIONAL_LWS] = { &bridge_lws_kind, NULL },
    [ALWAYS + OPTIONAL_JOBSETS] = { &bridge_jobset_kind, NULL },
};

/* ---- making ---- */

static void fill_world(struct watches *watches)
{
    struct bridge_world *world = watches->world;
    struct watched *at = watches->kinds;

    world->other_pods = at[OTHER_PODS].cache;
    world->pods = at[PODS].cache;
    world->nodes = at[NODES].cache;
    world->namespaces = at[NAMESPACES].cache;
    world->jobs = at[JOBS].cache;
    world->replicasets = at[REPLICASETS].cache;
    world->statefulsets = at[STATEFULSETS].cache;
    for (unsigned i = 0; i < OPTIONAL_KINDS; i++) {
        at[ALWAYS + i].kind = (enum optional_kind)i;
        world->optional[i] = (struct optional){ .cache = at[ALWAYS + i].cache };
    }
    world->eligible = eligible_new(
        &(struct eligible_caches){ .pods = at[PODS].cache,
                                   .other_pods = at[OTHER_PODS].cache,
                                   .nodes = at[NODES].cache,
                                   .namespaces = at[NAMESPACES].cache,
                                   .claims = at[CLAIMS].cache,
                                   .volumes = at[VOLUMES].cache,
                                   .classes = at[CLASSES].cache,
                                   .csi_nodes = at[CSI_NODES].cache,
                                   .clock = loop_clock(kube_client_loop(watches->client)) },
        world->config->scheduler_name);
    world_add_indexes(world);
}

struct watches *watches_new(struct kube_client *client, struct rand *rand,
                            struct bridge_world *world, unsigned page)
{
    struct watches *watches = mem_alloc(sizeof(*watches));
    const struct clock *clock = loop_clock(kube_client_loop(client));
    char selector[MAX_SELECTOR];

    watches->client = client;
    watches->world = world;
    watches->discovery = kube_discovery_new(client);
    for (unsigned i = 0; i < KINDS; i++) {
        struct watched *watched = &watches->kinds[i];

        (void)snprintf(selector, sizeof(selector), "%s%s", rows[i].selector ? rows[i].selector : "",
                       world->config->scheduler_name);
        watched->watches = watches;
        watched->cache = kube_cache_new(rows[i].kind, clock);
        watched->informer = kube_informer_new(
            client, watched->cache, rand,
            &(struct kube_informer_options){ .field_selector = rows[i].selector ? selector : NULL,
                                             .page = page });
    }
    fill_world(watches);
    return watches;
}

void watches_stop(struct watches *watches)
{
    loop_timer_stop(&watches->again);
    kube_discovery_free(watches->discovery);
    watches->discovery = NULL;
    for (unsigned i = 0; i < KINDS; i++) {
        kube_informer_free(watches->kinds[i].informer);
        watches->kinds[i].informer = NULL;
    }
}

void watches_free(struct watches *watches)
{
    eligible_free(watches->world->eligible);
    watches->world->eligible = NULL;
    for (unsigned i = 0; i < KINDS; i++)
        kube_cache_free(watches->kinds[i].cache);
    mem_free(watches);
}

/* ---- kinds that not every server has ---- */

static void start(struct watched *watched)
{
    watched->is_started = true;
    kube_informer_start(watched->informer);
}

static void look_for_kinds(void *context);

static void look_again(struct watches *watches, int64_t pause_us)
{
    if (!loop_timer_is_armed(&watches->again))
        loop_timer_start(watches->loop, &watches->again, pause_us, look_for_kinds, watches);
}

static void on_discovered(void *context, enum kube_presence presence, const char *message)
{
    struct watched *watched = context;
    const struct kube_resource *kind = kube_cache_kind(watched->cache)->resource;

    switch (presence) {
    case KUBE_PRESENT:
        log_info("this cluster has it", LOG_TEXT("kind", kind->kind),
                 LOG_TEXT("group", kind->group));
        start(watched);
        break;
    case KUBE_ABSENT:
        watched->is_absent = true;
        look_again(watched->watches, LOOK_FOR_KINDS_US);
        break;
    case KUBE_CANNOT_ASK:
        log_warn("cannot ask the API server for a kind", LOG_TEXT("kind", kind->kind),
                 LOG_TEXT("error", message));
        look_again(watched->watches, RETRY_US);
        break;
    }
}

static void look_for_kinds(void *context)
{
    struct watches *watches = context;

    for (unsigned i = ALWAYS; i < KINDS; i++) {
        const struct kube_resource *kind = rows[i].kind->resource;
        char group_version[MAX_SELECTOR];

        if (watches->kinds[i].is_started)
            continue;
        (void)snprintf(group_version, sizeof(group_version), "%s/%s", kind->group, kind->version);
        kube_discover(watches->discovery, group_version, kind->plural, on_discovered,
                      &watches->kinds[i]);
    }
}

bool watches_refresh(struct watches *watches)
{
    bool has_changed = false;

    for (unsigned i = 0; i < OPTIONAL_KINDS; i++) {
        const struct watched *watched = &watches->kinds[ALWAYS + i];
        struct optional *optional = &watches->world->optional[i];
        struct optional now = *optional;

        if (watched->is_started)
            now.state = kube_cache_is_synced(watched->cache) ? OPTIONAL_PRESENT : OPTIONAL_UNKNOWN;
        else
            now.state = watched->is_absent ? OPTIONAL_ABSENT : OPTIONAL_UNKNOWN;
        has_changed |= now.state != optional->state;
        *optional = now;
    }
    return has_changed;
}

void watches_start(struct watches *watches, struct loop *loop)
{
    watches->loop = loop;
    for (unsigned i = 0; i < ALWAYS; i++)
        start(&watches->kinds[i]);
    look_for_kinds(watches);
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

/* What a new owner says is read with its pods, which come after it. */
static void on_owner(void *context, const struct kube_object *old, const struct kube_object *next)
{
    struct watches *watches = context;

    if (old && next && watches->words && !say_the_same(&old->annotations, &next->annotations))
        watches->words(watches->words_context, next);
}

void watches_listen(struct watches *watches, watches_words words, void *context)
{
    watches->words = words;
    watches->words_context = context;
    for (unsigned i = 0; i < KINDS; i++)
        if (i == JOBS || i == REPLICASETS || i == STATEFULSETS || i >= ALWAYS)
            kube_cache_listen(watches->kinds[i].cache, on_owner, watches);
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
            ret_rows[count++] = (struct controller_watch){ watches->kinds[i].cache, no_keys };
    return count;
}

struct kube_cache *watches_namespaces(const struct watches *watches)
{
    return watches->kinds[NAMESPACES].cache;
}

/* An optional kind that is not there says nothing about our health. */
void watches_add_health(const struct watches *watches, struct health *health)
{
    for (unsigned i = 0; i < ALWAYS; i++)
        health_watch(health, watches->kinds[i].cache, watches->kinds[i].informer, 0);
}
