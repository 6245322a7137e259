/* node_bench.h - a small world of nodes: one cluster, three partitions, and what a test puts in.
 * JSON is written with ' for ". */
#ifndef SLINC_TESTS_BRIDGE_NODE_BENCH_H
#define SLINC_TESTS_BRIDGE_NODE_BENCH_H

#include "bridge/world/world.h"

static const struct slurm_owner bench_owner = { .cluster = { "c1", 2 }, .release = { "r", 1 } };

enum { SECOND_US = 1000000, NOW_US = 100 * SECOND_US, MAX_TEXT = 1 << 20 };

#define WALL_US INT64_C(1800000000000000) /* 2027-01-15T08:00:00Z */

struct bench {
    struct clock clock;
    struct loop *loop;
    struct bridge_config config, defaults;
    struct slurm_cache *slurm_nodes, *slurm_partitions;
    struct bridge_world world;
    struct arena arena;
};

static inline struct json_doc *bench_parse(const char *text)
{
    struct json_doc *doc = NULL;
    struct err err = { .class = 0 };
    auto_buf struct buf json;

    buf_init(&json, MAX_TEXT);
    for (const char *c = text; *c; c++)
        buf_add_char(&json, *c == '\'' ? '"' : *c);
    if (json_parse(buf_str(&json), MAX_TEXT, &doc, &err) < 0)
        fail_msg("%s: %s", err.text, text);
    return doc;
}

static inline void bench_put_node(struct kube_cache *cache, const char *text)
{
    auto_json_doc struct json_doc *doc = bench_parse(text);
    const struct kube_object *object = NULL;
    struct err err = { .class = 0 };

    if (kube_object_decode(kube_cache_kind(cache), json_root(doc), &object, &err) < 0)
        fail_msg("%s: %s", err.text, text);
    kube_cache_seen(cache, object);
    kube_object_unref(object);
}

static inline void bench_fill(struct slurm_cache *cache, const struct slurm_kind *kind,
                              const char *const *texts, size_t count, int64_t started_us)
{
    struct slurm_merge *merge = slurm_merge_new(cache, started_us);

    for (size_t i = 0; i < count; i++) {
        auto_json_doc struct json_doc *doc = bench_parse(texts[i]);
        const struct slurm_object *object = NULL;

        assert_int_equal(slurm_object_decode(kind, json_root(doc), &object, NULL), 0);
        slurm_merge_add(merge, object);
    }
    while (!slurm_merge_commit(merge, NULL, NULL))
        ;
    slurm_merge_free(merge);
}

static inline void bench_up(struct bench *bench)
{
    static const char *const partitions[] = { "{'name':'all'}", "{'name':'p1'}", "{'name':'p2'}" };

    *bench = (struct bench){ .config = { .scheduler_name = "bridge" } };
    assert_int_equal(bridge_config_parse(STR(""), &bench->defaults, NULL), 0);
    bench->config.devices = bench->defaults.devices;
    clock_init_virtual(&bench->clock, WALL_US);
    bench->loop = loop_new_virtual(&bench->clock);
    bench->slurm_nodes = slurm_cache_new(&slurm_node_kind, bench->loop, NULL);
    bench->slurm_partitions = slurm_cache_new(&slurm_partition_kind, bench->loop, NULL);
    bench_fill(bench->slurm_partitions, &slurm_partition_kind, partitions, 3, NOW_US);
    bench->world = (struct bridge_world){
        .config = &bench->config,
        .owner = &bench_owner,
        .pods = kube_cache_new(&kube_pod_kind, &bench->clock),
        .nodes = kube_cache_new(&kube_node_kind, &bench->clock),
        .slurm_nodes = bench->slurm_nodes,
        .slurm_partitions = bench->slurm_partitions,
        .facts = { .now_us = NOW_US,
                   .wall_us = WALL_US,
                   .leading_us = NOW_US - 10 * SECOND_US,
                   .slurm_synced = true },
    };
    world_add_indexes(&bench->world);
    arena_init(&bench->arena, MAX_TEXT);
}

static inline void bench_down(struct bench *bench)
{
    arena_done(&bench->arena);
    kube_cache_free(bench->world.nodes);
    kube_cache_free(bench->world.pods);
    slurm_cache_free(bench->slurm_nodes);
    slurm_cache_free(bench->slurm_partitions);
    loop_free(bench->loop);
    bridge_config_done(&bench->defaults);
}

#endif
