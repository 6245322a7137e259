/* grpc_call.c - one call: its headers, its message, its answer, its deadline.
 *
 * Holds: a call is answered once. After that, and after its stream is closed, what the handler does
 * has no effect but to let the call go. */
#include "base/mem.h"
#include "io/grpc_server_internal.h"
#include "io/http_text.h"

#include <stdio.h>

enum {
    TAKE_US = 10000000,
    MAX_OUT = 4 << 20,
    MAX_TEXT = 1024,
    TIMEOUT_DIGITS = 8,
    LENGTH_BYTES = 4
};

static const int64_t max_timeout_us = INT64_C(365) * 24 * 3600 * 1000000;

/* ---- the life of a call ---- */

struct grpc_call *grpc_call_new(struct grpc_conn *conn, int32_t stream)
{
    struct grpc_call *call = mem_alloc(sizeof(*call));

    *call = (struct grpc_call){ .conn = conn, .loop = conn->server->loop, .stream = stream };
    buf_init(&call->in, conn->server->options.max_message + GRPC_PREFIX);
    buf_init(&call->out, MAX_OUT);
    list_push_back(&conn->calls, &call->link);
    return call;
}

static void free_if_done(struct grpc_call *call)
{
    if (call->conn || call->is_held)
        return;
    loop_timer_stop(&call->deadline);
    buf_done(&call->in);
    buf_done(&call->out);
    mem_free(call);
}

static void tell_gone(struct grpc_call *call)
{
    void (*gone)(void *context) = call->gone;

    call->is_gone = true;
    call->gone = NULL;
    if (gone && call->is_held)
        gone(call->gone_context); /* may end the call */
}

void grpc_call_closed(struct grpc_call *call)
{
    bool was_held = call->is_held;

    loop_timer_stop(&call->deadline);
    list_remove(&call->link);
    (void)nghttp2_session_set_stream_user_data(call->conn->session, call->stream, NULL);
    call->conn = NULL;
    call->is_answered = true;
    if (was_held)
        tell_gone(call); /* frees the call when its handler ends it there */
    else
        free_if_done(call);
}

bool grpc_call_is_gone(const struct grpc_call *call)
{
    return call->is_gone;
}

void grpc_call_on_gone(struct grpc_call *call, void (*gone)(void *context), void *context)
{
    call->gone = gone;
    call->gone_context = context;
}

/* ---- the answer ---- */

static nghttp2_nv header(const char *name, const char *value)
{
    return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name,
                         .value = (uint8_t *)(uintptr_t)value,
                         .namelen = strlen(name),
                         .valuelen = strlen(value) };
}

/* An answer of one frame: no message, only a status. */
static void answer_status(struct grpc_call *call, const char *http_status, enum grpc_status status,
                          const char *text)
{
    char number[16];
    auto_buf struct buf escaped;

    buf_init(&escaped, (size_t)MAX_TEXT * 4);
    http_escape(str_of(text), &escaped);
    (void)snprintf(number, sizeof(number), "%d", (int)status);

    const nghttp2_nv headers[] = {
        header(":status", http_status),
        header("content-type", "application/grpc"),
        header("grpc-status", number),
        header("grpc-message", buf_text(&escaped)),
    };

    call->is_answered = true;
    call->status = status;
    if (call->has_head) /* the trailer behind the messages tells the status */
        (void)nghttp2_session_resume_data(call->conn->session, call->stream);
    else
        (void)nghttp2_submit_response(call->conn->session, call->stream, headers,
                                      sizeof(headers) / sizeof(headers[0]), NULL);
    grpc_conn_wake(call->conn);
}

/* nghttp2 asks for the next bytes of the answer; behind the last come the trailers. */
static ssize_t read_answer(nghttp2_session *session, int32_t stream, uint8_t *to, size_t length,
                           uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    struct grpc_call *call = source->ptr;
    size_t count = call->out.len < length ? call->out.len : length;

    (void)user_data;
    if (count == 0 && !call->is_answered)
        return NGHTTP2_ERR_DEFERRED;
    if (count > 0)
        memcpy(to, call->out.data, count);
    buf_drop_front(&call->out, count);
    if (call->out.len == 0 && call->is_answered) {
        char number[16];
        nghttp2_nv trailer;

        (void)snprintf(number, sizeof(number), "%d", (int)call->status);
        trailer = header("grpc-status", number);
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (nghttp2_submit_trailer(session, stream, &trailer, 1) != 0)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return (ssize_t)count;
}

static void begin_answer(struct grpc_call *call)
{
    const nghttp2_nv headers[] = { header(":status", "200"),
                                   header("content-type", "application/grpc") };
    const nghttp2_data_provider body = { .source.ptr = call, .read_callback = read_answer };

    call->has_head = true;
    (void)nghttp2_submit_response(call->conn->session, call->stream, headers,
                                  sizeof(headers) / sizeof(headers[0]), &body);
}

static void add_message(struct grpc_call *call, struct str message)
{
    const unsigned char prefix[GRPC_PREFIX] = {
        0,
        (unsigned char)(message.len >> 24),
        (unsigned char)(message.len >> 16),
        (unsigned char)(message.len >> 8),
        (unsigned char)message.len,
    };

    if (message.len > (size_t)MAX_OUT - GRPC_PREFIX ||
        call->out.len > (size_t)MAX_OUT - GRPC_PREFIX - message.len) {
        answer_status(call, "200", GRPC_RESOURCE_EXHAUSTED, "the answer is too large");
        return;
    }
    buf_add(&call->out, prefix, sizeof(prefix));
    buf_add_str(&call->out, message);
    if (!call->has_head)
        begin_answer(call);
    else
        (void)nghttp2_session_resume_data(call->conn->session, call->stream);
    grpc_conn_wake(call->conn);
}

void grpc_send(struct grpc_call *call, struct str message)
{
    if (!call->is_answered)
        add_message(call, message);
}

void grpc_reply(struct grpc_call *call, struct str message)
{
    if (!call->is_answered)
        add_message(call, message);
    if (!call->is_answered) {
        call->is_answered = true;
        grpc_conn_wake(call->conn);
    }
    call->is_held = false;
    free_if_done(call);
}

void grpc_fail(struct grpc_call *call, enum grpc_status status, const char *format, ...)
{
    if (!call->is_answered) {
        char text[MAX_TEXT];
        va_list args;

        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        answer_status(call, "200", status, text);
    }
    call->is_held = false;
    free_if_done(call);
}

static void on_deadline(void *context)
{
    struct grpc_call *call = context;

    if (!call->is_answered) {
        answer_status(call, "200", GRPC_DEADLINE_EXCEEDED, "the deadline of the call passed");
        /* the client has some time to take the answer */
        loop_timer_start(call->loop, &call->deadline, TAKE_US, on_deadline, call);
    } else {
        (void)nghttp2_submit_rst_stream(call->conn->session, NGHTTP2_FLAG_NONE, call->stream,
                                        NGHTTP2_CANCEL);
        grpc_conn_wake(call->conn);
    }
    if (call->is_held)
        tell_gone(call);
}

/* ---- the request ---- */

/* "100m": at most eight digits and a unit. */
static bool read_timeout(struct str text, int64_t *ret_us)
{
    static const struct {
        char unit;
        int64_t ns;
    } units[] = {
        { 'n', 1 },          { 'u', 1000 },        { 'm', 1000000 },
        { 'S', 1000000000 }, { 'M', 60000000000 }, { 'H', 3600000000000 },
    };
    uint64_t number;

    if (text.len < 2 || text.len > TIMEOUT_DIGITS + 1 ||
        str_to_u64(str_sub(text, 0, text.len - 1), 0, UINT32_MAX, &number, NULL) < 0)
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (units[i].unit != text.at[text.len - 1])
            continue;
        /* Rounded up to a microsecond; hours of eight digits do not fit nanoseconds. */
        *ret_us = units[i].ns >= 1000 ? (int64_t)number * (units[i].ns / 1000)
                                      : (int64_t)(number / 1000) + 1;
        if (*ret_us > max_timeout_us)
            *ret_us = max_timeout_us;
        if (*ret_us < 1)
            *ret_us = 1;
        return true;
    }
    return false;
}

bool grpc_call_header(struct grpc_call *call, struct str name, struct str value)
{
    call->header_bytes += name.len + value.len;
    if (call->header_bytes > GRPC_MAX_HEADERS)
        return false;
    if (str_is(name, ":method"))
        call->is_post = str_is(value, "POST");
    else if (str_is(name, ":path") && value.len < sizeof(call->path))
        memcpy(call->path, value.at, value.len); /* a longer one stays "": no such method */
    else if (str_is(name, "content-type"))
        call->is_grpc = str_starts(value, STR("application/grpc"));
    else if (str_is(name, "grpc-timeout"))
        call->is_timeout_wrong = !read_timeout(value, &call->timeout_us);
    return true;
}

static const struct grpc_method *find_method(const struct grpc_server *server, const char *path)
{
    for (size_t i = 0; i < server->options.method_count; i++)
        if (strcmp(server->options.methods[i].path, path) == 0)
            return &server->options.methods[i];
    return NULL;
}

void grpc_call_headers_end(struct grpc_call *call)
{
    const struct grpc_server *server = call->conn->server;

    call->method = find_method(server, call->path);
    loop_timer_start(call->loop, &call->deadline,
                     call->timeout_us ? call->timeout_us : server->options.request_us, on_deadline,
                     call);
    if (!call->is_post)
        answer_status(call, "405", GRPC_UNKNOWN, "gRPC calls are POST requests");
    else if (!call->is_grpc)
        answer_status(call, "415", GRPC_UNKNOWN, "the content type is not application/grpc");
    else if (!call->method)
        answer_status(call, "200", GRPC_UNIMPLEMENTED, "there is no such method");
    else if (call->is_timeout_wrong)
        answer_status(call, "200", GRPC_INTERNAL, "malformed grpc-timeout");
}

/* The length that the prefix tells; the buffer holds at least the prefix. */
static size_t told_length(const struct grpc_call *call)
{
    size_t length = 0;

    for (size_t i = 0; i < LENGTH_BYTES; i++)
        length = length << 8 | (unsigned char)call->in.data[1 + i];
    return length;
}

void grpc_call_data(struct grpc_call *call, struct str piece)
{
    if (call->is_answered)
        return;
    buf_add_str(&call->in, piece);
    if (call->in.overflowed ||
        (call->in.len >= GRPC_PREFIX && told_length(call) > call->in.max - GRPC_PREFIX))
        answer_status(call, "200", GRPC_RESOURCE_EXHAUSTED, "the message is too large");
}

void grpc_call_input_end(struct grpc_call *call)
{
    struct grpc_server *server = call->conn->server;

    call->input_ended = true;
    if (call->is_answered)
        return;
    if (call->in.len < GRPC_PREFIX || told_length(call) != call->in.len - GRPC_PREFIX) {
        answer_status(call, "200", GRPC_INTERNAL, "the request is not one whole message");
        return;
    }
    if (call->in.data[0] != 0) {
        answer_status(call, "200", GRPC_UNIMPLEMENTED, "messages must not be compressed");
        return;
    }
    if (call->method->is_stream && !call->timeout_us)
        loop_timer_stop(&call->deadline);
    call->is_held = true;
    call->method->handle(server->options.context,
                         str_sub(buf_str(&call->in), GRPC_PREFIX, SIZE_MAX), call);
}
