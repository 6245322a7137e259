/* world.c - one simulated world, and the running of scenarios in it. */
#include "world.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdarg.h>

enum { MAX_STEPS = 100000 }; /* forty times what a run takes */

static const int64_t wall_us = INT64_C(1767225600000000); /* 2026-01-01 */

/* ---- the cluster's own controllers work now and then ---- */

static void on_background(void *context)
{
    struct world *world = context;

    (void)api_store_step(world->store);
    if (api_store_has_work(world->store))
        loop_timer_start(world->loop, &world->background, rand_range(&world->rand, 1000, 500000),
                         on_background, world);
}

static void on_change(void *context, const struct api_change *change)
{
    struct world *world = context;

    if (!loop_timer_is_armed(&world->background))
        loop_timer_start(world->loop, &world->background, rand_range(&world->rand, 1000, 500000),
                         on_background, world);
}

/* What the program under test logs is part of what happened. */
static void on_log(void *context, struct str line)
{
    trace_line(context, "log " STR_FMT, STR_ARG(str_trim(line)));
}

void world_init(struct world *world, uint64_t seed, FILE *trace, const struct sim_hooks *hooks)
{
    *world = (struct world){ .seed = seed };
    clock_init_virtual(&world->clock, wall_us);
    rand_init(&world->rand, seed);
    trace_init(&world->trace, &world->clock, trace);
    log_setup(&(struct log_options){ .format = LOG_FORMAT_TEXT,
                                     .clock = &world->clock,
                                     .sink = on_log,
                                     .context = &world->trace });
    world->loop = loop_new_virtual(&world->clock);
    world->store = api_store_new(&world->clock, seed);
    api_store_listen(world->store, on_change, world);
    world->net = sim_net_new(world->loop, world->store, &world->rand, &world->trace, hooks);
}

void world_add_slurm(struct world *world, const struct slurm_store_options *options)
{
    struct slurm_store_options own = options ? *options : (struct slurm_store_options){ .seed = 0 };

    if (own.seed == 0)
        own.seed = world->seed + 1;
    world->slurm = slurm_store_new(&world->clock, &own);
    sim_net_add_slurm(world->net, world->slurm);
}

void world_done(struct world *world)
{
    sim_net_free(world->net);
    slurm_store_free(world->slurm);
    loop_timer_stop(&world->background);
    api_store_free(world->store);
    loop_free(world->loop);
    log_setup(NULL);
}

void world_break(struct world *world, const char *format, ...)
{
    va_list args;

    if (world->broken.class)
        return;
    va_start(args, format);
    (void)err_setv(&world->broken, ERR_BUG, format, args);
    va_end(args);
    trace_line(&world->trace, "BROKEN %s", world->broken.text);
}

int world_call(struct world *world, const char *user, const char *method, const char *target,
               const char *body)
{
    struct api_answer answer;
    int status;

    api_answer_init(&answer);
    api_serve(world->store,
              &(struct api_request){ method, str_of(target),
                                     strcmp(method, "PATCH") == 0
                                         ? STR("application/merge-patch+json")
                                         : STR("application/json"),
                                     str_of(body), user },
              &answer);
    status = answer.status;
    trace_line(&world->trace, "%s %s %s %d %s", user, method, target, status, body ? body : "");
    api_answer_done(&answer);
    return status;
}

void world_forget_history(struct world *world)
{
    trace_line(&world->trace, "history is compacted");
    api_store_compact(world->store, api_store_version(world->store));
}

size_t world_choose(struct world *world, const unsigned *weight, size_t stride, size_t count)
{
    const char *rows = (const char *)weight;
    unsigned total = 0;
    size_t chosen = 0;

    for (size_t i = 0; i < count; i++)
        total += *(const unsigned *)(const void *)(rows + i * stride);

    uint64_t at = rand_below(&world->rand, total);

    for (;; chosen++) {
        unsigned here = *(const unsigned *)(const void *)(rows + chosen * stride);

        if (at < here)
            return chosen;
        at -= here;
    }
}

/* ---- a run ---- */

static void run(struct world *world, const struct scenario *scenario, void *scene)
{
    while (!world->broken.class && !scenario->is_over(scene)) {
        if (!loop_step(world->loop)) {
            world_break(world, "nothing is left to do, and it is not over");
            return;
        }
        if (++world->steps > MAX_STEPS) {
            world_break(world, "still not over after %d steps", MAX_STEPS);
            return;
        }
        scenario->check(scene);
    }
    if (!world->broken.class && scenario->finish)
        scenario->finish(scene);
}

static void report(const struct world *world, const struct scenario *scenario)
{
    (void)fprintf(stderr, "%s: seed %llu, step %llu: %s\n", scenario->name,
                  (unsigned long long)world->seed, (unsigned long long)world->steps,
                  world->broken.text);
    trace_print_tail(&world->trace, stderr);
    (void)fprintf(stderr, "replay: sim --scenario %s --seed %llu --trace\n", scenario->name,
                  (unsigned long long)world->seed);
}

int world_run(const struct scenario *scenario, uint64_t seed, FILE *trace,
              struct world_result *ret_result, struct err *err)
{
    struct world *world = mem_alloc(sizeof(*world));
    struct sim_hooks hooks = *scenario->hooks;
    int result = 0;

    hooks.context = world;
    world_init(world, seed, trace, &hooks);

    void *scene = world->scene = scenario->start(world);

    run(world, scenario, scene);
    *ret_result = (struct world_result){ .steps = world->steps,
                                         .writes = sim_net_write_count(world->net),
                                         .lines = world->trace.lines,
                                         .digest = world->trace.digest,
                                         .virtual_us = clock_now_us(&world->clock) };
    if (world->broken.class) {
        report(world, scenario);
        result =
            err_set(err, ERR_BUG, "seed %llu: %s", (unsigned long long)seed, world->broken.text);
    }
    scenario->free(scene);
    world_done(world);
    mem_free(world);
    return result;
}
