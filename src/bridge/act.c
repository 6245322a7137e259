/* act.c - the service: takes deeds from the executor, ends jobs, and tells how it went.
 *
 * Holds: every deed is finished once, from the loop, or cancelled; a job is only touched while the
 * cache shows it as the plan saw it. Cancelling many jobs is one call: 100 at once take slurmctld
 * as long as one. */
#include "bridge/act_private.h"

#include "base/log.h"

#include "base/mem.h"
#include "bridge/group.h"
#include "bridge/names.h"
#include "slurm/submit.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SECOND_US = 1000000,
    CANCELS_AT_ONCE = 200, /* in one call */
    FEW_READS = 4,         /* more jobs than that are seen by polling their states */
    EXPECT_US = 2 * SECOND_US,
    ID_TEXT = 24,
    MAX_NODE_BATCH = 500,
};

static const double ask_buckets[] = { 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
                                      0.5,   1,     2,    5,    10,   20,  0 };
static const double size_buckets[] = { 1, 2, 5, 10, 20, 50, 100, 200, 500, 0 };

const struct metric_family actor_metrics[] = {
    [ACTOR_ASKS] = { .name = "slinc_bridge_asks_total",
                     .help = "Jobs asked for, by way (submit, allocate) and result.",
                     .type = METRIC_COUNTER,
                     .labels = { "way", "result" } },
    [ACTOR_ASK_SECONDS] = { .name = "slinc_bridge_ask_duration_seconds",
                            .help = "Time from sending an ask to its answer.",
                            .type = METRIC_HISTOGRAM,
                            .labels = { "way" },
                            .buckets = ask_buckets },
    [ACTOR_CANCELS] = { .name = "slinc_bridge_cancels_total",
                        .help = "Jobs to be cancelled, by how it ended.",
                        .type = METRIC_COUNTER,
                        .labels = { "result" } },
    [ACTOR_DUPLICATES] = { .name = "slinc_bridge_duplicate_jobs_total",
                           .help = "Jobs cancelled while their unit had another one that lived.",
                           .type = METRIC_COUNTER },
    [ACTOR_NODE_CALLS] = { .name = "slinc_bridge_node_calls_total",
                           .help = "Calls that create, update or delete Slurm nodes, by result.",
                           .type = METRIC_COUNTER,
                           .labels = { "verb", "result" } },
    [ACTOR_NODES_PER_CALL] = { .name = "slinc_bridge_nodes_per_call",
                               .help = "Nodes in one such call.",
                               .type = METRIC_HISTOGRAM,
                               .labels = { "verb" },
                               .buckets = size_buckets },
};
const size_t actor_metric_count = sizeof(actor_metrics) / sizeof(actor_metrics[0]);
_Static_assert(sizeof(actor_metrics) / sizeof(actor_metrics[0]) == ACTOR_METRICS, "a row each");

/* ---- works ---- */

static void work_free(struct work *work)
{
    loop_timer_stop(&work->timer);
    slurm_call_cancel(work->call);
    if (work->look)
        kube_call_cancel(work->look);
    json_doc_free(work->asked);
    list_remove(&work->turn);
    list_remove(&work->link);
    mem_free(work);
}

void work_end(struct work *work, enum kube_outcome outcome, const char *message)
{
    char text[sizeof(work->message)];
    struct kube_answer answer = {
        .outcome = outcome, .reason = "", .message = text, .retry_after_us = work->retry_after_us
    };
    act_finish finish = work->finish;
    void *context = work->context;

    snprintf(text, sizeof(text), "%s", message);
    work_free(work);
    finish(context, &answer);
}

static void end_now(void *context)
{
    struct work *work = context;

    work_end(work, work->outcome, work->message);
}

void work_end_soon(struct work *work, enum kube_outcome outcome, const char *message)
{
    work->outcome = outcome;
    snprintf(work->message, sizeof(work->message), "%s", message);
    loop_timer_start(work->actor->loop, &work->timer, 0, end_now, work);
}

enum kube_outcome act_outcome(enum slurm_class class)
{
    switch (class) {
    case SLURM_DONE:
    case SLURM_NOT_MODIFIED:
        return KUBE_DONE;
    case SLURM_NOT_FOUND:
    case SLURM_EXISTS:
    case SLURM_BUSY:
    case SLURM_UNKNOWN_NODE:
        return KUBE_CONFLICT;
    case SLURM_AUTH:
    case SLURM_FORBIDDEN:
        return KUBE_DENIED;
    case SLURM_INVALID:
    case SLURM_UNSATISFIABLE:
    case SLURM_NOT_SUPPORTED:
        return KUBE_INVALID;
    case SLURM_UNAVAILABLE:
    case SLURM_TIMEOUT:
        return KUBE_UNAVAILABLE;
    case SLURM_UNKNOWN:
    case SLURM_CLASSES:
        break;
    }
    return KUBE_UNKNOWN;
}

/* ---- only if the object is gone ---- */

/* Members that have a job of their own do not count. A pod that cannot be read might, and one that
 * bears the id of the job runs by it, whatever its group is now. */
static bool is_placed_in(const struct json *item, const struct act_unless *unless, int64_t job_id)
{
    const struct kube_object *object;
    auto_buf struct buf key = { .max = SLURM_MAX_KEY };
    bool alone, placed, found, bears_id;
    char id[ID_TEXT];

    if (kube_object_decode(&kube_pod_kind, item, &object, NULL) < 0)
        return true;
    snprintf(id, sizeof(id), "%" PRId64, job_id);
    bears_id = str_is(kube_pairs_get(&object->labels, BRIDGE_JOB_LABEL, &found), id);
    group_key(kube_pod_of(object), &key);
    (void)kube_pairs_get(&object->annotations, BRIDGE_ALONE_ANNOTATION, &alone);
    placed = str_is(buf_str(&key), unless->unit) && !alone && (unless->job_id == 0 || !found);
    placed = kube_pod_of(object)->node_name[0] &&
             (placed || (bears_id && !kube_pod_is_finished(kube_pod_of(object))));
    kube_object_unref(object);
    return placed;
}

static bool list_has(const struct json *list, const struct work *work)
{
    struct json_iter iter = json_iter(json_get(list, "items"));
    const struct act_unless *unless = work->unless;
    const struct json *item;

    while (json_next_item(&iter, &item))
        if (unless->unit ? is_placed_in(item, unless, work->deed->job_id)
                         : str_is(json_str(json_at(item, "metadata", "uid")), unless->uid))
            return true;
    return false;
}

static void ask_unless(struct work *work);

static void does_not_object(struct work *work)
{
    work->unless = work->unless->also;
    ask_unless(work);
}

static void on_unless_list(void *context, const struct kube_answer *answer)
{
    struct work *work = context;

    work->look = NULL;
    if (answer->outcome != KUBE_DONE) /* unknown is not gone */
        work_end(work, answer->outcome, answer->message);
    else if (!json_is_array(json_get(answer->object, "items")) || list_has(answer->object, work))
        work_end(work, KUBE_CONFLICT, "the object is still there");
    else
        does_not_object(work);
}

static void on_unless(void *context, const struct kube_answer *answer)
{
    struct work *work = context;
    const struct act_unless *unless = work->unless;
    struct str uid = json_str(json_at(answer->object, "metadata", "uid"));

    work->look = NULL;
    if (answer->outcome == KUBE_GONE ||
        (answer->outcome == KUBE_DONE && uid.len > 0 && unless->uid && unless->uid[0] &&
         !str_is(uid, unless->uid)))
        does_not_object(work);
    else if (answer->outcome == KUBE_DONE)
        work_end(work, KUBE_CONFLICT, "the object is still there");
    else /* unknown is not gone */
        work_end(work, answer->outcome, answer->message);
}

static void ask_unless(struct work *work)
{
    const struct act_unless *unless = work->unless;
    struct kube_request request;

    if (!unless) {
        work->next(work);
        return;
    }
    request = (struct kube_request){
        .verb = unless->name ? KUBE_GET : KUBE_LIST,
        .resource = unless->resource,
        .ns = unless->ns,
        .name = unless->name,
    };
    work->look = kube_send(work->actor->options.kube, &request,
                           unless->name ? on_unless : on_unless_list, work);
}

void work_unless(struct work *work, void (*next)(struct work *work))
{
    work->next = next;
    work->unless = work->deed->has_unless ? &work->deed->unless : NULL;
    ask_unless(work);
}

/* ---- batches ---- */

struct batch *batch_new(struct actor *actor, enum deed_kind kind)
{
    struct batch *batch = mem_alloc(sizeof(*batch));

    batch->actor = actor;
    batch->kind = kind;
    list_init(&batch->works);
    list_push_back(&actor->batches, &batch->link);
    return batch;
}

void batch_add(struct batch *batch, struct work *work)
{
    list_remove(&work->turn);
    list_push_back(&batch->works, &work->turn);
    work->batch = batch;
    batch->count++;
}

void batch_free(struct batch *batch)
{
    slurm_call_cancel(batch->call);
    list_remove(&batch->link);
    mem_free(batch);
}

/* ---- jobs: whether it is the one that was planned on ---- */

static const struct slurm_job *shown(const struct actor *actor, int64_t id)
{
    const struct slurm_object *object;
    char key[ID_TEXT];

    snprintf(key, sizeof(key), "%" PRId64, id);
    object = slurm_cache_get(actor->jobs, key);
    return object ? slurm_job_of(object) : NULL;
}

bool act_may_send(const struct actor *actor)
{
    return !actor->options.may_act || actor->options.may_act(actor->options.context);
}

const char *act_objection(const struct actor *actor, const struct deed *deed)
{
    const struct slurm_job *job = shown(actor, deed->job_id);

    if (!act_may_send(actor))
        return "not sent: this bridge does not lead any more";
    if (slurm_poller_is_suspicious(actor->options.poller))
        return "not sent: slurmctld may have been restarted";
    if (!job)
        return "not sent: the job is no longer shown";
    if (deed->sluid[0] && job->sluid[0] && strcmp(deed->sluid, job->sluid) != 0)
        return "not sent: the id belongs to another job";
    if (deed->kind == DEED_UPDATE_JOB && deed->key.len == 0) /* one that is being taken over */
        return job->extra[0] ? "not sent: the job has a key meanwhile" : NULL;
    if (deed->key.len == 0 || !slurm_submit_is_for(job, actor->options.cluster, deed->key))
        return "not sent: the job does not carry the key that was planned on";
    return NULL;
}

static void wrote_job(struct actor *actor, int64_t id, bool read)
{
    char key[ID_TEXT];

    snprintf(key, sizeof(key), "%" PRId64, id);
    if (read)
        slurm_poller_wrote(actor->options.poller, SLURM_FEED_JOBS, key);
    else
        slurm_cache_wrote(actor->jobs, key, loop_now_us(actor->loop));
}

/* ---- jobs: cancelling ---- */

struct str deed_unit(const struct deed *deed)
{
    struct slurm_key key;

    return slurm_key_read(deed->key, &key) ? key.unit : deed->key;
}

static unsigned deed_attempt(const struct deed *deed)
{
    struct slurm_key key;

    return slurm_key_read(deed->key, &key) ? key.attempt : 0;
}

static bool has_another(const struct actor *actor, const struct deed *deed)
{
    struct slurm_index_walk walk = slurm_cache_by(actor->jobs, SLURM_JOBS_BY_KEY, deed_unit(deed));
    const struct slurm_object *object;

    while ((object = slurm_index_next(&walk))) {
        const struct slurm_job *job = slurm_job_of(object);

        if (job->id != deed->job_id && !slurm_job_has_ended(&job->state))
            return true;
    }
    return false;
}

static void cancel_ended(struct work *work, const struct slurm_error *error, bool read)
{
    struct actor *actor = work->actor;
    bool is_over = error->class == SLURM_DONE || error->class == SLURM_NOT_FOUND;

    metrics_add(actor->options.metrics, &actor_metrics[ACTOR_CANCELS], 1,
                slurm_class_name(error->class), NULL);
    log_info("cancelled a job", LOG_STR("unit", deed_unit(work->deed)),
             LOG_U64("attempt", deed_attempt(work->deed)), LOG_I64("job", work->deed->job_id),
             LOG_TEXT("sluid", work->deed->sluid), LOG_TEXT("why", work->deed->why),
             LOG_TEXT("result", slurm_class_name(error->class)));
    if (!error->unsent)
        wrote_job(actor, work->deed->job_id, read);
    work_end(work, is_over ? KUBE_DONE : act_outcome(error->class), error->text);
}

/* Whether an entry of `status` is about this job: by id, or by the name that it was cancelled by.
 */
static bool is_about(const struct json *status, const struct deed *deed)
{
    struct str name = json_str(json_get(status, "step_id")), rest;
    int64_t id = json_i64_or(json_at(status, "job_id", "number"), 0), number;

    (void)str_cut(name, '.', &name, &rest); /* "99999.0" is a step of it */
    if (id <= 0 && str_to_i64(name, 1, INT64_MAX, &number, NULL) == 0)
        id = number;
    return id == deed->job_id || (deed->sluid[0] && str_is(name, deed->sluid));
}

static bool says_whose(const struct json *status)
{
    return json_i64_or(json_at(status, "job_id", "number"), 0) > 0 ||
           json_str(json_get(status, "step_id")).len > 0;
}

/* What became of one job of many. An entry that does not say whose it is may be any's. */
static struct slurm_error error_of(const struct json *statuses, const struct deed *deed)
{
    struct slurm_error error = { .class = SLURM_DONE };
    struct json_iter iter = json_iter(statuses);
    const struct json *status;

    while (json_next_item(&iter, &status)) {
        if (is_about(status, deed)) {
            slurm_classify_status(status, &error);
            return error;
        }
        if (!says_whose(status)) {
            error.class = SLURM_UNKNOWN;
            snprintf(error.text, sizeof(error.text), "one of several jobs was not cancelled");
        }
    }
    return error;
}

/* A cancel without a clear answer may take effect as long as a submit may. */
static void note_unanswered(struct actor *actor, const struct slurm_answer *answer)
{
    int64_t until_us =
        answer->sent_us + slurm_submit_fence_us(actor->options.slurm, actor->message_timeout_s);

    if (answer->error.class != SLURM_DONE && !answer->error.nothing_done &&
        until_us > actor->cancels_until_us)
        actor->cancels_until_us = until_us;
}

static void on_cancelled(void *context, const struct slurm_answer *answer)
{
    struct batch *batch = context;
    struct actor *actor = batch->actor;
    const struct json *statuses =
        answer->error.class == SLURM_DONE ? json_get(answer->body, "status") : NULL;
    bool read = batch->count <= FEW_READS;
    struct list *first;

    batch->call = NULL;
    slurm_poller_heard(actor->options.poller, answer);
    note_unanswered(actor, answer);
    slurm_poller_expect(actor->options.poller, loop_now_us(actor->loop) + EXPECT_US);
    while ((first = list_first(&batch->works))) {
        struct work *work = list_item(first, struct work, turn);
        struct slurm_error error = answer->error;

        if (error.class == SLURM_DONE)
            error = error_of(statuses, work->deed);
        cancel_ended(work, &error, read);
    }
    batch_free(batch);
}

/* By its sluid where that is known: a cancel that waits in slurmrestd while slurmctld is down must
 * not hit another job that has got the id since. */
static const char *name_of(const struct deed *deed, char id[ID_TEXT])
{
    if (deed->sluid[0])
        return deed->sluid;
    snprintf(id, ID_TEXT, "%" PRId64, deed->job_id);
    return id;
}

static struct batch *gather_cancels(struct actor *actor, const char **names, char (*ids)[ID_TEXT])
{
    struct batch *batch = batch_new(actor, DEED_CANCEL);
    struct list *first;

    while (batch->count < CANCELS_AT_ONCE && (first = list_first(&actor->cancels))) {
        struct work *work = list_item(first, struct work, turn);
        const char *objection = act_objection(actor, work->deed);

        if (objection) {
            work_end(work, KUBE_CONFLICT, objection);
            continue;
        }
        if (has_another(actor, work->deed))
            metrics_add(actor->options.metrics, &actor_metrics[ACTOR_DUPLICATES], 1, NULL);
        names[batch->count] = name_of(work->deed, ids[batch->count]);
        batch_add(batch, work);
    }
    return batch;
}

static void send_cancels(void *context)
{
    struct actor *actor = context;
    const char *names[CANCELS_AT_ONCE];
    char ids[CANCELS_AT_ONCE][ID_TEXT];
    struct batch *batch = gather_cancels(actor, names, ids);

    if (batch->count == 0)
        batch_free(batch);
    else
        batch->call =
            slurm_jobs_cancel_named(actor->options.slurm, names, batch->count, on_cancelled, batch);
    if (!list_is_empty(&actor->cancels))
        loop_timer_start(actor->loop, &actor->cancel_timer, 0, send_cancels, actor);
}

/* Before the cancel: the next ask, whoever plans it, must not get this node again. */
static void remember_misfit(struct actor *actor, const struct deed *deed)
{
    if (deed->misfit)
        memory_add_misfit(memory_need(actor->options.memory, deed_unit(deed)), deed->misfit);
}

/* Whatever becomes of the cancel, and even if it comes only when the job runs. */
static void give_up(struct actor *actor, const struct deed *deed)
{
    struct str unit = deed_unit(deed);
    uint64_t attempt;

    if (unit.len < deed->key.len && memory_get(actor->options.memory, unit) &&
        str_to_u64(str_sub(deed->key, unit.len + 1, deed->key.len), 1, UINT32_MAX, &attempt,
                   NULL) == 0)
        memory_give_up(memory_need(actor->options.memory, unit), (unsigned)attempt);
}

static void cancel_job(struct work *work)
{
    struct actor *actor = work->actor;

    remember_misfit(actor, work->deed);
    give_up(actor, work->deed);
    list_push_back(&actor->cancels, &work->turn);
    if (!loop_timer_is_armed(&actor->cancel_timer))
        loop_timer_start(actor->loop, &actor->cancel_timer, 0, send_cancels, actor);
}

/* ---- jobs: looking and updating ---- */

static void on_updated(void *context, const struct slurm_answer *answer)
{
    struct work *work = context;
    struct actor *actor = work->actor;

    work->call = NULL;
    slurm_poller_heard(actor->options.poller, answer);
    if (!answer->error.unsent)
        wrote_job(actor, work->deed->job_id, true);
    work_end(work,
             work->deed->follows ? follow_answered(work, &answer->error)
                                 : act_outcome(answer->error.class),
             answer->error.text);
}

static void update_job(struct work *work)
{
    const char *objection = act_objection(work->actor, work->deed);

    if (objection)
        work_end_soon(work, KUBE_CONFLICT, objection);
    else if (work->deed->fields.len == 0)
        work_end_soon(work, follow_answered(work, &(struct slurm_error){ .class = SLURM_DONE }),
                      "");
    else
        work->call = slurm_job_update(work->actor->options.slurm, work->deed->job_id,
                                      work->deed->fields, on_updated, work);
}

static void look_at_job(struct work *work)
{
    char key[ID_TEXT];

    snprintf(key, sizeof(key), "%" PRId64, work->deed->job_id);
    slurm_poller_read(work->actor->options.poller, SLURM_FEED_JOBS, key);
    work_end_soon(work, KUBE_DONE, "");
}

/* ---- for the executor ---- */

void *act_start(void *service, const struct action *action, act_finish finish, void *context)
{
    struct actor *actor = service;
    struct work *work = mem_alloc(sizeof(*work));

    work->actor = actor;
    work->deed = action->detail;
    work->finish = finish;
    work->context = context;
    list_push_back(&actor->works, &work->link);
    switch (work->deed->kind) {
    case DEED_ASK:
        ask_start(work);
        break;
    case DEED_CANCEL:
        work_unless(work, cancel_job);
        break;
    case DEED_LOOK:
        look_at_job(work);
        break;
    case DEED_UPDATE_JOB:
        update_job(work);
        break;
    case DEED_CREATE_NODE:
    case DEED_UPDATE_NODE:
    case DEED_DELETE_NODE:
    case DEED_KINDS:
        node_start(work);
        break;
    }
    return work;
}

void act_cancel(void *service, void *handle)
{
    struct work *work = handle;

    if (work->deed->kind == DEED_ASK)
        ask_cancelled(work);
    work_free(work);
}

/* ---- the actor ---- */

int64_t pause_more(struct pause *pause, int64_t now_us, int64_t longest_us)
{
    int64_t us = INT64_C(1) * SECOND_US << pause->level;

    if (us > longest_us)
        us = longest_us;
    else
        pause->level++;
    pause->until_us = now_us + us;
    return us;
}

struct actor *actor_new(const struct actor_options *options)
{
    struct actor *actor = mem_alloc(sizeof(*actor));

    actor->options = *options;
    actor->cluster = mem_strndup(options->cluster.at, options->cluster.len);
    actor->options.cluster = str_of(actor->cluster);
    actor->loop = slurm_client_loop(options->slurm);
    actor->jobs = slurm_poller_cache(options->poller, SLURM_FEED_JOBS);
    actor->nodes = slurm_poller_cache(options->poller, SLURM_FEED_NODES);
    actor->list_asked_us = INT64_MIN;
    list_init(&actor->works);
    list_init(&actor->batches);
    list_init(&actor->cancels);
    list_init(&actor->asks);
    list_init(&actor->node_works);
    list_init(&actor->settling);
    map_init(&actor->partitions, &(struct map_options){ .max = 1 << 16 });
    for (size_t i = 0; i < DEED_KINDS; i++)
        actor->batch_max[i] = MAX_NODE_BATCH;
    return actor;
}

void actor_free(struct actor *actor)
{
    if (!actor)
        return;
    list_each (struct work, work, &actor->works, link)
        work_free(work);
    list_each (struct batch, batch, &actor->batches, link)
        batch_free(batch);
    ask_done(actor);
    node_done(actor);
    loop_timer_stop(&actor->cancel_timer);
    mem_free(actor->cluster);
    mem_free(actor);
}

bool actor_has_unanswered_cancels(const struct actor *actor)
{
    list_each (const struct batch, batch, &actor->batches, link)
        if (batch->kind == DEED_CANCEL)
            return true;
    return loop_now_us(actor->loop) < actor->cancels_until_us;
}

void actor_set_message_timeout(struct actor *actor, int64_t seconds)
{
    actor->message_timeout_s = seconds;
}
