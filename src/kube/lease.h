/* lease.h - who may act: leader election by a coordination.k8s.io Lease.
 *
 * Times are those of the field: a lease lasts 15 s, the holder renews every 2 s and stops acting
 * when it could not renew for 10 s, so that it has stopped before anyone else may take it. Whether
 * we hold it is asked at the moment of sending (kube_lease_is_held), not told by a timer alone. A
 * lease held by another is taken when its record has not changed for 15 s of our own clock (clocks
 * of two machines are never compared). */
#ifndef SLINC_KUBE_LEASE_H
#define SLINC_KUBE_LEASE_H

#include "base/rand.h"
#include "kube/client.h"

struct kube_lease_options {
    const char *ns, *name;
    const char *identity; /* of this process alone: with a random part, not the host's name only */
    int64_t duration_us, renew_deadline_us, retry_us; /* 0 = 15 s, 10 s, 2 s; a deadline that is
                                                         not below the duration is lowered */
};

struct kube_lease;

/* The client should have a transport of its own, so that a queue of calls cannot delay a renewal.
 */
struct kube_lease *kube_lease_new(struct kube_client *client, struct rand *rand,
                                  const struct kube_lease_options *options);
void kube_lease_start(struct kube_lease *lease, void (*changed)(void *context, bool held),
                      void *context);
/* trouble is called when the reason changes why the lease can be neither had nor kept, and with ""
 * when that is over. That another holds it is no trouble. It must not free the lease. */
void kube_lease_on_trouble(struct kube_lease *lease,
                           void (*trouble)(void *context, const char *error), void *context);
bool kube_lease_is_held(const struct kube_lease *lease); /* now, by the monotonic clock */
/* Whether the lease that we hold was given up by whoever had it before us, so that nothing of
 * theirs is under way any more. False when it had expired (by a pause of our own too), when there
 * was none, and when we do not hold it. */
bool kube_lease_was_released(const struct kube_lease *lease);
/* Gives it up so that another may take it at once. From here on it is not held (changed is not
 * called for that); done is called from the loop when the release is written or failed. */
void kube_lease_release(struct kube_lease *lease, void (*done)(void *context), void *context);
/* How far the API server's clock is ahead of ours, to the second, by when it says that it took our
 * last renewal; false while that is not known. */
bool kube_lease_skew(const struct kube_lease *lease, int64_t *ret_skew_us);
void kube_lease_free(struct kube_lease *lease);

#endif
