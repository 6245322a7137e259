/* top.c - chooses by rank: the first nine tenths of the places in any case, those shown last as
 * long as they are not a tenth behind the places, then whoever comes next. */
#include "exporter/top.h"

#include "base/mem.h"

#include <stdlib.h>

void top_init(struct top *top)
{
    map_init(&top->names, &(struct map_options){ .max = TALLY_MAX_OWNERS });
}

void top_done(struct top *top)
{
    map_done(&top->names);
}

static double weight(const struct tally_owner *owner)
{
    return owner->cpus[TALLY_RUNS] + owner->cpus[TALLY_WAITS];
}

static int compare(const void *a, const void *b)
{
    const struct tally_owner *left = *(const struct tally_owner *const *)a;
    const struct tally_owner *right = *(const struct tally_owner *const *)b;

    if (weight(left) > weight(right))
        return -1;
    return weight(left) < weight(right) ? 1 : str_cmp(str_of(left->name), str_of(right->name));
}

static void add_owner(struct tally_owner *into, const struct tally_owner *owner)
{
    for (unsigned i = 0; i < TALLY_STANDINGS; i++) {
        into->jobs[i] += owner->jobs[i];
        into->nodes[i] += owner->nodes[i];
        into->cpus[i] += owner->cpus[i];
        into->memory_bytes[i] += owner->memory_bytes[i];
        for (unsigned k = 0; k < TALLY_GRES; k++)
            into->gres[k][i] += owner->gres[k][i];
    }
    into->billing += owner->billing;
}

/* Marks who is shown, by rank. */
static void mark(const struct top *top, struct tally_owner *const *ranked, size_t count, size_t max,
                 bool *ret_shown)
{
    size_t sure = max - max / 10, latest = max + max / 10, left = max;

    for (size_t i = 0; i < count && i < sure && left > 0; i++, left--)
        ret_shown[i] = true;
    for (size_t i = sure; i < count && i < latest && left > 0; i++) {
        ret_shown[i] = map_has(&top->names, str_of(ranked[i]->name));
        left -= ret_shown[i];
    }
    for (size_t i = sure; i < count && left > 0; i++) {
        left -= !ret_shown[i];
        ret_shown[i] = true;
    }
}

void top_choose(struct top *top, struct tally *tally, enum tally_owner_kind kind, size_t max,
                size_t *ret_folded)
{
    struct map *owners = &tally->owners[kind];
    size_t count = 0, total = owners->count;
    struct tally_owner *other = NULL;
    auto_free struct tally_owner **ranked =
        mem_alloc_array(total + 1, sizeof(struct tally_owner *));
    auto_free bool *shown = mem_alloc_array(total + 1, sizeof(bool));

    map_each (item, owners)
        ranked[count++] = item->value;
    qsort(ranked, count, sizeof(struct tally_owner *), compare);
    mark(top, ranked, count, max, shown);
    map_clear(&top->names);
    map_clear(owners);
    *ret_folded = 0;
    for (size_t i = 0; i < count; i++) {
        if (shown[i]) {
            (void)map_put(&top->names, str_of(ranked[i]->name), NULL, NULL);
            (void)map_put(owners, str_of(ranked[i]->name), ranked[i], NULL);
            continue;
        }
        if (!other)
            other = arena_alloc(tally->arena, sizeof(*other));
        add_owner(other, ranked[i]);
        ++*ret_folded;
    }
    if (!other)
        return;
    other->name = "other";
    if (map_has(owners, STR("other"))) /* somebody of that name */
        add_owner(map_get(owners, STR("other")), other);
    else
        (void)map_put(owners, STR("other"), other, NULL);
}
