/* test_slurm_trouble.c - an episode in which the bridge cannot use Slurm is said once, cheaply, and
 * not too late. */
#include "engine/slurm_health.h"

#include "base/log.h"
#include "bridge/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { SECOND_US = 1000000, PODS = 10000 };

static unsigned warnings, infos;

static void count_line(void *context, struct str line)
{
    (void)context;
    warnings += strstr(line.at, "\"warn\"") != NULL;
    infos += strstr(line.at, "\"info\"") != NULL;
}

static int catch_log(void **state)
{
    (void)state;
    log_setup(&(struct log_options){ .sink = count_line, .format = LOG_FORMAT_JSON });
    warnings = infos = 0;
    return 0;
}

static void an_episode_is_logged_once_and_its_words_stay_for_a_minute(void **state)
{
    struct slurm_trouble trouble = { .why = "" };

    (void)state;
    assert_false(slurm_trouble_update(&trouble, "", 1 * SECOND_US));
    assert_true(slurm_trouble_update(&trouble, "no token", 2 * SECOND_US));
    for (int64_t s = 3; s < 60; s++) /* errors of several kinds come in turn */
        assert_false(slurm_trouble_update(&trouble, s % 2 ? "no token" : "refused", s * SECOND_US));
    assert_string_equal(trouble.why, "no token");
    assert_int_equal(trouble.since_us, 2 * SECOND_US);
    assert_int_equal(warnings, 1);
    assert_true(slurm_trouble_update(&trouble, "refused", 62 * SECOND_US));
    assert_string_equal(trouble.why, "refused");
    assert_int_equal(warnings, 2);
    assert_true(slurm_trouble_update(&trouble, "", 63 * SECOND_US)); /* its end is said at once */
    assert_int_equal(infos, 1);
    assert_true(slurm_trouble_update(&trouble, "no token", 64 * SECOND_US));
}

static void pods_say_it_within_seconds_when_few_wait_and_within_a_minute_when_many_do(void **state)
{
    static const struct {
        size_t waiting;
        int longest_s;
    } cases[] = { { 0, 1 }, { 1, 2 }, { 500, 5 }, { PODS, 60 }, { 50 * PODS, 60 } };
    unsigned in_second[60] = { 0 };
    char uid[32];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int pod = 0; pod < 1000; pod++) {
            (void)snprintf(uid, sizeof(uid), "uid-%d", pod);
            assert_in_range(report_outage_delay_us(cases[i].waiting, uid), SECOND_US,
                            cases[i].longest_s * (int64_t)SECOND_US);
        }
    for (int pod = 0; pod < PODS; pod++) {
        (void)snprintf(uid, sizeof(uid), "uid-%d", pod);
        in_second[report_outage_delay_us(PODS, uid) / SECOND_US]++;
    }
    for (int second = 0; second < 60; second++)
        assert_true(in_second[second] < 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_episode_is_logged_once_and_its_words_stay_for_a_minute,
                               catch_log),
        cmocka_unit_test(pods_say_it_within_seconds_when_few_wait_and_within_a_minute_when_many_do),
    };

    return cmocka_run_group_tests_name("slurm trouble", tests, NULL, NULL);
}
