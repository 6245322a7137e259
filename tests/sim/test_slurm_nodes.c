/* test_slurm_nodes.c - the slurmctld model: changing jobs and nodes, and reading lists. */
#include "slurm_cluster.h"

/* ---- updates ---- */

static void a_pending_job_can_be_changed_and_a_running_one_a_little(void **state)
{
    struct cluster *cluster = *state;
    int64_t id = submit(cluster, JOB(",\"hold\":true"));

    assert_int_equal(call_job(cluster, "POST", id,
                              "{\"excluded_nodes\":[\"n1\"],\"admin_comment\":\"c\","
                              "\"time_limit\":{\"number\":7},\"hold\":false}"),
                     200);
    assert_string_equal(job(cluster, id).excluded_nodes, "n1");
    assert_int_equal(job(cluster, id).time_limit, 7);
    assert_int_equal(call_job(cluster, "POST", id, "{\"excluded_nodes\":[\"n9\"]}"), 422);
    assert_int_equal(number(cluster), 2018);
    assert_string_equal(job(cluster, id).excluded_nodes, "n1");
    pass(cluster, 2 * (int64_t)SECOND);
    assert_string_equal(job(cluster, id).nodes, "n2");
    assert_int_equal(call_job(cluster, "POST", id, "{\"excluded_nodes\":[\"n2\"]}"), 422);
    assert_int_equal(call_job(cluster, "POST", id, "{\"admin_comment\":\"d\"}"), 200);
    assert_string_equal(job(cluster, id).admin_comment, "d");
}

/* ---- nodes ---- */

static void a_range_is_made_whole_or_not_at_all_but_one_with_gres_halfway(void **state)
{
    struct cluster *cluster = *state;
    struct slurm_store_node view;

    assert_int_equal(call(cluster, "POST", V "new/node/",
                          "{\"node_conf\":\"NodeName=n[2-4] CPUs=4 State=EXTERNAL\"}"),
                     422);
    assert_int_equal(number(cluster), 2168);
    assert_false(slurm_store_find_node(cluster->store, "n3", &view));
    assert_int_equal(call(cluster, "POST", V "new/node/",
                          "{\"node_conf\":\"NodeName=g[1-2] CPUs=4 Gres=gpu:1 "
                          "GresConf=count=1,name=gpu State=EXTERNAL\"}"),
                     500);
    assert_true(slurm_store_find_node(cluster->store, "g1", &view));
    assert_false(slurm_store_find_node(cluster->store, "g2", &view));
    assert_int_equal(
        call(cluster, "POST", V "new/node/", "{\"node_conf\":\"NodeName=x CPUs=4 State=DOWN\"}"),
        422);
    assert_int_equal(number(cluster), 2028);
}

static void a_busy_node_stays_and_the_rest_of_its_range_goes(void **state)
{
    struct cluster *cluster = *state;
    struct slurm_store_node view;

    (void)running(cluster, JOB(""));
    assert_int_equal(call(cluster, "DELETE", V "node/n%5B1-2%5D", NULL), 422);
    assert_int_equal(number(cluster), 2016);
    assert_true(slurm_store_find_node(cluster->store, "n1", &view));
    assert_false(slurm_store_find_node(cluster->store, "n2", &view));
}

static void draining_keeps_who_and_why(void **state)
{
    struct cluster *cluster = *state;

    assert_int_equal(
        call(cluster, "POST", V "node/n1", "{\"state\":[\"DRAIN\"],\"reason\":\"ours\"}"), 200);
    assert_string_equal(node(cluster, "n1").state, "IDLE+EXTERNAL+DRAIN+DYNAMIC_NORM");
    assert_string_equal(node(cluster, "n1").reason, "ours");
    assert_string_equal(node(cluster, "n1").reason_user, "slurm");
    assert_int_equal(slurm_people_drain(cluster->store, "n2", "root", "disk", NULL), 0);
    assert_int_equal(allocate(cluster, JOB(",\"immediate\":true")), 422);
    assert_int_equal(call(cluster, "POST", V "nodes/",
                          "{\"name\":[\"n1\",\"n9\",\"n2\"],\"state\":[\"UNDRAIN\"]}"),
                     422);
    assert_int_equal(number(cluster), 2018);
    assert_false(node(cluster, "n2").is_drained); /* what could be done was */
    assert_int_equal(call(cluster, "POST", V "node/n1", "{\"features_act\":[\"no\"]}"), 422);
    assert_int_equal(number(cluster), 2031);
}

static void a_nodes_features_say_in_which_partitions_it_is(void **state)
{
    struct cluster *cluster = *state;

    assert_int_equal(call(cluster, "POST", V "node/n1", "{\"features\":[\"other\"]}"), 200);
    assert_int_equal(call(cluster, "GET", V "partition/bridge", NULL), 200);
    assert_true(str_is(json_str(json_at(json_item(json_get(body(cluster), "partitions"), 0),
                                        "nodes", "configured")),
                       "n2"));
    assert_int_equal(call(cluster, "GET", V "partition/no", NULL), 200);
    assert_null(json_get(body(cluster), "partitions"));
    assert_int_equal(json_len(json_get(body(cluster), "warnings")), 1);
    assert_int_equal(call(cluster, "GET", V "node/no", NULL), 200);
    assert_int_equal(number(cluster), 0);
}

static void reserved_nodes_are_for_jobs_of_the_reservation(void **state)
{
    struct cluster *cluster = *state;
    int64_t id;

    assert_int_equal(slurm_people_reserve(cluster->store, "r", "n1", "slurm", 60, NULL), 0);
    id = running(cluster, JOB(""));
    assert_string_equal(job(cluster, id).nodes, "n2");
    id = running(cluster, JOB(",\"reservation\":\"r\""));
    assert_string_equal(job(cluster, id).nodes, "n1");
    assert_int_equal(call(cluster, "GET", V "reservations/", NULL), 200);
    assert_int_equal(json_len(json_get(body(cluster), "reservations")), 1);
    assert_int_equal(slurm_people_unreserve(cluster->store, "r", NULL), 0);
}

/* ---- lists ---- */

static void an_unchanged_list_is_304_and_of_jobs_an_empty_one_at_time_0(void **state)
{
    struct cluster *cluster = *state;
    char path[80];
    static const char *const kinds[] = { "nodes", "partitions", "reservations", "jobs" };

    pass(cluster, 5 * (int64_t)SECOND);
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(path, sizeof(path), V "%s/?update_time=%lld", kinds[i],
                       (long long)clock_wall_us(&cluster->clock) / SECOND);
        assert_int_equal(call(cluster, "GET", path, NULL), i < 3 ? 304 : 200);
    }
    assert_int_equal(json_len(json_get(body(cluster), "jobs")), 0);
    assert_int_equal(json_i64_or(json_at(body(cluster), "last_update", "number"), 5), 0);
    (void)submit(cluster, JOB("")); /* in the same second: counts as changed */
    assert_int_equal(call(cluster, "GET", path, NULL), 200);
    assert_int_equal(json_len(json_get(body(cluster), "jobs")), 1);
}

static void states_are_short_and_leave_unknown_ids_out(void **state)
{
    struct cluster *cluster = *state;

    (void)submit(cluster, JOB(""));
    assert_int_equal(call(cluster, "GET", V "jobs/state/?job_id=1&job_id=77", NULL), 200);
    assert_int_equal(json_len(json_get(body(cluster), "jobs")), 1);
    assert_int_equal(call(cluster, "GET", V "jobs/state/?job_id=1,2", NULL), 500);
    assert_string_equal(cluster->answer.content_type, "text/plain");
}

static void private_jobs_are_hidden_from_others(void **state)
{
    struct cluster *cluster = *state;

    slurm_store_free(cluster->store);
    cluster->store =
        slurm_store_new(&cluster->clock, &(struct slurm_store_options){ .private_data = "jobs" });
    assert_int_equal(call(cluster, "POST", V "new/node/",
                          "{\"node_conf\":\"NodeName=n1 CPUs=4 RealMemory=200 State=EXTERNAL\"}"),
                     200);
    (void)submit(cluster, "{\"job\":{\"flags\":[\"EXTERNAL_JOB\"]}}");
    cluster->user = "anna";
    assert_int_equal(call(cluster, "GET", V "jobs/", NULL), 200);
    assert_int_equal(json_len(json_get(body(cluster), "jobs")), 0);
    assert_int_equal(call_job(cluster, "GET", 1, NULL), 404);
}

static void conf_tells_of_the_boot_and_the_next_id(void **state)
{
    struct cluster *cluster = *state;
    int64_t boot;

    (void)submit(cluster, JOB(""));
    assert_int_equal(call(cluster, "GET", V "conf", NULL), 200);
    boot = json_i64_or(json_at(body(cluster), "slurm_conf_meta", "BOOT_TIME"), 0);
    assert_int_equal(
        json_i64_or(json_at(body(cluster), "slurm_conf_meta", "NEXT_JOB_ID", "number"), 0), 2);
    pass(cluster, 10 * (int64_t)SECOND);
    slurm_store_shut_down(cluster->store);
    slurm_store_start(cluster->store);
    assert_int_equal(call(cluster, "GET", V "conf", NULL), 200);
    assert_int_equal(json_i64_or(json_at(body(cluster), "slurm_conf_meta", "BOOT_TIME"), 0),
                     boot + 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pending_job_can_be_changed_and_a_running_one_a_little),
        TEST(a_range_is_made_whole_or_not_at_all_but_one_with_gres_halfway),
        TEST(a_busy_node_stays_and_the_rest_of_its_range_goes),
        TEST(draining_keeps_who_and_why),
        TEST(a_nodes_features_say_in_which_partitions_it_is),
        TEST(reserved_nodes_are_for_jobs_of_the_reservation),
        TEST(an_unchanged_list_is_304_and_of_jobs_an_empty_one_at_time_0),
        TEST(states_are_short_and_leave_unknown_ids_out),
        TEST(private_jobs_are_hidden_from_others),
        TEST(conf_tells_of_the_boot_and_the_next_id),
    };

    return cmocka_run_group_tests_name("slurm_nodes", tests, NULL, NULL);
}
