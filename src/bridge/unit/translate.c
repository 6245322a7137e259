/* translate.c - from pods to a job description, in the order of precedence, lowest first.
 *
 * Slurm gives the same amounts on every node of a job, so each amount is the largest over the pods;
 * amounts are taken one by one and may come from different pods. The pods of a gang have a node
 * each, unless it has more pods than it may have nodes.
 *
 * Holds: an amount is rounded up, and one that nobody named is not sent; what does not fit into
 * Slurm's fields is refused here, because Slurm would cut it without a word. */
#include "bridge/unit/translate.h"

#include "base/map.h"
#include "bridge/unit/prefer.h"
#include "codec/timestamp.h"
#include "device/requested.h"
#include "slurm/gres.h"

#include <inttypes.h>

enum {
    MIB = 1 << 20,
    MINUTE = 60,
    MAX_CLAIMS = 1 << 20, /* that the pods of a unit name */
};

struct least {        /* what a job must have, amount by amount */
    int64_t cpus;     /* 0: nothing */
    int64_t memory;   /* MiB; 0: nothing */
    const char *gres; /* "gres/gpu=2,gres/fpga:x=1" */
    int64_t per_node; /* pods on a node of the job */
};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t divide_up(int64_t amount, int64_t unit)
{
    return amount / unit + (amount % unit > 0);
}

/* ---- what the administrator and the workload object say ---- */

static void take_text(const char **place, const char *text)
{
    if (text[0])
        *place = text;
}

static const struct bridge_user *user_rule(const struct translate_from *from)
{
    const struct kube_pod *pod = from->pods[0];

    return bridge_config_user(from->config, pod->object.ns, pod->service_account, from->creator);
}

static void take_user(struct job_desc *desc, const struct translate_from *from)
{
    const struct bridge_user *user = user_rule(from);

    if (!user)
        return;
    take_text(&desc->user_id, user->user);
    take_text(&desc->group_id, user->group);
    take_text(&desc->account, user->account);
    take_text(&desc->qos, user->qos);
}

static void take_config(struct job_desc *desc, const struct translate_from *from)
{
    desc->mcs_label = from->config->mcs_label;
    desc->partition = from->config->partition;
    desc->exclusive = !from->config->shared;
    take_user(desc, from);
}

static bool is_gang(const struct translate_from *from)
{
    return from->is_gang || from->pod_count > 1;
}

static int64_t least_pods(const struct translate_from *from)
{
    return from->min_pods > 0 && from->min_pods < from->pod_count ? from->min_pods
                                                                  : from->pod_count;
}

/* Without a gang a Job's pods go one by one, each with a job of its own. */
static void take_count(struct job_desc *desc, const struct translate_from *from)
{
    bool is_of_job = from->job && !is_gang(from);

    desc->nodes = from->pod_count;
    if (is_of_job || is_gang(from))
        desc->min_nodes = least_pods(from);
    if (is_of_job)
        return;
    desc->max_nodes = from->pod_count;
    desc->tasks_per_node = 1;
}

/* ---- time ---- */

static int64_t longest_grace(const struct translate_from *from)
{
    int64_t seconds = 0;

    for (unsigned i = 0; i < from->pod_count; i++)
        seconds = larger(seconds, from->pods[i]->termination_grace);
    return seconds;
}

/* Of several limits the shortest counts. */
static int take_deadline(struct job_desc *desc, const struct translate_from *from, int64_t seconds,
                         struct err *err)
{
    int64_t grace = from->config->adds_grace ? longest_grace(from) : 0;
    int64_t minutes = divide_up(seconds > INT64_MAX - grace ? seconds : seconds + grace, MINUTE);

    if (minutes > INT32_MAX)
        return err_set(err, ERR_INVALID,
                       "activeDeadlineSeconds of %" PRId64 " is more than Slurm's time limit holds",
                       seconds);
    if (seconds > 0 && (desc->time_limit < 0 || minutes < desc->time_limit))
        desc->time_limit = minutes;
    return 0;
}

/* A gang lasts as long as the pod that may last longest; 0: for ever. */
static int64_t longest_pod(const struct translate_from *from)
{
    int64_t seconds = 0;

    for (unsigned i = 0; i < from->pod_count; i++) {
        const struct kube_rare *rare = from->pods[i]->rare;

        if (!rare || rare->active_deadline <= 0)
            return 0;
        seconds = larger(seconds, rare->active_deadline);
    }
    return seconds;
}

static int take_deadlines(struct job_desc *desc, const struct translate_from *from, struct err *err)
{
    int rc = from->job ? take_deadline(desc, from, from->job->active_deadline, err) : 0;

    if (rc == 0 && from->config->pod_deadline)
        rc = take_deadline(desc, from, longest_pod(from), err);
    return rc;
}

/* ---- priority ---- */

static void take_priority(struct job_desc *desc, const struct translate_from *from)
{
    const struct bridge_priority *rule =
        bridge_config_priority(from->config, from->pods[0]->priority_class);

    if (!rule)
        return;
    take_text(&desc->qos, rule->qos);
    desc->priority = rule->priority;
}

/* ---- CPUs and memory ---- */

/* Cores by a device class are CPUs like any others. */
static int64_t cpu_of(const struct kube_requests *amounts, int64_t cores)
{
    return larger(amounts->cpu_milli, cores > INT64_MAX / 1000 ? INT64_MAX : cores * 1000);
}

/* Where the pods say nothing: pod-level limits of a Job's template are what its pods have, unless
 * an admission hook took them away; a group may say what the fewest of its pods need in all. */
static int64_t wanted_or(int64_t amount, int64_t of_job, int64_t of_group,
                         const struct translate_from *from)
{
    if (amount == 0)
        amount = of_job;
    return amount == 0 ? divide_up(of_group, least_pods(from)) : amount;
}

/* cores: of each pod by device classes. */
static int64_t cpu_wanted(const struct translate_from *from, const int64_t *cores)
{
    int64_t milli = 0;

    for (unsigned i = 0; i < from->pod_count; i++)
        milli = larger(milli, larger(cpu_of(&from->pods[i]->requests, cores[i]),
                                     cpu_of(&from->pods[i]->limits, cores[i])));
    return wanted_or(milli, from->job ? from->job->cpu_milli : 0, from->group_cpu_milli, from);
}

static int64_t memory_wanted(const struct translate_from *from)
{
    int64_t bytes = 0;

    for (unsigned i = 0; i < from->pod_count; i++)
        bytes = larger(bytes, larger(from->pods[i]->requests.memory, from->pods[i]->limits.memory));
    return wanted_or(bytes, from->job ? from->job->memory : 0, from->group_memory, from);
}

/* cores: of each pod by device classes. */
static void find_least(const struct translate_from *from, const int64_t *cores,
                       struct least *ret_least)
{
    int64_t milli = 0, bytes = 0;

    for (unsigned i = 0; i < from->pod_count; i++) {
        milli = larger(milli, cpu_of(&from->pods[i]->requests, cores[i]));
        bytes = larger(bytes, from->pods[i]->requests.memory);
    }
    ret_least->cpus = divide_up(milli, 1000);
    ret_least->memory = divide_up(bytes, MIB);
}

static int take_amounts(struct job_desc *desc, const struct translate_from *from,
                        const int64_t *cores, struct err *err)
{
    int64_t cpus = divide_up(cpu_wanted(from, cores), 1000);
    int64_t memory = divide_up(memory_wanted(from), MIB);

    if (cpus > JOB_DESC_MAX_CPUS)
        return err_set(err, ERR_INVALID, "asks for %" PRId64 " CPUs; Slurm knows at most %d", cpus,
                       JOB_DESC_MAX_CPUS);
    if (cpus > 0)
        desc->cpus_per_task = cpus;
    if (memory > 0)
        desc->memory = memory;
    return 0;
}

/* ---- devices ---- */

/* A claim is allocated for one pod, so that the second could never be bound. */
static int check_shared_claims(const struct translate_from *from, struct err *err)
{
    auto_map struct map users;

    map_init(&users, &(struct map_options){ .max = MAX_CLAIMS, .borrow_keys = true });
    for (unsigned i = 0; i < from->pod_count; i++) {
        const struct kube_pod *pod = from->pods[i];

        for (unsigned k = 0; pod->rare && !pod->node_name[0] && k < pod->rare->claim_count; k++) {
            struct str claim = str_of(pod->rare->claims[k].claim);
            const struct kube_pod *user = map_get(&users, claim);

            if (user && user != pod)
                return err_set(err, ERR_INVALID,
                               "pods %s and %s name resourceclaim \"" STR_FMT
                               "\"; pods that Slurm places cannot share a claim",
                               user->object.name, pod->object.name, STR_ARG(claim));
            if (claim.len > 0 && map_put(&users, claim, (void *)(uintptr_t)pod, err) < 0)
                return -err->class;
        }
    }
    return 0;
}

/* A pod that is bound has its devices: it is counted as far as its claims can be read. cores: of
 * each pod by device classes. */
static int take_devices(struct job_desc *desc, const struct translate_from *from,
                        struct arena *arena, int64_t *cores, struct err *err)
{
    const struct device_view view = { .table = &from->config->devices,
                                      .classes = from->classes,
                                      .claims = from->claims };
    struct requested_gres requested = { .count = 0 };

    for (unsigned i = 0; i < from->pod_count; i++) {
        const struct kube_pod *pod = from->pods[i];

        if (requested_gres_add(&requested, &view, pod, arena, &cores[i], err) < 0 &&
            !pod->node_name[0])
            return err_wrap(err, "pod %s", pod->object.name);
    }
    if (requested.count == 0)
        return 0;
    return requested_gres_text(&requested, arena, &desc->gres, err);
}

/* ---- annotations ---- */

/* A pod that runs keeps its place whatever it says: of a job for it only the rights are taken. */
static int lay_over_of(struct job_desc *desc, const struct translate_from *from,
                       const struct kube_object *object, struct arena *arena, struct err *err)
{
    int rc = job_desc_annotate(desc, arena, &object->annotations, err);

    return rc < 0 || from->is_bound ? rc
                                    : rights_check(from->config->trust, &object->annotations, err);
}

static int lay_over(struct job_desc *desc, const struct translate_from *from, struct arena *arena,
                    struct err *err)
{
    int rc = lay_over_of(desc, from, from->owner, arena, err);

    for (unsigned i = 0; rc == 0 && i < from->more_count; i++)
        rc = lay_over_of(desc, from, from->more[i], arena, err);
    return rc;
}

/* ---- pods that share nodes ---- */

/* The pods are spread evenly over the nodes, and every node must have room for an even share: then
 * how many a node holds is known without asking what Slurm gave there. */
static void share_nodes(struct job_desc *desc, const struct job_desc *base, bool says_memory)
{
    int64_t each = divide_up(base->nodes, desc->max_nodes);
    int64_t nodes = larger(divide_up(base->nodes, each), desc->min_nodes);

    desc->tasks_per_node = each;
    desc->tasks = nodes * each;
    if (desc->min_nodes <= desc->max_nodes)
        desc->min_nodes = desc->max_nodes = nodes;
    if (!says_memory && base->memory >= 0)
        desc->memory = base->memory * each; /* fits: the first has at most 43 bits */
    if (!desc->gres) {
        desc->gres = "";
        desc->gres_per_task = base->gres;
    }
}

static void take_whole_nodes(struct job_desc *desc, const struct job_desc *base)
{
    if (desc->min_nodes < 0)
        desc->min_nodes = base->min_nodes;
    if (desc->max_nodes < 0)
        desc->max_nodes = base->max_nodes;
    if (desc->memory < 0)
        desc->memory = base->memory;
    if (!desc->gres)
        desc->gres = base->gres;
}

static unsigned pods_with(const struct translate_from *from, const struct kube_port *port)
{
    unsigned count = 0;

    for (unsigned i = 0; i < from->pod_count; i++) {
        const struct kube_rare *rare = from->pods[i]->rare;

        for (unsigned k = 0; rare && k < rare->port_count; k++)
            count += rare->ports[k].port == port->port &&
                     str_is(str_of(rare->ports[k].protocol), port->protocol) &&
                     str_is(str_of(rare->ports[k].ip), port->ip);
    }
    return count;
}

/* A port of the node is taken once. Where the pods of a gang differ, the last is like most. */
static int check_ports(const struct job_desc *desc, const struct translate_from *from,
                       struct err *err)
{
    const struct kube_rare *rare = from->pods[from->pod_count - 1]->rare;

    for (unsigned i = 0; rare && i < rare->port_count; i++) {
        unsigned count = pods_with(from, &rare->ports[i]);

        if (count > desc->max_nodes)
            return err_set(err, ERR_INVALID,
                           "%u pods take port %u of their nodes, and they may have at most %" PRId64
                           " nodes: see the annotation max-nodes",
                           count, rare->ports[i].port, desc->max_nodes);
    }
    return 0;
}

/* What annotations left open, from what was there before. */
static int complete(struct job_desc *desc, const struct job_desc *base,
                    const struct translate_from *from, struct err *err)
{
    bool shares = desc->max_nodes > 0 && desc->max_nodes < base->nodes;

    if (from->is_bound)
        desc->min_nodes = -1;
    if (shares)
        share_nodes(desc, base, desc->memory >= 0);
    else
        take_whole_nodes(desc, base);
    if (desc->max_nodes > 0 && desc->min_nodes > desc->max_nodes)
        return err_set(err, ERR_INVALID,
                       "wants at least %" PRId64 " nodes, and at most %" PRId64
                       ": see the annotations min-nodes and max-nodes",
                       desc->min_nodes, desc->max_nodes);
    return shares ? check_ports(desc, from, err) : 0;
}

/* ---- at least what the pods request ---- */

/* The annotations `cpu-per-task`, `mem-per-node` and `gres` take the place of what the pods
 * request. On the node a pod runs with its requests, whatever the annotations say, so a job that
 * reserves less would let Slurm give the rest to another job. */
static int raise_to_least(struct job_desc *desc, const struct least *least, struct arena *arena,
                          struct err *err)
{
    int64_t memory = least->memory * least->per_node; /* the first has at most 43 bits */

    if (least->cpus > 0 && desc->cpus_per_task < least->cpus)
        desc->cpus_per_task = least->cpus;
    if (memory > 0 && desc->memory != 0 && desc->memory < memory) /* 0: all of the node */
        desc->memory = memory;
    if (desc->gres_per_task[0] || !least->gres[0])
        return 0;
    return gres_raise(desc->gres, least->gres, least->per_node, arena, &desc->gres, err);
}

/* ---- the whole ---- */

static int64_t oldest(const struct translate_from *from)
{
    int64_t created_us = from->pods[0]->object.created_us;

    for (unsigned i = 1; i < from->pod_count; i++)
        if (from->pods[i]->object.created_us < created_us)
            created_us = from->pods[i]->object.created_us;
    return timestamp_to_seconds(created_us);
}

static int take_all(struct job_desc *desc, const struct translate_from *from, struct arena *arena,
                    struct least *ret_least, struct err *err)
{
    int64_t *cores = arena_alloc_array(arena, from->pod_count + 1, sizeof(*cores));
    int rc;

    job_desc_init(desc);
    desc->created = oldest(from);
    desc->name = from->name             ? from->name
                 : from->pod_count == 1 ? from->pods[0]->object.name
                                        : from->owner->name;
    take_config(desc, from);
    take_count(desc, from);
    take_priority(desc, from);
    rc = take_deadlines(desc, from, err);
    if (rc == 0)
        rc = check_shared_claims(from, err);
    if (rc == 0)
        rc = take_devices(desc, from, arena, cores, err);
    if (rc == 0)
        rc = take_amounts(desc, from, cores, err);
    find_least(from, cores, ret_least);
    return rc;
}

int translate(const struct translate_from *from, struct arena *arena, struct job_desc *ret_desc,
              struct err *err)
{
    struct job_desc base, desc;
    struct least least;
    int rc = take_all(&base, from, arena, &least, err);

    if (rc < 0)
        return rc;
    desc = base;
    desc.min_nodes = desc.max_nodes = desc.memory = -1; /* to see whether an annotation says them */
    desc.gres = NULL;
    rc = lay_over(&desc, from, arena, err);
    if (rc == 0)
        rights_take(from->config->trust, &desc, &base);
    if (rc == 0 && from->config->trust != TRUST_ALL && !from->is_bound)
        rc = rights_check_places(&from->site, user_rule(from), &desc, &base, arena, err);
    if (desc.gres && gres_is_none(desc.gres))
        desc.gres = NULL;
    if (rc == 0)
        rc = complete(&desc, &base, from, err);
    least.gres = base.gres;
    least.per_node = desc.tasks >= 0 ? desc.tasks_per_node : 1;
    if (rc == 0)
        rc = raise_to_least(&desc, &least, arena, err);
    if (rc < 0)
        return rc;
    if (!desc.constraints[0]) /* Slurm would try the preference in place of the constraints */
        desc.prefer = prefer_of(
            &(struct prefer_from){ from->config, from->slurm_nodes, from->pods, from->pod_count },
            arena);
    *ret_desc = desc;
    return 0;
}
