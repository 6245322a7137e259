/* webhook.c - admission reviews over TLS, by a table of paths.
 *
 * Holds: every request is answered once, in time, whatever it is; a request that is held is in the
 * list of held requests until it is answered. */
#include "engine/webhook.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/engine_metrics.h"
#include "io/http_server.h"
#include "io/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>

enum {
    MS_US = 1000,
    SECOND_US = 1000000,
    MAX_FILE_NAME = 1024,
    RETRY_HELD_US = 10 * MS_US,
    REQUEST_US = 10 * SECOND_US, /* the longest that the API server waits is 30 s */
    IDLE_US = 300 * SECOND_US,   /* a new connection costs the API server a handshake */
};

struct hook {
    struct webhook_server *server;
    struct webhook_path row;
    unsigned in_flight;
};

struct webhook_server {
    struct loop *loop;
    struct webhook_options options; /* its paths are in hooks */
    char cert_file[MAX_FILE_NAME], key_file[MAX_FILE_NAME];
    struct hook hooks[WEBHOOK_MAX_PATHS];
    struct http_route routes[WEBHOOK_MAX_PATHS + 1]; /* and /healthz */
    struct http_server *http;                        /* NULL until there is a certificate */
    struct loop_timer retry;
    struct list held;
    unsigned held_count;
    char why[240]; /* nothing is served; "" when it is */
};

/* ---- counting ---- */

static void show_in_flight(const struct hook *hook)
{
    metrics_set(hook->server->options.metrics, &engine_metrics[METRIC_WEBHOOK_IN_FLIGHT],
                hook->in_flight, hook->row.path, NULL);
}

/* result: NULL when no review was read. */
static void count(struct hook *hook, int status, const char *result, int64_t begun_us)
{
    const struct webhook_options *options = &hook->server->options;
    const char *path = hook->row.path;
    double took_s = (double)(loop_now_us(hook->server->loop) - begun_us) / 1e6;
    char code[16];

    (void)snprintf(code, sizeof(code), "%d", status);
    metrics_add(options->metrics, &engine_metrics[METRIC_WEBHOOK_REQUESTS], 1, path, code, NULL);
    metrics_observe(options->metrics, &engine_metrics[METRIC_WEBHOOK_SECONDS], took_s, path, NULL);
    if (result && options->results)
        metrics_add(options->metrics, options->results, 1, path, result, NULL);
}

/* ---- answers ---- */

static void respond(struct hook *hook, struct http_responder *responder,
                    const struct webhook_answer *answer, const struct buf *out, int64_t begun_us)
{
    count(hook, answer->status, answer->result, begun_us);
    if (answer->status == 200)
        http_respond_json(responder, answer->status, buf_str(out));
    else
        http_respond_text(responder, answer->status, buf_text(out));
}

/* A request whose answer is held: its review is repeated until the answer is final or the time is
 * over. */
struct held {
    struct list link; /* in server.held */
    struct hook *hook;
    struct http_responder *responder;
    struct loop_timer retry;
    int64_t begun_us;
    char *body;
    size_t length;
};

static void held_end(struct held *held)
{
    loop_timer_stop(&held->retry);
    list_remove(&held->link);
    held->hook->server->held_count--;
    held->hook->in_flight--;
    show_in_flight(held->hook);
    mem_free(held->body);
    mem_free(held);
}

static void retry_held(void *context)
{
    struct held *held = context;
    struct hook *hook = held->hook;
    struct webhook_server *server = hook->server;
    auto_buf struct buf out = { .max = WEBHOOK_MAX_ANSWER };
    struct webhook_answer answer =
        hook->row.review(hook->row.context, (struct str){ held->body, held->length }, &out);

    if (answer.is_early && loop_now_us(server->loop) - held->begun_us < server->options.hold_us) {
        loop_timer_start(server->loop, &held->retry, RETRY_HELD_US, retry_held, held);
        return;
    }
    respond(hook, held->responder, &answer, &out, held->begun_us);
    held_end(held);
}

static void on_gone(void *context)
{
    struct held *held = context;

    http_respond_text(held->responder, 408, ""); /* goes nowhere */
    held_end(held);
}

static void hold(struct hook *hook, struct http_responder *responder, struct str body)
{
    struct webhook_server *server = hook->server;
    struct held *held = mem_alloc(sizeof(*held));

    *held = (struct held){ .hook = hook,
                           .responder = responder,
                           .begun_us = loop_now_us(server->loop),
                           .body = mem_strndup(body.at, body.len),
                           .length = body.len };
    list_push_back(&server->held, &held->link);
    server->held_count++;
    hook->in_flight++;
    show_in_flight(hook);
    if (server->options.held)
        metrics_add(server->options.metrics, server->options.held, 1, hook->row.path, NULL);
    http_responder_on_gone(responder, on_gone, held);
    loop_timer_start(server->loop, &held->retry, RETRY_HELD_US, retry_held, held);
}

/* ---- requests ---- */

static bool is_json(const char *content_type)
{
    static const char wanted[] = "application/json";
    size_t length = sizeof(wanted) - 1;

    return content_type && strncasecmp(content_type, wanted, length) == 0 &&
           (content_type[length] == '\0' || content_type[length] == ';' ||
            content_type[length] == ' ');
}

static void reject(struct hook *hook, struct http_responder *responder, int status,
                   const char *text)
{
    count(hook, status, NULL, loop_now_us(hook->server->loop));
    http_respond_text(responder, status, text);
}

static void handle_review(void *context, const struct http_view *view,
                          struct http_responder *responder)
{
    struct hook *hook = context;
    struct webhook_server *server = hook->server;
    int64_t begun_us = loop_now_us(server->loop);
    auto_buf struct buf out = { .max = WEBHOOK_MAX_ANSWER };
    struct webhook_answer answer;

    if (!str_is(str_of(view->method), "POST")) {
        http_respond_header(responder, "Allow", "POST");
        reject(hook, responder, 405, "only POST\n");
        return;
    }
    if (!is_json(http_view_header(view, "Content-Type"))) {
        reject(hook, responder, 415, "wants application/json\n");
        return;
    }
    answer = hook->row.review(hook->row.context, view->body, &out);
    if (answer.is_early && server->held_count < WEBHOOK_MAX_HELD)
        hold(hook, responder, view->body);
    else
        respond(hook, responder, &answer, &out, begun_us);
}

static void handle_live(void *context, const struct http_view *view,
                        struct http_responder *responder)
{
    http_respond_text(responder, 200, "ok\n");
}

/* ---- certificate ---- */

static void on_certificate(void *context, const struct err *why)
{
    struct webhook_server *server = context;
    struct metrics *metrics = server->options.metrics;

    metrics_add(metrics, &engine_metrics[METRIC_CERTIFICATE_READS], 1, NULL);
    if (why) {
        metrics_add(metrics, &engine_metrics[METRIC_CERTIFICATE_ERRORS], 1, NULL);
        log_warn("the webhook keeps its certificate: the new one is of no use", LOG_ERROR(why));
    } else {
        log_info("the webhook has a new certificate", LOG_TEXT("file", server->cert_file));
    }
}

static bool has_certificate(const struct webhook_server *server, struct err *err)
{
    const struct tls_source files = { .cert_file = server->cert_file,
                                      .key_file = server->key_file };
    struct tls_material *material;

    if (tls_material_new(&files, &material, err) < 0)
        return false;
    tls_material_unref(material);
    return true;
}

static int serve(struct webhook_server *server, struct err *err)
{
    const struct http_server_options options = {
        .address = server->options.address,
        .port = server->options.port,
        .routes = server->routes,
        .route_count = server->options.path_count + 1,
        .cert_file = server->cert_file,
        .key_file = server->key_file,
        .tls_period_us = server->options.reload_us,
        .tls_changed = on_certificate,
        .tls_context = server,
        .max_body = WEBHOOK_MAX_BODY,
        .request_us = REQUEST_US,
        .idle_us = IDLE_US,
    };
    int result = http_server_new(server->loop, &options, &server->http, err);

    if (result < 0)
        return result;
    server->why[0] = '\0';
    metrics_add(server->options.metrics, &engine_metrics[METRIC_CERTIFICATE_READS], 1, NULL);
    log_info("the webhook is served", LOG_U64("port", http_server_port(server->http)));
    return 0;
}

static void serve_later(void *context);

/* Logs the reason once, and again when it changes. */
static void wait_for_certificate(struct webhook_server *server, const struct err *why)
{
    if (!str_is(str_of(server->why), why->text)) {
        (void)snprintf(server->why, sizeof(server->why), "%s", why->text);
        log_warn("the webhook is not served yet: it is tried again", LOG_ERROR(why));
    }
    loop_timer_start(server->loop, &server->retry, server->options.reload_us, serve_later, server);
}

static void serve_later(void *context)
{
    struct webhook_server *server = context;
    struct err err = { .class = 0 };

    if (!has_certificate(server, &err) || serve(server, &err) < 0)
        wait_for_certificate(server, &err);
}

/* ---- making and freeing ---- */

static void make_routes(struct webhook_server *server)
{
    unsigned count = server->options.path_count;

    for (unsigned i = 0; i < count; i++) {
        server->hooks[i] = (struct hook){ .server = server, .row = server->options.paths[i] };
        server->routes[i] = (struct http_route){ .path = server->hooks[i].row.path,
                                                 .handle = handle_review,
                                                 .context = &server->hooks[i] };
    }
    server->routes[count] = (struct http_route){ .path = "/healthz", .handle = handle_live };
    server->options.paths = NULL; /* the caller's table ends with its call */
}

static int name_files(struct webhook_server *server, struct err *err)
{
    const char *folder = server->options.folder;

    if (strlen(folder) > MAX_FILE_NAME - sizeof("/tls.crt"))
        return err_set(err, ERR_TOO_BIG, "the folder's name is longer than %d bytes",
                       MAX_FILE_NAME);
    (void)snprintf(server->cert_file, MAX_FILE_NAME, "%s/tls.crt", folder);
    (void)snprintf(server->key_file, MAX_FILE_NAME, "%s/tls.key", folder);
    return 0;
}

int webhook_server_new(struct loop *loop, const struct webhook_options *options,
                       struct webhook_server **ret_server, struct err *err)
{
    struct webhook_server *server = mem_alloc(sizeof(*server));
    struct err why = { .class = 0 };
    int result;

    server->loop = loop;
    server->options = *options;
    if (options->path_count > WEBHOOK_MAX_PATHS) {
        (void)fprintf(stderr, "webhook: more than %d paths\n", WEBHOOK_MAX_PATHS);
        abort();
    }
    if (server->options.reload_us <= 0)
        server->options.reload_us = 10 * (int64_t)SECOND_US;
    if (server->options.hold_us <= 0)
        server->options.hold_us = SECOND_US;
    list_init(&server->held);
    make_routes(server);
    result = name_files(server, err);
    if (result == 0 && has_certificate(server, &why))
        result = serve(server, err);
    else if (result == 0)
        wait_for_certificate(server, &why);
    if (result < 0) {
        webhook_server_free(server);
        (void)err_wrap(err, "the webhook");
        return result;
    }
    *ret_server = server;
    return 0;
}

void webhook_server_free(struct webhook_server *server)
{
    if (!server)
        return;
    loop_timer_stop(&server->retry);
    http_server_free(server->http); /* ends the held requests, too */
    mem_free(server);
}

uint16_t webhook_server_port(const struct webhook_server *server)
{
    return server->http ? http_server_port(server->http) : 0;
}

/* ---- readiness ---- */

static bool is_ready(void *context, struct buf *why)
{
    const struct webhook_server *server = context;
    struct stat found;

    if (server->http || (!server->options.is_needed && stat(server->options.folder, &found) < 0))
        return true;
    buf_printf(why, "is not served: %s", server->why);
    return false;
}

void webhook_server_add_health(struct webhook_server *server, struct health *health)
{
    health_check(health, "webhook", is_ready, server);
}
