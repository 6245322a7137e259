/* test_checks.c - what is found wrong with a site, and the line that mends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bridge/checks.h"

#include <string.h>

static struct bridge_config config = { .slurm_rest_api = "http://s:6820",
                                       .partition = "p",
                                       .trust = TRUST_OWN };

static const struct slurm_site good_site = { .scheduler_parameters = "bf_interval=5",
                                             .min_job_age_s = 300,
                                             .max_node_count = 100,
                                             .time = 1700000000,
                                             .skew_us = -2000000 };

static struct check_facts good_facts(void)
{
    return (struct check_facts){ .config = &config,
                                 .slurm_error = "",
                                 .version = 45,
                                 .site = &good_site,
                                 .job_visibility = SLURM_SEES_ALL,
                                 .job_visibility_why = "",
                                 .partitions_known = true,
                                 .partition_exists = true,
                                 .slurm_nodes = 10,
                                 .labelled_nodes = 10,
                                 .has_skew = true,
                                 .pods_read = true,
                                 .daemonsets_read = true };
}

static struct check_finding run(const char *name, const struct check_facts *facts)
{
    struct check_finding finding = { .result = CHECK_UNKNOWN };

    for (size_t i = 0; i < CHECK_COUNT; i++) {
        if (strcmp(checks_table[i].name, name) == 0) {
            checks_table[i].run(facts, &finding);
            return finding;
        }
    }
    fail_msg("no check %s", name);
    return finding;
}

static void a_good_site_has_nothing_to_mend(void **state)
{
    struct check_facts facts = good_facts();

    for (size_t i = 0; i < CHECK_COUNT; i++) {
        struct check_finding finding = run(checks_table[i].name, &facts);

        if (finding.result != CHECK_GOOD)
            fail_msg("%s: %s", checks_table[i].name, finding.what);
        assert_string_equal(finding.fix, "");
        assert_string_not_equal(finding.what, "");
    }
}

static void what_is_not_known_is_not_judged(void **state)
{
    struct check_facts facts = { .config = &config,
                                 .slurm_error = "refused",
                                 .job_visibility = SLURM_SIGHT_UNKNOWN,
                                 .job_visibility_why = "",
                                 .has_agent = true };

    for (size_t i = 2; i < CHECK_COUNT; i++) /* that nobody answers is known, and the config */
        assert_int_equal(run(checks_table[i].name, &facts).result, CHECK_UNKNOWN);
    facts.slurm_error = "";
    assert_int_equal(run("sees all jobs", &facts).result, CHECK_UNKNOWN);
    facts.job_visibility_why = "slurmctld does not tell its configuration";
    assert_int_equal(run("sees all jobs", &facts).result, CHECK_WARNS);
}

static void each_trouble_is_named_and_mended(void **state)
{
    static const struct slurm_site bad_site = { .min_job_age_s = 2,
                                                .max_node_count = 5,
                                                .inactive_limit_s = 30,
                                                .time = 1700000000,
                                                .skew_us = 40000000 };
    static const struct {
        const char *name;
        enum check_result result;
        const char *what, *fix;
    } cases[] = {
        { "slurmrestd", CHECK_BAD, "http://s:6820: no route", "DNS" },
        { "annotations", CHECK_WARNS, "any Slurm user", "trustAnnotations: own" },
        { "version", CHECK_BAD, "v0.0.43", "25.11" },
        { "sees all jobs", CHECK_BAD, "so no job is submitted: PrivateData", "SlurmUser" },
        { "partition", CHECK_BAD, "no partition p", "Nodeset=p Feature=p" },
        { "MaxNodeCount", CHECK_BAD, "10 nodes", "MaxNodeCount=20" },
        { "MinJobAge", CHECK_WARNS, "MinJobAge=2", "MinJobAge=300" },
        { "InactiveLimit", CHECK_WARNS, "InactiveLimit=30", "InactiveLimit=0" },
        { "scheduler cycles", CHECK_WARNS, "30 s", "`sched_interval=1,bf_interval=5`" },
        { "clock", CHECK_BAD, "differ by 7 s", "time synchronisation" },
        { "slurmctld's clock", CHECK_BAD, "40 s ahead of ours", "time synchronisation" },
        { "DaemonSets", CHECK_WARNS, "is given to Slurm, too", "`daemonsets`" },
        { "agent", CHECK_WARNS, "slurmrestd is: connection refused", "container `agent`" },
    };
    struct bridge_config trusting = config;
    struct check_facts facts = good_facts();

    trusting.trust = TRUST_ALL;
    facts.config = &trusting;
    facts.slurm_error = "no route";
    facts.version = 43;
    facts.site = &bad_site;
    facts.job_visibility = SLURM_SEES_PART;
    facts.job_visibility_why = "PrivateData has jobs";
    facts.partition_exists = false;
    facts.skew_us = -7000000;
    facts.daemonsets_read = false;
    facts.has_agent = true;
    facts.agent = (struct slurm_agent_status){ .is_known = true, .why = "connection refused" };
    assert_int_equal(sizeof(cases) / sizeof(cases[0]), CHECK_COUNT);
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        struct check_finding finding = run(cases[i].name, &facts);

        assert_int_equal(finding.result, cases[i].result);
        if (!strstr(finding.what, cases[i].what) || !strstr(finding.fix, cases[i].fix))
            fail_msg("%s: %s; %s", cases[i].name, finding.what, finding.fix);
    }
}

static void a_token_without_a_user_is_named_whatever_it_sees(void **state)
{
    struct check_facts facts = good_facts();

    facts.lacks_user = true;
    assert_int_equal(run("sees all jobs", &facts).result, CHECK_BAD);
    assert_non_null(strstr(run("sees all jobs", &facts).fix, "`jwtUser`"));
}

static void an_agent_is_used_only_beside_a_slurmrestd_of_its_version(void **state)
{
    struct check_facts facts = good_facts();

    facts.has_agent = true;
    facts.agent = (struct slurm_agent_status){
        .is_known = true, .is_up = true, .why = "", .version = "26.05.5"
    };
    assert_int_equal(run("agent", &facts).result, CHECK_GOOD);
    assert_non_null(strstr(run("agent", &facts).what, "26.05.5"));
    facts.version = 44;
    assert_int_equal(run("agent", &facts).result, CHECK_WARNS);
    assert_non_null(strstr(run("agent", &facts).what, "v0.0.44"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_site_has_nothing_to_mend),
        cmocka_unit_test(what_is_not_known_is_not_judged),
        cmocka_unit_test(each_trouble_is_named_and_mended),
        cmocka_unit_test(a_token_without_a_user_is_named_whatever_it_sees),
        cmocka_unit_test(an_agent_is_used_only_beside_a_slurmrestd_of_its_version),
    };

    return cmocka_run_group_tests_name("checks", tests, NULL, NULL);
}
