/* test_unit_state.c - units are remembered by key, and the counts are those of the units. */
#include "bridge/world/unit_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { MANY = 1000, STATES = 4 };

static void a_unit_is_made_once_and_found_again(void **state)
{
    struct unit_states *states = unit_states_new();
    char key[] = "ns/uid";
    struct unit_state *unit = unit_states_need(states, str_of(key));

    key[0] = 'x'; /* the key is a copy */
    assert_ptr_equal(unit_states_need(states, STR("ns/uid")), unit);
    assert_ptr_equal(unit_states_get(states, STR("ns/uid")), unit);
    assert_true(str_is(unit->key, "ns/uid"));
    assert_int_equal(unit->submit.state, SUBMIT_NONE);
    assert_int_equal(unit->submit.attempt, 0);
    assert_null(unit_states_get(states, STR("ns/other")));
    unit_states_free(states);
}

static void a_forgotten_unit_starts_over(void **state)
{
    struct unit_states *states = unit_states_new();
    struct unit_state *unit = unit_states_need(states, STR("a"));

    unit->queues = true;
    unit_states_move(states, unit, SUBMIT_REFUSED);
    unit_states_forget(states, unit->key); /* also by its own key */
    unit_states_forget(states, STR("a"));
    assert_null(unit_states_get(states, STR("a")));
    assert_int_equal(unit_states_in(states, SUBMIT_REFUSED), 0);
    assert_false(unit_states_need(states, STR("a"))->queues);
    unit_states_free(states);
}

struct tally {
    size_t in[STATES];
};

static void what_jobs_were_asked_with_is_forgotten_and_nothing_else(void **state)
{
    struct unit_states *states = unit_states_new();

    unit_states_need(states, STR("a"))->last_applied.job_id = 7;
    unit_states_need(states, STR("b"))->last_applied =
        (struct last_applied){ .job_id = 8, .refused = 1 };
    unit_states_need(states, STR("b"))->queues = true;
    unit_states_forget_applied(states);
    assert_int_equal(unit_states_get(states, STR("a"))->last_applied.job_id, 0);
    assert_int_equal(unit_states_get(states, STR("b"))->last_applied.job_id, 0);
    assert_true(unit_states_get(states, STR("b"))->last_applied.refused == 0);
    assert_true(unit_states_get(states, STR("b"))->queues);
    unit_states_free(states);
}

static void tally_one(void *context, const struct unit_state *unit)
{
    struct tally *tally = context;

    tally->in[unit->submit.state]++;
}

static void the_counts_are_those_of_a_walk(void **state)
{
    struct unit_states *states = unit_states_new();
    struct tally tally = { 0 };
    char key[32];

    for (unsigned i = 0; i < MANY; i++) {
        snprintf(key, sizeof(key), "n/%u", i % 300);

        struct unit_state *unit = unit_states_need(states, str_of(key));

        unit_states_move(states, unit, (enum submit_state)(i * 7 % STATES));
        if (i % 11 == 0)
            unit_states_forget(states, str_of(key));
    }
    unit_states_each(states, tally_one, &tally);
    for (unsigned i = 0; i < STATES; i++)
        assert_int_equal(tally.in[i], unit_states_in(states, (enum submit_state)i));
    assert_int_equal(unit_states_in(states, (enum submit_state)99), 0);
    unit_states_free(states);
}

static void each_state_has_a_name(void **state)
{
    assert_string_equal(submit_state_name(SUBMIT_NONE), "none");
    assert_string_equal(submit_state_name(SUBMIT_SENT), "sent");
    assert_string_equal(submit_state_name(SUBMIT_UNRESOLVED), "unresolved");
    assert_string_equal(submit_state_name(SUBMIT_REFUSED), "refused");
    assert_string_equal(submit_state_name((enum submit_state)17), "no state");
}

static void freeing_nothing_is_fine(void **state)
{
    unit_states_free(NULL);
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
