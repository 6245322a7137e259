/* test_slurm_executor_unresolved.c - asks are made at most once: one whose answer is not known
 * stays open until a later list settles it; and few at a time, in a steady pace. */
#include "slurm_executor_submit_rig.h"

/* It may have happened, or not. */
static void submit_gets_lost(struct rig *rig, int64_t delay_us)
{
    fake_answer(rig->fake, "POST", V45 "/job/submit",
                (struct fake_answer){ .class = ERR_UNKNOWN, .delay_us = delay_us });
}

/* For the unit "ns/u<number>". */
static struct end *ask_numbered(struct rig *rig, unsigned number)
{
    char key[32];

    snprintf(key, sizeof(key), "ns/u%u", number);
    return ask_as(rig, key, false);
}

/* ---- an answer that is not known ---- */

static void bad_answers_leave_an_ask_unresolved(void **state)
{
    static const struct fake_answer bad[] = {
        { .status = 200, .body = "{\"job_id\":0,\"errors\":[]}" },
        { .status = 200, .body = "{\"job_id\":7,\"errors\":[{\"error_number\":1}]}" },
        { .status = 200, .body = "{\"job_id\":7" },
        { .status = 200, .body = "fine", .content_type = "text/plain" },
        { .status = 500, .body = "" },
        { .class = ERR_UNKNOWN },
        { .status = 0 }, /* silence */
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct end *end;
        struct rig *rig = rig_fresh(state);

        fake_answer(rig->fake, "POST", V45 "/job/submit", bad[i]);
        end = ask(rig, false);
        rig_run(rig, 13 * SECOND_US);
        assert_true(end->is_over);
        assert_int_equal(end->outcome, KUBE_DONE);
        assert_int_equal(remembered(rig)->state, SUBMIT_UNRESOLVED);
        assert_true(remembered(rig)->settles_us > loop_now_us(rig->loop));
        assert_null(rig_shown(rig, "7"));
    }
}

static void an_unresolved_ask_is_settled_by_a_list_that_began_later(void **state)
{
    struct rig *rig = *state;
    int64_t settles_us;

    submit_gets_lost(rig, 0);
    ask_and_run(rig, false);
    settles_us = remembered(rig)->settles_us;
    assert_true(settles_us > loop_now_us(rig->loop));
    rig_sync(rig, rig->jobs); /* too early */
    rig_run(rig, settles_us - loop_now_us(rig->loop) - MS_US);
    assert_int_equal(remembered(rig)->state, SUBMIT_UNRESOLVED);
    assert_false(slurm_poller_is_suspicious(rig->poller));
    rig_run(rig, 2 * MS_US);
    assert_true(slurm_poller_is_suspicious(rig->poller)); /* a whole list is asked for, once */
    rig_run(rig, 5 * SECOND_US);
    assert_int_equal(slurm_poller_suspicions(rig->poller), 1);
    assert_int_equal(remembered(rig)->state, SUBMIT_UNRESOLVED);
    buf_clear(&rig->woken);
    rig_sync(rig, rig->jobs);
    rig_run(rig, SECOND_US);
    assert_int_equal(remembered(rig)->state, SUBMIT_NONE);
    assert_string_equal(buf_text(&rig->woken), "unit ns/uid;");
    assert_int_equal(unit_states_in(rig->unit_states, SUBMIT_UNRESOLVED), 0);
}

static void many_unresolved_asks_are_all_settled(void **state)
{
    struct rig *rig = *state;

    for (unsigned i = 0; i < 200; i++) {
        submit_gets_lost(rig, 0);
        ask_numbered(rig, i);
        rig_run(rig, 10 * MS_US);
    }
    assert_int_equal(unit_states_in(rig->unit_states, SUBMIT_UNRESOLVED), 200);
    rig_run(rig, 100 * SECOND_US);
    rig_sync(rig, rig->jobs);
    rig_run(rig, SECOND_US);
    assert_int_equal(unit_states_in(rig->unit_states, SUBMIT_UNRESOLVED), 0);
}

static void a_submit_to_which_the_guard_objects_is_not_sent(void **state)
{
    struct rig *rig = *state;
    const struct end *end;

    rig->objection = "Slurm is being asked";
    end = ask_and_run(rig, false);
    assert_int_equal(end->outcome, KUBE_CONFLICT);
    assert_string_equal(end->message, "not sent: Slurm is being asked");
    assert_int_equal(fake_sent_count(rig->fake), 0);
    assert_null(unit_states_get(rig->unit_states, STR("ns/uid")));
}

static void a_cancelled_ask_stays_unresolved(void **state)
{
    struct rig *rig = *state;
    const struct end *end;

    submit_is_done(rig, SECOND_US);
    end = ask(rig, false);
    rig_cancel(rig, end); /* before it is sent: nothing happened */
    rig_run(rig, MS_US);
    assert_null(unit_states_get(rig->unit_states, STR("ns/uid")));
    end = ask_and_run(rig, false);
    rig_cancel(rig, end);
    assert_int_equal(remembered(rig)->state, SUBMIT_UNRESOLVED);
    assert_true(remembered(rig)->settles_us > loop_now_us(rig->loop));
    rig_run(rig, 2 * SECOND_US);
    assert_false(end->is_over);
}

/* ---- an error that is no clear refusal ---- */

static struct fake_answer serve_lists(void *context, const struct fake_sent *sent)
{
    bool is_list = strstr(sent->path, "/jobs/?") != NULL;

    (void)context;
    return (struct fake_answer){ .status = 200,
                                 .ends = true,
                                 .delay_us = is_list ? SECOND_US : MS_US,
                                 .body = "{\"jobs\":[],\"nodes\":[],\"partitions\":[],"
                                         "\"reservations\":[],\"slurm_conf\":{},\"errors\":[],"
                                         "\"last_update\":{\"set\":true,\"number\":9}}" };
}

/* As by a plugin of the site that has its own numbers. */
static void submit_gets_error(struct rig *rig, const char *path)
{
    char text[200];

    rig_answers(rig, "POST", path, 500, rig_refusal(2999, text));
}

/* Until a second after the fence of the last ask. */
static void pass_fence(struct rig *rig)
{
    assert_int_equal(remembered(rig)->state, SUBMIT_UNRESOLVED);
    rig_run(rig, remembered(rig)->settles_us - loop_now_us(rig->loop) + SECOND_US);
}

static void an_error_without_a_job_is_a_refusal_for_which_nobody_else_waits(void **state)
{
    struct rig *rig = *state;

    fake_serve(rig->fake, serve_lists, rig);
    slurm_poller_start(rig->poller);
    rig_run(rig, 5 * SECOND_US);
    submit_gets_error(rig, "/job/submit");
    ask_and_run(rig, false);
    fake_forget_sent(rig->fake);
    pass_fence(rig);
    submit_is_done(rig, 5 * SECOND_US); /* while the list is on its way */
    ask_numbered(rig, 2);
    rig_run(rig, MS_US);
    assert_int_equal(rig_sent(rig, "POST", "/job/submit"), 1);
    rig_run(rig, 2 * SECOND_US);
    assert_int_equal(rig_sent(rig, "GET", "/jobs/?"), 1);
    assert_int_equal(slurm_poller_suspicions(rig->poller), 0);
    assert_int_equal(remembered(rig)->state, SUBMIT_REFUSED);
    assert_non_null(strstr(remembered(rig)->text, "words of 2999"));
    assert_true(remembered(rig)->again_us - loop_now_us(rig->loop) > 590 * (int64_t)SECOND_US);
}

static void an_error_with_a_job_is_none(void **state)
{
    struct rig *rig = *state;

    submit_gets_error(rig, "/job/submit");
    ask_and_run(rig, false);
    pass_fence(rig);
    rig_job(rig, 7, "s7", "PENDING", "ns/uid.1");
    rig_sync(rig, rig->jobs);
    rig_run(rig, SECOND_US);
    assert_int_equal(remembered(rig)->state, SUBMIT_NONE);
}

static void what_gets_an_error_at_once_is_queued_next(void **state)
{
    struct rig *rig = *state;

    submit_gets_error(rig, "/job/allocate");
    ask_and_run(rig, true);
    pass_fence(rig);
    rig_sync(rig, rig->jobs);
    rig_run(rig, SECOND_US);
    assert_int_equal(remembered(rig)->state, SUBMIT_NONE);
    assert_true(unit_of(rig)->queues);
}

/* The answer to the one before says nothing about it. */
static void a_cancelled_ask_after_an_error_is_no_refusal(void **state)
{
    struct rig *rig = *state;

    submit_gets_error(rig, "/job/allocate");
    ask_and_run(rig, true);
    pass_fence(rig);
    rig_sync(rig, rig->jobs);
    rig_run(rig, SECOND_US);
    submit_is_done(rig, SECOND_US);
    rig_cancel(rig, ask_and_run(rig, false));
    pass_fence(rig);
    rig_sync(rig, rig->jobs);
    rig_run(rig, SECOND_US);
    assert_int_equal(remembered(rig)->state, SUBMIT_NONE);
}

/* ---- few at a time ---- */

/* More at once would only stand before the reads on the way to slurmrestd. */
static void eight_asks_are_in_flight_at_most(void **state)
{
    struct rig *rig = *state;
    const struct end *ends[20];
    char body[64];

    for (unsigned i = 0; i < 20; i++) {
        snprintf(body, sizeof(body), "{\"job_id\":%u,\"errors\":[]}", 100 + i);
        fake_answer(rig->fake, "POST", V45 "/job/submit",
                    (struct fake_answer){ .status = 200, .body = body, .delay_us = SECOND_US });
        ends[i] = ask_numbered(rig, i);
    }
    rig_run(rig, SECOND_US / 2);
    assert_int_equal(rig_sent(rig, "POST", "/job/submit"), 8);
    rig_cancel(rig, ends[0]);
    rig_cancel(rig, ends[19]); /* waits for its turn */
    rig_run(rig, MS_US);
    assert_int_equal(rig_sent(rig, "POST", "/job/submit"), 9);
    rig_run(rig, 4 * SECOND_US);
    assert_int_equal(rig_sent(rig, "POST", "/job/submit"), 19);
    for (int i = 1; i < 19; i++)
        assert_true(ends[i]->is_over);
}

static void asks_are_spaced_and_those_too_far_behind_come_back_later(void **state)
{
    struct rig *rig = *state;
    const struct end *ends[60];
    size_t sent = 0, back = 0;

    rig_actor(rig, 20);
    fake_answer(rig->fake, "POST", V45 "/job/submit",
                (struct fake_answer){ .status = 500, .body = "", .times = FAKE_ALWAYS });
    for (unsigned i = 0; i < 60; i++)
        ends[i] = ask_numbered(rig, i);
    rig_run(rig, MS_US);
    for (size_t i = 0; i < 60; i++) {
        back += ends[i]->outcome == KUBE_UNAVAILABLE && ends[i]->is_over;
        assert_true(ends[i]->outcome != KUBE_UNAVAILABLE || ends[i]->retry_after_us > SECOND_US);
    }
    assert_true(rig_sent(rig, "POST", "/job/") <= 4); /* a tenth of a second's worth, and one */
    rig_run(rig, 2 * SECOND_US);
    sent = rig_sent(rig, "POST", "/job/");
    assert_true(sent >= 20 && sent <= 25);
    assert_int_equal(sent + back, 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bad_answers_leave_an_ask_unresolved),
        TEST(an_unresolved_ask_is_settled_by_a_list_that_began_later),
        TEST(many_unresolved_asks_are_all_settled),
        TEST(a_submit_to_which_the_guard_objects_is_not_sent),
        TEST(a_cancelled_ask_stays_unresolved),
        TEST(an_error_without_a_job_is_a_refusal_for_which_nobody_else_waits),
        TEST(an_error_with_a_job_is_none),
        TEST(what_gets_an_error_at_once_is_queued_next),
        TEST(a_cancelled_ask_after_an_error_is_no_refusal),
        TEST(eight_asks_are_in_flight_at_most),
        TEST(asks_are_spaced_and_those_too_far_behind_come_back_later),
    };

    return cmocka_run_group_tests_name("bridge act_unresolved", tests, NULL, NULL);
}
