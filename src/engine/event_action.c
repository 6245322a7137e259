/* event_action.c - tells Events. Telling never fails, and waits for nobody. */
#include "engine/event_action.h"

#include "base/mem.h"

enum { MAX_VERSION = 512 };

struct event_detail {
    struct kube_event_object regarding;
    enum kube_event_type type;
    const char *reason, *done, *note; /* done NULL: as the reason */
};

/* Told at once; the executor hears of it from the loop. */
struct event_task {
    struct loop_timer timer;
    void (*finish)(void *context, const struct kube_answer *answer);
    void *context;
};

static const char *type_name(enum kube_event_type type)
{
    return type == KUBE_EVENT_WARNING ? "Warning" : "Normal";
}

static void told(void *context)
{
    struct event_task *task = context;
    struct event_task copy = *task;
    struct kube_answer answer = { .outcome = KUBE_DONE, .reason = "", .message = "" };

    mem_free(task);
    copy.finish(copy.context, &answer);
}

static void *tell(void *service, const struct action *action,
                  void (*finish)(void *context, const struct kube_answer *answer), void *context)
{
    struct kube_recorder *recorder = service;
    const struct event_detail *detail = action->detail;
    struct event_task *task = mem_alloc(sizeof(*task));

    task->finish = finish;
    task->context = context;
    kube_event(recorder, &detail->regarding, detail->type, detail->reason, detail->done, "%s",
               detail->note);
    loop_timer_start(kube_recorder_loop(recorder), &task->timer, 0, told, task);
    return task;
}

static void tell_no_more(void *service, void *handle)
{
    struct event_task *task = handle;

    (void)service;
    loop_timer_stop(&task->timer);
    mem_free(task);
}

static void write_event(const struct action *action, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *into = json_new_object(build);
    const struct event_detail *detail = action->detail;

    if (detail->regarding.uid[0])
        json_put_text(build, into, "uid", detail->regarding.uid);
    json_put_text(build, into, "type", type_name(detail->type));
    json_put_text(build, into, "reason", detail->reason);
    json_put_text(build, into, "note", detail->note);
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

    buf_init(&text, MAX_VERSION);
    kube_api_version(&text, resource);
    return arena_strdup(plan->arena, buf_text(&text));
}

static struct action *add(struct plan *plan, const struct kube_object *regarding,
                          enum kube_event_type type, const char *reason, const char *done,
                          const char *note)
{
    const struct kube_resource *resource = regarding->kind->resource;
    struct event_detail *detail = arena_alloc(plan->arena, sizeof(*detail));
    const char *slash = regarding->ns[0] ? "/" : "";

    *detail = (struct event_detail){
        .regarding = { .api_version = api_version_of(plan, resource),
                       .kind = resource->kind,
                       .ns = arena_strdup(plan->arena, regarding->ns),
                       .name = arena_strdup(plan->arena, regarding->name),
                       .uid = arena_strdup(plan->arena, regarding->uid) },
        .type = type,
        .reason = arena_strdup(plan->arena, reason),
        .done = done ? arena_strdup(plan->arena, done) : NULL,
        .note = note,
    };
    return plan_add(plan, &action_event,
                    arena_printf(plan->arena, "event %s %s %s%s%s", type_name(type), reason,
                                 regarding->ns, slash, regarding->name),
                    detail);
}

struct action *plan_event(struct plan *plan, const struct kube_object *regarding,
                          enum kube_event_type type, const char *reason, const char *format, ...)
{
    const char *note;
    va_list args;

    va_start(args, format);
    note = arena_vprintf(plan->arena, format, args);
    va_end(args);
    return add(plan, regarding, type, reason, NULL, note);
}

struct action *plan_event_done(struct plan *plan, const struct kube_object *regarding,
                               enum kube_event_type type, const char *reason, const char *done,
                               const char *format, ...)
{
    const char *note;
    va_list args;

    va_start(args, format);
    note = arena_vprintf(plan->arena, format, args);
    va_end(args);
    return add(plan, regarding, type, reason, done, note);
}
