/* desk.h - a world of the operator in a test: objects in, a plan out.
 *
 * Objects are written as kubectl shows them, and may leave out what does not matter: apiVersion,
 * metadata.namespace ("site"), uid ("uid-<kind>-<name>") and resourceVersion ("1"). `owner:
 * RestApi slurm` stands for the ownerReferences of a child.
 *
 * `worker: w` makes a Pod one of NodeSet w with the revision of `slurmd: {image: s}`, or of
 * `revision: abc`, created an hour ago; `runs: n1` lets it run on this Node and be ready since
 * then.
 */
#ifndef SLINC_TESTS_OPERATOR_DESK_H
#define SLINC_TESTS_OPERATOR_DESK_H

#include "operator/world.h"

enum { DESK_CACHES = 4 };

#define DESK_REVISION "6cf54f965" /* of a NodeSet with `slurmd: {image: s}` and nothing else */

struct desk {
    struct clock clock;
    struct loop *loop; /* of Slurm's caches; NULL: there are none */
    struct slurm_cache *slurm[DESK_CACHES];
    struct operator_world world;
    struct arena arena;
    struct plan plan;
};

void desk_init(struct desk *desk);
void desk_done(struct desk *desk);

/* -ERR_INVALID for a kind that the operator does not know, or an object that does not decode. */
int desk_add(struct desk *desk, const struct json *object, struct err *err);

/* The API server has this kind, and no more objects of it than those that were added. */
void desk_has_all(struct kube_cache *cache);

/* What Slurm last said, by the name of the Controller:
 *
 *     slurm: {slurm: {active: 1, conf_hash: 7, reconfigured: <version>, seconds_ago: 3}}
 *     slurm: {slurm: {unreachable: 'connection refused', seconds_ago: 200}}
 *     slurm: {slurm: {restapi: false}}
 *     slurm: {slurm: {database: 'Unable to connect', seconds_ago: 200}}   '': it answers
 *     slurm:
 *       slurm:
 *         nodes: [{name: w-0, state: [IDLE, DRAIN], reason: 'a fan'}]
 *         jobs: [{job_id: 7, job_state: [RUNNING], nodes: w-0, partition: big}]
 *         reservations: [{name: r}]
 *         suspicious: true        slurmctld may have been restarted
 *         age: 60                 seconds since Slurm said so
 *
 * What has no comment has one of others. One Slurm of a world may have nodes. */
int desk_slurm(struct desk *desk, const struct json *facts, struct err *err);

/* Plans the custom resource of this kind and name, in the namespace "site". For kind there may be
 * the name of a controller, where a kind has several. */
int desk_plan(struct desk *desk, struct str kind, struct str name, struct err *err);

#endif
