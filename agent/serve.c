/* serve.c - the table of paths, and one request from the socket to the pool and back.
 *
 * 501 and 503 are proof that nothing was done; 504 is none.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "serve.h"

#include "base/mem.h"
#include "cmd/cmd.h"
#include "codec/json.h"
#include "io/http_server.h"

enum {
    MAX_CONNECTIONS = 512,
    MAX_REQUEST = 16 << 20,
    MARGIN_US = 3000000, /* so that the pool's deadline comes first */
    IDLE_US = 300000000,
    MAX_JOB_ID = 0x03ffffff, /* Slurm has none above */
};

#define SLURM "/slurm/v0.0.45/"

static const struct {
    const char *method, *before, *behind; /* of the job id; behind NULL: the path has no id */
    enum agent_call call;
} paths[] = {
    { "POST", SLURM "job/submit", NULL, AGENT_SUBMIT },
    { "POST", SLURM "job/allocate", NULL, AGENT_ALLOCATE },
    { "GET", SLURM "jobs/state/", NULL, AGENT_STATES },
    { "DELETE", SLURM "jobs/", NULL, AGENT_CANCEL_MANY },
    { "GET", SLURM "job/", "", AGENT_JOB },
    { "POST", SLURM "job/", "", AGENT_UPDATE },
    { "DELETE", SLURM "job/", "", AGENT_CANCEL },
    { "GET", SLURM "resources/", "", AGENT_RESOURCES },
    { "GET", "/agent/v1/ping", NULL, AGENT_PING },
    { "POST", "/agent/v1/job/", "/complete", AGENT_COMPLETE },
    { "POST", "/agent/v1/will-run", NULL, AGENT_WILL_RUN },
};

struct serve {
    struct loop *loop;
    struct pool *pool;
    struct http_server *server;
    struct http_route route;
    char *user;
};

/* One request, from its arrival until it is answered. */
struct exchange {
    struct serve *serve;
    struct http_responder *responder; /* NULL: the connection has gone */
    struct pool_request *request;
    enum agent_call call;
};

/* ---- which call ---- */

static bool read_id(struct str path, const char *before, const char *behind, int64_t *ret_id)
{
    struct str begin = str_of(before), end = str_of(behind);
    uint64_t number;

    if (!str_starts(path, begin) || !str_ends(path, end) || path.len < begin.len + end.len ||
        str_to_u64(str_sub(path, begin.len, path.len - end.len), 1, MAX_JOB_ID, &number, NULL) < 0)
        return false;
    *ret_id = (int64_t)number;
    return true;
}

enum agent_call serve_find(const char *method, const char *path, int64_t *ret_job_id)
{
    *ret_job_id = 0;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        bool fits = paths[i].behind
                        ? read_id(str_of(path), paths[i].before, paths[i].behind, ret_job_id)
                        : strcmp(path, paths[i].before) == 0;

        if (fits && strcmp(method, paths[i].method) == 0)
            return paths[i].call;
    }
    return AGENT_CALLS;
}

/* ---- answers ---- */

static void respond(struct http_responder *responder, int status, const char *why)
{
    auto_buf struct buf body = { .max = 1024 };

    buf_add_text(&body, "{\"errors\":[{\"description\":");
    json_escape(&body, str_of(why));
    buf_add_text(&body, ",\"error_number\":0,\"error\":\"the agent has no answer\","
                        "\"source\":\"slinc-agent\"}],\"warnings\":[]}");
    if (status == 503)
        http_respond_header(responder, "Retry-After", "1");
    http_respond_json(responder, status, buf_str(&body));
}

/* The state of the agent, in front of what the worker says of slurmctld. */
static void respond_ping(struct exchange *exchange, int status, struct str body)
{
    auto_buf struct buf out = { .max = 4096 };
    auto_json_doc struct json_doc *doc = NULL;
    struct str slurmctld = STR("down");
    struct pool_state state;

    if (status == 200 && json_parse(body, body.len, &doc, NULL) == 0)
        slurmctld = json_str_or(json_get(json_root(doc), "slurmctld"), slurmctld);
    pool_state(exchange->serve->pool, &state);
    buf_printf(&out,
               "{\"agent\":\"%s\",\"slurm\":\"%s\",\"workers\":%u,\"busy\":%u,\"queued\":%u,"
               "\"died\":%llu,\"killed\":%llu,\"slurmctld\":\"" STR_FMT "\"}",
               cmd_version, state.slurm, state.workers, state.busy, state.queued,
               (unsigned long long)state.died, (unsigned long long)state.killed,
               STR_ARG(slurmctld));
    http_respond_json(exchange->responder, 200, buf_str(&out));
}

static void on_done(void *context, int status, struct str body)
{
    struct exchange *exchange = context;

    exchange->request = NULL;
    if (exchange->call == AGENT_PING)
        respond_ping(exchange, status, body);
    else if (body.len > 0)
        http_respond_json(exchange->responder, status, body);
    else
        respond(exchange->responder, status,
                status == 503 ? "no worker was free; nothing was done"
                              : "the call has no answer; whether it took effect is not known");
    mem_free(exchange);
}

/* A request that still waits need not be made. One that a worker has goes on. */
static void on_gone(void *context)
{
    struct exchange *exchange = context;

    if (exchange->request)
        pool_forget(exchange->request);
    respond(exchange->responder, 503, "the connection has gone");
    mem_free(exchange);
}

/* ---- requests ---- */

static bool is_for_us(const struct serve *serve, const struct http_view *view)
{
    const char *user = http_view_header(view, "x-slurm-user-name");

    return !user || !user[0] || strcmp(user, serve->user) == 0;
}

static void handle(void *context, const struct http_view *view, struct http_responder *responder)
{
    struct serve *serve = context;
    struct exchange *exchange;
    int64_t job_id;
    enum agent_call call = serve_find(view->method, view->path, &job_id);

    if (call == AGENT_CALLS) {
        respond(responder, 501, "the agent does not know this path");
        return;
    }
    if (!is_for_us(serve, view)) {
        respond(responder, 501, "the agent's token is that of another user");
        return;
    }
    exchange = mem_alloc(sizeof(*exchange));
    *exchange = (struct exchange){ .serve = serve, .responder = responder, .call = call };
    exchange->request =
        pool_send(serve->pool, call, job_id, call == AGENT_STATES ? view->query : view->body,
                  on_done, exchange);
    if (exchange->request) {
        http_responder_on_gone(responder, on_gone, exchange);
        return;
    }
    on_done(exchange, 503, STR(""));
}

/* ---- the server ---- */

int serve_new(struct loop *loop, const struct serve_options *options, struct serve **ret_serve,
              struct err *err)
{
    struct serve *serve = mem_alloc(sizeof(*serve));
    struct http_server_options server = { .unix_path = options->socket_path,
                                          .routes = &serve->route,
                                          .route_count = 1,
                                          .max_connections = MAX_CONNECTIONS,
                                          .max_body = MAX_REQUEST,
                                          .delete_has_body = true,
                                          .request_us = options->call_us + MARGIN_US,
                                          .idle_us = IDLE_US };
    int result;

    serve->loop = loop;
    serve->pool = options->pool;
    serve->user = mem_strdup("");
    serve->route = (struct http_route){ "/", true, handle, serve };
    result = http_server_new(loop, &server, &serve->server, err);
    if (result < 0) {
        serve_free(serve);
        return result;
    }
    *ret_serve = serve;
    return 0;
}

void serve_set_user(struct serve *serve, const char *user)
{
    mem_free(serve->user);
    serve->user = mem_strdup(user);
}

void serve_stop(struct serve *serve, void (*stopped)(void *context), void *context)
{
    http_server_stop(serve->server, MARGIN_US, stopped, context);
}

void serve_free(struct serve *serve)
{
    if (!serve)
        return;
    http_server_free(serve->server);
    mem_free(serve->user);
    mem_free(serve);
}
