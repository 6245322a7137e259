/* health.h - what the process answers when it is asked how it is.
 *
 *     /healthz, /livez   200 while the loop turns
 *     /readyz            200, or 503 with one line per check that fails; ?verbose lists all,
 *                        ?exclude=NAME leaves one of the caller's checks out
 *     /metrics           Prometheus text
 *     /version           the program's version as JSON, and that of the Slurm it talks to
 *     /debug/state       caches, controllers and keys as JSON, and parts of the caller's
 *
 * Probes need the first three alone; the last one is for those who may (kube/guard.h).
 *
 * Not holding the lease does not make a process unready: the one in reserve is ready too. */
#ifndef SLINC_ENGINE_HEALTH_H
#define SLINC_ENGINE_HEALTH_H

#include "engine/engine.h"
#include "io/http_server.h"
#include "kube/reader.h"

enum {
    HEALTH_ROUTES = 3,
    HEALTH_METRICS_ROUTES = 2,
    HEALTH_MAX_CHECKS = 64,
    HEALTH_MAX_PARTS = 8,
    HEALTH_SILENCE_US = 150000000, /* bookmarks come about once a minute */
};

struct health;

/* All are borrowed and outlive it; engine may be NULL. Feeds slinc_cache_* of watched caches. */
struct health *health_new(struct loop *loop, struct metrics *metrics, struct engine *engine);
void health_free(struct health *health);

/* Unready while the cache is not synced or nothing was heard for longer than limit_us (0 =
 * HEALTH_SILENCE_US). */
void health_watch(struct health *health, const struct kube_cache *cache,
                  const struct kube_informer *informer, int64_t limit_us);
/* The same without making unready: it is shown, and measured from when its informer starts. */
void health_watch_optional(struct health *health, const struct kube_cache *cache,
                           const struct kube_informer *informer);
/* A cache whose objects are read by name. */
void health_watch_reader(struct health *health, const struct kube_cache *cache,
                         const struct kube_reader *reader);
/* A check of the caller's: says why in `why` when it fails. name is borrowed. */
void health_check(struct health *health, const char *name,
                  bool (*check)(void *context, struct buf *why), void *context);

/* A part of /debug/state of the caller's: writes one JSON value. name is borrowed. */
void health_show(struct health *health, const char *name,
                 void (*write)(void *context, struct buf *out), void *context);

/* What /version and the metric slinc_build_info say; borrowed. */
void health_version(struct health *health, const char *version);
/* What /version says of Slurm; borrowed: a text that the caller may change, "" while unknown. */
void health_slurm(struct health *health, const char *slurm);

/* From now on unready: load balancers should look elsewhere. */
void health_stopping(struct health *health);

/* Appends one line per failing check (all of them when verbose). */
bool health_is_ready(const struct health *health, bool verbose, struct buf *out);
void health_write_state(const struct health *health, struct buf *out);

/* The rows for http_server_options.routes: those of probes; /metrics and /version; /debug/state. */
void health_routes(struct health *health, struct http_route ret_routes[HEALTH_ROUTES]);
void health_metrics_routes(struct health *health,
                           struct http_route ret_routes[HEALTH_METRICS_ROUTES]);
struct http_route health_state_route(struct health *health);

#endif
