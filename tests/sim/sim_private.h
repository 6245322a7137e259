/* sim_private.h - what the two halves of the simulated network share: calls and streams. */
#ifndef SLINC_SIM_PRIVATE_H
#define SLINC_SIM_PRIVATE_H

#include "base/list.h"
#include "sim_transport.h"

struct sim_net {
    struct loop *loop;
    struct api_store *store;
    struct rand *rand;
    struct trace *trace;
    struct sim_hooks hooks;
    struct sim_faults faults, slurm_faults;
    struct slurm_store *slurm; /* NULL: there is none */
    enum sim_agent agent;
    struct loop_timer slurm_timer;
    struct list calls; /* struct http_call: sent and not finished */
    struct sim_write *writes;
    uint64_t write_count, crash_at;
    enum sim_fate next_fate; /* of the call that leaves now; FATE_DRAWN: by chance */
    enum sim_fate crash_fate;
    const char *cut_user, *cut_part; /* borrowed; cut_user NULL: no partition */
};

struct sim_transport {
    struct http_transport base;
    struct sim_net *net;
    bool to_slurm, to_agent; /* to the agent: both */
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
    const char *answer_type;       /* of its body */
    bool to_slurm, is_asking;      /* the second: slurm_store_ask has not returned yet */
    bool to_agent, is_held;        /* the second: the agent hangs */
    void (*arrive)(void *context); /* then */
    char *token, *as_user;
    uint64_t ticket; /* of slurmrestd, while it has not answered */
    bool *gone;      /* set when it is freed: for whoever stands in the middle of a callback */

    int64_t idle_us; /* streams */
    size_t given;    /* of an answer that comes in pieces */
    bool stalled;
    struct api_watch *watch;
    struct loop_timer beat, end;
};

/* One thing that may happen to a call. */
struct sim_chance {
    unsigned per_mille;
    enum sim_fate fate;
    bool writes_only;
};

/* The first of these that happens, or FATE_ANSWERED. */
enum sim_fate sim_draw(struct rand *rand, const struct sim_chance *chances, size_t count,
                       bool is_write);

void sim_call_finish(struct http_call *call); /* frees it */
void sim_call_fail(struct http_call *call, enum err_class class, const char *why);
void sim_call_answer(struct http_call *call, int status, struct str body, int retry_after);
int64_t sim_delay_us(struct sim_net *net);
bool sim_call_is_cut(const struct http_call *call);

void sim_call_on_answer(void *context); /* the answer has come back */
void sim_call_reset(void *context);     /* the connection breaks */

/* ---- sim_agent.c ---- */
/* Whether it hangs: the call will arrive when it goes on. */
bool sim_agent_holds(struct http_call *call, void (*arrive)(void *context));
/* By itself: slurmctld does not hear of it. */
bool sim_agent_answers(struct http_call *call);

/* ---- sim_slurm.c ---- */
enum sim_fate sim_slurm_fate(struct sim_net *net, bool is_write);
bool sim_slurm_work(struct http_call *call, bool (*serve_write)(struct http_call *call));
/* Hands it to slurmrestd. Without a ticket the answer is there. */
void sim_slurm_serve(struct http_call *call);
int64_t sim_slurm_delay_us(struct sim_net *net);
void sim_slurm_stream(struct http_call *call); /* the answer, in pieces */
int64_t sim_slurm_answer_delay_us(struct http_call *call);

/* ---- sim_stream.c ---- */
void sim_stream_heard(struct http_call *call); /* silence is counted from now on */
/* Hands a piece over. False when the owner gave the stream up meanwhile: it is freed then. */
bool sim_stream_give(struct http_call *call, struct str piece);
void sim_stream_open(struct http_call *call);   /* it has arrived */
void sim_stream_notice(struct http_call *call); /* something was written */
void sim_stream_done(struct http_call *call);   /* frees what a stream has */

#endif
