/* discovery.h - does the API server have this group, version and resource?
 *
 * "Absent" is a fact (it said 404); "cannot ask" is not one, and nothing may be concluded from it.
 * What is present is remembered for good, what is absent for ten seconds: definitions get installed
 * while we run. Asking twice at once asks the server once. */
#ifndef SLINC_KUBE_DISCOVERY_H
#define SLINC_KUBE_DISCOVERY_H

#include "kube/client.h"

enum kube_presence { KUBE_PRESENT, KUBE_ABSENT, KUBE_CANNOT_ASK };

struct kube_discovery;

/* message: why it could not be asked; "" otherwise. */
typedef void (*kube_discovered)(void *context, enum kube_presence presence, const char *message);

/* The client is borrowed and outlives it. */
struct kube_discovery *kube_discovery_new(struct kube_client *client);
void kube_discovery_free(struct kube_discovery *discovery); /* open questions end unanswered */

/* group_version: "v1", "resource.k8s.io/v1". plural: "resourceclaims"; NULL asks for the group and
 * version alone. done is called once, from the loop. */
void kube_discover(struct kube_discovery *discovery, const char *group_version, const char *plural,
                   kube_discovered done, void *context);

#endif
