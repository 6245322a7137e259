/* test_act.c - asks and cancels: at most once, on record before they are sent, and every answer is
 * written down where plans look. */
#include "act_rig.h"

#include "slurm/submit.h"

#define DONE_BODY "{\"job_id\":7,\"step_id\":{\"sluid\":\"s\"},\"errors\":[],\"warnings\":[]}"

static struct end *ask_as(struct rig *rig, const char *key, bool at_once)
{
    static const struct str pods[] = { { "ns/pod", 6 } };

    return rig_do(rig, plan_slurm_ask(&rig->plan, &(struct act_ask){ .key = str_of(key),
                                                                     .attempt = 1,
                                                                     .job = &rig->job,
                                                                     .pods = pods,
                                                                     .pod_count = 1,
                                                                     .at_once = at_once }));
}

static struct end *ask(struct rig *rig, bool at_once)
{
    return ask_as(rig, "ns/uid", at_once);
}

static const struct ask_memory *remembered(const struct rig *rig)
{
    const struct unit_memory *unit = memory_get(rig->memory, STR("ns/uid"));

    assert_non_null(unit);
    return &unit->ask;
}

/* ---- submitted ---- */

static void an_ask_is_on_record_before_it_is_sent(void **state)
{
    struct rig *rig = *state;
    const struct end *end = ask(rig, false);

    assert_int_equal(fake_sent_count(rig->fake), 0);
    fake_answer(rig->fake, "POST", V45 "/job/submit",
                (struct fake_answer){ .status = 200, .body = DONE_BODY, .delay_us = SECOND_US });
    rig_run(rig, MS_US);
    assert_int_equal(rig_sent(rig, "POST", "/job/submit"), 1);
    assert_int_equal(remembered(rig)->state, ASK_SENT);
    assert_int_equal(remembered(rig)->attempt, 1);
    assert_true(remembered(rig)->hash == job_ask_hash(&rig->job));
    assert_int_equal(memory_in(rig->memory, ASK_SENT), 1);
    assert_false(end->is_over);
    rig_run(rig, 2 * SECOND_US);
    assert_true(end->is_over);
    assert_int_equal(end->outcome, KUBE_DONE);
    assert_int_equal(remembered(rig)->state, ASK_NONE);
}

static void a_submitted_job_is_in_the_cache_at_once(void **state)
{
    struct rig *rig = *state;
    const struct slurm_job *job;

    rig_answers(rig, "POST", "/job/submit", 200, DONE_BODY);
    ask(rig, false);
    rig_run(rig, MS_US);
    job = rig_shown(rig, "7");
    assert_non_null(job);
    assert_true(slurm_words_has(&job->state, SLURM_JOB_PENDING));
    assert_string_equal(job->sluid, "s");
    assert_string_equal(job->partition, "p");
    assert_string_equal(job->name, "job");
    assert_true(job->submit_time >= 1700000000);
    assert_true(slurm_submit_is_for(job, STR("c"), STR("ns/uid.1")));
    assert_string_equal(job->extra, "ns/uid.1 c");
    assert_non_null(strstr(job->admin_comment, "ns/pod"));
    assert_int_equal(room_waiting(rig->room, "p"), 1);
    assert_int_equal(rig_sent(rig, "GET", "/job/"), 0);
    assert_string_equal(buf_text(&rig->woken), "unit ns/uid;");
    assert_true(rig_count(rig, "slinc_bridge_asks_total", "submit", "submitted") == 1);
}

static void an_immediate_job_is_read_for_its_nodes(void **state)
{
    struct rig *rig = *state;

    rig_see(rig, rig->nodes,
            "{\"name\":\"n1\",\"cpus\":1,\"real_memory\":9,\"state\":[\"IDLE\"],\"partitions\":"
            "\"p\"}");
    rig->job.cpus_per_task = 1;
    rig_answers(rig, "POST", "/job/allocate", 200, DONE_BODY);
    fake_answer(rig->fake, "GET", V45 "/job/7",
                (struct fake_answer){ .status = 200,
                                      .delay_us = SECOND_US,
                                      .body = "{\"jobs\":[{\"job_id\":7,\"job_state\":[\"RUNNING\"]"
                                              ",\"nodes\":\"n1\",\"cpus\":1,\"partition\":\"p\","
                                              "\"extra\":\"ns/uid.1\"}],\"errors\":[]}" });
    rig_run(rig, MS_US);
    assert_true(room_fits(rig->room, &rig->job));
    ask(rig, true);
    rig_run(rig, MS_US);
    assert_non_null(strstr(rig_last(rig, "POST")->body, "\"immediate\":true"));
    assert_true(slurm_words_has(&rig_shown(rig, "7")->state, SLURM_JOB_PENDING));
    assert_int_equal(room_waiting(rig->room, "p"), 0); /* nobody waits behind it */
    assert_false(room_fits(rig->room, &rig->job));     /* promised, until it is seen */
    rig_run(rig, 2 * SECOND_US);
    assert_string_equal(rig_shown(rig, "7")->nodes, "n1");
    assert_false(room_fits(rig->room, &rig->job));
}

static void a_poll_that_was_faster_is_not_undone(void **state)
{
    struct rig *rig = *state;

    fake_answer(rig->fake, "POST", V45 "/job/submit",
                (struct fake_answer){ .status = 200, .body = DONE_BODY, .delay_us = MS_US });
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
    rig_answers(rig, "POST", "/job/submit", 200, DONE_BODY);
    rig_reads_job(rig, 7, "RUNNING", "ns/someone.1");
    ask(rig, false);
    rig_run(rig, MS_US);
    assert_true(slurm_poller_is_suspicious(rig->poller));
    assert_string_equal(rig_shown(rig, "7")->extra, "ns/someone.1");
}

/* ---- refused ---- */

static void a_refused_immediate_ask_queues_and_closes_the_partition_for_a_growing_pause(
    void **state)
{
    struct rig *rig = *state;
    char text[200];
    static const int pauses_s[] = { 1, 2, 4, 8, 16, 32, 60, 60 };

    rig_see(rig, rig->nodes,
            "{\"name\":\"n1\",\"cpus\":8,\"real_memory\":9,\"state\":[\"IDLE\"],\"partitions\":"
            "\"p\"}");
    rig_run(rig, MS_US);
    for (size_t i = 0; i < sizeof(pauses_s) / sizeof(pauses_s[0]); i++) {
        assert_true(room_fits(rig->room, &rig->job));
        rig_answers(rig, "POST", "/job/allocate", 422, rig_refusal(2016, text));
        ask(rig, true);
        rig_run(rig, MS_US);
        assert_int_equal(remembered(rig)->state, ASK_NONE);
        assert_true(memory_get(rig->memory, STR("ns/uid"))->queues);
        assert_false(room_fits(rig->room, &rig->job));
        rig_run(rig, pauses_s[i] * (int64_t)SECOND_US - 2 * MS_US);
        assert_false(room_fits(rig->room, &rig->job));
        rig_run(rig, 2 * MS_US);
    }
    assert_true(room_fits(rig->room, &rig->job));
    assert_true(rig_count(rig, "slinc_bridge_asks_total", "allocate", "busy") == 8);

    rig_answers(rig, "POST", "/job/allocate", 200, DONE_BODY); /* a success resets it */
    rig_reads_job(rig, 7, "COMPLETED", "ns/uid.1");
    ask(rig, true);
    rig_run(rig, MS_US);
    rig_answers(rig, "POST", "/job/allocate", 422, rig_refusal(2016, text));
    ask(rig, true);
    rig_run(rig, MS_US);
    assert_false(room_fits(rig->room, &rig->job));
    rig_run(rig, SECOND_US);
    assert_true(room_fits(rig->room, &rig->job));
}

static void no_place_for_more_jobs_pauses_everybody(void **state)
{
    struct rig *rig = *state;
    static const int pauses_s[] = { 1, 2, 4, 8, 15, 15 };
    const char *why;
    char text[200];

    assert_int_equal(actor_pause_us(rig->actor, &why), 0);
    assert_string_equal(why, "");
    for (size_t i = 0; i < sizeof(pauses_s) / sizeof(pauses_s[0]); i++) {
        int64_t until_us;

        rig_answers(rig, "POST", "/job/submit", 422, rig_refusal(2007, text));
        rig_answers(rig, "POST", "/job/allocate", 422, rig_refusal(2007, text));
        ask(rig, false);
        rig_run(rig, MS_US);
        assert_int_equal(remembered(rig)->state, ASK_NONE);
        until_us = actor_pause_us(rig->actor, &why);
        assert_true(until_us > loop_now_us(rig->loop));
        assert_true(until_us - loop_now_us(rig->loop) <= pauses_s[i] * (int64_t)SECOND_US);
        assert_true(until_us - loop_now_us(rig->loop) >
                    pauses_s[i] * (int64_t)SECOND_US - 2 * MS_US);
        assert_non_null(strstr(why, "words of 2007"));
        ask(rig, true); /* side by side: it does not grow twice */
        rig_run(rig, MS_US);
        assert_true(actor_pause_us(rig->actor, &why) == until_us);
        assert_false(memory_get(rig->memory, STR("ns/uid"))->queues);
        rig_run(rig, 15 * SECOND_US);
        assert_int_equal(actor_pause_us(rig->actor, &why), 0);
    }
}

static void refusals_are_kept_or_passed_on_by_what_they_are_about(void **state)
{
    static const struct {
        int status, number;
        bool at_once;
        enum ask_state state;
        enum kube_outcome outcome;
        int again_s;
    } cases[] = {
        { 422, 2014, false, ASK_REFUSED, KUBE_DONE, 600 },   /* no nodes of that shape */
        { 422, 2014, true, ASK_NONE, KUBE_DONE, 0 },         /* the queue has the last word */
        { 422, 2000, false, ASK_REFUSED, KUBE_DONE, 600 },   /* no such partition */
        { 422, 2003, false, ASK_REFUSED, KUBE_DONE, 600 },   /* not for this group */
        { 422, 2101, false, ASK_REFUSED, KUBE_DONE, 15 },    /* the partition is down */
        { 422, 2018, false, ASK_NONE, KUBE_UNAVAILABLE, 0 }, /* unknown node */
        { 500, 2010, false, ASK_NONE, KUBE_DENIED, 0 },      /* not this user */
        { 401, 0, false, ASK_NONE, KUBE_DENIED, 0 },         /* no token */
        { 500, 2027, false, ASK_NONE, KUBE_UNAVAILABLE, 0 }, /* standby */
        { 422, 2016, false, ASK_UNRESOLVED, KUBE_DONE, 0 },  /* no row says what it means */
        { 502, 1800, false, ASK_UNRESOLVED, KUBE_DONE, 0 },
        { 504, 5004, true, ASK_UNRESOLVED, KUBE_DONE, 0 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct ask_memory *memory;
        const struct end *end;
        struct rig *rig;
        char text[200];

        rig_down(state);
        rig_up(state);
        rig = *state;
        for (int k = 0; k < 2; k++) /* a refused token is tried twice */
            rig_answers(rig, "POST", cases[i].at_once ? "/job/allocate" : "/job/submit",
                        cases[i].status, rig_refusal(cases[i].number, text));
        end = ask(rig, cases[i].at_once);
        rig_run(rig, MS_US);
        memory = remembered(rig);
        assert_true(end->is_over);
        if (memory->state != cases[i].state || end->outcome != cases[i].outcome)
            fail_msg("case %zu: %s, %s", i, ask_state_name(memory->state),
                     kube_outcome_name(end->outcome));
        assert_string_not_equal(memory->text, "");
        assert_int_equal(memory->number, cases[i].number);
        if (cases[i].state == ASK_REFUSED) {
            int64_t left_us = memory->again_us - loop_now_us(rig->loop);

            assert_true(left_us <= cases[i].again_s * (int64_t)SECOND_US &&
                        left_us > (cases[i].again_s - 1) * (int64_t)SECOND_US);
            assert_true(memory->site == room_generation(rig->room));
            assert_int_equal(memory->class == SLURM_DONE, 0);
        }
        assert_string_equal(buf_text(&rig->woken), "unit ns/uid;");
    }
}

/* Slurm refuses what no node can ever meet, though it is only preferred. */
static void a_refused_preference_is_given_up(void **state)
{
    struct rig *rig = *state;
    char text[200];

    rig->job.prefer = "west";
    rig_answers(rig, "POST", "/job/submit", 422, rig_refusal(2014, text));
    ask(rig, false);
    rig_run(rig, MS_US);
    assert_non_null(strstr(rig_last(rig, "POST")->body, "\"prefer\":\"west\""));
    assert_int_equal(remembered(rig)->state, ASK_NONE); /* so it is asked for again */
    assert_true(rig_count(rig, "slinc_bridge_asks_total", "submit", "preference") == 1);

    rig_answers(rig, "POST", "/job/submit", 422, rig_refusal(2014, text));
    ask(rig, false);
    rig_run(rig, MS_US);
    assert_null(strstr(rig_last(rig, "POST")->body, "prefer"));
    assert_int_equal(remembered(rig)->state, ASK_REFUSED); /* for another reason, then */
    assert_true(remembered(rig)->hash == job_ask_hash(&rig->job));

    rig_answers(rig, "POST", "/job/submit", 200, DONE_BODY);
    ask(rig, false);
    rig_run(rig, MS_US);
    assert_null(strstr(rig_last(rig, "POST")->body, "prefer"));
    assert_string_equal(rig_shown(rig, "7")->extra, "ns/uid.1 c");
    assert_false(memory_get(rig->memory, STR("ns/uid"))->prefers_nothing);
}

static void what_cannot_be_asked_at_all_is_refused_without_sending(void **state)
{
    struct rig *rig = *state;
    const struct end *end = rig_do(
        rig, plan_slurm_ask(&rig->plan, &(struct act_ask){
                                            .key = STR("a key"), .attempt = 1, .job = &rig->job }));

    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_DONE);
    assert_int_equal(memory_get(rig->memory, STR("a key"))->ask.state, ASK_REFUSED);
    assert_int_equal(fake_sent_count(rig->fake), 0);
}

static void what_was_not_sent_for_certain_backs_off(void **state)
{
    struct rig *rig = *state;
    const struct end *end;

    fake_answer(rig->fake, "POST", V45 "/job/submit",
                (struct fake_answer){ .class = ERR_UNAVAILABLE });
    end = ask(rig, false);
    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_UNAVAILABLE);
    assert_int_equal(remembered(rig)->state, ASK_NONE);
    assert_true(rig_count(rig, "slinc_bridge_asks_total", "submit", "unsent") == 1);
}

/* ---- unresolved ---- */

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
        struct rig *rig;

        rig_down(state);
        rig_up(state);
        rig = *state;
        fake_answer(rig->fake, "POST", V45 "/job/submit", bad[i]);
        end = ask(rig, false);
        rig_run(rig, 13 * SECOND_US);
        assert_true(end->is_over);
        assert_int_equal(end->outcome, KUBE_DONE);
        assert_int_equal(remembered(rig)->state, ASK_UNRESOLVED);
        assert_true(remembered(rig)->settles_us > loop_now_us(rig->loop));
        assert_null(rig_shown(rig, "7"));
    }
}

static void an_unresolved_ask_is_settled_by_a_list_that_began_later(void **state)
{
    struct rig *rig = *state;
    int64_t settles_us;

    fake_answer(rig->fake, "POST", V45 "/job/submit", (struct fake_answer){ .class = ERR_UNKNOWN });
    ask(rig, false);
    rig_run(rig, MS_US);
    settles_us = remembered(rig)->settles_us;
    assert_true(settles_us > loop_now_us(rig->loop));
    rig_sync(rig, rig->jobs); /* too early */
    rig_run(rig, settles_us - loop_now_us(rig->loop) - MS_US);
    assert_int_equal(remembered(rig)->state, ASK_UNRESOLVED);
    assert_false(slurm_poller_is_suspicious(rig->poller));
    rig_run(rig, 2 * MS_US);
    assert_true(slurm_poller_is_suspicious(rig->poller)); /* a whole list is asked for, once */
    rig_run(rig, 5 * SECOND_US);
    assert_int_equal(slurm_poller_suspicions(rig->poller), 1);
    assert_int_equal(remembered(rig)->state, ASK_UNRESOLVED);
    buf_clear(&rig->woken);
    rig_sync(rig, rig->jobs);
    rig_run(rig, SECOND_US);
    assert_int_equal(remembered(rig)->state, ASK_NONE);
    assert_string_equal(buf_text(&rig->woken), "unit ns/uid;");
    assert_int_equal(memory_in(rig->memory, ASK_UNRESOLVED), 0);
}

static void many_unresolved_asks_are_all_settled(void **state)
{
    struct rig *rig = *state;
    char key[32];

    for (unsigned i = 0; i < 200; i++) {
        snprintf(key, sizeof(key), "ns/u%u", i);
        fake_answer(rig->fake, "POST", V45 "/job/submit",
                    (struct fake_answer){ .class = ERR_UNKNOWN });
        rig_do(rig, plan_slurm_ask(
                        &rig->plan,
                        &(struct act_ask){ .key = str_of(key), .attempt = 1, .job = &rig->job }));
        rig_run(rig, 10 * MS_US);
    }
    assert_int_equal(memory_in(rig->memory, ASK_UNRESOLVED), 200);
    rig_run(rig, 100 * SECOND_US);
    rig_sync(rig, rig->jobs);
    rig_run(rig, SECOND_US);
    assert_int_equal(memory_in(rig->memory, ASK_UNRESOLVED), 0);
}

static void nothing_is_asked_while_the_last_ask_is_open(void **state)
{
    struct rig *rig = *state;
    const struct end *end;

    fake_answer(rig->fake, "POST", V45 "/job/submit",
                (struct fake_answer){ .class = ERR_UNKNOWN, .delay_us = SECOND_US });
    ask(rig, false);
    rig_run(rig, MS_US);
    end = ask(rig, false); /* while it is sent */
    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_CONFLICT);
    rig_run(rig, 2 * SECOND_US);
    end = ask(rig, false); /* while it is unresolved */
    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_CONFLICT);
    assert_int_equal(rig_sent(rig, "POST", "/job/"), 1);
}

static void nothing_is_asked_twice_or_in_doubt(void **state)
{
    struct rig *rig = *state;
    const struct end *end;

    rig_job(rig, 7, "s7", "PENDING", "ns/uid.1");
    end = ask(rig, false);
    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_CONFLICT);
    rig_job(rig, 7, "s7", "COMPLETED", "ns/uid.1");
    slurm_poller_suspect(rig->poller, "for the test");
    end = ask(rig, false);
    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_CONFLICT);
    assert_int_equal(fake_sent_count(rig->fake), 0);
    assert_null(memory_get(rig->memory, STR("ns/uid")));
}

/* More at once would only stand before the reads on the way to slurmrestd. */
static void eight_asks_are_in_flight_at_most(void **state)
{
    struct rig *rig = *state;
    const struct end *ends[20];
    char key[32], bodies[20][64];

    for (int i = 0; i < 20; i++) {
        snprintf(bodies[i], sizeof(bodies[i]), "{\"job_id\":%d,\"errors\":[]}", 100 + i);
        fake_answer(
            rig->fake, "POST", V45 "/job/submit",
            (struct fake_answer){ .status = 200, .body = bodies[i], .delay_us = SECOND_US });
    }
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof(key), "ns/u%d", i);
        ends[i] = ask_as(rig, key, false);
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

static void a_cancelled_ask_stays_unresolved(void **state)
{
    struct rig *rig = *state;
    const struct end *end;

    fake_answer(rig->fake, "POST", V45 "/job/submit",
                (struct fake_answer){ .status = 200, .body = DONE_BODY, .delay_us = SECOND_US });
    end = ask(rig, false);
    rig_cancel(rig, end); /* before it is sent: nothing happened */
    rig_run(rig, MS_US);
    assert_null(memory_get(rig->memory, STR("ns/uid")));
    end = ask(rig, false);
    rig_run(rig, MS_US);
    rig_cancel(rig, end);
    assert_int_equal(remembered(rig)->state, ASK_UNRESOLVED);
    assert_true(remembered(rig)->settles_us > loop_now_us(rig->loop));
    rig_run(rig, 2 * SECOND_US);
    assert_false(end->is_over);
}

/* ---- throttle ---- */

static void asks_are_spaced_and_those_too_far_behind_come_back_later(void **state)
{
    struct rig *rig = *state;
    const struct end *ends[60];
    size_t sent = 0, back = 0;
    char key[32];

    rig_actor(rig, 20);
    fake_answer(rig->fake, "POST", V45 "/job/submit",
                (struct fake_answer){ .status = 500, .body = "", .times = FAKE_ALWAYS });
    for (unsigned i = 0; i < 60; i++) {
        snprintf(key, sizeof(key), "ns/u%u", i);
        ends[i] = rig_do(rig, plan_slurm_ask(&rig->plan, &(struct act_ask){ .key = str_of(key),
                                                                            .attempt = 1,
                                                                            .job = &rig->job }));
    }
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

/* ---- cancelling ---- */

static struct end *cancel(struct rig *rig, const char *id, const struct act_unless *unless)
{
    return rig_do(rig, plan_slurm_cancel(&rig->plan, rig_shown(rig, id), unless, "a test"));
}

static void one_job_is_cancelled_and_read(void **state)
{
    struct rig *rig = *state;
    const struct end *end;

    rig_job(rig, 7, "s", "RUNNING", "ns/uid.1");
    rig_answers(rig, "DELETE", "/jobs/", 200, "{\"status\":[],\"errors\":[]}");
    rig_reads_job(rig, 7, "CANCELLED", "ns/uid.1");
    end = cancel(rig, "7", NULL);
    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_DONE);
    assert_true(end->is_over);
    assert_true(slurm_words_has(&rig_shown(rig, "7")->state, SLURM_JOB_CANCELLED));
    assert_true(rig_count(rig, "slinc_bridge_cancels_total", "done", NULL) == 1);
}

/* A sluid is never given to another job; an id may be, when slurmctld loses its last seconds. */
static void a_job_is_cancelled_by_its_sluid_where_that_is_known(void **state)
{
    struct rig *rig = *state;

    rig_job(rig, 7, "s38HM", "RUNNING", "ns/a.1");
    rig_job(rig, 8, "", "RUNNING", "ns/b.1");
    rig_answers(rig, "DELETE", "/jobs/", 200, "{\"status\":[],\"errors\":[]}");
    rig_reads_job(rig, 7, "CANCELLED", "ns/a.1");
    rig_reads_job(rig, 8, "CANCELLED", "ns/b.1");
    (void)cancel(rig, "7", NULL);
    (void)cancel(rig, "8", NULL);
    rig_run(rig, MS_US);
    assert_string_equal(fake_sent(rig->fake, 0)->body, "{\"jobs\":[\"s38HM\",\"8\"]}");
}

static void several_cancels_of_one_turn_are_one_call(void **state)
{
    struct rig *rig = *state;
    const struct end *ends[10];
    char key[32], id[16];

    for (int i = 0; i < 10; i++) {
        snprintf(key, sizeof(key), "ns/u%d.1", i);
        rig_job(rig, 10 + i, "s", "RUNNING", key);
    }
    rig_answers(rig, "DELETE", "/jobs/", 200,
                "{\"errors\":[],\"status\":["
                "{\"error\":{\"code\":2021},\"step_id\":\"11\",\"job_id\":{\"number\":11}},"
                "{\"error\":{\"code\":2017},\"step_id\":\"12\",\"job_id\":{\"number\":0}},"
                "{\"error\":{\"code\":2010,\"message\":\"no\"},\"step_id\":\"13\"}]}");
    for (int i = 0; i < 10; i++) {
        snprintf(id, sizeof(id), "%d", 10 + i);
        ends[i] = cancel(rig, id, NULL);
    }
    rig_run(rig, MS_US);
    assert_int_equal(rig_sent(rig, "DELETE", "/"), 1);
    assert_int_equal(rig_sent(rig, "GET", "/job/"), 0); /* the states tell */
    for (int i = 0; i < 10; i++) {
        assert_true(ends[i]->is_over);
        assert_int_equal(ends[i]->outcome == KUBE_DONE, i != 3);
    }
}

static void a_status_that_names_nobody_is_believed_of_everybody(void **state)
{
    struct rig *rig = *state;
    const struct end *first, *second;

    rig_job(rig, 1, "s", "RUNNING", "ns/a.1");
    rig_job(rig, 2, "s", "RUNNING", "ns/b.1");
    rig_answers(rig, "DELETE", "/jobs/", 200,
                "{\"errors\":[],\"status\":[{\"error\":{\"code\":2021},\"step_id\":\"1\"},"
                "{\"error\":{\"code\":5}}]}");
    rig_reads_job(rig, 1, "CANCELLED", "ns/a.1");
    rig_reads_job(rig, 2, "RUNNING", "ns/b.1");
    first = cancel(rig, "1", NULL);
    second = cancel(rig, "2", NULL);
    rig_run(rig, MS_US);
    assert_int_equal(first->outcome, KUBE_DONE);
    assert_int_equal(second->outcome, KUBE_UNKNOWN);
}

static void a_failed_bulk_cancel_fails_each(void **state)
{
    struct rig *rig = *state;
    const struct end *first, *second;
    char text[200];

    rig_job(rig, 1, "s", "RUNNING", "ns/a.1");
    rig_job(rig, 2, "s", "RUNNING", "ns/b.1");
    rig_answers(rig, "DELETE", "/jobs/", 403, rig_refusal(1, text));
    rig_reads_job(rig, 1, "RUNNING", "ns/a.1");
    rig_reads_job(rig, 2, "RUNNING", "ns/b.1");
    first = cancel(rig, "1", NULL);
    second = cancel(rig, "2", NULL);
    rig_cancel(rig, second); /* waits for its turn */
    second = cancel(rig, "2", NULL);
    rig_run(rig, MS_US);
    assert_int_equal(first->outcome, KUBE_UNKNOWN);
    assert_int_equal(second->outcome, KUBE_UNKNOWN);
}

static void a_job_is_only_cancelled_as_it_was_planned_on(void **state)
{
    struct rig *rig = *state;
    const struct end *ends[4];

    for (size_t i = 0; i < 4; i++) {
        rig_job(rig, 7, "s7", "RUNNING", "ns/uid.1");
        ends[i] = cancel(rig, "7", NULL);
        switch (i) {
        case 0: /* the id was given to another job */
            rig_job(rig, 7, "s8", "RUNNING", "ns/uid.1");
            break;
        case 1: /* its key is another */
            rig_job(rig, 7, "s7", "RUNNING", "ns/uid.2");
            break;
        case 2:
            slurm_cache_seen_gone(rig->jobs, "7", loop_now_us(rig->loop));
            break;
        default:
            slurm_poller_suspect(rig->poller, "for the test");
            break;
        }
        rig_run(rig, MS_US);
        assert_true(ends[i]->is_over);
        assert_int_equal(ends[i]->outcome, KUBE_CONFLICT);
    }
    assert_int_equal(fake_sent_count(rig->fake), 0);
}

static void a_job_of_another_cluster_is_never_cancelled(void **state)
{
    struct rig *rig = *state;
    const struct end *end;

    rig_see(rig, rig->jobs,
            "{\"job_id\":7,\"job_state\":[\"RUNNING\"],\"extra\":\"ns/uid.1\",\"admin_comment\":"
            "\"{\\\"cluster\\\":\\\"other\\\",\\\"unit\\\":\\\"ns/uid.1\\\"}\"}");
    end = cancel(rig, "7", NULL);
    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_CONFLICT);
    assert_int_equal(fake_sent_count(rig->fake), 0);
}

static void a_job_is_spared_unless_its_pod_is_gone(void **state)
{
    static const struct {
        int status;
        const char *reason, *uid;
        enum kube_outcome outcome;
    } cases[] = {
        { 404, "NotFound", NULL, KUBE_DONE },    { 200, NULL, "another", KUBE_DONE },
        { 200, NULL, "uid", KUBE_CONFLICT },     { 200, NULL, "", KUBE_CONFLICT },
        { 404, "", NULL, KUBE_UNAVAILABLE },     { 500, "InternalError", NULL, KUBE_UNAVAILABLE },
        { 403, "Forbidden", NULL, KUBE_DENIED },
    };
    const struct act_unless unless = { &kube_pods, "ns", "pod", "uid", NULL };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *path = "/api/v1/namespaces/ns/pods/pod";
        const struct end *end;
        struct rig *rig;
        char text[200];

        rig_down(state);
        rig_up(state);
        rig = *state;
        rig_job(rig, 7, "s", "RUNNING", "ns/uid.1");
        rig_answers(rig, "DELETE", "/jobs/", 200, "{\"status\":[],\"errors\":[]}");
        rig_reads_job(rig, 7, "CANCELLED", "ns/uid.1");
        snprintf(text, sizeof(text), "{\"kind\":\"Pod\",\"metadata\":{\"uid\":\"%s\"}}",
                 cases[i].uid ? cases[i].uid : "");
        if (cases[i].uid)
            fake_answer(rig->api, "GET", path, (struct fake_answer){ .status = 200, .body = text });
        else if (cases[i].reason[0])
            fake_status(rig->api, "GET", path, cases[i].status, cases[i].reason, "words");
        else
            fake_answer(rig->api, "GET", path,
                        (struct fake_answer){ .status = 404, .body = "not here" });
        end = cancel(rig, "7", &unless);
        rig_run(rig, 40 * SECOND_US);
        assert_true(end->is_over);
        if (end->outcome != cases[i].outcome)
            fail_msg("case %zu: %s", i, kube_outcome_name(end->outcome));
        assert_int_equal(rig_sent(rig, "DELETE", "/"), cases[i].outcome == KUBE_DONE);
    }
}

static void a_duplicate_is_counted(void **state)
{
    struct rig *rig = *state;

    rig_job(rig, 7, "s7", "RUNNING", "ns/uid.1");
    rig_job(rig, 8, "s8", "PENDING", "ns/uid.2");
    rig_job(rig, 9, "s9", "RUNNING", "ns/alone.1");
    rig_answers(rig, "DELETE", "/jobs/", 200, "{\"status\":[],\"errors\":[]}");
    rig_reads_job(rig, 8, "CANCELLED", "ns/uid.2");
    rig_reads_job(rig, 9, "CANCELLED", "ns/alone.1");
    cancel(rig, "8", NULL);
    cancel(rig, "9", NULL);
    rig_run(rig, MS_US);
    assert_true(rig_count(rig, "slinc_bridge_duplicate_jobs_total", NULL, NULL) == 1);
}

static void a_node_that_was_given_back_is_remembered_once(void **state)
{
    struct rig *rig = *state;
    const struct unit_memory *unit;
    char text[200];

    rig_job(rig, 7, "s", "RUNNING", "ns/uid.1");
    for (int i = 0; i < 2; i++) { /* the first try fails */
        rig_answers(rig, "DELETE", "/jobs/", i == 0 ? 403 : 200,
                    i == 0 ? rig_refusal(1, text) : "{\"status\":[],\"errors\":[]}");
        rig_reads_job(rig, 7, "RUNNING", "ns/uid.1");
        rig_do(rig, plan_slurm_give_back(&rig->plan, rig_shown(rig, "7"), "n1", "a test"));
        rig_run(rig, MS_US);
        assert_int_equal(rig->ends[i].outcome, i == 0 ? KUBE_UNKNOWN : KUBE_DONE);
    }
    unit = memory_get(rig->memory, STR("ns/uid"));
    assert_non_null(unit);
    assert_int_equal(unit->misfit_count, 1);
    assert_string_equal(unit->misfits[0], "n1");
}

/* ---- looking, updating, going away ---- */

static void a_look_reads_the_job(void **state)
{
    struct rig *rig = *state;
    const struct end *end;

    rig_job(rig, 7, "s", "PENDING", "ns/uid.1");
    rig_reads_job(rig, 7, "RUNNING", "ns/uid.1");
    end = rig_do(rig, plan_slurm_look(&rig->plan, rig_shown(rig, "7")));
    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_DONE);
    assert_true(slurm_words_has(&rig_shown(rig, "7")->state, SLURM_JOB_RUNNING));
}

static void an_update_is_sent_for_the_job_planned_on_only(void **state)
{
    struct rig *rig = *state;
    struct json_mut *fields = json_new_object(rig->build);
    const struct action *action;
    const struct end *end;
    char text[200];

    json_put_text(rig->build, fields, "comment", "x");
    rig_job(rig, 7, "s", "PENDING", "ns/uid.1");
    action = plan_slurm_update_job(&rig->plan, rig_shown(rig, "7"), fields);
    rig_answers(rig, "POST", "/job/7", 200, "{\"errors\":[]}");
    rig_reads_job(rig, 7, "PENDING", "ns/uid.1");
    end = rig_do(rig, action);
    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_DONE);
    assert_string_equal(rig_last(rig, "POST")->body, "{\"comment\":\"x\"}");

    rig_answers(rig, "POST", "/job/7", 422, rig_refusal(2021, text));
    rig_reads_job(rig, 7, "COMPLETED", "ns/uid.1");
    end = rig_do(rig, action);
    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_INVALID);

    rig_job(rig, 7, "t", "PENDING", "ns/uid.1"); /* another sluid */
    end = rig_do(rig, action);
    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_CONFLICT);
    assert_int_equal(rig_sent(rig, "POST", "/job/7"), 2);
}

static void an_actor_may_go_with_everything_under_way(void **state)
{
    struct rig *rig = *state;
    const struct act_unless unless = { &kube_pods, "ns", "pod", "uid", NULL };
    struct json_mut *fields = json_new_object(rig->build);

    rig_job(rig, 7, "s", "RUNNING", "ns/x.1");
    rig_job(rig, 8, "s", "RUNNING", "ns/y.1");
    fake_answer(rig->fake, "POST", V45 "/job/submit", (struct fake_answer){ 0 });
    fake_answer(rig->fake, "POST", V45 "/node/n1", (struct fake_answer){ 0 });
    fake_answer(rig->fake, "DELETE", V45 "/jobs/", (struct fake_answer){ 0 });
    fake_answer(rig->api, "GET", "/api/v1/namespaces/ns/pods/pod", (struct fake_answer){ 0 });
    ask(rig, false);
    cancel(rig, "7", NULL);
    cancel(rig, "8", &unless);
    rig_do(rig, plan_slurm_update_node(&rig->plan, "n1", fields));
    rig_run(rig, MS_US);
    rig_do(rig, plan_slurm_look(&rig->plan, rig_shown(rig, "8")));
    actor_free(rig->actor);
    rig->actor = NULL;
    for (size_t i = 0; i < rig->started; i++)
        assert_false(rig->ends[i].is_over);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_ask_is_on_record_before_it_is_sent),
        TEST(a_submitted_job_is_in_the_cache_at_once),
        TEST(an_immediate_job_is_read_for_its_nodes),
        TEST(a_poll_that_was_faster_is_not_undone),
        TEST(an_id_that_another_job_has_is_a_reason_to_doubt),
        TEST(a_refused_immediate_ask_queues_and_closes_the_partition_for_a_growing_pause),
        TEST(no_place_for_more_jobs_pauses_everybody),
        TEST(refusals_are_kept_or_passed_on_by_what_they_are_about),
        TEST(a_refused_preference_is_given_up),
        TEST(what_cannot_be_asked_at_all_is_refused_without_sending),
        TEST(what_was_not_sent_for_certain_backs_off),
        TEST(bad_answers_leave_an_ask_unresolved),
        TEST(an_unresolved_ask_is_settled_by_a_list_that_began_later),
        TEST(many_unresolved_asks_are_all_settled),
        TEST(nothing_is_asked_while_the_last_ask_is_open),
        TEST(nothing_is_asked_twice_or_in_doubt),
        TEST(eight_asks_are_in_flight_at_most),
        TEST(a_cancelled_ask_stays_unresolved),
        TEST(asks_are_spaced_and_those_too_far_behind_come_back_later),
        TEST(one_job_is_cancelled_and_read),
        TEST(a_job_is_cancelled_by_its_sluid_where_that_is_known),
        TEST(several_cancels_of_one_turn_are_one_call),
        TEST(a_status_that_names_nobody_is_believed_of_everybody),
        TEST(a_failed_bulk_cancel_fails_each),
        TEST(a_job_is_only_cancelled_as_it_was_planned_on),
        TEST(a_job_of_another_cluster_is_never_cancelled),
        TEST(a_job_is_spared_unless_its_pod_is_gone),
        TEST(a_duplicate_is_counted),
        TEST(a_node_that_was_given_back_is_remembered_once),
        TEST(a_look_reads_the_job),
        TEST(an_update_is_sent_for_the_job_planned_on_only),
        TEST(an_actor_may_go_with_everything_under_way),
    };

    return cmocka_run_group_tests_name("bridge act", tests, NULL, NULL);
}
