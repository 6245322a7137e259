/* test_list.c - nodes go in and out of rings, and walks survive removal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "aborts.h"
#include "base/list.h"
#include "base/mem.h"

struct car {
    int number;
    struct list link;
};

static void assert_order(const struct list *head, const int *numbers, size_t count)
{
    size_t seen = 0;

    list_each (struct car, car, head, link) {
        assert_true(seen < count);
        assert_int_equal(car->number, numbers[seen++]);
    }
    assert_int_equal(seen, count);
}

static void a_new_list_is_empty(void **state)
{
    struct list head;

    list_init(&head);
    assert_true(list_is_empty(&head));
    assert_null(list_first(&head));
    assert_null(list_pop_front(&head));
    assert_order(&head, NULL, 0);
}

static void nodes_go_in_at_both_ends_and_between(void **state)
{
    struct car cars[] = { { .number = 0 }, { .number = 1 }, { .number = 2 }, { .number = 3 } };
    struct list head;

    list_init(&head);
    list_push_back(&head, &cars[1].link);
    list_push_back(&head, &cars[3].link);
    list_push_before(&cars[1].link, &cars[0].link);
    list_push_before(&cars[3].link, &cars[2].link);
    assert_order(&head, (int[]){ 0, 1, 2, 3 }, 4);
    assert_false(list_is_empty(&head));
    assert_ptr_equal(list_item(list_first(&head), struct car, link), &cars[0]);
}

static void popping_takes_the_front(void **state)
{
    struct car cars[] = { { .number = 0 }, { .number = 1 } };
    struct list head;

    list_init(&head);
    list_push_back(&head, &cars[0].link);
    list_push_back(&head, &cars[1].link);
    assert_ptr_equal(list_pop_front(&head), &cars[0].link);
    assert_false(list_is_linked(&cars[0].link));
    assert_order(&head, (int[]){ 1 }, 1);
    assert_ptr_equal(list_pop_front(&head), &cars[1].link);
    assert_true(list_is_empty(&head));
}

static void removing_twice_or_never_linked_does_nothing(void **state)
{
    struct car cars[] = { { .number = 0 }, { .number = 1 }, { .number = 2 } };
    struct list head;

    list_init(&head);
    assert_false(list_is_linked(&cars[0].link));
    list_remove(&cars[0].link);
    for (int i = 0; i < 3; i++)
        list_push_back(&head, &cars[i].link);
    list_remove(&cars[1].link);
    list_remove(&cars[1].link);
    assert_order(&head, (int[]){ 0, 2 }, 2);
    list_push_before(&cars[0].link, &cars[1].link);
    assert_order(&head, (int[]){ 1, 0, 2 }, 3);
}

static void the_current_item_may_be_freed_during_a_walk(void **state)
{
    struct list head;

    list_init(&head);
    for (int i = 0; i < 10; i++) {
        struct car *car = mem_alloc(sizeof(*car));

        car->number = i;
        list_push_back(&head, &car->link);
    }
    list_each (struct car, car, &head, link) {
        if (car->number % 2 == 0)
            continue;
        list_remove(&car->link);
        mem_free(car);
    }
    assert_order(&head, (int[]){ 0, 2, 4, 6, 8 }, 5);
    list_each (struct car, car, &head, link) {
        list_remove(&car->link);
        mem_free(car);
    }
    assert_true(list_is_empty(&head));
}

static void break_leaves_a_walk_for_good(void **state)
{
    struct car cars[] = { { .number = 0 }, { .number = 1 }, { .number = 2 } };
    struct list head;
    int steps = 0;

    list_init(&head);
    for (int i = 0; i < 3; i++)
        list_push_back(&head, &cars[i].link);
    list_each (struct car, car, &head, link) {
        steps++;
        if (car->number == 1)
            break;
    }
    assert_int_equal(steps, 2);
}

static void walks_nest(void **state)
{
    struct car cars[] = { { .number = 0 }, { .number = 1 }, { .number = 2 } };
    struct list head;
    int pairs = 0;

    list_init(&head);
    for (int i = 0; i < 3; i++)
        list_push_back(&head, &cars[i].link);
    list_each (struct car, a, &head, link)
        list_each (struct car, b, &head, link)
            pairs += a->number < b->number;
    assert_int_equal(pairs, 3);
}

static void push_twice(void)
{
    struct car car = { .number = 0 };
    struct list one, other;

    list_init(&one);
    list_init(&other);
    list_push_back(&one, &car.link);
    list_push_back(&other, &car.link);
}

static void pushing_a_linked_node_aborts(void **state)
{
    assert_true(aborts(push_twice));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_list_is_empty),
        cmocka_unit_test(nodes_go_in_at_both_ends_and_between),
        cmocka_unit_test(popping_takes_the_front),
        cmocka_unit_test(removing_twice_or_never_linked_does_nothing),
        cmocka_unit_test(the_current_item_may_be_freed_during_a_walk),
        cmocka_unit_test(break_leaves_a_walk_for_good),
        cmocka_unit_test(walks_nest),
        cmocka_unit_test(pushing_a_linked_node_aborts),
    };

    return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}
