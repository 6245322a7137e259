/* sim_bridge_settled.c - what must be true when the world has been calm for long enough: every pod
 * that fits has its place and exactly one job, every job has its pod, Slurm's nodes are those of
 * Kubernetes, and then nothing is written any more. */
#include "sim_bridge.h"

#include <inttypes.h>

enum { QUIET_WRITES = 0 };

/* ---- pods ---- */

struct look {
    struct bridge_scene *scene;
    unsigned live_jobs; /* of the unit at hand */
    struct slurm_store_job job;
    const struct pod_note *pod;
};

static void take_job(void *context, const struct slurm_store_job *job)
{
    struct look *look = context;

    if (job->has_ended || strcmp(bridge_note_of_job(look->scene, job)->unit, look->pod->key) != 0)
        return;
    look->live_jobs++;
    look->job = *job;
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

static void a_waiting_pod_says_why(struct look *look, const struct json *pod)
{
    struct world *world = look->scene->world;
    const char *name = look->pod->name;

    if (annotation(pod, "timelimit")[0]) {
        if (look->live_jobs > 0 || !says(pod, "Invalid"))
            world_break(world, "pod %s has a bad annotation, and does not say so", name);
    } else if (is_impossible(pod)) { /* no node has it, Slurm refuses it, or never starts it */
        if (look->live_jobs > 1 ||
            (!says(pod, look->live_jobs ? NULL : "Refused") && !says(pod, "NoNodeFits")))
            world_break(world, "pod %s asks for too much, and does not say so", name);
    } else if (look->live_jobs != 1) {
        world_break(world, "pod %s waits with %u jobs", name, look->live_jobs);
    } else if (!says(pod, NULL)) {
        world_break(world, "pod %s waits, and does not say why", name);
    } else if (look->scene->config.shared && look->job.priority > 0) {
        world_break(world, "pod %s has no place: job %" PRId64 " is %s (%s)", name, look->job.id,
                    look->job.state, look->job.reason);
    }
}

/* slurmctld forgot the job. The node was given to others since, and its new job waits for it; or
 * Slurm does not have the node any more. */
static bool waits_to_cover(const struct look *look, const struct json *pod, const char *node)
{
    struct slurm_store_node there;
    bool waits = look->live_jobs == 1 && strcmp(look->job.state, "PENDING") == 0 &&
                 strcmp(look->job.required_nodes, node) == 0;

    if (!says(pod, "NotCovered"))
        return false;
    if (!slurm_store_find_node(look->scene->world->slurm, node, &there))
        return waits || look->live_jobs == 0;
    return waits && there.jobs > 0;
}

static void a_bound_pod_has_its_job(struct look *look, const struct json *pod, const char *node)
{
    struct world *world = look->scene->world;
    const char *name = look->pod->name;

    if (look->live_jobs <= 1 && waits_to_cover(look, pod, node))
        return;
    if (look->live_jobs != 1)
        world_break(world, "pod %s is bound and has %u jobs", name, look->live_jobs);
    else if (strcmp(look->job.state, "RUNNING") != 0 || strcmp(look->job.nodes, node) != 0)
        world_break(world, "pod %s is on %s, and its job %" PRId64 " is %s on %s", name, node,
                    look->job.id, look->job.state, look->job.nodes);
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

static void check_pod(void *context, const struct json *pod)
{
    struct bridge_scene *scene = context;
    struct look look = { .scene = scene, .pod = bridge_note_of_pod(scene, pod) };
    const char *node = json_str(json_at(pod, "spec", "nodeName")).at;
    struct world *world = scene->world;

    slurm_store_visit_jobs(world->slurm, take_job, &look);
    if (!str_is(json_str(json_at(pod, "spec", "schedulerName")), SCENE_SCHEDULER)) {
        if (look.live_jobs > 0 || has_our_finalizer(pod))
            world_break(world, "pod %s of another scheduler has a job", look.pod->name);
    } else if (!bridge_pod_is_live(pod)) {
        if (has_our_finalizer(pod))
            world_break(world, "pod %s is over and keeps our finalizer", look.pod->name);
        if (look.live_jobs > 0)
            world_break(world, "pod %s is over and has %u jobs", look.pod->name, look.live_jobs);
    } else if (node[0]) {
        a_bound_pod_has_its_job(&look, pod, node);
    } else if (json_len(json_at(pod, "spec", "schedulingGates")) > 0) {
        if (look.live_jobs > 0)
            world_break(world, "pod %s is gated and has %u jobs", look.pod->name, look.live_jobs);
    } else {
        a_waiting_pod_says_why(&look, pod);
    }
}

static void a_job_has_its_pod(void *context, const struct slurm_store_job *job)
{
    struct bridge_scene *scene = context;
    const char *unit = bridge_note_of_job(scene, job)->unit;
    const struct pod_note *pod = map_get(&scene->pods, str_of(unit));
    const struct json *found;

    if (job->has_ended || !unit[0])
        return;
    found = pod ? api_store_find(scene->world->store, "pods", SCENE_NS, pod->name) : NULL;
    if (!found || !str_is(json_str(json_at(found, "metadata", "uid")), strchr(unit, '/') + 1))
        world_break(scene->world, "job %" PRId64 " lives, and its pod %s is gone", job->id,
                    pod ? pod->name : unit);
}

/* ---- nodes ---- */

static void a_labelled_node_is_in_slurm(void *context, const struct json *node)
{
    struct bridge_scene *scene = context;
    const char *name = json_str(json_at(node, "metadata", "name")).at;
    struct world *world = scene->world;
    struct slurm_store_node there;

    if (!bridge_node_is_labelled(node))
        return;
    if (!slurm_store_find_node(world->slurm, name, &there))
        world_break(world, "Slurm has no node %s", name);
    else if (!there.external || !strstr(there.extra, scene->cluster))
        world_break(world, "Slurm node %s does not bear our mark: %s", name, there.extra);
    else if (there.jobs > 0 && there.cpus != SCENE_CPUS)
        return; /* to be made anew when its work is over */
    else if (there.is_drained || there.is_down)
        world_break(world, "Slurm node %s is still out: %s", name, there.reason);
    else if (there.cpus != SCENE_CPUS)
        world_break(world, "Slurm node %s has %u CPUs", name, there.cpus);
}

static void a_slurm_node_of_ours_is_labelled(void *context, const struct slurm_store_node *there)
{
    struct bridge_scene *scene = context;
    const struct json *node = api_store_find(scene->world->store, "nodes", "", there->name);

    if (there->external && strstr(there->extra, scene->cluster) && there->jobs == 0 &&
        !bridge_node_is_labelled(node))
        world_break(scene->world, "Slurm still has node %s", there->name);
}

/* ---- all of it ---- */

void bridge_promises_when_settled(struct bridge_scene *scene)
{
    struct world *world = scene->world;

    api_store_visit(world->store, "nodes", a_labelled_node_is_in_slurm, scene);
    slurm_store_visit_nodes(world->slurm, a_slurm_node_of_ours_is_labelled, scene);
    api_store_visit(world->store, "pods", check_pod, scene);
    slurm_store_visit_jobs(world->slurm, a_job_has_its_pod, scene);
    if (scene->doubled > 0)
        world_break(world, "%u units have two jobs", scene->doubled);
}

static void nothing_is_written_without_need(struct bridge_scene *scene)
{
    uint64_t writes = scene->sent - scene->settled_sent;

    if (writes > QUIET_WRITES)
        world_break(scene->world, "%" PRIu64 " writes when all was right", writes);
}

void bridge_promises_at_the_end(struct bridge_scene *scene)
{
    nothing_is_written_without_need(scene);
    bridge_promises_when_settled(scene);
}
