/* test_run.c - the end of a process: calls first, then the lease; and never longer than allowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

#include "engine/run.h"
#include "io/loop_real.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/s/leases"

struct theatre {
    struct world world;
    struct kube_lease *lease;
    struct run *run;
    struct loop_timer cue, second_cue;
};

static int plan_patch(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    if (world->plans == 1)
        world_patch(world, plan, "m", "new");
    return 0;
}

/* The server as far as leases go: what was put in comes back. */
static struct fake_answer serve_lease(void *context, const struct fake_sent *sent)
{
    static char body[4096];
    const struct theatre *theatre = context;

    if (strncmp(sent->path, LEASES, strlen(LEASES)) != 0)
        fail_msg("unexpected %s %s", sent->method, sent->path);
    if (strcmp(sent->method, "GET") == 0)
        return (struct fake_answer){
            .status = 404,
            .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"no\"}"
        };
    snprintf(body, sizeof(body),
             "{\"kind\":\"Lease\",\"metadata\":{\"namespace\":\"s\",\"name\":\"l\",\"uid\":\"u\","
             "\"resourceVersion\":\"%zu\"},\"spec\":{\"holderIdentity\":\"me\"}}",
             fake_sent_count(theatre->world.fake));
    return (struct fake_answer){ .status = 200, .body = body };
}

static void set_up(struct theatre *theatre, bool with_lease)
{
    struct world *world = &theatre->world;
    struct kube_lease_options lease = { .ns = "s", .name = "l", .identity = "me" };

    *theatre = (struct theatre){ 0 };
    world_set_up(world, NULL);
    if (with_lease) {
        fake_serve(world->fake, serve_lease, theatre);
        theatre->lease = kube_lease_new(world->client, &world->rand, &lease);
        kube_lease_start(theatre->lease, NULL, NULL);
    }
    theatre->run = run_new(world->loop, &(struct run_options){ .engine = world->engine,
                                                               .lease = theatre->lease,
                                                               .lease_name = "l",
                                                               .metrics = world->metrics,
                                                               .without_signals = true });
    engine_start(world->engine);
    world_see(world, "m", 11, "old");
    world_sync(world);
    world->plan = plan_patch;
}

static void tear_down(struct theatre *theatre)
{
    run_free(theatre->run);
    kube_lease_free(theatre->lease);
    world_tear_down(&theatre->world);
}

static void stop_now(void *context)
{
    struct theatre *theatre = context;

    run_stop(theatre->run);
}

static void stop_after(struct theatre *theatre, struct loop_timer *cue, int64_t us)
{
    loop_timer_start(theatre->world.loop, cue, us, stop_now, theatre);
}

static size_t place_of(struct theatre *theatre, const char *method, const char *path)
{
    for (size_t i = fake_sent_count(theatre->world.fake); i > 0; i--) {
        const struct fake_sent *sent = fake_sent(theatre->world.fake, i - 1);

        if (strcmp(sent->method, method) == 0 && strcmp(sent->path, path) == 0)
            return i;
    }
    return 0;
}

/* ---- */

static void a_stop_ends_the_loop_and_is_clean(void **state)
{
    struct theatre theatre;
    int64_t from_us;

    set_up(&theatre, false);
    theatre.world.plan = NULL;
    from_us = loop_now_us(theatre.world.loop);
    stop_after(&theatre, &theatre.cue, SECOND);
    assert_int_equal(run_loop(theatre.run), RUN_OK);
    assert_int_equal(loop_now_us(theatre.world.loop) - from_us, SECOND);
    assert_int_equal(run_loop(theatre.run), RUN_OK); /* it stays ended */
    run_stop(theatre.run);
    tear_down(&theatre);
}

static void the_lease_is_released_after_the_last_answer(void **state)
{
    struct theatre theatre;
    int64_t answered_us;

    set_up(&theatre, true);
    world_ok(&theatre.world, "PATCH", MAPS "/m", world_map_text("m", 12, "new"), 4 * SECOND);
    stop_after(&theatre, &theatre.cue, SECOND);
    assert_int_equal(run_loop(theatre.run), RUN_OK);
    answered_us = fake_sent(theatre.world.fake, place_of(&theatre, "PATCH", MAPS "/m") - 1)->at_us +
                  4 * SECOND;

    const struct fake_sent *release = fake_last_sent(theatre.world.fake);

    assert_true(strncmp(release->path, LEASES, strlen(LEASES)) == 0);
    assert_true(release->at_us >= answered_us);
    assert_true(loop_now_us(theatre.world.loop) < answered_us + SECOND);
    assert_false(kube_lease_is_held(theatre.lease));
    tear_down(&theatre);
}

static bool may_not_release(void *context)
{
    return false;
}

static void a_lease_that_must_not_be_released_expires(void **state)
{
    struct theatre theatre;
    const struct fake_sent *last;

    set_up(&theatre, true);
    theatre.world.plan = NULL;
    run_free(theatre.run);
    theatre.run =
        run_new(theatre.world.loop, &(struct run_options){ .engine = theatre.world.engine,
                                                           .lease = theatre.lease,
                                                           .lease_name = "l",
                                                           .may_release = may_not_release,
                                                           .metrics = theatre.world.metrics,
                                                           .without_signals = true });
    stop_after(&theatre, &theatre.cue, SECOND);
    assert_int_equal(run_loop(theatre.run), RUN_HURRIED);
    last = fake_last_sent(theatre.world.fake);
    assert_non_null(strstr(last->body, "\"holderIdentity\":\"me\"")); /* it was taken, and kept */
    tear_down(&theatre);
}

static void time_runs_out_on_a_call_without_an_answer(void **state)
{
    struct theatre theatre;
    int64_t from_us;

    set_up(&theatre, false);
    fake_answer(theatre.world.fake, "PATCH", MAPS "/m",
                (struct fake_answer){ .status = 0, .times = FAKE_ALWAYS });
    fake_answer(theatre.world.fake, "GET", MAPS "/m",
                (struct fake_answer){ .status = 0, .times = FAKE_ALWAYS });
    world_run(&theatre.world, 2 * SECOND);
    run_free(theatre.run);
    theatre.run = run_new(theatre.world.loop, &(struct run_options){ .engine = theatre.world.engine,
                                                                     .stop_us = 5 * SECOND,
                                                                     .without_signals = true });
    from_us = loop_now_us(theatre.world.loop);
    run_stop(theatre.run);
    assert_int_equal(run_loop(theatre.run), RUN_HURRIED);
    assert_int_equal(loop_now_us(theatre.world.loop) - from_us, 5 * SECOND);
    tear_down(&theatre);
}

static void a_second_stop_ends_at_once(void **state)
{
    struct theatre theatre;
    int64_t from_us;

    set_up(&theatre, false);
    world_ok(&theatre.world, "PATCH", MAPS "/m", world_map_text("m", 12, "new"), 20 * SECOND);
    from_us = loop_now_us(theatre.world.loop);
    stop_after(&theatre, &theatre.cue, SECOND);
    stop_after(&theatre, &theatre.second_cue, 2 * SECOND);
    assert_int_equal(run_loop(theatre.run), RUN_HURRIED);
    assert_int_equal(loop_now_us(theatre.world.loop) - from_us, 2 * SECOND);
    tear_down(&theatre);
}

static void a_failure_stops_cleanly_and_says_so_by_its_code(void **state)
{
    struct theatre theatre;
    struct err why = { ERR_INVALID, "the configuration is gone" };

    set_up(&theatre, false);
    theatre.world.plan = NULL;
    run_fail(theatre.run, &why);
    assert_int_equal(run_loop(theatre.run), RUN_FAILED);
    tear_down(&theatre);
}

static void leadership_is_a_metric(void **state)
{
    struct theatre theatre;
    auto_buf struct buf out;

    set_up(&theatre, true);
    theatre.world.plan = NULL;
    buf_init(&out, 1 << 20);
    metrics_write(theatre.world.metrics, &out);
    assert_non_null(strstr(buf_text(&out), "leader_election_master_status{name=\"l\"} 0\n"));
    world_run(&theatre.world, SECOND);
    buf_clear(&out);
    metrics_write(theatre.world.metrics, &out);
    assert_non_null(strstr(buf_text(&out), "leader_election_master_status{name=\"l\"} 1\n"));
    assert_non_null(strstr(buf_text(&out), "process_resident_memory_bytes "));
    tear_down(&theatre);
}

static void keep_line(void *context, struct str line)
{
    buf_add_str(context, line);
}

static void why_the_lease_cannot_be_had_is_logged_once(void **state)
{
    struct theatre theatre;
    auto_buf struct buf lines = { .max = 1 << 20 };
    const char *first;

    set_up(&theatre, true);
    theatre.world.plan = NULL;
    for (int i = 0; i < 5; i++)
        fake_status(theatre.world.fake, "GET", LEASES "/l", 403, "Forbidden", "no rights, yet");
    log_setup(&(struct log_options){ .clock = &theatre.world.clock,
                                     .sink = keep_line,
                                     .context = &lines,
                                     .format = LOG_FORMAT_JSON });
    world_run(&theatre.world, 5 * SECOND);
    first = strstr(buf_text(&lines), "no rights, yet");
    assert_non_null(first);
    assert_null(strstr(first + 1, "no rights, yet"));
    world_run(&theatre.world, 10 * SECOND);
    assert_non_null(strstr(buf_text(&lines), "can be read and written"));
    tear_down(&theatre);
}

/* ---- real signals, in a child ---- */

static void raise_number(void *context)
{
    raise(*(const int *)context);
}

static int run_with_signal(int number)
{
    struct loop *loop = NULL;
    struct loop_timer cue = { 0 };
    struct run *run;
    int code;

    log_setup(&(struct log_options){ .level = LOG_LEVEL_ERROR });
    if (loop_new_real(&loop, NULL) < 0)
        return 99;
    run = run_new(loop, &(struct run_options){ 0 });
    loop_timer_start(loop, &cue, MS, raise_number, &number);
    code = (int)run_loop(run);
    run_free(run);
    loop_free(loop);
    return code;
}

static void both_signals_stop_cleanly(void **state)
{
    static const int numbers[] = { SIGTERM, SIGINT };

    for (size_t i = 0; i < 2; i++) {
        pid_t child = fork();
        int status = 0;

        if (child == 0)
            _exit(run_with_signal(numbers[i]));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), RUN_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_ends_the_loop_and_is_clean),
        cmocka_unit_test(the_lease_is_released_after_the_last_answer),
        cmocka_unit_test(a_lease_that_must_not_be_released_expires),
        cmocka_unit_test(time_runs_out_on_a_call_without_an_answer),
        cmocka_unit_test(a_second_stop_ends_at_once),
        cmocka_unit_test(a_failure_stops_cleanly_and_says_so_by_its_code),
        cmocka_unit_test(leadership_is_a_metric),
        cmocka_unit_test(why_the_lease_cannot_be_had_is_logged_once),
        cmocka_unit_test(both_signals_stop_cleanly),
    };

    return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
