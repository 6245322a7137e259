/* slurm_jobs.c - the life of a job: taken, started, ended, put back, forgotten; and the calls that
 * read and end jobs.
 *
 * Holds: a job holds nodes from its start until it is completed, which is a little after its end;
 * an ended job stays in the table until it is older than MinJobAge. */
#include "slurm_private.h"

#include <stdio.h>
#include <time.h>

enum { COMPLETING_MAX_US = 60 * 1000, MINUTE = 60 };

const char *const ctld_phase_names[] = {
    [PHASE_PENDING] = "PENDING",     [PHASE_RUNNING] = "RUNNING",
    [PHASE_SUSPENDED] = "SUSPENDED", [PHASE_COMPLETED] = "COMPLETED",
    [PHASE_CANCELLED] = "CANCELLED", [PHASE_FAILED] = "FAILED",
    [PHASE_TIMEOUT] = "TIMEOUT",     [PHASE_NODE_FAIL] = "NODE_FAIL",
    [PHASE_PREEMPTED] = "PREEMPTED", [PHASE_OUT_OF_MEMORY] = "OUT_OF_MEMORY",
};

bool ctld_job_has_ended(const struct ctld_job *job)
{
    return job->phase > PHASE_SUSPENDED;
}

/* ---- the life of a job ---- */

/* Thirteen digits of which none is mistaken for another; they sort as the numbers do. */
static void print_sluid(uint64_t number, char sluid[16])
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

    sluid[0] = 's';
    for (unsigned i = 0; i < 13; i++) {
        sluid[13 - i] = digits[number & 31];
        number >>= 5;
    }
    sluid[14] = '\0';
}

/* Time in front, a counter behind: also slurmctld that lost its state gives none twice. */
static uint64_t next_sluid(struct slurm_store *store)
{
    uint64_t number = (uint64_t)(ctld_wall_us(store) / 1000) << 16;

    store->last_sluid = number > store->last_sluid ? number : store->last_sluid + 1;
    return store->last_sluid;
}

void ctld_rewrite_comment(const struct slurm_store *store, struct ctld_job *job)
{
    if (store->options.rewrites_comments)
        ctld_set(&job->text[JOB_ADMIN_COMMENT], "seen by the site");
}

void ctld_job_take(struct slurm_store *store, struct ctld_job *job)
{
    const struct slurm_store_options *options = &store->options;

    ctld_align_backfill(store);
    job->id = store->state.next_id++;
    print_sluid(next_sluid(store), job->sluid);
    job->submit_us = ctld_wall_us(store);
    job->eligible_us = job->priority > 0 ? job->submit_us : 0;
    job->looked_at_us = ctld_now_us(store) + rand_range(&store->rand, options->start_delay_min_us,
                                                        options->start_delay_max_us);
    ctld_job_add(&store->state, job);
    ctld_touch(store, TABLE_JOBS);
    ctld_tell_job(store, SLURM_JOB_TAKEN, job, job->text[JOB_ASKED_BY]);
}

static void name_nodes(struct ctld_job *job)
{
    auto_buf struct buf text;
    auto_arena struct arena arena;
    struct str *names;

    buf_init(&text, HOSTLIST_MAX_TEXT);
    arena_init(&arena, CTLD_MAX_MEMORY);
    names = arena_alloc_array(&arena, job->piece_count + 1, sizeof(*names));
    for (unsigned i = 0; i < job->piece_count; i++)
        names[i] = str_of(job->pieces[i].node);
    (void)hostlist_fold(names, job->piece_count, &text, NULL);
    ctld_set(&job->text[JOB_NODES], buf_text(&text));
}

void ctld_job_start(struct slurm_store *store, struct ctld_job *job)
{
    job->phase = PHASE_RUNNING;
    job->start_us = ctld_wall_us(store);
    job->holds = true;
    job->ran_us = job->expected_us = job->end_us = 0;
    ctld_set(&job->text[JOB_REASON], "None");
    name_nodes(job);
    ctld_claim(&store->state, job);
    ctld_touch(store, TABLE_JOBS);
    ctld_touch(store, TABLE_NODES);
    ctld_tell_job(store, SLURM_JOB_STARTED, job, "");
}

static void touch_busy(struct slurm_store *store, const struct ctld_job *job)
{
    for (unsigned i = 0; i < job->piece_count; i++) {
        struct ctld_node *node = ctld_node_find(&store->state, job->pieces[i].node);

        if (node)
            node->last_busy_us = ctld_wall_us(store);
    }
}

void ctld_job_completed(struct slurm_store *store, struct ctld_job *job)
{
    job->completing_us = 0;
    if (job->holds) {
        ctld_unclaim(&store->state, job);
        touch_busy(store, job);
        job->holds = false;
        ctld_touch(store, TABLE_NODES);
        if (!job->external) /* its slurmd says so, and that wakes the scheduler */
            store->wake_us = ctld_now_us(store);
    }
    if (job->phase == PHASE_PENDING) { /* put back */
        ctld_job_drop_pieces(job);
        ctld_set(&job->text[JOB_NODES], "");
    }
    ctld_touch(store, TABLE_JOBS);
    ctld_tell_job(store, ctld_job_has_ended(job) ? SLURM_JOB_OVER : SLURM_JOB_BACK, job, "");
}

static void complete_soon(struct slurm_store *store, struct ctld_job *job)
{
    if (!job->holds || job->external) /* nobody has to be waited for */
        ctld_job_completed(store, job);
    else
        job->completing_us = ctld_now_us(store) + rand_range(&store->rand, 1, COMPLETING_MAX_US);
}

void ctld_job_end(struct slurm_store *store, struct ctld_job *job, enum ctld_phase phase,
                  const char *reason, const char *user)
{
    job->phase = phase;
    job->end_us = ctld_wall_us(store);
    if (job->start_us == 0)
        job->start_us = job->end_us;
    if (reason) /* else what it waited for */
        ctld_set(&job->text[JOB_REASON], reason);
    ctld_touch(store, TABLE_JOBS);
    ctld_tell_job(store, SLURM_JOB_CHANGED, job, user);
    complete_soon(store, job);
}

void ctld_job_requeue(struct slurm_store *store, struct ctld_job *job, const char *reason)
{
    const struct slurm_store_options *options = &store->options;

    ctld_align_backfill(store);
    job->phase = PHASE_PENDING;
    job->start_us = job->end_us = job->suspended_us = 0;
    job->restarts++;
    job->eligible_us = ctld_wall_us(store);
    job->looked_at_us =
        ctld_now_us(store) + COMPLETING_MAX_US +
        rand_range(&store->rand, options->start_delay_min_us, options->start_delay_max_us);
    ctld_set(&job->text[JOB_REASON], reason);
    ctld_touch(store, TABLE_JOBS);
    complete_soon(store, job);
}

void ctld_job_changed(struct slurm_store *store, const struct ctld_job *job, const char *user)
{
    ctld_touch(store, TABLE_JOBS);
    ctld_tell_job(store, SLURM_JOB_CHANGED, job, user);
}

void ctld_job_forget(struct slurm_store *store, struct ctld_job *job, enum slurm_store_event event)
{
    ctld_touch(store, TABLE_JOBS);
    ctld_tell_job(store, event, job, "");
    ctld_job_remove(&store->state, job->id);
}

/* ---- what is due by itself ---- */

int64_t ctld_job_ends_us(const struct ctld_job *job)
{
    if (job->time_limit <= 0)
        return INT64_MAX;
    return job->start_us + job->time_limit * MINUTE * CTLD_SECOND;
}

/* A wall time as one of the monotonic clock. */
static int64_t monotonic(const struct slurm_store *store, int64_t wall_us)
{
    return wall_us == INT64_MAX ? INT64_MAX : ctld_now_us(store) + (wall_us - ctld_wall_us(store));
}

int64_t ctld_job_due_us(const struct slurm_store *store, const struct ctld_job *job)
{
    if (job->completing_us)
        return job->completing_us;
    if (ctld_job_has_ended(job))
        return monotonic(store, job->end_us + store->options.min_job_age_s * CTLD_SECOND);
    if (job->phase == PHASE_RUNNING)
        return monotonic(store, ctld_job_ends_us(job));
    return INT64_MAX; /* the scheduler's, or people's */
}

void ctld_job_tick(struct slurm_store *store, struct ctld_job *job)
{
    if (ctld_job_due_us(store, job) > ctld_now_us(store))
        return;
    if (job->completing_us)
        ctld_job_completed(store, job);
    else if (ctld_job_has_ended(job))
        ctld_job_forget(store, job, SLURM_JOB_FORGOTTEN);
    else
        ctld_job_end(store, job, PHASE_TIMEOUT, "TimeLimit", "");
}

/* ---- reading ---- */

bool ctld_may_touch(const struct ctld_call *call, const struct ctld_job *job)
{
    return call->privileged || strcmp(call->user, job->text[JOB_USER]) == 0;
}

static bool may_see(const struct ctld_call *call, const struct ctld_job *job)
{
    return !ctld_list_has(call->store->options.private_data, STR("jobs")) ||
           ctld_may_touch(call, job);
}

static struct ctld_job *find_by_sluid(const struct ctld_call *call, struct str sluid)
{
    const struct ctld_state *state = &call->store->state;

    for (size_t i = 0; i < state->job_count; i++)
        if (str_is(sluid, state->jobs[i]->sluid))
            return state->jobs[i];
    return NULL;
}

static struct ctld_job *find_by_text(const struct ctld_call *call, struct str text)
{
    int64_t id;

    if (str_starts(text, STR("s")))
        return find_by_sluid(call, text);
    if (str_to_i64(text, 1, INT64_MAX, &id, NULL) < 0)
        return NULL;
    return ctld_job_find(&call->store->state, id);
}

static void put_times(struct ctld_call *call)
{
    ctld_put_number(&call->answer->body, "last_backfill",
                    call->store->last_backfill_us / CTLD_SECOND);
    ctld_put_last_update(call);
}

/* A name that is no number does not get as far as slurmctld. */
static bool has_no_id(struct ctld_call *call)
{
    int64_t id;

    if (call->name[0] == 's' || str_to_i64(str_of(call->name), 1, INT64_MAX, &id, NULL) == 0)
        return false;
    ctld_refuse_request(call, "parameters", "op_handler_job");
    return true;
}

void ctld_run_job_get(struct ctld_call *call)
{
    const struct ctld_job *job = find_by_text(call, str_of(call->name));

    if (has_no_id(call))
        return;

    if (!job || !may_see(call, job)) {
        ctld_refuse(call, 2017);
        return;
    }
    ctld_begin(call);
    buf_add_text(&call->answer->body, "\"jobs\":[");
    ctld_show_job(call, job);
    buf_add_char(&call->answer->body, ']');
    put_times(call);
    ctld_finish(call);
}

static void print_time(char text[32], int64_t seconds)
{
    struct tm tm;
    time_t at = (time_t)seconds;

    gmtime_r(&at, &tm);
    (void)strftime(text, 32, "%Y-%m-%dT%H:%M:%S", &tm);
}

/* The one list that says "unchanged" by being empty. */
static void answer_unchanged(struct ctld_call *call)
{
    char text[32] = "";
    int64_t since = 0;

    (void)str_to_i64(ctld_query(call, "update_time"), 0, INT64_MAX, &since, NULL);
    print_time(text, since);
    ctld_warn(call, "op_handler_jobs", "No job changes since update_time[%lld]=%s",
              (long long)since, text);
    ctld_begin(call);
    buf_add_text(&call->answer->body, call->route->before);
    ctld_finish(call);
}

/* The one that slurmrestd does not know; "" for none. */
static struct str bad_flag(struct ctld_call *call)
{
    static const char known[] = "ALL,DETAIL,MIXED,LOCAL,SIBLING,FEDERATION,FUTURE,NONE";
    struct str flags = ctld_query(call, "flags"), flag;

    while (flags.len > 0 && str_next(&flags, ',', &flag))
        if (!ctld_list_has(known, flag))
            return flag;
    return STR("");
}

static void put_jobs(struct ctld_call *call)
{
    const struct ctld_state *state = &call->store->state;

    ctld_begin(call);
    buf_add_text(&call->answer->body, "\"jobs\":[");
    for (size_t i = 0; i < state->job_count; i++)
        if (may_see(call, state->jobs[i]))
            ctld_show_job(call, state->jobs[i]);
    buf_add_char(&call->answer->body, ']');
    put_times(call);
}

void ctld_run_jobs_list(struct ctld_call *call)
{
    struct str flag = bad_flag(call);
    char what[120];

    if (flag.len > 0) { /* an error, and all the jobs */
        (void)snprintf(what, sizeof(what), "Unknown flag \"" STR_FMT "\"",
                       STR_ARG(str_sub(flag, 0, 80)));
        put_jobs(call);
        ctld_finish_error(call, 9207, what, "#/flags[0]/");
    } else if (ctld_is_unchanged(call, TABLE_JOBS)) {
        answer_unchanged(call);
    } else {
        put_jobs(call);
        ctld_finish(call);
    }
}

static void put_brief(struct ctld_call *call, const struct ctld_job *job)
{
    struct buf *out = &call->answer->body;
    char words[64];

    ctld_put(out, NULL);
    ctld_job_states(job, words);
    buf_printf(out, "{\"job_id\":\"%lld\"", (long long)job->id);
    ctld_put_words(out, "state", words);
    buf_add_char(out, '}');
}

/* The ids of a query, each a parameter of its own. 0, or what slurmrestd says instead. */
static const char *put_briefs_of(struct ctld_call *call)
{
    struct str rest = call->query, part;
    unsigned count = 0;
    int64_t id;

    while (str_next(&rest, '&', &part)) {
        const struct ctld_job *job;

        if (!str_starts(part, STR("job_id=")))
            continue;
        part = str_sub(part, 7, part.len);
        if (memchr(part.at, ',', part.len) ||
            strstr(arena_strndup(call->arena, part.at, part.len), "%2C"))
            return "Unspecified error";
        if (++count > CTLD_MAX_IDS)
            return "Insane message length";
        if (str_to_i64(part, 1, INT64_MAX, &id, NULL) < 0)
            return "";
        job = find_by_text(call, part);
        if (job && may_see(call, job))
            put_brief(call, job);
    }
    return NULL;
}

void ctld_run_jobs_state(struct ctld_call *call)
{
    const struct ctld_state *state = &call->store->state;
    const char *trouble = NULL;

    ctld_begin(call);
    buf_add_text(&call->answer->body, "\"jobs\":[");
    if (ctld_query(call, "job_id").len > 0)
        trouble = put_briefs_of(call);
    else
        for (size_t i = 0; i < state->job_count; i++)
            if (may_see(call, state->jobs[i]))
                put_brief(call, state->jobs[i]);
    buf_add_char(&call->answer->body, ']');
    ctld_finish(call);
    if (trouble && !trouble[0])
        ctld_refuse_request(call, "query", "op_handler_job_states");
    else if (trouble)
        ctld_plain(call->answer, 500, trouble);
}

void ctld_run_resources(struct ctld_call *call)
{
    const struct ctld_job *job = find_by_text(call, str_of(call->name));

    if (!job || !may_see(call, job)) {
        ctld_refuse(call, 2017);
        return;
    }
    if (!job->holds || job->completing_us) {
        ctld_refuse(call, 2085);
        return;
    }
    ctld_begin(call);
    ctld_show_layout(call, job);
    ctld_finish(call);
}

/* ---- ending ---- */

/* Slurm's error number, or 0 when it was cancelled. */
static int cancel(struct ctld_call *call, struct ctld_job *job)
{
    if (!job)
        return 2017;
    if (ctld_job_has_ended(job))
        return 2021;
    if (!ctld_may_touch(call, job))
        return 1;
    ctld_job_end(call->store, job, PHASE_CANCELLED, NULL, call->user);
    return 0;
}

static void put_status(struct ctld_call *call, const char *id, const struct ctld_job *job,
                       int number)
{
    struct buf *out = &call->answer->body;

    ctld_put(out, NULL);
    buf_add_text(out, "{\"error\":{");
    ctld_put_text(out, "string", ctld_error_words(number));
    ctld_put_int(out, "code", number);
    ctld_put_text(out, "message", ctld_error_words(number));
    buf_add_char(out, '}');
    ctld_put_text(out, "step_id", id);
    if (job)
        ctld_put_number(out, "job_id", job->id);
    else
        ctld_put_unset(out, "job_id");
    buf_add_text(out, ",\"federation\":{\"sibling\":\"\"}}");
}

static bool cancel_one(struct ctld_call *call, struct str id)
{
    struct ctld_job *job = find_by_text(call, id);
    int number = cancel(call, job);

    if (number == 1) { /* and slurmctld answers nobody any more */
        slurm_store_stop(call->store);
        ctld_refuse(call, 1);
        return false;
    }
    if (number != 0)
        put_status(call, arena_strndup(call->arena, id.at, id.len), job, number);
    return true;
}

void ctld_run_job_cancel(struct ctld_call *call)
{
    if (has_no_id(call))
        return;
    ctld_begin(call);
    buf_add_text(&call->answer->body, "\"status\":[");
    if (!cancel_one(call, str_of(call->name)))
        return;
    buf_add_char(&call->answer->body, ']');
    ctld_finish(call);
}

/* Slurm 25.11 reads a sluid as the number 0, and cancels none of the list. */
static bool has_unread_sluid(const struct ctld_call *call)
{
    struct json_iter iter = json_iter(json_get(call->body, "jobs"));
    const struct json *item;

    while (call->version < 45 && json_next_item(&iter, &item))
        if (str_starts(json_str(item), STR("s")))
            return true;
    return false;
}

/* As slurm_complete_job: by the wait status of a process. A job that never ran is cancelled. */
void ctld_run_job_complete(struct ctld_call *call)
{
    struct ctld_job *job = find_by_text(call, str_of(call->name));
    int64_t status = json_i64_or(json_get(call->body, "return_code"), -1);

    if (!job || !str_is(json_str(json_get(call->body, "sluid")), job->sluid)) {
        ctld_refuse(call, 2017);
        return;
    }
    if (!ctld_may_touch(call, job)) {
        ctld_refuse(call, 2002);
        return;
    }
    ctld_begin(call);
    ctld_finish(call);
    if (ctld_job_has_ended(job))
        return;
    job->exit_code = (int)(status >> 8 & 255);
    job->exit_signal = (int)(status & 127);
    ctld_job_end(call->store, job,
                 job->phase == PHASE_PENDING      ? PHASE_CANCELLED
                 : status == 0                    ? PHASE_COMPLETED
                 : (status & 255) == CTLD_SIG_OOM ? PHASE_OUT_OF_MEMORY
                                                  : PHASE_FAILED,
                 status == 0 ? "None" : "NonZeroExitCode", call->user);
}

void ctld_run_jobs_cancel(struct ctld_call *call)
{
    struct json_iter iter = json_iter(json_get(call->body, "jobs"));
    const struct json *item;

    if (has_unread_sluid(call)) {
        ctld_refuse(call, 2137);
        return;
    }
    ctld_begin(call);
    buf_add_text(&call->answer->body, "\"status\":[");
    while (json_next_item(&iter, &item))
        if (!cancel_one(call, json_str(item)))
            return;
    buf_add_char(&call->answer->body, ']');
    ctld_finish(call);
}
