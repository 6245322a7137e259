/* nodeset_update.c - which workers are replaced: because their revision is an old one, or because
 * Slurm has no node for them.
 *
 * RollingUpdate   those that are not healthy and run no job at once, of the others as many as
 *                 spec.updateStrategy lets be unavailable; what is missing or not available for
 *                 another reason counts. None below rollingUpdate.fromOrdinal.
 * ScheduledUpdate those that are not healthy and run no job at once, the others while their node is
 *                 in the maintenance that the operator reserved.
 * OnDelete        none.
 *
 * Holds: a worker that is drained for an update goes on to be, whatever becomes of the others. */
#include "codec/timestamp.h"
#include "operator/names.h"
#include "operator/nodeset.h"

static const int64_t unregistered_us = 300000000;

static struct str strategy(const struct nodeset *nodeset)
{
    return json_str_or(json_at(nodeset->sync.spec, "updateStrategy", "type"), STR("RollingUpdate"));
}

/* "25%" of the workers, rounded up, or a number, which may be more than all; 1 when it is neither.
 */
static int64_t max_unavailable(const struct nodeset *nodeset, int64_t total)
{
    const struct json *value =
        json_at(nodeset->sync.spec, "updateStrategy", "rollingUpdate", "maxUnavailable");
    struct str text = json_str_or(value, STR("25%"));
    int64_t number;

    if (json_is_number(value))
        return json_i64_or(value, 1) > 1 ? json_i64_or(value, 1) : 1;
    if (!str_ends(text, STR("%")) ||
        str_to_i64(str_sub(text, 0, text.len - 1), 1, INT32_MAX, &number, NULL) < 0)
        return 1;
    return (total * number + 99) / 100;
}

/* ---- workers that Slurm does not have ---- */

static bool is_unregistered_for_long(const struct nodeset *nodeset, const struct worker *worker)
{
    struct str text =
        kube_pairs_get(&worker->pod->object.annotations, ANNOTATION_UNREGISTERED, NULL);
    int64_t since_us = 0, left_us;

    if (!worker->is_healthy || worker->knowledge != SLURM_ABSENT ||
        timestamp_parse(text, &since_us, NULL) < 0)
        return false;
    left_us = since_us + unregistered_us - nodeset->sync.world->wall_us;
    if (left_us > 0)
        plan_look_again(nodeset->sync.plan, left_us);
    return left_us <= 0;
}

/* slurmctld may have lost all of them at once: no more than may be unavailable, and not while
 * others are on their way. */
void nodeset_choose_unregistered(struct nodeset *nodeset)
{
    int64_t total = nodeset->is_daemonset ? (int64_t)nodeset->slot_count : nodeset->replicas;
    int64_t left = max_unavailable(nodeset, total);

    for (size_t i = 0; i < nodeset->count; i++)
        left -= !nodeset->workers[i].is_healthy;
    for (size_t i = 0; i < nodeset->count && left > 0; i++) {
        struct worker *worker = &nodeset->workers[i];

        if (worker->cause != CAUSE_NONE || !is_unregistered_for_long(nodeset, worker))
            continue;
        worker->cause = CAUSE_UNREGISTERED;
        left--;
    }
}

/* ---- old revisions ---- */

static bool is_candidate(const struct worker *worker)
{
    return worker_is_live(worker) && !worker->is_current && worker->cause < CAUSE_UPDATE;
}

/* It is not ready, and may run jobs. An outage may concern all workers for a moment, and drains
 * that begin then would not end with it. */
static bool is_out_and_busy(const struct worker *worker)
{
    return !worker->is_healthy && worker->pod->node_name[0] &&
           (worker->knowledge == SLURM_UNREAD ||
            (worker->knowledge == SLURM_PRESENT && worker->is_busy));
}

static bool goes_at_once(const struct worker *worker)
{
    return worker->mark == CAUSE_UPDATE || (!worker->is_healthy && !is_out_and_busy(worker));
}

/* Those that may go beyond the ones that go anyway. Candidates that are out already come first of
 * them, and are not counted twice. */
static int64_t budget(const struct nodeset *nodeset)
{
    int64_t total = nodeset->is_daemonset ? (int64_t)nodeset->slot_count : nodeset->replicas;
    int64_t stay = 0, unavailable = 0;

    for (size_t i = 0; i < nodeset->count; i++) {
        const struct worker *worker = &nodeset->workers[i];

        if (!worker_is_live(worker) || worker->cause > CAUSE_UPDATE)
            continue;
        stay++;
        unavailable +=
            worker->cause == CAUSE_UPDATE ||
            (!worker->is_available && !(is_candidate(worker) && is_out_and_busy(worker)));
    }
    if (total > stay)
        unavailable += total - stay;
    return max_unavailable(nodeset, total) - unavailable;
}

static void choose_rolling(struct nodeset *nodeset)
{
    struct worker **old =
        arena_alloc_array(nodeset->sync.plan->arena, nodeset->count + 1, sizeof(struct worker *));
    int64_t from = nodeset->is_daemonset ? INT64_MIN
                                         : spec_number(nodeset->sync.object,
                                                       "updateStrategy.rollingUpdate.fromOrdinal");
    size_t count = 0;
    int64_t left;

    for (size_t i = 0; i < nodeset->count; i++) {
        struct worker *worker = &nodeset->workers[i];

        if (!is_candidate(worker) || (worker->ordinal < from && worker->mark != CAUSE_UPDATE))
            continue;
        if (goes_at_once(worker))
            worker->cause = CAUSE_UPDATE;
        else
            old[count++] = worker;
    }
    if (count == 0)
        return;
    left = budget(nodeset);
    workers_sort(old, count);
    for (size_t i = 0; i < count && (int64_t)i < left; i++)
        old[i]->cause = CAUSE_UPDATE;
}

/* The reservation is the operator's: nodeset_reservation.c. */
static bool is_in_maintenance(const struct nodeset *nodeset, const struct worker *worker)
{
    return worker->knowledge == SLURM_PRESENT && slurm_node_has(worker->record, "MAINTENANCE") &&
           strcmp(worker->record->reservation, nodeset_reservation_name(nodeset)) == 0;
}

static void choose_scheduled(struct nodeset *nodeset)
{
    for (size_t i = 0; i < nodeset->count; i++) {
        struct worker *worker = &nodeset->workers[i];

        if (is_candidate(worker) && (goes_at_once(worker) || is_in_maintenance(nodeset, worker)))
            worker->cause = CAUSE_UPDATE;
    }
}

void nodeset_choose_update(struct nodeset *nodeset)
{
    if (str_is(strategy(nodeset), "RollingUpdate"))
        choose_rolling(nodeset);
    else if (str_is(strategy(nodeset), "ScheduledUpdate"))
        choose_scheduled(nodeset);
}
