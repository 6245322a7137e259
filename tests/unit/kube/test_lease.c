/* test_lease.c - one contender: it holds the lease only as long as it is sure to, and asks again as
 * long as it does not. */
#include "lease_rig.h"

/* Unless something runs before. */
static void is_held_until(struct world *world, const struct kube_lease *lease, int64_t at_us)
{
    clock_advance_us(&world->clock, at_us - 1 - loop_now_us(world->loop));
    assert_true(kube_lease_is_held(lease));
    clock_advance_us(&world->clock, 1);
    assert_false(kube_lease_is_held(lease));
}

static void a_lease_that_does_not_exist_is_created_and_held(void **state)
{
    struct world *world = *state;
    struct contender *one = enter(world, 0);

    assert_false(kube_lease_is_held(one->lease));
    world_run(world, SECOND_US / 2);
    assert_true(kube_lease_is_held(one->lease));
    assert_int_equal(one->gained, 1);
    stored_spec_is(world, "holderIdentity", "\"one\"");
    stored_spec_is(world, "leaseDurationSeconds", "15");
    stored_spec_is(world, "leaseTransitions", "0");
    stored_spec_is(world, "acquireTime", "\"2026-01-01T00:00:00.000000Z\"");
    stored_spec_is(world, "renewTime", "\"2026-01-01T00:00:00.000000Z\"");
    is_held_until(world, one->lease, 11 * SECOND_US);
}

static void the_holder_renews_every_two_seconds_with_one_write(void **state)
{
    struct world *world = *state;
    struct contender *one = hold_for(world, 60 * SECOND_US + 1);

    assert_int_equal(one->gained, 1);
    assert_int_equal(one->lost, 0);
    assert_int_equal(world->store.writes, 31);
    assert_int_equal(fake_sent_count(world->fake), 32); /* one look at the beginning */
    stored_spec_is(world, "acquireTime", "\"2026-01-01T00:00:00.000000Z\"");
    stored_spec_is(world, "renewTime", "\"2026-01-01T00:01:00.000000Z\"");
    stored_spec_is(world, "leaseTransitions", "0");
}

static void the_holder_stops_when_it_could_not_renew_for_ten_seconds(void **state)
{
    struct world *world = *state;
    struct contender *one = hold_for(world, 1);

    world->store.down = true;
    world_run(world, 10 * SECOND_US - 2);
    assert_true(kube_lease_is_held(one->lease));
    assert_int_equal(one->lost, 0);
    world_run(world, 2);
    assert_false(kube_lease_is_held(one->lease));
    assert_int_equal(one->lost, 1);

    world->store.down = false; /* nobody took it meanwhile */
    world_run(world, 5 * SECOND_US);
    assert_true(kube_lease_is_held(one->lease));
    stored_spec_is(world, "leaseTransitions", "0");
}

static void it_is_not_held_past_its_time_even_when_no_timer_ran(void **state)
{
    struct world *world = *state;
    struct contender *one = hold_for(world, 1);

    clock_advance_us(&world->clock, 10 * SECOND_US - 2);
    assert_true(kube_lease_is_held(one->lease));
    clock_advance_us(&world->clock, 1);
    assert_false(kube_lease_is_held(one->lease));
    assert_int_equal(one->lost, 0); /* the loop has not run: nobody could be told */
}

static void a_slow_answer_counts_from_when_the_write_was_sent(void **state)
{
    struct world *world = *state;
    struct contender *one;

    answer_none(world);
    answer_created(world, "one", 4 * SECOND_US);
    fake_answer(world->fake, "PUT", LEASE, (struct fake_answer){ 0 }); /* the renewal hangs */
    one = enter(world, 0);
    world_run(world, 4 * SECOND_US + 1);
    is_held_until(world, one->lease, 11 * SECOND_US);
}

static void an_answer_that_names_another_holder_is_not_ours(void **state)
{
    struct world *world = *state;
    struct contender *one;

    answer_none(world);
    answer_created(world, "else", 0);
    one = enter(world, 0);
    world_run(world, SECOND_US);
    assert_false(kube_lease_is_held(one->lease));
}

static void a_conflict_makes_the_holder_look_again_and_go_on(void **state)
{
    struct world *world = *state;
    struct contender *one = hold_for(world, 3 * SECOND_US);

    store_keep(&world->store, world->store.object); /* somebody set a label */
    world_run(world, 3 * SECOND_US);
    assert_int_equal(one->lost, 0);
    assert_true(kube_lease_is_held(one->lease));
    clock_advance_us(&world->clock, 7 * SECOND_US);
    assert_true(kube_lease_is_held(one->lease));
}

static void a_lease_that_was_written_over_is_lost_when_that_is_seen(void **state)
{
    struct world *world = *state;
    struct contender *one = hold_for(world, 3 * SECOND_US);

    store_foreign(world, "else", 15);
    world_run(world, 3 * SECOND_US);
    assert_int_equal(one->lost, 1);
    assert_false(kube_lease_is_held(one->lease));
    stored_spec_is(world, "holderIdentity", "\"else\"");
}

static void a_deleted_lease_is_lost_and_created_again(void **state)
{
    struct world *world = *state;
    struct contender *one = hold_for(world, 3 * SECOND_US);

    mem_free(world->store.object);
    world->store.object = NULL;
    world_run(world, SECOND_US + 10);
    assert_false(kube_lease_is_held(one->lease));
    assert_int_equal(one->lost, 1);
    world_run(world, 3 * SECOND_US);
    assert_true(kube_lease_is_held(one->lease));
}

static void a_renewal_that_may_have_happened_extends_nothing(void **state)
{
    struct world *world = *state;
    struct contender *one = hold_for(world, 1);

    world->store.lose_answers = true;
    world_run(world, 10 * SECOND_US);
    assert_true(world->store.writes >= 2);
    assert_int_equal(one->lost, 1);
    world->store.lose_answers = false;
    world_run(world, 3 * SECOND_US);
    assert_true(kube_lease_is_held(one->lease));
}

static void a_creation_that_may_have_happened_is_found_and_made_sure(void **state)
{
    struct world *world = *state;
    struct contender *one;

    answer_none(world);
    one = enter(world, 0);
    world->store.lose_answers = true;
    world_run(world, SECOND_US);
    assert_non_null(world->store.object);
    assert_int_equal(one->gained, 0);
    world->store.lose_answers = false;
    world_run(world, 3 * SECOND_US);
    assert_int_equal(one->gained, 1);
}

struct troubles {
    unsigned count;
    char last[100];
};

static void on_trouble(void *context, const char *error)
{
    struct troubles *troubles = context;

    troubles->count++;
    snprintf(troubles->last, sizeof(troubles->last), "%s", error);
}

static void refusals_are_asked_again_and_hold_nothing(void **state)
{
    struct world *world = *state;
    struct contender *one;
    struct troubles troubles = { 0 };

    for (int i = 0; i < 3; i++)
        fake_status(world->fake, "GET", LEASE, 403, "Forbidden", "no rights, yet");
    for (int i = 0; i < 2; i++)
        fake_status(world->fake, "POST", LEASES, 404, "NotFound", "no such namespace, yet");
    one = enter(world, 0);
    kube_lease_on_trouble(one->lease, on_trouble, &troubles);
    world_run(world, 3 * SECOND_US);
    assert_string_equal(troubles.last, "no rights, yet");
    assert_int_equal(troubles.count, 1); /* a reason is told once */
    world_run(world, 4500000);
    assert_int_equal(one->gained, 0);
    assert_string_equal(troubles.last, "no such namespace, yet");
    world_run(world, 10 * SECOND_US);
    assert_int_equal(one->gained, 1);
    assert_string_equal(troubles.last, "");
    assert_int_equal(troubles.count, 3);
}

static void why_it_could_not_be_renewed_is_told_before_it_is_lost(void **state)
{
    struct world *world = *state;
    struct contender *one = hold_for(world, 1);
    struct troubles troubles = { 0 };

    kube_lease_on_trouble(one->lease, on_trouble, &troubles);
    world->store.down = true;
    world_run(world, 9 * SECOND_US);
    assert_int_equal(one->lost, 0);
    assert_in_range(troubles.count, 1, 2); /* of the write, and then of the reads */
    assert_true(troubles.last[0]);
}

static void a_lease_that_another_holds_is_no_trouble(void **state)
{
    struct world *world = *state;
    struct contender *one;
    struct troubles troubles = { 0 };

    store_foreign(world, "else", 600);
    one = enter(world, 0);
    kube_lease_on_trouble(one->lease, on_trouble, &troubles);
    world_run(world, 30 * SECOND_US);
    assert_int_equal(one->gained, 0);
    assert_int_equal(troubles.count, 0);
}

static void a_deadline_as_long_as_the_lease_is_lowered(void **state)
{
    struct world *world = *state;
    struct kube_lease_options options = { .ns = "slinc",
                                          .name = "bridge",
                                          .identity = "one",
                                          .duration_us = 9 * SECOND_US,
                                          .renew_deadline_us = 9 * SECOND_US };
    struct contender *one = &world->contenders[0];

    one->lease = kube_lease_new(world->client, &world->rand, &options);
    kube_lease_start(one->lease, NULL, NULL);
    world_run(world, 1);
    is_held_until(world, one->lease, 7 * SECOND_US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lease_that_does_not_exist_is_created_and_held),
        TEST(the_holder_renews_every_two_seconds_with_one_write),
        TEST(the_holder_stops_when_it_could_not_renew_for_ten_seconds),
        TEST(it_is_not_held_past_its_time_even_when_no_timer_ran),
        TEST(a_slow_answer_counts_from_when_the_write_was_sent),
        TEST(an_answer_that_names_another_holder_is_not_ours),
        TEST(a_conflict_makes_the_holder_look_again_and_go_on),
        TEST(a_lease_that_was_written_over_is_lost_when_that_is_seen),
        TEST(a_deleted_lease_is_lost_and_created_again),
        TEST(a_renewal_that_may_have_happened_extends_nothing),
        TEST(a_creation_that_may_have_happened_is_found_and_made_sure),
        TEST(refusals_are_asked_again_and_hold_nothing),
        TEST(why_it_could_not_be_renewed_is_told_before_it_is_lost),
        TEST(a_lease_that_another_holds_is_no_trouble),
        TEST(a_deadline_as_long_as_the_lease_is_lowered),
    };

    return cmocka_run_group_tests_name("kube/lease", tests, NULL, NULL);
}
