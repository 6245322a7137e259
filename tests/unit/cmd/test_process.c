/* test_process.c - listeners: which addresses are served, and errors that name the flag. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cmd/process.h"
#include "io/loop_real.h"

struct bench {
    struct loop *loop;
    struct metrics *metrics;
    struct health *health;
    struct process_listeners listeners;
};

static int set_up(void **state)
{
    static struct bench bench;

    bench = (struct bench){ .loop = NULL };
    assert_int_equal(loop_new_real(&bench.loop, NULL), 0);
    bench.metrics = metrics_new();
    bench.health = health_new(bench.loop, bench.metrics, NULL);
    *state = &bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    process_listen_end(&bench->listeners);
    health_free(bench->health);
    metrics_free(bench->metrics);
    loop_free(bench->loop);
    return 0;
}

static int listen_at(struct bench *bench, const char *metrics, const char *health, struct err *err)
{
    return process_listen(&bench->listeners, bench->loop, bench->health,
                          (struct process_address){ "--metrics", metrics },
                          (struct process_address){ "--health", health }, err);
}

static void an_address_that_is_none_is_an_error_with_the_flags_name(void **state)
{
    static const struct {
        const char *metrics, *health, *error;
    } rows[] = {
        { "here", "0", "--metrics: 'here' is no address: wants [HOST]:PORT" },
        { "", "here", "--health: 'here' is no address: wants [HOST]:PORT" },
        { "0", ":x", "--health: the port of ':x': " },
        { ":70000", "0", "--metrics: the port of ':70000': " },
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = { .class = 0 };

        assert_true(listen_at(bench, rows[i].metrics, rows[i].health, &err) < 0);
        assert_true(str_starts(str_of(err.text), str_of(rows[i].error)));
    }
}

static void an_empty_address_and_0_serve_nothing(void **state)
{
    struct bench *bench = *state;

    assert_int_equal(listen_at(bench, "", "0", NULL), 0);
    assert_null(bench->listeners.metrics);
    assert_null(bench->listeners.health);
}

static void replicas_on_one_host_have_different_identities(void **state)
{
    char first[PROCESS_IDENTITY], second[PROCESS_IDENTITY];
    uint64_t seed;

    process_identity(first, &seed);
    process_identity(second, &seed);
    assert_string_not_equal(first, second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_address_that_is_none_is_an_error_with_the_flags_name,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_empty_address_and_0_serve_nothing, set_up, tear_down),
        cmocka_unit_test(replicas_on_one_host_have_different_identities),
    };

    return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
