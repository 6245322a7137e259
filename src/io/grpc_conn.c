/* grpc_conn.c - one connection: bytes of the socket into nghttp2, its frames back, and which call a
 * frame belongs to.
 *
 * Holds: while bytes wait to be written nothing more is read, so a client that does not read cannot
 * make us keep answers to what it still sends. */
#include "base/mem.h"
#include "io/grpc_server_internal.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_SIZE = 16 * 1024, MAX_UNSENT = 64 * 1024, HANDSHAKE_US = 10000000 };

/* ---- frames of the client ---- */

static struct grpc_call *call_of(nghttp2_session *session, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(session, stream);
}

static bool is_request(const nghttp2_frame *frame)
{
    return frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct grpc_call *call;

    if (!is_request(frame))
        return 0;
    call = grpc_call_new(user_data, frame->hd.stream_id);
    (void)nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, call);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *user_data)
{
    struct grpc_call *call = call_of(session, frame->hd.stream_id);

    (void)flags;
    (void)user_data;
    if (!is_request(frame) || !call)
        return 0;
    if (!grpc_call_header(call, (struct str){ (const char *)name, name_len },
                          (struct str){ (const char *)value, value_len }))
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* resets the stream */
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t length, void *user_data)
{
    struct grpc_call *call = call_of(session, stream);

    (void)flags;
    (void)user_data;
    if (call)
        grpc_call_data(call, (struct str){ (const char *)data, length });
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct grpc_conn *conn = user_data;
    struct grpc_call *call = call_of(session, frame->hd.stream_id);

    loop_timer_stop(&conn->handshake);
    if (!call)
        return 0;
    if (is_request(frame))
        grpc_call_headers_end(call);
    if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        grpc_call_input_end(call);
    return 0;
}

/* The whole answer was sent: a client that is still sending its request is told to stop. */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct grpc_call *call = call_of(session, frame->hd.stream_id);

    (void)user_data;
    if (call && !call->input_ended && frame->hd.type == NGHTTP2_HEADERS &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                        NGHTTP2_NO_ERROR);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t error_code,
                           void *user_data)
{
    struct grpc_call *call = call_of(session, stream);

    (void)error_code;
    (void)user_data;
    if (call)
        grpc_call_closed(call);
    return 0;
}

int grpc_conn_callbacks(nghttp2_session_callbacks **ret_callbacks, struct err *err)
{
    nghttp2_session_callbacks *callbacks;

    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return err_set(err, ERR_SYSTEM, "nghttp2 is out of memory");
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    *ret_callbacks = callbacks;
    return 0;
}

/* ---- the socket ---- */

/* Frames into `out`, as many as it takes; false: the session is broken. */
static bool collect_frames(struct grpc_conn *conn)
{
    while (conn->out.len < MAX_UNSENT) {
        const uint8_t *frame;
        ssize_t length = nghttp2_session_mem_send(conn->session, &frame);

        if (length <= 0)
            return length == 0;
        buf_add(&conn->out, frame, (size_t)length);
    }
    return true;
}

static bool write_out(struct grpc_conn *conn)
{
    while (collect_frames(conn) && conn->out.len > 0) {
        ssize_t sent = send(conn->fd, conn->out.data, conn->out.len, MSG_NOSIGNAL);

        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return true;
        if (sent < 0 && errno != EINTR)
            return false;
        if (sent > 0)
            buf_drop_front(&conn->out, (size_t)sent);
    }
    return conn->out.len == 0;
}

/* False: the client hung up, or sent what is no HTTP/2. */
static bool read_in(struct grpc_conn *conn)
{
    uint8_t piece[READ_SIZE];
    ssize_t got = recv(conn->fd, piece, sizeof(piece), 0);

    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    return got > 0 && nghttp2_session_mem_recv(conn->session, piece, (size_t)got) >= 0;
}

/* Sends what there is to send; closes the connection when that fails or nothing is left to do. */
static void flush(void *context)
{
    struct grpc_conn *conn = context;
    bool is_well = write_out(conn);
    bool is_blocked = conn->out.len > 0;

    if (!is_well || (!is_blocked && !nghttp2_session_want_read(conn->session) &&
                     !nghttp2_session_want_write(conn->session)))
        grpc_conn_free(conn);
    else
        loop_fd_set_events(conn->watch, is_blocked ? LOOP_FD_WRITE : LOOP_FD_READ);
}

static void on_ready(void *context, unsigned events)
{
    struct grpc_conn *conn = context;

    if ((events & LOOP_FD_READ) && !read_in(conn))
        grpc_conn_free(conn);
    else
        flush(conn);
}

void grpc_conn_wake(struct grpc_conn *conn)
{
    loop_timer_start(conn->server->loop, &conn->flush, 0, flush, conn);
}

/* ---- the life of a connection ---- */

static void on_handshake_late(void *context)
{
    grpc_conn_free(context);
}

void grpc_conn_accept(struct grpc_server *server, int fd)
{
    const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, server->options.max_calls },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_MAX_HEADERS },
    };
    struct grpc_conn *conn = mem_alloc(sizeof(*conn));

    *conn = (struct grpc_conn){ .server = server, .fd = fd };
    if (nghttp2_session_server_new(&conn->session, server->callbacks, conn) != 0) {
        (void)close(fd);
        mem_free(conn);
        return;
    }
    buf_init(&conn->out, (size_t)MAX_UNSENT * 2);
    list_init(&conn->calls);
    list_push_back(&server->conns, &conn->link);
    server->conn_count++;
    conn->watch = loop_fd_new(server->loop, fd, LOOP_FD_READ, on_ready, conn);
    loop_timer_start(server->loop, &conn->handshake, HANDSHAKE_US, on_handshake_late, conn);
    (void)nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings,
                                  sizeof(settings) / sizeof(settings[0]));
    grpc_conn_wake(conn);
}

void grpc_conn_free(struct grpc_conn *conn)
{
    loop_timer_stop(&conn->flush);
    loop_timer_stop(&conn->handshake);
    loop_fd_free(conn->watch);
    list_each (struct grpc_call, call, &conn->calls, link) {
        grpc_call_closed(call);
    }
    loop_timer_stop(&conn->flush); /* a call that was told of its end may have answered */
    nghttp2_session_del(conn->session);
    (void)close(conn->fd);
    buf_done(&conn->out);
    list_remove(&conn->link);
    conn->server->conn_count--;
    mem_free(conn);
}
