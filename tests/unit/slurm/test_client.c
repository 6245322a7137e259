/* test_client.c - the life of a call: one end, one send for a write, several for a read. */
#include "world.h"

static struct slurm_call *list_nodes(struct world *world)
{
    return slurm_nodes_list(world->client, 0, world_done, world);
}

static struct slurm_call *send_write(struct world *world)
{
    return slurm_job_submit(world->client, STR("{\"job\":{}}"), world_done, world);
}

static void a_read_carries_the_token_and_gives_the_body(void **state)
{
    struct world *world = *state;
    const struct fake_sent *sent;
    struct str token;

    world_answers(world, "GET", V45 "/nodes/", 200, NODES_BODY);
    list_nodes(world);
    assert_int_equal(world_ends(world), SLURM_DONE);
    assert_int_equal(json_len(json_get(world->answer.body, "nodes")), 1);
    assert_int_equal(world->answer.version, 45);
    assert_int_equal(world->answer.tries, 1);
    assert_int_equal(world->answer.bytes, strlen(NODES_BODY));
    sent = fake_last_sent(world->fake);
    slurm_token_get(world->token, &token, NULL);
    assert_string_equal(fake_sent_header(sent, "X-SLURM-USER-TOKEN"), token.at);
    assert_string_equal(fake_sent_header(sent, "Accept"), "application/json");
    assert_null(fake_sent_header(sent, "X-SLURM-USER-NAME"));
    assert_null(fake_sent_header(sent, "Content-Type"));
}

static void a_write_carries_its_body_and_the_user_it_is_for(void **state)
{
    struct world *world = *state;
    struct slurm_client_options options = { .version = 44, .user = "anna" };
    struct slurm_request request = { .verb = SLURM_POST,
                                     .endpoint = SLURM_JOB_SUBMIT,
                                     .body = STR("{\"job\":{}}"),
                                     .user = "otto" };

    world_client(world, &options);
    fake_answer(world->fake, "POST", "/slurm/v0.0.44/job/submit",
                (struct fake_answer){ .status = 200, .body = "{\"job_id\":7}", .times = 2 });
    send_write(world);
    assert_int_equal(world_ends(world), SLURM_DONE);
    assert_string_equal(fake_last_sent(world->fake)->body, "{\"job\":{}}");
    assert_string_equal(fake_sent_header(fake_last_sent(world->fake), "X-SLURM-USER-NAME"), "anna");
    assert_string_equal(fake_sent_header(fake_last_sent(world->fake), "Content-Type"),
                        "application/json");
    slurm_send(world->client, &request, world_done, world);
    assert_int_equal(world_ends(world), SLURM_DONE);
    assert_string_equal(fake_sent_header(fake_last_sent(world->fake), "X-SLURM-USER-NAME"), "otto");
}

static void the_newest_version_is_found_once_and_remembered(void **state)
{
    struct world *world = *state;

    world_client(world, NULL);
    world_plays(world, "GET", "/slurm/v0.0.45/ping/", "unknown_version");
    world_plays(world, "GET", "/slurm/v0.0.44/ping/", "unknown_version");
    world_answers(world, "GET", "/slurm/v0.0.43/ping/", 200, PING_BODY);
    fake_answer(world->fake, "GET", "/slurm/v0.0.43/partitions/",
                (struct fake_answer){ .status = 304, .times = 3 });
    slurm_partitions_list(world->client, 5, world_done, world);
    slurm_partitions_list(world->client, 5, world_done, world);
    loop_run(world->loop);
    assert_int_equal(world->ends, 2);
    world->ends = 0;
    assert_int_equal(slurm_client_version(world->client), 43);
    slurm_partitions_list(world->client, 5, world_done, world);
    assert_int_equal(world_ends(world), SLURM_NOT_MODIFIED);
    assert_int_equal(fake_sent_count(world->fake), 6);
    assert_int_equal(world->answer.version, 43);
}

static void a_server_without_any_known_version_is_not_supported(void **state)
{
    struct world *world = *state;

    world_client(world, NULL);
    for (unsigned version = 45; version >= 42; version--) {
        char path[64];

        snprintf(path, sizeof(path), "/slurm/v0.0.%u/ping/", version);
        world_plays(world, "GET", path, "unknown_version");
    }
    send_write(world);
    assert_int_equal(world_ends(world), SLURM_NOT_SUPPORTED);
    assert_true(world->answer.error.unsent && world->answer.error.nothing_done);
    assert_non_null(strstr(world->answer.error.text, "v0.0.42"));
}

static void while_the_version_cannot_be_asked_reads_wait_and_writes_fail_unsent(void **state)
{
    struct world *world = *state;

    world_client(world, NULL);
    fake_answer(world->fake, "GET", V45 "/ping/", (struct fake_answer){ .class = ERR_UNAVAILABLE });
    send_write(world);
    assert_int_equal(world_ends(world), SLURM_UNAVAILABLE);
    assert_true(world->answer.error.unsent);
    fake_answer(world->fake, "GET", V45 "/ping/",
                (struct fake_answer){ .class = ERR_UNKNOWN, .times = 3 });
    world_answers(world, "GET", V45 "/ping/", 200, PING_BODY);
    world_answers(world, "GET", V45 "/nodes/", 200, NODES_BODY);
    list_nodes(world);
    assert_int_equal(world_ends(world), SLURM_DONE);
}

static void a_server_that_lost_our_version_is_asked_again(void **state)
{
    struct world *world = *state;

    world_client(world, NULL);
    world_answers(world, "GET", V45 "/ping/", 200, PING_BODY);
    world_plays(world, "GET", V45 "/nodes/", "unknown_version");
    list_nodes(world);
    assert_int_equal(world_ends(world), SLURM_NOT_SUPPORTED);
    assert_int_equal(slurm_client_version(world->client), 0);
    world_plays(world, "GET", V45 "/ping/", "unknown_version");
    world_answers(world, "GET", "/slurm/v0.0.44/ping/", 200, PING_BODY);
    world_answers(world, "GET", "/slurm/v0.0.44/nodes/", 200, NODES_BODY);
    list_nodes(world);
    assert_int_equal(world_ends(world), SLURM_DONE);
}

static void accounting_that_is_switched_off_does_not_make_us_ask_again(void **state)
{
    struct world *world = *state;

    world_client(world, NULL);
    world_answers(world, "GET", V45 "/ping/", 200, PING_BODY);
    world_plays(world, "GET", "/slurmdb/v0.0.45/accounts/", "slurmdb_off");
    slurm_db_list(world->client, SLURM_DB_ACCOUNTS, NULL, 0, world_done, world);
    assert_int_equal(world_ends(world), SLURM_NOT_SUPPORTED);
    assert_int_equal(slurm_client_version(world->client), 45);
}

static void what_the_version_does_not_have_is_not_sent(void **state)
{
    struct world *world = *state;
    struct slurm_client_options options = { .version = 44 };

    world_client(world, &options);
    slurm_conf_get(world->client, world_done, world);
    assert_int_equal(world_ends(world), SLURM_NOT_SUPPORTED);
    assert_int_equal(fake_sent_count(world->fake), 0);
}

static void a_read_is_repeated_with_growing_pauses_until_it_is_answered(void **state)
{
    struct world *world = *state;
    int64_t last_us = 0;

    world_plays(world, "GET", V45 "/nodes/", "nodes_list_ctld_down");
    world_plays(world, "GET", V45 "/nodes/", "nodes_list_timeout");
    fake_answer(world->fake, "GET", V45 "/nodes/", (struct fake_answer){ .class = ERR_UNKNOWN });
    fake_answer(world->fake, "GET", V45 "/nodes/",
                (struct fake_answer){ .class = ERR_UNAVAILABLE });
    world_answers(world, "GET", V45 "/nodes/", 200, "{\"nodes\":[{\"na");
    world_answers(world, "GET", V45 "/nodes/", 200, NODES_BODY);
    list_nodes(world);
    assert_int_equal(world_ends(world), SLURM_DONE);
    assert_int_equal(world->answer.tries, 6);
    for (size_t i = 1; i < 6; i++) {
        int64_t pause_us = fake_sent(world->fake, i)->at_us - fake_sent(world->fake, i - 1)->at_us;

        assert_true(pause_us >= 125000 && pause_us <= 6 * SECOND_US);
        last_us = pause_us;
    }
    assert_true(last_us >= 2 * SECOND_US);
    assert_int_equal(world->answer.sent_us, fake_last_sent(world->fake)->at_us);
}

static void a_read_gives_up_at_its_deadline_with_the_last_reason(void **state)
{
    struct world *world = *state;
    struct slurm_request request = { .verb = SLURM_GET,
                                     .endpoint = SLURM_PARTITIONS,
                                     .timeout_us = 10 * SECOND_US };
    int64_t start_us = loop_now_us(world->loop);

    fake_answer(world->fake, "GET", V45 "/partitions/",
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = FAKE_ALWAYS });
    slurm_send(world->client, &request, world_done, world);
    assert_int_equal(world_ends(world), SLURM_UNAVAILABLE);
    assert_true(world->answer.tries > 3);
    assert_true(loop_now_us(world->loop) - start_us <= 10 * SECOND_US);
}

static void a_read_that_is_to_be_tried_once_is(void **state)
{
    struct world *world = *state;
    struct slurm_request request = { .verb = SLURM_GET,
                                     .endpoint = SLURM_PARTITIONS,
                                     .once = true };

    fake_answer(world->fake, "GET", V45 "/partitions/",
                (struct fake_answer){ .class = ERR_UNAVAILABLE });
    slurm_send(world->client, &request, world_done, world);
    assert_int_equal(world_ends(world), SLURM_UNAVAILABLE);
    assert_int_equal(world->answer.tries, 1);
}

static void a_silent_server_is_tried_again_within_the_deadline(void **state)
{
    struct world *world = *state;

    fake_answer(world->fake, "GET", V45 "/partitions/", (struct fake_answer){ .status = 0 });
    world_answers(world, "GET", V45 "/partitions/", 304, "");
    slurm_partitions_list(world->client, 9, world_done, world);
    assert_int_equal(world_ends(world), SLURM_NOT_MODIFIED);
    assert_int_equal(world->answer.tries, 2);
    assert_true(world->answer.took_us >= 15 * SECOND_US);
}

static void a_write_is_sent_once_whatever_comes(void **state)
{
    static const struct {
        struct fake_answer answer;
        enum slurm_class class;
    } rows[] = {
        { { .status = 502, .body = "{\"errors\":[{\"error_number\":1800}]}" }, SLURM_UNAVAILABLE },
        { { .status = 504, .body = "{\"errors\":[{\"error_number\":5004}]}" }, SLURM_UNKNOWN },
        { { .status = 503, .body = "", .content_type = "text/plain" }, SLURM_UNKNOWN },
        { { .status = 200, .body = "{\"job_" }, SLURM_UNKNOWN },
        { { .class = ERR_UNKNOWN }, SLURM_UNKNOWN },
        { { .class = ERR_UNAVAILABLE }, SLURM_UNAVAILABLE },
        { { .class = ERR_TIMEOUT }, SLURM_TIMEOUT },
        { { .status = 0 }, SLURM_UNKNOWN },
    };
    struct world *world = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake_answer(world->fake, "POST", V45 "/job/submit", rows[i].answer);
        send_write(world);
        assert_int_equal(world_ends(world), rows[i].class);
        assert_int_equal(fake_sent_count(world->fake), i + 1);
    }
}

static void a_get_that_acts_is_sent_once_too(void **state)
{
    struct world *world = *state;

    fake_answer(world->fake, "GET", V45 "/reconfigure/",
                (struct fake_answer){ .class = ERR_UNKNOWN });
    slurm_reconfigure(world->client, world_done, world);
    assert_int_equal(world_ends(world), SLURM_UNKNOWN);
    assert_int_equal(fake_sent_count(world->fake), 1);
}

static void a_refused_token_is_renewed_and_tried_once_more_even_for_a_write(void **state)
{
    struct world *world = *state;

    world_plays(world, "POST", V45 "/job/submit", "bad_token_submit");
    world_answers(world, "POST", V45 "/job/submit", 200, "{\"job_id\":7}");
    slurm_client_set_token(world->client, world->token);
    send_write(world);
    clock_advance_us(&world->clock, 2 * SECOND_US); /* so that a new token is another one */
    assert_int_equal(world_ends(world), SLURM_DONE);
    assert_int_equal(world->answer.tries, 2);
    assert_string_not_equal(fake_sent_header(fake_sent(world->fake, 0), "X-SLURM-USER-TOKEN"),
                            fake_sent_header(fake_sent(world->fake, 1), "X-SLURM-USER-TOKEN"));
    for (unsigned i = 0; i < 2; i++)
        world_plays(world, "POST", V45 "/job/submit", "bad_token_submit");
    send_write(world);
    clock_advance_us(&world->clock, 2 * SECOND_US);
    assert_int_equal(world_ends(world), SLURM_AUTH);
    assert_int_equal(world->answer.tries, 2);
    assert_true(world->answer.error.nothing_done);
}

static bool may_not(void *context)
{
    (void)context;
    return false;
}

static void a_write_of_who_may_no_longer_write_is_not_tried_again(void **state)
{
    struct world *world = *state;

    world_client(world, &(struct slurm_client_options){ .version = 45, .may_write = may_not });
    world_plays(world, "POST", V45 "/job/submit", "bad_token_submit");
    send_write(world);
    clock_advance_us(&world->clock, 2 * SECOND_US);
    assert_int_equal(world_ends(world), SLURM_AUTH);
    assert_int_equal(world->answer.tries, 1);
    assert_true(world->answer.error.nothing_done);
    world_plays(world, "GET", V45 "/nodes/", "bad_token_read");
    world_answers(world, "GET", V45 "/nodes/", 200, NODES_BODY);
    list_nodes(world);
    clock_advance_us(&world->clock, 2 * SECOND_US);
    assert_int_equal(world_ends(world), SLURM_DONE);
}

static void a_fixed_token_that_is_refused_is_not_tried_again(void **state)
{
    struct world *world = *state;
    struct slurm_token *fixed;

    assert_int_equal(slurm_token_new_static(STR("abc"), &fixed, NULL), 0);
    slurm_client_set_token(world->client, fixed);
    world_plays(world, "GET", V45 "/nodes/", "bad_token_read");
    list_nodes(world);
    assert_int_equal(world_ends(world), SLURM_AUTH);
    assert_int_equal(world->answer.tries, 1);
    slurm_client_set_token(world->client, world->token);
    slurm_token_free(fixed);
}

static void of_the_long_lists_one_at_a_time_is_under_way(void **state)
{
    struct world *world = *state;

    fake_answer(world->fake, "GET", V45 "/nodes/",
                (struct fake_answer){
                    .status = 200, .body = NODES_BODY, .delay_us = SECOND_US, .times = 2 });
    fake_answer(world->fake, "GET", V45 "/jobs/",
                (struct fake_answer){
                    .status = 200, .delay_us = SECOND_US, .body = "{\"jobs\":[],\"errors\":[]}" });
    world_answers(world, "GET", V45 "/partitions/", 304, "");
    list_nodes(world);
    slurm_jobs_list(world->client, 0, world_done, world);
    list_nodes(world);
    slurm_partitions_list(world->client, 3, world_done, world);
    fake_run_for(world->fake, SECOND_US / 2);
    assert_int_equal(world->ends, 1); /* the short one does not wait */
    assert_int_equal(fake_sent_count(world->fake), 2);
    loop_run(world->loop);
    assert_int_equal(world->ends, 4);
    assert_true(fake_sent(world->fake, 3)->at_us >= fake_sent(world->fake, 2)->at_us + SECOND_US);
}

static void a_long_list_that_waits_its_turn_has_a_deadline_too(void **state)
{
    struct world *world = *state;
    struct slurm_request request = { .verb = SLURM_GET,
                                     .endpoint = SLURM_JOBS,
                                     .timeout_us = SECOND_US };
    struct slurm_call *nodes;

    fake_answer(world->fake, "GET", V45 "/nodes/", (struct fake_answer){ .status = 0 });
    nodes = list_nodes(world);
    slurm_send(world->client, &request, world_done, world);
    fake_run_for(world->fake, 2 * SECOND_US);
    assert_int_equal(world->ends, 1);
    assert_int_equal(world->answer.error.class, SLURM_TIMEOUT);
    assert_true(world->answer.error.unsent);
    world->ends = 0;
    world_answers(world, "GET", V45 "/jobs/", 200, "{\"jobs\":[],\"errors\":[]}");
    request.timeout_us = 60 * SECOND_US;
    slurm_send(world->client, &request, world_done, world);
    slurm_call_cancel(nodes); /* hands its turn on */
    assert_int_equal(world_ends(world), SLURM_DONE);
}

static void a_cancelled_call_is_silent_in_every_state(void **state)
{
    struct world *world = *state;
    struct slurm_call *sent, *waiting, *refused, *pausing;

    fake_answer(world->fake, "GET", V45 "/nodes/", (struct fake_answer){ .status = 0 });
    sent = list_nodes(world);
    waiting = list_nodes(world);
    refused = slurm_node_get(world->client, "", world_done, world);
    fake_answer(world->fake, "GET", V45 "/diag/", (struct fake_answer){ .class = ERR_UNKNOWN });
    pausing = slurm_diag_get(world->client, world_done, world);
    slurm_call_cancel(refused);
    fake_run_for(world->fake, 1000);
    assert_int_equal(slurm_client_in_flight(world->client), 3);
    slurm_call_cancel(waiting);
    slurm_call_cancel(pausing);
    slurm_call_cancel(sent);
    slurm_call_cancel(NULL);
    loop_run(world->loop);
    assert_int_equal(world->ends, 0);
    assert_int_equal(slurm_client_in_flight(world->client), 0);
}

static void a_callback_may_cancel_others_and_free_the_client(void **state)
{
    struct world *world = *state;

    world_answers(world, "GET", V45 "/nodes/", 200, NODES_BODY);
    fake_answer(world->fake, "GET", V45 "/diag/", (struct fake_answer){ .status = 0 });
    list_nodes(world);
    world->other = slurm_diag_get(world->client, world_done, world);
    list_nodes(world);
    world->frees_client = true;
    assert_int_equal(world_ends(world), SLURM_DONE);
    assert_null(world->client);
}

static void freeing_the_client_ends_everything_silently(void **state)
{
    struct world *world = *state;

    world_client(world, NULL);
    fake_answer(world->fake, "GET", V45 "/ping/", (struct fake_answer){ .status = 0 });
    list_nodes(world);
    send_write(world);
    slurm_client_free(world->client);
    world->client = NULL;
    loop_run(world->loop);
    assert_int_equal(world->ends, 0);
    slurm_client_free(NULL);
}

static void names_and_queries_are_escaped(void **state)
{
    struct world *world = *state;
    int64_t ids[] = { 5, 12 };
    struct slurm_param query = { "users", STR("a&b=c d") };

    world_answers(world, "DELETE", V45 "/node/n%5B1-3%5D%2Cm%2F..%2F1", 200, EMPTY_BODY);
    slurm_node_delete(world->client, "n[1-3],m/../1", world_done, world);
    assert_int_equal(world_ends(world), SLURM_DONE);
    world_answers(world, "GET", V45 "/jobs/state/?job_id=5&job_id=12", 200,
                  "{\"jobs\":[],\"errors\":[]}");
    slurm_jobs_state(world->client, ids, 2, world_done, world);
    assert_int_equal(world_ends(world), SLURM_DONE);
    world_answers(world, "GET", "/slurmdb/v0.0.45/jobs/?users=a%26b%3Dc%20d", 200,
                  "{\"jobs\":[],\"errors\":[]}");
    slurm_db_list(world->client, SLURM_DB_JOBS, &query, 1, world_done, world);
    assert_int_equal(world_ends(world), SLURM_DONE);
}

static void a_call_about_one_object_without_its_name_is_never_sent(void **state)
{
    struct world *world = *state;

    slurm_node_delete(world->client, "", world_done, world);
    assert_int_equal(world_ends(world), SLURM_INVALID);
    slurm_node_get(world->client, "..", world_done, world);
    assert_int_equal(world_ends(world), SLURM_INVALID);
    slurm_job_cancel(world->client, 0, world_done, world);
    assert_int_equal(world_ends(world), SLURM_INVALID);
    slurm_jobs_cancel(world->client, NULL, 0, world_done, world);
    assert_int_equal(world_ends(world), SLURM_INVALID);
    assert_true(world->answer.error.nothing_done && world->answer.error.unsent);
    assert_int_equal(fake_sent_count(world->fake), 0);
}

struct seen {
    unsigned count;
    enum slurm_class class;
    int64_t took_us;
};

static void on_seen(void *context, enum slurm_verb verb, enum slurm_endpoint endpoint,
                    const struct slurm_answer *answer)
{
    struct seen *seen = context;

    assert_int_equal(endpoint, SLURM_NODES);
    seen->count++;
    seen->class = answer->error.class;
    seen->took_us = answer->took_us;
}

static void the_observer_sees_every_end(void **state)
{
    struct world *world = *state;
    struct seen seen = { 0 };

    slurm_client_observe(world->client, on_seen, &seen);
    fake_answer(world->fake, "GET", V45 "/nodes/",
                (struct fake_answer){ .status = 304, .delay_us = 5000 });
    list_nodes(world);
    world_ends(world);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.class, SLURM_NOT_MODIFIED);
    assert_int_equal(seen.took_us, 5000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_up, world_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_read_carries_the_token_and_gives_the_body),
        TEST(a_write_carries_its_body_and_the_user_it_is_for),
        TEST(the_newest_version_is_found_once_and_remembered),
        TEST(a_server_without_any_known_version_is_not_supported),
        TEST(while_the_version_cannot_be_asked_reads_wait_and_writes_fail_unsent),
        TEST(a_server_that_lost_our_version_is_asked_again),
        TEST(accounting_that_is_switched_off_does_not_make_us_ask_again),
        TEST(what_the_version_does_not_have_is_not_sent),
        TEST(a_read_is_repeated_with_growing_pauses_until_it_is_answered),
        TEST(a_read_gives_up_at_its_deadline_with_the_last_reason),
        TEST(a_read_that_is_to_be_tried_once_is),
        TEST(a_silent_server_is_tried_again_within_the_deadline),
        TEST(a_write_is_sent_once_whatever_comes),
        TEST(a_get_that_acts_is_sent_once_too),
        TEST(a_refused_token_is_renewed_and_tried_once_more_even_for_a_write),
        TEST(a_write_of_who_may_no_longer_write_is_not_tried_again),
        TEST(a_fixed_token_that_is_refused_is_not_tried_again),
        TEST(of_the_long_lists_one_at_a_time_is_under_way),
        TEST(a_long_list_that_waits_its_turn_has_a_deadline_too),
        TEST(a_cancelled_call_is_silent_in_every_state),
        TEST(a_callback_may_cancel_others_and_free_the_client),
        TEST(freeing_the_client_ends_everything_silently),
        TEST(names_and_queries_are_escaped),
        TEST(a_call_about_one_object_without_its_name_is_never_sent),
        TEST(the_observer_sees_every_end),
    };

    return cmocka_run_group_tests_name("slurm client", tests, NULL, NULL);
}
