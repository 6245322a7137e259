/* slurm_submit.c - the calls that carry a job description: submit, allocate, update.
 *
 * What is refused after slurmctld has looked for nodes leaves a FAILED record behind. */
#include "slurm_private.h"

#include <stdio.h>

/* ---- refusing ---- */

static int check_new(const struct slurm_store *store, const struct ctld_job *job,
                     const struct json *ask, bool allocate)
{
    const struct ctld_partition *partition =
        ctld_partition_find(&store->state, job->text[JOB_PARTITION]);

    if (job->external && json_exists(json_get(ask, "script")))
        return 2189;
    if (!job->external && !allocate && json_len(json_get(ask, "environment")) == 0)
        return 2127;
    if (json_exists(json_get(ask, "array")) && job->external)
        return 2081;
    if (store->state.job_count >= store->options.max_job_count)
        return 2007;
    if (partition && (strcmp(partition->text[PART_STATE], "DRAIN") == 0 ||
                      strcmp(partition->text[PART_STATE], "INACTIVE") == 0))
        return 2070;
    return ctld_job_check(store, job);
}

static const char needs_script[] = "Populated \"script\" field is required for job submission";

/* What slurmrestd finds out by itself; true when it has answered. */
static bool restd_refuses(struct ctld_call *call, const struct json *ask, bool allocate)
{
    static const char known[] =
        "EXTERNAL_JOB,SPREAD_JOB,NO_KILL_JOB_ON_NODE_FAIL,SKIP_ON_ERROR,KILL_INVALID_DEPENDENCY";
    struct json_iter iter = json_iter(json_get(ask, "flags"));
    const struct json *flag;
    bool external = call->version > 42 && ctld_ask_has_word(json_get(ask, "flags"), "EXTERNAL_JOB");
    bool lacks_script = !allocate && !external && !json_exists(json_get(ask, "script"));
    char what[300], source[60];

    for (unsigned place = 0; json_next_item(&iter, &flag); place++) {
        bool is_known = ctld_list_has(known, json_str(flag)) &&
                        (call->version > 42 || !str_is(json_str(flag), "EXTERNAL_JOB"));

        if (is_known)
            continue;
        (void)snprintf(what, sizeof(what), "Unknown flag \"" STR_FMT "\"",
                       STR_ARG(str_sub(json_str(flag), 0, 200)));
        (void)snprintf(source, sizeof(source), "#/job/flags[%u]/", place);
        if (lacks_script) {
            call->second.number = 9000;
            call->second.what = needs_script;
            call->second.source = "_job_post";
        }
        ctld_refuse_as(call, 9207, what, source);
        return true;
    }
    if (lacks_script)
        ctld_refuse_as(call, 9000, needs_script, "_job_post");
    return lacks_script;
}

/* The description names somebody by name or by number; -1: nobody. slurmrestd looks up names, and
 * groups come first. False when it has refused. */
static bool resolve(struct ctld_call *call, const struct json *ask, int64_t *ret_group,
                    int64_t *ret_user)
{
    const struct {
        const char *member, *what;
        int number;
        int64_t *ret_id;
    } rows[] = { { "group_id", "group", 2164, ret_group }, { "user_id", "user", 2166, ret_user } };
    char what[300], source[60];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct json *value = json_get(ask, rows[i].member);
        struct str name = json_str(value);

        *rows[i].ret_id = json_i64_or(value, -1);
        if (name.len == 0 || str_to_i64(name, 0, INT32_MAX, rows[i].ret_id, NULL) == 0)
            continue;
        if (!ctld_knows_user(call->store, name) && !str_is(name, call->user)) {
            (void)snprintf(what, sizeof(what), "Unable to resolve %s: " STR_FMT, rows[i].what,
                           STR_ARG(str_sub(name, 0, 200)));
            (void)snprintf(source, sizeof(source), "#/job/%s/", rows[i].member);
            ctld_refuse_as(call, rows[i].number, what, source);
            return false;
        }
        *rows[i].ret_id = ctld_uid(call->store, name.at);
    }
    return true;
}

/* Whose job it is: the asker's; of a submission, whom the description names, if the asker may say
 * so. An allocation is the asker's, whoever is named. False when it has been refused. */
static bool set_owner(struct ctld_call *call, struct ctld_job *job, const struct json *ask,
                      bool allocate)
{
    int64_t asker = ctld_uid(call->store, call->user), group, user;
    int number = 0;

    ctld_set(&job->text[JOB_ASKED_BY], call->user);
    ctld_set(&job->text[JOB_USER], call->user);
    job->user_id = job->group_id = asker; /* everybody has a group of their own */
    if (strcmp(call->user, "nobody") == 0)
        number = 6010;
    else if (!resolve(call, ask, &group, &user))
        return false;
    else if (allocate)
        return true;
    else if (!call->privileged && user >= 0 && user != asker)
        number = 2010;
    else if (!call->privileged && group >= 0 && group != asker)
        number = 2113;
    if (number != 0) {
        ctld_refuse(call, number);
        return false;
    }
    job->group_id = group >= 0 ? group : asker;
    job->user_id = user >= 0 ? user : asker;
    ctld_set(&job->text[JOB_USER], ctld_user_of(call->store, job->user_id));
    return true;
}

static void fill_in(const struct slurm_store *store, struct ctld_job *job, const struct json *ask)
{
    const struct ctld_partition *partition;

    if (!job->text[JOB_PARTITION][0])
        map_each (item, &store->state.partitions) {
            partition = item->value;
            if (partition->is_default)
                ctld_set(&job->text[JOB_PARTITION], partition->text[PART_NAME]);
        }
    partition = ctld_partition_find(&store->state, job->text[JOB_PARTITION]);
    if (job->time_limit == 0 && partition)
        job->time_limit =
            partition->default_time > 0 ? partition->default_time : partition->max_time;
    if (json_bool_or(json_get(ask, "hold"), false))
        job->priority = 0;
    if (job->priority == 0)
        ctld_set(&job->text[JOB_REASON], "JobHeldUser");
    job->batch = json_exists(json_get(ask, "script"));
}

/* ---- submit and allocate ---- */

static void leave_failed_record(struct slurm_store *store, struct ctld_job *job)
{
    job->exit_signal = 1;
    ctld_job_take(store, job);
    ctld_job_end(store, job, PHASE_FAILED, "BadConstraints", job->text[JOB_ASKED_BY]);
}

static void answer_taken(struct ctld_call *call, const struct ctld_job *job, bool allocate)
{
    ctld_begin(call);
    ctld_put_int(&call->answer->body, "job_id", job->id);
    if (!allocate)
        ctld_put_text(&call->answer->body, "step_id", "batch");
    ctld_put_text(&call->answer->body, "job_submit_user_msg", "");
    ctld_finish(call);
}

/* It was taken, but: said twice. */
static void warn_of(struct ctld_call *call, int number)
{
    ctld_warn(call, call->route->source, "Job submission resulted in non-zero return code: %s",
              ctld_error_words(number));
    ctld_warn(call, call->route->source, "%s", ctld_error_words(number));
}

static int start_at_once(struct slurm_store *store, struct ctld_job *job, const char *too_much)
{
    int number = too_much ? 2015 : ctld_schedule_at_once(store, job);

    if (number == 0)
        return 0;
    job->exit_signal = 1;
    ctld_job_end(store, job, PHASE_FAILED, "BadConstraints", job->text[JOB_ASKED_BY]);
    return number;
}

/* Decides about a description that is whole; takes it. */
static void decide(struct ctld_call *call, struct ctld_job *job, bool allocate)
{
    struct slurm_store *store = call->store;
    const char *too_much = ctld_asks_too_much(store, job);
    int number = 0;

    if (!too_much && !ctld_fit(store, job, FIT_EVER, NULL, NULL)) {
        leave_failed_record(store, job);
        ctld_refuse(call, 2014);
        return;
    }
    if (too_much)
        ctld_set(&job->text[JOB_REASON], "PartitionConfig");
    else if (job->priority > 0 && !allocate && ctld_is_behind(store, job))
        ctld_set(&job->text[JOB_REASON], "Priority");
    ctld_job_take(store, job);
    if (allocate)
        number = start_at_once(store, job, too_much);
    else if (too_much || job->priority == 0)
        warn_of(call, too_much ? 2015 : 2071);
    if (number != 0)
        ctld_refuse(call, number);
    else
        answer_taken(call, job, allocate);
}

static void ask_for_job(struct ctld_call *call, bool allocate)
{
    const struct json *ask = json_get(call->body, "job");
    struct ctld_job *job;
    int number;

    if (restd_refuses(call, ask, allocate))
        return;
    job = ctld_job_new();
    job->priority = 1;
    job->requeue = true;
    ctld_ask_read(call, ask, "job/", job);
    ctld_rewrite_comment(call->store, job);
    if (!call->privileged && job->priority > 1)
        job->priority = 1; /* only operators set one; nobody is told */
    fill_in(call->store, job, ask);
    if (!set_owner(call, job, ask, allocate)) {
        ctld_job_free(job);
        return;
    }
    number = check_new(call->store, job, ask, allocate);
    if (number != 0) {
        call->store->state.next_id += number == 2053; /* that one is found after the id was given */
        ctld_refuse(call, number);
        ctld_job_free(job);
        return;
    }
    decide(call, job, allocate);
}

void ctld_run_submit(struct ctld_call *call)
{
    ask_for_job(call, false);
}

void ctld_run_allocate(struct ctld_call *call)
{
    ask_for_job(call, true);
}

/* ---- updates ---- */

static void set_hold(struct ctld_call *call, struct ctld_job *job, const struct json *ask)
{
    const struct json *hold = json_get(ask, "hold");

    if (json_is_bool(hold))
        job->priority = json_bool_or(hold, false) ? 0 : job->priority > 0 ? job->priority : 1;
    if (job->phase != PHASE_PENDING ||
        (!json_is_bool(hold) && !json_exists(json_get(ask, "priority"))))
        return;
    if (job->priority == 0) {
        job->held_by_admin = call->privileged;
        job->eligible_us = 0;
        ctld_set(&job->text[JOB_REASON], job->held_by_admin ? "JobHeldAdmin" : "JobHeldUser");
    } else if (strncmp(job->text[JOB_REASON], "JobHeld", 7) == 0) {
        ctld_set(&job->text[JOB_REASON], "None");
        job->eligible_us = ctld_wall_us(call->store);
        job->looked_at_us = ctld_now_us(call->store) + call->store->options.start_delay_min_us;
    }
}

/* The texts of the record as they were, to put back what was refused. */
static int apply(struct ctld_call *call, struct ctld_job *job)
{
    static const unsigned checked[] = { JOB_PARTITION,   JOB_REQUIRED,      JOB_EXCLUDED,
                                        JOB_FEATURES,    JOB_TRES_PER_NODE, JOB_LICENSES,
                                        JOB_RESERVATION, JOB_EXTRA };
    enum { CHECKED = sizeof(checked) / sizeof(checked[0]) };
    const char *old[CHECKED];
    int64_t priority = job->priority;
    int number;

    for (unsigned i = 0; i < CHECKED; i++)
        old[i] = arena_strdup(call->arena, job->text[checked[i]]);
    ctld_ask_read(call, call->body, "", job);
    ctld_rewrite_comment(call->store, job);
    number = ctld_job_check(call->store, job);
    for (unsigned i = 0; number != 0 && i < CHECKED; i++)
        ctld_set(&job->text[checked[i]], old[i]);
    if (call->privileged || job->priority <= priority)
        return number;
    job->priority = priority; /* that alone is refused, and all the rest done */
    return number != 0 ? number : 2002;
}

/* Who is asked for other nodes, or for more on each, has other tasks: so many on each. */
static void count_tasks(const struct ctld_call *call, struct ctld_job *job)
{
    bool is_other = json_exists(json_get(call->body, "minimum_nodes")) ||
                    json_exists(json_get(call->body, "tasks_per_node"));

    if (is_other && !json_exists(json_get(call->body, "tasks")) && job->tasks > 0 &&
        job->tasks_per_node > 0 && job->min_nodes == job->max_nodes)
        job->tasks = job->min_nodes * job->tasks_per_node;
}

static void look_again(struct ctld_call *call, struct ctld_job *job)
{
    ctld_set(&job->text[JOB_REASON], "None");
    job->looked_at_us = ctld_now_us(call->store) + call->store->options.start_delay_min_us;
}

static int update(struct ctld_call *call, struct ctld_job *job)
{
    int64_t priority = job ? job->priority : 0;
    int number;

    if (!job)
        return 2017;
    if (!ctld_may_touch(call, job))
        return 2010;
    if (ctld_job_has_ended(job))
        return 2084;
    if (job->phase != PHASE_PENDING && ctld_ask_wants_pending(call->body))
        return 2083;
    number = apply(call, job);
    count_tasks(call, job);
    if (number != 0)
        return number;
    if (job->priority > 0 &&
        (ctld_ask_wants_pending(call->body) ||
         (job->phase == PHASE_PENDING && priority > 0 && job->priority > priority)))
        look_again(call, job);
    set_hold(call, job, call->body);
    return 0;
}

void ctld_run_job_update(struct ctld_call *call)
{
    struct ctld_job *job = NULL;
    int64_t id;
    int number;

    if (str_to_i64(str_of(call->name), 1, INT64_MAX, &id, NULL) == 0)
        job = ctld_job_find(&call->store->state, id);
    number = update(call, job);
    if (number != 0) {
        ctld_refuse(call, number);
        return;
    }
    ctld_job_changed(call->store, job, call->user);
    ctld_begin(call);
    buf_add_text(&call->answer->body, "\"results\":null");
    ctld_finish(call);
}
