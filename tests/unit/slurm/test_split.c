/* test_split.c - elements come out whole, however the answer is cut; what is left stays JSON. */
#include "base/mem.h"
#include "slurm/split.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { MAX_ITEM = 64 };

/* The elements, each in <>, and then the rest; or the class of the error. */
static void split_by(const char *text, size_t step, struct buf *out)
{
    struct slurm_split split;
    struct str whole = str_of(text), item;
    int result = 0;

    slurm_split_init(&split, "jobs", MAX_ITEM);
    while (whole.len > 0 && result >= 0) {
        size_t length = whole.len < step ? whole.len : step;
        auto_free char *copy = mem_strndup(whole.at, length); /* nothing is read past its end */
        struct str piece = { copy, length };

        whole = str_sub(whole, length, whole.len);
        while ((result = slurm_split_next(&split, &piece, &item, NULL)) > 0)
            buf_printf(out, "<" STR_FMT ">", STR_ARG(item));
    }
    if (result < 0)
        buf_printf(out, "!%d", -result);
    else
        buf_add_str(out, slurm_split_rest(&split));
    slurm_split_done(&split);
}

static const struct {
    const char *text, *want;
} cases[] = {
    { "{\"jobs\":[]}", "{\"jobs\":[]}" },
    { "{\"jobs\": [ ] }", "{\"jobs\": [] }" },
    { "{\"jobs\":[1]}", "<1>{\"jobs\":[]}" },
    { "{\"jobs\":[{\"a\":[1,{}]},{\"b\":2}],\"errors\":[{}]}",
      "<{\"a\":[1,{}]}><{\"b\":2}>{\"jobs\":[],\"errors\":[{}]}" },
    { "{\n \"jobs\" :\n [\n  {},\n  {}\n ]\n}\n", "<{}><{}>{\n \"jobs\" :\n []\n}\n" },
    { "{\"jobs\":[\"]\",\"\\\"],\\\\\",{\"{\":\"}\"}]}",
      "<\"]\"><\"\\\"],\\\\\"><{\"{\":\"}\"}>{\"jobs\":[]}" },
    { "{\"x\":\"\\\"jobs\\\":[1]\",\"jobs\":[2]}", "<2>{\"x\":\"\\\"jobs\\\":[1]\",\"jobs\":[]}" },
    { "{\"meta\":{\"jobs\":[1,2]},\"jobs\":[3]}", "<3>{\"meta\":{\"jobs\":[1,2]},\"jobs\":[]}" },
    { "{\"more\\\"jobs\":[1]}", "{\"more\\\"jobs\":[1]}" },
    { "{\"xjobs\":[1]}", "{\"xjobs\":[1]}" },
    { "{\"jobs\":{\"a\":[1]}}", "{\"jobs\":{\"a\":[1]}}" },
    { "[{\"jobs\":[1]}]", "[{\"jobs\":[1]}]" },
    { "]]}}{\"jobs\":[1]}", "<1>]]}}{\"jobs\":[]}" }, /* no JSON, and still none afterwards */
    { "{\"jobs\":[1,2", "<1>{\"jobs\":[" },
    { "not JSON", "not JSON" },
    { "", "" },
    { "{\"jobs\":[1,]}", "<1>!1" },
    { "{\"jobs\":[,1]}", "!1" },
    { "{\"jobs\":[1],\"jobs\":[2]}", "<1>!1" },
};

static void elements_come_out_whole_however_the_answer_is_cut(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t step = 1; step <= 70; step++) {
            struct buf out;

            buf_init(&out, 4096);
            split_by(cases[i].text, step, &out);
            if (strstr(cases[i].want, "!1"))
                assert_non_null(strchr(buf_text(&out), '!'));
            else
                assert_string_equal(buf_text(&out), cases[i].want);
            buf_done(&out);
        }
    }
    (void)state;
}

static void an_element_over_its_bound_ends_it(void **state)
{
    char text[256];

    for (int length = MAX_ITEM - 3; length < MAX_ITEM + 60; length++)
        for (size_t step = 1; step < 200; step += 7) {
            struct buf out;

            snprintf(text, sizeof(text), "{\"jobs\":[\"%0*d\"]}", length, 0);
            buf_init(&out, 4096);
            split_by(text, step, &out);
            assert_int_equal(strchr(buf_text(&out), '!') != NULL, length + 2 > MAX_ITEM);
            buf_done(&out);
        }
    (void)state;
}

static void a_rest_over_its_bound_is_no_answer(void **state)
{
    struct slurm_split split;
    struct str item;

    slurm_split_init(&split, "jobs", MAX_ITEM);
    for (unsigned i = 0; i <= SLURM_MAX_REST / 16; i++) {
        struct str piece = STR("                ");

        assert_int_equal(slurm_split_next(&split, &piece, &item, NULL), 0);
    }
    assert_int_equal(slurm_split_rest(&split).len, 0);
    slurm_split_done(&split);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_come_out_whole_however_the_answer_is_cut),
        cmocka_unit_test(an_element_over_its_bound_ends_it),
        cmocka_unit_test(a_rest_over_its_bound_is_no_answer),
    };

    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
