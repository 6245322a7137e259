/* test_agent.c - two addresses: what goes to the agent, and what slurmrestd is asked after all. */
#include "slurm/agent.h"
#include "slurm/submit.h"
#include "slurm/what_if.h"
#include "world.h"

#define PING     "/agent/v1/ping"
#define UP       "{\"agent\":\"1\",\"slurm\":\"26.05.5\",\"slurmctld\":\"up\"}"
#define ALLOCATE V45 "/job/allocate"
#define REFUSED  "{\"errors\":[{\"error_number\":0,\"error\":\"not here\"}]}"
#define JOB_7    "{\"job_id\":7,\"errors\":[]}"

struct two { /* the world is the way to slurmrestd */
    struct world *world;
    struct fake_transport *agent;
};

static struct two two;

static int up(void **state)
{
    int result = world_up((void **)&two.world);

    two.agent = fake_transport_new(two.world->loop);
    slurm_client_use_agent(two.world->client, fake_http(two.agent));
    *state = &two;
    return result;
}

static int down(void **state)
{
    int result;

    (void)state;
    slurm_client_free(two.world->client);
    two.world->client = NULL;
    fake_transport_free(two.agent);
    result = world_down((void **)&two.world);
    return result;
}

static void pings(const char *body, uint32_t times)
{
    fake_answer(two.agent, "GET", PING,
                (struct fake_answer){ .status = 200, .body = body, .times = times });
}

static void run_for(int64_t us)
{
    fake_run_for(two.agent, us);
}

static bool is_up(void)
{
    return slurm_agent_is_up(two.world->client);
}

static struct slurm_agent_status status(void)
{
    struct slurm_agent_status found;

    assert_true(slurm_agent_status(two.world->client, &found));
    return found;
}

static enum slurm_class ends(int64_t within_us)
{
    run_for(within_us);
    assert_int_equal(two.world->ends, 1);
    two.world->ends = 0;
    return two.world->answer.error.class;
}

static enum slurm_class allocates(void)
{
    slurm_job_allocate(two.world->client, STR("{\"job\":{}}"), world_done, two.world);
    return ends(20 * SECOND_US);
}

/* How often the way to either was asked for something else than whether it is there. */
static unsigned asked(struct fake_transport *fake)
{
    unsigned count = 0;

    for (size_t i = 0; i < fake_sent_count(fake); i++)
        count += strcmp(fake_sent(fake, i)->path, PING) != 0;
    return count;
}

/* ---- which way ---- */

static void until_its_first_good_ping_slurmrestd_is_asked(void **state)
{
    (void)state;
    fake_answer(two.agent, "GET", PING,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = FAKE_ALWAYS });
    world_answers(two.world, "POST", ALLOCATE, 200, JOB_7);
    assert_false(is_up());
    assert_int_equal(allocates(), SLURM_DONE);
    assert_false(two.world->answer.by_agent);
    assert_int_equal(asked(two.agent), 0);
    assert_true(status().is_known && !status().is_up);
}

static void what_it_answers_goes_there_without_our_token(void **state)
{
    const struct fake_sent *sent;

    (void)state;
    pings(UP, FAKE_ALWAYS);
    run_for(1);
    assert_true(is_up());
    assert_string_equal(status().version, "26.05.5");
    fake_answer(two.agent, "POST", ALLOCATE, (struct fake_answer){ .status = 200, .body = JOB_7 });
    slurm_job_allocate(two.world->client, STR("{\"job\":{}}"), world_done, two.world);
    run_for(1);
    assert_int_equal(two.world->answer.error.class, SLURM_DONE);
    assert_true(two.world->answer.by_agent);
    assert_int_equal(asked(two.world->fake), 0);
    assert_int_equal(status().answered, 1);
    sent = fake_last_sent(two.agent);
    assert_null(fake_sent_header(sent, "X-SLURM-USER-TOKEN"));
    assert_string_equal(sent->body, "{\"job\":{}}");
}

static void what_it_does_not_answer_goes_to_slurmrestd(void **state)
{
    (void)state;
    pings(UP, FAKE_ALWAYS);
    run_for(1);
    world_answers(two.world, "GET", V45 "/nodes/", 200, NODES_BODY);
    slurm_nodes_list(two.world->client, 0, world_done, two.world);
    assert_int_equal(ends(SECOND_US), SLURM_DONE);
    assert_int_equal(asked(two.agent), 0);
}

static void an_agent_that_does_not_reach_slurmctld_is_not_used(void **state)
{
    (void)state;
    pings("{\"slurm\":\"25.05.1\",\"slurmctld\":\"down\"}", 1);
    pings("{\"slurm\":\"26.05.5\",\"slurmctld\":\"up\"}", FAKE_ALWAYS);
    run_for(1);
    assert_false(is_up());
    assert_non_null(strstr(status().why, "25.05.1"));
    run_for(SECOND_US);
    assert_true(is_up());
    assert_string_equal(status().why, "");
}

static void where_slurmrestd_speaks_an_older_version_it_is_not_used(void **state)
{
    struct slurm_client_options options = { .version = 44 };

    (void)state;
    world_client(two.world, &options);
    slurm_client_use_agent(two.world->client, fake_http(two.agent));
    pings(UP, FAKE_ALWAYS);
    run_for(1);
    assert_false(is_up());
    world_answers(two.world, "POST", "/slurm/v0.0.44/job/allocate", 200, JOB_7);
    assert_int_equal(allocates(), SLURM_DONE);
    assert_int_equal(asked(two.agent), 0);
}

/* ---- proof that nothing was done ---- */

static void what_it_cannot_do_or_has_no_time_for_goes_to_slurmrestd_at_once(void **state)
{
    static const struct fake_answer cases[] = {
        { .status = 501, .body = REFUSED },
        { .status = 503, .body = REFUSED },
        { .status = 511, .body = "{\"errors\":[{\"error_number\":1007,\"error\":\"token\"}]}" },
        { .class = ERR_UNAVAILABLE },
    };

    (void)state;
    pings(UP, FAKE_ALWAYS);
    run_for(1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fake_answer(two.agent, "POST", ALLOCATE, cases[i]);
        world_answers(two.world, "POST", ALLOCATE, 200, JOB_7);
        slurm_job_allocate(two.world->client, STR("{\"job\":{}}"), world_done, two.world);
        assert_int_equal(ends(1000), SLURM_DONE);
        assert_int_equal(two.world->answer.tries, 2);
        assert_false(two.world->answer.by_agent);
        assert_int_equal(asked(two.agent), i + 1);
        assert_int_equal(asked(two.world->fake), i + 1);
        assert_int_equal(status().passed_on, i + 1);
        run_for(SECOND_US);
        assert_true(is_up());
    }
}

static bool never(void *context)
{
    (void)context;
    return false;
}

static void a_write_does_not_go_on_to_slurmrestd_once_it_may_not_be_sent(void **state)
{
    struct slurm_client_options options = { .version = 45, .may_write = never };

    (void)state;
    world_client(two.world, &options);
    slurm_client_use_agent(two.world->client, fake_http(two.agent));
    pings(UP, FAKE_ALWAYS);
    run_for(1);
    fake_answer(two.agent, "POST", ALLOCATE, (struct fake_answer){ .status = 503 });
    assert_int_equal(allocates(), SLURM_UNAVAILABLE);
    assert_true(two.world->answer.error.nothing_done);
    assert_int_equal(asked(two.world->fake), 0);
}

/* ---- no proof ---- */

static void a_write_without_answer_is_unresolved_and_sent_nowhere_else(void **state)
{
    static const struct fake_answer cases[] = {
        { .class = ERR_UNKNOWN }, /* it died */
        { .status = 0 },          /* it hangs */
        { .status = 504, .body = "{\"errors\":[{\"error_number\":5004,\"error\":\"late\"}]}" },
        { .status = 502, .body = "{\"errors\":[{\"error_number\":1800,\"error\":\"away\"}]}" },
    };

    (void)state;
    pings(UP, FAKE_ALWAYS);
    run_for(1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fake_answer(two.agent, "POST", ALLOCATE, cases[i]);
        (void)allocates();
        assert_false(two.world->answer.error.nothing_done);
        assert_int_equal(asked(two.world->fake), 0);
        run_for(SECOND_US);
        assert_true(is_up());
    }
    assert_int_equal(status().lost, 2);
}

static void after_a_lost_answer_it_is_not_used_until_it_was_pinged(void **state)
{
    (void)state;
    pings(UP, 1);
    run_for(1);
    fake_answer(two.agent, "POST", ALLOCATE, (struct fake_answer){ .class = ERR_UNKNOWN });
    fake_answer(two.agent, "GET", PING,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = 2 });
    pings(UP, FAKE_ALWAYS);
    slurm_job_allocate(two.world->client, STR("{\"job\":{}}"), world_done, two.world);
    assert_int_equal(ends(1000), SLURM_UNKNOWN);
    assert_false(is_up());
    world_answers(two.world, "POST", ALLOCATE, 200, JOB_7);
    slurm_job_allocate(two.world->client, STR("{\"job\":{}}"), world_done, two.world);
    assert_int_equal(ends(1000), SLURM_DONE);
    assert_int_equal(asked(two.agent), 1);
    run_for(SECOND_US);
    assert_true(is_up());
}

static void a_read_without_answer_is_repeated_at_slurmrestd(void **state)
{
    (void)state;
    pings(UP, 1);
    fake_answer(two.agent, "GET", PING,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = FAKE_ALWAYS });
    run_for(1);
    fake_answer(two.agent, "GET", V45 "/job/7", (struct fake_answer){ .class = ERR_UNKNOWN });
    world_answers(two.world, "GET", V45 "/job/7", 200, "{\"jobs\":[{\"job_id\":7}],\"errors\":[]}");
    slurm_job_get(two.world->client, 7, world_done, two.world);
    assert_int_equal(ends(5 * SECOND_US), SLURM_DONE);
    assert_int_equal(two.world->answer.tries, 2);
}

static void one_that_stops_answering_pings_is_not_used(void **state)
{
    (void)state;
    pings(UP, 1);
    fake_answer(two.agent, "GET", PING, (struct fake_answer){ .status = 0, .times = FAKE_ALWAYS });
    run_for(1);
    assert_true(is_up());
    run_for(8 * SECOND_US);
    assert_false(is_up());
    assert_false(status().is_up);
}

static void while_it_is_away_it_is_pinged_less_and_less_often(void **state)
{
    size_t before;

    (void)state;
    fake_answer(two.agent, "GET", PING,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = FAKE_ALWAYS });
    run_for(60 * SECOND_US);
    before = fake_sent_count(two.agent);
    run_for(300 * SECOND_US);
    assert_in_range(fake_sent_count(two.agent) - before, 15, 25);
}

/* ---- calls of its own ---- */

static void a_job_is_completed_by_its_id_and_sluid_with_a_wait_status(void **state)
{
    (void)state;
    pings(UP, FAKE_ALWAYS);
    run_for(1);
    fake_answer(two.agent, "POST", "/agent/v1/job/7/complete",
                (struct fake_answer){ .status = 200, .body = "{\"errors\":[]}" });
    slurm_job_complete(two.world->client, 7, "sA", 2 << 8, world_done, two.world);
    run_for(1);
    assert_int_equal(two.world->answer.error.class, SLURM_DONE);
    assert_string_equal(fake_last_sent(two.agent)->body, "{\"sluid\":\"sA\",\"return_code\":512}");
}

static void another_job_under_the_id_is_not_found(void **state)
{
    (void)state;
    pings(UP, FAKE_ALWAYS);
    run_for(1);
    fake_answer(
        two.agent, "POST", "/agent/v1/job/7/complete",
        (struct fake_answer){ .status = 404, .body = "{\"errors\":[{\"error_number\":2017}]}" });
    slurm_job_complete(two.world->client, 7, "sA", 0, world_done, two.world);
    assert_int_equal(ends(1000), SLURM_NOT_FOUND);
    assert_true(two.world->answer.error.nothing_done);
}

static void what_only_it_can_do_is_unavailable_without_it(void **state)
{
    (void)state;
    fake_answer(two.agent, "GET", PING,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = FAKE_ALWAYS });
    run_for(1);
    slurm_job_complete(two.world->client, 7, "sA", 0, world_done, two.world);
    assert_int_equal(ends(1000), SLURM_UNAVAILABLE);
    assert_true(two.world->answer.error.unsent && two.world->answer.error.nothing_done);
    slurm_will_run(two.world->client, STR("{\"job_id\":7}"), world_done, two.world);
    assert_int_equal(ends(1000), SLURM_UNAVAILABLE);
    assert_int_equal(asked(two.world->fake), 0);
}

static void what_only_it_can_do_waits_until_it_has_time(void **state)
{
    (void)state;
    pings(UP, FAKE_ALWAYS);
    run_for(1);
    fake_answer(two.agent, "POST", "/agent/v1/will-run",
                (struct fake_answer){ .status = 503, .times = 2 });
    fake_answer(two.agent, "POST", "/agent/v1/will-run",
                (struct fake_answer){ .status = 200, .body = "{\"errors\":[]}" });
    slurm_will_run(two.world->client, STR("{\"job_id\":7}"), world_done, two.world);
    assert_int_equal(ends(SECOND_US), SLURM_DONE);
    assert_int_equal(two.world->answer.tries, 3);
    fake_answer(two.agent, "POST", "/agent/v1/will-run",
                (struct fake_answer){ .status = 503, .times = FAKE_ALWAYS });
    slurm_will_run(two.world->client, STR("{\"job_id\":7}"), world_done, two.world);
    assert_int_equal(ends(2 * SECOND_US), SLURM_UNAVAILABLE);
    assert_true(two.world->answer.error.nothing_done);
}

static void what_it_refuses_for_good_ends_at_once(void **state)
{
    (void)state;
    pings(UP, FAKE_ALWAYS);
    run_for(1);
    fake_answer(two.agent, "POST", "/agent/v1/will-run", (struct fake_answer){ .status = 501 });
    slurm_will_run(two.world->client, STR("{\"job_id\":7}"), world_done, two.world);
    assert_int_equal(ends(1000), SLURM_UNAVAILABLE);
    assert_true(two.world->answer.error.nothing_done);
}

static void its_token_lasts_longer_than_one_that_we_sign(void **state)
{
    int64_t with_us = slurm_submit_fence_us(two.world->client, 10);

    (void)state;
    world_client(two.world, NULL);
    assert_true(with_us >= 60 * SECOND_US);
    assert_true(slurm_submit_fence_us(two.world->client, 10) < 60 * SECOND_US);
}

/* ---- when would it start ---- */

static void count_done(void *context)
{
    ++*(unsigned *)context;
}

static void starts(const char *body)
{
    fake_answer(two.agent, "POST", "/agent/v1/will-run",
                (struct fake_answer){ .status = 200, .body = body });
}

static void questions_are_asked_one_after_the_other(void **state)
{
    struct slurm_what_ifs ifs = { .soon = 100 };
    unsigned done = 0;

    (void)state;
    pings(UP, FAKE_ALWAYS);
    run_for(1);
    for (unsigned i = 0; i < SLURM_WHAT_IFS; i++)
        assert_true(slurm_what_if_add(&ifs, i ? "timelimit 30" : "", STR("{\"job_id\":7}")));
    assert_false(slurm_what_if_add(&ifs, "one too many", STR("{}")));
    starts("{\"errors\":[],\"start_time\":5000,\"nodes\":\"n[1-2]\"}");
    fake_answer(two.agent, "POST", "/agent/v1/will-run",
                (struct fake_answer){
                    .status = 422,
                    .body = "{\"errors\":[{\"error_number\":2051,\"error\":\"time limit\"}]}" });
    starts("{\"errors\":[],\"start_time\":4000,\"nodes\":\"n3\"}");
    starts("{\"errors\":[],\"start_time\":3000,\"nodes\":\"n3\"}");
    starts("{\"errors\":[],\"start_time\":2000,\"nodes\":\"n3\"}");
    slurm_what_ifs_ask(&ifs, two.world->client, count_done, &done);
    run_for(1000);
    assert_int_equal(done, 1);
    assert_int_equal(ifs.at[0].start_time, 5000);
    assert_string_equal(ifs.at[0].nodes, "n[1-2]");
    assert_true(ifs.at[1].is_answered && ifs.at[1].start_time == 0);
    assert_non_null(strstr(ifs.at[1].error, "time limit"));
    assert_int_equal(ifs.at[2].start_time, 4000);
    assert_int_equal(ifs.at[4].start_time, 2000);
    slurm_what_ifs_done(&ifs);
}

static void what_starts_soon_needs_no_other_question(void **state)
{
    struct slurm_what_ifs ifs = { .soon = 6000 };
    unsigned done = 0;

    (void)state;
    pings(UP, FAKE_ALWAYS);
    run_for(1);
    (void)slurm_what_if_add(&ifs, "", STR("{\"job_id\":7}"));
    (void)slurm_what_if_add(&ifs, "cpus 1", STR("{\"job_id\":7}"));
    starts("{\"errors\":[],\"start_time\":5000,\"nodes\":\"n1\"}");
    slurm_what_ifs_ask(&ifs, two.world->client, count_done, &done);
    run_for(1000);
    assert_int_equal(done, 1);
    assert_false(ifs.at[1].is_answered);
    slurm_what_ifs_done(&ifs);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(until_its_first_good_ping_slurmrestd_is_asked),
        TEST(what_it_answers_goes_there_without_our_token),
        TEST(what_it_does_not_answer_goes_to_slurmrestd),
        TEST(an_agent_that_does_not_reach_slurmctld_is_not_used),
        TEST(where_slurmrestd_speaks_an_older_version_it_is_not_used),
        TEST(what_it_cannot_do_or_has_no_time_for_goes_to_slurmrestd_at_once),
        TEST(a_write_does_not_go_on_to_slurmrestd_once_it_may_not_be_sent),
        TEST(a_write_without_answer_is_unresolved_and_sent_nowhere_else),
        TEST(after_a_lost_answer_it_is_not_used_until_it_was_pinged),
        TEST(a_read_without_answer_is_repeated_at_slurmrestd),
        TEST(one_that_stops_answering_pings_is_not_used),
        TEST(while_it_is_away_it_is_pinged_less_and_less_often),
        TEST(a_job_is_completed_by_its_id_and_sluid_with_a_wait_status),
        TEST(another_job_under_the_id_is_not_found),
        TEST(what_only_it_can_do_is_unavailable_without_it),
        TEST(what_only_it_can_do_waits_until_it_has_time),
        TEST(what_it_refuses_for_good_ends_at_once),
        TEST(its_token_lasts_longer_than_one_that_we_sign),
        TEST(questions_are_asked_one_after_the_other),
        TEST(what_starts_soon_needs_no_other_question),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
