/* sim_bridge_slurm.c - people and daemons in Slurm: administrators who cancel, hold, requeue and
 * suspend jobs and drain nodes, users with jobs of their own, bridges of other clusters; and a
 * slurmctld that is stopped, killed and restarted.
 *
 * People do nothing while slurmctld is not there to be asked. */
#include "sim_bridge.h"

#include <inttypes.h>

enum {
    SECOND = SCENE_SECOND,
    MAX_JOBS = 200,
    AGENT_REFUSES = 50, /* per mille of calls */
};

struct choice {
    int64_t ids[MAX_JOBS];
    unsigned count;
    bool ours;
    struct bridge_scene *scene;
};

static void take_job(void *context, const struct slurm_store_job *job)
{
    struct choice *choice = context;
    bool is_ours = bridge_note_of_job(choice->scene, job)->unit[0] != '\0';

    if (!job->has_ended && is_ours == choice->ours && choice->count < MAX_JOBS)
        choice->ids[choice->count++] = job->id;
}

/* A live one of ours, or of strangers; 0: there is none. */
static int64_t choose_job(struct bridge_scene *scene, bool ours)
{
    struct choice choice = { .ours = ours, .scene = scene };

    slurm_store_visit_jobs(scene->world->slurm, take_job, &choice);
    return choice.count ? choice.ids[rand_below(&scene->world->rand, choice.count)] : 0;
}

static void choose_node(struct bridge_scene *scene, char name[32])
{
    (void)snprintf(name, 32, "node-%u",
                   1 + (unsigned)rand_below(&scene->world->rand, scene->node_count));
}

/* ---- actions ---- */

static void cancel_job(struct bridge_scene *scene, int64_t id)
{
    (void)slurm_people_cancel(scene->world->slurm, id, "root", NULL);
}

static void hold_job(struct bridge_scene *scene, int64_t id)
{
    (void)slurm_people_hold(scene->world->slurm, id, true, NULL);
}

static void release_job(struct bridge_scene *scene, int64_t id)
{
    struct slurm_store_job job;

    if (slurm_store_find_job(scene->world->slurm, id, &job) && job.restarts == 0)
        (void)slurm_people_release(scene->world->slurm, id, NULL);
}

/* Held: real Slurm keeps a job that was put back for two minutes (the life of its credential),
 * so that who polls cannot miss it; the model starts it at once. */
static void requeue_job(struct bridge_scene *scene, int64_t id)
{
    (void)slurm_people_requeue(scene->world->slurm, id, true, NULL);
}

static void suspend_job(struct bridge_scene *scene, int64_t id)
{
    (void)slurm_people_suspend(scene->world->slurm, id, NULL);
}

static void resume_job(struct bridge_scene *scene, int64_t id)
{
    (void)slurm_people_resume(scene->world->slurm, id, NULL);
}

static void preempt_job(struct bridge_scene *scene, int64_t id)
{
    (void)slurm_people_preempt(scene->world->slurm, id, false, NULL);
}

static void complete_job(struct bridge_scene *scene, int64_t id)
{
    (void)slurm_people_complete(scene->world->slurm, id, 0, NULL);
}

static void rewrite_comment(struct bridge_scene *scene, int64_t id)
{
    if (scene->weather->plugin)
        (void)slurm_people_set_comment(scene->world->slurm, id, "seen by the site", NULL);
}

static void fail_node(struct bridge_scene *scene, int64_t id)
{
    char name[32];

    choose_node(scene, name);
    (void)slurm_people_fail_node(scene->world->slurm, name, NULL);
}

static void resume_node(struct bridge_scene *scene, int64_t id)
{
    char name[32];

    choose_node(scene, name);
    (void)slurm_people_resume_node(scene->world->slurm, name, NULL);
}

static void drain_node(struct bridge_scene *scene, int64_t id)
{
    char name[32];

    choose_node(scene, name);
    (void)slurm_people_drain(scene->world->slurm, name, "root", "a fan is broken", NULL);
}

static void submit_stranger(struct bridge_scene *scene, int64_t id)
{
    bridge_foreign_submit(scene);
}

static void end_stranger(struct bridge_scene *scene, int64_t id)
{
    int64_t stranger = choose_job(scene, false);

    if (stranger)
        (void)slurm_people_cancel(scene->world->slurm, stranger, "alice", NULL);
}

static const struct {
    void (*act)(struct bridge_scene *scene, int64_t id);
    unsigned weight;
} deeds[] = {
    { cancel_job, 8 },   { hold_job, 5 },         { release_job, 8 }, { requeue_job, 5 },
    { suspend_job, 4 },  { resume_job, 4 },       { preempt_job, 4 }, { complete_job, 4 },
    { fail_node, 2 },    { resume_node, 8 },      { drain_node, 4 },  { submit_stranger, 8 },
    { end_stranger, 8 }, { rewrite_comment, 10 },
};

enum { DEEDS = sizeof(deeds) / sizeof(deeds[0]) };

static void act(struct bridge_scene *scene)
{
    size_t chosen = world_choose(scene->world, &deeds[0].weight, sizeof(deeds[0]), DEEDS);

    scene->people_act = true;
    deeds[chosen].act(scene, choose_job(scene, true));
    scene->people_act = false;
}

static void on_operators(void *context)
{
    struct bridge_scene *scene = context;

    if (slurm_store_ctld(scene->world->slurm) == SLURM_CTLD_UP)
        act(scene);
    loop_timer_start(scene->world->loop, &scene->operators,
                     rand_range(&scene->world->rand, SECOND / 5, 5 * SECOND), on_operators, scene);
}

/* ---- daemons ---- */

static void on_trouble(void *context);

static void take_node(void *context, const struct slurm_store_node *node)
{
    bridge_note_slurm_node(
        context, &(struct slurm_store_change){ .event = SLURM_NODE_CHANGED, .node = node });
}

/* Nodes may be as they were some seconds ago; nobody tells of that. */
static void start_slurmctld(struct bridge_scene *scene)
{
    scene->is_starting = true;
    slurm_store_start(scene->world->slurm);
    scene->is_starting = false;
    slurm_store_visit_nodes(scene->world->slurm, take_node, scene);
}

void bridge_slurm_daemons_up(struct bridge_scene *scene)
{
    struct slurm_store *slurm = scene->world->slurm;

    loop_timer_stop(&scene->daemons);
    loop_timer_stop(&scene->daemons_back);
    trace_line(&scene->world->trace, "slurm: daemons are up");
    slurm_store_set_restd(slurm, true);
    sim_net_set_agent(scene->world->net, SIM_AGENT_UP);
    if (slurm_store_ctld(slurm) == SLURM_CTLD_STOPPED)
        slurm_store_continue(slurm);
    else if (slurm_store_ctld(slurm) == SLURM_CTLD_DOWN)
        start_slurmctld(scene);
}

static void on_up_again(void *context)
{
    struct bridge_scene *scene = context;

    bridge_slurm_daemons_up(scene);
    if (!scene->is_calm)
        loop_timer_start(scene->world->loop, &scene->daemons,
                         rand_range(&scene->world->rand, SECOND, 15 * SECOND), on_trouble, scene);
}

/* One of what the weather has. */
static void on_trouble(void *context)
{
    struct bridge_scene *scene = context;
    const struct bridge_weather *weather = scene->weather;
    struct slurm_store *slurm = scene->world->slurm;
    struct rand *rand = &scene->world->rand;
    const bool has[] = { weather->stops, weather->kills, weather->restarts, weather->gateway };
    uint64_t chosen = rand_below(rand, 4);
    int64_t longest_us = weather->foreign_token ? 45 * SECOND : 20 * SECOND;

    while (!has[chosen])
        chosen = (chosen + 1) % 4;
    trace_line(&scene->world->trace, "slurm: trouble %" PRIu64, chosen);
    if (chosen == 0)
        slurm_store_stop(slurm);
    else if (chosen == 1)
        slurm_store_kill(slurm);
    else if (chosen == 2)
        slurm_store_shut_down(slurm);
    else
        slurm_store_set_restd(slurm, false);
    loop_timer_start(scene->world->loop, &scene->daemons_back,
                     rand_range(rand, SECOND / 10, chosen == 0 ? longest_us : 10 * SECOND),
                     on_up_again, scene);
}

/* ---- agents ---- */

static void on_agents(void *context)
{
    struct bridge_scene *scene = context;
    struct sim_net *net = scene->world->net;
    struct rand *rand = &scene->world->rand;
    bool is_well = rand_chance(rand, 500);

    if (scene->is_calm)
        return;
    sim_net_set_agent(net, is_well                  ? SIM_AGENT_UP
                           : rand_chance(rand, 500) ? SIM_AGENT_DOWN
                                                    : SIM_AGENT_HANGS);
    loop_timer_start(scene->world->loop, &scene->agents,
                     rand_range(rand, SECOND / 10, (is_well ? 15 : 8) * (int64_t)SECOND), on_agents,
                     scene);
}

void bridge_agents_start(struct bridge_scene *scene)
{
    struct sim_faults faults = scene->weather->slurm_faults;

    faults.agent_refuses = AGENT_REFUSES;
    if (scene->has_agent)
        sim_net_set_slurm_faults(scene->world->net, &faults);
    if (scene->has_agent)
        loop_timer_start(scene->world->loop, &scene->agents,
                         rand_range(&scene->world->rand, SECOND, 15 * SECOND), on_agents, scene);
}

/* ---- beginning and end ---- */

void bridge_slurm_prepare(struct bridge_scene *scene)
{
    struct slurm_store *slurm = scene->world->slurm;

    scene->people_act = true;
    (void)slurm_people_add_partition(
        slurm,
        &(struct slurm_people_partition){ .name = SCENE_PARTITION, .feature = SCENE_PARTITION },
        NULL);
    bridge_foreign_prepare(scene);
    slurm_store_save(slurm); /* as if in slurm.conf */
    scene->people_act = false;
}

void bridge_slurm_start(struct bridge_scene *scene)
{
    const struct bridge_weather *weather = scene->weather;

    loop_timer_start(scene->world->loop, &scene->operators, 3 * SECOND, on_operators, scene);
    if (weather->stops || weather->kills || weather->restarts || weather->gateway)
        loop_timer_start(scene->world->loop, &scene->daemons,
                         rand_range(&scene->world->rand, SECOND, 15 * SECOND), on_trouble, scene);
}

static void undo_job(void *context, const struct slurm_store_job *job)
{
    struct choice *choice = context;

    if (!job->has_ended && choice->count < MAX_JOBS)
        choice->ids[choice->count++] = job->id;
}

/* Nothing is left held or suspended, no node out of service, and strangers leave. */
void bridge_slurm_end(struct bridge_scene *scene)
{
    struct slurm_store *slurm = scene->world->slurm;
    struct choice choice = { .scene = scene };

    loop_timer_stop(&scene->operators);
    scene->people_act = true;
    slurm_store_visit_jobs(slurm, undo_job, &choice);
    for (unsigned i = 0; i < choice.count; i++) {
        struct slurm_store_job job;

        if (!slurm_store_find_job(slurm, choice.ids[i], &job))
            continue;
        if (!bridge_note_of_job(scene, &job)->unit[0])
            (void)slurm_people_cancel(slurm, choice.ids[i], "alice", NULL);
        else if (strcmp(job.state, "SUSPENDED") == 0)
            (void)slurm_people_resume(slurm, choice.ids[i], NULL);
        else if (job.priority == 0 && job.restarts == 0)
            (void)slurm_people_release(slurm, choice.ids[i], NULL);
    }
    for (unsigned i = 1; i <= scene->node_count; i++) {
        struct slurm_store_node node;
        char name[32];

        (void)snprintf(name, sizeof(name), "node-%u", i);
        if (slurm_store_find_node(slurm, name, &node) &&
            (node.is_down ||
             (node.is_drained && !str_starts(str_of(node.reason), STR(BRIDGE_REASON)))))
            (void)slurm_people_resume_node(slurm, name, NULL);
    }
    scene->people_act = false;
}
