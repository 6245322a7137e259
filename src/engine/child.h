/* child.h - one object that another object owns: created, adopted, or brought back to what we want.
 *
 * A child is described whole, as it would be created. Of a child that exists we change only the
 * fields that its kind's row in child.c names; whatever else stands there belongs to the server or
 * to others. Labels and annotations are added and changed, never removed.
 *
 * The label CHILD_STAMP holds a hash of what we last wrote. (A label: another annotation would
 * count as a new generation of a Deployment.) It tells a field that we no longer want from one that
 * the server filled in:
 *
 *   no child                        it is created
 *   the same hash, all is covered   nothing is written
 *   another hash                    our fields are replaced as a whole
 *   the same hash, not covered      the same, and the label becomes "<hash>-<state>": the child's
 *                                   generation, or a hash of our fields where it has none
 *   "<hash>-<state>", not covered, and still in that state
 *                                   nothing is written: the server does not keep what we want (an
 *                                   unknown field, a closed feature gate). Drift has another state
 *   no hash, all is covered         only the hash is written: a child of another operator is taken
 *                                   over without a change of its generation
 *   no hash, not covered            our fields are replaced as a whole
 *
 * "Covered" is json_covers (codec/covers.h). */
#ifndef SLINC_ENGINE_CHILD_H
#define SLINC_ENGINE_CHILD_H

#include "engine/plan.h"
#include "kube/owners.h"

#define CHILD_STAMP "slinc.slurm.net/last-applied"

/* Adds the action that is needed, if any. `wanted` names itself in metadata.name and lives in the
 * owner's namespace; a null in a map of keys (ConfigMap and Secret data) means that the key must be
 * absent. Never touches a child that is being deleted, or a ConfigMap or Secret that is immutable.
 * -ERR_CONFLICT when the child is controlled by another object. */
int plan_child(struct plan *plan, struct kube_cache *cache, const struct kube_object *owner,
               const struct json_mut *wanted, struct err *err);

/* The same for an object that several owners share: each is an owner, none is the controller, and
 * the garbage collector deletes it with the last of them. owners: all of one kind and namespace, at
 * least one, sorted by name. References to other objects of that kind go, those to other kinds
 * stay. */
int plan_shared_child(struct plan *plan, struct kube_cache *cache,
                      const struct kube_object *const *owners, size_t owner_count,
                      const struct json_mut *wanted, struct err *err);

/* Deletes the child of this name when the owner controls it. */
void plan_child_absent(struct plan *plan, struct kube_cache *cache, const struct kube_object *owner,
                       const char *name);

#endif
