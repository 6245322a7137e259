/* process.c - the lives of our processes.
 *
 * Holds: whatever ends one, it comes again; a timer of a dead one never fires. */
#include "process.h"

enum { SECOND = 1000000 };

static void on_start(void *context)
{
    struct process *process = context;

    trace_line(&process->world->trace, "%s starts", process->user);
    process->type->start(process->owner);
}

void process_init(struct process *process, const struct process_type *type, void *owner,
                  struct world *world, unsigned number)
{
    *process = (struct process){ .type = type, .owner = owner, .world = world };
    (void)snprintf(process->user, sizeof(process->user), "replica-%u", number);
    loop_timer_start(world->loop, &process->restart, rand_range(&world->rand, 0, 3 * SECOND),
                     on_start, process);
}

static void die(struct process *process)
{
    loop_timer_stop(&process->stop);
    process->type->kill(process->owner);
}

void process_done(struct process *process)
{
    loop_timer_stop(&process->restart);
    die(process);
}

void process_restart(struct process *process)
{
    struct world *world = process->world;

    die(process);
    loop_timer_start(world->loop, &process->restart,
                     rand_range(&world->rand, SECOND / 10, 5 * SECOND), on_start, process);
}

/* ---- rollouts ---- */

static void on_gone(void *context)
{
    process_restart(context);
}

static void on_released(void *context)
{
    struct process *process = context;

    /* Not from inside the lease's own callback. */
    loop_timer_start(process->world->loop, &process->stop, 0, on_gone, process);
}

/* As run.c does it. */
static void on_finished(void *context)
{
    struct process *process = context;
    struct kube_lease *lease = process->type->lease(process->owner);

    if (lease)
        kube_lease_release(lease, on_released, process);
    else
        on_released(process);
}

void process_stop(struct process *process)
{
    struct engine *engine = process->type->engine(process->owner);

    if (!engine)
        return;
    trace_line(&process->world->trace, "%s is told to stop", process->user);
    engine_stop(engine, 10 * (int64_t)SECOND, on_finished, process);
}

static void on_stop(void *context)
{
    process_stop(context);
}

void process_stop_later(struct process *process)
{
    struct world *world = process->world;

    loop_timer_start(world->loop, &process->stop, rand_range(&world->rand, SECOND, 60 * SECOND),
                     on_stop, process);
}

/* ---- crashes ---- */

void process_plan_crash(struct world *world, unsigned within, bool lives_on)
{
    static const enum sim_fate fates[] = { FATE_DIES_BEFORE, FATE_DIES_AFTER, FATE_DIES_LONG_BEFORE,
                                           FATE_DIES_AGES_BEFORE };
    uint64_t number = sim_net_write_count(world->net) + 1 + rand_below(&world->rand, within);

    sim_net_crash_at(world->net, number, fates[rand_below(&world->rand, lives_on ? 4 : 2)]);
}
