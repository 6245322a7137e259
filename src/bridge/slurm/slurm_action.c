/* slurm_action.c - what plans may want of Slurm's jobs, as actions.
 *
 * Holds: all that an action points to is copied into the plan's arena. */
#include "bridge/slurm/slurm_executor_private.h"

#include "bridge/world/group.h"
#include "slurm/submit.h"

#include <inttypes.h>

/* Mostly waiting: a call takes slurmctld milliseconds. */
const struct action_type action_slurm = SLURM_ACTION_TYPE("slurm", 256);
/* Five calls of 200 jobs. */
const struct action_type action_slurm_cancel = SLURM_ACTION_TYPE("slurm-cancel", 1000);

static const char *keep(struct plan *plan, const char *text)
{
    return text ? arena_strdup(plan->arena, text) : NULL;
}

static struct str keep_str(struct plan *plan, struct str text)
{
    return (struct str){ arena_strndup(plan->arena, text.at, text.len), text.len };
}

struct action *plan_slurm_submit(struct plan *plan, const struct submit_request *request)
{
    struct str about = request->pod_count > 0 && !group_key_is_of_group(request->key)
                           ? request->pods[0]
                           : request->key;
    struct job_action *detail =
        slurm_action_new(plan, &call_submit, sizeof(*detail), keep_str(plan, about).at);
    struct str *pods = arena_alloc_array(plan->arena, request->pod_count + 1, sizeof(*pods));

    for (unsigned i = 0; i < request->pod_count; i++)
        pods[i] = keep_str(plan, request->pods[i]);
    detail->key = keep_str(plan, request->key);
    detail->uid = request->uid ? keep_str(plan, str_of(request->uid)) : STR("");
    detail->attempt = request->attempt;
    detail->job = *request->job;
    job_desc_keep(&detail->job, plan->arena);
    detail->pods = pods;
    detail->pod_count = request->pod_count;
    detail->at_once = request->at_once;
    return slurm_action_add(plan, &detail->base, NULL);
}

static struct job_action *about(struct plan *plan, const struct slurm_call_type *type,
                                const struct slurm_job *job)
{
    struct job_action *detail = slurm_action_new(plan, type, sizeof(*detail),
                                                 arena_printf(plan->arena, "%" PRId64, job->id));
    auto_buf struct buf key = { .max = SLURM_MAX_KEY };

    detail->job_id = job->id;
    detail->sluid = keep(plan, job->sluid);
    /* The key that a job claims to have: the executor looks whether it is ours when it sends. */
    detail->key = slurm_submit_claimed_key(job, &key) ? keep_str(plan, buf_str(&key)) : STR("");
    return detail;
}

static struct action *cancel(struct plan *plan, const struct slurm_job *job,
                             const struct action_unless *unless, const char *misfit,
                             uint64_t devices, const char *why)
{
    struct job_action *detail = about(plan, &call_cancel, job);

    detail->why = keep(plan, why);
    detail->misfit = keep(plan, misfit);
    detail->misfit_devices = devices;
    slurm_action_set_unless(plan, &detail->base, unless);
    return slurm_action_add(plan, &detail->base, NULL);
}

struct action *plan_slurm_cancel(struct plan *plan, const struct slurm_job *job,
                                 const struct action_unless *unless, const char *why)
{
    return cancel(plan, job, unless, NULL, 0, why);
}

struct action *plan_slurm_complete(struct plan *plan, const struct slurm_job *job,
                                   uint32_t wait_status, const char *why)
{
    struct job_action *detail = about(plan, &call_complete, job);

    detail->why = keep(plan, why);
    detail->wait_status = wait_status;
    return slurm_action_add(plan, &detail->base, NULL);
}

struct action *plan_slurm_give_back(struct plan *plan, const struct slurm_job *job,
                                    const char *misfit, uint64_t devices, const char *why)
{
    return cancel(plan, job, NULL, misfit, devices, why);
}

struct action *plan_slurm_look(struct plan *plan, const struct slurm_job *job)
{
    return slurm_action_add(plan, &about(plan, &call_look, job)->base, NULL);
}

struct action *plan_slurm_layout(struct plan *plan, const struct slurm_job *job)
{
    return slurm_action_add(plan, &about(plan, &call_layout, job)->base, NULL);
}

struct action *plan_slurm_update_job(struct plan *plan, const struct slurm_job *job,
                                     const struct json_mut *fields)
{
    struct job_action *detail = about(plan, &call_update_job, job);

    slurm_action_set_fields(plan, &detail->base, fields);
    return slurm_action_add(plan, &detail->base, NULL);
}

struct action *plan_slurm_adopt(struct plan *plan, const struct slurm_job *job,
                                const struct json_mut *fields)
{
    struct job_action *detail = about(plan, &call_update_job, job);

    detail->key = STR(""); /* whatever its user wrote there */
    slurm_action_set_fields(plan, &detail->base, fields);
    return slurm_action_add(plan, &detail->base, NULL);
}

struct action *plan_slurm_sync(struct plan *plan, const struct slurm_job *job,
                               const struct json_mut *fields, const struct job_desc *desc,
                               const struct field_hashes *hashes)
{
    bool has_fields = json_mut_len(fields) > 0;
    struct job_action *detail = about(plan, has_fields ? &call_sync : &call_remember, job);

    detail->hashes = *hashes;
    detail->job = *desc;
    job_desc_keep(&detail->job, plan->arena);
    if (has_fields)
        slurm_action_set_fields(plan, &detail->base, fields);
    return slurm_action_add(plan, &detail->base, NULL);
}

/* ---- as JSON ---- */

static void put_given(struct json_build *build, struct json_mut *into, const char *key,
                      const char *text)
{
    if (text && text[0])
        json_put_text(build, into, key, text);
}

void job_action_write_submit(const struct slurm_action *action, struct json_build *build,
                             struct json_mut *into)
{
    const struct job_action *detail = job_action_of(action);
    struct json_mut *pods;

    json_put_str(build, into, "key", detail->key);
    if (detail->uid.len > 0)
        json_put_str(build, into, "uid", detail->uid);
    json_put_u64(build, into, "attempt", detail->attempt);
    json_put_bool(build, into, "atOnce", detail->at_once);
    pods = json_put_array(build, into, "pods");
    for (unsigned i = 0; i < detail->pod_count; i++)
        json_push_str(build, pods, detail->pods[i]);
    json_put(build, into, "job", job_desc_json(build, &detail->job));
}

void job_action_write(const struct slurm_action *action, struct json_build *build,
                      struct json_mut *into)
{
    const struct job_action *detail = job_action_of(action);

    json_put_i64(build, into, "job", detail->job_id);
    put_given(build, into, "sluid", detail->sluid);
    json_put_str(build, into, "key", detail->key);
    put_given(build, into, "why", detail->why);
    put_given(build, into, "misfit", detail->misfit);
    if (action->type == &call_complete)
        json_put_u64(build, into, "waitStatus", detail->wait_status);
}
