/* test_poller_doubts.c - a slurmctld that is away, restarted or has lost its last seconds: nothing
 * bad is believed of it too early, and in the end the caches are the truth. */
#include "ctld_rig.h"

/* ---- suspicion ---- */

static void a_running_job_that_disappears_is_gone_only_after_list_and_read(void **state)
{
    struct ctld *ctld = *state;

    ctld_submit(ctld, "RUNNING");
    ctld_submit(ctld, "COMPLETED");
    ctld_begin(ctld);
    ctld_job(ctld, 1)->id = 0;
    ctld_run(ctld, 3000);
    assert_told(ctld, "1:R>- ");
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 1);
    assert_false(slurm_poller_is_suspicious(ctld->poller));
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 1);
    assert_int_equal(ctld_sent(ctld, "/job/1"), 1);
}

static void nothing_goes_while_slurmctld_is_away(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_cache *nodes = slurm_poller_cache(ctld->poller, SLURM_FEED_NODES);

    ctld_submit(ctld, "RUNNING");
    ctld_submit(ctld, "COMPLETED");
    ctld_begin(ctld);
    ctld->down = true;
    ctld_run(ctld, 60000);
    assert_true(slurm_poller_is_suspicious(ctld->poller));
    assert_string_equal(slurm_poller_why(ctld->poller), "slurmctld could not be reached");
    assert_told(ctld, "");
    assert_int_equal(slurm_cache_count(nodes), 2);
    ctld_job(ctld, 2)->id = 0;
    ctld->down = false;
    ctld_run(ctld, 20000);
    assert_false(slurm_poller_is_suspicious(ctld->poller));
    assert_told(ctld, "2:C>- ");
}

static void a_suspicion_keeps_nodes_too_and_they_are_listed_again(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_cache *nodes = slurm_poller_cache(ctld->poller, SLURM_FEED_NODES);

    ctld_begin(ctld);
    ctld->jobs_broken = true;
    slurm_poller_suspect(ctld->poller, "test");
    ctld->node_there = false;
    ctld->nodes_changed = ctld_second(ctld);
    ctld_run(ctld, 9000);
    assert_true(slurm_poller_is_suspicious(ctld->poller));
    assert_non_null(slurm_cache_get(nodes, "n2"));
    ctld->jobs_broken = false;
    ctld_run(ctld, 20000);
    assert_false(slurm_poller_is_suspicious(ctld->poller));
    assert_null(slurm_cache_get(nodes, "n2"));
}

static void a_list_from_before_the_suspicion_does_not_end_it(void **state)
{
    struct ctld *ctld = *state;

    ctld_submit(ctld, "COMPLETED");
    ctld_begin(ctld);
    ctld->delay_us = 500 * MS_US;
    ctld_job(ctld, 1)->id = 0;
    slurm_poller_suspect(ctld->poller, "one");
    ctld_run(ctld, 100);
    slurm_poller_suspect(ctld->poller, "two");
    ctld_run(ctld, 500);
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 1);
    assert_true(slurm_poller_is_suspicious(ctld->poller));
    assert_told(ctld, "");
    ctld_run(ctld, 3000);
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 2);
    assert_false(slurm_poller_is_suspicious(ctld->poller));
    assert_told(ctld, "1:C>- ");
}

/* ---- 502 without a restart ---- */

/* An answer to somebody else's call. */
static void hear_502(struct ctld *ctld)
{
    slurm_poller_heard(ctld->poller, &(struct slurm_answer){ .error = { .http = 502 } });
}

/* A job list takes long at a site with many jobs, and 502s come more often than that. */
static void occasional_502s_of_a_slurmctld_that_was_not_restarted_stop_nothing(void **state)
{
    struct ctld *ctld = *state;
    unsigned suspicious_ms = 0;

    ctld_submit(ctld, "RUNNING");
    ctld_begin(ctld);
    ctld->delay_us = 20 * MS_US;
    ctld->list_delay_us = 30 * SECOND_US;
    for (unsigned ms = 0; ms < 120000; ms += 100) {
        if (ms % 10000 == 0)
            hear_502(ctld);
        suspicious_ms += slurm_poller_is_suspicious(ctld->poller) ? 100 : 0;
        ctld_run(ctld, 100);
    }
    assert_in_range(suspicious_ms, 100, 3000); /* each ends when /conf shows the same boot time */
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 0);
    assert_told(ctld, "");
}

static void a_502_of_a_slurmctld_that_was_restarted_leads_to_a_whole_list(void **state)
{
    struct ctld *ctld = *state;

    ctld_submit(ctld, "RUNNING");
    ctld_begin(ctld);
    hear_502(ctld);
    ctld->boot_time++;
    ctld_job(ctld, 1)->id = 0;
    ctld_run(ctld, 20);
    assert_string_equal(slurm_poller_why(ctld->poller), "slurmctld was restarted");
    ctld_run(ctld, 3000);
    assert_false(slurm_poller_is_suspicious(ctld->poller));
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 1);
    assert_told(ctld, "1:R>- ");
}

/* What is known of the jobs may be of the slurmctld before. */
static void a_boot_time_that_is_newer_than_the_job_list_proves_nothing(void **state)
{
    struct ctld *ctld = *state;

    ctld_submit(ctld, "RUNNING");
    ctld->boot_time = 0; /* it does not tell */
    ctld_begin(ctld);
    ctld->boot_time = 5;
    ctld_run(ctld, 40000);
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 0);
    hear_502(ctld);
    ctld_run(ctld, 3000);
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 1);
    assert_false(slurm_poller_is_suspicious(ctld->poller));
}

static void a_boot_time_that_nobody_tells_any_more_leaves_it_to_the_list(void **state)
{
    struct ctld *ctld = *state;

    ctld_submit(ctld, "RUNNING");
    ctld_begin(ctld);
    ctld->conf_broken = true;
    hear_502(ctld);
    ctld_run(ctld, 20000);
    assert_true(slurm_poller_is_suspicious(ctld->poller));
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 0);
    ctld_run(ctld, 20000);
    assert_false(slurm_poller_is_suspicious(ctld->poller));
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 1);
}

/* Another reason is settled by a list alone. */
static void a_suspicion_for_another_reason_too_waits_for_its_list(void **state)
{
    struct ctld *ctld = *state;

    ctld_submit(ctld, "RUNNING");
    ctld_begin(ctld);
    ctld->list_delay_us = 2 * SECOND_US;
    hear_502(ctld);
    slurm_poller_suspect(ctld->poller, "test");
    ctld_run(ctld, 1000);
    assert_true(slurm_poller_is_suspicious(ctld->poller));
    ctld_run(ctld, 9000);
    assert_false(slurm_poller_is_suspicious(ctld->poller));
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 1);
}

static void errors_are_told_and_take_nothing_away(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_feed_stats stats;

    ctld_submit(ctld, "COMPLETED");
    ctld_begin(ctld);
    ctld->broken = true;
    ctld_run(ctld, 120000);
    slurm_poller_stats(ctld->poller, SLURM_FEED_JOBS, &stats);
    assert_in_range(stats.failures, 8, 20);
    assert_true(stats.age_us > 100 * SECOND_US);
    assert_true(stats.last_error[0] != '\0');
    assert_told(ctld, "");
    ctld->broken = false;
    ctld_run(ctld, 20000);
    slurm_poller_stats(ctld->poller, SLURM_FEED_JOBS, &stats);
    assert_string_equal(stats.last_error, "");
    assert_told(ctld, "");
}

static void a_list_without_its_time_takes_nothing_away(void **state)
{
    struct ctld *ctld = *state;

    ctld_submit(ctld, "COMPLETED");
    ctld_begin(ctld);
    ctld->unstamped = true;
    slurm_poller_suspect(ctld->poller, "test");
    ctld_job(ctld, 1)->id = 0;
    ctld_run(ctld, 50);
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 1);
    assert_int_equal(ctld_sent(ctld, "/job/1"), 1); /* the read decides */
    ctld_run(ctld, 50);
    assert_told(ctld, "1:C>- ");
}

/* ---- signs of a restart ---- */

static void lose_a_job(struct ctld *ctld)
{
    ctld_job(ctld, 1)->id = 0;
}

static void fall_back(struct ctld *ctld)
{
    ctld_job(ctld, 3)->id = 0; /* had ended, so that alone is nothing */
    ctld->next_id = 2;
    ctld_submit(ctld, "PENDING");
    ctld->next_id = 9; /* /conf is not what this is about */
}

static void turn_pending(struct ctld *ctld)
{
    ctld_job(ctld, 1)->state = "PENDING";
}

static void boot(struct ctld *ctld)
{
    ctld->boot_time++;
}

static void count_down(struct ctld *ctld)
{
    ctld->next_id--;
}

static void give_the_id_away(struct ctld *ctld)
{
    *ctld_job(ctld, 1) = (struct ctld_job){ 1, "PENDING", 0, 99 };
}

static const struct {
    const char *why;
    void (*happen)(struct ctld *ctld);
} signs[] = {
    { "a job that had not ended is missing", lose_a_job },
    { "a new job has an id that was passed before", fall_back },
    { "a running job turned pending", turn_pending },
    { "slurmctld was restarted", boot },
    { "slurmctld's next job id fell", count_down },
    { "a job id belongs to another job now", give_the_id_away },
};

static void each_sign_of_a_restart_leads_to_a_whole_list(void **state)
{
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        struct ctld *ctld;
        void *fresh;

        ctld_up(&fresh);
        ctld = fresh;
        ctld_submit(ctld, "RUNNING");
        ctld->next_id = 3;
        ctld_submit(ctld, "COMPLETED");
        ctld_begin(ctld);
        signs[i].happen(ctld);
        ctld_run(ctld, 40000);
        assert_string_equal(slurm_poller_why(ctld->poller), signs[i].why);
        assert_int_equal(slurm_poller_suspicions(ctld->poller), 1);
        assert_int_equal(ctld_sent(ctld, "/jobs/?"), 1);
        assert_false(slurm_poller_is_suspicious(ctld->poller));
        ctld_down(&fresh);
    }
    (void)state;
}

static void a_requeued_job_is_no_sign(void **state)
{
    struct ctld *ctld = *state;

    ctld_submit(ctld, "RUNNING");
    ctld_begin(ctld);
    *ctld_job(ctld, 1) = (struct ctld_job){ 1, "PENDING", 1, 1 };
    ctld_run(ctld, 5000);
    assert_told(ctld, "1:R>P ");
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 0);
}

/* ---- the model ---- */

static void happen(struct ctld *ctld)
{
    static const char *const after_pending[] = { "RUNNING", "CANCELLED" };
    struct ctld_job *job = &ctld->jobs[rand_below(&ctld->rand, JOBS)];
    uint64_t dice = rand_below(&ctld->rand, 1000);

    if (dice < 10) { /* kill -9: the youngest are lost, their ids are used again */
        int64_t kept = ctld->next_id - 1 - (int64_t)rand_below(&ctld->rand, 4);

        ctld->boot_time++;
        for (size_t i = 0; i < JOBS; i++)
            if (ctld->jobs[i].id > kept)
                ctld->jobs[i].id = 0;
        ctld->next_id = kept + 1 > 1 ? kept + 1 : 1;
    } else if (dice < 30) {
        ctld->down = !ctld->down;
    } else if (dice < 300 && !ctld->down) {
        ctld_submit(ctld, "PENDING");
    } else if (ctld->down || job->id == 0) {
        return;
    } else if (strcmp(job->state, "PENDING") == 0) {
        job->state = after_pending[rand_below(&ctld->rand, 2)];
    } else if (strcmp(job->state, "RUNNING") == 0 && dice < 400) {
        job->state = "PENDING";
        job->restarts++;
    } else if (strcmp(job->state, "RUNNING") == 0) {
        job->state = "COMPLETED";
    } else {
        job->id = 0; /* purged */
    }
}

static int64_t travel(void *context, const struct fake_sent *request)
{
    struct ctld *ctld = context;

    (void)request;
    return ctld->random ? rand_range(&ctld->rand, 0, 100 * MS_US) : 0;
}

static void mirror_equals_cache(struct ctld *ctld)
{
    const struct slurm_cache *cache = slurm_poller_cache(ctld->poller, SLURM_FEED_JOBS);
    struct slurm_cache_walk walk = slurm_cache_walk(cache);
    const struct slurm_object *object;

    assert_int_equal(slurm_cache_count(cache), ctld->mirror.count);
    while ((object = slurm_cache_next(&walk)))
        assert_ptr_equal(map_get(&ctld->mirror, str_of(object->key)), object);
}

static void cache_equals_truth(struct ctld *ctld)
{
    const struct slurm_cache *cache = slurm_poller_cache(ctld->poller, SLURM_FEED_JOBS);
    size_t count = 0;

    for (size_t i = 0; i < JOBS; i++) {
        const struct ctld_job *job = &ctld->jobs[i];
        const struct slurm_object *object;
        char text[24];

        if (job->id == 0)
            continue;
        count++;
        snprintf(text, sizeof(text), "%" PRId64, job->id);
        object = slurm_cache_get(cache, text);
        assert_non_null(object);
        assert_string_equal(ctld_state_of(object), job->state[0] == 'C' && job->state[1] == 'A'
                                                       ? "X"
                                                       : ((char[]){ job->state[0], '\0' }));
        snprintf(text, sizeof(text), "s%d", job->serial);
        assert_string_equal(slurm_job_of(object)->sluid, text);
    }
    assert_int_equal(slurm_cache_count(cache), count);
}

static void random_read(struct ctld *ctld)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, ctld->next_id - (int64_t)rand_below(&ctld->rand, 9));
    if (text[0] != '-' && text[0] != '0')
        slurm_poller_wrote(ctld->poller, SLURM_FEED_JOBS, text);
}

static void whatever_happens_the_mirror_is_the_cache_and_in_the_end_the_truth(void **state)
{
    struct ctld *ctld = *state;

    fake_travel(ctld->world->fake, travel, ctld);
    ctld->random = true;
    slurm_poller_start(ctld->poller);
    for (unsigned round = 0; round < 40; round++) {
        ctld->random = true;
        for (unsigned i = 0; i < 100; i++) {
            happen(ctld);
            if (rand_chance(&ctld->rand, 100))
                random_read(ctld);
            if (rand_chance(&ctld->rand, 50))
                ctld_expect(ctld, 1000);
            ctld_run(ctld, rand_range(&ctld->rand, 0, 400));
        }
        ctld->random = ctld->down = false;
        ctld_run(ctld, 90000);
        mirror_equals_cache(ctld);
        cache_equals_truth(ctld);
        fake_forget_sent(ctld->world->fake);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_running_job_that_disappears_is_gone_only_after_list_and_read),
        TEST(nothing_goes_while_slurmctld_is_away),
        TEST(a_suspicion_keeps_nodes_too_and_they_are_listed_again),
        TEST(a_list_from_before_the_suspicion_does_not_end_it),
        TEST(occasional_502s_of_a_slurmctld_that_was_not_restarted_stop_nothing),
        TEST(a_502_of_a_slurmctld_that_was_restarted_leads_to_a_whole_list),
        TEST(a_boot_time_that_is_newer_than_the_job_list_proves_nothing),
        TEST(a_boot_time_that_nobody_tells_any_more_leaves_it_to_the_list),
        TEST(a_suspicion_for_another_reason_too_waits_for_its_list),
        TEST(errors_are_told_and_take_nothing_away),
        TEST(a_list_without_its_time_takes_nothing_away),
        cmocka_unit_test(each_sign_of_a_restart_leads_to_a_whole_list),
        TEST(a_requeued_job_is_no_sign),
        TEST(whatever_happens_the_mirror_is_the_cache_and_in_the_end_the_truth),
    };

    return cmocka_run_group_tests_name("poller doubts", tests, NULL, NULL);
}
