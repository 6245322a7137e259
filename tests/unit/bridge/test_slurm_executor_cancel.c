/* test_slurm_executor_cancel.c - jobs that exist are cancelled, read and updated only as they were
 * planned on, many in one call. */
#include "engine/executor.h"
#include "slurm_executor_submit_rig.h"

#include "bridge/world/names.h"
#include "kube/workload_kinds.h"
#include "slurm/agent.h"

#define CANCELLED_BODY "{\"status\":[],\"errors\":[]}"

static struct end *cancel(struct rig *rig, const char *id, const struct action_unless *unless)
{
    return rig_do(rig, plan_slurm_cancel(&rig->plan, rig_shown(rig, id), unless, "a test"));
}

/* The read that follows finds it in another state, then. */
static void job_runs(struct rig *rig, int id, const char *key, const char *then)
{
    rig_job(rig, id, "s", "RUNNING", key);
    rig_reads_job(rig, id, then, key);
}

/* ---- cancelling ---- */

static void one_job_is_cancelled_and_read(void **state)
{
    struct rig *rig = *state;
    const struct end *end;

    job_runs(rig, 7, "ns/uid.1", "CANCELLED");
    rig_answers(rig, "DELETE", "/jobs/", 200, CANCELLED_BODY);
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
    rig_answers(rig, "DELETE", "/jobs/", 200, CANCELLED_BODY);
    rig_reads_job(rig, 7, "CANCELLED", "ns/a.1");
    rig_reads_job(rig, 8, "CANCELLED", "ns/b.1");
    cancel(rig, "7", NULL);
    cancel(rig, "8", NULL);
    rig_run(rig, MS_US);
    assert_string_equal(fake_sent(rig->fake, 0)->body, "{\"jobs\":[\"s38HM\",\"8\"]}");
}

/* Slurm 25.11 answers "JobID can not be zero". */
static void a_slurm_that_takes_no_sluids_is_told_the_id(void **state)
{
    struct rig *rig;

    rig_version = 44;
    rig = rig_fresh(state);
    rig_job(rig, 7, "s38HM", "RUNNING", "ns/a.1");
    rig_answers(rig, "DELETE", "/jobs/", 200, CANCELLED_BODY);
    rig_reads_job(rig, 7, "CANCELLED", "ns/a.1");
    rig_version = 45;
    cancel(rig, "7", NULL);
    rig_run(rig, MS_US);
    assert_string_equal(fake_sent(rig->fake, 0)->body, "{\"jobs\":[\"7\"]}");
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

    job_runs(rig, 1, "ns/a.1", "CANCELLED");
    job_runs(rig, 2, "ns/b.1", "RUNNING");
    rig_answers(rig, "DELETE", "/jobs/", 200,
                "{\"errors\":[],\"status\":[{\"error\":{\"code\":2021},\"step_id\":\"1\"},"
                "{\"error\":{\"code\":5}}]}");
    first = cancel(rig, "1", NULL);
    second = cancel(rig, "2", NULL);
    rig_run(rig, MS_US);
    assert_int_equal(first->outcome, KUBE_DONE);
    assert_int_equal(second->outcome, KUBE_UNKNOWN);
}

/* Nothing is bound by such a job any more: the cancel may have no answer, and come late. */
static void an_attempt_that_is_cancelled_is_given_up_also_of_a_group(void **state)
{
    static const char *const units[] = { "ns/uid", "ns/podgroup/g" };
    static const char *const keys[] = { "ns/uid.3", "ns/podgroup/g@uid-g.3" };
    struct rig *rig = *state;

    for (int i = 0; i < 2; i++) {
        const struct unit_state *unit = unit_states_need(rig->unit_states, str_of(units[i]));

        rig_job(rig, 7 + i, "s", "RUNNING", keys[i]);
        cancel(rig, i == 0 ? "7" : "8", NULL);
        assert_true(unit_state_has_given_up(unit, 3));
        assert_false(unit_state_has_given_up(unit, 2));
    }
}

static void a_failed_bulk_cancel_fails_each(void **state)
{
    struct rig *rig = *state;
    const struct end *first, *second;
    char text[200];

    job_runs(rig, 1, "ns/a.1", "RUNNING");
    job_runs(rig, 2, "ns/b.1", "RUNNING");
    rig_answers(rig, "DELETE", "/jobs/", 403, rig_refusal(1, text));
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
            "{\"job_id\":7,\"flags\":[\"EXTERNAL_JOB\"],\"job_state\":[\"RUNNING\"],\"extra\":\"ns/"
            "uid.1\",\"admin_comment\":"
            "\"{\\\"cluster\\\":\\\"other\\\",\\\"unit\\\":\\\"ns/uid.1\\\"}\"}");
    end = cancel(rig, "7", NULL);
    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_CONFLICT);
    assert_int_equal(fake_sent_count(rig->fake), 0);
}

#define POD(key, id, phase)                                                                        \
    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\",\"resourceVersion\":\"5\","  \
    "\"labels\":{"                                                                                 \
    "\"" BRIDGE_COSCHEDULING_LABEL "\":\"" key "\",\"" BRIDGE_JOB_LABEL "\":\"" id                 \
    "\"}},\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"" phase "\"}}"

/* Of an object that had the name of the group's before: pods of the one that has it now do not
 * count, and a pod that runs by the job does, whatever its group is now. */
static void the_job_of_a_former_group_is_cancelled_when_both_lists_say_so(void **state)
{
    static const struct {
        const char *groups, *pods;
        enum kube_outcome outcome;
    } cases[] = {
        { "{\"metadata\":{\"uid\":\"new\"}}", POD("g", "8", "Running"), KUBE_DONE },
        { "", "", KUBE_DONE },
        { "{\"metadata\":{\"uid\":\"old\"}}", "", KUBE_CONFLICT },
        { "", POD("g", "7", "Running"), KUBE_CONFLICT },
        { "", POD("other", "7", "Running"), KUBE_CONFLICT },
        { "", POD("other", "7", "Succeeded"), KUBE_DONE },
    };
    const struct action_unless pods = {
        .resource = &kube_pods,
        .ns = "ns",
        .uid = "old",
        .objects = pod_of_group_objects,
        .about = "ns/coscheduling/g",
    };
    const struct action_unless unless = {
        .resource = kube_coscheduling_kind.resource, .ns = "ns", .uid = "old", .also = &pods
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig = rig_fresh(state);
        const struct end *end;
        char groups[1000], list[1000];

        job_runs(rig, 7, "ns/coscheduling/g@old.1", "CANCELLED");
        rig_answers(rig, "DELETE", "/jobs/", 200, CANCELLED_BODY);
        snprintf(groups, sizeof(groups), "{\"items\":[%s]}", cases[i].groups);
        snprintf(list, sizeof(list), "{\"items\":[%s]}", cases[i].pods);
        fake_answer(rig->api, "GET", "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/ns/podgroups",
                    (struct fake_answer){ .status = 200, .body = groups });
        fake_answer(rig->api, "GET", "/api/v1/namespaces/ns/pods",
                    (struct fake_answer){ .status = 200, .body = list });
        end = cancel(rig, "7", &unless);
        rig_run(rig, 40 * SECOND_US);
        if (!end->is_over || end->outcome != cases[i].outcome)
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
    rig_answers(rig, "DELETE", "/jobs/", 200, CANCELLED_BODY);
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
    char text[200];

    rig_job(rig, 7, "s", "RUNNING", "ns/uid.1");
    for (int i = 0; i < 2; i++) { /* the first try fails */
        rig_answers(rig, "DELETE", "/jobs/", i == 0 ? 403 : 200,
                    i == 0 ? rig_refusal(1, text) : CANCELLED_BODY);
        rig_reads_job(rig, 7, "RUNNING", "ns/uid.1");
        rig_do(rig, plan_slurm_give_back(&rig->plan, rig_shown(rig, "7"), "n1", 0, "a test"));
        rig_run(rig, MS_US);
        assert_int_equal(rig->ends[i].outcome, i == 0 ? KUBE_UNKNOWN : KUBE_DONE);
    }
    assert_int_equal(unit_of(rig)->misfit_count, 1);
    assert_string_equal(unit_of(rig)->misfits[0].name, "n1");
}

/* ---- cancels come before asks ---- */

static void ended(struct execution *execution, enum execution_end end)
{
    (void)execution;
    (void)end;
}

/* Each unit has a plan of its own. */
static struct execution *execute(struct rig *rig, struct executor *executor, struct plan *plan)
{
    struct execution *execution = arena_alloc(&rig->arena, sizeof(*execution));

    execution_begin(executor, execution, plan, ended);
    return execution;
}

static struct plan *new_plan(struct rig *rig)
{
    struct plan *plan = arena_alloc(&rig->arena, sizeof(*plan));

    plan_init(plan, &rig->arena);
    return plan;
}

/* More asks than a lane takes, and slurmctld answers none of them. */
static void a_cancel_is_sent_while_a_thousand_asks_wait(void **state)
{
    enum { ASKS = 1000 };
    struct rig *rig = *state;
    struct executor *executor = executor_new(&(struct executor_options){
        .loop = rig->loop, .metrics = rig->metrics, .max_in_flight = 64 });
    struct execution *executions[ASKS + 1];
    struct plan *plan = new_plan(rig);

    executor_add_lane(executor, &action_slurm, rig->executor);
    executor_add_lane(executor, &action_slurm_cancel, rig->executor);
    fake_answer(rig->fake, "POST", V45 "/job/submit", (struct fake_answer){ .times = ASKS });
    for (int i = 0; i < ASKS; i++) {
        struct plan *asks = new_plan(rig);
        char key[32];

        snprintf(key, sizeof(key), "ns/u%d", i);
        plan_slurm_submit(
            asks, &(struct submit_request){ .key = str_of(key), .attempt = 1, .job = &rig->job });
        executions[i] = execute(rig, executor, asks);
    }
    rig_run(rig, MS_US);
    rig_job(rig, 7, "s", "RUNNING", "ns/uid.1");
    rig_reads_job(rig, 7, "CANCELLED", "ns/uid.1");
    rig_answers(rig, "DELETE", "/jobs/", 200, CANCELLED_BODY);
    plan_slurm_cancel(plan, rig_shown(rig, "7"), NULL, "a test");
    executions[ASKS] = execute(rig, executor, plan);
    rig_run(rig, MS_US);
    assert_int_equal(rig_sent(rig, "DELETE", "/jobs/"), 1);
    for (int i = 0; i < ASKS; i++)
        execution_give_up(executions[i]);
    executor_free(executor);
}

/* ---- a clean stop ---- */

/* What is not answered may take effect until the token of the cancel has expired. */
static void a_cancel_without_an_answer_may_take_effect_until_the_fence(void **state)
{
    struct rig *rig = *state;
    char text[200];

    job_runs(rig, 7, "ns/uid.1", "RUNNING");
    fake_answer(
        rig->fake, "DELETE", V45 "/jobs/",
        (struct fake_answer){ .status = 403, .body = rig_refusal(1, text), .delay_us = 500 });
    assert_false(slurm_executor_has_unanswered_cancels(rig->executor));
    cancel(rig, "7", NULL);
    rig_run(rig, 100);
    assert_true(slurm_executor_has_unanswered_cancels(rig->executor)); /* on its way */
    rig_run(rig, MS_US);
    assert_true(
        slurm_executor_has_unanswered_cancels(rig->executor)); /* answered by nobody who knows */
    rig_run(rig, 20 * SECOND_US);
    assert_false(slurm_executor_has_unanswered_cancels(rig->executor));
}

static void a_cancel_that_was_answered_or_not_sent_is_over(void **state)
{
    struct rig *rig = *state;

    job_runs(rig, 7, "ns/uid.1", "CANCELLED");
    rig_answers(rig, "DELETE", "/jobs/", 200, CANCELLED_BODY);
    cancel(rig, "7", NULL);
    rig_run(rig, MS_US);
    assert_false(slurm_executor_has_unanswered_cancels(rig->executor));
    job_runs(rig, 8, "ns/uid.2", "RUNNING");
    fake_answer(rig->fake, "DELETE", V45 "/jobs/",
                (struct fake_answer){ .class = ERR_UNAVAILABLE });
    cancel(rig, "8", NULL);
    rig_run(rig, MS_US);
    assert_false(slurm_executor_has_unanswered_cancels(rig->executor));
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
    const struct action_unless unless = {
        .resource = &kube_pods, .ns = "ns", .name = "pod", .uid = "uid"
    };
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
    slurm_executor_free(rig->executor);
    rig->executor = NULL;
    for (size_t i = 0; i < rig->started; i++)
        assert_false(rig->ends[i].is_over);
}

/* ---- completing ---- */

#define COMPLETE "/agent/v1/job/7/complete"

static struct fake_transport *with_agent(struct rig *rig)
{
    struct fake_transport *agent = fake_transport_new(rig->loop);

    slurm_client_use_agent(rig->slurm, fake_http(agent));
    fake_answer(agent, "GET", "/agent/v1/ping",
                (struct fake_answer){ .status = 200,
                                      .body = "{\"slurm\":\"26.05.5\",\"slurmctld\":\"up\"}",
                                      .times = FAKE_ALWAYS });
    rig_run(rig, MS_US);
    return agent;
}

static const struct end *completes(struct rig *rig, uint32_t wait_status)
{
    return rig_do(rig, plan_slurm_complete(&rig->plan, rig_shown(rig, "7"), wait_status, "a test"));
}

static bool ends_by_cancel(const struct rig *rig)
{
    const struct unit_state *state = unit_states_get(rig->unit_states, STR("ns/uid"));

    return state && state->ends_by_cancel;
}

static void without_agent(struct rig *rig, struct fake_transport *agent)
{
    slurm_executor_free(rig->executor);
    rig->executor = NULL;
    slurm_poller_free(rig->poller);
    rig->poller = NULL;
    slurm_client_free(rig->slurm);
    rig->slurm = NULL;
    fake_transport_free(agent);
}

static void a_job_is_completed_by_the_agent_and_not_read(void **state)
{
    struct rig *rig = *state;
    struct fake_transport *agent = with_agent(rig);
    const struct end *end;

    rig_job(rig, 7, "sA", "RUNNING", "ns/uid.1");
    fake_answer(agent, "POST", COMPLETE,
                (struct fake_answer){ .status = 200, .body = "{\"errors\":[]}" });
    end = completes(rig, 512);
    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_DONE);
    assert_string_equal(fake_last_sent(agent)->body, "{\"sluid\":\"sA\",\"return_code\":512}");
    assert_int_equal(rig_sent(rig, "GET", "/job/"), 0);
    assert_true(rig_count(rig, "slinc_bridge_completes_total", "done", NULL) == 1);
    assert_false(ends_by_cancel(rig));
    assert_false(slurm_executor_has_unanswered_cancels(rig->executor));
    without_agent(rig, agent);
}

static void what_cannot_be_completed_is_cancelled_next(void **state)
{
    struct rig *rig = *state;
    struct fake_transport *agent = with_agent(rig);
    const struct end *end;

    rig_job(rig, 7, "sA", "RUNNING", "ns/uid.1");
    fake_answer(agent, "POST", COMPLETE, (struct fake_answer){ .status = 501, .body = "{}" });
    end = completes(rig, 0);
    rig_run(rig, MS_US);
    assert_true(end->is_over && end->outcome != KUBE_DONE);
    assert_true(ends_by_cancel(rig));
    without_agent(rig, agent);
}

static void a_complete_without_answer_may_take_effect_for_a_minute(void **state)
{
    struct rig *rig = *state;
    struct fake_transport *agent = with_agent(rig);
    const struct end *end;

    rig_job(rig, 7, "sA", "RUNNING", "ns/uid.1");
    fake_answer(agent, "POST", COMPLETE,
                (struct fake_answer){ .class = ERR_UNKNOWN, .delay_us = SECOND_US });
    end = completes(rig, 0);
    rig_run(rig, MS_US);
    assert_true(slurm_executor_has_unanswered_cancels(rig->executor));
    rig_run(rig, SECOND_US);
    assert_int_equal(end->outcome, KUBE_UNKNOWN);
    assert_false(ends_by_cancel(rig));
    rig_run(rig, 50 * SECOND_US);
    assert_true(slurm_executor_has_unanswered_cancels(rig->executor));
    rig_run(rig, 15 * SECOND_US);
    assert_false(slurm_executor_has_unanswered_cancels(rig->executor));
    without_agent(rig, agent);
}

static void another_job_under_the_id_is_not_completed(void **state)
{
    struct rig *rig = *state;
    struct fake_transport *agent = with_agent(rig);
    const struct end *end;
    struct action *action;

    rig_job(rig, 7, "sA", "RUNNING", "ns/uid.1");
    action = plan_slurm_complete(&rig->plan, rig_shown(rig, "7"), 0, "a test");
    rig_job(rig, 7, "sB", "RUNNING", "ns/other.1");
    end = rig_do(rig, action);
    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_CONFLICT);
    assert_int_equal(strcmp(fake_last_sent(agent)->path, COMPLETE) == 0, 0);
    without_agent(rig, agent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_job_is_cancelled_and_read),
        TEST(a_job_is_cancelled_by_its_sluid_where_that_is_known),
        TEST(a_slurm_that_takes_no_sluids_is_told_the_id),
        TEST(several_cancels_of_one_turn_are_one_call),
        TEST(a_status_that_names_nobody_is_believed_of_everybody),
        TEST(an_attempt_that_is_cancelled_is_given_up_also_of_a_group),
        TEST(a_failed_bulk_cancel_fails_each),
        TEST(a_job_is_only_cancelled_as_it_was_planned_on),
        TEST(a_job_of_another_cluster_is_never_cancelled),
        TEST(the_job_of_a_former_group_is_cancelled_when_both_lists_say_so),
        TEST(a_duplicate_is_counted),
        TEST(a_node_that_was_given_back_is_remembered_once),
        TEST(a_cancel_is_sent_while_a_thousand_asks_wait),
        TEST(a_cancel_without_an_answer_may_take_effect_until_the_fence),
        TEST(a_cancel_that_was_answered_or_not_sent_is_over),
        TEST(a_look_reads_the_job),
        TEST(an_update_is_sent_for_the_job_planned_on_only),
        TEST(an_actor_may_go_with_everything_under_way),
        TEST(a_job_is_completed_by_the_agent_and_not_read),
        TEST(what_cannot_be_completed_is_cancelled_next),
        TEST(a_complete_without_answer_may_take_effect_for_a_minute),
        TEST(another_job_under_the_id_is_not_completed),
    };

    return cmocka_run_group_tests_name("bridge executor_cancel", tests, NULL, NULL);
}
