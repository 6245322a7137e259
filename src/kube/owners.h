/* owners.h - owner references: which object controls another.
 *
 * The garbage collector deletes what an object owns when the object goes. One of the owners is the
 * controller; it alone may change the object. */
#ifndef SLINC_KUBE_OWNERS_H
#define SLINC_KUBE_OWNERS_H

#include "kube/cache.h"

/* A reference to the owner as the controller, with blockOwnerDeletion. */
struct json_mut *kube_owner_reference(struct json_build *build, const struct kube_object *owner);

/* The same for one owner among several: it does not control the object. */
struct json_mut *kube_shared_owner_reference(struct json_build *build,
                                             const struct kube_object *owner);

/* Whether this very object (by UID) controls the child. */
bool kube_is_controlled_by(const struct kube_object *child, const struct kube_object *owner);

/* Keys for kube_cache_add_index: objects by the UID of their controller; "": nobody controls it. */
void kube_index_by_owner(const struct kube_object *object, kube_index_emit emit, void *context);

#endif
