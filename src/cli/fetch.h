/* fetch.h - reads some objects from the API server, all at once, and waits for them. */
#ifndef SLINC_CLI_FETCH_H
#define SLINC_CLI_FETCH_H

#include "kube/client.h"

struct fetch {
    struct kube_request request; /* in */
    enum kube_outcome outcome;   /* out; of DONE, doc is the answer, to be freed */
    int status;
    char message[240];
    struct json_doc *doc;
    struct fetches *all; /* private */
};

/* Each has its deadline; the loop runs until the last has ended. */
void fetch_all(struct loop *loop, struct http_transport *transport, struct fetch *fetches,
               size_t count);

#endif
