/* settle.c - GET, until there is an answer that settles the matter.
 *
 * Holds: only a positive answer settles: the object, or the server's own word that it is not there.
 * An object that cannot be decoded settles nothing, and ends the read. Anything else is asked again
 * after a growing pause (0.2 s to 15 s, whatever the server asks for). */
#include "engine/settle.h"

#include "base/list.h"
#include "base/mem.h"

enum {
    PAUSE_MIN_US = 200000,
    PAUSE_MAX_US = 12500000,     /* and the jitter */
    PAUSE_LONGEST_US = 15000000, /* on the server's wish */
    JITTER_PERCENT = 20,
    MAX_DOUBTS = 16, /* read at once, per cache */
};

struct settler {
    struct kube_client *client;
    struct rand *rand;
    struct list reads;
};

struct settle_read {
    struct list link;
    struct settler *settler;
    struct kube_cache *cache;
    char *ns, *name;
    bool is_doubt; /* begun by settler_look */
    struct kube_call *call;
    struct loop_timer again;
    int64_t sent_us; /* the last try */
    int64_t pause_us;
    settle_known known;
    void *context;
};

static void read_free(struct settle_read *read)
{
    kube_call_cancel(read->call);
    loop_timer_stop(&read->again);
    list_remove(&read->link);
    mem_free(read->ns);
    mem_free(read->name);
    mem_free(read);
}

static void send_read(void *context);

static void try_later(struct settle_read *read, int64_t at_least_us)
{
    struct settler *settler = read->settler;
    int64_t pause_us = rand_jitter(settler->rand, read->pause_us, JITTER_PERCENT);

    if (read->pause_us < PAUSE_MAX_US / 2)
        read->pause_us *= 2;
    else
        read->pause_us = PAUSE_MAX_US;
    if (pause_us < at_least_us)
        pause_us = at_least_us < PAUSE_LONGEST_US ? at_least_us : PAUSE_LONGEST_US;
    loop_timer_start(kube_client_loop(settler->client), &read->again, pause_us, send_read, read);
}

static void finish(struct settle_read *read, enum settle_end end, const struct kube_object *found)
{
    struct settler *settler = read->settler;
    struct kube_cache *cache = read->cache;
    settle_known known = read->known;
    void *context = read->context;
    bool is_doubt = read->is_doubt;

    if (is_doubt && end != SETTLE_UNREADABLE) /* that one stays in doubt, and is named again */
        kube_cache_settle_read(cache, read->ns, read->name, found, read->sent_us);
    read_free(read);
    if (is_doubt)
        settler_look(settler, cache);
    else
        known(context, end, found);
}

static void on_answer(void *context, const struct kube_answer *answer)
{
    struct settle_read *read = context;
    const struct kube_object *found = NULL;

    read->call = NULL;
    if (answer->outcome == KUBE_GONE) {
        finish(read, SETTLE_NONE, NULL);
    } else if (answer->outcome != KUBE_DONE) {
        try_later(read, answer->retry_after_us);
    } else if (kube_object_decode(kube_cache_kind(read->cache), answer->object, &found, NULL) < 0) {
        finish(read, SETTLE_UNREADABLE, NULL);
    } else {
        finish(read, SETTLE_FOUND, found);
        kube_object_unref(found);
    }
}

static void send_read(void *context)
{
    struct settle_read *read = context;
    const struct kube_resource *resource = kube_cache_kind(read->cache)->resource;
    struct kube_request request = {
        .verb = KUBE_GET,
        .resource = resource,
        .ns = resource->namespaced ? read->ns : NULL,
        .name = read->name,
        .body = STR(""),
    };

    read->sent_us = loop_now_us(kube_client_loop(read->settler->client));
    read->call = kube_send(read->settler->client, &request, on_answer, read);
}

struct settle_read *settler_read(struct settler *settler, struct kube_cache *cache, const char *ns,
                                 const char *name, settle_known known, void *context)
{
    struct settle_read *read = mem_alloc(sizeof(*read));

    read->settler = settler;
    read->cache = cache;
    read->ns = mem_strdup(ns);
    read->name = mem_strdup(name);
    read->pause_us = PAUSE_MIN_US;
    read->known = known;
    read->context = context;
    list_push_back(&settler->reads, &read->link);
    send_read(read);
    return read;
}

void settle_read_cancel(struct settle_read *read)
{
    if (read)
        read_free(read);
}

static bool is_being_read(const struct settler *settler, const struct kube_cache *cache,
                          const char *ns, const char *name)
{
    list_each (const struct settle_read, read, &settler->reads, link)
        if (read->is_doubt && read->cache == cache && strcmp(read->ns, ns) == 0 &&
            strcmp(read->name, name) == 0)
            return true;
    return false;
}

void settler_look(struct settler *settler, struct kube_cache *cache)
{
    const char *ns, *name;
    unsigned under_way = 0;

    list_each (const struct settle_read, read, &settler->reads, link)
        under_way += read->is_doubt && read->cache == cache;
    while (under_way < MAX_DOUBTS && kube_cache_doubt(cache, &ns, &name)) {
        if (is_being_read(settler, cache, ns, name))
            continue;
        settler_read(settler, cache, ns, name, NULL, NULL)->is_doubt = true;
        under_way++;
    }
}

struct settler *settler_new(struct kube_client *client, struct rand *rand)
{
    struct settler *settler = mem_alloc(sizeof(*settler));

    settler->client = client;
    settler->rand = rand;
    list_init(&settler->reads);
    return settler;
}

void settler_free(struct settler *settler)
{
    struct list *node;

    if (!settler)
        return;
    while ((node = list_first(&settler->reads)))
        read_free(list_item(node, struct settle_read, link));
    mem_free(settler);
}
