/* sim_private.h - what the two halves of the simulated network share: calls and streams. */
#ifndef SLINC_SIM_PRIVATE_H
#define SLINC_SIM_PRIVATE_H

#include "base/list.h"
#include "sim_transport.h"

enum sim_fate {
    FATE_ANSWERED,
    FATE_LOST_BEFORE,
    FATE_LOST_BETWEEN,
    FATE_LOST_AFTER,
    FATE_LATE,
    FATE_CONFLICT,
    FATE_TOO_MANY,
    FATE_INTERNAL,
    FATE_INTERNAL_DONE, /* 500, and it was done */
    FATE_UNAVAILABLE,
    FATE_CUT_OFF, /* a partition: silence until the deadline */
};

struct sim_net {
    struct loop *loop;
    struct api_store *store;
    struct rand *rand;
    struct trace *trace;
    struct sim_hooks hooks;
    struct sim_faults faults;
    struct list calls; /* struct http_call: sent and not finished */
    struct sim_write *writes;
    uint64_t write_count, crash_at;
    bool crash_after;
    const char *cut_user, *cut_part; /* borrowed; cut_user NULL: no partition */
};

struct sim_transport {
    struct http_transport base;
    struct sim_net *net;
    char user[32];
};

struct http_call {
    struct list link;
    struct sim_net *net;
    const struct sim_transport *transport; /* NULL: nobody waits for the answer any more */
    struct http_handlers handlers;
    char user[32];
    char *method, *path, *type, *body;
    size_t body_len;
    enum sim_fate fate;
    bool stream, is_write, arrived;
    int64_t sent_us;
    struct loop_timer timer;    /* the next leg; of a stream: the next piece */
    struct loop_timer deadline; /* until the answer; of a stream: of silence */
    struct api_answer answer;
    bool *gone; /* set when it is freed: for whoever stands in the middle of a callback */

    int64_t idle_us; /* streams */
    bool stalled;
    struct api_watch *watch;
    struct loop_timer beat, end;
};

void sim_call_finish(struct http_call *call); /* frees it */
void sim_call_fail(struct http_call *call, enum err_class class, const char *why);
void sim_call_answer(struct http_call *call, int status, struct str body, int retry_after);
int64_t sim_delay_us(struct sim_net *net);
bool sim_call_is_cut(const struct http_call *call);

/* ---- sim_stream.c ---- */
void sim_stream_open(struct http_call *call);   /* it has arrived */
void sim_stream_notice(struct http_call *call); /* something was written */
void sim_stream_done(struct http_call *call);   /* frees what a stream has */

#endif
