/* admit_server.c - the webhook on the wire.
 *
 * Holds: every request is answered once, in time, whatever it is; a request held back is in the
 * list until it was answered. */
#include "bridge/admit_server.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/engine_metrics.h"
#include "io/http_server.h"
#include "io/tls.h"

#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>

enum {
    MS_US = 1000,
    SECOND_US = 1000000,
    HOOKS = 2,
    ROUTES = HOOKS + 1,
    MAX_PATH = 1024,
    HOLD_LOOK_US = 10 * MS_US,
    REQUEST_US = 10 * SECOND_US, /* the longest that the API server waits is 30 s */
    IDLE_US = 300 * SECOND_US,   /* a new connection costs the API server a handshake */
};

static const char *const paths[HOOKS] = {
    [ADMIT_MUTATE] = "/mutate--v1-pod", [ADMIT_VALIDATE] = "/validate--v1-pod"
};

const struct metric_family admit_metrics[] = {
    { .name = "slinc_bridge_admissions_total",
      .help = "Answers of the webhook: allowed, changed, refused, not-known or unreadable.",
      .type = METRIC_COUNTER,
      .labels = { "webhook", "verdict" } },
    { .name = "slinc_bridge_admissions_held_total",
      .help = "Answers held back because a namespace or an owner was not seen yet.",
      .type = METRIC_COUNTER,
      .labels = { "webhook" } },
};
const size_t admit_metric_count = sizeof(admit_metrics) / sizeof(admit_metrics[0]);

enum { VERDICTS, HELD };

struct hook { /* one path */
    struct admit_server *server;
    enum admit_hook which;
    unsigned in_flight;
};

struct admit_server {
    struct loop *loop;
    struct admit_server_options options;
    char cert_file[MAX_PATH], key_file[MAX_PATH];
    struct http_route routes[ROUTES];
    struct hook hooks[HOOKS];
    struct http_server *http; /* NULL until there is a certificate */
    struct loop_timer look;
    struct list held;
    unsigned held_count;
    char why[240]; /* nothing is served; "" when it is */
};

/* ---- counting ---- */

static void show_in_flight(const struct hook *hook)
{
    metrics_set(hook->server->options.metrics, &engine_metrics[METRIC_WEBHOOK_IN_FLIGHT],
                hook->in_flight, paths[hook->which], NULL);
}

static void count(struct hook *hook, int status, const enum admit_verdict *verdict,
                  int64_t begun_us)
{
    struct metrics *metrics = hook->server->options.metrics;
    const char *path = paths[hook->which];
    double took_s = (double)(loop_now_us(hook->server->loop) - begun_us) / 1e6;
    char code[16];

    (void)snprintf(code, sizeof(code), "%d", status);
    metrics_add(metrics, &engine_metrics[METRIC_WEBHOOK_REQUESTS], 1, path, code, NULL);
    metrics_observe(metrics, &engine_metrics[METRIC_WEBHOOK_SECONDS], took_s, path, NULL);
    if (verdict)
        metrics_add(metrics, &admit_metrics[VERDICTS], 1, path, admit_verdict_name(*verdict), NULL);
}

/* ---- answers ---- */

static void respond(struct hook *hook, struct http_responder *responder,
                    const struct admit_answer *answer, const struct buf *out, int64_t begun_us)
{
    count(hook, answer->status, &answer->verdict, begun_us);
    if (answer->status == 200)
        http_respond_json(responder, answer->status, buf_str(out));
    else
        http_respond_text(responder, answer->status, buf_text(out));
}

/* An answer that is held back, in the hope of a better one. */
struct held {
    struct list link; /* in server.held */
    struct hook *hook;
    struct http_responder *responder;
    struct loop_timer look;
    int64_t begun_us;
    char *body;
    size_t length;
};

static void held_end(struct held *held)
{
    loop_timer_stop(&held->look);
    list_remove(&held->link);
    held->hook->server->held_count--;
    held->hook->in_flight--;
    show_in_flight(held->hook);
    mem_free(held->body);
    mem_free(held);
}

static void look_again(void *context)
{
    struct held *held = context;
    struct admit_server *server = held->hook->server;
    auto_buf struct buf out = { .max = ADMIT_MAX_ANSWER };
    struct admit_answer answer = admit_review(server->options.admit, held->hook->which,
                                              (struct str){ held->body, held->length }, &out);

    if (answer.is_early && loop_now_us(server->loop) - held->begun_us < server->options.hold_us) {
        loop_timer_start(server->loop, &held->look, HOLD_LOOK_US, look_again, held);
        return;
    }
    respond(held->hook, held->responder, &answer, &out, held->begun_us);
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
    struct admit_server *server = hook->server;
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
    metrics_add(server->options.metrics, &admit_metrics[HELD], 1, paths[hook->which], NULL);
    http_responder_on_gone(responder, on_gone, held);
    loop_timer_start(server->loop, &held->look, HOLD_LOOK_US, look_again, held);
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
    struct admit_server *server = hook->server;
    int64_t begun_us = loop_now_us(server->loop);
    auto_buf struct buf out = { .max = ADMIT_MAX_ANSWER };
    struct admit_answer answer;

    if (!str_is(str_of(view->method), "POST")) {
        http_respond_header(responder, "Allow", "POST");
        reject(hook, responder, 405, "only POST\n");
        return;
    }
    if (!is_json(http_view_header(view, "Content-Type"))) {
        reject(hook, responder, 415, "wants application/json\n");
        return;
    }
    answer = admit_review(server->options.admit, hook->which, view->body, &out);
    if (answer.is_early && server->held_count < ADMIT_HELD_MAX)
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
    struct admit_server *server = context;
    struct metrics *metrics = server->options.metrics;

    metrics_add(metrics, &engine_metrics[METRIC_CERTIFICATE_READS], 1, NULL);
    if (why) {
        metrics_add(metrics, &engine_metrics[METRIC_CERTIFICATE_ERRORS], 1, NULL);
        log_warn("the webhook keeps its certificate: the new one is of no use", LOG_ERROR(why));
    } else {
        log_info("the webhook has a new certificate", LOG_TEXT("file", server->cert_file));
    }
}

static bool has_certificate(const struct admit_server *server, struct err *err)
{
    const struct tls_source files = { .cert_file = server->cert_file,
                                      .key_file = server->key_file };
    struct tls_material *material;

    if (tls_material_new(&files, &material, err) < 0)
        return false;
    tls_material_unref(material);
    return true;
}

static int serve(struct admit_server *server, struct err *err)
{
    const struct http_server_options options = {
        .address = server->options.address,
        .port = server->options.port,
        .routes = server->routes,
        .route_count = ROUTES,
        .cert_file = server->cert_file,
        .key_file = server->key_file,
        .tls_period_us = server->options.look_us,
        .tls_changed = on_certificate,
        .tls_context = server,
        .max_body = ADMIT_MAX_BODY,
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

static void try_again(void *context);

/* Says so once, and again when the reason changes. */
static void wait_a_while(struct admit_server *server, const struct err *why)
{
    if (!str_is(str_of(server->why), why->text)) {
        (void)snprintf(server->why, sizeof(server->why), "%s", why->text);
        log_warn("the webhook is not served yet: it is tried again", LOG_ERROR(why));
    }
    loop_timer_start(server->loop, &server->look, server->options.look_us, try_again, server);
}

static void try_again(void *context)
{
    struct admit_server *server = context;
    struct err err = { .class = 0 };

    if (!has_certificate(server, &err) || serve(server, &err) < 0)
        wait_a_while(server, &err);
}

/* ---- making and freeing ---- */

static void make_routes(struct admit_server *server)
{
    for (unsigned i = 0; i < HOOKS; i++) {
        server->hooks[i] = (struct hook){ .server = server, .which = (enum admit_hook)i };
        server->routes[i] = (struct http_route){ .path = paths[i],
                                                 .handle = handle_review,
                                                 .context = &server->hooks[i] };
    }
    server->routes[HOOKS] = (struct http_route){ .path = "/healthz", .handle = handle_live };
}

static int name_files(struct admit_server *server, struct err *err)
{
    const char *folder = server->options.folder;

    if (strlen(folder) > MAX_PATH - sizeof("/tls.crt"))
        return err_set(err, ERR_TOO_BIG, "the folder's name is longer than %d bytes", MAX_PATH);
    (void)snprintf(server->cert_file, MAX_PATH, "%s/tls.crt", folder);
    (void)snprintf(server->key_file, MAX_PATH, "%s/tls.key", folder);
    return 0;
}

int admit_server_new(struct loop *loop, const struct admit_server_options *options,
                     struct admit_server **ret_server, struct err *err)
{
    struct admit_server *server = mem_alloc(sizeof(*server));
    struct err why = { .class = 0 };
    int result;

    server->loop = loop;
    server->options = *options;
    if (server->options.look_us <= 0)
        server->options.look_us = 10 * (int64_t)SECOND_US;
    if (server->options.hold_us <= 0)
        server->options.hold_us = SECOND_US;
    list_init(&server->held);
    make_routes(server);
    result = name_files(server, err);
    if (result == 0 && has_certificate(server, &why))
        result = serve(server, err);
    else if (result == 0)
        wait_a_while(server, &why);
    if (result < 0) {
        admit_server_free(server);
        (void)err_wrap(err, "the webhook");
        return result;
    }
    *ret_server = server;
    return 0;
}

void admit_server_free(struct admit_server *server)
{
    if (!server)
        return;
    loop_timer_stop(&server->look);
    http_server_free(server->http); /* whoever is held back is told, and ends */
    mem_free(server);
}

bool admit_server_is_serving(const struct admit_server *server)
{
    return server->http != NULL;
}

uint16_t admit_server_port(const struct admit_server *server)
{
    return server->http ? http_server_port(server->http) : 0;
}

/* ---- readiness ---- */

static bool is_ready(void *context, struct buf *why)
{
    const struct admit_server *server = context;
    struct stat found;

    if (server->http || (!server->options.is_needed && stat(server->options.folder, &found) < 0))
        return true;
    buf_printf(why, "is not served: %s", server->why);
    return false;
}

void admit_server_add_health(struct admit_server *server, struct health *health)
{
    health_check(health, "webhook", is_ready, server);
}
