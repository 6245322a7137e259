/* guard.c - routes that answer only those who may.
 *
 * Holds: nothing behind the guard runs before the API server has said yes to this request. */
#include "kube/guard.h"

#include "base/list.h"
#include "base/mem.h"
#include "codec/jwt.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { MAX_ASKS = 32, MAX_WHY = 320 };

struct guarded {
    struct guard *guard;
    struct http_route route;
};

struct guard {
    struct access *access;
    struct guarded routes[GUARD_ROUTES];
    unsigned route_count;
    struct list visits;
};

struct visit { /* a request that waits for the API server's word */
    struct list link;
    const struct guarded *guarded;
    struct http_responder *responder;
    char *method, *path, *query;
};

struct guard *guard_new(struct kube_client *client)
{
    struct guard *guard = mem_alloc(sizeof(*guard));

    guard->access = access_new(client, &(struct access_options){ .max_asks = MAX_ASKS });
    list_init(&guard->visits);
    return guard;
}

static void refuse(struct http_responder *responder, int status, const char *why)
{
    char line[MAX_WHY];

    (void)snprintf(line, sizeof(line), "%s\n", why);
    if (status == 401)
        http_respond_header(responder, "WWW-Authenticate", "Bearer");
    http_respond_text(responder, status, line);
}

static void visit_free(struct visit *visit)
{
    list_remove(&visit->link);
    mem_free(visit->method);
    mem_free(visit->path);
    mem_free(visit->query);
    mem_free(visit);
}

void guard_free(struct guard *guard)
{
    if (!guard)
        return;
    access_free(guard->access);
    while (!list_is_empty(&guard->visits)) {
        struct visit *visit = list_item(list_first(&guard->visits), struct visit, link);

        refuse(visit->responder, 503, "the process stops");
        visit_free(visit);
    }
    mem_free(guard);
}

static void on_access(void *context, int status, const char *why)
{
    struct visit *visit = context;
    const struct http_route *route = &visit->guarded->route;
    const struct http_view view = {
        .method = visit->method, .path = visit->path, .query = str_of(visit->query), .body = STR("")
    };

    if (status == 200)
        route->handle(route->context, &view, visit->responder);
    else
        refuse(visit->responder, status, why);
    visit_free(visit);
}

static void handle(void *context, const struct http_view *view, struct http_responder *responder)
{
    const struct guarded *guarded = context;
    const char *token = http_view_header(view, GUARD_TOKEN);
    struct visit *visit;

    if (strcmp(view->method, "GET") != 0 && strcmp(view->method, "HEAD") != 0) {
        http_respond_header(responder, "Allow", "GET, HEAD");
        http_respond_text(responder, 405, "only GET and HEAD\n");
        return;
    }
    if (token && !jwt_has_audience(str_of(token), ACCESS_AUDIENCE)) {
        refuse(responder, 401,
               GUARD_TOKEN " takes only a token that is made for the audience " ACCESS_AUDIENCE);
        return;
    }
    visit = mem_alloc(sizeof(*visit));
    visit->guarded = guarded;
    visit->responder = responder;
    visit->method = mem_strdup(view->method);
    visit->path = mem_strdup(view->path);
    visit->query = mem_strndup(view->query.at, view->query.len);
    list_push_back(&guarded->guard->visits, &visit->link);
    access_ask(guarded->guard->access, view,
               &(struct access_question){ .verb = "get", .path = visit->path, .token = token },
               on_access, visit);
}

struct http_route guard_route(struct guard *guard, struct http_route route)
{
    struct guarded *guarded = &guard->routes[guard->route_count];

    assert(guard->route_count < GUARD_ROUTES);
    guard->route_count++;
    *guarded = (struct guarded){ guard, route };
    return (struct http_route){
        .path = route.path, .is_prefix = route.is_prefix, .handle = handle, .context = guarded
    };
}
