/* test_poller_lists.c - long lists that arrive in pieces: merged as they come, never in one go, and
 * nothing that happens meanwhile is lost. */
#include "slurm/poller.h"
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__)
enum { SLOWER = 10 }; /* times, by the checks that the compiler puts in */
#else
enum { SLOWER = 1 };
#endif

enum { MANY = 50000, MS_US = 1000, JOBS_IN_PIECE = 40, LONGEST_US = 50 * MS_US * SLOWER };

struct listing {
    struct world *world;
    struct slurm_poller *poller;
    struct buf body;
    const char *state_of_7; /* what a direct read and the states say */
    size_t told, running;
    bool untold_running; /* a change of job 7 came with a wrong old object */
};

static void write_job(struct listing *listing, int64_t id, const char *state)
{
    buf_printf(&listing->body,
               "{\"job_id\":%" PRId64 ",\"step_id\":{\"sluid\":\"s%" PRId64
               "\"},\"job_state\":[\"%s\"],\"restart_cnt\":0,"
               "\"array_job_id\":{\"set\":true,\"number\":0}}",
               id, id, state);
}

/* Single jobs are answered here; the long list is fed by the tests. */
static struct fake_answer serve(void *context, const struct fake_sent *sent)
{
    struct listing *listing = context;
    struct fake_answer answer = { .status = 200, .delay_us = MS_US };

    buf_clear(&listing->body);
    if (strstr(sent->path, "/jobs/?"))
        return answer; /* stays open */
    if (strstr(sent->path, "/jobs/state/"))
        buf_printf(&listing->body,
                   "{\"jobs\":[{\"job_id\":\"7\",\"state\":[\"%s\"]}],\"errors\":[]}",
                   listing->state_of_7);
    if (strstr(sent->path, "/job/")) {
        buf_add_text(&listing->body, "{\"jobs\":[");
        write_job(listing, 7, listing->state_of_7);
        buf_add_text(&listing->body, "],\"errors\":[]}");
    }
    if (listing->body.len == 0)
        buf_add_text(&listing->body, "{\"nodes\":[],\"partitions\":[],\"reservations\":[],"
                                     "\"slurm_conf\":{},\"errors\":[],"
                                     "\"last_update\":{\"set\":true,\"number\":9}}");
    answer.body = buf_text(&listing->body);
    answer.ends = true;
    return answer;
}

static void on_job(void *context, const struct slurm_object *old, const struct slurm_object *next)
{
    struct listing *listing = context;

    listing->told++;
    if (next && slurm_job_of(next)->id == 7 &&
        slurm_words_has(&slurm_job_of(next)->state, SLURM_JOB_RUNNING)) {
        listing->running++;
        listing->untold_running |=
            !old || !slurm_words_has(&slurm_job_of(old)->state, SLURM_JOB_PENDING);
    }
}

static int set_up(void **state)
{
    struct listing *listing = mem_alloc(sizeof(*listing));
    void *world;

    world_up(&world);
    listing->world = world;
    listing->state_of_7 = "PENDING";
    buf_init(&listing->body, 1 << 20);
    fake_serve(listing->world->fake, serve, listing);
    listing->poller = slurm_poller_new(listing->world->client, NULL);
    slurm_cache_listen(slurm_poller_cache(listing->poller, SLURM_FEED_JOBS), on_job, listing);
    slurm_poller_start(listing->poller);
    fake_run_for(listing->world->fake, 10 * MS_US);
    *state = listing;
    return 0;
}

static int tear_down(void **state)
{
    struct listing *listing = *state;
    void *world = listing->world;

    slurm_poller_free(listing->poller);
    buf_done(&listing->body);
    mem_free(listing);
    return world_down(&world);
}

static struct slurm_cache *jobs(struct listing *listing)
{
    return slurm_poller_cache(listing->poller, SLURM_FEED_JOBS);
}

static void feed(struct listing *listing)
{
    assert_true(fake_stream_feed(listing->world->fake, V45 "/jobs/", buf_text(&listing->body)));
    buf_clear(&listing->body);
}

static void feed_jobs_in(struct listing *listing, const char *state, int64_t from, int64_t to)
{
    buf_clear(&listing->body);
    for (int64_t id = from; id <= to; id++) {
        buf_add_text(&listing->body, id == 1 ? "{\"jobs\":[" : ",");
        write_job(listing, id, state);
        if (id % JOBS_IN_PIECE == 0 || id == to)
            feed(listing);
    }
}

static void feed_jobs(struct listing *listing, int64_t from, int64_t to)
{
    feed_jobs_in(listing, "PENDING", from, to);
}

static void end_list(struct listing *listing)
{
    buf_clear(&listing->body);
    buf_add_text(&listing->body, "],\"errors\":[],\"last_update\":{\"set\":true,\"number\":1000}}");
    feed(listing);
    assert_true(fake_stream_end(listing->world->fake, V45 "/jobs/"));
}

/* Another whole list is wanted, and asked for. */
static void ask_again(struct listing *listing, const char *why)
{
    slurm_poller_suspect(listing->poller, why);
    while (!fake_stream_feed(listing->world->fake, V45 "/jobs/", " "))
        assert_true(loop_step(listing->world->loop));
}

static int64_t thread_us(void)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (int64_t)now.tv_sec * SECOND_US + now.tv_nsec / 1000;
}

/* One turn after the other, until it shows that many; the longest turn in CPU time. */
static int64_t run_until(struct listing *listing, size_t count, unsigned *ret_turns)
{
    int64_t longest_us = 0;

    while (slurm_cache_count(jobs(listing)) != count || listing->told < count) {
        int64_t before_us = thread_us(), took_us;

        assert_true(loop_step(listing->world->loop));
        took_us = thread_us() - before_us;
        longest_us = took_us > longest_us ? took_us : longest_us;
        *ret_turns += 1;
        assert_true(*ret_turns < 100000);
    }
    return longest_us;
}

static void a_list_of_50000_jobs_is_merged_over_many_turns(void **state)
{
    struct listing *listing = *state;
    unsigned turns = 0;
    int64_t longest_us;

    feed_jobs(listing, 1, MANY);
    end_list(listing);
    longest_us = run_until(listing, MANY, &turns);
    assert_true(turns > 1000);
    assert_in_range(longest_us, 0, LONGEST_US);
}

static void a_change_while_the_list_arrives_is_not_lost(void **state)
{
    struct listing *listing = *state;
    unsigned turns = 0;

    feed_jobs(listing, 1, MANY);
    end_list(listing);
    run_until(listing, MANY, &turns);

    ask_again(listing, "a second list");
    feed_jobs(listing, 1, MANY / 2); /* with 7 as it was when the list was asked for */
    fake_run_for(listing->world->fake, 10 * MS_US);
    listing->state_of_7 = "RUNNING";
    slurm_poller_wrote(listing->poller, SLURM_FEED_JOBS, "7");
    fake_run_for(listing->world->fake, 10 * MS_US);
    assert_int_equal(listing->running, 1);
    feed_jobs(listing, MANY / 2 + 1, MANY);
    end_list(listing);
    fake_run_for(listing->world->fake, 100 * MS_US);
    assert_false(slurm_poller_is_suspicious(listing->poller));
    assert_true(slurm_words_has(&slurm_job_of(slurm_cache_get(jobs(listing), "7"))->state,
                                SLURM_JOB_RUNNING));
    assert_int_equal(listing->running, 1);
    assert_int_equal(listing->told, MANY + 1);
    assert_false(listing->untold_running);
}

/* After a first list, a second with all jobs in this state; its longest turn. */
static int64_t list_twice(struct listing *listing, const char *state)
{
    struct slurm_feed_stats stats = { 0 };
    unsigned turns = 0;
    int64_t longest_us = 0;

    feed_jobs(listing, 1, MANY);
    end_list(listing);
    run_until(listing, MANY, &turns);
    ask_again(listing, "a second list");
    feed_jobs_in(listing, state, 1, MANY);
    end_list(listing);
    while (stats.lists < 2) {
        int64_t before_us = thread_us(), took_us;

        assert_true(loop_step(listing->world->loop));
        took_us = thread_us() - before_us;
        longest_us = took_us > longest_us ? took_us : longest_us;
        slurm_poller_stats(listing->poller, SLURM_FEED_JOBS, &stats);
    }
    return longest_us;
}

static void a_second_list_that_changes_nothing_takes_no_long_turn(void **state)
{
    struct listing *listing = *state;

    assert_in_range(list_twice(listing, "PENDING"), 0, LONGEST_US);
    assert_int_equal(listing->told, MANY);
}

static void a_second_list_that_changes_every_job_takes_no_long_turn(void **state)
{
    struct listing *listing = *state;

    listing->state_of_7 = "RUNNING";
    assert_in_range(list_twice(listing, "RUNNING"), 0, LONGEST_US);
    fake_run_for(listing->world->fake, SECOND_US);
    assert_int_equal(listing->told, 2 * MANY);
}

static const struct {
    const char *what, *piece;
    int class; /* how the stream breaks; 0: it ends */
} breaks[] = {
    { "the connection breaks", "", ERR_UNKNOWN },
    { "it ends too early", "", 0 },
    { "an element is no JSON", ",{\"job_id\":}],\"last_update\":{\"set\":true,\"number\":9}}", 0 },
    { "an element is no job", ",{\"a\":1}],\"last_update\":{\"set\":true,\"number\":9}}", 0 },
    { "errors are in it", "],\"errors\":[{\"error_number\":5}]}", 0 },
};

static void a_list_that_breaks_off_takes_nothing_away_and_is_read_again(void **state)
{
    for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++) {
        struct slurm_feed_stats stats;
        struct listing *listing;
        unsigned turns = 0;
        void *fresh;

        set_up(&fresh);
        listing = fresh;
        feed_jobs(listing, 1, 100);
        end_list(listing);
        run_until(listing, 100, &turns);
        ask_again(listing, breaks[i].what);
        feed_jobs(listing, 1, 50);
        if (breaks[i].piece[0])
            assert_true(fake_stream_feed(listing->world->fake, V45 "/jobs/", breaks[i].piece));
        if (breaks[i].class)
            fake_stream_break(listing->world->fake, V45 "/jobs/", breaks[i].class);
        else
            fake_stream_end(listing->world->fake, V45 "/jobs/");
        fake_run_for(listing->world->fake, 10 * MS_US);
        slurm_poller_stats(listing->poller, SLURM_FEED_JOBS, &stats);
        assert_int_equal(stats.failures, 1);
        assert_int_equal(slurm_cache_count(jobs(listing)), 100);
        assert_int_equal(listing->told, 100);
        assert_true(slurm_poller_is_suspicious(listing->poller));
        fake_run_for(listing->world->fake, 5 * SECOND_US);
        assert_true(fake_stream_feed(listing->world->fake, V45 "/jobs/", " "));
        tear_down(&fresh);
    }
    (void)state;
}

static void a_list_that_never_ends_is_given_up(void **state)
{
    struct listing *listing = *state;
    struct slurm_feed_stats stats = { 0 };

    for (unsigned i = 0; i < 100 && stats.failures == 0; i++) {
        (void)fake_stream_feed(listing->world->fake, V45 "/jobs/", " ");
        fake_run_for(listing->world->fake, 4 * SECOND_US);
        slurm_poller_stats(listing->poller, SLURM_FEED_JOBS, &stats);
    }
    assert_int_equal(stats.failures, 1);
    assert_string_equal(stats.last_error, "the deadline passed before the whole list had come");
    fake_run_for(listing->world->fake, 20 * SECOND_US); /* and asked for again soon */
    assert_true(fake_stream_feed(listing->world->fake, V45 "/jobs/", " "));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_list_of_50000_jobs_is_merged_over_many_turns),
        TEST(a_second_list_that_changes_nothing_takes_no_long_turn),
        TEST(a_second_list_that_changes_every_job_takes_no_long_turn),
        TEST(a_change_while_the_list_arrives_is_not_lost),
        cmocka_unit_test(a_list_that_breaks_off_takes_nothing_away_and_is_read_again),
        TEST(a_list_that_never_ends_is_given_up),
    };

    return cmocka_run_group_tests_name("poller lists", tests, NULL, NULL);
}
