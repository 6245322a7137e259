/* test_slurm_lane.c - each Slurm cluster has its own limit of tasks and its own pause; every task
 * ends once. */
#include "slurm_lane_rig.h"

#include "engine/executor.h"

static unsigned freed;

static void count_freed(struct slurm_task *task)
{
    (void)task;
    freed++;
}

static struct slurm_call *send(struct slurm_task *task)
{
    return slurm_node_update(task->lane->client, task->action->name, STR("{}"), slurm_task_answered,
                             task);
}

static const struct action_type family = SLURM_ACTION_TYPE("test", 0);
static const struct slurm_call_type update = { .what = "update",
                                               .key = "node",
                                               .family = &family,
                                               .feed = SLURM_FEEDS,
                                               .send = send,
                                               .done = count_freed };

static struct end *start_as(struct rig *rig, const struct slurm_call_type *type)
{
    const struct slurm_action *action = slurm_action_new(&rig->plan, type, sizeof(*action), "n1");

    return rig_do(rig, slurm_action_add(&rig->plan, action, NULL));
}

static struct end *start(struct rig *rig)
{
    return start_as(rig, &update);
}

static void answers(struct rig *rig, struct fake_answer answer)
{
    fake_answer(rig->fake, "POST", V45 "/node/n1", answer);
}

static void slurm_is_done(struct rig *rig, unsigned times, int64_t delay_us)
{
    answers(rig, (struct fake_answer){
                     .status = 200, .body = FINE, .times = times, .delay_us = delay_us });
}

/* ---- tests ---- */

static void each_class_of_errors_has_one_outcome(void **state)
{
    static const enum kube_outcome outcomes[SLURM_CLASSES] = {
        [SLURM_DONE] = KUBE_DONE,
        [SLURM_NOT_MODIFIED] = KUBE_DONE,
        [SLURM_NOT_FOUND] = KUBE_CONFLICT,
        [SLURM_EXISTS] = KUBE_CONFLICT,
        [SLURM_BUSY] = KUBE_CONFLICT,
        [SLURM_AUTH] = KUBE_DENIED,
        [SLURM_FORBIDDEN] = KUBE_DENIED,
        [SLURM_INVALID] = KUBE_INVALID,
        [SLURM_UNKNOWN_NODE] = KUBE_CONFLICT,
        [SLURM_UNSATISFIABLE] = KUBE_INVALID,
        [SLURM_NOT_SUPPORTED] = KUBE_INVALID,
        [SLURM_UNAVAILABLE] = KUBE_UNAVAILABLE,
        [SLURM_TIMEOUT] = KUBE_UNAVAILABLE,
        [SLURM_UNKNOWN] = KUBE_UNKNOWN,
    };

    (void)state;
    for (unsigned i = 0; i < SLURM_CLASSES; i++)
        assert_int_equal(slurm_outcome((enum slurm_class)i), outcomes[i]);
}

static void a_task_ends_with_its_answer(void **state)
{
    struct rig *rig = *state;

    freed = 0;
    slurm_is_done(rig, 1, MS_US);
    start(rig);
    rig_run(rig, SECOND_US);
    assert_true(rig->ends[0].is_over);
    assert_int_equal(rig->ends[0].outcome, KUBE_DONE);
    assert_int_equal(freed, 1);
}

static void a_task_without_a_client_ends_from_the_loop(void **state)
{
    struct rig *rig = *state;

    rig->lane.client = NULL;
    start(rig);
    rig_run(rig, MS_US);
    assert_true(rig->ends[0].is_over);
    assert_int_equal(rig->ends[0].outcome, KUBE_UNAVAILABLE);
}

static void a_lane_that_is_closed_ends_every_task(void **state)
{
    struct rig *rig = *state;

    freed = 0;
    rig->lane.max_tasks = 2;
    answers(rig, (struct fake_answer){ .status = 0, .times = FAKE_ALWAYS });
    for (int i = 0; i < 4; i++) /* two of them wait for their turn */
        start(rig);
    rig_run(rig, MS_US);
    slurm_lane_close(&rig->lane, "another address");
    for (int i = 0; i < 4; i++) {
        assert_true(rig->ends[i].is_over);
        assert_int_equal(rig->ends[i].outcome, KUBE_UNAVAILABLE);
        assert_string_equal(rig->ends[i].message, "another address");
    }
    rig_run(rig, 60 * SECOND_US);
    assert_int_equal(fake_sent_count(rig->fake), 2);
    assert_int_equal(freed, 4);
}

static void a_cancelled_task_tells_nobody(void **state)
{
    struct rig *rig = *state;

    rig->lane.max_tasks = 1;
    slurm_is_done(rig, 2, MS_US);
    rig_cancel(rig, start(rig));
    start(rig);
    rig_cancel(rig, start(rig)); /* it waited */
    rig_run(rig, SECOND_US);
    assert_false(rig->ends[0].is_over);
    assert_true(rig->ends[1].is_over);
    assert_false(rig->ends[2].is_over);
}

static void no_more_tasks_than_the_limit_are_sent_at_once(void **state)
{
    struct rig *rig = *state;

    rig->lane.max_tasks = 2;
    slurm_is_done(rig, 5, 100 * MS_US);
    for (int i = 0; i < 5; i++)
        start(rig);
    rig_run(rig, 50 * MS_US);
    assert_int_equal(fake_sent_count(rig->fake), 2);
    rig_run(rig, 100 * MS_US);
    assert_int_equal(fake_sent_count(rig->fake), 4);
    rig_run(rig, SECOND_US);
    for (int i = 0; i < 5; i++)
        assert_int_equal(rig->ends[i].outcome, KUBE_DONE);
}

static void a_task_that_waited_is_not_sent_when_another_leads(void **state)
{
    struct rig *rig = *state;

    rig->lane.max_tasks = 1;
    slurm_is_done(rig, 1, 100 * MS_US);
    start(rig);
    start(rig);
    rig->leads = false;
    rig_run(rig, SECOND_US);
    assert_int_equal(fake_sent_count(rig->fake), 1);
    assert_int_equal(rig->ends[1].outcome, KUBE_CONFLICT);
}

static void a_task_that_waited_too_long_is_planned_again(void **state)
{
    struct rig *rig = *state;

    rig->lane.max_tasks = 1;
    slurm_is_done(rig, 1, EXECUTOR_STALE_US + SECOND_US);
    start(rig);
    start(rig);
    rig_run(rig, EXECUTOR_STALE_US + 2 * SECOND_US);
    assert_int_equal(fake_sent_count(rig->fake), 1);
    assert_int_equal(rig->ends[0].outcome, KUBE_DONE);
    assert_int_equal(rig->ends[1].outcome, KUBE_CONFLICT);
}

static void a_429_pauses_the_lane_for_as_long_as_it_says(void **state)
{
    struct rig *rig = *state;

    answers(rig, (struct fake_answer){ .status = 429, .retry_after_us = 3 * SECOND_US });
    start(rig);
    rig_run(rig, SECOND_US);
    assert_int_equal(rig->ends[0].outcome, KUBE_UNAVAILABLE); /* proof that nothing was done */
    start(rig);
    rig_run(rig, MS_US);
    assert_int_equal(fake_sent_count(rig->fake), 1);
    assert_int_equal(rig->ends[1].outcome, KUBE_UNAVAILABLE);
    assert_in_range(rig->ends[1].retry_after_us, SECOND_US, 3 * SECOND_US);
    rig_run(rig, 3 * SECOND_US);
    slurm_is_done(rig, 1, 0);
    start(rig);
    rig_run(rig, MS_US);
    assert_int_equal(rig->ends[2].outcome, KUBE_DONE);
}

static void no_pause_is_longer_than_15_s(void **state)
{
    struct rig *rig = *state;

    answers(rig,
            (struct fake_answer){ .status = 429, .retry_after_us = INT64_C(3600) * SECOND_US });
    start(rig);
    rig_run(rig, SECOND_US + SLURM_LANE_PAUSE_US);
    slurm_is_done(rig, 1, 0);
    start(rig);
    rig_run(rig, MS_US);
    assert_int_equal(rig->ends[1].outcome, KUBE_DONE);
}

/* ---- rows ---- */

static void an_answer_is_followed_by_a_read_unless_nothing_was_sent(void **state)
{
    struct slurm_call_type reads = update;
    struct rig *rig = *state;

    reads.feed = SLURM_FEED_NODES;
    slurm_is_done(rig, 1, 0);
    rig_reads_node(rig, "n1");
    start_as(rig, &reads);
    rig_run(rig, MS_US);
    assert_int_equal(rig->ends[0].outcome, KUBE_DONE);
    assert_int_equal(rig_sent(rig, "GET", "/node/n1"), 1);
    answers(rig, (struct fake_answer){ .class = ERR_UNAVAILABLE });
    start_as(rig, &reads);
    rig_run(rig, SECOND_US);
    assert_int_equal(rig->ends[1].outcome, KUBE_UNAVAILABLE);
    assert_int_equal(rig_sent(rig, "GET", "/node/n1"), 1);
}

static const char *object(struct slurm_task *task)
{
    (void)task;
    return "not sent: for the test";
}

static enum kube_outcome judge(struct slurm_task *task, const struct slurm_answer *answer)
{
    assert_int_equal(answer->error.class, SLURM_DONE);
    slurm_task_say(task, "in other words");
    return KUBE_CONFLICT;
}

static void a_row_judges_and_objects(void **state)
{
    struct slurm_call_type judges = update, objects = update;
    struct rig *rig = *state;

    judges.judge = judge;
    objects.objection = object;
    slurm_is_done(rig, 1, 0);
    start_as(rig, &judges);
    start_as(rig, &objects);
    rig_run(rig, MS_US);
    for (int i = 0; i < 2; i++) {
        assert_true(rig->ends[i].is_over);
        assert_int_equal(rig->ends[i].outcome, KUBE_CONFLICT);
    }
    assert_string_equal(rig->ends[0].message, "in other words");
    assert_string_equal(rig->ends[1].message, "not sent: for the test");
    assert_int_equal(rig_sent(rig, "POST", "/"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_class_of_errors_has_one_outcome),
        TEST(a_task_ends_with_its_answer),
        TEST(a_task_without_a_client_ends_from_the_loop),
        TEST(a_lane_that_is_closed_ends_every_task),
        TEST(a_cancelled_task_tells_nobody),
        TEST(no_more_tasks_than_the_limit_are_sent_at_once),
        TEST(a_task_that_waited_is_not_sent_when_another_leads),
        TEST(a_task_that_waited_too_long_is_planned_again),
        TEST(a_429_pauses_the_lane_for_as_long_as_it_says),
        TEST(no_pause_is_longer_than_15_s),
        TEST(an_answer_is_followed_by_a_read_unless_nothing_was_sent),
        TEST(a_row_judges_and_objects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
