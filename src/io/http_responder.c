/* http_responder.c - an answer, now or later, to somebody who may have left.
 *
 * Holds: a responder lives from its request until it is answered, whatever becomes of the
 * connection and the server; `request` is NULL from the moment the connection goes. */
#include "base/mem.h"
#include "io/http_server_internal.h"
#include "io/http_text.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>

struct http_responder {
    struct conn *conn; /* NULL, as request is, when the connection is gone */
    struct evhttp_request *request;
    void (*gone)(void *context);
    void *gone_context;
};

struct http_responder *http_responder_new(struct conn *conn, struct evhttp_request *request)
{
    struct http_responder *responder = mem_alloc(sizeof(*responder));

    responder->conn = conn;
    responder->request = request;
    conn->responder = responder;
    return responder;
}

void http_responder_lose(struct http_responder *responder)
{
    /* When the peer hung up, evhttp has cut the request loose and leaves it to us; when we close,
     * the request still belongs to the connection and goes with it. */
    if (!evhttp_request_get_connection(responder->request))
        evhttp_request_free(responder->request);
    responder->conn->responder = NULL;
    responder->conn = NULL;
    responder->request = NULL;
    if (responder->gone)
        responder->gone(responder->gone_context);
}

void http_responder_on_gone(struct http_responder *responder, void (*gone)(void *context),
                            void *context)
{
    responder->gone = gone;
    responder->gone_context = context;
}

static void on_sent(struct evhttp_request *request, void *context)
{
    http_server_answered(context);
}

void http_respond_header(struct http_responder *responder, const char *name, const char *value)
{
    if (!responder->request || !http_is_header_name(str_of(name)) ||
        !http_is_header_value(str_of(value)))
        return;
    evhttp_add_header(evhttp_request_get_output_headers(responder->request), name, value);
}

void http_respond(struct http_responder *responder, int status, const char *content_type,
                  struct str body)
{
    struct conn *conn = responder->conn;
    struct evhttp_request *request = responder->request;

    if (request) {
        bool head_only = evhttp_request_get_command(request) == EVHTTP_REQ_HEAD;

        http_respond_header(responder, "Content-Type", content_type);
        http_respond_header(responder, "X-Content-Type-Options", "nosniff");
        if (conn->server->stopping)
            http_respond_header(responder, "Connection", "close");
        if (!head_only)
            evbuffer_add(evhttp_request_get_output_buffer(request), body.at, body.len);
        conn->responder = NULL;
        evhttp_request_set_on_complete_cb(request, on_sent, conn);
        evhttp_send_reply(request, status, NULL, NULL);
    }
    mem_free(responder);
}

void http_respond_text(struct http_responder *responder, int status, const char *text)
{
    http_respond(responder, status, "text/plain; charset=utf-8", str_of(text));
}

void http_respond_json(struct http_responder *responder, int status, struct str json)
{
    http_respond(responder, status, "application/json", json);
}

/* --- an answer that goes on --- */

void http_stream_begin(struct http_responder *responder, const char *content_type)
{
    struct evhttp_request *request = responder->request;

    if (!request)
        return;
    http_respond_header(responder, "Content-Type", content_type);
    http_respond_header(responder, "X-Content-Type-Options", "nosniff");
    http_respond_header(responder, "Cache-Control", "no-store");
    http_respond_header(responder, "Connection", "close");
    http_server_streams(responder->conn);
    evhttp_send_reply_start(request, 200, NULL);
}

bool http_stream_send(struct http_responder *responder, struct str piece, size_t max_behind)
{
    struct evbuffer *text;

    if (!responder->request ||
        evbuffer_get_length(bufferevent_get_output(responder->conn->bufferevent)) > max_behind)
        return false;
    text = evbuffer_new();
    if (!text)
        return false;
    evbuffer_add(text, piece.at, piece.len);
    evhttp_send_reply_chunk(responder->request, text);
    evbuffer_free(text);
    return true;
}

void http_stream_end(struct http_responder *responder)
{
    if (responder->request) {
        struct conn *conn = responder->conn;

        conn->responder = NULL;
        evhttp_request_set_on_complete_cb(responder->request, on_sent, conn);
        evhttp_send_reply_end(responder->request);
    }
    mem_free(responder);
}
