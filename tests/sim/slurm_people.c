/* slurm_people.c - what people do to a cluster past REST: users with their jobs, administrators
 * with nodes, partitions and the queue. */
#include "slurm_private.h"

static int find_job(struct slurm_store *store, int64_t id, struct ctld_job **ret_job,
                    struct err *err)
{
    *ret_job = ctld_job_find(&store->state, id);
    return *ret_job ? 0 : err_set(err, ERR_NOT_FOUND, "no job %lld", (long long)id);
}

static int find_node(struct slurm_store *store, const char *name, struct ctld_node **ret_node,
                     struct err *err)
{
    *ret_node = ctld_node_find(&store->state, name);
    return *ret_node ? 0 : err_set(err, ERR_NOT_FOUND, "no node %s", name);
}

static int wrong_state(const struct ctld_job *job, struct err *err)
{
    return err_set(err, ERR_INVALID, "job %lld is %s", (long long)job->id,
                   ctld_phase_names[job->phase]);
}

/* ---- jobs ---- */

int64_t slurm_people_submit(struct slurm_store *store, const struct slurm_people_ask *ask,
                            struct err *err)
{
    struct ctld_job *job = ctld_job_new();
    int number;

    ctld_set(&job->text[JOB_USER], ask->user);
    ctld_set(&job->text[JOB_ASKED_BY], ask->user);
    ctld_set(&job->text[JOB_NAME], ask->name ? ask->name : "sbatch");
    ctld_set(&job->text[JOB_REQUIRED], ask->required_nodes);
    ctld_set(&job->text[JOB_ADMIN_COMMENT], ask->admin_comment);
    ctld_set(&job->text[JOB_EXTRA], ask->extra);
    ctld_rewrite_comment(store, job);
    ctld_set(&job->text[JOB_PARTITION], ask->partition);
    map_each (item, &store->state.partitions) {
        const struct ctld_partition *partition = item->value;

        if (!ask->partition && partition->is_default)
            ctld_set(&job->text[JOB_PARTITION], partition->text[PART_NAME]);
    }
    job->user_id = ctld_uid(store, ask->user);
    job->min_nodes = ask->nodes ? ask->nodes : 1;
    job->cpus_per_task = ask->cpus ? ask->cpus : 1;
    job->memory_per_node = 1;
    job->time_limit = ask->time_limit;
    job->priority = ask->priority ? (int64_t)ask->priority : 1;
    job->exclusive = ask->exclusive;
    job->external = ask->external;
    job->batch = !ask->external;
    job->requeue = true;
    number = ctld_job_check(store, job);
    if (number == 0 && !ctld_fit(store, job, FIT_EVER, NULL, NULL))
        number = 2014;
    if (number != 0) {
        ctld_job_free(job);
        return err_set(err, ERR_INVALID, "%s (%d)", ctld_error_words(number), number);
    }
    ctld_job_take(store, job);
    return job->id;
}

static int end(struct slurm_store *store, int64_t id, enum ctld_phase phase, const char *user,
               struct err *err)
{
    struct ctld_job *job;
    int result = find_job(store, id, &job, err);

    if (result < 0)
        return result;
    if (ctld_job_has_ended(job))
        return wrong_state(job, err);
    ctld_job_end(store, job, phase, phase == PHASE_CANCELLED ? NULL : "None", user);
    return 0;
}

int slurm_people_cancel(struct slurm_store *store, int64_t id, const char *user, struct err *err)
{
    return end(store, id, PHASE_CANCELLED, user, err);
}

int slurm_people_complete(struct slurm_store *store, int64_t id, int exit_code, struct err *err)
{
    struct ctld_job *job;
    int result = find_job(store, id, &job, err);

    if (result < 0)
        return result;
    if (job->phase != PHASE_RUNNING)
        return wrong_state(job, err);
    job->exit_code = exit_code;
    return end(store, id, exit_code ? PHASE_FAILED : PHASE_COMPLETED, job->text[JOB_USER], err);
}

int slurm_people_hold(struct slurm_store *store, int64_t id, bool by_admin, struct err *err)
{
    struct ctld_job *job;
    int result = find_job(store, id, &job, err);

    if (result < 0)
        return result;
    if (job->phase != PHASE_PENDING)
        return wrong_state(job, err);
    job->priority = 0;
    job->held_by_admin = by_admin;
    ctld_set(&job->text[JOB_REASON], by_admin ? "JobHeldAdmin" : "JobHeldUser");
    ctld_job_changed(store, job, by_admin ? "root" : job->text[JOB_USER]);
    return 0;
}

int slurm_people_set_priority(struct slurm_store *store, int64_t id, uint64_t priority,
                              struct err *err)
{
    struct ctld_job *job;
    int result = find_job(store, id, &job, err);

    if (result < 0)
        return result;
    if (job->phase != PHASE_PENDING)
        return wrong_state(job, err);
    ctld_align_backfill(store);
    job->priority = (int64_t)priority;
    job->looked_at_us = ctld_now_us(store) + store->options.start_delay_min_us;
    ctld_set(&job->text[JOB_REASON], "None");
    ctld_job_changed(store, job, "root");
    return 0;
}

int slurm_people_release(struct slurm_store *store, int64_t id, struct err *err)
{
    return slurm_people_set_priority(store, id, 1, err);
}

int slurm_people_requeue(struct slurm_store *store, int64_t id, bool hold, struct err *err)
{
    struct ctld_job *job;
    int result = find_job(store, id, &job, err);

    if (result < 0)
        return result;
    if (job->phase == PHASE_PENDING || job->completing_us)
        return wrong_state(job, err);
    if (hold)
        job->priority = 0;
    ctld_job_requeue(store, job, hold ? "JobHeldAdmin" : "BeginTime");
    return 0;
}

int slurm_people_suspend(struct slurm_store *store, int64_t id, struct err *err)
{
    struct ctld_job *job;
    int result = find_job(store, id, &job, err);

    if (result < 0)
        return result;
    if (job->phase != PHASE_RUNNING)
        return wrong_state(job, err);
    job->phase = PHASE_SUSPENDED;
    job->suspended_us = ctld_wall_us(store);
    ctld_job_changed(store, job, "root");
    return 0;
}

int slurm_people_resume(struct slurm_store *store, int64_t id, struct err *err)
{
    struct ctld_job *job;
    int result = find_job(store, id, &job, err);

    if (result < 0)
        return result;
    if (job->phase != PHASE_SUSPENDED)
        return wrong_state(job, err);
    job->phase = PHASE_RUNNING;
    job->start_us += ctld_wall_us(store) - job->suspended_us; /* its limit stands still */
    ctld_job_changed(store, job, "root");
    return 0;
}

int slurm_people_preempt(struct slurm_store *store, int64_t id, bool requeue, struct err *err)
{
    return requeue ? slurm_people_requeue(store, id, false, err)
                   : end(store, id, PHASE_PREEMPTED, "", err);
}

int slurm_people_set_comment(struct slurm_store *store, int64_t id, const char *admin_comment,
                             struct err *err)
{
    struct ctld_job *job;
    int result = find_job(store, id, &job, err);

    if (result < 0)
        return result;
    ctld_set(&job->text[JOB_ADMIN_COMMENT], admin_comment);
    ctld_job_changed(store, job, "root");
    return 0;
}

int slurm_people_forget(struct slurm_store *store, int64_t id, struct err *err)
{
    struct ctld_job *job;
    int result = find_job(store, id, &job, err);

    if (result < 0)
        return result;
    if (job->holds)
        return wrong_state(job, err);
    ctld_job_forget(store, job, SLURM_JOB_FORGOTTEN);
    return 0;
}

void slurm_people_set_max_jobs(struct slurm_store *store, unsigned max_job_count)
{
    store->options.max_job_count = max_job_count;
}

/* ---- nodes ---- */

int slurm_people_add_nodes(struct slurm_store *store, const struct slurm_people_node *ask,
                           struct err *err)
{
    auto_arena struct arena arena;
    const struct hostlist *names;
    struct hostlist_iter iter;
    struct str name;
    int result;

    arena_init(&arena, CTLD_MAX_MEMORY);
    result = hostlist_parse(&arena, str_of(ask->names), HOSTLIST_MAX_NAMES, &names, err);
    if (result < 0)
        return result;
    iter = hostlist_iter(names);
    while (hostlist_next(&iter, &name)) {
        struct ctld_node *node;

        if (map_has(&store->state.nodes, name))
            return err_set(err, ERR_EXISTS, "node %s is there", name.at);
        node = ctld_node_new(name.at);
        node->sockets = ask->sockets;
        node->cores = ask->cores;
        node->threads = ask->threads;
        node->memory = ask->memory;
        ctld_set(&node->text[NODE_ADDRESS], name.at);
        ctld_set(&node->text[NODE_FEATURES], ask->features);
        ctld_set(&node->text[NODE_ACTIVE], ask->features);
        ctld_set(&node->text[NODE_EXTRA], ask->extra);
        node->external = ask->external;
        ctld_node_shape(node);
        ctld_node_add(store, node, "root");
    }
    return 0;
}

int slurm_people_remove_node(struct slurm_store *store, const char *name, struct err *err)
{
    struct ctld_node *node;
    int result = find_node(store, name, &node, err);

    if (result < 0)
        return result;
    if (node->jobs > 0)
        return err_set(err, ERR_CONFLICT, "node %s has jobs", name);
    ctld_node_remove(store, node, "root");
    return 0;
}

static int set_drain(struct slurm_store *store, const char *name, bool drained, const char *user,
                     const char *reason, struct err *err)
{
    struct ctld_node *node;
    int result = find_node(store, name, &node, err);

    if (result < 0)
        return result;
    node->drained = drained;
    ctld_set(&node->text[NODE_REASON], reason);
    ctld_set(&node->text[NODE_REASON_USER], user);
    node->reason_us = reason[0] ? ctld_wall_us(store) : 0;
    ctld_touch(store, TABLE_NODES);
    ctld_tell_node(store, SLURM_NODE_CHANGED, node, user);
    return 0;
}

int slurm_people_drain(struct slurm_store *store, const char *name, const char *user,
                       const char *reason, struct err *err)
{
    return set_drain(store, name, true, user, reason, err);
}

int slurm_people_undrain(struct slurm_store *store, const char *name, struct err *err)
{
    return set_drain(store, name, false, "", "", err);
}

int slurm_people_fail_node(struct slurm_store *store, const char *name, struct err *err)
{
    struct ctld_node *node;
    int result = find_node(store, name, &node, err);

    if (result < 0)
        return result;
    ctld_node_fail(store, node, "Not responding", "slurm");
    return 0;
}

int slurm_people_resume_node(struct slurm_store *store, const char *name, struct err *err)
{
    struct ctld_node *node;
    int result = find_node(store, name, &node, err);

    if (result < 0)
        return result;
    node->down = false;
    return set_drain(store, name, false, "", "", err);
}

/* ---- partitions and reservations ---- */

int slurm_people_add_partition(struct slurm_store *store, const struct slurm_people_partition *ask,
                               struct err *err)
{
    struct ctld_partition *partition;

    if (ctld_partition_find(&store->state, ask->name))
        return err_set(err, ERR_EXISTS, "partition %s is there", ask->name);
    if (ask->is_default)
        map_each (item, &store->state.partitions)
            ((struct ctld_partition *)item->value)->is_default = false;
    partition = ctld_partition_add(&store->state, ask->name);
    ctld_set(&partition->text[PART_FEATURE], ask->feature);
    partition->is_default = ask->is_default;
    partition->max_time = ask->max_time;
    partition->default_time = ask->default_time;
    partition->max_nodes = ask->max_nodes;
    partition->tier = ask->tier ? ask->tier : 1;
    ctld_touch(store, TABLE_PARTITIONS);
    return 0;
}

int slurm_people_remove_partition(struct slurm_store *store, const char *name, struct err *err)
{
    if (!map_remove(&store->state.partitions, str_of(name)))
        return err_set(err, ERR_NOT_FOUND, "no partition %s", name);
    ctld_touch(store, TABLE_PARTITIONS);
    return 0;
}

int slurm_people_set_partition(struct slurm_store *store, const char *name, const char *state,
                               struct err *err)
{
    struct ctld_partition *partition = ctld_partition_find(&store->state, name);

    if (!partition)
        return err_set(err, ERR_NOT_FOUND, "no partition %s", name);
    ctld_set(&partition->text[PART_STATE], state);
    ctld_touch(store, TABLE_PARTITIONS);
    return 0;
}

int slurm_people_reserve(struct slurm_store *store, const char *name, const char *nodes,
                         const char *users, int64_t minutes, struct err *err)
{
    struct ctld_resv *resv;

    if (ctld_resv_find(&store->state, name))
        return err_set(err, ERR_EXISTS, "reservation %s is there", name);
    resv = ctld_resv_add(&store->state, name);
    ctld_set(&resv->text[RESV_NODES], nodes);
    ctld_set(&resv->text[RESV_USERS], users);
    ctld_set(&resv->text[RESV_FLAGS], "SPEC_NODES");
    resv->start_us = ctld_wall_us(store);
    resv->end_us = resv->start_us + minutes * 60 * CTLD_SECOND;
    ctld_touch(store, TABLE_RESERVATIONS);
    ctld_touch(store, TABLE_NODES);
    return 0;
}

int slurm_people_unreserve(struct slurm_store *store, const char *name, struct err *err)
{
    if (!map_remove(&store->state.reservations, str_of(name)))
        return err_set(err, ERR_NOT_FOUND, "no reservation %s", name);
    ctld_touch(store, TABLE_RESERVATIONS);
    ctld_touch(store, TABLE_NODES);
    return 0;
}
