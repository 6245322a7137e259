/* test_reader.c - objects that are read by name: whom, when, and what a read may change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fake_transport.h"
#include "kube/reader.h"

#include <stdio.h>
#include <string.h>

#define SECOND INT64_C(1000000)
#define PATH   "/api/v1/namespaces/n/secrets/"
#define SECRET(name, version, value)                                                               \
    "{\"metadata\":{\"namespace\":\"n\",\"name\":\"" name "\",\"uid\":\"u-" name                   \
    "\",\"resourceVersion\":\"" version "\"},\"data\":{\"k\":\"" value "\"}}"

static const struct kube_kind secret_kind = { .resource = &kube_secrets };

struct rig {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *fake;
    struct kube_client *client;
    struct rand rand;
    struct kube_cache *cache;
    struct kube_reader *reader;
    struct buf told; /* "who " each time that is_read is called */
    struct err err;
};

static void on_read(void *context, struct str who)
{
    struct rig *rig = context;

    buf_printf(&rig->told, STR_FMT " ", STR_ARG(who));
}

static int rig_up(void **state)
{
    static struct rig rig;

    rig = (struct rig){ .told = { .max = 10000 } };
    clock_init_virtual(&rig.clock, 0);
    rig.loop = loop_new_virtual(&rig.clock);
    rig.fake = fake_transport_new(rig.loop);
    rig.client = kube_client_new(rig.loop, fake_http(rig.fake));
    rand_init(&rig.rand, 1);
    rig.cache = kube_cache_new(&secret_kind, &rig.clock);
    rig.reader =
        kube_reader_new(rig.client, rig.cache, &rig.rand,
                        &(struct kube_reader_options){ .is_read = on_read, .context = &rig });
    *state = &rig;
    return 0;
}

static int rig_down(void **state)
{
    struct rig *rig = *state;

    kube_reader_free(rig->reader);
    kube_cache_free(rig->cache);
    kube_client_free(rig->client);
    fake_transport_free(rig->fake);
    loop_free(rig->loop);
    buf_done(&rig->told);
    return 0;
}

static void has(struct rig *rig, const char *name, const char *body)
{
    char path[300];

    (void)snprintf(path, sizeof(path), PATH "%s", name);
    fake_answer(rig->fake, "GET", path, (struct fake_answer){ .status = 200, .body = body });
}

static void has_none(struct rig *rig, const char *name)
{
    char path[300];

    (void)snprintf(path, sizeof(path), PATH "%s", name);
    fake_status(rig->fake, "GET", path, 404, "NotFound", "not found");
}

/* A plan that looks up what is named, with spaces between. */
static enum kube_known plan(struct rig *rig, const char *who, const char *names)
{
    struct str rest = str_of(names), name;
    char text[2 * KUBE_MAX_NAME];

    kube_reader_begin(rig->reader, str_of(who));
    while (str_next(&rest, ' ', &name)) {
        (void)snprintf(text, sizeof(text), STR_FMT, STR_ARG(name));
        (void)kube_cache_get(rig->cache, "n", text);
    }
    rig->err = (struct err){ .class = 0 };
    return kube_reader_end(rig->reader, &rig->err);
}

static const char *value_of(const struct rig *rig, const char *name)
{
    const struct kube_object *object = kube_cache_get(rig->cache, "n", name);

    return object ? json_str(json_at(((const struct kube_tree *)(const void *)object)->root, "data",
                                     "k"))
                        .at
                  : "-";
}

static void what_was_not_read_yet_is_not_known_to_be_absent(void **state)
{
    struct rig *rig = *state;

    assert_true(kube_cache_is_synced(rig->cache));
    has(rig, "a", SECRET("a", "5", "x"));
    has_none(rig, "b");
    assert_int_equal(plan(rig, "one", "a b"), KUBE_NOT_READ_YET);
    assert_string_equal(buf_text(&rig->told), "");
    fake_run_for(rig->fake, 1000);
    assert_string_equal(buf_text(&rig->told), "one ");
    assert_int_equal(plan(rig, "one", "a b"), KUBE_KNOWN);
    assert_string_equal(value_of(rig, "a"), "x");
    assert_string_equal(value_of(rig, "b"), "-");
}

static void nothing_is_listed_or_watched(void **state)
{
    struct rig *rig = *state;

    has(rig, "a", SECRET("a", "5", "x"));
    (void)plan(rig, "one", "a a");
    fake_run_for(rig->fake, 5 * SECOND);
    assert_int_equal(fake_sent_count(rig->fake), 1);
    assert_string_equal(fake_sent(rig->fake, 0)->path, PATH "a");
    assert_false(fake_sent(rig->fake, 0)->stream);
}

static void only_what_a_plan_looks_up_is_read(void **state)
{
    struct rig *rig = *state;

    assert_string_equal(value_of(rig, "a"), "-"); /* outside of plans */
    assert_int_equal(plan(rig, "one", ""), KUBE_KNOWN);
    fake_run_for(rig->fake, 60 * SECOND);
    assert_int_equal(fake_sent_count(rig->fake), 0);
}

static void a_change_shows_within_the_refresh(void **state)
{
    struct rig *rig = *state;

    has(rig, "a", SECRET("a", "5", "x"));
    has(rig, "a", SECRET("a", "6", "y"));
    (void)plan(rig, "one", "a");
    fake_run_for(rig->fake, 5 * SECOND);
    assert_string_equal(value_of(rig, "a"), "x");
    fake_run_for(rig->fake, 6 * SECOND);
    assert_string_equal(value_of(rig, "a"), "y");
    assert_string_equal(buf_text(&rig->told), "one "); /* listeners of the cache tell the rest */
}

static void what_comes_late_shows_in_seconds(void **state)
{
    struct rig *rig = *state;

    has_none(rig, "a");
    (void)plan(rig, "one", "a");
    fake_run_for(rig->fake, SECOND);
    has(rig, "a", SECRET("a", "7", "x"));
    fake_run_for(rig->fake, 2 * SECOND);
    assert_string_equal(value_of(rig, "a"), "x");
}

static void what_is_deleted_leaves_the_cache(void **state)
{
    struct rig *rig = *state;

    has(rig, "a", SECRET("a", "5", "x"));
    has_none(rig, "a");
    has_none(rig, "a");
    (void)plan(rig, "one", "a");
    fake_run_for(rig->fake, 11 * SECOND + 100000);
    assert_string_equal(value_of(rig, "a"), "-");
}

static void a_read_that_fails_changes_nothing(void **state)
{
    struct rig *rig = *state;

    has(rig, "a", SECRET("a", "5", "x"));
    fake_status(rig->fake, "GET", PATH "a", 500, "InternalError", "no");
    fake_answer(rig->fake, "GET", PATH "a",
                (struct fake_answer){ .status = 404, .body = "a proxy's" });
    fake_status(rig->fake, "GET", PATH "a", 403, "Forbidden", "no more");
    has(rig, "a", SECRET("a", "6", "y"));
    (void)plan(rig, "one", "a");
    while (fake_sent_count(rig->fake) < 4)
        fake_run_for(rig->fake, 10000);
    assert_int_equal(plan(rig, "one", "a"), KUBE_KNOWN);
    assert_string_equal(value_of(rig, "a"), "x");
    assert_string_equal(kube_reader_last_error(rig->reader), "read of Secret n/a: no more");
    while (fake_sent_count(rig->fake) < 5)
        fake_run_for(rig->fake, 10000);
    assert_string_equal(value_of(rig, "a"), "y");
    assert_string_equal(kube_reader_last_error(rig->reader), "");
}

static void what_may_not_be_read_is_said_and_tried_again(void **state)
{
    struct rig *rig = *state;

    fake_status(rig->fake, "GET", PATH "a", 403, "Forbidden", "you may not");
    has(rig, "a", SECRET("a", "5", "x"));
    (void)plan(rig, "one", "a");
    fake_run_for(rig->fake, 1000);
    assert_int_equal(plan(rig, "one", "a"), KUBE_UNREADABLE);
    assert_int_equal(rig->err.class, ERR_DENIED);
    assert_string_equal(rig->err.text, "read of Secret n/a: you may not");
    fake_run_for(rig->fake, SECOND);
    assert_string_equal(buf_text(&rig->told), "one one ");
    assert_int_equal(plan(rig, "one", "a"), KUBE_KNOWN);
}

static void names_that_nobody_looks_up_any_more_are_let_go(void **state)
{
    struct rig *rig = *state;

    has(rig, "a", SECRET("a", "5", "x"));
    has(rig, "b", SECRET("b", "5", "y"));
    (void)plan(rig, "one", "a b");
    fake_run_for(rig->fake, SECOND);
    (void)plan(rig, "two", "b");
    (void)plan(rig, "one", "a");
    fake_run_for(rig->fake, SECOND);
    assert_string_equal(value_of(rig, "b"), "y"); /* the other one's */
    (void)plan(rig, "two", "");
    fake_run_for(rig->fake, SECOND);
    assert_string_equal(value_of(rig, "b"), "-");
    kube_reader_forget(rig->reader);
    fake_run_for(rig->fake, 60 * SECOND);
    assert_int_equal(kube_cache_count(rig->cache), 0);
    assert_int_equal(fake_sent_count(rig->fake), 2);
}

/* The answer of a read that was sent before a write of ours comes after it. */
static void a_read_does_not_overtake_a_write(void **state)
{
    struct rig *rig = *state;
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *written = NULL;
    struct kube_overlay *overlay;

    fake_answer(rig->fake, "GET", PATH "a",
                (struct fake_answer){ .status = 404,
                                      .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\"}",
                                      .delay_us = 3 * SECOND });
    (void)plan(rig, "one", "a");
    fake_run_for(rig->fake, SECOND);
    assert_int_equal(json_parse(STR(SECRET("a", "9", "x")), 1000, &doc, NULL), 0);
    assert_int_equal(kube_object_decode(&secret_kind, json_root(doc), &written, NULL), 0);
    overlay = kube_overlay_lay(rig->cache, "n", "a", written);
    kube_overlay_done(overlay, written, written->version_number);
    kube_object_unref(written);
    fake_run_for(rig->fake, 3 * SECOND);
    assert_string_equal(value_of(rig, "a"), "x");
    has(rig, "a", SECRET("a", "9", "x"));
    fake_run_for(rig->fake, SECOND);
}

static void a_name_that_cannot_exist_is_absent(void **state)
{
    struct rig *rig = *state;
    char longest[KUBE_MAX_NAME + 2];

    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    fake_status(rig->fake, "GET", PATH "a%2Fb", 400, "BadRequest", "no");
    assert_int_equal(plan(rig, "one", longest), KUBE_KNOWN);
    assert_int_equal(plan(rig, "one", "a/b"), KUBE_NOT_READ_YET);
    fake_run_for(rig->fake, 1000);
    assert_int_equal(plan(rig, "one", "a/b"), KUBE_KNOWN);
}

static struct fake_answer answer_slowly(void *context, const struct fake_sent *sent)
{
    (void)context;
    (void)sent;
    return (struct fake_answer){ .status = 500, .body = "{}", .delay_us = SECOND };
}

static void a_crowd_of_names_is_read_a_few_at_a_time(void **state)
{
    struct rig *rig = *state;
    char name[20];

    fake_serve(rig->fake, answer_slowly, NULL);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), "s%d", i);
        (void)plan(rig, name, name);
    }
    fake_run_for(rig->fake, SECOND / 2);
    assert_int_equal(fake_sent_count(rig->fake), 16);
    assert_int_equal(kube_client_in_flight(rig->client), 16);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_up, rig_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_not_read_yet_is_not_known_to_be_absent),
        TEST(nothing_is_listed_or_watched),
        TEST(only_what_a_plan_looks_up_is_read),
        TEST(a_change_shows_within_the_refresh),
        TEST(what_comes_late_shows_in_seconds),
        TEST(what_is_deleted_leaves_the_cache),
        TEST(a_read_that_fails_changes_nothing),
        TEST(what_may_not_be_read_is_said_and_tried_again),
        TEST(names_that_nobody_looks_up_any_more_are_let_go),
        TEST(a_read_does_not_overtake_a_write),
        TEST(a_name_that_cannot_exist_is_absent),
        TEST(a_crowd_of_names_is_read_a_few_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
