/* test_world.c - names and keys: of nodes in Slurm, of pods' units, of jobs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "bridge/world/names.h"
#include "bridge/world/world.h"
#include "device/names.h"

#include <stdio.h>

static const struct slurm_owner bench_owner = { .cluster = { "c1", 2 }, .release = { "r", 1 } };

enum { MAX_TEXT = 1 << 16 };

struct bench {
    struct clock clock;
    struct loop *loop;
    struct bridge_config config;
    struct slurm_cache *slurm_nodes;
    struct bridge_world world;
};

static int set_up(void **state)
{
    struct bench *bench = mem_alloc(sizeof(*bench));

    clock_init_virtual(&bench->clock, 0);
    bench->loop = loop_new_virtual(&bench->clock);
    bench->config.scheduler_name = "bridge";
    bench->slurm_nodes = slurm_cache_new(&slurm_node_kind, bench->loop, NULL);
    bench->world = (struct bridge_world){
        .config = &bench->config,
        .owner = &bench_owner,
        .pods = kube_cache_new(&kube_pod_kind, &bench->clock),
        .nodes = kube_cache_new(&kube_node_kind, &bench->clock),
        .slurm_nodes = bench->slurm_nodes,
    };
    world_add_indexes(&bench->world);
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    kube_cache_free(bench->world.pods);
    kube_cache_free(bench->world.nodes);
    slurm_cache_free(bench->slurm_nodes);
    loop_free(bench->loop);
    mem_free(bench);
    return 0;
}

/* more: further members of metadata, with ' for ". */
static void put(struct kube_cache *cache, const char *name, const char *more, const char *spec)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *object = NULL;
    static unsigned version;
    auto_buf struct buf text;

    buf_init(&text, MAX_TEXT);
    buf_printf(&text, "{'metadata':{'name':'%s','uid':'u-%s','resourceVersion':'%u'%s},%s}", name,
               name, ++version, more, spec);
    for (char *c = text.data; *c; c++)
        if (*c == '\'')
            *c = '"';
    assert_int_equal(json_parse(buf_str(&text), MAX_TEXT, &doc, NULL), 0);
    assert_int_equal(kube_object_decode(kube_cache_kind(cache), json_root(doc), &object, NULL), 0);
    kube_cache_seen(cache, object);
    kube_object_unref(object);
}

static void put_node(struct bench *bench, const char *name, const char *more)
{
    put(bench->world.nodes, name, more, "'spec':{}");
}

static const char *node_named(const struct bench *bench, const char *slurm_name)
{
    const struct kube_node *node = world_node_by_slurm_name(&bench->world, str_of(slurm_name));

    return node ? node->object.name : "none";
}

#define NAMED(name)   ",'labels':{'" BRIDGE_SLURM_NAME_LABEL "':'" name "'}"
#define MADE(seconds) ",'creationTimestamp':'2026-01-01T00:00:" seconds "Z'"

/* ---- nodes ---- */

static void a_node_is_found_by_its_own_name_or_by_the_label(void **state)
{
    struct bench *bench = *state;

    put_node(bench, "a", "");
    put_node(bench, "b", NAMED("s-b"));
    assert_string_equal(node_named(bench, "a"), "a");
    assert_string_equal(node_named(bench, "s-b"), "b");
    assert_string_equal(node_named(bench, "b"), "none");
}

static void an_empty_label_says_that_slurm_has_no_such_node(void **state)
{
    struct bench *bench = *state;

    put_node(bench, "a", NAMED(""));
    assert_string_equal(node_named(bench, "a"), "none");
    assert_string_equal(node_named(bench, ""), "none");
}

static void the_index_follows_the_label(void **state)
{
    struct bench *bench = *state;

    put_node(bench, "a", NAMED("x"));
    put_node(bench, "a", NAMED("y"));
    assert_string_equal(node_named(bench, "x"), "none");
    assert_string_equal(node_named(bench, "y"), "a");
}

static void of_two_nodes_with_one_name_the_older_has_it(void **state)
{
    struct bench *bench = *state;

    put_node(bench, "young", NAMED("s") MADE("09"));
    put_node(bench, "old", NAMED("s") MADE("01"));
    assert_string_equal(node_named(bench, "s"), "old");
    put_node(bench, "also", NAMED("s") MADE("01"));
    assert_string_equal(node_named(bench, "s"), "also"); /* by name when made at once */
}

static void the_node_of_this_name_has_it_before_older_ones_that_are_labelled_so(void **state)
{
    struct bench *bench = *state;

    put_node(bench, "s", MADE("09"));
    put_node(bench, "old", NAMED("s") MADE("01"));
    assert_string_equal(node_named(bench, "s"), "s");
}

/* Slurm has this record alone. */
static void put_record(struct bench *bench, const char *text)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct slurm_object *object = NULL;
    struct slurm_merge *merge = slurm_merge_new(bench->slurm_nodes, 1);

    assert_int_equal(json_parse(str_of(text), MAX_TEXT, &doc, NULL), 0);
    assert_int_equal(slurm_object_decode(&slurm_node_kind, json_root(doc), &object, NULL), 0);
    slurm_merge_add(merge, object);
    while (!slurm_merge_commit(merge, NULL, NULL))
        ;
    slurm_merge_free(merge);
}

static const char *record_of(const struct bench *bench, const char *node)
{
    return world_record_name(&bench->world,
                             kube_node_of(kube_cache_get(bench->world.nodes, "", node)));
}

/* A kubelet may label its own node; the mark is Slurm's administrators' to write. */
static void the_node_that_a_record_is_marked_with_has_it(void **state)
{
    struct bench *bench = *state;

    put_node(bench, "old", NAMED("s") MADE("01"));
    put_node(bench, "marked", NAMED("s") MADE("09"));
    put_record(bench, "{\"name\":\"s\",\"state\":[\"EXTERNAL\"],\"extra\":"
                      "\"{\\\"cluster\\\":\\\"c1\\\",\\\"release\\\":\\\"r\\\","
                      "\\\"node\\\":\\\"marked\\\"}\"}");
    assert_string_equal(node_named(bench, "s"), "marked");
    assert_string_equal(record_of(bench, "marked"), "s");
    assert_string_equal(record_of(bench, "old"), "");
    put_node(bench, "marked", NAMED("s2") MADE("09"));
    assert_string_equal(node_named(bench, "s"), "marked"); /* until the record is gone */
    kube_cache_seen_gone(bench->world.nodes, "", "marked", 99);
    assert_string_equal(node_named(bench, "s"), "none");
    slurm_cache_seen_gone(bench->slurm_nodes, "s", 2);
    assert_string_equal(node_named(bench, "s"), "old");
}

static void a_slurm_node_is_found_by_a_name_of_any_length(void **state)
{
    struct bench *bench = *state;
    char longest[5000];

    memset(longest, 'n', sizeof(longest));
    put_record(bench, "{\"name\":\"n1\"}");
    assert_string_equal(world_slurm_node(&bench->world, str_sub(STR("n12"), 0, 2))->name, "n1");
    assert_null(world_slurm_node(&bench->world, STR("n12")));
    assert_null(world_slurm_node(&bench->world, STR("")));
    assert_null(world_slurm_node(&bench->world, (struct str){ longest, sizeof(longest) }));
}

/* ---- pods ---- */

static void a_pod_is_a_unit_of_its_own_by_namespace_and_uid(void **state)
{
    struct bench *bench = *state;
    struct kube_index_walk walk;
    const struct kube_object *pod;
    auto_buf struct buf key;

    put(bench->world.pods, "p", ",'namespace':'ns'", "'spec':{'schedulerName':'bridge'}");
    walk = kube_cache_by(bench->world.pods, bench->world.pods_by_unit, STR("ns/u-p"));
    pod = kube_index_next(&walk);
    assert_non_null(pod);
    assert_string_equal(pod->name, "p");
    assert_null(kube_index_next(&walk));
    buf_init(&key, MAX_TEXT);
    world_unit_key(&bench->world, kube_pod_of(pod), &key);
    assert_string_equal(buf_text(&key), "ns/u-p");
    assert_true(world_is_ours(&bench->world, kube_pod_of(pod)));
}

static void a_pod_of_another_scheduler_is_not_ours(void **state)
{
    struct bench *bench = *state;

    put(bench->world.pods, "p", ",'namespace':'ns'",
        "'spec':{'schedulerName':'default-scheduler'}");
    assert_false(
        world_is_ours(&bench->world, kube_pod_of(kube_cache_get(bench->world.pods, "ns", "p"))));
}

/* ---- jobs ---- */

static void a_jobs_key_is_what_stands_before_the_last_dot(void **state)
{
    static const struct {
        const char *comment, *extra, *key; /* key NULL: it is not ours */
        unsigned attempt;
    } cases[] = {
        { "{\"pods\":[],\"v\":1,\"cluster\":\"c1\",\"release\":\"r\",\"unit\":\"ns/u-1.1\"}", "",
          "ns/u-1", 1 },
        { "{\"cluster\":\"c1\",\"release\":\"r\",\"unit\":\"ns/u.2.30\"}", "", "ns/u.2", 30 },
        { "", "ns/u-1.7 c1 r", NULL, 0 }, /* no proof */
        { "{\"cluster\":\"c1\",\"unit\":\"ns/u-1.1\"}", "", NULL, 0 },
        { "{\"cluster\":\"c1\",\"release\":\"r2\",\"unit\":\"ns/u-1.1\"}", "", NULL, 0 },
        { "{\"cluster\":\"c2\",\"release\":\"r\",\"unit\":\"ns/u-1.1\"}", "ns/u-1.1", NULL, 0 },
        { "{\"cluster\":\"c1\",\"release\":\"r\",\"unit\":\"ns/u-1\"}", "", NULL, 0 },
        { "{\"cluster\":\"c1\",\"release\":\"r\",\"unit\":\"ns/u-1.\"}", "", NULL, 0 },
        { "{\"cluster\":\"c1\",\"release\":\"r\",\"unit\":\"ns/u-1.0\"}", "", NULL, 0 },
        { "{\"cluster\":\"c1\",\"release\":\"r\",\"unit\":\"ns/u-1.x\"}", "", NULL, 0 },
        { "{\"cluster\":\"c1\",\"release\":\"r\",\"unit\":\"ns/u-1.99999999999\"}", "", NULL, 0 },
        { "{\"cluster\":\"c1\",\"release\":\"r\",\"unit\":\".1\"}", "", NULL, 0 },
        { "", "", NULL, 0 },
        { "a person's words.", "", NULL, 0 },
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slurm_job job = { .admin_comment = cases[i].comment, .extra = cases[i].extra };
        unsigned attempt = 0;
        auto_buf struct buf key;

        buf_init(&key, MAX_TEXT);
        job.flags.known = UINT64_C(1) << SLURM_JOB_EXTERNAL;
        assert_int_equal(world_job_key(&bench->world, &job, &key, &attempt), cases[i].key != NULL);
        assert_string_equal(buf_text(&key), cases[i].key ? cases[i].key : "");
        assert_int_equal(attempt, cases[i].attempt);
    }
}

static void the_filter_lists_nodes_that_are_lent_to_slurm_by_their_slurm_names(void **state)
{
#define LENT(more) ",'labels':{'" BRIDGE_EXTERNAL_LABEL "':''" more "}"
    static const struct {
        const char *metadata, *spec, *name;
    } cases[] = {
        { LENT(""), "'spec':{}", "n" },
        { "", "'spec':{}", NULL },
        { "", "'spec':{'taints':[{'key':'" BRIDGE_TAINT "','value':'bridge','effect':'x'}]}", "n" },
        { "", "'spec':{'taints':[{'key':'" BRIDGE_TAINT "','value':'b2','effect':'x'}]}", NULL },
        { LENT(",'" BRIDGE_SLURM_NAME_LABEL "':'x7'"), "'spec':{}", "x7" },
        { LENT(",'" BRIDGE_SLURM_NAME_LABEL "':''"), "'spec':{}", NULL },
        { LENT(",'" BRIDGE_SLURM_NAME_LABEL "':'no,name'"), "'spec':{}", NULL },
    };
#undef LENT
    struct bench *bench = *state;
    struct filter_hooks hooks = world_filter_hooks(&bench->world);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct kube_object *node;
        const char *name;

        put(bench->world.nodes, "n", cases[i].metadata, cases[i].spec);
        node = kube_cache_get(bench->world.nodes, "", "n");
        assert_non_null(node);
        name = hooks.name_of(hooks.context, kube_node_of(node));
        assert_string_equal(name ? name : "none", cases[i].name ? cases[i].name : "none");
    }
    assert_true(hooks.ignores_taint(
        hooks.context, &(struct kube_taint){ BRIDGE_TAINT, "bridge", KUBE_NO_EXECUTE }));
    assert_false(hooks.ignores_taint(hooks.context,
                                     &(struct kube_taint){ BRIDGE_TAINT, "b2", KUBE_NO_EXECUTE }));
    assert_true(hooks.ignores_resource(hooks.context, DEVICE_CLASS_PREFIX "gpu.example.com"));
    assert_false(hooks.ignores_resource(hooks.context, "example.com/gpu"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_node_is_found_by_its_own_name_or_by_the_label),
        TEST(an_empty_label_says_that_slurm_has_no_such_node),
        TEST(the_index_follows_the_label),
        TEST(of_two_nodes_with_one_name_the_older_has_it),
        TEST(the_node_of_this_name_has_it_before_older_ones_that_are_labelled_so),
        TEST(the_node_that_a_record_is_marked_with_has_it),
        TEST(a_slurm_node_is_found_by_a_name_of_any_length),
        TEST(a_pod_is_a_unit_of_its_own_by_namespace_and_uid),
        TEST(a_pod_of_another_scheduler_is_not_ours),
        TEST(a_jobs_key_is_what_stands_before_the_last_dot),
        TEST(the_filter_lists_nodes_that_are_lent_to_slurm_by_their_slurm_names),
    };

    return cmocka_run_group_tests_name("world", tests, NULL, NULL);
}
