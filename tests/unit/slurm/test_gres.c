/* test_gres.c - lists of generic resources. */
#include "slurm/gres.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_list_of_gres_is_counted_by_name_and_type(void **state)
{
    static const char list[] = "gpu:a:4(S:0,1),gpu:b:2, nic ,gpu:3,tape:lto";
    int64_t first, count;

    assert_int_equal(gres_total(list, STR("gpu")), 9);
    assert_int_equal(gres_total(list, STR("nic")), 1);
    assert_int_equal(gres_total(list, STR("disk")), 0);
    assert_true(gres_find(list, "gpu", "b", &first, &count));
    assert_int_equal(first, 4);
    assert_int_equal(count, 2);
    assert_true(gres_find(list, "gpu", "", &first, &count));
    assert_int_equal(first, 6);
    assert_int_equal(count, 3);
    assert_true(gres_find(list, "tape", "lto", &first, &count));
    assert_int_equal(count, 1);
    assert_false(gres_find(list, "gpu", "c", &first, &count));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_of_gres_is_counted_by_name_and_type),
    };

    return cmocka_run_group_tests_name("gres", tests, NULL, NULL);
}
