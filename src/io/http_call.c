/* http_call.c - one request made ready for libcurl, and its answer taken in.
 *
 * Holds: a request that may change something begins to be written at most once (on_request counts,
 * and stops libcurl's own repetition on a dead kept-alive connection); its body is read at most
 * once (no seek, no rewind); no answer takes more memory than its bounds; a dead call calls nobody.
 */
#include "io/http_call.h"

#include "base/mem.h"
#include "io/http_text.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
    MAX_PATH = 97 * 1024,
    MAX_TOKEN = 16 * 1024,
    MAX_BODY = 64 << 20,
    MAX_ANSWER = 64 << 20,
    PROBE_AFTER_SECONDS = 15, /* of silence while an answer is awaited */
    PROBE_EACH_SECONDS = 5,
    /* A peer that acknowledges neither probes nor requests for so long is gone, whatever the
     * deadline. The kernel alone would send a request again for 15 minutes. */
    UNACKNOWLEDGED_MS = 20000,
    KEEP_ALIVE_SECONDS = 30, /* a connection idle for longer is not trusted with a new request */
};

/* --- what libcurl asks and tells --- */

static int on_request(void *context, char *peer, char *own, int peer_port, int own_port)
{
    struct http_call *call = context;

    if (call->state == CALL_DEAD || (call->attempts > 0 && !call->read_only))
        return CURL_PREREQFUNC_ABORT;
    call->attempts++;
    return CURL_PREREQFUNC_OK;
}

static size_t on_read_body(char *into, size_t size, size_t count, void *context)
{
    struct http_call *call = context;
    struct str rest = str_sub(buf_str(&call->body), call->body_read, call->body.len);
    size_t length = rest.len < size * count ? rest.len : size * count;

    if (call->state == CALL_DEAD)
        return CURL_READFUNC_ABORT;
    if (length > 0)
        memcpy(into, rest.at, length);
    call->body_read += length;
    return length;
}

int http_call_status(const struct http_call *call)
{
    long status = 0;

    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

void http_call_alive(struct http_call *call)
{
    loop_timer_stop(&call->timer);
    if (call->idle_us > 0)
        loop_timer_start(call->target->loop, &call->timer, call->idle_us, http_call_on_time, call);
}

static void end_of_head(struct http_call *call)
{
    int status = http_call_status(call);

    if (status < 200) /* 100 Continue and its like: the real head is still to come */
        return;
    call->head_done = true;
    if (!call->stream)
        return;
    http_call_alive(call);
    if (call->handlers.on_head)
        call->handlers.on_head(call->handlers.context, status);
}

static void note_header(struct http_call *call, struct str line)
{
    struct str value;

    if (str_starts(line, STR("HTTP/"))) { /* a new head: what an earlier one said is void */
        call->retry_after_us = 0;
        call->content_type[0] = '\0';
    } else if (http_header_is(line, "Retry-After", &value)) {
        call->retry_after_us = http_retry_after_us(value);
    } else if (http_header_is(line, "Content-Type", &value)) {
        snprintf(call->content_type, sizeof(call->content_type), STR_FMT, STR_ARG(value));
    }
}

static size_t on_header(char *at, size_t size, size_t count, void *context)
{
    struct http_call *call = context;
    struct str line = { at, size * count };

    if (call->state == CALL_DEAD)
        return 0;
    call->head_bytes += line.len;
    if (call->head_bytes > call->target->max_head) {
        call->too_big = true;
        return 0;
    }
    if (call->head_done) /* a trailer */
        return line.len;
    line = str_trim(line);
    if (line.len > 0)
        note_header(call, line);
    else
        end_of_head(call);
    return call->state == CALL_DEAD ? 0 : size * count;
}

/* The bytes after the last line end so far; over the maximum means that some line was. */
static bool lines_fit(struct http_call *call, struct str piece)
{
    struct str rest = piece, line;
    bool first = true;

    while (str_next(&rest, '\n', &line)) {
        call->line_bytes = line.len + (first ? call->line_bytes : 0);
        first = false;
        if (call->line_bytes > call->max_answer)
            return false;
    }
    return true;
}

static bool take_stream(struct http_call *call, struct str piece)
{
    if (!lines_fit(call, piece))
        return false;
    http_call_alive(call);
    if (call->handlers.on_data)
        call->handlers.on_data(call->handlers.context, piece);
    return true;
}

static size_t on_body(char *at, size_t size, size_t count, void *context)
{
    struct http_call *call = context;
    struct str piece = { at, size * count };

    if (call->state == CALL_DEAD)
        return 0;
    if (call->stream) {
        call->too_big = !take_stream(call, piece);
    } else {
        buf_add_str(&call->answer, piece);
        call->too_big = call->answer.overflowed;
    }
    return call->too_big || call->state == CALL_DEAD ? 0 : piece.len;
}

/* --- making a call --- */

static int add_copy(struct curl_slist **list, const char *line, struct err *err)
{
    struct curl_slist *longer = curl_slist_append(*list, line);

    if (!longer)
        return err_set(err, ERR_SYSTEM, "libcurl is out of memory");
    *list = longer;
    return 0;
}

static int add_bearer(struct http_call *call, struct err *err)
{
    static const struct str scheme = { "Bearer ", 7 };
    struct str token = call->target->bearer_token(call->target->bearer_context);

    if (token.len == 0)
        return 0;
    if (token.len > MAX_TOKEN)
        return err_set(err, ERR_INVALID, "the bearer token is longer than %d bytes", MAX_TOKEN);

    size_t length = scheme.len + token.len;
    char *value = mem_alloc(length);

    memcpy(value, scheme.at, scheme.len);
    memcpy(value + scheme.len, token.at, token.len);

    int result =
        http_target_add_header(&call->headers, "Authorization", (struct str){ value, length }, err);

    mem_free_secret(value, length);
    return result;
}

static int add_headers(struct http_call *call, const struct http_request *request, struct err *err)
{
    const struct http_target *target = call->target;
    int result = 0;

    if (request->header_count > HTTP_MAX_HEADERS)
        return err_set(err, ERR_INVALID, "more than %d headers", HTTP_MAX_HEADERS);
    for (struct curl_slist *line = target->headers; result == 0 && line; line = line->next)
        result = add_copy(&call->headers, line->data, err);
    for (unsigned i = 0; result == 0 && i < request->header_count; i++)
        result = http_target_add_header(&call->headers, request->headers[i].name,
                                        str_of(request->headers[i].value), err);
    if (result == 0 && target->host_header)
        result = add_copy(&call->headers, target->host_header, err);
    if (result == 0)
        result = add_copy(&call->headers, "Expect:", err); /* never wait for 100 Continue */
    if (result == 0 && target->bearer_token)
        result = add_bearer(call, err);
    return result;
}

static struct curl_blob blob_of(struct str text)
{
    /* Not copied: the call holds the material. */
    return (struct curl_blob){ .data = (void *)(uintptr_t)text.at,
                               .len = text.len,
                               .flags = CURL_BLOB_NOCOPY };
}

static void set_tls(struct http_call *call)
{
    const struct http_target *target = call->target;
    struct curl_blob ca = blob_of(tls_material_ca(call->tls));
    struct curl_blob cert = blob_of(tls_material_cert(call->tls));
    struct curl_blob key = blob_of(tls_material_key(call->tls));

    curl_easy_setopt(call->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(call->easy, CURLOPT_SSL_VERIFYPEER, target->insecure ? 0L : 1L);
    curl_easy_setopt(call->easy, CURLOPT_SSL_VERIFYHOST, target->insecure ? 0L : 2L);
    if (ca.len > 0) {
        curl_easy_setopt(call->easy, CURLOPT_CAINFO_BLOB, &ca);
        curl_easy_setopt(call->easy, CURLOPT_CAPATH, NULL); /* else the system's CAs count too */
    }
    if (cert.len > 0) {
        curl_easy_setopt(call->easy, CURLOPT_SSLCERT_BLOB, &cert);
        curl_easy_setopt(call->easy, CURLOPT_SSLKEY_BLOB, &key);
    }
}

static void set_method(struct http_call *call, const char *method)
{
    assert(method); /* http_send refused a request without one */

    bool wants_body =
        strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0;

    if (strcmp(method, "HEAD") == 0)
        curl_easy_setopt(call->easy, CURLOPT_NOBODY, 1L);
    else
        curl_easy_setopt(call->easy, CURLOPT_HTTPGET, 1L);
    if (wants_body || call->body.len > 0) {
        curl_easy_setopt(call->easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(call->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)call->body.len);
    }
    curl_easy_setopt(call->easy, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(call->easy, CURLOPT_READFUNCTION, on_read_body);
    curl_easy_setopt(call->easy, CURLOPT_READDATA, call);
    curl_easy_setopt(call->easy, CURLOPT_PREREQFUNCTION, on_request);
    curl_easy_setopt(call->easy, CURLOPT_PREREQDATA, call);
}

static int on_socket_made(void *context, curl_socket_t socket, curlsocktype purpose)
{
    unsigned limit_ms = UNACKNOWLEDGED_MS;

    /* A Unix socket refuses it, and needs none. */
    (void)setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof(limit_ms));
    return CURL_SOCKOPT_OK;
}

static void set_connection(struct http_call *call)
{
    const struct http_target *target = call->target;
    bool http2 = target->https && !target->http1_only && !call->stream;

    curl_easy_setopt(call->easy, CURLOPT_HTTP_VERSION,
                     http2 ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(call->easy, CURLOPT_PIPEWAIT, http2 ? 1L : 0L);
    curl_easy_setopt(call->easy, CURLOPT_FRESH_CONNECT, call->stream ? 1L : 0L);
    curl_easy_setopt(call->easy, CURLOPT_FORBID_REUSE, call->stream ? 1L : 0L);
    curl_easy_setopt(call->easy, CURLOPT_MAXAGE_CONN, (long)KEEP_ALIVE_SECONDS);
    curl_easy_setopt(call->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(call->easy, CURLOPT_TCP_KEEPIDLE, (long)PROBE_AFTER_SECONDS);
    curl_easy_setopt(call->easy, CURLOPT_TCP_KEEPINTVL, (long)PROBE_EACH_SECONDS);
    curl_easy_setopt(call->easy, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
    curl_easy_setopt(call->easy, CURLOPT_CONNECTTIMEOUT_MS, target->connect_timeout_ms);
    if (!target->use_proxy)
        curl_easy_setopt(call->easy, CURLOPT_PROXY, "");
    if (target->unix_socket)
        curl_easy_setopt(call->easy, CURLOPT_UNIX_SOCKET_PATH, target->unix_socket);
    if (target->connect_to)
        curl_easy_setopt(call->easy, CURLOPT_CONNECT_TO, target->connect_to);
}

static void set_rest(struct http_call *call)
{
    curl_easy_setopt(call->easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(call->easy, CURLOPT_ERRORBUFFER, call->curl_text);
    curl_easy_setopt(call->easy, CURLOPT_NOSIGNAL, 1L);
    /* Removing a call does not wait for the thread that still looks up its host. */
    curl_easy_setopt(call->easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(call->easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(call->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(call->easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(call->easy, CURLOPT_USERAGENT, call->target->user_agent);
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
    curl_easy_setopt(call->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(call->easy, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(call->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(call->easy, CURLOPT_WRITEDATA, call);
    if (call->target->gzip)
        curl_easy_setopt(call->easy, CURLOPT_ACCEPT_ENCODING, "gzip");
}

static int set_url(struct http_call *call, const char *path, struct err *err)
{
    auto_buf struct buf url;

    buf_init(&url, (size_t)4 * MAX_PATH);
    buf_printf(&url, "%s%s", call->target->base_url, path);
    if (buf_check(&url, "URL", err) < 0 ||
        curl_easy_setopt(call->easy, CURLOPT_URL, buf_text(&url)) != CURLE_OK)
        return err_set(err, ERR_INVALID, "not a URL to be sent");
    return 0;
}

static int prepare(struct http_call *call, const struct http_request *request, struct err *err)
{
    if (!http_is_method(str_of(request->method)))
        return err_set(err, ERR_INVALID, "not a method");
    if (!http_is_path(str_of(request->path)) || strlen(request->path) > MAX_PATH)
        return err_set(err, ERR_INVALID, "not a path to be sent");
    if (request->body.len > MAX_BODY)
        return err_set(err, ERR_INVALID, "the body is longer than %d bytes", MAX_BODY);

    struct str shown = str_of(request->path), query;

    str_cut(shown, '?', &shown, &query);
    call->name = mem_alloc(160);
    snprintf(call->name, 160, "%s %.*s", request->method, (int)(shown.len > 120 ? 120 : shown.len),
             shown.at);
    if (request->body.len > 0)
        buf_add_str(&call->body, request->body);

    int result = add_headers(call, request, err);

    if (result == 0)
        result = set_url(call, request->path, err);
    if (result < 0)
        return result;
    set_method(call, request->method);
    set_connection(call);
    set_tls(call);
    set_rest(call);
    return 0;
}

struct http_call *http_call_new(const struct http_target *target,
                                const struct http_request *request,
                                const struct http_handlers *handlers)
{
    struct http_call *call = mem_alloc(sizeof(*call));

    call->target = target;
    call->handlers = *handlers;
    call->tls = tls_material_ref(target->tls);
    call->stream = request->stream;
    call->read_only = request->method && http_is_read(str_of(request->method));
    call->deadline_us = request->deadline_us;
    call->idle_us = request->idle_us;
    call->max_answer = request->max_answer ? request->max_answer : MAX_ANSWER;
    buf_init(&call->body, MAX_BODY);
    buf_init(&call->answer, call->max_answer);
    call->easy = curl_easy_init();
    if (!call->easy)
        err_set(&call->refusal, ERR_SYSTEM, "libcurl is out of memory");
    else
        prepare(call, request, &call->refusal);
    return call;
}

void http_call_free(struct http_call *call)
{
    if (!call)
        return;
    loop_timer_stop(&call->timer);
    curl_easy_cleanup(call->easy);
    http_target_free_headers(call->headers);
    tls_material_unref(call->tls);
    if (call->body.data)
        explicit_bzero(call->body.data, call->body.len); /* secrets are created by calls, too */
    buf_done(&call->body);
    buf_done(&call->answer);
    mem_free(call->name);
    mem_free(call);
}

/* --- what an end means --- */

static enum err_class class_of(const struct http_call *call, CURLcode code)
{
    if (call->too_big)
        return ERR_TOO_BIG;
    if (call->attempts > 0) /* whatever the code says: libcurl has one code for several places */
        return ERR_UNKNOWN;
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
        return ERR_DENIED;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return ERR_INVALID;
    default:
        return ERR_UNAVAILABLE;
    }
}

void http_call_explain(const struct http_call *call, CURLcode code, struct err *ret_err)
{
    const char *text = call->curl_text[0] ? call->curl_text : curl_easy_strerror(code);

    if (call->too_big)
        text = call->head_bytes > call->target->max_head ? "the answer's header is too long"
               : call->stream                            ? "a line of the answer is too long"
                                                         : "the answer is too long";
    else if (code == CURLE_ABORTED_BY_CALLBACK && call->attempts > 0)
        text = "the connection died under the request";
    err_set(ret_err, class_of(call, code), "%s: %s", call->name, text);
}
