/* access.c - whether a partition or a reservation is open to a job, by its own rules. */
#include "slurm/access.h"

bool slurm_list_has(const char *list, struct str word)
{
    struct str rest = str_of(list), item;

    while (rest.len > 0 && str_next(&rest, ',', &item))
        if (str_eq_nocase(str_trim(item), word))
            return true;
    return false;
}

/* Slurm lets its own user and root in everywhere, for whomever they submit. */
bool slurm_access_is_asked(const struct slurm_access *job)
{
    struct str user = str_of(job->user);

    return user.len > 0 && !(job->submitter && str_is(user, job->submitter)) &&
           !str_is(user, "root") && !str_is(user, "0");
}

static bool is_for_all(const char *allowed)
{
    return !allowed[0] || slurm_list_has(allowed, STR("ALL"));
}

/* What a job does not say, Slurm knows of its user alone. */
static bool admits(const char *allowed, const char *denied, const char *word,
                   const struct slurm_access *job)
{
    if (!word[0])
        return slurm_access_is_asked(job) || (is_for_all(allowed) && !denied[0]);
    return is_for_all(allowed) ? !slurm_list_has(denied, str_of(word))
                               : slurm_list_has(allowed, str_of(word));
}

const char *slurm_partition_objection(const struct slurm_partition *partition,
                                      const struct slurm_access *job)
{
    if (slurm_list_has(partition->flags, STR("ROOT_ONLY")))
        return "RootOnly";
    if (!admits(partition->accounts, partition->denied_accounts, job->account, job))
        return partition->accounts[0] ? "AllowAccounts" : "DenyAccounts";
    if (!admits(partition->qos, partition->denied_qos, job->qos, job))
        return partition->qos[0] ? "AllowQos" : "DenyQos";
    if (!slurm_access_is_asked(job) && !is_for_all(partition->groups) &&
        !slurm_list_has(partition->groups, str_of(job->group)))
        return "AllowGroups";
    return NULL;
}

const char *slurm_reservation_objection(const struct slurm_reservation *reservation,
                                        const struct slurm_access *job)
{
    bool is_open = slurm_access_is_asked(job) ||
                   (job->submitter && job->submitter[0] &&
                    slurm_list_has(reservation->users, str_of(job->submitter))) ||
                   (job->account[0] && slurm_list_has(reservation->accounts, str_of(job->account)));

    return is_open ? NULL : "Users, Accounts";
}
