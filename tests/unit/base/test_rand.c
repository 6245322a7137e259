/* test_rand.c - numbers repeat from a seed, keep their range and show no bias. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rand.h"

#include <string.h>

/* From the reference implementation of xoshiro256**, state 1, 2, 3, 4. */
static void the_generator_is_xoshiro256_star_star(void **state)
{
    static const uint64_t expected[] = {
        11520U,
        0U,
        1509978240U,
        1215971899390074240U,
        1216172134540287360U,
        607988272756665600U,
        16172922978634559625U,
        8476171486693032832U,
        10595114339597558777U,
        2904607092377533576U,
    };
    struct rand rand = { .state = { 1, 2, 3, 4 } };

    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        assert_int_equal(rand_u64(&rand), expected[i]);
}

/* From the reference implementation of splitmix64, seed 0. */
static void the_seed_goes_through_splitmix64(void **state)
{
    struct rand rand;

    rand_init(&rand, 0);
    assert_int_equal(rand.state[0], 0xe220a8397b1dcdafU);
    assert_int_equal(rand.state[1], 0x6e789e6aa1b965f4U);
    assert_int_equal(rand.state[2], 0x06c45d188009454fU);
    assert_int_equal(rand.state[3], 0xf88bb8a8724c81ecU);
}

static void equal_seeds_repeat_and_others_do_not(void **state)
{
    struct rand a, b, c;
    int same = 0;

    rand_init(&a, 7);
    rand_init(&b, 7);
    rand_init(&c, 8);
    for (int i = 0; i < 100; i++) {
        uint64_t drawn = rand_u64(&a);

        assert_int_equal(drawn, rand_u64(&b));
        same += drawn == rand_u64(&c);
    }
    assert_int_equal(same, 0);
}

static void real_seeds_differ(void **state)
{
    struct rand a, b;

    rand_init_real(&a);
    rand_init_real(&b);
    assert_memory_not_equal(&a, &b, sizeof(a));
}

static void below_is_below_and_even(void **state)
{
    struct rand rand;
    int seen[7] = { 0 };

    rand_init(&rand, 1);
    for (int i = 0; i < 70000; i++) {
        uint64_t drawn = rand_below(&rand, 7);

        assert_true(drawn < 7);
        seen[drawn]++;
    }
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 9600, 10400);
    assert_int_equal(rand_below(&rand, 0), 0);
    assert_int_equal(rand_below(&rand, 1), 0);
}

/* With a bound of 3/4 of the whole range, a bare remainder would hit the first third twice as often
 * as the rest. */
static void below_has_no_bias_for_huge_bounds(void **state)
{
    struct rand rand;
    const uint64_t bound = UINT64_MAX / 4 * 3;
    int low = 0;

    rand_init(&rand, 2);
    for (int i = 0; i < 30000; i++)
        low += rand_below(&rand, bound) < bound / 3;
    assert_in_range(low, 9600, 10400);
}

static void ranges_include_both_ends(void **state)
{
    struct rand rand;
    bool lowest = false, highest = false;

    rand_init(&rand, 3);
    for (int i = 0; i < 1000; i++) {
        int64_t drawn = rand_range(&rand, -3, 3);

        assert_true(drawn >= -3 && drawn <= 3);
        lowest = lowest || drawn == -3;
        highest = highest || drawn == 3;
    }
    assert_true(lowest && highest);
    assert_int_equal(rand_range(&rand, 5, 5), 5);
    assert_int_equal(rand_range(&rand, 5, 4), 5);
}

static void the_whole_range_is_a_range(void **state)
{
    struct rand rand;
    int negative = 0;

    rand_init(&rand, 4);
    for (int i = 0; i < 1000; i++)
        negative += rand_range(&rand, INT64_MIN, INT64_MAX) < 0;
    assert_in_range(negative, 400, 600);
}

static void chances_are_per_thousand(void **state)
{
    struct rand rand;
    int hits = 0;

    rand_init(&rand, 5);
    for (int i = 0; i < 10000; i++) {
        assert_false(rand_chance(&rand, 0));
        assert_true(rand_chance(&rand, 1000));
        hits += rand_chance(&rand, 250);
    }
    assert_in_range(hits, 2300, 2700);
}

static void jitter_stays_within_its_percentage(void **state)
{
    struct rand rand;
    int64_t lowest = INT64_MAX, highest = 0;

    rand_init(&rand, 6);
    for (int i = 0; i < 10000; i++) {
        int64_t drawn = rand_jitter(&rand, 1000, 20);

        lowest = drawn < lowest ? drawn : lowest;
        highest = drawn > highest ? drawn : highest;
    }
    assert_int_equal(lowest, 800);
    assert_int_equal(highest, 1200);
}

static void jitter_keeps_odd_values_sane(void **state)
{
    struct rand rand;

    rand_init(&rand, 7);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(rand_jitter(&rand, 0, 50), 0);
        assert_int_equal(rand_jitter(&rand, -7, 50), -7);
        assert_int_equal(rand_jitter(&rand, 1000, 0), 1000);
        assert_in_range(rand_jitter(&rand, 10, 500), 0, 20);
        assert_true(rand_jitter(&rand, INT64_MAX, 100) >= 0);
    }
}

static void secret_bytes_fill_the_whole_buffer(void **state)
{
    unsigned char a[1000], b[1000];

    memset(a, 0, sizeof(a));
    memset(b, 0, sizeof(b));
    rand_secret_bytes(a, sizeof(a));
    rand_secret_bytes(b, sizeof(b));
    assert_memory_not_equal(a, b, 16);
    assert_memory_not_equal(a + 984, b + 984, 16);
    rand_secret_bytes(a, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_generator_is_xoshiro256_star_star),
        cmocka_unit_test(the_seed_goes_through_splitmix64),
        cmocka_unit_test(equal_seeds_repeat_and_others_do_not),
        cmocka_unit_test(real_seeds_differ),
        cmocka_unit_test(below_is_below_and_even),
        cmocka_unit_test(below_has_no_bias_for_huge_bounds),
        cmocka_unit_test(ranges_include_both_ends),
        cmocka_unit_test(the_whole_range_is_a_range),
        cmocka_unit_test(chances_are_per_thousand),
        cmocka_unit_test(jitter_stays_within_its_percentage),
        cmocka_unit_test(jitter_keeps_odd_values_sane),
        cmocka_unit_test(secret_bytes_fill_the_whole_buffer),
    };

    return cmocka_run_group_tests_name("rand", tests, NULL, NULL);
}
