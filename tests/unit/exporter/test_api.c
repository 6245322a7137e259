/* test_api.c - the aggregated API over TLS: who is believed, and what they are answered. Kubernetes
 * is a server of the test's own; Slurm does not answer, so whoever may read gets 503. */
#include "../io/cert_folder.h"
#include "base/mem.h"
#include "exporter/api.h"
#include "io/http_client.h"

enum { DAY = 86400 };

static struct cert ca, proxy_ca, renewed_ca, serving, proxy, renewed, stranger;

struct rig {
    struct loop *loop;
    struct http_server *kubernetes;
    struct http_transport *kube, *slurm;
    struct slurm_token *token;
    struct metrics *metrics;
    struct exporter *exporter;
    struct ui *ui; /* NULL: no page */
    struct api *api;
    struct cert_folder folder;
    const char *owner;             /* of the APIService */
    struct http_transport *bridge; /* NULL: it is not asked */
    unsigned bridge_calls;
    unsigned reviews, tokens;
    struct http_responder *watch; /* of the ConfigMap; NULL: nobody watches */
    char asked[2048];             /* the last SubjectAccessReview */
};

static void write_map(const struct cert *of, int version, struct buf *out)
{
    buf_printf(out,
               "{\"metadata\":{\"namespace\":\"kube-system\",\"name\":\"map\",\"uid\":\"u\","
               "\"resourceVersion\":\"%d\"},\"data\":{\"requestheader-client-ca-file\":",
               version);
    json_escape(out, str_of(of->cert_pem));
    buf_add_text(out, ",\"requestheader-allowed-names\":\"[\\\"front-proxy\\\"]\","
                      "\"requestheader-username-headers\":\"[\\\"X-Remote-User\\\"]\","
                      "\"requestheader-group-headers\":\"[\\\"X-Remote-Group\\\"]\"}}");
}

/* The list, or the watch, which stays open. */
static void serve_map(struct rig *rig, const struct http_view *view,
                      struct http_responder *responder)
{
    auto_buf struct buf out;

    buf_init(&out, 64 * 1024);
    assert_non_null(memmem(view->query.at, view->query.len,
                           "metadata.name%3Dextension-apiserver-authentication", 50));
    if (http_view_query(view, "watch", &out, NULL) == 0) {
        http_stream_begin(responder, "application/json");
        if (rig->watch)
            http_stream_end(rig->watch);
        rig->watch = responder;
        return;
    }
    buf_add_text(&out, "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[");
    write_map(&proxy_ca, 5, &out);
    buf_add_text(&out, "]}");
    http_respond_json(responder, 200, buf_str(&out));
}

static void serve_kubernetes(void *context, const struct http_view *view,
                             struct http_responder *responder)
{
    struct rig *rig = context;
    auto_buf struct buf out;

    buf_init(&out, 64 * 1024);
    if (strcmp(view->path, "/debug/why") == 0) { /* it plays the bridge, too */
        struct buf pod;

        buf_init(&pod, 256);
        assert_int_equal(http_view_query(view, "pod", &pod, NULL), 0);
        if (strcmp(buf_text(&pod), "team/a") == 0)
            http_respond_json(responder, 200, STR("{\"unit\":\"team/uid\"}"));
        else
            http_respond_text(responder, 404, "the bridge has no such pod\n");
        rig->bridge_calls++;
        buf_done(&pod);
        return;
    }
    if (strcmp(view->path, "/debug/checks") == 0) {
        http_respond_json(responder, 200, STR("{\"checks\":[{\"name\":\"slurmrestd\"}]}"));
        rig->bridge_calls++;
        return;
    }
    if (strstr(view->path, "configmaps")) {
        serve_map(rig, view, responder);
        return;
    }
    if (strstr(view->path, "subjectaccessreviews")) {
        rig->reviews++;
        (void)snprintf(rig->asked, sizeof(rig->asked), STR_FMT, STR_ARG(view->body));
        buf_printf(&out, "{\"status\":{\"allowed\":%s}}",
                   strstr(rig->asked, "\"anna\"") ? "true" : "false");
    } else if (strstr(view->path, "tokenreviews")) {
        rig->tokens++;
        buf_add_text(&out,
                     memmem(view->body.at, view->body.len, "good", 4)
                         ? "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"anna\"}}}"
                         : "{\"status\":{\"authenticated\":false}}");
    } else {
        buf_printf(&out, "{\"spec\":{\"service\":{\"namespace\":\"slurm\",\"name\":\"%s\"}}}",
                   rig->owner);
    }
    http_respond_json(responder, strcmp(view->method, "GET") == 0 ? 200 : 201, buf_str(&out));
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
    static struct http_route route;
    struct rig *rig = mem_alloc(sizeof(*rig));

    rig->owner = "exporter-api";
    route = (struct http_route){ "/", true, serve_kubernetes, rig };
    cert_folder_make(&rig->folder);
    cert_folder_fill(&rig->folder, &serving);
    assert_int_equal(loop_new_real(&rig->loop, NULL), 0);
    assert_int_equal(http_server_new(rig->loop,
                                     &(struct http_server_options){ .address = "127.0.0.1",
                                                                    .routes = &route,
                                                                    .route_count = 1 },
                                     &rig->kubernetes, NULL),
                     0);
    rig->kube = transport_to(rig->loop, http_server_port(rig->kubernetes));
    rig->slurm = transport_to(rig->loop, 1);
    rig->metrics = metrics_new();
    assert_int_equal(slurm_token_new_static(STR("x"), &rig->token, NULL), 0);
    rig->exporter = exporter_new(rig->loop, rig->slurm, rig->token, rig->metrics,
                                 &(struct exporter_options){ .max_names = 1 });
    *state = rig;
    return 0;
}

static void start(struct rig *rig)
{
    const struct api_options options = { .address = "127.0.0.1",
                                         .folder = rig->folder.path,
                                         .service = "slurm/exporter-api",
                                         .ui = rig->ui,
                                         .bridge = rig->bridge };

    assert_int_equal(
        api_new(rig->loop, rig->kube, rig->exporter, rig->metrics, &options, &rig->api, NULL), 0);
    run_for(rig->loop, 200 * MS_US); /* the ConfigMap and the APIService are read */
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    ui_free(rig->ui);
    api_free(rig->api);
    if (rig->watch)
        http_stream_end(rig->watch);
    exporter_free(rig->exporter);
    slurm_token_free(rig->token);
    metrics_free(rig->metrics);
    http_transport_free(rig->slurm);
    http_transport_free(rig->kube);
    http_server_free(rig->kubernetes);
    loop_free(rig->loop);
    cert_folder_remove(&rig->folder);
    mem_free(rig);
    return 0;
}

#define VALUE    EXTERNAL "/namespaces/ns1/slinc_nodes_wanted?labelSelector=partition%3Da"
#define VIEW     "/apis/view.slinky.slurm.net/v1alpha1"
#define EXTERNAL "/apis/external.metrics.k8s.io/v1beta1"

/* One request over TLS; own: the certificate, or NULL. */
static void do_request(struct rig *rig, const struct cert *own, const struct http_request *request,
                       struct exchange *done)
{
    struct http_transport *transport;
    char url[64];

    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%u", api_port(rig->api));
    assert_int_equal(http_client_new(rig->loop,
                                     &(struct http_client_options){
                                         .base_url = url,
                                         .tls = { .ca = str_of(ca.cert_pem),
                                                  .cert = str_of(own ? own->cert_pem : NULL),
                                                  .key = str_of(own ? own->key_pem : NULL) } },
                                     &transport, NULL),
                     0);
    exchange_do(done, rig->loop, transport, request);
    http_transport_free(transport);
}

/* Who asks: own certificate or NULL, user of the header or NULL, token or NULL. */
static int status_for(struct rig *rig, const struct cert *own, const char *user, const char *token,
                      const char *path)
{
    struct http_request request = { .method = "GET", .path = path };
    struct exchange done = { .ends = 0 };

    if (user)
        request.headers[request.header_count++] =
            (struct http_header){ .name = "X-Remote-User", .value = user };
    if (token)
        request.headers[request.header_count++] = (struct http_header){
            .name = strncmp(token, "Bearer", 6) == 0 ? "Authorization" : "Cookie", .value = token
        };
    do_request(rig, own, &request, &done);
    return done.status;
}

static void discovery_answers_everybody_even_without_slurm(void **state)
{
    struct rig *rig = *state;

    start(rig);
    assert_int_equal(status_for(rig, NULL, NULL, NULL, EXTERNAL), 200);
    assert_int_equal(status_for(rig, NULL, NULL, NULL, "/apis/external.metrics.k8s.io"), 200);
    assert_int_equal(status_for(rig, NULL, NULL, NULL, "/apis"), 404);
    assert_int_equal(status_for(rig, NULL, NULL, NULL, "/healthz"), 200);
    assert_int_equal(rig->reviews, 0);
}

static void jobs_and_nodes_need_a_right_of_their_own(void **state)
{
    struct rig *rig = *state;

    start(rig);
    assert_int_equal(status_for(rig, NULL, NULL, NULL, VIEW), 200);
    assert_int_equal(status_for(rig, NULL, NULL, NULL, "/apis/view.slinky.slurm.net"), 200);
    assert_int_equal(status_for(rig, NULL, "anna", NULL, VIEW "/jobs"), 401);
    assert_int_equal(status_for(rig, &proxy, "bert", NULL, VIEW "/jobs"), 403);
    assert_non_null(strstr(rig->asked, "\"group\":\"view.slinky.slurm.net\""));
    assert_non_null(strstr(rig->asked, "\"resource\":\"jobs\""));
    assert_int_equal(status_for(rig, &proxy, "anna", NULL, VIEW "/nodes"), 503);
    assert_int_equal(status_for(rig, &proxy, "anna", NULL, VIEW "/pods"), 404);
}

#define WHY VIEW "/namespaces/team/workloads/a/why"

static void why_a_pod_waits_is_told_to_whoever_may_get_the_pod(void **state)
{
    struct rig *rig = *state;
    struct http_request request = { .method = "GET", .path = WHY };
    struct exchange done = { .ends = 0 };

    rig->bridge = rig->kube;
    start(rig);
    assert_int_equal(status_for(rig, NULL, "anna", NULL, WHY), 401);
    assert_int_equal(status_for(rig, &proxy, "bert", NULL, WHY), 403);
    assert_int_equal(rig->bridge_calls, 0);
    assert_non_null(strstr(rig->asked, "\"verb\":\"get\""));
    assert_non_null(strstr(rig->asked, "\"resource\":\"pods\""));
    assert_non_null(strstr(rig->asked, "\"namespace\":\"team\""));
    assert_non_null(strstr(rig->asked, "\"name\":\"a\""));
    assert_null(strstr(rig->asked, "view.slinky"));
    request.headers[request.header_count++] =
        (struct http_header){ .name = "X-Remote-User", .value = "anna" };
    do_request(rig, &proxy, &request, &done);
    assert_int_equal(done.status, 200);
    assert_non_null(strstr(done.body, "\"kind\":\"WorkloadWhy\""));
    assert_non_null(strstr(done.body, "\"decision\":{\"unit\":\"team/uid\"}"));
    assert_int_equal(status_for(rig, &proxy, "anna", NULL, VIEW "/namespaces/b/workloads/a/why"),
                     404);
    assert_int_equal(rig->bridge_calls, 2);
    /* no other path reaches the bridge */
    assert_int_equal(
        status_for(rig, &proxy, "anna", NULL, VIEW "/namespaces/team/workloads/a%2Fb/why"), 404);
    assert_int_equal(status_for(rig, &proxy, "anna", NULL, VIEW "/namespaces/team/workloads/a"),
                     404);
    assert_int_equal(status_for(rig, &proxy, "anna", NULL, VIEW "/namespaces//workloads/a/why"),
                     404);
    assert_int_equal(rig->bridge_calls, 2);
}

#define CHECKS VIEW "/checks"

static void ask_for_checks(struct rig *rig, struct exchange *ret_done)
{
    struct http_request request = { .method = "GET", .path = CHECKS };

    request.headers[request.header_count++] =
        (struct http_header){ .name = "X-Remote-User", .value = "anna" };
    do_request(rig, &proxy, &request, ret_done);
    assert_int_equal(ret_done->status, 200);
    assert_non_null(strstr(ret_done->body, "\"kind\":\"Checks\""));
    assert_non_null(strstr(ret_done->body, "\"metrics\":\"# HELP"));
}

static void what_was_found_wrong_is_told_to_whoever_may_list_checks(void **state)
{
    struct rig *rig = *state;
    struct exchange done = { .ends = 0 }, alone = { .ends = 0 };

    rig->bridge = rig->kube;
    start(rig);
    assert_int_equal(status_for(rig, NULL, "anna", NULL, CHECKS), 401);
    assert_int_equal(status_for(rig, &proxy, "bert", NULL, CHECKS), 403);
    assert_int_equal(rig->bridge_calls, 0);
    assert_non_null(strstr(rig->asked, "\"verb\":\"list\""));
    assert_non_null(strstr(rig->asked, "\"resource\":\"checks\""));
    ask_for_checks(rig, &done);
    assert_non_null(strstr(done.body, "\"bridge\":{\"checks\":[{\"name\":\"slurmrestd\"}]}"));
    api_free(rig->api);
    rig->bridge = rig->slurm; /* where nobody listens: the figures are told all the same */
    start(rig);
    ask_for_checks(rig, &alone);
    assert_null(strstr(alone.body, "\"bridge\""));
}

static void without_a_bridge_nobody_is_told_why(void **state)
{
    struct rig *rig = *state;

    start(rig);
    assert_int_equal(status_for(rig, &proxy, "anna", NULL, WHY), 503);
    api_free(rig->api);
    rig->bridge = rig->slurm; /* where nobody listens */
    start(rig);
    assert_int_equal(status_for(rig, &proxy, "anna", NULL, WHY), 503);
}

static void start_page(struct rig *rig)
{
    rig->ui = ui_new(rig->loop, exporter_source(rig->exporter), NULL);
    start(rig);
}

static void without_the_page_nothing_of_it_is_served(void **state)
{
    struct rig *rig = *state;

    start(rig);
    assert_int_equal(status_for(rig, NULL, NULL, NULL, "/ui/"), 404);
    assert_int_equal(status_for(rig, &proxy, "anna", NULL, VIEW "/ui"), 404);
}

/* The page holds no facts. Slurm is away, so whoever may ask about a job gets 404. */
static void the_page_is_everybodys_and_its_facts_need_a_right(void **state)
{
    struct rig *rig = *state;

    start_page(rig);
    assert_int_equal(status_for(rig, NULL, NULL, NULL, "/ui/"), 200);
    assert_int_equal(rig->reviews, 0);
    assert_int_equal(status_for(rig, NULL, NULL, NULL, "/ui/?watch=1"), 401);
    assert_int_equal(status_for(rig, NULL, "anna", NULL, "/ui/?job=7"), 401);
    assert_int_equal(status_for(rig, &proxy, "bert", NULL, VIEW "/ui?watch=1"), 403);
    assert_non_null(strstr(rig->asked, "\"verb\":\"watch\""));
    assert_non_null(strstr(rig->asked, "\"resource\":\"ui\""));
    assert_int_equal(status_for(rig, &proxy, "bert", NULL, VIEW "/ui/"), 403);
    assert_non_null(strstr(rig->asked, "\"verb\":\"list\""));
    assert_int_equal(status_for(rig, &proxy, "anna", NULL, VIEW "/ui"), 200);
    assert_int_equal(status_for(rig, &proxy, "anna", NULL, VIEW "/ui?job=7"), 404);
    assert_int_equal(status_for(rig, &proxy, "anna", NULL, VIEW "/ui?job=x"), 400);
    assert_int_equal(status_for(rig, NULL, NULL, "Bearer good", "/ui/?job=7"), 404);
    assert_int_equal(status_for(rig, NULL, NULL, "Bearer bad", "/ui/?job=7"), 401);
}

static void a_browser_gives_a_token_for_a_cookie(void **state)
{
    struct rig *rig = *state;
    struct http_request request = { .method = "POST", .path = "/ui/login" };
    struct exchange good = { .ends = 0 }, bad = { .ends = 0 }, odd = { .ends = 0 };

    start_page(rig);
    request.body = STR("token=good");
    do_request(rig, NULL, &request, &good);
    assert_int_equal(good.status, 200);
    request.body = STR("token=stolen");
    do_request(rig, NULL, &request, &bad);
    assert_int_equal(bad.status, 401);
    request.body = STR("token=good%3B+Path%3D%2F");
    do_request(rig, NULL, &request, &odd);
    assert_int_equal(odd.status, 400);
    assert_int_equal(status_for(rig, NULL, NULL, NULL, "/ui/login"), 405);
    assert_int_equal(status_for(rig, NULL, NULL, "a=b; slinc-token=good", "/ui/?job=7"), 404);
    assert_int_equal(status_for(rig, NULL, NULL, "slinc-token=stolen", "/ui/?job=7"), 401);
    /* a cookie is no way to the APIs */
    assert_int_equal(status_for(rig, NULL, NULL, "slinc-token=good", VIEW "/jobs"), 401);
}

static void a_header_counts_only_with_the_front_proxys_certificate(void **state)
{
    struct rig *rig = *state;

    start(rig);
    assert_int_equal(status_for(rig, NULL, "anna", NULL, VALUE), 401);
    assert_int_equal(status_for(rig, &stranger, "anna", NULL, VALUE), 401);
    assert_int_equal(status_for(rig, &serving, "anna", NULL, VALUE), 401); /* another CA */
    assert_int_equal(rig->reviews, 0);
    assert_int_equal(status_for(rig, &proxy, "anna", NULL, VALUE), 503); /* may; Slurm is away */
    assert_int_equal(status_for(rig, &proxy, NULL, NULL, VALUE), 401);
}

/* The API server has another front proxy from one moment to the next. */
static void a_new_ca_of_the_front_proxy_counts_at_once(void **state)
{
    struct rig *rig = *state;
    auto_buf struct buf event;

    start(rig);
    assert_int_equal(status_for(rig, &renewed, "anna", NULL, VALUE), 401);
    buf_init(&event, 64 * 1024);
    buf_add_text(&event, "{\"type\":\"MODIFIED\",\"object\":");
    write_map(&renewed_ca, 6, &event);
    buf_add_text(&event, "}\n");
    assert_true(http_stream_send(rig->watch, buf_str(&event), 1 << 20));
    run_for(rig->loop, 100 * MS_US);
    assert_int_equal(status_for(rig, &renewed, "anna", NULL, VALUE), 503);
    assert_int_equal(status_for(rig, &proxy, "anna", NULL, VALUE), 401);
}

static void what_a_user_may_is_asked_and_remembered(void **state)
{
    struct rig *rig = *state;

    start(rig);
    assert_int_equal(status_for(rig, &proxy, "bert", NULL, VALUE), 403);
    assert_non_null(strstr(rig->asked, "\"verb\":\"list\""));
    assert_non_null(strstr(rig->asked, "\"resource\":\"slinc_nodes_wanted\""));
    assert_non_null(strstr(rig->asked, "\"namespace\":\"ns1\""));
    assert_int_equal(status_for(rig, &proxy, "bert", NULL, VALUE), 403);
    assert_int_equal(rig->reviews, 1);
    assert_int_equal(status_for(rig, &proxy, "anna", NULL, VALUE), 503);
    assert_int_equal(rig->reviews, 2);
}

static void a_token_is_judged_by_the_api_server(void **state)
{
    struct rig *rig = *state;

    start(rig);
    assert_int_equal(status_for(rig, NULL, NULL, "Bearer good", VALUE), 503);
    assert_int_equal(status_for(rig, NULL, "anna", "Bearer bad", VALUE), 401);
    assert_int_equal(rig->tokens, 2);
    assert_int_equal(rig->reviews, 1);
}

static void another_owner_of_the_api_is_noticed(void **state)
{
    struct rig *rig = *state;
    auto_buf struct buf out;

    buf_init(&out, 1 << 20);
    start(rig);
    metrics_write(rig->metrics, &out);
    assert_non_null(strstr(buf_text(&out), "slinc_external_metrics_owned 1\n"));
    api_free(rig->api);
    rig->owner = "keda";
    start(rig);
    buf_clear(&out);
    metrics_write(rig->metrics, &out);
    assert_non_null(strstr(buf_text(&out), "slinc_external_metrics_owned 0\n"));
}

static int make_certs(void **state)
{
    (void)state;
    cert_make(&ca, "serving CA", NULL, NULL, DAY);
    cert_make(&proxy_ca, "proxy CA", NULL, NULL, DAY);
    cert_make(&renewed_ca, "renewed CA", NULL, NULL, DAY);
    cert_make(&renewed, "front-proxy", "IP:127.0.0.1", &renewed_ca, DAY);
    cert_make(&serving, "front-proxy", "IP:127.0.0.1", &ca, DAY);
    cert_make(&proxy, "front-proxy", "IP:127.0.0.1", &proxy_ca, DAY);
    cert_make(&stranger, "somebody", "IP:127.0.0.1", &proxy_ca, DAY);
    return 0;
}

static int free_certs(void **state)
{
    (void)state;
    cert_free(&ca);
    cert_free(&proxy_ca);
    cert_free(&renewed_ca);
    cert_free(&renewed);
    cert_free(&serving);
    cert_free(&proxy);
    cert_free(&stranger);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(discovery_answers_everybody_even_without_slurm),
        TEST(jobs_and_nodes_need_a_right_of_their_own),
        TEST(why_a_pod_waits_is_told_to_whoever_may_get_the_pod),
        TEST(what_was_found_wrong_is_told_to_whoever_may_list_checks),
        TEST(without_a_bridge_nobody_is_told_why),
        TEST(without_the_page_nothing_of_it_is_served),
        TEST(the_page_is_everybodys_and_its_facts_need_a_right),
        TEST(a_browser_gives_a_token_for_a_cookie),
        TEST(a_header_counts_only_with_the_front_proxys_certificate),
        TEST(a_new_ca_of_the_front_proxy_counts_at_once),
        TEST(what_a_user_may_is_asked_and_remembered),
        TEST(a_token_is_judged_by_the_api_server),
        TEST(another_owner_of_the_api_is_noticed),
    };

    return cmocka_run_group_tests(tests, make_certs, free_certs);
}
