/* client.h - one call to the API server, as data, and what became of it.
 *
 * A request is plain data, so that plans can hold it, tests compare it and the executor time it.
 * The answer has one of seven outcomes; what to do next depends on the outcome alone:
 *
 *   DONE         it happened; `object` is what the server has now
 *   CONFLICT     somebody wrote first, or it exists already, or a JSON patch does not fit what is
 *                there (a test failed): look again, plan again
 *   GONE         a fact: it is not there (404), or the history asked for is not (410); only when
 *                the API server says so with a reason, else it is UNAVAILABLE with that status
 *   DENIED       401, 403: who we are does not suffice
 *   INVALID      the request can never succeed as it is
 *   UNAVAILABLE  it did not happen, and may later (429, 503 with a reason, no connection); see
 *                retry_after_us
 *   UNKNOWN      a write that may or may not have happened; only a read can tell
 *
 * Invariant: a write is sent at most once per kube_send. */
#ifndef SLINC_KUBE_CLIENT_H
#define SLINC_KUBE_CLIENT_H

#include "codec/json.h"
#include "io/http.h"
#include "io/loop.h"
#include "kube/resource.h"

enum kube_verb {
    KUBE_GET,
    KUBE_LIST,
    KUBE_CREATE,
    KUBE_MERGE_PATCH,     /* application/merge-patch+json */
    KUBE_STRATEGIC_PATCH, /* application/strategic-merge-patch+json; not for custom resources */
    KUBE_JSON_PATCH,      /* application/json-patch+json */
    KUBE_UPDATE,
    KUBE_DELETE,
};

enum kube_outcome {
    KUBE_DONE,
    KUBE_CONFLICT,
    KUBE_GONE,
    KUBE_DENIED,
    KUBE_INVALID,
    KUBE_UNAVAILABLE,
    KUBE_UNKNOWN,
};

const char *kube_verb_name(enum kube_verb verb);
const char *kube_outcome_name(enum kube_outcome outcome);

/* Borrowed until kube_send returns. */
struct kube_request {
    enum kube_verb verb;
    const struct kube_resource *resource;
    const char *ns, *name, *subresource; /* NULL where they do not apply */
    const char *query;                   /* without '?', already escaped; NULL for none */
    struct str body;                     /* JSON text */
    int64_t timeout_us;                  /* 0 = 30 s */
};

struct kube_answer {
    enum kube_outcome outcome;
    int status;             /* HTTP; 0 when there was no answer */
    const char *reason;     /* Kubernetes' machine word: "AlreadyExists"; "" when there is none */
    const char *message;    /* for people; never NULL */
    int64_t retry_after_us; /* 0 when the server named none */
    bool is_too_big;        /* no outcome is known because the answer is longer than we read */
    const struct json *object; /* DONE: the object or list; borrowed until the callback returns */
};

struct kube_client;
struct kube_call;

typedef void (*kube_done)(void *context, const struct kube_answer *answer);

/* The transport and the loop are borrowed and must outlive the client. */
struct kube_client *kube_client_new(struct loop *loop, struct http_transport *transport);
void kube_client_free(struct kube_client *client); /* cancels what is in flight */

struct loop *kube_client_loop(const struct kube_client *client);
struct http_transport *kube_client_transport(const struct kube_client *client);

/* done is called once, from the loop, unless the call is cancelled first. */
struct kube_call *kube_send(struct kube_client *client, const struct kube_request *request,
                            kube_done done, void *context);
void kube_call_cancel(struct kube_call *call);
unsigned kube_client_in_flight(const struct kube_client *client);

/* Told of every finished call, before its done, for metrics. The request comes without query and
 * body; status is 0 when there was no answer. */
typedef void (*kube_observer)(void *context, const struct kube_request *request, int status,
                              int64_t took_us);
void kube_client_observe(struct kube_client *client, kube_observer observer, void *context);

/* The outcome of an HTTP status and Status reason for a verb; exposed for tests and the simulator.
 */
enum kube_outcome kube_outcome_of(enum kube_verb verb, int status, const char *reason);

#endif
