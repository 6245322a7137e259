/* slurm_keys.h - another slurm.key, rolled out so that daemons with the old one and daemons with
 * the new one always understand each other.
 *
 * Beside the Secret of the user, "<its name>-jwks" holds slurm.jwks: the key that the daemons sign
 * with, and while another one is rolled out that one, too. Slurm reads slurm.jwks in place of
 * slurm.key where there is one; a token without a key's id is checked with the first key.
 *
 *     [old]        steady; pods read slurm.key until there is a second key for the first time
 *     [old, new]   all pods are replaced, slurmctld last: they sign with old and accept both
 *     [new, old]   all pods are replaced: they sign with new and accept both
 *     [new]        nothing is replaced: a daemon forgets old when it reads its files again
 *
 * The step after is taken when every pod has the mark of this one. Workers are replaced as by any
 * update: drained first. */
#ifndef SLINC_OPERATOR_SLURM_KEYS_H
#define SLINC_OPERATOR_SLURM_KEYS_H

#include "operator/sync.h"

/* The Secret of a Controller's keys, and the next step; a step of its plan. */
int slurm_keys_plan(struct sync *sync, struct err *err);

/* The mark that pods must have; "" when a second key was never seen. owner: the Controller or
 * Accounting whose spec.slurmKeyRef counts. */
struct str slurm_keys_mark(const struct operator_world *world, const struct kube_object *owner);

/* Whether [old, new] is still being rolled out: a daemon that read its files now might read a new
 * slurm.key, which others do not accept yet. */
bool slurm_keys_are_new(const struct sync *sync);

/* Whether all pods but those of slurmctld have the mark. */
bool slurm_keys_reached_others(const struct sync *sync);

/* Puts this mark and slurm.jwks into a pod template; nothing for "". */
void slurm_keys_put(struct json_build *build, const struct kube_object *owner, struct str mark,
                    struct json_mut *template);

/* The condition KeyRollout; no type while a second key was never seen. */
struct kube_condition_want want_keys(const struct sync *sync);

#endif
