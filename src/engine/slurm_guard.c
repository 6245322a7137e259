/* slurm_guard.c - reads the objects of Kubernetes that must be gone before an action is sent.
 *
 * Holds: an action is sent only if no object of its guard (action_unless) objects by a direct read;
 * an object that cannot be read may be there. Lists are read page by page, a few at a time: they
 * may be long, and many actions may wait for theirs at once. */
#include "engine/slurm_lane.h"

#include "io/http_text.h"

enum { LISTS_AT_ONCE = 2, OBJECTS_PER_PAGE = 500, MAX_QUERY = 16384 };

static void on_look(void *context, const struct kube_answer *answer);

static bool list_objects(const struct json *list, const struct slurm_task *task)
{
    struct json_iter iter = json_iter(json_get(list, "items"));
    const struct action_unless *unless = task->unless;
    const struct json *item;

    while (json_next_item(&iter, &item))
        if (unless->objects ? unless->objects(item, unless, task->action)
                            : str_is(json_str(json_at(item, "metadata", "uid")), unless->uid))
            return true;
    return false;
}

/* token: where the list goes on, as the page before said; "" for the first page. */
static void read_page(struct slurm_task *task, struct str token)
{
    auto_buf struct buf query = { .max = MAX_QUERY };

    buf_printf(&query, "limit=%d", OBJECTS_PER_PAGE);
    if (token.len > 0) {
        buf_add_text(&query, "&continue=");
        http_escape(token, &query);
    }
    if (query.overflowed) {
        slurm_task_end(task, KUBE_UNAVAILABLE, "a list goes on by a token that is too long");
        return;
    }
    task->look = kube_send(task->lane->kube,
                           &(struct kube_request){ .verb = KUBE_LIST,
                                                   .resource = task->unless->resource,
                                                   .ns = task->unless->ns,
                                                   .query = buf_text(&query) },
                           on_look, task);
}

static void send_lists(void *context)
{
    struct slurm_lane *lane = context;
    struct list *first;

    while (lane->lists_in_flight < LISTS_AT_ONCE &&
           (first = list_pop_front(&lane->list_waiters)) != NULL) {
        struct slurm_task *task = list_item(first, struct slurm_task, queue_link);

        task->is_listing = true;
        lane->lists_in_flight++;
        read_page(task, STR(""));
    }
}

/* The next list may be read. */
static void stop_listing(struct slurm_task *task)
{
    struct slurm_lane *lane = task->lane;

    if (!task->is_listing)
        return;
    task->is_listing = false;
    lane->lists_in_flight--;
    if (!list_is_empty(&lane->list_waiters))
        loop_timer_start(lane->loop, &lane->list_timer, 0, send_lists, lane);
}

void slurm_guard_stop(struct slurm_task *task)
{
    kube_call_cancel(task->look);
    stop_listing(task);
}

static void on_look(void *context, const struct kube_answer *answer)
{
    struct slurm_task *task = context;
    const struct action_unless *unless = task->unless;
    struct str uid = json_str(json_at(answer->object, "metadata", "uid"));
    struct str token = json_str(json_at(answer->object, "metadata", "continue"));
    bool is_done = answer->outcome == KUBE_DONE, is_gone;

    task->look = NULL;
    if (unless->name)
        is_gone = answer->outcome == KUBE_GONE || (is_done && uid.len > 0 && unless->uid &&
                                                   unless->uid[0] && !str_is(uid, unless->uid));
    else
        is_gone = is_done && json_is_array(json_get(answer->object, "items")) &&
                  !list_objects(answer->object, task);
    if (is_gone && !unless->name && token.len > 0) {
        read_page(task, token);
        return;
    }
    stop_listing(task);
    if (is_gone) {
        task->unless = unless->also;
        slurm_guard_ask(task);
    } else if (is_done) {
        slurm_task_end(task, KUBE_CONFLICT, "the object is still there");
    } else {
        slurm_task_end(task, answer->outcome, answer->message);
    }
}

void slurm_guard_ask(struct slurm_task *task)
{
    const struct action_unless *unless = task->unless;

    if (!unless) {
        slurm_task_ready(task);
    } else if (!unless->name) {
        list_push_back(&task->lane->list_waiters, &task->queue_link);
        send_lists(task->lane);
    } else {
        task->look = kube_send(task->lane->kube,
                               &(struct kube_request){ .verb = KUBE_GET,
                                                       .resource = unless->resource,
                                                       .ns = unless->ns,
                                                       .name = unless->name },
                               on_look, task);
    }
}
