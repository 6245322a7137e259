/* test_buf.c - a buffer takes a write whole or not at all, and never passes its maximum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"

static void an_unwritten_buffer_reads_as_empty(void **state)
{
    auto_buf struct buf buf;

    buf_init(&buf, 10);
    assert_null(buf.data);
    assert_string_equal(buf_text(&buf), "");
    assert_int_equal(buf_str(&buf).len, 0);
    assert_non_null(buf_str(&buf).at);
    buf_drop_front(&buf, 5);
    buf_truncate(&buf, 0);
    buf_clear(&buf);
    assert_int_equal(buf_check(&buf, "nothing", NULL), 0);
}

static void writes_follow_each_other(void **state)
{
    auto_buf struct buf buf;

    buf_init(&buf, 1000);
    buf_add(&buf, "ab\0c", 4);
    buf_add_str(&buf, STR("def"));
    buf_add_text(&buf, "ghi");
    buf_add_text(&buf, NULL);
    buf_add_char(&buf, '!');
    buf_printf(&buf, " %d %s", 7, "x");
    assert_int_equal(buf.len, 15);
    assert_memory_equal(buf.data, "ab\0cdefghi! 7 x", 16);
}

static void a_buffer_grows_to_its_maximum_exactly(void **state)
{
    auto_buf struct buf buf;

    buf_init(&buf, 1000);
    for (int i = 0; i < 1000; i++) {
        buf_add_char(&buf, 'x');
        assert_int_equal(buf.data[buf.len], '\0');
    }
    assert_int_equal(buf.len, 1000);
    assert_false(buf.overflowed);
    buf_add(&buf, "", 0);
    assert_false(buf.overflowed);
    buf_add_char(&buf, 'x');
    assert_true(buf.overflowed);
    assert_int_equal(buf.len, 1000);
    assert_true(buf.cap <= 1001);
}

static void one_large_write_gets_its_room_at_once(void **state)
{
    auto_buf struct buf buf;
    char text[5000];

    memset(text, 'x', sizeof(text));
    buf_init(&buf, 1 << 20);
    buf_add(&buf, text, sizeof(text));
    buf_add_char(&buf, '!');
    assert_int_equal(buf.len, 5001);
    assert_memory_equal(buf.data, text, sizeof(text));
    assert_string_equal(buf.data + 4999, "x!");
}

static void a_write_past_the_maximum_is_lost_and_so_are_later_ones(void **state)
{
    auto_buf struct buf buf;
    struct err err = { 0 };

    buf_init(&buf, 8);
    buf_add_text(&buf, "12345");
    buf_add_text(&buf, "6789");
    buf_add_text(&buf, "6");
    buf_printf(&buf, "%d", 6);
    assert_string_equal(buf_text(&buf), "12345");
    assert_int_equal(buf_check(&buf, "the answer", &err), -ERR_TOO_BIG);
    assert_string_equal(err.text, "the answer is longer than 8 bytes");
    buf_clear(&buf);
    assert_int_equal(buf_check(&buf, "the answer", &err), 0);
    buf_add_text(&buf, "12345678");
    assert_string_equal(buf_text(&buf), "12345678");
}

static void printing_past_the_maximum_leaves_no_trace(void **state)
{
    auto_buf struct buf buf;

    buf_init(&buf, 8);
    buf_printf(&buf, "%s", "abc");
    buf_printf(&buf, "%s", "defghi");
    assert_true(buf.overflowed);
    assert_string_equal(buf_text(&buf), "abc");
}

static void a_maximum_of_nothing_takes_nothing(void **state)
{
    auto_buf struct buf buf;

    buf_init(&buf, 0);
    buf_add_text(&buf, "");
    assert_false(buf.overflowed);
    buf_add_char(&buf, 'x');
    assert_true(buf.overflowed);
    assert_string_equal(buf_text(&buf), "");
}

static void a_length_that_would_wrap_overflows(void **state)
{
    auto_buf struct buf buf;

    buf_init(&buf, SIZE_MAX);
    buf_add_text(&buf, "abc");
    buf_add(&buf, "x", SIZE_MAX - 1);
    assert_true(buf.overflowed);
    assert_string_equal(buf_text(&buf), "abc");
}

static void bytes_can_be_dropped_at_either_end(void **state)
{
    auto_buf struct buf buf;

    buf_init(&buf, 100);
    buf_add_text(&buf, "abcdef");
    buf_drop_front(&buf, 2);
    assert_string_equal(buf_text(&buf), "cdef");
    buf_truncate(&buf, 3);
    assert_string_equal(buf_text(&buf), "cde");
    buf_truncate(&buf, 99);
    assert_int_equal(buf.len, 3);
    buf_drop_front(&buf, 99);
    assert_int_equal(buf.len, 0);
    assert_string_equal(buf_text(&buf), "");
    buf_add_text(&buf, "again");
    assert_string_equal(buf_text(&buf), "again");
}

static void done_takes_null_and_twice(void **state)
{
    struct buf buf;

    buf_init(&buf, 100);
    buf_add_text(&buf, "abc");
    buf_done(&buf);
    assert_null(buf.data);
    buf_done(&buf);
    buf_done(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unwritten_buffer_reads_as_empty),
        cmocka_unit_test(writes_follow_each_other),
        cmocka_unit_test(a_buffer_grows_to_its_maximum_exactly),
        cmocka_unit_test(one_large_write_gets_its_room_at_once),
        cmocka_unit_test(a_write_past_the_maximum_is_lost_and_so_are_later_ones),
        cmocka_unit_test(printing_past_the_maximum_leaves_no_trace),
        cmocka_unit_test(a_maximum_of_nothing_takes_nothing),
        cmocka_unit_test(a_length_that_would_wrap_overflows),
        cmocka_unit_test(bytes_can_be_dropped_at_either_end),
        cmocka_unit_test(done_takes_null_and_twice),
    };

    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
