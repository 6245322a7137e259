/* slurm_schedule.c - which waiting job starts when.
 *
 * The main cycle goes through the queue by priority, then by age, and leaves a partition alone
 * once a job of it has to wait. The backfill cycle goes on: it estimates where and when each job
 * that waits will start, and starts others that do not delay those. Both run from
 * slurm_store_step; nothing runs at the end of an external job. */
#include "slurm_private.h"

#include <stdlib.h>

/* ---- the queue ---- */

static int by_turn(const void *left, const void *right)
{
    const struct ctld_job *a = *(struct ctld_job *const *)left;
    const struct ctld_job *b = *(struct ctld_job *const *)right;

    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static bool waits(const struct slurm_store *store, const struct ctld_job *job)
{
    return job->phase == PHASE_PENDING && !job->completing_us &&
           job->looked_at_us <= ctld_now_us(store);
}

bool ctld_has_pending(const struct slurm_store *store)
{
    for (size_t i = 0; i < store->state.job_count; i++)
        if (store->state.jobs[i]->phase == PHASE_PENDING && store->state.jobs[i]->priority > 0)
            return true;
    return false;
}

static size_t line_up(const struct slurm_store *store, struct arena *arena,
                      struct ctld_job ***ret_queue)
{
    const struct ctld_state *state = &store->state;
    struct ctld_job **queue = arena_alloc_array(arena, state->job_count + 1, sizeof(*queue));
    size_t count = 0;

    for (size_t i = 0; i < state->job_count; i++)
        if (waits(store, state->jobs[i]))
            queue[count++] = state->jobs[i];
    qsort(queue, count, sizeof(struct ctld_job *), by_turn);
    *ret_queue = queue;
    return count;
}

/* ---- one job ---- */

static void set_reason(struct slurm_store *store, struct ctld_job *job, const char *reason)
{
    if (strcmp(job->text[JOB_REASON], reason) == 0)
        return;
    ctld_set(&job->text[JOB_REASON], reason);
    ctld_job_changed(store, job, "");
}

/* Why the job is not even looked at; NULL: it is. */
static const char *set_aside(const struct slurm_store *store, const struct ctld_job *job)
{
    const struct ctld_partition *partition =
        ctld_partition_find(&store->state, job->text[JOB_PARTITION]);
    const struct ctld_resv *resv;

    if (job->priority == 0)
        return job->held_by_admin ? "JobHeldAdmin" : "JobHeldUser";
    if (!partition || strcmp(partition->text[PART_STATE], "DOWN") == 0)
        return "PartitionDown";
    if (strcmp(partition->text[PART_STATE], "INACTIVE") == 0)
        return "PartitionInactive";
    if (partition->max_time > 0 && job->time_limit > partition->max_time)
        return "PartitionTimeLimit";
    if (partition->max_nodes > 0 && ctld_job_nodes(job) > partition->max_nodes)
        return "PartitionNodeLimit";
    if (!job->text[JOB_RESERVATION][0])
        return NULL;
    resv = ctld_resv_find(&store->state, job->text[JOB_RESERVATION]);
    if (!resv)
        return "ReservationDeleted";
    return resv->start_us > ctld_wall_us(store) ? "Reservation" : NULL;
}

static bool try_start(struct slurm_store *store, struct ctld_job *job, enum ctld_fit fit)
{
    struct ctld_piece *pieces;
    unsigned count;

    if (!ctld_fit(store, job, fit, &pieces, &count))
        return false;
    ctld_job_drop_pieces(job);
    job->pieces = pieces;
    job->piece_count = count;
    ctld_job_start(store, job);
    return true;
}

/* Nodes that it names itself are not to be had. */
static bool needs_lost_nodes(const struct slurm_store *store, const struct ctld_job *job)
{
    bool names_some = job->text[JOB_REQUIRED][0] != '\0';

    map_each (item, &store->state.nodes) {
        const struct ctld_node *node = item->value;

        if (names_some && !node->down && !node->drained && ctld_node_could(store, job, node))
            return false;
    }
    return names_some;
}

static const char *why_it_waits(const struct slurm_store *store, const struct ctld_job *job,
                                bool is_first)
{
    const char *too_much = ctld_asks_too_much(store, job);

    if (too_much)
        return too_much;
    if (!ctld_fit(store, job, FIT_EVER, NULL, NULL))
        return "BadConstraints";
    if (needs_lost_nodes(store, job))
        return "ReqNodeNotAvail";
    return is_first ? "Resources" : "Priority";
}

/* ---- plans for those that wait ---- */

static int64_t limit_or_never(const struct ctld_job *job)
{
    int64_t ends_us = ctld_job_ends_us(job);

    return ends_us == INT64_MAX ? INT64_MAX / 2 : ends_us;
}

/* When the node will be empty: the end of the last job on it, by the limits. */
static int64_t empty_at_us(const struct slurm_store *store, const struct ctld_node *node)
{
    int64_t at_us = ctld_wall_us(store);

    for (size_t i = 0; i < store->state.job_count; i++) {
        const struct ctld_job *job = store->state.jobs[i];

        for (unsigned k = 0; job->holds && k < job->piece_count; k++)
            if (strcmp(job->pieces[k].node, node->text[NODE_NAME]) == 0 &&
                limit_or_never(job) > at_us)
                at_us = limit_or_never(job);
    }
    return at_us;
}

/* The node that this job could have first and that nobody plans with yet; NULL: none. */
static struct ctld_node *soonest(const struct slurm_store *store, const struct ctld_job *job,
                                 int64_t *ret_at_us)
{
    struct ctld_node *best = NULL;

    map_each (item, &store->state.nodes) {
        struct ctld_node *node = item->value;
        int64_t at_us;

        if (node->down || node->drained || node->planned_us || !ctld_node_could(store, job, node))
            continue;
        at_us = empty_at_us(store, node);
        if (!best || at_us < *ret_at_us) {
            best = node;
            *ret_at_us = at_us;
        }
    }
    return best;
}

/* The nodes that it will get, as far as can be told: those that are empty first. It starts when the
 * last of them is; until then others may have them. */
static void plan(const struct slurm_store *store, struct ctld_job *job, struct arena *arena)
{
    int64_t wanted = ctld_job_nodes(job), at_us = 0, count = 0;
    struct ctld_node **nodes;

    if (wanted > (int64_t)store->state.nodes.count)
        return;
    nodes = arena_alloc_array(arena, (size_t)wanted, sizeof(struct ctld_node *));
    for (; count < wanted && (nodes[count] = soonest(store, job, &at_us)); count++)
        nodes[count]->planned_us = at_us;
    for (int64_t i = 0; i < count; i++)
        nodes[i]->planned_us = at_us;
    if (count == wanted && at_us < INT64_MAX / 2)
        job->expected_us = at_us;
}

static void drop_plans(struct slurm_store *store)
{
    map_each (item, &store->state.nodes)
        ((struct ctld_node *)item->value)->planned_us = 0;
}

/* ---- a cycle ---- */

static bool is_blocked(struct ctld_job *const *queue, size_t upto, const struct ctld_job *job)
{
    for (size_t i = 0; i < upto; i++)
        if (queue[i]->phase == PHASE_PENDING && queue[i]->priority > 0 &&
            strcmp(queue[i]->text[JOB_PARTITION], job->text[JOB_PARTITION]) == 0 &&
            (strcmp(queue[i]->text[JOB_REASON], "Resources") == 0 ||
             strcmp(queue[i]->text[JOB_REASON], "Priority") == 0))
            return true;
    return false;
}

void ctld_schedule(struct slurm_store *store, bool backfill)
{
    struct arena arena;
    struct ctld_job **queue;
    size_t count;

    arena_init(&arena, CTLD_MAX_MEMORY);
    count = line_up(store, &arena, &queue);
    drop_plans(store);
    for (size_t i = 0; i < count; i++) {
        struct ctld_job *job = queue[i];
        const char *aside = set_aside(store, job);
        bool blocked = !aside && is_blocked(queue, i, job);

        if (aside) {
            set_reason(store, job, aside);
            continue;
        }
        job->expected_us = 0;
        if ((blocked && !backfill) || !try_start(store, job, backfill ? FIT_PLANNED : FIT_NOW)) {
            set_reason(store, job, why_it_waits(store, job, !blocked));
            if (backfill)
                plan(store, job, &arena);
        }
    }
    drop_plans(store);
    if (backfill)
        store->last_backfill_us = ctld_wall_us(store);
    arena_done(&arena);
}

/* ---- at once ---- */

bool ctld_is_behind(const struct slurm_store *store, const struct ctld_job *job)
{
    for (size_t i = 0; i < store->state.job_count; i++) {
        const struct ctld_job *other = store->state.jobs[i];

        if (other != job && other->phase == PHASE_PENDING && other->priority >= job->priority &&
            other->priority > 0 &&
            strcmp(other->text[JOB_PARTITION], job->text[JOB_PARTITION]) == 0)
            return true;
    }
    return false;
}

int ctld_schedule_at_once(struct slurm_store *store, struct ctld_job *job)
{
    if (set_aside(store, job))
        return 2015;
    if (ctld_is_behind(store, job))
        return 2013;
    if (try_start(store, job, FIT_NOW))
        return 0;
    return needs_lost_nodes(store, job) ? 2015 : 2016;
}
