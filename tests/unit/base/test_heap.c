/* test_heap.c - the smallest comes out first, equals in the order they went in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/heap.h"
#include "base/rand.h"

struct timer {
    int64_t due;
    int name;
    struct heap_node queued;
};

static int by_due(const struct heap_node *a, const struct heap_node *b)
{
    int64_t x = heap_item(a, struct timer, queued)->due;
    int64_t y = heap_item(b, struct timer, queued)->due;

    return (x > y) - (x < y);
}

static struct timer *pop(struct heap *heap)
{
    struct heap_node *node = heap_pop(heap);

    return node ? heap_item(node, struct timer, queued) : NULL;
}

static void an_empty_heap_gives_nothing(void **state)
{
    struct heap heap;

    heap_init(&heap, by_due, 10);
    assert_null(heap_first(&heap));
    assert_null(heap_pop(&heap));
    heap_done(&heap);
    heap_done(&heap);
    heap_done(NULL);
}

static void the_smallest_comes_first(void **state)
{
    struct timer timers[] = { { .due = 5 }, { .due = 1 }, { .due = 9 }, { .due = 3 } };
    static const int64_t sorted[] = { 1, 3, 5, 9 };
    struct heap heap;

    heap_init(&heap, by_due, 10);
    for (int i = 0; i < 4; i++)
        assert_int_equal(heap_push(&heap, &timers[i].queued, NULL), 0);
    assert_ptr_equal(heap_first(&heap), &timers[1].queued);
    for (int i = 0; i < 4; i++) {
        struct timer *timer = pop(&heap);

        assert_int_equal(timer->due, sorted[i]);
        assert_false(heap_has(&timer->queued));
    }
    assert_null(pop(&heap));
    heap_done(&heap);
}

static void equals_come_out_as_they_went_in(void **state)
{
    struct timer timers[100] = { 0 };
    struct heap heap;

    heap_init(&heap, by_due, 100);
    for (int i = 0; i < 100; i++) {
        timers[i].due = i % 3;
        timers[i].name = i;
        heap_push(&heap, &timers[i].queued, NULL);
    }
    for (int due = 0; due < 3; due++)
        for (int name = due; name < 100; name += 3)
            assert_int_equal(pop(&heap)->name, name);
    heap_done(&heap);
}

static void a_new_key_counts_as_a_new_push(void **state)
{
    struct timer timers[] = { { .due = 1 }, { .due = 2 }, { .due = 2 } };
    struct heap heap;

    heap_init(&heap, by_due, 10);
    for (int i = 0; i < 3; i++)
        heap_push(&heap, &timers[i].queued, NULL);
    timers[0].due = 2;
    heap_update(&heap, &timers[0].queued);
    assert_ptr_equal(pop(&heap), &timers[1]);
    assert_ptr_equal(pop(&heap), &timers[2]);
    assert_ptr_equal(pop(&heap), &timers[0]);
    heap_update(&heap, &timers[0].queued);
    assert_int_equal(heap.count, 0);
    heap_done(&heap);
}

static void removing_twice_or_never_pushed_does_nothing(void **state)
{
    struct timer timers[] = { { .due = 1 }, { .due = 2 }, { .due = 3 } };
    struct heap heap;

    heap_init(&heap, by_due, 10);
    heap_remove(&heap, &timers[0].queued);
    for (int i = 0; i < 3; i++)
        heap_push(&heap, &timers[i].queued, NULL);
    heap_remove(&heap, &timers[0].queued);
    heap_remove(&heap, &timers[0].queued);
    heap_remove(&heap, &timers[2].queued);
    assert_int_equal(heap.count, 1);
    assert_ptr_equal(pop(&heap), &timers[1]);
    heap_done(&heap);
}

static void the_maximum_and_a_second_push_are_refused(void **state)
{
    struct timer timers[] = { { .due = 1 }, { .due = 2 }, { .due = 3 } };
    struct err err = { 0 };
    struct heap heap;

    heap_init(&heap, by_due, 2);
    assert_int_equal(heap_push(&heap, &timers[0].queued, &err), 0);
    assert_int_equal(heap_push(&heap, &timers[0].queued, &err), -ERR_EXISTS);
    assert_int_equal(heap_push(&heap, &timers[1].queued, &err), 0);
    assert_int_equal(heap_push(&heap, &timers[2].queued, &err), -ERR_TOO_BIG);
    assert_string_equal(err.text, "more than 2 nodes queued");
    assert_false(heap_has(&timers[2].queued));
    assert_int_equal(heap.count, 2);
    heap_done(&heap);
    assert_false(heap_has(&timers[0].queued));
    assert_false(heap_has(&timers[1].queued));
}

/* ---- against a model: a plain array in the order of pushes, searched from the front ---- */

enum { TIMERS = 60, STEPS = 20000 };

struct model {
    struct timer *queued[TIMERS];
    size_t count;
};

static void model_remove(struct model *model, const struct timer *timer)
{
    size_t kept = 0;

    for (size_t i = 0; i < model->count; i++)
        if (model->queued[i] != timer)
            model->queued[kept++] = model->queued[i];
    model->count = kept;
}

static struct timer *model_first(const struct model *model)
{
    struct timer *first = NULL;

    for (size_t i = 0; i < model->count; i++)
        if (!first || model->queued[i]->due < first->due)
            first = model->queued[i];
    return first;
}

static void push_or_rekey(struct heap *heap, struct model *model, struct timer *timer, int64_t due)
{
    timer->due = due;
    if (heap_has(&timer->queued)) {
        heap_update(heap, &timer->queued);
        model_remove(model, timer);
    } else {
        assert_int_equal(heap_push(heap, &timer->queued, NULL), 0);
    }
    model->queued[model->count++] = timer;
}

static void a_long_random_use_agrees_with_a_plain_array(void **state)
{
    struct timer timers[TIMERS] = { 0 };
    struct model model = { .count = 0 };
    struct heap heap;
    struct rand rand;

    rand_init(&rand, 20260101);
    heap_init(&heap, by_due, TIMERS);
    for (int step = 0; step < STEPS; step++) {
        struct timer *timer = &timers[rand_below(&rand, TIMERS)];

        switch (rand_below(&rand, 4)) {
        case 0:
        case 1:
            push_or_rekey(&heap, &model, timer, rand_range(&rand, -9, 9));
            break;
        case 2:
            heap_remove(&heap, &timer->queued);
            model_remove(&model, timer);
            break;
        default:
            timer = model_first(&model);
            assert_ptr_equal(pop(&heap), timer);
            model_remove(&model, timer);
            break;
        }
        assert_int_equal(heap.count, model.count);
        for (size_t i = 0; i < heap.count; i++)
            assert_int_equal(heap.nodes[i]->place, i + 1);
    }
    heap_done(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_heap_gives_nothing),
        cmocka_unit_test(the_smallest_comes_first),
        cmocka_unit_test(equals_come_out_as_they_went_in),
        cmocka_unit_test(a_new_key_counts_as_a_new_push),
        cmocka_unit_test(removing_twice_or_never_pushed_does_nothing),
        cmocka_unit_test(the_maximum_and_a_second_push_are_refused),
        cmocka_unit_test(a_long_random_use_agrees_with_a_plain_array),
    };

    return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
