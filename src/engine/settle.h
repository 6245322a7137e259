/* settle.h - direct reads of objects of which we do not know what the server has.
 *
 * Two cases: a write that got no clear answer, whose key must not be planned before the truth is
 * known; and a write whose effect the watch has not shown in time. Private to the layer. */
#ifndef SLINC_ENGINE_SETTLE_H
#define SLINC_ENGINE_SETTLE_H

#include "base/rand.h"
#include "kube/cache.h"
#include "kube/client.h"

struct settler;
struct settle_read;

struct settler *settler_new(struct kube_client *client, struct rand *rand);
void settler_free(struct settler *settler); /* ends all reads without a callback */

/* Reads the object until the server has answered, and gives the cache what it found; then calls
 * known, from the loop. Everything but known's context is copied or outlives the settler. */
struct settle_read *settler_read(struct settler *settler, struct kube_cache *cache, const char *ns,
                                 const char *name, void (*known)(void *context), void *context);
void settle_read_cancel(struct settle_read *read); /* known is not called */

/* Begins to read the first object of this cache whose overlay is in doubt, and so on until there
 * is none. Does nothing while such a read is under way. */
void settler_look(struct settler *settler, struct kube_cache *cache);

#endif
