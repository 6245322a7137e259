/* intake.c - the answer to a list, handed on element by element: while it arrives where it may be
 * long, from its tree where it is short.
 *
 * Holds: elements are handed on only of an answer with status 200; after the first that cannot be
 * read, none is, and the answer ends as one that is broken. */
#include "base/mem.h"
#include "slurm/client_private.h"
#include "slurm/object.h"
#include "slurm/split.h"

struct slurm_intake {
    struct slurm_split split;
    int status;
    bool broken;
};

static void on_head(void *context, int status)
{
    struct slurm_call *call = context;

    call->intake->status = status;
}

static bool hand_on(struct slurm_call *call, struct str text)
{
    auto_json_doc struct json_doc *doc = NULL;

    if (json_parse(text, text.len, &doc, NULL) < 0)
        return false;
    call->item(call->context, json_root(doc), call->sent_us);
    return true;
}

static void on_data(void *context, struct str piece)
{
    struct slurm_call *call = context;
    struct slurm_intake *intake = call->intake;
    struct str item;
    int result = 1;

    call->bytes += piece.len;
    if (intake->status != 200) {
        buf_add_str(&intake->split.rest, piece);
        return;
    }
    if (call->bytes > slurm_endpoint(call->endpoint)->max_answer)
        intake->broken = true;
    while (!intake->broken && (result = slurm_split_next(&intake->split, &piece, &item, NULL)) > 0)
        intake->broken = !hand_on(call, item);
    if (result < 0)
        intake->broken = true;
}

void slurm_intake_start(struct slurm_call *call, struct http_request *http,
                        struct http_handlers *handlers)
{
    const struct slurm_endpoint_row *row = slurm_endpoint(call->endpoint);

    slurm_intake_stop(call);
    call->intake = mem_alloc(sizeof(*call->intake));
    slurm_split_init(&call->intake->split, row->array, SLURM_MAX_OBJECT_TEXT);
    http->stream = true;
    http->idle_us = call->client->options.try_timeout_us;
    handlers->on_head = on_head;
    handlers->on_data = on_data;
}

void slurm_intake_stop(struct slurm_call *call)
{
    if (!call->intake)
        return;
    slurm_split_done(&call->intake->split);
    mem_free(call->intake);
    call->intake = NULL;
}

bool slurm_intake_rest(const struct slurm_call *call, struct str *ret_rest)
{
    const struct slurm_intake *intake = call->intake;

    if (!intake || intake->status == 0)
        return false;
    *ret_rest = intake->broken ? STR("") : slurm_split_rest(&intake->split);
    return true;
}

void slurm_intake_tree(struct slurm_call *call, const struct json *body)
{
    struct json_iter iter = json_iter(json_get(body, slurm_endpoint(call->endpoint)->array));
    const struct json *item;

    while (json_next_item(&iter, &item))
        call->item(call->context, item, call->sent_us);
}
