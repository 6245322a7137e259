/* nodeset.c - a NodeSet: workers of a Slurm cluster as pods.
 *
 * Reads   the NodeSet, its Controller, its pods, their Nodes, and what Slurm says of their nodes.
 * Returns actions; does no I/O.
 * Holds   a worker is deleted only after Slurm said, to a question asked for it, that no job runs
 *         on it and none can start; what Slurm does not answer delays nothing of Kubernetes. */
#include "operator/nodeset.h"

#include "operator/names.h"
#include "operator/nodeset_mounted.h"
#include "operator/slurm_actions.h"
#include "operator/slurm_conf.h"
#include "operator/slurm_keys.h"
#include "operator/worker_conf.h"

static const int64_t look_again_us = 2000000;

/* ---- what both plans read ---- */

static void read_revision(struct nodeset *nodeset)
{
    const struct sync *sync = &nodeset->sync;
    const char *mounted;

    if (nodeset_mounted_hash(sync->world, sync->plan->arena, sync->object, &mounted,
                             &nodeset->revision_err) == 0)
        (void)nodeset_revision_choose(sync->world->revisions, sync->world->pods_by_owner,
                                      sync->plan->arena, sync->object, mounted, &nodeset->revision,
                                      &nodeset->revision_err);
}

/* What replaces a worker, and nothing else does: a change of a field with SPEC_ROLLS or of a file
 * that is read with reload-on-change (both are in the revision), another slurm.key, and a record of
 * Slurm that does not fit the pod any more. */
static bool is_current(const struct nodeset *nodeset, const struct worker *worker)
{
    const struct kube_object *pod = &worker->pod->object;
    struct str revision = kube_pairs_get(&pod->labels, LABEL_REVISION, NULL);
    struct str keys = kube_pairs_get(&pod->annotations, ANNOTATION_SLURM_KEYS, NULL);

    if (nodeset->revision_err.class == 0 &&
        !nodeset_revision_is_current(&nodeset->revision, revision))
        return false;
    if (nodeset->controller &&
        !str_eq(keys, slurm_keys_mark(nodeset->sync.world, nodeset->controller)))
        return false;
    return !nodeset_record_is_stale(nodeset, worker);
}

static void read_workers(struct nodeset *nodeset)
{
    const struct operator_world *world = nodeset->sync.world;
    const struct kube_object *object = nodeset->sync.object, *pod;
    struct str uid = str_of(object->uid);
    size_t max = kube_cache_count_by(world->pods, world->pods_by_owner, uid);
    struct kube_index_walk walk = kube_cache_by(world->pods, world->pods_by_owner, uid);
    int64_t min_ready_us = spec_number(nodeset->sync.object, "minReadySeconds") * 1000000;

    nodeset->workers =
        arena_alloc_array(nodeset->sync.plan->arena, max + 1, sizeof(*nodeset->workers));
    while (nodeset->count < max && (pod = kube_index_next(&walk))) {
        struct worker *worker = &nodeset->workers[nodeset->count++];

        *worker = worker_read(world, nodeset->sync.plan->arena, nodeset->facts, object, pod,
                              min_ready_us);
        if (worker->is_healthy && !worker->is_available) /* no change tells that it is */
            plan_look_again(nodeset->sync.plan,
                            worker->pod->ready_since_us + min_ready_us - world->wall_us);
        worker->is_current = is_current(nodeset, worker);
    }
}

static void read_template(struct nodeset *nodeset)
{
    const struct sync *sync = &nodeset->sync;
    struct worker_input input = { .world = sync->world,
                                  .arena = sync->plan->arena,
                                  .nodeset = sync->object,
                                  .controller = nodeset->controller,
                                  .revision = nodeset->revision.hash };

    if (!nodeset->controller)
        (void)err_set(&nodeset->template_err, ERR_NOT_FOUND, "Controller %s does not exist",
                      json_str(json_at(sync->spec, "controllerRef", "name")).at);
    else if (nodeset->revision_err.class != 0)
        nodeset->template_err = nodeset->revision_err;
    else if (worker_template(&input, &nodeset->template, &nodeset->template_err) == 0 &&
             (nodeset->is_daemonset || spec_flag(sync->object, "pinToNode")))
        (void)node_fit_new(sync->plan->arena, json_get(json_root(nodeset->template), "spec"),
                           &nodeset->fit, &nodeset->template_err);
}

bool nodeset_fits(const struct nodeset *nodeset, const struct kube_object *node)
{
    return !nodeset->fit || node_fit(nodeset->fit, kube_node_of(node)).may_return;
}

static void nodeset_read(struct nodeset *nodeset, const struct operator_world *world,
                         const struct kube_object *object, struct plan *plan,
                         struct json_build *build)
{
    *nodeset = (struct nodeset){ .sync = { .world = world,
                                           .object = object,
                                           .spec = operator_spec(object),
                                           .plan = plan,
                                           .build = build } };
    nodeset->controller = operator_world_ref(world->controllers, object, "controllerRef");
    if (nodeset->controller)
        nodeset->facts = operator_world_slurm(world, nodeset->controller);
    nodeset->is_daemonset = nodeset_is_daemonset(object);
    nodeset->replicas = spec_number(nodeset->sync.object, "replicas");
    if (json_is_object(nodeset->sync.spec)) {
        read_revision(nodeset);
        read_template(nodeset);
    }
    read_workers(nodeset);
    nodeset_choose(nodeset);
}

const char *nodeset_slurm_trouble(const struct nodeset *nodeset)
{
    const struct slurm_facts *facts = nodeset->facts;
    struct arena *arena = nodeset->sync.plan->arena;

    if (!nodeset->controller)
        return "its Controller does not exist";
    if (!facts || (facts->has_restapi && !facts->is_known))
        return "Slurm was not asked yet";
    if (!facts->has_restapi)
        return arena_printf(arena, "no RestApi refers to Controller %s", nodeset->controller->name);
    if (!facts->is_reachable)
        return arena_printf(arena, "Slurm is not reachable: %s", facts->reason);
    if (!facts->nodes || !slurm_cache_is_synced(facts->nodes))
        return "Slurm's nodes are not read yet";
    if (facts->is_suspicious)
        return "slurmctld may have been restarted, and its nodes are read again";
    return NULL;
}

/* What Slurm says becomes fresh again without a change that would wake the plan: it said the same
 * as before, or a write of ours is seen. */
static void look_at_unread(const struct nodeset *nodeset)
{
    for (size_t i = 0; nodeset->facts && nodeset->facts->has_restapi && i < nodeset->count; i++)
        if (worker_is_live(&nodeset->workers[i]) && nodeset->workers[i].slurm_name[0] &&
            nodeset->workers[i].knowledge == SLURM_UNREAD) {
            plan_look_again(nodeset->sync.plan, look_again_us);
            return;
        }
}

/* ---- what Kubernetes does ---- */

static void put_finalizer(struct nodeset *nodeset)
{
    const struct kube_object *object = nodeset->sync.object;
    struct json_build *build = nodeset->sync.build;
    struct json_mut *patch = json_new_object(build);
    struct json_mut *list = json_new_array(build);

    for (unsigned i = 0; i < object->finalizer_count; i++)
        json_push_str(build, list, object->finalizers[i]);
    json_push_str(build, list, STR(FINALIZER_DRAIN));
    json_put_at(build, patch, list, "metadata", "finalizers");
    (void)plan_merge_patch(nodeset->sync.plan, nodeset->sync.world->nodesets,
                           object->kind->resource, object->ns, object->name, NULL, object->version,
                           patch);
}

/* "workers: 2 serving, 1 draining"; nothing when all serve. */
static void tell_states(const struct nodeset *nodeset)
{
    size_t counts[WORKER_STATES] = { 0 };
    auto_buf struct buf text = { .max = 400 };

    for (size_t i = 0; i < nodeset->count; i++)
        counts[nodeset->workers[i].state]++;
    counts[WORKER_WANTED] = nodeset->create_count;
    if (counts[WORKER_SERVING] == nodeset->count && nodeset->create_count == 0)
        return;
    for (int state = 0; state < WORKER_STATES; state++)
        if (counts[state] > 0)
            buf_printf(&text, "%s%zu %s", text.len > 0 ? ", " : "", counts[state],
                       worker_state_name((enum worker_state)state));
    plan_wait(nodeset->sync.plan, "workers: %s", buf_text(&text));
}

static int check_extra_conf(struct sync *sync, struct err *err)
{
    struct err why = { .class = 0 };

    if (worker_conf_check(json_str(json_get(sync->spec, "extraConf")), &why) == 0)
        return 0;
    return err_set(err, (enum err_class)why.class, "%s; workers register without this item",
                   why.text);
}

/* All workers that the NodeSets of this cluster want. */
static int64_t wanted_by_all(const struct nodeset *nodeset)
{
    const struct operator_world *world = nodeset->sync.world;
    const struct kube_object **all;
    int64_t wanted = 0;
    size_t count;

    all = nodesets_of(world, nodeset->sync.plan->arena, nodeset->controller, &count);
    for (size_t i = 0; i < count; i++)
        wanted += nodeset_is_daemonset(all[i])
                      ? json_i64_or(json_at(operator_tree(all[i]), "status", "desired"), 0)
                      : spec_number(all[i], "replicas");
    return wanted;
}

/* Slurm refuses a node for which its tables have no room, and tells only slurmd. */
static int check_node_count(struct sync *sync, struct err *err)
{
    const struct nodeset *nodeset = nodeset_of(sync);
    int64_t max, wanted, unknown = 0;

    if (!nodeset->controller || spec_flag(nodeset->controller, "external"))
        return 0;
    max = slurm_conf_max_nodes(nodeset->controller);
    wanted = wanted_by_all(nodeset);
    if (wanted > max)
        return err_set(err, ERR_INVALID,
                       "%lld workers are wanted, and slurmctld takes %lld nodes: raise "
                       "MaxNodeCount in extraConf of Controller %s",
                       (long long)wanted, (long long)max, nodeset->controller->name);
    for (size_t i = 0; i < nodeset->count; i++)
        unknown +=
            worker_is_live(&nodeset->workers[i]) && nodeset->workers[i].knowledge == SLURM_ABSENT;
    if (unknown > 0 && (int64_t)slurm_cache_count(nodeset->facts->nodes) >= max)
        return err_set(err, ERR_INVALID,
                       "%lld workers cannot register: slurmctld has %lld nodes, which is all that "
                       "MaxNodeCount lets it have; delete records of nodes that are gone",
                       (long long)unknown, (long long)max);
    return 0;
}

void nodeset_plan(const struct operator_world *world, const struct kube_object *object,
                  struct plan *plan)
{
    static const struct sync_step steps[] = {
        { "Extra Conf", check_extra_conf },        { "Node Count", check_node_count },
        { "Worker Service", nodeset_plan_shared }, { "SSH Config", nodeset_plan_ssh },
        { "Revision", nodeset_plan_revision },     { "Failed Pods", nodeset_plan_failed },
        { "Owned Pods", nodeset_plan_owned },      { "Pods", nodeset_plan_pods },
        { "Claims", nodeset_plan_claims },         { "Observed", nodeset_plan_observed },
    };
    /* One that is being deleted gets nothing new, and is still observed. */
    static const struct sync_step last_steps[] = {
        { "Failed Pods", nodeset_plan_failed },
        { "Observed", nodeset_plan_observed },
    };
    auto_json_build struct json_build *build = json_build_new();
    bool is_deleted = object->deleted_us != 0;
    struct nodeset nodeset;

    nodeset_read(&nodeset, world, object, plan, build);
    if (is_deleted) {
        sync_run(&nodeset.sync, last_steps, sizeof(last_steps) / sizeof(last_steps[0]));
        nodeset_plan_status(&nodeset);
    } else if (!kube_object_has_finalizer(object, FINALIZER_DRAIN)) {
        put_finalizer(&nodeset);
    } else {
        sync_run(&nodeset.sync, steps, sizeof(steps) / sizeof(steps[0]));
        nodeset_plan_status(&nodeset);
        nodeset_create(&nodeset);
    }
    tell_states(&nodeset);
    look_at_unread(&nodeset);
    json_doc_free(nodeset.template);
}

/* ---- what needs Slurm ---- */

void nodeset_slurm_plan(const struct operator_world *world, const struct kube_object *object,
                        struct plan *plan)
{
    auto_json_build struct json_build *build = json_build_new();
    struct nodeset nodeset;

    nodeset_read(&nodeset, world, object, plan, build);
    nodeset_plan_marks(&nodeset);
    nodeset_plan_confirms(&nodeset);
    plan_next_stage(plan);
    nodeset_plan_drains(&nodeset);
    nodeset_plan_deletions(&nodeset);
    plan_next_stage(plan);
    nodeset_plan_undrains(&nodeset);
    nodeset_plan_records(&nodeset);
    nodeset_plan_prune(&nodeset);
    nodeset_plan_reservation(&nodeset);
    if (object->deleted_us != 0)
        nodeset_plan_end(&nodeset);
    plan_next_stage(plan);
    nodeset_plan_record_marks(&nodeset);
    look_at_unread(&nodeset);
    json_doc_free(nodeset.template);
}
