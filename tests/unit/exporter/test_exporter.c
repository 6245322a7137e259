/* test_exporter.c - the exporter on virtual time in front of a scripted slurmrestd: what a scrape
 * costs, what is said when Slurm is away or hides something. */
#include "base/mem.h"
#include "exporter/exporter.h"
#include "fake_transport.h"
#include "lint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SECOND_US = 1000000 };

struct rig {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *fake;
    struct slurm_token *token;
    struct metrics *metrics;
    struct exporter *exporter;
    const char *private_data; /* a JSON array */
    const char *user;         /* of the token */
    bool is_down, runs;       /* runs: its job shares a node */
    bool conf_fails;          /* the rest is answered */
    bool is_old;              /* v0.0.44, which has no /conf */
    unsigned layouts_asked;
};

#define UPDATED "\"errors\":[],\"last_update\":{\"set\":true,\"number\":9}}"
#define JOB                                                                                        \
    "{\"job_id\":7,\"job_state\":[\"PENDING\"],\"partition\":\"a\",\"state_reason\":"              \
    "\"Resources\","                                                                               \
    "\"user_name\":\"anna\",\"tres_req_str\":\"cpu=4,node=2\"}"

static const char *body_for(struct rig *rig, const char *path)
{
    static char conf[512];

    if (strstr(path, "/conf")) {
        (void)snprintf(conf, sizeof(conf),
                       "{\"slurm_conf\":{\"PrivateData\":%s,\"SlurmUser\":\"slurm\","
                       "\"ClusterName\":\"c1\"},\"slurm_conf_meta\":{\"BOOT_TIME\":5,"
                       "\"NEXT_JOB_ID\":9,\"SLURM_VERSION\":\"26.05.5\"},\"errors\":[]}",
                       rig->private_data);
        return conf;
    }
    if (strstr(path, "/resources/")) {
        rig->layouts_asked++;
        return "{\"nodes\":[{\"node\":\"n1\",\"sockets_per_node\":1,\"cores_per_socket\":8,"
               "\"core_bitmap\":\"0xF0\"}],\"errors\":[]}";
    }
    if (strstr(path, "/slurmdb/"))
        return "{\"users\":[{\"name\":\"anna\",\"administrator_level\":[\"None\"]}],\"errors\":[]}";
    if (rig->runs && strstr(path, "/jobs/state/"))
        return "{\"jobs\":[{\"job_id\":\"7\",\"state\":[\"RUNNING\"]}],\"errors\":[]}";
    if (rig->runs && strstr(path, "/jobs/"))
        return "{\"jobs\":[{\"job_id\":7,\"job_state\":[\"RUNNING\"],\"partition\":\"a\","
               "\"nodes\":\"n1\",\"tres_alloc_str\":\"cpu=4,node=1\",\"start_time\":5}]," UPDATED;
    if (strstr(path, "/jobs/state/"))
        return "{\"jobs\":[{\"job_id\":\"7\",\"state\":[\"PENDING\"]}],\"errors\":[]}";
    if (strstr(path, "/jobs/"))
        return "{\"jobs\":[" JOB "]," UPDATED;
    if (strstr(path, "/nodes/"))
        return "{\"nodes\":[{\"name\":\"n1\",\"state\":[\"IDLE\"],\"cpus\":8,\"partitions\":[\"a\"]"
               "}]," UPDATED;
    if (strstr(path, "/partitions/"))
        return "{\"partitions\":[]," UPDATED;
    if (strstr(path, "/reservations/"))
        return "{\"reservations\":[]," UPDATED;
    if (strstr(path, "/diag/"))
        return "{\"statistics\":{\"server_thread_count\":3},\"errors\":[]}";
    if (strstr(path, "/licenses/"))
        return "{\"licenses\":[],\"errors\":[]}";
    return "{\"pings\":[{\"hostname\":\"c\"}],\"errors\":[]}";
}

static struct fake_answer serve(void *context, const struct fake_sent *sent)
{
    struct rig *rig = context;

    if (rig->is_down)
        return (struct fake_answer){ .status = 502,
                                     .body = "{\"errors\":[{\"error_number\":1800}]}" };
    if (rig->is_old && strstr(sent->path, "/v0.0.45/"))
        return (struct fake_answer){ .status = 404, .content_type = "text/plain", .ends = true };
    if (rig->conf_fails && strstr(sent->path, "/conf"))
        return (struct fake_answer){ .status = 500,
                                     .body = "{\"errors\":[{\"error_number\":1007}]}",
                                     .ends = true };
    return (struct fake_answer){
        .status = 200, .body = body_for(rig, sent->path), .delay_us = 2000, .ends = true
    };
}

static int set_up(void **state)
{
    struct rig *rig = mem_alloc(sizeof(*rig));

    clock_init_virtual(&rig->clock, INT64_C(1700000000) * SECOND_US);
    rig->loop = loop_new_virtual(&rig->clock);
    rig->fake = fake_transport_new(rig->loop);
    rig->metrics = metrics_new();
    rig->private_data = "[]";
    rig->user = "slurm";
    fake_serve(rig->fake, serve, rig);
    *state = rig;
    return 0;
}

static void start(struct rig *rig)
{
    const struct exporter_options options = { .source = { .seed = 1 } };

    assert_int_equal(slurm_token_new_minted(&rig->clock, STR("0123456789abcdef0123456789abcdef"),
                                            rig->user, 900, &rig->token, NULL),
                     0);
    rig->exporter =
        exporter_new(rig->loop, fake_http(rig->fake), rig->token, rig->metrics, &options);
    exporter_start(rig->exporter);
    fake_run_for(rig->fake, 2 * SECOND_US);
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    exporter_free(rig->exporter);
    metrics_free(rig->metrics);
    slurm_token_free(rig->token);
    fake_transport_free(rig->fake);
    loop_free(rig->loop);
    mem_free(rig);
    return 0;
}

static bool shows(struct rig *rig, const char *text)
{
    struct err err = { .class = 0 };
    struct str page;

    assert_int_equal(exporter_page(rig->exporter, EXPORTER_CLUSTER, &page, &err), 0);
    if (lint_page(page, false, &err) < 0)
        fail_msg("%s", err.text);
    return strstr(page.at, text) != NULL;
}

static void a_scrape_costs_slurm_nothing(void **state)
{
    struct rig *rig = *state;
    struct err err = { .class = 0 };
    struct str page;
    size_t before;

    start(rig);
    before = fake_sent_count(rig->fake);
    for (unsigned i = 0; i < 100; i++)
        for (unsigned k = 0; k < EXPORTER_PAGES; k++)
            assert_int_equal(exporter_page(rig->exporter, (enum exporter_page)k, &page, &err), 0);
    assert_int_equal(fake_sent_count(rig->fake), before);
    assert_true(shows(rig, "slinc_pending_nodes{partition=\"a\",class=\"resources\"} 2\n"));
    assert_true(
        shows(rig, "slinc_slurm_info{cluster=\"c1\",version=\"26.05.5\",parser=\"v0.0.45\"} 1\n"));
    assert_true(shows(rig, "slinc_slurm_up{kind=\"licenses\"} 1\n"));
    assert_true(shows(rig, "slinc_slurm_restricted{by=\"jobs\"} 0\n"));
    assert_true(shows(rig, "slinc_slurm_request_duration_seconds_count{kind=\"nodes\"}"));
}

static void the_cores_of_a_job_are_asked_for_once_and_only_for_the_page(void **state)
{
    struct rig *rig = *state;
    struct layouts *layouts;
    struct tally_health health;
    struct tally_view view;
    const struct layout_node *found;

    rig->runs = true;
    start(rig);
    assert_int_equal(rig->layouts_asked, 0);
    exporter_free(rig->exporter);
    slurm_token_free(rig->token);
    assert_int_equal(slurm_token_new_minted(&rig->clock, STR("0123456789abcdef0123456789abcdef"),
                                            rig->user, 900, &rig->token, NULL),
                     0);
    rig->exporter = exporter_new(rig->loop, fake_http(rig->fake), rig->token, rig->metrics,
                                 &(struct exporter_options){ .source = { .seed = 1 } });
    layouts = source_layouts(exporter_source(rig->exporter));
    exporter_start(rig->exporter);
    fake_run_for(rig->fake, 90 * SECOND_US);
    assert_int_equal(rig->layouts_asked, 1);
    source_view(exporter_source(rig->exporter), &health, &view);
    found = layouts_find(layouts, slurm_job_of(slurm_cache_get(view.jobs, "7")), "n1");
    assert_non_null(found);
    assert_int_equal(bitmap_count(&found->cores), 4);
    assert_true(bitmap_test(&found->cores, 4));
}

static void while_slurm_is_away_its_families_vanish_and_its_age_grows(void **state)
{
    struct rig *rig = *state;

    start(rig);
    rig->is_down = true;
    fake_run_for(rig->fake, 30 * SECOND_US);
    assert_true(shows(rig, "slinc_cluster_jobs{state=\"pending\"} 1\n"));
    fake_run_for(rig->fake, 60 * SECOND_US);
    assert_false(shows(rig, "slinc_cluster_jobs"));
    assert_false(shows(rig, "slinc_nodes{"));
    assert_false(shows(rig, "slinc_controller_threads"));
    assert_true(shows(rig, "slinc_slurm_up{kind=\"jobs\"} 0\n"));
    assert_true(shows(rig, "slinc_slurm_age_seconds{kind=\"jobs\"} 9"));
    assert_true(shows(rig, "slinc_slurm_failures_total{"));
    rig->is_down = false;
    fake_run_for(rig->fake, 40 * SECOND_US);
    assert_true(shows(rig, "slinc_cluster_jobs{state=\"pending\"} 1\n"));
    assert_true(shows(rig, "slinc_slurm_up{kind=\"jobs\"} 1\n"));
}

static void private_jobs_are_said_to_be_hidden_and_not_shown_as_none(void **state)
{
    struct rig *rig = *state;

    rig->private_data = "[\"jobs\",\"users\"]";
    rig->user = "anna";
    start(rig);
    assert_true(shows(rig, "slinc_slurm_restricted{by=\"jobs\"} 1\n"));
    assert_true(shows(rig, "slinc_slurm_restricted{by=\"users\"} 1\n"));
    assert_true(shows(rig, "slinc_slurm_up{kind=\"jobs\"} 1\n"));
    assert_true(shows(rig, "slinc_nodes{partition=\"a\",state=\"idle\"} 1\n"));
    assert_false(shows(rig, "slinc_cluster_jobs"));
    assert_false(shows(rig, "slinc_pending_"));
    assert_false(shows(rig, "slinc_user_"));
}

static void slurms_own_user_sees_all_but_users_stay_private(void **state)
{
    struct rig *rig = *state;

    rig->private_data = "[\"jobs\",\"users\"]";
    start(rig);
    assert_true(shows(rig, "slinc_slurm_restricted{by=\"jobs\"} 0\n"));
    assert_true(shows(rig, "slinc_cluster_jobs{state=\"pending\"} 1\n"));
    assert_false(shows(rig, "slinc_user_"));
}

static void a_failed_read_of_the_configuration_shows_nothing_that_was_hidden(void **state)
{
    struct rig *rig = *state;

    rig->private_data = "[\"jobs\",\"users\",\"nodes\"]";
    rig->user = "anna";
    start(rig);
    rig->conf_fails = true;
    fake_run_for(rig->fake, 90 * SECOND_US);
    assert_true(shows(rig, "slinc_slurm_failures_total{kind=\"conf\""));
    assert_true(shows(rig, "slinc_slurm_up{kind=\"jobs\"} 1\n"));
    assert_true(shows(rig, "slinc_slurm_restricted{by=\"jobs\"} 1\n"));
    assert_true(shows(rig, "slinc_slurm_restricted{by=\"users\"} 1\n"));
    assert_false(shows(rig, "slinc_cluster_jobs"));
    assert_false(shows(rig, "slinc_nodes{"));
    assert_false(shows(rig, "slinc_user_"));
}

static void what_may_be_private_is_absent_until_the_configuration_was_read(void **state)
{
    struct rig *rig = *state;

    rig->conf_fails = true;
    start(rig);
    assert_true(shows(rig, "slinc_slurm_up{kind=\"jobs\"} 1\n"));
    assert_true(shows(rig, "slinc_slurm_restricted{by=\"unknown\"} 1\n"));
    assert_false(shows(rig, "slinc_cluster_jobs"));
    assert_false(shows(rig, "slinc_nodes{"));
    assert_false(shows(rig, "slinc_user_"));
    rig->conf_fails = false;
    fake_run_for(rig->fake, 10 * SECOND_US); /* it is asked again with the next poll */
    assert_true(shows(rig, "slinc_slurm_restricted{by=\"unknown\"} 0\n"));
    assert_true(shows(rig, "slinc_slurm_restricted{by=\"jobs\"} 0\n"));
    assert_true(shows(rig, "slinc_cluster_jobs{state=\"pending\"} 1\n"));
    assert_true(shows(rig, "slinc_user_jobs{user=\"anna\",state=\"pending\"} 1\n"));
}

static void a_slurm_without_configuration_to_read_is_shown_with_a_warning(void **state)
{
    struct rig *rig = *state;

    rig->is_old = true;
    start(rig);
    assert_true(shows(rig, "slinc_slurm_restricted{by=\"unknown\"} 1\n"));
    assert_true(shows(rig, "slinc_cluster_jobs{state=\"pending\"} 1\n"));
    assert_true(shows(rig, "slinc_user_jobs{user=\"anna\",state=\"pending\"} 1\n"));
}

static void what_is_hidden_depends_on_the_users_rights(void **state)
{
    struct slurm_site site = { .private_data = "nodes,reservations" };
    struct tally_health health = { .knows_hidden = false };

    (void)state;
    source_judge(&site, SLURM_SEES_PART, &health);
    assert_true(health.hides[HIDES_NODES] && health.hides[HIDES_RESERVATIONS]);
    assert_false(health.hides[HIDES_JOBS] || health.hides[HIDES_UNKNOWN]);
    source_judge(NULL, SLURM_SIGHT_UNKNOWN, &health);
    assert_true(health.hides[HIDES_UNKNOWN]);
    assert_false(health.hides[HIDES_NODES]);
    site.hides_jobs = true;
    source_judge(&site, SLURM_SEES_ALL, &health);
    assert_false(health.hides[HIDES_NODES] || health.hides[HIDES_JOBS]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_scrape_costs_slurm_nothing),
        TEST(the_cores_of_a_job_are_asked_for_once_and_only_for_the_page),
        TEST(while_slurm_is_away_its_families_vanish_and_its_age_grows),
        TEST(private_jobs_are_said_to_be_hidden_and_not_shown_as_none),
        TEST(slurms_own_user_sees_all_but_users_stay_private),
        TEST(a_failed_read_of_the_configuration_shows_nothing_that_was_hidden),
        TEST(what_may_be_private_is_absent_until_the_configuration_was_read),
        TEST(a_slurm_without_configuration_to_read_is_shown_with_a_warning),
        cmocka_unit_test(what_is_hidden_depends_on_the_users_rights),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
