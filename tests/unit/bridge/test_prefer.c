/* test_prefer.c - preferred terms of the node affinity in, an expression over features out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bridge/unit/prefer.h"
#include "bridge/unit/translate.h"
#include "codec/nodeselector.h"
#include "codec/yaml.h"

/* With a letter before it as long as the value of a label may be. */
#define LONG "01234567890123456789012345678901234567890123456789012345678901"

enum { MAX_PODS = 3, MAX_TEXT = 4 << 20 };

struct bench {
    struct clock clock;
    struct loop *loop;
    struct slurm_cache *nodes;
    struct bridge_config config;
    struct arena arena;
};

static void add_node(struct bench *bench, const char *json)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct slurm_object *object = NULL;
    struct slurm_merge *merge = slurm_merge_new(bench->nodes, 1);

    assert_int_equal(json_parse(str_of(json), MAX_TEXT, &doc, NULL), 0);
    assert_int_equal(slurm_object_decode(&slurm_node_kind, json_root(doc), &object, NULL), 0);
    slurm_merge_add(merge, object);
    assert_true(slurm_merge_commit(merge, NULL, NULL));
    slurm_merge_free(merge);
}

static int set_up(void **state)
{
    static struct bench bench;

    arena_init(&bench.arena, 64 << 20);
    clock_init_virtual(&bench.clock, INT64_C(1700000000) * 1000000);
    bench.loop = loop_new_virtual(&bench.clock);
    bench.nodes = slurm_cache_new(&slurm_node_kind, bench.loop, NULL);
    add_node(&bench, "{\"name\":\"n1\",\"features\":[\"p\",\"east\",\"nvme\"]}");
    add_node(&bench, "{\"name\":\"long\",\"features\":[\"a" LONG "\",\"b" LONG "\"]}");
    add_node(&bench, "{\"name\":\"n2\",\"features\":[\"p\",\"west\",\"m5.large\"]}");
    assert_int_equal(bridge_config_parse(STR("nodeFeatures: [example.org/zone, example.org/nvme, "
                                             "type]"),
                                         &bench.config, NULL),
                     0);
    *state = &bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    bridge_config_done(&bench->config);
    slurm_cache_free(bench->nodes);
    loop_free(bench->loop);
    arena_done(&bench->arena);
    return 0;
}

/* The pod's preferred terms are YAML; NULL: it has no affinity. */
static const struct kube_object *pod_with(struct bench *bench, const char *metadata,
                                          const char *terms)
{
    const char *affinity =
        terms ? arena_printf(&bench->arena,
                             "affinity: {nodeAffinity: "
                             "{preferredDuringSchedulingIgnoredDuringExecution: %s}}",
                             terms)
              : "";
    const char *text = arena_printf(&bench->arena,
                                    "metadata: {name: a, namespace: d, uid: u, resourceVersion: "
                                    "'1'%s}\nspec: {%s}\n",
                                    metadata, affinity);
    const struct kube_object *object = NULL;
    auto_json_doc struct json_doc *doc = NULL;
    struct err err = { 0 };

    if (yaml_parse_one(str_of(text), NULL, &doc, &err) < 0 ||
        kube_object_decode(&kube_pod_kind, json_root(doc), &object, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return object;
}

static const char *preferred(struct bench *bench, const char *const *terms, unsigned count)
{
    const struct kube_object *objects[MAX_PODS];
    const struct kube_pod *pods[MAX_PODS];
    struct prefer_from from = { &bench->config, bench->nodes, pods, count };
    const char *prefer;

    for (unsigned i = 0; i < count; i++) {
        objects[i] = pod_with(bench, "", terms[i]);
        pods[i] = kube_pod_of(objects[i]);
    }
    prefer = prefer_of(&from, &bench->arena);
    for (unsigned i = 0; i < count; i++)
        kube_object_unref(objects[i]);
    return prefer;
}

#define IN(key, values)      "{key: " key ", operator: In, values: [" values "]}"
#define TERM(weight, wishes) "{weight: " #weight ", preference: {matchExpressions: [" wishes "]}}"
#define ZONE(values)         IN("example.org/zone", values)
#define NVME(values)         IN("example.org/nvme", values)

static void the_heaviest_term_that_features_can_say_counts(void **state)
{
    static const struct {
        const char *terms, *want;
    } cases[] = {
        { NULL, "" },
        { "[" TERM(1, ZONE("west")) "]", "west" },
        { "[" TERM(1, ZONE("west, east")) "]", "(east|west)" },
        { "[" TERM(1, NVME("'true'")) "]", "nvme" },
        { "[" TERM(1, ZONE("west, east") "," NVME("'true'")) "]", "(east|west)&nvme" },
        { "[" TERM(1, IN("type", "m5.large")) "]", "m5.large" },
        /* of several */
        { "[" TERM(1, ZONE("west")) "," TERM(9, ZONE("east")) "," TERM(5, NVME("''")) "]", "east" },
        { "[" TERM(5, ZONE("west")) "," TERM(5, ZONE("east")) "]", "west" },
        { "[" TERM(9, IN("disk", "fast")) "," TERM(5, ZONE("east")) "]", "east" },
        { "[{weight: 9, preference: {matchFields: [" IN("metadata.name",
                                                        "n1") "]}}," TERM(1, ZONE("east")) "]",
          "east" },
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(preferred(bench, &cases[i].terms, 1), cases[i].want);
}

static void what_features_cannot_say_is_no_preference(void **state)
{
    static const char *const terms[] = {
        "[]",
        "[" TERM(1, "") "]",
        "[" TERM(1, IN("disk", "fast")) "]",
        "[" TERM(1, ZONE("west") "," IN("disk", "fast")) "]",
        "[" TERM(1, "{key: example.org/zone, operator: Exists}") "]",
        "[" TERM(1, "{key: example.org/zone, operator: NotIn, values: [west]}") "]",
        "[" TERM(1, "{key: example.org/zone, operator: DoesNotExist}") "]",
        "[" TERM(1, "{key: type, operator: Gt, values: ['1']}") "]",
        "[" TERM(1, NVME("'false'")) "]",
        "[" TERM(1, NVME("'true', 'false'")) "]",
        "[{weight: 1, preference: {matchExpressions: [" ZONE("west") "], matchFields: [" IN(
            "metadata.name", "n1") "]}}]",
        /* what the API server would not have let in */
        "[" TERM(0, ZONE("west")) "]",
        "[" TERM(-1, ZONE("west")) "]",
        "[" TERM(x, ZONE("west")) "]",
        "[{preference: {matchExpressions: [" ZONE("west") "]}}]",
        "[" TERM(1, IN("example.org/zone", "")) "]",
        "[" TERM(1, IN("example.org/zone", "'west|east'")) "]",
        "[" TERM(1, "west") "]",
        "[west]",
        "{}",
        "west",
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++)
        if (preferred(bench, &terms[i], 1)[0])
            fail_msg("%s: %s", terms[i], preferred(bench, &terms[i], 1));
}

static void features_that_no_node_has_are_not_named(void **state)
{
    static const struct {
        const char *terms, *want;
    } cases[] = {
        { "[" TERM(1, ZONE("north")) "]", "" },
        { "[" TERM(1, ZONE("north, west")) "]", "west" },
        { "[" TERM(1, ZONE("north, west, east")) "]", "(east|west)" },
        { "[" TERM(1, NVME("'true'") "," ZONE("north")) "]", "" },
        { "[" TERM(9, ZONE("north")) "," TERM(1, ZONE("west")) "]", "west" },
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(preferred(bench, &cases[i].terms, 1), cases[i].want);
    add_node(bench, "{\"name\":\"n3\",\"features\":[\"north\"]}");
    assert_string_equal(preferred(bench, &cases[0].terms, 1), "north");
}

static void pods_that_do_not_prefer_the_same_prefer_nothing(void **state)
{
    static const struct {
        const char *terms[MAX_PODS], *want;
    } cases[] = {
        { { "[" TERM(1, ZONE("west")) "]", "[" TERM(1, ZONE("west")) "]",
            "[" TERM(1, ZONE("west")) "]" },
          "west" },
        { { "[" TERM(1, ZONE("west")) "]", "[" TERM(7, ZONE("west")) "]",
            "[" TERM(5, ZONE("west")) "," TERM(1, ZONE("east")) "]" },
          "west" },
        { { "[" TERM(1, ZONE("west")) "]", "[" TERM(1, ZONE("west")) "]",
            "[" TERM(1, ZONE("east")) "]" },
          "" },
        { { "[" TERM(1, ZONE("west")) "]", "[" TERM(1, ZONE("west")) "]", NULL }, "" },
        { { NULL, "[" TERM(1, ZONE("west")) "]", "[" TERM(1, ZONE("west")) "]" }, "" },
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(preferred(bench, cases[i].terms, MAX_PODS), cases[i].want);
}

static void terms_without_end_are_no_preference(void **state)
{
    static const struct {
        const char *begin, *item, *end;
        unsigned fits, times; /* as many are read, and so many are not */
    } cases[] = {
        { "[", TERM(1, ZONE("west")), "]", NODESELECTOR_MAX_TERMS, NODESELECTOR_MAX_TERMS + 1 },
        { "[{weight: 1, preference: {matchExpressions: [", ZONE("west"), "]}}]", 64, 65 },
        { "[{weight: 1, preference: {matchExpressions: [", ZONE("west, east"), "]}}]", 32, 33 },
        { "[", TERM(9, ZONE("north")), "," TERM(1, ZONE("west")) "]", 63, 64 },
        { "[{weight: 1, preference: {matchExpressions: [", ZONE("a" LONG ", b" LONG), "]}}]", 31,
          32 },
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned times = i % 2 == 0 ? cases[i / 2].fits : cases[i / 2].times;
        auto_buf struct buf text = { .max = MAX_TEXT };
        const char *terms;

        buf_add_text(&text, cases[i / 2].begin);
        for (unsigned k = 0; k < times; k++)
            buf_printf(&text, "%s%s", k > 0 ? "," : "", cases[i / 2].item);
        buf_add_text(&text, cases[i / 2].end);
        terms = buf_text(&text);
        assert_int_equal(preferred(bench, &terms, 1)[0] != '\0', i % 2 == 0);
    }
}

static void without_labels_that_are_features_nothing_is_preferred(void **state)
{
    static const char *const terms[] = { "[" TERM(1, ZONE("west")) "]" };
    struct bench *bench = *state;

    bridge_config_done(&bench->config);
    assert_int_equal(bridge_config_parse(STR(""), &bench->config, NULL), 0);
    assert_string_equal(preferred(bench, terms, 1), "");
}

/* Slurm would try the preference in their place. */
static void constraints_come_before_preferences(void **state)
{
    static const struct {
        const char *annotations, *prefer;
    } cases[] = {
        { "", "west" },
        { ", annotations: {slurmjob.slinky.slurm.net/constraints: nvme}", "" },
    };
    struct bench *bench = *state;
    struct err err = { 0 };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct kube_object *object =
            pod_with(bench, cases[i].annotations, "[" TERM(1, ZONE("west")) "]");
        const struct kube_pod *pod = kube_pod_of(object);
        struct translate_from from = { .config = &bench->config,
                                       .slurm_nodes = bench->nodes,
                                       .pods = &pod,
                                       .pod_count = 1,
                                       .owner = object };
        struct job_desc desc;

        assert_int_equal(translate(&from, &bench->arena, &desc, &err), 0);
        assert_string_equal(desc.prefer, cases[i].prefer);
        from.slurm_nodes = NULL;
        assert_int_equal(translate(&from, &bench->arena, &desc, &err), 0);
        assert_string_equal(desc.prefer, "");
        kube_object_unref(object);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_heaviest_term_that_features_can_say_counts),
        TEST(what_features_cannot_say_is_no_preference),
        TEST(features_that_no_node_has_are_not_named),
        TEST(pods_that_do_not_prefer_the_same_prefer_nothing),
        TEST(terms_without_end_are_no_preference),
        TEST(without_labels_that_are_features_nothing_is_preferred),
        TEST(constraints_come_before_preferences),
    };

    return cmocka_run_group_tests_name("prefer", tests, NULL, NULL);
}
