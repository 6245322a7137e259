/* run.c - RUNNING -> FINISHING (calls in flight) -> RELEASING (the lease) -> ENDED.
 *
 * Holds: the lease is released only after nothing of ours is in flight; the loop ends within
 * stop_us of the first stop, whatever the server does. */
#include "engine/run.h"

#include "base/log.h"
#include "base/mem.h"
#include "engine/engine_metrics.h"
#include "io/loop_real.h"

#include <signal.h>

enum run_state { RUN_RUNNING, RUN_FINISHING, RUN_RELEASING, RUN_ENDED };

struct run {
    struct loop *loop;
    struct run_options options;
    struct loop_signal *terminate, *interrupt;
    struct loop_timer deadline;
    enum run_state state;
    enum run_exit exit;
};

static void end(struct run *run)
{
    loop_timer_stop(&run->deadline);
    run->state = RUN_ENDED;
    loop_stop(run->loop);
}

static void end_hurried(struct run *run, const char *why)
{
    static const char *const states[] = { "running", "finishing calls in flight",
                                          "releasing the lease", "ended" };

    log_warn("stopped before all was finished", LOG_TEXT("reason", why),
             LOG_TEXT("while", states[run->state]));
    if (run->exit == RUN_OK)
        run->exit = RUN_HURRIED;
    end(run);
}

static void on_deadline(void *context)
{
    end_hurried(context, "time is up");
}

static void on_released(void *context)
{
    struct run *run = context;

    if (run->state != RUN_RELEASING)
        return;
    log_info("stopped");
    end(run);
}

static bool may_release(const struct run *run)
{
    return !run->options.may_release || run->options.may_release(run->options.may_release_context);
}

static void on_finished(void *context)
{
    struct run *run = context;

    if (run->state != RUN_FINISHING)
        return;
    run->state = RUN_RELEASING;
    if (run->options.lease && !may_release(run))
        end_hurried(run, "what was sent may still take effect: the lease is left to expire");
    else if (run->options.lease)
        kube_lease_release(run->options.lease, on_released, run);
    else
        on_released(run);
}

void run_stop(struct run *run)
{
    if (run->state == RUN_ENDED)
        return;
    if (run->state != RUN_RUNNING) {
        end_hurried(run, "told to stop a second time");
        return;
    }
    log_info("stopping");
    run->state = RUN_FINISHING;
    loop_timer_start(run->loop, &run->deadline, run->options.stop_us, on_deadline, run);
    if (run->options.health)
        health_stopping(run->options.health);
    if (run->options.engine)
        engine_stop(run->options.engine, run->options.stop_us, on_finished, run);
    else
        on_finished(run);
}

void run_fail(struct run *run, const struct err *why)
{
    log_error("cannot go on", LOG_ERROR(why));
    run->exit = RUN_FAILED;
    if (run->state == RUN_RUNNING)
        run_stop(run);
}

static void refresh_leader(void *context)
{
    const struct run *run = context;
    const struct run_options *options = &run->options;

    metrics_set(options->metrics, &engine_metrics[METRIC_LEADER],
                kube_lease_is_held(options->lease) ? 1 : 0, options->lease_name, NULL);
}

static void on_lease_trouble(void *context, const char *error)
{
    const struct run *run = context;
    const char *name = run->options.lease_name ? run->options.lease_name : "";

    if (error[0])
        log_warn("the lease can be neither had nor kept", LOG_TEXT("lease", name),
                 LOG_TEXT("error", error));
    else
        log_info("the lease can be read and written", LOG_TEXT("lease", name));
}

static void on_signal(void *context)
{
    run_stop(context);
}

struct run *run_new(struct loop *loop, const struct run_options *options)
{
    struct run *run = mem_alloc(sizeof(*run));

    run->loop = loop;
    run->options = *options;
    if (run->options.stop_us <= 0)
        run->options.stop_us = RUN_STOP_US;
    if (options->metrics)
        process_metrics_watch(options->metrics);
    if (options->metrics && options->lease)
        metrics_on_scrape(options->metrics, refresh_leader, run);
    if (options->lease)
        kube_lease_on_trouble(options->lease, on_lease_trouble, run);
    if (!options->without_signals) {
        run->terminate = loop_signal_new(loop, SIGTERM, on_signal, run);
        run->interrupt = loop_signal_new(loop, SIGINT, on_signal, run);
    }
    return run;
}

void run_free(struct run *run)
{
    if (!run)
        return;
    loop_timer_stop(&run->deadline);
    if (run->options.lease)
        kube_lease_on_trouble(run->options.lease, NULL, NULL);
    loop_signal_free(run->terminate);
    loop_signal_free(run->interrupt);
    mem_free(run);
}

enum run_exit run_loop(struct run *run)
{
    if (run->state != RUN_ENDED)
        loop_run(run->loop);
    return run->exit;
}
