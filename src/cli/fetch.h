/* fetch.h - reads or writes some objects of the API server, all at once, and waits for them. */
#ifndef SLINC_CLI_FETCH_H
#define SLINC_CLI_FETCH_H

#include "kube/client.h"

struct fetch {
    struct kube_request request; /* in; without a resource nothing is sent */
    const char
        *path; /* in its place: GET of this path, which may be behind a proxy of the server */
    const char *header_name, *header_value; /* sent with it: a secret; NULL for none */
    const char *role;                       /* of our charts, which has the right to it; NULL */
    enum kube_outcome outcome;              /* out; of DONE, doc is the answer, to be freed */
    int status;
    char message[240];
    bool is_text; /* what refused a path answered no JSON: not the API server, but what is behind */
    struct json_doc *doc;
    struct buf text; /* of a path: what was answered, if it is no JSON */
    int64_t took_us;
    struct fetches *all; /* private */
    int64_t sent_us;
};

/* Each has its deadline; the loop runs until the last has ended. */
void fetch_all(struct loop *loop, struct http_transport *transport, struct fetch *fetches,
               size_t count);
void fetch_done(struct fetch *fetches, size_t count);

/* NULL when it was not read. */
const struct json *fetch_root(const struct fetch *fetch);

#endif
