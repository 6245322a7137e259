/* admit_watch.c - the caches of a webhook that runs alone.
 *
 * Holds: JobSets are watched once the API server has said that it knows them; until then their
 * cache is not synced, and no Job can have one above it. */
#include "bridge/admit_watch.h"

#include "base/mem.h"
#include "bridge/kinds.h"
#include "engine/watch_set.h"

enum { NAMESPACES, JOBS, JOBSETS, KINDS };

struct admit_watch {
    struct rand rand;
    struct kube_cache *caches[KINDS];
    struct watch_set *set;
};

struct admit_watch *admit_watch_new(struct kube_client *client, uint64_t seed)
{
    static const struct kube_kind *const kinds[KINDS] = { &bridge_namespace_kind, &bridge_job_kind,
                                                          &bridge_jobset_kind };
    struct admit_watch *watch = mem_alloc(sizeof(*watch));
    struct watch_row rows[KINDS] = { [JOBSETS] = { .is_optional = true } };

    rand_init(&watch->rand, seed);
    for (unsigned i = 0; i < KINDS; i++)
        rows[i].cache = watch->caches[i] =
            kube_cache_new(kinds[i], loop_clock(kube_client_loop(client)));
    watch->set = watch_set_new(client, &watch->rand, rows, KINDS, NULL, 0, 0);
    watch_set_start(watch->set);
    return watch;
}

void admit_watch_free(struct admit_watch *watch)
{
    if (!watch)
        return;
    watch_set_free(watch->set);
    for (unsigned i = 0; i < KINDS; i++)
        kube_cache_free(watch->caches[i]);
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
    watch_set_add_health(watch->set, health);
}
