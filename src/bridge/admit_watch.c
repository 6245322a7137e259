/* admit_watch.c - the caches of a webhook that runs alone.
 *
 * Holds: JobSets are watched once the API server has said that it knows them; until then their
 * cache is not synced, and no Job can have one above it. */
#include "bridge/admit_watch.h"

#include "base/mem.h"
#include "bridge/kinds.h"
#include "kube/discovery.h"
#include "kube/informer.h"

enum { SECOND_US = 1000000, ASK_US = 10 * SECOND_US };

enum { NAMESPACES, JOBS, JOBSETS, KINDS };

struct admit_watch {
    struct kube_client *client;
    struct rand rand;
    struct kube_cache *caches[KINDS];
    struct kube_informer *informers[KINDS];
    struct kube_discovery *discovery;
    struct loop_timer ask;
};

static void ask_for_jobsets(void *context);

static void on_jobsets(void *context, enum kube_presence presence, const char *message)
{
    struct admit_watch *watch = context;

    if (presence == KUBE_PRESENT)
        kube_informer_start(watch->informers[JOBSETS]);
    else
        loop_timer_start(kube_client_loop(watch->client), &watch->ask, ASK_US, ask_for_jobsets,
                         watch);
}

static void ask_for_jobsets(void *context)
{
    struct admit_watch *watch = context;

    kube_discovery_forget(watch->discovery); /* they may be installed at any time */
    kube_discover(watch->discovery, "jobset.x-k8s.io/v1alpha2", "jobsets", on_jobsets, watch);
}

struct admit_watch *admit_watch_new(struct kube_client *client, uint64_t seed)
{
    static const struct kube_kind *const kinds[KINDS] = { &bridge_namespace_kind, &bridge_job_kind,
                                                          &bridge_jobset_kind };
    struct admit_watch *watch = mem_alloc(sizeof(*watch));

    watch->client = client;
    rand_init(&watch->rand, seed);
    for (unsigned i = 0; i < KINDS; i++) {
        watch->caches[i] = kube_cache_new(kinds[i], loop_clock(kube_client_loop(client)));
        watch->informers[i] = kube_informer_new(client, watch->caches[i], &watch->rand,
                                                &(struct kube_informer_options){ .ns = NULL });
    }
    watch->discovery = kube_discovery_new(client);
    kube_informer_start(watch->informers[NAMESPACES]);
    kube_informer_start(watch->informers[JOBS]);
    ask_for_jobsets(watch);
    return watch;
}

void admit_watch_free(struct admit_watch *watch)
{
    if (!watch)
        return;
    loop_timer_stop(&watch->ask);
    kube_discovery_free(watch->discovery);
    for (unsigned i = 0; i < KINDS; i++) {
        kube_informer_free(watch->informers[i]);
        kube_cache_free(watch->caches[i]);
    }
    mem_free(watch);
}

struct admit_caches admit_watch_caches(const struct admit_watch *watch)
{
    return (struct admit_caches){ .namespaces = watch->caches[NAMESPACES],
                                  .jobs = watch->caches[JOBS],
                                  .jobsets = watch->caches[JOBSETS] };
}

void admit_watch_add_health(const struct admit_watch *watch, struct health *health)
{
    health_watch(health, watch->caches[NAMESPACES], watch->informers[NAMESPACES], 0);
    health_watch(health, watch->caches[JOBS], watch->informers[JOBS], 0);
}
