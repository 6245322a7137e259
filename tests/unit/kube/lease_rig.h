/* lease_rig.h - contenders for one lease on virtual time, and an API server that keeps it; shared
 * by the tests of the lease. */
#ifndef SLINC_TESTS_KUBE_LEASE_RIG_H
#define SLINC_TESTS_KUBE_LEASE_RIG_H

#include "base/mem.h"
#include "fake_transport.h"
#include "kube/lease.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define LEASES     "/apis/coordination.k8s.io/v1/namespaces/slinc/leases"
#define LEASE      LEASES "/bridge"
#define START_WALL INT64_C(1767225600000000) /* 2026-01-01T00:00:00Z */

enum { SECOND_US = 1000000, MAX_CONTENDERS = 3 };

/* An API server that keeps one Lease, with conflicts as the real one has them. */
struct store {
    char *object; /* JSON; NULL = none */
    char *answer;
    uint64_t version;
    bool down, lose_answers;
    unsigned writes;
};

struct contender {
    struct kube_lease *lease;
    unsigned gained, lost, released;
    bool told;
};

struct world {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *fake;
    struct kube_client *client;
    struct rand rand;
    struct store store;
    struct contender contenders[MAX_CONTENDERS];
    unsigned trouble_permille;
};

/* ---- the store ---- */

static inline struct fake_answer store_reply(struct store *store, int status, const char *text)
{
    mem_free(store->answer);
    store->answer = mem_strdup(text);
    return (struct fake_answer){ .status = status, .body = store->answer };
}

static inline struct fake_answer store_refuse(struct store *store, int status, const char *reason)
{
    char text[128];

    snprintf(text, sizeof(text), "{\"kind\":\"Status\",\"reason\":\"%s\"}", reason);
    return store_reply(store, status, text);
}

static inline void store_keep(struct store *store, const char *body)
{
    auto_json_doc struct json_doc *doc = NULL;
    auto_json_build struct json_build *build = json_build_new();
    auto_buf struct buf out = { .max = 4096 };
    char version[32];

    assert_int_equal(json_parse(str_of(body), 4096, &doc, NULL), 0);
    struct json_mut *root = json_copy(build, json_root(doc));

    snprintf(version, sizeof(version), "%llu", (unsigned long long)++store->version);
    json_put_at(build, root, json_new_str(build, str_of(version)), "metadata", "resourceVersion");
    json_mut_write(root, &out);
    mem_free(store->object);
    store->object = mem_strdup(buf_text(&out));
    store->writes++;
}

static inline struct fake_answer store_put(struct store *store, const char *body)
{
    auto_json_doc struct json_doc *doc = NULL;
    char version[32];

    assert_int_equal(json_parse(str_of(body), 4096, &doc, NULL), 0);
    struct str based_on = json_str(json_at(json_root(doc), "metadata", "resourceVersion"));

    assert_true(based_on.len > 0); /* every update has a precondition */
    if (!store->object)
        return store_refuse(store, 404, "NotFound");
    snprintf(version, sizeof(version), "%llu", (unsigned long long)store->version);
    if (!str_is(based_on, version))
        return store_refuse(store, 409, "Conflict");
    store_keep(store, body);
    return store_reply(store, 200, store->object);
}

static inline struct fake_answer store_serve(void *context, const struct fake_sent *sent)
{
    struct world *world = context;
    struct store *store = &world->store;
    struct fake_answer answer;

    if (store->down)
        return (struct fake_answer){ .class = ERR_UNAVAILABLE };
    if (strcmp(sent->method, "POST") == 0) {
        assert_string_equal(sent->path, LEASES);
        if (store->object) {
            answer = store_refuse(store, 409, "AlreadyExists");
        } else {
            store_keep(store, sent->body);
            answer = store_reply(store, 201, store->object);
        }
    } else if (strcmp(sent->method, "PUT") == 0) {
        assert_string_equal(sent->path, LEASE);
        answer = store_put(store, sent->body);
    } else {
        assert_string_equal(sent->method, "GET");
        answer = store->object ? store_reply(store, 200, store->object)
                               : store_refuse(store, 404, "NotFound");
    }
    if (store->lose_answers)
        return (struct fake_answer){ .class = ERR_UNKNOWN };
    return answer;
}

static inline struct json_doc *stored(const struct world *world)
{
    struct json_doc *doc = NULL;

    assert_non_null(world->store.object);
    assert_int_equal(json_parse(str_of(world->store.object), 4096, &doc, NULL), 0);
    return doc;
}

static inline void stored_spec_is(const struct world *world, const char *key, const char *value)
{
    auto_json_doc struct json_doc *doc = stored(world);
    auto_buf struct buf out = { .max = 512 };

    json_write(json_at(json_root(doc), "spec", key), &out);
    assert_string_equal(buf_text(&out), value);
}

/* What another wrote, long ago by its own clock. */
static inline void store_foreign(struct world *world, const char *holder, int seconds)
{
    char body[512];

    snprintf(body, sizeof(body),
             "{\"metadata\":{\"name\":\"bridge\",\"namespace\":\"slinc\","
             "\"labels\":{\"kept\":\"yes\"}},\"spec\":{\"holderIdentity\":\"%s\","
             "\"leaseDurationSeconds\":%d,\"leaseTransitions\":4,"
             "\"acquireTime\":\"2025-01-01T00:00:00.000000Z\","
             "\"renewTime\":\"2025-01-01T00:00:00.000000Z\"}}",
             holder, seconds);
    store_keep(&world->store, body);
}

/* ---- the contenders ---- */

static inline void on_changed(void *context, bool held)
{
    struct contender *contender = context;

    assert_int_equal(held, kube_lease_is_held(contender->lease));
    assert_int_not_equal(held, contender->told);
    contender->told = held;
    contender->gained += held;
    contender->lost += !held;
}

static inline void on_released(void *context)
{
    ((struct contender *)context)->released++;
}

static inline struct contender *enter(struct world *world, unsigned index)
{
    static const char *const identities[] = { "one", "two", "three" };
    struct kube_lease_options options = { .ns = "slinc",
                                          .name = "bridge",
                                          .identity = identities[index] };
    struct contender *contender = &world->contenders[index];

    *contender = (struct contender){ 0 };
    contender->lease = kube_lease_new(world->client, &world->rand, &options);
    kube_lease_start(contender->lease, on_changed, contender);
    return contender;
}

static inline void release(struct contender *contender)
{
    kube_lease_release(contender->lease, on_released, contender);
}

static inline void leave(struct contender *contender)
{
    kube_lease_free(contender->lease);
    contender->lease = NULL;
}

/* ---- the world ---- */

static inline int world_up(void **state)
{
    struct world *world = mem_alloc(sizeof(*world));

    clock_init_virtual(&world->clock, START_WALL);
    rand_init(&world->rand, 7);
    world->loop = loop_new_virtual(&world->clock);
    world->fake = fake_transport_new(world->loop);
    world->client = kube_client_new(world->loop, fake_http(world->fake));
    fake_serve(world->fake, store_serve, world);
    *state = world;
    return 0;
}

static inline int world_down(void **state)
{
    struct world *world = *state;

    for (unsigned i = 0; i < MAX_CONTENDERS; i++)
        leave(&world->contenders[i]);
    kube_client_free(world->client);
    fake_transport_free(world->fake);
    loop_free(world->loop);
    mem_free(world->store.object);
    mem_free(world->store.answer);
    mem_free(world);
    return 0;
}

static inline void world_run(struct world *world, int64_t us)
{
    fake_run_for(world->fake, us);
}

/* ---- beginnings ---- */

/* The first contender, once it has run for this long and holds what it made itself. */
static inline struct contender *hold_for(struct world *world, int64_t us)
{
    struct contender *one = enter(world, 0);

    world_run(world, us);
    assert_true(kube_lease_is_held(one->lease));
    return one;
}

/* The first contender, where the lease is another's. */
static inline struct contender *enter_after(struct world *world, const char *holder, int seconds)
{
    store_foreign(world, holder, seconds);
    return enter(world, 0);
}

/* ---- answers that do not come from the store ---- */

static inline void answer_none(struct world *world)
{
    fake_status(world->fake, "GET", LEASE, 404, "NotFound", "no such lease");
}

/* At version 5. */
static inline void answer_created(struct world *world, const char *holder, int64_t delay_us)
{
    char body[128];

    snprintf(body, sizeof(body),
             "{\"metadata\":{\"resourceVersion\":\"5\"},\"spec\":{\"holderIdentity\":\"%s\"}}",
             holder);
    fake_answer(world->fake, "POST", LEASES,
                (struct fake_answer){ .status = 201, .body = body, .delay_us = delay_us });
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_up, world_down)

#endif
