/* fake_libslurm.c - the functions of libslurm that the agent calls, for tests without a Slurm.
 *
 * The name of a job says what happens to it: "refuse-N" fails with Slurm's error N, "hang" never
 * answers, "die" ends the process. Each write is noted in the file FAKE_LIBSLURM_LOG, one line in
 * one piece, so that tests see what was done by processes that are gone. Without that file no name
 * means anything. What the agent must never ask for ends the process: see must().
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "../libslurm_hidden.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLUID = 77 };

static uint32_t note(const char *what, const char *name)
{
    const char *path = getenv("FAKE_LIBSLURM_LOG"), *token = getenv("SLURM_JWT");
    char line[512];
    off_t at = 0;
    int fd, length;

    if (!path)
        return 1;
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    length =
        snprintf(line, sizeof(line), "%-8.8s %-24.24s %-64.64s\n", what, name ? name : "",
                 token ? token + strlen(token) - (strlen(token) < 64 ? strlen(token) : 64) : "");
    if (fd >= 0 && write(fd, line, (size_t)length) == length)
        at = lseek(fd, 0, SEEK_CUR);
    (void)close(fd);
    return length > 0 ? (uint32_t)(at / length) : 0; /* the number of the line */
}

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Whether the job is refused; errno says why. */
static int judge(const job_desc_msg_t *desc)
{
    const char *name = desc->name && getenv("FAKE_LIBSLURM_LOG") ? desc->name : "";

    must(!(desc->pn_min_memory & MEM_PER_CPU) || desc->pn_min_memory >= NO_VAL64);
    must(desc->min_nodes > 0 && (desc->min_nodes <= desc->max_nodes || desc->max_nodes == 0));
    must(!(desc->bitflags &
           ~(uint64_t)(EXTERNAL_JOB | JOB_NTASKS_SET | KILL_INV_DEP | NO_KILL_INV_DEP)));

    if (strcmp(name, "die") == 0)
        _exit(3);
    while (strcmp(name, "hang") == 0)
        (void)pause();
    if (strncmp(name, "refuse-", 7) != 0)
        return SLURM_SUCCESS;
    errno = (int)strtol(name + 7, NULL, 10);
    return SLURM_ERROR;
}

static slurm_step_id_t new_step(uint32_t job_id)
{
    slurm_step_id_t step = SLURM_STEP_ID_INITIALIZER;

    step.job_id = job_id;
    step.sluid = SLUID;
    return step;
}

void slurm_init(const char *conf)
{
    if (!conf || access(conf, R_OK) < 0)
        exit(1);
}

long slurm_api_version(void)
{
    return SLURM_VERSION_NUM(45, 0, 0);
}

char *slurm_strerror(int number)
{
    (void)number;
    return (char *)"an error of the fake libslurm";
}

int slurm_ping(int dest)
{
    (void)dest;
    return SLURM_SUCCESS;
}

void slurm_init_job_desc_msg(job_desc_msg_t *desc)
{
    memset(desc, 0, sizeof(*desc));
    desc->min_nodes = desc->max_nodes = desc->priority = desc->time_limit = NO_VAL;
    desc->user_id = desc->group_id = NO_VAL;
    desc->immediate = 0;
    desc->shared = NO_VAL16;
    desc->step_id = new_step(NO_VAL);
}

int slurm_submit_batch_job(job_desc_msg_t *desc, submit_response_msg_t **response)
{
    uint32_t id = note("submit", desc->name);

    must(desc->bitflags & EXTERNAL_JOB && !desc->script);
    if (judge(desc) != SLURM_SUCCESS)
        return SLURM_ERROR;
    *response = calloc(1, sizeof(**response));
    (*response)->step_id = new_step(id);
    return SLURM_SUCCESS;
}

void slurm_free_submit_response_response_msg(submit_response_msg_t *response)
{
    free(response);
}

int slurm_allocate_resources(job_desc_msg_t *desc, resource_allocation_response_msg_t **response)
{
    uint32_t id = note("allocate", desc->name);

    must(desc->bitflags & EXTERNAL_JOB && desc->immediate == 1);
    if (judge(desc) != SLURM_SUCCESS)
        return SLURM_ERROR;
    *response = calloc(1, sizeof(**response));
    (*response)->step_id = new_step(id);
    (*response)->node_list = strdup("n1");
    return SLURM_SUCCESS;
}

void slurm_free_resource_allocation_response_msg(resource_allocation_response_msg_t *response)
{
    if (response)
        free(response->node_list);
    free(response);
}

int slurm_load_job_state(int count, slurm_selected_step_t *ids, job_state_response_msg_t **response)
{
    must(count > 0);
    *response = calloc(1, sizeof(**response));
    (*response)->jobs = calloc((size_t)count, sizeof(*(*response)->jobs));
    (*response)->jobs_count = (uint32_t)count;
    for (int i = 0; i < count; i++)
        (*response)->jobs[i] = (job_state_response_job_t){ .job_id = ids[i].step_id.job_id,
                                                           .array_task_id = NO_VAL,
                                                           .state = JOB_RUNNING | JOB_CONFIGURING };
    return SLURM_SUCCESS;
}

void slurm_free_job_state_response_msg(job_state_response_msg_t *response)
{
    if (response)
        free(response->jobs);
    free(response);
}

/* There are jobs up to 1000. */
int slurm_load_job(job_info_msg_t **response, slurm_step_id_t step, uint16_t flags)
{
    slurm_job_info_t *job;

    (void)flags;
    if (step.job_id > 1000) {
        errno = ESLURM_INVALID_JOB_ID;
        return SLURM_ERROR;
    }
    *response = calloc(1, sizeof(**response));
    (*response)->record_count = 1;
    (*response)->job_array = job = calloc(1, sizeof(*job));
    job->step_id = new_step(step.job_id);
    job->job_state = JOB_RUNNING;
    job->name = (char *)"a";
    job->nodes = (char *)"n1";
    job->partition = (char *)"main";
    job->num_cpus = 2;
    job->num_nodes = 1;
    job->time_limit = INFINITE;
    job->exit_code = 3 << 8;
    job->bitflags = EXTERNAL_JOB;
    job->nice = NICE_OFFSET - 5;
    return SLURM_SUCCESS;
}

void slurm_free_job_info_msg(job_info_msg_t *response)
{
    if (response)
        free(response->job_array);
    free(response);
}

const char *slurm_job_state_reason_string(enum job_state_reason reason)
{
    (void)reason;
    return "None";
}

int slurm_get_resource_layout(slurm_step_id_t *step, void **response)
{
    (void)step;
    *response = NULL;
    return ESLURM_INVALID_JOB_ID;
}

void slurm_free_resource_layout_msg(void *layout)
{
    (void)layout;
}

char *slurm_bit_fmt(char *text, int32_t size, bitstr_t *bits)
{
    (void)bits;
    (void)snprintf(text, (size_t)size, "0");
    return text;
}

int slurm_update_job2(job_desc_msg_t *desc, job_array_resp_msg_t **response)
{
    (void)note("update", desc->comment);
    (void)response;
    return judge(desc);
}

void slurm_free_job_array_resp(job_array_resp_msg_t *response)
{
    (void)response;
}

int slurm_kill_jobs(kill_jobs_msg_t *message, kill_jobs_resp_msg_t **response)
{
    kill_jobs_resp_msg_t *made = calloc(1, sizeof(*made));

    must(message->jobs_cnt > 0 && message->user_id == SLURM_AUTH_NOBODY && !message->user_name);
    made->jobs_cnt = message->jobs_cnt;
    made->job_responses = calloc(message->jobs_cnt, sizeof(*made->job_responses));
    for (uint32_t i = 0; i < message->jobs_cnt; i++) {
        must(message->jobs_array[i][0] != '\0');
        (void)note("cancel", message->jobs_array[i]);
        made->job_responses[i].real_job_id = NO_VAL;
        if (strcmp(message->jobs_array[i], "404") == 0)
            made->job_responses[i].error_code = ESLURM_INVALID_JOB_ID;
    }
    *response = made;
    return SLURM_SUCCESS;
}

void slurm_free_kill_jobs_response_msg(kill_jobs_resp_msg_t *response)
{
    if (response)
        free(response->job_responses);
    free(response);
}

int slurm_complete_job(slurm_step_id_t *step, uint32_t code)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRIu32 " %" PRIu32, step->job_id, code);
    if (step->sluid != SLUID) {
        errno = ESLURM_INVALID_JOB_ID;
        return SLURM_ERROR;
    }
    (void)note("complete", text);
    if (step->job_id != 500)
        return SLURM_SUCCESS;
    errno = ESLURM_ALREADY_DONE;
    return SLURM_ERROR;
}

int slurm_job_will_run2(job_desc_msg_t *desc, will_run_response_msg_t **response)
{
    if (judge(desc) != SLURM_SUCCESS)
        return SLURM_ERROR;
    *response = calloc(1, sizeof(**response));
    (*response)->start_time = 1800000000;
    (*response)->proc_cnt = desc->min_cpus;
    (*response)->part_name = desc->partition;
    return SLURM_SUCCESS;
}

void slurm_free_will_run_response_msg(will_run_response_msg_t *response)
{
    free(response);
}

list_itr_t *slurm_list_iterator_create(list_t *list)
{
    (void)list;
    return NULL;
}

void *slurm_list_next(list_itr_t *iter)
{
    (void)iter;
    return NULL;
}

void slurm_list_iterator_destroy(list_itr_t *iter)
{
    (void)iter;
}
