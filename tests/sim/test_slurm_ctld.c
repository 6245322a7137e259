/* test_slurm_ctld.c - the slurmctld model: stopped, killed, restarted, and cut off from slurmrestd.
 */
#include "slurm_cluster.h"

/* ---- slurmctld stopped, killed, restarted ---- */

static void a_stopped_slurmctld_answers_504_and_does_it_later(void **state)
{
    struct cluster *cluster = *state;

    slurm_store_stop(cluster->store);
    assert_int_not_equal(ask(cluster, "POST", V "job/submit", JOB("")), 0);
    pass(cluster, 9 * (int64_t)SECOND);
    assert_int_equal(cluster->answers, 0);
    pass(cluster, 2 * (int64_t)SECOND);
    assert_int_equal(cluster->answers, 1);
    assert_int_equal(cluster->late_status, 504);
    assert_int_equal(slurm_store_next_id(cluster->store), 1);
    slurm_store_continue(cluster->store);
    assert_int_equal(cluster->answers, 1);
    assert_string_equal(job(cluster, 1).state, "PENDING");
}

static void a_request_whose_token_has_died_meanwhile_is_never_carried_out(void **state)
{
    struct cluster *cluster = *state;

    cluster->lifetime_s = 12;
    slurm_store_stop(cluster->store);
    (void)ask(cluster, "POST", V "job/submit", JOB(""));
    pass(cluster, 13 * (int64_t)SECOND);
    slurm_store_continue(cluster->store);
    assert_int_equal(slurm_store_next_id(cluster->store), 1);
}

static void a_slurmctld_that_goes_on_in_time_answers(void **state)
{
    struct cluster *cluster = *state;
    uint64_t left;

    slurm_store_stop(cluster->store);
    (void)ask(cluster, "GET", V "nodes/", NULL);
    left = ask(cluster, "POST", V "job/submit", JOB(""));
    slurm_store_forget(cluster->store, left); /* and is done all the same */
    pass(cluster, SECOND);
    slurm_store_continue(cluster->store);
    assert_int_equal(cluster->answers, 1);
    assert_int_equal(cluster->late_status, 200);
    assert_int_equal(cluster->events[SLURM_JOB_TAKEN], 1);
}

static void a_cancel_that_got_no_answer_looks_forbidden(void **state)
{
    struct cluster *cluster = *state;
    int64_t id = running(cluster, JOB(""));
    char path[60];

    (void)snprintf(path, sizeof(path), V "job/%lld", (long long)id);
    slurm_store_stop(cluster->store);
    (void)ask(cluster, "DELETE", path, NULL);
    pass(cluster, 11 * (int64_t)SECOND);
    assert_int_equal(cluster->late_status, 403);
    slurm_store_continue(cluster->store);
    assert_string_equal(job(cluster, id).state, "CANCELLED");
}

static void a_slurmctld_that_is_down_is_502_and_its_requests_are_gone(void **state)
{
    struct cluster *cluster = *state;

    slurm_store_shut_down(cluster->store);
    (void)ask(cluster, "GET", V "ping/", NULL);
    assert_int_equal(cluster->late_status, 200);
    (void)ask(cluster, "POST", V "job/submit", JOB(""));
    pass(cluster, 11 * (int64_t)SECOND);
    assert_int_equal(cluster->late_status, 502);
    slurm_store_start(cluster->store);
    assert_int_equal(slurm_store_next_id(cluster->store), 1);
    slurm_store_shut_down(cluster->store);
    (void)ask(cluster, "POST", V "job/submit", JOB(""));
    pass(cluster, SECOND);
    slurm_store_start(cluster->store); /* in time: slurmrestd tries again and again */
    assert_int_equal(cluster->late_status, 200);
}

static void a_slurmrestd_that_is_down_refuses_connections(void **state)
{
    struct cluster *cluster = *state;

    slurm_store_set_restd(cluster->store, false);
    assert_int_equal(ask(cluster, "GET", V "nodes/", NULL), 0);
    assert_int_equal(cluster->late_status, 0);
    assert_int_equal(cluster->answers, 1);
    slurm_store_set_restd(cluster->store, true);
    (void)ask(cluster, "GET", V "nodes/", NULL);
    assert_int_equal(cluster->late_status, 200);
    slurm_store_stop(cluster->store);
    (void)ask(cluster, "POST", V "job/submit", JOB(""));
    slurm_store_set_restd(cluster->store, false); /* with a request in its hands */
    assert_int_equal(cluster->late_status, -1);
    slurm_store_continue(cluster->store);
    assert_int_equal(cluster->events[SLURM_JOB_TAKEN], 1);
}

static void a_kill_loses_what_was_acknowledged_and_gives_the_ids_again(void **state)
{
    struct cluster *cluster = *state;
    int64_t kept = running(cluster, JOB("")), lost;
    char sluid[20];

    pass(cluster, 6 * (int64_t)SECOND); /* saved */
    lost = submit(cluster, JOB(""));
    (void)snprintf(sluid, sizeof(sluid), "%s", job(cluster, lost).sluid);
    slurm_store_kill(cluster->store);
    slurm_store_start(cluster->store);
    assert_int_equal(cluster->events[SLURM_JOB_LOST], 1);
    assert_string_equal(job(cluster, kept).state, "RUNNING");
    assert_int_equal(call_job(cluster, "GET", lost, NULL), 404);
    assert_int_equal(submit(cluster, JOB("")), lost);
    assert_true(strcmp(job(cluster, lost).sluid, sluid) > 0);
}

static void a_kill_shows_running_jobs_as_pending_and_ended_ones_as_running(void **state)
{
    struct cluster *cluster = *state;
    int64_t runs = submit(cluster, JOB(""));

    slurm_store_save(cluster->store);
    pass(cluster, 2 * (int64_t)SECOND);
    assert_string_equal(job(cluster, runs).state, "RUNNING");
    slurm_store_kill(cluster->store);
    slurm_store_start(cluster->store);
    assert_string_equal(job(cluster, runs).state, "PENDING");
    assert_int_equal(node(cluster, "n1").jobs, 0);
    pass(cluster, 10 * (int64_t)SECOND);
    assert_string_equal(job(cluster, runs).state, "RUNNING");
    assert_int_equal(call_job(cluster, "DELETE", runs, NULL), 200);
    slurm_store_kill(cluster->store);
    slurm_store_start(cluster->store);
    assert_string_equal(job(cluster, runs).state, "RUNNING");
    assert_true(slurm_store_is_on(cluster->store, runs, "n1"));
}

static void a_clean_restart_loses_nothing(void **state)
{
    struct cluster *cluster = *state;
    int64_t runs = running(cluster, JOB("")), waits = submit(cluster, JOB(",\"hold\":true"));

    slurm_store_shut_down(cluster->store);
    slurm_store_start(cluster->store);
    assert_string_equal(job(cluster, runs).state, "RUNNING");
    assert_string_equal(job(cluster, waits).reason, "JobHeldUser");
    assert_int_equal(cluster->events[SLURM_JOB_LOST], 0);
    assert_int_equal(slurm_store_next_id(cluster->store), waits + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stopped_slurmctld_answers_504_and_does_it_later),
        TEST(a_request_whose_token_has_died_meanwhile_is_never_carried_out),
        TEST(a_slurmctld_that_goes_on_in_time_answers),
        TEST(a_cancel_that_got_no_answer_looks_forbidden),
        TEST(a_slurmctld_that_is_down_is_502_and_its_requests_are_gone),
        TEST(a_slurmrestd_that_is_down_refuses_connections),
        TEST(a_kill_loses_what_was_acknowledged_and_gives_the_ids_again),
        TEST(a_kill_shows_running_jobs_as_pending_and_ended_ones_as_running),
        TEST(a_clean_restart_loses_nothing),
    };

    return cmocka_run_group_tests_name("slurm_ctld", tests, NULL, NULL);
}
