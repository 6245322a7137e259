/* http_responder.c - an answer, now or later, to somebody who may have left.
 *
 * Holds: a responder lives from its request until it is answered, whatever becomes of the
 * connection and the server; `conn` is NULL from the moment the connection goes. An answer is
 * written whole, with its length, or in chunks until the connection is closed. */
#include "base/mem.h"
#include "io/http_server_internal.h"
#include "io/http_text.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <inttypes.h>
#include <time.h>

enum { MAX_LINES = 16 << 10, MAX_DATE = 40 };

struct http_responder {
    struct conn *conn; /* NULL when the connection is gone */
    struct buf lines;  /* headers of the answer */
    bool is_head, is_http_1_0;
    void (*gone)(void *context);
    void *gone_context;
};

struct http_responder *http_responder_new(struct conn *conn)
{
    struct http_responder *responder = mem_alloc(sizeof(*responder));

    responder->conn = conn;
    responder->is_head = str_is(str_of(conn->reader.method), "HEAD");
    responder->is_http_1_0 = conn->reader.is_http_1_0;
    buf_init(&responder->lines, MAX_LINES);
    conn->responder = responder;
    return responder;
}

static void responder_free(struct http_responder *responder)
{
    if (responder->conn)
        responder->conn->responder = NULL;
    buf_done(&responder->lines);
    mem_free(responder);
}

void http_responder_lose(struct http_responder *responder)
{
    responder->conn->responder = NULL;
    responder->conn = NULL;
    if (responder->gone)
        responder->gone(responder->gone_context);
}

void http_responder_on_gone(struct http_responder *responder, void (*gone)(void *context),
                            void *context)
{
    responder->gone = gone;
    responder->gone_context = context;
}

void http_respond_header(struct http_responder *responder, const char *name, const char *value)
{
    if (http_is_header_name(str_of(name)) && http_is_header_value(str_of(value)))
        buf_printf(&responder->lines, "%s: %s\r\n", name, value);
}

/* --- the words of an answer --- */

static const struct {
    int status;
    const char *words;
} reasons[] = {
    { 200, "OK" },
    { 204, "No Content" },
    { 302, "Found" },
    { 400, "Bad Request" },
    { 401, "Unauthorized" },
    { 403, "Forbidden" },
    { 404, "Not Found" },
    { 405, "Method Not Allowed" },
    { 408, "Request Timeout" },
    { 413, "Content Too Large" },
    { 417, "Expectation Failed" },
    { 431, "Request Header Fields Too Large" },
    { 500, "Internal Server Error" },
    { 501, "Not Implemented" },
    { 503, "Service Unavailable" },
    { 505, "HTTP Version Not Supported" },
};

static const char *reason_of(int status)
{
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (reasons[i].status == status)
            return reasons[i].words;
    return ""; /* it is only for people */
}

static void add_date(struct http_responder *responder)
{
    time_t seconds = (time_t)(clock_wall_us(loop_clock(responder->conn->server->loop)) / 1000000);
    char text[MAX_DATE];
    struct tm tm;

    if (gmtime_r(&seconds, &tm) &&
        strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0)
        http_respond_header(responder, "Date", text);
}

/* The head of the answer; body_length < 0: it is not known yet. Where the answer ends does not
 * depend on how many headers there are. */
static void send_head(struct http_responder *responder, int status, const char *content_type,
                      int64_t body_length)
{
    const struct conn *conn = responder->conn;
    struct evbuffer *output = bufferevent_get_output(conn->bufferevent);

    http_respond_header(responder, "Content-Type", content_type);
    http_respond_header(responder, "X-Content-Type-Options", "nosniff");
    add_date(responder);
    evbuffer_add_printf(output, "HTTP/1.1 %d %s\r\n", status, reason_of(status));
    evbuffer_add(output, buf_text(&responder->lines), responder->lines.len);
    if (conn->closes || conn->server->stopping)
        evbuffer_add_printf(output, "Connection: close\r\n");
    if (body_length >= 0)
        evbuffer_add_printf(output, "Content-Length: %" PRId64 "\r\n", body_length);
    else if (!responder->is_http_1_0)
        evbuffer_add_printf(output, "Transfer-Encoding: chunked\r\n");
    evbuffer_add(output, "\r\n", 2);
}

void http_respond(struct http_responder *responder, int status, const char *content_type,
                  struct str body)
{
    struct conn *conn = responder->conn;

    if (conn) {
        send_head(responder, status, content_type, (int64_t)body.len);
        if (!responder->is_head)
            evbuffer_add(bufferevent_get_output(conn->bufferevent), body.at, body.len);
    }
    responder_free(responder);
    if (conn)
        http_conn_end(conn);
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
    if (!responder->conn)
        return;
    http_conn_stream(responder->conn);
    http_respond_header(responder, "Cache-Control", "no-store");
    send_head(responder, 200, content_type, -1);
}

bool http_stream_send(struct http_responder *responder, struct str piece, size_t max_behind)
{
    struct evbuffer *output;

    if (!responder->conn)
        return false;
    output = bufferevent_get_output(responder->conn->bufferevent);
    if (evbuffer_get_length(output) > max_behind)
        return false;
    if (responder->is_head || piece.len == 0) /* an empty chunk would be the last */
        return true;
    if (!responder->is_http_1_0)
        evbuffer_add_printf(output, "%zx\r\n", piece.len);
    evbuffer_add(output, piece.at, piece.len);
    if (!responder->is_http_1_0)
        evbuffer_add(output, "\r\n", 2);
    return true;
}

void http_stream_end(struct http_responder *responder)
{
    struct conn *conn = responder->conn;

    if (conn && !responder->is_head && !responder->is_http_1_0)
        evbuffer_add(bufferevent_get_output(conn->bufferevent), "0\r\n\r\n", 5);
    responder_free(responder);
    if (conn)
        http_conn_end(conn);
}
