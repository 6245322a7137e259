/* client_private.h - what client.c, agent.c, version.c, wire.c, intake.c and calls.c share. Private
 * to src/slurm. */
#ifndef SLINC_SLURM_CLIENT_PRIVATE_H
#define SLINC_SLURM_CLIENT_PRIVATE_H

#include "base/list.h"
#include "base/rand.h"
#include "slurm/agent.h"
#include "slurm/client.h"

enum { SLURM_MAX_PATH = 96 * 1024 }; /* SLURM_MAX_IDS job ids in a query fit */

struct slurm_agent {
    struct http_transport *transport; /* NULL: there is none */
    struct http_call *ping;
    struct loop_timer timer;    /* of the next ping */
    bool is_up;                 /* may be used: no call was lost since the last good ping */
    bool is_known, was_up;      /* the last ping said so */
    int64_t pause_us;           /* between pings while it is down */
    char why[160], version[32]; /* as in slurm_agent_status */
    uint64_t answered, passed_on, lost;
};

struct slurm_client {
    struct loop *loop;
    struct http_transport *transport;
    struct slurm_token *token;
    uint64_t token_turn; /* how often it was another one's turn: marks are those of one token */
    struct slurm_client_options options;
    char *user;
    struct rand rand;
    struct list calls;
    unsigned in_flight;
    struct slurm_call *bulk; /* the long list under way */

    unsigned version; /* 0 while not known */
    unsigned asked;   /* the version that the ping asks for */
    struct http_call *ping;
    struct slurm_agent agent;

    slurm_observer observer;
    void *observer_context;
};

enum call_state {
    CALL_WAITS_FOR_VERSION,
    CALL_WAITS_FOR_TURN,
    CALL_SENT,
    CALL_PAUSES,     /* will advance */
    CALL_ENDS_LATER, /* with `error`, from the loop */
    CALL_ENDED,
};

struct slurm_call {
    struct list link;
    struct slurm_client *client;
    enum slurm_verb verb;
    enum slurm_endpoint endpoint;
    char *name, *query; /* escaped */
    char *body;
    size_t body_len;
    char *user;
    int64_t token_s;
    bool once;
    slurm_item item;             /* NULL: the answer comes as a whole */
    struct slurm_intake *intake; /* while a long list arrives */

    enum call_state state;
    struct loop_timer timer; /* the deadline while waiting, the end of a pause, an end to be told */
    struct http_call *http;  /* while CALL_SENT */
    int64_t started_us, deadline_us, sent_us;
    unsigned tries;
    size_t bytes;           /* of the last answer's body */
    int64_t retry_after_us; /* of the last answer, when it was a 429 */
    bool renewed;           /* the token, after a refusal */
    bool is_passed_on;      /* the agent did not do it: slurmrestd is asked */
    bool is_by_agent;       /* the last try */
    uint64_t token_mark;    /* of the token that the last try carried, */
    uint64_t token_turn;    /* and which one that was */
    struct slurm_error error;
    slurm_done done;
    void *context;
};

/* ---- wire.c ---- */

/* The body must be in the request already; -ERR_DENIED when there is no token. The agent has a
 * token of its own, and gets none. */
int slurm_wire_headers(struct slurm_client *client, const char *user, int64_t token_s,
                       bool to_agent, struct http_request *http, struct err *err);
/* name and query are escaped already, and "" when there is none. */
void slurm_wire_path(struct buf *path, unsigned version, enum slurm_endpoint endpoint,
                     const char *name, const char *query);
/* The document is NULL when the body is no JSON. */
void slurm_wire_read(enum slurm_verb verb, enum slurm_endpoint endpoint,
                     const struct http_answer *http, struct json_doc **ret_doc,
                     struct slurm_error *ret_error);

/* ---- intake.c ---- */

/* For a try whose elements are handed on as they arrive. */
void slurm_intake_start(struct slurm_call *call, struct http_request *http,
                        struct http_handlers *handlers);
void slurm_intake_stop(struct slurm_call *call); /* also when it was not started */
/* The answer without its elements; false when it did not come in pieces after all. */
bool slurm_intake_rest(const struct slurm_call *call, struct str *ret_rest);
/* The same from an answer that came as a whole. */
void slurm_intake_tree(struct slurm_call *call, const struct json *body);

/* ---- agent.c ---- */

bool slurm_agent_takes(const struct slurm_call *call);
void slurm_agent_lost(struct slurm_client *client); /* it did not answer: it is pinged again */
void slurm_agent_done(struct slurm_client *client);

/* ---- version.c ---- */

/* Sees to it that the version is being asked for; slurm_version_settled tells the end. */
void slurm_version_ask(struct slurm_client *client);

/* ---- client.c ---- */

/* The calls that waited for the version go on, or end with the error. Calls nobody back. */
void slurm_version_settled(struct slurm_client *client, const struct slurm_error *error);

/* Ends as any other call: by its callback, from the loop, with INVALID. */
struct slurm_call *slurm_send_refused(struct slurm_client *client, enum slurm_verb verb,
                                      enum slurm_endpoint endpoint, const struct err *why,
                                      slurm_done done, void *context);

#endif
