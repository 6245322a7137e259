/* fetch.c - reads some objects from the API server. */
#include "cli/fetch.h"

#include <stdio.h>

struct fetches {
    struct loop *loop;
    size_t left;
};

static void on_answer(void *context, const struct kube_answer *answer)
{
    struct fetch *fetch = context;

    fetch->outcome = answer->outcome;
    fetch->status = answer->status;
    (void)snprintf(fetch->message, sizeof(fetch->message), "%s", answer->message);
    if (answer->outcome == KUBE_DONE && answer->object)
        fetch->doc = json_clone(answer->object);
    if (--fetch->all->left == 0)
        loop_stop(fetch->all->loop);
}

void fetch_all(struct loop *loop, struct http_transport *transport, struct fetch *fetches,
               size_t count)
{
    struct kube_client *client = kube_client_new(loop, transport);
    struct fetches all = { .loop = loop, .left = count };

    for (size_t i = 0; i < count; i++) {
        fetches[i].all = &all;
        (void)kube_send(client, &fetches[i].request, on_answer, &fetches[i]);
    }
    if (count > 0)
        loop_run(loop);
    kube_client_free(client);
}
