/* test_process.c - listeners: which addresses are served, what is served there and to whom, and
 * errors that name the flag. */
#include "cmd/process.h"

#include "../io/cert_folder.h"

#include <arpa/inet.h>
#include <sys/socket.h>

struct bench {
    struct loop *loop;
    struct metrics *metrics;
    struct health *health;
    struct process_listeners listeners;
    struct process_flags flags;
    struct http_transport *api; /* NULL: nobody can be judged */
};

static int set_up(void **state)
{
    static struct bench bench;

    bench = (struct bench){ .loop = NULL };
    assert_int_equal(loop_new_real(&bench.loop, NULL), 0);
    bench.metrics = metrics_new();
    bench.health = health_new(bench.loop, bench.metrics, NULL);
    *state = &bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    process_listen_end(&bench->listeners);
    http_transport_free(bench->api);
    health_free(bench->health);
    metrics_free(bench->metrics);
    loop_free(bench->loop);
    return 0;
}

static void serve(void *context, const struct http_view *view, struct http_responder *responder)
{
    http_respond_text(responder, 200, "served");
}

static int listen_at(struct bench *bench, const char *metrics, const char *health, struct err *err)
{
    process_listen_end(&bench->listeners);
    bench->listeners = (struct process_listeners){ .own_count = 1, .debug_count = 1 };
    bench->listeners.own[0] = (struct http_route){ "/metrics/own", false, serve, NULL };
    bench->listeners.debug[0] = (struct http_route){ "/debug/own", false, serve, NULL };
    return process_listen(&bench->listeners,
                          &(struct process_serve){ .loop = bench->loop,
                                                   .api = bench->api,
                                                   .of = bench->health,
                                                   .flags = &bench->flags,
                                                   .metrics = { "--metrics", metrics },
                                                   .health = { "--health", health } },
                          err);
}

static void an_address_that_is_none_is_an_error_with_the_flags_name(void **state)
{
    static const struct {
        const char *metrics, *health, *error;
    } rows[] = {
        { "here", "0", "--metrics: 'here' is no address: wants [HOST]:PORT" },
        { "", "here", "--health: 'here' is no address: wants [HOST]:PORT" },
        { "0", ":x", "--health: the port of ':x': " },
        { ":70000", "0", "--metrics: the port of ':70000': " },
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = { .class = 0 };

        assert_true(listen_at(bench, rows[i].metrics, rows[i].health, &err) < 0);
        assert_true(str_starts(str_of(err.text), str_of(rows[i].error)));
    }
}

static void an_empty_address_and_0_serve_nothing(void **state)
{
    struct bench *bench = *state;

    assert_int_equal(listen_at(bench, "", "0", NULL), 0);
    assert_null(bench->listeners.metrics);
    assert_null(bench->listeners.health);
}

static uint16_t free_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof(at);
    int probe = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(probe, (struct sockaddr *)&at, length), 0);
    assert_int_equal(getsockname(probe, (struct sockaddr *)&at, &length), 0);
    assert_int_equal(close(probe), 0);
    return ntohs(at.sin_port);
}

/* An API server that is not there: nobody can be judged, but those who show nothing are. */
static void connect_nowhere(struct bench *bench)
{
    assert_int_equal(
        http_client_new(bench->loop,
                        &(struct http_client_options){ .base_url = "http://127.0.0.1:1" },
                        &bench->api, NULL),
        0);
}

static int status_of(struct bench *bench, const char *base, const char *path, const char *token)
{
    const struct http_request request = { .method = "GET",
                                          .path = path,
                                          .headers = { { "Authorization", token, true } },
                                          .header_count = token ? 1 : 0 };
    struct exchange done = { .ends = 0 };
    struct http_transport *transport;

    assert_int_equal(
        http_client_new(bench->loop,
                        &(struct http_client_options){ .base_url = base, .insecure = true },
                        &transport, NULL),
        0);
    exchange_do(&done, bench->loop, transport, &request);
    http_transport_free(transport);
    return done.status;
}

struct page {
    const char *path;
    int at_metrics, at_health;
};

/* Listens at two ports, and asks each for each page, without and with a token. */
static void check_pages(struct bench *bench, const struct page *pages, size_t count)
{
    const char *scheme = bench->flags.metrics_secure ? "https" : "http";
    char addresses[2][32], bases[2][64];

    for (unsigned i = 0; i < 2; i++) {
        snprintf(addresses[i], sizeof(addresses[i]), "127.0.0.1:%u", free_port());
        snprintf(bases[i], sizeof(bases[i]), "%s://%s", i == 0 ? scheme : "http", addresses[i]);
    }
    assert_int_equal(listen_at(bench, addresses[0], addresses[1], NULL), 0);
    for (size_t i = 0; i < count; i++) {
        int with_token = pages[i].at_metrics == 401 ? 503 : pages[i].at_metrics;

        assert_int_equal(status_of(bench, bases[0], pages[i].path, NULL), pages[i].at_metrics);
        assert_int_equal(status_of(bench, bases[0], pages[i].path, "Bearer x"), with_token);
        assert_int_equal(status_of(bench, bases[1], pages[i].path, NULL), pages[i].at_health);
        assert_int_equal(status_of(bench, bases[1], pages[i].path, "Bearer x"), pages[i].at_health);
    }
}

#define CHECK_PAGES(bench, pages) check_pages(bench, pages, sizeof(pages) / sizeof((pages)[0]))

static void the_port_of_probes_serves_health_alone_and_debug_needs_a_right(void **state)
{
    static const struct page pages[] = {
        { "/healthz", 200, 200 },     { "/readyz", 200, 200 },      { "/livez", 200, 200 },
        { "/metrics", 200, 404 },     { "/metrics/own", 200, 404 }, { "/version", 200, 404 },
        { "/debug/state", 401, 404 }, { "/debug/own", 401, 404 },
    };

    connect_nowhere(*state);
    CHECK_PAGES(*state, pages);
}

static void without_an_api_server_debug_is_served_to_nobody(void **state)
{
    static const struct page pages[] = { { "/metrics", 200, 404 },
                                         { "/debug/state", 404, 404 },
                                         { "/debug/own", 404, 404 } };

    CHECK_PAGES(*state, pages);
}

static void metrics_that_are_secure_need_tls_and_a_right(void **state)
{
    static const struct page pages[] = {
        { "/healthz", 200, 200 },     { "/metrics", 401, 404 }, { "/metrics/own", 401, 404 },
        { "/debug/state", 401, 404 }, { "/version", 200, 404 },
    };
    struct bench *bench = *state;
    struct serving_certs certs;
    struct cert_folder folder;
    struct err err = { .class = 0 };

    bench->flags.metrics_secure = true;
    assert_int_equal(listen_at(bench, "127.0.0.1:1", "0", &err), -ERR_INVALID);
    assert_string_equal(err.text, "--metrics-secure: there is no API server to ask");
    connect_nowhere(bench);
    cert_folder_make(&folder);
    bench->flags.metrics_folder = folder.path;
    assert_true(listen_at(bench, "127.0.0.1:1", "0", &err) < 0);
    serving_certs_make(&certs);
    cert_folder_fill(&folder, &certs.server);
    CHECK_PAGES(bench, pages);
    serving_certs_free(&certs);
    cert_folder_remove(&folder);
}

static void replicas_on_one_host_have_different_identities(void **state)
{
    char first[PROCESS_IDENTITY], second[PROCESS_IDENTITY];
    uint64_t seed;

    process_identity(first, &seed);
    process_identity(second, &seed);
    assert_string_not_equal(first, second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_address_that_is_none_is_an_error_with_the_flags_name,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_empty_address_and_0_serve_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_port_of_probes_serves_health_alone_and_debug_needs_a_right, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_an_api_server_debug_is_served_to_nobody, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(metrics_that_are_secure_need_tls_and_a_right, set_up,
                                        tear_down),
        cmocka_unit_test(replicas_on_one_host_have_different_identities),
    };

    return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
