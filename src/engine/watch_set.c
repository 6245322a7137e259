/* watch_set.c - starts informers, and looks for kinds that may not be there. */
#include "engine/watch_set.h"

#include "base/log.h"
#include "base/mem.h"
#include "kube/discovery.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    LOOK_FOR_KINDS_US = 10000000, /* definitions get installed while we run */
    RETRY_US = 1000000,
    REPORT_US = 10000000,
    MAX_GROUP_VERSION = 300,
};

struct watched {
    struct watch_set *set;
    struct watch_row row;
    struct kube_informer *informer;
    bool is_started, is_absent;
    bool cannot_ask;  /* for it, by the last answer */
    bool had_error;   /* at the last look of report */
    bool is_reported; /* as one with an error */
    uint64_t undecoded;
};

struct watch_set {
    struct loop *loop;
    struct kube_discovery *discovery;
    struct loop_timer again, report;
    struct watched watched[WATCH_SET_MAX];
    unsigned count;
};

static const struct kube_resource *resource_of(const struct watched *watched)
{
    return kube_cache_kind(watched->row.cache)->resource;
}

struct watch_set *watch_set_new(struct kube_client *client, struct rand *rand,
                                const struct watch_row *rows, unsigned count,
                                const char *const *namespaces, unsigned namespace_count,
                                unsigned page)
{
    struct watch_set *set = mem_alloc(sizeof(*set));

    if (count > WATCH_SET_MAX) {
        (void)fprintf(stderr, "watch_set: more than %d kinds\n", WATCH_SET_MAX);
        abort();
    }
    set->loop = kube_client_loop(client);
    set->discovery = kube_discovery_new(client);
    set->count = count;
    for (unsigned i = 0; i < count; i++) {
        const struct kube_informer_options options = { .namespaces = namespaces,
                                                       .namespace_count = namespace_count,
                                                       .label_selector = rows[i].label_selector,
                                                       .field_selector = rows[i].field_selector,
                                                       .page = page };

        set->watched[i] = (struct watched){
            .set = set,
            .row = rows[i],
            .informer = kube_informer_new(client, rows[i].cache, rand, &options),
        };
    }
    return set;
}

void watch_set_free(struct watch_set *set)
{
    if (!set)
        return;
    loop_timer_stop(&set->again);
    loop_timer_stop(&set->report);
    kube_discovery_free(set->discovery);
    for (unsigned i = 0; i < set->count; i++)
        kube_informer_free(set->watched[i].informer);
    mem_free(set);
}

/* ---- kinds that not every server has ---- */

static void start(struct watched *watched)
{
    watched->is_started = true;
    watched->is_absent = false;
    kube_informer_start(watched->informer);
}

static void look_for_kinds(void *context);

static void on_discovered(void *context, enum kube_presence presence, const char *message)
{
    struct watched *watched = context;
    struct watch_set *set = watched->set;
    const struct kube_resource *kind = resource_of(watched);
    bool could_ask = !watched->cannot_ask;

    watched->cannot_ask = presence == KUBE_CANNOT_ASK;
    switch (presence) {
    case KUBE_PRESENT:
        log_info("the API server has this kind", LOG_TEXT("kind", kind->kind),
                 LOG_TEXT("group", kind->group));
        start(watched);
        break;
    case KUBE_ABSENT:
        watched->is_absent = true;
        if (!loop_timer_is_armed(&set->again))
            loop_timer_start(set->loop, &set->again, LOOK_FOR_KINDS_US, look_for_kinds, set);
        break;
    case KUBE_CANNOT_ASK:
        if (could_ask)
            log_warn("cannot ask the API server for a kind", LOG_TEXT("kind", kind->kind),
                     LOG_TEXT("error", message));
        loop_timer_start(set->loop, &set->again, RETRY_US, look_for_kinds, set);
        break;
    }
}

static void look_for_kinds(void *context)
{
    struct watch_set *set = context;

    for (unsigned i = 0; i < set->count; i++) {
        const struct kube_resource *kind = resource_of(&set->watched[i]);
        char group_version[MAX_GROUP_VERSION];

        if (set->watched[i].is_started)
            continue;
        (void)snprintf(group_version, sizeof(group_version), "%s/%s", kind->group, kind->version);
        kube_discover(set->discovery, group_version, kind->plural, on_discovered, &set->watched[i]);
    }
}

/* ---- what people should know ---- */

/* An error is worth a line when it is still there at the next look: most streams break and are
 * mended in between. */
static void report_error(struct watched *watched)
{
    const char *error = kube_informer_last_error(watched->informer);
    bool has_error = error[0] != '\0';

    if (has_error && watched->had_error && !watched->is_reported)
        log_warn("a kind cannot be watched", LOG_TEXT("kind", resource_of(watched)->kind),
                 LOG_TEXT("error", error));
    if (!has_error && watched->is_reported)
        log_info("a kind is watched again", LOG_TEXT("kind", resource_of(watched)->kind));
    watched->is_reported = has_error && (watched->is_reported || watched->had_error);
    watched->had_error = has_error;
}

static void report_undecoded(struct watched *watched)
{
    uint64_t undecoded = kube_informer_undecoded(watched->informer);

    if (undecoded > watched->undecoded)
        log_warn("objects cannot be decoded; the cache keeps what it had of them",
                 LOG_TEXT("kind", resource_of(watched)->kind),
                 LOG_U64("objects", undecoded - watched->undecoded));
    watched->undecoded = undecoded;
}

static void report(void *context)
{
    struct watch_set *set = context;

    for (unsigned i = 0; i < set->count; i++) {
        report_error(&set->watched[i]);
        report_undecoded(&set->watched[i]);
    }
    loop_timer_start(set->loop, &set->report, REPORT_US, report, set);
}

void watch_set_start(struct watch_set *set)
{
    for (unsigned i = 0; i < set->count; i++)
        if (!set->watched[i].row.is_optional)
            start(&set->watched[i]);
    look_for_kinds(set);
    loop_timer_start(set->loop, &set->report, REPORT_US, report, set);
}

enum watch_state watch_set_state(const struct watch_set *set, const struct kube_cache *cache)
{
    for (unsigned i = 0; i < set->count; i++) {
        const struct watched *watched = &set->watched[i];

        if (watched->row.cache != cache)
            continue;
        if (watched->is_absent)
            return WATCH_ABSENT;
        return watched->is_started && kube_cache_is_synced(cache) ? WATCH_PRESENT : WATCH_UNKNOWN;
    }
    return WATCH_ABSENT;
}

void watch_set_add_health(const struct watch_set *set, struct health *health)
{
    for (unsigned i = 0; i < set->count; i++)
        if (set->watched[i].row.is_optional)
            health_watch_optional(health, set->watched[i].row.cache, set->watched[i].informer);
        else
            health_watch(health, set->watched[i].row.cache, set->watched[i].informer, 0);
}
