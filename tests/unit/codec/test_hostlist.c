/* test_hostlist.c - reading, counting, walking, asking and folding host lists. */
#include "codec/hostlist.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { ARENA = 64 * 1024 * 1024, MAX_LISTED = 100 };

static const struct hostlist *parsed(struct arena *arena, const char *text)
{
    const struct hostlist *list = NULL;
    struct err err = { 0 };

    if (hostlist_parse(arena, str_of(text), HOSTLIST_MAX_NAMES, &list, &err) < 0)
        fail_msg("\"%s\": %s", text, err.text);
    return list;
}

static void expect_names(const char *text, const char *expected)
{
    auto_arena struct arena arena;
    auto_buf struct buf names;
    struct str name;

    arena_init(&arena, ARENA);
    buf_init(&names, 4096);

    const struct hostlist *list = parsed(&arena, text);
    struct hostlist_iter iter = hostlist_iter(list);
    uint64_t walked = 0;

    for (; hostlist_next(&iter, &name); walked++) {
        buf_printf(&names, "%s" STR_FMT, walked > 0 ? " " : "", STR_ARG(name));
        assert_true(hostlist_contains(list, name));
        assert_int_equal(name.at[name.len], '\0');
        assert_int_equal(hostlist_check_name(name, NULL), 0);
    }
    assert_string_equal(buf_text(&names), expected);
    assert_int_equal(hostlist_count(list), walked);
    assert_false(hostlist_next(&iter, &name));
}

static void a_list_expands_as_slurm_expands_it(void **state)
{
    static const struct {
        const char *text, *names;
    } cases[] = {
        { "", "" },
        { " ,\t\n,", "" },
        { "n1", "n1" },
        { "login", "login" },
        { "n[1-3]", "n1 n2 n3" },
        { "n[1-3,7,009-011],m5", "n1 n2 n3 n7 n009 n010 n011 m5" },
        { "rack[1-2]node[01-02]", "rack1node01 rack1node02 rack2node01 rack2node02" },
        { "n[1-2]-ib", "n1-ib n2-ib" },
        { "n[1-2]a[3-4]b", "n1a3b n1a4b n2a3b n2a4b" },
        { "n[1-2][3-4]", "n13 n14 n23 n24" },
        { "n[1-3]5", "n15 n25 n35" },
        { "[1-3]", "1 2 3" },
        { "[1-3]a", "1a 2a 3a" },
        { "n[08-11]", "n08 n09 n10 n11" },
        { "n[008-11]", "n008 n009 n010 n011" },
        { "n[8-011]", "n8 n9 n10 n11" },
        { "n[01-002]", "n01 n02" },
        { "n[00-01,1]", "n00 n01 n1" },
        { "n[1-2],n[2-3]", "n1 n2 n2 n3" },
        { "a,,b", "a b" },
        { ",a b\tc\n", "a b c" },
        { "a[1-2],b[1-2]x[0-1],c", "a1 a2 b1x0 b1x1 b2x0 b2x1 c" },
        /* Slurm turns the last bracket fastest, and then starts from the front. */
        { "a[1-2]b[1-2]c[1-2]", "a1b1c1 a1b1c2 a2b1c1 a2b1c2 a1b2c1 a1b2c2 a2b2c1 a2b2c2" },
        { "n[999999999999999998-999999999999999999]", "n999999999999999998 n999999999999999999" },
        { "_a.b-c_9", "_a.b-c_9" },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        expect_names(cases[i].text, cases[i].names);
}

static void wrong_lists_are_refused_with_their_position(void **state)
{
    static const struct {
        const char *text;
        int class;
        const char *where;
    } cases[] = {
        { "n[3-1]", ERR_INVALID, "byte 2: a range runs backwards" },
        { "n[]", ERR_INVALID, "byte 2: a number is missing" },
        { "n[1,,2]", ERR_INVALID, "byte 4: a number" },
        { "n[1-]", ERR_INVALID, "byte 4: a number" },
        { "n[-1]", ERR_INVALID, "byte 2: a number" },
        { "n[1--2]", ERR_INVALID, "byte 4" },
        { "n[ 1]", ERR_INVALID, "byte 2" },
        { "n[1 ]", ERR_INVALID, "byte 3" },
        { "n[+1]", ERR_INVALID, "byte 2" },
        { "n[1:3]", ERR_INVALID, "byte 3" },
        { "n[1-9/2]", ERR_INVALID, "byte 5" },
        { "n[0x1]", ERR_INVALID, "byte 3" },
        { "n[a-b]", ERR_INVALID, "byte 2" },
        { "ok,n[1-2", ERR_INVALID, "byte 4: a bracket is not closed" },
        { "n[[1]]", ERR_INVALID, "byte 2" },
        { "n1]", ERR_INVALID, "byte 2: no node name" },
        { "n[1-2]]", ERR_INVALID, "byte 6: no node name" },
        { "a,b;c", ERR_INVALID, "byte 3: no node name" },
        { "a=b", ERR_INVALID, "byte 1" },
        { "a\"b", ERR_INVALID, "byte 1" },
        { "n\xc3\xa9", ERR_INVALID, "byte 1" },
        { "a,-b", ERR_INVALID, "byte 2: a name starts with" },
        { ".b[1-2]", ERR_INVALID, "byte 0" },
        { "n[0-99999999]", ERR_TOO_BIG, "byte 1: too many names" },
        { "n[1000000000000000000]", ERR_TOO_BIG, "byte 2: a number is too long" },
        { "n1000000000000000000", ERR_TOO_BIG, "byte 0: a name ends in too many digits" },
        { "n1[0-1]00000000000000000", ERR_TOO_BIG, "byte 0: a name ends in too many digits" },
        { "n[1][1][1][1][1][1][1][1][1]", ERR_TOO_BIG, "byte 25: too many brackets" },
        { "n[0-999]m[0-999]", ERR_TOO_BIG, "byte 0: too many names" },
        { "n[0-9]m[0-999],n[0-999]m[0-99]", ERR_TOO_BIG, "byte 15: too many names" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_arena struct arena arena;
        const struct hostlist *list = NULL;
        struct err err = { 0 };

        arena_init(&arena, ARENA);
        int status = hostlist_parse(&arena, str_of(cases[i].text), HOSTLIST_MAX_NAMES, &list, &err);
        if (status != -cases[i].class || !strstr(err.text, cases[i].where))
            fail_msg("\"%s\": %d, %s", cases[i].text, status, err.text);
        assert_null(list);
    }
}

static void a_nul_byte_is_refused(void **state)
{
    auto_arena struct arena arena;
    const struct hostlist *list;

    arena_init(&arena, ARENA);
    assert_int_equal(hostlist_parse(&arena, STR("a\0b"), 10, &list, NULL), -ERR_INVALID);
    assert_int_equal(hostlist_parse(&arena,
                                    STR("a["
                                        "1\0]"),
                                    10, &list, NULL),
                     -ERR_INVALID);
}

static void the_callers_maximum_is_kept(void **state)
{
    static const struct {
        const char *text;
        uint64_t max;
        int status;
    } cases[] = {
        { "", 0, 0 },
        { "a", 0, -ERR_TOO_BIG },
        { "a", 1, 0 },
        { "a,b", 1, -ERR_TOO_BIG },
        { "n[1-4]", 4, 0 },
        { "n[1-5]", 4, -ERR_TOO_BIG },
        { "n[1,2,3,4,5]", 4, -ERR_TOO_BIG },
        { "n[1-2]m[1-2]", 4, 0 },
        { "n[1-2]m[1-2],x", 4, -ERR_TOO_BIG },
        { "n[0-999999999]m[0-999999999]o[0-999999999]", UINT64_MAX, -ERR_TOO_BIG },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_arena struct arena arena;
        const struct hostlist *list;

        arena_init(&arena, ARENA);
        assert_int_equal(hostlist_parse(&arena, str_of(cases[i].text), cases[i].max, &list, NULL),
                         cases[i].status);
    }
}

static void a_text_that_is_too_long_is_refused(void **state)
{
    auto_arena struct arena arena;
    auto_free char *text = mem_alloc(HOSTLIST_MAX_TEXT + 1);
    const struct hostlist *list;

    arena_init(&arena, ARENA);
    memset(text, ',', HOSTLIST_MAX_TEXT + 1);
    assert_int_equal(
        hostlist_parse(&arena, (struct str){ text, HOSTLIST_MAX_TEXT }, 1, &list, NULL), 0);
    assert_int_equal(
        hostlist_parse(&arena, (struct str){ text, HOSTLIST_MAX_TEXT + 1 }, 1, &list, NULL),
        -ERR_TOO_BIG);
}

static void a_full_list_is_counted_without_expanding_it(void **state)
{
    auto_arena struct arena arena;

    arena_init(&arena, 4096);
    assert_int_equal(hostlist_count(parsed(&arena, "n[1-65536]")), 65536);
    assert_int_equal(hostlist_count(parsed(&arena, "r[1-256]n[001-256]")), 65536);
}

static void a_list_knows_its_names_by_their_exact_text(void **state)
{
    static const struct {
        const char *list, *name;
        bool contained;
    } cases[] = {
        { "n[1-10]", "n1", true },
        { "n[1-10]", "n10", true },
        { "n[1-10]", "n0", false },
        { "n[1-10]", "n11", false },
        { "n[1-10]", "n01", false },
        { "n[01-10]", "n01", true },
        { "n[01-10]", "n1", false },
        { "n[01-10]", "n010", false },
        { "n[08-100]", "n100", true },
        { "n[08-100]", "n099", false },
        { "n[1-3,7]x", "n7x", true },
        { "n[1-3,7]x", "n7", false },
        { "n[1-3,7]x", "n5x", false },
        { "n[1-20][1-3]", "n11", true },
        { "n[1-20][1-3]", "n203", true },
        { "n[1-20][1-3]", "n21", true },
        { "n[1-20][1-3]", "n213", false },
        { "n[1-2]0[1-2]", "n102", true },
        { "n[1-2]0[1-2]", "n12", false },
        { "login,n[1-2]", "login", true },
        { "login,n[1-2]", "logi", false },
        { "login,n[1-2]", "login1", false },
        { "n[1-2]", "", false },
        { "n[1-2]", "n", false },
        { "n[1-2]", "n1\n", false },
        { "n[1-2]", "n99999999999999999999999999999", false },
        { "", "n1", false },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_arena struct arena arena;

        arena_init(&arena, ARENA);
        if (hostlist_contains(parsed(&arena, cases[i].list), str_of(cases[i].name)) !=
            cases[i].contained)
            fail_msg("\"%s\" in \"%s\"", cases[i].name, cases[i].list);
    }
}

static void many_adjacent_brackets_do_not_make_asking_slow(void **state)
{
    auto_arena struct arena arena;
    char name[121];

    arena_init(&arena, ARENA);
    memset(name, '1', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';

    const struct hostlist *list = parsed(
        &arena, "[1,11][1,11][1,11][1,11][1,11][1,11][1,11][1,11]x,[1,11][1,11][1,11][1,11]");

    for (int i = 0; i < 10000; i++)
        assert_false(hostlist_contains(list, str_of(name)));
}

/* Splits at spaces. */
static size_t split(const char *text, struct str *names)
{
    struct str rest = str_of(text);
    size_t count = 0;

    while (rest.at && rest.len > 0 && count < MAX_LISTED && str_next(&rest, ' ', &names[count]))
        count++;
    return count;
}

static void a_set_of_names_folds_to_slurms_sorted_form(void **state)
{
    static const struct {
        const char *names, *folded;
    } cases[] = {
        { "", "" },
        { "n1", "n1" },
        { "n3 n1 n2", "n[1-3]" },
        { "n1 n1 n2 n1", "n[1-2]" },
        { "n9 n10 n11", "n[9-11]" },
        { "n09 n10 n11", "n[09-11]" },
        { "n99 n100", "n[99-100]" },
        { "n1 n01 n001", "n[1,01,001]" },
        { "n1 n2 n02 n03", "n[1-2,02-03]" },
        { "n00 n01 n1 n0", "n[0-1,00-01]" },
        { "n010 n9 n10", "n[9-10,010]" },
        { "n9 n09 n10 n010", "n[9,09-10,010]" },
        { "n01 n1 n02 n2 n10", "n[1-2,01-02,10]" },
        { "n1 n3 n5", "n[1,3,5]" },
        { "n1 n10 n100 n1000 n2", "n[1-2,10,100,1000]" },
        { "m5 n1 a b a1", "a,a1,b,m5,n1" },
        { "a2 a a1", "a,a[1-2]" },
        { "A1 a1 B2 b1", "A1,B2,a1,b1" },
        { "a1b a1b2 a10b a2b", "a1b,a1b2,a2b,a10b" },
        { "a2b1 a1b2 a1b1 a2b2", "a1b[1-2],a2b[1-2]" },
        { "rack1node1 rack10node1 rack2node1", "rack1node1,rack2node1,rack10node1" },
        { "a01b1 a1b1 a1b2 a01b2", "a01b[1-2],a1b[1-2]" },
        { "n-1 n-2", "n-[1-2]" },
        { "n2-ib n1-ib", "n1-ib,n2-ib" },
        { "1 2 3", "[1-3]" },
        { "x.1 x.2", "x.[1-2]" },
        { "n999999999999999999 n999999999999999998", "n[999999999999999998-999999999999999999]" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf out;
        struct str names[MAX_LISTED];
        struct err err = { 0 };

        buf_init(&out, 1024);
        if (hostlist_fold(names, split(cases[i].names, names), &out, &err) < 0)
            fail_msg("\"%s\": %s", cases[i].names, err.text);
        assert_string_equal(buf_text(&out), cases[i].folded);
    }
}

static void an_unsafe_name_is_not_folded(void **state)
{
    static const char *const names[] = {
        "", "a b", "a,b", "a[1]", "a\nb", "-a", ".a", "a=b", "a#", "n1234567890123456789", "\xff",
    };

    for (size_t i = 0; i < COUNT(names); i++) {
        auto_buf struct buf out;
        struct str two[] = { STR("ok"), str_of(names[i]) };

        buf_init(&out, 1024);
        assert_true(hostlist_fold(two, 2, &out, NULL) < 0);
        assert_int_equal(out.len, 0);
    }
}

static void a_name_is_at_most_253_bytes(void **state)
{
    char name[HOSTLIST_MAX_NAME + 2];
    auto_arena struct arena arena;
    const struct hostlist *list;
    struct str longest = { name, HOSTLIST_MAX_NAME }, longer = { name, HOSTLIST_MAX_NAME + 1 };

    arena_init(&arena, ARENA);
    memset(name, 'a', sizeof(name));
    assert_int_equal(hostlist_check_name(longest, NULL), 0);
    assert_int_equal(hostlist_check_name(longer, NULL), -ERR_TOO_BIG);
    assert_int_equal(hostlist_parse(&arena, longest, 1, &list, NULL), 0);
    assert_true(hostlist_contains(list, longest));
    assert_false(hostlist_contains(list, longer));
    assert_int_equal(hostlist_parse(&arena, longer, 1, &list, NULL), -ERR_TOO_BIG);
    memcpy(name + HOSTLIST_MAX_NAME - 7, "a[8-12]", 7); /* the longest name is as long as allowed */
    assert_int_equal(hostlist_parse(&arena, longest, 9, &list, NULL), 0);
}

static void folding_more_than_the_buffer_holds_is_seen_in_the_buffer(void **state)
{
    struct str names[] = { STR("node1"), STR("node3") };
    auto_buf struct buf out;

    buf_init(&out, 5);
    assert_int_equal(hostlist_fold(names, 2, &out, NULL), 0);
    assert_int_equal(buf_check(&out, "host list", NULL), -ERR_TOO_BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_expands_as_slurm_expands_it),
        cmocka_unit_test(wrong_lists_are_refused_with_their_position),
        cmocka_unit_test(a_nul_byte_is_refused),
        cmocka_unit_test(the_callers_maximum_is_kept),
        cmocka_unit_test(a_text_that_is_too_long_is_refused),
        cmocka_unit_test(a_full_list_is_counted_without_expanding_it),
        cmocka_unit_test(a_list_knows_its_names_by_their_exact_text),
        cmocka_unit_test(many_adjacent_brackets_do_not_make_asking_slow),
        cmocka_unit_test(a_set_of_names_folds_to_slurms_sorted_form),
        cmocka_unit_test(an_unsafe_name_is_not_folded),
        cmocka_unit_test(a_name_is_at_most_253_bytes),
        cmocka_unit_test(folding_more_than_the_buffer_holds_is_seen_in_the_buffer),
    };

    return cmocka_run_group_tests_name("hostlist", tests, NULL, NULL);
}
