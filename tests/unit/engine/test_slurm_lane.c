/* test_slurm_lane.c - each Slurm cluster has its own limit of tasks and its own pause; every task
 * ends once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine/executor.h"
#include "engine/slurm_lane.h"
#include "fake_transport.h"
#include "slurm/calls.h"

#include <string.h>

enum { SECOND_US = 1000000, MS_US = 1000, MAX_ENDS = 16 };

#define PATH "/slurm/v0.0.45/node/n1"
#define DONE "{\"errors\":[],\"warnings\":[]}"

struct end {
    unsigned count;
    enum kube_outcome outcome;
    int64_t retry_after_us;
    char message[100];
};

struct rig {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *fake;
    struct slurm_token *token;
    struct slurm_client *client;
    struct slurm_lane lane;
    struct end ends[MAX_ENDS];
    unsigned started, freed;
    bool is_starting, leads;
};

static struct rig *the_rig;

static void task_done(struct slurm_task *task)
{
    (void)task;
    the_rig->freed++;
}

static bool may_act(void *context)
{
    return ((struct rig *)context)->leads;
}

static int setup(void **state)
{
    struct rig *rig = mem_alloc(sizeof(*rig));
    struct slurm_client_options options = { .version = 45, .seed = 1 };

    clock_init_virtual(&rig->clock, INT64_C(1700000000) * SECOND_US);
    rig->loop = loop_new_virtual(&rig->clock);
    rig->fake = fake_transport_new(rig->loop);
    assert_int_equal(slurm_token_new_minted(&rig->clock, STR("0123456789abcdef0123456789abcdef"),
                                            "slurm", 900, &rig->token, NULL),
                     0);
    rig->client = slurm_client_new(rig->loop, fake_http(rig->fake), rig->token, &options);
    slurm_lane_init(&rig->lane, rig->loop);
    rig->lane.client = rig->client;
    rig->lane.task_done = task_done;
    rig->lane.may_act = may_act;
    rig->lane.context = rig;
    rig->leads = true;
    the_rig = rig;
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;

    slurm_lane_done(&rig->lane);
    slurm_client_free(rig->client);
    slurm_token_free(rig->token);
    fake_transport_free(rig->fake);
    loop_free(rig->loop);
    mem_free(rig);
    return 0;
}

static void on_answer(void *context, const struct slurm_answer *answer)
{
    struct slurm_task *task = context;

    task->call = NULL;
    slurm_lane_heard(task->lane, answer);
    slurm_task_end(task, slurm_outcome(answer->error.class), answer->error.text);
}

static void send(struct slurm_task *task)
{
    task->call = slurm_node_update(task->lane->client, task->detail, STR("{}"), on_answer, task);
}

static void finish(void *context, const struct kube_answer *answer)
{
    struct end *end = context;

    assert_false(the_rig->is_starting);
    end->count++;
    end->outcome = answer->outcome;
    end->retry_after_us = answer->retry_after_us;
    strncpy(end->message, answer->message, sizeof(end->message) - 1);
}

static struct slurm_task *start(struct rig *rig)
{
    static const struct action action = { .detail = "n1" };
    struct slurm_task *task;

    rig->is_starting = true;
    task = slurm_task_start(&rig->lane, sizeof(*task), &action, finish, &rig->ends[rig->started++],
                            send);
    rig->is_starting = false;
    return task;
}

static void answers(struct rig *rig, struct fake_answer answer)
{
    fake_answer(rig->fake, "POST", PATH, answer);
}

static void slurm_is_done(struct rig *rig, unsigned times, int64_t delay_us)
{
    answers(rig, (struct fake_answer){
                     .status = 200, .body = DONE, .times = times, .delay_us = delay_us });
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

    slurm_is_done(rig, 1, MS_US);
    start(rig);
    fake_run_for(rig->fake, SECOND_US);
    assert_int_equal(rig->ends[0].count, 1);
    assert_int_equal(rig->ends[0].outcome, KUBE_DONE);
    assert_int_equal(rig->freed, 1);
}

static void a_task_without_a_client_ends_from_the_loop(void **state)
{
    struct rig *rig = *state;

    rig->lane.client = NULL;
    start(rig);
    fake_run_for(rig->fake, MS_US);
    assert_int_equal(rig->ends[0].count, 1);
    assert_int_equal(rig->ends[0].outcome, KUBE_UNAVAILABLE);
}

static void a_lane_that_is_closed_ends_every_task(void **state)
{
    struct rig *rig = *state;

    rig->lane.max_tasks = 2;
    answers(rig, (struct fake_answer){ .status = 0, .times = FAKE_ALWAYS });
    for (int i = 0; i < 4; i++) /* two of them wait for their turn */
        start(rig);
    fake_run_for(rig->fake, MS_US);
    slurm_lane_close(&rig->lane, "another address");
    for (int i = 0; i < 4; i++) {
        assert_int_equal(rig->ends[i].count, 1);
        assert_int_equal(rig->ends[i].outcome, KUBE_UNAVAILABLE);
        assert_string_equal(rig->ends[i].message, "another address");
    }
    fake_run_for(rig->fake, 60 * SECOND_US);
    assert_int_equal(fake_sent_count(rig->fake), 2);
    assert_int_equal(rig->freed, 4);
}

static void a_cancelled_task_tells_nobody(void **state)
{
    struct rig *rig = *state;

    rig->lane.max_tasks = 1;
    slurm_is_done(rig, 2, MS_US);
    slurm_task_free(start(rig));
    start(rig);
    slurm_task_free(start(rig)); /* it waited */
    fake_run_for(rig->fake, SECOND_US);
    assert_int_equal(rig->ends[0].count, 0);
    assert_int_equal(rig->ends[1].count, 1);
    assert_int_equal(rig->ends[2].count, 0);
}

static void no_more_tasks_than_the_limit_are_sent_at_once(void **state)
{
    struct rig *rig = *state;

    rig->lane.max_tasks = 2;
    slurm_is_done(rig, 5, 100 * MS_US);
    for (int i = 0; i < 5; i++)
        start(rig);
    fake_run_for(rig->fake, 50 * MS_US);
    assert_int_equal(fake_sent_count(rig->fake), 2);
    fake_run_for(rig->fake, 100 * MS_US);
    assert_int_equal(fake_sent_count(rig->fake), 4);
    fake_run_for(rig->fake, SECOND_US);
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
    fake_run_for(rig->fake, SECOND_US);
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
    fake_run_for(rig->fake, EXECUTOR_STALE_US + 2 * SECOND_US);
    assert_int_equal(fake_sent_count(rig->fake), 1);
    assert_int_equal(rig->ends[0].outcome, KUBE_DONE);
    assert_int_equal(rig->ends[1].outcome, KUBE_CONFLICT);
}

static void a_429_pauses_the_lane_for_as_long_as_it_says(void **state)
{
    struct rig *rig = *state;

    answers(rig, (struct fake_answer){ .status = 429, .retry_after_us = 3 * SECOND_US });
    start(rig);
    fake_run_for(rig->fake, SECOND_US);
    assert_int_equal(rig->ends[0].outcome, KUBE_UNAVAILABLE); /* proof that nothing was done */
    start(rig);
    fake_run_for(rig->fake, MS_US);
    assert_int_equal(fake_sent_count(rig->fake), 1);
    assert_int_equal(rig->ends[1].outcome, KUBE_UNAVAILABLE);
    assert_in_range(rig->ends[1].retry_after_us, SECOND_US, 3 * SECOND_US);
    fake_run_for(rig->fake, 3 * SECOND_US);
    slurm_is_done(rig, 1, 0);
    start(rig);
    fake_run_for(rig->fake, MS_US);
    assert_int_equal(rig->ends[2].outcome, KUBE_DONE);
}

static void no_pause_is_longer_than_15_s(void **state)
{
    struct rig *rig = *state;

    answers(rig,
            (struct fake_answer){ .status = 429, .retry_after_us = INT64_C(3600) * SECOND_US });
    start(rig);
    fake_run_for(rig->fake, SECOND_US + SLURM_LANE_PAUSE_US);
    slurm_is_done(rig, 1, 0);
    start(rig);
    fake_run_for(rig->fake, MS_US);
    assert_int_equal(rig->ends[1].outcome, KUBE_DONE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
