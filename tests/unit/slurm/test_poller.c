/* test_poller.c - the caches follow a scripted slurmctld, and it is asked for no more than they
 * need, no oftener than it can answer. */
#include "ctld_rig.h"

/* ---- what is asked, and when ---- */

static void the_start_is_one_whole_list_without_detail(void **state)
{
    struct ctld *ctld = *state;

    ctld_submit(ctld, "RUNNING");
    ctld_submit(ctld, "PENDING");
    slurm_poller_start(ctld->poller);
    ctld_run(ctld, 100);
    assert_told(ctld, "1:->R 2:->P ");
    assert_int_equal(ctld_sent(ctld, "/jobs/?flags=LOCAL"), 1);
    ctld_run(ctld, 60000);
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 1);
    assert_told(ctld, "");
}

static void a_changed_state_is_read_and_told_once(void **state)
{
    struct ctld *ctld = *state;

    ctld_submit(ctld, "PENDING");
    ctld_submit(ctld, "PENDING");
    ctld_begin(ctld);
    ctld_job(ctld, 2)->state = "RUNNING";
    ctld_submit(ctld, "PENDING");
    ctld_run(ctld, 5000);
    assert_told(ctld, "2:P>R 3:->P ");
    assert_int_equal(ctld_sent(ctld, "/job/"), 2);
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 0);
}

static void nothing_new_about_nodes_costs_nothing(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_feed_stats before, after;
    struct slurm_cache *nodes = slurm_poller_cache(ctld->poller, SLURM_FEED_NODES);

    ctld_begin(ctld);
    ctld_run(ctld, 3000);
    slurm_poller_stats(ctld->poller, SLURM_FEED_NODES, &before);
    ctld_run(ctld, 10000);
    slurm_poller_stats(ctld->poller, SLURM_FEED_NODES, &after);
    assert_int_equal(after.bytes, before.bytes);
    assert_in_range(after.unchanged - before.unchanged, 4, 5);
    assert_in_range(after.age_us, 0, 2100 * MS_US);
    ctld->node_comment = "b";
    ctld->node_there = false;
    ctld->nodes_changed = ctld_second(ctld);
    ctld_run(ctld, 2500);
    assert_string_equal(slurm_node_of(slurm_cache_get(nodes, "n1"))->comment, "b");
    assert_null(slurm_cache_get(nodes, "n2"));
}

static void nodes_of_25_11_are_always_read_whole(void **state)
{
    struct slurm_client_options options = { .version = 44 };
    struct ctld *ctld = *state;

    slurm_poller_free(ctld->poller);
    ctld->poller = NULL;
    world_client(ctld->world, &options);
    ctld_poller(ctld, NULL);
    ctld_begin(ctld);
    ctld_run(ctld, 3000);
    ctld->node_comment = "b";
    ctld->nodes_changed = ctld_second(ctld);
    ctld_run(ctld, 2500);
    assert_string_equal(
        slurm_node_of(slurm_cache_get(slurm_poller_cache(ctld->poller, SLURM_FEED_NODES), "n1"))
            ->comment,
        "b");
}

static void what_is_expected_is_polled_for_often(void **state)
{
    struct ctld *ctld = *state;

    ctld_begin(ctld);
    ctld_run(ctld, 10000);
    assert_in_range(ctld_sent(ctld, "/jobs/state/"), 4, 6);
    ctld_expect(ctld, 3000);
    fake_forget_sent(ctld->world->fake);
    ctld_run(ctld, 3000);
    assert_in_range(ctld_sent(ctld, "/jobs/state/"), 18, 21);
    assert_in_range(ctld_sent(ctld, "/partitions/"), 1, 2);
    fake_forget_sent(ctld->world->fake);
    ctld_run(ctld, 10000);
    assert_in_range(ctld_sent(ctld, "/jobs/state/"), 4, 6);
}

static void a_slow_server_is_asked_less(void **state)
{
    struct ctld *ctld = *state;

    ctld_begin(ctld);
    ctld->delay_us = SECOND_US;
    ctld_run(ctld, 3000);
    fake_forget_sent(ctld->world->fake);
    ctld_run(ctld, 33000);
    assert_int_equal(ctld_sent(ctld, "/jobs/state/"), 3);
    slurm_poller_expect(ctld->poller, INT64_MAX);
    ctld_run(ctld, 4000);
    fake_forget_sent(ctld->world->fake);
    ctld_run(ctld, 40000);
    assert_in_range(ctld_sent(ctld, "/jobs/state/"), 10, 11);
}

/* Lists of nodes in so many seconds, each of which takes one second and tells of changes. */
static unsigned node_lists(struct ctld *ctld, int64_t seconds)
{
    fake_forget_sent(ctld->world->fake);
    ctld_run(ctld, seconds * 1000);
    return ctld_sent(ctld, "/nodes/");
}

static void a_long_list_of_nodes_is_followed_by_a_long_wait(void **state)
{
    struct ctld *ctld = *state;

    ctld_begin(ctld);
    ctld->nodes_delay_us = SECOND_US;
    ctld->nodes_changed = INT64_MAX;
    (void)node_lists(ctld, 3);
    assert_in_range(node_lists(ctld, 55), 5, 6);
}

/* A second of work is three seconds of rest: ten lists owe half a minute. */
static void nodes_that_are_to_be_seen_soon_come_in_a_row_and_owe_their_waits(void **state)
{
    struct slurm_poller_options options = { .nodes_us = 500 * MS_US };
    struct ctld *ctld = *state;

    ctld_poller(ctld, &options);
    ctld_begin(ctld);
    assert_in_range(node_lists(ctld, 10), 19, 20); /* unchanged */
    ctld->nodes_delay_us = SECOND_US;
    ctld->nodes_changed = INT64_MAX;
    assert_in_range(node_lists(ctld, 15), 9, 10); /* a second, and half of one between them */
    (void)node_lists(ctld, 60);
    assert_in_range(node_lists(ctld, 60), 19, 21);
    ctld->nodes_changed = 0;
    (void)node_lists(ctld, 60);
    ctld->node_comment = "b";
    ctld->nodes_changed = ctld_second(ctld) + 1;
    ctld_run(ctld, 1600); /* half a second, and what the list takes */
    assert_string_equal(
        slurm_node_of(slurm_cache_get(slurm_poller_cache(ctld->poller, SLURM_FEED_NODES), "n1"))
            ->comment,
        "b");
}

static void a_purged_job_has_gone(void **state)
{
    struct ctld *ctld = *state;

    ctld_submit(ctld, "COMPLETED");
    ctld_submit(ctld, "RUNNING");
    ctld_begin(ctld);
    ctld_job(ctld, 1)->id = 0;
    ctld_run(ctld, 3000);
    assert_told(ctld, "1:C>- ");
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 0);
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 0);
}

/* ---- only some jobs ---- */

static void track_only(struct ctld *ctld)
{
    static const struct slurm_poller_options options = { .tracked_only = true };

    ctld_poller(ctld, &options);
}

static void only_tracked_jobs_are_asked_for_in_queries_that_fit(void **state)
{
    struct ctld *ctld = *state;

    track_only(ctld);
    ctld_submit(ctld, "PENDING");
    ctld_begin(ctld);
    ctld_run(ctld, 1000);
    assert_int_equal(ctld_sent(ctld, "/jobs/state/"), 0);
    for (int64_t id = 1; id <= 4000; id++)
        slurm_poller_track(ctld->poller, id);
    slurm_poller_untrack(ctld->poller, 2);
    ctld_job(ctld, 1)->state = "RUNNING";
    ctld_run(ctld, 2000);
    assert_int_equal(ctld_sent(ctld, "/jobs/state/?job_id=1&job_id=3&"), 1);
    assert_int_equal(ctld_sent(ctld, "/jobs/state/?"), 4);
    for (size_t i = 0; i < fake_sent_count(ctld->world->fake); i++)
        assert_true(strlen(fake_sent(ctld->world->fake, i)->path) < 16384);
    assert_told(ctld, "1:P>R ");
}

static void a_job_that_was_not_asked_for_is_not_missing(void **state)
{
    struct ctld *ctld = *state;

    track_only(ctld);
    ctld_submit(ctld, "RUNNING");
    ctld_submit(ctld, "RUNNING");
    slurm_poller_track(ctld->poller, 1);
    ctld_begin(ctld);
    ctld->delay_us = 500 * MS_US;
    ctld_run(ctld, 1800); /* the states of 1 are on their way */
    assert_int_equal(ctld_sent(ctld, "/jobs/state/?job_id=1"), 1);
    slurm_poller_track(ctld->poller, 2);
    ctld_run(ctld, 20000);
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 0);
    assert_true(ctld_sent(ctld, "/jobs/state/?job_id=1&job_id=2") > 0);
}

static void all_jobs_are_asked_for_too_but_not_so_often(void **state)
{
    struct ctld *ctld = *state;
    size_t tracked, all;

    track_only(ctld);
    ctld_submit(ctld, "RUNNING");
    slurm_poller_track(ctld->poller, 1);
    ctld_begin(ctld);
    ctld_run(ctld, 30000);
    tracked = ctld_sent(ctld, "/jobs/state/?job_id=1");
    all = ctld_sent(ctld, "/jobs/state/") - tracked;
    assert_in_range(all, 4, 6);
    assert_true(tracked > all);
}

static void jobs_that_wait_are_asked_for_most_often(void **state)
{
    struct ctld *ctld = *state;
    size_t waiting, both;

    track_only(ctld);
    ctld_submit(ctld, "RUNNING");
    ctld_submit(ctld, "PENDING");
    slurm_poller_track(ctld->poller, 1);
    slurm_poller_track(ctld->poller, 2);
    ctld_begin(ctld);
    ctld_expect(ctld, 60000);
    ctld_run(ctld, 10000);
    waiting = ctld_sent(ctld, "/jobs/state/?job_id=2");
    both = ctld_sent(ctld, "/jobs/state/?job_id=1&job_id=2");
    assert_true(both >= 3);
    assert_true(waiting > 2 * both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_start_is_one_whole_list_without_detail),
        TEST(a_changed_state_is_read_and_told_once),
        TEST(nothing_new_about_nodes_costs_nothing),
        TEST(nodes_of_25_11_are_always_read_whole),
        TEST(what_is_expected_is_polled_for_often),
        TEST(a_slow_server_is_asked_less),
        TEST(a_long_list_of_nodes_is_followed_by_a_long_wait),
        TEST(nodes_that_are_to_be_seen_soon_come_in_a_row_and_owe_their_waits),
        TEST(a_purged_job_has_gone),
        TEST(only_tracked_jobs_are_asked_for_in_queries_that_fit),
        TEST(a_job_that_was_not_asked_for_is_not_missing),
        TEST(all_jobs_are_asked_for_too_but_not_so_often),
        TEST(jobs_that_wait_are_asked_for_most_often),
    };

    return cmocka_run_group_tests_name("poller", tests, NULL, NULL);
}
