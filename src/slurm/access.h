/* access.h - whether a partition or a reservation is open to a job, by its own rules. Pure.
 *
 * Slurm asks the groups, the associations and the reservations of a job's user. It asks nothing of
 * a job of SlurmUser or root, and takes RootOnly to be about the submitter alone. So a program that
 * submits as SlurmUser what other people wrote asks here. */
#ifndef SLINC_SLURM_ACCESS_H
#define SLINC_SLURM_ACCESS_H

#include "slurm/object.h"

struct slurm_access {
    const char *user, *group, *account, *qos; /* of the job; "": it does not say */
    const char *submitter; /* whose a job is that names no user; NULL or "": not known */
};

/* Whether Slurm itself asks the associations of the job's user. Of another job the account and the
 * QOS count that it says: they must not be the word of somebody who may not have them. */
bool slurm_access_is_asked(const struct slurm_access *job);

/* Whether the list ("a,b") has the word, in any letters. */
bool slurm_list_has(const char *list, struct str word);

/* The rule that keeps the job out ("AllowGroups"); NULL: none does. */
const char *slurm_partition_objection(const struct slurm_partition *partition,
                                      const struct slurm_access *job);
const char *slurm_reservation_objection(const struct slurm_reservation *reservation,
                                        const struct slurm_access *job);

#endif
