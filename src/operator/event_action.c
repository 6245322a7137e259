/* event_action.c - tells Events in their stage. Telling never fails and waits for nobody. */
#include "operator/event_action.h"

#include "base/mem.h"

struct event { /* detail of an action */
    struct kube_event_object about;
    enum kube_event_type type;
    const char *reason, *action, *note;
};

struct telling {
    struct loop_timer soon;
    void (*finish)(void *context, const struct kube_answer *answer);
    void *context;
};

static void on_told(void *context)
{
    struct telling *telling = context;

    telling->finish(telling->context,
                    &(struct kube_answer){ .outcome = KUBE_DONE, .reason = "", .message = "" });
    mem_free(telling);
}

static void *start(void *service, const struct action *action,
                   void (*finish)(void *context, const struct kube_answer *answer), void *context)
{
    const struct event_teller *teller = service;
    const struct event *event = action->detail;
    struct telling *telling = mem_alloc(sizeof(*telling));

    kube_event(teller->recorder, &event->about, event->type, event->reason, event->action, "%s",
               event->note);
    *telling = (struct telling){ .finish = finish, .context = context };
    loop_timer_start(teller->loop, &telling->soon, 0, on_told, telling);
    return telling;
}

static void cancel(void *service, void *handle)
{
    struct telling *telling = handle;

    (void)service;
    loop_timer_stop(&telling->soon);
    mem_free(telling);
}

static void write_detail(const struct action *action, struct buf *out)
{
    const struct event *event = action->detail;

    json_escape(out, str_of(event->note));
}

const struct action_type action_event = {
    .name = "event",
    .start = start,
    .cancel = cancel,
    .write = write_detail,
};

void plan_event(struct plan *plan, const struct kube_object *object, enum kube_event_type type,
                const char *reason, const char *action, const char *note, ...)
{
    struct event *event = arena_alloc(plan->arena, sizeof(*event));
    auto_buf struct buf version = { .max = KUBE_MAX_NAME };
    va_list args;

    kube_api_version(&version, object->kind->resource);
    *event = (struct event){
        .about = { .api_version = arena_strdup(plan->arena, buf_text(&version)),
                   .kind = object->kind->resource->kind,
                   .ns = arena_strdup(plan->arena, object->ns),
                   .name = arena_strdup(plan->arena, object->name),
                   .uid = arena_strdup(plan->arena, object->uid) },
        .type = type,
        .reason = reason,
        .action = action,
    };
    va_start(args, note);
    event->note = arena_vprintf(plan->arena, note, args);
    va_end(args);
    (void)plan_add(plan, &action_event, arena_printf(plan->arena, "tell %s", reason), event);
}
