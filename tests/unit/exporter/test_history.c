/* test_history.c - starts and ends of jobs are counted, each once. */
#include "base/mem.h"
#include "exporter/history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { STARTED_S = 1000 };

struct rig {
    struct metrics *metrics;
    struct history *history;
    const struct slurm_object *last; /* as the cache has it */
    struct buf text;
};

static int set_up(void **state)
{
    struct rig *rig = mem_alloc(sizeof(*rig));

    rig->metrics = metrics_new();
    rig->history = history_new(rig->metrics, STARTED_S);
    buf_init(&rig->text, 1 << 20);
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    slurm_object_unref(rig->last);
    history_free(rig->history);
    metrics_free(rig->metrics);
    buf_done(&rig->text);
    mem_free(rig);
    return 0;
}

/* The job is now so; "": it is gone. */
static void becomes(struct rig *rig, const char *json)
{
    const struct slurm_object *next = NULL;
    struct err err = { .class = 0 };
    struct json_doc *doc;

    if (json[0]) {
        assert_int_equal(json_parse(str_of(json), 1 << 16, &doc, &err), 0);
        assert_int_equal(slurm_object_decode(&slurm_job_kind, json_root(doc), &next, &err), 0);
        json_doc_free(doc);
    }
    history_take(rig->history, rig->last, next);
    slurm_object_unref(rig->last);
    rig->last = next;
}

static bool shows(struct rig *rig, const char *line)
{
    buf_clear(&rig->text);
    metrics_write(rig->metrics, &rig->text);
    return strstr(buf_text(&rig->text), line) != NULL;
}

#define JOB(state, more)                                                                           \
    "{\"job_id\":7,\"submit_time\":1000,\"eligible_time\":1010,\"partition\":\"a\"," more          \
    "\"job_state\":[\"" state "\"]}"
#define RUNS JOB("RUNNING", "\"nodes\":\"n1\",\"start_time\":1040,")
#define ENDED                                                                                      \
    JOB("COMPLETED", "\"nodes\":\"n1\",\"start_time\":1040,\"end_time\":1100,\"time_limit\":2,")

static void a_start_is_counted_from_when_it_was_possible(void **state)
{
    becomes(*state, JOB("PENDING", ""));
    assert_false(shows(*state, "slinc_job_wait_seconds"));
    becomes(*state, RUNS);
    assert_true(shows(*state, "slinc_job_wait_seconds_sum{partition=\"a\",holder=\"job\"} 30\n"));
    assert_true(shows(*state, "slinc_job_wait_seconds_count{partition=\"a\",holder=\"job\"} 1\n"));
}

static void a_running_job_that_slurm_shows_as_waiting_again_started_once(void **state)
{
    becomes(*state, RUNS);
    becomes(*state, JOB("PENDING", ""));
    becomes(*state, RUNS);
    assert_true(shows(*state, "slinc_job_wait_seconds_count{partition=\"a\",holder=\"job\"} 1\n"));
}

static void an_end_is_counted_once_with_its_result(void **state)
{
    becomes(*state, RUNS);
    becomes(*state, ENDED);
    becomes(*state, ENDED);
    assert_true(
        shows(*state, "slinc_jobs_finished_total{partition=\"a\",result=\"completed\"} 1\n"));
    assert_true(
        shows(*state, "slinc_job_run_seconds_sum{partition=\"a\",result=\"completed\"} 60\n"));
    assert_true(shows(*state, "slinc_job_time_limit_used_ratio_sum{partition=\"a\"} 0.5\n"));
}

static void an_id_given_to_another_job_counts_anew(void **state)
{
    becomes(*state, ENDED);
    becomes(*state, "{\"job_id\":7,\"submit_time\":1200,\"partition\":\"a\",\"nodes\":\"n1\","
                    "\"start_time\":1201,\"end_time\":1202,\"job_state\":[\"FAILED\"]}");
    assert_true(
        shows(*state, "slinc_jobs_finished_total{partition=\"a\",result=\"completed\"} 1\n"));
    assert_true(shows(*state, "slinc_jobs_finished_total{partition=\"a\",result=\"failed\"} 1\n"));
}

static void what_happened_before_the_process_started_is_not_counted(void **state)
{
    becomes(*state, "{\"job_id\":7,\"submit_time\":1,\"partition\":\"a\",\"nodes\":\"n1\","
                    "\"start_time\":900,\"end_time\":999,\"job_state\":[\"COMPLETED\"]}");
    assert_false(shows(*state, "slinc_job"));
}

static void a_job_that_was_cancelled_while_it_waited_did_not_run(void **state)
{
    becomes(*state, JOB("PENDING", ""));
    becomes(*state, JOB("CANCELLED", "\"start_time\":1050,\"end_time\":1050,"));
    assert_true(
        shows(*state, "slinc_jobs_finished_total{partition=\"a\",result=\"cancelled\"} 1\n"));
    assert_false(shows(*state, "slinc_job_run_seconds"));
    assert_false(shows(*state, "slinc_job_wait_seconds"));
}

static void a_pods_job_is_told_from_others(void **state)
{
    becomes(*state,
            JOB("RUNNING", "\"flags\":[\"EXTERNAL_JOB\"],\"nodes\":\"n1\",\"start_time\":1040,"));
    becomes(*state, "");
    assert_true(shows(*state, "slinc_job_wait_seconds_count{partition=\"a\",holder=\"pod\"} 1\n"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_start_is_counted_from_when_it_was_possible),
        TEST(a_running_job_that_slurm_shows_as_waiting_again_started_once),
        TEST(an_end_is_counted_once_with_its_result),
        TEST(an_id_given_to_another_job_counts_anew),
        TEST(what_happened_before_the_process_started_is_not_counted),
        TEST(a_job_that_was_cancelled_while_it_waited_did_not_run),
        TEST(a_pods_job_is_told_from_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
