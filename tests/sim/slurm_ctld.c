/* slurm_ctld.c - the two daemons: requests that wait, time that passes, and slurmctld stopped,
 * killed and started again.
 *
 * A request that has reached a stopped slurmctld stays there after slurmrestd has given it up, and
 * is carried out when slurmctld goes on. One that found no slurmctld is tried again until
 * MessageTimeout, and then it is gone.
 *
 * Holds: everybody who asks is answered once, unless they leave first; while slurmctld is up
 * nobody waits. */
#include "base/mem.h"
#include "slurm_private.h"

/* ---- requests that wait ---- */

void ctld_waiting_free(struct ctld_waiting *waiting)
{
    list_remove(&waiting->link);
    mem_free(waiting->method);
    mem_free(waiting->target);
    mem_free(waiting->type);
    mem_free(waiting->body);
    mem_free(waiting->token);
    mem_free(waiting->user);
    mem_free(waiting);
}

static char *copy(struct str text)
{
    return mem_strndup(text.at ? text.at : "", text.at ? text.len : 0);
}

static uint64_t wait_for_ctld(struct slurm_store *store, const struct slurm_store_request *request,
                              slurm_store_answered answered, void *context)
{
    struct ctld_waiting *waiting = mem_alloc(sizeof(*waiting));

    *waiting = (struct ctld_waiting){
        .ticket = ++store->last_ticket,
        .method = mem_strdup(request->method),
        .target = copy(request->target),
        .type = copy(request->content_type),
        .body = copy(request->body),
        .body_len = request->body.len,
        .token = copy(request->token),
        .user = mem_strdup(request->user ? request->user : ""),
        .deadline_us = ctld_now_us(store) + store->options.message_timeout_s * CTLD_SECOND,
        .reached_ctld = store->ctld == SLURM_CTLD_STOPPED,
        .by_agent = request->by_agent,
        .answered = answered,
        .context = context,
    };
    list_push_back(&store->waiting, &waiting->link);
    ctld_wake(store);
    return waiting->ticket;
}

static struct slurm_store_request request_of(const struct ctld_waiting *waiting)
{
    return (struct slurm_store_request){
        .method = waiting->method,
        .target = str_of(waiting->target),
        .content_type = str_of(waiting->type),
        .body = { waiting->body, waiting->body_len },
        .token = str_of(waiting->token),
        .user = waiting->user,
        .by_agent = waiting->by_agent,
    };
}

uint64_t slurm_store_ask(struct slurm_store *store, const struct slurm_store_request *request,
                         slurm_store_answered answered, void *context)
{
    struct slurm_store_answer answer;
    uint64_t ticket = 0;

    slurm_store_answer_init(&answer);
    if (store->restd_is_down && !request->by_agent)
        answered(context, &answer);
    else if (store->ctld == SLURM_CTLD_UP)
        slurm_store_serve(store, request, &answer);
    else if (!ctld_serve_restd(store, request, &answer))
        ticket = wait_for_ctld(store, request, answered, context);
    if (ticket == 0 && (!store->restd_is_down || request->by_agent))
        answered(context, &answer);
    slurm_store_answer_done(&answer);
    return ticket;
}

void slurm_store_forget(struct slurm_store *store, uint64_t ticket)
{
    list_each (struct ctld_waiting, waiting, &store->waiting, link) {
        if (waiting->ticket == ticket)
            waiting->answered = NULL;
    }
}

/* slurmrestd waits no longer. */
static void give_up(struct slurm_store *store, struct ctld_waiting *waiting)
{
    struct slurm_store_request request = request_of(waiting);
    slurm_store_answered answered = waiting->answered;
    struct slurm_store_answer answer;
    void *context = waiting->context;

    slurm_store_answer_init(&answer);
    slurm_store_trouble(store, waiting->reached_ctld ? 504 : 502, &request, &answer);
    waiting->deadline_us = 0;
    waiting->answered = NULL;
    if (!waiting->reached_ctld || strcmp(waiting->method, "GET") == 0)
        ctld_waiting_free(waiting);
    if (answered)
        answered(context, &answer);
    slurm_store_answer_done(&answer);
}

static struct ctld_waiting *find_overdue(const struct slurm_store *store)
{
    list_each (struct ctld_waiting, waiting, &store->waiting, link) {
        if (waiting->deadline_us && waiting->deadline_us <= ctld_now_us(store))
            return waiting;
    }
    return NULL;
}

/* slurmctld has time again: for each in the order in which they came. */
static void serve_waiting(struct slurm_store *store)
{
    struct list *link;

    while (store->ctld == SLURM_CTLD_UP && (link = list_first(&store->waiting))) {
        struct ctld_waiting *waiting = list_item(link, struct ctld_waiting, link);
        struct slurm_store_request request = request_of(waiting);
        struct slurm_store_answer answer;

        slurm_store_answer_init(&answer);
        list_remove(link);
        slurm_store_serve(store, &request, &answer);
        if (waiting->answered)
            waiting->answered(waiting->context, &answer);
        slurm_store_answer_done(&answer);
        ctld_waiting_free(waiting);
    }
}

/* ---- time ---- */

void ctld_align_backfill(struct slurm_store *store)
{
    int64_t now_us = ctld_now_us(store);
    int64_t interval_us = store->options.backfill_interval_s * CTLD_SECOND;

    if (store->backfill_us <= now_us && !ctld_has_pending(store))
        store->backfill_us += ((now_us - store->backfill_us) / interval_us + 1) * interval_us;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When a job wants to be looked at for the first time; INT64_MAX: it has been. */
static int64_t first_look_us(const struct slurm_store *store, const struct ctld_job *job)
{
    bool is_new = job->phase == PHASE_PENDING && job->looked_at_us > store->cycle_us;

    return is_new ? job->looked_at_us : INT64_MAX;
}

int64_t slurm_store_next_us(const struct slurm_store *store)
{
    int64_t next_us = INT64_MAX;

    list_each (struct ctld_waiting, waiting, &store->waiting, link) {
        if (waiting->deadline_us)
            next_us = earlier(next_us, waiting->deadline_us);
    }
    if (store->ctld != SLURM_CTLD_UP)
        return next_us;
    for (size_t i = 0; i < store->state.job_count; i++) {
        const struct ctld_job *job = store->state.jobs[i];

        next_us = earlier(next_us, ctld_job_due_us(store, job));
        next_us = earlier(next_us, first_look_us(store, job));
    }
    if (ctld_has_pending(store))
        next_us = earlier(next_us, store->wake_us ? store->wake_us : store->backfill_us);
    return store->dirty ? earlier(next_us, store->save_us) : next_us;
}

static void tick_jobs(struct slurm_store *store)
{
    for (size_t i = 0; i < store->state.job_count;) {
        struct ctld_job *job = store->state.jobs[i];

        ctld_job_tick(store, job);
        if (i < store->state.job_count && store->state.jobs[i] == job)
            i++;
    }
}

static void run_cycles(struct slurm_store *store)
{
    int64_t now_us = ctld_now_us(store);
    bool wants_cycle = store->wake_us != 0;

    for (size_t i = 0; i < store->state.job_count; i++)
        wants_cycle |= first_look_us(store, store->state.jobs[i]) <= now_us;
    if (wants_cycle) {
        store->wake_us = 0;
        store->cycle_us = now_us;
        ctld_schedule(store, false);
    }
    if (store->backfill_us <= now_us && ctld_has_pending(store)) {
        ctld_schedule(store, true);
        store->backfill_us = now_us + store->options.backfill_interval_s * CTLD_SECOND;
    }
}

void slurm_store_step(struct slurm_store *store)
{
    struct ctld_waiting *waiting;

    while ((waiting = find_overdue(store)))
        give_up(store, waiting);
    if (store->ctld != SLURM_CTLD_UP)
        return;
    tick_jobs(store);
    run_cycles(store);
    if (store->dirty && store->save_us <= ctld_now_us(store))
        slurm_store_save(store);
}

/* ---- the daemons ---- */

enum slurm_store_ctld slurm_store_ctld(const struct slurm_store *store)
{
    return store->ctld;
}

void slurm_store_stop(struct slurm_store *store)
{
    if (store->ctld == SLURM_CTLD_UP)
        store->ctld = SLURM_CTLD_STOPPED;
}

void slurm_store_continue(struct slurm_store *store)
{
    if (store->ctld != SLURM_CTLD_STOPPED)
        return;
    store->ctld = SLURM_CTLD_UP;
    ctld_wake(store);
    serve_waiting(store);
}

void slurm_store_kill(struct slurm_store *store)
{
    store->ctld = SLURM_CTLD_DOWN;
    list_each (struct ctld_waiting, waiting, &store->waiting, link) {
        waiting->reached_ctld = false;
        if (!waiting->deadline_us)
            ctld_waiting_free(waiting);
    }
}

void slurm_store_shut_down(struct slurm_store *store)
{
    if (store->ctld != SLURM_CTLD_DOWN)
        slurm_store_save(store);
    slurm_store_kill(store);
}

void slurm_store_save(struct slurm_store *store)
{
    ctld_state_copy(&store->saved, &store->state);
    store->dirty = false;
}

static void tell_of_losses(struct slurm_store *store, const struct ctld_state *old)
{
    for (size_t i = 0; i < old->job_count; i++) {
        const struct ctld_job *was = old->jobs[i], *is = ctld_job_find(&store->state, was->id);

        if (!is || strcmp(was->sluid, is->sluid) != 0)
            ctld_tell_job(store, SLURM_JOB_LOST, was, "");
        else if (was->phase != is->phase)
            ctld_tell_job(store, SLURM_JOB_CHANGED, is, "");
    }
    map_each (item, &old->nodes) {
        if (!map_has(&store->state.nodes, item->key))
            ctld_tell_node(store, SLURM_NODE_REMOVED, item->value, "");
    }
}

void slurm_store_start(struct slurm_store *store)
{
    struct ctld_state old = store->state;

    if (store->ctld != SLURM_CTLD_DOWN)
        return;
    ctld_state_init(&store->state);
    ctld_state_copy(&store->state, &store->saved);
    ctld_state_recount(&store->state);
    map_each (item, &store->state.nodes) { /* what is not saved of a node */
        struct ctld_node *node = item->value;

        ctld_set(&node->text[NODE_ACTIVE], node->text[NODE_FEATURES]);
        node->weight = node->line_weight;
        ctld_node_count_use(node);
    }
    for (unsigned table = TABLE_JOBS; table <= TABLE_RESERVATIONS; table++)
        ctld_touch(store, table);
    store->boot_us = ctld_wall_us(store);
    store->wake_us = ctld_now_us(store);
    store->ctld = SLURM_CTLD_UP;
    tell_of_losses(store, &old);
    ctld_state_done(&old);
    serve_waiting(store);
}

/* What slurmrestd held goes with it; what slurmctld has stays there. */
void slurm_store_set_restd(struct slurm_store *store, bool is_up)
{
    struct slurm_store_answer broken = { .status = -1, .content_type = "" };

    store->restd_is_down = !is_up;
    if (is_up)
        return;
    list_each (struct ctld_waiting, waiting, &store->waiting, link) {
        slurm_store_answered answered = waiting->answered;
        void *context = waiting->context;

        if (waiting->by_agent)
            continue;
        waiting->answered = NULL;
        waiting->deadline_us = 0;
        if (!waiting->reached_ctld || strcmp(waiting->method, "GET") == 0)
            ctld_waiting_free(waiting);
        if (answered)
            answered(context, &broken);
    }
}
