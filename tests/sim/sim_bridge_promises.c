/* sim_bridge_promises.c - what the bridge promises, whatever happens to it; looked at whenever
 * something changes in either store, whenever it sends, and after every step.
 *
 * Both stores are asked at the moment of the change itself: what counts is what is true there, not
 * what the bridge could know. Where it cannot know (the other system may change between its last
 * read and the effect of its write), the truth at the time of that read counts. */
#include "sim_bridge.h"

#include <inttypes.h>

enum {
    SECOND = SCENE_SECOND,
    /* Two jobs of one unit: an unresolved ask settles after its fence, 60 s with a token of
     * others; then one list finds them both, and the cancel is repeated at most every 15 s. */
    LONGEST_DOUBLE_S = 90,
    /* A watch that stalls is noticed after its idle time; until then a node that was unfit, or
     * another one, may be believed in. */
    BELIEF_S = 90,
    LATE_CANCEL_S = 20, /* that a cancel lives in slurmrestd: MessageTimeout, and the way there */
};

static bool is_pod(const struct api_change *change)
{
    return strcmp(change->kind->plural, "pods") == 0;
}

static bool is_being_deleted(const struct json *object)
{
    return json_exists(json_at(object, "metadata", "deletionTimestamp"));
}

/* ---- 1 and 2: one live job per unit, and pods only where it runs ---- */

/* Until when it ran there; 0: it never did. slurmctld may have put it back and started it elsewhere
 * since it was read last. */
static int64_t ran_there_until_us(const struct job_note *job, const char *node)
{
    if (bridge_hosts_have(job->nodes, node))
        return job->ran_until_us;
    return bridge_hosts_have(job->nodes_before, node) ? job->before_until_us : 0;
}

static const struct job_note *job_under(const struct bridge_scene *scene,
                                        const struct pod_note *pod, const char *node)
{
    const struct job_note *best = NULL;
    int64_t best_us = 0;

    map_each (item, &scene->jobs) {
        const struct job_note *job = item->value;
        int64_t until_us = ran_there_until_us(job, node);

        if (strcmp(job->unit, pod->unit) == 0 && until_us > best_us) {
            best = job;
            best_us = until_us;
        }
    }
    return best;
}

static void a_pod_is_bound_only_where_its_job_runs(struct bridge_scene *scene, struct pod_note *pod,
                                                   const char *node, const struct job_note *job)
{
    bool is_alone = strcmp(pod->unit, pod->key) == 0;
    int64_t until_us = job ? ran_there_until_us(job, node) : 0;

    scene->binds++;
    if (!job)
        world_break(scene->world, "pod %s is bound to %s, where no job of it ever ran", pod->name,
                    node);
    else if (until_us < (is_alone ? pod->read_us : pod->group_read_us))
        world_break(scene->world,
                    "pod %s is bound to %s, where job %" PRId64 " has not run any more for %" PRId64
                    " ms, and Slurm was read since",
                    pod->name, node, job->id, (loop_now_us(scene->world->loop) - until_us) / 1000);
    (void)snprintf(pod->job, sizeof(pod->job), "%s", job ? job->sluid : "");
}

struct seats {
    struct bridge_scene *scene;
    const struct pod_note *pod;
    const char *node;
    int64_t cpus;
};

static void take_seat(void *context, const struct json *pod)
{
    struct seats *seats = context;
    const struct pod_note *note = bridge_note_of_pod(seats->scene, pod);

    if (strcmp(note->unit, seats->pod->unit) == 0 && strcmp(note->node, seats->node) == 0 &&
        bridge_pod_may_run(pod))
        seats->cpus += bridge_pod_cpus(pod);
}

/* What Slurm holds there for the unit. A group whose object was made again has the job of the
 * former one, while pods of it run, beside its own. */
static unsigned cpus_of_unit(const struct bridge_scene *scene, const struct pod_note *pod,
                             const char *node)
{
    unsigned cpus = 0;

    map_each (item, &scene->jobs) {
        const struct job_note *job = item->value;

        if (strcmp(job->unit, pod->unit) == 0 && ran_there_until_us(job, node) == INT64_MAX)
            cpus += slurm_store_cpus_on(scene->world->slurm, job->id, node);
    }
    return cpus;
}

/* Whoever is there with the same unit, those that are ending too. */
static void a_node_holds_no_more_than_its_job_has_there(struct bridge_scene *scene,
                                                        const struct pod_note *pod,
                                                        const char *node,
                                                        const struct job_note *job)
{
    struct seats seats = { .scene = scene, .pod = pod, .node = node };
    unsigned cpus = cpus_of_unit(scene, pod, node);

    if (!job || ran_there_until_us(job, node) != INT64_MAX || cpus == 0)
        return;
    api_store_visit(scene->world->store, "pods", take_seat, &seats);
    if (seats.cpus > cpus)
        world_break(scene->world,
                    "pod %s is bound to %s, where job %" PRId64
                    " has %u CPUs and its pods use %" PRId64,
                    pod->name, node, job->id, cpus, seats.cpus);
}

struct port_look {
    struct bridge_scene *scene;
    const struct pod_note *pod;
    const struct pod_note *other; /* that has the port, too; NULL */
};

/* Kubernetes' own scheduler takes the ports of a pod for free as soon as it is called Failed. */
static void look_for_port(void *context, const struct json *pod)
{
    struct port_look *look = context;
    struct str phase = json_str(json_at(pod, "status", "phase"));
    const struct pod_note *note = bridge_note_of_pod(look->scene, pod);

    if (note != look->pod && strcmp(note->node, look->pod->node) == 0 && bridge_pod_has_port(pod) &&
        bridge_pod_may_run(pod) && !str_is(phase, "Failed"))
        look->other = note;
}

/* All ports here are the same one. */
static void a_port_of_a_node_is_given_once(struct bridge_scene *scene, const struct pod_note *pod,
                                           const struct json *object)
{
    struct port_look look = { .scene = scene, .pod = pod };

    if (!bridge_pod_has_port(object))
        return;
    api_store_visit(scene->world->store, "pods", look_for_port, &look);
    if (look.other)
        world_break(scene->world, "pods %s and %s have the same port of %s", pod->name,
                    look.other->name, pod->node);
}

static void a_member_has_no_two_jobs(struct bridge_scene *scene, const struct pod_note *pod)
{
    map_each (item, &scene->jobs) {
        const struct job_note *job = item->value;

        if (strcmp(pod->unit, pod->group) == 0 && job->is_live && job->taken_us < pod->listed_us &&
            strcmp(job->unit, pod->key) == 0)
            world_break(scene->world,
                        "pod %s is bound by the job of its group, and has job %" PRId64
                        " of its own",
                        pod->name, job->id);
    }
}

static void no_pod_is_bound_while_two_jobs_of_it_are_known(struct bridge_scene *scene,
                                                           const struct pod_note *pod,
                                                           const struct job_note *by)
{
    unsigned known = 0;

    map_each (item, &scene->jobs) {
        const struct job_note *job = item->value;

        known += job->is_live && job->taken_us < pod->listed_us &&
                 strcmp(job->unit, pod->unit) == 0 && by && strcmp(job->uid, by->uid) == 0;
    }
    if (known > 1)
        world_break(scene->world, "pod %s is bound while %u jobs of it live", pod->name, known);
}

/* The node of this name in Slurm is another cluster's: what its job has there is not here. */
static void no_pod_is_bound_to_a_node_of_another_cluster(struct bridge_scene *scene,
                                                         const struct pod_note *pod,
                                                         const char *node)
{
    if (bridge_slurm_node_is_foreign(node))
        world_break(scene->world, "pod %s is bound to %s, which is another cluster's in Slurm",
                    pod->name, node);
}

static void a_pod_is_bound_once(struct bridge_scene *scene, const struct pod_note *pod)
{
    if (pod->bound_us)
        world_break(scene->world, "pod %s is bound twice", pod->name);
}

/* A member that is bound by a job of its own bears a mark. */
static const char *unit_of(const struct pod_note *note, const struct json *pod)
{
    bool is_alone = json_exists(json_at(pod, "metadata", "annotations", BRIDGE_ALONE_ANNOTATION));

    return note->group[0] && !is_alone ? note->group : note->key;
}

static void on_bound(struct bridge_scene *scene, const struct api_change *change, const char *node)
{
    struct pod_note *pod = bridge_note_of_pod(scene, change->next);
    const struct job_note *job;

    a_pod_is_bound_once(scene, pod);
    (void)snprintf(pod->unit, sizeof(pod->unit), "%s", unit_of(pod, change->next));
    (void)snprintf(pod->node, sizeof(pod->node), "%s", node);
    pod->node_was_gone = !api_store_find(scene->world->store, "nodes", "", node);
    pod->bound_us = loop_now_us(scene->world->loop);
    if (!bridge_is_ours(change->user))
        return;
    no_pod_is_bound_to_a_node_of_another_cluster(scene, pod, node);
    job = job_under(scene, pod, node);
    a_pod_is_bound_only_where_its_job_runs(scene, pod, node, job);
    a_node_holds_no_more_than_its_job_has_there(scene, pod, node, job);
    a_port_of_a_node_is_given_once(scene, pod, change->next);
    no_pod_is_bound_while_two_jobs_of_it_are_known(scene, pod, job);
    a_member_has_no_two_jobs(scene, pod);
    bridge_promises_on_bound_with_device(scene, change->next, node);
}

static void two_jobs_of_a_unit_do_not_last(struct bridge_scene *scene)
{
    int64_t now_us = loop_now_us(scene->world->loop);

    map_each (item, &scene->units) {
        const struct unit_note *unit = item->value;

        if (unit->doubled_us && now_us - unit->doubled_us > (int64_t)LONGEST_DOUBLE_S * SECOND)
            world_break(scene->world, "unit %s has had %u live jobs for %d s", unit->key,
                        unit->live, LONGEST_DOUBLE_S);
    }
}

/* ---- 3: Slurm gets a place back only when the pod is gone from it ---- */

/* The node was no place for the pod, now or lately: then the job may be given back. */
static bool was_unfit(struct bridge_scene *scene, const char *node)
{
    const struct node_note *note = bridge_note_of_node(scene, node);
    int64_t now_us = loop_now_us(scene->world->loop);

    return note->unfit_us == INT64_MAX || now_us - note->unfit_us < (int64_t)BELIEF_S * SECOND ||
           now_us - note->changed_us < (int64_t)BELIEF_S * SECOND;
}

static bool has_unfit_node(struct bridge_scene *scene, const struct job_note *job)
{
    char name[32];

    for (unsigned i = 1; i <= scene->node_count; i++) {
        (void)snprintf(name, sizeof(name), "node-%u", i);
        if (bridge_hosts_have(job->nodes, name) && was_unfit(scene, name))
            return true;
    }
    return false;
}

/* slurmctld died with the id of the job that was meant, and gave it to this one while the cancel
 * waited in slurmrestd. A cancel names a job by its id alone: nobody who sends one can prevent
 * that; the unit is submitted again. */
static bool has_a_dead_jobs_id(const struct bridge_scene *scene, const struct job_note *job)
{
    int64_t now_us = loop_now_us(scene->world->loop);

    map_each (item, &scene->jobs) {
        const struct job_note *other = item->value;

        if (other != job && other->id == job->id && other->lost_us > 0 &&
            now_us - other->lost_us < (int64_t)LATE_CANCEL_S * SECOND)
            return true;
    }
    return false;
}

/* Of a leader before this one, whose token still counts. Nobody can call it back, and who leads now
 * cannot know of it: the pods stay, and are covered again (docs/decisions/009). */
static bool is_a_late_cancel(const struct bridge_scene *scene, const struct job_note *job)
{
    return (scene->weather->foreign_token || scene->has_agent) && job->cancel_us > 0 &&
           job->cancel_us < scene->leading_us;
}

struct forgotten {
    struct bridge_scene *scene;
    const struct job_note *job;
    bool found;
};

static void look_if_forgotten(void *context, const struct json *pod)
{
    struct forgotten *forgotten = context;
    const struct pod_note *note = bridge_note_of_pod(forgotten->scene, pod);

    if (!note->node[0] || !bridge_pod_may_run(pod) ||
        !bridge_hosts_have(forgotten->job->nodes, note->node))
        return;
    map_each (item, &forgotten->scene->jobs) {
        const struct job_note *job = item->value;

        if ((strcmp(job->unit, note->key) == 0 || strcmp(job->unit, note->group) == 0) &&
            job->ran_until_us == INT64_MAX)
            return;
    }
    forgotten->found = true;
}

/* A pod runs on one of its nodes for which Slurm has no running job: the node is given back. */
static bool has_forgotten_pods(struct bridge_scene *scene, const struct job_note *job)
{
    struct forgotten forgotten = { .scene = scene, .job = job };

    api_store_visit(scene->world->store, "pods", look_if_forgotten, &forgotten);
    return forgotten.found;
}

struct over {
    struct bridge_scene *scene;
    const struct job_note *job;
    int64_t waiting, bound, needed;
    bool has_port;
};

static bool is_in(const struct over *over, const struct pod_note *pod)
{
    const char *unit = over->job->unit;

    if (pod->unit[0])
        return strcmp(pod->unit, unit) == 0;
    return strcmp(pod->key, unit) == 0 ||
           (strcmp(pod->group, unit) == 0 && bridge_note_of_unit(over->scene, pod->key)->live == 0);
}

static void look_if_over(void *context, const struct json *pod)
{
    struct over *over = context;
    const struct pod_note *note = bridge_note_of_pod(over->scene, pod);
    struct world *world = over->scene->world;

    if (!is_in(over, note))
        return;
    over->has_port |= bridge_pod_has_port(pod);
    over->waiting += bridge_pod_waits(pod);
    if (bridge_pod_waits(pod))
        over->needed = note->group[0] ? bridge_group_needs(over->scene, pod) : 1;
    if (!note->node[0])
        return;
    over->bound += bridge_pod_is_live(pod);
    if (bridge_pod_may_run(pod) && !note->node_was_gone &&
        over->job->ran_until_us == loop_now_us(world->loop) && /* else it held nothing */
        bridge_hosts_have(over->job->nodes, note->node))
        world_break(world, "job %" PRId64 " is cancelled while its pod %s may run on %s",
                    over->job->id, note->name, note->node);
}

/* Lately too few of them were there, as far as anybody can know. */
static bool was_short(struct bridge_scene *scene, const struct job_note *job)
{
    const struct unit_note *unit = bridge_note_of_unit(scene, job->unit);

    return unit->short_us == INT64_MAX ||
           (unit->short_us > 0 &&
            loop_now_us(scene->world->loop) - unit->short_us < (int64_t)BELIEF_S * SECOND);
}

static void a_job_is_cancelled_only_when_its_pods_are_over(struct bridge_scene *scene,
                                                           const struct job_note *job)
{
    struct over over = { .scene = scene, .job = job };

    /* It has another, or the id was meant for another. */
    if (!job->unit[0] || bridge_note_of_unit(scene, job->unit)->live > 0 ||
        has_a_dead_jobs_id(scene, job) || is_a_late_cancel(scene, job))
        return;
    api_store_visit(scene->world->store, "pods", look_if_over, &over);
    if (over.bound == 0 && over.waiting > 0 && over.waiting >= over.needed && over.needed > 0 &&
        !over.has_port && !has_unfit_node(scene, job) && !was_short(scene, job) &&
        !has_forgotten_pods(scene, job))
        world_break(scene->world, "job %" PRId64 " of %s, which waits for it, is cancelled",
                    job->id, job->unit);
}

/* ---- real ends ---- */

struct told_end {
    struct bridge_scene *scene;
    const struct slurm_store_job *job;
    const struct job_note *note;
};

/* Groups end as their leader or their worst member; the worlds try those. */
static void look_if_it_ended_so(void *context, const struct json *pod)
{
    const struct told_end *told = context;
    const struct pod_note *note = bridge_note_of_pod(told->scene, pod);
    struct str phase = json_str(json_at(pod, "status", "phase"));
    bool has_completed = strcmp(told->job->state, "COMPLETED") == 0;

    if (strcmp(note->key, told->note->unit) == 0 && strcmp(note->job, told->note->sluid) == 0 &&
        !str_is(phase, has_completed ? "Succeeded" : "Failed"))
        world_break(told->scene->world, "job %" PRId64 " ends as %s, and its pod %s is " STR_FMT,
                    told->job->id, told->job->state, note->name, STR_ARG(phase));
}

static void a_job_ends_as_its_pod_did(struct bridge_scene *scene, const struct slurm_store_job *job,
                                      const struct job_note *note)
{
    struct told_end told = { scene, job, note };

    if (strcmp(job->state, "CANCELLED") == 0)
        return;
    scene->real_ends++;
    api_store_visit(scene->world->store, "pods", look_if_it_ended_so, &told);
}

/* ---- 4: nothing is deleted out of ignorance ---- */

static void a_pod_is_deleted_only_for_what_slurm_did(struct bridge_scene *scene,
                                                     const struct api_change *change)
{
    const struct pod_note *pod = bridge_note_of_pod(scene, change->old);

    map_each (item, &scene->jobs) {
        const struct job_note *job = item->value;

        if ((strcmp(job->unit, pod->key) == 0 || strcmp(job->unit, pod->unit) == 0) &&
            job->is_a_reason &&
            (strcmp(job->sluid, pod->job) == 0 || job->reason_us >= pod->bind_us))
            return;
    }
    world_break(scene->world, "%s deletes pod %s, whose job Slurm did nothing to", change->user,
                pod->name);
}

static unsigned devices_in(const char *gres)
{
    const char *last = strrchr(gres, ':');
    uint64_t count = 0;

    (void)str_to_u64(str_of(last ? last + 1 : ""), 0, UINT32_MAX, &count, NULL);
    return (unsigned)count;
}

/* One that has another size or other devices now is made anew, when its work is over: drivers may
 * show devices long after the node came. */
static void a_slurm_node_goes_only_with_its_kubernetes_node(struct bridge_scene *scene,
                                                            const struct slurm_store_node *there)
{
    const struct json *node = api_store_find(scene->world->store, "nodes", "", there->name);
    const struct node_note *note = bridge_note_of_node(scene, there->name);
    int64_t cpus = 0;

    (void)str_to_i64(json_str(json_at(node, "status", "allocatable", "cpu")), 1, INT32_MAX, &cpus,
                     NULL);
    if (bridge_node_is_labelled(node) && cpus == there->cpus &&
        bridge_devices_shown(scene, there->name) == devices_in(there->gres) &&
        loop_now_us(scene->world->loop) - note->changed_us > (int64_t)BELIEF_S * SECOND)
        world_break(scene->world, "Slurm node %s is deleted, and its Kubernetes node is as ever",
                    there->name);
}

/* ---- changes in Kubernetes ---- */

void bridge_promises_on_change(void *context, const struct api_change *change)
{
    struct bridge_scene *scene = context;
    const struct json *old = change->old, *next = change->next;
    struct str node = json_str(json_at(next, "spec", "nodeName"));
    bool is_bound = is_pod(change) && next && node.len > 0;

    bridge_note_change(scene, change);
    bridge_promises_on_device_claim(scene, change);
    if (bridge_is_ours(change->user))
        bridge_promises_on_claim(scene, change);
    if (scene->is_removed)
        return;
    if (bridge_is_ours(change->user))
        bridge_promises_on_our_write(scene, change);
    if (is_bound && json_str(json_at(old, "spec", "nodeName")).len == 0)
        on_bound(scene, change, node.at);
    if (is_pod(change) && bridge_is_ours(change->user) && old && !is_being_deleted(old) &&
        (!next || is_being_deleted(next)))
        a_pod_is_deleted_only_for_what_slurm_did(scene, change);
}

/* ---- 5: in Slurm ---- */

/* Slurm has no "only if nobody else": a drain that came after the sender's last look at the nodes
 * is overwritten. */
static bool could_be_known(const struct bridge_scene *scene, int64_t since_us)
{
    int64_t now_us = loop_now_us(scene->world->loop);

    for (unsigned i = 0; i < SCENE_NODE_WRITES; i++)
        if (scene->node_writes[i].sent_us > now_us - (int64_t)LATE_CANCEL_S * SECOND &&
            scene->node_writes[i].nodes_us <= since_us)
            return false;
    return true;
}

static void note_node_write(struct bridge_scene *scene, const struct bridge_replica *replica)
{
    unsigned place = scene->node_write_count++ % SCENE_NODE_WRITES;

    scene->node_writes[place].sent_us = loop_now_us(scene->world->loop);
    scene->node_writes[place].nodes_us = replica->nodes_us;
}

static void nodes_of_others_stay_as_they_are(struct bridge_scene *scene,
                                             const struct slurm_store_change *change)
{
    const struct slurm_store_node *node = change->node;
    const struct slurm_node_note *was = bridge_note_of_slurm_node(scene, node->name);
    bool was_theirs = was && was->is_out && !str_starts(str_of(was->reason), STR(BRIDGE_REASON));
    bool is_out = node->is_drained || node->is_down;

    if (!was || change->event == SLURM_NODE_ADDED)
        return;
    if (bridge_slurm_node_is_foreign(was->name))
        world_break(scene->world, "Slurm node %s of others is touched", was->name);
    if (scene->is_removed)
        return;
    if (change->event == SLURM_NODE_CHANGED && was_theirs && could_be_known(scene, was->out_us) &&
        (!is_out || strcmp(was->reason, node->reason) != 0))
        world_break(scene->world, "others' drain of Slurm node %s (%s) is changed", was->name,
                    was->reason);
    if (change->event == SLURM_NODE_REMOVED)
        a_slurm_node_goes_only_with_its_kubernetes_node(scene, node);
}

static void jobs_of_others_are_left_alone(struct bridge_scene *scene, const struct job_note *job)
{
    if (!job->unit[0] && !has_a_dead_jobs_id(scene, job))
        world_break(scene->world, "job %" PRId64 " of others is changed", job->id);
}

/* Its comment names its pods. */
static void a_job_is_for_pods_of_one_namespace(struct bridge_scene *scene,
                                               const struct slurm_store_job *job,
                                               const struct job_note *note)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct json *pod;
    struct json_iter iter;
    size_t length = strcspn(note->unit, "/") + 1;

    (void)json_parse(str_of(job->admin_comment), 1 << 16, &doc, NULL);
    iter = json_iter(json_get(json_root(doc), "pods"));
    while (json_next_item(&iter, &pod))
        if (!str_starts(json_str(pod), str_sub(str_of(note->unit), 0, length)))
            world_break(scene->world, "job %" PRId64 " of %s is for pod %s", job->id, note->unit,
                        json_str(pod).at);
}

void bridge_promises_on_slurm(void *context, const struct slurm_store_change *change)
{
    struct bridge_scene *scene = context;
    bool by_us = strcmp(change->user, "slurm") == 0 && !scene->people_act;

    if (change->node) {
        if (by_us && !scene->is_starting)
            nodes_of_others_stay_as_they_are(scene, change);
        bridge_note_slurm_node(scene, change);
        return;
    }
    bridge_note_job(scene, change);
    if (change->event == SLURM_JOB_TAKEN && bridge_note_of_job(scene, change->job)->unit[0])
        a_job_is_for_pods_of_one_namespace(scene, change->job,
                                           bridge_note_of_job(scene, change->job));
    if (!by_us || change->event != SLURM_JOB_CHANGED)
        return;

    const struct job_note *job = bridge_note_of_job(scene, change->job);

    jobs_of_others_are_left_alone(scene, job);
    /* One that was never allocated was refused. */
    if (change->job->has_ended && !scene->is_removed &&
        (strcmp(change->job->state, "CANCELLED") == 0 || change->job->nodes[0])) {
        a_job_is_cancelled_only_when_its_pods_are_over(scene, job);
        a_job_ends_as_its_pod_did(scene, change->job, job);
    }
}

/* ---- 7: only the leader acts ---- */

void bridge_promises_on_send(struct bridge_scene *scene, const char *user, const char *method,
                             const char *path, struct str body)
{
    struct world *world = scene->world;
    const struct json *lease =
        api_store_find(world->store, "leases", SCENE_LEASE_NS, SCENE_SCHEDULER);
    const struct bridge_replica *replica = bridge_replica_named(scene, user);

    /* Events may come later: they tell what their sender did while it led. */
    if (strcmp(method, "GET") == 0 || strstr(path, "/leases") || strstr(path, "/events"))
        return;
    scene->sent++;
    scene->sent_us = loop_now_us(world->loop);
    if (replica && strncmp(path, "/slurm/", 7) == 0 && strstr(path, "/node"))
        note_node_write(scene, replica);
    bridge_note_binding(scene, user, path);
    if (strcmp(method, "DELETE") == 0 && strncmp(path, "/slurm/", 7) == 0)
        bridge_note_cancel(scene, body);
    if (strncmp(path, "/agent/", 7) == 0)
        bridge_note_complete(scene, path);
    if (!replica || !replica->bridge || !bridge_is_leader(replica->bridge))
        world_break(world, "%s sends %s %s and knows that it may not", user, method, path);
    if (!str_is(json_str(json_at(lease, "spec", "holderIdentity")), user))
        world_break(world, "%s sends %s %s without holding the lease", user, method, path);
}

static void there_is_one_leader(struct bridge_scene *scene)
{
    const struct bridge_replica *leader = NULL;
    unsigned leaders = 0;

    for (unsigned i = 0; i < BRIDGE_REPLICAS; i++)
        if (scene->replicas[i].bridge && bridge_is_leader(scene->replicas[i].bridge)) {
            leader = &scene->replicas[i];
            leaders++;
        }
    if (leaders > 1)
        world_break(scene->world, "%u leaders at once", leaders);
    if (leader && leader != scene->leader)
        scene->leading_us = loop_now_us(scene->world->loop);
    scene->leader = leader;
}

void bridge_promises_after_step(struct bridge_scene *scene)
{
    there_is_one_leader(scene);
    if (scene->doubled > 0)
        two_jobs_of_a_unit_do_not_last(scene);
}
