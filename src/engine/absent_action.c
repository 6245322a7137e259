/* absent_action.c - asks the API server whether an owner has objects that a cache does not show. */
#include "engine/absent_action.h"

#include "base/mem.h"

struct absent_task {
    struct kube_call *call;
    const char *owner_uid; /* the plan's */
    void (*finish)(void *context, const struct kube_answer *answer);
    void *context;
};

static bool is_owned(const struct json *object, const char *uid)
{
    struct json_iter iter = json_iter(json_at(object, "metadata", "ownerReferences"));
    const struct json *owner;

    while (json_next_item(&iter, &owner))
        if (str_is(json_str(json_get(owner, "uid")), uid))
            return true;
    return false;
}

static void on_list(void *context, const struct kube_answer *answer)
{
    struct absent_task *task = context;
    struct absent_task copy = *task;
    struct kube_answer judged = *answer;
    struct json_iter iter = json_iter(json_get(answer->object, "items"));
    const struct json *object;

    while (answer->outcome == KUBE_DONE && json_next_item(&iter, &object))
        if (is_owned(object, copy.owner_uid)) {
            judged.outcome = KUBE_CONFLICT;
            judged.message = "the API server has one that was not seen yet";
        }
    judged.object = NULL;
    mem_free(task);
    copy.finish(copy.context, &judged);
}

static void *start(void *service, const struct action *action,
                   void (*finish)(void *context, const struct kube_answer *answer), void *context)
{
    struct absent_task *task = mem_alloc(sizeof(*task));

    task->owner_uid = action->detail;
    task->finish = finish;
    task->context = context;
    task->call = kube_send(service, &action->request, on_list, task);
    return task;
}

static void cancel(void *service, void *handle)
{
    struct absent_task *task = handle;

    (void)service;
    kube_call_cancel(task->call);
    mem_free(task);
}

const struct action_type action_absent = {
    .name = "absent",
    .start = start,
    .cancel = cancel,
};

void plan_confirm_absent(struct plan *plan, const struct kube_resource *resource,
                         const struct kube_object *owner, const char *query)
{
    struct action *action = plan_add(plan, &action_absent,
                                     arena_printf(plan->arena, "confirm %s of %s/%s absent",
                                                  resource->plural, owner->ns, owner->name),
                                     arena_strdup(plan->arena, owner->uid));

    action->request = (struct kube_request){ .verb = KUBE_LIST,
                                             .resource = resource,
                                             .ns = arena_strdup(plan->arena, owner->ns),
                                             .query = arena_strdup(plan->arena, query) };
}
