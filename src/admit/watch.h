/* watch.h - what the webhook reads of the cluster when no bridge runs beside it: namespaces, and
 * the objects whose annotations count for pods, of those kinds that the cluster has. */
#ifndef SLINC_ADMIT_WATCH_H
#define SLINC_ADMIT_WATCH_H

#include "admit/admit.h"
#include "engine/health.h"
#include "kube/client.h"

struct admit_watch;

/* The client is borrowed. Begins at once. */
struct admit_watch *admit_watch_new(struct kube_client *client, uint64_t seed);
void admit_watch_free(struct admit_watch *watch);

/* Namespaces and whatever may own a pod; nothing else of the world is filled. */
const struct bridge_world *admit_watch_world(const struct admit_watch *watch);
void admit_watch_add_health(const struct admit_watch *watch, struct health *health);

/* Asks the API server who we are to it, so that the webhook knows the bridge's own updates; and
 * again every few seconds until there is an answer, which goes to admit_trust. All replicas of a
 * bridge run as one account. A webhook that runs as another is told the bridge's by
 * admit_trust_also. All are borrowed and outlive it. */
struct admit_self;
struct admit_self *admit_self_new(struct kube_client *client, struct admit *admit);
void admit_self_free(struct admit_self *self);

#endif
