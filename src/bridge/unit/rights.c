/* rights.c - what annotations may not say.
 *
 * Holds: a person without rights of his own may hold a job, or have it wait behind others. */
#include "bridge/unit/rights.h"

#include "bridge/world/names.h"
#include "slurm/access.h"

#include <string.h>

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

/* ---- partitions and reservations ---- */

/* Names of partitions have their case. */
static bool is_named(const char *list, struct str name)
{
    struct str rest = str_of(list), item;

    while (rest.len > 0 && str_next(&rest, ',', &item))
        if (str_eq(str_trim(item), name))
            return true;
    return false;
}

/* Slurm has words of its own for a partition or a reservation that does not exist. */
int rights_check_places(const struct rights_site *site, const struct bridge_user *rule,
                        const struct job_desc *desc, const struct job_desc *base,
                        struct arena *arena, struct err *err)
{
    struct slurm_access job = { desc->user_id, desc->group_id, desc->account, desc->qos,
                                site->user };
    const struct {
        const char *what, *named, *usual; /* usual: what the config names */
        const struct slurm_cache *cache;
        const char *opened;
    } kinds[] = {
        { "partition", desc->partition, base->partition, site->partitions,
          rule ? rule->partitions : "" },
        { "reservation", desc->reservation, "", site->reservations,
          rule ? rule->reservations : "" },
    };

    if (!slurm_access_is_asked(&job)) { /* SlurmUser has all that an annotation may choose */
        job.account = strcmp(job.account, base->account) == 0 ? job.account : "";
        job.qos = strcmp(job.qos, base->qos) == 0 ? job.qos : "";
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct str rest = str_of(kinds[i].named), item;

        while (kinds[i].cache && rest.len > 0 && str_next(&rest, ',', &item)) {
            const struct slurm_object *found;
            const char *name, *why = NULL;

            item = str_trim(item);
            name = arena_strndup(arena, item.at, item.len);
            found = is_named(kinds[i].usual, item) ? NULL : slurm_cache_get(kinds[i].cache, name);
            if (found)
                why = i == 0 ? slurm_partition_objection(slurm_partition_of(found), &job)
                             : slurm_reservation_objection(slurm_reservation_of(found), &job);
            if (why && !bridge_config_is_like_any(kinds[i].opened, item))
                return err_set(err, ERR_INVALID,
                               BRIDGE_ANNOTATION_PREFIX
                               "%s: %s \"%s\" is not open to the job's user (%s)",
                               kinds[i].what, kinds[i].what, name, why);
        }
    }
    return 0;
}
