/* test_arena.c - pieces are zeroed, aligned and apart; the limit is a fuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "aborts.h"
#include "base/arena.h"

#include <stdalign.h>
#include <string.h>

static void pieces_are_aligned_zeroed_and_apart(void **state)
{
    auto_arena struct arena arena;
    unsigned char *pieces[400];

    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < 400; i++) {
        pieces[i] = arena_alloc(&arena, i);
        assert_int_equal((uintptr_t)pieces[i] % alignof(max_align_t), 0);
        for (size_t j = 0; j < i; j++)
            assert_int_equal(pieces[i][j], 0);
        memset(pieces[i], (int)(i & 0xff), i);
    }
    for (size_t i = 0; i < 400; i++)
        for (size_t j = 0; j < i; j++)
            assert_int_equal(pieces[i][j], i & 0xff);
}

static void a_piece_larger_than_any_block_is_served(void **state)
{
    auto_arena struct arena arena;

    arena_init(&arena, 8 << 20);
    for (int round = 0; round < 3; round++) {
        char *small = arena_strdup(&arena, "small");
        char *large = arena_alloc(&arena, 1 << 20);
        char *later = arena_strdup(&arena, "later");

        memset(large, 1, 1 << 20);
        assert_string_equal(small, "small");
        assert_string_equal(later, "later");
        arena_reset(&arena);
    }
    memset(arena_alloc(&arena, 1 << 20), 1, 1 << 20); /* as the first piece of all */
}

static void a_reset_arena_hands_out_zeroes_again(void **state)
{
    auto_arena struct arena arena;

    arena_init(&arena, 1 << 16);
    for (int round = 0; round < 10; round++) {
        unsigned char *bytes = arena_alloc(&arena, 10000);

        for (int i = 0; i < 10000; i++)
            assert_int_equal(bytes[i], 0);
        memset(bytes, 0xff, 10000);
        assert_int_equal(arena.used, 10000);
        arena_reset(&arena);
        assert_int_equal(arena.used, 0);
    }
    arena_reset(&arena);
}

static void beyond_its_budget_an_arena_serves_on_and_says_so(void **state)
{
    auto_arena struct arena arena;

    arena_init_budget(&arena, 1024, 4096);
    (void)arena_alloc(&arena, 1000);
    assert_false(arena_is_over_budget(&arena));
    memset(arena_alloc(&arena, 1000), 1, 1000);
    assert_true(arena_is_over_budget(&arena));
    arena_reset(&arena);
    assert_false(arena_is_over_budget(&arena));
}

static void a_reset_keeps_one_block(void **state)
{
    auto_arena struct arena arena;

    arena_init(&arena, 1 << 20);
    arena_reset(&arena);
    assert_null(arena.block);
    for (int i = 0; i < 100; i++)
        arena_alloc(&arena, 1000);

    const struct arena_block *newest = arena.block;

    arena_reset(&arena);
    assert_ptr_equal(arena.block, newest);
    arena_alloc(&arena, 1000);
    assert_ptr_equal(arena.block, newest);
}

static void a_giant_block_is_not_kept(void **state)
{
    auto_arena struct arena arena;

    arena_init(&arena, 8 << 20);
    arena_alloc(&arena, 1 << 20);
    arena_reset(&arena);
    assert_null(arena.block);
    assert_string_equal(arena_strdup(&arena, "again"), "again");
}

static void copies_and_prints_end_in_a_nul(void **state)
{
    auto_arena struct arena arena;

    arena_init(&arena, 1 << 16);
    assert_string_equal(arena_strdup(&arena, ""), "");
    assert_string_equal(arena_strndup(&arena, "abcdef", 3), "abc");
    assert_memory_equal(arena_strndup(&arena, "a\0b", 3), "a\0b", 4);
    assert_string_equal(arena_printf(&arena, "%s/%d", "pod", 7), "pod/7");
    assert_int_equal(strlen(arena_printf(&arena, "%05000d", 1)), 5000);
}

static void an_array_is_zeroed(void **state)
{
    auto_arena struct arena arena;

    arena_init(&arena, 1 << 16);

    uint64_t *words = arena_alloc_array(&arena, 100, sizeof(*words));

    for (int i = 0; i < 100; i++)
        assert_int_equal(words[i], 0);
}

static void the_limit_can_be_used_up(void **state)
{
    auto_arena struct arena arena;

    arena_init(&arena, 100);
    memset(arena_alloc(&arena, 60), 1, 60);
    memset(arena_alloc(&arena, 36), 1, 36);
    assert_int_equal(arena.used, 100);
    assert_non_null(arena_alloc(&arena, 0));
}

static void pass_the_limit(void)
{
    struct arena arena;

    arena_init(&arena, 100);
    arena_alloc(&arena, 60);
    arena_alloc(&arena, 60);
}

static void take_many_small_pieces(void)
{
    struct arena arena;

    arena_init(&arena, 100);
    for (int i = 0; i < 50; i++)
        arena_alloc(&arena, 2); /* each takes 16 bytes of memory, and counts for them */
}

static void wrap_the_product(void)
{
    struct arena arena;

    arena_init(&arena, SIZE_MAX);
    arena_alloc_array(&arena, SIZE_MAX / 2, 4);
}

static void ask_for_nearly_everything(void)
{
    struct arena arena;

    arena_init(&arena, SIZE_MAX);
    arena_alloc(&arena, SIZE_MAX - 4);
}

static void copy_nearly_everything(void)
{
    struct arena arena;

    arena_init(&arena, SIZE_MAX);
    arena_strndup(&arena, "x", SIZE_MAX);
}

static void passing_the_limit_aborts(void **state)
{
    assert_true(aborts(pass_the_limit));
    assert_true(aborts(take_many_small_pieces));
    assert_true(aborts(wrap_the_product));
    assert_true(aborts(ask_for_nearly_everything));
    assert_true(aborts(copy_nearly_everything));
}

static void done_takes_null_and_twice(void **state)
{
    struct arena arena;

    arena_init(&arena, 1000);
    arena_alloc(&arena, 10);
    arena_done(&arena);
    arena_done(&arena);
    arena_done(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_zeroed_and_apart),
        cmocka_unit_test(a_piece_larger_than_any_block_is_served),
        cmocka_unit_test(a_reset_arena_hands_out_zeroes_again),
        cmocka_unit_test(beyond_its_budget_an_arena_serves_on_and_says_so),
        cmocka_unit_test(a_reset_keeps_one_block),
        cmocka_unit_test(a_giant_block_is_not_kept),
        cmocka_unit_test(copies_and_prints_end_in_a_nul),
        cmocka_unit_test(an_array_is_zeroed),
        cmocka_unit_test(the_limit_can_be_used_up),
        cmocka_unit_test(passing_the_limit_aborts),
        cmocka_unit_test(done_takes_null_and_twice),
    };

    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
