/* test_lease.c - at most one holds the lease at any moment, and somebody does when the server is
 * there. */
#include "kube/lease.h"

#include "base/mem.h"
#include "codec/timestamp.h"
#include "fake_transport.h"

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

/* --- the store --- */

static struct fake_answer reply(struct store *store, int status, const char *text)
{
    mem_free(store->answer);
    store->answer = mem_strdup(text);
    return (struct fake_answer){ .status = status, .body = store->answer };
}

static struct fake_answer refuse(struct store *store, int status, const char *reason)
{
    char text[128];

    snprintf(text, sizeof(text), "{\"kind\":\"Status\",\"reason\":\"%s\"}", reason);
    return reply(store, status, text);
}

static void keep(struct store *store, const char *body)
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

static struct fake_answer put(struct store *store, const char *body)
{
    auto_json_doc struct json_doc *doc = NULL;
    char version[32];

    assert_int_equal(json_parse(str_of(body), 4096, &doc, NULL), 0);
    struct str based_on = json_str(json_at(json_root(doc), "metadata", "resourceVersion"));

    assert_true(based_on.len > 0); /* every update has a precondition */
    if (!store->object)
        return refuse(store, 404, "NotFound");
    snprintf(version, sizeof(version), "%llu", (unsigned long long)store->version);
    if (!str_is(based_on, version))
        return refuse(store, 409, "Conflict");
    keep(store, body);
    return reply(store, 200, store->object);
}

static struct fake_answer serve(void *context, const struct fake_sent *sent)
{
    struct world *world = context;
    struct store *store = &world->store;
    struct fake_answer answer;

    if (store->down)
        return (struct fake_answer){ .class = ERR_UNAVAILABLE };
    if (strcmp(sent->method, "POST") == 0) {
        assert_string_equal(sent->path, LEASES);
        if (store->object) {
            answer = refuse(store, 409, "AlreadyExists");
        } else {
            keep(store, sent->body);
            answer = reply(store, 201, store->object);
        }
    } else if (strcmp(sent->method, "PUT") == 0) {
        assert_string_equal(sent->path, LEASE);
        answer = put(store, sent->body);
    } else {
        assert_string_equal(sent->method, "GET");
        answer = store->object ? reply(store, 200, store->object) : refuse(store, 404, "NotFound");
    }
    if (store->lose_answers)
        return (struct fake_answer){ .class = ERR_UNKNOWN };
    return answer;
}

static struct json_doc *stored(const struct world *world)
{
    struct json_doc *doc = NULL;

    assert_non_null(world->store.object);
    assert_int_equal(json_parse(str_of(world->store.object), 4096, &doc, NULL), 0);
    return doc;
}

static void stored_spec_is(const struct world *world, const char *key, const char *value)
{
    auto_json_doc struct json_doc *doc = stored(world);
    auto_buf struct buf out = { .max = 512 };

    json_write(json_at(json_root(doc), "spec", key), &out);
    assert_string_equal(buf_text(&out), value);
}

static void store_foreign(struct world *world, const char *holder, int seconds)
{
    char body[512];

    snprintf(body, sizeof(body),
             "{\"metadata\":{\"name\":\"bridge\",\"namespace\":\"slinc\","
             "\"labels\":{\"kept\":\"yes\"}},\"spec\":{\"holderIdentity\":\"%s\","
             "\"leaseDurationSeconds\":%d,\"leaseTransitions\":4,"
             "\"acquireTime\":\"2025-01-01T00:00:00.000000Z\","
             "\"renewTime\":\"2025-01-01T00:00:00.000000Z\"}}",
             holder, seconds);
    keep(&world->store, body);
}

/* --- the world --- */

static void on_changed(void *context, bool held)
{
    struct contender *contender = context;

    assert_int_equal(held, kube_lease_is_held(contender->lease));
    assert_int_not_equal(held, contender->told);
    contender->told = held;
    contender->gained += held;
    contender->lost += !held;
}

static void on_released(void *context)
{
    ((struct contender *)context)->released++;
}

static struct contender *enter(struct world *world, unsigned index)
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

static void leave(struct contender *contender)
{
    kube_lease_free(contender->lease);
    contender->lease = NULL;
}

static int set_up(void **state)
{
    struct world *world = mem_alloc(sizeof(*world));

    clock_init_virtual(&world->clock, START_WALL);
    rand_init(&world->rand, 7);
    world->loop = loop_new_virtual(&world->clock);
    world->fake = fake_transport_new(world->loop);
    world->client = kube_client_new(world->loop, fake_http(world->fake));
    fake_serve(world->fake, serve, world);
    *state = world;
    return 0;
}

static int tear_down(void **state)
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

/* --- tests --- */

static void a_lease_that_does_not_exist_is_created_and_held(void **state)
{
    struct world *world = *state;
    struct contender *one = enter(world, 0);

    assert_false(kube_lease_is_held(one->lease));
    fake_run_for(world->fake, SECOND_US / 2);
    assert_true(kube_lease_is_held(one->lease));
    assert_int_equal(one->gained, 1);
    stored_spec_is(world, "holderIdentity", "\"one\"");
    stored_spec_is(world, "leaseDurationSeconds", "15");
    stored_spec_is(world, "leaseTransitions", "0");
    stored_spec_is(world, "acquireTime", "\"2026-01-01T00:00:00.000000Z\"");
    stored_spec_is(world, "renewTime", "\"2026-01-01T00:00:00.000000Z\"");
    assert_int_equal(kube_lease_valid_until_us(one->lease), 11 * SECOND_US);
}

static void the_holder_renews_every_two_seconds_with_one_write(void **state)
{
    struct world *world = *state;
    struct contender *one = enter(world, 0);

    fake_run_for(world->fake, 60 * SECOND_US + 1);
    assert_int_equal(one->gained, 1);
    assert_int_equal(one->lost, 0);
    assert_int_equal(world->store.writes, 31);
    assert_int_equal(fake_sent_count(world->fake), 32); /* one look at the beginning */
    stored_spec_is(world, "acquireTime", "\"2026-01-01T00:00:00.000000Z\"");
    stored_spec_is(world, "renewTime", "\"2026-01-01T00:01:00.000000Z\"");
    stored_spec_is(world, "leaseTransitions", "0");
}

static void the_holder_stops_when_it_could_not_renew_for_ten_seconds(void **state)
{
    struct world *world = *state;
    struct contender *one = enter(world, 0);

    fake_run_for(world->fake, 1);
    world->store.down = true;
    fake_run_for(world->fake, 10 * SECOND_US - 2);
    assert_true(kube_lease_is_held(one->lease));
    assert_int_equal(one->lost, 0);
    fake_run_for(world->fake, 2);
    assert_false(kube_lease_is_held(one->lease));
    assert_int_equal(one->lost, 1);
    assert_int_equal(kube_lease_valid_until_us(one->lease), 0);

    world->store.down = false; /* nobody took it meanwhile */
    fake_run_for(world->fake, 5 * SECOND_US);
    assert_true(kube_lease_is_held(one->lease));
    stored_spec_is(world, "leaseTransitions", "0");
}

static void it_is_not_held_past_its_time_even_when_no_timer_ran(void **state)
{
    struct world *world = *state;
    struct contender *one = enter(world, 0);

    fake_run_for(world->fake, 1);
    clock_advance_us(&world->clock, 10 * SECOND_US - 2);
    assert_true(kube_lease_is_held(one->lease));
    clock_advance_us(&world->clock, 1);
    assert_false(kube_lease_is_held(one->lease));
    assert_int_equal(kube_lease_valid_until_us(one->lease), 0);
    assert_int_equal(one->lost, 0); /* the loop has not run: nobody could be told */
}

static void a_slow_answer_counts_from_when_the_write_was_sent(void **state)
{
    struct world *world = *state;
    struct contender *one;

    fake_answer(world->fake, "GET", LEASE,
                (struct fake_answer){ .status = 404,
                                      .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\"}" });
    fake_answer(world->fake, "POST", LEASES,
                (struct fake_answer){ .status = 201,
                                      .delay_us = 4 * SECOND_US,
                                      .body = "{\"metadata\":{\"resourceVersion\":\"1\"},"
                                              "\"spec\":{\"holderIdentity\":\"one\"}}" });
    fake_answer(world->fake, "PUT", LEASE, (struct fake_answer){ 0 }); /* the renewal hangs */
    one = enter(world, 0);
    fake_run_for(world->fake, 4 * SECOND_US + 1);
    assert_int_equal(kube_lease_valid_until_us(one->lease), 11 * SECOND_US);
}

static void an_answer_that_names_another_holder_is_not_ours(void **state)
{
    struct world *world = *state;
    struct contender *one;

    fake_answer(world->fake, "GET", LEASE,
                (struct fake_answer){ .status = 404,
                                      .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\"}" });
    fake_answer(world->fake, "POST", LEASES,
                (struct fake_answer){ .status = 201,
                                      .body = "{\"metadata\":{\"resourceVersion\":\"1\"},"
                                              "\"spec\":{\"holderIdentity\":\"else\"}}" });
    one = enter(world, 0);
    fake_run_for(world->fake, SECOND_US);
    assert_false(kube_lease_is_held(one->lease));
}

static void a_lease_of_another_is_taken_after_fifteen_seconds_of_our_own_watching(void **state)
{
    struct world *world = *state;
    struct contender *one;

    store_foreign(world, "else", 15); /* its times are long past, on somebody's clock */
    one = enter(world, 0);
    fake_run_for(world->fake, 15 * SECOND_US - 1);
    assert_int_equal(world->store.writes, 1);
    fake_run_for(world->fake, 10);
    assert_true(kube_lease_is_held(one->lease));
    stored_spec_is(world, "leaseTransitions", "5");
    stored_spec_is(world, "acquireTime", "\"2026-01-01T00:00:15.000000Z\"");

    auto_json_doc struct json_doc *doc = stored(world);

    assert_true(str_is(json_str(json_at(json_root(doc), "metadata", "labels", "kept")), "yes"));
}

static void a_lease_that_changes_is_waited_for_anew(void **state)
{
    struct world *world = *state;
    struct contender *one;

    store_foreign(world, "else", 15);
    one = enter(world, 0);
    for (int i = 0; i < 10; i++) {
        fake_run_for(world->fake, 12 * SECOND_US);
        store_foreign(world, "else", 15);
    }
    assert_int_equal(one->gained, 0);
    fake_run_for(world->fake, 18 * SECOND_US);
    assert_int_equal(one->gained, 1);
}

static void a_longer_lease_of_another_is_respected_up_to_ten_minutes(void **state)
{
    struct world *world = *state;
    struct contender *one;

    store_foreign(world, "else", 60);
    one = enter(world, 0);
    fake_run_for(world->fake, 59 * SECOND_US);
    assert_int_equal(one->gained, 0);
    fake_run_for(world->fake, 2 * SECOND_US);
    assert_int_equal(one->gained, 1);

    leave(one);
    store_foreign(world, "else", INT32_MAX);
    one = enter(world, 0);
    fake_run_for(world->fake, 601 * SECOND_US);
    assert_int_equal(one->gained, 1);
}

static void a_free_lease_is_taken_at_once(void **state)
{
    struct world *world = *state;
    struct contender *one;

    store_foreign(world, "", 1);
    one = enter(world, 0);
    fake_run_for(world->fake, 1);
    assert_true(kube_lease_is_held(one->lease));
    stored_spec_is(world, "leaseTransitions", "5");
}

static void a_record_with_our_name_that_we_did_not_write_is_a_twins(void **state)
{
    struct world *world = *state;
    struct contender *one;

    store_foreign(world, "one", 15);
    one = enter(world, 0);
    fake_run_for(world->fake, 14 * SECOND_US);
    assert_int_equal(one->gained, 0);
    fake_run_for(world->fake, 2 * SECOND_US);
    assert_int_equal(one->gained, 1);
}

static void a_conflict_makes_the_holder_look_again_and_go_on(void **state)
{
    struct world *world = *state;
    struct contender *one = enter(world, 0);

    fake_run_for(world->fake, 3 * SECOND_US);
    keep(&world->store, world->store.object); /* somebody set a label */
    fake_run_for(world->fake, 3 * SECOND_US);
    assert_int_equal(one->lost, 0);
    assert_true(kube_lease_is_held(one->lease));
    assert_true(kube_lease_valid_until_us(one->lease) > loop_now_us(world->loop) + 7 * SECOND_US);
}

static void a_lease_that_was_written_over_is_lost_when_that_is_seen(void **state)
{
    struct world *world = *state;
    struct contender *one = enter(world, 0);

    fake_run_for(world->fake, 3 * SECOND_US);
    store_foreign(world, "else", 15);
    fake_run_for(world->fake, 3 * SECOND_US);
    assert_int_equal(one->lost, 1);
    assert_false(kube_lease_is_held(one->lease));
    stored_spec_is(world, "holderIdentity", "\"else\"");
}

static void a_deleted_lease_is_lost_and_created_again(void **state)
{
    struct world *world = *state;
    struct contender *one = enter(world, 0);

    fake_run_for(world->fake, 3 * SECOND_US);
    mem_free(world->store.object);
    world->store.object = NULL;
    fake_run_for(world->fake, SECOND_US + 10);
    assert_false(kube_lease_is_held(one->lease));
    assert_int_equal(one->lost, 1);
    fake_run_for(world->fake, 3 * SECOND_US);
    assert_true(kube_lease_is_held(one->lease));
}

static void a_renewal_that_may_have_happened_extends_nothing(void **state)
{
    struct world *world = *state;
    struct contender *one = enter(world, 0);

    fake_run_for(world->fake, 1);
    world->store.lose_answers = true;
    fake_run_for(world->fake, 10 * SECOND_US);
    assert_true(world->store.writes >= 2);
    assert_int_equal(one->lost, 1);
    world->store.lose_answers = false;
    fake_run_for(world->fake, 3 * SECOND_US);
    assert_true(kube_lease_is_held(one->lease));
}

static void a_creation_that_may_have_happened_is_found_and_made_sure(void **state)
{
    struct world *world = *state;
    struct contender *one;

    fake_answer(world->fake, "GET", LEASE,
                (struct fake_answer){ .status = 404,
                                      .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\"}" });
    one = enter(world, 0);
    world->store.lose_answers = true;
    fake_run_for(world->fake, SECOND_US);
    assert_non_null(world->store.object);
    assert_int_equal(one->gained, 0);
    world->store.lose_answers = false;
    fake_run_for(world->fake, 3 * SECOND_US);
    assert_int_equal(one->gained, 1);
}

static void refusals_are_asked_again_and_hold_nothing(void **state)
{
    struct world *world = *state;
    struct contender *one;

    fake_answer(world->fake, "GET", LEASE,
                (struct fake_answer){ .status = 403,
                                      .times = 3,
                                      .body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\"}" });
    fake_answer(world->fake, "POST", LEASES,
                (struct fake_answer){ .status = 404, /* no such namespace, yet */
                                      .times = 2,
                                      .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\"}" });
    one = enter(world, 0);
    fake_run_for(world->fake, 7 * SECOND_US);
    assert_int_equal(one->gained, 0);
    fake_run_for(world->fake, 10 * SECOND_US);
    assert_int_equal(one->gained, 1);
}

static void a_clean_stop_lets_the_next_one_in_at_once(void **state)
{
    struct world *world = *state;
    struct contender *one = enter(world, 0), *two;

    fake_run_for(world->fake, SECOND_US);
    two = enter(world, 1);
    fake_run_for(world->fake, 3 * SECOND_US);
    kube_lease_release(one->lease, on_released, one);
    assert_false(kube_lease_is_held(one->lease));
    assert_int_equal(one->released, 0);
    fake_run_for(world->fake, 10);
    assert_int_equal(one->released, 1);
    stored_spec_is(world, "holderIdentity", "\"\"");
    stored_spec_is(world, "leaseDurationSeconds", "1");
    stored_spec_is(world, "leaseTransitions", "0");
    fake_run_for(world->fake, 3 * SECOND_US);
    assert_true(kube_lease_is_held(two->lease));
    stored_spec_is(world, "leaseTransitions", "1");
    assert_int_equal(one->lost, 0); /* it was our own wish */
}

static void whether_it_was_given_up_before_is_known_while_it_is_held(void **state)
{
    struct world *world = *state;
    struct contender *one = enter(world, 0), *two;

    fake_run_for(world->fake, 3 * SECOND_US);
    assert_true(kube_lease_is_held(one->lease));
    assert_false(kube_lease_was_released(one->lease)); /* there was none */

    kube_lease_release(one->lease, on_released, one);
    fake_run_for(world->fake, SECOND_US);
    two = enter(world, 1);
    assert_false(kube_lease_was_released(two->lease));
    fake_run_for(world->fake, SECOND_US);
    assert_true(kube_lease_is_held(two->lease));
    assert_true(kube_lease_was_released(two->lease));
    assert_false(kube_lease_was_released(one->lease));
    fake_run_for(world->fake, 30 * SECOND_US); /* renewals change nothing */
    assert_true(kube_lease_was_released(two->lease));
}

static void an_expired_lease_was_not_given_up(void **state)
{
    struct world *world = *state;
    struct contender *one;

    store_foreign(world, "else", 15);
    one = enter(world, 0);
    fake_run_for(world->fake, 20 * SECOND_US);
    assert_true(kube_lease_is_held(one->lease));
    assert_false(kube_lease_was_released(one->lease));
}

static void a_pause_of_our_own_is_no_clean_end(void **state)
{
    struct world *world = *state;
    struct contender *one;

    store_foreign(world, "", 1);
    one = enter(world, 0);
    fake_run_for(world->fake, 3 * SECOND_US);
    assert_true(kube_lease_was_released(one->lease));
    world->store.down = true;
    fake_run_for(world->fake, 12 * SECOND_US);
    assert_int_equal(one->lost, 1);
    world->store.down = false;
    fake_run_for(world->fake, 3 * SECOND_US);
    assert_true(kube_lease_is_held(one->lease));
    assert_false(kube_lease_was_released(one->lease));
}

static void a_claim_that_may_have_happened_keeps_what_it_replaced(void **state)
{
    struct world *world = *state;
    struct contender *one;

    store_foreign(world, "", 1);
    fake_answer(world->fake, "GET", LEASE,
                (struct fake_answer){ .status = 200, .body = world->store.object });
    one = enter(world, 0);
    world->store.lose_answers = true; /* the claim is written, and nobody hears of it */
    fake_run_for(world->fake, SECOND_US);
    assert_false(kube_lease_is_held(one->lease));
    stored_spec_is(world, "holderIdentity", "\"one\"");
    world->store.lose_answers = false;
    fake_run_for(world->fake, 5 * SECOND_US);
    assert_true(kube_lease_is_held(one->lease));
    assert_true(kube_lease_was_released(one->lease));
}

static void a_release_waits_for_the_write_under_way(void **state)
{
    struct world *world = *state;
    struct contender *one;

    fake_answer(world->fake, "POST", LEASES,
                (struct fake_answer){ .status = 201,
                                      .delay_us = SECOND_US,
                                      .body = "{\"metadata\":{\"resourceVersion\":\"5\"},"
                                              "\"spec\":{\"holderIdentity\":\"one\"}}" });
    fake_answer(world->fake, "PUT", LEASE, (struct fake_answer){ .status = 200, .body = "{}" });
    one = enter(world, 0);
    fake_run_for(world->fake, SECOND_US / 2);
    kube_lease_release(one->lease, on_released, one);
    assert_int_equal(one->released, 0);
    fake_run_for(world->fake, SECOND_US);
    assert_int_equal(one->released, 1);
    assert_int_equal(one->gained, 0);
    assert_string_equal(fake_last_sent(world->fake)->method, "PUT");
    assert_non_null(strstr(fake_last_sent(world->fake)->body, "\"holderIdentity\":\"\""));
    assert_non_null(strstr(fake_last_sent(world->fake)->body, "\"resourceVersion\":\"5\""));
}

static void a_release_ends_also_when_the_server_is_away(void **state)
{
    struct world *world = *state;
    struct contender *one = enter(world, 0);

    fake_run_for(world->fake, SECOND_US);
    world->store.down = true;
    fake_run_for(world->fake, 2 * SECOND_US);
    kube_lease_release(one->lease, on_released, one);
    fake_run_for(world->fake, 20 * SECOND_US);
    assert_int_equal(one->released, 1);
    assert_false(kube_lease_is_held(one->lease));
}

static void a_contender_that_never_held_it_releases_without_a_write(void **state)
{
    struct world *world = *state;
    struct contender *one;

    store_foreign(world, "else", 15);
    one = enter(world, 0);
    fake_run_for(world->fake, SECOND_US);
    kube_lease_release(one->lease, on_released, one);
    fake_run_for(world->fake, SECOND_US);
    assert_int_equal(one->released, 1);
    stored_spec_is(world, "holderIdentity", "\"else\"");
    assert_int_equal(world->store.writes, 1);
}

static void a_deadline_as_long_as_the_lease_is_lowered(void **state)
{
    struct world *world = *state;
    struct kube_lease_options options = { .ns = "slinc",
                                          .name = "bridge",
                                          .identity = "one",
                                          .duration_us = 9 * SECOND_US,
                                          .renew_deadline_us = 9 * SECOND_US };
    struct contender *one = &world->contenders[0];

    one->lease = kube_lease_new(world->client, &world->rand, &options);
    kube_lease_start(one->lease, NULL, NULL);
    fake_run_for(world->fake, 1);
    assert_int_equal(kube_lease_valid_until_us(one->lease), 7 * SECOND_US);
}

/* --- many contenders, a bad network, days of it --- */

static int64_t bad_travel(void *context, const struct fake_sent *sent)
{
    struct world *world = context;

    if (!rand_chance(&world->rand, world->trouble_permille))
        return rand_range(&world->rand, 0, SECOND_US / 20);
    if (rand_chance(&world->rand, 300))
        return -rand_range(&world->rand, 1, 3 * SECOND_US);
    return rand_range(&world->rand, 0, 30 * SECOND_US); /* long after its sender gave up */
}

static struct fake_answer bad_serve(void *context, const struct fake_sent *sent)
{
    struct world *world = context;
    struct fake_answer answer;

    if (rand_chance(&world->rand, world->trouble_permille / 4))
        return (struct fake_answer){ .status = 503 };
    answer = serve(world, sent);
    if (rand_chance(&world->rand, world->trouble_permille / 2))
        return (struct fake_answer){ .class = ERR_UNKNOWN };
    answer.delay_us = rand_chance(&world->rand, world->trouble_permille)
                          ? rand_range(&world->rand, 0, 12 * SECOND_US)
                          : rand_range(&world->rand, 0, SECOND_US / 20);
    return answer;
}

static struct contender *holder(struct world *world)
{
    struct contender *found = NULL;

    for (unsigned i = 0; i < MAX_CONTENDERS; i++) {
        struct contender *contender = &world->contenders[i];

        if (!contender->lease || !kube_lease_is_held(contender->lease))
            continue;
        assert_null(found); /* the promise */
        found = contender;
    }
    return found;
}

static void disturb(struct world *world)
{
    unsigned index = (unsigned)rand_below(&world->rand, MAX_CONTENDERS);
    struct contender *contender = &world->contenders[index];

    if (rand_chance(&world->rand, 300)) {
        world->trouble_permille = (unsigned)rand_below(&world->rand, 600);
    } else if (rand_chance(&world->rand, 300)) {
        clock_set_wall_us(&world->clock, START_WALL + rand_range(&world->rand, 0, 1 << 30));
    } else if (!contender->lease) {
        enter(world, index);
    } else if (rand_chance(&world->rand, 300)) {
        kube_lease_release(contender->lease, on_released, contender);
        fake_run_for(world->fake, 5 * SECOND_US);
        leave(contender);
    } else if (rand_chance(&world->rand, 300)) {
        leave(contender); /* a crash: what it sent still travels */
    }
}

static void run_seed(struct world *world, uint64_t seed)
{
    int64_t end_us = loop_now_us(world->loop) + INT64_C(6000) * SECOND_US;
    int64_t disturb_us = 0, held_us = 0, before_us = loop_now_us(world->loop);

    rand_init(&world->rand, seed);
    fake_travel(world->fake, bad_travel, world);
    fake_serve(world->fake, bad_serve, world);
    for (unsigned i = 0; i < MAX_CONTENDERS; i++)
        enter(world, i);
    while (loop_now_us(world->loop) < end_us) {
        bool held = holder(world) != NULL;

        if (!loop_step(world->loop))
            clock_advance_us(&world->clock, SECOND_US);
        held_us += held ? loop_now_us(world->loop) - before_us : 0;
        before_us = loop_now_us(world->loop);
        if (before_us < disturb_us)
            continue;
        disturb(world);
        before_us = loop_now_us(world->loop);
        disturb_us = before_us + rand_range(&world->rand, 1, 60 * SECOND_US);
    }
    assert_true(held_us > INT64_C(1000) * SECOND_US); /* and somebody holds it, often */
    for (unsigned i = 0; i < MAX_CONTENDERS; i++)
        leave(&world->contenders[i]);
    fake_forget_sent(world->fake);
}

static void two_never_hold_it_at_once_whatever_the_network_does(void **state)
{
    for (uint64_t seed = 1; seed <= 12; seed++)
        run_seed(*state, seed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lease_that_does_not_exist_is_created_and_held),
        TEST(the_holder_renews_every_two_seconds_with_one_write),
        TEST(the_holder_stops_when_it_could_not_renew_for_ten_seconds),
        TEST(it_is_not_held_past_its_time_even_when_no_timer_ran),
        TEST(a_slow_answer_counts_from_when_the_write_was_sent),
        TEST(an_answer_that_names_another_holder_is_not_ours),
        TEST(a_lease_of_another_is_taken_after_fifteen_seconds_of_our_own_watching),
        TEST(a_lease_that_changes_is_waited_for_anew),
        TEST(a_longer_lease_of_another_is_respected_up_to_ten_minutes),
        TEST(a_free_lease_is_taken_at_once),
        TEST(a_record_with_our_name_that_we_did_not_write_is_a_twins),
        TEST(a_conflict_makes_the_holder_look_again_and_go_on),
        TEST(a_lease_that_was_written_over_is_lost_when_that_is_seen),
        TEST(a_deleted_lease_is_lost_and_created_again),
        TEST(a_renewal_that_may_have_happened_extends_nothing),
        TEST(a_creation_that_may_have_happened_is_found_and_made_sure),
        TEST(refusals_are_asked_again_and_hold_nothing),
        TEST(a_clean_stop_lets_the_next_one_in_at_once),
        TEST(whether_it_was_given_up_before_is_known_while_it_is_held),
        TEST(an_expired_lease_was_not_given_up),
        TEST(a_pause_of_our_own_is_no_clean_end),
        TEST(a_claim_that_may_have_happened_keeps_what_it_replaced),
        TEST(a_release_waits_for_the_write_under_way),
        TEST(a_release_ends_also_when_the_server_is_away),
        TEST(a_contender_that_never_held_it_releases_without_a_write),
        TEST(a_deadline_as_long_as_the_lease_is_lowered),
        TEST(two_never_hold_it_at_once_whatever_the_network_does),
    };

    return cmocka_run_group_tests_name("kube/lease", tests, NULL, NULL);
}
