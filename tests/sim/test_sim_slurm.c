/* test_sim_slurm.c - our Slurm client in front of the slurmctld model, over the simulated network:
 * it reads what the model writes, and each fault tells it what it should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim_transport.h"
#include "slurm/calls.h"
#include "slurm/poller.h"
#include "slurm/sight.h"
#include "slurm/submit.h"

#include <stdio.h>

static const struct slurm_owner owner = { .cluster = { "c", 1 }, .release = { "r", 1 } };

#define KEY STR("0123456789abcdef0123456789abcdef")

enum { SECOND = 1000000 };

struct site {
    struct clock clock;
    struct rand rand;
    struct trace trace;
    struct loop *loop;
    struct api_store *api;
    struct slurm_store *slurm;
    struct sim_net *net;
    struct http_transport *transport;
    struct slurm_token *token;
    struct slurm_client *client;
    unsigned ends, crashes;
    struct slurm_error error; /* of the last call */
    struct slurm_submit_outcome outcome;
    struct json_doc *doc;
};

static void on_crash(void *context, const char *user)
{
    struct site *site = context;

    site->crashes++;
    slurm_client_free(site->client);
    http_transport_free(site->transport);
    site->client = NULL;
    site->transport = NULL;
}

static void connect_client(struct site *site, unsigned version)
{
    site->transport = sim_transport_new_slurm(site->net, "us");
    site->client =
        slurm_client_new(site->loop, site->transport, site->token,
                         &(struct slurm_client_options){ .version = version, .seed = 1 });
}

static int set_up(void **state)
{
    static struct site site;

    site = (struct site){ .ends = 0 };
    clock_init_virtual(&site.clock, INT64_C(1767225600) * SECOND);
    rand_init(&site.rand, 7);
    trace_init(&site.trace, &site.clock, NULL);
    site.loop = loop_new_virtual(&site.clock);
    site.api = api_store_new(&site.clock, 1);
    site.slurm =
        slurm_store_new(&site.clock, &(struct slurm_store_options){ .seed = 1, .jwt_key = KEY });
    site.net = sim_net_new(site.loop, site.api, &site.rand, &site.trace,
                           &(struct sim_hooks){ .crash = on_crash, .context = &site });
    sim_net_add_slurm(site.net, site.slurm);
    assert_int_equal(slurm_token_new_minted(&site.clock, KEY, "slurm", 900, &site.token, NULL), 0);
    connect_client(&site, 45);
    *state = &site;
    return 0;
}

static int tear_down(void **state)
{
    struct site *site = *state;

    slurm_client_free(site->client);
    slurm_token_free(site->token);
    http_transport_free(site->transport);
    sim_net_free(site->net);
    slurm_store_free(site->slurm);
    api_store_free(site->api);
    loop_free(site->loop);
    json_doc_free(site->doc);
    return 0;
}

static void on_done(void *context, const struct slurm_answer *answer)
{
    struct site *site = context;

    site->ends++;
    site->error = answer->error;
    json_doc_free(site->doc);
    site->doc = json_clone(answer->body);
    slurm_submit_judge(answer, slurm_submit_fence_us(site->client, 10), &site->outcome);
}

/* Until the call has ended. */
static void wait_for_end(struct site *site)
{
    unsigned ends = site->ends;

    while (site->ends == ends)
        assert_true(loop_step(site->loop));
}

static void on_time(void *context)
{
    *(bool *)context = true;
}

static void pass(struct site *site, int64_t seconds)
{
    struct loop_timer timer = { 0 };
    bool is_over = false;

    loop_timer_start(site->loop, &timer, seconds * SECOND, on_time, &is_over);
    while (!is_over)
        assert_true(loop_step(site->loop));
}

static void add_nodes(struct site *site)
{
    struct slurm_node_ask ask = {
        .names = "n[1-2]", .address = "127.0.0.1", .cpus = 4, .memory = 8000, .features = "bridged"
    };

    (void)slurm_node_create(site->client, &ask, on_done, site);
    wait_for_end(site);
    assert_int_equal(site->error.class, SLURM_DONE);
}

static void send_job(struct site *site, const char *unit, bool at_once)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *job = json_new_object(build);
    struct str pod = STR("default/a");
    struct slurm_submit_ask ask = { .build = build,
                                    .job = job,
                                    .key = str_of(unit),
                                    .owner = &owner,
                                    .pods = &pod,
                                    .pod_count = 1,
                                    .at_once = at_once };

    json_put_text(build, job, "name", "a");
    json_put_text(build, job, "partition", "all");
    json_push_str(build, json_put_array(build, job, "flags"), STR("EXTERNAL_JOB"));
    slurm_number_put(build, job, "memory_per_node", slurm_number_set(100));
    (void)slurm_submit(site->client, &ask, on_done, site);
}

static void submit(struct site *site, const char *unit, bool at_once)
{
    send_job(site, unit, at_once);
    wait_for_end(site);
}

static unsigned jobs_for(const struct site *site, const char *unit)
{
    unsigned count = 0;
    struct slurm_store_job job;

    for (int64_t id = 1; id < slurm_store_next_id(site->slurm); id++)
        count += slurm_store_find_job(site->slurm, id, &job) &&
                 str_starts(str_of(job.extra), str_of(unit)) && job.extra[strlen(unit)] == ' ';
    return count;
}

/* ---- what is read ---- */

static void the_client_finds_the_newest_version(void **state)
{
    struct site *site = *state;

    slurm_client_free(site->client);
    http_transport_free(site->transport);
    connect_client(site, 0);
    (void)slurm_ping_all(site->client, on_done, site);
    wait_for_end(site);
    assert_int_equal(site->error.class, SLURM_DONE);
    assert_int_equal(slurm_client_version(site->client), 45);
}

static void a_submitted_job_can_be_read_as_ours(void **state)
{
    struct site *site = *state;
    auto_slurm_list struct slurm_list jobs;
    const struct slurm_job *job;

    add_nodes(site);
    submit(site, "u-1/1", false);
    assert_int_equal(site->outcome.result, SLURM_SUBMITTED);
    pass(site, 2);
    (void)slurm_jobs_list(site->client, 0, on_done, site);
    wait_for_end(site);
    assert_int_equal(slurm_list_decode(&slurm_job_kind, json_root(site->doc), &jobs, NULL), 0);
    assert_int_equal(slurm_submit_find(&jobs, &owner, STR("u-1/1"), &job, 1), 1);
    assert_true(slurm_words_has(&job->state, SLURM_JOB_RUNNING));
    assert_true(slurm_words_has(&job->flags, SLURM_JOB_EXTERNAL));
    assert_string_equal(job->nodes, "n1");
    assert_string_equal(job->user, "slurm");
    assert_int_equal(job->cpus, 1);
    assert_int_equal(strlen(job->sluid), 14);
    assert_true(jobs.last_update > 0);
}

static void nodes_partitions_and_layouts_can_be_read(void **state)
{
    struct site *site = *state;
    auto_arena struct arena arena;
    struct slurm_list nodes, partitions;
    struct slurm_layout layout;
    auto_bitmap struct bitmap cores;

    add_nodes(site);
    submit(site, "u", true);
    (void)slurm_nodes_list(site->client, 0, on_done, site);
    wait_for_end(site);
    assert_int_equal(slurm_list_decode(&slurm_node_kind, json_root(site->doc), &nodes, NULL), 0);
    assert_int_equal(nodes.count, 2);
    assert_true(slurm_words_has(&slurm_node_of(nodes.at[0])->state, SLURM_NODE_MIXED));
    assert_true(slurm_words_has(&slurm_node_of(nodes.at[0])->state, SLURM_NODE_EXTERNAL));
    assert_int_equal(slurm_node_of(nodes.at[0])->alloc_cpus, 1);
    assert_string_equal(slurm_node_of(nodes.at[1])->partitions, "all");
    (void)slurm_partitions_list(site->client, 0, on_done, site);
    wait_for_end(site);
    assert_int_equal(
        slurm_list_decode(&slurm_partition_kind, json_root(site->doc), &partitions, NULL), 0);
    assert_string_equal(slurm_partition_of(partitions.at[0])->nodes, "n[1-2]");
    (void)slurm_resources_get(site->client, 1, on_done, site);
    wait_for_end(site);
    arena_init(&arena, SLURM_LAYOUT_MEMORY);
    assert_int_equal(slurm_layout_decode(&arena, json_root(site->doc), &layout, NULL), 0);
    assert_int_equal(layout.count, 1);
    assert_int_equal(slurm_layout_cores(&layout.nodes[0], &cores, NULL), 0);
    assert_int_equal(bitmap_count(&cores), 1);
    slurm_list_done(&nodes);
    slurm_list_done(&partitions);
}

static void unchanged_lists_are_not_modified(void **state)
{
    struct site *site = *state;
    int64_t later;

    add_nodes(site);
    pass(site, 10);
    later = clock_wall_us(&site->clock) / SECOND + 5;
    (void)slurm_nodes_list(site->client, later, on_done, site);
    wait_for_end(site);
    assert_int_equal(site->error.class, SLURM_NOT_MODIFIED);
    (void)slurm_jobs_list(site->client, later, on_done, site);
    wait_for_end(site);
    assert_int_equal(site->error.class, SLURM_NOT_MODIFIED);
}

static void what_is_not_there_is_not_found(void **state)
{
    struct site *site = *state;

    (void)slurm_job_get(site->client, 5, on_done, site);
    wait_for_end(site);
    assert_int_equal(site->error.class, SLURM_NOT_FOUND);
    (void)slurm_job_cancel(site->client, 5, on_done, site);
    wait_for_end(site);
    assert_int_equal(site->error.class, SLURM_NOT_FOUND);
    (void)slurm_node_get(site->client, "no", on_done, site);
    wait_for_end(site);
    assert_int_equal(site->error.class, SLURM_NOT_FOUND);
    (void)slurm_partition_get(site->client, "no", on_done, site);
    wait_for_end(site);
    assert_int_equal(site->error.class, SLURM_NOT_FOUND);
    (void)slurm_reservation_get(site->client, "no", on_done, site);
    wait_for_end(site);
    assert_int_equal(site->error.class, SLURM_NOT_FOUND);
}

static void an_allocation_that_does_not_fit_is_busy(void **state)
{
    struct site *site = *state;

    add_nodes(site);
    for (unsigned i = 0; i < 8; i++) {
        submit(site, "u", true);
        assert_int_equal(site->outcome.result, SLURM_SUBMITTED);
    }
    submit(site, "v", true);
    assert_int_equal(site->error.class, SLURM_BUSY);
    assert_int_equal(site->outcome.result, SLURM_REFUSED);
}

static void on_sight(void *context, enum slurm_sight sight, const char *why,
                     const struct slurm_site *conf)
{
    struct site *site = context;

    site->ends++;
    assert_int_equal(sight, SLURM_SEES_ALL);
    assert_int_equal(conf->message_timeout_s, 10);
    assert_int_equal(conf->next_job_id, 1);
    assert_true(conf->boot_time > 0);
}

static void the_sight_check_reads_conf(void **state)
{
    struct site *site = *state;
    struct slurm_sight_check check = { 0 };

    slurm_can_see_all(&check, site->client, on_sight, site);
    wait_for_end(site);
    slurm_sight_stop(&check);
}

/* What the poller believes of a job; "" when it knows none. */
static const char *cached_state(struct slurm_poller *poller, const char *id, struct buf *text)
{
    const struct slurm_object *object =
        slurm_cache_get(slurm_poller_cache(poller, SLURM_FEED_JOBS), id);

    buf_clear(text);
    if (object)
        slurm_words_print(&slurm_job_states, &slurm_job_of(object)->state, text);
    return buf_text(text);
}

static void the_poller_follows_a_job_and_notices_a_killed_slurmctld(void **state)
{
    struct site *site = *state;
    struct slurm_poller *poller;
    auto_buf struct buf text;

    buf_init(&text, 100);
    add_nodes(site);
    poller = slurm_poller_new(site->client, &(struct slurm_poller_options){ .owner = &owner });
    slurm_poller_start(poller);
    submit(site, "u", false);
    pass(site, 10); /* seen, started, saved */
    assert_true(slurm_poller_is_synced(poller));
    assert_string_equal(cached_state(poller, "1", &text), "RUNNING");
    submit(site, "v", true);
    slurm_poller_read(poller, SLURM_FEED_JOBS, "2");
    pass(site, 1);
    assert_string_equal(cached_state(poller, "2", &text), "RUNNING");
    slurm_store_kill(site->slurm);
    slurm_store_start(site->slurm);
    pass(site, 120);
    assert_true(slurm_poller_suspicions(poller) > 0);
    assert_string_equal(cached_state(poller, "1", &text), "RUNNING");
    assert_string_equal(cached_state(poller, "2", &text), "");
    slurm_poller_free(poller);
}

/* ---- what goes wrong ---- */

static const struct {
    const char *what;
    struct sim_faults faults;
    enum slurm_submit_result result;
    enum slurm_class class;
    unsigned jobs;
} faults[] = {
    { "none", { .slow = 0 }, SLURM_SUBMITTED, SLURM_DONE, 1 },
    { "lost before", { .lost_before = 1000 }, SLURM_UNRESOLVED, SLURM_UNAVAILABLE, 0 },
    { "lost between", { .lost_between = 1000 }, SLURM_UNRESOLVED, SLURM_UNKNOWN, 0 },
    { "lost after", { .lost_after = 1000 }, SLURM_UNRESOLVED, SLURM_UNKNOWN, 1 },
    { "late", { .late = 1000 }, SLURM_UNRESOLVED, SLURM_UNKNOWN, 1 },
    { "504", { .timeout = 2000 }, SLURM_UNRESOLVED, SLURM_UNKNOWN, 0 },
    { "502", { .bad_gateway = 1000 }, SLURM_UNRESOLVED, SLURM_UNAVAILABLE, 0 },
    { "500", { .internal = 2000 }, SLURM_UNRESOLVED, SLURM_UNKNOWN, 0 },
};

static void each_fault_leaves_a_submit_unresolved(void **state)
{
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        void *fresh = NULL;
        struct site *site;

        print_message("# %s\n", faults[i].what);
        (void)set_up(&fresh);
        site = fresh;
        add_nodes(site);
        sim_net_set_slurm_faults(site->net, &faults[i].faults);
        submit(site, "u", false);
        assert_int_equal(site->error.class, faults[i].class);
        assert_int_equal(site->outcome.result, faults[i].result);
        pass(site, 30);
        assert_int_equal(jobs_for(site, "u"), faults[i].jobs);
        (void)tear_down(&fresh);
    }
    (void)set_up(state);
}

/* Both halves of a 504 come up: with and without a job. */
static void a_504_may_have_taken_effect(void **state)
{
    struct site *site = *state;
    unsigned with = 0, without = 0;
    char unit[20];

    add_nodes(site);
    sim_net_set_slurm_faults(site->net, &(struct sim_faults){ .timeout = 1000 });
    for (unsigned i = 0; i < 40; i++) {
        (void)snprintf(unit, sizeof(unit), "u%u", i);
        submit(site, unit, false);
        if (site->error.http == 504)
            jobs_for(site, unit) ? with++ : without++;
    }
    assert_true(with > 0);
    assert_true(without > 0);
}

static void a_stopped_slurmctld_takes_no_late_submit_with_our_short_tokens(void **state)
{
    struct site *site = *state;

    add_nodes(site);
    slurm_store_stop(site->slurm);
    submit(site, "u", false);
    assert_int_equal(site->error.http, 504);
    pass(site, 30);
    slurm_store_continue(site->slurm);
    pass(site, 5);
    assert_int_equal(jobs_for(site, "u"), 0);
    slurm_store_stop(site->slurm);
    send_job(site, "v", false);
    pass(site, 5);
    slurm_store_continue(site->slurm);
    pass(site, 5);
    assert_int_equal(site->outcome.result, SLURM_SUBMITTED);
    assert_int_equal(jobs_for(site, "v"), 1);
}

static void a_long_list_that_breaks_off_or_stalls_changes_nothing(void **state)
{
    struct site *site = *state;
    static const struct sim_faults bad[] = { { .watch_broken = 1000 }, { .watch_stalled = 1000 } };
    struct slurm_poller *poller;
    struct slurm_cache *nodes;

    add_nodes(site);
    poller = slurm_poller_new(site->client, &(struct slurm_poller_options){ .owner = &owner });
    nodes = slurm_poller_cache(poller, SLURM_FEED_NODES);
    slurm_poller_start(poller);
    for (unsigned i = 0; i < 2; i++) {
        sim_net_set_slurm_faults(site->net, &bad[i]);
        pass(site, 60);
        assert_false(slurm_cache_is_synced(nodes));
    }
    sim_net_set_slurm_faults(site->net, NULL);
    pass(site, 60);
    assert_int_equal(slurm_cache_count(nodes), 2);
    slurm_poller_free(poller);
}

static void a_refused_connection_is_unavailable(void **state)
{
    struct site *site = *state;

    slurm_store_set_restd(site->slurm, false);
    (void)slurm_job_cancel(site->client, 1, on_done, site);
    wait_for_end(site);
    assert_int_equal(site->error.class, SLURM_UNAVAILABLE);
    assert_true(site->error.unsent);
}

static void a_process_dies_before_or_after_its_submit_takes_effect(void **state)
{
    for (unsigned after = 0; after < 2; after++) {
        void *fresh = NULL;
        struct site *site;

        (void)set_up(&fresh);
        site = fresh;
        add_nodes(site);
        sim_net_crash_at(site->net, sim_net_write_count(site->net) + 1,
                         after ? FATE_DIES_AFTER : FATE_DIES_BEFORE);
        send_job(site, "u", false);
        pass(site, 5);
        assert_int_equal(site->crashes, 1);
        assert_int_equal(jobs_for(site, "u"), after);
        (void)tear_down(&fresh);
    }
    (void)set_up(state);
}

static void a_process_that_dies_while_slurmctld_hangs_leaves_its_request_behind(void **state)
{
    struct site *site = *state;

    add_nodes(site);
    slurm_store_stop(site->slurm);
    send_job(site, "u", false);
    pass(site, 2);
    on_crash(site, "us");
    slurm_store_continue(site->slurm);
    assert_int_equal(jobs_for(site, "u"), 1);
}

/* A submit has a token that dies soon, an update of a node the one of every call. */
static void what_a_dead_process_sent_lives_as_long_as_its_token(void **state)
{
    struct site *site = *state;
    struct slurm_store_node node;

    add_nodes(site);
    sim_net_crash_at(site->net, sim_net_write_count(site->net) + 1, FATE_DIES_LONG_BEFORE);
    send_job(site, "u", false);
    pass(site, 30);
    assert_int_equal(site->crashes, 1);
    assert_int_equal(jobs_for(site, "u"), 0);
    connect_client(site, 45);
    sim_net_crash_at(site->net, sim_net_write_count(site->net) + 1, FATE_DIES_AGES_BEFORE);
    (void)slurm_node_update(site->client, "n1", STR("{\"comment\":\"late\"}"), on_done, site);
    pass(site, 50);
    assert_int_equal(site->crashes, 2);
    assert_true(slurm_store_find_node(site->slurm, "n1", &node));
    assert_string_equal(node.comment, "");
    pass(site, 10);
    assert_true(slurm_store_find_node(site->slurm, "n1", &node));
    assert_string_equal(node.comment, "late");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_client_finds_the_newest_version),
        TEST(a_submitted_job_can_be_read_as_ours),
        TEST(nodes_partitions_and_layouts_can_be_read),
        TEST(unchanged_lists_are_not_modified),
        TEST(what_is_not_there_is_not_found),
        TEST(an_allocation_that_does_not_fit_is_busy),
        TEST(the_sight_check_reads_conf),
        TEST(the_poller_follows_a_job_and_notices_a_killed_slurmctld),
        cmocka_unit_test_teardown(each_fault_leaves_a_submit_unresolved, tear_down),
        TEST(a_504_may_have_taken_effect),
        TEST(a_stopped_slurmctld_takes_no_late_submit_with_our_short_tokens),
        TEST(a_long_list_that_breaks_off_or_stalls_changes_nothing),
        TEST(a_refused_connection_is_unavailable),
        cmocka_unit_test_teardown(a_process_dies_before_or_after_its_submit_takes_effect,
                                  tear_down),
        TEST(a_process_that_dies_while_slurmctld_hangs_leaves_its_request_behind),
        TEST(what_a_dead_process_sent_lives_as_long_as_its_token),
    };

    return cmocka_run_group_tests_name("sim_slurm", tests, NULL, NULL);
}
