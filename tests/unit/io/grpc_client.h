/* grpc_client.h - a gRPC client on nghttp2 for tests: it shares the server's loop and its thread.
 *
 * Whatever is wrong fails the test that runs. */
#ifndef SLINC_TESTS_GRPC_CLIENT_H
#define SLINC_TESTS_GRPC_CLIENT_H

#include "base/buf.h"
#include "io/loop_real.h"

#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CLIENT_MAX_CALLS = 128, CLIENT_MAX = 8 << 20, CLIENT_PATIENCE_US = 20000000 };

struct client_call {
    int32_t stream;
    struct buf in, out; /* out: bytes to send; in: bytes of DATA frames */
    size_t out_at;
    char http_status[8], grpc_status[8], grpc_message[512], content_type[64];
    unsigned header_blocks; /* 1 in an answer that has trailers only */
    bool keep_open, ended;
    uint32_t error_code;
};

struct client {
    struct loop *loop;
    int fd;
    nghttp2_session *session;
    struct client_call calls[CLIENT_MAX_CALLS];
    unsigned call_count;
    bool has_settings, is_closed;
    bool no_window; /* the client never lets the server send more than the first window */
};

static struct client_call *client_find(struct client *client, int32_t stream)
{
    for (unsigned i = 0; i < client->call_count; i++)
        if (client->calls[i].stream == stream)
            return &client->calls[i];
    return NULL;
}

static int client_on_header(nghttp2_session *session, const nghttp2_frame *frame,
                            const uint8_t *name, size_t name_len, const uint8_t *value,
                            size_t value_len, uint8_t flags, void *user_data)
{
    struct client_call *call = client_find(user_data, frame->hd.stream_id);
    struct str key = { (const char *)name, name_len };
    int length = (int)value_len;

    (void)session;
    (void)flags;
    if (!call)
        return 0;
    if (str_is(key, ":status"))
        snprintf(call->http_status, sizeof(call->http_status), "%.*s", length, value);
    else if (str_is(key, "grpc-status"))
        snprintf(call->grpc_status, sizeof(call->grpc_status), "%.*s", length, value);
    else if (str_is(key, "grpc-message"))
        snprintf(call->grpc_message, sizeof(call->grpc_message), "%.*s", length, value);
    else if (str_is(key, "content-type"))
        snprintf(call->content_type, sizeof(call->content_type), "%.*s", length, value);
    return 0;
}

static int client_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct client *client = user_data;
    struct client_call *call = client_find(client, frame->hd.stream_id);

    (void)session;
    if (frame->hd.type == NGHTTP2_SETTINGS && !(frame->hd.flags & NGHTTP2_FLAG_ACK))
        client->has_settings = true;
    if (call && frame->hd.type == NGHTTP2_HEADERS)
        call->header_blocks++;
    return 0;
}

static int client_on_data(nghttp2_session *session, uint8_t flags, int32_t stream,
                          const uint8_t *data, size_t length, void *user_data)
{
    struct client *client = user_data;
    struct client_call *call = client_find(client, stream);

    (void)flags;
    if (call)
        buf_add(&call->in, data, length);
    if (!client->no_window)
        nghttp2_session_consume(session, stream, length);
    return 0;
}

static int client_on_close(nghttp2_session *session, int32_t stream, uint32_t error_code,
                           void *user_data)
{
    struct client_call *call = client_find(user_data, stream);

    (void)session;
    if (call) {
        call->ended = true;
        call->error_code = error_code;
    }
    return 0;
}

static ssize_t client_read_body(nghttp2_session *session, int32_t stream, uint8_t *to,
                                size_t length, uint32_t *flags, nghttp2_data_source *source,
                                void *user_data)
{
    struct client_call *call = source->ptr;
    size_t left = call->out.len - call->out_at, count = left < length ? left : length;

    (void)session;
    (void)stream;
    (void)user_data;
    if (count > 0)
        memcpy(to, call->out.data + call->out_at, count);
    call->out_at += count;
    if (call->out_at == call->out.len) {
        if (call->keep_open && count == 0)
            return NGHTTP2_ERR_DEFERRED;
        if (!call->keep_open)
            *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return (ssize_t)count;
}

static int client_dial(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        fprintf(stderr, "client: connect %s\n", path);
        abort();
    }
    return fd;
}

static struct client *client_new(struct loop *loop, const char *path)
{
    struct client *client = calloc(1, sizeof(*client));
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;

    client->loop = loop;
    client->fd = client_dial(path);
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, client_on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, client_on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, client_on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, client_on_close);
    nghttp2_option_new(&option);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_session_client_new2(&client->session, callbacks, client, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, NULL, 0);
    return client;
}

static void client_free(struct client *client)
{
    for (unsigned i = 0; i < client->call_count; i++) {
        buf_done(&client->calls[i].in);
        buf_done(&client->calls[i].out);
    }
    nghttp2_session_del(client->session);
    close(client->fd);
    free(client);
}

/* Both sides do what they can do now. */
static void client_turn(struct client *client)
{
    uint8_t piece[65536];
    const uint8_t *frame;
    ssize_t length;

    while (!client->is_closed && (length = nghttp2_session_mem_send(client->session, &frame)) > 0) {
        for (ssize_t sent = 0; sent < length && !client->is_closed;) {
            ssize_t now = send(client->fd, frame + sent, (size_t)(length - sent),
                               MSG_NOSIGNAL | MSG_DONTWAIT);

            if (now > 0)
                sent += now;
            else if (now < 0 && errno != EAGAIN)
                client->is_closed = true;
            loop_step(client->loop);
        }
    }
    loop_step(client->loop);
    length = recv(client->fd, piece, sizeof(piece), MSG_DONTWAIT);
    if (length == 0 || (length < 0 && errno != EAGAIN))
        client->is_closed = true;
    if (length > 0 && nghttp2_session_mem_recv(client->session, piece, (size_t)length) < 0)
        client->is_closed = true;
}

/* Turns until the condition holds; fails the test when it takes too long. */
#define client_until(client, condition)                                                            \
    do {                                                                                           \
        int64_t until_us_ = loop_now_us((client)->loop) + CLIENT_PATIENCE_US;                      \
        while (!(condition)) {                                                                     \
            client_turn(client);                                                                   \
            if (loop_now_us((client)->loop) > until_us_)                                           \
                fail_msg("waited in vain: %s", #condition);                                        \
        }                                                                                          \
    } while (0)

struct client_headers {
    const char *method, *content_type, *timeout, *extra; /* NULL: POST, application/grpc, none */
};

static nghttp2_nv client_nv(const char *name, const char *value)
{
    return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                         strlen(value), 0 };
}

/* Sends raw bytes as the body; keep_open: without an end. */
static struct client_call *client_send_raw(struct client *client, const char *path,
                                           struct client_headers headers, struct str body,
                                           bool keep_open)
{
    struct client_call *call = &client->calls[client->call_count++];
    nghttp2_data_provider provider = { .source.ptr = call, .read_callback = client_read_body };
    nghttp2_nv fields[8] = {
        client_nv(":method", headers.method ? headers.method : "POST"),
        client_nv(":scheme", "http"),
        client_nv(":path", path),
        client_nv(":authority", "localhost"),
        client_nv("content-type", headers.content_type ? headers.content_type : "application/grpc"),
    };
    size_t count = 5;

    *call = (struct client_call){ .keep_open = keep_open };
    buf_init(&call->in, CLIENT_MAX);
    buf_init(&call->out, CLIENT_MAX);
    buf_add_str(&call->out, body);
    if (headers.timeout)
        fields[count++] = client_nv("grpc-timeout", headers.timeout);
    if (headers.extra)
        fields[count++] = client_nv("x-extra", headers.extra);
    call->stream = nghttp2_submit_request(client->session, NULL, fields, count, &provider, NULL);
    return call;
}

static void client_add_message(struct buf *out, struct str message)
{
    const unsigned char prefix[5] = { 0, (unsigned char)(message.len >> 24),
                                      (unsigned char)(message.len >> 16),
                                      (unsigned char)(message.len >> 8),
                                      (unsigned char)message.len };

    buf_add(out, prefix, sizeof(prefix));
    buf_add_str(out, message);
}

static struct client_call *client_send(struct client *client, const char *path,
                                       struct client_headers headers, struct str message)
{
    struct client_call *call;
    struct buf body;

    buf_init(&body, CLIENT_MAX);
    client_add_message(&body, message);
    call = client_send_raw(client, path, headers, buf_str(&body), false);
    buf_done(&body);
    return call;
}

/* Cuts the first whole message off what came; false when there is none yet. */
static bool client_take(struct client_call *call, struct buf *message)
{
    size_t length = 0;

    if (call->in.len < 5)
        return false;
    for (size_t i = 1; i < 5; i++)
        length = length << 8 | (unsigned char)call->in.data[i];
    if (call->in.len - 5 < length)
        return false;
    buf_clear(message);
    buf_add(message, call->in.data + 5, length);
    buf_drop_front(&call->in, length + 5);
    return true;
}

#endif
