/* client.h - calls to slurmrestd: as data, with a deadline, and with an error class at the end.
 *
 * A call ends once, by its callback, from the loop. On the way the client does what every caller
 * would otherwise have to: it finds out which version the server speaks, puts in the token, has a
 * token renewed and tries once more when it is refused (a refused token is proof that nothing was
 * done), and repeats reads that got no answer, with growing pauses, until their deadline.
 *
 * Invariants: a write is sent at most once, but for a refused token and for proof of the agent
 * (agent.h) that nothing was done; of the long lists (jobs,
 * nodes) one at a time is under way; nothing is called back from inside a call of this header. */
#ifndef SLINC_SLURM_CLIENT_H
#define SLINC_SLURM_CLIENT_H

#include "codec/json.h"
#include "io/http.h"
#include "io/loop.h"
#include "slurm/endpoint.h"
#include "slurm/error.h"
#include "slurm/token.h"

struct slurm_client;
struct slurm_call;

struct slurm_client_options {
    unsigned version;         /* 42 to 45; 0: the newest that the server has */
    const char *user;         /* act as this user; needs SlurmUser's token. NULL: the token's own */
    int64_t read_timeout_us;  /* 0 = 60 s, with all repetitions */
    int64_t write_timeout_us; /* 0 = 12 s: Slurm's usual MessageTimeout and 2 s */
    int64_t try_timeout_us;   /* of one try of a read that is no long list; 0 = 15 s */
    uint64_t seed;            /* of the pauses' jitter; 0: random */
    /* Asked before a write that was refused is sent again, with a new token or to slurmrestd. NULL:
     * it is always sent. */
    bool (*may_write)(void *context);
    void *may_write_context;
};

/* Loop, transport and token are borrowed and outlive the client. Four connections are plenty for
 * the transport. Options may be NULL. */
struct slurm_client *slurm_client_new(struct loop *loop, struct http_transport *transport,
                                      struct slurm_token *token,
                                      const struct slurm_client_options *options);
void slurm_client_free(struct slurm_client *client); /* what is under way ends without callback */

struct loop *slurm_client_loop(const struct slurm_client *client);
struct slurm_token *slurm_client_token(const struct slurm_client *client);
void slurm_client_set_token(struct slurm_client *client, struct slurm_token *token);
const char *slurm_client_user(const struct slurm_client *client); /* acts as; "" for the token's */
unsigned slurm_client_version(const struct slurm_client *client); /* 0 while it is not known */
unsigned slurm_client_in_flight(const struct slurm_client *client);

struct slurm_param {
    const char *name;
    struct str value; /* escaped by the client */
};

/* One element of a list, borrowed until this returns; sent_us as in slurm_answer. It may come
 * before an answer turns out to be worth nothing: only slurm_done tells. Must not end the call. */
typedef void (*slurm_item)(void *context, const struct json *item, int64_t sent_us);

/* Borrowed until slurm_send returns. */
struct slurm_request {
    enum slurm_verb verb;
    enum slurm_endpoint endpoint;
    struct str name;                 /* where the endpoint takes one; escaped by the client */
    const struct slurm_param *query; /* a name may come several times */
    size_t query_count;
    struct str body;    /* JSON text */
    const char *user;   /* instead of the client's; NULL for that */
    int64_t timeout_us; /* 0: the client's */
    int64_t token_s;    /* above 0: with a token that lives only so long, where we mint */
    bool once;          /* a read that is not repeated */
    slurm_item item; /* reads of lists: takes the elements, with the context of done; means once */
};

struct slurm_answer {
    struct slurm_error error;
    const struct json *body; /* whole, also of a refusal; NULL for none. Until the callback ends. Of
                                a long list whose elements were taken: without them */
    struct json_doc **owner; /* of body; private, see slurm_answer_take */
    unsigned version;        /* 42 to 45; 0 when it never got so far */
    unsigned tries;
    int64_t sent_us; /* loop time of the last try: what the answer shows is at least as new */
    int64_t took_us; /* from slurm_send on */
    size_t bytes;    /* of the body */
    int64_t retry_after_us; /* of a 429: how long the server asks for a pause; else 0 */
    bool by_agent;          /* the last try went to the agent */
};

typedef void (*slurm_done)(void *context, const struct slurm_answer *answer);

/* For a callback that goes on reading later: the document of the body is now the caller's to free.
 * NULL when there is none. */
struct json_doc *slurm_answer_take(const struct slurm_answer *answer);

struct slurm_call *slurm_send(struct slurm_client *client, const struct slurm_request *request,
                              slurm_done done, void *context);
void slurm_call_cancel(struct slurm_call *call); /* no callback follows; a write may still happen */

/* Told of every call that ends, before its callback; for metrics. */
typedef void (*slurm_observer)(void *context, enum slurm_verb verb, enum slurm_endpoint endpoint,
                               const struct slurm_answer *answer);
void slurm_client_observe(struct slurm_client *client, slurm_observer observer, void *context);

#endif
