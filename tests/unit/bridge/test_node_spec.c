/* test_node_spec.c - the features of a node: its partitions, and what its labels say. The rest of
 * the spec is tested with the plan that uses it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bridge/nodes/node_spec.h"
#include "node_bench.h"

static const struct kube_object *node_of(const char *metadata)
{
    auto_buf struct buf text = { .max = MAX_TEXT };
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *object = NULL;
    struct err err = { .class = 0 };

    buf_printf(&text, "{'metadata':{'name':'n1','uid':'u','resourceVersion':'1',%s},'status':{}}",
               metadata);
    doc = bench_parse(buf_text(&text));
    if (kube_object_decode(&kube_node_kind, json_root(doc), &object, &err) < 0)
        fail_msg("%s: %s", err.text, metadata);
    return object;
}

#define PARTITIONS(list)                                                                           \
    "'annotations':{'scheduler.slinky.slurm.net/external-node-partitions':'" list "'}"
#define ZONE "topology.kubernetes.io/zone"
#define AVX  "feature.node.kubernetes.io/cpu-cpuid.AVX512F"

static void labels_become_features_beside_the_partitions(void **state)
{
    static const struct {
        const char *what, *config, *metadata, *want;
    } cases[] = {
        { "off", "", PARTITIONS("p1") ",'labels':{'" ZONE "':'eu-1a'}", "p1" },
        { "a value", "nodeFeatures: [" ZONE "]", PARTITIONS("p1") ",'labels':{'" ZONE "':'eu-1a'}",
          "p1,eu-1a" },
        { "in the order of the config", "nodeFeatures: [b, a]",
          PARTITIONS("p1") ",'labels':{'a':'1','b':'2'}", "p1,2,1" },
        { "without a partition", "nodeFeatures: [a]", "'labels':{'a':'x'}", "x" },
        { "no such label", "nodeFeatures: [a]", PARTITIONS("p1") ",'labels':{'b':'x'}", "p1" },
        { "true is the last part of the key", "nodeFeatures: [" AVX "]",
          "'labels':{'" AVX "':'true'}", "cpu-cpuid.AVX512F" },
        { "and so is nothing", "nodeFeatures: [a/gpu, plain]", "'labels':{'a/gpu':'','plain':''}",
          "gpu,plain" },
        { "false is none", "nodeFeatures: [" AVX "]", "'labels':{'" AVX "':'false'}", "" },
        { "each once", "nodeFeatures: [a, b, c]",
          PARTITIONS("p1") ",'labels':{'a':'x','b':'x','c':'p1'}", "p1,x" },
        { "what Slurm does not take is left out", "nodeFeatures: [a, b, c, d]",
          "'labels':{'a':'x,y','b':'x y','c':'-x','d':'z'}", "z" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct kube_object *node = node_of(cases[i].metadata);
        auto_arena struct arena arena;
        struct bridge_config config;
        struct bridge_world world = { .config = &config };
        struct node_spec spec;

        arena_init(&arena, MAX_TEXT);
        assert_int_equal(bridge_config_parse(str_of(cases[i].config), &config, NULL), 0);
        assert_false(node_spec_of(&world, kube_node_of(node), &arena, &spec));
        if (strcmp(spec.features, cases[i].want) != 0)
            fail_msg("%s: %s, not %s", cases[i].what, spec.features, cases[i].want);
        bridge_config_done(&config);
        kube_object_unref(node);
    }
}

static void only_partitions_must_be_there_in_slurm(void **state)
{
    struct slurm_node slurm = { .partitions = "all" };
    struct node_spec spec = { .partitions = "p1,nope", .features = "p1,nope,eu-1a" };
    struct bench bench;

    bench_up(&bench);
    assert_string_equal(node_spec_missing(&spec, &bench.world, &bench.arena), "nope");
    assert_string_equal(node_spec_outside(&spec, &slurm, &bench.arena), "p1");
    spec.partitions = "all";
    assert_null(node_spec_missing(&spec, &bench.world, &bench.arena));
    assert_null(node_spec_outside(&spec, &slurm, &bench.arena));
    bench_down(&bench);
}

static void a_node_moves_when_a_partition_comes_or_goes(void **state)
{
    static const struct {
        const char *wants, *has;
        bool same, moves;
    } cases[] = {
        { "p1,eu-1a", "p1,eu-1a", true, false },
        { "p1,eu-1a", "eu-1a,p1", true, false },
        { "p1,eu-1a", "p1", false, false },
        { "p1", "p1,eu-1a", false, false },
        { "p1,p2", "p1", false, true },
        { "p1", "p1,p2", false, true },
        { "p1,eu-1a", "p2,eu-1a", false, true },
        { "p1", "", false, true },
        { "", "p1", true, false }, /* names none, takes whatever there are */
    };
    struct bench bench;

    bench_up(&bench);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct node_spec spec = { .features = cases[i].wants };
        const struct slurm_node slurm = { .features = cases[i].has };

        if (node_spec_has_features_of(&spec, &slurm) != cases[i].same ||
            node_spec_moves(&spec, &slurm, &bench.world, &bench.arena) != cases[i].moves)
            fail_msg("wants \"%s\", has \"%s\"", cases[i].wants, cases[i].has);
    }
    bench_down(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_become_features_beside_the_partitions),
        cmocka_unit_test(only_partitions_must_be_there_in_slurm),
        cmocka_unit_test(a_node_moves_when_a_partition_comes_or_goes),
    };

    return cmocka_run_group_tests_name("node shape", tests, NULL, NULL);
}
