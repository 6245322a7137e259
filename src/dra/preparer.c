/* preparer.c - prepares and unprepares claims.
 *
 * Prepare of one claim: read it, choose the CPUs, write the CDI file, write the checkpoint, answer.
 * A crash between any two of these leaves a CDI file that nobody uses yet: the kubelet asks again,
 * or unprepares the claim, which removes the file whether or not the checkpoint knows the claim. */
#include "dra/preparer.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "dra/claim.h"
#include "dra/kinds.h"
#include "dra/kubelet_api.h"
#include "dra/metrics.h"
#include "dra/pin_record.h"

#include <stdio.h>

enum {
    DEFAULT_PATIENCE_US = 35000000,
    RETRY_US = 500000,
    READ_TIMEOUT_US = 5000000,
    ARENA = 16 << 20,
    MAX_ANSWER = 4 << 20,
};

struct preparer {
    struct preparer_options options;
    struct loop *loop;
    const struct topology *topology;
    const char *problem;
    struct list calls; /* struct prepare_call */
};

struct prepare_item {
    struct prepare_call *call;
    const char *ns, *name, *uid;
    struct kube_call *read;
    struct loop_timer retry;
    struct err err; /* why it cannot be prepared, or was not the last time */
    bool is_done;
};

struct prepare_call {
    struct list link;
    struct preparer *preparer;
    struct grpc_call *grpc;
    struct arena arena;
    struct prepare_item *items;
    size_t count, open;
    int64_t until_us;
};

struct preparer *preparer_new(const struct preparer_options *options)
{
    struct preparer *preparer = mem_alloc(sizeof(*preparer));

    *preparer = (struct preparer){ .options = *options,
                                   .loop = kube_client_loop(options->client),
                                   .problem = "the plugin has not looked at the node yet" };
    if (!preparer->options.patience_us)
        preparer->options.patience_us = DEFAULT_PATIENCE_US;
    list_init(&preparer->calls);
    return preparer;
}

void preparer_set_node(struct preparer *preparer, const struct topology *topology,
                       const char *problem)
{
    preparer->topology = topology;
    preparer->problem = problem;
}

/* ---- the answer ---- */

static const char *text_of(struct arena *arena, struct str text)
{
    return arena_strndup(arena, text.at, text.len);
}

static struct protobuf_list list_of(struct arena *arena, struct str only)
{
    struct str *item = arena_alloc(arena, sizeof(*item));

    *item = only;
    return (struct protobuf_list){ item, 1 };
}

/* Without the names of requests a device is for all requests of its claim, as the cores are. */
static struct protobuf_list devices_of(struct arena *arena, const struct prepared_claim *claim)
{
    const struct json *list = json_get(json_root(claim->doc), "devices"), *row;
    struct kubelet_device *devices = arena_alloc_array(arena, json_len(list), sizeof(*devices));
    struct json_iter iter = json_iter(list);
    size_t count = 0;

    while (json_next_item(&iter, &row)) {
        auto_buf struct buf id;

        buf_init(&id, 1024);
        cdi_device_id(str_of(claim->uid), &id);
        devices[count++] = (struct kubelet_device){
            .pool = json_str(json_get(row, "pool")),
            .device = json_str(json_get(row, "device")),
            .cdi_ids = list_of(arena, str_of(text_of(arena, buf_str(&id)))),
            .share_id = json_str(json_get(row, "shareID")),
        };
    }
    return (struct protobuf_list){ devices, count };
}

static void reply(struct grpc_call *call, const struct protobuf_message *message,
                  const struct kubelet_answers *answers)
{
    auto_buf struct buf out;

    buf_init(&out, MAX_ANSWER);
    protobuf_encode(message, answers, &out);
    if (out.overflowed)
        grpc_fail(call, GRPC_RESOURCE_EXHAUSTED, "the answer is too large");
    else
        grpc_reply(call, buf_str(&out));
}

static void free_call(struct prepare_call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        loop_timer_stop(&call->items[i].retry);
        if (call->items[i].read)
            kube_call_cancel(call->items[i].read);
    }
    list_remove(&call->link);
    arena_done(&call->arena);
    mem_free(call);
}

static void answer_prepare(struct prepare_call *call)
{
    const struct preparer *preparer = call->preparer;
    struct kubelet_answer_entry *entries =
        arena_alloc_array(&call->arena, call->count, sizeof(*entries));

    for (size_t i = 0; i < call->count; i++) {
        const struct prepare_item *item = &call->items[i];
        struct kubelet_claim_answer *answer = arena_alloc(&call->arena, sizeof(*answer));
        const struct prepared_claim *claim =
            prepared_get(preparer->options.prepared, str_of(item->uid));

        answer->error = str_of(item->err.class ? item->err.text : "");
        if (!item->err.class && claim)
            answer->devices = devices_of(&call->arena, claim);
        entries[i] = (struct kubelet_answer_entry){ str_of(item->uid), answer };
    }
    reply(call->grpc, &kubelet_prepare_message,
          &(struct kubelet_answers){ .claims = { entries, call->count } });
    free_call(call);
}

/* ---- one claim ---- */

static void finish_item(struct prepare_item *item, const struct err *err)
{
    struct prepare_call *call = item->call;

    item->is_done = true;
    item->err = err ? *err : (struct err){ .class = 0 };
    metrics_add(call->preparer->options.metrics, &dra_metric_prepared, 1, err ? "error" : "ok",
                NULL);
    if (err)
        log_warn("claim not prepared", LOG_TEXT("namespace", item->ns),
                 LOG_TEXT("claim", item->name), LOG_ERROR(err));
    if (--call->open == 0)
        answer_prepare(call);
}

/* The last guard against a core in two claims: nobody else in Kubernetes checks. */
static int take_claim(struct preparer *preparer, struct prepared_claim *claim, struct err *err)
{
    const struct prepared_claim *other = prepared_overlap(preparer->options.prepared, claim);
    const struct json *root = json_root(claim->doc);
    int result;

    if (other) {
        result =
            err_set(err, ERR_UNAVAILABLE, /* it may be about to be unprepared */
                    "CPUs %s overlap CPUs %s of claim %s/%s, which is prepared on this node",
                    json_str(json_get(root, "cpus")).at,
                    json_str(json_get(json_root(other->doc), "cpus")).at, other->ns, other->name);
    } else if ((result = cdi_write(preparer->options.cdi, claim, err)) == 0) {
        log_info("claim prepared", LOG_TEXT("namespace", claim->ns), LOG_TEXT("claim", claim->name),
                 LOG_STR("job", json_str(json_get(root, "job"))),
                 LOG_STR("cpus", json_str(json_get(root, "cpus"))));
        return prepared_put(preparer->options.prepared, claim, err);
    }
    prepared_claim_free(claim);
    return result;
}

static void start_item(void *context);

static void retry_item(struct prepare_item *item, const struct err *err)
{
    struct prepare_call *call = item->call;

    item->err = *err;
    if (loop_now_us(call->preparer->loop) + RETRY_US >= call->until_us)
        finish_item(item, err);
    else
        loop_timer_start(call->preparer->loop, &item->retry, RETRY_US, start_item, item);
}

static void on_claim(void *context, const struct kube_answer *answer)
{
    struct prepare_item *item = context;
    struct preparer *preparer = item->call->preparer;
    struct prepared_claim *claim = NULL;
    struct err err = { .class = 0 };
    int result;

    item->read = NULL;
    if (answer->outcome == KUBE_UNAVAILABLE || answer->outcome == KUBE_UNKNOWN) {
        err_write(&err, ERR_UNAVAILABLE, "cannot read the claim: %s", answer->message);
        retry_item(item, &err);
        return;
    }
    if (answer->outcome != KUBE_DONE) {
        err_write(&err, ERR_NOT_FOUND, "cannot read the claim: %s", answer->message);
        finish_item(item, &err);
        return;
    }
    if (!preparer->topology)
        result = err_set(&err, ERR_INVALID, "this node cannot pin: %s", preparer->problem);
    else
        result = claim_read(answer->object, str_of(item->uid), preparer->options.node,
                            preparer->topology, &claim, &err);
    if (result == 0)
        result = take_claim(preparer, claim, &err);
    if (result == -ERR_UNAVAILABLE)
        retry_item(item, &err);
    else
        finish_item(item, result < 0 ? &err : NULL);
}

/* A claim that is prepared already is answered from the checkpoint; its CDI file may be gone. */
static void start_item(void *context)
{
    struct prepare_item *item = context;
    struct preparer *preparer = item->call->preparer;
    const struct prepared_claim *claim =
        prepared_get(preparer->options.prepared, str_of(item->uid));
    struct err err = { .class = 0 };

    if (!pin_record_is_name(str_of(item->uid))) {
        err_write(&err, ERR_INVALID, "'%s' is no UID of a claim", item->uid);
        finish_item(item, &err);
    } else if (claim) {
        int result = cdi_write(preparer->options.cdi, claim, &err);

        finish_item(item, result < 0 ? &err : NULL);
    } else {
        item->read = kube_send(preparer->options.client,
                               &(struct kube_request){ .verb = KUBE_GET,
                                                       .resource = &dra_resource_claims,
                                                       .ns = item->ns,
                                                       .name = item->name,
                                                       .timeout_us = READ_TIMEOUT_US },
                               on_claim, item);
    }
}

/* ---- the calls ---- */

static void on_gone(void *context)
{
    struct prepare_call *call = context;

    grpc_fail(call->grpc, GRPC_DEADLINE_EXCEEDED, "the kubelet left");
    free_call(call);
}

static struct prepare_call *new_call(struct preparer *preparer, struct grpc_call *grpc)
{
    struct prepare_call *call = mem_alloc(sizeof(*call));

    *call = (struct prepare_call){ .preparer = preparer,
                                   .grpc = grpc,
                                   .until_us = loop_now_us(preparer->loop) +
                                               preparer->options.patience_us };
    arena_init(&call->arena, ARENA);
    list_push_back(&preparer->calls, &call->link);
    return call;
}

void preparer_prepare(struct preparer *preparer, struct str message, struct grpc_call *grpc)
{
    struct prepare_call *call = new_call(preparer, grpc);
    struct kubelet_claims request;
    struct err err = { .class = 0 };

    if (protobuf_decode(&kubelet_claims_message, message, &call->arena, &request, &err) < 0) {
        grpc_fail(grpc, GRPC_INVALID_ARGUMENT, "%s", err.text);
        free_call(call);
        return;
    }
    grpc_call_on_gone(grpc, on_gone, call);
    call->items = arena_alloc_array(&call->arena, request.claims.count, sizeof(*call->items));
    call->count = request.claims.count;
    call->open = call->count + 1; /* one for this function, so that the last item ends nothing */
    for (size_t i = 0; i < call->count; i++) {
        const struct kubelet_claim *claim = (const struct kubelet_claim *)request.claims.at + i;
        struct prepare_item *item = &call->items[i];

        *item = (struct prepare_item){ .call = call,
                                       .ns = text_of(&call->arena, claim->ns),
                                       .name = text_of(&call->arena, claim->name),
                                       .uid = text_of(&call->arena, claim->uid) };
        start_item(item);
    }
    if (--call->open == 0)
        answer_prepare(call);
}

static int unprepare(struct preparer *preparer, const struct kubelet_claim *claim, struct err *err)
{
    int result;

    if (!pin_record_is_name(claim->uid))
        return err_set(err, ERR_INVALID, "no UID of a claim");
    if ((result = cdi_remove(preparer->options.cdi, claim->uid, err)) < 0 ||
        (result = prepared_remove(preparer->options.prepared, claim->uid, err)) < 0)
        return result;
    log_info("claim unprepared", LOG_STR("namespace", claim->ns), LOG_STR("claim", claim->name));
    return 0;
}

void preparer_unprepare(struct preparer *preparer, struct str message, struct grpc_call *grpc)
{
    auto_arena struct arena arena;
    struct kubelet_answer_entry *entries;
    struct kubelet_claims request;
    struct err err = { .class = 0 };

    arena_init(&arena, ARENA);
    if (protobuf_decode(&kubelet_claims_message, message, &arena, &request, &err) < 0) {
        grpc_fail(grpc, GRPC_INVALID_ARGUMENT, "%s", err.text);
        return;
    }
    entries = arena_alloc_array(&arena, request.claims.count, sizeof(*entries));
    for (size_t i = 0; i < request.claims.count; i++) {
        const struct kubelet_claim *claim = (const struct kubelet_claim *)request.claims.at + i;
        struct kubelet_claim_answer *answer = arena_alloc(&arena, sizeof(*answer));
        int result = unprepare(preparer, claim, &err);

        if (result < 0)
            log_warn("claim not unprepared", LOG_STR("uid", claim->uid), LOG_ERROR(&err));
        metrics_add(preparer->options.metrics, &dra_metric_unprepared, 1,
                    result < 0 ? "error" : "ok", NULL);
        answer->error = result < 0 ? str_of(arena_strdup(&arena, err.text)) : STR("");
        entries[i] = (struct kubelet_answer_entry){ claim->uid, answer };
    }
    reply(grpc, &kubelet_unprepare_message,
          &(struct kubelet_answers){ .claims = { entries, request.claims.count } });
}

void preparer_free(struct preparer *preparer)
{
    if (!preparer)
        return;
    list_each (struct prepare_call, call, &preparer->calls, link) {
        grpc_fail(call->grpc, GRPC_UNAVAILABLE, "the plugin stops");
        free_call(call);
    }
    mem_free(preparer);
}
