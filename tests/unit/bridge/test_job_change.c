/* test_job_change.c - what an update says so that a job that waits is as if it had been asked for
 * so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bridge/unit/job_change.h"
#include "bridge/unit/job_field.h"
#include "slurm/submit.h"

#include <stdio.h>

static struct job_desc plain(void)
{
    struct job_desc desc;

    job_desc_init(&desc);
    desc.name = "n";
    desc.partition = "p";
    return desc;
}

/* The update as JSON; "{}" when there is none. */
static const char *change(const struct job_desc *desc, const struct field_hashes *last)
{
    static char text[2000];
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *fields = json_new_object(build);
    auto_buf struct buf out = { .max = sizeof(text) };
    struct field_hashes noted;
    bool any = job_change(build, fields, desc, last, false, &noted);

    json_mut_write(fields, &out);
    snprintf(text, sizeof(text), "%s", buf_text(&out));
    assert_int_equal(any, strcmp(text, "{}") != 0);
    return text;
}

static const char *change_of(const struct job_desc *old, const struct job_desc *next)
{
    struct field_hashes hashes;

    field_hashes_of(old, &hashes);
    return change(next, &hashes);
}

#define SET(what) offsetof(struct job_desc, what)

/* Said where it was not, then said no more. */
static const struct {
    size_t text_at, number_at; /* one of them; a name is first: 0 is no other text's offset */
    const char *text;
    int64_t number;
    const char *said, *unsaid;
} cases[] = {
    { SET(account), 0, "x", 0, "{\"account\":\"x\"}", "{}" },
    { SET(comment), 0, "x", 0, "{\"comment\":\"x\"}", "{\"comment\":\"\"}" },
    { SET(constraints), 0, "x", 0, "{\"constraints\":\"x\"}", "{\"constraints\":\"\"}" },
    { SET(dependency), 0, "x", 0, "{\"dependency\":\"x\"}", "{\"dependency\":\"\"}" },
    { SET(licenses), 0, "x", 0, "{\"licenses\":\"x\"}", "{\"licenses\":\"\"}" },
    { SET(network), 0, "x", 0, "{\"network\":\"x\"}", "{\"network\":\"\"}" },
    { SET(qos), 0, "x", 0, "{\"qos\":\"x\"}", "{}" },
    { SET(reservation), 0, "x", 0, "{\"reservation\":\"x\"}", "{\"reservation\":\"\"}" },
    { SET(wckey), 0, "x", 0, "{\"wckey\":\"x\"}", "{\"wckey\":\"\"}" },
    { SET(gres), 0, "gres/gpu=1", 0, "{\"tres_per_node\":\"gres/gpu=1\"}",
      "{\"tres_per_node\":\"\"}" },
    { SET(gres_per_task), 0, "gres/gpu=1", 0, "{\"tres_per_task\":\"gres/gpu=1\"}",
      "{\"tres_per_task\":\"\"}" },
    { 0, SET(begin_time), NULL, 5, "{\"begin_time\":{\"set\":true,\"number\":5}}",
      "{\"begin_time\":{\"set\":false}}" },
    { 0, SET(deadline), NULL, 5, "{\"deadline\":5}", "{}" },
    { 0, SET(nice), NULL, 5, "{\"nice\":5}", "{\"nice\":0}" },
    { 0, SET(priority), NULL, 5, "{\"priority\":{\"set\":true,\"number\":5}}",
      "{\"priority\":{\"set\":true,\"infinite\":true}}" },
    { 0, SET(priority), NULL, 0, "{\"priority\":{\"set\":true,\"number\":0}}",
      "{\"priority\":{\"set\":true,\"infinite\":true}}" },
    { 0, SET(switches), NULL, 2, "{\"required_switches\":{\"set\":true,\"number\":2}}",
      "{\"required_switches\":{\"set\":true,\"number\":0}}" },
    { 0, SET(switch_wait), NULL, 2, "{\"wait_for_switch\":2}", "{\"wait_for_switch\":0}" },
    { 0, SET(time_limit), NULL, 5, "{\"time_limit\":{\"set\":true,\"number\":5}}",
      "{\"time_limit\":{\"set\":true,\"infinite\":true}}" },
    /* what Slurm does not let change: it is submitted anew, but for what the config says */
    { SET(user_id), 0, "x", 0, "{}", "{}" },
    { SET(group_id), 0, "x", 0, "{}", "{}" },
    { SET(mcs_label), 0, "x", 0, "{}", "{}" },
    { 0, SET(segment_size), NULL, 2, "{}", "{}" },
};

static void each_field_is_said_and_taken_back(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job_desc before = plain(), after = before;

        if (cases[i].text)
            *(const char **)((char *)&after + cases[i].text_at) = cases[i].text;
        else
            *(int64_t *)((char *)&after + cases[i].number_at) = cases[i].number;
        assert_string_equal(change_of(&before, &after), cases[i].said);
        assert_string_equal(change_of(&after, &before), cases[i].unsaid);
        assert_string_equal(change_of(&after, &after), "{}");
    }
}

static const char *needs_anew(const struct job_desc *before, const struct job_desc *after)
{
    struct field_hashes hashes;

    field_hashes_of(before, &hashes);
    return field_hashes_need_anew(&hashes, after);
}

static void only_a_new_job_has_what_slurm_changes_of_none(void **state)
{
    struct job_desc before = plain(), after = before;

    assert_null(needs_anew(&before, &after));
    after.time_limit = 5;
    after.comment = "x";
    assert_null(needs_anew(&before, &after));
    after.exclusive = !before.exclusive;
    assert_string_equal(needs_anew(&before, &after), "exclusive");
    assert_string_equal(needs_anew(&after, &before), "exclusive");
    after = before;
    after.segment_size = 4;
    assert_string_equal(needs_anew(&before, &after), "segment-size");
    assert_string_equal(needs_anew(&after, &before), "segment-size");
    after = before;
    after.user_id = "alice";
    assert_string_equal(needs_anew(&before, &after), "user-id");
    after.group_id = "staff";
    assert_string_equal(needs_anew(&before, &after), "group-id");
}

static void a_size_is_said_as_a_whole_with_its_cpus(void **state)
{
    struct job_desc three = plain(), two;

    three.nodes = 3;
    three.min_nodes = three.max_nodes = 1;
    three.tasks = three.tasks_per_node = 3;
    three.cpus_per_task = 2;
    three.memory = 48;
    two = three;
    two.nodes = two.tasks = two.tasks_per_node = 2;
    two.memory = 32;
    assert_string_equal(change_of(&three, &two),
                        "{\"cpus_per_task\":2,\"maximum_nodes\":1,"
                        "\"memory_per_node\":{\"set\":true,\"number\":32},"
                        "\"minimum_nodes\":1,\"nodes\":\"1-1\",\"tasks\":2,\"tasks_per_node\":2,"
                        "\"minimum_cpus\":4,\"minimum_cpus_per_node\":4}");
}

static void the_cpus_of_a_size_are_those_of_its_fewest_nodes(void **state)
{
    struct job_desc four = plain(), three;

    four.nodes = four.max_nodes = 4;
    four.min_nodes = 2;
    four.tasks_per_node = 1;
    four.cpus_per_task = 2;
    three = four;
    three.nodes = three.max_nodes = 3;
    assert_string_equal(change_of(&four, &three),
                        "{\"cpus_per_task\":2,\"maximum_nodes\":3,\"minimum_nodes\":2,"
                        "\"nodes\":\"3\",\"tasks_per_node\":1,"
                        "\"minimum_cpus\":4,\"minimum_cpus_per_node\":2}");
}

static void a_mark_tells_that_a_job_was_to_be_held(void **state)
{
    struct job_desc desc = plain();
    struct field_hashes hashes;

    field_hashes_of(&desc, &hashes);
    assert_false(field_hashes_hold(&hashes));
    desc.priority = 1;
    field_hashes_of(&desc, &hashes);
    assert_false(field_hashes_hold(&hashes));
    desc.priority = 0;
    field_hashes_of(&desc, &hashes);
    assert_true(field_hashes_hold(&hashes));
}

/* ---- as a note ---- */

static const char *note_of(const struct field_hashes *hashes)
{
    static char text[1000];
    auto_buf struct buf out = { .max = sizeof(text) };

    field_hashes_write(hashes, &out);
    assert_int_equal(buf_check(&out, "note", NULL), 0);
    (void)snprintf(text, sizeof(text), "%s", buf_text(&out));
    return text;
}

static void check_round_trip(const struct field_hashes *hashes)
{
    struct field_hashes read;

    assert_true(field_hashes_read(str_of(note_of(hashes)), &read));
    assert_memory_equal(&read, hashes, sizeof(read));
}

static bool is_noted(size_t i)
{
    return i < job_field_count && job_fields[i].unset != UNSET_ANEW &&
           job_fields[i].unset != UNSET_IGNORED;
}

static void a_note_says_what_the_marks_say(void **state)
{
    struct job_desc desc = plain();
    struct field_hashes hashes;

    desc.cpus_per_task = desc.tasks_per_node = desc.min_nodes = desc.max_nodes = 1;
    desc.memory = 16;
    field_hashes_of(&desc, &hashes);
    for (size_t i = 0; i < job_field_count; i++)
        hashes.at[i] = is_noted(i) ? hashes.at[i] : 0;
    check_round_trip(&hashes);
    assert_in_range(strlen(note_of(&hashes)), 1, 150); /* of a plain pod */
    hashes.at[3] = FIELD_HASH_UNKNOWN;
    check_round_trip(&hashes);
    for (size_t i = 0; i < job_field_count; i++)
        hashes.at[i] = is_noted(i) ? UINT32_MAX : 0;
    check_round_trip(&hashes);
    assert_in_range(strlen(note_of(&hashes)), 1, SLURM_MAX_NOTE);
    memset(&hashes, 0, sizeof(hashes));
    check_round_trip(&hashes);
}

static void a_note_that_was_not_written_so_is_not_read(void **state)
{
    static const char *const rests[] = {
        " ",     " 0",    " 0:",    " :1",      " 0:2",     " 0:0",     " 0:g",         " 0:??",
        " 0:1 ", "  0:1", " 40:1",  " -1:1",    " 1:1 0:1", " 0:1 0:1", " 0:123456781", " 0:1\n",
        ":",     "0",     "\n 0:1", " 0:1,1:1", " 0x0:1",   " 0=1",     " 7:1",         " 8:?",
    };
    struct field_hashes none = { 0 }, hashes, before;
    char version[20], text[60];

    (void)snprintf(version, sizeof(version), "%s", note_of(&none));
    (void)snprintf(text, sizeof(text), "%s 0:1 26:?", version);
    assert_true(field_hashes_read(str_of(text), &hashes));
    assert_int_equal(hashes.at[0], 1);
    assert_int_equal(hashes.at[26], FIELD_HASH_UNKNOWN);
    before = hashes;
    for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++) {
        (void)snprintf(text, sizeof(text), "%s%s", version, rests[i]);
        if (field_hashes_read(str_of(text), &hashes))
            fail_msg("'%s' is read", text);
    }
    assert_false(field_hashes_read(STR(""), &hashes));
    assert_false(field_hashes_read(STR(" 0:1"), &hashes));
    assert_false(field_hashes_read(STR("words"), &hashes));
    assert_memory_equal(&hashes, &before, sizeof(hashes));
}

/* A config says that, too: whoever leads next with another one leaves what waits. */
static void what_only_a_new_job_has_is_not_noted(void **state)
{
    struct job_desc before = plain(), after = before;
    struct field_hashes hashes;

    before.user_id = "alice";
    before.exclusive = true;
    field_hashes_of(&before, &hashes);
    assert_true(field_hashes_read(str_of(note_of(&hashes)), &hashes));
    field_hashes_assume_current(&hashes, &after);
    assert_null(field_hashes_need_anew(&hashes, &after));
}

static void a_note_of_another_version_is_not_read(void **state)
{
    struct job_desc desc = plain();
    struct field_hashes hashes;
    char text[1000];

    field_hashes_of(&desc, &hashes);
    (void)snprintf(text, sizeof(text), "%s", note_of(&hashes));
    assert_true(field_hashes_read(str_of(text), &hashes));
    text[0] = text[0] == '1' ? '2' : '1';
    assert_false(field_hashes_read(str_of(text), &hashes));
}

/* The note of an update from one to the other. */
static struct field_hashes noted_from(const struct job_desc *old, const struct job_desc *next)
{
    auto_json_build struct json_build *build = json_build_new();
    struct field_hashes hashes, noted;

    field_hashes_of(old, &hashes);
    assert_true(job_change(build, json_new_object(build), next, &hashes, false, &noted));
    return noted;
}

static void what_an_update_changes_is_open_and_said_again_by_who_knows_no_better(void **state)
{
    struct job_desc before = plain(), after = before;
    struct field_hashes noted;

    before.licenses = "l";
    before.account = "a";
    after.dependency = "afterok:3";
    after.time_limit = 5;
    noted = noted_from(&before, &after);
    assert_true(field_hashes_have_unknown(&noted));
    assert_string_equal(change(&after, &noted), "{\"dependency\":\"afterok:3\",\"licenses\":\"\","
                                                "\"time_limit\":{\"set\":true,\"number\":5}}");
    field_hashes_settle(&noted, &after);
    assert_false(field_hashes_have_unknown(&noted));
    assert_string_equal(change(&after, &noted), "{}");
}

static void a_size_that_an_update_changes_is_open(void **state)
{
    struct job_desc three = plain(), two;
    struct field_hashes noted;

    three.nodes = three.max_nodes = 3;
    two = three;
    two.nodes = two.max_nodes = 2;
    noted = noted_from(&three, &two);
    assert_string_equal(change(&two, &noted), "{\"maximum_nodes\":2,\"nodes\":\"2\","
                                              "\"minimum_cpus\":2,\"minimum_cpus_per_node\":1}");
}

static void an_update_changes_nothing_of_what_only_a_new_job_has(void **state)
{
    struct job_desc before = plain(), after = before;
    struct field_hashes noted;

    after.user_id = "alice";
    after.comment = "c";
    noted = noted_from(&before, &after);
    assert_string_equal(field_hashes_need_anew(&noted, &after), "user-id");
    field_hashes_settle(&noted, &after);
    assert_string_equal(field_hashes_need_anew(&noted, &after), "user-id");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_field_is_said_and_taken_back),
        cmocka_unit_test(only_a_new_job_has_what_slurm_changes_of_none),
        cmocka_unit_test(a_size_is_said_as_a_whole_with_its_cpus),
        cmocka_unit_test(the_cpus_of_a_size_are_those_of_its_fewest_nodes),
        cmocka_unit_test(a_mark_tells_that_a_job_was_to_be_held),
        cmocka_unit_test(a_note_says_what_the_marks_say),
        cmocka_unit_test(a_note_that_was_not_written_so_is_not_read),
        cmocka_unit_test(what_only_a_new_job_has_is_not_noted),
        cmocka_unit_test(a_note_of_another_version_is_not_read),
        cmocka_unit_test(what_an_update_changes_is_open_and_said_again_by_who_knows_no_better),
        cmocka_unit_test(a_size_that_an_update_changes_is_open),
        cmocka_unit_test(an_update_changes_nothing_of_what_only_a_new_job_has),
    };

    return cmocka_run_group_tests_name("job_change", tests, NULL, NULL);
}
