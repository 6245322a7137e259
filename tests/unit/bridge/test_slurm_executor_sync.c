/* test_slurm_executor_sync.c - what a job that waits was asked with is remembered, and what it
 * would not become. */
#include "bridge/unit/job_change.h"
#include "slurm_executor_submit_rig.h"

#include "slurm/submit.h"

static struct json_mut *comment(struct rig *rig)
{
    struct json_mut *fields = json_new_object(rig->build);

    json_put_text(rig->build, fields, "comment", rig->job.comment);
    return fields;
}

/* From a plain one, as the plan says it: what changes is open. */
static struct action *plan_to(struct rig *rig, struct json_mut *fields)
{
    struct job_desc before = rig->job;
    struct field_hashes hashes, noted;

    before.comment = "";
    field_hashes_of(&before, &hashes);
    (void)job_change(rig->build, json_new_object(rig->build), &rig->job, &hashes, false, &noted);
    return plan_slurm_sync(&rig->plan, rig_shown(rig, "7"), fields, &rig->job, &noted);
}

static const struct end *follow(struct rig *rig, int status, const char *answer)
{
    const struct end *end;

    rig->job.comment = "c";
    rig_job(rig, 7, "s", "PENDING", "ns/uid.1");
    rig_answers(rig, "POST", "/job/7", status, answer);
    rig_reads_job(rig, 7, "PENDING", "ns/uid.1");
    end = rig_do(rig, plan_to(rig, comment(rig)));
    rig_run(rig, MS_US);
    return end;
}

static bool remembers(const struct rig *rig, const struct job_desc *desc)
{
    const struct unit_state *unit = unit_states_get(rig->unit_states, STR("ns/uid"));
    struct field_hashes hashes;

    field_hashes_of(desc, &hashes);
    return unit && unit->last_applied.job_id == 7 &&
           memcmp(&unit->last_applied.hashes, &hashes, sizeof(hashes)) == 0;
}

static void what_a_job_was_asked_with_is_remembered(void **state)
{
    struct rig *rig = *state;

    rig->job.comment = "c";
    rig_answers(rig, "POST", "/job/submit", 200, "{\"job_id\":7,\"errors\":[]}");
    ask(rig, false);
    rig_run(rig, MS_US);
    assert_true(remembers(rig, &rig->job));
}

/* By both ways, and as the job has it that is shown before it was read. */
static void what_a_job_was_asked_with_is_noted_in_it(void **state)
{
    static const char *const ways[] = { "/job/submit", "/job/allocate" };

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct rig *rig = rig_fresh(state);
        auto_buf struct buf note = { .max = SLURM_MAX_NOTE }, expected = { .max = SLURM_MAX_NOTE };
        struct field_hashes hashes;

        rig->job.comment = "c";
        rig_answers(rig, "POST", ways[i], 200, DONE_BODY);
        rig_reads_job(rig, 7, "RUNNING", "ns/uid.1");
        ask_and_run(rig, i == 1);
        field_hashes_of(&rig->job, &hashes);
        field_hashes_write(&hashes, &expected);
        assert_non_null(strstr(rig_last(rig, "POST")->body, buf_text(&expected)));
        if (i == 1)
            continue;
        assert_true(slurm_submit_note(rig_shown(rig, "7"), &note));
        assert_string_equal(buf_text(&note), buf_text(&expected));
    }
}

static void what_a_job_became_is_remembered(void **state)
{
    struct rig *rig = *state;

    assert_int_equal(follow(rig, 200, "{\"errors\":[]}")->outcome, KUBE_DONE);
    assert_string_equal(rig_last(rig, "POST")->body, "{\"comment\":\"c\"}");
    assert_true(remembers(rig, &rig->job));
    assert_true(unit_states_get(rig->unit_states, STR("ns/uid"))->last_applied.needs_final_note);
}

/* The note of an update that changes nothing has nothing open: there is nothing to settle then. */
static void a_note_that_leaves_nothing_open_is_settled(void **state)
{
    struct rig *rig = *state;

    rig->job.comment = "";
    rig_job(rig, 7, "s", "PENDING", "ns/uid.1");
    rig_answers(rig, "POST", "/job/7", 200, "{\"errors\":[]}");
    rig_reads_job(rig, 7, "PENDING", "ns/uid.1");
    rig_do(rig, plan_to(rig, comment(rig)));
    rig_run(rig, MS_US);
    assert_true(remembers(rig, &rig->job));
    assert_false(unit_states_get(rig->unit_states, STR("ns/uid"))->last_applied.needs_final_note);
}

static void without_fields_nothing_is_sent_and_all_is_remembered(void **state)
{
    struct rig *rig = *state;
    const struct end *end;

    rig_job(rig, 7, "s", "PENDING", "ns/uid.1");
    end = rig_do(rig, plan_to(rig, json_new_object(rig->build)));
    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_DONE);
    assert_int_equal(rig_sent(rig, "POST", "/job/7"), 0);
    assert_true(remembers(rig, &rig->job));
}

static void a_refused_change_is_remembered_with_slurms_words_and_the_unit_woken(void **state)
{
    struct rig *rig = *state;
    const struct unit_state *unit;
    char text[200];

    assert_int_equal(follow(rig, 422, rig_refusal(2029, text))->outcome, KUBE_DONE);
    unit = unit_states_get(rig->unit_states, STR("ns/uid"));
    assert_true(unit->last_applied.refused == job_desc_hash(&rig->job));
    assert_true(field_hashes_have_unknown(&unit->last_applied.hashes) &&
                !unit->last_applied.needs_final_note);
    assert_true(unit->last_applied.again_us > loop_now_us(rig->loop));
    assert_non_null(strstr(unit->submit.text, "words of 2029"));
    assert_non_null(strstr(buf_text(&rig->woken), "unit ns/uid;"));
    assert_false(remembers(rig, &rig->job));
}

/* What was not said in it counts as before. */
static void what_a_refused_change_said_is_open_and_no_more(void **state)
{
    struct rig *rig = *state;
    const struct unit_state *unit;
    struct field_hashes hashes;
    char text[200];

    follow(rig, 422, rig_refusal(2051, text));
    unit = unit_states_get(rig->unit_states, STR("ns/uid"));
    field_hashes_of(&rig->job, &hashes);
    assert_int_equal(unit->last_applied.job_id, 7);
    assert_memory_not_equal(&unit->last_applied.hashes, &hashes, sizeof(hashes));
    hashes = unit->last_applied.hashes;
    field_hashes_settle(&hashes, &rig->job);
    assert_false(field_hashes_have_unknown(&hashes));
}

/* slurmctld says "try again" while it goes through its queue. */
static void what_is_no_refusal_is_tried_again(void **state)
{
    struct rig *rig = *state;
    char text[200];

    assert_int_equal(follow(rig, 500, rig_refusal(11, text))->outcome, KUBE_UNKNOWN);
    assert_int_equal(follow(rig, 404, rig_refusal(2017, text))->outcome, KUBE_CONFLICT);
    assert_true(unit_states_need(rig->unit_states, STR("ns/uid"))->last_applied.refused == 0);
    assert_true(field_hashes_have_unknown(
        &unit_states_need(rig->unit_states, STR("ns/uid"))->last_applied.hashes));
    assert_false(remembers(rig, &rig->job));
}

static void a_job_that_is_no_longer_pending_has_refused_nothing(void **state)
{
    static const int numbers[] = { 2021, 2083, 2084 };
    struct rig *rig = *state;
    char text[200];

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        assert_int_equal(follow(rig, 422, rig_refusal(numbers[i], text))->outcome, KUBE_CONFLICT);
        assert_true(unit_states_need(rig->unit_states, STR("ns/uid"))->last_applied.refused == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_a_job_was_asked_with_is_remembered),
        TEST(what_a_job_was_asked_with_is_noted_in_it),
        TEST(what_a_job_became_is_remembered),
        TEST(a_note_that_leaves_nothing_open_is_settled),
        TEST(without_fields_nothing_is_sent_and_all_is_remembered),
        TEST(a_refused_change_is_remembered_with_slurms_words_and_the_unit_woken),
        TEST(what_a_refused_change_said_is_open_and_no_more),
        TEST(what_is_no_refusal_is_tried_again),
        TEST(a_job_that_is_no_longer_pending_has_refused_nothing),
    };

    return cmocka_run_group_tests_name("act_follow", tests, NULL, NULL);
}
