/* eligible_domains.c - what the pods in a node's zone, rack or host mean for a class.
 *
 * The nodes with one value of a topology label are a domain. Pods on all nodes draw and keep away;
 * spread looks at the nodes that are lent to Slurm alone, as no pod of ours can go elsewhere. */
#include "bridge/eligible_private.h"

#include "base/mem.h"

#include <stdint.h>

/* How many counted pods there are in each domain; freed by the caller. */
static uint64_t *sum_up(const struct eligible *eligible, const struct eligible_column *column,
                        const uint32_t *count, bool *ret_any)
{
    uint64_t *sums = mem_alloc_array((size_t)column->count + 1, sizeof(*sums));

    for (size_t i = 0; i < eligible->place_count; i++)
        sums[column->of[i]] += count[i];
    for (size_t i = 1; ret_any && !*ret_any && i <= column->count; i++)
        *ret_any = sums[i] > 0;
    return sums;
}

/* ---- pod affinity ---- */

static void attract(const struct eligible *eligible, struct pod_class *pod_class,
                    const uint32_t *count)
{
    const struct eligible_rules *rules = pod_class->rules;
    uint64_t *sums[ELIGIBLE_MAX_TERMS];
    bool any = false;

    for (unsigned t = 0; t < rules->attract_count; t++)
        sums[t] = sum_up(eligible, rules->attract[t].column, count, &any);
    for (size_t i = 0; i < eligible->place_count; i++)
        for (unsigned t = 0; pod_class->result[i].code == ELIGIBLE_FITS && t < rules->attract_count;
             t++) {
            uint32_t domain = rules->attract[t].column->of[i];
            /* the first of pods that want to be together may go anywhere */
            bool drawn = any ? sums[t][domain] > 0 : pod_class->attracts_itself;

            if (domain == 0 || !drawn)
                pod_class->result[i].code = ELIGIBLE_ATTRACTED;
        }
    for (unsigned t = 0; t < rules->attract_count; t++)
        mem_free(sums[t]);
}

/* ---- anti-affinity: of this pod, and of those that are there ---- */

static void keep_away(const struct eligible *eligible, struct pod_class *pod_class,
                      const struct eligible_column *column, const uint32_t *count,
                      enum eligible_code code)
{
    bool any = false;
    auto_free uint64_t *sums = sum_up(eligible, column, count, &any);

    if (!any)
        return;
    for (size_t i = 0; i < eligible->place_count; i++)
        if (pod_class->result[i].code == ELIGIBLE_FITS && column->of[i] > 0 &&
            sums[column->of[i]] > 0)
            pod_class->result[i].code = (uint8_t)code;
}

/* ---- topology spread ---- */

struct domain {
    uint64_t pods;
    bool counts;
};

static bool has_all_labels(const struct eligible_rules *rules, size_t place)
{
    for (unsigned i = 0; i < rules->spread_count; i++)
        if (rules->spread[i].term.column->of[place] == 0)
            return false;
    return true;
}

static bool takes_part(const struct pod_class *pod_class, const struct eligible_spread *spread,
                       size_t place)
{
    const struct filter_result *fixed = &pod_class->fixed[place];

    return fixed->lent && (fixed->matches || !spread->by_affinity) &&
           (fixed->tolerated || !spread->by_taints) && has_all_labels(pod_class->rules, place);
}

static uint64_t fewest(const struct domain *domains, uint32_t count, int64_t min_domains)
{
    uint64_t least = UINT64_MAX;
    int64_t found = 0;

    for (uint32_t i = 1; i <= count; i++)
        if (domains[i].counts) {
            found++;
            least = domains[i].pods < least ? domains[i].pods : least;
        }
    return found < min_domains ? 0 : least;
}

static void spread_out(const struct eligible *eligible, struct pod_class *pod_class, unsigned which,
                       const uint32_t *count)
{
    const struct eligible_spread *spread = &pod_class->rules->spread[which];
    const struct eligible_column *column = spread->term.column;
    auto_free struct domain *domains = mem_alloc_array((size_t)column->count + 1, sizeof(*domains));
    uint64_t self = pod_class->spreads_itself >> which & 1, least;

    for (size_t i = 0; i < eligible->place_count; i++)
        if (takes_part(pod_class, spread, i)) {
            domains[column->of[i]].pods += count[i];
            domains[column->of[i]].counts = true;
        }
    least = fewest(domains, column->count, spread->min_domains);
    for (size_t i = 0; i < eligible->place_count; i++) {
        uint64_t pods = domains[column->of[i]].pods + self;

        if (pod_class->result[i].code != ELIGIBLE_FITS)
            continue;
        if (column->of[i] == 0)
            pod_class->result[i].code = ELIGIBLE_SPREAD_LABEL;
        else if (pods > least && pods - least > (uint64_t)spread->max_skew)
            pod_class->result[i].code = ELIGIBLE_SPREAD;
    }
}

/* ---- all of it ---- */

void eligible_domains_judge(const struct eligible *eligible, struct pod_class *pod_class)
{
    const struct eligible_rules *rules = pod_class->rules;
    const struct eligible_tally *tally = pod_class->tallies;
    const struct eligible_tally *spreads =
        rules ? tally + (rules->attract_count > 0) + rules->avoid_count : NULL;

    for (unsigned i = 0; rules && i < rules->spread_count; i++)
        spread_out(eligible, pod_class, i, spreads[i].count);
    if (rules && rules->attract_count > 0)
        attract(eligible, pod_class, (tally++)->count);
    for (unsigned i = 0; rules && i < rules->avoid_count; i++)
        keep_away(eligible, pod_class, rules->avoid[i].column, (tally++)->count, ELIGIBLE_AVOIDS);
    for (unsigned i = 0; i < pod_class->repelled_count; i++) {
        const struct eligible_repeller *by = pod_class->repelled[i].by;

        keep_away(eligible, pod_class, by->terms[pod_class->repelled[i].term].column, by->count,
                  ELIGIBLE_REPELLED);
    }
}
