/* watch.h - one stream of events for one namespace, or all, into the informer's cache: private to
 * the informer.
 *
 * A watch is told where the list of its namespace ended and started from there. From then on it
 * keeps itself alive, resuming at its last version after a back-off of its own, until it is stopped
 * or its history is lost: then it stops itself and says so once. */
#ifndef SLINC_KUBE_WATCH_H
#define SLINC_KUBE_WATCH_H

#include "base/rand.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/watch_lines.h"

enum { KUBE_MAX_VERSION = 64 };

/* What all watches of one informer share. The callbacks may stop watches, and free none. */
struct kube_watch_group {
    struct kube_client *client;
    struct kube_cache *cache;
    struct rand *rand;
    struct loop *loop;
    char *selectors; /* "&labelSelector=...", escaped */
    int64_t idle_us;
    size_t max_object;
    void (*moved)(void *context);   /* a watch may have passed a version */
    void (*healthy)(void *context); /* a stream ended that had lived for a while */
    void (*expired)(void *context, int64_t retry_after_us); /* a watch stopped: list anew */
    void *context;
    uint64_t undecoded; /* objects */
};

struct kube_watch {
    struct kube_watch_group *group;
    char *ns;                /* "" = all */
    struct http_call *call;  /* the stream, or */
    struct loop_timer timer; /* the wait for the next one; neither when stopped */
    char version[KUBE_MAX_VERSION];
    uint64_t version_number; /* 0 when the version is no number */
    struct watch_lines lines;
    int status;         /* of the stream's head; 0 before it */
    struct buf refusal; /* what came instead of events */
    int64_t since_us;
    unsigned failures, refusals; /* in a row */
    int64_t last_contact_us;     /* 0 = never */
    bool is_denied;              /* the informer's: its namespace may not be listed */
    struct err last_error;
};

void kube_watch_init(struct kube_watch *watch, struct kube_watch_group *group, const char *ns);
void kube_watch_done(struct kube_watch *watch);

/* The list of its namespace ended at this version; false when that is none. */
bool kube_watch_listed(struct kube_watch *watch, struct str version);
void kube_watch_start(struct kube_watch *watch);
void kube_watch_stop(struct kube_watch *watch); /* no callback comes after it */

/* A sign of life, and an object of its namespace, by list or by stream. */
void kube_watch_heard(struct kube_watch *watch);
void kube_watch_take(struct kube_watch *watch, const struct json *object);

/* The wait after one more failure in a row: 0.2 s doubled each time, to 15 s at most. */
int64_t kube_watch_wait(struct rand *rand, unsigned *failures, int64_t retry_after_us);

#endif
