/* admit_watch.h - what the webhook reads of the cluster when no bridge runs beside it: namespaces,
 * Jobs, and JobSets where the cluster has them. */
#ifndef SLINC_BRIDGE_ADMIT_WATCH_H
#define SLINC_BRIDGE_ADMIT_WATCH_H

#include "bridge/admit.h"
#include "engine/health.h"
#include "kube/client.h"

struct admit_watch;

/* The client is borrowed. Begins at once. */
struct admit_watch *admit_watch_new(struct kube_client *client, uint64_t seed);
void admit_watch_free(struct admit_watch *watch);

struct admit_caches admit_watch_caches(const struct admit_watch *watch);
void admit_watch_add_health(const struct admit_watch *watch, struct health *health);

#endif
