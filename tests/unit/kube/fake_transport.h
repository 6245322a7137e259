/* fake_transport.h - an http_transport for tests: scripted answers on a virtual loop.
 *
 * A request is recorded, travels, arrives (then an answer is chosen: the first queued one for its
 * method and path, else the server function), and is answered after the answer's delay. What holds
 * for the network holds here: nothing is called back from inside send; a deadline that passes
 * is ERR_UNKNOWN (ERR_TIMEOUT for a request that can never arrive); a request that was cancelled or
 * timed out while travelling still arrives, and its answer is thrown away. A request that nobody
 * has an answer for prints itself and aborts. */
#ifndef SLINC_TESTS_KUBE_FAKE_TRANSPORT_H
#define SLINC_TESTS_KUBE_FAKE_TRANSPORT_H

#include "io/http.h"
#include "io/loop.h"

#define FAKE_ALWAYS UINT32_MAX

struct fake_answer {
    int status;               /* 0 and no class: silence, until the deadline */
    const char *body;         /* copied; NULL = none. For a stream: its first piece */
    const char *content_type; /* must outlive the fake; NULL = "application/json" */
    int64_t retry_after_us;
    int64_t delay_us; /* from arrival to answer */
    int class;        /* enum err_class: fails so instead of answering */
    bool ends;        /* a stream ends after the body; else it stays open */
    uint32_t times;   /* how often it is given; 0 = once */
};

struct fake_sent { /* one request, as it was sent */
    char *method, *path, *body;
    struct {
        char *name, *value;
    } headers[HTTP_MAX_HEADERS];
    unsigned header_count;
    int64_t at_us, deadline_us, idle_us;
    size_t max_answer;
    bool stream, cancelled;
};

struct fake_transport;

/* The loop is borrowed, and outlives the fake. Free it by either of the two. */
struct fake_transport *fake_transport_new(struct loop *loop);
void fake_transport_free(struct fake_transport *fake);
struct http_transport *fake_http(struct fake_transport *fake);

/* Queues an answer. A path without '?' matches requests with any query. */
void fake_answer(struct fake_transport *fake, const char *method, const char *path,
                 struct fake_answer answer);
/* The same with a Status object, as the API server refuses: 404, "NotFound", "pods \"x\" not
 * found".
 */
void fake_status(struct fake_transport *fake, const char *method, const char *path, int status,
                 const char *reason, const char *message);
size_t fake_answers_left(const struct fake_transport *fake); /* of those with a number of times */

/* Answers what nothing is queued for; called when the request arrives. The answer's body need
 * only live until the next call. */
typedef struct fake_answer (*fake_server)(void *context, const struct fake_sent *sent);
void fake_serve(struct fake_transport *fake, fake_server server, void *context);

/* How long a request travels; negative: it never arrives, and fails with ERR_UNAVAILABLE after that
 * many microseconds. Without it requests arrive at once. */
void fake_travel(struct fake_transport *fake,
                 int64_t (*travel_us)(void *context, const struct fake_sent *sent), void *context);

/* What was sent, in order. */
size_t fake_sent_count(const struct fake_transport *fake);
const struct fake_sent *fake_sent(const struct fake_transport *fake, size_t index);
const struct fake_sent *fake_last_sent(const struct fake_transport *fake);
const char *fake_sent_header(const struct fake_sent *sent, const char *name); /* NULL = none */
void fake_forget_sent(struct fake_transport *fake); /* invalidates the pointers above */

/* The youngest open stream at this path (matched as above); false when there is none. What is fed
 * comes out of the loop, one piece per call, in order. */
bool fake_stream_feed(struct fake_transport *fake, const char *path, const char *piece);
bool fake_stream_end(struct fake_transport *fake, const char *path);
bool fake_stream_break(struct fake_transport *fake, const char *path, int class);
unsigned fake_open_streams(const struct fake_transport *fake);

/* Runs the loop for this long on its virtual clock. */
void fake_run_for(struct fake_transport *fake, int64_t us);

#endif
