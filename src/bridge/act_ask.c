/* act_ask.c - asks Slurm for jobs, one at a time for each unit, and writes down what became of it.
 *
 *   submitted   the job is in the cache at once, as pending; an immediate one is read for its nodes
 *   refused     by the table below: submit instead, ask without what is preferred, wait until there
 *               is place, refresh the nodes, or remember the refusal
 *   denied      the token is no good: nobody asks for a while, and then one does
 *   unresolved  remembered until a whole job list that began later than settles_us was merged; this
 *               file asks for that list, and wakes the unit
 *
 * Holds: an ask is on record as SENT before it is sent; an ask that is SENT, or UNRESOLVED and not
 * settled, is never followed by another; what is cancelled after sending stays UNRESOLVED. */
#include "bridge/act_private.h"

#include "base/log.h"

#include "base/mem.h"
#include "slurm/submit.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SECOND_US = 1000000,
    EXPECT_US = 10 * SECOND_US,       /* polled often so long after an ask */
    LONGEST_FULL_US = 15 * SECOND_US, /* between asks while Slurm has no place */
    LONGEST_CLOSED_US = 60 * SECOND_US,
    AGAIN_US = 600 * SECOND_US,     /* an ask that cannot be met */
    SOON_AGAIN_US = 15 * SECOND_US, /* and one that could be later */
    LONGEST_TURN_US = SECOND_US,    /* that an ask waits here for the throttle */
    ASKS_AT_ONCE = 8, /* slurmctld takes them one by one: more only stand before the reads */
    SETTLE_LOOK_US = SECOND_US / 5,
    SETTLE_AT_ONCE = 64,
    ID_TEXT = 24,
};

static int64_t now_us(const struct actor *actor)
{
    return loop_now_us(actor->loop);
}

static const char *way(const struct deed *deed)
{
    return deed->at_once ? "allocate" : "submit";
}

static const char *partition_of(const struct deed *deed)
{
    return deed->job.partition ? deed->job.partition : "";
}

static void count(struct actor *actor, const struct deed *deed, const char *result)
{
    metrics_add(actor->options.metrics, &actor_metrics[ACTOR_ASKS], 1, way(deed), result, NULL);
}

static int64_t fence_us(const struct actor *actor)
{
    return slurm_submit_fence_us(actor->options.slurm, actor->message_timeout_s);
}

/* "<key>.<attempt>" */
static void full_key(const struct deed *deed, struct buf *out)
{
    const struct slurm_key key = { deed->key, deed->uid, deed->attempt };

    buf_init(out, SLURM_MAX_KEY);
    slurm_key_write(&key, out);
}

/* ---- partitions whose immediate asks were refused ---- */

struct partition_pause {
    struct actor *actor;
    struct pause pause;
    struct loop_timer timer;
    char name[];
};

static void open_again(void *context)
{
    struct partition_pause *partition = context;

    room_open(partition->actor->options.room, partition->name);
}

static struct partition_pause *need_partition(struct actor *actor, const char *name)
{
    struct partition_pause *partition = map_get(&actor->partitions, str_of(name));
    size_t length = strlen(name);

    if (partition)
        return partition;
    partition = mem_alloc(sizeof(*partition) + length + 1);
    partition->actor = actor;
    memcpy(partition->name, name, length);
    if (map_put(&actor->partitions, str_of(name), partition, NULL) == 0)
        return partition;
    mem_free(partition); /* more partitions than anybody has: no pause then */
    return NULL;
}

/* Of asks that were refused side by side the first one counts. */
static void close_partition(struct actor *actor, const char *name)
{
    struct partition_pause *partition = need_partition(actor, name);

    if (!partition || loop_timer_is_armed(&partition->timer))
        return;
    room_close(actor->options.room, name);
    loop_timer_start(actor->loop, &partition->timer,
                     pause_more(&partition->pause, now_us(actor), LONGEST_CLOSED_US), open_again,
                     partition);
}

static void partition_took_one(struct actor *actor, const char *name)
{
    struct partition_pause *partition = map_get(&actor->partitions, str_of(name));

    if (partition)
        partition->pause.level = 0;
}

/* ---- no place for more jobs ---- */

static void note_full(struct actor *actor, const char *why)
{
    int64_t now = now_us(actor);

    snprintf(actor->full_why, sizeof(actor->full_why), "%s", why);
    if (actor->full.until_us <= now)
        pause_more(&actor->full, now, LONGEST_FULL_US);
}

/* ---- denied ---- */

/* Whatever is asked for would be denied: all wait. */
static void note_denied(struct actor *actor, const char *why)
{
    int64_t now = now_us(actor);

    if (actor->denied_us == 0)
        actor->denied_us = now > 0 ? now : 1;
    snprintf(actor->full_why, sizeof(actor->full_why), "Slurm cannot be used: %s", why);
    if (actor->full.until_us <= now)
        pause_more(&actor->full, now, LONGEST_FULL_US);
}

int64_t actor_denied_us(const struct actor *actor)
{
    return actor->denied_us;
}

void actor_forget_denial(struct actor *actor)
{
    if (actor->denied_us == 0)
        return;
    actor->denied_us = 0;
    actor->full = (struct pause){ 0 };
}

int64_t actor_pause_us(const struct actor *actor, const char **ret_why)
{
    bool is_full = actor->full.until_us > now_us(actor);

    *ret_why = is_full ? actor->full_why : "";
    return is_full ? actor->full.until_us : 0;
}

/* ---- settling ---- */

struct sweep {
    struct actor *actor;
    struct str keys[SETTLE_AT_ONCE]; /* in the memory */
    size_t count;
    int64_t listed_us;
    int64_t due_us;  /* the latest settles_us that has passed and no list has answered */
    int64_t next_us; /* the earliest of the others */
};

static void sort_out(void *context, const struct unit_memory *unit)
{
    struct sweep *sweep = context;
    int64_t settles_us = unit->ask.settles_us;

    if (unit->ask.state != ASK_UNRESOLVED)
        return;
    if (settles_us < sweep->listed_us) {
        if (sweep->count < SETTLE_AT_ONCE)
            sweep->keys[sweep->count++] = unit->key;
    } else if (settles_us < now_us(sweep->actor)) {
        if (settles_us > sweep->due_us)
            sweep->due_us = settles_us;
    } else if (settles_us < sweep->next_us) {
        sweep->next_us = settles_us;
    }
}

static void settle(void *context);

static void settle_after(struct actor *actor, int64_t delay_us)
{
    int64_t due_us = now_us(actor) + delay_us;

    if (!loop_timer_is_armed(&actor->settle_timer) || actor->settle_timer.due_us > due_us)
        loop_timer_start(actor->loop, &actor->settle_timer, delay_us, settle, actor);
}

/* What was looked for is in the cache now, or is not there. */
static void settle_unit(struct actor *actor, struct str key)
{
    struct unit_memory *unit = memory_need(actor->options.memory, key);

    memory_move(actor->options.memory, unit, ASK_NONE);
    actor->options.wake_unit(actor->options.context, unit->key);
}

static void settle(void *context)
{
    struct actor *actor = context;
    int64_t now = now_us(actor);
    struct sweep sweep = { .actor = actor,
                           .listed_us = slurm_cache_listed_us(actor->jobs),
                           .due_us = INT64_MIN,
                           .next_us = INT64_MAX };

    if (memory_in(actor->options.memory, ASK_UNRESOLVED) == 0)
        return;
    memory_each(actor->options.memory, sort_out, &sweep);
    for (size_t i = 0; i < sweep.count; i++)
        settle_unit(actor, sweep.keys[i]);
    if (sweep.due_us >= actor->list_asked_us && sweep.due_us != INT64_MIN) {
        slurm_poller_suspect(actor->options.poller, "an ask for a job was not answered");
        actor->list_asked_us = now;
    }
    if (sweep.count == SETTLE_AT_ONCE)
        settle_after(actor, 0);
    else if (sweep.due_us != INT64_MIN)
        settle_after(actor, SETTLE_LOOK_US);
    else if (sweep.next_us != INT64_MAX)
        settle_after(actor, sweep.next_us + 1 - now);
}

static void unresolved(struct actor *actor, struct str key, int64_t settles_us)
{
    struct unit_memory *unit = memory_need(actor->options.memory, key);
    int64_t left_us = settles_us + 1 - now_us(actor);

    memory_move(actor->options.memory, unit, ASK_UNRESOLVED);
    unit->ask.settles_us = settles_us;
    settle_after(actor, left_us > 0 ? left_us : 0);
}

/* ---- how many joined the queue ---- */

/* Empties the slices that have become too old. */
static void turn_slices(struct actor *actor)
{
    int64_t slice = now_us(actor) / QUEUED_SLICE_US;

    if (slice - actor->queued_slice >= QUEUED_SLICES)
        actor->queued_slice = slice - QUEUED_SLICES;
    while (actor->queued_slice < slice)
        actor->queued[++actor->queued_slice % QUEUED_SLICES] = 0;
}

size_t actor_queued(const struct actor *actor)
{
    int64_t oldest = now_us(actor) / QUEUED_SLICE_US - QUEUED_SLICES + 1;
    size_t count = 0;

    for (int64_t slice = actor->queued_slice;
         slice >= oldest && slice > actor->queued_slice - QUEUED_SLICES && slice >= 0; slice--)
        count += actor->queued[slice % QUEUED_SLICES];
    return count;
}

/* ---- submitted ---- */

/* The job as it will be listed, as far as the ask tells. */
static const struct slurm_object *foretell(const struct work *work,
                                           const struct slurm_submit_outcome *outcome)
{
    static const char *const told[] = { "name",  "partition",      "admin_comment", "flags",
                                        "extra", "excluded_nodes", "required_nodes" };
    int64_t wall_s = clock_wall_us(loop_clock(work->actor->loop)) / SECOND_US;
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *job = json_new_object(build);
    struct json_mut *states = json_put_array(build, job, "job_state");
    const struct slurm_object *object = NULL;

    json_put_i64(build, job, "job_id", outcome->job_id);
    json_push_str(build, states, STR("PENDING"));
    if (work->deed->at_once) /* decided, but where is not known: nobody waits behind it (room.c) */
        json_push_str(build, states, STR("CONFIGURING"));
    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
        json_put(build, job, told[i], json_copy(build, json_get(json_root(work->asked), told[i])));
    slurm_number_put(build, job, "submit_time", slurm_number_set(wall_s));
    json_put_text(build, json_put_object(build, job, "step_id"), "sluid", outcome->sluid);

    auto_json_doc struct json_doc *doc = json_freeze(job);

    (void)slurm_object_decode(&slurm_job_kind, json_root(doc), &object, NULL);
    return object;
}

/* Shows the new job, unless a poll was faster; an id that was another job's is a reason to doubt.
 */
static void show(struct work *work, const struct slurm_submit_outcome *outcome)
{
    struct actor *actor = work->actor;
    const struct slurm_object *object = foretell(work, outcome), *old;
    auto_buf struct buf key;

    full_key(work->deed, &key);
    if (!object)
        return;
    old = slurm_cache_get(actor->jobs, object->key);
    if (old && !slurm_submit_is_for(slurm_job_of(old), actor->options.cluster, buf_str(&key)))
        slurm_poller_suspect(actor->options.poller, "a new job has the id of another");
    else if (!old)
        slurm_cache_seen(actor->jobs, object, now_us(actor));
    if (work->deed->at_once && !old && !list_is_empty(&actor->asks))
        slurm_poller_started(actor->options.poller, object->key); /* others wait: the cheaper way */
    else if (work->deed->at_once || old)
        slurm_poller_read(actor->options.poller, SLURM_FEED_JOBS, object->key);
    slurm_object_unref(object);
}

static void submitted(struct work *work, struct unit_memory *unit,
                      const struct slurm_submit_outcome *outcome)
{
    struct actor *actor = work->actor;

    actor->full = (struct pause){ 0 };
    actor->denied_us = 0;
    if (work->deed->at_once)
        partition_took_one(actor, partition_of(work->deed));
    turn_slices(actor);
    if (!work->deed->at_once)
        actor->queued[actor->queued_slice % QUEUED_SLICES]++;
    show(work, outcome);
    room_fulfil(actor->options.room, work->promise, outcome->job_id);
    work->promise = 0;
    slurm_poller_track(actor->options.poller, outcome->job_id);
    slurm_poller_expect(actor->options.poller, now_us(actor) + EXPECT_US);
    memory_move(actor->options.memory, unit, ASK_NONE);
    unit->prefers_nothing = false;
    follow_asked(unit, outcome->job_id, &work->deed->job);
    count(actor, work->deed, "submitted");
    log_info("Slurm has a job for it", LOG_STR("unit", work->deed->key),
             LOG_U64("attempt", work->deed->attempt), LOG_I64("job", outcome->job_id),
             LOG_TEXT("sluid", outcome->sluid), LOG_TEXT("way", way(work->deed)),
             LOG_TEXT("on", work->deed->job.required_nodes));
}

/* ---- refused ---- */

enum refusal {
    REFUSAL_QUEUE, /* cannot start at once: the unit's next ask is a submit */
    REFUSAL_FULL,  /* no place for more jobs */
    REFUSAL_NODES, /* it named nodes that Slurm does not have (any more) */
    REFUSAL_OURS,  /* about us, not about the ask: all wait */
    REFUSAL_USER,  /* this user may not: kept, and tried again soon, for people may mend it */
    REFUSAL_LESS,  /* perhaps for what it prefers: the unit's next ask is without */
    REFUSAL_KEPT,  /* the same ask would be refused again */
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

static void keep_refusal(struct actor *actor, struct unit_memory *unit, int64_t again_us)
{
    memory_move(actor->options.memory, unit, ASK_REFUSED);
    unit->ask.site = room_generation(actor->options.room);
    unit->ask.again_us = now_us(actor) + again_us;
}

/* Once for as long as it is refused in the same way, however often it is tried. */
static void log_refused(const struct work *work, const struct refusal_row *row,
                        const struct slurm_error *error, bool is_news)
{
    const struct deed *deed = work->deed;

    if (row->refusal == REFUSAL_OURS) /* slurm_trouble.c says it, for all */
        return;
    if (row->refusal != REFUSAL_USER)
        log_info("Slurm refused a job", LOG_STR("unit", deed->key),
                 LOG_U64("attempt", deed->attempt), LOG_TEXT("way", way(deed)),
                 LOG_I64("number", error->number), LOG_TEXT("error", error->text));
    else if (is_news)
        log_warn("Slurm denies a job to its user", LOG_STR("unit", deed->key),
                 LOG_TEXT("user", deed->job.user_id), LOG_I64("number", error->number),
                 LOG_TEXT("error", error->text));
}

/* How the action ends: DONE when the memory tells the next plan what to do. */
static enum kube_outcome refused(struct work *work, struct unit_memory *unit,
                                 const struct slurm_error *error, bool is_news)
{
    struct actor *actor = work->actor;
    bool prefers = work->deed->job.prefer[0] && !unit->prefers_nothing;
    const struct refusal_row *row = refusal_of(error, work->deed->at_once, prefers);

    log_refused(work, row, error, is_news);
    if (row->refusal != REFUSAL_OURS)
        actor_forget_denial(actor);
    count(actor, work->deed, row->word);
    memory_move(actor->options.memory, unit, ASK_NONE);
    switch (row->refusal) {
    case REFUSAL_QUEUE:
        unit->queues = true;
        close_partition(actor, partition_of(work->deed));
        break;
    case REFUSAL_FULL:
        note_full(actor, error->text);
        break;
    case REFUSAL_NODES:
        slurm_poller_refresh(actor->options.poller, SLURM_FEED_NODES);
        return KUBE_UNAVAILABLE;
    case REFUSAL_OURS:
        note_denied(actor, error->text);
        break;
    case REFUSAL_USER:
        keep_refusal(actor, unit, SOON_AGAIN_US);
        break;
    case REFUSAL_LESS:
        unit->prefers_nothing = true;
        break;
    case REFUSAL_KEPT:
        keep_refusal(actor, unit, error->class == SLURM_BUSY ? SOON_AGAIN_US : AGAIN_US);
        break;
    }
    return KUBE_DONE;
}

/* ---- the answer ---- */

static void note_words(struct unit_memory *unit, const struct slurm_error *error)
{
    unit->ask.class = error->class;
    unit->ask.number = error->number;
    snprintf(unit->ask.text, sizeof(unit->ask.text), "%s", error->text);
}

static enum kube_outcome judge(struct work *work, const struct slurm_answer *answer)
{
    struct actor *actor = work->actor;
    struct unit_memory *unit = memory_need(actor->options.memory, work->deed->key);
    struct slurm_submit_outcome outcome;

    bool is_news =
        unit->ask.class != answer->error.class || unit->ask.number != answer->error.number;

    slurm_submit_judge(answer, fence_us(actor), &outcome);
    note_words(unit, &answer->error);
    if (outcome.result == SLURM_SUBMITTED) {
        submitted(work, unit, &outcome);
        return KUBE_DONE;
    }
    if (outcome.result == SLURM_REFUSED)
        return refused(work, unit, &answer->error, is_news);
    if (answer->error.nothing_done) {
        count(actor, work->deed, "unsent");
        memory_move(actor->options.memory, unit, ASK_NONE);
        return KUBE_UNAVAILABLE;
    }
    count(actor, work->deed, "unresolved");
    log_warn("Slurm did not answer: whether there is a job will be known later",
             LOG_STR("unit", work->deed->key), LOG_U64("attempt", work->deed->attempt),
             LOG_TEXT("way", way(work->deed)), LOG_TEXT("error", answer->error.text));
    unresolved(actor, work->deed->key, outcome.settles_us);
    return KUBE_DONE;
}

static void let_next_go(struct actor *actor);

static void on_answer(void *context, const struct slurm_answer *answer)
{
    struct work *work = context;
    struct actor *actor = work->actor;
    double seconds = (double)answer->took_us / 1e6;
    enum kube_outcome outcome;

    work->call = NULL;
    slurm_poller_heard(actor->options.poller, answer);
    metrics_observe(actor->options.metrics, &actor_metrics[ACTOR_ASK_SECONDS], seconds,
                    way(work->deed), NULL);
    outcome = judge(work, answer);
    room_withdraw(actor->options.room, work->promise);
    actor->options.wake_unit(actor->options.context, work->deed->key);
    work_end(work, outcome, answer->error.text);
    let_next_go(actor);
}

/* ---- sending ---- */

static const char *objection(const struct actor *actor, const struct deed *deed)
{
    const struct unit_memory *unit = memory_get(actor->options.memory, deed->key);
    struct slurm_index_walk walk = slurm_cache_by(actor->jobs, SLURM_JOBS_BY_KEY, deed->key);
    const struct slurm_object *object;
    auto_buf struct buf key;

    full_key(deed, &key);
    if (!act_may_send(actor))
        return "not sent: this bridge does not lead any more";
    if (slurm_poller_is_suspicious(actor->options.poller))
        return "not sent: slurmctld may have been restarted";
    if (actor->denied_us && actor->full.until_us > now_us(actor))
        return "not sent: Slurm cannot be used";
    if (unit && unit->ask.state == ASK_SENT)
        return "not sent: an ask is on its way";
    if (unit && unit->ask.state == ASK_UNRESOLVED &&
        unit->ask.settles_us >= slurm_cache_listed_us(actor->jobs))
        return "not sent: what became of the last ask is not known yet";
    while ((object = slurm_index_next(&walk))) {
        const struct slurm_job *job = slurm_job_of(object);

        if (!slurm_job_has_ended(&job->state) &&
            slurm_submit_is_for(job, actor->options.cluster, buf_str(&key)))
            return "not sent: there is such a job already";
    }
    return NULL;
}

/* With the hash of what was planned: that is what the next plan compares it with. */
static const struct unit_memory *record(struct actor *actor, const struct deed *deed)
{
    struct unit_memory *unit = memory_need(actor->options.memory, deed->key);

    memory_move(actor->options.memory, unit, ASK_SENT);
    unit->ask.attempt = deed->attempt;
    unit->ask.hash = job_ask_hash(&deed->job);
    unit->ask.sent_us = now_us(actor);
    if (unit->asked_us == 0)
        unit->asked_us = unit->ask.sent_us;
    return unit;
}

/* What it is asked with: another leader will want to know. */
static void write_note(const struct deed *deed, struct buf *out)
{
    struct job_marks marks;

    buf_init(out, SLURM_MAX_NOTE);
    job_marks_of(&deed->job, &marks);
    job_marks_write(&marks, out);
}

static void send(struct work *work)
{
    struct actor *actor = work->actor;
    const struct deed *deed = work->deed;
    struct job_ask job = deed->job;
    auto_json_build struct json_build *build = json_build_new();
    auto_buf struct buf key, note;

    full_key(deed, &key);
    write_note(deed, &note);
    if (record(actor, deed)->prefers_nothing)
        job.prefer = "";
    if (deed->at_once)
        work->promise = room_promise(actor->options.room, &job);

    struct slurm_submit_ask ask = { .build = build,
                                    .job = job_ask_json(build, &job),
                                    .key = buf_str(&key),
                                    .cluster = actor->options.cluster,
                                    .pods = deed->pods,
                                    .pod_count = deed->pod_count,
                                    .note = buf_str(&note),
                                    .at_once = deed->at_once,
                                    .message_timeout_s = actor->message_timeout_s };

    actor->asks_in_flight++;
    work->call = slurm_submit(actor->options.slurm, &ask, on_answer, work);
    work->asked = json_freeze(ask.job);
}

/* While all are denied, one tries for all. */
static unsigned asks_at_once(const struct actor *actor)
{
    return actor->denied_us ? 1 : ASKS_AT_ONCE;
}

static void its_turn(void *context)
{
    struct work *work = context;
    struct actor *actor = work->actor;
    const char *why;

    if (actor->asks_in_flight >= asks_at_once(actor)) {
        list_push_back(&actor->asks, &work->turn);
        return;
    }
    why = objection(actor, work->deed);
    if (why)
        work_end(work, KUBE_CONFLICT, why);
    else
        send(work);
}

static void send_waiting(void *context)
{
    struct actor *actor = context;
    struct list *first;

    while (actor->asks_in_flight < asks_at_once(actor) &&
           (first = list_first(&actor->asks)) != NULL) {
        list_remove(first);
        list_init(first);
        its_turn(list_item(first, struct work, turn));
    }
}

/* One less is in flight. The next goes from the loop: a cancelled one may be the first of many. */
static void let_next_go(struct actor *actor)
{
    actor->asks_in_flight--;
    if (!list_is_empty(&actor->asks))
        loop_timer_start(actor->loop, &actor->ask_timer, 0, send_waiting, actor);
}

/* Asks are spaced evenly, with a tenth of a second's worth in one go. Whose turn is too far away
 * is sent back to be planned again by then. */
void ask_start(struct work *work)
{
    struct actor *actor = work->actor;
    int64_t rate = actor->options.ask_per_second, now = now_us(actor);
    int64_t turn_us = now;

    if (rate > 0) {
        if (actor->next_ask_us < now - SECOND_US / 10)
            actor->next_ask_us = now - SECOND_US / 10;
        if (actor->next_ask_us > now)
            turn_us = actor->next_ask_us;
        if (turn_us - now > LONGEST_TURN_US) {
            work->retry_after_us = turn_us - now;
            work_end_soon(work, KUBE_UNAVAILABLE, "not sent: more asks than asksPerSecond");
            return;
        }
        actor->next_ask_us += rate < SECOND_US ? SECOND_US / rate : 1;
    }
    loop_timer_start(actor->loop, &work->timer, turn_us - now, its_turn, work);
}

void ask_cancelled(struct work *work)
{
    struct actor *actor = work->actor;
    const struct unit_memory *unit = memory_get(actor->options.memory, work->deed->key);

    room_withdraw(actor->options.room, work->promise);
    if (!work->call)
        return;
    if (unit)
        unresolved(actor, unit->key, unit->ask.sent_us + fence_us(actor));
    let_next_go(actor);
}

void ask_done(struct actor *actor)
{
    map_each (item, &actor->partitions) {
        struct partition_pause *partition = item->value;

        loop_timer_stop(&partition->timer);
        mem_free(partition);
    }
    map_done(&actor->partitions);
    loop_timer_stop(&actor->settle_timer);
    loop_timer_stop(&actor->ask_timer);
}
