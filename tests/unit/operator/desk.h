/* desk.h - a world of the operator in a test: objects in, a plan out.
 *
 * Objects are written as kubectl shows them, and may leave out what does not matter: apiVersion,
 * metadata.namespace ("site"), uid ("uid-<kind>-<name>") and resourceVersion ("1"). `owner:
 * RestApi slurm` stands for the ownerReferences of a child. */
#ifndef SLINC_TESTS_OPERATOR_DESK_H
#define SLINC_TESTS_OPERATOR_DESK_H

#include "operator/world.h"

struct desk {
    struct clock clock;
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
 *     slurm: {slurm: {unreachable: 'connection refused'}}
 *     slurm: {slurm: {restapi: false}} */
void desk_slurm(struct desk *desk, const struct json *facts);

/* Plans the custom resource of this kind and name, in the namespace "site". */
int desk_plan(struct desk *desk, struct str kind, struct str name, struct err *err);

#endif
