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

enum settle_end {
    SETTLE_FOUND,
    SETTLE_NONE,       /* the server said so */
    SETTLE_UNREADABLE, /* it is there, and cannot be decoded: more reads would tell no more */
};

/* Reads the object until the server has answered; then calls known from the loop with what it has
 * now (NULL unless found). Names are copied. */
typedef void (*settle_known)(void *context, enum settle_end end, const struct kube_object *found);
struct settle_read *settler_read(struct settler *settler, struct kube_cache *cache, const char *ns,
                                 const char *name, settle_known known, void *context);
void settle_read_cancel(struct settle_read *read); /* known is not called */

/* Reads the objects of this cache that are in doubt, a few at a time until there are none, each by
 * one read at a time, and gives the cache what it found. */
void settler_look(struct settler *settler, struct kube_cache *cache);

#endif
