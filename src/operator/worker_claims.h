/* worker_claims.h - the PersistentVolumeClaims of a worker: one for each of
 * spec.volumeClaimTemplates.
 *
 * spec.persistentVolumeClaimRetentionPolicy says when they are deleted. The garbage collector does
 * it, so the policy is a matter of owner references: the NodeSet's for whenDeleted, the pod's for
 * whenScaled. A pod becomes the owner only when it is condemned by scale-in; a worker that is
 * replaced, or whose Node is cordoned, keeps its claim. */
#ifndef SLINC_OPERATOR_WORKER_CLAIMS_H
#define SLINC_OPERATOR_WORKER_CLAIMS_H

#include "operator/worker_identity.h"

/* The name of the claim for one item of spec.volumeClaimTemplates. */
const char *worker_claim_name(struct arena *arena, const struct kube_object *nodeset,
                              const struct json *claim_template,
                              const struct worker_identity *identity);

/* The claim to create, with its owner. */
struct json_mut *worker_claim(struct json_build *build, struct arena *arena,
                              const struct kube_object *nodeset, const struct json *claim_template,
                              const struct worker_identity *identity);

/* The volumes of the pod that mount them, in the order of the templates. */
struct json_mut *worker_claim_volumes(struct json_build *build, struct arena *arena,
                                      const struct kube_object *nodeset,
                                      const struct worker_identity *identity);

/* Whether the pod can be created. False: the claim *ret_name is being deleted, or the garbage
 * collector is about to delete it, because the pod or the NodeSet that owned it is gone. */
bool worker_claims_allow(const struct operator_world *world, struct arena *arena,
                         const struct kube_object *nodeset, const struct worker_identity *identity,
                         const char **ret_name);

/* Whether this claim, which the pod mounts, was made from one of the templates. It is the pod that
 * says which claims it has: a changed ordinalPadding gives other names to new pods only. */
bool worker_owns_claim(const struct kube_object *nodeset, const struct kube_pod *pod,
                       const char *claim_name);

enum worker_claim_state {
    CLAIM_RIGHT,    /* nothing to do */
    CLAIM_REOWN,    /* ret_patch: a merge patch of metadata.ownerReferences */
    CLAIM_CONFLICT, /* another object controls it: the patch takes our references away; may be NULL
                     */
    CLAIM_STALE,    /* belonged to a NodeSet or a pod of this name that is gone: left alone */
};

/* The owners that a live claim should have. is_condemned: by scale-in. */
enum worker_claim_state worker_claim_owners(struct json_build *build,
                                            const struct kube_object *nodeset,
                                            const struct kube_object *pod, bool is_condemned,
                                            const struct kube_object *claim,
                                            struct json_mut **ret_patch);

#endif
