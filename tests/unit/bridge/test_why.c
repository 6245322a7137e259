/* test_why.c - a pod that names a job which the caches do not have: the job is read for the answer.
 */
#include "bridge/why.h"

#include "base/mem.h"
#include "fake_transport.h"
#include "worlds.h"

#include <inttypes.h>
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
        "{\"pods\":[{\"name\":\"a\",\"created\":90,\"job\":7},{\"name\":\"c\",\"created\":90,"
        "\"cpu\":\"4\"}],\"nodes\":[{\"name\":\"n1\"}],\"partitions\":[{\"name\":\"fast\"}],"
        "\"jobs\":[{"
        "\"id\":8,\"pod\":\"c\",\"state\":\"PENDING\",\"time_limit\":60}]}";
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
    why_ask(&bench->reads, STR("default/a"), NULL, on_answer, bench);
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
    why_ask(&bench->reads, STR("default/a"), NULL, on_answer, bench);
    fake_run_for(bench->fake, SECOND_US);
    assert_int_equal(bench->status, 200);
    assert_null(strstr(bench->text, "\"slurm\":"));
}

static void without_slurm_the_answer_is_what_is_known(void **state)
{
    struct bench *bench = *state;

    fake_answer(bench->fake, "GET", JOB7, (struct fake_answer){ .status = 0 });
    why_ask(&bench->reads, STR("default/a"), NULL, on_answer, bench);
    fake_run_for(bench->fake, 3 * SECOND_US);
    assert_int_equal(bench->status, 200);
    assert_non_null(strstr(bench->text, "\"unit\":"));
    assert_null(strstr(bench->text, "\"slurm\":"));
}

static void a_pod_that_is_not_there_is_said_at_once(void **state)
{
    struct bench *bench = *state;

    why_ask(&bench->reads, STR("default/b"), NULL, on_answer, bench);
    assert_int_equal(bench->status, 404);
}

static void who_stops_gets_no_answer(void **state)
{
    struct bench *bench = *state;

    job_7_is(bench, "default/another");
    why_ask(&bench->reads, STR("default/a"), NULL, on_answer, bench);
    why_reads_stop(&bench->reads);
    fake_run_for(bench->fake, SECOND_US);
    assert_int_equal(bench->status, 0);
}

/* ---- when would it start ---- */

static struct fake_transport *with_agent(struct bench *bench)
{
    struct fake_transport *agent = fake_transport_new(bench->small.loop);

    slurm_client_use_agent(bench->slurm, fake_http(agent));
    fake_answer(agent, "GET", "/agent/v1/ping",
                (struct fake_answer){ .status = 200,
                                      .body = "{\"slurm\":\"26.05.5\",\"slurmctld\":\"up\"}",
                                      .times = FAKE_ALWAYS });
    fake_run_for(agent, 1000);
    fake_forget_sent(agent);
    return agent;
}

static void will_run(struct fake_transport *agent, int64_t start_s)
{
    char body[200];

    (void)snprintf(body, sizeof(body),
                   "{\"errors\":[],\"start_time\":%" PRId64 ",\"nodes\":\"n1\"}", start_s);
    fake_answer(agent, "POST", "/agent/v1/will-run",
                (struct fake_answer){ .status = 200, .body = body });
}

static void done_with(struct bench *bench, struct fake_transport *agent)
{
    why_reads_stop(&bench->reads);
    slurm_client_free(bench->slurm);
    bench->slurm = NULL;
    fake_transport_free(agent);
}

static void of_a_job_that_waits_slurmctld_is_asked_when_it_starts(void **state)
{
    struct bench *bench = *state;
    struct fake_transport *agent = with_agent(bench);
    int64_t now_s = clock_wall_us(&bench->small.clock) / SECOND_US;

    will_run(agent, now_s + 7200);
    will_run(agent, now_s + 7200); /* half the time, */
    will_run(agent, now_s + 600);  /* a quarter, */
    will_run(agent, now_s + 7190); /* fewer CPUs, */
    fake_answer(
        agent, "POST", "/agent/v1/will-run", /* another partition */
        (struct fake_answer){ .status = 422, .body = "{\"errors\":[{\"error_number\":2000}]}" });
    why_ask(&bench->reads, STR("default/c"), NULL, on_answer, bench);
    fake_run_for(agent, SECOND_US / 2);
    assert_int_equal(bench->status, 200);
    assert_int_equal(fake_sent_count(agent), 5);
    assert_string_equal(fake_sent(agent, 0)->body, "{\"job_id\":8,\"job\":{}}");
    assert_non_null(strstr(fake_sent(agent, 1)->body, "\"number\":30"));
    assert_non_null(strstr(fake_sent(agent, 2)->body, "\"number\":15"));
    assert_non_null(strstr(fake_sent(agent, 3)->body, "\"cpus_per_task\":2"));
    assert_non_null(strstr(fake_sent(agent, 4)->body, "\"partition\":\"fast\""));
    assert_non_null(strstr(bench->text, "\"willRun\":{\"nodes\":\"n1\",\"start\":"));
    assert_non_null(strstr(bench->text, "\"change\":\"a time limit of 15 minutes\""));
    assert_null(strstr(bench->text, "30 minutes"));
    assert_null(strstr(bench->text, "CPUs"));
    /* and not again at once */
    bench->status = 0;
    why_ask(&bench->reads, STR("default/c"), NULL, on_answer, bench);
    assert_int_equal(bench->status, 200);
    assert_null(strstr(bench->text, "willRun"));
    done_with(bench, agent);
}

static void a_change_is_asked_about_alone(void **state)
{
    struct bench *bench = *state;
    struct fake_transport *agent = with_agent(bench);
    const struct slurm_change change = { .time_limit = 10, .cpus = 1, .partition = "fast" };

    will_run(agent, clock_wall_us(&bench->small.clock) / SECOND_US + 5);
    why_ask(&bench->reads, STR("default/c"), &change, on_answer, bench);
    fake_run_for(agent, SECOND_US / 2);
    assert_int_equal(bench->status, 200);
    assert_int_equal(fake_sent_count(agent), 1);
    assert_string_equal(fake_sent(agent, 0)->body,
                        "{\"job_id\":8,\"job\":{\"time_limit\":{\"set\":true,\"infinite\":false,"
                        "\"number\":10},\"cpus_per_task\":1,\"partition\":\"fast\"}}");
    assert_non_null(strstr(bench->text, "\"whatIf\":{"));
    assert_null(strstr(bench->text, "willRun"));
    done_with(bench, agent);
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
        TEST(of_a_job_that_waits_slurmctld_is_asked_when_it_starts),
        TEST(a_change_is_asked_about_alone),
    };

    return cmocka_run_group_tests_name("why", tests, NULL, NULL);
}
