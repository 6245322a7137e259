/* test_health.c - ready means fed: every cache synced and heard of; and the routes say so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

#include "engine/health.h"
#include "io/http_client.h"
#include "io/loop_real.h"

#define LIST "/api/v1/configmaps"

struct clinic {
    struct world world;
    struct kube_informer *informer;
    struct health *health;
};

static void set_up(struct clinic *clinic)
{
    struct world *world = &clinic->world;

    world_set_up(world, NULL);
    clinic->informer = kube_informer_new(world->client, world->cache, &world->rand,
                                         &(struct kube_informer_options){ 0 });
    clinic->health = health_new(world->loop, world->metrics, world->engine);
    health_watch(clinic->health, world->cache, clinic->informer, 0);
    engine_start(world->engine);
}

static void tear_down(struct clinic *clinic)
{
    health_free(clinic->health);
    kube_informer_free(clinic->informer);
    world_tear_down(&clinic->world);
}

static void answer_list(struct clinic *clinic)
{
    fake_answer(clinic->world.fake, "GET", LIST,
                (struct fake_answer){ .status = 200,
                                      .body = "{\"kind\":\"ConfigMapList\",\"metadata\":{"
                                              "\"resourceVersion\":\"10\"},\"items\":[]}" });
    fake_answer(clinic->world.fake, "GET", LIST, (struct fake_answer){ .status = 200 });
    kube_informer_start(clinic->informer);
    world_run(&clinic->world, 100 * MS);
}

#define assert_readiness(clinic, ready, text) check_readiness(clinic, ready, false, text)
static void check_readiness(const struct clinic *clinic, bool ready, bool verbose, const char *text)
{
    auto_buf struct buf out;

    buf_init(&out, 10000);
    assert_int_equal(health_is_ready(clinic->health, verbose, &out), ready);
    assert_string_equal(buf_text(&out), text);
}

/* ---- */

static void a_cache_that_is_not_synced_makes_unready(void **state)
{
    struct clinic clinic;

    set_up(&clinic);
    assert_readiness(&clinic, false, "[-] cache of configmaps: not synced\n");
    answer_list(&clinic);
    assert_readiness(&clinic, true, "");
    check_readiness(&clinic, true, true, "[+] cache of configmaps: ok\n");
    tear_down(&clinic);
}

static void silence_over_the_limit_makes_unready(void **state)
{
    struct clinic clinic;

    set_up(&clinic);
    answer_list(&clinic);
    fake_answer(clinic.world.fake, "GET", LIST,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = FAKE_ALWAYS });
    world_run(&clinic.world, 140 * SECOND);
    assert_readiness(&clinic, true, "");
    world_run(&clinic.world, 20 * SECOND);

    auto_buf struct buf out;

    buf_init(&out, 10000);
    assert_false(health_is_ready(clinic.health, false, &out));
    assert_non_null(strstr(buf_text(&out), "cache of configmaps: silent for 1"));
    assert_non_null(strstr(buf_text(&out), " s, more than 150 s ("));
    tear_down(&clinic);
}

static void not_being_the_leader_does_not(void **state)
{
    struct clinic clinic;

    set_up(&clinic);
    answer_list(&clinic);
    clinic.world.may_act = false;
    world_run(&clinic.world, 5 * SECOND);
    assert_readiness(&clinic, true, "");
    tear_down(&clinic);
}

static bool check_slurm(void *context, struct buf *why)
{
    const bool *is_well = context;

    if (!*is_well)
        buf_add_text(why, "no answer from slurmrestd");
    return *is_well;
}

static void checks_of_others_count_and_every_failing_one_is_listed(void **state)
{
    struct clinic clinic;
    bool is_well = false;

    set_up(&clinic);
    health_check(clinic.health, "slurm", check_slurm, &is_well);
    assert_readiness(&clinic, false,
                     "[-] cache of configmaps: not synced\n"
                     "[-] slurm: no answer from slurmrestd\n");
    answer_list(&clinic);
    assert_readiness(&clinic, false, "[-] slurm: no answer from slurmrestd\n");
    is_well = true;
    check_readiness(&clinic, true, true, "[+] cache of configmaps: ok\n[+] slurm: ok\n");
    tear_down(&clinic);
}

static void a_cache_that_is_not_required_is_shown_and_measured_only(void **state)
{
    struct clinic clinic;
    struct metrics *metrics;
    auto_buf struct buf out = { .max = 1 << 20 };

    set_up(&clinic);
    health_free(clinic.health);
    metrics = metrics_new();
    clinic.health = health_new(clinic.world.loop, metrics, NULL);
    health_watch_optional(clinic.health, clinic.world.cache, clinic.informer);
    metrics_write(metrics, &out);
    assert_null(strstr(buf_text(&out), "configmaps")); /* the server may not have it */

    for (int i = 0; i < 100; i++)
        fake_status(clinic.world.fake, "GET", LIST, 403, "Forbidden", "no rights");
    kube_informer_start(clinic.informer);
    world_run(&clinic.world, 200 * SECOND);
    check_readiness(&clinic, true, true, "");
    buf_clear(&out);
    metrics_write(metrics, &out);
    assert_non_null(strstr(buf_text(&out), "slinc_cache_age_seconds{kind=\"configmaps\"} -1\n"));
    buf_clear(&out);
    health_write_state(clinic.health, &out);
    assert_non_null(strstr(buf_text(&out), "\"kind\":\"configmaps\""));
    assert_non_null(strstr(buf_text(&out), "no rights"));
    tear_down(&clinic);
    metrics_free(metrics);
}

static void an_object_that_cannot_be_decoded_is_counted(void **state)
{
    struct clinic clinic;
    auto_buf struct buf out = { .max = 1 << 20 };

    set_up(&clinic);
    fake_answer(clinic.world.fake, "GET", LIST,
                (struct fake_answer){ .status = 200,
                                      .body = "{\"kind\":\"ConfigMapList\",\"metadata\":{"
                                              "\"resourceVersion\":\"10\"},\"items\":[{}]}" });
    fake_answer(clinic.world.fake, "GET", LIST, (struct fake_answer){ .status = 200 });
    kube_informer_start(clinic.informer);
    world_run(&clinic.world, 100 * MS);
    metrics_write(clinic.world.metrics, &out);
    assert_non_null(strstr(buf_text(&out), "slinc_cache_undecoded_total{kind=\"configmaps\"} 1\n"));
    buf_clear(&out);
    health_write_state(clinic.health, &out);
    assert_non_null(strstr(buf_text(&out), "\"undecoded\":1"));
    tear_down(&clinic);
}

static void a_process_that_stops_is_not_ready(void **state)
{
    struct clinic clinic;

    set_up(&clinic);
    answer_list(&clinic);
    health_stopping(clinic.health);
    assert_readiness(&clinic, false, "[-] process: is stopping\n");
    tear_down(&clinic);
}

static void the_age_and_size_of_caches_are_metrics(void **state)
{
    struct clinic clinic;
    struct metrics *metrics;
    auto_buf struct buf out;

    set_up(&clinic);
    metrics = clinic.world.metrics;
    buf_init(&out, 1 << 20);
    metrics_write(metrics, &out);
    assert_true(metrics_get(metrics, &engine_metrics[METRIC_CACHE_AGE], "configmaps", NULL) == -1);
    answer_list(&clinic);
    world_see(&clinic.world, "m", 11, "1");
    world_run(&clinic.world, 3 * SECOND);
    metrics_write(metrics, &out);
    assert_true(metrics_get(metrics, &engine_metrics[METRIC_CACHE_AGE], "configmaps", NULL) >= 3);
    assert_true(metrics_get(metrics, &engine_metrics[METRIC_CACHE_OBJECTS], "configmaps", NULL) ==
                1);
    tear_down(&clinic);
}

static void write_weather(void *context, struct buf *out)
{
    buf_printf(out, "{\"degrees\":%d}", *(const int *)context);
}

static void the_state_is_json_with_caches_and_engine(void **state)
{
    struct clinic clinic;
    auto_buf struct buf out;
    auto_json_doc struct json_doc *doc = NULL;
    const struct json *root;

    int degrees = 21;

    set_up(&clinic);
    buf_init(&out, 100000);
    health_show(clinic.health, "weather", write_weather, &degrees);
    health_write_state(clinic.health, &out);
    assert_int_equal(json_parse(buf_str(&out), 100000, &doc, NULL), 0);
    root = json_root(doc);
    assert_false(json_bool_or(json_get(root, "ready"), true));
    assert_true(
        str_is(json_str(json_get(json_item(json_get(root, "caches"), 0), "kind")), "configmaps"));
    assert_true(json_is_array(json_at(root, "engine", "controllers")));
    assert_int_equal(json_i64_or(json_at(root, "weather", "degrees"), 0), degrees);
    tear_down(&clinic);
}

/* ---- over the wire ---- */

struct visit {
    struct loop *loop;
    int status;
    char body[4096], type[100];
};

static void on_answered(void *context, const struct http_answer *answer)
{
    struct visit *visit = context;

    visit->status = answer->status;
    snprintf(visit->type, sizeof(visit->type), "%s", answer->content_type);
    snprintf(visit->body, sizeof(visit->body), STR_FMT, STR_ARG(answer->body));
    loop_stop(visit->loop);
}

static void on_failed(void *context, const struct err *why)
{
    struct visit *visit = context;

    visit->status = -why->class;
    loop_stop(visit->loop);
}

static void visit(struct visit *visit, struct http_transport *transport, const char *method,
                  const char *path)
{
    struct http_request request = { .method = method,
                                    .path = path,
                                    .body = STR(""),
                                    .deadline_us = loop_now_us(visit->loop) + 10 * SECOND };
    struct http_handlers handlers = { .answered = on_answered,
                                      .failed = on_failed,
                                      .context = visit };

    http_send(transport, &request, &handlers);
    loop_run(visit->loop);
}

static void the_routes_answer_over_http(void **state)
{
    static const struct {
        const char *method, *path;
        int status;
        const char *type, *body;
    } cases[] = {
        { "GET", "/healthz", 200, "text/plain", "ok\n" },
        { "GET", "/livez", 200, "text/plain", "ok\n" },
        { "GET", "/readyz", 503, "text/plain", "[-] slurm: no answer from slurmrestd\n" },
        { "GET", "/readyz?exclude=other", 503, "text/plain",
          "[-] slurm: no answer from slurmrestd\n" },
        { "GET", "/readyz?exclude=slurm", 200, "text/plain", "ok\n" },
        { "GET", "/metrics", 200, "text/plain; version=0.0.4", "" },
        { "GET", "/version", 200, "application/json",
          "{\"version\":\"1.2.3-rc.4\",\"slurm\":\"26.05.5\"}" },
        { "GET", "/debug/state", 200, "application/json", "{\"ready\":false,\"why\":" },
        { "DELETE", "/metrics", 405, "text/plain", "only GET and HEAD\n" },
        { "GET", "/other", 404, "", "" },
    };
    struct metrics *metrics = metrics_new();
    struct http_transport *transport = NULL;
    struct http_server *server = NULL;
    struct http_route routes[HEALTH_ROUTES + HEALTH_METRICS_ROUTES + 1];
    struct health *health;
    struct visit seen = { 0 };
    bool is_well = false;
    char url[64];

    assert_int_equal(loop_new_real(&seen.loop, NULL), 0);
    health = health_new(seen.loop, metrics, NULL);
    health_check(health, "slurm", check_slurm, &is_well);
    health_version(health, "1.2.3-rc.4");
    health_slurm(health, "26.05.5");
    health_routes(health, routes);
    health_metrics_routes(health, routes + HEALTH_ROUTES);
    routes[HEALTH_ROUTES + HEALTH_METRICS_ROUTES] = health_state_route(health);
    assert_int_equal(http_server_new(seen.loop,
                                     &(struct http_server_options){
                                         .address = "127.0.0.1",
                                         .routes = routes,
                                         .route_count = sizeof(routes) / sizeof(routes[0]) },
                                     &server, NULL),
                     0);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", http_server_port(server));
    assert_int_equal(http_client_new(seen.loop, &(struct http_client_options){ .base_url = url },
                                     &transport, NULL),
                     0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        visit(&seen, transport, cases[i].method, cases[i].path);
        assert_int_equal(seen.status, cases[i].status);
        assert_true(str_starts(str_of(seen.type), str_of(cases[i].type)));
        assert_true(str_starts(str_of(seen.body), str_of(cases[i].body)));
    }
    visit(&seen, transport, "GET", "/metrics");
    assert_non_null(strstr(seen.body, "slinc_build_info{version=\"1.2.3-rc.4\"} 1\n"));
    is_well = true;
    visit(&seen, transport, "GET", "/readyz?verbose");
    assert_int_equal(seen.status, 200);
    assert_string_equal(seen.body, "[+] slurm: ok\nok\n");
    http_transport_free(transport);
    http_server_free(server);
    health_free(health);
    metrics_free(metrics);
    loop_free(seen.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cache_that_is_not_synced_makes_unready),
        cmocka_unit_test(silence_over_the_limit_makes_unready),
        cmocka_unit_test(not_being_the_leader_does_not),
        cmocka_unit_test(checks_of_others_count_and_every_failing_one_is_listed),
        cmocka_unit_test(a_cache_that_is_not_required_is_shown_and_measured_only),
        cmocka_unit_test(an_object_that_cannot_be_decoded_is_counted),
        cmocka_unit_test(a_process_that_stops_is_not_ready),
        cmocka_unit_test(the_age_and_size_of_caches_are_metrics),
        cmocka_unit_test(the_state_is_json_with_caches_and_engine),
        cmocka_unit_test(the_routes_answer_over_http),
    };

    return cmocka_run_group_tests_name("health", tests, NULL, NULL);
}
