/* test_poller_starts.c - single jobs are read at once and never twice; of one that starts the nodes
 * alone, which are believed only where they cannot be another job's. */
#include "ctld_rig.h"

static void what_was_written_is_read_at_once(void **state)
{
    struct ctld *ctld = *state;
    int64_t at_us;

    ctld_begin(ctld);
    ctld_submit(ctld, "PENDING");
    at_us = loop_now_us(ctld->world->loop);
    slurm_poller_wrote(ctld->poller, SLURM_FEED_JOBS, "1");
    ctld_run(ctld, 10);
    assert_told(ctld, "1:->P ");
    assert_true(slurm_cache_known_us(slurm_poller_cache(ctld->poller, SLURM_FEED_JOBS), "1") >=
                at_us);
}

/* A poll that comes between question and answer of a read does not ask the same again. */
static void what_is_being_read_is_not_read_again(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_poller_options options = { .fast_us = 10 * MS_US };

    ctld_poller(ctld, &options);
    ctld_submit(ctld, "PENDING");
    ctld_begin(ctld);
    ctld_run(ctld, 3000);
    ctld->delay_us = 100 * MS_US;
    ctld_job(ctld, 1)->state = "RUNNING";
    ctld_expect(ctld, 60000);
    ctld_run(ctld, 50);
    slurm_poller_read(ctld->poller, SLURM_FEED_JOBS, "1");
    ctld_run(ctld, 1000);
    assert_told(ctld, "1:P>R ");
    assert_int_equal(ctld_sent(ctld, "/job/1"), 1);
}

/* ---- where a job starts ---- */

static void read_nodes_only(struct ctld *ctld)
{
    static const struct slurm_poller_options options = { .nodes_only = true };

    ctld_poller(ctld, &options);
    ctld_begin(ctld);
}

/* Job 1 waits and is known, by one read. */
static void one_job_waits(struct ctld *ctld)
{
    read_nodes_only(ctld);
    ctld_submit(ctld, "PENDING");
    ctld_run(ctld, 4000);
    assert_told(ctld, "1:->P ");
    assert_int_equal(ctld_sent(ctld, "/job/1"), 1);
}

/* Job 1, and its nodes were asked for. */
static void it_starts(struct ctld *ctld)
{
    ctld_job(ctld, 1)->state = "RUNNING";
    ctld_run(ctld, 4000);
    assert_int_equal(ctld_sent(ctld, "/resources/1"), 1);
}

static void of_a_job_that_starts_the_nodes_alone_may_be_read(void **state)
{
    struct ctld *ctld = *state;
    const struct slurm_job *job;

    one_job_waits(ctld);
    it_starts(ctld);
    assert_told(ctld, "1:P>R ");
    assert_int_equal(ctld_sent(ctld, "/job/1"), 1);
    job = ctld_shown(ctld, "1");
    assert_non_null(job);
    assert_string_equal(job->nodes, "n1,n2");
    assert_int_equal(job->id, 1);
    assert_string_equal(job->object.key, "1");
}

static void count_layout(void *context, const struct slurm_job *job, const struct json *body)
{
    auto_arena struct arena arena;
    struct slurm_layout layout;
    unsigned *count = context;

    arena_init(&arena, SLURM_LAYOUT_MEMORY);
    assert_int_equal(slurm_layout_decode(&arena, body, &layout, NULL), 0);
    assert_int_equal(layout.count, 2);
    assert_string_equal(job->nodes, "n1,n2");
    (*count)++;
}

/* Nodes that are not believed say nothing about devices either. */
static void what_a_job_has_on_its_nodes_is_told_with_them(void **state)
{
    struct ctld *ctld = *state;
    unsigned count = 0;
    struct slurm_poller_options options = { .nodes_only = true,
                                            .layout_read = count_layout,
                                            .context = &count };

    ctld_poller(ctld, &options);
    ctld_begin(ctld);
    ctld_submit(ctld, "PENDING");
    ctld_run(ctld, 4000);
    it_starts(ctld);
    assert_int_equal(count, 1);
    ctld_submit(ctld, "PENDING");
    ctld_run(ctld, 4000);
    ctld->boot_time++;
    ctld_job(ctld, 2)->state = "RUNNING";
    ctld_run(ctld, 4000);
    assert_int_equal(ctld_sent(ctld, "/resources/2"), 1);
    assert_int_equal(count, 1);
}

static void a_job_whose_nodes_cannot_be_read_is_read_whole(void **state)
{
    struct ctld *ctld = *state;

    ctld->no_layout = true;
    one_job_waits(ctld);
    it_starts(ctld);
    assert_told(ctld, "1:P>R ");
    assert_int_equal(ctld_sent(ctld, "/job/1"), 2);
}

/* The nodes may be those of another job that has the id now. */
static void nodes_are_not_believed_after_a_restart(void **state)
{
    struct ctld *ctld = *state;

    one_job_waits(ctld);
    ctld->boot_time++;
    it_starts(ctld);
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 1);
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 1); /* the list tells */
    assert_told(ctld, "1:P>R ");
    assert_string_equal(ctld_shown(ctld, "1")->nodes, "");
}

/* It was requeued while the answer about its nodes was on its way. */
static void nodes_are_not_believed_when_later_states_say_that_it_waits(void **state)
{
    struct ctld *ctld = *state;

    one_job_waits(ctld);
    ctld->layout_delay_us = 10000 * MS_US;
    it_starts(ctld);
    ctld_job(ctld, 1)->state = "PENDING";
    ctld_run(ctld, 12000);
    assert_told(ctld, "");
    assert_int_equal(ctld_sent(ctld, "/job/1"), 2); /* that it waits is read once more */
}

/* As the answer to an immediate allocation tells it. */
static void show_as_waiting(struct ctld *ctld, int64_t id)
{
    auto_buf struct buf text = { .max = 200 };
    const struct slurm_object *object;
    auto_json_doc struct json_doc *doc = NULL;

    buf_printf(&text, "{\"job_id\":%" PRId64 ",\"job_state\":[\"PENDING\",\"CONFIGURING\"]}", id);
    assert_int_equal(json_parse(buf_str(&text), 200, &doc, NULL), 0);
    assert_int_equal(slurm_object_decode(&slurm_job_kind, json_root(doc), &object, NULL), 0);
    slurm_cache_seen(slurm_poller_cache(ctld->poller, SLURM_FEED_JOBS), object,
                     loop_now_us(ctld->world->loop));
    slurm_object_unref(object);
}

static void of_a_job_that_an_answer_started_the_nodes_are_read_at_once(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_poller_options options = { .nodes_only = true, .slow_us = 60000 * MS_US };

    ctld_poller(ctld, &options);
    ctld_begin(ctld);
    ctld_submit(ctld, "RUNNING");
    show_as_waiting(ctld, 1);
    slurm_poller_started(ctld->poller, "1");
    slurm_poller_started(ctld->poller, "1"); /* is under way */
    ctld_run(ctld, 1000);
    assert_int_equal(ctld_sent(ctld, "/resources/1"), 1);
    assert_int_equal(ctld_sent(ctld, "/job/1"), 0);
    assert_told(ctld, "1:->P 1:P>R ");

    slurm_poller_started(ctld->poller, "2"); /* not in the cache: nothing to add nodes to */
    ctld_run(ctld, 1000);
    assert_int_equal(ctld_sent(ctld, "/resources/2"), 0);
    assert_int_equal(ctld_sent(ctld, "/job/2"), 1);
}

static void a_busy_server_is_asked_for_its_boot_time_less(void **state)
{
    struct ctld *ctld = *state;
    char key[16];

    read_nodes_only(ctld);
    for (int i = 0; i < 8; i++)
        ctld_submit(ctld, "PENDING");
    ctld_run(ctld, 4000);
    ctld->delay_us = 300 * MS_US;
    fake_forget_sent(ctld->world->fake);
    for (int i = 1; i <= 8; i++) {
        ctld_job(ctld, i)->state = "RUNNING";
        snprintf(key, sizeof(key), "%d", i);
        slurm_poller_started(ctld->poller, key);
        ctld_run(ctld, 300);
    }
    assert_int_equal(ctld_sent(ctld, "/resources/"), 8);
    assert_in_range(ctld_sent(ctld, "/conf"), 1, 3); /* 300 ms and three times that to rest */
    ctld_run(ctld, 1500);
    assert_in_range(ctld_sent(ctld, "/conf"), 3, 4);
    for (int i = 1; i <= 8; i++) {
        snprintf(key, sizeof(key), "%d", i);
        assert_string_equal(ctld_shown(ctld, key)->nodes, "n1,n2");
    }
}

/* Two connections: what was asked for first may come last. */
static void an_older_answer_that_comes_later_is_no_sign_of_a_restart(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_poller_options options = { .nodes_only = true, .conf_us = 10000 * MS_US };

    ctld_poller(ctld, &options);
    ctld_begin(ctld);
    ctld_submit(ctld, "PENDING");
    ctld_run(ctld, 9000);
    assert_told(ctld, "1:->P ");
    assert_int_equal(ctld_sent(ctld, "/conf"), 0);
    ctld->conf_delay_us = 1000 * MS_US;
    ctld_run(ctld, 800);
    assert_int_equal(ctld_sent(ctld, "/conf"), 1); /* with the next job id as it is now */
    ctld_submit(ctld, "PENDING");
    ctld_job(ctld, 1)->state = "RUNNING";
    slurm_poller_started(ctld->poller, "1");
    ctld_run(ctld, 500);
    assert_int_equal(ctld_sent(ctld, "/conf"), 2); /* with a higher one, and it was faster */
    ctld_run(ctld, 2000);
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 0);
    ctld->next_id = 1; /* by the next answer it is one again */
    ctld_run(ctld, 12000);
    assert_string_equal(slurm_poller_why(ctld->poller), "slurmctld's next job id fell");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_written_is_read_at_once),
        TEST(what_is_being_read_is_not_read_again),
        TEST(of_a_job_that_starts_the_nodes_alone_may_be_read),
        TEST(what_a_job_has_on_its_nodes_is_told_with_them),
        TEST(a_job_whose_nodes_cannot_be_read_is_read_whole),
        TEST(nodes_are_not_believed_after_a_restart),
        TEST(nodes_are_not_believed_when_later_states_say_that_it_waits),
        TEST(of_a_job_that_an_answer_started_the_nodes_are_read_at_once),
        TEST(a_busy_server_is_asked_for_its_boot_time_less),
        TEST(an_older_answer_that_comes_later_is_no_sign_of_a_restart),
    };

    return cmocka_run_group_tests_name("poller starts", tests, NULL, NULL);
}
