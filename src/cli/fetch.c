/* fetch.c - reads or writes some objects of the API server. */
#include "cli/fetch.h"

#include <stdio.h>

enum { MAX_TEXT = 32 << 20, DEADLINE_US = 5000000 };

struct fetches {
    struct loop *loop;
    size_t left;
};

static void end_one(struct fetch *fetch)
{
    fetch->took_us = loop_now_us(fetch->all->loop) - fetch->sent_us;
    if (--fetch->all->left == 0)
        loop_stop(fetch->all->loop);
}

static void on_answer(void *context, const struct kube_answer *answer)
{
    struct fetch *fetch = context;

    fetch->outcome = answer->outcome;
    fetch->status = answer->status;
    (void)snprintf(fetch->message, sizeof(fetch->message), "%s", answer->message);
    if (answer->outcome == KUBE_DONE && answer->object)
        fetch->doc = json_clone(answer->object);
    end_one(fetch);
}

/* ---- a path ---- */

static void on_text(void *context, const struct http_answer *answer)
{
    struct fetch *fetch = context;
    struct json_doc *doc = NULL;
    bool is_json = json_parse(answer->body, MAX_TEXT, &doc, NULL) == 0;

    fetch->status = answer->status;
    fetch->outcome = kube_outcome_of(KUBE_GET, answer->status, "");
    fetch->is_text = !is_json;
    if (answer->status != 200) {
        struct str said =
            is_json ? json_str(json_get(json_root(doc), "message")) : str_trim(answer->body);

        (void)snprintf(fetch->message, sizeof(fetch->message), "%d: " STR_FMT, answer->status,
                       STR_ARG(str_sub(said, 0, sizeof(fetch->message) - 8)));
        json_doc_free(doc);
    } else if (is_json) {
        fetch->doc = doc;
    } else {
        buf_add_str(&fetch->text, answer->body);
    }
    end_one(fetch);
}

static void on_failed(void *context, const struct err *why)
{
    struct fetch *fetch = context;

    fetch->outcome = KUBE_UNAVAILABLE;
    (void)snprintf(fetch->message, sizeof(fetch->message), "%s", why->text);
    end_one(fetch);
}

static void send_path(struct loop *loop, struct http_transport *transport, struct fetch *fetch)
{
    int64_t timeout_us = fetch->request.timeout_us ? fetch->request.timeout_us : DEADLINE_US;
    const struct http_request request = {
        .method = "GET",
        .path = fetch->path,
        .headers = { { fetch->header_name, fetch->header_value, true } },
        .header_count = fetch->header_name ? 1 : 0,
        .deadline_us = loop_now_us(loop) + timeout_us,
        .max_answer = MAX_TEXT,
    };
    const struct http_handlers handlers = { .answered = on_text,
                                            .failed = on_failed,
                                            .context = fetch };

    buf_init(&fetch->text, MAX_TEXT);
    (void)http_send(transport, &request, &handlers);
}

/* ---- all ---- */

void fetch_all(struct loop *loop, struct http_transport *transport, struct fetch *fetches,
               size_t count)
{
    struct kube_client *client = kube_client_new(loop, transport);
    struct fetches all = { .loop = loop };

    for (size_t i = 0; i < count; i++) {
        struct fetch *fetch = &fetches[i];

        if (!fetch->request.resource && !fetch->path)
            continue;
        fetch->all = &all;
        fetch->sent_us = loop_now_us(loop);
        all.left++;
        if (fetch->path)
            send_path(loop, transport, fetch);
        else
            (void)kube_send(client, &fetch->request, on_answer, fetch);
    }
    if (all.left > 0)
        loop_run(loop);
    kube_client_free(client);
}

void fetch_done(struct fetch *fetches, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_doc_free(fetches[i].doc);
        buf_done(&fetches[i].text);
    }
}

const struct json *fetch_root(const struct fetch *fetch)
{
    return fetch->doc ? json_root(fetch->doc) : NULL;
}
