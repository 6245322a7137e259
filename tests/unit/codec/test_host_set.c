/* test_host_set.c - host lists that are read once and asked often. */
#include "codec/host_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_set_has_the_names_of_its_list_and_no_others(void **state)
{
    auto_arena struct arena arena;
    struct host_set set;

    arena_init(&arena, 1 << 16);
    set = host_set_of(&arena, "z9,n[1-3,7],a0");
    assert_int_equal(set.count, 6);
    assert_true(host_set_has(&set, "z9"));
    assert_true(host_set_has(&set, "n2"));
    assert_true(host_set_has(&set, "a0"));
    assert_false(host_set_has(&set, "n4"));
    assert_false(host_set_has(&set, "n"));
    assert_false(host_set_has(&set, ""));
}

static void a_list_that_is_empty_or_cannot_be_read_has_no_names(void **state)
{
    static const char *const lists[] = { "", "n[1-", "n[2-1]" };
    auto_arena struct arena arena;

    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        struct host_set set = host_set_of(&arena, lists[i]);

        assert_false(host_set_has(&set, "n1"));
    }
}

static void lists_are_equal_by_their_names(void **state)
{
    static const struct {
        const char *a, *b;
        bool are_equal;
    } cases[] = {
        { "", "", true },         { "n1", "", false },         { "n[1-3]", "n3,n1,n2", true },
        { "n1,n2", "n1", false }, { "n1,n2", "n1,n3", false }, { "n[1-", "n[2-", false },
    };
    auto_arena struct arena arena;

    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(hosts_equal(&arena, cases[i].a, cases[i].b), cases[i].are_equal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_has_the_names_of_its_list_and_no_others),
        cmocka_unit_test(a_list_that_is_empty_or_cannot_be_read_has_no_names),
        cmocka_unit_test(lists_are_equal_by_their_names),
    };

    return cmocka_run_group_tests_name("host_set", tests, NULL, NULL);
}
