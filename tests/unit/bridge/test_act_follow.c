/* test_act_follow.c - what a job that waits was asked with is remembered, and what it would not
 * become. */
#include "act_ask_rig.h"

static struct json_mut *comment(struct rig *rig)
{
    struct json_mut *fields = json_new_object(rig->build);

    json_put_text(rig->build, fields, "comment", rig->job.comment);
    return fields;
}

static const struct end *follow(struct rig *rig, int status, const char *answer)
{
    const struct end *end;

    rig->job.comment = "c";
    rig_job(rig, 7, "s", "PENDING", "ns/uid.1");
    rig_answers(rig, "POST", "/job/7", status, answer);
    rig_reads_job(rig, 7, "PENDING", "ns/uid.1");
    end = rig_do(rig, plan_slurm_follow(&rig->plan, rig_shown(rig, "7"), comment(rig), &rig->job));
    rig_run(rig, MS_US);
    return end;
}

static bool remembers(const struct rig *rig, const struct job_ask *ask)
{
    const struct unit_memory *unit = memory_get(rig->memory, STR("ns/uid"));
    struct job_marks marks;

    job_marks_of(ask, &marks);
    return unit && unit->said.job_id == 7 && memcmp(&unit->said.marks, &marks, sizeof(marks)) == 0;
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

static void what_a_job_became_is_remembered(void **state)
{
    struct rig *rig = *state;

    assert_int_equal(follow(rig, 200, "{\"errors\":[]}")->outcome, KUBE_DONE);
    assert_string_equal(rig_last(rig, "POST")->body, "{\"comment\":\"c\"}");
    assert_true(remembers(rig, &rig->job));
    assert_false(memory_get(rig->memory, STR("ns/uid"))->said.is_unsure);
}

static void without_fields_nothing_is_sent_and_all_is_remembered(void **state)
{
    struct rig *rig = *state;
    const struct end *end;

    rig_job(rig, 7, "s", "PENDING", "ns/uid.1");
    end = rig_do(rig, plan_slurm_follow(&rig->plan, rig_shown(rig, "7"),
                                        json_new_object(rig->build), &rig->job));
    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_DONE);
    assert_int_equal(rig_sent(rig, "POST", "/job/7"), 0);
    assert_true(remembers(rig, &rig->job));
}

static void a_refused_change_is_remembered_with_slurms_words_and_the_unit_woken(void **state)
{
    struct rig *rig = *state;
    const struct unit_memory *unit;
    char text[200];

    assert_int_equal(follow(rig, 422, rig_refusal(2029, text))->outcome, KUBE_DONE);
    unit = memory_get(rig->memory, STR("ns/uid"));
    assert_true(unit->said.refused == job_ask_hash(&rig->job));
    assert_true(unit->said.is_unsure);
    assert_true(unit->said.again_us > loop_now_us(rig->loop));
    assert_non_null(strstr(unit->ask.text, "words of 2029"));
    assert_non_null(strstr(buf_text(&rig->woken), "unit ns/uid;"));
    assert_false(remembers(rig, &rig->job));
}

static void a_refusal_forgets_nothing_of_what_the_job_was_asked_with(void **state)
{
    struct rig *rig = *state;
    struct job_ask first;
    char text[200];

    assert_int_equal(follow(rig, 200, "{\"errors\":[]}")->outcome, KUBE_DONE);
    first = rig->job;
    rig->job.time_limit = 5;
    follow(rig, 422, rig_refusal(2051, text));
    assert_true(remembers(rig, &first));
}

/* slurmctld says "try again" while it goes through its queue. */
static void what_is_no_refusal_is_tried_again(void **state)
{
    struct rig *rig = *state;
    char text[200];

    assert_int_equal(follow(rig, 500, rig_refusal(11, text))->outcome, KUBE_UNKNOWN);
    assert_int_equal(follow(rig, 404, rig_refusal(2017, text))->outcome, KUBE_CONFLICT);
    assert_true(memory_need(rig->memory, STR("ns/uid"))->said.refused == 0);
    assert_false(remembers(rig, &rig->job));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_a_job_was_asked_with_is_remembered),
        TEST(what_a_job_became_is_remembered),
        TEST(without_fields_nothing_is_sent_and_all_is_remembered),
        TEST(a_refused_change_is_remembered_with_slurms_words_and_the_unit_woken),
        TEST(a_refusal_forgets_nothing_of_what_the_job_was_asked_with),
        TEST(what_is_no_refusal_is_tried_again),
    };

    return cmocka_run_group_tests_name("act_follow", tests, NULL, NULL);
}
