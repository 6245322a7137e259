/* test_lease_contest.c - several want the lease: a silent holder's is taken, one that was given up
 * is free at once, and at most one holds it at any moment. */
#include "lease_rig.h"

/* ---- taken from another ---- */

static void a_lease_of_another_is_taken_after_fifteen_seconds_of_our_own_watching(void **state)
{
    struct world *world = *state;
    struct contender *one = enter_after(world, "else", 15);

    world_run(world, 15 * SECOND_US - 1);
    assert_int_equal(world->store.writes, 1);
    world_run(world, 10);
    assert_true(kube_lease_is_held(one->lease));
    stored_spec_is(world, "leaseTransitions", "5");
    stored_spec_is(world, "acquireTime", "\"2026-01-01T00:00:15.000000Z\"");

    auto_json_doc struct json_doc *doc = stored(world);

    assert_true(str_is(json_str(json_at(json_root(doc), "metadata", "labels", "kept")), "yes"));
}

static void a_lease_that_changes_is_waited_for_anew(void **state)
{
    struct world *world = *state;
    struct contender *one = enter_after(world, "else", 15);

    for (int i = 0; i < 10; i++) {
        world_run(world, 12 * SECOND_US);
        store_foreign(world, "else", 15);
    }
    assert_int_equal(one->gained, 0);
    world_run(world, 18 * SECOND_US);
    assert_int_equal(one->gained, 1);
}

static void a_longer_lease_of_another_is_respected_up_to_ten_minutes(void **state)
{
    struct world *world = *state;
    struct contender *one = enter_after(world, "else", 60);

    world_run(world, 59 * SECOND_US);
    assert_int_equal(one->gained, 0);
    world_run(world, 2 * SECOND_US);
    assert_int_equal(one->gained, 1);

    leave(one);
    one = enter_after(world, "else", INT32_MAX);
    world_run(world, 601 * SECOND_US);
    assert_int_equal(one->gained, 1);
}

static void a_free_lease_is_taken_at_once(void **state)
{
    struct world *world = *state;
    struct contender *one = enter_after(world, "", 1);

    world_run(world, 1);
    assert_true(kube_lease_is_held(one->lease));
    stored_spec_is(world, "leaseTransitions", "5");
}

static void a_record_with_our_name_that_we_did_not_write_is_a_twins(void **state)
{
    struct world *world = *state;
    struct contender *one = enter_after(world, "one", 15);

    world_run(world, 14 * SECOND_US);
    assert_int_equal(one->gained, 0);
    world_run(world, 2 * SECOND_US);
    assert_int_equal(one->gained, 1);
}

/* ---- given up ---- */

static void a_clean_stop_lets_the_next_one_in_at_once(void **state)
{
    struct world *world = *state;
    struct contender *one = hold_for(world, SECOND_US), *two = enter(world, 1);

    world_run(world, 3 * SECOND_US);
    release(one);
    assert_false(kube_lease_is_held(one->lease));
    assert_int_equal(one->released, 0);
    world_run(world, 10);
    assert_int_equal(one->released, 1);
    stored_spec_is(world, "holderIdentity", "\"\"");
    stored_spec_is(world, "leaseDurationSeconds", "1");
    stored_spec_is(world, "leaseTransitions", "0");
    world_run(world, 3 * SECOND_US);
    assert_true(kube_lease_is_held(two->lease));
    stored_spec_is(world, "leaseTransitions", "1");
    assert_int_equal(one->lost, 0); /* it was our own wish */
}

static void whether_it_was_given_up_before_is_known_while_it_is_held(void **state)
{
    struct world *world = *state;
    struct contender *one = hold_for(world, 3 * SECOND_US), *two;

    assert_false(kube_lease_was_released(one->lease)); /* there was none */

    release(one);
    world_run(world, SECOND_US);
    two = enter(world, 1);
    assert_false(kube_lease_was_released(two->lease));
    world_run(world, SECOND_US);
    assert_true(kube_lease_is_held(two->lease));
    assert_true(kube_lease_was_released(two->lease));
    assert_false(kube_lease_was_released(one->lease));
    world_run(world, 30 * SECOND_US); /* renewals change nothing */
    assert_true(kube_lease_was_released(two->lease));
}

static void an_expired_lease_was_not_given_up(void **state)
{
    struct world *world = *state;
    struct contender *one = enter_after(world, "else", 15);

    world_run(world, 20 * SECOND_US);
    assert_true(kube_lease_is_held(one->lease));
    assert_false(kube_lease_was_released(one->lease));
}

static void a_pause_of_our_own_is_no_clean_end(void **state)
{
    struct world *world = *state;
    struct contender *one = enter_after(world, "", 1);

    world_run(world, 3 * SECOND_US);
    assert_true(kube_lease_was_released(one->lease));
    world->store.down = true;
    world_run(world, 12 * SECOND_US);
    assert_int_equal(one->lost, 1);
    world->store.down = false;
    world_run(world, 3 * SECOND_US);
    assert_true(kube_lease_is_held(one->lease));
    assert_false(kube_lease_was_released(one->lease));
}

static void a_claim_that_may_have_happened_keeps_what_it_replaced(void **state)
{
    struct world *world = *state;
    struct contender *one;

    store_foreign(world, "", 1);
    fake_answer(world->fake, "GET", LEASE,
                (struct fake_answer){ .status = 200, .body = world->store.object });
    one = enter(world, 0);
    world->store.lose_answers = true; /* the claim is written, and nobody hears of it */
    world_run(world, SECOND_US);
    assert_false(kube_lease_is_held(one->lease));
    stored_spec_is(world, "holderIdentity", "\"one\"");
    world->store.lose_answers = false;
    world_run(world, 5 * SECOND_US);
    assert_true(kube_lease_is_held(one->lease));
    assert_true(kube_lease_was_released(one->lease));
}

static void a_release_waits_for_the_write_under_way(void **state)
{
    struct world *world = *state;
    struct contender *one;

    answer_created(world, "one", SECOND_US);
    fake_answer(world->fake, "PUT", LEASE, (struct fake_answer){ .status = 200, .body = "{}" });
    one = enter(world, 0);
    world_run(world, SECOND_US / 2);
    release(one);
    assert_int_equal(one->released, 0);
    world_run(world, SECOND_US);
    assert_int_equal(one->released, 1);
    assert_int_equal(one->gained, 0);
    assert_string_equal(fake_last_sent(world->fake)->method, "PUT");
    assert_non_null(strstr(fake_last_sent(world->fake)->body, "\"holderIdentity\":\"\""));
    assert_non_null(strstr(fake_last_sent(world->fake)->body, "\"resourceVersion\":\"5\""));
}

static void a_release_ends_also_when_the_server_is_away(void **state)
{
    struct world *world = *state;
    struct contender *one = hold_for(world, SECOND_US);

    world->store.down = true;
    world_run(world, 2 * SECOND_US);
    release(one);
    world_run(world, 20 * SECOND_US);
    assert_int_equal(one->released, 1);
    assert_false(kube_lease_is_held(one->lease));
}

static void a_contender_that_never_held_it_releases_without_a_write(void **state)
{
    struct world *world = *state;
    struct contender *one = enter_after(world, "else", 15);

    world_run(world, SECOND_US);
    release(one);
    world_run(world, SECOND_US);
    assert_int_equal(one->released, 1);
    stored_spec_is(world, "holderIdentity", "\"else\"");
    assert_int_equal(world->store.writes, 1);
}

/* ---- many contenders, a bad network, days of it ---- */

static int64_t bad_travel(void *context, const struct fake_sent *sent)
{
    struct world *world = context;

    if (!rand_chance(&world->rand, world->trouble_permille))
        return rand_range(&world->rand, 0, SECOND_US / 20);
    if (rand_chance(&world->rand, 300))
        return -rand_range(&world->rand, 1, 3 * SECOND_US);
    return rand_range(&world->rand, 0, 30 * SECOND_US); /* long after its sender gave up */
}

static struct fake_answer bad_serve(void *context, const struct fake_sent *sent)
{
    struct world *world = context;
    struct fake_answer answer;

    if (rand_chance(&world->rand, world->trouble_permille / 4))
        return (struct fake_answer){ .status = 503 };
    answer = store_serve(world, sent);
    if (rand_chance(&world->rand, world->trouble_permille / 2))
        return (struct fake_answer){ .class = ERR_UNKNOWN };
    answer.delay_us = rand_chance(&world->rand, world->trouble_permille)
                          ? rand_range(&world->rand, 0, 12 * SECOND_US)
                          : rand_range(&world->rand, 0, SECOND_US / 20);
    return answer;
}

static struct contender *holder(struct world *world)
{
    struct contender *found = NULL;

    for (unsigned i = 0; i < MAX_CONTENDERS; i++) {
        struct contender *contender = &world->contenders[i];

        if (!contender->lease || !kube_lease_is_held(contender->lease))
            continue;
        assert_null(found); /* the promise */
        found = contender;
    }
    return found;
}

static void disturb(struct world *world)
{
    unsigned index = (unsigned)rand_below(&world->rand, MAX_CONTENDERS);
    struct contender *contender = &world->contenders[index];

    if (rand_chance(&world->rand, 300)) {
        world->trouble_permille = (unsigned)rand_below(&world->rand, 600);
    } else if (rand_chance(&world->rand, 300)) {
        clock_set_wall_us(&world->clock, START_WALL + rand_range(&world->rand, 0, 1 << 30));
    } else if (!contender->lease) {
        enter(world, index);
    } else if (rand_chance(&world->rand, 300)) {
        release(contender);
        world_run(world, 5 * SECOND_US);
        leave(contender);
    } else if (rand_chance(&world->rand, 300)) {
        leave(contender); /* a crash: what it sent still travels */
    }
}

static void run_seed(struct world *world, uint64_t seed)
{
    int64_t end_us = loop_now_us(world->loop) + INT64_C(6000) * SECOND_US;
    int64_t disturb_us = 0, held_us = 0, before_us = loop_now_us(world->loop);

    rand_init(&world->rand, seed);
    fake_travel(world->fake, bad_travel, world);
    fake_serve(world->fake, bad_serve, world);
    for (unsigned i = 0; i < MAX_CONTENDERS; i++)
        enter(world, i);
    while (loop_now_us(world->loop) < end_us) {
        bool held = holder(world) != NULL;

        if (!loop_step(world->loop))
            clock_advance_us(&world->clock, SECOND_US);
        held_us += held ? loop_now_us(world->loop) - before_us : 0;
        before_us = loop_now_us(world->loop);
        if (before_us < disturb_us)
            continue;
        disturb(world);
        before_us = loop_now_us(world->loop);
        disturb_us = before_us + rand_range(&world->rand, 1, 60 * SECOND_US);
    }
    assert_true(held_us > INT64_C(1000) * SECOND_US); /* and somebody holds it, often */
    for (unsigned i = 0; i < MAX_CONTENDERS; i++)
        leave(&world->contenders[i]);
    fake_forget_sent(world->fake);
}

static void two_never_hold_it_at_once_whatever_the_network_does(void **state)
{
    for (uint64_t seed = 1; seed <= 12; seed++)
        run_seed(*state, seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lease_of_another_is_taken_after_fifteen_seconds_of_our_own_watching),
        TEST(a_lease_that_changes_is_waited_for_anew),
        TEST(a_longer_lease_of_another_is_respected_up_to_ten_minutes),
        TEST(a_free_lease_is_taken_at_once),
        TEST(a_record_with_our_name_that_we_did_not_write_is_a_twins),
        TEST(a_clean_stop_lets_the_next_one_in_at_once),
        TEST(whether_it_was_given_up_before_is_known_while_it_is_held),
        TEST(an_expired_lease_was_not_given_up),
        TEST(a_pause_of_our_own_is_no_clean_end),
        TEST(a_claim_that_may_have_happened_keeps_what_it_replaced),
        TEST(a_release_waits_for_the_write_under_way),
        TEST(a_release_ends_also_when_the_server_is_away),
        TEST(a_contender_that_never_held_it_releases_without_a_write),
        TEST(two_never_hold_it_at_once_whatever_the_network_does),
    };

    return cmocka_run_group_tests_name("kube/lease contest", tests, NULL, NULL);
}
