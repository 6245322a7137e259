/* test_discovery.c - absent is a fact, "could not ask" is none. */
#include "kube/discovery.h"

#include "base/mem.h"
#include "fake_transport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define PATH "/apis/resource.k8s.io/v1"
#define LIST                                                                                       \
    "{\"kind\":\"APIResourceList\",\"groupVersion\":\"resource.k8s.io/v1\",\"resources\":["        \
    "{\"name\":\"resourceclaims\"},{\"name\":\"resourceclaims/status\"}]}"

enum { SECOND_US = 1000000 };

struct world {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *fake;
    struct kube_client *client;
    struct kube_discovery *discovery;
    unsigned answers;
    enum kube_presence presence;
    char message[256];
    bool frees;
};

static int set_up(void **state)
{
    struct world *world = mem_alloc(sizeof(*world));

    clock_init_virtual(&world->clock, 0);
    world->loop = loop_new_virtual(&world->clock);
    world->fake = fake_transport_new(world->loop);
    world->client = kube_client_new(world->loop, fake_http(world->fake));
    world->discovery = kube_discovery_new(world->client);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    kube_discovery_free(world->discovery);
    kube_client_free(world->client);
    fake_transport_free(world->fake);
    loop_free(world->loop);
    mem_free(world);
    return 0;
}

static void on_discovered(void *context, enum kube_presence presence, const char *message)
{
    struct world *world = context;

    world->answers++;
    world->presence = presence;
    snprintf(world->message, sizeof(world->message), "%s", message);
    if (world->frees) {
        kube_discovery_free(world->discovery);
        world->discovery = NULL;
    }
}

static enum kube_presence ask(struct world *world, const char *plural)
{
    world->answers = 0;
    kube_discover(world->discovery, "resource.k8s.io/v1", plural, on_discovered, world);
    assert_int_equal(world->answers, 0);
    loop_run(world->loop);
    assert_int_equal(world->answers, 1);
    return world->presence;
}

static void what_the_server_lists_is_present(void **state)
{
    struct world *world = *state;

    fake_answer(world->fake, "GET", PATH, (struct fake_answer){ .status = 200, .body = LIST });
    assert_int_equal(ask(world, "resourceclaims"), KUBE_PRESENT);
    assert_int_equal(ask(world, NULL), KUBE_PRESENT);
    assert_int_equal(ask(world, "deviceclasses"), KUBE_ABSENT);
    assert_int_equal(ask(world, "resourceclaim"), KUBE_ABSENT);
    assert_int_equal(fake_sent_count(world->fake), 1);
    assert_string_equal(world->message, "");
}

static void the_core_group_has_a_path_of_its_own(void **state)
{
    struct world *world = *state;

    fake_answer(
        world->fake, "GET", "/api/v1",
        (struct fake_answer){ .status = 200, .body = "{\"resources\":[{\"name\":\"pods\"}]}" });
    kube_discover(world->discovery, "v1", "pods", on_discovered, world);
    loop_run(world->loop);
    assert_int_equal(world->presence, KUBE_PRESENT);
}

static void a_404_is_a_fact_and_holds_for_ten_seconds(void **state)
{
    struct world *world = *state;

    fake_answer(world->fake, "GET", PATH,
                (struct fake_answer){ .status = 404, .body = "404 page not found" });
    assert_int_equal(ask(world, "resourceclaims"), KUBE_ABSENT);
    fake_run_for(world->fake, 9 * SECOND_US);
    assert_int_equal(ask(world, "resourceclaims"), KUBE_ABSENT);
    assert_int_equal(fake_sent_count(world->fake), 1);
    fake_run_for(world->fake, 2 * SECOND_US);
    fake_answer(world->fake, "GET", PATH, (struct fake_answer){ .status = 200, .body = LIST });
    assert_int_equal(ask(world, "resourceclaims"), KUBE_PRESENT);
}

static void a_missing_resource_is_asked_for_again_after_ten_seconds(void **state)
{
    struct world *world = *state;

    fake_answer(world->fake, "GET", PATH,
                (struct fake_answer){ .status = 200, .body = "{\"resources\":[]}" });
    assert_int_equal(ask(world, "resourceclaims"), KUBE_ABSENT);
    fake_run_for(world->fake, 11 * SECOND_US);
    fake_answer(world->fake, "GET", PATH, (struct fake_answer){ .status = 200, .body = LIST });
    assert_int_equal(ask(world, "resourceclaims"), KUBE_PRESENT);
    fake_run_for(world->fake, INT64_C(86400) * SECOND_US);
    assert_int_equal(ask(world, "resourceclaims"), KUBE_PRESENT); /* for good */
}

static void failing_to_ask_says_nothing_and_is_not_remembered(void **state)
{
    static const struct fake_answer rows[] = {
        { .class = ERR_UNAVAILABLE },
        { .class = ERR_UNKNOWN },
        { .class = ERR_DENIED },
        { .status = 503 },
        { .status = 500 },
        { .status = 403 },
        { .status = 200, .body = "<html>" },
        { .status = 200, .body = "{\"kind\":\"APIGroup\"}" },
        { .status = 0 }, /* silence */
    };
    struct world *world = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake_answer(world->fake, "GET", PATH, rows[i]);
        assert_int_equal(ask(world, "resourceclaims"), KUBE_CANNOT_ASK);
        assert_true(world->message[0] != '\0');
    }
    fake_answer(world->fake, "GET", PATH, (struct fake_answer){ .status = 200, .body = LIST });
    assert_int_equal(ask(world, "resourceclaims"), KUBE_PRESENT);
}

static void questions_at_the_same_time_share_one_request(void **state)
{
    struct world *world = *state;

    fake_answer(world->fake, "GET", PATH, (struct fake_answer){ .status = 200, .body = LIST });
    for (int i = 0; i < 5; i++)
        kube_discover(world->discovery, "resource.k8s.io/v1", NULL, on_discovered, world);
    loop_run(world->loop);
    assert_int_equal(world->answers, 5);
    assert_int_equal(fake_sent_count(world->fake), 1);
}

static void a_callback_may_free_the_discovery(void **state)
{
    struct world *world = *state;

    world->frees = true;
    fake_answer(world->fake, "GET", PATH, (struct fake_answer){ .status = 200, .body = LIST });
    kube_discover(world->discovery, "resource.k8s.io/v1", "a", on_discovered, world);
    kube_discover(world->discovery, "resource.k8s.io/v1", "b", on_discovered, world);
    kube_discover(world->discovery, "other/v1", "b", on_discovered, world);
    fake_answer(world->fake, "GET", "/apis/other/v1", (struct fake_answer){ 0 });
    loop_run(world->loop);
    assert_int_equal(world->answers, 1);
}

static void too_many_groups_cannot_be_asked_for(void **state)
{
    struct world *world = *state;

    fake_answer(world->fake, "GET", PATH, (struct fake_answer){ .status = 200, .body = LIST });
    for (int i = 0; i < 256; i++) {
        char name[32], path[64];

        snprintf(name, sizeof(name), "g%d/v1", i);
        snprintf(path, sizeof(path), "/apis/%s", name);
        fake_answer(world->fake, "GET", path, (struct fake_answer){ .status = 404 });
        kube_discover(world->discovery, name, NULL, on_discovered, world);
    }
    loop_run(world->loop);
    assert_int_equal(ask(world, NULL), KUBE_CANNOT_ASK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_server_lists_is_present),
        TEST(the_core_group_has_a_path_of_its_own),
        TEST(a_404_is_a_fact_and_holds_for_ten_seconds),
        TEST(a_missing_resource_is_asked_for_again_after_ten_seconds),
        TEST(failing_to_ask_says_nothing_and_is_not_remembered),
        TEST(questions_at_the_same_time_share_one_request),
        TEST(a_callback_may_free_the_discovery),
        TEST(too_many_groups_cannot_be_asked_for),
    };

    return cmocka_run_group_tests_name("kube/discovery", tests, NULL, NULL);
}
