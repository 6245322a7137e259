/* slurm_executor_unresolved.c - submits that got no clear answer.
 *
 * Such a submit is remembered until a whole job list that began later than its settles_us was
 * merged: then its job is in the cache, or there is none. This file asks for that list, and wakes
 * the unit.
 *
 * Where slurmctld answered, with an error that no row of slurm/error.c names, and there is no job,
 * it refused: a plugin of the site may do so in its own way. That is no sign of a restart, so
 * nobody else waits for the list, and the same submit is not sent again for a while. */
#include "bridge/slurm/slurm_executor_private.h"

enum { SECOND_US = 1000000, SETTLE_LOOK_US = SECOND_US / 5, SETTLE_AT_ONCE = 64 };

struct sweep {
    struct slurm_executor *executor;
    struct str keys[SETTLE_AT_ONCE]; /* in the unit state */
    size_t count;
    int64_t listed_us;
    int64_t due_us;  /* the latest settles_us that has passed and no list has answered */
    bool is_silence; /* one of those was not answered by slurmctld */
    int64_t next_us; /* the earliest of the others */
};

static void sort_out(void *context, const struct unit_state *unit)
{
    struct sweep *sweep = context;
    int64_t settles_us = unit->submit.settles_us;

    if (unit->submit.state != SUBMIT_UNRESOLVED)
        return;
    if (settles_us < sweep->listed_us) {
        if (sweep->count < SETTLE_AT_ONCE)
            sweep->keys[sweep->count++] = unit->key;
    } else if (settles_us < loop_now_us(sweep->executor->lane.loop)) {
        if (settles_us > sweep->due_us)
            sweep->due_us = settles_us;
        sweep->is_silence |= !unit->submit.is_answered;
    } else if (settles_us < sweep->next_us) {
        sweep->next_us = settles_us;
    }
}

/* Its job is in the cache now, or is not there. What is refused at once may still be queued. */
static void settled(struct slurm_executor *executor, struct unit_state *unit)
{
    bool was_refused = unit->submit.is_answered && !has_live_job(executor, unit->key, 0);

    unit_states_move(executor->options.unit_states, unit, SUBMIT_NONE);
    if (was_refused && unit->submit.at_once)
        unit->queues = true;
    else if (was_refused)
        submit_keep_refusal(executor, unit);
    executor->options.wake_unit(executor->options.context, unit->key);
}

static void settle(void *context);

static void settle_after(struct slurm_executor *executor, int64_t delay_us)
{
    int64_t due_us = loop_now_us(executor->lane.loop) + delay_us;

    if (!loop_timer_is_armed(&executor->settle_timer) || executor->settle_timer.due_us > due_us)
        loop_timer_start(executor->lane.loop, &executor->settle_timer, delay_us, settle, executor);
}

static void settle(void *context)
{
    struct slurm_executor *executor = context;
    int64_t now = loop_now_us(executor->lane.loop);
    struct sweep sweep = { .executor = executor,
                           .listed_us = slurm_cache_listed_us(executor->jobs),
                           .due_us = INT64_MIN,
                           .next_us = INT64_MAX };

    if (unit_states_in(executor->options.unit_states, SUBMIT_UNRESOLVED) == 0)
        return;
    unit_states_each(executor->options.unit_states, sort_out, &sweep);
    for (size_t i = 0; i < sweep.count; i++)
        settled(executor, unit_states_need(executor->options.unit_states, sweep.keys[i]));
    if (sweep.due_us >= executor->list_asked_us && sweep.due_us != INT64_MIN) {
        if (sweep.is_silence)
            slurm_poller_suspect(executor->options.poller, "an ask for a job was not answered");
        else
            slurm_poller_list(executor->options.poller);
        executor->list_asked_us = now;
    }
    if (sweep.count == SETTLE_AT_ONCE)
        settle_after(executor, 0);
    else if (sweep.due_us != INT64_MIN)
        settle_after(executor, SETTLE_LOOK_US);
    else if (sweep.next_us != INT64_MAX)
        settle_after(executor, sweep.next_us + 1 - now);
}

void submit_unresolved(struct slurm_executor *executor, struct str key, int64_t settles_us,
                       bool is_answered)
{
    struct unit_state *unit = unit_states_need(executor->options.unit_states, key);
    int64_t left_us = settles_us + 1 - loop_now_us(executor->lane.loop);

    unit_states_move(executor->options.unit_states, unit, SUBMIT_UNRESOLVED);
    unit->submit.settles_us = settles_us;
    unit->submit.is_answered = is_answered;
    settle_after(executor, left_us > 0 ? left_us : 0);
}
