/* test_calls.c - requests to the fake libslurm: what is answered, and what is never asked.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent_test.h"
#include "calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char log_path[] = "/tmp/slinc-agent-calls-XXXXXX";

/* How often libslurm was asked to write something. */
static long writes(void)
{
    struct stat found;

    assert_int_equal(stat(log_path, &found), 0);
    return found.st_size;
}

static int ask(enum agent_call call, int64_t job_id, const char *text, struct json_doc **ret_doc)
{
    struct agent_answer answer;
    int status;

    agent_answer_init(&answer);
    calls_run(call, job_id, str_of(text), &answer);
    assert_int_equal(json_parse(buf_str(&answer.body), FRAME_MAX, ret_doc, NULL), 0);
    status = answer.status;
    agent_answer_done(&answer);
    return status;
}

static const struct json *first(const struct json_doc *doc, const char *array)
{
    return json_item(json_get(json_root(doc), array), 0);
}

#define EXTERNAL "\"flags\":[\"EXTERNAL_JOB\"]"

static void a_new_job_is_answered_with_its_id_and_sluid(void **state)
{
    static const struct {
        enum agent_call call;
        const char *text;
    } cases[] = {
        { AGENT_SUBMIT, "{\"job\":{" EXTERNAL ",\"name\":\"a\"}}" },
        { AGENT_ALLOCATE, "{\"job\":{" EXTERNAL ",\"name\":\"a\",\"immediate\":true}}" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_json_doc struct json_doc *doc = NULL;

        assert_int_equal(ask(cases[i].call, 0, cases[i].text, &doc), 200);
        assert_true(json_i64_or(json_get(json_root(doc), "job_id"), 0) > 0);
        assert_true(
            str_is(json_str(json_at(json_root(doc), "step_id", "sluid")), "s000000000002D"));
        assert_int_equal(json_len(json_get(json_root(doc), "errors")), 0);
    }
}

static void refusals_have_the_status_of_slurmrestd(void **state)
{
    static const struct {
        int number, status;
    } cases[] = { { 2016, 422 }, { 2000, 422 }, { 1007, 511 }, { 1800, 502 }, { 5004, 504 },
                  { 2017, 404 }, { 1005, 501 }, { 6010, 500 }, { 9000, 422 }, { 2189, 500 } };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_json_doc struct json_doc *doc = NULL;
        char text[128];

        snprintf(text, sizeof(text), "{\"job\":{" EXTERNAL ",\"name\":\"refuse-%d\"}}",
                 cases[i].number);
        assert_int_equal(ask(AGENT_SUBMIT, 0, text, &doc), cases[i].status);
        assert_int_equal(json_i64_or(json_get(first(doc, "errors"), "error_number"), 0),
                         cases[i].number);
    }
}

static void what_the_agent_does_not_know_is_never_asked_of_libslurm(void **state)
{
    static const struct {
        enum agent_call call;
        const char *text;
    } cases[] = {
        { AGENT_SUBMIT, "" },
        { AGENT_SUBMIT, "{" },
        { AGENT_SUBMIT, "{}" },
        { AGENT_SUBMIT, "{\"job\":{\"name\":\"a\"}}" }, /* an ordinary job */
        { AGENT_SUBMIT, "{\"job\":{" EXTERNAL ",\"script\":\"x\"}}" },
        { AGENT_SUBMIT, "{\"job\":{" EXTERNAL "},\"script\":\"x\"}" },
        { AGENT_ALLOCATE, "{\"job\":{" EXTERNAL "}}" }, /* would wait */
        { AGENT_ALLOCATE, "{\"job\":{" EXTERNAL ",\"immediate\":false}}" },
        { AGENT_UPDATE, "{\"job\":{\"comment\":\"x\"}}" },
        { AGENT_CANCEL_MANY, "{}" }, /* would be all jobs */
        { AGENT_CANCEL_MANY, "{\"jobs\":[]}" },
        { AGENT_CANCEL_MANY, "{\"jobs\":[\"1\",\"\"]}" },
        { AGENT_CANCEL_MANY, "{\"jobs\":[\"1\"],\"user_name\":\"a\"}" },
        { AGENT_COMPLETE, "{\"return_code\":0}" },
        { AGENT_COMPLETE, "{\"sluid\":\"s000000000002D\"}" },
        { AGENT_COMPLETE, "{\"sluid\":\"s000000000002D\",\"return_code\":4294967296}" },
        { AGENT_COMPLETE, "{\"sluid\":\"s000000000002D\",\"return_code\":-1}" },
        { AGENT_STATES, "" }, /* would be all jobs */
        { AGENT_STATES, "job_id=1&update_time=5" },
        { AGENT_STATES, "job_id=0" },
        { AGENT_STATES, "job_id=1_2" },
        { AGENT_WILL_RUN, "{}" },
        { AGENT_CALLS, "{}" },
        { AGENT_START, "{}" },
    };
    long before = writes();

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_json_doc struct json_doc *doc = NULL;

        if (ask(cases[i].call, 5, cases[i].text, &doc) != 501)
            fail_msg("case %zu: %s", i, cases[i].text);
    }
    assert_int_equal(writes(), before);
}

static void states_are_words(void **state)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct json *job;

    (void)state;
    assert_int_equal(ask(AGENT_STATES, 0, "job_id=7&job_id=8,9", &doc), 200);
    assert_int_equal(json_len(json_get(json_root(doc), "jobs")), 3);
    job = first(doc, "jobs");
    assert_true(str_is(json_str(json_get(job, "job_id")), "7"));
    assert_true(str_is(json_str(json_item(json_get(job, "state"), 0)), "RUNNING"));
    assert_true(str_is(json_str(json_item(json_get(job, "state"), 1)), "CONFIGURING"));
}

static void a_job_is_shown_as_slurmrestd_shows_it(void **state)
{
    auto_json_doc struct json_doc *doc = NULL, *none = NULL;
    const struct json *job;

    (void)state;
    assert_int_equal(ask(AGENT_JOB, 7, "", &doc), 200);
    job = first(doc, "jobs");
    assert_int_equal(json_i64_or(json_get(job, "job_id"), 0), 7);
    assert_int_equal(json_i64_or(json_get(job, "nice"), 0), -5);
    assert_int_equal(json_i64_or(json_at(job, "cpus", "number"), 0), 2);
    assert_true(json_bool_or(json_at(job, "time_limit", "infinite"), false));
    assert_int_equal(json_i64_or(json_at(job, "exit_code", "return_code", "number"), 0), 3);
    assert_true(str_is(json_str(json_item(json_get(job, "flags"), 0)), "EXTERNAL_JOB"));
    assert_true(str_is(json_str(json_at(job, "step_id", "sluid")), "s000000000002D"));
    assert_int_equal(ask(AGENT_JOB, 2000, "", &none), 404);
}

static void a_job_is_completed_only_if_it_is_the_one_that_is_meant(void **state)
{
    static const struct {
        int64_t job_id;
        const char *sluid;
        int status;
        long is_asked;
    } cases[] = {
        { 7, "s000000000002D", 200, 1 },
        { 500, "s000000000002D", 200, 1 }, /* it has ended already */
        { 7, "s000000000002E", 404, 0 },
        { 7, "sFZZZZZZZZZZZZ", 404, 0 },
        { 7, "sG000000000000", 501, 0 }, /* above 64 bits */
        { 7, "S000000000002D", 501, 0 },
        { 7, "s00000000002D", 501, 0 },
        { 7, "s000000000002U", 501, 0 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_json_doc struct json_doc *doc = NULL;
        long before = writes();
        char text[64];

        snprintf(text, sizeof(text), "{\"sluid\":\"%s\",\"return_code\":256}", cases[i].sluid);
        assert_int_equal(ask(AGENT_COMPLETE, cases[i].job_id, text, &doc), cases[i].status);
        assert_int_equal(writes() > before, cases[i].is_asked);
    }
}

static void cancels_name_only_the_jobs_that_failed(void **state)
{
    auto_json_doc struct json_doc *one = NULL, *many = NULL;

    (void)state;
    assert_int_equal(ask(AGENT_CANCEL, 7, "", &one), 200);
    assert_int_equal(json_len(json_get(json_root(one), "status")), 0);
    assert_int_equal(ask(AGENT_CANCEL_MANY, 0, "{\"jobs\":[\"7\",\"404\"]}", &many), 200);
    assert_int_equal(json_len(json_get(json_root(many), "status")), 1);
    assert_int_equal(json_i64_or(json_at(first(many, "status"), "error", "code"), 0), 2017);
}

static void will_run_takes_a_new_job_or_one_like_another(void **state)
{
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        { "{\"job\":{\"partition\":\"main\"}}", 200 },
        { "{\"job_id\":7}", 200 },
        { "{\"job_id\":7,\"job\":{\"time_limit\":{\"set\":true,\"number\":5}}}", 200 },
        { "{\"job\":{\"name\":\"refuse-2014\"}}", 422 },
        { "{\"job_id\":2000}", 404 },
        { "{\"job_id\":7,\"job\":{\"script\":\"x\"}}", 501 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_json_doc struct json_doc *doc = NULL;

        assert_int_equal(ask(AGENT_WILL_RUN, 0, cases[i].text, &doc), cases[i].status);
        if (cases[i].status != 200)
            continue;
        assert_int_equal(json_i64_or(json_get(json_root(doc), "start_time"), 0), 1800000000);
        assert_true(str_is(json_str(json_get(json_root(doc), "partition")), "main"));
    }
}

static int prepare(void **state)
{
    int fd = mkstemp(log_path);

    (void)state;
    (void)close(fd);
    return fd < 0 ? -1 : setenv("FAKE_LIBSLURM_LOG", log_path, 1);
}

static int tidy(void **state)
{
    (void)state;
    return unlink(log_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_job_is_answered_with_its_id_and_sluid),
        cmocka_unit_test(refusals_have_the_status_of_slurmrestd),
        cmocka_unit_test(what_the_agent_does_not_know_is_never_asked_of_libslurm),
        cmocka_unit_test(states_are_words),
        cmocka_unit_test(a_job_is_shown_as_slurmrestd_shows_it),
        cmocka_unit_test(a_job_is_completed_only_if_it_is_the_one_that_is_meant),
        cmocka_unit_test(cancels_name_only_the_jobs_that_failed),
        cmocka_unit_test(will_run_takes_a_new_job_or_one_like_another),
    };

    return cmocka_run_group_tests_name("agent/calls", tests, prepare, tidy);
}
