/* grpc_server_internal.h - what the three files of the gRPC server share. */
#ifndef SLINC_IO_GRPC_SERVER_INTERNAL_H
#define SLINC_IO_GRPC_SERVER_INTERNAL_H

#include "base/buf.h"
#include "base/list.h"
#include "io/grpc_server.h"
#include "io/loop_fd.h"

#include <nghttp2/nghttp2.h>

enum { GRPC_PREFIX = 5, GRPC_MAX_METHOD = 200, GRPC_MAX_HEADERS = 16 * 1024 };

struct grpc_server {
    struct loop *loop;
    struct grpc_server_options options; /* with the defaults filled in */
    char path[GRPC_MAX_PATH + 1];
    int fd; /* of the socket; -1 = none */
    struct loop_fd *watch;
    struct list conns; /* struct grpc_conn */
    unsigned conn_count;
    nghttp2_session_callbacks *callbacks;
};

struct grpc_conn {
    struct list link;
    struct grpc_server *server;
    int fd;
    struct loop_fd *watch;
    nghttp2_session *session;
    struct buf out;              /* frames that the socket did not take yet */
    struct loop_timer flush;     /* armed when frames wait outside of a callback of the socket */
    struct loop_timer handshake; /* until the client's first frame */
    struct list calls;           /* struct grpc_call */
};

/* A call has two ends: its stream, and whoever handles it. It is freed when both are done. */
struct grpc_call {
    struct list link;
    struct grpc_conn *conn; /* NULL when the stream is closed */
    struct loop *loop;
    int32_t stream;

    char path[GRPC_MAX_METHOD];
    size_t header_bytes;
    bool is_post, is_grpc;
    bool is_timeout_wrong;
    int64_t timeout_us; /* grpc-timeout; 0 = none */
    const struct grpc_method *method;
    struct buf in; /* prefix and message */
    bool input_ended;

    bool is_held;     /* by the handler */
    bool is_answered; /* a status was given: nothing more is taken from the handler */
    bool is_gone;
    bool has_head; /* of the answer */
    void (*gone)(void *context);
    void *gone_context;
    struct loop_timer deadline;
    struct buf out;          /* prefixes and messages */
    enum grpc_status status; /* in the trailer behind `out` */
};

/* grpc_conn.c */
int grpc_conn_callbacks(nghttp2_session_callbacks **ret_callbacks, struct err *err);
void grpc_conn_accept(struct grpc_server *server, int fd); /* takes the descriptor */
void grpc_conn_free(struct grpc_conn *conn);
void grpc_conn_wake(struct grpc_conn *conn); /* what was submitted is sent soon */

/* grpc_call.c: what happens on a stream */
struct grpc_call *grpc_call_new(struct grpc_conn *conn, int32_t stream);
bool grpc_call_header(struct grpc_call *call, struct str name, struct str value); /* false: reset */
void grpc_call_headers_end(struct grpc_call *call);
void grpc_call_data(struct grpc_call *call, struct str piece);
void grpc_call_input_end(struct grpc_call *call);
void grpc_call_closed(struct grpc_call *call);

#endif
