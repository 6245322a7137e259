/* sim_bridge_settled.c - what must be true when the world has been calm for long enough: every pod
 * that fits has its place and exactly one job, every job has its pod, Slurm's nodes are those of
 * Kubernetes, and then nothing is written any more. */
#include "sim_bridge.h"

#include <inttypes.h>

enum { QUIET_WRITES = 0 };

/* ---- pods ---- */

/* The live jobs of one unit. */
struct jobs {
    unsigned count;
    char state[16], nodes[64], required[64], reason[32];
    int64_t id;
    bool exclusive;
};

struct look {
    struct bridge_scene *scene;
    const struct pod_note *pod;
    struct str uid;         /* of the object that asked for the group's jobs that count */
    struct jobs own, group; /* of the pod itself, of its group */
};

static void take(struct jobs *jobs, const struct slurm_store_job *job)
{
    jobs->count++;
    jobs->id = job->id;
    jobs->exclusive = job->exclusive;
    (void)snprintf(jobs->state, sizeof(jobs->state), "%s", job->state);
    (void)snprintf(jobs->nodes, sizeof(jobs->nodes), "%s", job->nodes);
    (void)snprintf(jobs->required, sizeof(jobs->required), "%s", job->required_nodes);
    (void)snprintf(jobs->reason, sizeof(jobs->reason), "%s", job->reason);
}

static void take_job(void *context, const struct slurm_store_job *job)
{
    struct look *look = context;
    const char *unit = bridge_note_of_job(look->scene, job)->unit;

    if (job->has_ended || !unit[0])
        return;
    if (strcmp(unit, look->pod->key) == 0)
        take(&look->own, job);
    else if (strcmp(unit, look->pod->group) == 0 &&
             str_is(look->uid, bridge_note_of_job(look->scene, job)->uid))
        take(&look->group, job);
}

static const struct json *condition_of(const struct json *object, const char *type)
{
    struct json_iter iter = json_iter(json_at(object, "status", "conditions"));
    const struct json *condition;

    while (json_next_item(&iter, &condition))
        if (str_is(json_str(json_get(condition, "type")), type))
            return condition;
    return NULL;
}

static bool says(const struct json *pod, const char *reason)
{
    const struct json *condition = condition_of(pod, BRIDGE_PENDING_CONDITION);

    return str_is(json_str(json_get(condition, "status")), "True") &&
           (!reason || str_is(json_str(json_get(condition, "reason")), reason)) &&
           json_str(json_get(condition, "message")).len > 0;
}

static const char *annotation(const struct json *pod, const char *suffix)
{
    char name[100];

    (void)snprintf(name, sizeof(name), BRIDGE_ANNOTATION_PREFIX "%s", suffix);
    return json_str(json_at(pod, "metadata", "annotations", name)).at;
}

static bool is_impossible(const struct json *pod)
{
    const struct json *container = json_item(json_at(pod, "spec", "containers"), 0);

    return str_is(json_str(json_at(container, "resources", "requests", "cpu")), "1000") ||
           annotation(pod, "partition")[0];
}

/* Selectors, ports: no node will do, or too few for all of a group. */
static bool says_that_none_fits(const struct json *pod)
{
    return says(pod, "NoNodeFits") || says(pod, "Refused");
}

static void one_that_waits_alone_says_why(struct look *look, const struct json *pod)
{
    struct world *world = look->scene->world;
    const char *name = look->pod->name;
    unsigned jobs = look->own.count;

    if (annotation(pod, "timelimit")[0] || bridge_pod_wants(pod, "odd")) {
        if (jobs > 0 || !says(pod, "Invalid"))
            world_break(world, "pod %s is wrong, and does not say so", name);
    } else if (is_impossible(pod)) { /* no node has it, Slurm refuses it, or never starts it */
        if (jobs > 1 || !(jobs ? says(pod, NULL) : says_that_none_fits(pod)))
            world_break(world, "pod %s asks for too much, and does not say so", name);
    } else if (jobs == 0 && json_exists(json_at(pod, "spec", "resourceClaims"))) {
        if (!says(pod, NULL)) /* another pod has the claim, or no node the device */
            world_break(world, "pod %s has no job, and does not say why", name);
    } else if (jobs == 0 && json_exists(json_at(pod, "spec", "nodeSelector"))) {
        if (!says_that_none_fits(pod))
            world_break(world, "pod %s has no job, and does not say why", name);
    } else if (jobs == 0 && (bridge_pod_has_port(pod) || bridge_pod_wants(pod, NULL))) {
        if (!says_that_none_fits(pod))
            world_break(world, "pod %s has no job, and does not say why", name);
    } else if (jobs == 0 && look->scene->weather->slurm_faults.internal && says(pod, "Refused")) {
        return; /* by an error that tells nothing: it is asked again in ten minutes */
    } else if (jobs != 1) {
        world_break(world, "pod %s waits with %u jobs", name, jobs);
    } else if (strcmp(look->own.state, "PENDING") != 0) {
        world_break(world, "pod %s has no place, and its job %" PRId64 " is %s on %s", name,
                    look->own.id, look->own.state, look->own.nodes);
    } else if (!says(pod, NULL)) {
        world_break(world, "pod %s waits, and does not say why", name);
    }
}

struct group_look {
    struct bridge_scene *scene;
    const char *group;
    int64_t waiting, bound, needed;
};

static void take_member(void *context, const struct json *pod)
{
    struct group_look *look = context;
    const struct pod_note *note = bridge_note_of_pod(look->scene, pod);

    if (strcmp(note->group, look->group) != 0 ||
        bridge_note_of_unit(look->scene, note->key)->live > 0)
        return;
    look->waiting += bridge_pod_waits(pod);
    look->bound += bridge_pod_is_live(pod) && note->node[0] && strcmp(note->unit, note->group) == 0;
    look->needed = bridge_group_needs(look->scene, pod);
}

static void a_member_waits_with_its_group(struct look *look, const struct json *pod)
{
    struct world *world = look->scene->world;
    struct group_look group = { .scene = look->scene, .group = look->pod->group };
    const char *name = look->pod->name;
    unsigned jobs = look->group.count;

    api_store_visit(world->store, "pods", take_member, &group);
    if (group.bound > 0 && strcmp(look->group.state, "RUNNING") == 0 && !says_that_none_fits(pod))
        world_break(world, "pod %s waits, and others of %s are bound", name, group.group);
    else if (group.bound > 0)
        return; /* they wait to be covered, or it says why it cannot be with them */
    else if (group.needed == 0 || group.waiting < group.needed) {
        if (jobs > 0 || !says(pod, group.needed ? "GroupIncomplete" : "OwnerUnknown"))
            world_break(world,
                        "pod %s of %s, which is not complete (%" PRId64 " of %" PRId64
                        "), has %u jobs or does not say so",
                        name, group.group, group.waiting, group.needed, jobs);
    } else if (jobs > 1 || (jobs == 0 && !says_that_none_fits(pod))) {
        world_break(world, "pod %s of %s, which is complete, has %u jobs", name, group.group, jobs);
    } else if (jobs == 1 && strcmp(look->group.state, "PENDING") != 0) {
        world_break(world, "pod %s of %s has no place, and job %" PRId64 " is %s on %s", name,
                    group.group, look->group.id, look->group.state, look->group.nodes);
    } else if (!says(pod, NULL)) {
        world_break(world, "pod %s of %s waits, and does not say why", name, group.group);
    }
}

static void a_waiting_pod_says_why(struct look *look, const struct json *pod)
{
    if (look->pod->group[0] && look->own.count == 0)
        a_member_waits_with_its_group(look, pod);
    else
        one_that_waits_alone_says_why(look, pod);
}

/* ---- pods that are bound ---- */

struct seats {
    struct bridge_scene *scene;
    const char *unit, *node;
    int64_t cpus;
};

/* By whose job it is held: its own, where it has one. */
static const char *unit_under(struct bridge_scene *scene, const struct pod_note *pod)
{
    return bridge_note_of_unit(scene, pod->key)->live > 0 ? pod->key : pod->unit;
}

static void take_seat(void *context, const struct json *pod)
{
    struct seats *seats = context;
    const struct pod_note *note = bridge_note_of_pod(seats->scene, pod);

    if (strcmp(note->node, seats->node) == 0 && bridge_pod_may_run(pod) &&
        strcmp(unit_under(seats->scene, note), seats->unit) == 0)
        seats->cpus += bridge_pod_cpus(pod);
}

/* What the pods of a unit use on a node. */
static int64_t cpus_used(struct bridge_scene *scene, const char *unit, const char *node)
{
    struct seats seats = { .scene = scene, .unit = unit, .node = node };

    api_store_visit(scene->world->store, "pods", take_seat, &seats);
    return seats.cpus;
}

/* One of the nodes that it names is given to others, or out of service. */
static bool lacks_room(struct bridge_scene *scene, const char *unit, const struct jobs *jobs)
{
    for (unsigned i = 1; i <= scene->node_count; i++) {
        struct slurm_store_node node;
        char name[32];
        int64_t wanted;

        (void)snprintf(name, sizeof(name), "node-%u", i);
        if (!bridge_hosts_have(jobs->required, name))
            continue;
        if (!slurm_store_find_node(scene->world->slurm, name, &node))
            return true;
        wanted = jobs->exclusive ? node.cpus : cpus_used(scene, unit, name);
        if (node.is_drained || node.is_down || (int64_t)node.cpus - node.alloc_cpus < wanted)
            return true;
    }
    return false;
}

/* slurmctld forgot the job. The node was given to others since, and its new job waits for it; or
 * Slurm does not have the node any more. */
static bool waits_to_cover(const struct look *look, const struct json *pod, const char *node,
                           const struct jobs *jobs)
{
    struct bridge_scene *scene = look->scene;
    struct slurm_store_node there;

    if (!says(pod, "NotCovered"))
        return false;
    if (!slurm_store_find_node(scene->world->slurm, node, &there))
        return jobs->count <= 1;
    return jobs->count == 1 && strcmp(jobs->state, "PENDING") == 0 &&
           bridge_hosts_have(jobs->required, node) &&
           lacks_room(scene, unit_under(scene, look->pod), jobs);
}

/* One that was bound by a job of its own is never its group's again. */
static void a_bound_pod_has_its_job(struct look *look, const struct json *pod, const char *node)
{
    struct world *world = look->scene->world;
    const char *name = look->pod->name;
    bool is_alone = look->own.count > 0 || strcmp(look->pod->unit, look->pod->group) != 0;
    const struct jobs *jobs = is_alone ? &look->own : &look->group;
    int64_t used;

    if (jobs->count <= 1 && waits_to_cover(look, pod, node, jobs))
        return;
    used = cpus_used(look->scene, unit_under(look->scene, look->pod), node);
    if (jobs->count != 1)
        world_break(world, "pod %s is bound and has %u jobs", name, jobs->count);
    else if (strcmp(jobs->state, "RUNNING") != 0 || !bridge_hosts_have(jobs->nodes, node))
        world_break(world, "pod %s is on %s, and its job %" PRId64 " is %s on %s", name, node,
                    jobs->id, jobs->state, jobs->nodes);
    else if (used > slurm_store_cpus_on(world->slurm, jobs->id, node))
        world_break(world,
                    "pod %s is on %s, where job %" PRId64 " has %u CPUs and its pods use "
                    "%" PRId64,
                    name, node, jobs->id, slurm_store_cpus_on(world->slurm, jobs->id, node), used);
    else if (says(pod, NULL))
        world_break(world, "pod %s has its place and says that it waits", name);
}

static bool has_our_finalizer(const struct json *pod)
{
    struct json_iter iter = json_iter(json_at(pod, "metadata", "finalizers"));
    const struct json *finalizer;

    while (json_next_item(&iter, &finalizer))
        if (str_is(json_str(finalizer), BRIDGE_FINALIZER))
            return true;
    return false;
}

/* Of the object whose job the pod is bound by while that job lives, else of the one that is there.
 */
static struct str uid_that_counts(const struct bridge_scene *scene, const struct pod_note *note,
                                  const struct json *pod)
{
    const struct job_note *job = bridge_note_of_sluid(scene, note->job);

    return job && job->is_live ? str_of(job->uid) : bridge_group_uid(scene, pod);
}

static void check_pod(void *context, const struct json *pod)
{
    struct bridge_scene *scene = context;
    struct look look = { .scene = scene, .pod = bridge_note_of_pod(scene, pod) };
    const char *node = json_str(json_at(pod, "spec", "nodeName")).at;
    struct world *world = scene->world;

    look.uid = uid_that_counts(scene, look.pod, pod);
    slurm_store_visit_jobs(world->slurm, take_job, &look);
    if (!str_is(json_str(json_at(pod, "spec", "schedulerName")), SCENE_SCHEDULER)) {
        if (look.own.count > 0 || has_our_finalizer(pod))
            world_break(world, "pod %s of another scheduler has a job", look.pod->name);
    } else if (!bridge_pod_is_live(pod)) {
        if (has_our_finalizer(pod))
            world_break(world, "pod %s is over and keeps our finalizer", look.pod->name);
        if (look.own.count > 0)
            world_break(world, "pod %s is over and has %u jobs", look.pod->name, look.own.count);
    } else if (node[0]) {
        a_bound_pod_has_its_job(&look, pod, node);
    } else if (json_len(json_at(pod, "spec", "schedulingGates")) > 0) {
        if (look.own.count > 0)
            world_break(world, "pod %s is gated and has %u jobs", look.pod->name, look.own.count);
    } else {
        a_waiting_pod_says_why(&look, pod);
    }
}

struct search {
    struct bridge_scene *scene;
    const char *unit, *uid;
    bool found;
};

static void look_for_unit(void *context, const struct json *pod)
{
    struct search *search = context;
    const struct pod_note *note = bridge_note_of_pod(search->scene, pod);
    bool is_live = bridge_pod_is_live(pod) || bridge_pod_may_run(pod);

    search->found |= strcmp(note->key, search->unit) == 0 ||
                     (is_live && strcmp(note->group, search->unit) == 0 &&
                      str_is(uid_that_counts(search->scene, note, pod), search->uid));
}

static void a_job_has_its_pods(void *context, const struct slurm_store_job *job)
{
    struct bridge_scene *scene = context;
    struct search search = { .scene = scene,
                             .unit = bridge_note_of_job(scene, job)->unit,
                             .uid = bridge_note_of_job(scene, job)->uid };

    if (job->has_ended || !search.unit[0])
        return;
    api_store_visit(scene->world->store, "pods", look_for_unit, &search);
    if (!search.found)
        world_break(scene->world, "job %" PRId64 " lives, and %s is gone", job->id, search.unit);
}

/* ---- who could run does ---- */

struct room {
    struct bridge_scene *scene;
    const struct slurm_store_job *job; /* the first that waits */
    struct slurm_store_job first;
    const char *unit;
    int64_t pods, most_nodes; /* 0: as many as there are pods */
    int64_t cpus, devices;    /* of the largest */
    bool is_picky, wants_all;
};

static void find_first(void *context, const struct slurm_store_job *job)
{
    struct room *room = context;

    if (room->job || job->has_ended || strcmp(job->state, "PENDING") != 0 || job->priority == 0 ||
        !bridge_note_of_job(room->scene, job)->unit[0] || job->required_nodes[0])
        return;
    room->first = *job;
    room->job = &room->first;
    room->unit = bridge_note_of_job(room->scene, job)->unit;
}

static void take_wish(void *context, const struct json *pod)
{
    struct room *room = context;
    const struct pod_note *note = bridge_note_of_pod(room->scene, pod);
    bool is_own = strcmp(note->key, room->unit) == 0;

    if (!bridge_pod_waits(pod) || (!is_own && strcmp(note->group, room->unit) != 0))
        return;
    room->pods++;
    if (!is_own)
        room->most_nodes = bridge_group_most_nodes(room->scene, pod);
    if (bridge_pod_cpus(pod) > room->cpus)
        room->cpus = bridge_pod_cpus(pod);
    room->devices |= bridge_pod_wants(pod, NULL); /* one each */
    room->is_picky |= bridge_pod_has_port(pod) || is_impossible(pod) ||
                      json_exists(json_at(pod, "spec", "nodeSelector")) ||
                      json_exists(json_at(pod, "spec", "resourceClaims"));
}

struct claim {
    const char *node;
    bool found;
};

static void look_for_claim(void *context, const struct slurm_store_job *job)
{
    struct claim *claim = context;

    claim->found |= strcmp(job->state, "PENDING") == 0 && job->priority > 0 &&
                    bridge_hosts_have(job->required_nodes, claim->node);
}

/* A job that covers pods waits for the node: nobody else gets it. */
static bool is_claimed(const struct bridge_scene *scene, const char *node)
{
    struct claim claim = { .node = node };

    slurm_store_visit_jobs(scene->world->slurm, look_for_claim, &claim);
    return claim.found;
}

/* How many of its pods are on each node: the same on all, where they may have few. */
static int64_t share_of(const struct room *room)
{
    return room->most_nodes > 0 ? (room->pods + room->most_nodes - 1) / room->most_nodes : 1;
}

/* The job at the head of the queue is not one that Slurm could start if only it were asked for what
 * the pods want: a node for each, or for each even share of them. */
static void the_first_in_line_has_no_room(struct bridge_scene *scene)
{
    struct room room = { .scene = scene };
    unsigned free = 0;
    int64_t share;

    slurm_store_visit_jobs(scene->world->slurm, find_first, &room);
    if (!room.job || room.first.exclusive)
        return;
    api_store_visit(scene->world->store, "pods", take_wish, &room);
    share = share_of(&room);
    for (unsigned i = 1; i <= scene->node_count; i++) {
        struct slurm_store_node node;
        char name[32];

        (void)snprintf(name, sizeof(name), "node-%u", i);
        free += slurm_store_find_node(scene->world->slurm, name, &node) && !node.is_down &&
                !node.is_drained && node.external && !is_claimed(scene, name) &&
                (int64_t)node.cpus - node.alloc_cpus >= room.cpus * share &&
                node.free_devices >= room.devices * share;
    }
    if (room.pods > 0 && !room.is_picky && free * share >= room.pods)
        world_break(scene->world,
                    "%s has no place, though %u nodes have room: job %" PRId64 " (%s)", room.unit,
                    free, room.first.id, room.first.reason);
}

/* ---- nodes ---- */

static void a_node_of_another_cluster_says_so(struct bridge_scene *scene, const struct json *node)
{
    const struct json *condition = condition_of(node, BRIDGE_NODE_CONDITION);

    if (!str_is(json_str(json_get(condition, "reason")), "SlurmNodeTaken"))
        world_break(scene->world, "node %s does not say that Slurm's is another cluster's",
                    json_str(json_at(node, "metadata", "name")).at);
}

static void a_labelled_node_is_in_slurm(void *context, const struct json *node)
{
    struct bridge_scene *scene = context;
    const char *name = json_str(json_at(node, "metadata", "name")).at;
    struct world *world = scene->world;
    struct slurm_store_node there;

    if (!bridge_node_is_labelled(node))
        return;
    if (bridge_slurm_node_is_foreign(name))
        a_node_of_another_cluster_says_so(scene, node);
    else if (!slurm_store_find_node(world->slurm, name, &there))
        world_break(world, "Slurm has no node %s", name);
    else if (!there.external || !strstr(there.extra, scene->cluster))
        world_break(world, "Slurm node %s does not bear our mark: %s", name, there.extra);
    else if (there.jobs > 0 && there.cpus != SCENE_CPUS)
        return; /* to be made anew when its work is over */
    else if (there.is_drained || there.is_down)
        world_break(world, "Slurm node %s is still out: %s", name, there.reason);
    else if (there.cpus != SCENE_CPUS)
        world_break(world, "Slurm node %s has %u CPUs", name, there.cpus);
    else if (there.jobs == 0 && there.gres[0] &&
             !strstr(there.extra, "\"gpu:gpu.example.com=gpu-0,gpu-1\""))
        world_break(world, "Slurm node %s has other devices than its Kubernetes node: %s", name,
                    there.extra);
}

static void a_slurm_node_of_ours_is_labelled(void *context, const struct slurm_store_node *there)
{
    struct bridge_scene *scene = context;
    const struct json *node = api_store_find(scene->world->store, "nodes", "", there->name);

    if (!bridge_slurm_node_is_foreign(there->name) && there->jobs == 0 &&
        strstr(there->extra, scene->cluster) && !bridge_node_is_labelled(node))
        world_break(scene->world, "Slurm still has node %s", there->name);
}

static bool is_lent(const struct json *node)
{
    struct json_iter iter = json_iter(json_at(node, "spec", "taints"));
    const struct json *taint;

    while (json_next_item(&iter, &taint))
        if (str_is(json_str(json_get(taint, "key")), BRIDGE_TAINT) &&
            str_is(json_str(json_get(taint, "value")), SCENE_SCHEDULER))
            return true;
    return false;
}

struct names {
    const struct json *data;
    size_t lent;
    bool is_short;
};

static void look_for_name(void *context, const struct json *node)
{
    struct names *names = context;

    if (!is_lent(node))
        return;
    names->lent++;
    names->is_short |= !json_get(names->data, json_str(json_at(node, "metadata", "name")).at);
}

static void the_policy_knows_the_nodes_that_are_lent(struct bridge_scene *scene)
{
    struct api_store *store = scene->world->store;
    const struct json *map = api_store_find(store, "configmaps", SCENE_LEASE_NS, SCENE_LENT_NODES);
    struct names names = { .data = json_get(map, "data") };

    api_store_visit(store, "nodes", look_for_name, &names);
    if (names.is_short || json_len(names.data) != names.lent)
        world_break(scene->world, "the policy knows other nodes than the %zu that are lent",
                    names.lent);
}

/* ---- all of it ---- */

void bridge_promises_when_settled(struct bridge_scene *scene)
{
    struct world *world = scene->world;

    api_store_visit(world->store, "nodes", a_labelled_node_is_in_slurm, scene);
    the_policy_knows_the_nodes_that_are_lent(scene);
    slurm_store_visit_nodes(world->slurm, a_slurm_node_of_ours_is_labelled, scene);
    api_store_visit(world->store, "pods", check_pod, scene);
    slurm_store_visit_jobs(world->slurm, a_job_has_its_pods, scene);
    the_first_in_line_has_no_room(scene);
    if (scene->doubled > 0)
        world_break(world, "%u units have two jobs", scene->doubled);
}

static void nothing_is_written_without_need(struct bridge_scene *scene)
{
    uint64_t writes = scene->sent - scene->settled_sent;

    if (writes > QUIET_WRITES)
        world_break(scene->world, "%" PRIu64 " writes when all was right", writes);
}

void bridge_promises_when_quiet(struct bridge_scene *scene)
{
    nothing_is_written_without_need(scene);
    bridge_promises_when_settled(scene);
}

/* ---- when all is deleted ---- */

struct rest {
    struct bridge_scene *scene;
    char what[2 * SCENE_KEY]; /* the first thing that is left; "" */
};

static void take_pod(void *context, const struct json *pod)
{
    struct rest *rest = context;

    if (!rest->what[0] && str_is(json_str(json_at(pod, "spec", "schedulerName")), SCENE_SCHEDULER))
        (void)snprintf(rest->what, sizeof(rest->what), "pod %s was deleted, and is still there",
                       bridge_note_of_pod(rest->scene, pod)->name);
}

static void take_live_job(void *context, const struct slurm_store_job *job)
{
    struct rest *rest = context;

    if (!rest->what[0] && !job->has_ended && bridge_note_of_job(rest->scene, job)->unit[0])
        (void)snprintf(rest->what, sizeof(rest->what), "job %" PRId64 " of %s lives on", job->id,
                       bridge_note_of_job(rest->scene, job)->unit);
}

static struct rest find_rest(struct bridge_scene *scene)
{
    struct rest rest = { .scene = scene };

    api_store_visit(scene->world->store, "pods", take_pod, &rest);
    slurm_store_visit_jobs(scene->world->slurm, take_live_job, &rest);
    if (!rest.what[0] && bridge_devices_claims(scene) > 0)
        (void)snprintf(rest.what, sizeof(rest.what), "%u claims are left without their pods",
                       bridge_devices_claims(scene));
    return rest;
}

bool bridge_is_empty(struct bridge_scene *scene)
{
    return !find_rest(scene).what[0];
}

void bridge_promises_when_empty(struct bridge_scene *scene)
{
    struct rest rest = find_rest(scene);

    if (rest.what[0])
        world_break(scene->world, "%s", rest.what);
}
