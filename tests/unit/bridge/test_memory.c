/* test_memory.c - units are remembered by key, and the counts are those of the units. */
#include "bridge/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { MANY = 1000, STATES = 4 };

static void a_unit_is_made_once_and_found_again(void **state)
{
    struct memory *memory = memory_new();
    char key[] = "ns/uid";
    struct unit_memory *unit = memory_need(memory, str_of(key));

    key[0] = 'x'; /* the key is a copy */
    assert_ptr_equal(memory_need(memory, STR("ns/uid")), unit);
    assert_ptr_equal(memory_get(memory, STR("ns/uid")), unit);
    assert_true(str_is(unit->key, "ns/uid"));
    assert_int_equal(unit->ask.state, ASK_NONE);
    assert_int_equal(unit->ask.attempt, 0);
    assert_null(memory_get(memory, STR("ns/other")));
    assert_int_equal(memory_count(memory), 1);
    memory_free(memory);
}

static void a_forgotten_unit_starts_over(void **state)
{
    struct memory *memory = memory_new();
    struct unit_memory *unit = memory_need(memory, STR("a"));

    unit->queues = true;
    memory_move(memory, unit, ASK_REFUSED);
    memory_forget(memory, unit->key); /* also by its own key */
    memory_forget(memory, STR("a"));
    assert_int_equal(memory_count(memory), 0);
    assert_int_equal(memory_in(memory, ASK_REFUSED), 0);
    assert_false(memory_need(memory, STR("a"))->queues);
    memory_free(memory);
}

struct tally {
    size_t in[STATES], all;
};

static void what_jobs_were_asked_with_is_forgotten_and_nothing_else(void **state)
{
    struct memory *memory = memory_new();

    memory_need(memory, STR("a"))->said.job_id = 7;
    memory_need(memory, STR("b"))->said = (struct said_memory){ .job_id = 8, .refused = 1 };
    memory_need(memory, STR("b"))->queues = true;
    memory_forget_said(memory);
    assert_int_equal(memory_get(memory, STR("a"))->said.job_id, 0);
    assert_int_equal(memory_get(memory, STR("b"))->said.job_id, 0);
    assert_true(memory_get(memory, STR("b"))->said.refused == 0);
    assert_true(memory_get(memory, STR("b"))->queues);
    memory_free(memory);
}

static void tally_one(void *context, const struct unit_memory *unit)
{
    struct tally *tally = context;

    tally->in[unit->ask.state]++;
    tally->all++;
}

static void the_counts_are_those_of_a_walk(void **state)
{
    struct memory *memory = memory_new();
    struct tally tally = { 0 };
    char key[32];

    for (unsigned i = 0; i < MANY; i++) {
        snprintf(key, sizeof(key), "n/%u", i % 300);

        struct unit_memory *unit = memory_need(memory, str_of(key));

        memory_move(memory, unit, (enum ask_state)(i * 7 % STATES));
        if (i % 11 == 0)
            memory_forget(memory, str_of(key));
    }
    memory_each(memory, tally_one, &tally);
    assert_int_equal(tally.all, memory_count(memory));
    for (unsigned i = 0; i < STATES; i++)
        assert_int_equal(tally.in[i], memory_in(memory, (enum ask_state)i));
    assert_int_equal(memory_in(memory, (enum ask_state)99), 0);
    memory_free(memory);
}

static void each_state_has_a_name(void **state)
{
    assert_string_equal(ask_state_name(ASK_NONE), "none");
    assert_string_equal(ask_state_name(ASK_SENT), "sent");
    assert_string_equal(ask_state_name(ASK_UNRESOLVED), "unresolved");
    assert_string_equal(ask_state_name(ASK_REFUSED), "refused");
    assert_string_equal(ask_state_name((enum ask_state)17), "no state");
}

static void freeing_nothing_is_fine(void **state)
{
    memory_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unit_is_made_once_and_found_again),
        cmocka_unit_test(a_forgotten_unit_starts_over),
        cmocka_unit_test(what_jobs_were_asked_with_is_forgotten_and_nothing_else),
        cmocka_unit_test(the_counts_are_those_of_a_walk),
        cmocka_unit_test(each_state_has_a_name),
        cmocka_unit_test(freeing_nothing_is_fine),
    };

    return cmocka_run_group_tests_name("bridge memory", tests, NULL, NULL);
}
