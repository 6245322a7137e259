/* api.c - answers the API server's questions about external.metrics.k8s.io and
 * view.slinky.slurm.net. */
#include "exporter/api.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "exporter/external.h"
#include "exporter/families.h"
#include "exporter/view.h"

#include <stdio.h>

enum {
    SECOND_US = 1000000,
    OWNER_US = 60 * SECOND_US,
    MAX_SELECTOR = 16 * 1024,
    MAX_PATH = 4096,
    BRIDGE_US = SECOND_US / 2,
    MAX_DECISION = 4 << 20,
    API_ROUTES = 4 + API_PAGE_ROUTES,
};

static const struct kube_resource api_services = { "apiregistration.k8s.io", "v1", "apiservices",
                                                   "APIService", false };

struct api {
    struct loop *loop;
    struct exporter *exporter;
    struct metrics *metrics;
    struct kube_client *client;
    struct access *access;
    struct http_server *server;
    struct http_transport *bridge; /* NULL: it is not asked */
    struct api_page *page;         /* NULL: none */
    struct http_route routes[API_ROUTES];
    char *service;
    struct kube_call *owner_call;
    struct loop_timer owner_timer;
    char owner[256];      /* that was said last */
    struct list requests; /* struct api_request */
};

/* ---- what needs a right ---- */

struct api_request { /* waits for what its user may */
    struct list link;
    struct api *api;
    struct http_responder *responder;
    char *resource;      /* of external metrics: the metric */
    enum view_kind view; /* of the view API, else VIEW_IS_GROUP */
    struct buf selector;
    char *ns, *pod;         /* of VIEW_IS_WHY */
    struct http_call *call; /* to the bridge; NULL: none is under way */
};

static void refuse(struct http_responder *responder, int status, const char *why)
{
    auto_buf struct buf out;

    buf_init(&out, MAX_PATH);
    external_write_status(status, why, &out);
    http_respond_json(responder, status, buf_str(&out));
}

static int status_of(int result)
{
    return result == -ERR_NOT_FOUND     ? 404
           : result == -ERR_INVALID     ? 400
           : result == -ERR_UNAVAILABLE ? 503
                                        : 500;
}

static void answer(struct api_request *request)
{
    struct exporter_pass pass;
    struct err err = { .class = 0 };
    auto_buf struct buf out;
    int result;

    buf_init(&out, VIEW_MAX_ANSWER);
    exporter_pass(request->api->exporter, &pass);
    if (request->view != VIEW_IS_GROUP)
        result = view_write(&pass.tally, request->view, &out, &err);
    else
        result = external_write_value(&pass.tally, str_of(request->resource),
                                      buf_str(&request->selector), &out, &err);
    exporter_pass_done(&pass);
    if (result < 0)
        refuse(request->responder, status_of(result), err.text);
    else
        http_respond_json(request->responder, 200, buf_str(&out));
}

static void request_free(struct api_request *request)
{
    if (request->api->bridge && request->call)
        http_cancel(request->api->bridge, request->call);
    list_remove(&request->link);
    mem_free(request->ns);
    mem_free(request->pod);
    buf_done(&request->selector);
    mem_free(request->resource);
    mem_free(request);
}

/* ---- what the bridge thinks of a pod, and what it has found wrong ---- */

/* bridge: its answer; "": it has none. */
static void answer_checks(struct api_request *request, struct str bridge)
{
    struct str metrics = STR("");
    struct err err = { .class = 0 };
    auto_buf struct buf out;

    buf_init(&out, VIEW_MAX_ANSWER);
    if (exporter_page(request->api->exporter, EXPORTER_CLUSTER, &metrics, &err) < 0) {
        refuse(request->responder, 500, err.text);
    } else {
        view_write_checks(bridge, metrics, &out);
        http_respond_json(request->responder, 200, buf_str(&out));
    }
    request_free(request);
}

static void on_bridge_answer(void *context, const struct http_answer *answer)
{
    struct api_request *request = context;
    const struct view_question question = { VIEW_IS_WHY, str_of(request->ns),
                                            str_of(request->pod) };
    auto_buf struct buf out;

    request->call = NULL;
    buf_init(&out, 2 * MAX_DECISION);
    if (request->view == VIEW_IS_CHECKS) {
        answer_checks(request, answer->status == 200 ? answer->body : STR(""));
        return;
    }
    if (answer->status == 200) {
        view_write_why(&question, answer->body, &out);
        http_respond_json(request->responder, 200, buf_str(&out));
    } else {
        buf_printf(&out, "the bridge says: " STR_FMT, STR_ARG(str_trim(answer->body)));
        refuse(request->responder, answer->status == 404 ? 404 : 503, buf_text(&out));
    }
    request_free(request);
}

static void on_bridge_failed(void *context, const struct err *why)
{
    struct api_request *request = context;
    auto_buf struct buf out;

    request->call = NULL;
    buf_init(&out, MAX_PATH);
    if (request->view == VIEW_IS_CHECKS) {
        answer_checks(request, STR(""));
        return;
    }
    buf_printf(&out, "the bridge does not answer the exporter: %s", why->text);
    refuse(request->responder, 503, buf_text(&out));
    request_free(request);
}

static void ask_bridge(struct api_request *request)
{
    struct api *api = request->api;
    auto_buf struct buf path;

    buf_init(&path, MAX_PATH);
    if (request->view == VIEW_IS_CHECKS)
        buf_add_text(&path, "/debug/checks");
    else
        buf_printf(&path, "/debug/why?pod=%s%%2F%s", request->ns, request->pod);
    request->call = http_send(
        api->bridge,
        &(struct http_request){ .method = "GET",
                                .path = buf_text(&path),
                                .deadline_us = loop_now_us(api->loop) + BRIDGE_US,
                                .max_answer = MAX_DECISION },
        &(struct http_handlers){
            .answered = on_bridge_answer, .failed = on_bridge_failed, .context = request });
}

static void on_access(void *context, int status, const char *why)
{
    struct api_request *request = context;

    if (status == 200 && (request->view == VIEW_IS_WHY || request->view == VIEW_IS_CHECKS)) {
        if (request->api->bridge)
            ask_bridge(request);
        else
            answer_checks(request, STR(""));
        return;
    }
    if (status == 200)
        answer(request);
    else
        refuse(request->responder, status, why);
    request_free(request);
}

static struct api_request *new_request(struct api *api, struct str resource,
                                       struct http_responder *responder)
{
    struct api_request *request = mem_alloc(sizeof(*request));

    request->api = api;
    request->responder = responder;
    request->resource = mem_strndup(resource.at, resource.len);
    buf_init(&request->selector, MAX_SELECTOR);
    list_push_back(&api->requests, &request->link);
    return request;
}

static void ask_value(struct api *api, const struct http_view *view, struct str ns,
                      struct str metric, struct http_responder *responder)
{
    struct api_request *request = new_request(api, metric, responder);
    auto_free char *namespace = mem_strndup(ns.at, ns.len);
    struct err err = { .class = 0 };
    int result = http_view_query(view, "labelSelector", &request->selector, &err);

    if (result < 0 && result != -ERR_NOT_FOUND) {
        refuse(responder, 400, err.text);
        request_free(request);
        return;
    }
    access_ask(api->access, view,
               &(struct access_question){ .verb = "list",
                                          .group = EXTERNAL_GROUP,
                                          .version = "v1beta1",
                                          .resource = request->resource,
                                          .ns = namespace },
               on_access, request);
}

static void ask_view(struct api *api, const struct http_view *view, enum view_kind kind,
                     struct http_responder *responder)
{
    struct api_request *request = new_request(api, str_of(view_resource(kind)), responder);

    request->view = kind;
    access_ask(api->access, view,
               &(struct access_question){ .verb = "list",
                                          .group = VIEW_GROUP,
                                          .version = "v1alpha1",
                                          .resource = request->resource,
                                          .ns = "" },
               on_access, request);
}

/* The answer holds nothing that the pod's readers may not know. */
static void ask_why(struct api *api, const struct http_view *view,
                    const struct view_question *question, struct http_responder *responder)
{
    struct api_request *request;

    if (!api->bridge) {
        refuse(responder, 503, "the exporter was not told where the bridge is (--bridge)");
        return;
    }
    request = new_request(api, STR("pods"), responder);
    request->view = VIEW_IS_WHY;
    request->ns = mem_strndup(question->ns.at, question->ns.len);
    request->pod = mem_strndup(question->pod.at, question->pod.len);
    access_ask(api->access, view,
               &(struct access_question){ .verb = "get",
                                          .group = "",
                                          .version = "v1",
                                          .resource = "pods",
                                          .ns = request->ns,
                                          .name = request->pod },
               on_access, request);
}

/* ---- requests ---- */

static void serve_external(void *context, const struct http_view *view,
                           struct http_responder *responder)
{
    struct external_question question;
    struct err err = { .class = 0 };
    auto_buf struct buf out;

    buf_init(&out, EXTERNAL_MAX_ANSWER);
    if (strcmp(view->method, "GET") != 0) {
        refuse(responder, 405, "only GET is served");
        return;
    }
    if (external_parse(str_of(view->path), &question, &err) < 0) {
        refuse(responder, 404, err.text);
        return;
    }
    switch (question.kind) {
    case EXTERNAL_IS_GROUP:
        external_write_group(&out);
        break;
    case EXTERNAL_IS_LIST:
        external_write_list(&out);
        break;
    case EXTERNAL_IS_VALUE:
        ask_value(context, view, question.ns, question.metric, responder);
        return;
    }
    http_respond_json(responder, 200, buf_str(&out));
}

static void serve_view(void *context, const struct http_view *view,
                       struct http_responder *responder)
{
    struct view_question question;
    struct err err = { .class = 0 };
    auto_buf struct buf out;

    buf_init(&out, MAX_PATH);
    if (strcmp(view->method, "GET") != 0) {
        refuse(responder, 405, "only GET is served");
    } else if (view_parse(str_of(view->path), &question, &err) < 0) {
        refuse(responder, 404, err.text);
    } else if (question.kind == VIEW_IS_WHY) {
        ask_why(context, view, &question, responder);
    } else if (view_resource(question.kind)) {
        ask_view(context, view, question.kind, responder);
    } else {
        (void)view_write(NULL, question.kind, &out, &err);
        http_respond_json(responder, 200, buf_str(&out));
    }
}

static void serve_health(void *context, const struct http_view *view,
                         struct http_responder *responder)
{
    (void)context;
    (void)view;
    http_respond_text(responder, 200, "ok");
}

static void serve_nothing(void *context, const struct http_view *view,
                          struct http_responder *responder)
{
    (void)context;
    (void)view;
    refuse(responder, 404, "the server could not find the requested resource");
}

/* ---- whose the API is ---- */

static void look_at_owner(void *context);

static void say_owner(struct api *api, const char *owner)
{
    bool is_ours = strcmp(owner, api->service) == 0;

    metrics_set(api->metrics, &families[FAMILY_API_OWNED].row, is_ours, NULL);
    if (strcmp(owner, api->owner) == 0)
        return;
    (void)snprintf(api->owner, sizeof(api->owner), "%s", owner);
    if (is_ours)
        log_info("external.metrics.k8s.io is served by this exporter");
    else
        log_warn("external.metrics.k8s.io is not this exporter's: no HorizontalPodAutoscaler reads "
                 "it. A cluster has one owner of that API; KEDA can read /autoscale/v1",
                 LOG_TEXT("owner", owner[0] ? owner : "nobody"), LOG_TEXT("we are", api->service));
}

static void on_owner(void *context, const struct kube_answer *answer)
{
    struct api *api = context;
    const struct json *service = json_at(answer->object, "spec", "service");
    char owner[256] = "";

    api->owner_call = NULL;
    if (answer->outcome == KUBE_DONE && json_exists(service))
        (void)snprintf(owner, sizeof(owner), STR_FMT "/" STR_FMT,
                       STR_ARG(json_str(json_get(service, "namespace"))),
                       STR_ARG(json_str(json_get(service, "name"))));
    if (answer->outcome == KUBE_DONE || answer->outcome == KUBE_GONE)
        say_owner(api, owner);
    loop_timer_start(api->loop, &api->owner_timer, OWNER_US, look_at_owner, api);
}

static void look_at_owner(void *context)
{
    struct api *api = context;
    const struct kube_request request = { .verb = KUBE_GET,
                                          .resource = &api_services,
                                          .name = "v1beta1." EXTERNAL_GROUP };

    api->owner_call = kube_send(api->client, &request, on_owner, api);
}

/* ---- its life ---- */

static void on_certificate(void *context, const struct err *why)
{
    (void)context;
    if (why)
        log_warn("the certificate of the API is not usable; the old one stays", LOG_ERROR(why));
    else
        log_info("the API has a new certificate");
}

static int listen_to(struct api *api, const struct api_options *options, struct err *err)
{
    char cert_file[MAX_PATH], key_file[MAX_PATH];
    size_t count = 0;

    (void)snprintf(cert_file, sizeof(cert_file), "%s/tls.crt", options->folder);
    (void)snprintf(key_file, sizeof(key_file), "%s/tls.key", options->folder);
    if (options->ui) {
        api->page = api_page_new(api->access, options->ui);
        api_page_routes(api->page, api->routes);
        count = API_PAGE_ROUTES;
    }
    api->routes[count++] = (struct http_route){ EXTERNAL_PATH, true, serve_external, api };
    api->routes[count++] = (struct http_route){ VIEW_PATH, true, serve_view, api };
    api->routes[count++] = (struct http_route){ "/healthz", false, serve_health, NULL };
    api->routes[count++] = (struct http_route){ "/", true, serve_nothing, NULL };
    return http_server_new(api->loop,
                           &(struct http_server_options){ .address = options->address,
                                                          .port = options->port,
                                                          .routes = api->routes,
                                                          .route_count = count,
                                                          .cert_file = cert_file,
                                                          .key_file = key_file,
                                                          .tls_changed = on_certificate,
                                                          .asks_certificate = true },
                           &api->server, err);
}

int api_new(struct loop *loop, struct http_transport *kube, struct exporter *exporter,
            struct metrics *metrics, const struct api_options *options, struct api **ret_api,
            struct err *err)
{
    struct api *api = mem_alloc(sizeof(*api));
    int result;

    api->loop = loop;
    api->exporter = exporter;
    api->metrics = metrics;
    api->bridge = options->bridge;
    api->service = mem_strdup(options->service);
    (void)snprintf(api->owner, sizeof(api->owner), "?"); /* nothing was said yet */
    list_init(&api->requests);
    api->client = kube_client_new(loop, kube);
    api->access = access_new(api->client, &(struct access_options){ .knows_proxy = true });
    result = listen_to(api, options, err);
    if (result < 0) {
        api_free(api);
        return result;
    }
    if (api->service[0])
        look_at_owner(api);
    *ret_api = api;
    return 0;
}

uint16_t api_port(const struct api *api)
{
    return http_server_port(api->server);
}

void api_free(struct api *api)
{
    if (!api)
        return;
    if (api->owner_call)
        kube_call_cancel(api->owner_call);
    loop_timer_stop(&api->owner_timer);
    access_free(api->access);
    api_page_free(api->page);
    while (!list_is_empty(&api->requests)) {
        struct api_request *request =
            list_item(list_first(&api->requests), struct api_request, link);

        refuse(request->responder, 503, "the exporter stops");
        request_free(request);
    }
    http_server_free(api->server);
    kube_client_free(api->client);
    mem_free(api->service);
    mem_free(api);
}
