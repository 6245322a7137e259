/* test_poller_rounds.c - rounds in which something fails or changes under the poller's hands:
 * reads, a list that is too long, a poll that is wanted during a poll, another slurmctld with
 * another clock. */
#include "ctld_rig.h"
#include "slurm/poller_private.h"

/* Stands in front of the scripted slurmctld. */
struct gate {
    struct ctld *ctld;
    int64_t unreadable;      /* this job is not to be had; -1: none is */
    const char *one;         /* all that is said of job 1, instead */
    unsigned conf_unknown;   /* so often /conf is "unknown version, path or method" */
    int64_t nodes_delay_us;  /* of the next list of nodes */
    int64_t states_delay_us; /* of the next answer about states */
    int64_t read_delay_us;   /* of each read of a job */
};

static struct fake_answer serve(void *context, const struct fake_sent *sent)
{
    struct gate *gate = context;
    const char *one = strstr(sent->path, "/job/");
    int64_t id = one ? (int64_t)strtoll(one + 5, NULL, 10) : 0;
    struct fake_answer answer;

    if (id != 0 && (id == gate->unreadable || gate->unreadable == -1))
        return (struct fake_answer){ .status = 500, .body = "{\"errors\":[]}" };
    if (id == 1 && gate->one)
        return (struct fake_answer){ .status = 200, .body = gate->one };
    if (strstr(sent->path, "/conf") && gate->conf_unknown > 0) {
        gate->conf_unknown--;
        return (struct fake_answer){ .status = 404,
                                     .body = "Unable find requested URL",
                                     .content_type = "text/plain" };
    }
    answer = ctld_serve(gate->ctld, sent);
    if (strstr(sent->path, "/nodes/")) {
        answer.delay_us += gate->nodes_delay_us;
        gate->nodes_delay_us = 0;
    }
    if (strstr(sent->path, "/jobs/state")) {
        answer.delay_us += gate->states_delay_us;
        gate->states_delay_us = 0;
    }
    if (id != 0)
        answer.delay_us += gate->read_delay_us;
    return answer;
}

static int set_up(void **state)
{
    struct gate *gate = mem_alloc(sizeof(*gate));
    void *ctld;

    ctld_up(&ctld);
    gate->ctld = ctld;
    fake_serve(gate->ctld->world->fake, serve, gate);
    *state = gate;
    return 0;
}

static int tear_down(void **state)
{
    struct gate *gate = *state;
    void *ctld = gate->ctld;

    mem_free(gate);
    return ctld_down(&ctld);
}

static struct slurm_feed_stats stats_of(const struct ctld *ctld, enum slurm_feed feed)
{
    struct slurm_feed_stats stats;

    slurm_poller_stats(ctld->poller, feed, &stats);
    return stats;
}

/* ---- reads that fail ---- */

static void a_new_job_that_could_not_be_read_is_no_sign_of_a_restart(void **state)
{
    struct gate *gate = *state;
    struct ctld *ctld = gate->ctld;

    ctld_submit(ctld, "RUNNING");
    ctld_begin(ctld);
    ctld_submit(ctld, "PENDING");
    ctld_submit(ctld, "PENDING");
    gate->unreadable = 2; /* but 3 can be read */
    ctld_run(ctld, 10000);
    assert_told(ctld, "3:->P ");
    assert_true(ctld_sent(ctld, "/job/2") > 1);
    gate->unreadable = 0;
    ctld_run(ctld, 10000);
    assert_told(ctld, "2:->P ");
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 0);
}

static void after_that_an_id_that_was_passed_before_is_a_sign_again(void **state)
{
    struct gate *gate = *state;
    struct ctld *ctld = gate->ctld;

    ctld->next_id = 3;
    ctld_begin(ctld);
    gate->unreadable = 3;
    ctld_submit(ctld, "COMPLETED");
    ctld_submit(ctld, "COMPLETED");
    ctld_run(ctld, 10000);
    gate->unreadable = 0;
    ctld_run(ctld, 20000);
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 0);
    ctld->next_id = 2;
    ctld_submit(ctld, "PENDING");
    ctld->next_id = 9;
    ctld_run(ctld, 5000);
    assert_string_equal(slurm_poller_why(ctld->poller),
                        "a new job has an id that was passed before");
}

static void reads_that_fail_are_counted_and_named(void **state)
{
    struct gate *gate = *state;
    struct ctld *ctld = gate->ctld;

    ctld_begin(ctld);
    ctld_submit(ctld, "PENDING");
    gate->unreadable = -1;
    ctld_run(ctld, 30000);
    assert_true(stats_of(ctld, SLURM_FEED_JOBS).failures > 2);
    assert_true(stats_of(ctld, SLURM_FEED_JOBS).last_error[0] != '\0');
    assert_true(stats_of(ctld, SLURM_FEED_JOBS).age_us > 25 * SECOND_US);
    gate->unreadable = 0;
    ctld_run(ctld, 20000);
    assert_told(ctld, "1:->P ");
    assert_string_equal(stats_of(ctld, SLURM_FEED_JOBS).last_error, "");
    assert_true(stats_of(ctld, SLURM_FEED_JOBS).age_us < 3 * SECOND_US);
}

static void a_round_with_one_failed_read_is_good_but_names_it(void **state)
{
    struct gate *gate = *state;
    struct ctld *ctld = gate->ctld;

    ctld_begin(ctld);
    gate->unreadable = 1;
    ctld_submit(ctld, "PENDING");
    ctld_submit(ctld, "PENDING");
    ctld_run(ctld, 2100);
    assert_told(ctld, "2:->P ");
    assert_int_equal(stats_of(ctld, SLURM_FEED_JOBS).failures, 1);
    assert_true(stats_of(ctld, SLURM_FEED_JOBS).last_error[0] != '\0');
    assert_true(stats_of(ctld, SLURM_FEED_JOBS).age_us < 3 * SECOND_US);
}

static void a_job_that_runs_no_more_and_was_not_read_yet_is_not_taken_for_running(void **state)
{
    struct gate *gate = *state;
    struct ctld *ctld = gate->ctld;
    const struct slurm_cache *jobs = slurm_poller_cache(ctld->poller, SLURM_FEED_JOBS);

    ctld_submit(ctld, "RUNNING");
    ctld_submit(ctld, "RUNNING");
    ctld_begin(ctld);
    gate->unreadable = 1;
    ctld_job(ctld, 1)->state = "COMPLETED";
    ctld_run(ctld, 5000);
    assert_told(ctld, "");
    assert_true(slurm_cache_is_behind(jobs, "1"));
    assert_false(slurm_cache_is_behind(jobs, "2"));
    gate->unreadable = 0;
    ctld_run(ctld, 10000);
    assert_told(ctld, "1:R>C ");
    assert_false(slurm_cache_is_behind(jobs, "1"));
}

/* ---- many reads ---- */

static void how_many_others_end_does_not_delay_the_start_of_a_tracked_job(void **state)
{
    struct gate *gate = *state;
    struct ctld *ctld = gate->ctld;

    ctld_poller(ctld, &(struct slurm_poller_options){ .tracked_only = true, .nodes_only = true });
    for (unsigned i = 0; i < JOBS - 1; i++)
        ctld_submit(ctld, "RUNNING");
    ctld_begin(ctld);
    ctld_submit(ctld, "PENDING");
    ctld_run(ctld, 8000);
    assert_told(ctld, "40:->P ");
    slurm_poller_track(ctld->poller, JOBS);
    gate->read_delay_us = 3 * SECOND_US;
    for (int i = 1; i < JOBS; i++)
        ctld_job(ctld, i)->state = "COMPLETED";
    ctld_run(ctld, 6000);
    assert_true(ctld_sent(ctld, "/job/1") > 0); /* they are being read */
    ctld_job(ctld, JOBS)->state = "RUNNING";
    ctld_run(ctld, 8000);
    assert_non_null(strstr(buf_text(&ctld->log), "40:P>R "));
    assert_null(strstr(buf_text(&ctld->log), "39:R>C "));
    ctld_run(ctld, 40000); /* what was left was not forgotten */
    for (int i = 1; i < JOBS; i++) {
        char change[32];

        snprintf(change, sizeof(change), " %d:R>C ", i);
        if (i > 1)
            assert_non_null(strstr(buf_text(&ctld->log), change));
    }
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 0);
}

/* ---- a poll that is wanted during a poll ---- */

static void what_changes_while_a_list_is_under_way_is_listed_at_once_after_it(void **state)
{
    struct gate *gate = *state;
    struct ctld *ctld = gate->ctld;
    struct slurm_poller_options options = { .slow_us = 600 * (int64_t)SECOND_US };
    struct slurm_cache *nodes;

    ctld_poller(ctld, &options);
    ctld_begin(ctld);
    nodes = slurm_poller_cache(ctld->poller, SLURM_FEED_NODES);
    gate->nodes_delay_us = SECOND_US;
    ctld->nodes_changed = ctld_second(ctld) + 1;
    slurm_poller_refresh(ctld->poller, SLURM_FEED_NODES);
    ctld_run(ctld, 500); /* the answer was written, and is on its way */
    ctld->node_comment = "b";
    slurm_poller_refresh(ctld->poller, SLURM_FEED_NODES);
    ctld_run(ctld, 1000);
    assert_int_equal(ctld_sent(ctld, "/nodes/"), 2);
    assert_string_equal(slurm_node_of(slurm_cache_get(nodes, "n1"))->comment, "b");
    ctld_run(ctld, 10000);
    assert_int_equal(ctld_sent(ctld, "/nodes/"), 2);
}

/* ---- lists ---- */

static void a_list_with_more_than_may_be_is_not_believed(void **state)
{
    struct gate *gate = *state;
    struct ctld *ctld = gate->ctld;

    ctld->poller->max_list = 3;
    for (unsigned i = 0; i < 4; i++)
        ctld_submit(ctld, "RUNNING");
    slurm_poller_start(ctld->poller);
    ctld_run(ctld, 1000);
    assert_false(slurm_poller_is_synced(ctld->poller));
    assert_string_equal(stats_of(ctld, SLURM_FEED_JOBS).last_error, "more than 3 jobs");
    assert_told(ctld, "");
    ctld_job(ctld, 4)->id = 0;
    ctld_run(ctld, 20000);
    assert_true(slurm_poller_is_synced(ctld->poller));
    assert_told(ctld, "1:->R 2:->R 3:->R ");
}

/* ---- another slurmctld ---- */

static void times_of_the_old_slurmctld_are_not_told_to_the_new_one(void **state)
{
    struct gate *gate = *state;
    struct ctld *ctld = gate->ctld;
    struct slurm_cache *nodes = slurm_poller_cache(ctld->poller, SLURM_FEED_NODES);

    ctld_begin(ctld);
    ctld_run(ctld, 5000);
    ctld->boot_time++;
    ctld->node_comment = "b";
    ctld->nodes_changed = ctld_second(ctld) - 600; /* its clock is behind */
    ctld_run(ctld, 40000);
    assert_string_equal(slurm_node_of(slurm_cache_get(nodes, "n1"))->comment, "b");
}

/* And n1 changes. */
static void clock_is_set_back(struct ctld *ctld)
{
    ctld->behind_s = 600;
    ctld->node_comment = "b";
    ctld->nodes_changed = ctld_second(ctld);
}

static void a_clock_that_was_set_back_hides_no_change(void **state)
{
    struct gate *gate = *state;
    struct ctld *ctld = gate->ctld;
    struct slurm_cache *nodes = slurm_poller_cache(ctld->poller, SLURM_FEED_NODES);

    ctld_begin(ctld);
    ctld_run(ctld, 5000);
    clock_is_set_back(ctld);
    ctld_run(ctld, 40000);
    assert_string_equal(slurm_node_of(slurm_cache_get(nodes, "n1"))->comment, "b");
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 0);
    fake_forget_sent(ctld->world->fake);
    ctld_run(ctld, 60000); /* its own time is told again */
    assert_true(ctld_sent(ctld, "/nodes/?update_time=") + 1 >= ctld_sent(ctld, "/nodes/"));
}

/* As before v0.0.45, where nobody tells the time. */
static void after_any_suspicion_everything_is_listed(void **state)
{
    struct gate *gate = *state;
    struct ctld *ctld = gate->ctld;
    struct slurm_cache *nodes = slurm_poller_cache(ctld->poller, SLURM_FEED_NODES);

    ctld->conf_broken = true;
    ctld_begin(ctld);
    ctld_run(ctld, 5000);
    clock_is_set_back(ctld);
    ctld_run(ctld, 40000);
    assert_string_equal(slurm_node_of(slurm_cache_get(nodes, "n1"))->comment, "a");
    slurm_poller_suspect(ctld->poller, "for the test");
    ctld_run(ctld, 5000);
    assert_string_equal(slurm_node_of(slurm_cache_get(nodes, "n1"))->comment, "b");
}

static void nothing_new_since_a_time_that_was_forgotten_is_no_failure(void **state)
{
    struct gate *gate = *state;
    struct ctld *ctld = gate->ctld;

    ctld_begin(ctld);
    ctld_run(ctld, 4000);
    gate->nodes_delay_us = SECOND_US;
    slurm_poller_refresh(ctld->poller, SLURM_FEED_NODES);
    ctld_run(ctld, 500); /* "unchanged" is on its way */
    slurm_poller_suspect(ctld->poller, "for the test");
    ctld_run(ctld, 600);
    assert_int_equal(stats_of(ctld, SLURM_FEED_NODES).failures, 0);
    assert_string_equal(fake_last_sent(ctld->world->fake)->path, V45 "/nodes/");
}

/* The answer took long, so there is a long rest; a job that was started elsewhere meanwhile has the
 * same state as before. */
static void a_restart_during_a_long_rest_is_noticed_at_its_end(void **state)
{
    struct gate *gate = *state;
    struct ctld *ctld = gate->ctld;

    ctld_submit(ctld, "RUNNING");
    ctld_begin(ctld);
    gate->states_delay_us = 3000000;
    ctld_run(ctld, 8000);
    assert_int_equal(gate->states_delay_us, 0);
    ctld->boot_time++;
    ctld_run(ctld, 14000); /* without it at 30 s, when the boot time is asked for anyhow */
    assert_string_equal(slurm_poller_why(ctld->poller), "slurmctld was restarted");
}

static void the_boot_time_is_asked_for_again_after_a_strange_answer(void **state)
{
    struct gate *gate = *state;
    struct ctld *ctld = gate->ctld;

    ctld_begin(ctld);
    gate->conf_unknown = 1; /* a proxy, say, while slurmrestd is exchanged */
    ctld_run(ctld, 40000);
    assert_int_equal(gate->conf_unknown, 0);
    ctld->boot_time++;
    ctld_run(ctld, 40000);
    assert_string_equal(slurm_poller_why(ctld->poller), "slurmctld was restarted");
}

/* ---- before v0.0.44 there is no sluid ---- */

static void whoever_needs_reasons_gets_a_whole_list_by_its_period(void **state)
{
    struct ctld *ctld = ((struct gate *)*state)->ctld;

    ctld_submit(ctld, "PENDING");
    ctld_begin(ctld);
    ctld_run(ctld, 60000);
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 0);

    ctld_poller(ctld, &(struct slurm_poller_options){ .list_us = 20 * SECOND_US });
    map_clear(&ctld->mirror);
    ctld_begin(ctld);
    ctld_run(ctld, 65000);
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 3);
}

static void says_of_job_1(struct gate *gate, const char *text)
{
    gate->one = text;
    slurm_poller_read(gate->ctld->poller, SLURM_FEED_JOBS, "1");
    ctld_run(gate->ctld, 10);
}

#define JOB_1(state, time, restarts)                                                               \
    "{\"jobs\":[{\"job_id\":1,\"job_state\":[" state "],\"submit_time\":" time                     \
    ",\"restart_cnt\":" restarts "}],\"errors\":[]}"

static void without_a_sluid_the_time_of_submission_tells_jobs_apart(void **state)
{
    struct gate *gate = *state;
    struct ctld *ctld = gate->ctld;
    struct slurm_poller_options options = { .slow_us = 600 * (int64_t)SECOND_US };

    ctld_poller(ctld, &options);
    ctld_begin(ctld);
    says_of_job_1(gate, JOB_1("\"PENDING\"", "1000", "0"));
    says_of_job_1(gate, JOB_1("\"RUNNING\"", "1000", "0"));
    says_of_job_1(gate, JOB_1("\"PENDING\",\"REQUEUED\"", "1100", "0"));
    says_of_job_1(gate, JOB_1("\"PENDING\"", "1100", "1"));
    says_of_job_1(gate, JOB_1("\"RUNNING\"", "1100", "1"));
    says_of_job_1(gate, JOB_1("\"PENDING\"", "1200", "2"));
    says_of_job_1(gate, JOB_1("\"PENDING\"", "0", "2")); /* does not say */
    says_of_job_1(gate, JOB_1("\"PENDING\"", "1200", "2"));
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 0);
    says_of_job_1(gate, JOB_1("\"PENDING\"", "1300", "2"));
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 1);
    assert_string_equal(slurm_poller_why(ctld->poller), "a job id belongs to another job now");
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_job_that_could_not_be_read_is_no_sign_of_a_restart),
        TEST(after_that_an_id_that_was_passed_before_is_a_sign_again),
        TEST(reads_that_fail_are_counted_and_named),
        TEST(a_round_with_one_failed_read_is_good_but_names_it),
        TEST(a_job_that_runs_no_more_and_was_not_read_yet_is_not_taken_for_running),
        TEST(how_many_others_end_does_not_delay_the_start_of_a_tracked_job),
        TEST(what_changes_while_a_list_is_under_way_is_listed_at_once_after_it),
        TEST(a_list_with_more_than_may_be_is_not_believed),
        TEST(times_of_the_old_slurmctld_are_not_told_to_the_new_one),
        TEST(a_clock_that_was_set_back_hides_no_change),
        TEST(after_any_suspicion_everything_is_listed),
        TEST(nothing_new_since_a_time_that_was_forgotten_is_no_failure),
        TEST(a_restart_during_a_long_rest_is_noticed_at_its_end),
        TEST(whoever_needs_reasons_gets_a_whole_list_by_its_period),
        TEST(the_boot_time_is_asked_for_again_after_a_strange_answer),
        TEST(without_a_sluid_the_time_of_submission_tells_jobs_apart),
    };

    return cmocka_run_group_tests_name("poller rounds", tests, NULL, NULL);
}
