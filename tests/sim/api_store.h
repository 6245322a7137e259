/* api_store.h - a model of the Kubernetes API server: objects, verbs, and what watchers see.
 *
 * It has no sockets, no threads and no time of its own: a request is text, the answer is text, the
 * clock is given, and what real controllers do in the background (garbage collection, emptying
 * namespaces) happens one step per call of api_store_step. So a simulation decides when everything
 * happens, and the same calls always give the same answers.
 *
 * How far it can be trusted is a test: the conformance script runs against this and against a real
 * API server, and the answers are compared (conformance/script.json). */
#ifndef SLINC_SIM_API_STORE_H
#define SLINC_SIM_API_STORE_H

#include "base/buf.h"
#include "base/clock.h"
#include "codec/json.h"

#include <stdint.h>

/* What kinds differ in. */
enum api_trait {
    API_NAMESPACED = 1,
    API_HAS_STATUS = 2,            /* has a status subresource */
    API_HAS_GENERATION = 4,        /* counts changes of what is neither metadata nor status */
    API_UPSERTS = 8,               /* PUT creates what is not there */
    API_NEEDS_VERSION = 16,        /* PUT must name a resourceVersion */
    API_RETURNS_DELETED = 32,      /* DELETE answers with the object, not with a Status */
    API_GRACEFUL = 64,             /* DELETE waits for whoever runs it: pods */
    API_CUSTOM = 128,              /* a custom resource: kept as it came, kind in lists */
    API_NOT_STORED = 256,          /* reviews: answered, then forgotten */
    API_LABEL_NAME = 512,          /* names without dots */
    API_COUNTS_ANNOTATIONS = 1024, /* generation: other annotations count too (Deployments) */
};

struct api_kind {
    const char *group, *version, *plural, *kind;
    unsigned traits;
};

struct api_store;

/* The clock is borrowed; the seed decides generated names. */
struct api_store *api_store_new(const struct clock *clock, uint64_t seed);
void api_store_free(struct api_store *store);
void api_store_add_kind(struct api_store *store, const struct api_kind *kind); /* borrowed */

/* ---- calls ---- */

struct api_request {
    const char *method;
    struct str target; /* path and query */
    struct str content_type;
    struct str body;
    const char *user; /* who asks: for hooks and listeners, not for permissions */
};

struct api_answer {
    int status;
    struct buf body;
    int retry_after; /* seconds; 0 = no such header */
};

void api_answer_init(struct api_answer *answer);
void api_answer_done(struct api_answer *answer);

/* Any call but a watch. */
void api_serve(struct api_store *store, const struct api_request *request,
               struct api_answer *answer);
/* The answer of a server in trouble: a Status of this code and reason. */
void api_answer_trouble(struct api_answer *answer, int status, const char *reason,
                        const char *message);

/* ---- watches ---- */

struct api_watch;

bool api_is_watch(const struct api_request *request);
/* 0, or -class with the refusal in the answer. */
int api_watch_open(struct api_store *store, const struct api_request *request,
                   struct api_answer *answer, struct api_watch **ret_watch);
void api_watch_free(struct api_watch *watch);
/* Appends the next event as a line; false when there is none now. */
bool api_watch_next(struct api_watch *watch, struct buf *out);
bool api_watch_has_ended(const struct api_watch *watch); /* an ERROR event was its last */
/* Appends a bookmark if the watch asked for them and has given everything before it. */
void api_watch_bookmark(struct api_watch *watch, struct buf *out);
int64_t api_watch_timeout_us(const struct api_watch *watch); /* what it asked for; 0 = nothing */
/* Forgets history up to this version: older watches and pages get 410. */
void api_store_compact(struct api_store *store, uint64_t version);

/* ---- looking in, for checks ---- */

uint64_t api_store_version(const struct api_store *store);
/* The plural alone, or "plural.group". */
const struct json *api_store_find(const struct api_store *store, const char *plural, const char *ns,
                                  const char *name); /* NULL when absent */
/* All of a kind, in order of insertion. */
typedef void (*api_visit)(void *context, const struct json *object);
void api_store_visit(const struct api_store *store, const char *plural, api_visit visit,
                     void *context);

struct api_change {
    const struct api_kind *kind;
    const char *user;
    uint64_t version;
    const struct json *old, *next; /* NULL for new and gone objects */
};
typedef void (*api_listener)(void *context, const struct api_change *change);
void api_store_listen(struct api_store *store, api_listener listener, void *context);

/* ---- admission ---- */

/* Looks at what is about to be written (next is NULL for a deletion), may change it, or refuses
 * with -class and a sentence in err: the caller gets a 403, or a 422 for ERR_INVALID. */
struct api_admission {
    const struct api_kind *kind;
    const char *user;
    const struct json *old;
    struct json_mut *next;
    struct json_build *build;
};
typedef int (*api_hook)(void *context, const struct api_admission *admission, struct err *err);
void api_store_admit(struct api_store *store, api_hook hook, void *context);

/* ---- what the controllers of a cluster do in the background ---- */

bool api_store_has_work(const struct api_store *store);
bool api_store_step(struct api_store *store); /* one deletion or one finalizer; false: none left */

#endif
