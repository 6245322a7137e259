/* act_plan.c - what plans may want of Slurm, and events, as actions.
 *
 * Holds: all that an action points to is copied into the plan's arena. */
#include "bridge/act_private.h"

#include "bridge/group.h"

#include "base/mem.h"
#include "codec/json.h"
#include "slurm/submit.h"

#include <inttypes.h>
#include <stdarg.h>

enum { MAX_FIELDS = 2 * SLURM_MAX_COMMENT, MAX_PATH = 4096 };

const struct action_type action_slurm = {
    .name = "slurm",
    .max_in_flight = 256, /* mostly waiting: a call takes slurmctld milliseconds */
    .start = act_start,
    .cancel = act_cancel,
    .write = deed_write,
};

const struct action_type action_slurm_cancel = {
    .name = "slurm-cancel",
    .max_in_flight = 1000, /* five calls of 200 jobs */
    .start = act_start,
    .cancel = act_cancel,
    .write = deed_write,
};

const struct action_type action_slurm_node = {
    .name = "slurm-node",
    .max_in_flight = 1000, /* two calls of 500 nodes */
    .start = act_start,
    .cancel = act_cancel,
    .write = deed_write,
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

static struct deed *new_deed(struct plan *plan, enum deed_kind kind)
{
    struct deed *deed = arena_alloc(plan->arena, sizeof(*deed));

    deed->kind = kind;
    deed->key = deed->uid = deed->fields = STR("");
    return deed;
}

static struct act_unless copy_unless(struct plan *plan, const struct act_unless *unless)
{
    struct act_unless copy = { .resource = unless->resource,
                               .ns = keep(plan, unless->ns),
                               .name = keep(plan, unless->name),
                               .uid = keep(plan, unless->uid),
                               .unit = keep(plan, unless->unit),
                               .job_id = unless->job_id };

    if (unless->also) {
        struct act_unless *also = arena_alloc(plan->arena, sizeof(*also));

        *also = copy_unless(plan, unless->also);
        copy.also = also;
    }
    return copy;
}

static void keep_unless(struct plan *plan, struct deed *deed, const struct act_unless *unless)
{
    if (!unless)
        return;
    deed->has_unless = true;
    deed->unless = copy_unless(plan, unless);
}

static void keep_fields(struct plan *plan, struct deed *deed, const struct json_mut *fields)
{
    auto_buf struct buf text;

    buf_init(&text, MAX_FIELDS);
    json_mut_write(fields, &text);
    /* What does not fit is no JSON: Slurm refuses it, and the refusal is told. */
    deed->fields = text.overflowed ? STR("!") : keep_str(plan, buf_str(&text));
}

/* ---- jobs ---- */

struct action *plan_slurm_ask(struct plan *plan, const struct act_ask *ask)
{
    struct deed *deed = new_deed(plan, DEED_ASK);
    struct str *pods = arena_alloc_array(plan->arena, ask->pod_count + 1, sizeof(*pods));
    struct str about =
        ask->pod_count > 0 && !group_key_is_of_group(ask->key) ? ask->pods[0] : ask->key;

    for (unsigned i = 0; i < ask->pod_count; i++)
        pods[i] = keep_str(plan, ask->pods[i]);
    deed->key = keep_str(plan, ask->key);
    deed->uid = ask->uid ? keep_str(plan, str_of(ask->uid)) : STR("");
    deed->attempt = ask->attempt;
    deed->job = *ask->job;
    job_ask_keep(&deed->job, plan->arena);
    deed->pods = pods;
    deed->pod_count = ask->pod_count;
    deed->at_once = ask->at_once;
    return plan_add(plan, &action_slurm,
                    arena_printf(plan->arena, "ask slurm " STR_FMT, STR_ARG(about)), deed);
}

/* The key that a job carries, whatever its cluster: the actor looks at that when it sends. */
static struct str key_of(struct plan *plan, const struct slurm_job *job)
{
    auto_buf struct buf key;

    buf_init(&key, SLURM_MAX_KEY);
    return slurm_submit_any_key(job, &key) ? keep_str(plan, buf_str(&key)) : STR("");
}

static struct deed *deed_about(struct plan *plan, enum deed_kind kind, const struct slurm_job *job)
{
    struct deed *deed = new_deed(plan, kind);

    deed->job_id = job->id;
    deed->sluid = keep(plan, job->sluid);
    deed->key = key_of(plan, job);
    return deed;
}

static struct action *add_about(struct plan *plan, const char *verb, const struct deed *deed)
{
    const char *what = arena_printf(plan->arena, "%s job %" PRId64, verb, deed->job_id);

    return plan_add(plan, deed->kind == DEED_CANCEL ? &action_slurm_cancel : &action_slurm, what,
                    deed);
}

struct action *plan_slurm_cancel(struct plan *plan, const struct slurm_job *job,
                                 const struct act_unless *unless, const char *why)
{
    struct deed *deed = deed_about(plan, DEED_CANCEL, job);

    deed->why = keep(plan, why);
    keep_unless(plan, deed, unless);
    return add_about(plan, "cancel", deed);
}

struct action *plan_slurm_give_back(struct plan *plan, const struct slurm_job *job,
                                    const char *misfit, const char *why)
{
    struct deed *deed = deed_about(plan, DEED_CANCEL, job);

    deed->why = keep(plan, why);
    deed->misfit = keep(plan, misfit);
    return add_about(plan, "cancel", deed);
}

struct action *plan_slurm_look(struct plan *plan, const struct slurm_job *job)
{
    return add_about(plan, "look at", deed_about(plan, DEED_LOOK, job));
}

struct action *plan_slurm_update_job(struct plan *plan, const struct slurm_job *job,
                                     const struct json_mut *fields)
{
    struct deed *deed = deed_about(plan, DEED_UPDATE_JOB, job);

    keep_fields(plan, deed, fields);
    return add_about(plan, "update", deed);
}

struct action *plan_slurm_follow(struct plan *plan, const struct slurm_job *job,
                                 const struct json_mut *fields, const struct job_ask *ask,
                                 const struct job_marks *marks)
{
    struct deed *deed = deed_about(plan, DEED_UPDATE_JOB, job);
    bool has_fields = json_mut_len(fields) > 0;

    deed->follows = true;
    deed->marks = *marks;
    deed->job = *ask;
    job_ask_keep(&deed->job, plan->arena);
    if (has_fields)
        keep_fields(plan, deed, fields);
    return add_about(plan, has_fields ? "update" : "remember", deed);
}

/* ---- nodes ---- */

static struct action *add_node(struct plan *plan, const char *verb, const char *name,
                               const struct deed *deed)
{
    const char *what = arena_printf(plan->arena, "%s slurm node %s", verb, name);

    return plan_add(plan, &action_slurm_node, what, deed);
}

struct action *plan_slurm_create_node(struct plan *plan, const struct slurm_node_ask *ask)
{
    struct deed *deed = new_deed(plan, DEED_CREATE_NODE);

    deed->make = *ask;
    keep_node(plan, &deed->make);
    deed->node = deed->make.names;
    return add_node(plan, "create", deed->node, deed);
}

struct action *plan_slurm_update_node(struct plan *plan, const char *name,
                                      const struct json_mut *fields)
{
    struct deed *deed = new_deed(plan, DEED_UPDATE_NODE);

    deed->node = keep(plan, name);
    keep_fields(plan, deed, fields);
    return add_node(plan, "update", name, deed);
}

struct action *plan_slurm_delete_node(struct plan *plan, const char *name,
                                      const struct act_unless *unless)
{
    struct deed *deed = new_deed(plan, DEED_DELETE_NODE);

    deed->node = keep(plan, name);
    keep_unless(plan, deed, unless);
    return add_node(plan, "delete", name, deed);
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

static void put_ask(struct json_build *build, struct json_mut *into, const struct deed *deed)
{
    struct json_mut *pods;

    json_put_str(build, into, "key", deed->key);
    if (deed->uid.len > 0)
        json_put_str(build, into, "uid", deed->uid);
    json_put_u64(build, into, "attempt", deed->attempt);
    json_put_bool(build, into, "atOnce", deed->at_once);
    pods = json_put_array(build, into, "pods");
    for (unsigned i = 0; i < deed->pod_count; i++)
        json_push_str(build, pods, deed->pods[i]);
    json_put(build, into, "job", job_ask_json(build, &deed->job));
}

static void put_job(struct json_build *build, struct json_mut *into, const struct deed *deed)
{
    json_put_i64(build, into, "job", deed->job_id);
    put_given(build, into, "sluid", deed->sluid);
    json_put_str(build, into, "key", deed->key);
    put_given(build, into, "why", deed->why);
    put_given(build, into, "misfit", deed->misfit);
}

static void put_make(struct json_build *build, struct json_mut *into,
                     const struct slurm_node_ask *ask)
{
    put_given(build, into, "address", ask->address);
    put_number(build, into, "cpus", ask->cpus);
    put_number(build, into, "sockets", ask->sockets);
    put_number(build, into, "coresPerSocket", ask->cores_per_socket);
    put_number(build, into, "threadsPerCore", ask->threads_per_core);
    put_number(build, into, "memory", ask->memory);
    put_number(build, into, "weight", ask->weight);
    put_given(build, into, "features", ask->features);
    put_given(build, into, "topology", ask->topology);
    put_given(build, into, "gres", ask->gres);
    put_given(build, into, "gresConf", ask->gres_conf);
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
                       const struct act_unless *unless)
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

void deed_write(const struct action *action, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *into = json_new_object(build);
    const struct deed *deed = action->detail;

    if (deed->kind == DEED_ASK)
        put_ask(build, into, deed);
    else if (deed->node)
        json_put_text(build, into, "node", deed->node);
    else
        put_job(build, into, deed);
    if (deed->kind == DEED_CREATE_NODE)
        put_make(build, into, &deed->make);
    put_fields(build, into, deed->fields);
    if (deed->has_unless)
        put_unless(build, into, &deed->unless);
    json_mut_write(into, out);
}

/* ---- events ---- */

struct event_deed {
    struct kube_event_object regarding;
    enum kube_event_type type;
    const char *reason, *note;
};

/* Told at once; the executor hears of it from the loop. */
struct telling {
    struct loop_timer timer;
    act_finish finish;
    void *context;
};

static const char *type_name(enum kube_event_type type)
{
    return type == KUBE_EVENT_WARNING ? "Warning" : "Normal";
}

static void told(void *context)
{
    struct telling *telling = context;
    struct telling copy = *telling;
    struct kube_answer answer = { .outcome = KUBE_DONE, .reason = "", .message = "" };

    mem_free(telling);
    copy.finish(copy.context, &answer);
}

static void *tell(void *service, const struct action *action, act_finish finish, void *context)
{
    struct kube_recorder *recorder = service;
    const struct event_deed *deed = action->detail;
    struct telling *telling = mem_alloc(sizeof(*telling));

    telling->finish = finish;
    telling->context = context;
    kube_event(recorder, &deed->regarding, deed->type, deed->reason, NULL, "%s", deed->note);
    loop_timer_start(kube_recorder_loop(recorder), &telling->timer, 0, told, telling);
    return telling;
}

static void tell_no_more(void *service, void *handle)
{
    struct telling *telling = handle;

    loop_timer_stop(&telling->timer);
    mem_free(telling);
}

static void write_event(const struct action *action, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *into = json_new_object(build);
    const struct event_deed *deed = action->detail;

    put_given(build, into, "uid", deed->regarding.uid);
    json_put_text(build, into, "type", type_name(deed->type));
    json_put_text(build, into, "reason", deed->reason);
    json_put_text(build, into, "note", deed->note);
    json_mut_write(into, out);
}

const struct action_type action_event = {
    .name = "event",
    .start = tell,
    .cancel = tell_no_more,
    .write = write_event,
};

static const char *api_version_of(struct plan *plan, const struct kube_resource *resource)
{
    auto_buf struct buf text;

    buf_init(&text, MAX_PATH);
    kube_api_version(&text, resource);
    return arena_strdup(plan->arena, buf_text(&text));
}

struct action *plan_event(struct plan *plan, const struct kube_object *regarding,
                          enum kube_event_type type, const char *reason, const char *format, ...)
{
    const struct kube_resource *resource = regarding->kind->resource;
    struct event_deed *deed = arena_alloc(plan->arena, sizeof(*deed));
    const char *slash = regarding->ns[0] ? "/" : "";
    va_list args;

    va_start(args, format);
    deed->note = arena_vprintf(plan->arena, format, args);
    va_end(args);
    deed->regarding = (struct kube_event_object){
        .api_version = api_version_of(plan, resource),
        .kind = resource->kind,
        .ns = keep(plan, regarding->ns),
        .name = keep(plan, regarding->name),
        .uid = keep(plan, regarding->uid),
    };
    deed->type = type;
    deed->reason = keep(plan, reason);
    return plan_add(plan, &action_event,
                    arena_printf(plan->arena, "event %s %s %s%s%s", type_name(type), reason,
                                 regarding->ns, slash, regarding->name),
                    deed);
}
