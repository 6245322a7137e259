/* test_review_reads.c - objects that a review needs: read once for each review, and what an answer
 * of the API server means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/review_reads.h"
#include "fake_transport.h"
#include "kube/kinds.h"

#include <stdio.h>

enum { SECOND_US = 1000000 };

#define FILES "/api/v1/namespaces/site/configmaps/files"

struct rig {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *fake;
    struct kube_client *client;
    struct review_reads *reads;
};

static int begin(void **state)
{
    static struct rig rig;

    clock_init_virtual(&rig.clock, 0);
    rig.loop = loop_new_virtual(&rig.clock);
    rig.fake = fake_transport_new(rig.loop);
    rig.client = kube_client_new(rig.loop, fake_http(rig.fake));
    rig.reads = review_reads_new(rig.client);
    *state = &rig;
    return 0;
}

static int end(void **state)
{
    struct rig *rig = *state;

    review_reads_free(rig->reads);
    kube_client_free(rig->client);
    fake_transport_free(rig->fake);
    loop_free(rig->loop);
    return 0;
}

static enum review_known look(const struct rig *rig, const char *uid,
                              const struct json **ret_object)
{
    return review_reads_find(rig->reads, str_of(uid), &kube_configmaps, STR("site"), STR("files"),
                             ret_object);
}

static void an_object_is_read_once_for_each_review(void **state)
{
    struct rig *rig = *state;
    const struct json *object = NULL;

    fake_answer(rig->fake, "GET", FILES,
                (struct fake_answer){ .status = 200, .body = "{\"data\":{\"a\":\"b\"}}" });
    assert_int_equal(look(rig, "one", &object), REVIEW_NOT_READ_YET);
    assert_int_equal(look(rig, "one", &object), REVIEW_NOT_READ_YET);
    fake_run_for(rig->fake, SECOND_US);
    assert_int_equal(look(rig, "one", &object), REVIEW_EXISTS);
    assert_true(str_is(json_str(json_at(object, "data", "a")), "b"));
    assert_int_equal(fake_sent_count(rig->fake), 1);
}

static void a_later_review_reads_again(void **state)
{
    struct rig *rig = *state;
    const struct json *object = NULL;

    fake_status(rig->fake, "GET", FILES, 404, "NotFound", "configmaps \"files\" not found");
    fake_answer(rig->fake, "GET", FILES, (struct fake_answer){ .status = 200, .body = "{}" });
    assert_int_equal(look(rig, "one", &object), REVIEW_NOT_READ_YET);
    fake_run_for(rig->fake, SECOND_US);
    assert_int_equal(look(rig, "one", &object), REVIEW_ABSENT);
    assert_int_equal(look(rig, "two", &object), REVIEW_NOT_READ_YET);
    fake_run_for(rig->fake, SECOND_US);
    assert_int_equal(look(rig, "two", &object), REVIEW_EXISTS);
    assert_int_equal(look(rig, "one", &object), REVIEW_ABSENT);
}

static void only_not_found_means_absent(void **state)
{
    struct rig *rig = *state;
    const struct json *object = NULL;
    static const char *const uids[] = { "denied", "down", "silent", "no reason" };

    fake_status(rig->fake, "GET", FILES, 403, "Forbidden", "no");
    fake_answer(rig->fake, "GET", FILES, (struct fake_answer){ .class = ERR_UNAVAILABLE });
    fake_answer(rig->fake, "GET", FILES, (struct fake_answer){ .status = 0 });
    fake_answer(rig->fake, "GET", FILES, (struct fake_answer){ .status = 404, .body = "proxy" });
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(look(rig, uids[i], &object), REVIEW_NOT_READ_YET);
    fake_run_for(rig->fake, 3 * SECOND_US);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(look(rig, uids[i], &object), REVIEW_CANNOT_BE_READ);
}

static void what_was_read_is_forgotten(void **state)
{
    struct rig *rig = *state;
    const struct json *object = NULL;

    fake_answer(rig->fake, "GET", FILES,
                (struct fake_answer){ .status = 200, .body = "{}", .times = 2 });
    (void)look(rig, "one", &object);
    fake_run_for(rig->fake, 40 * SECOND_US);
    assert_int_equal(look(rig, "one", &object), REVIEW_NOT_READ_YET);
    fake_run_for(rig->fake, SECOND_US);
    assert_int_equal(fake_sent_count(rig->fake), 2);
}

static void too_many_reads_at_once_are_not_known(void **state)
{
    struct rig *rig = *state;
    const struct json *object = NULL;
    char uid[32];

    fake_answer(rig->fake, "GET", FILES,
                (struct fake_answer){ .status = 200, .body = "{}", .times = FAKE_ALWAYS });
    for (int i = 0; i < REVIEW_READS_MAX; i++) {
        (void)snprintf(uid, sizeof(uid), "%d", i);
        assert_int_equal(look(rig, uid, &object), REVIEW_NOT_READ_YET);
    }
    assert_int_equal(look(rig, "more", &object), REVIEW_CANNOT_BE_READ);
}

static void reads_in_flight_end_with_their_owner(void **state)
{
    struct rig *rig = *state;
    const struct json *object = NULL;

    fake_answer(rig->fake, "GET", FILES, (struct fake_answer){ .status = 0 });
    assert_int_equal(look(rig, "one", &object), REVIEW_NOT_READ_YET);
    /* the rig is freed now */
}

#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        WITH_RIG(an_object_is_read_once_for_each_review),
        WITH_RIG(a_later_review_reads_again),
        WITH_RIG(only_not_found_means_absent),
        WITH_RIG(what_was_read_is_forgotten),
        WITH_RIG(too_many_reads_at_once_are_not_known),
        WITH_RIG(reads_in_flight_end_with_their_owner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
