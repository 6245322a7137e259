/* slurm_action.c - what plans may want of Slurm, and events, as actions.
 *
 * Holds: all that an action points to is copied into the plan's arena. */
#include "bridge/slurm/slurm_executor_private.h"

#include "bridge/world/group.h"
#include "codec/json.h"
#include "slurm/submit.h"

#include <inttypes.h>

enum { MAX_FIELDS = 2 * SLURM_MAX_COMMENT, MAX_PATH = 4096 };

const struct action_type action_slurm = {
    .name = "slurm",
    .max_in_flight = 256, /* mostly waiting: a call takes slurmctld milliseconds */
    .start = executor_start,
    .cancel = executor_cancel,
    .write = slurm_action_write,
};

const struct action_type action_slurm_cancel = {
    .name = "slurm-cancel",
    .max_in_flight = 1000, /* five calls of 200 jobs */
    .start = executor_start,
    .cancel = executor_cancel,
    .write = slurm_action_write,
};

const struct action_type action_slurm_node = {
    .name = "slurm-node",
    .max_in_flight = 1000, /* two calls of 500 nodes */
    .start = executor_start,
    .cancel = executor_cancel,
    .write = slurm_action_write,
};

/* ---- copies ---- */

static const char *keep(struct plan *plan, const char *text)
{
    return text ? arena_strdup(plan->arena, text) : NULL;
}

static struct str keep_str(struct plan *plan, struct str text)
{
    return (struct str){ arena_strndup(plan->arena, text.at, text.len), text.len };
}

static void keep_node(struct plan *plan, struct slurm_node_ask *node)
{
    const char **texts[] = { &node->names,    &node->address, &node->features,
                             &node->topology, &node->gres,    &node->gres_conf };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        *texts[i] = keep(plan, *texts[i]);
}

static struct slurm_action *new_action(struct plan *plan, enum slurm_action_kind kind)
{
    struct slurm_action *detail = arena_alloc(plan->arena, sizeof(*detail));

    detail->kind = kind;
    detail->key = detail->uid = detail->fields = STR("");
    return detail;
}

/* NULL: none. */
static const struct action_unless *keep_unless(struct plan *plan,
                                               const struct action_unless *unless)
{
    struct action_unless *copy;

    if (!unless)
        return NULL;
    copy = arena_alloc(plan->arena, sizeof(*copy));
    *copy = (struct action_unless){ .resource = unless->resource,
                                    .ns = keep(plan, unless->ns),
                                    .name = keep(plan, unless->name),
                                    .uid = keep(plan, unless->uid),
                                    .unit = keep(plan, unless->unit),
                                    .job_id = unless->job_id,
                                    .also = keep_unless(plan, unless->also) };
    return copy;
}

static void keep_fields(struct plan *plan, struct slurm_action *detail,
                        const struct json_mut *fields)
{
    auto_buf struct buf text;

    buf_init(&text, MAX_FIELDS);
    json_mut_write(fields, &text);
    /* What does not fit is no JSON: Slurm refuses it, and the refusal is told. */
    detail->fields = text.overflowed ? STR("!") : keep_str(plan, buf_str(&text));
}

/* ---- jobs ---- */

struct action *plan_slurm_submit(struct plan *plan, const struct submit_request *request)
{
    struct slurm_action *detail = new_action(plan, ACTION_SUBMIT);
    struct str *pods = arena_alloc_array(plan->arena, request->pod_count + 1, sizeof(*pods));
    struct str about = request->pod_count > 0 && !group_key_is_of_group(request->key)
                           ? request->pods[0]
                           : request->key;

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
    return plan_add(plan, &action_slurm,
                    arena_printf(plan->arena, "submit " STR_FMT, STR_ARG(about)), detail);
}

static struct slurm_action *action_about(struct plan *plan, enum slurm_action_kind kind,
                                         const struct slurm_job *job)
{
    struct slurm_action *detail = new_action(plan, kind);
    auto_buf struct buf key;

    detail->job_id = job->id;
    detail->sluid = keep(plan, job->sluid);
    /* The key that a job carries, whatever its cluster: the executor looks at that when it sends.
     */
    buf_init(&key, SLURM_MAX_KEY);
    detail->key = slurm_submit_any_key(job, &key) ? keep_str(plan, buf_str(&key)) : STR("");
    return detail;
}

static struct action *add_about(struct plan *plan, const char *verb,
                                const struct slurm_action *detail)
{
    const char *what = arena_printf(plan->arena, "%s job %" PRId64, verb, detail->job_id);

    return plan_add(plan, detail->kind == ACTION_CANCEL ? &action_slurm_cancel : &action_slurm,
                    what, detail);
}

struct action *plan_slurm_cancel(struct plan *plan, const struct slurm_job *job,
                                 const struct action_unless *unless, const char *why)
{
    struct slurm_action *detail = action_about(plan, ACTION_CANCEL, job);

    detail->why = keep(plan, why);
    detail->unless = keep_unless(plan, unless);
    return add_about(plan, "cancel", detail);
}

struct action *plan_slurm_give_back(struct plan *plan, const struct slurm_job *job,
                                    const char *misfit, const char *why)
{
    struct slurm_action *detail = action_about(plan, ACTION_CANCEL, job);

    detail->why = keep(plan, why);
    detail->misfit = keep(plan, misfit);
    return add_about(plan, "cancel", detail);
}

struct action *plan_slurm_look(struct plan *plan, const struct slurm_job *job)
{
    return add_about(plan, "look at", action_about(plan, ACTION_LOOK, job));
}

struct action *plan_slurm_layout(struct plan *plan, const struct slurm_job *job)
{
    return add_about(plan, "read layout of", action_about(plan, ACTION_LAYOUT, job));
}

struct action *plan_slurm_update_job(struct plan *plan, const struct slurm_job *job,
                                     const struct json_mut *fields)
{
    struct slurm_action *detail = action_about(plan, ACTION_UPDATE_JOB, job);

    keep_fields(plan, detail, fields);
    return add_about(plan, "update", detail);
}

struct action *plan_slurm_sync(struct plan *plan, const struct slurm_job *job,
                               const struct json_mut *fields, const struct job_desc *desc,
                               const struct field_hashes *hashes)
{
    struct slurm_action *detail = action_about(plan, ACTION_UPDATE_JOB, job);
    bool has_fields = json_mut_len(fields) > 0;

    detail->is_sync = true;
    detail->hashes = *hashes;
    detail->job = *desc;
    job_desc_keep(&detail->job, plan->arena);
    if (has_fields)
        keep_fields(plan, detail, fields);
    return add_about(plan, has_fields ? "update" : "remember", detail);
}

/* ---- nodes ---- */

static struct action *add_node(struct plan *plan, const char *verb, const char *name,
                               const struct slurm_action *detail)
{
    const char *what = arena_printf(plan->arena, "%s slurm node %s", verb, name);

    return plan_add(plan, &action_slurm_node, what, detail);
}

struct action *plan_slurm_create_node(struct plan *plan, const struct slurm_node_ask *desc)
{
    struct slurm_action *detail = new_action(plan, ACTION_CREATE_NODE);

    detail->make = *desc;
    keep_node(plan, &detail->make);
    detail->node = detail->make.names;
    return add_node(plan, "create", detail->node, detail);
}

struct action *plan_slurm_update_node(struct plan *plan, const char *name,
                                      const struct json_mut *fields)
{
    struct slurm_action *detail = new_action(plan, ACTION_UPDATE_NODE);

    detail->node = keep(plan, name);
    keep_fields(plan, detail, fields);
    return add_node(plan, "update", name, detail);
}

struct action *plan_slurm_delete_node(struct plan *plan, const char *name,
                                      const struct action_unless *unless)
{
    struct slurm_action *detail = new_action(plan, ACTION_DELETE_NODE);

    detail->node = keep(plan, name);
    detail->unless = keep_unless(plan, unless);
    return add_node(plan, "delete", name, detail);
}

/* ---- as text ---- */

static void put_given(struct json_build *build, struct json_mut *into, const char *key,
                      const char *text)
{
    if (text && text[0])
        json_put_text(build, into, key, text);
}

static void put_number(struct json_build *build, struct json_mut *into, const char *key,
                       int64_t number)
{
    if (number > 0)
        json_put_i64(build, into, key, number);
}

static void put_submit(struct json_build *build, struct json_mut *into,
                       const struct slurm_action *detail)
{
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

static void put_make(struct json_build *build, struct json_mut *into,
                     const struct slurm_node_ask *desc)
{
    put_given(build, into, "address", desc->address);
    put_number(build, into, "cpus", desc->cpus);
    put_number(build, into, "sockets", desc->sockets);
    put_number(build, into, "coresPerSocket", desc->cores_per_socket);
    put_number(build, into, "threadsPerCore", desc->threads_per_core);
    put_number(build, into, "memory", desc->memory);
    put_number(build, into, "weight", desc->weight);
    put_given(build, into, "features", desc->features);
    put_given(build, into, "topology", desc->topology);
    put_given(build, into, "gres", desc->gres);
    put_given(build, into, "gresConf", desc->gres_conf);
}

static void put_fields(struct json_build *build, struct json_mut *into, struct str fields)
{
    auto_json_doc struct json_doc *doc = NULL;

    if (fields.len == 0)
        return;
    if (json_parse(fields, MAX_FIELDS, &doc, NULL) == 0)
        json_put(build, into, "fields", json_copy(build, json_root(doc)));
    else
        json_put_str(build, into, "fields", fields);
}

static void put_unless(struct json_build *build, struct json_mut *into,
                       const struct action_unless *unless)
{
    struct json_mut *object = json_put_object(build, into, "unless");
    auto_buf struct buf path;

    buf_init(&path, MAX_PATH);
    kube_path(&path, unless->resource, unless->ns, unless->name, NULL);
    json_put_str(build, object, "path", buf_str(&path));
    put_given(build, object, "uid", unless->uid);
    put_given(build, object, "unit", unless->unit);
    if (unless->also)
        put_unless(build, object, unless->also);
}

void slurm_action_write(const struct action *action, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *into = json_new_object(build);
    const struct slurm_action *detail = action->detail;

    if (detail->kind == ACTION_SUBMIT)
        put_submit(build, into, detail);
    else if (detail->node)
        json_put_text(build, into, "node", detail->node);
    else { /* of a job */
        json_put_i64(build, into, "job", detail->job_id);
        put_given(build, into, "sluid", detail->sluid);
        json_put_str(build, into, "key", detail->key);
        put_given(build, into, "why", detail->why);
        put_given(build, into, "misfit", detail->misfit);
    }
    if (detail->kind == ACTION_CREATE_NODE)
        put_make(build, into, &detail->make);
    put_fields(build, into, detail->fields);
    if (detail->unless)
        put_unless(build, into, detail->unless);
    json_mut_write(into, out);
}
