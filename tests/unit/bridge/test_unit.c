/* test_unit.c - units as they are gathered: who of a group has no place in its job. */
#include "bridge/unit.h"
#include "worlds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Job 7 was lost with a slurmctld that was killed, and job 6, which had ended, is back. */
static const char world_text[] =
    "{\"groups\":[{\"kind\":\"podgroup\",\"name\":\"g\",\"size\":4}],\"pods\":["
    "{\"name\":\"here\",\"podgroup\":\"g\",\"node\":\"n1\",\"job\":7,\"running\":1},"
    "{\"name\":\"elsewhere\",\"podgroup\":\"g\",\"node\":\"n2\",\"job\":7,\"running\":1},"
    "{\"name\":\"lost\",\"podgroup\":\"g\",\"node\":\"n4\",\"job\":7,\"running\":1},"
    "{\"name\":\"late\",\"podgroup\":\"g\"},"
    "{\"name\":\"over\",\"podgroup\":\"g\",\"node\":\"n2\",\"job\":7,\"phase\":\"Succeeded\"}],"
    "\"nodes\":[{\"name\":\"n1\",\"slurm\":\"s1\"},{\"name\":\"n2\",\"slurm\":\"s2\"}],"
    "\"slurm_nodes\":[{\"name\":\"s1\"},{\"name\":\"s2\"},{\"name\":\"s3\"}],"
    "\"jobs\":[{\"id\":6,\"pod\":\"podgroup/g\",\"state\":\"RUNNING\",\"nodes\":\"s[1,3]\"},"
    "{\"id\":9,\"pod\":\"podgroup/other\",\"state\":\"RUNNING\",\"nodes\":\"s2\"}]}";

static void members_without_a_node_of_their_groups_job_are_left_over(void **state)
{
    static const struct {
        const char *pod;
        bool is_left_over;
    } cases[] = {
        { "here", false }, { "elsewhere", true }, { "lost", false },
        { "late", true },  { "over", false },
    };
    auto_json_doc struct json_doc *doc = NULL;
    struct small_world small;
    struct str key;

    assert_int_equal(json_parse(str_of(world_text), 1 << 16, &doc, NULL), 0);
    small_world_init(&small, json_root(doc));
    key = str_of(small_world_key(&small, "podgroup/g"));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct kube_object *pod = kube_cache_get(small.world.pods, "default", cases[i].pod);

        assert_non_null(pod);
        if (unit_is_left_over(&small.world, key, kube_pod_of(pod)) != cases[i].is_left_over)
            fail_msg("%s", cases[i].pod);
    }
    small_world_done(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_without_a_node_of_their_groups_job_are_left_over),
    };

    return cmocka_run_group_tests_name("unit", tests, NULL, NULL);
}
