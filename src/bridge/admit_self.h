/* admit_self.h - asks the API server who we are to it, so that the webhook knows the bridge's own
 * updates.
 *
 * All replicas of a bridge run as one account. A webhook that runs as another is told the bridge's
 * by admit_trust_also. */
#ifndef SLINC_BRIDGE_ADMIT_SELF_H
#define SLINC_BRIDGE_ADMIT_SELF_H

#include "bridge/admit.h"
#include "kube/client.h"

struct admit_self;

/* Asks, and again every few seconds until there is an answer, which goes to admit_trust. All are
 * borrowed and outlive it. */
struct admit_self *admit_self_new(struct kube_client *client, struct admit *admit);
void admit_self_free(struct admit_self *self);

#endif
