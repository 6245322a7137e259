/* rights.h - what annotations may not say, by `trustAnnotations` of the config. Pure.
 *
 * Slurm takes our word for the user of a job and for all that only an administrator may say. */
#ifndef SLINC_BRIDGE_RIGHTS_H
#define SLINC_BRIDGE_RIGHTS_H

#include "bridge/unit/job_desc.h"
#include "bridge/world/config.h"
#include "slurm/cache.h"

/* -ERR_INVALID names the annotation that says too much with TRUST_OWN. Their forms were read. */
int rights_check(enum trust trust, const struct kube_pairs *annotations, struct err *err);

/* What the annotations laid over base and may not say is as in base again. */
void rights_take(enum trust trust, struct job_desc *desc, const struct job_desc *base);

struct rights_site {
    const struct slurm_cache *partitions, *reservations; /* NULL: Slurm alone decides */
    const char *user; /* of the token: whose a job is that names none; NULL or "": not known */
};

/* -ERR_INVALID names a partition or a reservation that annotations laid over base name, and that is
 * not open to the job's user. rule: what the config says of the pods; NULL. */
int rights_check_places(const struct rights_site *site, const struct bridge_user *rule,
                        const struct job_desc *desc, const struct job_desc *base,
                        struct arena *arena, struct err *err);

#endif
