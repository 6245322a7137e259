/* review_reads.c - one GET for each object that a review names.
 *
 * Holds: only the answer "not found" makes an object absent; what cannot be asked is not known. */
#include "engine/review_reads.h"

#include "base/map.h"
#include "base/mem.h"

enum {
    SECOND_US = 1000000,
    READ_US = 2 * SECOND_US,  /* of one call: the API server waits 10 s for the whole review */
    KEEP_US = 15 * SECOND_US, /* longer than any review is held */
    MAX_KEY = 1024,
};

struct read {
    enum review_known known;
    struct kube_call *call; /* NULL when it is over */
    struct json_doc *object;
    int64_t begun_us;
};

struct review_reads {
    struct kube_client *client;
    struct map all; /* struct read by "uid plural namespace/name" */
    struct loop_timer forget;
};

static void read_free(void *value)
{
    struct read *read = value;

    if (read->call)
        kube_call_cancel(read->call);
    json_doc_free(read->object);
    mem_free(read);
}

struct review_reads *review_reads_new(struct kube_client *client)
{
    struct review_reads *reads = mem_alloc(sizeof(*reads));

    reads->client = client;
    map_init(&reads->all,
             &(struct map_options){ .max = REVIEW_READS_MAX, .free_value = read_free });
    return reads;
}

void review_reads_free(struct review_reads *reads)
{
    if (!reads)
        return;
    loop_timer_stop(&reads->forget);
    map_done(&reads->all);
    mem_free(reads);
}

static void forget_old(void *context)
{
    struct review_reads *reads = context;
    struct loop *loop = kube_client_loop(reads->client);
    bool has_more = false;

    map_each (item, &reads->all) {
        const struct read *read = item->value;

        if (loop_now_us(loop) - read->begun_us >= KEEP_US)
            (void)map_remove(&reads->all, item->key);
        else
            has_more = true;
    }
    if (has_more)
        loop_timer_start(loop, &reads->forget, KEEP_US, forget_old, reads);
}

static void on_read(void *context, const struct kube_answer *answer)
{
    struct read *read = context;

    read->call = NULL;
    switch (answer->outcome) {
    case KUBE_DONE:
        read->known = REVIEW_EXISTS;
        read->object = json_clone(answer->object);
        break;
    case KUBE_GONE:
        read->known = REVIEW_ABSENT;
        break;
    default:
        read->known = REVIEW_CANNOT_BE_READ;
        break;
    }
}

static struct read *begin(struct review_reads *reads, struct str key,
                          const struct kube_resource *resource, struct str ns, struct str name)
{
    struct loop *loop = kube_client_loop(reads->client);
    struct read *read = mem_alloc(sizeof(*read));
    char *ns_text = mem_strndup(ns.at, ns.len), *name_text = mem_strndup(name.at, name.len);

    read->known = REVIEW_NOT_READ_YET;
    read->begun_us = loop_now_us(loop);
    if (map_put(&reads->all, key, read, NULL) < 0) {
        mem_free(read);
        read = NULL;
    } else {
        read->call = kube_send(reads->client,
                               &(struct kube_request){ .verb = KUBE_GET,
                                                       .resource = resource,
                                                       .ns = ns_text,
                                                       .name = name_text,
                                                       .timeout_us = READ_US },
                               on_read, read);
        if (!loop_timer_is_armed(&reads->forget))
            loop_timer_start(loop, &reads->forget, KEEP_US, forget_old, reads);
    }
    mem_free(ns_text);
    mem_free(name_text);
    return read;
}

enum review_known review_reads_find(void *context, struct str uid,
                                    const struct kube_resource *resource, struct str ns,
                                    struct str name, const struct json **ret_object)
{
    struct review_reads *reads = context;
    auto_buf struct buf key = { .max = MAX_KEY };
    const struct read *read;

    buf_printf(&key, STR_FMT " %s " STR_FMT "/" STR_FMT, STR_ARG(uid), resource->plural,
               STR_ARG(ns), STR_ARG(name));
    if (key.overflowed)
        return REVIEW_CANNOT_BE_READ;
    read = map_get(&reads->all, buf_str(&key));
    if (!read)
        read = begin(reads, buf_str(&key), resource, ns, name);
    if (!read)
        return REVIEW_CANNOT_BE_READ;
    *ret_object = json_root(read->object);
    return read->known;
}
