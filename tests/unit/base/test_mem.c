/* test_mem.c - memory comes zeroed, never NULL, and sizes never wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "aborts.h"
#include "base/mem.h"

#include <malloc.h>
#include <stdbool.h>
#include <string.h>

/* Every free of src/base comes through here (--wrap=free): what it finds in the memory. */
static struct {
    unsigned calls;
    bool found_something;
} freed;

void __real_free(void *memory);
void __wrap_free(void *memory);

void __wrap_free(void *memory)
{
    const unsigned char *bytes = memory;

    freed.calls++;
    for (size_t i = 0; memory && i < malloc_usable_size(memory); i++)
        freed.found_something |= bytes[i] != 0;
    __real_free(memory);
}

static char *secret_of(size_t size)
{
    char *memory = mem_alloc(size);

    memset(memory, 's', size);
    return memory;
}

static void memory_that_goes_back_holds_nothing_any_more(void **state)
{
    char *grown = secret_of(1000), *tail = secret_of(2 << 20);

    freed.calls = 0;
    freed.found_something = false;
    grown = mem_resize_array(grown, 100000, 1); /* the old block goes back */
    assert_int_equal(freed.calls, 1);
    assert_int_equal(grown[999], 's');
    memset(grown, 's', 100000);
    mem_free(grown);
    mem_free(tail);
    mem_free_secret(secret_of(8 << 20), 8 << 20);
    assert_int_equal(freed.calls, 4);
    assert_false(freed.found_something);
}

static void memory_comes_zeroed(void **state)
{
    auto_free unsigned char *bytes = mem_alloc(100);
    auto_free uint64_t *words = mem_alloc_array(50, sizeof(*words));

    for (int i = 0; i < 100; i++)
        assert_int_equal(bytes[i], 0);
    for (int i = 0; i < 50; i++)
        assert_int_equal(words[i], 0);
}

static void nothing_is_still_a_pointer(void **state)
{
    auto_free void *a = mem_alloc(0);
    auto_free void *b = mem_alloc_array(0, 8);
    auto_free void *c = mem_alloc_array(8, 0);
    auto_free void *d = mem_resize_array(mem_alloc(8), 0, 8);

    assert_true(a && b && c && d);
}

static void resizing_keeps_what_was_there(void **state)
{
    int *numbers = mem_resize_array(NULL, 2, sizeof(*numbers));

    numbers[0] = 7;
    numbers[1] = 8;
    numbers = mem_resize_array(numbers, 1000, sizeof(*numbers));
    assert_int_equal(numbers[0], 7);
    assert_int_equal(numbers[1], 8);
    mem_free(numbers);
    mem_free(NULL);
}

static void copies_end_in_a_nul(void **state)
{
    auto_free char *whole = mem_strdup("abc");
    auto_free char *part = mem_strndup("abcdef", 2);
    auto_free char *binary = mem_strndup("a\0b", 3);
    auto_free char *empty = mem_strndup(NULL, 0);

    assert_string_equal(whole, "abc");
    assert_string_equal(part, "ab");
    assert_memory_equal(binary, "a\0b", 4);
    assert_string_equal(empty, "");
}

static void taking_leaves_null_behind(void **state)
{
    char *kept;
    {
        auto_free char *text = mem_strdup("abc");

        kept = mem_take(text);
        assert_null(text);
    }
    assert_string_equal(kept, "abc");
    mem_freep(&kept);
    assert_null(kept);
    mem_freep(&kept);
}

static void a_secret_is_freed_and_null_is_taken(void **state)
{
    mem_free_secret(mem_strdup("token"), 5);
    mem_free_secret(NULL, 5);
}

static void wrap_alloc(void)
{
    mem_free(mem_alloc_array(SIZE_MAX / 2, 3));
}

static void wrap_resize(void)
{
    mem_free(mem_resize_array(NULL, 3, SIZE_MAX / 2));
}

static void wrap_strndup(void)
{
    mem_free(mem_strndup("x", SIZE_MAX));
}

static void a_size_that_wraps_aborts(void **state)
{
    assert_true(aborts(wrap_alloc));
    assert_true(aborts(wrap_resize));
    assert_true(aborts(wrap_strndup));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_comes_zeroed),
        cmocka_unit_test(nothing_is_still_a_pointer),
        cmocka_unit_test(resizing_keeps_what_was_there),
        cmocka_unit_test(copies_end_in_a_nul),
        cmocka_unit_test(taking_leaves_null_behind),
        cmocka_unit_test(a_secret_is_freed_and_null_is_taken),
        cmocka_unit_test(a_size_that_wraps_aborts),
        cmocka_unit_test(memory_that_goes_back_holds_nothing_any_more),
    };

    return cmocka_run_group_tests_name("mem", tests, NULL, NULL);
}
