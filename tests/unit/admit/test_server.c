/* test_server.c - the webhook on the wire: what is answered how, certificates that come
 * later, answers that wait for what was made a moment ago, counts, readiness. */
#include "../io/cert_folder.h"
#include "admit/server.h"
#include "admit_rig.h"
#include "engine/engine_metrics.h"

#define MUTATE   "/mutate--v1-pod"
#define VALIDATE "/validate--v1-pod"
#define JSON     "application/json"

struct world {
    struct rig rig;
    struct loop *loop;
    struct metrics *metrics;
    struct health *health;
    struct webhook_server *server;
    struct webhook_options options;
    struct http_transport *transport;
    struct cert_folder folder;
    unsigned served;
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

static void connect_to(struct world *world)
{
    world->transport =
        serving_certs_connect(&certs, world->loop, webhook_server_port(world->server));
}

static void begin(struct world *world, const char *config, bool has_certificate)
{
    cert_folder_make(&world->folder);
    if (has_certificate)
        cert_folder_fill(&world->folder, &certs.server);
    rig_begin(&world->rig, config);
    assert_int_equal(loop_new_real(&world->loop, NULL), 0);
    world->metrics = metrics_new();
    world->health = health_new(world->loop, world->metrics, NULL);
    world->options.metrics = world->metrics;
    world->options.address = "127.0.0.1";
    world->options.folder = world->folder.path;
    assert_int_equal(
        admit_server_new(world->loop, world->rig.admit, world->options, &world->server, NULL), 0);
    webhook_server_add_health(world->server, world->health);
    if (has_certificate)
        connect_to(world);
}

static void end(struct world *world)
{
    http_transport_free(world->transport);
    webhook_server_free(world->server);
    health_free(world->health);
    metrics_free(world->metrics);
    loop_free(world->loop);
    rig_end(&world->rig);
    cert_folder_remove(&world->folder);
}

static struct http_request request_of(const char *method, const char *path,
                                      const char *content_type, struct str body)
{
    struct http_request request = { .method = method, .path = path, .body = body };

    if (content_type) {
        request.headers[0] = (struct http_header){ .name = "Content-Type", .value = content_type };
        request.header_count = 1;
    }
    return request;
}

static struct exchange post(struct world *world, const char *path, const char *content_type,
                            struct str body)
{
    const struct http_request request = request_of("POST", path, content_type, body);
    struct exchange done = { .ends = 0 };

    exchange_do(&done, world->loop, world->transport, &request);
    return done;
}

static struct str review(struct world *world, const char *ns)
{
    return str_of(
        rig_review(&world->rig, &(struct call){ .ns = ns, .pod = "{'metadata':{},'spec':{}}" }));
}

static double counted(struct world *world, const char *path, const char *verdict)
{
    return metrics_get(world->metrics, &admit_metrics[0], path, verdict, NULL);
}

static double answered(struct world *world, const char *path, const char *code)
{
    return metrics_get(world->metrics, &engine_metrics[METRIC_WEBHOOK_REQUESTS], path, code, NULL);
}

/* ---- answers ---- */

static void both_paths_answer_reviews(void **state)
{
    struct world world = { .server = NULL };
    struct exchange mutated, validated, elsewhere;

    begin(&world, "", true);
    mutated = post(&world, MUTATE, JSON, review(&world, NULL));
    validated = post(&world, VALIDATE, JSON "; charset=utf-8", review(&world, NULL));
    elsewhere = post(&world, MUTATE, JSON, review(&world, "elsewhere"));
    assert_int_equal(mutated.status, 200);
    assert_non_null(strstr(mutated.body, "\"patchType\":\"JSONPatch\""));
    assert_string_equal(mutated.content_type, JSON);
    assert_int_equal(validated.status, 200);
    assert_non_null(strstr(validated.body, "\"uid\":\"u-1\",\"allowed\":true"));
    assert_null(strstr(elsewhere.body, "patch"));
    assert_true(counted(&world, MUTATE, "changed") == 1 &&
                counted(&world, MUTATE, "allowed") == 1 &&
                counted(&world, VALIDATE, "allowed") == 1);
    assert_true(answered(&world, MUTATE, "200") == 2);
    end(&world);
}

static void what_is_not_a_posted_review_is_told_so(void **state)
{
    static const struct {
        const char *method, *path, *content_type, *body;
        int status;
    } rows[] = {
        { "GET", MUTATE, NULL, "", 405 },
        { "PUT", VALIDATE, JSON, "{}", 405 },
        { "POST", MUTATE, NULL, "{}", 415 },
        { "POST", MUTATE, "text/plain", "{}", 415 },
        { "POST", MUTATE, "application/jsonx", "{}", 415 },
        { "POST", MUTATE, "APPLICATION/JSON", "{}", 400 },
        { "POST", VALIDATE, JSON, "", 400 },
        { "POST", VALIDATE, JSON, "{", 400 },
        { "POST", "/elsewhere", JSON, "{}", 404 },
        { "GET", "/healthz", NULL, "", 200 },
    };
    struct world world = { .server = NULL };

    begin(&world, "", true);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct http_request request =
            request_of(rows[i].method, rows[i].path, rows[i].content_type, str_of(rows[i].body));
        struct exchange done = { .ends = 0 };

        exchange_do(&done, world.loop, world.transport, &request);
        assert_int_equal(done.status, rows[i].status);
    }
    assert_true(answered(&world, MUTATE, "415") == 3 && answered(&world, VALIDATE, "405") == 1);
    assert_true(counted(&world, VALIDATE, "unreadable") == 2);
    end(&world);
}

static void a_review_that_is_too_large_is_told_so(void **state)
{
    struct world world = { .server = NULL };
    auto_buf struct buf body = { .max = ADMIT_MAX_BODY + 1 };

    begin(&world, "", true);
    while (body.len < ADMIT_MAX_BODY + 1)
        buf_add(&body, "                                ", body.max - body.len < 32 ? 1 : 32);
    assert_int_equal(post(&world, VALIDATE, JSON, buf_str(&body)).status, 413);
    end(&world);
}

/* ---- waiting for what was made a moment ago ---- */

#define SELECT "managedNamespaceSelector: {matchLabels: {slurm: 'yes'}}"

/* The one question has arrived, and has no answer yet. */
static bool is_held(struct world *world, const char *path)
{
    return metrics_get(world->metrics, &engine_metrics[METRIC_WEBHOOK_IN_FLIGHT], path, NULL) == 1;
}

static void see_namespace_once_held(void *context)
{
    struct world *world = context;
    static struct loop_timer again;

    if (!is_held(world, MUTATE)) {
        loop_timer_start(world->loop, &again, MS_US, see_namespace_once_held, world);
        return;
    }
    rig_see(&world->rig, world->rig.namespaces,
            "{'metadata':{'name':'new','uid':'1','resourceVersion':'1','labels':{'slurm':'yes'}}}");
}

static void an_answer_waits_for_a_namespace_that_was_made_a_moment_ago(void **state)
{
    struct world world = { .options = { .hold_us = 10 * (int64_t)SECOND_US } };
    struct exchange done;

    begin(&world, SELECT, true);
    see_namespace_once_held(&world);
    done = post(&world, MUTATE, JSON, review(&world, "new"));
    assert_non_null(strstr(done.body, "JSONPatch"));
    assert_true(metrics_get(world.metrics, &admit_metrics[1], MUTATE, NULL) == 1);
    assert_true(counted(&world, MUTATE, "changed") == 1 && answered(&world, MUTATE, "200") == 1);
    end(&world);
}

static void a_namespace_that_does_not_come_is_told_in_time(void **state)
{
    struct world world = { .options = { .hold_us = 50 * MS_US } };
    struct exchange done;
    int64_t begun_us;

    begin(&world, SELECT, true);
    begun_us = loop_now_us(world.loop);
    done = post(&world, VALIDATE, JSON, review(&world, "never"));
    assert_true(loop_now_us(world.loop) - begun_us >= 50 * MS_US);
    assert_non_null(strstr(done.body, "\"code\":503"));
    assert_true(counted(&world, VALIDATE, "not-known") == 1);
    end(&world);
}

static void who_hangs_up_while_waiting_is_forgotten(void **state)
{
    struct world world = { .options = { .hold_us = 50 * MS_US } };
    const struct http_request request = request_of("POST", MUTATE, JSON, STR(""));
    struct http_request sent = request;
    struct exchange given_up = { .ends = 0 };

    begin(&world, SELECT, true);
    sent.body = review(&world, "never");
    exchange_send(&given_up, world.loop, world.transport, &sent);
    run_for(world.loop, 30 * MS_US);
    http_cancel(world.transport, given_up.call);
    assert_int_equal(post(&world, MUTATE, JSON, review(&world, "never")).status, 200);
    end(&world);
}

static void an_end_with_answers_held_back_leaves_nothing_behind(void **state)
{
    struct world world = { .options = { .hold_us = 10 * (int64_t)SECOND_US } };
    const struct http_request request = request_of("POST", MUTATE, JSON, STR(""));
    struct http_request sent = request;
    struct exchange lost = { .ends = 0 };

    begin(&world, SELECT, true);
    sent.body = review(&world, "never");
    exchange_send(&lost, world.loop, world.transport, &sent);
    while (!is_held(&world, MUTATE))
        run_for(world.loop, MS_US);
    webhook_server_free(world.server);
    world.server = NULL;
    run_until(world.loop, &lost.ends);
    assert_int_equal(lost.status, 0);
    end(&world);
}

/* ---- certificates ---- */

static void stop_when_served(void *context)
{
    struct world *world = context;
    static struct loop_timer again;

    world->served = webhook_server_port(world->server) != 0;
    if (world->served)
        loop_stop(world->loop);
    else
        loop_timer_start(world->loop, &again, MS_US, stop_when_served, world);
}

static void a_certificate_that_comes_later_is_found(void **state)
{
    struct world world = { .options = { .reload_us = 10 * MS_US } };

    begin(&world, "", false);
    assert_int_equal(webhook_server_port(world.server), 0);
    run_for(world.loop, 30 * MS_US);
    assert_int_equal(webhook_server_port(world.server), 0);
    cert_folder_fill(&world.folder, &certs.server);
    stop_when_served(&world);
    run_until(world.loop, &world.served);
    connect_to(&world);
    assert_int_equal(post(&world, MUTATE, JSON, review(&world, NULL)).status, 200);
    end(&world);
}

static bool is_ready(struct world *world, const char *why)
{
    auto_buf struct buf out = { .max = 4096 };
    bool is_ready = health_is_ready(world->health, false, &out);

    assert_true(is_ready || strstr(buf_text(&out), why));
    return is_ready;
}

static void a_folder_without_a_certificate_makes_it_unready(void **state)
{
    struct world world = { .server = NULL };

    begin(&world, "", false);
    assert_false(is_ready(&world, "[-] webhook: is not served: "));
    (void)rmdir(world.folder.path); /* nobody wants a webhook */
    assert_true(is_ready(&world, ""));
    end(&world);
    world = (struct world){ .options = { .is_needed = true } };
    begin(&world, "", false);
    (void)rmdir(world.folder.path);
    assert_false(is_ready(&world, "[-] webhook: is not served: "));
    end(&world);
    world = (struct world){ .options = { .is_needed = true } };
    begin(&world, "", true);
    assert_true(is_ready(&world, ""));
    end(&world);
}

static void a_taken_port_is_an_error(void **state)
{
    struct world world = { .server = NULL };
    struct webhook_options options;
    struct webhook_server *second;
    struct err err = { .class = 0 };

    begin(&world, "", true);
    options = world.options;
    options.port = webhook_server_port(world.server);
    assert_true(admit_server_new(world.loop, world.rig.admit, options, &second, &err) < 0);
    assert_true(str_starts(str_of(err.text), STR("the webhook: ")));
    end(&world);
}

static void a_folders_name_has_a_greatest_length(void **state)
{
    struct world world = { .server = NULL };
    struct webhook_options options;
    struct webhook_server *second;
    char folder[2000];

    begin(&world, "", true);
    memset(folder, 'f', sizeof(folder) - 1);
    folder[sizeof(folder) - 1] = '\0';
    options = world.options;
    options.folder = folder;
    assert_int_equal(admit_server_new(world.loop, world.rig.admit, options, &second, NULL),
                     -ERR_TOO_BIG);
    end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_paths_answer_reviews),
        cmocka_unit_test(what_is_not_a_posted_review_is_told_so),
        cmocka_unit_test(a_review_that_is_too_large_is_told_so),
        cmocka_unit_test(an_answer_waits_for_a_namespace_that_was_made_a_moment_ago),
        cmocka_unit_test(a_namespace_that_does_not_come_is_told_in_time),
        cmocka_unit_test(who_hangs_up_while_waiting_is_forgotten),
        cmocka_unit_test(an_end_with_answers_held_back_leaves_nothing_behind),
        cmocka_unit_test(a_certificate_that_comes_later_is_found),
        cmocka_unit_test(a_folder_without_a_certificate_makes_it_unready),
        cmocka_unit_test(a_taken_port_is_an_error),
        cmocka_unit_test(a_folders_name_has_a_greatest_length),
    };

    return cmocka_run_group_tests_name("admit server", tests, make_certs, free_certs);
}
