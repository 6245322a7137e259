/* test_slurm_executor.c - asks: on record before they are sent, and every answer is written down
 * where plans look. */
#include "slurm_executor_submit_rig.h"

#include "slurm/submit.h"

/* A node that is free. */
static void see_node(struct rig *rig, int cpus)
{
    char text[200];

    snprintf(text, sizeof(text),
             "{\"name\":\"n1\",\"cpus\":%d,\"real_memory\":9,\"state\":[\"IDLE\"],"
             "\"partitions\":\"p\"}",
             cpus);
    rig_see(rig, rig->nodes, text);
}

/* ---- submitted ---- */

static void an_ask_is_on_record_before_it_is_sent(void **state)
{
    struct rig *rig = *state;
    const struct end *end = ask(rig, false);

    assert_int_equal(fake_sent_count(rig->fake), 0);
    submit_is_done(rig, SECOND_US);
    rig_run(rig, MS_US);
    assert_int_equal(rig_sent(rig, "POST", "/job/submit"), 1);
    assert_int_equal(remembered(rig)->state, SUBMIT_SENT);
    assert_int_equal(remembered(rig)->attempt, 1);
    assert_true(remembered(rig)->hash == job_desc_hash(&rig->job));
    assert_int_equal(unit_states_in(rig->unit_states, SUBMIT_SENT), 1);
    assert_false(end->is_over);
    rig_run(rig, 2 * SECOND_US);
    assert_true(end->is_over);
    assert_int_equal(end->outcome, KUBE_DONE);
    assert_int_equal(remembered(rig)->state, SUBMIT_NONE);
}

static void a_submitted_job_is_in_the_cache_at_once(void **state)
{
    struct rig *rig = *state;
    const struct slurm_job *job;

    submit_is_done(rig, 0);
    ask_and_run(rig, false);
    job = rig_shown(rig, "7");
    assert_non_null(job);
    assert_true(slurm_words_has(&job->state, SLURM_JOB_PENDING));
    assert_string_equal(job->sluid, "s");
    assert_string_equal(job->partition, "p");
    assert_string_equal(job->name, "job");
    assert_true(job->submit_time >= 1700000000);
    assert_true(slurm_submit_is_for(job, &rig_owner, STR("ns/uid.1")));
    assert_string_equal(job->extra, "ns/uid.1 c r");
    assert_non_null(strstr(job->admin_comment, "ns/pod"));
    assert_int_equal(capacity_waiting(rig->capacity, "p"), 1);
    assert_int_equal(rig_sent(rig, "GET", "/job/"), 0);
    assert_string_equal(buf_text(&rig->woken), "unit ns/uid;");
    assert_true(rig_count(rig, "slinc_bridge_asks_total", "submit", "submitted") == 1);
}

static bool job_fits(const struct rig *rig)
{
    struct capacity_need need;

    return job_desc_need(&rig->job, &need) && capacity_fits(rig->capacity, &need);
}

static void an_immediate_job_is_read_for_its_nodes(void **state)
{
    struct rig *rig = *state;

    see_node(rig, 1);
    rig->job.cpus_per_task = 1;
    rig_answers(rig, "POST", "/job/allocate", 200, DONE_BODY);
    fake_answer(rig->fake, "GET", V45 "/job/7",
                (struct fake_answer){
                    .status = 200,
                    .delay_us = SECOND_US,
                    .body =
                        "{\"jobs\":[{\"job_id\":7,\"job_state\":[\"RUNNING\"]"
                        ",\"nodes\":\"n1\",\"cpus\":1,\"partition\":\"p\","
                        "\"flags\":[\"EXTERNAL_JOB\"],\"extra\":\"ns/uid.1 c\"}],\"errors\":[]}" });
    rig_run(rig, MS_US);
    assert_true(job_fits(rig));
    ask_and_run(rig, true);
    assert_non_null(strstr(rig_last(rig, "POST")->body, "\"immediate\":true"));
    assert_true(slurm_words_has(&rig_shown(rig, "7")->state, SLURM_JOB_PENDING));
    assert_int_equal(capacity_waiting(rig->capacity, "p"), 0); /* nobody waits behind it */
    assert_false(job_fits(rig));                               /* promised, until it is seen */
    rig_run(rig, 2 * SECOND_US);
    assert_string_equal(rig_shown(rig, "7")->nodes, "n1");
    assert_false(job_fits(rig));
}

static void a_poll_that_was_faster_is_not_undone(void **state)
{
    struct rig *rig = *state;

    submit_is_done(rig, MS_US);
    rig_reads_job(rig, 7, "RUNNING", "ns/uid.1");
    ask(rig, false);
    rig_run(rig, MS_US / 2);
    rig_job(rig, 7, "s", "RUNNING", "ns/uid.1"); /* seen while the answer travels */
    rig_run(rig, MS_US);
    assert_true(slurm_words_has(&rig_shown(rig, "7")->state, SLURM_JOB_RUNNING));
    assert_false(slurm_poller_is_suspicious(rig->poller));
}

static void an_id_that_another_job_has_is_a_reason_to_doubt(void **state)
{
    struct rig *rig = *state;

    rig_job(rig, 7, "s1", "RUNNING", "ns/someone.1");
    submit_is_done(rig, 0);
    rig_reads_job(rig, 7, "RUNNING", "ns/someone.1");
    ask_and_run(rig, false);
    assert_true(slurm_poller_is_suspicious(rig->poller));
    assert_string_equal(rig_shown(rig, "7")->extra, "ns/someone.1");
}

/* ---- refused ---- */

static void ask_refused(struct rig *rig, bool at_once, int number)
{
    char text[200];

    rig_answers(rig, "POST", at_once ? "/job/allocate" : "/job/submit", 422,
                rig_refusal(number, text));
    ask_and_run(rig, at_once);
}

static void a_refused_immediate_ask_queues_and_closes_the_partition_for_a_growing_pause(
    void **state)
{
    struct rig *rig = *state;
    static const int pauses_s[] = { 1, 2, 4, 8, 16, 32, 60, 60 };

    see_node(rig, 8);
    rig_run(rig, MS_US);
    for (size_t i = 0; i < sizeof(pauses_s) / sizeof(pauses_s[0]); i++) {
        assert_true(job_fits(rig));
        ask_refused(rig, true, 2016);
        assert_int_equal(remembered(rig)->state, SUBMIT_NONE);
        assert_true(unit_of(rig)->queues);
        assert_false(job_fits(rig));
        rig_run(rig, pauses_s[i] * (int64_t)SECOND_US - 2 * MS_US);
        assert_false(job_fits(rig));
        rig_run(rig, 2 * MS_US);
    }
    assert_true(job_fits(rig));
    assert_true(rig_count(rig, "slinc_bridge_asks_total", "allocate", "busy") == 8);

    rig_answers(rig, "POST", "/job/allocate", 200, DONE_BODY); /* a success resets it */
    rig_reads_job(rig, 7, "COMPLETED", "ns/uid.1");
    ask_and_run(rig, true);
    ask_refused(rig, true, 2016);
    assert_false(job_fits(rig));
    rig_run(rig, SECOND_US);
    assert_true(job_fits(rig));
}

static void no_place_for_more_jobs_pauses_everybody(void **state)
{
    struct rig *rig = *state;
    static const int pauses_s[] = { 1, 2, 4, 8, 15, 15 };
    const char *why;

    assert_int_equal(slurm_executor_pause_us(rig->executor, &why), 0);
    assert_string_equal(why, "");
    for (size_t i = 0; i < sizeof(pauses_s) / sizeof(pauses_s[0]); i++) {
        int64_t until_us;

        ask_refused(rig, false, 2007);
        assert_int_equal(remembered(rig)->state, SUBMIT_NONE);
        until_us = slurm_executor_pause_us(rig->executor, &why);
        assert_true(until_us > loop_now_us(rig->loop));
        assert_true(until_us - loop_now_us(rig->loop) <= pauses_s[i] * (int64_t)SECOND_US);
        assert_true(until_us - loop_now_us(rig->loop) >
                    pauses_s[i] * (int64_t)SECOND_US - 2 * MS_US);
        assert_non_null(strstr(why, "words of 2007"));
        ask_refused(rig, true, 2007); /* side by side: it does not grow twice */
        assert_true(slurm_executor_pause_us(rig->executor, &why) == until_us);
        assert_false(unit_of(rig)->queues);
        rig_run(rig, 15 * SECOND_US);
        assert_int_equal(slurm_executor_pause_us(rig->executor, &why), 0);
    }
}

static void a_token_that_is_refused_pauses_everybody_and_then_one_tries_for_all(void **state)
{
    struct rig *rig = *state;
    const char *why;
    char key[16];

    fake_answer(
        rig->fake, "POST", V45 "/job/submit",
        (struct fake_answer){ .status = 401, .body = "{}", .delay_us = MS_US, .times = 20 });
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof(key), "ns/u%d", i);
        ask_as(rig, key, false);
    }
    rig_run(rig, 100 * MS_US);
    assert_int_equal(rig_sent(rig, "POST", "/job/submit"), 16); /* eight, each with a new token */
    assert_true(slurm_executor_denied_us(rig->executor) > 0);
    assert_true(slurm_executor_pause_us(rig->executor, &why) > loop_now_us(rig->loop));
    for (int i = 0; i < 20; i++)
        assert_true(rig->ends[i].is_over &&
                    rig->ends[i].outcome == (i < 8 ? KUBE_DONE : KUBE_CONFLICT));

    rig_run(rig, SECOND_US);
    assert_int_equal(slurm_executor_pause_us(rig->executor, &why), 0);
    for (int i = 20; i < 40; i++) {
        snprintf(key, sizeof(key), "ns/u%d", i);
        ask_as(rig, key, false);
    }
    rig_run(rig, 100 * MS_US);
    assert_int_equal(rig_sent(rig, "POST", "/job/submit"), 18);

    slurm_executor_forget_denial(rig->executor); /* Slurm could be read again */
    assert_int_equal(slurm_executor_denied_us(rig->executor), 0);
    assert_int_equal(slurm_executor_pause_us(rig->executor, &why), 0);
}

static void a_submit_that_is_taken_ends_the_denial(void **state)
{
    struct rig *rig = *state;
    const char *why;

    for (int i = 0; i < 2; i++)
        rig_answers(rig, "POST", "/job/submit", 401, "{}");
    ask_and_run(rig, false);
    assert_true(slurm_executor_denied_us(rig->executor) > 0);
    rig_run(rig, SECOND_US);
    submit_is_done(rig, 0);
    ask_and_run(rig, false);
    assert_int_equal(slurm_executor_denied_us(rig->executor), 0);
    assert_int_equal(slurm_executor_pause_us(rig->executor, &why), 0);
}

static void refusals_are_kept_or_passed_on_by_what_they_are_about(void **state)
{
    static const struct {
        int status, number;
        bool at_once;
        enum submit_state state;
        enum kube_outcome outcome;
        int again_s;
    } cases[] = {
        { 422, 2014, false, SUBMIT_REFUSED, KUBE_DONE, 600 },   /* no nodes of that shape */
        { 422, 2014, true, SUBMIT_NONE, KUBE_DONE, 0 },         /* the queue has the last word */
        { 422, 2000, false, SUBMIT_REFUSED, KUBE_DONE, 600 },   /* no such partition */
        { 422, 2003, false, SUBMIT_REFUSED, KUBE_DONE, 600 },   /* not for this group */
        { 422, 2101, false, SUBMIT_REFUSED, KUBE_DONE, 15 },    /* the partition is down */
        { 422, 2018, false, SUBMIT_NONE, KUBE_UNAVAILABLE, 0 }, /* unknown node */
        { 500, 2010, false, SUBMIT_REFUSED, KUBE_DONE, 15 },    /* not this user */
        { 500, 2010, true, SUBMIT_REFUSED, KUBE_DONE, 15 },
        { 403, 2002, false, SUBMIT_REFUSED, KUBE_DONE, 15 },    /* access denied */
        { 401, 0, false, SUBMIT_NONE, KUBE_DONE, 0 },           /* no token: all wait */
        { 500, 2027, false, SUBMIT_NONE, KUBE_UNAVAILABLE, 0 }, /* standby */
        { 422, 2016, false, SUBMIT_UNRESOLVED, KUBE_DONE, 0 },  /* no row says what it means */
        { 502, 1800, false, SUBMIT_UNRESOLVED, KUBE_DONE, 0 },
        { 504, 5004, true, SUBMIT_UNRESOLVED, KUBE_DONE, 0 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct submit_record *memory;
        const struct end *end;
        struct rig *rig = rig_fresh(state);
        char text[200];

        for (int k = 0; k < 2; k++) /* a refused token is tried twice */
            rig_answers(rig, "POST", cases[i].at_once ? "/job/allocate" : "/job/submit",
                        cases[i].status, rig_refusal(cases[i].number, text));
        end = ask_and_run(rig, cases[i].at_once);
        memory = remembered(rig);
        assert_true(end->is_over);
        if (memory->state != cases[i].state || end->outcome != cases[i].outcome)
            fail_msg("case %zu: %s, %s", i, submit_state_name(memory->state),
                     kube_outcome_name(end->outcome));
        assert_string_not_equal(memory->text, "");
        assert_int_equal(memory->number, cases[i].number);
        if (cases[i].state == SUBMIT_REFUSED) {
            int64_t left_us = memory->again_us - loop_now_us(rig->loop);

            assert_true(left_us <= cases[i].again_s * (int64_t)SECOND_US &&
                        left_us > (cases[i].again_s - 1) * (int64_t)SECOND_US);
            assert_true(memory->site == capacity_generation(rig->capacity));
            assert_int_equal(memory->class == SLURM_DONE, 0);
        }
        assert_string_equal(buf_text(&rig->woken), "unit ns/uid;");
    }
}

/* Slurm refuses what no node can ever meet, though it is only preferred. */
static void a_refused_preference_is_given_up(void **state)
{
    struct rig *rig = *state;

    rig->job.prefer = "west";
    ask_refused(rig, false, 2014);
    assert_non_null(strstr(rig_last(rig, "POST")->body, "\"prefer\":\"west\""));
    assert_int_equal(remembered(rig)->state, SUBMIT_NONE); /* so it is asked for again */
    assert_true(rig_count(rig, "slinc_bridge_asks_total", "submit", "preference") == 1);

    ask_refused(rig, false, 2014);
    assert_null(strstr(rig_last(rig, "POST")->body, "prefer"));
    assert_int_equal(remembered(rig)->state, SUBMIT_REFUSED); /* for another reason, then */
    assert_true(remembered(rig)->hash == job_desc_hash(&rig->job));

    submit_is_done(rig, 0);
    ask_and_run(rig, false);
    assert_null(strstr(rig_last(rig, "POST")->body, "prefer"));
    assert_string_equal(rig_shown(rig, "7")->extra, "ns/uid.1 c r");
    assert_false(unit_of(rig)->prefers_nothing);
}

static void what_cannot_be_asked_at_all_is_refused_without_sending(void **state)
{
    struct rig *rig = *state;
    const struct end *end = ask_as(rig, "a key", false);

    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_DONE);
    assert_int_equal(unit_states_get(rig->unit_states, STR("a key"))->submit.state, SUBMIT_REFUSED);
    assert_int_equal(fake_sent_count(rig->fake), 0);
}

static void what_was_not_sent_for_certain_backs_off(void **state)
{
    struct rig *rig = *state;
    const struct end *end;

    fake_answer(rig->fake, "POST", V45 "/job/submit",
                (struct fake_answer){ .class = ERR_UNAVAILABLE });
    end = ask_and_run(rig, false);
    assert_int_equal(end->outcome, KUBE_UNAVAILABLE);
    assert_int_equal(remembered(rig)->state, SUBMIT_NONE);
    assert_true(rig_count(rig, "slinc_bridge_asks_total", "submit", "unsent") == 1);
}

/* ---- nodes ---- */

static void a_call_about_nodes_is_counted_and_what_is_refused_is_remembered(void **state)
{
    struct rig *rig = *state;
    char text[200];

    rig_answers(rig, "POST", "/nodes/", 500, rig_refusal(2010, text));
    for (int i = 0; i < 2; i++) {
        rig_answers(rig, "GET", i == 0 ? "/node/n1" : "/node/n2", 200,
                    i == 0 ? "{\"nodes\":[{\"name\":\"n1\"}],\"errors\":[]}"
                           : "{\"nodes\":[{\"name\":\"n2\"}],\"errors\":[]}");
        rig_do(rig, plan_slurm_update_node(&rig->plan, i == 0 ? "n1" : "n2",
                                           json_new_object(rig->build)));
    }
    rig_run(rig, SECOND_US);
    assert_true(rig_count(rig, "slinc_bridge_node_calls_total", "update", "forbidden") == 1);
    assert_string_equal(buf_text(&rig->woken), "node n1;node n2;");
    assert_true(node_refusals_have(rig->node_refusals, STR("n2")));
}

/* Each would leave a FAILED record in the accounting. */
static void immediate_tries_that_fit_no_more_are_not_sent(void **state)
{
    struct rig *rig = *state;
    const struct end *first, *second;

    see_node(rig, 1);
    fake_answer(rig->fake, "POST", V45 "/job/allocate",
                (struct fake_answer){ .status = 200, .body = DONE_BODY, .delay_us = SECOND_US });
    first = ask_as(rig, "ns/a", true);
    second = ask_as(rig, "ns/b", true);
    rig_run(rig, MS_US);
    assert_int_equal(rig_sent(rig, "POST", "/job/allocate"), 1);
    assert_false(first->is_over);
    assert_true(second->is_over);
    assert_int_equal(second->outcome, KUBE_CONFLICT);
    assert_non_null(strstr(second->message, "fits nowhere at once"));
    rig_answers(rig, "GET", "/job/7", 404, "{\"errors\":[{\"error_number\":2017}]}");
    rig_answers(rig, "GET", "/resources/7", 404, "{\"errors\":[{\"error_number\":2017}]}");
    rig_run(rig, 2 * SECOND_US);
    assert_int_equal(first->outcome, KUBE_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_ask_is_on_record_before_it_is_sent),
        TEST(a_submitted_job_is_in_the_cache_at_once),
        TEST(immediate_tries_that_fit_no_more_are_not_sent),
        TEST(an_immediate_job_is_read_for_its_nodes),
        TEST(a_poll_that_was_faster_is_not_undone),
        TEST(an_id_that_another_job_has_is_a_reason_to_doubt),
        TEST(a_refused_immediate_ask_queues_and_closes_the_partition_for_a_growing_pause),
        TEST(no_place_for_more_jobs_pauses_everybody),
        TEST(a_token_that_is_refused_pauses_everybody_and_then_one_tries_for_all),
        TEST(a_submit_that_is_taken_ends_the_denial),
        TEST(refusals_are_kept_or_passed_on_by_what_they_are_about),
        TEST(a_refused_preference_is_given_up),
        TEST(what_cannot_be_asked_at_all_is_refused_without_sending),
        TEST(what_was_not_sent_for_certain_backs_off),
        TEST(a_call_about_nodes_is_counted_and_what_is_refused_is_remembered),
    };

    return cmocka_run_group_tests_name("bridge act", tests, NULL, NULL);
}
