/* api_page.c - who may see the live page. */
#include "exporter/api_page.h"

#include "base/list.h"
#include "base/mem.h"
#include "exporter/external.h"
#include "exporter/view.h"
#include "io/http_text.h"

#include <ctype.h>
#include <string.h>

#define COOKIE "slinc-token="

enum { MAX_TOKEN = 16 * 1024, COOKIE_S = 8 * 3600, MAX_ANSWER = 4096 };

struct page_request { /* waits for what its user may */
    struct list link;
    struct api_page *page;
    struct http_responder *responder;
    struct ui_question question;
    char *cookie; /* of a login: what the browser gets when the token counts; else NULL */
};

struct api_page {
    struct access *access;
    struct ui *ui;
    struct list requests;
};

static void refuse(struct http_responder *responder, int status, const char *why)
{
    auto_buf struct buf out = { .max = MAX_ANSWER };

    external_write_status(status, why, &out);
    http_respond_json(responder, status, buf_str(&out));
}

static void free_secret(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    mem_free(secret);
}

static void request_free(struct page_request *request)
{
    list_remove(&request->link);
    free_secret(request->cookie);
    mem_free(request);
}

static void on_access(void *context, int status, const char *why)
{
    struct page_request *request = context;

    if (status != 200) {
        refuse(request->responder, status, why);
    } else if (request->cookie) {
        http_respond_header(request->responder, "Set-Cookie", request->cookie);
        http_respond_json(request->responder, 200, STR("{}"));
    } else {
        ui_answer(request->page->ui, &request->question, request->responder);
    }
    request_free(request);
}

static struct page_request *new_request(struct api_page *page, const struct ui_question *question,
                                        struct http_responder *responder)
{
    struct page_request *request = mem_alloc(sizeof(*request));

    *request = (struct page_request){ .page = page, .responder = responder, .question = *question };
    list_push_back(&page->requests, &request->link);
    return request;
}

/* token: NULL for the one of the headers, if any. */
static void ask(struct page_request *request, const struct http_view *view, const char *token)
{
    access_ask(request->page->access, view,
               &(struct access_question){ .verb = request->question.kind == UI_IS_STREAM ? "watch"
                                                                                         : "list",
                                          .group = VIEW_GROUP,
                                          .version = "v1alpha1",
                                          .resource = "ui",
                                          .ns = "",
                                          .token = token },
               on_access, request);
}

/* ---- tokens of browsers ---- */

bool api_page_cookie(struct str header, struct str *ret_token)
{
    struct str part;

    while (header.len > 0 && str_next(&header, ';', &part)) {
        part = str_trim(part);
        if (!str_starts(part, STR(COOKIE)))
            continue;
        *ret_token = str_sub(part, strlen(COOKIE), part.len);
        return true;
    }
    return false;
}

static char *cookie_token(const struct http_view *view)
{
    struct str token;

    return api_page_cookie(str_of(http_view_header(view, "Cookie")), &token)
               ? mem_strndup(token.at, token.len)
               : NULL;
}

/* Nothing that would end the value in a Set-Cookie line. */
static bool is_token(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!isalnum((unsigned char)text.at[i]) && !strchr("-._~+/=", text.at[i]))
            return false;
    return text.len > 0;
}

static char *make_cookie(const char *token)
{
    auto_buf struct buf text = { .max = MAX_TOKEN + 1024 };
    char *cookie;

    buf_printf(&text, COOKIE "%s; Path=/ui; Max-Age=%d; HttpOnly; Secure; SameSite=Strict", token,
               COOKIE_S);
    cookie = mem_strdup(buf_text(&text));
    explicit_bzero(text.data, text.cap);
    return cookie;
}

static void serve_login(void *context, const struct http_view *view,
                        struct http_responder *responder)
{
    const struct ui_question question = { .kind = UI_IS_PAGE };
    auto_buf struct buf body = { .max = MAX_TOKEN };
    struct page_request *request;

    if (strcmp(view->method, "POST") != 0) {
        refuse(responder, 405, "a token is sent by POST");
    } else if (http_query_get(view->body, "token", &body, NULL) < 0 ||
               !is_token(str_trim(buf_str(&body)))) {
        refuse(responder, 400, "there is no token");
    } else {
        struct str text = str_trim(buf_str(&body));
        char *token = mem_strndup(text.at, text.len);

        request = new_request(context, &question, responder);
        request->cookie = make_cookie(token);
        ask(request, view, token);
        free_secret(token);
    }
    if (body.data)
        explicit_bzero(body.data, body.cap);
}

/* ---- pages ---- */

static bool read_question(const struct http_view *view, struct ui_question *ret_question,
                          struct http_responder *responder)
{
    struct err err = { .class = 0 };

    if (strcmp(view->method, "GET") != 0)
        refuse(responder, 405, "only GET is served");
    else if (ui_parse(view, ret_question, &err) < 0)
        refuse(responder, 400, err.text);
    else
        return true;
    return false;
}

static void serve_direct(void *context, const struct http_view *view,
                         struct http_responder *responder)
{
    struct api_page *page = context;
    struct ui_question question;
    char *token;

    if (!read_question(view, &question, responder))
        return;
    if (question.kind == UI_IS_PAGE) {
        ui_answer(page->ui, &question, responder);
        return;
    }
    token = http_view_header(view, "Authorization") ? NULL : cookie_token(view);
    ask(new_request(page, &question, responder), view, token);
    free_secret(token);
}

static void serve_proxied(void *context, const struct http_view *view,
                          struct http_responder *responder)
{
    struct ui_question question;

    if (read_question(view, &question, responder))
        ask(new_request(context, &question, responder), view, NULL);
}

/* ---- life ---- */

struct api_page *api_page_new(struct access *access, struct ui *ui)
{
    struct api_page *page = mem_alloc(sizeof(*page));

    *page = (struct api_page){ .access = access, .ui = ui };
    list_init(&page->requests);
    return page;
}

void api_page_free(struct api_page *page)
{
    if (!page)
        return;
    list_each (struct page_request, request, &page->requests, link) {
        refuse(request->responder, 503, "the exporter stops");
        request_free(request);
    }
    mem_free(page);
}

void api_page_routes(struct api_page *page, struct http_route ret_routes[API_PAGE_ROUTES])
{
    const struct http_route routes[API_PAGE_ROUTES] = {
        { VIEW_PATH "/v1alpha1/ui", false, serve_proxied, page },
        { VIEW_PATH "/v1alpha1/ui/", false, serve_proxied, page },
        { "/ui", false, serve_direct, page },
        { "/ui/", false, serve_direct, page },
        { "/ui/login", false, serve_login, page },
    };

    memcpy(ret_routes, routes, sizeof(routes));
}
