/* calls.c - each call of the agent: what it reads, what it asks of libslurm, what it answers.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "calls.h"

#include "base/arena.h"
#include "base/mem.h"
#include "io/http_text.h"
#include "job_fields.h"
#include "libslurm_hidden.h"

#include <errno.h>
#include <inttypes.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>

enum {
    MAX_IDS = 4096,
    MAX_TEXTS = 64 << 20, /* bytes of what is copied out of a request */
};

/* ---- asking ---- */

struct asked {
    struct json_doc *doc;
    struct arena texts;
    job_desc_msg_t desc;
};

static void asked_done(struct asked *asked)
{
    json_doc_free(asked->doc);
    arena_done(&asked->texts);
}

#define auto_asked __attribute__((cleanup(asked_done)))

static slurm_step_id_t step_of(int64_t job_id)
{
    slurm_step_id_t step = SLURM_STEP_ID_INITIALIZER;

    step.job_id = (uint32_t)job_id;
    return step;
}

/* False: the answer is there. */
static bool read_body(struct asked *asked, struct str text, struct agent_answer *answer)
{
    struct err err = { .class = 0 };

    *asked = (struct asked){ .doc = NULL };
    arena_init(&asked->texts, MAX_TEXTS);
    if (json_parse(text, FRAME_MAX, &asked->doc, &err) == 0)
        return true;
    agent_answer_cannot(answer, err.text);
    return false;
}

static bool read_desc(struct asked *asked, const struct json *job, struct agent_answer *answer)
{
    struct err err = { .class = 0 };

    if (job_fields_read(job, &asked->desc, &asked->texts, &err) == 0)
        return true;
    agent_answer_cannot(answer, err.text);
    return false;
}

/* The description inside {"job":{...}}, which has nothing else beside. */
static bool read_job(struct asked *asked, struct str text, struct agent_answer *answer)
{
    if (!read_body(asked, text, answer))
        return false;
    if (json_len(json_root(asked->doc)) > 1) {
        agent_answer_cannot(answer, "there is something beside the job");
        return false;
    }
    slurm_init_job_desc_msg(&asked->desc);
    return read_desc(asked, json_get(json_root(asked->doc), "job"), answer);
}

/* ---- new jobs ---- */

static void answer_new_job(struct agent_answer *answer, const slurm_step_id_t *step, uint32_t why,
                           const char *message)
{
    char sluid[SLUID_TEXT];
    struct json_mut *id;

    sluid_write(step->sluid, sluid);
    json_put_i64(answer->build, answer->root, "job_id", step->job_id);
    id = json_put_object(answer->build, answer->root, "step_id");
    json_put_text(answer->build, id, "sluid", sluid);
    json_put_text(answer->build, answer->root, "job_submit_user_msg", message ? message : "");
    if (why != SLURM_SUCCESS)
        agent_answer_warn(answer, (int)why, "libslurm");
}

static void run_submit(int64_t job_id, struct str text, struct agent_answer *answer)
{
    submit_response_msg_t *response = NULL;
    auto_asked struct asked asked;

    (void)job_id;
    if (!read_job(&asked, text, answer))
        return;
    if (!(asked.desc.bitflags & EXTERNAL_JOB)) {
        agent_answer_cannot(answer, "the job is not an external one");
        return;
    }
    if (slurm_submit_batch_job(&asked.desc, &response) != SLURM_SUCCESS || !response)
        agent_answer_error(answer, errno, "Batch job submission failed");
    else
        answer_new_job(answer, &response->step_id, response->error_code,
                       response->job_submit_user_msg);
    slurm_free_submit_response_response_msg(response);
}

static void run_allocate(int64_t job_id, struct str text, struct agent_answer *answer)
{
    resource_allocation_response_msg_t *response = NULL;
    auto_asked struct asked asked;

    (void)job_id;
    if (!read_job(&asked, text, answer))
        return;
    if (asked.desc.immediate != 1 || !(asked.desc.bitflags & EXTERNAL_JOB)) {
        agent_answer_cannot(answer, "only external jobs are allocated, and immediately");
        return;
    }
    if (slurm_allocate_resources(&asked.desc, &response) != SLURM_SUCCESS || !response) {
        agent_answer_error(answer, errno, "Job allocation request failed");
    } else {
        answer_new_job(answer, &response->step_id, response->error_code,
                       response->job_submit_user_msg);
        json_put_text(answer->build, answer->root, "nodes",
                      response->node_list ? response->node_list : "");
    }
    slurm_free_resource_allocation_response_msg(response);
}

/* ---- reading ---- */

static bool read_ids(struct str query, slurm_selected_step_t *ids, int *ret_count)
{
    struct str rest = query, part, name, value;

    while (rest.len > 0 && str_next(&rest, '&', &part)) {
        if (!str_cut(part, '=', &name, &value) || !str_is(name, "job_id"))
            return false;
        for (struct str numbers = value, one; str_next(&numbers, ',', &one);) {
            uint64_t number;

            if (*ret_count == MAX_IDS || str_to_u64(one, 1, NO_VAL - 1, &number, NULL) < 0)
                return false;
            ids[*ret_count] = (slurm_selected_step_t){ .array_task_id = NO_VAL,
                                                       .het_job_offset = NO_VAL,
                                                       .step_id = step_of((int64_t)number) };
            (*ret_count)++;
        }
    }
    return *ret_count > 0;
}

static void add_state(struct agent_answer *answer, struct json_mut *jobs,
                      const job_state_response_job_t *job)
{
    struct json_mut *one = json_new_object(answer->build);
    char id[32];

    if (job->het_job_id && job->het_job_id != NO_VAL)
        (void)snprintf(id, sizeof(id), "%" PRIu32 "+%" PRIu32, job->het_job_id,
                       job->job_id - job->het_job_id);
    else if (job->array_job_id && job->array_task_id != NO_VAL)
        (void)snprintf(id, sizeof(id), "%" PRIu32 "_%" PRIu32, job->array_job_id,
                       job->array_task_id);
    else
        (void)snprintf(id, sizeof(id), "%" PRIu32, job->job_id);
    json_put_text(answer->build, one, "job_id", id);
    job_answer_state(answer, one, "state", job->state);
    json_push(jobs, one);
}

static void run_states(int64_t job_id, struct str text, struct agent_answer *answer)
{
    auto_free slurm_selected_step_t *ids = mem_alloc_array(MAX_IDS, sizeof(*ids));
    job_state_response_msg_t *response = NULL;
    struct json_mut *jobs;
    int count = 0, number;

    (void)job_id;
    if (!read_ids(text, ids, &count)) {
        agent_answer_cannot(answer, "the query has something else than job ids");
        return;
    }
    jobs = json_put_array(answer->build, answer->root, "jobs");
    number = slurm_load_job_state(count, ids, &response);
    if (number != SLURM_SUCCESS)
        agent_answer_error(answer, number == SLURM_ERROR ? errno : number,
                           "slurm_load_job_state() failed");
    for (uint32_t i = 0; number == SLURM_SUCCESS && i < response->jobs_count; i++)
        add_state(answer, jobs, &response->jobs[i]);
    slurm_free_job_state_response_msg(response);
}

static void run_job(int64_t job_id, struct str text, struct agent_answer *answer)
{
    job_info_msg_t *found = NULL;

    (void)text;
    if (slurm_load_job(&found, step_of(job_id), SHOW_LOCAL) != SLURM_SUCCESS)
        agent_answer_error(answer, errno, "Unable to query the job");
    else
        job_answer(found, answer);
    slurm_free_job_info_msg(found);
}

static void run_resources(int64_t job_id, struct str text, struct agent_answer *answer)
{
    slurm_step_id_t step = step_of(job_id);
    void *layout = NULL;
    int number;

    (void)text;
    if (!layout_is_known()) {
        agent_answer_cannot(answer, "libslurm is of another version");
        return;
    }
    number = slurm_get_resource_layout(&step, &layout);
    if (number != SLURM_SUCCESS || !layout)
        agent_answer_error(answer, number == SLURM_ERROR ? errno : number,
                           "Unable to query the job");
    else
        layout_answer(layout, answer);
}

static void run_ping(int64_t job_id, struct str text, struct agent_answer *answer)
{
    (void)job_id;
    (void)text;
    json_put_text(answer->build, answer->root, "slurmctld",
                  slurm_ping(0) == SLURM_SUCCESS ? "up" : "down");
}

/* ---- jobs that there are ---- */

static void run_update(int64_t job_id, struct str text, struct agent_answer *answer)
{
    job_array_resp_msg_t *response = NULL;
    auto_asked struct asked asked;

    if (!read_body(&asked, text, answer))
        return;
    slurm_init_job_desc_msg(&asked.desc);
    if (!read_desc(&asked, json_root(asked.doc), answer))
        return;
    asked.desc.step_id = step_of(job_id);
    if (slurm_update_job2(&asked.desc, &response) != SLURM_SUCCESS)
        agent_answer_error(answer, errno, "Job update requested failed");
    else
        json_put_array(answer->build, answer->root, "results");
    slurm_free_job_array_resp(response);
}

/* As Slurm writes a job, a task of an array, a part of a heterogeneous job. */
static void write_id(const slurm_selected_step_t *id, char *text, size_t size)
{
    uint32_t job_id = id->step_id.job_id;

    if (job_id == NO_VAL && id->step_id.sluid)
        sluid_write(id->step_id.sluid, text);
    else if (id->array_task_id != NO_VAL)
        (void)snprintf(text, size, "%" PRIu32 "_%" PRIu32, job_id, id->array_task_id);
    else if (id->het_job_offset != NO_VAL)
        (void)snprintf(text, size, "%" PRIu32 "+%" PRIu32, job_id, id->het_job_offset);
    else
        (void)snprintf(text, size, "%" PRIu32, job_id);
}

static void add_status(struct agent_answer *answer, struct json_mut *list,
                       const kill_jobs_resp_job_t *one)
{
    char name[32] = "";
    struct json_mut *status = json_new_object(answer->build), *error;
    uint32_t id = one->real_job_id;

    if (one->id)
        write_id(one->id, name, sizeof(name));
    error = json_put_object(answer->build, status, "error");
    json_put_text(answer->build, error, "string", slurm_strerror((int)one->error_code));
    json_put_i64(answer->build, error, "code", one->error_code);
    json_put_text(answer->build, error, "message", one->error_msg ? one->error_msg : "");
    json_put_text(answer->build, status, "step_id", name);
    agent_put_number(answer, status, "job_id", id, 32);
    json_push(list, status);
}

/* The names are those of jobs: numbers, or "s..." (SLUIDs). */
static void kill_jobs(char **names, uint32_t count, struct agent_answer *answer)
{
    kill_jobs_msg_t message = KILL_JOB_MSG_INITIALIZER;
    kill_jobs_resp_msg_t *response = NULL;
    struct json_mut *list = json_put_array(answer->build, answer->root, "status");
    int number;

    message.flags = KILL_JOBS_VERBOSE;
    message.jobs_array = names;
    message.jobs_cnt = count;
    number = slurm_kill_jobs(&message, &response);
    if (number != SLURM_SUCCESS) {
        agent_answer_error(answer, number == SLURM_ERROR ? errno : number, "Signal request failed");
        return;
    }
    for (uint32_t i = 0; response && i < response->jobs_cnt; i++)
        if (response->job_responses[i].error_code != SLURM_SUCCESS)
            add_status(answer, list, &response->job_responses[i]);
    slurm_free_kill_jobs_response_msg(response);
}

static void run_cancel(int64_t job_id, struct str text, struct agent_answer *answer)
{
    char name[24], *names[] = { name };

    (void)text;
    (void)snprintf(name, sizeof(name), "%" PRId64, job_id);
    kill_jobs(names, 1, answer);
}

static void run_cancel_many(int64_t job_id, struct str text, struct agent_answer *answer)
{
    auto_asked struct asked asked;
    const struct json *list, *item;
    struct json_iter iter;
    uint32_t count = 0;
    char **names;

    (void)job_id;
    if (!read_body(&asked, text, answer))
        return;
    list = json_get(json_root(asked.doc), "jobs");
    names = arena_alloc_array(&asked.texts, json_len(list) + 1, sizeof(*names));
    iter = json_iter(list);
    while (json_is_array(list) && json_next_item(&iter, &item) && json_str(item).len > 0)
        names[count++] = (char *)(uintptr_t)json_str(item).at;
    /* Without a list, or with an empty one, Slurm would take all jobs. */
    if (count == 0 || count > MAX_IDS || count != json_len(list) ||
        json_len(json_root(asked.doc)) != 1)
        agent_answer_cannot(answer, "the agent cancels jobs by a list of names alone");
    else
        kill_jobs(names, count, answer);
}

/* ---- what REST lacks ---- */

/* slurmctld finds the job by its SLUID, which no other job ever has; the id is for people. */
static void run_complete(int64_t job_id, struct str text, struct agent_answer *answer)
{
    slurm_step_id_t step = step_of(job_id);
    auto_asked struct asked asked;
    const struct json *root;
    uint64_t code;

    if (!read_body(&asked, text, answer))
        return;
    root = json_root(asked.doc);
    code = json_u64_or(json_get(root, "return_code"), UINT64_MAX);
    step.sluid = sluid_read(json_str(json_get(root, "sluid")));
    if (code > UINT32_MAX || step.sluid == 0 || json_len(root) != 2) {
        agent_answer_cannot(answer, "a job is completed by its sluid and a return code");
        return;
    }
    if (slurm_complete_job(&step, (uint32_t)code) != SLURM_SUCCESS && errno != ESLURM_ALREADY_DONE)
        agent_answer_error(answer, errno, "Job completion failed");
}

static void add_preempted(struct agent_answer *answer, list_t *list)
{
    struct json_mut *ids = json_put_array(answer->build, answer->root, "preempts");
    list_itr_t *iter = list ? slurm_list_iterator_create(list) : NULL;
    const uint32_t *id;

    while (iter && (id = slurm_list_next(iter)))
        json_push(ids, json_new_i64(answer->build, *id));
    if (iter)
        slurm_list_iterator_destroy(iter);
}

static void ask_will_run(struct asked *asked, struct agent_answer *answer)
{
    will_run_response_msg_t *response = NULL;

    if (slurm_job_will_run2(&asked->desc, &response) != SLURM_SUCCESS || !response) {
        agent_answer_error(answer, errno, "The job would not run");
    } else {
        json_put_i64(answer->build, answer->root, "start_time", response->start_time);
        json_put_text(answer->build, answer->root, "nodes",
                      response->node_list ? response->node_list : "");
        json_put_text(answer->build, answer->root, "partition",
                      response->part_name ? response->part_name : "");
        add_preempted(answer, response->preemptee_job_id);
        json_put_i64(answer->build, answer->root, "cpus", response->proc_cnt);
    }
    slurm_free_will_run_response_msg(response);
}

/* A new job, or one like a job that there is, but for what the description says. */
static void run_will_run(int64_t job_id, struct str text, struct agent_answer *answer)
{
    job_info_msg_t *found = NULL;
    auto_asked struct asked asked;
    const struct json *root, *job;
    int64_t like;

    (void)job_id;
    if (!read_body(&asked, text, answer))
        return;
    root = json_root(asked.doc);
    job = json_get(root, "job");
    like = json_i64_or(json_get(root, "job_id"), 0);
    slurm_init_job_desc_msg(&asked.desc);
    if (like > 0 && slurm_load_job(&found, step_of(like), SHOW_LOCAL) != SLURM_SUCCESS) {
        agent_answer_error(answer, errno, "Unable to query the job");
        return;
    }
    if (found && found->record_count > 0)
        job_fields_from(&found->job_array[0], &asked.desc);
    if ((like > 0 && !job) || read_desc(&asked, job, answer))
        ask_will_run(&asked, answer);
    slurm_free_job_info_msg(found);
}

/* ---- */

static void (*const runs[AGENT_CALLS])(int64_t job_id, struct str text,
                                       struct agent_answer *answer) = {
    [AGENT_PING] = run_ping,
    [AGENT_SUBMIT] = run_submit,
    [AGENT_ALLOCATE] = run_allocate,
    [AGENT_STATES] = run_states,
    [AGENT_JOB] = run_job,
    [AGENT_RESOURCES] = run_resources,
    [AGENT_UPDATE] = run_update,
    [AGENT_CANCEL] = run_cancel,
    [AGENT_CANCEL_MANY] = run_cancel_many,
    [AGENT_COMPLETE] = run_complete,
    [AGENT_WILL_RUN] = run_will_run,
};

void calls_run(enum agent_call call, int64_t job_id, struct str text, struct agent_answer *answer)
{
    if ((unsigned)call < AGENT_CALLS && runs[call])
        runs[call](job_id, text, answer);
    else
        agent_answer_cannot(answer, "there is no such call");
    agent_answer_finish(answer);
}
