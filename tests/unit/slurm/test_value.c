/* test_value.c - numbers, words and lists as slurmrestd writes them, in every version. */
#include "slurm/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct json_doc *parse(const char *text)
{
    struct json_doc *doc = NULL;

    assert_int_equal(json_parse(str_of(text), 1 << 20, &doc, NULL), 0);
    return doc;
}

static void a_number_is_set_infinite_or_unset(void **state)
{
    static const struct {
        const char *text;
        bool set, infinite;
        int64_t number;
    } rows[] = {
        { "{\"set\":true,\"infinite\":false,\"number\":5}", true, false, 5 },
        { "{\"set\":false,\"infinite\":false,\"number\":5}", false, false, 0 },
        { "{\"set\":false,\"infinite\":true,\"number\":0}", false, true, 0 },
        { "{\"set\":true,\"infinite\":true,\"number\":7}", false, true, 0 },
        { "{\"set\":true,\"infinite\":false,\"number\":1.9}", true, false, 1 },
        { "{\"set\":true,\"infinite\":false,\"number\":1e300}", false, false, 0 },
        { "{\"set\":true,\"infinite\":false,\"number\":\"5\"}", false, false, 0 },
        { "{\"set\":true}", false, false, 0 },
        { "{}", false, false, 0 },
        { "null", false, false, 0 },
        { "\"5\"", false, false, 0 },
        { "[5]", false, false, 0 },
        { "5", true, false, 5 },
        { "-3", true, false, -3 },
        { "0", true, false, 0 },
        { "2.5", true, false, 2 },
        { "18446744073709551615", false, false, 0 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct json_doc *doc = parse(rows[i].text);
        struct slurm_number number = slurm_number_of(json_root(doc));

        if (number.set != rows[i].set || number.infinite != rows[i].infinite ||
            number.number != rows[i].number)
            fail_msg("%s: set %d infinite %d number %lld", rows[i].text, number.set,
                     number.infinite, (long long)number.number);
        json_doc_free(doc);
    }
    assert_false(slurm_number_of(NULL).set);
}

static void a_number_is_written_as_it_is_read(void **state)
{
    static const struct slurm_number numbers[] = { { 5, true, false },
                                                   { 0, false, true },
                                                   { 0, false, false } };

    for (size_t i = 0; i < 3; i++) {
        auto_json_build struct json_build *build = json_build_new();
        struct json_mut *object = json_new_object(build);
        struct json_doc *doc;

        slurm_number_put(build, object, "n", numbers[i]);
        doc = json_freeze(object);
        assert_true(slurm_number_equal(slurm_number_of(json_get(json_root(doc), "n")), numbers[i]));
        json_doc_free(doc);
    }
    assert_int_equal(slurm_number_or(numbers[0], 1, 2), 5);
    assert_int_equal(slurm_number_or(numbers[1], 1, 2), 2);
    assert_int_equal(slurm_number_or(numbers[2], 1, 2), 1);
}

static void known_words_become_bits_and_unknown_ones_are_kept(void **state)
{
    struct json_doc *doc = parse("[\"NEW_IN_27\",\"RUNNING\",\"\",\"COMPLETING\",7,\"ODD\"]");
    auto_buf struct buf other;
    auto_buf struct buf text;
    struct slurm_words set;

    buf_init(&other, 1024);
    buf_init(&text, 1024);
    set.known = slurm_words_read(&slurm_job_states, json_root(doc), &other);
    set.other = buf_text(&other);
    assert_true(slurm_words_has(&set, SLURM_JOB_RUNNING));
    assert_true(slurm_words_has(&set, SLURM_JOB_COMPLETING));
    assert_false(slurm_words_has(&set, SLURM_JOB_PENDING));
    assert_false(slurm_words_has(&set, SLURM_WORDS_MAX));
    assert_string_equal(set.other, "NEW_IN_27,ODD");
    slurm_words_print(&slurm_job_states, &set, &text);
    assert_string_equal(buf_text(&text), "RUNNING+COMPLETING+NEW_IN_27+ODD");
    json_doc_free(doc);
}

static void one_word_may_come_without_its_array(void **state)
{
    struct json_doc *doc = parse("\"UP\"");
    struct buf other;

    buf_init(&other, 0);
    assert_int_equal(slurm_words_read(&slurm_partition_states, json_root(doc), &other), 1);
    assert_int_equal(slurm_words_read(&slurm_partition_states, NULL, &other), 0);
    json_doc_free(doc);
}

static void no_vocabulary_has_a_word_twice_or_a_hole(void **state)
{
    const struct slurm_vocabulary *all[] = { &slurm_job_states, &slurm_job_flags,
                                             &slurm_node_states, &slurm_partition_states,
                                             &slurm_reservation_flags };

    for (size_t v = 0; v < sizeof(all) / sizeof(all[0]); v++) {
        bool ended = false;

        for (size_t i = 0; i < SLURM_WORDS_MAX; i++) {
            ended = ended || !all[v]->words[i];
            assert_int_equal(ended, !all[v]->words[i]);
            for (size_t j = 0; j < i && !ended; j++)
                assert_string_not_equal(all[v]->words[i], all[v]->words[j]);
        }
    }
}

static void a_job_has_ended_only_when_it_will_not_come_back(void **state)
{
    static const struct {
        const char *states;
        bool ended;
    } rows[] = {
        { "[\"PENDING\"]", false },
        { "[\"RUNNING\"]", false },
        { "[\"SUSPENDED\"]", false },
        { "[\"COMPLETED\"]", true },
        { "[\"CANCELLED\"]", true },
        { "[\"CANCELLED\",\"COMPLETING\"]", true },
        { "[\"TIMEOUT\"]", true },
        { "[\"NODE_FAIL\"]", true },
        { "[\"PREEMPTED\"]", true },
        { "[\"OUT_OF_MEMORY\"]", true },
        { "[\"FAILED\",\"REQUEUED\"]", false },
        { "[\"FAILED\",\"SPECIAL_EXIT\"]", false },
        { "[\"NEW_IN_27\"]", false },
        { "[]", false },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct json_doc *doc = parse(rows[i].states);
        struct buf other;
        struct slurm_words set = { 0, "" };

        buf_init(&other, 1024);
        set.known = slurm_words_read(&slurm_job_states, json_root(doc), &other);
        if (slurm_job_has_ended(&set) != rows[i].ended)
            fail_msg("%s", rows[i].states);
        buf_done(&other);
        json_doc_free(doc);
    }
}

static void a_list_is_the_same_as_a_text_and_as_an_array(void **state)
{
    static const struct {
        const char *json, *text;
    } rows[] = {
        { "\"n[1-3],m1\"", "n[1-3],m1" },
        { "[\"n[1-3]\",\"m1\"]", "n[1-3],m1" },
        { "[\"\",\"m1\",7]", "m1" },
        { "[]", "" },
        { "null", "" },
        { "{\"a\":\"b\"}", "" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct json_doc *doc = parse(rows[i].json);
        struct buf text;

        buf_init(&text, 100);
        slurm_list_text(json_root(doc), &text);
        assert_string_equal(buf_text(&text), rows[i].text);
        buf_done(&text);
        json_doc_free(doc);
    }
}

static void a_node_is_in_the_partitions_that_its_list_has(void **state)
{
    static const struct {
        const char *partitions, *name;
        bool is_in;
    } cases[] = {
        { "a,p2", "p2", true },    { "a,p2", "p", false },    { "a,p2", "", false },
        { "", "p2", false },       { "", "", false },         { "a,p[1-3]", "p2", true },
        { "a,p[1-3]", "a", true }, { "p[1-3]", "p4", false }, { "p[1-", "p4", true },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (slurm_partitions_have(cases[i].partitions, str_of(cases[i].name)) != cases[i].is_in)
            fail_msg("%s in %s", cases[i].name, cases[i].partitions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_is_set_infinite_or_unset),
        cmocka_unit_test(a_number_is_written_as_it_is_read),
        cmocka_unit_test(known_words_become_bits_and_unknown_ones_are_kept),
        cmocka_unit_test(one_word_may_come_without_its_array),
        cmocka_unit_test(no_vocabulary_has_a_word_twice_or_a_hole),
        cmocka_unit_test(a_job_has_ended_only_when_it_will_not_come_back),
        cmocka_unit_test(a_list_is_the_same_as_a_text_and_as_an_array),
        cmocka_unit_test(a_node_is_in_the_partitions_that_its_list_has),
    };

    return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
