/* nodeset_observe.c - what Slurm says of workers, on their pods: conditions SlurmNodeState*, the
 * label that protects a busy pod, the time when its jobs end; and the topology of their Node.
 *
 * Holds: messages are Slurm's reason as it is; what Slurm last said stays while it cannot be asked,
 * and after two minutes the conditions are Unknown, all in one write, so that nobody takes an old
 * "drained" for a new one; a pod that is as it should be is not written. */
#include "codec/timestamp.h"
#include "operator/names.h"
#include "operator/nodeset.h"

static const int64_t stale_us = 120000000, registering_us = 30000000;

/* Where jobs of seconds run on a thousand nodes, pods change all the time. Then they are written in
 * turns, and what has changed back by then is not written at all. */
enum { FREE_WRITES = 50, REST_US = 10000, MAX_REST_US = 2000000 };

#define CONDITION_PREFIX "SlurmNodeState"

/* A node has one of the first, and any of the others. `other` is a word that the vocabulary lacks.
 */
static const struct {
    int state; /* enum slurm_node_state, or -1 */
    const char *type, *other;
} states[] = {
    { SLURM_NODE_ALLOCATED, CONDITION_PREFIX "Allocated", NULL },
    { SLURM_NODE_DOWN, CONDITION_PREFIX "Down", NULL },
    { SLURM_NODE_ERROR, CONDITION_PREFIX "Error", NULL },
    { SLURM_NODE_FUTURE, CONDITION_PREFIX "Future", NULL },
    { SLURM_NODE_IDLE, CONDITION_PREFIX "Idle", NULL },
    { SLURM_NODE_MIXED, CONDITION_PREFIX "Mixed", NULL },
    { SLURM_NODE_UNKNOWN, CONDITION_PREFIX "Unknown", NULL },
    { SLURM_NODE_COMPLETING, CONDITION_PREFIX "Completing", NULL },
    { SLURM_NODE_DRAIN, CONDITION_PREFIX "Drain", NULL },
    { SLURM_NODE_FAIL, CONDITION_PREFIX "Fail", NULL },
    { -1, CONDITION_PREFIX "Invalid", "INVALID" },
    { SLURM_NODE_INVALID_REG, CONDITION_PREFIX "InvalidReg", NULL },
    { SLURM_NODE_MAINTENANCE, CONDITION_PREFIX "Maintenance", NULL },
    { SLURM_NODE_NOT_RESPONDING, CONDITION_PREFIX "NotResponding", NULL },
    { -1, CONDITION_PREFIX "Undrain", "UNDRAIN" },
};

enum { BASE_STATES = 7, STATES = sizeof(states) / sizeof(states[0]) };

/* ---- conditions ---- */

/* Since when it is not known what Slurm's node is, by the wall clock. */
static int64_t unread_since_us(const struct nodeset *nodeset, const struct worker *worker)
{
    const struct operator_world *world = nodeset->sync.world;
    const struct slurm_facts *facts = nodeset->facts;
    int64_t known_us = INT64_MIN;

    if (facts && facts->nodes)
        known_us = slurm_cache_known_us(facts->nodes, worker->slurm_name);
    if (known_us != INT64_MIN)
        return world->wall_us - (world->loop_us - known_us);
    return facts && (!facts->has_restapi || (facts->is_known && !facts->is_reachable))
               ? facts->since_us
               : world->wall_us;
}

static bool is_in_state(const struct slurm_node *record, size_t at)
{
    return states[at].other ? record->state.other[0] && slurm_node_has(record, states[at].other)
                            : slurm_words_has(&record->state, (unsigned)states[at].state);
}

static bool wants_state(const struct slurm_node *record, size_t at)
{
    if (!record || !is_in_state(record, at))
        return false;
    for (size_t i = 0; at < BASE_STATES && i < at; i++)
        if (is_in_state(record, i))
            return false;
    return true;
}

static const char *time_text(struct arena *arena, int64_t wall_us)
{
    auto_buf struct buf text = { .max = 64 };

    (void)timestamp_print(wall_us, &text, NULL);
    return arena_strdup(arena, buf_text(&text));
}

/* The changes of a pod's conditions, as they grow. Most pods have none. */
struct changes {
    struct json_build *build;
    struct arena *arena;
    int64_t wall_us;
    struct json_mut *list; /* NULL: nothing differs */
};

static void push(struct changes *changes, struct json_mut *item)
{
    if (!changes->list)
        changes->list = json_new_array(changes->build);
    json_push(changes->list, item);
}

/* status NULL: it stays, and so does the time of its last change. */
static void put_condition(struct changes *changes, const char *type, const char *status,
                          const char *message)
{
    struct json_mut *item = json_format(changes->build, "{'type':%s}", type);

    if (status) {
        json_put_text(changes->build, item, "status", status);
        json_put_text(changes->build, item, "lastTransitionTime",
                      time_text(changes->arena, changes->wall_us));
    }
    if (message)
        json_put_text(changes->build, item, "message", message);
    push(changes, item);
}

/* The changes that make the pod's conditions those of the record; NULL: no node, so none of ours.
 */
static void put_known(struct changes *changes, const struct kube_pod *pod,
                      const struct slurm_node *record)
{
    for (size_t i = 0; i < STATES; i++) {
        const struct kube_condition *live =
            kube_condition_of(pod->conditions, pod->condition_count, states[i].type);

        if (!wants_state(record, i)) {
            if (live)
                push(changes,
                     json_format(changes->build, "{'$patch':'delete','type':%s}", states[i].type));
            continue;
        }
        if (!live || strcmp(live->status, "True") != 0)
            put_condition(changes, states[i].type, "True", record->reason);
        else if (strcmp(live->message, record->reason) != 0)
            put_condition(changes, states[i].type, NULL, record->reason);
    }
}

static void put_unknown(struct changes *changes, const struct kube_pod *pod)
{
    for (size_t i = 0; i < STATES; i++) {
        const struct kube_condition *live =
            kube_condition_of(pod->conditions, pod->condition_count, states[i].type);

        if (live && strcmp(live->status, "Unknown") != 0)
            put_condition(changes, states[i].type, "Unknown", NULL);
    }
}

/* A pod that is gone by now needs it no more, and others are not to wait for another plan. */
static void allow_missing(struct action *action)
{
    if (action)
        action->missing_is_fine = true;
}

static void plan_conditions(struct nodeset *nodeset, const struct worker *worker)
{
    const struct operator_world *world = nodeset->sync.world;
    struct plan *plan = nodeset->sync.plan;
    const struct kube_object *pod = &worker->pod->object;
    struct changes changes = { .build = nodeset->sync.build,
                               .arena = plan->arena,
                               .wall_us = world->wall_us };
    struct json_mut *patch;

    if (worker->knowledge == SLURM_UNREAD) {
        int64_t left_us = unread_since_us(nodeset, worker) + stale_us - world->wall_us;

        if (left_us <= 0)
            put_unknown(&changes, worker->pod);
        else if (worker->pod->condition_count > 0)
            plan_look_again(plan, left_us);
    } else {
        put_known(&changes, worker->pod,
                  worker->knowledge == SLURM_PRESENT ? worker->record : NULL);
    }
    if (!changes.list)
        return;
    patch = json_format(changes.build, "{'metadata':{'uid':%s},'status':{}}", pod->uid);
    json_put(changes.build, json_object_at(changes.build, patch, "status"), "conditions",
             changes.list);
    allow_missing(plan_strategic_patch(plan, world->pods, &kube_pods, pod->ns, pod->name, "status",
                                       NULL, patch, patch));
}

/* ---- labels and annotations ---- */

struct marks { /* a merge patch of metadata, as it grows */
    struct json_build *build;
    const struct kube_object *pod;
    struct json_mut *patch; /* NULL: nothing differs */
};

/* text NULL: it must be absent. */
static void want(struct marks *marks, const char *map, const char *key, const char *text)
{
    const struct kube_pairs *pairs =
        strcmp(map, "labels") == 0 ? &marks->pod->labels : &marks->pod->annotations;
    bool found = false;
    struct str live = kube_pairs_get(pairs, key, &found);

    if (text ? found && str_is(live, text) : !found)
        return;
    if (!marks->patch)
        marks->patch = json_new_object(marks->build);
    json_put_at(marks->build, marks->patch,
                text ? json_new_str(marks->build, str_of(text)) : json_new_null(marks->build),
                "metadata", map, key);
}

/* While Slurm does not say, a busy pod stays protected. */
static void want_protection(struct marks *marks, const struct nodeset *nodeset,
                            const struct worker *worker)
{
    bool is_on = spec_flag(nodeset->sync.object, "workloadDisruptionProtection");

    if (!is_on || worker->knowledge == SLURM_ABSENT)
        want(marks, "labels", LABEL_POD_PROTECT, NULL);
    else if (worker->knowledge == SLURM_PRESENT)
        want(marks, "labels", LABEL_POD_PROTECT, worker->is_busy ? "true" : NULL);
}

/* When the last of the jobs on this node ends, by their limits; 0: there is none. A suspended job
 * has no end that is known. */
static int64_t last_end_us(const struct slurm_cache *jobs, const char *node)
{
    struct slurm_index_walk walk = slurm_cache_by(jobs, SLURM_JOBS_BY_NODE, str_of(node));
    const struct slurm_object *object;
    int64_t last_us = 0;

    while ((object = slurm_index_next(&walk))) {
        const struct slurm_job *job = slurm_job_of(object);
        int64_t end_us = TIMESTAMP_MAX;

        if (slurm_words_has(&job->state, SLURM_JOB_PENDING))
            continue;
        if (slurm_words_has(&job->state, SLURM_JOB_RUNNING) && job->time_limit.set &&
            job->start_time < TIMESTAMP_MAX / 2 / TIMESTAMP_SECOND &&
            job->time_limit.number < TIMESTAMP_MAX / 2 / 60 / TIMESTAMP_SECOND)
            end_us = (job->start_time + job->time_limit.number * 60) * TIMESTAMP_SECOND;
        if (end_us > last_us)
            last_us = end_us;
    }
    return last_us;
}

static void want_deadline(struct marks *marks, const struct nodeset *nodeset,
                          const struct worker *worker)
{
    struct arena *arena = nodeset->sync.plan->arena;
    int64_t end_us;

    if (worker->knowledge == SLURM_ABSENT) {
        want(marks, "annotations", ANNOTATION_POD_DEADLINE, NULL);
    } else if (worker->knowledge == SLURM_PRESENT && slurm_cache_is_synced(nodeset->facts->jobs)) {
        end_us = last_end_us(nodeset->facts->jobs, worker->slurm_name);
        if (timestamp_to_seconds(end_us) != timestamp_to_seconds(worker->deadline_us))
            want(marks, "annotations", ANNOTATION_POD_DEADLINE,
                 end_us > 0 ? time_text(arena, end_us) : NULL);
    }
}

/* slurmd's pod reads it by the downward API; there is none before the pod has a Node. */
static void want_topology(struct marks *marks, struct arena *arena, const struct worker *worker)
{
    struct str topology;

    if (!worker->node)
        return;
    topology = kube_pairs_get(&worker->node->object.annotations, ANNOTATION_TOPOLOGY, NULL);
    want(marks, "annotations", ANNOTATION_TOPOLOGY,
         arena_strndup(arena, topology.at, topology.len));
}

/* Since when a worker that is ready has no node in Slurm: nodeset_update.c. */
static void want_registration(struct marks *marks, const struct nodeset *nodeset,
                              const struct worker *worker)
{
    const struct operator_world *world = nodeset->sync.world;
    struct plan *plan = nodeset->sync.plan;
    int64_t left_us = worker->pod->ready_since_us + registering_us - world->wall_us;
    bool is_marked = false;

    (void)kube_pairs_get(&worker->pod->object.annotations, ANNOTATION_UNREGISTERED, &is_marked);
    if (worker->knowledge == SLURM_PRESENT || !worker->is_healthy)
        want(marks, "annotations", ANNOTATION_UNREGISTERED, NULL);
    else if (worker->knowledge == SLURM_ABSENT && left_us > 0)
        plan_look_again(plan, left_us);
    else if (worker->knowledge == SLURM_ABSENT && !is_marked)
        want(marks, "annotations", ANNOTATION_UNREGISTERED, time_text(plan->arena, world->wall_us));
}

/* What finds the pod: a person, or a tool, may have taken it away. */
static void want_identity(struct marks *marks, const struct nodeset *nodeset,
                          const struct worker *worker)
{
    struct arena *arena = nodeset->sync.plan->arena;

    want(marks, "labels", LABEL_POD_NAME, marks->pod->name);
    if (worker->pod->hostname[0])
        want(marks, "labels", LABEL_POD_HOSTNAME, worker->pod->hostname);
    if (worker->ordinal >= 0 && !nodeset->is_daemonset)
        want(marks, "labels", LABEL_POD_INDEX,
             arena_printf(arena, "%lld", (long long)worker->ordinal));
    if (nodeset->controller)
        want(marks, "labels", LABEL_CLUSTER, nodeset->controller->name);
}

static void plan_metadata(struct nodeset *nodeset, const struct worker *worker)
{
    const struct kube_object *pod = &worker->pod->object;
    struct plan *plan = nodeset->sync.plan;
    struct json_build *build = nodeset->sync.build;
    struct marks marks = { .build = build, .pod = pod };

    marks.patch = worker_chart_labels(build, nodeset->sync.object, pod);
    want_identity(&marks, nodeset, worker);
    want_protection(&marks, nodeset, worker);
    want_deadline(&marks, nodeset, worker);
    want_topology(&marks, plan->arena, worker);
    want_registration(&marks, nodeset, worker);
    if (!marks.patch)
        return;
    json_put_at(build, marks.patch, json_new_str(build, str_of(pod->uid)), "metadata", "uid");
    allow_missing(plan_merge_patch(plan, nodeset->sync.world->pods, &kube_pods, pod->ns, pod->name,
                                   NULL, NULL, marks.patch));
}

static void observe_each(struct nodeset *nodeset,
                         void (*observe)(struct nodeset *nodeset, const struct worker *worker))
{
    for (size_t i = 0; i < nodeset->count && plan_has_room(nodeset->sync.plan); i++) {
        const struct worker *worker = &nodeset->workers[i];

        if (worker_is_live(worker) && worker->pod->object.uid[0] != '\0')
            observe(nodeset, worker);
    }
}

/* The two writes to a pod come one after the other. If they were on their way at the same time, the
 * answer to the one would hide the effect of the other until the watch shows both. */
int nodeset_plan_observed(struct sync *sync, struct err *err)
{
    struct nodeset *nodeset = nodeset_of(sync);
    unsigned before = sync->plan->action_count, writes;

    (void)err;
    observe_each(nodeset, plan_conditions);
    if (sync->plan->action_count > before)
        plan_next_stage(sync->plan);
    observe_each(nodeset, plan_metadata);
    writes = sync->plan->action_count - before;
    if (writes > FREE_WRITES)
        sync->plan->rest_us = (writes - FREE_WRITES) * REST_US;
    if (sync->plan->rest_us > MAX_REST_US)
        sync->plan->rest_us = MAX_REST_US;
    return 0;
}
