/* test_client_turns.c - calls that are under way together: long lists that wait for their turn, and
 * calls that carry a token which is refused. */
#include "world.h"

enum { CALLS = 3 };

struct end {
    unsigned ends;
    enum slurm_class class;
    unsigned tries;
};

static void on_end(void *context, const struct slurm_answer *answer)
{
    struct end *end = context;

    end->ends++;
    end->class = answer->error.class;
    end->tries = answer->tries;
}

/* ---- turns ---- */

static struct fake_answer serve_lists(void *context, const struct fake_sent *sent)
{
    (void)context;
    (void)sent;
    return (struct fake_answer){ .status = 200, .body = NODES_BODY, .delay_us = SECOND_US };
}

static void a_list_that_is_cancelled_at_its_turn_passes_it_on(void **state)
{
    struct world *world = *state;
    struct end last = { 0 };

    fake_serve(world->fake, serve_lists, world);
    slurm_nodes_list(world->client, 0, world_done, world);
    world->other = slurm_nodes_list(world->client, 0, world_done, world); /* by the first's end */
    slurm_nodes_list(world->client, 0, on_end, &last);
    fake_run_for(world->fake, 3 * SECOND_US);
    assert_int_equal(world->ends, 1);
    assert_int_equal(last.ends, 1);
    assert_int_equal(last.class, SLURM_DONE);
}

static void lists_that_wait_go_one_after_the_other(void **state)
{
    struct world *world = *state;
    struct end ends[CALLS] = { 0 };

    fake_serve(world->fake, serve_lists, world);
    for (unsigned i = 0; i < CALLS; i++)
        slurm_nodes_list(world->client, 0, on_end, &ends[i]);
    for (unsigned i = 0; i < CALLS; i++) {
        fake_run_for(world->fake, SECOND_US + 1000);
        for (unsigned j = 0; j < CALLS; j++)
            assert_int_equal(ends[j].ends, j <= i ? 1 : 0);
    }
}

/* ---- tokens ---- */

struct guard {
    struct world *world;
    char *refused; /* the token that was good until now */
};

static struct fake_answer serve_guarded(void *context, const struct fake_sent *sent)
{
    static const char body[] = "{\"errors\":[{\"error_number\":1007}]}";
    struct guard *guard = context;
    const char *token = fake_sent_header(sent, "X-SLURM-USER-TOKEN");

    if (!guard->refused)
        guard->refused = mem_strdup(token);
    if (strcmp(token, guard->refused) == 0)
        return (struct fake_answer){ .status = 511, .body = body, .delay_us = 2 * SECOND_US };
    return (struct fake_answer){ .status = 200,
                                 .body = "{\"jobs\":[{\"job_id\":7}],\"errors\":[]}" };
}

static void each_call_with_the_old_token_is_tried_with_the_new_one(void **state)
{
    struct world *world = *state;
    struct guard guard = { .world = world };
    struct end ends[CALLS] = { 0 };

    fake_serve(world->fake, serve_guarded, &guard);
    for (unsigned i = 0; i < CALLS; i++)
        slurm_job_get(world->client, 7 + (int64_t)i, on_end, &ends[i]);
    fake_run_for(world->fake, 10 * SECOND_US);
    for (unsigned i = 0; i < CALLS; i++) {
        assert_int_equal(ends[i].ends, 1);
        assert_int_equal(ends[i].class, SLURM_DONE);
        assert_int_equal(ends[i].tries, 2);
    }
    mem_free(guard.refused);
}

static void a_call_with_the_token_before_is_tried_with_the_one_set_since(void **state)
{
    struct world *world = *state;
    struct guard guard = { .world = world };
    struct slurm_token *old, *next;
    struct end end = { 0 };

    assert_int_equal(slurm_token_new_static(STR("old"), &old, NULL), 0);
    assert_int_equal(slurm_token_new_static(STR("next"), &next, NULL), 0);
    fake_serve(world->fake, serve_guarded, &guard);
    slurm_client_set_token(world->client, old);
    slurm_job_get(world->client, 7, on_end, &end);
    fake_run_for(world->fake, SECOND_US);
    slurm_client_set_token(world->client, next);
    fake_run_for(world->fake, 10 * SECOND_US);
    assert_int_equal(end.ends, 1);
    assert_int_equal(end.class, SLURM_DONE);
    assert_int_equal(end.tries, 2);
    slurm_client_set_token(world->client, world->token);
    slurm_token_free(old);
    slurm_token_free(next);
    mem_free(guard.refused);
}

static struct fake_answer serve_nobody(void *context, const struct fake_sent *sent)
{
    (void)context;
    (void)sent;
    return (struct fake_answer){ .status = 511,
                                 .body = "{\"errors\":[{\"error_number\":1007}]}",
                                 .delay_us = 2 * SECOND_US };
}

static void a_new_token_that_is_refused_too_ends_the_calls(void **state)
{
    struct world *world = *state;
    struct end ends[CALLS] = { 0 };

    fake_serve(world->fake, serve_nobody, world);
    for (unsigned i = 0; i < CALLS; i++)
        slurm_job_get(world->client, 7 + (int64_t)i, on_end, &ends[i]);
    fake_run_for(world->fake, 10 * SECOND_US);
    for (unsigned i = 0; i < CALLS; i++) {
        assert_int_equal(ends[i].ends, 1);
        assert_int_equal(ends[i].class, SLURM_AUTH);
        assert_int_equal(ends[i].tries, 2);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_up, world_down)
    const struct CMUnitTest tests[] = {
        TEST(a_list_that_is_cancelled_at_its_turn_passes_it_on),
        TEST(lists_that_wait_go_one_after_the_other),
        TEST(each_call_with_the_old_token_is_tried_with_the_new_one),
        TEST(a_call_with_the_token_before_is_tried_with_the_one_set_since),
        TEST(a_new_token_that_is_refused_too_ends_the_calls),
    };

    return cmocka_run_group_tests_name("client turns", tests, NULL, NULL);
}
