/* test_foreign_nodes.c - the list of strangers follows the nodes of both sides. */
#include "bridge/world/foreign_nodes.h"

#include "base/mem.h"
#include "bridge/world/names.h"
#include "bridge/world/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct slurm_owner we = { .cluster = { "c1", 2 }, .release = { "r", 1 } };

struct bench {
    struct clock clock;
    struct loop *loop;
    struct slurm_cache *slurm_nodes;
    struct bridge_world world; /* of which only what finds nodes is there */
    struct foreign_nodes *foreign_nodes;
    int64_t stamp;
};

static int up(void **state)
{
    struct bench *bench = mem_alloc(sizeof(*bench));
    struct slurm_merge *merge;

    clock_init_virtual(&bench->clock, INT64_C(1700000000000000));
    bench->loop = loop_new_virtual(&bench->clock);
    bench->slurm_nodes = slurm_cache_new(&slurm_node_kind, bench->loop, NULL);
    bench->world.nodes = kube_cache_new(&kube_node_kind, &bench->clock);
    bench->world.pods = kube_cache_new(&kube_pod_kind, &bench->clock);
    world_add_indexes(&bench->world);
    bench->foreign_nodes = foreign_nodes_new(bench->slurm_nodes, bench->world.nodes,
                                             bench->world.nodes_by_slurm_name, &we);
    merge = slurm_merge_new(bench->slurm_nodes, ++bench->stamp);
    assert_true(slurm_merge_commit(merge, NULL, NULL));
    slurm_merge_free(merge);
    *state = bench;
    return 0;
}

static int down(void **state)
{
    struct bench *bench = *state;

    slurm_cache_free(bench->slurm_nodes);
    kube_cache_free(bench->world.nodes);
    kube_cache_free(bench->world.pods);
    foreign_nodes_free(bench->foreign_nodes);
    loop_free(bench->loop);
    mem_free(bench);
    return 0;
}

static void slurm_has_marked(struct bench *bench, const char *name, const char *partitions,
                             const char *extra)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct slurm_object *object;
    auto_buf struct buf text = { .max = 500 };

    buf_printf(&text,
               "{\"name\":\"%s\",\"partitions\":\"%s\",\"state\":[\"IDLE\",\"EXTERNAL\"],"
               "\"extra\":\"%s\"}",
               name, partitions, extra);
    assert_int_equal(json_parse(buf_str(&text), 1000, &doc, NULL), 0);
    assert_int_equal(slurm_object_decode(&slurm_node_kind, json_root(doc), &object, NULL), 0);
    assert_true(slurm_cache_seen(bench->slurm_nodes, object, ++bench->stamp));
    slurm_object_unref(object);
    loop_run(bench->loop);
}

static void slurm_has(struct bench *bench, const char *name, const char *partitions)
{
    slurm_has_marked(bench, name, partitions, "");
}

static void slurm_lost(struct bench *bench, const char *name)
{
    assert_true(slurm_cache_seen_gone(bench->slurm_nodes, name, ++bench->stamp));
    loop_run(bench->loop);
}

static void kubernetes_has(struct bench *bench, const char *name, const char *slurm_name)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *object;
    auto_buf struct buf text = { .max = 500 };

    buf_printf(&text,
               "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u\",\"resourceVersion\":\"%d\","
               "\"labels\":{\"%s\":\"%s\"}}}",
               name, (int)++bench->stamp, BRIDGE_SLURM_NAME_LABEL, slurm_name);
    assert_int_equal(json_parse(buf_str(&text), 1000, &doc, NULL), 0);
    assert_int_equal(kube_object_decode(&kube_node_kind, json_root(doc), &object, NULL), 0);
    kube_cache_seen(bench->world.nodes, object);
    kube_object_unref(object);
}

#define assert_strangers(bench, partitions, list)                                                  \
    assert_string_equal(foreign_nodes_in((bench)->foreign_nodes, partitions), list)

#define MARK(cluster, release)                                                                     \
    "{\\\"v\\\":1,\\\"cluster\\\":\\\"" cluster "\\\",\\\"release\\\":\\\"" release "\\\"}"

static void a_node_of_another_cluster_is_one_whatever_its_name(void **state)
{
    struct bench *bench = *state;

    kubernetes_has(bench, "k1", "n1");
    slurm_has_marked(bench, "n1", "a", MARK("c1", "r"));
    assert_strangers(bench, "a", "");
    slurm_has_marked(bench, "n1", "a", MARK("c2", "r"));
    assert_strangers(bench, "a", "n1");
    slurm_has_marked(bench, "n1", "a", MARK("c1", "s"));
    assert_strangers(bench, "a", "n1");
}

static void those_of_the_partitions_are_listed(void **state)
{
    struct bench *bench = *state;

    assert_strangers(bench, "", "");
    kubernetes_has(bench, "k1", "n1");
    slurm_has(bench, "n1", "a");
    slurm_has(bench, "n2", "a");
    slurm_has(bench, "n3", "a,b");
    slurm_has(bench, "m", "");
    assert_strangers(bench, "a", "n[2-3]");
    assert_strangers(bench, "b", "n3");
    assert_strangers(bench, "c,b", "n3");
    assert_strangers(bench, "ab", "");
    assert_strangers(bench, "", "m,n[2-3]");
}

static void a_list_follows_slurm(void **state)
{
    struct bench *bench = *state;

    slurm_has(bench, "n1", "a");
    assert_strangers(bench, "a", "n1");
    slurm_has(bench, "n2", "a");
    assert_strangers(bench, "a", "n[1-2]");
    slurm_has(bench, "n2", "b");
    assert_strangers(bench, "a", "n1");
    slurm_lost(bench, "n1");
    assert_strangers(bench, "a", "");
}

static void a_list_follows_kubernetes(void **state)
{
    struct bench *bench = *state;

    slurm_has(bench, "n1", "a");
    slurm_has(bench, "n2", "a");
    assert_strangers(bench, "a", "n[1-2]");
    kubernetes_has(bench, "k", "n1");
    assert_strangers(bench, "a", "n2");
    kubernetes_has(bench, "k", "n2");
    assert_strangers(bench, "a", "n1");
    kube_cache_seen_gone(bench->world.nodes, "", "k", (uint64_t)++bench->stamp);
    assert_strangers(bench, "a", "n[1-2]");
}

/* Pods may name any partitions. */
static void many_lists_are_not_kept_for_ever(void **state)
{
    struct bench *bench = *state;

    slurm_has(bench, "n1", "a");
    for (int i = 0; i < 3000; i++) {
        auto_buf struct buf name = { .max = 100 };

        buf_printf(&name, "p%d,a", i);
        assert_strangers(bench, buf_text(&name), "n1");
    }
    assert_strangers(bench, "p0,a", "n1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_node_of_another_cluster_is_one_whatever_its_name, up,
                                        down),
        cmocka_unit_test_setup_teardown(those_of_the_partitions_are_listed, up, down),
        cmocka_unit_test_setup_teardown(a_list_follows_slurm, up, down),
        cmocka_unit_test_setup_teardown(a_list_follows_kubernetes, up, down),
        cmocka_unit_test_setup_teardown(many_lists_are_not_kept_for_ever, up, down),
    };

    return cmocka_run_group_tests_name("strangers", tests, NULL, NULL);
}
