/* test_guard.c - who gets behind the guard. Kubernetes is a server of the test's own. */
#include "../io/exchange.h"
#include "base/mem.h"
#include "kube/guard.h"

#include <string.h>

/* {"alg":"HS256"}, {"aud":["slinc.slurm.net"]} and {"aud":"https://kubernetes"}; Kubernetes alone
 * judges the signature. */
#define FOR_US   "eyJhbGciOiJIUzI1NiJ9.eyJhdWQiOlsic2xpbmMuc2x1cm0ubmV0Il19.c2lnbmVk"
#define FOR_KUBE "eyJhbGciOiJIUzI1NiJ9.eyJhdWQiOiJodHRwczovL2t1YmVybmV0ZXMifQ.c2lnbmVk"

struct rig {
    struct loop *loop;
    struct http_server *kubernetes, *server;
    struct http_transport *kube, *client;
    struct kube_client *api;
    struct guard *guard;
    struct http_route guarded;
    const char *user;  /* whose token it is; NULL: nobody's */
    int review_status; /* of a SubjectAccessReview; 0: 201 */
    bool is_silent;    /* Kubernetes does not answer */
    struct http_responder *held;
    bool is_for_us;  /* the audience of the last TokenReview */
    unsigned served; /* times that something behind the guard ran */
    char query[64];
    unsigned tokens;
    char asked[1024];
};

static void serve_kubernetes(void *context, const struct http_view *view,
                             struct http_responder *responder)
{
    struct rig *rig = context;
    auto_buf struct buf out;

    buf_init(&out, 4096);
    if (rig->is_silent) {
        rig->held = responder;
        return;
    }
    if (strstr(view->path, "tokenreviews")) {
        rig->tokens++;
        rig->is_for_us = memmem(view->body.at, view->body.len, "\"audiences\":", 12) != NULL;
        if (rig->user)
            buf_printf(&out,
                       "{\"status\":{\"authenticated\":true,\"audiences\":[\"slinc.slurm.net\"],"
                       "\"user\":{\"username\":\"%s\"}}}",
                       rig->user);
        else
            buf_add_text(&out, "{\"status\":{\"authenticated\":false}}");
    } else {
        (void)snprintf(rig->asked, sizeof(rig->asked), STR_FMT, STR_ARG(view->body));
        buf_printf(&out, "{\"status\":{\"allowed\":%s}}",
                   strstr(rig->asked, "\"anna\"") ? "true" : "false");
        if (rig->review_status) {
            http_respond_text(responder, rig->review_status, "not now");
            return;
        }
    }
    http_respond_json(responder, 201, buf_str(&out));
}

static void serve_page(void *context, const struct http_view *view,
                       struct http_responder *responder)
{
    struct rig *rig = context;

    rig->served++;
    (void)snprintf(rig->query, sizeof(rig->query), STR_FMT, STR_ARG(view->query));
    http_respond_text(responder, 200, "secret");
}

static struct http_server *server_of(struct loop *loop, const struct http_route *route)
{
    struct http_server *server;

    assert_int_equal(http_server_new(loop,
                                     &(struct http_server_options){ .address = "127.0.0.1",
                                                                    .routes = route,
                                                                    .route_count = 1 },
                                     &server, NULL),
                     0);
    return server;
}

static struct http_transport *transport_to(struct loop *loop, uint16_t port)
{
    struct http_transport *transport;
    char url[64];

    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
    assert_int_equal(
        http_client_new(loop, &(struct http_client_options){ .base_url = url }, &transport, NULL),
        0);
    return transport;
}

static int set_up(void **state)
{
    static struct http_route kubernetes;
    struct rig *rig = mem_alloc(sizeof(*rig));

    rig->user = "anna";
    kubernetes = (struct http_route){ "/", true, serve_kubernetes, rig };
    assert_int_equal(loop_new_real(&rig->loop, NULL), 0);
    rig->kubernetes = server_of(rig->loop, &kubernetes);
    rig->kube = transport_to(rig->loop, http_server_port(rig->kubernetes));
    rig->api = kube_client_new(rig->loop, rig->kube);
    rig->guard = guard_new(rig->api);
    rig->guarded =
        guard_route(rig->guard, (struct http_route){ "/debug/page", false, serve_page, rig });
    rig->server = server_of(rig->loop, &rig->guarded);
    rig->client = transport_to(rig->loop, http_server_port(rig->server));
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    guard_free(rig->guard);
    kube_client_free(rig->api);
    http_transport_free(rig->client);
    http_transport_free(rig->kube);
    http_server_free(rig->server);
    http_server_free(rig->kubernetes);
    loop_free(rig->loop);
    mem_free(rig);
    return 0;
}

static struct http_request request_with(const char *method, const char *name, const char *value)
{
    return (struct http_request){ .method = method,
                                  .path = "/debug/page?pod=a%2Fb",
                                  .headers = { { name, value, true } },
                                  .header_count = name ? 1 : 0 };
}

/* What is told to a request with this header; NULL: with none. */
static int status_with(struct rig *rig, const char *method, const char *name, const char *value)
{
    const struct http_request request = request_with(method, name, value);
    struct exchange done = { .ends = 0 };

    exchange_do(&done, rig->loop, rig->client, &request);
    assert_true(done.status == 200 || !strstr(done.body, "secret"));
    return done.status;
}

static void who_shows_nothing_gets_nothing(void **state)
{
    struct rig *rig = *state;

    assert_int_equal(status_with(rig, "GET", NULL, NULL), 401);
    assert_int_equal(status_with(rig, "GET", "X-Remote-User", "anna"), 401);
    assert_int_equal(status_with(rig, "GET", "Authorization", "Basic YW5uYQ=="), 401);
    assert_int_equal(rig->tokens, 0);
    assert_int_equal(rig->served, 0);
}

static void a_token_must_be_somebodys_who_may(void **state)
{
    struct rig *rig = *state;

    rig->user = NULL;
    assert_int_equal(status_with(rig, "GET", "Authorization", "Bearer x"), 401);
    rig->user = "bert";
    assert_int_equal(status_with(rig, "GET", "Authorization", "Bearer x"), 403);
    assert_int_equal(rig->served, 0);
    rig->user = "anna";
    assert_int_equal(status_with(rig, "GET", "Authorization", "Bearer x"), 200);
    assert_int_equal(rig->served, 1);
    assert_string_equal(rig->query, "pod=a%2Fb");
    assert_non_null(strstr(rig->asked, "\"path\":\"/debug/page\""));
    assert_non_null(strstr(rig->asked, "\"verb\":\"get\""));
    assert_int_equal(status_with(rig, "HEAD", "Authorization", "Bearer x"), 200);
    assert_int_equal(status_with(rig, "DELETE", "Authorization", "Bearer x"), 405);
    assert_int_equal(rig->served, 2);
}

static void the_header_for_proxies_takes_only_tokens_for_us(void **state)
{
    struct rig *rig = *state;

    assert_int_equal(status_with(rig, "GET", GUARD_TOKEN, FOR_KUBE), 401);
    assert_int_equal(status_with(rig, "GET", GUARD_TOKEN, "no token"), 401);
    assert_int_equal(rig->tokens, 0);
    assert_int_equal(status_with(rig, "GET", GUARD_TOKEN, FOR_US), 200);
    assert_true(rig->is_for_us);
    assert_int_equal(rig->served, 1);
}

static void a_review_that_cannot_be_asked_is_503_and_never_200(void **state)
{
    struct rig *rig = *state;

    rig->review_status = 500;
    assert_int_equal(status_with(rig, "GET", "Authorization", "Bearer x"), 503);
    rig->review_status = 403;
    assert_int_equal(status_with(rig, "GET", "Authorization", "Bearer x"), 503);
    http_server_free(rig->kubernetes);
    rig->kubernetes = NULL;
    assert_int_equal(status_with(rig, "GET", "Authorization", "Bearer x"), 503);
    assert_int_equal(status_with(rig, "GET", NULL, NULL), 401);
    assert_int_equal(rig->served, 0);
}

static void who_still_waits_when_the_process_stops_is_told(void **state)
{
    struct rig *rig = *state;
    const struct http_request request = request_with("GET", "Authorization", "Bearer x");
    struct exchange done = { .ends = 0 };

    rig->is_silent = true;
    exchange_send(&done, rig->loop, rig->client, &request);
    while (!rig->held)
        run_for(rig->loop, MS_US);
    guard_free(rig->guard);
    rig->guard = NULL;
    run_until(rig->loop, &done.ends);
    assert_int_equal(done.status, 503);
    assert_int_equal(rig->served, 0);
    http_respond_text(rig->held, 503, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_shows_nothing_gets_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_token_must_be_somebodys_who_may, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_header_for_proxies_takes_only_tokens_for_us, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_review_that_cannot_be_asked_is_503_and_never_200, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_still_waits_when_the_process_stops_is_told, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
