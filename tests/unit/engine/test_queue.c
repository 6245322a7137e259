/* test_queue.c - each key once, namespaces in turn, failures with growing pauses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/queue.h"

#include <stdio.h>

struct world {
    struct clock clock;
    struct loop *loop;
    struct rand rand;
    struct queue *queue;
    unsigned ready_calls;
};

static void on_ready(void *context)
{
    struct world *world = context;

    world->ready_calls++;
}

static void set_up_bounded(struct world *world, size_t max_keys)
{
    *world = (struct world){ 0 };
    clock_init_virtual(&world->clock, 0);
    world->loop = loop_new_virtual(&world->clock);
    rand_init(&world->rand, 7);
    world->queue = queue_new(world->loop, &world->rand, max_keys, on_ready, world);
}

static void set_up(struct world *world)
{
    set_up_bounded(world, 1000);
}

static void tear_down(struct world *world)
{
    queue_free(world->queue);
    loop_free(world->loop);
}

static void add(struct world *world, const char *key)
{
    queue_add(world->queue, str_of(key));
}

static void add_after(struct world *world, const char *key, int64_t us)
{
    queue_add_after(world->queue, str_of(key), us);
}

/* Takes the next key, which must be this one; NULL: nothing is due. */
#define expect_take(world, key) take_is((world), (key), __FILE__, __LINE__)
static struct str take_is(struct world *world, const char *key, const char *file, int line)
{
    struct str taken = STR("nothing");
    bool got = queue_take(world->queue, &taken);

    if (got != (key != NULL) || (key && !str_is(taken, key)))
        fail_msg("%s:%d: took " STR_FMT ", not %s", file, line, STR_ARG(taken),
                 key ? key : "nothing");
    return taken;
}

static void take_and_end(struct world *world, const char *key)
{
    queue_done(world->queue, expect_take(world, key));
}

static void take_and_fail(struct world *world, const char *key)
{
    queue_failed(world->queue, expect_take(world, key), 0);
}

static struct queue_stats stats_of(const struct world *world)
{
    struct queue_stats stats;

    queue_stats(world->queue, &stats);
    return stats;
}

static void pass(struct world *world, int64_t us)
{
    clock_advance_us(&world->clock, us);
}

/* ---- */

static void a_key_added_often_is_taken_once(void **state)
{
    struct world world;

    set_up(&world);
    expect_take(&world, NULL);
    for (int i = 0; i < 5; i++)
        add(&world, "a/x");
    take_and_end(&world, "a/x");
    expect_take(&world, NULL);
    assert_int_equal(stats_of(&world).added, 5);
    tear_down(&world);
}

static void namespaces_take_turns(void **state)
{
    static const char *const order[] = { "a/1", "b/1", "c", "a/2", "b/2", "a/3", "a/4" };
    struct world world;

    set_up(&world);
    add(&world, "a/1");
    add(&world, "a/2");
    add(&world, "a/3");
    add(&world, "b/1");
    add(&world, "b/2");
    add(&world, "c"); /* no namespace is one too */
    add(&world, "a/4");
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        take_and_end(&world, order[i]);
    expect_take(&world, NULL);
    tear_down(&world);
}

static void a_key_added_during_its_work_comes_again_after_it(void **state)
{
    struct world world;

    set_up(&world);
    add(&world, "a/x");

    struct str key = expect_take(&world, "a/x");

    add(&world, "a/x");
    expect_take(&world, NULL);
    assert_int_equal(stats_of(&world).working, 1);
    queue_done(world.queue, key);
    take_and_end(&world, "a/x");
    expect_take(&world, NULL);
    tear_down(&world);
}

static void a_delayed_key_is_due_at_its_time_and_the_earliest_counts(void **state)
{
    struct world world;

    set_up(&world);
    add_after(&world, "a/x", 1000);
    add_after(&world, "a/x", 500);
    add_after(&world, "a/x", 800);
    pass(&world, 499);
    expect_take(&world, NULL);
    assert_int_equal(stats_of(&world).delayed, 1);
    pass(&world, 1);
    take_and_end(&world, "a/x");
    pass(&world, 10000);
    expect_take(&world, NULL);
    tear_down(&world);
}

static void an_addition_now_cancels_the_delay(void **state)
{
    struct world world;

    set_up(&world);
    add_after(&world, "a/x", 1000000);
    add(&world, "a/x");
    take_and_end(&world, "a/x");
    pass(&world, 2000000);
    expect_take(&world, NULL);
    add_after(&world, "a/x", -5); /* the past is now */
    take_and_end(&world, "a/x");
    add_after(&world, "a/x", INT64_MAX); /* and never is never */
    pass(&world, INT64_C(1) << 60);
    expect_take(&world, NULL);
    tear_down(&world);
}

static void a_delay_asked_for_during_work_counts_from_then(void **state)
{
    struct world world;

    set_up(&world);
    add(&world, "a/x");

    struct str key = expect_take(&world, "a/x");

    add_after(&world, "a/x", 1000);
    pass(&world, 400);
    queue_done(world.queue, key);
    pass(&world, 599);
    expect_take(&world, NULL);
    pass(&world, 1);
    take_and_end(&world, "a/x");
    tear_down(&world);
}

static int64_t pause_of(struct world *world)
{
    int64_t from_us = loop_now_us(world->loop);
    struct str key;

    while (!queue_take(world->queue, &key))
        assert_true(loop_step(world->loop));
    queue_failed(world->queue, key, 0);
    return loop_now_us(world->loop) - from_us;
}

static void pauses_double_with_jitter_up_to_the_maximum(void **state)
{
    struct world world;
    int64_t base_us = QUEUE_RETRY_MIN_US;

    set_up(&world);
    add(&world, "a/x");
    take_and_fail(&world, "a/x");
    for (unsigned i = 1; i < 30; i++) {
        int64_t pause_us;

        assert_int_equal(queue_failures(world.queue, STR("a/x")), i);
        pause_us = pause_of(&world);
        assert_true(pause_us <= QUEUE_RETRY_MAX_US);
        assert_in_range(pause_us, base_us * 8 / 10, base_us * 12 / 10);
        base_us = base_us * 2 > 12500000 ? 12500000 : base_us * 2;
    }
    assert_int_equal(stats_of(&world).retried, 30);
    tear_down(&world);
}

static void pauses_differ_between_keys(void **state)
{
    struct world world;
    int64_t first, second;

    set_up(&world);
    add(&world, "a/x");
    add(&world, "b/x");
    take_and_fail(&world, "a/x");
    take_and_fail(&world, "b/x");
    loop_step(world.loop); /* tells that they were added */
    loop_step(world.loop);
    first = loop_now_us(world.loop);
    loop_step(world.loop);
    second = loop_now_us(world.loop);
    assert_true(second > first);
    tear_down(&world);
}

static void success_forgets_failures(void **state)
{
    struct world world;

    set_up(&world);
    add(&world, "a/x");
    for (int i = 0; i < 5; i++) {
        take_and_fail(&world, "a/x");
        pass(&world, QUEUE_RETRY_MAX_US);
    }
    take_and_end(&world, "a/x");
    assert_int_equal(queue_failures(world.queue, STR("a/x")), 0);
    add(&world, "a/x");
    take_and_fail(&world, "a/x");
    pass(&world, QUEUE_RETRY_MIN_US * 12 / 10);
    take_and_end(&world, "a/x");
    tear_down(&world);
}

static void a_named_time_is_kept_whatever_is_added(void **state)
{
    struct world world;

    set_up(&world);
    add(&world, "a/x");
    queue_failed(world.queue, expect_take(&world, "a/x"), loop_now_us(world.loop) + 3000000);
    add(&world, "a/x");
    pass(&world, 2999999);
    add(&world, "a/x");
    expect_take(&world, NULL);
    pass(&world, 1);
    take_and_end(&world, "a/x");
    tear_down(&world);
}

static void an_addition_shortens_a_back_off_to_a_second_but_not_more(void **state)
{
    struct world world;

    set_up(&world);
    add(&world, "a/x");
    for (int i = 0; i < 9; i++) { /* the pause is 10 s and more by now */
        take_and_fail(&world, "a/x");
        pass(&world, QUEUE_RETRY_MAX_US);
    }
    take_and_fail(&world, "a/x");
    add(&world, "a/x");
    pass(&world, QUEUE_CALM_US - 1);
    expect_take(&world, NULL);
    pass(&world, 1);
    take_and_end(&world, "a/x");
    tear_down(&world);
}

static void additions_during_failed_work_do_not_shorten_the_pause(void **state)
{
    struct world world;

    set_up(&world);
    add(&world, "a/x");

    struct str key = expect_take(&world, "a/x");

    add(&world, "a/x"); /* such as by the end of our own overlay */
    queue_failed(world.queue, key, 0);
    pass(&world, QUEUE_RETRY_MIN_US * 8 / 10 - 1);
    expect_take(&world, NULL);
    tear_down(&world);
}

static void a_key_put_back_waits_again_and_keeps_its_failures(void **state)
{
    struct world world;

    set_up(&world);
    add(&world, "a/x");
    take_and_fail(&world, "a/x");
    pass(&world, QUEUE_RETRY_MAX_US);
    queue_put_back(world.queue, expect_take(&world, "a/x"));
    assert_int_equal(queue_failures(world.queue, STR("a/x")), 1);
    take_and_end(&world, "a/x");
    tear_down(&world);
}

static void the_bound_drops_new_keys_and_counts_them(void **state)
{
    struct world world;

    set_up_bounded(&world, 2);
    add(&world, "a/1");
    add_after(&world, "a/2", 1000);
    add(&world, "a/3");
    add_after(&world, "a/4", 5);
    add(&world, "a/1"); /* known ones are never dropped */
    add(&world, "a/2");
    assert_int_equal(stats_of(&world).dropped, 2);
    take_and_end(&world, "a/1");
    take_and_end(&world, "a/2");
    expect_take(&world, NULL);
    add(&world, "a/3");
    take_and_end(&world, "a/3");
    tear_down(&world);
}

static void the_owner_is_told_from_the_loop_once_per_news(void **state)
{
    struct world world;

    set_up(&world);
    add(&world, "a/1");
    add(&world, "a/2");
    assert_int_equal(world.ready_calls, 0);
    loop_run(world.loop);
    assert_int_equal(world.ready_calls, 1);
    add_after(&world, "a/3", 1000);
    add_after(&world, "a/4", 2000);
    loop_run(world.loop);
    assert_int_equal(world.ready_calls, 3);
    assert_int_equal(loop_now_us(world.loop), 1000000 + 2000);
    take_and_fail(&world, "a/1");
    loop_run(world.loop);
    assert_int_equal(world.ready_calls, 4);
    tear_down(&world);
}

static void waits_are_known(void **state)
{
    struct world world;

    set_up(&world);
    add(&world, "a/1");
    pass(&world, 300);
    add(&world, "b/1");
    pass(&world, 200);
    assert_int_equal(stats_of(&world).waiting, 2);
    expect_take(&world, "a/1");
    assert_int_equal(queue_waited_us(world.queue, STR("a/1")), 500);
    assert_int_equal(queue_waited_us(world.queue, STR("b/1")), 0);
    assert_int_equal(queue_waited_us(world.queue, STR("unknown")), 0);
    tear_down(&world);
}

/* ---- against a model that does everything the slow way ---- */

enum { MODEL_KEYS = 14, MODEL_SPACES = 5 };

struct model_key {
    char name[32];
    int space;
    int state; /* enum queue_state, or -1: unknown */
    int64_t due_us, floor_us, again_us;
    bool added_again;
    unsigned failures;
    uint64_t order; /* of its last change of place */
};

struct model {
    struct model_key keys[MODEL_KEYS];
    uint64_t space_order[MODEL_SPACES]; /* 0: has no waiting key */
    uint64_t next;
    struct rand rand; /* a copy that draws the same numbers */
};

static void model_init(struct model *model, const struct rand *rand)
{
    *model = (struct model){ .rand = *rand, .next = 1 };
    for (int i = 0; i < MODEL_KEYS; i++) {
        struct model_key *key = &model->keys[i];

        key->space = i % MODEL_SPACES;
        key->state = -1;
        snprintf(key->name, sizeof(key->name), "ns%d/%d", key->space, i);
    }
}

static void model_wait(struct model *model, struct model_key *key)
{
    key->state = QUEUE_WAITING;
    key->order = model->next++;
    if (model->space_order[key->space] == 0)
        model->space_order[key->space] = model->next++;
}

static void model_promote(struct model *model, int64_t now_us)
{
    for (;;) {
        struct model_key *best = NULL;

        for (int i = 0; i < MODEL_KEYS; i++) {
            struct model_key *key = &model->keys[i];

            if (key->state != QUEUE_DELAYED && key->state != QUEUE_BACKING_OFF)
                continue;
            if (key->due_us > now_us)
                continue;
            if (!best || key->due_us < best->due_us ||
                (key->due_us == best->due_us && key->order < best->order))
                best = key;
        }
        if (!best)
            return;
        model_wait(model, best);
    }
}

static void model_add(struct model *model, struct model_key *key, int64_t now_us, int64_t due_us)
{
    bool at_once = due_us == now_us;

    if (key->state == QUEUE_WORKING) {
        if (at_once)
            key->added_again = true;
        else if (key->again_us == 0 || due_us < key->again_us)
            key->again_us = due_us;
        return;
    }
    if (key->state == -1) {
        key->state = QUEUE_DELAYED;
        key->failures = 0;
        key->due_us = due_us;
        key->order = model->next++;
    } else if (key->state != QUEUE_WAITING) {
        if (key->state == QUEUE_BACKING_OFF && due_us < key->floor_us)
            due_us = key->floor_us;
        if (due_us < key->due_us) {
            key->due_us = due_us;
            key->order = model->next++;
        }
    }
    if (at_once)
        model_promote(model, now_us);
}

static int64_t space_rank(const struct model *model, const struct model_key *key)
{
    return (int64_t)model->space_order[key->space];
}

static struct model_key *model_take(struct model *model, int64_t now_us)
{
    struct model_key *best = NULL;
    bool more = false;

    model_promote(model, now_us);
    for (int i = 0; i < MODEL_KEYS; i++) {
        struct model_key *key = &model->keys[i];

        if (key->state == QUEUE_WAITING &&
            (!best || space_rank(model, key) < space_rank(model, best) ||
             (key->space == best->space && key->order < best->order)))
            best = key;
    }
    if (!best)
        return NULL;
    best->state = QUEUE_WORKING;
    best->added_again = false;
    best->again_us = 0;
    for (int i = 0; i < MODEL_KEYS; i++)
        more |= model->keys[i].state == QUEUE_WAITING && model->keys[i].space == best->space;
    model->space_order[best->space] = more ? model->next++ : 0;
    return best;
}

static void model_done(struct model *model, struct model_key *key)
{
    key->failures = 0;
    if (key->added_again) {
        model_wait(model, key);
    } else if (key->again_us != 0) {
        key->state = QUEUE_DELAYED;
        key->due_us = key->again_us;
        key->order = model->next++;
    } else {
        key->state = -1;
    }
}

static void model_failed(struct model *model, struct model_key *key, int64_t now_us)
{
    int64_t base_us = QUEUE_RETRY_MIN_US;

    for (unsigned i = 0; i < key->failures && base_us < 12500000; i++)
        base_us *= 2;
    key->failures++;
    base_us = rand_jitter(&model->rand, base_us > 12500000 ? 12500000 : base_us, 20);
    key->state = QUEUE_BACKING_OFF;
    key->due_us = now_us + base_us;
    key->floor_us = now_us + (base_us < 1000000 ? base_us : 1000000);
    key->order = model->next++;
}

static struct model_key *any_working(struct model *model, struct rand *dice)
{
    unsigned start = (unsigned)rand_below(dice, MODEL_KEYS);

    for (unsigned i = 0; i < MODEL_KEYS; i++) {
        struct model_key *key = &model->keys[(start + i) % MODEL_KEYS];

        if (key->state == QUEUE_WORKING)
            return key;
    }
    return NULL;
}

static void model_step(struct world *world, struct model *model, struct rand *dice)
{
    struct model_key *key = &model->keys[rand_below(dice, MODEL_KEYS)];
    int64_t now_us = loop_now_us(world->loop);
    int64_t delay_us = 1 + (int64_t)rand_below(dice, 3000000);
    struct model_key *working = any_working(model, dice);

    switch (rand_below(dice, 8)) {
    case 0:
    case 1:
        add(world, key->name);
        model_add(model, key, now_us, now_us);
        break;
    case 2:
        add_after(world, key->name, delay_us);
        model_add(model, key, now_us, now_us + delay_us);
        break;
    case 3:
    case 4:
        key = model_take(model, now_us);
        expect_take(world, key ? key->name : NULL);
        break;
    case 5:
        if (working) {
            queue_done(world->queue, str_of(working->name));
            model_done(model, working);
        }
        break;
    case 6:
        if (working) {
            queue_failed(world->queue, str_of(working->name), 0);
            model_failed(model, working, now_us);
        }
        break;
    default:
        pass(world, (int64_t)rand_below(dice, 1000000));
    }
}

static void model_compare(const struct world *world, const struct model *model)
{
    struct queue_stats stats = stats_of(world);
    size_t counts[4] = { 0 };

    for (int i = 0; i < MODEL_KEYS; i++) {
        if (model->keys[i].state >= 0) {
            counts[model->keys[i].state]++;
            assert_int_equal(queue_failures(world->queue, str_of(model->keys[i].name)),
                             model->keys[i].failures);
        }
    }
    assert_int_equal(stats.waiting, counts[QUEUE_WAITING]);
    assert_int_equal(stats.working, counts[QUEUE_WORKING]);
    assert_int_equal(stats.delayed, counts[QUEUE_DELAYED] + counts[QUEUE_BACKING_OFF]);
}

static void it_behaves_as_the_slow_model_does(void **state)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct world world;
        struct model model;
        struct rand dice;

        set_up(&world);
        rand_init(&dice, seed);
        model_init(&model, &world.rand);
        for (int i = 0; i < 2000; i++) {
            model_step(&world, &model, &dice);
            model_compare(&world, &model);
        }
        tear_down(&world);
    }
}

static void a_hundred_thousand_keys_are_no_burden(void **state)
{
    struct world world;
    struct str key;
    char name[32];
    unsigned taken = 0;

    set_up_bounded(&world, 200000);
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(name, sizeof(name), "ns%u/%u", i % 1000, i);
        if (i % 2)
            add(&world, name);
        else
            add_after(&world, name, i);
    }
    pass(&world, 200000);
    for (; queue_take(world.queue, &key); taken++)
        queue_done(world.queue, key);
    assert_int_equal(taken, 100000);
    tear_down(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_added_often_is_taken_once),
        cmocka_unit_test(namespaces_take_turns),
        cmocka_unit_test(a_key_added_during_its_work_comes_again_after_it),
        cmocka_unit_test(a_delayed_key_is_due_at_its_time_and_the_earliest_counts),
        cmocka_unit_test(an_addition_now_cancels_the_delay),
        cmocka_unit_test(a_delay_asked_for_during_work_counts_from_then),
        cmocka_unit_test(pauses_double_with_jitter_up_to_the_maximum),
        cmocka_unit_test(pauses_differ_between_keys),
        cmocka_unit_test(success_forgets_failures),
        cmocka_unit_test(a_named_time_is_kept_whatever_is_added),
        cmocka_unit_test(an_addition_shortens_a_back_off_to_a_second_but_not_more),
        cmocka_unit_test(additions_during_failed_work_do_not_shorten_the_pause),
        cmocka_unit_test(a_key_put_back_waits_again_and_keeps_its_failures),
        cmocka_unit_test(the_bound_drops_new_keys_and_counts_them),
        cmocka_unit_test(the_owner_is_told_from_the_loop_once_per_news),
        cmocka_unit_test(waits_are_known),
        cmocka_unit_test(it_behaves_as_the_slow_model_does),
        cmocka_unit_test(a_hundred_thousand_keys_are_no_burden),
    };

    return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
