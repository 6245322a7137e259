/* test_bitmap.c - bits, set operations, and the two texts in both directions. */
#include "codec/bitmap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void expect_ranges(const struct bitmap *map, const char *expected)
{
    auto_buf struct buf text;

    buf_init(&text, 1024);
    bitmap_print_ranges(map, &text);
    assert_string_equal(buf_text(&text), expected);
}

static void expect_hex(const struct bitmap *map, const char *expected)
{
    auto_buf struct buf text;

    buf_init(&text, 1024);
    bitmap_print_hex(map, &text);
    assert_string_equal(buf_text(&text), expected);
}

static void from_ranges(struct bitmap *map, const char *text, size_t bits)
{
    struct err err = { 0 };

    if (bitmap_parse_ranges(str_of(text), bits, map, &err) < 0)
        fail_msg("\"%s\": %s", text, err.text);
}

static void a_new_bitmap_is_empty(void **state)
{
    static const size_t sizes[] = { 0, 1, 63, 64, 65, 1000 };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        auto_bitmap struct bitmap map;
        size_t bit;

        bitmap_init(&map, sizes[i]);
        assert_int_equal(bitmap_count(&map), 0);
        assert_false(bitmap_next(&map, 0, &bit));
        expect_ranges(&map, "");
    }
}

static void a_bit_is_set_tested_and_cleared(void **state)
{
    auto_bitmap struct bitmap map;

    bitmap_init(&map, 130);
    bitmap_set(&map, 0);
    bitmap_set(&map, 64);
    bitmap_set(&map, 129);
    assert_true(bitmap_test(&map, 64));
    assert_false(bitmap_test(&map, 63));
    assert_int_equal(bitmap_count(&map), 3);
    bitmap_clear(&map, 64);
    assert_false(bitmap_test(&map, 64));
    expect_ranges(&map, "0,129");
}

static void what_lies_past_the_end_is_clear(void **state)
{
    auto_bitmap struct bitmap map;
    size_t bit;

    bitmap_init(&map, 10);
    bitmap_set_range(&map, 0, 9);
    assert_false(bitmap_test(&map, 10));
    assert_false(bitmap_test(&map, SIZE_MAX));
    bitmap_clear(&map, 10);
    bitmap_clear(&map, SIZE_MAX);
    assert_int_equal(bitmap_count(&map), 10);
    assert_false(bitmap_next(&map, 10, &bit));
    assert_false(bitmap_next(&map, SIZE_MAX, &bit));
}

static void a_range_may_span_words(void **state)
{
    static const struct {
        size_t first, last;
    } cases[] = {
        { 0, 0 }, { 0, 63 }, { 1, 64 }, { 63, 64 }, { 60, 200 }, { 64, 127 }, { 0, 255 }
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        auto_bitmap struct bitmap map;

        bitmap_init(&map, 256);
        bitmap_set_range(&map, cases[i].first, cases[i].last);
        assert_int_equal(bitmap_count(&map), cases[i].last - cases[i].first + 1);
        for (size_t bit = 0; bit < 256; bit++)
            assert_int_equal(bitmap_test(&map, bit), bit >= cases[i].first && bit <= cases[i].last);
    }
}

static void the_next_bit_is_found_across_words(void **state)
{
    auto_bitmap struct bitmap map;
    size_t found[4], count = 0;

    from_ranges(&map, "3,63-64,300", 301);
    for (size_t bit = 0; bitmap_next(&map, bit, &bit); bit++) {
        assert_in_range(count, 0, 3);
        found[count++] = bit;
    }
    assert_int_equal(count, 4);
    assert_int_equal(found[0], 3);
    assert_int_equal(found[1], 63);
    assert_int_equal(found[2], 64);
    assert_int_equal(found[3], 300);
}

static void sets_of_one_size_combine(void **state)
{
    auto_bitmap struct bitmap a, b, both, either, only_a;

    from_ranges(&a, "0-9,100", 128);
    from_ranges(&b, "5-14,100-101", 128);
    bitmap_copy(&both, &a);
    bitmap_copy(&either, &a);
    bitmap_copy(&only_a, &a);
    bitmap_and(&both, &b);
    bitmap_or(&either, &b);
    bitmap_andnot(&only_a, &b);
    expect_ranges(&both, "5-9,100");
    expect_ranges(&either, "0-14,100-101");
    expect_ranges(&only_a, "0-4");
    expect_ranges(&a, "0-9,100");
}

static void a_smaller_set_counts_as_filled_up_with_clear_bits(void **state)
{
    auto_bitmap struct bitmap small, large, grown;

    from_ranges(&small, "0-3", 4);
    from_ranges(&large, "2-3,200", 201);
    bitmap_copy(&grown, &small);
    bitmap_or(&grown, &large);
    assert_int_equal(grown.bits, 201);
    expect_ranges(&grown, "0-3,200");
    bitmap_and(&large, &small);
    expect_ranges(&large, "2-3");
    bitmap_andnot(&small, &grown);
    assert_int_equal(small.bits, 4);
    expect_ranges(&small, "");
}

static void equality_is_about_the_set_and_not_the_size(void **state)
{
    auto_bitmap struct bitmap small, large;

    from_ranges(&small, "1-2", 3);
    from_ranges(&large, "1-2", 500);
    assert_true(bitmap_equal(&small, &large));
    bitmap_set(&large, 499);
    assert_false(bitmap_equal(&small, &large));
    assert_false(bitmap_equal(&large, &small));
}

static void range_texts_are_read_and_written_in_shortest_form(void **state)
{
    static const struct {
        const char *text, *printed;
    } cases[] = {
        { "", "" },
        { "0", "0" },
        { "0-3,8,10-11", "0-3,8,10-11" },
        { "3,1,2", "1-3" },
        { "1-5,2-3,5-7", "1-7" },
        { "4-4", "4" },
        { "007-09", "7-9" },
        { "0-99", "0-99" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        auto_bitmap struct bitmap map;

        from_ranges(&map, cases[i].text, 100);
        assert_int_equal(map.bits, 100);
        expect_ranges(&map, cases[i].printed);
    }
}

static void wrong_range_texts_are_refused(void **state)
{
    static const struct {
        const char *text;
        int class;
    } cases[] = {
        { ",", ERR_INVALID },     { "1,", ERR_INVALID },
        { ",1", ERR_INVALID },    { "1,,2", ERR_INVALID },
        { "-", ERR_INVALID },     { "1-", ERR_INVALID },
        { "-1", ERR_INVALID },    { "1-2-3", ERR_INVALID },
        { "3-1", ERR_INVALID },   { "a", ERR_INVALID },
        { "1 ", ERR_INVALID },    { "0-3:1/2", ERR_INVALID },
        { "+1", ERR_INVALID },    { "99999999999999999999", ERR_INVALID },
        { "100", ERR_TOO_BIG },   { "0-100", ERR_TOO_BIG },
        { "1,200", ERR_TOO_BIG }, { "18446744073709551615", ERR_TOO_BIG },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bitmap map = { NULL, 7 };
        struct err err = { 0 };

        assert_int_equal(bitmap_parse_ranges(str_of(cases[i].text), 100, &map, &err),
                         -cases[i].class);
        assert_int_equal(bitmap_parse_ranges(str_of(cases[i].text), 100, &map, NULL),
                         -cases[i].class);
        assert_int_equal(map.bits, 7);
        assert_int_equal(err.class, cases[i].class);
    }
}

static void an_error_in_a_range_text_names_its_position(void **state)
{
    struct bitmap map;
    struct err err = { 0 };

    assert_int_equal(bitmap_parse_ranges(STR("0-3,x"), 100, &map, &err), -ERR_INVALID);
    assert_non_null(strstr(err.text, "byte 4"));
}

static void hex_texts_are_read_with_the_highest_bit_first(void **state)
{
    static const struct {
        const char *text, *ranges, *printed;
        size_t bits;
    } cases[] = {
        { "0x0", "", "0x00", 8 },
        { "F", "0-3", "0x0F", 8 },
        { "0xf", "0-3", "0x0F", 8 },
        { "0X10", "4", "0x10", 8 },
        { "0x0000000000000000000000000000001", "0", "0x01", 5 },
        { "0x8000000000000000", "63", "0x8000000000000000", 64 },
        { "0x10000000000000001", "0,64", "0x10000000000000001", 65 },
        { "0", "", "0x0", 0 },
        { "00ABcd", "0,2-3,6-9,11,13,15", "0x0ABCD", 17 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        auto_bitmap struct bitmap map;
        struct err err = { 0 };

        if (bitmap_parse_hex(str_of(cases[i].text), cases[i].bits, &map, &err) < 0)
            fail_msg("\"%s\": %s", cases[i].text, err.text);
        expect_ranges(&map, cases[i].ranges);
        expect_hex(&map, cases[i].printed);
    }
}

static void wrong_hex_texts_are_refused(void **state)
{
    static const struct {
        const char *text;
        int class;
    } cases[] = {
        { "", ERR_INVALID },   { "0x", ERR_INVALID },   { "0xg", ERR_INVALID },
        { "x1", ERR_INVALID }, { "1 ", ERR_INVALID },   { "0x0x1", ERR_INVALID },
        { "-1", ERR_INVALID }, { "0x20", ERR_TOO_BIG }, { "0x100000000000000000", ERR_TOO_BIG },
        { "3F", ERR_TOO_BIG },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bitmap map = { NULL, 7 };
        struct err err = { 0 };

        assert_int_equal(bitmap_parse_hex(str_of(cases[i].text), 5, &map, &err), -cases[i].class);
        assert_int_equal(map.bits, 7);
        assert_int_equal(err.class, cases[i].class);
    }
}

static void the_largest_bitmap_works(void **state)
{
    auto_bitmap struct bitmap map;

    from_ranges(&map, "0-1048575", BITMAP_MAX_BITS);
    assert_int_equal(bitmap_count(&map), BITMAP_MAX_BITS);
    expect_ranges(&map, "0-1048575");
}

static void done_takes_null_and_may_be_called_twice(void **state)
{
    struct bitmap map;

    bitmap_init(&map, 3);
    bitmap_done(&map);
    bitmap_done(&map);
    bitmap_done(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_bitmap_is_empty),
        cmocka_unit_test(a_bit_is_set_tested_and_cleared),
        cmocka_unit_test(what_lies_past_the_end_is_clear),
        cmocka_unit_test(a_range_may_span_words),
        cmocka_unit_test(the_next_bit_is_found_across_words),
        cmocka_unit_test(sets_of_one_size_combine),
        cmocka_unit_test(a_smaller_set_counts_as_filled_up_with_clear_bits),
        cmocka_unit_test(equality_is_about_the_set_and_not_the_size),
        cmocka_unit_test(range_texts_are_read_and_written_in_shortest_form),
        cmocka_unit_test(wrong_range_texts_are_refused),
        cmocka_unit_test(an_error_in_a_range_text_names_its_position),
        cmocka_unit_test(hex_texts_are_read_with_the_highest_bit_first),
        cmocka_unit_test(wrong_hex_texts_are_refused),
        cmocka_unit_test(the_largest_bitmap_works),
        cmocka_unit_test(done_takes_null_and_may_be_called_twice),
    };

    return cmocka_run_group_tests_name("bitmap", tests, NULL, NULL);
}
