/* ask.c - asks Slurm for a job, or says why not yet.
 *
 * Holds: what cannot be translated and what Slurm refused is told to the pod's owner in words,
 * once, and tried again only when something that matters has changed. */
#include "bridge/ask.h"

#include "bridge/act.h"
#include "bridge/bind.h"
#include "bridge/gate.h"
#include "bridge/tell.h"
#include "bridge/translate.h"
#include "codec/hostlist.h"

enum {
    SOON_US = 500000,
    A_MOMENT_US = 50000,
    LOOK_FOR_NODE_US = 1000000, /* it is being made again; pods that wait are held up meanwhile */
    LOOK_FOR_CHANGE_US = 15000000, /* of Slurm's nodes: of those a unit is not told */
};

static int describe(const struct bridge_world *world, const struct unit *unit, struct arena *arena,
                    struct job_ask *ret_ask, struct err *err)
{
    const struct translate_from from = { .config = world->config,
                                         .pods = &unit->pod,
                                         .pod_count = 1,
                                         .root = unit->root,
                                         .job = unit->owner };

    return translate(&from, arena, ret_ask, err);
}

/* Nodes that Slurm gave before and that still will not do. A name that Slurm does not know (any
 * more) would have the ask refused. */
static const char *excluded(const struct bridge_world *world, const struct unit *unit,
                            struct arena *arena)
{
    struct str names[MEMORY_MAX_MISFITS];
    auto_buf struct buf list;
    struct err err = { .class = 0 };
    unsigned given = unit->memory ? unit->memory->misfit_count : 0, count = 0;

    buf_init(&list, HOSTLIST_MAX_TEXT);
    for (unsigned i = 0; i < given; i++) {
        struct str name = str_of(unit->memory->misfits[i]);

        if (world_slurm_node(world, name) &&
            node_misfit(arena, world_node_by_slurm_name(world, name), name.at))
            names[count++] = name;
    }
    if (count == 0 || hostlist_fold(names, count, &list, &err) < 0)
        return "";
    return arena_strdup(arena, buf_text(&list));
}

static size_t count_hosts(struct arena *arena, const char *hosts)
{
    const struct hostlist *list;
    struct err err = { .class = 0 };

    return hostlist_parse(arena, str_of(hosts), HOSTLIST_MAX_NAMES, &list, &err) == 0
               ? (size_t)hostlist_count(list)
               : 0;
}

static bool same_hosts(struct arena *arena, const char *a, const char *b)
{
    const struct hostlist *list;
    struct hostlist_iter iter;
    struct err err = { .class = 0 };
    struct str name;

    if (count_hosts(arena, a) != count_hosts(arena, b) ||
        hostlist_parse(arena, str_of(a), HOSTLIST_MAX_NAMES, &list, &err) < 0)
        return false;
    iter = hostlist_iter(list);
    while (hostlist_next(&iter, &name))
        if (!hosts_have(arena, b, arena_strndup(arena, name.at, name.len)))
            return false;
    return true;
}

/* An empty list says nothing to Slurm, an empty text clears. */
void plan_exclude(const struct bridge_world *world, const struct unit *unit, struct plan *plan)
{
    const char *nodes = excluded(world, unit, plan->arena);
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *fields = json_new_object(build);

    if (same_hosts(plan->arena, nodes, unit->job->excluded_nodes))
        return;
    if (nodes[0])
        json_push_str(build, json_put_array(build, fields, "excluded_nodes"), str_of(nodes));
    else
        json_put_text(build, fields, "excluded_nodes", "");
    plan_slurm_update_job(plan, unit->job, fields);
}

static void tell_refused(const struct bridge_world *world, const struct unit *unit,
                         struct plan *plan, const char *why)
{
    if (tell_waiting(world, unit, plan, "Refused", "Slurm refused the job: %s", why))
        plan_event(plan, &unit->pod->object, KUBE_EVENT_WARNING, "FailedScheduling",
                   "Slurm refused the job: %s", why);
}

static void send(const struct unit *unit, struct plan *plan, const struct job_ask *job,
                 bool at_once)
{
    const struct kube_object *pod = &unit->pod->object;
    struct str name = str_of(arena_printf(plan->arena, "%s/%s", pod->ns, pod->name));

    plan_slurm_ask(plan, &(struct act_ask){ .key = unit->key,
                                            .attempt = unit->attempt + 1,
                                            .job = job,
                                            .pods = &name,
                                            .pod_count = 1,
                                            .at_once = at_once });
}

static int ask_in_its_way(const struct bridge_world *world, const struct unit *unit,
                          struct plan *plan, const struct job_ask *job, bool may_be_at_once)
{
    enum gate_way way = may_be_at_once ? gate_way(world, unit, job) : GATE_QUEUE;

    if (way == GATE_SOON) {
        plan_wait(plan, "jobs that were queued just now are about to start");
        plan_look_again(plan, A_MOMENT_US);
        return 0;
    }
    send(unit, plan, job, way == GATE_AT_ONCE);
    return 0;
}

static int ask_or_wait(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                       const struct job_ask *job, bool may_be_at_once)
{
    struct gate_view view = gate_look(world, unit, job_ask_hash(job), plan->arena);

    switch (view.gate) {
    case GATE_OPEN:
        return ask_in_its_way(world, unit, plan, job, may_be_at_once);
    case GATE_LATER:
        tell_waiting(world, unit, plan, "WaitingForSlurm", "%s", view.why);
        break;
    case GATE_REFUSED:
        tell_refused(world, unit, plan, view.why);
        plan_look_again(plan, LOOK_FOR_CHANGE_US);
        break;
    }
    if (view.again_us > 0)
        plan_look_again(plan, view.again_us);
    return 0;
}

int plan_ask(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
             struct err *err)
{
    struct job_ask job;
    struct err why = { .class = 0 };

    if (!unit->root) {
        tell_waiting(world, unit, plan, "OwnerUnknown", "%s has not been seen", unit->wanting);
        plan_look_again(plan, SOON_US);
        return 0;
    }
    if (describe(world, unit, plan->arena, &job, &why) < 0) {
        tell_waiting(world, unit, plan, "Invalid", "%s", why.text);
        return 0;
    }
    job.excluded_nodes = excluded(world, unit, plan->arena);
    return ask_or_wait(world, unit, plan, &job, true);
}

/* The pod is there and uses the node, so neither the size of the queue nor the annotations of an
 * owner that may be gone matter: whatever can be said of it is, on this node and no other. */
int plan_ask_again(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                   struct err *err)
{
    const struct kube_object *node = kube_cache_get(world->nodes, "", unit->pod->node_name);
    struct unit as_found = *unit;
    struct job_ask job;
    struct err why = { .class = 0 };

    if (!node) {
        plan_wait(plan, "its node %s is not known", unit->pod->node_name);
        plan_look_again(plan, LOOK_FOR_CHANGE_US);
        return 0;
    }
    if (!world_slurm_node(world, str_of(world_slurm_name(kube_node_of(node))))) {
        tell_waiting(world, unit, plan, "NotCovered", "it runs on %s, which Slurm does not have",
                     unit->pod->node_name);
        plan_look_again(plan, LOOK_FOR_NODE_US);
        return 0;
    }
    if (!as_found.root)
        as_found.root = &unit->pod->object;
    if (describe(world, &as_found, plan->arena, &job, &why) < 0) {
        tell_waiting(world, unit, plan, "Invalid", "%s", why.text);
        return 0;
    }
    job.required_nodes = world_slurm_name(kube_node_of(node));
    return ask_or_wait(world, unit, plan, &job, false);
}
