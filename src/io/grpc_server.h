/* grpc_server.h - a small gRPC server on a unix socket: unary calls and streams of answers.
 *
 * HTTP/2 with prior knowledge, without TLS: the socket's mode (0600) says who may connect. The
 * client's side of a call is one message, without compression.
 *
 * Everything from outside is bounded: connections, calls at once, bytes of headers and messages,
 * bytes that wait to be sent, and the time of a call (the client's grpc-timeout, and request_us).
 * Connections are never closed because they are idle. */
#ifndef SLINC_IO_GRPC_SERVER_H
#define SLINC_IO_GRPC_SERVER_H

#include "base/err.h"
#include "base/str.h"
#include "io/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct grpc_server;
struct grpc_call;

enum grpc_status { /* as in the gRPC specification */
                   GRPC_OK = 0,
                   GRPC_UNKNOWN = 2,
                   GRPC_INVALID_ARGUMENT = 3,
                   GRPC_DEADLINE_EXCEEDED = 4,
                   GRPC_RESOURCE_EXHAUSTED = 8,
                   GRPC_UNIMPLEMENTED = 12,
                   GRPC_INTERNAL = 13,
                   GRPC_UNAVAILABLE = 14,
};

struct grpc_method {
    const char *path; /* "/package.Service/Method" */
    /* The message is borrowed until handle returns. handle, or somebody later, ends the call
     * exactly once by grpc_reply or grpc_fail. */
    void (*handle)(void *context, struct str message, struct grpc_call *call);
    bool is_stream; /* answers with any number of messages; request_us ends with the request */
};

struct grpc_server_options {
    const char *path; /* of the socket; a socket that is already there is replaced */
    const struct grpc_method *methods; /* borrowed while the server lives */
    size_t method_count;
    void *context;            /* for handle */
    unsigned max_connections; /* 0 = 16; more are closed at once */
    unsigned max_calls;       /* of one connection at once; 0 = 64 */
    size_t max_message;       /* 0 = 1 MiB; answered with RESOURCE_EXHAUSTED */
    int64_t request_us;       /* longest time of a call without grpc-timeout; 0 = 60 s */
};

enum { GRPC_MAX_PATH = 107 }; /* bytes of a unix socket's path */

int grpc_server_new(struct loop *loop, const struct grpc_server_options *options,
                    struct grpc_server **ret_server, struct err *err);
/* Removes the socket and closes all connections; calls still held may be ended, to no effect. Not
 * from inside a handler. Takes NULL. */
void grpc_server_free(struct grpc_server *server);
unsigned grpc_server_connections(const struct grpc_server *server);

/* ---- ending a call ---- */

void grpc_reply(struct grpc_call *call, struct str message); /* of a unary call: status OK */
void grpc_fail(struct grpc_call *call, enum grpc_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- before the end ---- */

void grpc_send(struct grpc_call *call, struct str message); /* one message of a stream */
/* The client left, or the deadline passed and was answered: whatever else is sent goes nowhere.
 * gone is called once, from the loop; the call is still to be ended, there or later. */
bool grpc_call_is_gone(const struct grpc_call *call);
void grpc_call_on_gone(struct grpc_call *call, void (*gone)(void *context), void *context);

#endif
