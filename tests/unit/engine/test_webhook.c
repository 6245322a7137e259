/* test_webhook.c - each path of the table has its own function and context; an early answer is held
 * and its review repeated. What else holds on the wire: tests/unit/admit/test_server.c. */
#include "engine/webhook.h"

#include "../io/cert_folder.h"
#include "engine/engine_metrics.h"

static const struct metric_family results = { .name = "test_results_total",
                                              .help = "Results.",
                                              .type = METRIC_COUNTER,
                                              .labels = { "webhook", "result" } };
static const struct metric_family held = {
    .name = "test_held_total", .help = "Held.", .type = METRIC_COUNTER, .labels = { "webhook" }
};

struct reviewer {
    const char *name;
    unsigned early; /* answers that are early before one is final */
    unsigned calls;
};

struct bench {
    struct loop *loop;
    struct metrics *metrics;
    struct webhook_server *server;
    struct http_transport *transport;
    struct reviewer first, second;
    struct cert_folder folder;
};

static struct serving_certs certs;

static int make_certs(void **state)
{
    serving_certs_make(&certs);
    return 0;
}

static int free_certs(void **state)
{
    serving_certs_free(&certs);
    return 0;
}

static struct webhook_answer allow(void *context, struct str body, struct buf *out)
{
    struct reviewer *reviewer = context;

    reviewer->calls++;
    buf_printf(out, "%s allows " STR_FMT, reviewer->name, STR_ARG(body));
    return (struct webhook_answer){ 200, "allowed", reviewer->calls <= reviewer->early };
}

static struct webhook_answer refuse_bytes(void *context, struct str body, struct buf *out)
{
    struct reviewer *reviewer = context;

    (void)body;
    reviewer->calls++;
    buf_printf(out, "%s reads no review", reviewer->name);
    return (struct webhook_answer){ 400, "unreadable", false };
}

static void begin(struct bench *bench, bool counts)
{
    const struct webhook_path paths[] = { { "/first", allow, &bench->first },
                                          { "/second", refuse_bytes, &bench->second } };
    struct webhook_options options = { .paths = paths,
                                       .path_count = 2,
                                       .address = "127.0.0.1",
                                       .folder = bench->folder.path,
                                       .hold_us = 10 * (int64_t)SECOND_US };

    bench->first.name = "first";
    bench->second.name = "second";
    cert_folder_make(&bench->folder);
    cert_folder_fill(&bench->folder, &certs.server);
    assert_int_equal(loop_new_real(&bench->loop, NULL), 0);
    bench->metrics = metrics_new();
    options.metrics = bench->metrics;
    options.results = counts ? &results : NULL;
    options.held = counts ? &held : NULL;
    assert_int_equal(webhook_server_new(bench->loop, &options, &bench->server, NULL), 0);
    bench->transport =
        serving_certs_connect(&certs, bench->loop, webhook_server_port(bench->server));
}

static void end(struct bench *bench)
{
    http_transport_free(bench->transport);
    webhook_server_free(bench->server);
    metrics_free(bench->metrics);
    loop_free(bench->loop);
    cert_folder_remove(&bench->folder);
}

static struct exchange post(struct bench *bench, const char *path)
{
    const struct http_request request = {
        .method = "POST",
        .path = path,
        .body = STR("a review"),
        .headers = { { .name = "Content-Type", .value = "application/json" } },
        .header_count = 1,
    };
    struct exchange done = { .ends = 0 };

    exchange_do(&done, bench->loop, bench->transport, &request);
    return done;
}

static void a_path_calls_its_function_with_its_context(void **state)
{
    struct bench bench = { .server = NULL };
    struct exchange done;

    begin(&bench, true);
    done = post(&bench, "/first");
    assert_int_equal(done.status, 200);
    assert_string_equal(done.body, "first allows a review");
    assert_string_equal(done.content_type, "application/json");
    done = post(&bench, "/second");
    assert_int_equal(done.status, 400);
    assert_string_equal(done.body, "second reads no review");
    assert_int_equal(post(&bench, "/third").status, 404);
    assert_int_equal(bench.first.calls, 1);
    assert_int_equal(bench.second.calls, 1);
    assert_true(metrics_get(bench.metrics, &results, "/first", "allowed", NULL) == 1);
    assert_true(metrics_get(bench.metrics, &results, "/second", "unreadable", NULL) == 1);
    end(&bench);
}

static void an_early_answer_is_held_and_its_review_repeated(void **state)
{
    struct bench bench = { .first = { .early = 3 } };

    begin(&bench, true);
    assert_int_equal(post(&bench, "/first").status, 200);
    assert_int_equal(bench.first.calls, 4);
    assert_true(metrics_get(bench.metrics, &held, "/first", NULL) == 1);
    assert_true(metrics_get(bench.metrics, &results, "/first", "allowed", NULL) == 1);
    end(&bench);
}

static void a_webhook_without_counters_of_its_own_counts_requests(void **state)
{
    struct bench bench = { .first = { .early = 1 } };

    begin(&bench, false);
    assert_int_equal(post(&bench, "/first").status, 200);
    assert_true(metrics_get(bench.metrics, &engine_metrics[METRIC_WEBHOOK_REQUESTS], "/first",
                            "200", NULL) == 1);
    end(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_calls_its_function_with_its_context),
        cmocka_unit_test(an_early_answer_is_held_and_its_review_repeated),
        cmocka_unit_test(a_webhook_without_counters_of_its_own_counts_requests),
    };

    return cmocka_run_group_tests_name("webhook", tests, make_certs, free_certs);
}
