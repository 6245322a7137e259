/* nodeset_revision.h - which ControllerRevision the workers of a NodeSet should have.
 *
 * A revision holds the part of the NodeSet that needs new pods when it changes: template, slurmd,
 * logfile, ssh, extraConf, ordinalPadding, oversubscribeNode. Its bytes are those of the Slinky
 * operator (the typed objects of Kubernetes written as JSON with sorted keys), and so is its hash.
 *
 * A stored revision that means the same as the wanted one is kept, whatever its bytes: labels of
 * charts do not count, nor do fields that say nothing ({}, "", false where false is the default).
 * So neither a new version of a chart nor a take-over replaces a worker. */
#ifndef SLINC_OPERATOR_NODESET_REVISION_H
#define SLINC_OPERATOR_NODESET_REVISION_H

#include "base/arena.h"
#include "kube/cache.h"
#include "operator/kinds.h"

enum { NODESET_MAX_REVISIONS = 256, REVISION_HASH_MAX = 16 };

struct nodeset_revision {
    char hash[REVISION_HASH_MAX];     /* label of pods and of the ControllerRevision, status */
    const char *mounted;              /* nodeset_mounted.h; NULL: it is no part of it */
    const char *name;                 /* of the ControllerRevision; in the arena */
    int64_t number;                   /* that it should have: the highest of all */
    int64_t collision_count;          /* for the status */
    const struct kube_object *stored; /* the ControllerRevision that exists; NULL: create it */
    /* All stored ones that mean the same: a pod with any of these hashes is up to date. */
    const struct kube_object *equal[NODESET_MAX_REVISIONS];
    struct str equal_hashes[NODESET_MAX_REVISIONS];
    size_t equal_count;
};

/* revisions: all ControllerRevisions; by_owner: their index by the UID of the controller. */
int nodeset_revision_choose(const struct kube_cache *revisions, int by_owner, struct arena *arena,
                            const struct kube_object *nodeset, const char *mounted,
                            struct nodeset_revision *ret_revision, struct err *err);

/* Whether a worker with this hash needs no replacement. */
bool nodeset_revision_is_current(const struct nodeset_revision *revision, struct str hash);

/* The ControllerRevision to create. */
int nodeset_revision_object(struct json_build *build, const struct kube_object *nodeset,
                            const struct nodeset_revision *revision, struct json_mut **ret_object,
                            struct err *err);
/* A merge patch that brings the stored one to the wanted number, labels and owner; NULL: it has
 * them. */
struct json_mut *nodeset_revision_patch(struct json_build *build, const struct kube_object *nodeset,
                                        const struct nodeset_revision *revision);

/* Stored revisions of this NodeSet that may be deleted: neither current nor the hash of one of
 * these pods, and older than the last spec.revisionHistoryLimit of such. */
size_t nodeset_revision_surplus(const struct kube_cache *revisions, int by_owner,
                                const struct kube_object *nodeset,
                                const struct nodeset_revision *revision,
                                const struct kube_object *const *pods, size_t pod_count,
                                const struct kube_object *ret_surplus[NODESET_MAX_REVISIONS]);

/* The hash of data (nodeset_data.h). */
void nodeset_revision_hash(struct str data, int64_t collision_count,
                           char ret_hash[REVISION_HASH_MAX]);

#endif
