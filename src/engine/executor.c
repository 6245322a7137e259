/* executor.c - the one place that sends.
 *
 * A step is one action on its way:
 *
 *     LATER -> READY (in the heap of its lane) -> SENT -> [READING [-> READY ...]] -> ended
 *
 * Holds: a step is sent at most once, or twice where the server takes it once; and only after
 * may_act and its own still_holds said yes at that moment; its overlay is laid from the beginning
 * until it ended; a stage begins when all steps of the one before went well; an execution ends
 * once, when none of its steps is SENT, READING or waits to be sent again.
 */
#include "engine/executor.h"

#include "base/heap.h"
#include "base/mem.h"
#include "engine/engine_metrics.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_READY = 1 << 22 };

enum step_state { STEP_LATER, STEP_READY, STEP_SENT, STEP_READING };

struct lane {
    struct executor *executor;
    const struct action_type *type;
    void *service;
    unsigned in_flight;
    int64_t paused_until_us;
    struct heap ready; /* struct step by tag */
    uint64_t tag;      /* of the step sent last */
};

struct step {         /* in the arena of its plan */
    struct list link; /* in execution->steps */
    struct execution *execution;
    const struct action *action;
    struct lane *lane;
    struct effect effect;
    enum step_state state;
    uint64_t tag; /* READY: whose turn it is; see make_ready */
    struct heap_node queued;
    void *handle;             /* SENT */
    struct settle_read *read; /* READING */
    bool is_repeated;         /* sent, or READY to be sent, for the second time */
    int64_t sent_us;
};

struct executor {
    struct executor_options options;
    struct lane lanes[EXECUTOR_MAX_LANES];
    unsigned lane_count;
    struct list executions;
    struct loop_timer pump;
};

static int compare_tag(const struct heap_node *a, const struct heap_node *b)
{
    uint64_t left = heap_item(a, const struct step, queued)->tag;
    uint64_t right = heap_item(b, const struct step, queued)->tag;

    return (left > right) - (left < right);
}

static int64_t now_us(const struct executor *executor)
{
    return loop_now_us(executor->options.loop);
}

struct executor *executor_new(const struct executor_options *options)
{
    struct executor *executor = mem_alloc(sizeof(*executor));

    executor->options = *options;
    list_init(&executor->executions);
    return executor;
}

void executor_free(struct executor *executor)
{
    if (!executor)
        return;
    loop_timer_stop(&executor->pump);
    for (unsigned i = 0; i < executor->lane_count; i++)
        heap_done(&executor->lanes[i].ready);
    mem_free(executor);
}

void executor_add_lane(struct executor *executor, const struct action_type *type, void *service)
{
    if (executor->lane_count == EXECUTOR_MAX_LANES) {
        fprintf(stderr, "executor: more than %d types of action\n", EXECUTOR_MAX_LANES);
        abort();
    }

    struct lane *lane = &executor->lanes[executor->lane_count++];

    *lane = (struct lane){ .executor = executor, .type = type, .service = service };
    heap_init(&lane->ready, compare_tag, MAX_READY);
}

unsigned executor_in_flight(const struct executor *executor)
{
    unsigned in_flight = 0;

    for (unsigned i = 0; i < executor->lane_count; i++)
        in_flight += executor->lanes[i].in_flight;
    return in_flight;
}

size_t executor_overlays(const struct executor *executor)
{
    size_t count = 0;

    list_each (const struct execution, execution, &executor->executions, link)
        list_each (const struct step, step, &execution->steps, link)
            count += step->effect.overlay != NULL;
    return count;
}

static struct lane *lane_of(struct executor *executor, const struct action_type *type)
{
    for (unsigned i = 0; i < executor->lane_count; i++)
        if (executor->lanes[i].type == type)
            return &executor->lanes[i];
    fprintf(stderr, "executor: nobody carries out actions of type %s\n", type->name);
    abort();
}

/* ---- what an answer means ---- */

static bool went_well(const struct action *action, const struct kube_answer *answer)
{
    switch (answer->outcome) {
    case KUBE_DONE:
        return true;
    case KUBE_GONE:
        return action->missing_is_fine;
    case KUBE_CONFLICT:
        return action->existing_is_fine && str_is(STR("AlreadyExists"), answer->reason);
    default:
        return false;
    }
}

/* Of several failures in one stage the worst is told: what people must mend, before what time
 * mends. */
static int gravity(enum kube_outcome outcome)
{
    static const int gravities[] = {
        [KUBE_DONE] = 0,    [KUBE_CONFLICT] = 1, [KUBE_GONE] = 1,    [KUBE_UNAVAILABLE] = 2,
        [KUBE_UNKNOWN] = 3, [KUBE_DENIED] = 4,   [KUBE_INVALID] = 5,
    };

    return gravities[outcome];
}

/* The time that the other side asks for, within reason; 0 when it does not. */
static int64_t pause_until_us(const struct executor *executor, const struct kube_answer *answer)
{
    int64_t pause_us = answer->retry_after_us;

    if (pause_us <= 0)
        return 0;
    return now_us(executor) + (pause_us < EXECUTOR_PAUSE_US ? pause_us : EXECUTOR_PAUSE_US);
}

static void note_failure(struct execution *execution, const struct action *action,
                         const struct kube_answer *answer)
{
    struct execution_why *why = &execution->why;
    int64_t not_before_us = pause_until_us(execution->executor, answer);

    execution->is_stopped |= !action->is_independent;
    if (why->not_before_us < not_before_us)
        why->not_before_us = not_before_us;
    if (execution->failed && gravity(answer->outcome) <= gravity(why->outcome))
        return;
    execution->failed = action;
    why->outcome = answer->outcome;
    why->status = answer->status;
    snprintf(why->reason, sizeof(why->reason), "%s", answer->reason ? answer->reason : "");
    snprintf(why->message, sizeof(why->message), "%s", answer->message ? answer->message : "");
}

static void count_action(const struct step *step, const struct kube_answer *answer)
{
    struct metrics *metrics = step->execution->executor->options.metrics;
    double seconds = (double)(now_us(step->execution->executor) - step->sent_us) / 1e6;
    struct str verb = str_of(step->action->what), rest;
    char word[32];

    str_cut(verb, ' ', &verb, &rest);
    snprintf(word, sizeof(word), STR_FMT, STR_ARG(verb));
    metrics_add(metrics, &engine_metrics[METRIC_ACTIONS], 1, step->lane->type->name, word,
                kube_outcome_name(answer->outcome), NULL);
    metrics_observe(metrics, &engine_metrics[METRIC_ACTION_SECONDS], seconds,
                    step->lane->type->name, word, NULL);
}

/* ---- ends and next stages ---- */

static void begin_stage(struct execution *execution);
static bool send_again(struct step *step, const struct kube_object *found);
static void pump_soon(struct executor *executor);

static void take_off(struct step *step)
{
    list_remove(&step->link);
    heap_remove(&step->lane->ready, &step->queued);
    if (step->state == STEP_READY || step->state == STEP_SENT || step->state == STEP_READING)
        step->execution->unfinished--;
}

/* What waits to be sent again may have reached the server, and keeps its place, whatever becomes of
 * the plan's other steps. */
static bool waits_again(const struct step *step)
{
    return step->state == STEP_READY && step->is_repeated;
}

/* Drops what was not sent. Latest first: an overlay leans on those laid before it. */
static void drop_unsent(struct execution *execution)
{
    struct list *node = execution->steps.prev;

    while (node != &execution->steps) {
        struct step *step = list_item(node, struct step, link);

        node = node->prev;
        if ((step->state == STEP_LATER || step->state == STEP_READY) && !waits_again(step)) {
            take_off(step);
            effect_failed(&step->effect);
        }
    }
}

static void end_execution(struct execution *execution)
{
    enum execution_end end = EXECUTION_DONE;

    drop_unsent(execution);
    list_remove(&execution->link);
    if (execution->failed)
        end = EXECUTION_FAILED;
    else if (execution->is_dropped)
        end = EXECUTION_DROPPED;
    execution->ended(execution, end); /* may free it */
}

/* Called after a step ended. */
static void advance(struct execution *execution)
{
    if (execution->unfinished > 0)
        return;
    if (execution->is_stopped || execution->is_dropped || list_is_empty(&execution->steps))
        end_execution(execution);
    else
        begin_stage(execution);
}

static void end_step(struct step *step)
{
    struct execution *execution = step->execution;

    take_off(step);
    advance(execution);
}

static void on_known(void *context, enum settle_end end, const struct kube_object *found)
{
    struct step *step = context;

    step->read = NULL;
    if (found && send_again(step, found))
        return;
    if (end == SETTLE_UNREADABLE)
        effect_failed(&step->effect);
    else
        effect_read(&step->effect, found);
    end_step(step);
}

/* Sent, and the answer does not tell what is there now: a read does, before the key is planned
 * again. False when there is nothing to read, or no time. */
static bool begin_reading(struct step *step)
{
    struct settler *settler = step->execution->executor->options.settler;

    if (!effect_can_be_read(&step->effect) || step->execution->is_hurried)
        return false;
    step->state = STEP_READING;
    step->read = settler_read(settler, step->effect.cache, step->effect.ns, step->effect.name,
                              on_known, step);
    return true;
}

/* Whether the effect is settled by this answer; else it stays laid until a read. */
static bool take_answer(struct step *step, const struct kube_answer *answer)
{
    if (went_well(step->action, answer)) {
        effect_done(&step->effect, step->action, answer);
        return true;
    }
    note_failure(step->execution, step->action, answer);
    if (answer->outcome == KUBE_UNKNOWN || step->is_repeated) /* the first may have come */
        return false;
    effect_failed(&step->effect);
    return true;
}

static void on_finish(void *context, const struct kube_answer *answer)
{
    struct step *step = context;
    struct lane *lane = step->lane;
    const struct executor_options *options = &lane->executor->options;
    int64_t until_us = answer->status == 429 ? pause_until_us(lane->executor, answer) : 0;

    step->handle = NULL;
    lane->in_flight--;
    count_action(step, answer);
    if (options->answered)
        options->answered(options->answered_context, step->execution, step->action, answer);
    if (lane->paused_until_us < until_us)
        lane->paused_until_us = until_us;
    pump_soon(lane->executor);

    if (!take_answer(step, answer) && begin_reading(step))
        return;
    end_step(step);
}

/* ---- sending ---- */

/* The k-th action of a stage comes up k turns from now, so that a plan of a thousand actions and a
 * plan of one take turns. */
static void make_ready(struct step *step, uint64_t turns)
{
    step->state = STEP_READY;
    step->tag = step->lane->tag + turns;
    if (heap_push(&step->lane->ready, &step->queued, NULL) < 0) {
        fprintf(stderr, "executor: more than %d actions wait\n", MAX_READY);
        abort();
    }
}

static void begin_stage(struct execution *execution)
{
    const struct step *first = list_item(list_first(&execution->steps), const struct step, link);
    unsigned stage = first->action->stage;
    uint64_t turns = 0;

    list_each (struct step, step, &execution->steps, link)
        if (step->action->stage == stage) {
            make_ready(step, ++turns);
            execution->unfinished++;
        }
    pump_soon(execution->executor);
}

static void refuse_paused(struct step *step)
{
    int64_t left_us = step->lane->paused_until_us - now_us(step->lane->executor);
    char message[100];
    struct kube_answer answer = {
        .outcome = KUBE_UNAVAILABLE, .reason = "", .message = message, .retry_after_us = left_us
    };

    snprintf(message, sizeof(message), "not sent: the server asked for a pause (%.1f s left)",
             (double)left_us / 1e6);
    take_answer(step, &answer);
    end_step(step);
}

static void drop_execution(struct execution *execution)
{
    execution->is_dropped = true;
    drop_unsent(execution);
    if (execution->unfinished == 0)
        end_execution(execution);
}

static bool is_stale(const struct executor *executor, const struct execution *execution)
{
    return execution->planned_us + EXECUTOR_STALE_US < now_us(executor);
}

static bool still_holds(const struct action *action)
{
    return !action->still_holds || action->still_holds(action->basis);
}

/* What a read does not show may still come, and take what others were given since. Of two that the
 * server takes once the second to come is refused: so when this one is answered, no other comes. */
static bool send_again(struct step *step, const struct kube_object *found)
{
    const struct action *action = step->action;

    if (!action->is_settled || action->is_settled(found) || step->is_repeated ||
        !still_holds(action))
        return false;
    step->is_repeated = true;
    make_ready(step, 1);
    pump_soon(step->execution->executor);
    return true;
}

/* Neither the age of the plan nor a pause of the lane holds a second sending up: the place is taken
 * until it is answered. */
static void send_step(struct executor *executor, struct step *step)
{
    struct lane *lane = step->lane;
    const struct executor_options *options = &executor->options;
    bool may_act = !options->may_act || options->may_act(options->may_act_context);
    bool is_late = !step->is_repeated && is_stale(executor, step->execution);

    if (!may_act || is_late || !still_holds(step->action)) {
        if (step->is_repeated) {
            take_off(step);
            effect_failed(&step->effect);
        }
        drop_execution(step->execution);
    } else if (!step->is_repeated && lane->paused_until_us > now_us(executor)) {
        refuse_paused(step);
    } else {
        heap_remove(&lane->ready, &step->queued);
        lane->tag = step->tag;
        lane->in_flight++;
        step->state = STEP_SENT;
        step->sent_us = now_us(executor);
        step->handle = lane->type->start(lane->service, step->action, on_finish, step);
    }
}

static unsigned limit_of(const struct lane *lane)
{
    unsigned own = lane->type->max_in_flight;

    return own > 0 ? own : lane->executor->options.max_in_flight;
}

static void on_pump(void *context)
{
    struct executor *executor = context;

    for (unsigned i = 0; i < executor->lane_count; i++) {
        struct lane *lane = &executor->lanes[i];
        struct heap_node *node;

        while (lane->in_flight < limit_of(lane) && (node = heap_first(&lane->ready)))
            send_step(executor, heap_item(node, struct step, queued));
    }
}

/* Never from inside the caller: an execution must not end before its beginning has returned. */
static void pump_soon(struct executor *executor)
{
    if (!loop_timer_is_armed(&executor->pump))
        loop_timer_start(executor->options.loop, &executor->pump, 0, on_pump, executor);
}

void execution_begin(struct executor *executor, struct execution *execution, struct plan *plan,
                     void (*ended)(struct execution *execution, enum execution_end end))
{
    const struct clock *clock = loop_clock(executor->options.loop);

    *execution = (struct execution){
        .executor = executor, .plan = plan, .ended = ended, .planned_us = now_us(executor)
    };
    list_init(&execution->steps);
    list_push_back(&executor->executions, &execution->link);
    list_each (const struct action, action, &plan->actions, link) {
        struct step *step = arena_alloc(plan->arena, sizeof(*step));

        step->execution = execution;
        step->action = action;
        step->lane = lane_of(executor, action->type);
        effect_lay(&step->effect, action, plan->arena, clock);
        list_push_back(&execution->steps, &step->link);
    }
    begin_stage(execution);
}

void execution_drop(struct execution *execution)
{
    execution->is_hurried = true;
    list_each (struct step, step, &execution->steps, link) {
        if (step->state != STEP_READING && !waits_again(step))
            continue;
        settle_read_cancel(step->read);
        take_off(step);
    }
    drop_execution(execution);
}

void execution_give_up(struct execution *execution)
{
    list_each (struct step, step, &execution->steps, link) {
        if (step->state == STEP_SENT) {
            step->lane->type->cancel(step->lane->service, step->handle);
            step->lane->in_flight--;
        }
        settle_read_cancel(step->read);
        take_off(step);
    }
    list_remove(&execution->link);
}
