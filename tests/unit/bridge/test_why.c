/* test_why.c - a pod that names a job which the caches do not have: the job is read for the answer.
 */
#include "bridge/why.h"

#include "base/mem.h"
#include "fake_transport.h"
#include "worlds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define JOB7   "/slurm/v0.0.45/job/7"
#define SECRET "0123456789abcdef0123456789abcdef"

enum { SECOND_US = 1000000 };

struct bench {
    struct small_world small;
    struct fake_transport *fake;
    struct slurm_token *token;
    struct slurm_client *slurm;
    struct why_reads reads;
    struct json_doc *given;
    int status; /* of the answer; 0: there is none */
    char text[8192];
};

static int up(void **state)
{
    static const char given[] =
        "{\"pods\":[{\"name\":\"a\",\"created\":90,\"job\":7}],\"nodes\":[{\"name\":\"n1\"}]}";
    struct bench *bench = mem_alloc(sizeof(*bench));
    struct loop *loop;

    assert_int_equal(json_parse(str_of(given), 4096, &bench->given, NULL), 0);
    small_world_init(&bench->small, json_root(bench->given));
    loop = bench->small.loop;
    bench->fake = fake_transport_new(loop);
    assert_int_equal(
        slurm_token_new_minted(&bench->small.clock, STR(SECRET), "slurm", 900, &bench->token, NULL),
        0);
    bench->slurm = slurm_client_new(loop, fake_http(bench->fake), bench->token,
                                    &(struct slurm_client_options){ .version = 45, .seed = 1 });
    why_reads_init(&bench->reads, &bench->small.world, bench->slurm);
    *state = bench;
    return 0;
}

static int down(void **state)
{
    struct bench *bench = *state;

    why_reads_stop(&bench->reads);
    slurm_client_free(bench->slurm);
    slurm_token_free(bench->token);
    fake_transport_free(bench->fake);
    small_world_done(&bench->small);
    json_doc_free(bench->given);
    mem_free(bench);
    return 0;
}

static void on_answer(void *context, int status, struct str text)
{
    struct bench *bench = context;

    assert_int_equal(bench->status, 0);
    bench->status = status;
    (void)snprintf(bench->text, sizeof(bench->text), STR_FMT, STR_ARG(text));
}

static void job_7_is(struct bench *bench, const char *unit)
{
    char body[1024];

    (void)snprintf(
        body, sizeof(body),
        "{\"jobs\":[{\"job_id\":7,\"job_state\":[\"PENDING\"],\"flags\":["
        "\"EXTERNAL_JOB\"],\"partition\":\"slurm-bridge\",\"state_reason\":\"Priority\","
        "\"admin_comment\":\"{\\\"pods\\\":[\\\"default/a\\\"],\\\"v\\\":1,"
        "\\\"cluster\\\":\\\"%s\\\",\\\"release\\\":\\\"%s\\\",\\\"unit\\\":\\\"%s.1\\\"}\"}],"
        "\"errors\":[]}",
        bench->small.world.owner->cluster.at, bench->small.world.owner->release.at, unit);
    fake_answer(bench->fake, "GET", JOB7, (struct fake_answer){ .status = 200, .body = body });
}

static void a_job_that_no_cache_has_is_read_for_the_answer(void **state)
{
    struct bench *bench = *state;

    job_7_is(bench, small_world_key(&bench->small, "a"));
    why_ask(&bench->reads, STR("default/a"), on_answer, bench);
    assert_int_equal(bench->status, 0);
    fake_run_for(bench->fake, SECOND_US);
    assert_int_equal(bench->status, 200);
    assert_non_null(strstr(bench->text, "\"slurm\":{\"id\":7,\"state\":\"pending\""));
    assert_non_null(strstr(bench->text, "\"reason\":\"Priority\""));
}

static void the_job_of_another_unit_is_not_shown(void **state)
{
    struct bench *bench = *state;

    job_7_is(bench, "default/another");
    why_ask(&bench->reads, STR("default/a"), on_answer, bench);
    fake_run_for(bench->fake, SECOND_US);
    assert_int_equal(bench->status, 200);
    assert_null(strstr(bench->text, "\"slurm\":"));
}

static void without_slurm_the_answer_is_what_is_known(void **state)
{
    struct bench *bench = *state;

    fake_answer(bench->fake, "GET", JOB7, (struct fake_answer){ .status = 0 });
    why_ask(&bench->reads, STR("default/a"), on_answer, bench);
    fake_run_for(bench->fake, 3 * SECOND_US);
    assert_int_equal(bench->status, 200);
    assert_non_null(strstr(bench->text, "\"unit\":"));
    assert_null(strstr(bench->text, "\"slurm\":"));
}

static void a_pod_that_is_not_there_is_said_at_once(void **state)
{
    struct bench *bench = *state;

    why_ask(&bench->reads, STR("default/b"), on_answer, bench);
    assert_int_equal(bench->status, 404);
}

static void who_stops_gets_no_answer(void **state)
{
    struct bench *bench = *state;

    job_7_is(bench, "default/another");
    why_ask(&bench->reads, STR("default/a"), on_answer, bench);
    why_reads_stop(&bench->reads);
    fake_run_for(bench->fake, SECOND_US);
    assert_int_equal(bench->status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_job_that_no_cache_has_is_read_for_the_answer),
        TEST(the_job_of_another_unit_is_not_shown),
        TEST(without_slurm_the_answer_is_what_is_known),
        TEST(a_pod_that_is_not_there_is_said_at_once),
        TEST(who_stops_gets_no_answer),
    };

    return cmocka_run_group_tests_name("why", tests, NULL, NULL);
}
