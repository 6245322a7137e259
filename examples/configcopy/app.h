/* app.h - the whole program around the plan: caches, informers, lease, engine.
 *
 * It gets a loop and two transports and knows nothing else of the world, so the same program runs
 * against a cluster (main.c) and in the simulator (tests/sim/sim_configcopy.c). */
#ifndef SLINC_EXAMPLES_CONFIGCOPY_APP_H
#define SLINC_EXAMPLES_CONFIGCOPY_APP_H

#include "configcopy.h"
#include "engine/health.h"
#include "kube/lease.h"

struct app_options {
    const char *source_ns;
    const char *lease_ns, *identity; /* who we are among the replicas */
    uint64_t seed;                   /* of jitter */
    unsigned max_in_flight, page;    /* calls at once, objects per page; 0 = the usual */
};

struct app;

/* The loop and the transports are borrowed. The lease has one of its own, so that no queue of
 * calls can delay a renewal. */
struct app *app_new(struct loop *loop, struct http_transport *api, struct http_transport *lease_api,
                    const struct app_options *options);
void app_start(struct app *app);
void app_free(struct app *app);

bool app_is_leader(const struct app *app);
/* For the frame around it: stopping cleanly, health and metrics (engine/run.h, engine/health.h). */
struct engine *app_engine(const struct app *app);
struct kube_lease *app_lease(const struct app *app);
struct metrics *app_metrics(const struct app *app);
void app_add_health(const struct app *app, struct health *health);

#endif
