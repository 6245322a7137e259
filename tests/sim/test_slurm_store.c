/* test_slurm_store.c - the slurmctld model: who may ask, what is refused, when jobs start and how
 * they end. */
#include "slurm_cluster.h"

/* ---- who asks, and for what ---- */

static void what_slurmrestd_does_not_know_is_plain_text(void **state)
{
    struct cluster *cluster = *state;
    struct slurm_store_request nobody = { .method = "GET", .target = STR(V "nodes/") };

    assert_int_equal(call(cluster, "GET", "/slurm/v0.0.46/nodes/", NULL), 404);
    assert_string_equal(cluster->answer.content_type, "text/plain");
    assert_int_equal(call(cluster, "PUT", V "nodes/", NULL), 404);
    assert_int_equal(call(cluster, "GET", "/slurm/v0.0.44/conf", NULL), 404);
    assert_int_equal(call(cluster, "GET", V "node/n[1-2]", NULL), 404);
    assert_int_equal(call(cluster, "POST", V "job/submit", "{bad"), 400);
    assert_string_equal(cluster->answer.content_type, "text/plain");
    slurm_store_serve(cluster->store, &nobody, &cluster->answer);
    assert_int_equal(cluster->answer.status, 401);
}

static void a_token_that_does_not_count_is_511_but_for_a_ping(void **state)
{
    struct cluster *cluster = *state;

    cluster->lifetime_s = 5;
    assert_int_equal(call(cluster, "GET", V "nodes/", NULL), 200);
    cluster->lifetime_s = 0;

    struct slurm_store_request request = { .method = "GET",
                                           .target = STR(V "nodes/"),
                                           .token = STR("aaaa.bbbb.cccc") };

    slurm_store_serve(cluster->store, &request, &cluster->answer);
    assert_int_equal(cluster->answer.status, 511);
    request.target = STR(V "ping/");
    slurm_store_serve(cluster->store, &request, &cluster->answer);
    assert_int_equal(cluster->answer.status, 200);
    assert_non_null(strstr(buf_text(&cluster->answer.body), "\"responding\":false"));
}

static void nodes_are_made_by_slurm_alone_and_jobs_are_their_owners(void **state)
{
    struct cluster *cluster = *state;
    int64_t id = running(cluster, JOB(""));

    cluster->user = "anna";
    assert_int_equal(call(cluster, "POST", V "node/n1", "{\"comment\":\"x\"}"), 422);
    assert_int_equal(number(cluster), 2010);
    assert_int_equal(call_job(cluster, "POST", id, "{\"comment\":\"x\"}"), 422);
    assert_int_equal(number(cluster), 2010);
    assert_int_equal(call_job(cluster, "DELETE", id, NULL), 403);
    assert_int_equal(slurm_store_ctld(cluster->store), SLURM_CTLD_STOPPED); /* it hangs */
}

static void assert_owner(struct cluster *cluster, int64_t id, int64_t user, int64_t group)
{
    const struct json *job;

    assert_int_equal(call_job(cluster, "GET", id, NULL), 200);
    job = json_item(json_get(body(cluster), "jobs"), 0);
    assert_int_equal(json_i64_or(json_get(job, "user_id"), -1), user);
    assert_int_equal(json_i64_or(json_get(job, "group_id"), -1), group);
}

static void a_job_that_slurm_asks_for_in_a_users_name_is_the_users(void **state)
{
    struct cluster *cluster = *state;
    int64_t id = submit(cluster, JOB(",\"user_id\":\"1234\""));

    assert_string_equal(job(cluster, id).asked_by, "slurm");
    assert_owner(cluster, id, 1234, 401);
    assert_owner(cluster, submit(cluster, JOB(",\"user_id\":\"daemon\",\"group_id\":\"2\"")), 1, 2);
}

static void an_allocation_is_the_askers_whoever_it_names(void **state)
{
    struct cluster *cluster = *state;
    const char *ask = JOB(",\"immediate\":true,\"user_id\":\"daemon\",\"group_id\":\"bin\"");

    assert_int_equal(allocate(cluster, ask), 200);
    assert_owner(cluster, json_i64_or(json_get(body(cluster), "job_id"), 0), 401, 401);
    cluster->user = "daemon";
    assert_int_equal(allocate(cluster, ask), 200);
    assert_owner(cluster, json_i64_or(json_get(body(cluster), "job_id"), 0), 1, 1);
}

static void only_operators_submit_for_others(void **state)
{
    struct cluster *cluster = *state;

    cluster->user = "daemon";
    assert_int_equal(call(cluster, "POST", V "job/submit", JOB(",\"user_id\":\"bin\"")), 422);
    assert_int_equal(number(cluster), 2010);
    assert_int_equal(call(cluster, "POST", V "job/submit", JOB(",\"group_id\":\"bin\"")), 422);
    assert_int_equal(number(cluster), 2113);
    assert_owner(cluster, submit(cluster, JOB(",\"user_id\":\"1\",\"group_id\":\"daemon\"")), 1, 1);
}

static void before_26_05_a_refusal_is_500(void **state)
{
    struct cluster *cluster = *state;

    slurm_store_free(cluster->store);
    cluster->store = slurm_store_new(
        &cluster->clock, &(struct slurm_store_options){
                             .seed = 7, .jwt_key = str_of(key), .refuses_with_500 = true });
    assert_int_equal(call(cluster, "POST", V "job/submit", JOB("")), 500);
    assert_int_equal(number(cluster), 2000);
    assert_int_equal(call(cluster, "POST", V "job/submit", "{\"job\":{}}"), 422);
    assert_int_equal(number(cluster), 9000);
    assert_int_equal(call(cluster, "DELETE", "/slurm/v0.0.44/jobs/", "{\"jobs\":[\"s1\"]}"), 500);
    assert_int_equal(number(cluster), 2137);
}

static void a_site_plugin_rewrites_comments_and_leaves_extra(void **state)
{
    struct cluster *cluster = *state;
    int64_t id;

    slurm_store_free(cluster->store);
    cluster->store = slurm_store_new(
        &cluster->clock, &(struct slurm_store_options){
                             .seed = 7, .jwt_key = str_of(key), .rewrites_comments = true });
    assert_int_equal(
        slurm_people_add_partition(cluster->store,
                                   &(struct slurm_people_partition){ .name = "bridge" }, NULL),
        0);
    assert_int_equal(
        slurm_people_add_nodes(
            cluster->store,
            &(struct slurm_people_node){ .names = "n1", .external = true, .memory = 8000 }, NULL),
        0);
    id = submit(cluster, JOB(",\"admin_comment\":\"{}\",\"extra\":\"u c\""));
    assert_string_equal(job(cluster, id).admin_comment, "seen by the site");
    assert_int_equal(call_job(cluster, "POST", id, "{\"admin_comment\":\"{}\"}"), 200);
    assert_string_equal(job(cluster, id).admin_comment, "seen by the site");
    assert_string_equal(job(cluster, id).extra, "u c");
    pass(cluster, 2 * (int64_t)SECOND);
    assert_string_equal(job(cluster, id).nodes, "n1");
}

/* ---- refusals ---- */

static const struct {
    const char *what, *ask;
    int status, number;
} refusals[] = {
    { "partition", "{\"job\":{\"partition\":\"no\",\"flags\":[\"EXTERNAL_JOB\"]}}", 422, 2000 },
    { "excluded node", JOB(",\"excluded_nodes\":[\"n9\"]"), 422, 2018 },
    { "required node", JOB(",\"required_nodes\":[\"n9\"]"), 422, 2018 },
    { "feature", JOB(",\"constraints\":\"no\""), 422, 2029 },
    { "gres", JOB(",\"tres_per_node\":\"gres/no:1\""), 422, 2072 },
    { "gres that no node has", JOB(",\"tres_per_node\":\"gres/gpu:1\""), 422, 2014 },
    { "license", JOB(",\"licenses\":\"no:1\""), 422, 2048 },
    { "reservation", JOB(",\"reservation\":\"no\""), 422, 2053 },
    { "cores", JOB(",\"cpus_per_task\":5"), 422, 2014 },
    { "script", JOB(",\"script\":\"#!/bin/sh\""), 500, 2189 },
    { "array", JOB(",\"array\":\"0-3\""), 422, 2081 },
    { "flag", "{\"job\":{\"flags\":[\"NO\"]}}", 500, 9207 },
    { "no script", "{\"job\":{}}", 422, 9000 },
    { "user", JOB(",\"user_id\":\"nosuch\""), 422, 2166 },
    { "group", JOB(",\"user_id\":\"nosuch\",\"group_id\":\"nosuch\""), 422, 2164 },
};

static void a_job_that_cannot_be_is_refused_with_slurms_number(void **state)
{
    struct cluster *cluster = *state;

    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        print_message("# %s\n", refusals[i].what);
        assert_int_equal(call(cluster, "POST", V "job/submit", refusals[i].ask),
                         refusals[i].status);
        assert_int_equal(number(cluster), refusals[i].number);
    }
}

static void extra_holds_1024_bytes(void **state)
{
    struct cluster *cluster = *state;
    char text[1200];

    for (int length = 1024; length <= 1025; length++) {
        (void)snprintf(text, sizeof(text), JOB(",\"extra\":\"%0*d\""), length, 0);
        assert_int_equal(call(cluster, "POST", V "job/submit", text), length == 1024 ? 200 : 422);
    }
    assert_int_equal(number(cluster), 2012);
}

static void more_jobs_than_maxjobcount_are_refused(void **state)
{
    struct cluster *cluster = *state;

    (void)submit(cluster, JOB(""));
    slurm_people_set_max_jobs(cluster->store, 1);
    assert_int_equal(call(cluster, "POST", V "job/submit", JOB("")), 422);
    assert_int_equal(number(cluster), 2007);
}

static void more_than_the_partition_has_waits_for_ever(void **state)
{
    struct cluster *cluster = *state;
    int64_t id = submit(cluster, JOB(",\"minimum_nodes\":3"));

    assert_int_equal(json_len(json_get(body(cluster), "warnings")), 2);
    assert_string_equal(job(cluster, id).reason, "PartitionConfig");
    pass(cluster, 60 * (int64_t)SECOND);
    assert_string_equal(job(cluster, id).reason, "PartitionNodeLimit");
}

/* ---- starting ---- */

static void a_submitted_job_starts_between_300_ms_and_a_second_later(void **state)
{
    struct cluster *cluster = *state;
    int64_t id = submit(cluster, JOB(",\"extra\":\"u-1\",\"admin_comment\":\"{}\""));

    pass(cluster, 299 * 1000);
    assert_string_equal(job(cluster, id).state, "PENDING");
    pass(cluster, 702 * 1000);
    assert_string_equal(job(cluster, id).state, "RUNNING");
    assert_string_equal(job(cluster, id).nodes, "n1");
    assert_string_equal(job(cluster, id).extra, "u-1");
    assert_true(slurm_store_is_on(cluster->store, id, "n1"));
    assert_int_equal(cluster->events[SLURM_JOB_STARTED], 1);
}

static void an_allocation_is_decided_in_the_call(void **state)
{
    struct cluster *cluster = *state;
    int64_t id;

    assert_int_equal(allocate(cluster, JOB(",\"immediate\":true,\"cpus_per_task\":4")), 200);
    id = json_i64_or(json_get(body(cluster), "job_id"), 0);
    assert_string_equal(job(cluster, id).state, "RUNNING");
    assert_int_equal(allocate(cluster, JOB(",\"immediate\":true,\"cpus_per_task\":4")), 200);
    assert_int_equal(allocate(cluster, JOB(",\"immediate\":true")), 422);
    assert_int_equal(number(cluster), 2016);
    assert_string_equal(job(cluster, id + 2).state, "FAILED"); /* a record is left */
}

static void an_allocation_behind_a_waiting_job_has_no_chance(void **state)
{
    struct cluster *cluster = *state;

    (void)running(cluster, JOB(",\"cpus_per_task\":4"));
    (void)running(cluster, JOB(",\"cpus_per_task\":3"));
    (void)running(cluster, JOB(",\"cpus_per_task\":2")); /* waits */
    assert_int_equal(allocate(cluster, JOB(",\"immediate\":true")), 422);
    assert_int_equal(number(cluster), 2013);
}

static void a_job_that_must_wait_says_why(void **state)
{
    struct cluster *cluster = *state;
    int64_t first, second, held;

    (void)running(cluster, JOB(",\"minimum_nodes\":2,\"shared\":[\"none\"]"));
    first = running(cluster, JOB(",\"time_limit\":{\"set\":true,\"number\":5}"));
    second = running(cluster, JOB(""));
    held = running(cluster, JOB(",\"hold\":true"));
    assert_string_equal(job(cluster, first).reason, "Resources");
    assert_string_equal(job(cluster, second).reason, "Priority");
    assert_string_equal(job(cluster, held).reason, "JobHeldUser");
    assert_int_equal(slurm_people_drain(cluster->store, "n2", "root", "broken", NULL), 0);
    first = running(cluster, JOB(",\"required_nodes\":[\"n2\"]"));
    assert_string_equal(job(cluster, first).reason, "ReqNodeNotAvail");
}

static void the_end_of_an_external_job_wakes_nobody_until_backfill(void **state)
{
    struct cluster *cluster = *state;
    int64_t first = running(cluster, JOB(",\"minimum_nodes\":2,\"shared\":[\"none\"]"));
    int64_t second = running(cluster, JOB(""));

    assert_int_equal(call_job(cluster, "DELETE", first, NULL), 200);
    assert_string_equal(job(cluster, first).state, "CANCELLED");
    assert_false(job(cluster, first).holds_nodes);
    pass(cluster, SECOND);
    assert_string_equal(job(cluster, second).state, "PENDING");
    pass(cluster, 30 * (int64_t)SECOND);
    assert_string_equal(job(cluster, second).state, "RUNNING");
}

static void priority_goes_before_age(void **state)
{
    struct cluster *cluster = *state;
    int64_t first = running(cluster, JOB(",\"minimum_nodes\":2,\"shared\":[\"none\"]"));
    int64_t low = submit(cluster, JOB(",\"minimum_nodes\":2,\"cpus_per_task\":3"));
    int64_t high = submit(
        cluster, JOB(",\"minimum_nodes\":2,\"cpus_per_task\":3,\"priority\":{\"number\":9}"));

    pass(cluster, 2 * (int64_t)SECOND);
    (void)call_job(cluster, "DELETE", first, NULL);
    pass(cluster, 31 * (int64_t)SECOND);
    assert_string_equal(job(cluster, high).state, "RUNNING");
    assert_string_equal(job(cluster, low).state, "PENDING");
}

static void a_short_job_is_backfilled_and_a_long_one_is_not(void **state)
{
    struct cluster *cluster = *state;
    int64_t low, long_one, short_one;

    (void)running(cluster, JOB(",\"required_nodes\":[\"n1\"],\"shared\":[\"none\"],"
                               "\"time_limit\":{\"number\":60}"));
    low = submit(cluster, JOB(",\"minimum_nodes\":2,\"shared\":[\"none\"]"));
    long_one = submit(cluster, JOB(",\"time_limit\":{\"number\":90}"));
    short_one = submit(cluster, JOB(",\"time_limit\":{\"number\":30}"));
    pass(cluster, 40 * (int64_t)SECOND);
    assert_string_equal(job(cluster, low).state, "PENDING");
    assert_string_equal(job(cluster, long_one).state, "PENDING");
    assert_string_equal(job(cluster, short_one).state, "RUNNING");
}

static void jobs_share_a_node_core_by_core(void **state)
{
    struct cluster *cluster = *state;
    char path[60];
    int64_t id;

    (void)running(cluster, JOB(",\"cpus_per_task\":2"));
    id = running(cluster, JOB(""));
    (void)snprintf(path, sizeof(path), V "resources/%lld", (long long)id);
    assert_int_equal(call(cluster, "GET", path, NULL), 200);
    assert_true(str_is(
        json_str(json_at(json_item(json_get(body(cluster), "nodes"), 0), "core_bitmap")), "0x4"));
    assert_int_equal(node(cluster, "n1").alloc_cpus, 3);
    assert_int_equal(node(cluster, "n1").alloc_memory, 200);
    assert_int_equal(node(cluster, "n1").jobs, 2);
}

/* minimum_nodes and maximum_nodes win over nodes. */
static void a_range_of_nodes_gives_as_many_as_can_be_had(void **state)
{
    struct cluster *cluster = *state;
    int64_t id = running(cluster, JOB(",\"nodes\":\"2\",\"minimum_nodes\":1,"
                                      "\"maximum_nodes\":2,\"tasks_per_node\":1"));

    assert_string_equal(job(cluster, id).nodes, "n[1-2]");
    assert_int_equal(slurm_store_cpus_on(cluster->store, id, "n1"), 1);
    assert_int_equal(slurm_store_cpus_on(cluster->store, id, "n2"), 1);
    (void)running(cluster, JOB(",\"cpus_per_task\":3,\"required_nodes\":[\"n1\"]"));
    id = running(cluster, JOB(",\"minimum_nodes\":1,\"maximum_nodes\":2,\"tasks_per_node\":1"));
    assert_string_equal(job(cluster, id).nodes, "n2");
}

static void tasks_fill_one_node_before_the_next(void **state)
{
    static const struct {
        const char *ask;
        unsigned on_first, on_second;
    } cases[] = {
        { JOB(",\"tasks\":4,\"nodes\":\"1-2\""), 3, 1 },
        { JOB(",\"tasks\":6,\"nodes\":\"1-2\""), 4, 2 },
        { JOB(",\"tasks\":4,\"nodes\":\"2\",\"tasks_per_node\":2"), 2, 2 },
        { JOB(",\"tasks\":2,\"nodes\":\"2\",\"cpus_per_task\":2"), 2, 2 },
    };
    struct cluster *cluster = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t id = running(cluster, cases[i].ask);

        assert_int_equal(slurm_store_cpus_on(cluster->store, id, "n1"), cases[i].on_first);
        assert_int_equal(slurm_store_cpus_on(cluster->store, id, "n2"), cases[i].on_second);
        assert_int_equal(slurm_people_cancel(cluster->store, id, "root", NULL), 0);
        assert_int_equal(slurm_store_cpus_on(cluster->store, id, "n1"), 0);
    }
}

static void required_nodes_of_an_external_job_are_candidates(void **state)
{
    struct cluster *cluster = *state;
    int64_t id;

    (void)running(cluster, JOB(",\"shared\":[\"none\"]"));
    id = running(cluster, JOB(",\"required_nodes\":[\"n1\",\"n2\"],\"nodes\":\"1\""));
    assert_string_equal(job(cluster, id).nodes, "n2");
    id = running(cluster, JOB(",\"excluded_nodes\":[\"n2\"]"));
    assert_string_equal(job(cluster, id).state, "PENDING");
}

static void a_gres_is_given_once(void **state)
{
    struct cluster *cluster = *state;

    assert_int_equal(call(cluster, "POST", V "new/node/",
                          "{\"node_conf\":\"NodeName=g1 CPUs=8 RealMemory=8000 Gres=gpu:t4:2 "
                          "GresConf=count=2,name=gpu,type=t4 Feature=bridged State=EXTERNAL\"}"),
                     200);
    assert_int_equal(allocate(cluster, JOB(",\"immediate\":true,\"tres_per_node\":\"gpu:t4:2\"")),
                     200);
    assert_int_equal(allocate(cluster, JOB(",\"immediate\":true,\"tres_per_node\":\"gpu\"")), 422);
    assert_int_equal(number(cluster), 2016);
}

static void normal_jobs_never_go_to_external_nodes(void **state)
{
    struct cluster *cluster = *state;
    struct slurm_people_ask wish = { .user = "anna" };
    int64_t id;

    assert_int_equal(slurm_people_submit(cluster->store, &wish, NULL), -ERR_INVALID);
    assert_int_equal(
        slurm_people_add_nodes(cluster->store,
                               &(struct slurm_people_node){ .names = "w1", .cores = 4 }, NULL),
        0);
    id = slurm_people_submit(cluster->store, &wish, NULL);
    pass(cluster, 2 * (int64_t)SECOND);
    assert_string_equal(job(cluster, id).nodes, "w1");
    assert_int_equal(slurm_people_complete(cluster->store, id, 3, NULL), 0);
    assert_true(job(cluster, id).holds_nodes); /* completing */
    pass(cluster, SECOND);
    assert_string_equal(job(cluster, id).state, "FAILED");
    assert_false(job(cluster, id).holds_nodes);
}

/* ---- ends ---- */

static void a_time_limit_ends_a_job_and_age_makes_it_forgotten(void **state)
{
    struct cluster *cluster = *state;
    int64_t id = running(cluster, JOB(",\"time_limit\":{\"set\":true,\"number\":1}"));

    pass(cluster, 60 * (int64_t)SECOND);
    assert_string_equal(job(cluster, id).state, "TIMEOUT");
    pass(cluster, 298 * (int64_t)SECOND);
    assert_string_equal(job(cluster, id).state, "TIMEOUT");
    pass(cluster, 3 * (int64_t)SECOND);
    assert_int_equal(cluster->events[SLURM_JOB_FORGOTTEN], 1);
    assert_int_equal(call_job(cluster, "GET", id, NULL), 404);
    assert_int_equal(number(cluster), 2017);
}

static void cancelling_what_has_ended_is_told_in_the_status(void **state)
{
    struct cluster *cluster = *state;
    int64_t id = running(cluster, JOB(""));
    static const int64_t codes[] = { 0, 2021 };

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(call_job(cluster, "DELETE", id, NULL), 200);
        assert_int_equal(
            json_i64_or(json_at(json_item(json_get(body(cluster), "status"), 0), "error", "code"),
                        0),
            codes[i]);
    }
    assert_int_equal(call_job(cluster, "DELETE", 999, NULL), 200);
    assert_int_equal(
        json_i64_or(json_at(json_item(json_get(body(cluster), "status"), 0), "error", "code"), 0),
        2017);
    assert_int_equal(call_job(cluster, "POST", id, "{\"comment\":\"x\"}"), 422);
    assert_int_equal(number(cluster), 2084);
}

static void people_hold_release_requeue_suspend_and_preempt(void **state)
{
    struct cluster *cluster = *state;
    int64_t id = submit(cluster, JOB(""));

    assert_int_equal(slurm_people_hold(cluster->store, id, true, NULL), 0);
    pass(cluster, 60 * (int64_t)SECOND);
    assert_string_equal(job(cluster, id).reason, "JobHeldAdmin");
    assert_int_equal(slurm_people_release(cluster->store, id, NULL), 0);
    pass(cluster, 2 * (int64_t)SECOND);
    assert_string_equal(job(cluster, id).state, "RUNNING");
    assert_int_equal(slurm_people_suspend(cluster->store, id, NULL), 0);
    assert_string_equal(job(cluster, id).state, "SUSPENDED");
    assert_true(job(cluster, id).holds_nodes);
    assert_int_equal(slurm_people_resume(cluster->store, id, NULL), 0);
    assert_int_equal(slurm_people_requeue(cluster->store, id, false, NULL), 0);
    assert_string_equal(job(cluster, id).state, "PENDING");
    assert_int_equal(job(cluster, id).restarts, 1);
    assert_int_equal(cluster->events[SLURM_JOB_BACK], 1);
    pass(cluster, 2 * (int64_t)SECOND);
    assert_string_equal(job(cluster, id).state, "RUNNING");
    assert_int_equal(slurm_people_preempt(cluster->store, id, false, NULL), 0);
    assert_string_equal(job(cluster, id).state, "PREEMPTED");
    assert_int_equal(slurm_people_cancel(cluster->store, id, "root", NULL), -ERR_INVALID);
    assert_int_equal(slurm_people_cancel(cluster->store, 99, "root", NULL), -ERR_NOT_FOUND);
}

static void a_failed_node_ends_its_jobs(void **state)
{
    struct cluster *cluster = *state;
    int64_t id = running(cluster, JOB(""));

    assert_int_equal(slurm_people_fail_node(cluster->store, "n1", NULL), 0);
    assert_string_equal(job(cluster, id).state, "NODE_FAIL");
    assert_true(node(cluster, "n1").is_down);
    id = running(cluster, JOB(""));
    assert_string_equal(job(cluster, id).nodes, "n2");
    assert_int_equal(slurm_people_resume_node(cluster->store, "n1", NULL), 0);
    assert_false(node(cluster, "n1").is_down);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_slurmrestd_does_not_know_is_plain_text),
        TEST(a_token_that_does_not_count_is_511_but_for_a_ping),
        TEST(nodes_are_made_by_slurm_alone_and_jobs_are_their_owners),
        TEST(a_job_that_slurm_asks_for_in_a_users_name_is_the_users),
        TEST(an_allocation_is_the_askers_whoever_it_names),
        TEST(only_operators_submit_for_others),
        TEST(before_26_05_a_refusal_is_500),
        TEST(a_site_plugin_rewrites_comments_and_leaves_extra),
        TEST(a_job_that_cannot_be_is_refused_with_slurms_number),
        TEST(extra_holds_1024_bytes),
        TEST(more_jobs_than_maxjobcount_are_refused),
        TEST(more_than_the_partition_has_waits_for_ever),
        TEST(a_submitted_job_starts_between_300_ms_and_a_second_later),
        TEST(an_allocation_is_decided_in_the_call),
        TEST(an_allocation_behind_a_waiting_job_has_no_chance),
        TEST(a_job_that_must_wait_says_why),
        TEST(the_end_of_an_external_job_wakes_nobody_until_backfill),
        TEST(priority_goes_before_age),
        TEST(a_short_job_is_backfilled_and_a_long_one_is_not),
        TEST(jobs_share_a_node_core_by_core),
        TEST(a_range_of_nodes_gives_as_many_as_can_be_had),
        TEST(tasks_fill_one_node_before_the_next),
        TEST(required_nodes_of_an_external_job_are_candidates),
        TEST(a_gres_is_given_once),
        TEST(normal_jobs_never_go_to_external_nodes),
        TEST(a_time_limit_ends_a_job_and_age_makes_it_forgotten),
        TEST(cancelling_what_has_ended_is_told_in_the_status),
        TEST(people_hold_release_requeue_suspend_and_preempt),
        TEST(a_failed_node_ends_its_jobs),
    };

    return cmocka_run_group_tests_name("slurm_store", tests, NULL, NULL);
}
