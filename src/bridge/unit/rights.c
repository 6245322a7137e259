/* rights.c - what annotations may not say.
 *
 * Holds: a person without rights of his own may hold a job, or have it wait behind others. */
#include "bridge/unit/rights.h"

#include "bridge/world/names.h"

#include <fnmatch.h>

static const struct {
    const char *annotation;
    bool may_be_number;
    int64_t least, most; /* if it may */
    const char *what;
} limits[] = {
    { BRIDGE_ANNOTATION_PREFIX "user-id", false, 0, 0, "no user" },
    { BRIDGE_ANNOTATION_PREFIX "group-id", false, 0, 0, "no group" },
    { BRIDGE_ANNOTATION_PREFIX "priority", true, 0, 0, "no priority but 0" },
    { BRIDGE_ANNOTATION_PREFIX "nice", true, 0, INT32_MAX, "no nice below 0" },
};

static bool is_too_much(const struct kube_pair *pair, size_t limit)
{
    int64_t number;

    return str_is(pair->key, limits[limit].annotation) &&
           !(limits[limit].may_be_number &&
             str_to_i64(pair->value, limits[limit].least, limits[limit].most, &number, NULL) == 0);
}

int rights_check(enum trust trust, const struct kube_pairs *annotations, struct err *err)
{
    for (unsigned i = 0; trust == TRUST_OWN && i < annotations->count; i++)
        for (size_t k = 0; k < sizeof(limits) / sizeof(limits[0]); k++)
            if (is_too_much(&annotations->at[i], k))
                return err_set(err, ERR_INVALID,
                               "%s: annotations may say %s here (`trustAnnotations: own`)",
                               limits[k].annotation, limits[k].what);
    return 0;
}

void rights_take(enum trust trust, struct job_desc *desc, const struct job_desc *base)
{
    if (trust == TRUST_ALL)
        return;
    desc->user_id = base->user_id;
    desc->group_id = base->group_id;
    if (!desc->partition[0]) /* Slurm's default one may be open to others alone */
        desc->partition = base->partition;
    if (desc->priority != 0)
        desc->priority = base->priority;
    if (desc->nice < 0)
        desc->nice = 0;
    if (trust == TRUST_OWN)
        return;
    desc->account = base->account;
    desc->qos = base->qos;
}

/* ---- partitions and reservations ----
 *
 * We submit as SlurmUser, so Slurm looks away from RootOnly. Of a job with a user of his own it
 * checks his groups, his associations and his reservations; of a job of SlurmUser it checks
 * nothing. */

static bool has(const char *list, struct str word)
{
    struct str rest = str_of(list), item;

    while (rest.len > 0 && str_next(&rest, ',', &item))
        if (str_eq_nocase(str_trim(item), word))
            return true;
    return false;
}

static bool is_opened(const char *patterns, const char *name, struct arena *arena)
{
    struct str rest = str_of(patterns), item;

    while (rest.len > 0 && str_next(&rest, ',', &item)) {
        item = str_trim(item);
        if (fnmatch(arena_strndup(arena, item.at, item.len), name, 0) == 0)
            return true;
    }
    return false;
}

static bool is_for_all(const char *allowed)
{
    return !allowed[0] || has(allowed, STR("ALL"));
}

/* What a job does not say, Slurm knows of its user alone. */
static bool admits(const char *allowed, const char *denied, const char *word, bool has_user)
{
    if (!word[0])
        return has_user || (is_for_all(allowed) && !denied[0]);
    return is_for_all(allowed) ? !has(denied, str_of(word)) : has(allowed, str_of(word));
}

/* Slurm lets its own user and root in everywhere, whoever the rule meant. */
static bool is_persons(const struct job_desc *desc, const struct rights_site *site)
{
    struct str user = str_of(desc->user_id);

    return user.len > 0 && !(site->user && str_is(user, site->user)) && !str_is(user, "root") &&
           !str_is(user, "0");
}

/* What keeps the job out; NULL: nothing. has_user: its job is that of a person. */
static const char *keeps_out(const struct slurm_partition *partition, const struct job_desc *desc,
                             bool has_user)
{
    if (has(partition->flags, STR("ROOT_ONLY")))
        return "RootOnly";
    if (!admits(partition->accounts, partition->denied_accounts, desc->account, has_user))
        return partition->accounts[0] ? "AllowAccounts" : "DenyAccounts";
    if (!admits(partition->qos, partition->denied_qos, desc->qos, has_user))
        return partition->qos[0] ? "AllowQos" : "DenyQos";
    if (!has_user && !is_for_all(partition->groups) &&
        !has(partition->groups, str_of(desc->group_id)))
        return "AllowGroups";
    return NULL;
}

static bool is_closed(const struct slurm_reservation *reservation, const struct job_desc *desc,
                      const char *user)
{
    return !(user && user[0] && has(reservation->users, str_of(user))) &&
           !(desc->account[0] && has(reservation->accounts, str_of(desc->account)));
}

static int refuse(const char *what, const char *name, const char *why, struct err *err)
{
    return err_set(err, ERR_INVALID,
                   BRIDGE_ANNOTATION_PREFIX "%s: %s \"%s\" is not open to the job's user (%s)",
                   what, what, name, why);
}

/* Slurm has words of its own for one that does not exist. */
int rights_check_places(const struct rights_site *site, const struct bridge_user *rule,
                        const struct job_desc *desc, const struct job_desc *base,
                        struct arena *arena, struct err *err)
{
    struct str rest = str_of(desc->partition), item;
    bool has_user = is_persons(desc, site);
    const struct slurm_object *found;

    while (site->partitions && rest.len > 0 && str_next(&rest, ',', &item)) {
        const char *name, *why;

        item = str_trim(item);
        name = arena_strndup(arena, item.at, item.len);
        found = has(base->partition, item) ? NULL : slurm_cache_get(site->partitions, name);
        why = found ? keeps_out(slurm_partition_of(found), desc, has_user) : NULL;
        if (why && !(rule && is_opened(rule->partitions, name, arena)))
            return refuse("partition", name, why, err);
    }
    rest = str_of(desc->reservation);
    while (site->reservations && !has_user && rest.len > 0 && str_next(&rest, ',', &item)) {
        const char *name;

        item = str_trim(item);
        name = arena_strndup(arena, item.at, item.len);
        found = slurm_cache_get(site->reservations, name);
        if (found && is_closed(slurm_reservation_of(found), desc, site->user) &&
            !(rule && is_opened(rule->reservations, name, arena)))
            return refuse("reservation", name, "Users, Accounts", err);
    }
    return 0;
}
