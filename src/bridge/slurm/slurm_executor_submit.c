/* slurm_executor_submit.c - submits jobs, one at a time for each unit, and writes down what became
 * of each submit.
 *
 *   submitted   the job is in the cache at once, as pending; an immediate one is read for its nodes
 *   refused     by the table below: the next submit is queued, or prefers nothing, or waits until
 *               Slurm takes more jobs; the nodes are read again; or the refusal is remembered
 *   denied      the token is no good: nothing is submitted for a while, and then one job is
 *   unresolved  nobody knows whether there is a job: slurm_executor_unresolved.c
 *
 * Holds: a submit is on record as SENT before it is sent; a submit that is SENT, or UNRESOLVED and
 * not settled, is never followed by another; what is cancelled after sending stays UNRESOLVED. */
#include "bridge/slurm/slurm_executor_private.h"

#include "base/log.h"

#include "base/mem.h"
#include "slurm/submit.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SECOND_US = 1000000,
    EXPECT_US = 10 * SECOND_US,       /* polled often so long after a submit */
    LONGEST_FULL_US = 15 * SECOND_US, /* between submits while Slurm has no place */
    AGAIN_US = 600 * SECOND_US,       /* a submit that cannot be met */
    SOON_AGAIN_US = 15 * SECOND_US,   /* and one that could be later */
    LONGEST_DELAY_US = SECOND_US,     /* that a submit waits here for the throttle */
    MAX_GUARD_MEMORY = 64 << 20,
    SUBMITS_AT_ONCE = 8, /* slurmctld takes them one by one: more only stand before the reads */
};

struct submit_task {
    struct slurm_task base;
    struct slurm_executor *executor;
    const struct job_action *detail;
    uint64_t reserved;      /* immediate */
    struct json_doc *asked; /* the job as it was sent */
};

static int64_t now_us(const struct slurm_executor *executor)
{
    return loop_now_us(executor->lane.loop);
}

static const char *way(const struct job_action *detail)
{
    return detail->at_once ? "allocate" : "submit";
}

static const char *partition_of(const struct job_action *detail)
{
    return detail->job.partition ? detail->job.partition : "";
}

static void count(struct slurm_executor *executor, const struct job_action *detail,
                  const char *result)
{
    metrics_add(executor->options.metrics, &slurm_executor_metrics[EXECUTOR_SUBMITS], 1,
                way(detail), result, NULL);
}

static int64_t fence_us(const struct slurm_executor *executor)
{
    return slurm_submit_fence_us(executor->options.slurm, executor->message_timeout_s);
}

/* "<key>.<attempt>" */
static void full_key(const struct job_action *detail, struct buf *out)
{
    const struct slurm_key key = { detail->key, detail->uid, detail->attempt };

    buf_init(out, SLURM_MAX_KEY);
    slurm_key_write(&key, out);
}

/* ---- pauses ---- */

/* Slurm has no place for more jobs, or denies whatever is submitted: all wait, and longer each time
 * until one is taken. */
static void pause_all(struct slurm_executor *executor, const char *what, const char *why)
{
    int64_t now = now_us(executor), us = (int64_t)SECOND_US << executor->full.level;

    snprintf(executor->full_why, sizeof(executor->full_why), "%s%s", what, why);
    if (executor->full.until_us > now)
        return;
    if (us < LONGEST_FULL_US)
        executor->full.level++;
    executor->full.until_us = now + (us < LONGEST_FULL_US ? us : LONGEST_FULL_US);
}

int64_t slurm_executor_denied_us(const struct slurm_executor *executor)
{
    return executor->denied_us;
}

void slurm_executor_forget_denial(struct slurm_executor *executor)
{
    if (executor->denied_us == 0)
        return;
    executor->denied_us = 0;
    executor->full = (struct pause){ 0 };
}

int64_t slurm_executor_pause_us(const struct slurm_executor *executor, const char **ret_why)
{
    bool is_full = executor->full.until_us > now_us(executor);

    *ret_why = is_full ? executor->full_why : "";
    return is_full ? executor->full.until_us : 0;
}

/* ---- how many joined the queue ---- */

/* Empties the slices that have become too old. */
static void drop_old_slices(struct slurm_executor *executor)
{
    int64_t slice = now_us(executor) / QUEUED_SLICE_US;

    if (slice - executor->queued_slice >= QUEUED_SLICES)
        executor->queued_slice = slice - QUEUED_SLICES;
    while (executor->queued_slice < slice)
        executor->queued[++executor->queued_slice % QUEUED_SLICES] = 0;
}

size_t slurm_executor_queued(const struct slurm_executor *executor)
{
    int64_t oldest = now_us(executor) / QUEUED_SLICE_US - QUEUED_SLICES + 1;
    size_t count = 0;

    for (int64_t slice = executor->queued_slice;
         slice >= oldest && slice > executor->queued_slice - QUEUED_SLICES && slice >= 0; slice--)
        count += executor->queued[slice % QUEUED_SLICES];
    return count;
}

/* ---- submitted ---- */

/* The job as it will be listed, as far as the submit tells. */
static const struct slurm_object *foretell(const struct submit_task *task,
                                           const struct slurm_submit_outcome *outcome)
{
    static const char *const told[] = {
        "name",  "partition",      "admin_comment",  "flags",
        "extra", "excluded_nodes", "required_nodes", "tres_per_node"
    };
    int64_t wall_s = clock_wall_us(loop_clock(task->executor->lane.loop)) / SECOND_US;
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *job = json_new_object(build);
    struct json_mut *states = json_put_array(build, job, "job_state");
    const struct slurm_object *object = NULL;

    json_put_i64(build, job, "job_id", outcome->job_id);
    json_push_str(build, states, STR("PENDING"));
    if (task->detail
            ->at_once) /* decided, but where is not known: nobody waits behind it (capacity.c) */
        json_push_str(build, states, STR("CONFIGURING"));
    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
        json_put(build, job, told[i], json_copy(build, json_get(json_root(task->asked), told[i])));
    slurm_number_put(build, job, "submit_time", slurm_number_set(wall_s));
    json_put_text(build, json_put_object(build, job, "step_id"), "sluid", outcome->sluid);

    auto_json_doc struct json_doc *doc = json_freeze(job);

    (void)slurm_object_decode(&slurm_job_kind, json_root(doc), &object, NULL);
    return object;
}

/* Shows the new job, unless a poll was faster; an id that was another job's is a reason to doubt.
 */
static void show(struct submit_task *task, const struct slurm_submit_outcome *outcome)
{
    struct slurm_executor *executor = task->executor;
    const struct slurm_object *object = foretell(task, outcome), *old;
    auto_buf struct buf key;

    full_key(task->detail, &key);
    if (!object)
        return;
    old = slurm_cache_get(executor->jobs, object->key);
    if (old && !slurm_submit_is_for(slurm_job_of(old), executor->options.owner, buf_str(&key)))
        slurm_poller_suspect(executor->options.poller, "a new job has the id of another");
    else if (!old)
        slurm_cache_seen(executor->jobs, object, now_us(executor));
    if (task->detail->at_once && !old && !list_is_empty(&executor->submits))
        slurm_poller_started(executor->options.poller,
                             object->key); /* others wait: the cheaper way */
    else if (task->detail->at_once || old)
        slurm_poller_read(executor->options.poller, SLURM_FEED_JOBS, object->key);
    slurm_object_unref(object);
}

static void submitted(struct submit_task *task, struct unit_state *unit,
                      const struct slurm_submit_outcome *outcome)
{
    struct slurm_executor *executor = task->executor;

    executor->full = (struct pause){ 0 };
    executor->denied_us = 0;
    if (task->detail->at_once)
        capacity_taken(executor->options.capacity, partition_of(task->detail));
    drop_old_slices(executor);
    if (!task->detail->at_once)
        executor->queued[executor->queued_slice % QUEUED_SLICES]++;
    show(task, outcome);
    capacity_confirm(executor->options.capacity, task->reserved, outcome->job_id);
    task->reserved = 0;
    slurm_poller_track(executor->options.poller, outcome->job_id);
    slurm_poller_expect(executor->options.poller, now_us(executor) + EXPECT_US);
    unit_states_move(executor->options.unit_states, unit, SUBMIT_NONE);
    unit->prefers_nothing = false;
    sync_submitted(unit, outcome->job_id, &task->detail->job);
    count(executor, task->detail, "submitted");
    log_info("Slurm has a job for it", LOG_STR("unit", task->detail->key),
             LOG_U64("attempt", task->detail->attempt), LOG_I64("job", outcome->job_id),
             LOG_TEXT("sluid", outcome->sluid), LOG_TEXT("way", way(task->detail)),
             LOG_TEXT("on", task->detail->job.required_nodes));
}

/* ---- refused ---- */

enum refusal {
    REFUSAL_QUEUE, /* cannot start at once: the unit's next submit is queued */
    REFUSAL_FULL,  /* no place for more jobs */
    REFUSAL_NODES, /* it named nodes that Slurm does not have (any more) */
    REFUSAL_OURS,  /* about us, not about the submit: all wait */
    REFUSAL_USER,  /* this user may not: kept, and tried again soon, for people may mend it */
    REFUSAL_LESS,  /* perhaps for what it prefers: the unit's next submit is without */
    REFUSAL_KEPT,  /* the same submit would be refused again */
};

enum { ANY = 0 };

static const struct refusal_row {
    enum slurm_class class;
    int number;
    bool at_once; /* only then */
    enum refusal refusal;
    const char *word; /* metric label */
} refusals[] = {
    { SLURM_BUSY, 2007, false, REFUSAL_FULL, "full" }, /* MaxJobCount */
    { SLURM_BUSY, 2105, false, REFUSAL_FULL, "full" }, /* submissions are switched off */
    { SLURM_BUSY, ANY, true, REFUSAL_QUEUE, "busy" },
    { SLURM_UNKNOWN_NODE, ANY, false, REFUSAL_NODES, "unknown node" },
    { SLURM_AUTH, ANY, false, REFUSAL_OURS, "denied" },
    { SLURM_FORBIDDEN, 2002, false, REFUSAL_USER, "denied" }, /* access denied */
    { SLURM_FORBIDDEN, 2010, false, REFUSAL_USER, "denied" }, /* not this user */
};
static const struct refusal_row kept = { .refusal = REFUSAL_KEPT, .word = "refused" };
/* Licences, limits, a hold: what cannot start at once may well wait. Only a refused submit is
 * final.
 */
static const struct refusal_row not_at_once = { .refusal = REFUSAL_QUEUE, .word = "busy" };

/* Slurm refuses a preference that no node can ever meet. */
static const struct refusal_row without = { .refusal = REFUSAL_LESS, .word = "preference" };

static const struct refusal_row *refusal_of(const struct slurm_error *error, bool at_once,
                                            bool prefers)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        const struct refusal_row *row = &refusals[i];

        if (row->class == error->class && (row->number == ANY || row->number == error->number) &&
            (!row->at_once || at_once))
            return row;
    }
    if (at_once)
        return &not_at_once;
    return prefers ? &without : &kept;
}

static void keep_refusal(struct slurm_executor *executor, struct unit_state *unit, int64_t again_us)
{
    unit_states_move(executor->options.unit_states, unit, SUBMIT_REFUSED);
    unit->submit.site = capacity_generation(executor->options.capacity);
    unit->submit.again_us = now_us(executor) + again_us;
}

void submit_keep_refusal(struct slurm_executor *executor, struct unit_state *unit)
{
    keep_refusal(executor, unit, AGAIN_US);
}

/* Once for as long as it is refused in the same way, however often it is tried. */
static void log_refused(const struct submit_task *task, const struct refusal_row *row,
                        const struct slurm_error *error, bool is_news)
{
    const struct job_action *detail = task->detail;

    if (row->refusal == REFUSAL_OURS) /* slurm_health.c says it, for all */
        return;
    if (row->refusal != REFUSAL_USER)
        log_info("Slurm refused a job", LOG_STR("unit", detail->key),
                 LOG_U64("attempt", detail->attempt), LOG_TEXT("way", way(detail)),
                 LOG_I64("number", error->number), LOG_TEXT("error", error->text));
    else if (is_news)
        log_warn("Slurm denies a job to its user", LOG_STR("unit", detail->key),
                 LOG_TEXT("user", detail->job.user_id), LOG_I64("number", error->number),
                 LOG_TEXT("error", error->text));
}

/* How the action ends: DONE when the unit state tells the next plan what to do. */
static enum kube_outcome refused(struct submit_task *task, struct unit_state *unit,
                                 const struct slurm_error *error, bool is_news)
{
    struct slurm_executor *executor = task->executor;
    bool prefers = task->detail->job.prefer[0] && !unit->prefers_nothing;
    const struct refusal_row *row = refusal_of(error, task->detail->at_once, prefers);

    log_refused(task, row, error, is_news);
    if (row->refusal != REFUSAL_OURS)
        slurm_executor_forget_denial(executor);
    count(executor, task->detail, row->word);
    unit_states_move(executor->options.unit_states, unit, SUBMIT_NONE);
    switch (row->refusal) {
    case REFUSAL_QUEUE:
        unit->queues = true;
        capacity_refused(executor->options.capacity, partition_of(task->detail));
        break;
    case REFUSAL_FULL:
        pause_all(executor, "", error->text);
        break;
    case REFUSAL_NODES:
        slurm_poller_refresh(executor->options.poller, SLURM_FEED_NODES);
        return KUBE_UNAVAILABLE;
    case REFUSAL_OURS:
        if (executor->denied_us == 0)
            executor->denied_us = now_us(executor) > 0 ? now_us(executor) : 1;
        pause_all(executor, "Slurm cannot be used: ", error->text);
        break;
    case REFUSAL_USER:
        keep_refusal(executor, unit, SOON_AGAIN_US);
        break;
    case REFUSAL_LESS:
        unit->prefers_nothing = true;
        break;
    case REFUSAL_KEPT:
        keep_refusal(executor, unit, error->class == SLURM_BUSY ? SOON_AGAIN_US : AGAIN_US);
        break;
    }
    return KUBE_DONE;
}

/* ---- the answer ---- */

static enum kube_outcome judge(struct submit_task *task, const struct slurm_answer *answer)
{
    struct slurm_executor *executor = task->executor;
    struct unit_state *unit = unit_states_need(executor->options.unit_states, task->detail->key);
    struct slurm_submit_outcome outcome;

    bool is_news =
        unit->submit.class != answer->error.class || unit->submit.number != answer->error.number;

    slurm_submit_judge(answer, fence_us(executor), &outcome);
    unit->submit.class = answer->error.class;
    unit->submit.number = answer->error.number;
    snprintf(unit->submit.text, sizeof(unit->submit.text), "%s", answer->error.text);
    if (outcome.result == SLURM_SUBMITTED) {
        submitted(task, unit, &outcome);
        return KUBE_DONE;
    }
    if (outcome.result == SLURM_REFUSED)
        return refused(task, unit, &answer->error, is_news);
    if (answer->error.nothing_done) {
        count(executor, task->detail, "unsent");
        unit_states_move(executor->options.unit_states, unit, SUBMIT_NONE);
        return KUBE_UNAVAILABLE;
    }
    count(executor, task->detail, "unresolved");
    log_warn(outcome.is_answered
                 ? "Slurm gave an error: whether there is a job will be known later"
                 : "Slurm did not answer: whether there is a job will be known later",
             LOG_STR("unit", task->detail->key), LOG_U64("attempt", task->detail->attempt),
             LOG_TEXT("way", way(task->detail)), LOG_TEXT("error", answer->error.text));
    submit_unresolved(executor, task->detail->key, outcome.settles_us, outcome.is_answered);
    return KUBE_DONE;
}

static void let_next_go(struct slurm_executor *executor);

static enum kube_outcome judge_submit(struct slurm_task *base, const struct slurm_answer *answer)
{
    struct submit_task *task = list_item(base, struct submit_task, base);
    struct slurm_executor *executor = task->executor;
    enum kube_outcome outcome;

    metrics_observe(executor->options.metrics, &slurm_executor_metrics[EXECUTOR_SUBMIT_SECONDS],
                    (double)answer->took_us / 1e6, way(task->detail), NULL);
    outcome = judge(task, answer);
    capacity_unreserve(executor->options.capacity, task->reserved);
    executor->options.wake_unit(executor->options.context, task->detail->key);
    let_next_go(executor);
    return outcome;
}

/* ---- sending ---- */

/* The lease first: without it the caches may be old. */
static const char *objection(const struct slurm_executor *executor, const struct job_action *detail,
                             struct arena *arena)
{
    const struct slurm_executor_options *options = &executor->options;
    const char *why;

    if (!slurm_lane_may_send(&executor->lane))
        return "not sent: this bridge does not lead any more";
    why = options->object_to_submit(options->context, detail->key, job_desc_hash(&detail->job),
                                    arena);
    return why ? arena_printf(arena, "not sent: %s", why) : NULL;
}

/* With the hash of what was planned: that is what the next plan compares it with. */
static const struct unit_state *record(struct slurm_executor *executor,
                                       const struct job_action *detail)
{
    struct unit_state *unit = unit_states_need(executor->options.unit_states, detail->key);

    unit_states_move(executor->options.unit_states, unit, SUBMIT_SENT);
    unit->submit.attempt = detail->attempt;
    unit->submit.at_once = detail->at_once;
    unit->submit.hash = job_desc_hash(&detail->job);
    unit->submit.sent_us = now_us(executor);
    if (unit->submitted_us == 0)
        unit->submitted_us = unit->submit.sent_us;
    return unit;
}

static void send(struct submit_task *task)
{
    struct slurm_executor *executor = task->executor;
    const struct job_action *detail = task->detail;
    struct job_desc job = detail->job;
    struct capacity_need need;
    auto_json_build struct json_build *build = json_build_new();
    auto_buf struct buf key, note;
    struct field_hashes hashes;

    full_key(detail, &key);
    /* What it is submitted with: another leader will want to know. */
    buf_init(&note, SLURM_MAX_NOTE);
    field_hashes_of(&detail->job, &hashes);
    field_hashes_write(&hashes, &note);
    if (record(executor, detail)->prefers_nothing)
        job.prefer = "";
    if (detail->at_once && job_desc_need(&job, &need))
        task->reserved = capacity_reserve(executor->options.capacity, &need);

    struct slurm_submit_ask request = { .build = build,
                                        .job = job_desc_json(build, &job),
                                        .key = buf_str(&key),
                                        .owner = executor->options.owner,
                                        .job_user = job.user_id[0] ? job.user_id : NULL,
                                        .pods = detail->pods,
                                        .pod_count = detail->pod_count,
                                        .note = buf_str(&note),
                                        .at_once = detail->at_once,
                                        .message_timeout_s = executor->message_timeout_s };

    executor->submits_in_flight++;
    task->base.call = slurm_submit(executor->options.slurm, &request, slurm_task_answered, task);
    task->asked = json_freeze(request.job);
}

/* In a burst all are planned before the first has a node. An immediate try that must fail leaves a
 * FAILED record in the accounting, so it is planned again, for the queue. */
static bool is_too_late(const struct slurm_executor *executor, const struct job_action *detail)
{
    const struct capacity *capacity = executor->options.capacity;
    struct capacity_need need;

    return detail->at_once && job_desc_need(&detail->job, &need) &&
           (capacity_waiting(capacity, need.partition) > 0 || !capacity_fits(capacity, &need));
}

/* While all are denied, one tries for all. */
static unsigned max_submits_in_flight(const struct slurm_executor *executor)
{
    return executor->denied_us ? 1 : SUBMITS_AT_ONCE;
}

static void send_if_free(void *context)
{
    struct submit_task *task = context;
    struct slurm_executor *executor = task->executor;
    auto_arena struct arena arena;
    const char *why;

    arena_init(&arena, MAX_GUARD_MEMORY);
    if (executor->submits_in_flight >= max_submits_in_flight(executor)) {
        list_push_back(&executor->submits, &task->base.queue_link);
        return;
    }
    why = objection(executor, task->detail, &arena);
    if (!why && is_too_late(executor, task->detail))
        why = "not sent: it fits nowhere at once any more";
    if (why)
        slurm_task_end(&task->base, KUBE_CONFLICT, why);
    else
        send(task);
}

static void send_waiting(void *context)
{
    struct slurm_executor *executor = context;
    struct list *first;

    while (executor->submits_in_flight < max_submits_in_flight(executor) &&
           (first = list_first(&executor->submits)) != NULL) {
        list_remove(first);
        list_init(first);
        send_if_free(list_item(first, struct submit_task, base.queue_link));
    }
}

/* One less is in flight. The next goes from the loop: a cancelled one may be the first of many. */
static void let_next_go(struct slurm_executor *executor)
{
    executor->submits_in_flight--;
    if (!list_is_empty(&executor->submits))
        loop_timer_start(executor->lane.loop, &executor->submit_timer, 0, send_waiting, executor);
}

/* Submits are spaced evenly, with a tenth of a second's worth in one go. Whose turn is too far away
 * is sent back to be planned again by then. */
static void submit_start(struct slurm_task *base)
{
    struct submit_task *task = list_item(base, struct submit_task, base);
    struct slurm_executor *executor = executor_of(base);
    int64_t rate = executor->options.submits_per_second, now = now_us(executor);
    int64_t due_us = now;

    task->executor = executor;
    task->detail = job_action_of(base->action);
    if (rate > 0) {
        if (executor->next_submit_us < now - SECOND_US / 10)
            executor->next_submit_us = now - SECOND_US / 10;
        if (executor->next_submit_us > now)
            due_us = executor->next_submit_us;
        if (due_us - now > LONGEST_DELAY_US) {
            task->base.retry_after_us = due_us - now;
            slurm_task_end_soon(&task->base, KUBE_UNAVAILABLE,
                                "not sent: more submits than asksPerSecond");
            return;
        }
        executor->next_submit_us += rate < SECOND_US ? SECOND_US / rate : 1;
    }
    loop_timer_start(executor->lane.loop, &task->base.timer, due_us - now, send_if_free, task);
}

static void submit_cancelled(struct slurm_task *base)
{
    struct slurm_executor *executor = executor_of(base);
    const struct unit_state *unit =
        unit_states_get(executor->options.unit_states, job_action_of(base->action)->key);

    capacity_unreserve(executor->options.capacity,
                       list_item(base, struct submit_task, base)->reserved);
    if (!base->call)
        return;
    if (unit)
        submit_unresolved(executor, unit->key, unit->submit.sent_us + fence_us(executor), false);
    let_next_go(executor);
}

static void free_submit(struct slurm_task *base)
{
    json_doc_free(list_item(base, struct submit_task, base)->asked);
}

const struct slurm_call_type call_submit = { .what = "submit",
                                             .family = &action_slurm,
                                             .feed = SLURM_FEEDS,
                                             .start = submit_start,
                                             .judge = judge_submit,
                                             .write = job_action_write_submit,
                                             .task_size = sizeof(struct submit_task),
                                             .cancelled = submit_cancelled,
                                             .done = free_submit };

void submit_done(struct slurm_executor *executor)
{
    loop_timer_stop(&executor->settle_timer);
    loop_timer_stop(&executor->submit_timer);
}
