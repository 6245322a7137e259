/* requested.c - what the pods of a job request of devices, as Slurm's list of gres.
 *
 * Slurm gives the same amounts on every node of a job, so each amount is the largest over the pods.
 *
 * Holds: entries are in byte order of their types, then of their names. */
#include "device/requested.h"

#include <inttypes.h>

enum { MAX_TEXT = 64 << 10 };

struct requested_gres_entry {
    const char *name, *type; /* type "": of any, as device plugins have them */
    int64_t amount;          /* the most that a pod requests */
    int64_t of_pod;          /* what the pod at hand requests */
};

static int compare(const struct requested_gres_entry *entry, const struct device_row *row)
{
    int order = strcmp(entry->type, row->type);

    return order ? order : strcmp(entry->name, row->gres);
}

static struct requested_gres_entry *need_entry(struct requested_gres *requested,
                                               const struct device_row *row, struct arena *arena)
{
    struct requested_gres_entry *more;
    unsigned i = 0;

    while (i < requested->count && compare(&requested->at[i], row) < 0)
        i++;
    if (i < requested->count && compare(&requested->at[i], row) == 0)
        return &requested->at[i];
    more = arena_alloc_array(arena, requested->count + 1, sizeof(*more));
    for (unsigned k = 0; k < requested->count; k++)
        more[k + (k >= i)] = requested->at[k];
    more[i] = (struct requested_gres_entry){ .name = row->gres, .type = row->type };
    requested->at = more;
    requested->count++;
    return &more[i];
}

/* GPUs of different makers on one pod add up to one count. */
int requested_gres_add(struct requested_gres *requested, const struct device_view *view,
                       const struct kube_pod *pod, struct arena *arena, int64_t *ret_cores,
                       struct err *err)
{
    struct device_amounts amounts;

    if (pod->limits.extended.count + pod->requests.extended.count == 0 &&
        !(pod->rare && pod->rare->claim_count > 0))
        return 0;
    if (device_amounts_of(view, pod, arena, &amounts, err) < 0)
        return -err->class;
    for (unsigned i = 0; i < amounts.count; i++) {
        int64_t *sum = device_row_is_cpu(amounts.at[i].row)
                           ? ret_cores
                           : &need_entry(requested, amounts.at[i].row, arena)->of_pod;

        if (__builtin_add_overflow(*sum, amounts.at[i].amount, sum))
            *sum = INT64_MAX;
    }
    for (unsigned i = 0; i < requested->count; i++) {
        struct requested_gres_entry *entry = &requested->at[i];

        if (entry->amount < entry->of_pod)
            entry->amount = entry->of_pod;
        entry->of_pod = 0;
    }
    return 0;
}

int requested_gres_text(const struct requested_gres *requested, struct arena *arena,
                        const char **ret_text, struct err *err)
{
    auto_buf struct buf text = { .max = MAX_TEXT };

    for (unsigned i = 0; i < requested->count; i++) {
        const struct requested_gres_entry *entry = &requested->at[i];

        buf_printf(&text, "%sgres/%s%s%s=%" PRId64, i > 0 ? "," : "", entry->name,
                   entry->type[0] ? ":" : "", entry->type, entry->amount);
    }
    if (buf_check(&text, "devices", NULL) < 0)
        return err_set(err, ERR_INVALID, "%u kinds of devices are too many for one job",
                       requested->count);
    *ret_text = arena_strdup(arena, buf_text(&text));
    return 0;
}
