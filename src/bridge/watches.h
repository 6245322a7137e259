/* watches.h - all that the bridge watches of Kubernetes: caches and the informers that fill them.
 *
 * Some kinds every server has; plans begin when these have been read. Others come and go with what
 * is installed: they are looked for now and then, and absent is a fact like any other. */
#ifndef SLINC_BRIDGE_WATCHES_H
#define SLINC_BRIDGE_WATCHES_H

#include "bridge/world/world.h"
#include "engine/engine.h"
#include "engine/health.h"

struct watches;

/* Makes the caches of the world. All are borrowed and outlive it. */
struct watches *watches_new(struct kube_client *client, struct rand *rand,
                            struct bridge_world *world, unsigned page);
void watches_start(struct watches *watches);
void watches_stop(struct watches *watches); /* no cache changes any more */
void watches_free(struct watches *watches); /* the caches, too */

/* Writes the state of the optional kinds into the world. True: a state has changed, so pods may
 * belong to other units now. */
bool watches_refresh(struct watches *watches);

/* Caches that must have been read before anything is planned, beside those that a controller
 * watches itself: adds a row each, with a map that brings no keys. How many. */
unsigned watches_rows(const struct watches *watches, struct controller_watch *rows, unsigned max);

/* Called when a Job, JobSet, ReplicaSet, StatefulSet or group comes, goes or changes.
 * says_otherwise: its slurmjob.slinky.slurm.net/ annotations changed, and its pods do not change
 * with it. */
typedef void (*watches_on_owner)(void *context, const struct kube_object *owner,
                                 bool says_otherwise);
/* Called when a PersistentVolume or a claim for one changes. */
typedef void (*watches_on_volume)(void *context);
/* Set once, before watches_start. */
void watches_listen(struct watches *watches, watches_on_owner on_owner, watches_on_volume on_volume,
                    void *context);

void watches_add_health(const struct watches *watches, struct health *health);

#endif
