/* slurm_look.c - looking into the model: views of jobs and nodes, and telling of changes. */
#include "slurm_private.h"

#include <stdlib.h>

static struct slurm_store_job job_view(const struct ctld_job *job)
{
    return (struct slurm_store_job){
        .id = job->id,
        .sluid = job->sluid,
        .state = ctld_phase_names[job->phase],
        .reason = job->text[JOB_REASON],
        .user = job->text[JOB_USER],
        .asked_by = job->text[JOB_ASKED_BY],
        .name = job->text[JOB_NAME],
        .partition = job->text[JOB_PARTITION],
        .account = job->text[JOB_ACCOUNT],
        .qos = job->text[JOB_QOS],
        .admin_comment = job->text[JOB_ADMIN_COMMENT],
        .comment = job->text[JOB_COMMENT],
        .extra = job->text[JOB_EXTRA],
        .nodes = job->text[JOB_NODES],
        .required_nodes = job->text[JOB_REQUIRED],
        .excluded_nodes = job->text[JOB_EXCLUDED],
        .priority = (uint64_t)job->priority,
        .time_limit = job->time_limit > 0 ? job->time_limit : -1,
        .submit_us = job->submit_us,
        .start_us = job->start_us,
        .end_us = job->end_us,
        .node_count = job->piece_count,
        .restarts = job->restarts,
        .external = job->external,
        .exclusive = job->exclusive,
        .holds_nodes = job->holds,
        .has_ended = ctld_job_has_ended(job),
    };
}

static unsigned free_devices(const struct ctld_node *node)
{
    unsigned count = 0;

    for (unsigned k = 0; k < node->gres_count; k++)
        count += node->gres[k].count - (unsigned)bitmap_count(&node->gres[k].busy);
    return count;
}

static struct slurm_store_node node_view(struct buf *scratch, const struct ctld_node *node)
{
    size_t busy = bitmap_count(&node->busy);
    bool full = busy == (size_t)node->sockets * node->cores;
    const char *use = node->jobs == 0 ? "IDLE" : full ? "ALLOCATED" : "MIXED";

    buf_clear(scratch);
    buf_printf(scratch, "%s%s%s%s", node->down ? "DOWN" : use, node->external ? "+EXTERNAL" : "",
               node->drained ? "+DRAIN" : "", node->dynamic ? "+DYNAMIC_NORM" : "");
    return (struct slurm_store_node){
        .name = node->text[NODE_NAME],
        .state = buf_text(scratch),
        .reason = node->text[NODE_REASON],
        .reason_user = node->text[NODE_REASON_USER],
        .features = node->text[NODE_FEATURES],
        .comment = node->text[NODE_COMMENT],
        .extra = node->text[NODE_EXTRA],
        .gres = node->text[NODE_GRES],
        .cpus = node->cpus,
        .alloc_cpus = (unsigned)busy * node->threads,
        .jobs = node->jobs,
        .memory = node->memory,
        .alloc_memory = node->alloc_memory,
        .free_devices = free_devices(node),
        .external = node->external,
        .is_drained = node->drained,
        .is_down = node->down,
    };
}

void slurm_store_visit_jobs(const struct slurm_store *store, slurm_store_see_job see, void *context)
{
    for (size_t i = 0; i < store->state.job_count; i++) {
        struct slurm_store_job view = job_view(store->state.jobs[i]);

        see(context, &view);
    }
}

void slurm_store_visit_nodes(const struct slurm_store *store, slurm_store_see_node see,
                             void *context)
{
    map_each (item, &store->state.nodes) {
        auto_buf struct buf scratch;
        struct slurm_store_node view;

        buf_init(&scratch, 1000);
        view = node_view(&scratch, item->value);
        see(context, &view);
    }
}

bool slurm_store_find_job(const struct slurm_store *store, int64_t id,
                          struct slurm_store_job *ret_job)
{
    const struct ctld_job *job = ctld_job_find(&store->state, id);

    if (job)
        *ret_job = job_view(job);
    return job != NULL;
}

bool slurm_store_find_node(const struct slurm_store *store, const char *name,
                           struct slurm_store_node *ret_node)
{
    const struct ctld_node *node = ctld_node_find(&store->state, name);

    if (node)
        *ret_node = node_view((struct buf *)&store->scratch, node);
    return node != NULL;
}

bool slurm_store_is_on(const struct slurm_store *store, int64_t id, const char *node)
{
    const struct ctld_job *job = ctld_job_find(&store->state, id);

    for (unsigned i = 0; job && job->holds && i < job->piece_count; i++)
        if (strcmp(job->pieces[i].node, node) == 0)
            return true;
    return false;
}

unsigned slurm_store_cpus_on(const struct slurm_store *store, int64_t id, const char *node)
{
    const struct ctld_job *job = ctld_job_find(&store->state, id);
    const struct ctld_node *there = ctld_node_find(&store->state, node);

    for (unsigned i = 0; job && job->holds && there && i < job->piece_count; i++)
        if (strcmp(job->pieces[i].node, node) == 0)
            return (unsigned)bitmap_count(&job->pieces[i].cores) * there->threads;
    return 0;
}

int64_t slurm_store_next_id(const struct slurm_store *store)
{
    return store->state.next_id;
}

/* ---- telling ---- */

void slurm_store_listen(struct slurm_store *store, slurm_store_listener listener, void *context)
{
    if (store->listener_count == CTLD_MAX_LISTENERS)
        abort();
    store->listeners[store->listener_count].listener = listener;
    store->listeners[store->listener_count++].context = context;
}

static void tell(struct slurm_store *store, const struct slurm_store_change *change)
{
    for (unsigned i = 0; i < store->listener_count; i++)
        store->listeners[i].listener(store->listeners[i].context, change);
}

void ctld_tell_job(struct slurm_store *store, enum slurm_store_event event,
                   const struct ctld_job *job, const char *user)
{
    struct slurm_store_job view = job_view(job);

    tell(store, &(struct slurm_store_change){ .event = event, .user = user, .job = &view });
}

void ctld_tell_node(struct slurm_store *store, enum slurm_store_event event,
                    const struct ctld_node *node, const char *user)
{
    auto_buf struct buf scratch;
    struct slurm_store_node view;

    buf_init(&scratch, 1000);
    view = node_view(&scratch, node);
    tell(store, &(struct slurm_store_change){ .event = event, .user = user, .node = &view });
}
