/* sim_workers.c - workers that come and go under an operator that is let down, while jobs run on
 * them.
 *
 * The operator's program runs twice against the simulated API server and the simulated Slurm.
 * People scale, update, delete and make the NodeSet, cordon Nodes and pods; admins drain nodes and
 * kill slurmctld; users submit jobs. slurmd registers when its pod runs and says that its node is
 * down when the pod ends. What must hold is in sim_workers_promises.c. */
#include "sim_workers.h"

#include "base/mem.h"
#include "operator/names.h"
#include "weather.h"

#include <stdio.h>

enum { SECOND = 1000000 };

/* ---- slurmd, in the pods that run ---- */

static void ask_slurm(struct world *world, const char *node, const char *body)
{
    struct slurm_store_answer answer;
    char target[120];

    (void)snprintf(target, sizeof(target), "/slurm/v0.0.44/node/%s", node);
    slurm_store_answer_init(&answer);
    slurm_store_serve(world->slurm,
                      &(struct slurm_store_request){ .method = "POST",
                                                     .target = str_of(target),
                                                     .content_type = STR("application/json"),
                                                     .body = str_of(body),
                                                     .token = STR("root"),
                                                     .user = "root" },
                      &answer);
    trace_line(&world->trace, "slurmd of %s says %s: %d", node, body, answer.status);
    slurm_store_answer_done(&answer);
}

static void on_runs(void *context, const struct json *pod)
{
    const struct workers_scene *workers = context;
    struct world *world = workers->scene->world;
    const char *hostname = json_str(json_at(pod, "spec", "hostname")).at;
    struct slurm_store_node node;

    if (slurm_store_ctld(world->slurm) != SLURM_CTLD_UP ||
        slurm_store_find_node(world->slurm, hostname, &node))
        return;
    trace_line(&world->trace, "slurmd of %s registers", hostname);
    (void)slurm_people_add_nodes(
        world->slurm,
        &(struct slurm_people_node){
            .names = hostname, .features = "w", .cores = 4, .memory = 4000 },
        NULL);
}

/* Before the containers end. A slurmctld that is down hears of it when it is up again. */
static void on_ends(void *context, const struct json *pod)
{
    const struct workers_scene *workers = context;
    struct world *world = workers->scene->world;

    ask_slurm(world, json_str(json_at(pod, "spec", "hostname")).at,
              "{\"state\":[\"DOWN\"],\"reason\":\"slurm-operator: Pod is terminating\"}");
}

/* ---- people ---- */

struct deed {
    struct workers_scene *workers;
    struct world *world;
    unsigned value;
};

static void call(const struct deed *deed, const char *method, const char *path, const char *body)
{
    int status = world_call(deed->world, "people", method, path, body);

    if (status >= 300 && status != 404 && status != 409)
        world_break(deed->world, "people's %s %s is refused with %d", method, path, status);
}

static void make_nodeset(const struct deed *deed)
{
    char body[700];

    (void)snprintf(body, sizeof(body),
                   "{\"apiVersion\":\"" OPERATOR_GROUP "/" OPERATOR_VERSION "\","
                   "\"kind\":\"NodeSet\",\"metadata\":{\"name\":\"w\"},"
                   "\"spec\":{\"controllerRef\":{\"name\":\"a\"},\"replicas\":%u,"
                   "\"slurmd\":{\"image\":\"s:%u\"},\"oversubscribeNode\":true,"
                   "\"partition\":{\"enabled\":%s}}}",
                   deed->value % 4, deed->value % 2, deed->value % 3 ? "false" : "true");
    call(deed, "POST", WORKERS_PATH "/nodesets", body);
}

static void scale(const struct deed *deed)
{
    char body[60];

    (void)snprintf(body, sizeof(body), "{\"spec\":{\"replicas\":%u}}", deed->value % 5);
    call(deed, "PATCH", WORKERS_PATH "/nodesets/w", body);
}

static void update(const struct deed *deed)
{
    char body[160];

    (void)snprintf(body, sizeof(body),
                   "{\"spec\":{\"slurmd\":{\"image\":\"s:%u\"},"
                   "\"updateStrategy\":{\"rollingUpdate\":{\"maxUnavailable\":%u}}}}",
                   deed->value % 3, 1 + deed->value % 2);
    call(deed, "PATCH", WORKERS_PATH "/nodesets/w", body);
}

static void delete_nodeset(const struct deed *deed)
{
    call(deed, "DELETE", WORKERS_PATH "/nodesets/w", NULL);
}

static void cordon_node(const struct deed *deed)
{
    char path[60], body[60];

    (void)snprintf(path, sizeof(path), "/api/v1/nodes/k%u", deed->value % WORKERS_HOSTS);
    (void)snprintf(body, sizeof(body), "{\"spec\":{\"unschedulable\":%s}}",
                   deed->value % 3 == 0 ? "true" : "null");
    call(deed, "PATCH", path, body);
}

static void cordon_pod(const struct deed *deed)
{
    char path[80], body[160];

    (void)snprintf(path, sizeof(path), "/api/v1/namespaces/" WORKERS_NS "/pods/w-%u",
                   deed->value % 4);
    (void)snprintf(body, sizeof(body),
                   "{\"metadata\":{\"annotations\":{\"" ANNOTATION_POD_CORDON "\":%s}}}",
                   deed->value / 4 % 2 ? "\"true\"" : "null");
    call(deed, "PATCH", path, body);
}

static void delete_pod(const struct deed *deed)
{
    char path[80];

    (void)snprintf(path, sizeof(path), "/api/v1/namespaces/" WORKERS_NS "/pods/w-%u",
                   deed->value % 4);
    call(deed, "DELETE", path, NULL);
}

/* Only what nobody is about to remove: who is drained and confirmed may go at any moment. */
static bool is_marked(const struct deed *deed, const char *name)
{
    const struct json *pod = api_store_find(deed->world->store, "pods", WORKERS_NS, name);

    return json_exists(json_at(pod, "metadata", "annotations", ANNOTATION_CORDONED_BY));
}

static void drain_by_hand(const struct deed *deed)
{
    struct slurm_store_node node;
    char name[16];

    (void)snprintf(name, sizeof(name), "w-%u", deed->value % 4);
    if (!slurm_store_find_node(deed->world->slurm, name, &node) || is_marked(deed, name))
        return;
    if (!node.is_drained)
        (void)slurm_people_drain(deed->world->slurm, name, "root", WORKERS_REASON, NULL);
    else if (strcmp(node.reason, WORKERS_REASON) == 0)
        (void)slurm_people_undrain(deed->world->slurm, name, NULL);
}

static void submit(const struct deed *deed)
{
    (void)slurm_people_submit(deed->world->slurm,
                              &(struct slurm_people_ask){ .user = "alice",
                                                          .name = "j",
                                                          .nodes = 1 + deed->value % 2,
                                                          .cpus = 1 + deed->value % 4,
                                                          .time_limit = 60 },
                              NULL);
}

static void end_job(void *context, const struct slurm_store_job *job)
{
    int64_t *last = context;

    if (!job->has_ended && (*last == 0 || job->id < *last))
        *last = job->id;
}

static void finish_job(const struct deed *deed)
{
    int64_t id = 0;

    slurm_store_visit_jobs(deed->world->slurm, end_job, &id);
    if (id != 0)
        (void)slurm_people_cancel(deed->world->slurm, id, "alice", NULL);
}

static void trouble_slurmctld(const struct deed *deed)
{
    struct slurm_store *slurm = deed->world->slurm;

    if (slurm_store_ctld(slurm) == SLURM_CTLD_STOPPED) {
        slurm_store_continue(slurm);
    } else if (slurm_store_ctld(slurm) == SLURM_CTLD_DOWN) {
        slurm_store_start(slurm);
        workers_remember(deed->workers);
    } else if (deed->value % 3 == 0) {
        slurm_store_kill(slurm);
    } else if (deed->value % 3 == 1) {
        slurm_store_stop(slurm);
    } else {
        slurm_store_shut_down(slurm);
    }
    trace_line(&deed->world->trace, "slurmctld is %d", slurm_store_ctld(slurm));
}

static const struct {
    unsigned weight;
    void (*act)(const struct deed *deed);
} deeds[WORKERS_DEEDS] = {
    [DEED_SCALE] = { 30, scale },
    [DEED_UPDATE] = { 10, update },
    [DEED_MAKE_NODESET] = { 10, make_nodeset },
    [DEED_DELETE_NODESET] = { 4, delete_nodeset },
    [DEED_CORDON_NODE] = { 10, cordon_node },
    [DEED_CORDON_POD] = { 8, cordon_pod },
    [DEED_DELETE_POD] = { 3, delete_pod },
    [DEED_DRAIN_BY_HAND] = { 8, drain_by_hand },
    [DEED_SUBMIT] = { 40, submit },
    [DEED_FINISH_JOB] = { 25, finish_job },
    [DEED_TROUBLE_SLURMCTLD] = { 6, trouble_slurmctld },
};

void workers_do(struct workers_scene *workers, enum workers_deed what, unsigned value)
{
    deeds[what].act(&(struct deed){ workers, workers->scene->world, value });
}

static void on_people(void *context)
{
    struct workers_scene *workers = context;
    struct world *world = workers->scene->world;
    struct deed deed = { workers, world, (unsigned)rand_below(&world->rand, 1000) };

    deeds[world_choose(world, &deeds[0].weight, sizeof(deeds[0]), WORKERS_DEEDS)].act(&deed);
    loop_timer_start(world->loop, &workers->people, rand_range(&world->rand, 20000, 3 * SECOND),
                     on_people, workers);
}

/* ---- the course of things ---- */

static void cancel_jobs(struct world *world)
{
    int64_t id;

    do {
        id = 0;
        slurm_store_visit_jobs(world->slurm, end_job, &id);
    } while (id != 0 && slurm_people_cancel(world->slurm, id, "alice", NULL) == 0);
}

static void any_job(void *context, const struct slurm_store_job *job)
{
    *(int64_t *)context = job->id;
}

static void note_drained(void *context, const struct slurm_store_node *node)
{
    char(*names)[64] = context;

    for (unsigned i = 0; node->is_drained && strcmp(node->reason, WORKERS_REASON) == 0 && i < 8;
         i++)
        if (!names[i][0]) {
            (void)snprintf(names[i], sizeof(names[i]), "%s", node->name);
            return;
        }
}

static void end_drains(struct workers_scene *workers)
{
    struct world *world = workers->scene->world;
    char names[8][64] = { "" };

    slurm_store_visit_nodes(world->slurm, note_drained, names);
    for (unsigned i = 0; i < 8 && names[i][0]; i++)
        (void)slurm_people_undrain(world->slurm, names[i], NULL);
    workers_remember(workers);
}

/* The records of jobs go when they hold nothing any more: a NodeSet with a partition waits for it.
 * An admin's drain that the end of a pod had hidden shows again when its worker is back: then the
 * admin ends it. */
static void on_forget(void *context)
{
    struct workers_scene *workers = context;
    struct world *world = workers->scene->world;
    int64_t id;

    do {
        id = 0;
        slurm_store_visit_jobs(world->slurm, any_job, &id);
    } while (id != 0 && slurm_people_forget(world->slurm, id, NULL) == 0);
    end_drains(workers);
    loop_timer_start(world->loop, &workers->people, 5 * SECOND, on_forget, workers);
}

/* Everything that drains by somebody's will ends; jobs, too. */
void workers_on_calm(void *context)
{
    struct operator_scene *scene = context;
    struct workers_scene *workers = scene->slurm;
    struct world *world = scene->world;

    loop_timer_stop(&workers->people);
    sim_net_set_slurm_faults(world->net, NULL);
    if (slurm_store_ctld(world->slurm) == SLURM_CTLD_STOPPED)
        slurm_store_continue(world->slurm);
    if (slurm_store_ctld(world->slurm) == SLURM_CTLD_DOWN)
        slurm_store_start(world->slurm);
    cancel_jobs(world);
    loop_timer_start(world->loop, &workers->people, 20 * SECOND, on_forget, workers);
    end_drains(workers);
    for (unsigned i = 0; i < WORKERS_HOSTS; i++)
        cordon_node(&(struct deed){ workers, world, 4 + 3 * i });
    for (unsigned i = 0; i < 4; i++)
        cordon_pod(&(struct deed){ workers, world, i });
}

void workers_on_settled(void *context)
{
    struct operator_scene *scene = context;

    operator_on_settled(scene);
    workers_when_settled(scene->slurm);
}

static const struct course_type course_type = { .calm = workers_on_calm,
                                                .settled = workers_on_settled,
                                                .quiet_us = OPERATOR_QUIET_US };

static void prepare(struct workers_scene *workers)
{
    struct world *world = workers->scene->world;
    struct deed deed = { workers, world, 0 };
    char body[80];

    call(&deed, "POST", "/api/v1/namespaces/" WORKERS_NS "/secrets",
         "{\"metadata\":{\"name\":\"jwt\"},\"data\":{\"k\":"
         "\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\"}}");
    call(&deed, "POST", WORKERS_PATH "/controllers",
         "{\"apiVersion\":\"" OPERATOR_GROUP "/" OPERATOR_VERSION "\",\"kind\":\"Controller\","
         "\"metadata\":{\"name\":\"a\"},\"spec\":{\"external\":true,"
         "\"externalConfig\":{\"host\":\"head\",\"port\":6817},"
         "\"slurmKeyRef\":{\"name\":\"jwt\",\"key\":\"k\"},"
         "\"jwtKeyRef\":{\"name\":\"jwt\",\"key\":\"k\"}}}");
    call(&deed, "POST", WORKERS_PATH "/restapis",
         "{\"apiVersion\":\"" OPERATOR_GROUP "/" OPERATOR_VERSION "\",\"kind\":\"RestApi\","
         "\"metadata\":{\"name\":\"a\"},\"spec\":{\"controllerRef\":{\"name\":\"a\"}}}");
    for (unsigned i = 0; i < WORKERS_HOSTS; i++) {
        (void)snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"k%u\"}}", i);
        call(&deed, "POST", "/api/v1/nodes", body);
    }
}

/* Slurm's way fails as badly as the API server's. */
static const struct sim_faults *slurm_faults(const struct course *course)
{
    static const struct sim_faults bad = { .slow = 30,
                                           .lost_before = 20,
                                           .lost_between = 20,
                                           .lost_after = 30,
                                           .late = 20,
                                           .timeout = 20,
                                           .bad_gateway = 10,
                                           .internal = 20 };

    return course->weather->faults ? &bad : NULL;
}

struct operator_scene *workers_scene_new(struct world *world, const struct course_type *type)
{
    struct workers_scene *workers = mem_alloc(sizeof(*workers));
    struct operator_scene *scene;

    world_add_slurm(world, NULL);
    scene = operator_scene_new(world, type);
    scene->slurm = workers;
    workers->scene = scene;
    scene->workers.runs = on_runs;
    scene->workers.ends = on_ends;
    scene->workers.context = workers;
    prepare(workers);
    api_store_listen(world->store, workers_on_api, workers);
    slurm_store_listen(world->slurm, workers_on_slurm, workers);
    return scene;
}

static void *start(struct world *world)
{
    struct operator_scene *scene = workers_scene_new(world, &course_type);
    struct workers_scene *workers = scene->slurm;

    workers_do(workers, DEED_MAKE_NODESET, (unsigned)rand_below(&world->rand, 1000));
    course_start_storm(&scene->course);
    sim_net_set_slurm_faults(world->net, slurm_faults(&scene->course));
    loop_timer_start(world->loop, &workers->people, SECOND, on_people, workers);
    return scene;
}

static void finish(void *context)
{
    struct operator_scene *scene = context;

    operator_promises_at_the_end(scene);
    workers_when_settled(scene->slurm);
}

void workers_scene_free(void *context)
{
    struct workers_scene *workers = ((struct operator_scene *)context)->slurm;

    loop_timer_stop(&workers->people);
    operator_scene_free(context);
    mem_free(workers);
}

static void on_sent(void *context, const char *user, const char *method, const char *path,
                    struct str body)
{
    operator_promises_on_send(((struct world *)context)->scene, user, method, path);
}

static const struct sim_hooks hooks = { .sent = on_sent, .crash = operator_on_crash };

const struct scenario scenario_workers = {
    .name = "workers",
    .what = "the operator and Slurm: workers come and go, and jobs run on them",
    .start = start,
    .check = operator_scene_check,
    .is_over = operator_scene_is_over,
    .finish = finish,
    .free = workers_scene_free,
    .hooks = &hooks,
};
