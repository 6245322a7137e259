/* reader.c - who looks up which names, and one GET after the other for each of them.
 *
 * Holds   a name is read while somebody's last plan looked it up, and not otherwise;
 *         at most one call per name is under way, and at most MAX_IN_FLIGHT of all;
 *         only an object, or the server's own word that there is none, changes the cache. */
#include "kube/reader.h"

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "kube/cache_private.h"
#include "kube/watch.h"

#include <assert.h>
#include <stdio.h>

enum {
    DEFAULT_REFRESH_US = 10000000,
    DEFAULT_ABSENT_US = 2000000,
    SPREAD_US = 50000, /* per name: 20 reads in a second at most */
    JITTER = 10,       /* percent */
    MAX_IN_FLIGHT = 16,
    READ_US = 4000000, /* less than KUBE_OVERLAY_DOUBT_US: no read spans a whole write of ours */
    MAX_LOOKERS = 1 << 20,
};

struct name {
    struct list link; /* in reader->due */
    struct kube_reader *reader;
    char *ns, *name;
    struct kube_call *call;
    struct loop_timer timer; /* for the next read */
    unsigned lookers;
    unsigned failures; /* in a row */
    bool is_known, exists;
    struct err error; /* of the last read; class 0: it went well */
};

struct looker { /* whose last plan looked names up */
    struct name **at;
    size_t count, capacity;
    bool waits;
};

struct kube_reader {
    struct kube_client *client;
    struct kube_cache *cache;
    struct rand *rand;
    struct loop *loop;
    struct kube_reader_options options;
    struct map names;   /* struct name by "namespace/name" */
    struct map lookers; /* struct looker by who */
    struct list due;
    unsigned in_flight;
    struct loop_timer sweep;
    int64_t last_contact_us;
    uint64_t undecoded;
    struct err last_error;

    struct str who;        /* between begin and end */
    struct looker *looker; /* of who, as it will be; NULL: nobody looks now */
    bool has_too_many;     /* names */
};

static void send_due(struct kube_reader *reader);

/* ---- names ---- */

static void free_name(void *value)
{
    struct name *name = value;

    if (name->call) {
        kube_call_cancel(name->call);
        name->reader->in_flight--;
    }
    loop_timer_stop(&name->timer);
    list_remove(&name->link);
    mem_free(name->ns);
    mem_free(name->name);
    mem_free(name);
}

static void on_due(void *context)
{
    struct name *name = context;

    list_push_back(&name->reader->due, &name->link);
    send_due(name->reader);
}

/* NULL: there are too many. */
static struct name *need_name(struct kube_reader *reader, const char *ns, const char *text)
{
    char key[2 * KUBE_MAX_NAME + 2];
    struct name *name;

    (void)snprintf(key, sizeof(key), "%s/%s", ns, text);
    name = map_get(&reader->names, str_of(key));
    if (name)
        return name;
    name = mem_alloc(sizeof(*name));
    if (map_put(&reader->names, str_of(key), name, NULL) < 0) {
        mem_free(name);
        return NULL;
    }
    name->reader = reader;
    name->ns = mem_strdup(ns);
    name->name = mem_strdup(text);
    loop_timer_start(reader->loop, &name->timer, 0, on_due, name);
    return name;
}

/* ---- lookers ---- */

static void on_sweep(void *context);

static void free_looker(void *value)
{
    struct looker *looker = value;

    for (size_t i = 0; i < looker->count; i++) {
        struct kube_reader *reader = looker->at[i]->reader;

        if (--looker->at[i]->lookers == 0)
            loop_timer_start(reader->loop, &reader->sweep, 0, on_sweep, reader);
    }
    mem_free((void *)looker->at);
    mem_free(looker);
}

static bool looks_at(const struct looker *looker, const struct name *name)
{
    for (size_t i = 0; i < looker->count; i++)
        if (looker->at[i] == name)
            return true;
    return false;
}

/* Who needs a name is known while a plan is made; others find what plans had read. */
static void on_lookup(void *context, const char *ns, const char *text)
{
    struct kube_reader *reader = context;
    struct looker *looker = reader->looker;
    struct name *name;

    if (!looker || !text[0] || strlen(ns) > KUBE_MAX_NAME || strlen(text) > KUBE_MAX_NAME)
        return; /* the last three: there is no such object */
    name = need_name(reader, ns, text);
    reader->has_too_many |= !name;
    if (!name || looks_at(looker, name))
        return;
    if (looker->count == looker->capacity) {
        looker->capacity = looker->capacity ? 2 * looker->capacity : 4;
        looker->at = mem_resize_array((void *)looker->at, looker->capacity, sizeof(*looker->at));
    }
    looker->at[looker->count++] = name;
    name->lookers++;
}

static enum kube_known known_to(const struct looker *looker, struct err *err)
{
    enum kube_known known = KUBE_KNOWN;

    for (size_t i = 0; i < looker->count; i++) {
        const struct name *name = looker->at[i];

        if (name->is_known)
            continue;
        known = KUBE_NOT_READ_YET;
        if (name->error.class != 0) {
            *err = name->error;
            return KUBE_UNREADABLE;
        }
    }
    return known;
}

void kube_reader_begin(struct kube_reader *reader, struct str who)
{
    if (!reader)
        return;
    assert(!reader->looker);
    reader->who = who;
    reader->looker = mem_alloc(sizeof(*reader->looker));
    reader->has_too_many = false;
}

/* The names of the last time are let go when those of this time are held. */
enum kube_known kube_reader_end(struct kube_reader *reader, struct err *err)
{
    struct looker *looker = reader ? reader->looker : NULL;
    struct err why = { .class = 0 };
    enum kube_known known;

    if (!reader)
        return KUBE_KNOWN;
    reader->looker = NULL;
    known = known_to(looker, &why);
    looker->waits = known != KUBE_KNOWN;
    if (reader->has_too_many) {
        known = KUBE_UNREADABLE;
        (void)err_set(&why, ERR_TOO_BIG, "more than %d names are looked up", KUBE_READER_MAX_NAMES);
    }
    if (looker->count == 0) {
        free_looker(looker);
        (void)map_remove(&reader->lookers, reader->who);
    } else if (map_put(&reader->lookers, reader->who, looker, &why) < 0) {
        free_looker(looker);
        known = KUBE_UNREADABLE;
    }
    if (known == KUBE_UNREADABLE && err)
        *err = why;
    return known;
}

/* Not inside of a plan, which borrows what the cache has. */
static void on_sweep(void *context)
{
    struct kube_reader *reader = context;

    map_each (item, &reader->names) {
        const struct name *name = item->value;

        if (name->lookers > 0)
            continue;
        kube_cache_read(reader->cache, name->ns, name->name, NULL);
        (void)map_remove(&reader->names, item->key);
    }
}

/* ---- reading ---- */

static void tell_lookers(struct kube_reader *reader, const struct name *name)
{
    struct err why;

    map_each (item, &reader->lookers) {
        struct looker *looker = item->value;

        if (!looker->waits || !looks_at(looker, name) ||
            known_to(looker, &why) == KUBE_NOT_READ_YET)
            continue;
        looker->waits = known_to(looker, &why) != KUBE_KNOWN;
        if (reader->options.is_read)
            reader->options.is_read(reader->options.context, item->key);
    }
}

static void wait_for_next(struct name *name, int64_t retry_after_us)
{
    struct kube_reader *reader = name->reader;
    const struct kube_reader_options *options = &reader->options;
    int64_t wait_us = name->exists ? options->refresh_us : options->absent_us;
    int64_t spread_us = (int64_t)reader->names.count * SPREAD_US;

    if (name->error.class != 0)
        wait_us = kube_watch_wait(reader->rand, &name->failures, retry_after_us);
    else
        wait_us = rand_jitter(reader->rand, wait_us > spread_us ? wait_us : spread_us, JITTER);
    loop_timer_start(reader->loop, &name->timer, wait_us, on_due, name);
}

static void read_well(struct name *name, const struct kube_object *found)
{
    struct kube_reader *reader = name->reader;
    bool was_known = name->is_known;

    reader->last_error = name->error = (struct err){ .class = 0 };
    name->failures = 0;
    name->is_known = true;
    name->exists = found != NULL;
    kube_cache_read(reader->cache, name->ns, name->name, found);
    wait_for_next(name, 0);
    if (!was_known)
        tell_lookers(reader, name);
}

/* What was known stays. */
static void read_badly(struct name *name, enum err_class class, const char *message,
                       int64_t retry_after_us)
{
    struct kube_reader *reader = name->reader;

    (void)err_set(&name->error, class, "read of %s %s/%s: %s",
                  kube_cache_kind(reader->cache)->resource->kind, name->ns, name->name, message);
    reader->last_error = name->error;
    wait_for_next(name, retry_after_us);
    if (!name->is_known && name->failures == 1)
        tell_lookers(reader, name);
}

static void on_answer(void *context, const struct kube_answer *answer)
{
    struct name *name = context;
    struct kube_reader *reader = name->reader;
    const struct kube_object *found = NULL;
    struct err why;

    name->call = NULL;
    reader->in_flight--;
    if (answer->status > 0)
        reader->last_contact_us = loop_now_us(reader->loop);
    if (answer->outcome == KUBE_GONE || answer->outcome == KUBE_INVALID) {
        read_well(name, NULL); /* what cannot be asked for cannot exist */
    } else if (answer->outcome != KUBE_DONE) {
        read_badly(name, answer->outcome == KUBE_DENIED ? ERR_DENIED : ERR_UNAVAILABLE,
                   answer->message, answer->retry_after_us);
    } else if (kube_object_decode(kube_cache_kind(reader->cache), answer->object, &found, &why) <
               0) {
        reader->undecoded++;
        read_badly(name, ERR_INVALID, why.text, 0);
    } else {
        read_well(name, found);
        kube_object_unref(found);
    }
    send_due(reader);
}

static void send_due(struct kube_reader *reader)
{
    struct list *first;

    while (reader->in_flight < MAX_IN_FLIGHT && (first = list_pop_front(&reader->due))) {
        struct name *name = list_item(first, struct name, link);
        const struct kube_request request = {
            .verb = KUBE_GET,
            .resource = kube_cache_kind(reader->cache)->resource,
            .ns = name->ns,
            .name = name->name,
            .timeout_us = READ_US,
        };

        reader->in_flight++;
        name->call = kube_send(reader->client, &request, on_answer, name);
    }
}

/* ---- making one ---- */

struct kube_reader *kube_reader_new(struct kube_client *client, struct kube_cache *cache,
                                    struct rand *rand, const struct kube_reader_options *options)
{
    struct kube_reader *reader = mem_alloc(sizeof(*reader));

    reader->client = client;
    reader->cache = cache;
    reader->rand = rand;
    reader->loop = kube_client_loop(client);
    if (options)
        reader->options = *options;
    if (reader->options.refresh_us == 0)
        reader->options.refresh_us = DEFAULT_REFRESH_US;
    if (reader->options.absent_us == 0)
        reader->options.absent_us = DEFAULT_ABSENT_US;
    map_init(&reader->names,
             &(struct map_options){ .max = KUBE_READER_MAX_NAMES, .free_value = free_name });
    map_init(&reader->lookers,
             &(struct map_options){ .max = MAX_LOOKERS, .free_value = free_looker });
    list_init(&reader->due);
    kube_cache_relist_begin(cache);
    kube_cache_relist_end(cache, 0);
    kube_cache_on_lookup(cache, on_lookup, reader);
    return reader;
}

void kube_reader_forget(struct kube_reader *reader)
{
    assert(!reader->looker);
    map_clear(&reader->lookers);
}

void kube_reader_free(struct kube_reader *reader)
{
    if (!reader)
        return;
    kube_cache_on_lookup(reader->cache, NULL, NULL);
    map_done(&reader->lookers);
    map_done(&reader->names);
    loop_timer_stop(&reader->sweep);
    mem_free(reader);
}

/* ---- how it is ---- */

int64_t kube_reader_last_contact_us(const struct kube_reader *reader)
{
    return reader->names.count == 0 ? loop_now_us(reader->loop) : reader->last_contact_us;
}

const char *kube_reader_last_error(const struct kube_reader *reader)
{
    return reader->last_error.text;
}

uint64_t kube_reader_undecoded(const struct kube_reader *reader)
{
    return reader->undecoded;
}
