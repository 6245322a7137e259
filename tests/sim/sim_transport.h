/* sim_transport.h - the network between our processes and the models of the API server and of
 * Slurm, with its ways of failing.
 *
 * A call travels to the server, takes effect there, and its answer travels back; each leg takes a
 * while that the seed decides, so that independent answers change places. What goes wrong is drawn
 * per call from struct sim_faults. A request that was sent cannot be taken back: when its sender
 * gives up, or dies, it still arrives. */
#ifndef SLINC_SIM_TRANSPORT_H
#define SLINC_SIM_TRANSPORT_H

#include "api_store.h"
#include "base/rand.h"
#include "io/http.h"
#include "io/loop.h"
#include "slurm_store.h"
#include "trace.h"

/* Chances per mille: of a call, or (streams) of a piece of data. */
struct sim_faults {
    unsigned slow;          /* takes seconds, not milliseconds */
    unsigned lost_before;   /* no connection: ERR_UNAVAILABLE */
    unsigned lost_between;  /* sent, never arrived: ERR_UNKNOWN, without effect */
    unsigned lost_after;    /* took effect, the answer is lost: ERR_UNKNOWN */
    unsigned late;          /* ERR_UNKNOWN first, the effect comes seconds later */
    unsigned conflict;      /* writes: 409 Conflict, without effect */
    unsigned too_many;      /* 429 with Retry-After */
    unsigned internal;      /* 500; a write may have taken effect all the same */
    unsigned unavailable;   /* 503 */
    unsigned timeout;       /* Slurm: 504 after MessageTimeout; a write may have taken effect */
    unsigned bad_gateway;   /* Slurm: 502 */
    unsigned agent_refuses; /* the agent: 501 or 503 */
    unsigned watch_broken;  /* the stream ends without an end */
    unsigned watch_stalled; /* nothing comes any more, and nobody says so */
    unsigned watch_expired; /* at opening: 410 */
};

/* What becomes of one call. */
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
    FATE_FORBIDDEN, /* 403, without effect: only chosen */
    FATE_CUT_OFF,   /* a partition: silence until the deadline */
    FATE_TIMEOUT,   /* 504 */
    FATE_TIMEOUT_DONE,
    FATE_BAD_GATEWAY,
    FATE_DIES_BEFORE, /* writes: the sender dies when it arrives, without effect; or with it */
    FATE_DIES_AFTER,
    FATE_DIES_LONG_BEFORE, /* and it takes effect when somebody else has its sender's place */
    FATE_DIES_AGES_BEFORE, /* and has had it for long */
    FATE_DRAWN,            /* by chance; no fate itself */
};

/* A write that one of our processes sent. */
struct sim_write {
    uint64_t number; /* from 1, by arrival */
    int64_t sent_us, arrived_us;
    char user[32], method[8], path[160];
    int status;  /* 0: no answer was made */
    bool effect; /* the server took it: a status below 300 */
};

enum { SIM_MAX_WRITES = 1 << 16 };

struct sim_net;

struct sim_hooks {
    /* Before a call leaves: for promises about who may send what. */
    void (*sent)(void *context, const char *user, const char *method, const char *path,
                 struct str body);
    /* An answer has reached its sender: what it tells is as new as sent_us. */
    void (*received)(void *context, const char *user, const char *method, const char *path,
                     int status, int64_t sent_us);
    /* The process of this user is to die now: free all it owns. */
    void (*crash)(void *context, const char *user);
    void *context;
};

/* All are borrowed. */
struct sim_net *sim_net_new(struct loop *loop, struct api_store *store, struct rand *rand,
                            struct trace *trace, const struct sim_hooks *hooks);
void sim_net_free(struct sim_net *net); /* after the transports */

void sim_net_set_faults(struct sim_net *net, const struct sim_faults *faults); /* NULL: none */
/* A partition: calls of this user whose path has `part` in it (NULL: all calls) get no answer, and
 * its open streams stall, until healed by user NULL. */
void sim_net_cut(struct sim_net *net, const char *user, const char *part);
/* From the hook `sent`: what becomes of the call that is about to leave. */
void sim_net_choose(struct sim_net *net, enum sim_fate fate);
/* The sender of write `number` dies when it arrives, by one of the fates FATE_DIES_*; 0: nobody.
 * What is not for Slurm does not come long after. */
void sim_net_crash_at(struct sim_net *net, uint64_t number, enum sim_fate fate);

uint64_t sim_net_write_count(const struct sim_net *net);
const struct sim_write *sim_net_write(const struct sim_net *net, uint64_t number); /* 1... */

struct http_transport *sim_transport_new(struct sim_net *net, const char *user);

/* ---- Slurm on the same network ---- */

/* Borrowed; its background work then happens on the loop. Writes to both are counted together. */
void sim_net_add_slurm(struct sim_net *net, struct slurm_store *slurm);
/* Of conflict, too_many, unavailable and watch_expired there is none. NULL: no faults. */
void sim_net_set_slurm_faults(struct sim_net *net, const struct sim_faults *faults);
struct http_transport *sim_transport_new_slurm(struct sim_net *net, const char *user);

/* ---- agents beside our processes, which go to the same Slurm; sim_agent.c ---- */

enum sim_agent {
    SIM_AGENT_UP,
    SIM_AGENT_DOWN,  /* killed: connections are refused, and what it had in hand breaks */
    SIM_AGENT_HANGS, /* stopped: what is sent to it is read when it goes on */
};

void sim_net_set_agent(struct sim_net *net, enum sim_agent state); /* of all; up at first */
struct http_transport *sim_transport_new_agent(struct sim_net *net, const char *user);

#endif
