/* slurm_action.c - calls to Slurm as actions: their copies in a plan, their JSON, their start.
 *
 * Holds: all that an action points to is copied into the plan's arena. */
#include "engine/slurm_action.h"

#include "codec/json.h"
#include "engine/slurm_lane.h"

enum { MAX_FIELDS = 2 << 20, MAX_PATH = 4096 };

/* ---- in a plan ---- */

static const char *keep(struct plan *plan, const char *text)
{
    return text ? arena_strdup(plan->arena, text) : NULL;
}

void *slurm_action_new(struct plan *plan, const struct slurm_call_type *type, size_t size,
                       const char *name)
{
    struct slurm_action *action = arena_alloc(plan->arena, size);

    action->type = type;
    action->name = keep(plan, name);
    action->fields = STR("");
    return action;
}

void slurm_action_set_fields(struct plan *plan, struct slurm_action *action,
                             const struct json_mut *fields)
{
    auto_buf struct buf text = { .max = MAX_FIELDS };

    json_mut_write(fields, &text);
    /* What does not fit is no JSON: Slurm refuses it, and the refusal is told. */
    action->fields =
        text.overflowed ? STR("!")
                        : (struct str){ arena_strndup(plan->arena, text.data, text.len), text.len };
}

void slurm_action_set_unless(struct plan *plan, struct slurm_action *action,
                             const struct action_unless *unless)
{
    const struct action_unless **place = &action->unless;

    for (; unless; unless = unless->also) {
        struct action_unless *copy = arena_alloc(plan->arena, sizeof(*copy));

        *copy = *unless;
        copy->ns = keep(plan, unless->ns);
        copy->name = keep(plan, unless->name);
        copy->uid = keep(plan, unless->uid);
        copy->about = keep(plan, unless->about);
        *place = copy;
        place = &copy->also;
    }
}

struct action *slurm_action_add(struct plan *plan, const struct slurm_action *action,
                                const char *about)
{
    const char *what =
        arena_printf(plan->arena, "%s %s", action->type->what, about ? about : action->name);

    return plan_add(plan, action->type->family, what, action);
}

/* ---- as JSON ---- */

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
    for (; unless; unless = unless->also) {
        auto_buf struct buf path = { .max = MAX_PATH };

        into = json_put_object(build, into, "unless");
        kube_path(&path, unless->resource, unless->ns, unless->name, NULL);
        json_put_str(build, into, "path", buf_str(&path));
        if (unless->uid)
            json_put_text(build, into, "uid", unless->uid);
        if (unless->about)
            json_put_text(build, into, "about", unless->about);
    }
}

void slurm_action_write(const struct action *action, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *into = json_new_object(build);
    const struct slurm_action *detail = action->detail;

    if (detail->type->key)
        json_put_text(build, into, detail->type->key, detail->name);
    if (detail->type->write)
        detail->type->write(detail, build, into);
    put_fields(build, into, detail->fields);
    put_unless(build, into, detail->unless);
    json_mut_write(into, out);
}

/* ---- for the executor ---- */

void *slurm_action_start(void *service, const struct action *action, slurm_task_finish finish,
                         void *context)
{
    struct slurm_service *owner = service;

    return slurm_task_start(owner->lane_of(owner, action->detail), action->detail, finish, context);
}

void slurm_action_cancel(void *service, void *handle)
{
    struct slurm_task *task = handle;

    (void)service;
    if (task->action->type->cancelled)
        task->action->type->cancelled(task);
    slurm_task_free(task);
}
