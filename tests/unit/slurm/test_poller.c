/* test_poller.c - the caches follow a scripted slurmctld, for few requests, and believe nothing
 * bad of it too early. */
#include "slurm/poller.h"

#include "base/map.h"
#include "base/rand.h"
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { JOBS = 40, MS_US = 1000 };

struct ctld_job {
    int64_t id; /* 0: a free place */
    const char *state;
    int restarts, serial; /* serial: unique for ever, the sluid */
};

struct ctld {
    struct world *world;
    struct slurm_poller *poller;
    struct ctld_job jobs[JOBS];
    int64_t next_id, boot_time, delay_us;
    int serial;
    int64_t nodes_changed; /* second */
    const char *node_comment;
    const char *part; /* the state of a part of an array; NULL: there is none */
    bool node_there, down, broken, jobs_broken, unstamped;
    bool no_layout; /* nobody tells which nodes a job has */
    int64_t layout_delay_us;
    struct buf body;
    struct map mirror; /* of jobs */
    struct buf log;
    struct rand rand;
    bool random;
};

/* ---- slurmctld and slurmrestd ---- */

static int64_t second(const struct ctld *ctld)
{
    return loop_now_us(ctld->world->loop) / SECOND_US + 1000;
}

static struct ctld_job *job_of(struct ctld *ctld, int64_t id)
{
    for (size_t i = 0; i < JOBS; i++)
        if (ctld->jobs[i].id == id)
            return &ctld->jobs[i];
    return NULL;
}

static struct ctld_job *submit(struct ctld *ctld, const char *state)
{
    struct ctld_job *job = job_of(ctld, 0);

    if (job)
        *job = (struct ctld_job){ ctld->next_id++, state, 0, ++ctld->serial };
    return job;
}

static void write_job(struct ctld *ctld, const struct ctld_job *job)
{
    buf_printf(&ctld->body,
               "{\"job_id\":%" PRId64 ",\"step_id\":{\"sluid\":\"s%d\"},\"job_state\":[\"%s\"],"
               "\"restart_cnt\":%d,\"array_job_id\":{\"set\":true,\"number\":0}}",
               job->id, job->serial, job->state, job->restarts);
}

static void write_jobs(struct ctld *ctld, bool states)
{
    const char *between = "";

    buf_add_text(&ctld->body, "{\"jobs\":[");
    for (size_t i = 0; i < JOBS; i++) {
        const struct ctld_job *job = &ctld->jobs[i];

        if (job->id == 0)
            continue;
        buf_add_text(&ctld->body, between);
        between = ",";
        if (states)
            buf_printf(&ctld->body, "{\"job_id\":\"%" PRId64 "\",\"state\":[\"%s\"]}", job->id,
                       job->state);
        else
            write_job(ctld, job);
    }
    if (states && ctld->part)
        buf_printf(&ctld->body, "%s{\"job_id\":\"7_[1-3]\",\"state\":[\"%s\"]}", between,
                   ctld->part);
    buf_add_text(&ctld->body, "],\"errors\":[]");
    if (!states && !ctld->unstamped)
        buf_printf(&ctld->body, ",\"last_update\":{\"set\":true,\"number\":%" PRId64 "}",
                   second(ctld));
    buf_add_char(&ctld->body, '}');
}

static int write_one_job(struct ctld *ctld, const char *path)
{
    struct ctld_job *job = job_of(ctld, (int64_t)strtoll(strstr(path, "/job/") + 5, NULL, 10));

    if (!job) {
        buf_add_text(&ctld->body, "{\"jobs\":[],\"errors\":[{\"error_number\":2017}]}");
        return 404;
    }
    buf_add_text(&ctld->body, "{\"jobs\":[");
    write_job(ctld, job);
    buf_add_text(&ctld->body, "],\"errors\":[]}");
    return 200;
}

static int write_nodes(struct ctld *ctld, const char *path)
{
    const char *since = strstr(path, "update_time=");

    if (since && strtoll(since + 12, NULL, 10) > ctld->nodes_changed)
        return 304;
    buf_printf(&ctld->body, "{\"nodes\":[{\"name\":\"n1\",\"comment\":\"%s\"}%s],\"errors\":[],",
               ctld->node_comment, ctld->node_there ? ",{\"name\":\"n2\"}" : "");
    buf_printf(&ctld->body, "\"last_update\":{\"set\":true,\"number\":%" PRId64 "}}", second(ctld));
    return 200;
}

static int respond(struct ctld *ctld, const char *path)
{
    bool parts = strstr(path, "/partitions/") != NULL;

    if (ctld->down) {
        buf_add_text(&ctld->body, "{\"errors\":[{\"error_number\":1800}]}");
        return 502;
    }
    if (ctld->broken || (ctld->jobs_broken && strstr(path, "/jobs/")) ||
        (ctld->random && rand_chance(&ctld->rand, 30)))
        return 500;
    if (strstr(path, "/conf")) {
        buf_printf(&ctld->body,
                   "{\"slurm_conf\":{\"PrivateData\":[],\"SlurmUser\":\"slurm\"},"
                   "\"slurm_conf_meta\":{\"BOOT_TIME\":%" PRId64 ",\"NEXT_JOB_ID\":%" PRId64
                   "},\"errors\":[]}",
                   ctld->boot_time, ctld->next_id);
        return 200;
    }
    if (strstr(path, "/job/"))
        return write_one_job(ctld, path);
    if (strstr(path, "/resources/")) {
        buf_add_text(&ctld->body, ctld->no_layout ? "{\"errors\":[{\"error_number\":2017}]}"
                                                  : "{\"nodes\":[{\"node\":\"n1\"},"
                                                    "{\"node\":\"n2\"}],\"errors\":[]}");
        return ctld->no_layout ? 404 : 200;
    }
    if (strstr(path, "/nodes/"))
        return write_nodes(ctld, path);
    if (strstr(path, "/jobs/")) {
        bool says_unchanged = ctld->random && rand_chance(&ctld->rand, 20);

        if (says_unchanged && !strstr(path, "state"))
            buf_add_text(&ctld->body, "{\"jobs\":[],\"errors\":[],\"last_update\":{\"set\":true,"
                                      "\"number\":0}}");
        else
            write_jobs(ctld, strstr(path, "/state/"));
        return 200;
    }
    if (strstr(path, "update_time="))
        return 304;
    buf_printf(&ctld->body, "{\"%s\":[],\"errors\":[],\"last_update\":{\"set\":true,\"number\":9}}",
               parts ? "partitions" : "reservations");
    return 200;
}

static struct fake_answer serve(void *context, const struct fake_sent *sent)
{
    struct ctld *ctld = context;
    struct fake_answer answer = { .delay_us = ctld->delay_us, .ends = true };

    buf_clear(&ctld->body);
    answer.status = respond(ctld, sent->path);
    answer.body = buf_text(&ctld->body);
    if (ctld->random)
        answer.delay_us = rand_range(&ctld->rand, 0, 300 * MS_US);
    if (strstr(sent->path, "/resources/"))
        answer.delay_us += ctld->layout_delay_us;
    return answer;
}

/* ---- the bench ---- */

static void free_object(void *object)
{
    slurm_object_unref(object);
}

static const char *state_of(const struct slurm_object *object)
{
    static const char *const names[] = { "P", "R", "S", "C", "X", "F" };

    if (!object)
        return "-";
    for (unsigned i = 0; i < 6; i++)
        if (slurm_words_has(&slurm_job_of(object)->state, i))
            return names[i];
    return "?";
}

static void on_job(void *context, const struct slurm_object *old, const struct slurm_object *next)
{
    struct ctld *ctld = context;
    const struct slurm_object *any = next ? next : old;

    assert_ptr_equal(map_get(&ctld->mirror, str_of(any->key)), old);
    buf_printf(&ctld->log, "%s:%s>%s ", any->key, state_of(old), state_of(next));
    if (next) {
        assert_int_equal(
            map_put(&ctld->mirror, str_of(next->key), (void *)slurm_object_ref(next), NULL), 0);
        return;
    }
    for (size_t i = 0; i < JOBS; i++) {
        char sluid[16];

        snprintf(sluid, sizeof(sluid), "s%d", ctld->jobs[i].serial);
        if (ctld->jobs[i].id != 0)
            assert_string_not_equal(sluid, slurm_job_of(old)->sluid);
    }
    assert_false(slurm_poller_is_suspicious(ctld->poller) && !ctld->random);
    assert_true(map_remove(&ctld->mirror, str_of(old->key)));
}

static void make_poller(struct ctld *ctld, const struct slurm_poller_options *options)
{
    slurm_poller_free(ctld->poller);
    ctld->poller = slurm_poller_new(ctld->world->client, options);
    slurm_cache_listen(slurm_poller_cache(ctld->poller, SLURM_FEED_JOBS), on_job, ctld);
}

static int set_up(void **state)
{
    struct map_options options = { .max = 10000, .free_value = free_object };
    struct ctld *ctld = mem_alloc(sizeof(*ctld));
    void *world;

    world_up(&world);
    ctld->world = world;
    ctld->next_id = 1;
    ctld->boot_time = 5;
    ctld->delay_us = MS_US;
    ctld->node_comment = "a";
    ctld->node_there = true;
    buf_init(&ctld->body, 1 << 20);
    buf_init(&ctld->log, 1 << 24);
    map_init(&ctld->mirror, &options);
    rand_init(&ctld->rand, 3);
    fake_serve(ctld->world->fake, serve, ctld);
    make_poller(ctld, NULL);
    *state = ctld;
    return 0;
}

static int tear_down(void **state)
{
    struct ctld *ctld = *state;
    void *world = ctld->world;

    slurm_poller_free(ctld->poller);
    map_done(&ctld->mirror);
    buf_done(&ctld->body);
    buf_done(&ctld->log);
    mem_free(ctld);
    return world_down(&world);
}

static void run(struct ctld *ctld, int64_t ms)
{
    fake_run_for(ctld->world->fake, ms * MS_US);
}

/* Started, listed, and nothing yet to tell but what is there. */
static void begin(struct ctld *ctld)
{
    slurm_poller_start(ctld->poller);
    run(ctld, 500);
    assert_true(slurm_poller_is_synced(ctld->poller));
    buf_clear(&ctld->log);
    fake_forget_sent(ctld->world->fake);
}

static unsigned sent(struct ctld *ctld, const char *part)
{
    unsigned count = 0;

    for (size_t i = 0; i < fake_sent_count(ctld->world->fake); i++)
        count += strstr(fake_sent(ctld->world->fake, i)->path, part) != NULL;
    return count;
}

#define assert_told(ctld, want)                                                                    \
    do {                                                                                           \
        assert_string_equal(buf_text(&(ctld)->log), want);                                         \
        buf_clear(&(ctld)->log);                                                                   \
    } while (0)

/* ---- one rule each ---- */

static void the_start_is_one_whole_list_without_detail(void **state)
{
    struct ctld *ctld = *state;

    submit(ctld, "RUNNING");
    submit(ctld, "PENDING");
    slurm_poller_start(ctld->poller);
    run(ctld, 100);
    assert_told(ctld, "1:->R 2:->P ");
    assert_int_equal(sent(ctld, "/jobs/?flags=LOCAL"), 1);
    run(ctld, 60000);
    assert_int_equal(sent(ctld, "/jobs/?"), 1);
    assert_told(ctld, "");
}

static void a_changed_state_is_read_and_told_once(void **state)
{
    struct ctld *ctld = *state;

    submit(ctld, "PENDING");
    submit(ctld, "PENDING");
    begin(ctld);
    job_of(ctld, 2)->state = "RUNNING";
    submit(ctld, "PENDING");
    run(ctld, 5000);
    assert_told(ctld, "2:P>R 3:->P ");
    assert_int_equal(sent(ctld, "/job/"), 2);
    assert_int_equal(sent(ctld, "/jobs/?"), 0);
}

static void nothing_new_about_nodes_costs_nothing(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_feed_stats before, after;
    struct slurm_cache *nodes = slurm_poller_cache(ctld->poller, SLURM_FEED_NODES);

    begin(ctld);
    run(ctld, 3000);
    slurm_poller_stats(ctld->poller, SLURM_FEED_NODES, &before);
    run(ctld, 10000);
    slurm_poller_stats(ctld->poller, SLURM_FEED_NODES, &after);
    assert_int_equal(after.bytes, before.bytes);
    assert_in_range(after.unchanged - before.unchanged, 4, 5);
    assert_in_range(after.age_us, 0, 2100 * MS_US);
    ctld->node_comment = "b";
    ctld->node_there = false;
    ctld->nodes_changed = second(ctld);
    run(ctld, 2500);
    assert_string_equal(slurm_node_of(slurm_cache_get(nodes, "n1"))->comment, "b");
    assert_null(slurm_cache_get(nodes, "n2"));
}

static void what_is_expected_is_polled_for_often(void **state)
{
    struct ctld *ctld = *state;

    begin(ctld);
    run(ctld, 10000);
    assert_in_range(sent(ctld, "/jobs/state/"), 4, 6);
    slurm_poller_expect(ctld->poller, loop_now_us(ctld->world->loop) + 3 * SECOND_US);
    fake_forget_sent(ctld->world->fake);
    run(ctld, 3000);
    assert_in_range(sent(ctld, "/jobs/state/"), 18, 21);
    assert_in_range(sent(ctld, "/partitions/"), 1, 2);
    fake_forget_sent(ctld->world->fake);
    run(ctld, 10000);
    assert_in_range(sent(ctld, "/jobs/state/"), 4, 6);
}

static void a_slow_server_is_asked_less(void **state)
{
    struct ctld *ctld = *state;

    begin(ctld);
    ctld->delay_us = SECOND_US;
    run(ctld, 3000);
    fake_forget_sent(ctld->world->fake);
    run(ctld, 33000);
    assert_int_equal(sent(ctld, "/jobs/state/"), 3);
    slurm_poller_expect(ctld->poller, INT64_MAX);
    run(ctld, 4000);
    fake_forget_sent(ctld->world->fake);
    run(ctld, 40000);
    assert_in_range(sent(ctld, "/jobs/state/"), 10, 11);
}

static void a_purged_job_has_gone(void **state)
{
    struct ctld *ctld = *state;

    submit(ctld, "COMPLETED");
    submit(ctld, "RUNNING");
    begin(ctld);
    job_of(ctld, 1)->id = 0;
    run(ctld, 3000);
    assert_told(ctld, "1:C>- ");
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 0);
    assert_int_equal(sent(ctld, "/jobs/?"), 0);
}

static void a_running_job_that_disappears_is_gone_only_after_list_and_read(void **state)
{
    struct ctld *ctld = *state;

    submit(ctld, "RUNNING");
    submit(ctld, "COMPLETED");
    begin(ctld);
    job_of(ctld, 1)->id = 0;
    run(ctld, 3000);
    assert_told(ctld, "1:R>- ");
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 1);
    assert_false(slurm_poller_is_suspicious(ctld->poller));
    assert_int_equal(sent(ctld, "/jobs/?"), 1);
    assert_int_equal(sent(ctld, "/job/1"), 1);
}

static void nothing_goes_while_slurmctld_is_away(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_cache *nodes = slurm_poller_cache(ctld->poller, SLURM_FEED_NODES);

    submit(ctld, "RUNNING");
    submit(ctld, "COMPLETED");
    begin(ctld);
    ctld->down = true;
    run(ctld, 60000);
    assert_true(slurm_poller_is_suspicious(ctld->poller));
    assert_string_equal(slurm_poller_why(ctld->poller), "slurmctld could not be reached");
    assert_told(ctld, "");
    assert_int_equal(slurm_cache_count(nodes), 2);
    job_of(ctld, 2)->id = 0;
    ctld->down = false;
    run(ctld, 20000);
    assert_false(slurm_poller_is_suspicious(ctld->poller));
    assert_told(ctld, "2:C>- ");
}

static void a_suspicion_keeps_nodes_too_and_they_are_listed_again(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_cache *nodes = slurm_poller_cache(ctld->poller, SLURM_FEED_NODES);

    begin(ctld);
    ctld->jobs_broken = true;
    slurm_poller_suspect(ctld->poller, "test");
    ctld->node_there = false;
    ctld->nodes_changed = second(ctld);
    run(ctld, 9000);
    assert_true(slurm_poller_is_suspicious(ctld->poller));
    assert_non_null(slurm_cache_get(nodes, "n2"));
    ctld->jobs_broken = false;
    run(ctld, 20000);
    assert_false(slurm_poller_is_suspicious(ctld->poller));
    assert_null(slurm_cache_get(nodes, "n2"));
}

static void a_list_from_before_the_suspicion_does_not_end_it(void **state)
{
    struct ctld *ctld = *state;

    submit(ctld, "COMPLETED");
    begin(ctld);
    ctld->delay_us = 500 * MS_US;
    job_of(ctld, 1)->id = 0;
    slurm_poller_suspect(ctld->poller, "one");
    run(ctld, 100);
    slurm_poller_suspect(ctld->poller, "two");
    run(ctld, 500);
    assert_int_equal(sent(ctld, "/jobs/?"), 1);
    assert_true(slurm_poller_is_suspicious(ctld->poller));
    assert_told(ctld, "");
    run(ctld, 3000);
    assert_int_equal(sent(ctld, "/jobs/?"), 2);
    assert_false(slurm_poller_is_suspicious(ctld->poller));
    assert_told(ctld, "1:C>- ");
}

static void a_change_in_parts_of_an_array_leads_to_a_whole_list(void **state)
{
    struct ctld *ctld = *state;

    ctld->part = "PENDING";
    begin(ctld);
    run(ctld, 10000);
    fake_forget_sent(ctld->world->fake);
    run(ctld, 10000);
    assert_int_equal(sent(ctld, "/jobs/?"), 0);
    ctld->part = "RUNNING";
    run(ctld, 10000);
    assert_int_equal(sent(ctld, "/jobs/?"), 1);
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 0);
}

static void errors_are_told_and_take_nothing_away(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_feed_stats stats;

    submit(ctld, "COMPLETED");
    begin(ctld);
    ctld->broken = true;
    run(ctld, 120000);
    slurm_poller_stats(ctld->poller, SLURM_FEED_JOBS, &stats);
    assert_in_range(stats.failures, 8, 20);
    assert_true(stats.age_us > 100 * SECOND_US);
    assert_true(stats.last_error[0] != '\0');
    assert_told(ctld, "");
    ctld->broken = false;
    run(ctld, 20000);
    slurm_poller_stats(ctld->poller, SLURM_FEED_JOBS, &stats);
    assert_string_equal(stats.last_error, "");
    assert_told(ctld, "");
}

static void a_list_without_its_time_takes_nothing_away(void **state)
{
    struct ctld *ctld = *state;

    submit(ctld, "COMPLETED");
    begin(ctld);
    ctld->unstamped = true;
    slurm_poller_suspect(ctld->poller, "test");
    job_of(ctld, 1)->id = 0;
    run(ctld, 50);
    assert_int_equal(sent(ctld, "/jobs/?"), 1);
    assert_int_equal(sent(ctld, "/job/1"), 1); /* the read decides */
    run(ctld, 50);
    assert_told(ctld, "1:C>- ");
}

static void lose_a_job(struct ctld *ctld)
{
    job_of(ctld, 1)->id = 0;
}

static void fall_back(struct ctld *ctld)
{
    job_of(ctld, 3)->id = 0; /* had ended, so that alone is nothing */
    ctld->next_id = 2;
    submit(ctld, "PENDING");
    ctld->next_id = 9; /* /conf is not what this is about */
}

static void turn_pending(struct ctld *ctld)
{
    job_of(ctld, 1)->state = "PENDING";
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
    *job_of(ctld, 1) = (struct ctld_job){ 1, "PENDING", 0, 99 };
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

        set_up(&fresh);
        ctld = fresh;
        submit(ctld, "RUNNING");
        ctld->next_id = 3;
        submit(ctld, "COMPLETED");
        begin(ctld);
        signs[i].happen(ctld);
        run(ctld, 40000);
        assert_string_equal(slurm_poller_why(ctld->poller), signs[i].why);
        assert_int_equal(slurm_poller_suspicions(ctld->poller), 1);
        assert_int_equal(sent(ctld, "/jobs/?"), 1);
        assert_false(slurm_poller_is_suspicious(ctld->poller));
        tear_down(&fresh);
    }
    (void)state;
}

static void a_requeued_job_is_no_sign(void **state)
{
    struct ctld *ctld = *state;

    submit(ctld, "RUNNING");
    begin(ctld);
    *job_of(ctld, 1) = (struct ctld_job){ 1, "PENDING", 1, 1 };
    run(ctld, 5000);
    assert_told(ctld, "1:R>P ");
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 0);
}

static void what_was_written_is_read_at_once(void **state)
{
    struct ctld *ctld = *state;
    int64_t at_us;

    begin(ctld);
    submit(ctld, "PENDING");
    at_us = loop_now_us(ctld->world->loop);
    slurm_poller_wrote(ctld->poller, SLURM_FEED_JOBS, "1");
    run(ctld, 10);
    assert_told(ctld, "1:->P ");
    assert_true(slurm_cache_known_us(slurm_poller_cache(ctld->poller, SLURM_FEED_JOBS), "1") >=
                at_us);
}

static void only_tracked_jobs_are_asked_for_in_queries_that_fit(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_poller_options options = { .tracked_only = true };

    make_poller(ctld, &options);
    submit(ctld, "PENDING");
    begin(ctld);
    run(ctld, 1000);
    assert_int_equal(sent(ctld, "/jobs/state/"), 0);
    for (int64_t id = 1; id <= 4000; id++)
        slurm_poller_track(ctld->poller, id);
    slurm_poller_untrack(ctld->poller, 2);
    job_of(ctld, 1)->state = "RUNNING";
    run(ctld, 2000);
    assert_int_equal(sent(ctld, "/jobs/state/?job_id=1&job_id=3&"), 1);
    assert_int_equal(sent(ctld, "/jobs/state/?"), 4);
    for (size_t i = 0; i < fake_sent_count(ctld->world->fake); i++)
        assert_true(strlen(fake_sent(ctld->world->fake, i)->path) < 16384);
    assert_told(ctld, "1:P>R ");
}

static void a_job_that_was_not_asked_for_is_not_missing(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_poller_options options = { .tracked_only = true };

    make_poller(ctld, &options);
    submit(ctld, "RUNNING");
    submit(ctld, "RUNNING");
    slurm_poller_track(ctld->poller, 1);
    begin(ctld);
    ctld->delay_us = 500 * MS_US;
    run(ctld, 1800); /* the states of 1 are on their way */
    assert_int_equal(sent(ctld, "/jobs/state/?job_id=1"), 1);
    slurm_poller_track(ctld->poller, 2);
    run(ctld, 20000);
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 0);
    assert_true(sent(ctld, "/jobs/state/?job_id=1&job_id=2") > 0);
}

static void all_jobs_are_asked_for_too_but_not_so_often(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_poller_options options = { .tracked_only = true };
    size_t tracked, all;

    make_poller(ctld, &options);
    submit(ctld, "RUNNING");
    slurm_poller_track(ctld->poller, 1);
    begin(ctld);
    run(ctld, 30000);
    tracked = sent(ctld, "/jobs/state/?job_id=1");
    all = sent(ctld, "/jobs/state/") - tracked;
    assert_in_range(all, 4, 6);
    assert_true(tracked > all);
}

static void jobs_that_wait_are_asked_for_most_often(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_poller_options options = { .tracked_only = true };
    size_t waiting, both;

    make_poller(ctld, &options);
    submit(ctld, "RUNNING");
    submit(ctld, "PENDING");
    slurm_poller_track(ctld->poller, 1);
    slurm_poller_track(ctld->poller, 2);
    begin(ctld);
    slurm_poller_expect(ctld->poller, loop_now_us(ctld->world->loop) + 60000 * MS_US);
    run(ctld, 10000);
    waiting = sent(ctld, "/jobs/state/?job_id=2");
    both = sent(ctld, "/jobs/state/?job_id=1&job_id=2");
    assert_true(both >= 3);
    assert_true(waiting > 2 * both);
}

static void of_a_job_that_starts_the_nodes_alone_may_be_read(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_poller_options options = { .nodes_only = true };
    const struct slurm_object *job;

    make_poller(ctld, &options);
    begin(ctld);
    submit(ctld, "PENDING");
    run(ctld, 4000);
    assert_told(ctld, "1:->P ");
    assert_int_equal(sent(ctld, "/job/1"), 1);
    job_of(ctld, 1)->state = "RUNNING";
    run(ctld, 4000);
    assert_told(ctld, "1:P>R ");
    assert_int_equal(sent(ctld, "/resources/1"), 1);
    assert_int_equal(sent(ctld, "/job/1"), 1);
    job = slurm_cache_get(slurm_poller_cache(ctld->poller, SLURM_FEED_JOBS), "1");
    assert_string_equal(slurm_job_of(job)->nodes, "n1,n2");
    assert_int_equal(slurm_job_of(job)->id, 1);
    assert_string_equal(job->key, "1");
}

static void a_busy_server_is_asked_for_its_boot_time_less(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_poller_options options = { .nodes_only = true };
    char key[16];

    make_poller(ctld, &options);
    begin(ctld);
    for (int i = 0; i < 8; i++)
        submit(ctld, "PENDING");
    run(ctld, 4000);
    ctld->delay_us = 300 * MS_US;
    fake_forget_sent(ctld->world->fake);
    for (int i = 1; i <= 8; i++) {
        job_of(ctld, i)->state = "RUNNING";
        snprintf(key, sizeof(key), "%d", i);
        slurm_poller_started(ctld->poller, key);
        run(ctld, 300);
    }
    assert_int_equal(sent(ctld, "/resources/"), 8);
    assert_in_range(sent(ctld, "/conf"), 1, 3); /* 300 ms and three times that to rest */
    run(ctld, 1500);
    assert_in_range(sent(ctld, "/conf"), 3, 4);
    for (int i = 1; i <= 8; i++) {
        snprintf(key, sizeof(key), "%d", i);
        assert_string_equal(
            slurm_job_of(slurm_cache_get(slurm_poller_cache(ctld->poller, SLURM_FEED_JOBS), key))
                ->nodes,
            "n1,n2");
    }
}

/* The nodes may be those of another job that has the id now. */
static void nodes_are_not_believed_after_a_restart(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_poller_options options = { .nodes_only = true };

    make_poller(ctld, &options);
    begin(ctld);
    submit(ctld, "PENDING");
    run(ctld, 4000);
    assert_told(ctld, "1:->P ");
    ctld->boot_time++;
    job_of(ctld, 1)->state = "RUNNING";
    run(ctld, 4000);
    assert_int_equal(sent(ctld, "/resources/1"), 1);
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 1);
    assert_int_equal(sent(ctld, "/jobs/?"), 1); /* the list tells */
    assert_told(ctld, "1:P>R ");
    assert_string_equal(
        slurm_job_of(slurm_cache_get(slurm_poller_cache(ctld->poller, SLURM_FEED_JOBS), "1"))
            ->nodes,
        "");
}

static void a_job_whose_nodes_cannot_be_read_is_read_whole(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_poller_options options = { .nodes_only = true };

    make_poller(ctld, &options);
    ctld->no_layout = true;
    begin(ctld);
    submit(ctld, "PENDING");
    run(ctld, 4000);
    assert_told(ctld, "1:->P ");
    job_of(ctld, 1)->state = "RUNNING";
    run(ctld, 4000);
    assert_told(ctld, "1:P>R ");
    assert_int_equal(sent(ctld, "/resources/1"), 1);
    assert_int_equal(sent(ctld, "/job/1"), 2);
}

/* It was requeued while the answer about its nodes was on its way. */
static void nodes_are_not_believed_when_later_states_say_that_it_waits(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_poller_options options = { .nodes_only = true };

    make_poller(ctld, &options);
    begin(ctld);
    submit(ctld, "PENDING");
    run(ctld, 4000);
    assert_told(ctld, "1:->P ");
    job_of(ctld, 1)->state = "RUNNING";
    ctld->layout_delay_us = 10000 * MS_US;
    run(ctld, 4000);
    assert_int_equal(sent(ctld, "/resources/1"), 1);
    job_of(ctld, 1)->state = "PENDING";
    run(ctld, 12000);
    assert_told(ctld, "");
    assert_int_equal(sent(ctld, "/job/1"), 2); /* that it waits is read once more */
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

/* A poll that comes between question and answer of a read does not ask the same again. */
static void what_is_being_read_is_not_read_again(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_poller_options options = { .fast_us = 10 * MS_US };

    make_poller(ctld, &options);
    submit(ctld, "PENDING");
    begin(ctld);
    run(ctld, 3000);
    ctld->delay_us = 100 * MS_US;
    job_of(ctld, 1)->state = "RUNNING";
    slurm_poller_expect(ctld->poller, loop_now_us(ctld->world->loop) + 60000 * MS_US);
    run(ctld, 50);
    slurm_poller_read(ctld->poller, SLURM_FEED_JOBS, "1");
    run(ctld, 1000);
    assert_told(ctld, "1:P>R ");
    assert_int_equal(sent(ctld, "/job/1"), 1);
}

static void of_a_job_that_an_answer_started_the_nodes_are_read_at_once(void **state)
{
    struct ctld *ctld = *state;
    struct slurm_poller_options options = { .nodes_only = true, .slow_us = 60000 * MS_US };

    make_poller(ctld, &options);
    begin(ctld);
    submit(ctld, "RUNNING");
    show_as_waiting(ctld, 1);
    slurm_poller_started(ctld->poller, "1");
    slurm_poller_started(ctld->poller, "1"); /* is under way */
    run(ctld, 1000);
    assert_int_equal(sent(ctld, "/resources/1"), 1);
    assert_int_equal(sent(ctld, "/job/1"), 0);
    assert_told(ctld, "1:->P 1:P>R ");

    slurm_poller_started(ctld->poller, "2"); /* not in the cache: nothing to add nodes to */
    run(ctld, 1000);
    assert_int_equal(sent(ctld, "/resources/2"), 0);
    assert_int_equal(sent(ctld, "/job/2"), 1);
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
        submit(ctld, "PENDING");
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
        assert_string_equal(state_of(object), job->state[0] == 'C' && job->state[1] == 'A'
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
                slurm_poller_expect(ctld->poller, loop_now_us(ctld->world->loop) + SECOND_US);
            run(ctld, rand_range(&ctld->rand, 0, 400));
        }
        ctld->random = ctld->down = false;
        run(ctld, 90000);
        mirror_equals_cache(ctld);
        cache_equals_truth(ctld);
        fake_forget_sent(ctld->world->fake);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_start_is_one_whole_list_without_detail),
        TEST(a_changed_state_is_read_and_told_once),
        TEST(nothing_new_about_nodes_costs_nothing),
        TEST(what_is_expected_is_polled_for_often),
        TEST(a_slow_server_is_asked_less),
        TEST(a_purged_job_has_gone),
        TEST(a_running_job_that_disappears_is_gone_only_after_list_and_read),
        TEST(nothing_goes_while_slurmctld_is_away),
        TEST(a_suspicion_keeps_nodes_too_and_they_are_listed_again),
        TEST(a_list_from_before_the_suspicion_does_not_end_it),
        TEST(a_change_in_parts_of_an_array_leads_to_a_whole_list),
        TEST(errors_are_told_and_take_nothing_away),
        TEST(a_list_without_its_time_takes_nothing_away),
        cmocka_unit_test(each_sign_of_a_restart_leads_to_a_whole_list),
        TEST(a_requeued_job_is_no_sign),
        TEST(what_was_written_is_read_at_once),
        TEST(only_tracked_jobs_are_asked_for_in_queries_that_fit),
        TEST(a_job_that_was_not_asked_for_is_not_missing),
        TEST(all_jobs_are_asked_for_too_but_not_so_often),
        TEST(jobs_that_wait_are_asked_for_most_often),
        TEST(of_a_job_that_starts_the_nodes_alone_may_be_read),
        TEST(a_busy_server_is_asked_for_its_boot_time_less),
        TEST(nodes_are_not_believed_after_a_restart),
        TEST(a_job_whose_nodes_cannot_be_read_is_read_whole),
        TEST(what_is_being_read_is_not_read_again),
        TEST(nodes_are_not_believed_when_later_states_say_that_it_waits),
        TEST(of_a_job_that_an_answer_started_the_nodes_are_read_at_once),
        TEST(whatever_happens_the_mirror_is_the_cache_and_in_the_end_the_truth),
    };

    return cmocka_run_group_tests_name("poller", tests, NULL, NULL);
}
