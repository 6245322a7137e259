/* test_event.c - Events are told once, counted when repeated, and never in a flood. */
#include "kube/event.h"

#include "base/mem.h"
#include "fake_transport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define EVENTS "/apis/events.k8s.io/v1/namespaces/a/events"
#define SECOND INT64_C(1000000)

struct world {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *fake;
    struct kube_client *client;
    struct kube_recorder *recorder;
    int create_status, patch_status;
    unsigned creates, patches;
    char last_patch[256], last_path[256];
};

static const struct kube_event_object pod = { "v1", "Pod", "a", "web-0", "uid-1" };

static struct fake_answer serve(void *context, const struct fake_sent *sent)
{
    struct world *world = context;
    bool creates = strcmp(sent->method, "POST") == 0;
    int status = creates ? world->create_status : world->patch_status;

    world->creates += creates;
    world->patches += !creates;
    if (!creates) {
        assert_string_equal(sent->method, "PATCH");
        snprintf(world->last_patch, sizeof(world->last_patch), "%s", sent->body);
        snprintf(world->last_path, sizeof(world->last_path), "%s", sent->path);
    }
    return (struct fake_answer){ .status = status,
                                 .body = status == 404 ? "{\"kind\":\"Status\","
                                                         "\"reason\":\"NotFound\"}"
                                                       : "{}" };
}

static int set_up(void **state)
{
    struct world *world = mem_alloc(sizeof(*world));

    clock_init_virtual(&world->clock, INT64_C(1767225600000000));
    world->loop = loop_new_virtual(&world->clock);
    world->fake = fake_transport_new(world->loop);
    world->client = kube_client_new(world->loop, fake_http(world->fake));
    world->recorder = kube_recorder_new(
        world->client,
        &(struct kube_recorder_options){ .controller = "slinc/bridge", .instance = "bridge-0" });
    world->create_status = 201;
    world->patch_status = 200;
    fake_serve(world->fake, serve, world);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    kube_recorder_free(world->recorder);
    kube_client_free(world->client);
    fake_transport_free(world->fake);
    loop_free(world->loop);
    mem_free(world);
    return 0;
}

static void say(struct world *world, const char *note)
{
    kube_event(world->recorder, &pod, KUBE_EVENT_WARNING, "Refused", "Submitting", "%s", note);
}

static void an_event_says_who_what_and_about_which_object(void **state)
{
    struct world *world = *state;
    const struct fake_sent *sent;

    kube_event(world->recorder, &pod, KUBE_EVENT_WARNING, "Refused", "Submitting", "job %d: %s", 7,
               "no \"account\"");
    fake_run_for(world->fake, 1);
    sent = fake_last_sent(world->fake);
    assert_string_equal(sent->path, EVENTS);
    assert_string_equal(
        sent->body,
        "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{\"name\":"
        "\"web-0.18867251edfa0000\",\"namespace\":\"a\"},\"eventTime\":"
        "\"2026-01-01T00:00:00.000000Z\",\"reportingController\":\"slinc/bridge\","
        "\"reportingInstance\":\"bridge-0\",\"type\":\"Warning\",\"reason\":\"Refused\","
        "\"action\":\"Submitting\",\"note\":\"job 7: no \\\"account\\\"\",\"regarding\":"
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"namespace\":\"a\",\"name\":\"web-0\","
        "\"uid\":\"uid-1\"}}");
}

static void an_event_about_a_cluster_object_lives_in_default(void **state)
{
    struct world *world = *state;
    struct kube_event_object node = { "v1", "Node", NULL, "n1", "u" };

    kube_event(world->recorder, &node, KUBE_EVENT_NORMAL, "Drained", NULL, "done");
    fake_run_for(world->fake, 1);
    assert_string_equal(fake_last_sent(world->fake)->path,
                        "/apis/events.k8s.io/v1/namespaces/default/events");
    assert_non_null(strstr(fake_last_sent(world->fake)->body, "\"action\":\"Drained\""));
    assert_non_null(strstr(fake_last_sent(world->fake)->body, "\"type\":\"Normal\""));
    assert_null(strstr(fake_last_sent(world->fake)->body, "\"namespace\":\"\""));
}

static void a_repeat_is_counted_in_the_series_of_the_first(void **state)
{
    struct world *world = *state;

    for (int i = 0; i < 50; i++)
        say(world, "same");
    fake_run_for(world->fake, 9 * SECOND);
    assert_int_equal(world->creates, 1);
    assert_int_equal(world->patches, 0);
    fake_run_for(world->fake, 2 * SECOND);
    assert_int_equal(world->patches, 1);
    assert_string_equal(world->last_patch, "{\"series\":{\"count\":50,\"lastObservedTime\":"
                                           "\"2026-01-01T00:00:00.000000Z\"}}");
    assert_string_equal(world->last_path, EVENTS "/web-0.18867251edfa0000");
    fake_run_for(world->fake, 60 * SECOND);
    assert_int_equal(world->patches, 1); /* nothing new, nothing written */
    say(world, "same");
    fake_run_for(world->fake, 11 * SECOND);
    assert_int_equal(world->patches, 2);
    assert_int_equal(world->creates, 1);
}

static void other_words_or_another_object_are_another_event(void **state)
{
    struct world *world = *state;
    struct kube_event_object reborn = pod;

    reborn.uid = "uid-2";
    say(world, "one");
    say(world, "two");
    kube_event(world->recorder, &pod, KUBE_EVENT_NORMAL, "Refused", "Submitting", "one");
    kube_event(world->recorder, &pod, KUBE_EVENT_WARNING, "Other", "Submitting", "one");
    kube_event(world->recorder, &reborn, KUBE_EVENT_WARNING, "Refused", "Submitting", "one");
    fake_run_for(world->fake, 1);
    assert_int_equal(world->creates, 5);
    assert_string_not_equal(fake_sent(world->fake, 0)->body, fake_sent(world->fake, 1)->body);
}

static void after_six_quiet_minutes_it_is_news_again(void **state)
{
    struct world *world = *state;

    say(world, "same");
    fake_run_for(world->fake, 359 * SECOND);
    say(world, "same");
    fake_run_for(world->fake, 359 * SECOND);
    assert_int_equal(world->creates, 1);
    fake_run_for(world->fake, 2 * SECOND);
    say(world, "same");
    fake_run_for(world->fake, 1);
    assert_int_equal(world->creates, 2);
}

static void the_recorder_rests_when_nothing_is_remembered(void **state)
{
    struct world *world = *state;

    say(world, "same");
    loop_run(world->loop); /* ends: no timer is left */
    assert_true(loop_now_us(world->loop) < 400 * SECOND);
}

static void one_object_cannot_speak_more_than_its_share(void **state)
{
    struct world *world = *state;
    struct kube_event_object other = pod;

    for (int i = 0; i < 100; i++)
        kube_event(world->recorder, &pod, KUBE_EVENT_NORMAL, "R", "A", "note %d", i);
    fake_run_for(world->fake, 1);
    assert_int_equal(world->creates, 5);
    other.name = "web-1";
    kube_event(world->recorder, &other, KUBE_EVENT_NORMAL, "R", "A", "note");
    fake_run_for(world->fake, SECOND);
    assert_int_equal(world->creates, 6);
    for (int i = 0; i < 100; i++)
        kube_event(world->recorder, &pod, KUBE_EVENT_NORMAL, "R", "A", "again %d", i);
    fake_run_for(world->fake, 1);
    assert_int_equal(world->creates, 11);
}

static void all_together_keep_to_the_rate(void **state)
{
    struct world *world = *state;

    for (int i = 0; i < 1000; i++) {
        char name[16];
        struct kube_event_object object = { "v1", "Pod", "a", name, "u" };

        snprintf(name, sizeof(name), "p%d", i);
        kube_event(world->recorder, &object, KUBE_EVENT_NORMAL, "R", "A", "note");
    }
    fake_run_for(world->fake, 1);
    assert_int_equal(world->creates, 20);
}

static void say_of_each(struct world *world, int count)
{
    for (int i = 0; i < count; i++) {
        char name[16];
        struct kube_event_object object = { "v1", "Pod", "a", name, "u" };

        snprintf(name, sizeof(name), "p%d", i);
        kube_event(world->recorder, &object, KUBE_EVENT_NORMAL, "R", "A", "note");
        fake_run_for(world->fake, SECOND / 20);
    }
}

static void counts_above_the_rate_are_written_in_turn(void **state)
{
    struct world *world = *state;
    bool was_written[50] = { false };

    say_of_each(world, 50);
    fake_forget_sent(world->fake);
    for (int tick = 0; tick < 4; tick++) { /* of 10 s each, with room for 20 counts */
        say_of_each(world, 50);
        fake_run_for(world->fake, 75 * SECOND / 10);
    }
    for (size_t i = 0; i < fake_sent_count(world->fake); i++) {
        const char *name = strstr(fake_sent(world->fake, i)->path, EVENTS "/p");

        if (name)
            was_written[strtoul(name + sizeof(EVENTS "/p") - 1, NULL, 10) % 50] = true;
    }
    for (int i = 0; i < 50; i++)
        if (!was_written[i])
            fail_msg("p%d was never written", i);
}

static void a_great_many_events_need_bounded_memory(void **state)
{
    struct world *world = *state;

    say_of_each(world, 6000);
    assert_int_equal(world->creates, 6000); /* the oldest series made room */
}

static void a_long_note_is_cut_at_a_whole_character(void **state)
{
    struct world *world = *state;
    auto_json_doc struct json_doc *doc = NULL;
    char note[3001];
    struct str sent;

    memset(note, 'x', sizeof(note));
    for (size_t i = 1023; i + 1 < sizeof(note); i += 2)
        memcpy(note + i, "\xc3\xa4", 2);
    note[sizeof(note) - 1] = '\0';
    say(world, note);
    fake_run_for(world->fake, 1);
    assert_int_equal(json_parse(str_of(fake_last_sent(world->fake)->body), 8192, &doc, NULL), 0);
    sent = json_str(json_get(json_root(doc), "note"));
    assert_int_equal(sent.len, 1023);
    assert_true(str_is_utf8(sent));
}

static void long_names_and_words_are_cut_to_what_the_server_takes(void **state)
{
    struct world *world = *state;
    auto_json_doc struct json_doc *doc = NULL;
    char name[254], word[300];
    struct kube_event_object object = { "v1", "Pod", "a", name, "u" };

    memset(name, 'n', sizeof(name) - 1);
    name[199] = '-';
    name[sizeof(name) - 1] = '\0';
    memset(word, 'w', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    kube_event(world->recorder, &object, KUBE_EVENT_NORMAL, word, word, "note");
    fake_run_for(world->fake, 1);
    assert_int_equal(json_parse(str_of(fake_last_sent(world->fake)->body), 8192, &doc, NULL), 0);
    assert_int_equal(json_str(json_get(json_root(doc), "reason")).len, 128);
    assert_int_equal(json_str(json_get(json_root(doc), "action")).len, 128);
    assert_int_equal(json_str(json_at(json_root(doc), "metadata", "name")).len, 199 + 17);
}

static void an_event_that_was_not_taken_is_tried_anew_next_time(void **state)
{
    struct world *world = *state;

    world->create_status = 403;
    say(world, "same");
    fake_run_for(world->fake, 1);
    world->create_status = 201;
    say(world, "same");
    fake_run_for(world->fake, 1);
    assert_int_equal(world->creates, 2);
}

static void a_series_whose_event_is_gone_starts_anew(void **state)
{
    struct world *world = *state;

    say(world, "same");
    say(world, "same");
    world->patch_status = 404;
    fake_run_for(world->fake, 11 * SECOND);
    assert_int_equal(world->patches, 1);
    say(world, "same");
    fake_run_for(world->fake, 1);
    assert_int_equal(world->creates, 2);
}

static void a_count_that_was_not_taken_is_written_with_the_next_repeat(void **state)
{
    struct world *world = *state;

    say(world, "same");
    say(world, "same");
    world->patch_status = 500;
    fake_run_for(world->fake, 30 * SECOND);
    assert_int_equal(world->patches, 1);
    world->patch_status = 200;
    say(world, "same");
    fake_run_for(world->fake, 11 * SECOND);
    assert_int_equal(world->patches, 2);
    assert_non_null(strstr(world->last_patch, "\"count\":3"));
}

static void freeing_gives_up_what_is_under_way(void **state)
{
    struct world *world = *state;

    say(world, "same");
    kube_recorder_free(world->recorder);
    world->recorder = NULL;
    loop_run(world->loop);
    assert_int_equal(kube_client_in_flight(world->client), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_event_says_who_what_and_about_which_object),
        TEST(an_event_about_a_cluster_object_lives_in_default),
        TEST(a_repeat_is_counted_in_the_series_of_the_first),
        TEST(other_words_or_another_object_are_another_event),
        TEST(after_six_quiet_minutes_it_is_news_again),
        TEST(the_recorder_rests_when_nothing_is_remembered),
        TEST(one_object_cannot_speak_more_than_its_share),
        TEST(all_together_keep_to_the_rate),
        TEST(counts_above_the_rate_are_written_in_turn),
        TEST(a_great_many_events_need_bounded_memory),
        TEST(a_long_note_is_cut_at_a_whole_character),
        TEST(long_names_and_words_are_cut_to_what_the_server_takes),
        TEST(an_event_that_was_not_taken_is_tried_anew_next_time),
        TEST(a_series_whose_event_is_gone_starts_anew),
        TEST(a_count_that_was_not_taken_is_written_with_the_next_repeat),
        TEST(freeing_gives_up_what_is_under_way),
    };

    return cmocka_run_group_tests_name("kube/event", tests, NULL, NULL);
}
