/* test_client.c - every way a call can end has one outcome, and the outcome is told once. */
#include "kube/client.h"

#include "base/mem.h"
#include "fake_transport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define POD_PATH "/api/v1/namespaces/a/pods/b"

enum { SECOND_US = 1000000 };

struct world {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *fake;
    struct kube_client *client;

    unsigned ends;
    struct kube_answer answer;
    char message[2048], reason[128], object_name[64];
    struct kube_call *call, *other;
    bool frees_client;
    unsigned observed;
    int observed_status;
    int64_t took_us;
};

static int set_up(void **state)
{
    struct world *world = mem_alloc(sizeof(*world));

    clock_init_virtual(&world->clock, 0);
    world->loop = loop_new_virtual(&world->clock);
    world->fake = fake_transport_new(world->loop);
    world->client = kube_client_new(world->loop, fake_http(world->fake));
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    kube_client_free(world->client);
    fake_transport_free(world->fake);
    loop_free(world->loop);
    mem_free(world);
    return 0;
}

static void on_done(void *context, const struct kube_answer *answer)
{
    struct world *world = context;

    world->ends++;
    world->answer = *answer;
    snprintf(world->message, sizeof(world->message), "%s", answer->message);
    snprintf(world->reason, sizeof(world->reason), "%s", answer->reason);
    snprintf(world->object_name, sizeof(world->object_name), "%s",
             json_str(json_at(answer->object, "metadata", "name")).at);
    world->answer.message = world->message;
    world->answer.reason = world->reason;
    kube_call_cancel(world->call); /* over already: nothing happens */
    kube_call_cancel(world->other);
    if (world->frees_client) {
        kube_client_free(world->client);
        world->client = NULL;
    }
}

static const char *method_of(enum kube_verb verb)
{
    static const char *const methods[] = {
        [KUBE_GET] = "GET",          [KUBE_LIST] = "GET",
        [KUBE_CREATE] = "POST",      [KUBE_MERGE_PATCH] = "PATCH",
        [KUBE_JSON_PATCH] = "PATCH", [KUBE_UPDATE] = "PUT",
        [KUBE_DELETE] = "DELETE",    [KUBE_STRATEGIC_PATCH] = "PATCH"
    };

    return methods[verb];
}

static bool is_write(enum kube_verb verb)
{
    return verb != KUBE_GET && verb != KUBE_LIST;
}

static struct kube_request request_of(enum kube_verb verb)
{
    return (struct kube_request){ .verb = verb,
                                  .resource = &kube_pods,
                                  .ns = "a",
                                  .name = "b",
                                  .body = is_write(verb) ? STR("{\"x\":1}") : STR("") };
}

static void send_verb(struct world *world, enum kube_verb verb)
{
    struct kube_request request = request_of(verb);

    world->ends = 0;
    world->call = kube_send(world->client, &request, on_done, world);
    assert_int_equal(world->ends, 0);
}

static enum kube_outcome ends_with(struct world *world, enum kube_verb verb,
                                   struct fake_answer answer)
{
    fake_answer(world->fake, method_of(verb), POD_PATH, answer);
    send_verb(world, verb);
    loop_run(world->loop);
    assert_int_equal(world->ends, 1);
    world->call = NULL;
    return world->answer.outcome;
}

static const struct {
    int status;
    const char *reason;
    enum kube_outcome read, write;
} status_rows[] = {
    { 200, "", KUBE_DONE, KUBE_DONE },
    { 201, "", KUBE_DONE, KUBE_DONE },
    { 202, "", KUBE_DONE, KUBE_DONE },
    { 301, "", KUBE_INVALID, KUBE_INVALID },
    { 400, "BadRequest", KUBE_INVALID, KUBE_INVALID },
    { 401, "Unauthorized", KUBE_DENIED, KUBE_DENIED },
    { 403, "Forbidden", KUBE_DENIED, KUBE_DENIED },
    { 404, "NotFound", KUBE_GONE, KUBE_GONE },
    { 405, "MethodNotAllowed", KUBE_INVALID, KUBE_INVALID },
    { 406, "NotAcceptable", KUBE_INVALID, KUBE_INVALID },
    { 408, "", KUBE_UNAVAILABLE, KUBE_UNAVAILABLE },
    { 409, "Conflict", KUBE_CONFLICT, KUBE_CONFLICT },
    { 409, "AlreadyExists", KUBE_CONFLICT, KUBE_CONFLICT },
    { 410, "Expired", KUBE_GONE, KUBE_GONE },
    { 410, "Gone", KUBE_GONE, KUBE_GONE },
    { 413, "RequestEntityTooLarge", KUBE_INVALID, KUBE_INVALID },
    { 415, "UnsupportedMediaType", KUBE_INVALID, KUBE_INVALID },
    { 418, "", KUBE_INVALID, KUBE_INVALID },
    { 422, "Invalid", KUBE_INVALID, KUBE_INVALID },
    { 429, "TooManyRequests", KUBE_UNAVAILABLE, KUBE_UNAVAILABLE },
    { 500, "InternalError", KUBE_UNAVAILABLE, KUBE_UNKNOWN },
    { 502, "", KUBE_UNAVAILABLE, KUBE_UNKNOWN },
    { 503, "ServiceUnavailable", KUBE_UNAVAILABLE, KUBE_UNAVAILABLE },
    { 504, "Timeout", KUBE_UNAVAILABLE, KUBE_UNKNOWN },
    { 599, "", KUBE_UNAVAILABLE, KUBE_UNKNOWN },
    { 100, "", KUBE_UNAVAILABLE, KUBE_UNKNOWN },
    { 1000, "", KUBE_UNAVAILABLE, KUBE_UNKNOWN },
    /* Somebody in front of the API server, or one still starting: no fact. */
    { 404, "", KUBE_UNAVAILABLE, KUBE_UNAVAILABLE },
    { 410, "", KUBE_UNAVAILABLE, KUBE_UNAVAILABLE },
    { 503, "", KUBE_UNAVAILABLE, KUBE_UNKNOWN },
};

static void every_status_has_one_outcome_for_reads_and_one_for_writes(void **state)
{
    for (size_t i = 0; i < sizeof(status_rows) / sizeof(status_rows[0]); i++)
        for (enum kube_verb verb = KUBE_GET; verb <= KUBE_DELETE; verb++)
            assert_int_equal(kube_outcome_of(verb, status_rows[i].status, status_rows[i].reason),
                             is_write(verb) ? status_rows[i].write : status_rows[i].read);
    assert_int_equal(kube_outcome_of(KUBE_GET, 404, NULL), KUBE_UNAVAILABLE);
}

static void every_status_comes_through_a_call_with_its_reason_and_message(void **state)
{
    struct world *world = *state;

    for (size_t i = 0; i < sizeof(status_rows) / sizeof(status_rows[0]); i++) {
        char body[256];

        if (status_rows[i].status < 200 || status_rows[i].status > 599)
            continue;
        snprintf(body, sizeof(body),
                 "{\"kind\":\"Status\",\"reason\":\"%s\",\"message\":\"because\"}",
                 status_rows[i].reason);
        assert_int_equal(
            ends_with(world, KUBE_UPDATE,
                      (struct fake_answer){ .status = status_rows[i].status, .body = body }),
            status_rows[i].write);
        assert_int_equal(world->answer.status, status_rows[i].status);
        if (status_rows[i].status >= 300) {
            assert_string_equal(world->reason, status_rows[i].reason);
            assert_string_equal(world->message, "because");
            assert_null(world->answer.object);
        }
    }
}

#define REFUSED(details)                                                                           \
    "{\"kind\":\"Status\",\"reason\":\"Invalid\",\"message\":\"m\",\"details\":" details "}"

static void a_json_patch_that_does_not_fit_is_a_conflict_and_one_with_a_bad_result_invalid(
    void **state)
{
    static const struct {
        enum kube_verb verb;
        int status;
        const char *body;
        enum kube_outcome outcome;
    } rows[] = {
        { KUBE_JSON_PATCH, 422, REFUSED("{}"), KUBE_CONFLICT },
        { KUBE_JSON_PATCH, 422, REFUSED("{\"name\":\"b\",\"kind\":\"Pod\"}"), KUBE_INVALID },
        { KUBE_JSON_PATCH, 422, REFUSED("{\"causes\":[{\"field\":\"patch\"}]}"), KUBE_INVALID },
        { KUBE_JSON_PATCH, 400, REFUSED("{}"), KUBE_INVALID },
        { KUBE_JSON_PATCH, 422, "a proxy's words", KUBE_INVALID },
        { KUBE_JSON_PATCH, 409, REFUSED("{}"), KUBE_CONFLICT },
        { KUBE_MERGE_PATCH, 422, REFUSED("{}"), KUBE_INVALID },
        { KUBE_STRATEGIC_PATCH, 422, REFUSED("{}"), KUBE_INVALID },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fake_answer answer = { .status = rows[i].status, .body = rows[i].body };

        if (ends_with(*state, rows[i].verb, answer) != rows[i].outcome)
            fail_msg("row %zu", i);
    }
}

static void every_way_of_not_getting_an_answer_has_one_outcome(void **state)
{
    static const struct {
        int class;
        enum kube_outcome read, write;
    } rows[] = {
        { ERR_UNAVAILABLE, KUBE_UNAVAILABLE, KUBE_UNAVAILABLE },
        { ERR_TIMEOUT, KUBE_UNAVAILABLE, KUBE_UNAVAILABLE },
        { ERR_SYSTEM, KUBE_UNAVAILABLE, KUBE_UNAVAILABLE },
        { ERR_UNKNOWN, KUBE_UNAVAILABLE, KUBE_UNKNOWN },
        { ERR_TOO_BIG, KUBE_UNAVAILABLE, KUBE_UNKNOWN },
        { ERR_BUG, KUBE_UNAVAILABLE, KUBE_UNKNOWN },
        { ERR_DENIED, KUBE_DENIED, KUBE_DENIED },
        { ERR_INVALID, KUBE_INVALID, KUBE_INVALID },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fake_answer answer = { .class = rows[i].class };

        assert_int_equal(ends_with(*state, KUBE_GET, answer), rows[i].read);
        assert_int_equal(ends_with(*state, KUBE_MERGE_PATCH, answer), rows[i].write);
        assert_int_equal(((struct world *)*state)->answer.status, 0);
        assert_non_null(strstr(((struct world *)*state)->message, err_class_name(rows[i].class)));
    }
}

static void what_was_done_comes_with_the_object(void **state)
{
    struct world *world = *state;

    assert_int_equal(
        ends_with(world, KUBE_GET,
                  (struct fake_answer){ .status = 200, .body = "{\"metadata\":{\"name\":\"b\"}}" }),
        KUBE_DONE);
    assert_string_equal(world->object_name, "b");
    assert_string_equal(world->reason, "");
    assert_string_equal(world->message, "");
}

static void a_success_that_cannot_be_read_is_unknown_for_writes_only(void **state)
{
    static const char *const bodies[] = { "", "<html>", "{\"half\":", "[]", "null", "\"text\"" };

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct fake_answer answer = { .status = 200, .body = bodies[i] };

        assert_int_equal(ends_with(*state, KUBE_LIST, answer), KUBE_UNAVAILABLE);
        assert_int_equal(ends_with(*state, KUBE_CREATE, answer), KUBE_UNKNOWN);
        assert_null(((struct world *)*state)->answer.object);
        assert_true(((struct world *)*state)->message[0] != '\0');
    }
}

static void a_delete_is_done_with_the_object_a_status_or_an_accepted(void **state)
{
    assert_int_equal(ends_with(*state, KUBE_DELETE,
                               (struct fake_answer){ .status = 200,
                                                     .body = "{\"kind\":\"Status\","
                                                             "\"status\":\"Success\"}" }),
                     KUBE_DONE);
    assert_int_equal(ends_with(*state, KUBE_DELETE,
                               (struct fake_answer){ .status = 200, .body = "{\"kind\":\"Pod\"}" }),
                     KUBE_DONE);
    assert_int_equal(ends_with(*state, KUBE_DELETE,
                               (struct fake_answer){ .status = 202, .body = "{\"kind\":\"Pod\"}" }),
                     KUBE_DONE);
}

static void when_to_retry_is_taken_from_the_header_or_from_the_status(void **state)
{
    struct world *world = *state;
    const char *body = "{\"kind\":\"Status\",\"reason\":\"TooManyRequests\",\"message\":\"slow\","
                       "\"details\":{\"retryAfterSeconds\":7}}";

    ends_with(world, KUBE_GET,
              (struct fake_answer){ .status = 429, .body = body, .retry_after_us = 3 * SECOND_US });
    assert_int_equal(world->answer.retry_after_us, 3 * SECOND_US);
    ends_with(world, KUBE_GET, (struct fake_answer){ .status = 429, .body = body });
    assert_int_equal(world->answer.retry_after_us, 7 * SECOND_US);
    ends_with(world, KUBE_GET,
              (struct fake_answer){ .status = 503,
                                    .body = "{\"kind\":\"Status\",\"details\":"
                                            "{\"retryAfterSeconds\":99999999}}" });
    assert_int_equal(world->answer.retry_after_us, 0);
}

static void a_refusal_that_is_no_status_is_told_in_its_own_words(void **state)
{
    struct world *world = *state;

    ends_with(world, KUBE_GET,
              (struct fake_answer){ .status = 404, .body = "404 page\tnot found\n" });
    assert_string_equal(world->message, "HTTP 404: 404 page not found");
    assert_string_equal(world->reason, "");
    assert_int_equal(world->answer.outcome, KUBE_UNAVAILABLE);
    ends_with(world, KUBE_GET, (struct fake_answer){ .status = 502 });
    assert_string_equal(world->message, "HTTP 502");
    ends_with(world, KUBE_GET,
              (struct fake_answer){ .status = 403, .body = "{\"kind\":\"Status\"}" });
    assert_string_equal(world->message, "HTTP 403");
}

static void a_message_is_cut_at_a_whole_character(void **state)
{
    struct world *world = *state;
    auto_buf struct buf body = { .max = 8192 };

    buf_add_text(&body, "{\"kind\":\"Status\",\"reason\":\"");
    for (int i = 0; i < 200; i++)
        buf_add_char(&body, 'r');
    buf_add_text(&body, "\",\"message\":\"");
    for (int i = 0; i < 1000; i++)
        buf_add_text(&body, "\xc3\xa4"); /* two bytes each */
    buf_add_text(&body, "\"}");
    ends_with(world, KUBE_GET, (struct fake_answer){ .status = 403, .body = buf_text(&body) });
    assert_int_equal(strlen(world->message), 1022);
    assert_true(str_is_utf8(str_of(world->message)));
    assert_int_equal(strlen(world->reason), 63);
}

static void each_verb_goes_out_with_its_method_path_and_content_type(void **state)
{
    static const struct {
        enum kube_verb verb;
        const char *name, *content_type;
    } rows[] = {
        { KUBE_GET, "get", NULL },
        { KUBE_LIST, "list", NULL },
        { KUBE_CREATE, "create", "application/json" },
        { KUBE_MERGE_PATCH, "patch", "application/merge-patch+json" },
        { KUBE_STRATEGIC_PATCH, "patch", "application/strategic-merge-patch+json" },
        { KUBE_JSON_PATCH, "patch", "application/json-patch+json" },
        { KUBE_UPDATE, "update", "application/json" },
        { KUBE_DELETE, "delete", "application/json" },
    };
    struct world *world = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *type;

        ends_with(world, rows[i].verb, (struct fake_answer){ .status = 200, .body = "{}" });
        assert_string_equal(kube_verb_name(rows[i].verb), rows[i].name);
        assert_string_equal(fake_last_sent(world->fake)->path, POD_PATH);
        assert_string_equal(fake_sent_header(fake_last_sent(world->fake), "Accept"),
                            "application/json");
        type = fake_sent_header(fake_last_sent(world->fake), "Content-Type");
        if (rows[i].content_type) {
            assert_string_equal(type, rows[i].content_type);
            assert_string_equal(fake_last_sent(world->fake)->body, "{\"x\":1}");
        } else {
            assert_null(type);
        }
    }
}

static void the_query_follows_the_path_and_the_timeout_is_a_deadline(void **state)
{
    struct world *world = *state;
    struct kube_request request = {
        .verb = KUBE_LIST, .resource = &kube_pods, .query = "limit=5", .timeout_us = 4 * SECOND_US
    };
    int64_t start_us = loop_now_us(world->loop);

    fake_answer(world->fake, "GET", "/api/v1/pods?limit=5", (struct fake_answer){ 0 });
    kube_send(world->client, &request, on_done, world);
    loop_run(world->loop);
    assert_int_equal(world->ends, 1);
    assert_int_equal(world->answer.outcome, KUBE_UNAVAILABLE);
    assert_int_equal(loop_now_us(world->loop) - start_us, 4 * SECOND_US);

    request.timeout_us = 0;
    request.query = "";
    fake_answer(world->fake, "GET", "/api/v1/pods", (struct fake_answer){ 0 });
    kube_send(world->client, &request, on_done, world);
    loop_run(world->loop);
    assert_int_equal(loop_now_us(world->loop) - start_us, 34 * SECOND_US);
}

static void a_request_that_would_mean_every_object_is_never_sent(void **state)
{
    static const struct {
        enum kube_verb verb;
        const char *ns, *name;
    } rows[] = {
        { KUBE_DELETE, "a", "" },       { KUBE_DELETE, "a", NULL },  { KUBE_DELETE, "", "b" },
        { KUBE_GET, "a", NULL },        { KUBE_UPDATE, "a", NULL },  { KUBE_MERGE_PATCH, "a", "" },
        { KUBE_JSON_PATCH, NULL, "b" }, { KUBE_CREATE, NULL, NULL },
    };
    struct world *world = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct kube_request request = { .verb = rows[i].verb,
                                        .resource = &kube_pods,
                                        .ns = rows[i].ns,
                                        .name = rows[i].name,
                                        .body = STR("{}") };

        world->ends = 0;
        kube_send(world->client, &request, on_done, world);
        assert_int_equal(world->ends, 0); /* from the loop, not from inside */
        loop_run(world->loop);
        assert_int_equal(world->ends, 1);
        assert_int_equal(world->answer.outcome, KUBE_INVALID);
    }
    assert_int_equal(fake_sent_count(world->fake), 0);
}

static void a_path_that_is_too_long_is_invalid_and_not_sent(void **state)
{
    struct world *world = *state;
    char name[9000];
    struct kube_request request = { .verb = KUBE_GET, .resource = &kube_nodes, .name = name };

    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    kube_send(world->client, &request, on_done, world);
    loop_run(world->loop);
    assert_int_equal(world->answer.outcome, KUBE_INVALID);
    assert_int_equal(fake_sent_count(world->fake), 0);
}

static void a_cancelled_call_is_never_heard_of_again(void **state)
{
    struct world *world = *state;
    struct kube_request refused = { .verb = KUBE_GET, .resource = &kube_pods };

    fake_answer(world->fake, "GET", POD_PATH, (struct fake_answer){ .status = 200, .body = "{}" });
    send_verb(world, KUBE_GET);
    assert_int_equal(kube_client_in_flight(world->client), 1);
    kube_call_cancel(world->call);
    kube_call_cancel(kube_send(world->client, &refused, on_done, world));
    kube_call_cancel(NULL);
    assert_int_equal(kube_client_in_flight(world->client), 0);
    loop_run(world->loop);
    assert_int_equal(world->ends, 0);
    world->call = NULL;
}

static void a_callback_may_cancel_its_own_and_other_calls(void **state)
{
    struct world *world = *state;
    struct kube_request request = request_of(KUBE_GET);

    fake_answer(world->fake, "GET", POD_PATH,
                (struct fake_answer){ .status = 200, .body = "{}", .times = 2 });
    send_verb(world, KUBE_GET);
    world->other = kube_send(world->client, &request, on_done, world);
    loop_run(world->loop);
    assert_int_equal(world->ends, 1);
    assert_int_equal(kube_client_in_flight(world->client), 0);
    world->call = world->other = NULL;
}

static void a_callback_may_free_the_client(void **state)
{
    struct world *world = *state;
    struct kube_request request = request_of(KUBE_GET);

    world->frees_client = true;
    fake_answer(world->fake, "GET", POD_PATH,
                (struct fake_answer){ .status = 200, .body = "{}", .times = 2 });
    send_verb(world, KUBE_GET);
    kube_send(world->client, &request, on_done, world);
    loop_run(world->loop);
    assert_int_equal(world->ends, 1);
    world->call = NULL;
}

static void observe(void *context, const struct kube_request *request, int status, int64_t took_us)
{
    struct world *world = context;

    assert_int_equal(world->ends, 0);
    assert_string_equal(request->name, "b");
    assert_string_equal(request->ns, "a");
    assert_ptr_equal(request->resource, &kube_pods);
    world->observed++;
    world->observed_status = status;
    world->took_us = took_us;
}

static void the_observer_hears_of_every_finished_call(void **state)
{
    struct world *world = *state;

    kube_client_observe(world->client, observe, world);
    ends_with(world, KUBE_GET,
              (struct fake_answer){ .status = 200, .body = "{}", .delay_us = 1500 });
    assert_int_equal(world->observed, 1);
    assert_int_equal(world->observed_status, 200);
    assert_int_equal(world->took_us, 1500);
    ends_with(world, KUBE_GET, (struct fake_answer){ .class = ERR_UNAVAILABLE });
    assert_int_equal(world->observed, 2);
    assert_int_equal(world->observed_status, 0);
}

static void a_write_is_sent_once_whatever_comes_back(void **state)
{
    struct world *world = *state;

    ends_with(world, KUBE_CREATE, (struct fake_answer){ .class = ERR_UNKNOWN });
    ends_with(world, KUBE_CREATE, (struct fake_answer){ .status = 504 });
    ends_with(world, KUBE_CREATE, (struct fake_answer){ .status = 429 });
    assert_int_equal(fake_sent_count(world->fake), 3);
}

static void outcomes_have_names(void **state)
{
    assert_string_equal(kube_outcome_name(KUBE_DONE), "done");
    assert_string_equal(kube_outcome_name(KUBE_UNKNOWN), "unknown");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_one_outcome_for_reads_and_one_for_writes),
        cmocka_unit_test(outcomes_have_names),
        TEST(every_status_comes_through_a_call_with_its_reason_and_message),
        TEST(every_way_of_not_getting_an_answer_has_one_outcome),
        TEST(a_json_patch_that_does_not_fit_is_a_conflict_and_one_with_a_bad_result_invalid),
        TEST(what_was_done_comes_with_the_object),
        TEST(a_success_that_cannot_be_read_is_unknown_for_writes_only),
        TEST(a_delete_is_done_with_the_object_a_status_or_an_accepted),
        TEST(when_to_retry_is_taken_from_the_header_or_from_the_status),
        TEST(a_refusal_that_is_no_status_is_told_in_its_own_words),
        TEST(a_message_is_cut_at_a_whole_character),
        TEST(each_verb_goes_out_with_its_method_path_and_content_type),
        TEST(the_query_follows_the_path_and_the_timeout_is_a_deadline),
        TEST(a_request_that_would_mean_every_object_is_never_sent),
        TEST(a_path_that_is_too_long_is_invalid_and_not_sent),
        TEST(a_cancelled_call_is_never_heard_of_again),
        TEST(a_callback_may_cancel_its_own_and_other_calls),
        TEST(a_callback_may_free_the_client),
        TEST(the_observer_hears_of_every_finished_call),
        TEST(a_write_is_sent_once_whatever_comes_back),
    };

    return cmocka_run_group_tests_name("kube/client", tests, NULL, NULL);
}
