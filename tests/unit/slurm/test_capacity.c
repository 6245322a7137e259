/* test_capacity.c - what is free follows the changes of the caches, and never says too much. */
#include "slurm/capacity.h"

#include "base/mem.h"
#include "base/rand.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { SECOND_US = 1000000 };

struct bench {
    struct clock clock;
    struct loop *loop;
    struct slurm_cache *jobs, *nodes;
    struct capacity *capacity;
    struct capacity_need need;
    int64_t stamp;
};

static void sync_cache(struct slurm_cache *cache, int64_t started_us)
{
    struct slurm_merge *merge = slurm_merge_new(cache, started_us);

    assert_true(slurm_merge_commit(merge, NULL, NULL));
    slurm_merge_free(merge);
}

static int up(void **state)
{
    struct bench *bench = mem_alloc(sizeof(*bench));

    clock_init_virtual(&bench->clock, INT64_C(1700000000) * SECOND_US);
    bench->loop = loop_new_virtual(&bench->clock);
    bench->jobs = slurm_cache_new(&slurm_job_kind, bench->loop, NULL);
    bench->nodes = slurm_cache_new(&slurm_node_kind, bench->loop, NULL);
    bench->capacity = capacity_new(bench->loop, bench->jobs, bench->nodes);
    sync_cache(bench->jobs, 1);
    sync_cache(bench->nodes, 1);
    bench->stamp = 1;
    bench->need = (struct capacity_need){
        .partition = "p", .gres = "", .excluded_nodes = "", .cpus = 2, .memory = 100
    };
    *state = bench;
    return 0;
}

static int down(void **state)
{
    struct bench *bench = *state;

    slurm_cache_free(bench->jobs);
    slurm_cache_free(bench->nodes);
    capacity_free(bench->capacity);
    loop_free(bench->loop);
    mem_free(bench);
    return 0;
}

static void see(struct bench *bench, struct slurm_cache *cache, const struct slurm_kind *kind,
                const char *text)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct slurm_object *object;

    assert_int_equal(json_parse(str_of(text), 100000, &doc, NULL), 0);
    assert_int_equal(slurm_object_decode(kind, json_root(doc), &object, NULL), 0);
    assert_true(slurm_cache_seen(cache, object, ++bench->stamp));
    slurm_object_unref(object);
    loop_run(bench->loop);
}

static void node_with(struct bench *bench, const char *name, int cpus, int memory,
                      const char *state, const char *partitions, const char *more)
{
    auto_buf struct buf text = { .max = 2000 };

    buf_printf(&text,
               "{\"name\":\"%s\",\"cpus\":%d,\"effective_cpus\":%d,\"real_memory\":%d,\"state\":["
               "%s],\"partitions\":\"%s\"%s}",
               name, cpus, cpus, memory, state, partitions, more);
    see(bench, bench->nodes, &slurm_node_kind, buf_text(&text));
}

static void node(struct bench *bench, const char *name, int cpus, int memory, const char *state,
                 const char *partitions)
{
    node_with(bench, name, cpus, memory, state, partitions, "");
}

static void job(struct bench *bench, int id, const char *state, const char *nodes, int node_count,
                int cpus, const char *tres, const char *more)
{
    auto_buf struct buf text = { .max = 2000 };

    buf_printf(&text,
               "{\"job_id\":%d,\"job_state\":[\"%s\"],\"partition\":\"p\",\"nodes\":\"%s\","
               "\"node_count\":%d,\"cpus\":%d,\"tres_alloc_str\":\"%s\"%s}",
               id, state, nodes, node_count, cpus, tres, more);
    see(bench, bench->jobs, &slurm_job_kind, buf_text(&text));
}

static void gone(struct bench *bench, struct slurm_cache *cache, const char *key)
{
    assert_true(slurm_cache_seen_gone(cache, key, ++bench->stamp));
    loop_run(bench->loop);
}

static bool fits(const struct bench *bench, int64_t cpus, int64_t memory)
{
    struct capacity_need need = bench->need;

    need.cpus = cpus;
    need.memory = memory;
    return capacity_fits(bench->capacity, &need);
}

static void a_node_gives_what_it_has_and_no_more(void **state)
{
    struct bench *bench = *state;

    assert_false(fits(bench, 1, 1));
    node(bench, "n1", 4, 1000, "\"IDLE\"", "q,p");
    assert_true(fits(bench, 4, 1000));
    assert_false(fits(bench, 5, 1000));
    assert_false(fits(bench, 4, 1001));
}

static void only_nodes_of_the_partition_count(void **state)
{
    struct bench *bench = *state;

    node(bench, "n1", 4, 1000, "\"IDLE\"", "q");
    assert_false(fits(bench, 1, 1));
    node(bench, "n1", 4, 1000, "\"IDLE\"", "q,p,r");
    assert_true(fits(bench, 1, 1));
    node(bench, "n1", 4, 1000, "\"IDLE\"", "");
    assert_false(fits(bench, 1, 1));
}

static void a_node_in_a_bad_state_gives_nothing(void **state)
{
    static const char *const bad[] = {
        "\"DOWN\"",
        "\"IDLE\",\"DRAIN\"",
        "\"IDLE\",\"FAIL\"",
        "\"IDLE\",\"NOT_RESPONDING\"",
        "\"IDLE\",\"MAINTENANCE\"",
        "\"IDLE\",\"RESERVED\"",
        "\"IDLE\",\"PLANNED\"",
        "\"FUTURE\"",
        "\"UNKNOWN\"",
        "\"IDLE\",\"POWERED_DOWN\"",
        "\"IDLE\",\"INVALID_REG\"",
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        node(bench, "n1", 4, 1000, "\"MIXED\"", "p");
        assert_true(fits(bench, 1, 1));
        node(bench, "n1", 4, 1000, bad[i], "p");
        assert_false(fits(bench, 1, 1));
    }
}

static void what_jobs_hold_is_taken_and_comes_back(void **state)
{
    struct bench *bench = *state;

    node(bench, "n1", 8, 1000, "\"IDLE\"", "p");
    job(bench, 1, "RUNNING", "n1", 1, 6, "cpu=6,mem=300M,node=1", "");
    assert_true(fits(bench, 2, 700));
    assert_false(fits(bench, 3, 1));
    assert_false(fits(bench, 1, 701));
    job(bench, 1, "COMPLETED", "n1", 1, 6, "cpu=6,mem=300M,node=1", "");
    assert_true(fits(bench, 8, 1000));
    job(bench, 2, "RUNNING", "n1", 1, 8, "cpu=8,mem=1M,node=1", ""); /* a whole node */
    assert_false(fits(bench, 1, 0));
    gone(bench, bench->jobs, "2");
    assert_true(fits(bench, 8, 1000));
}

static void memory_comes_in_several_units(void **state)
{
    static const struct {
        const char *tres, *more;
        int64_t mib;
    } cases[] = {
        { "cpu=1,mem=1G", "", 1024 },
        { "cpu=1,mem=1.50G", "", 2048 }, /* rounded up: never too much is promised */
        { "mem=1T", "", 1048576 },
        { "cpu=1,mem=100K", "", 1 },
        { "cpu=1", ",\"memory_per_node\":{\"set\":true,\"number\":77}", 77 },
        { "cpu=1,mem=x", "", 0 },
        { "", "", 0 },
    };
    struct bench *bench = *state;

    node(bench, "n1", 8, 2000000, "\"IDLE\"", "p");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        job(bench, 1, "RUNNING", "n1", 1, 1, cases[i].tres, cases[i].more);
        assert_true(fits(bench, 1, 2000000 - cases[i].mib));
        assert_false(fits(bench, 1, 2000001 - cases[i].mib));
    }
}

static void a_job_on_several_nodes_has_its_share_of_each(void **state)
{
    struct bench *bench = *state;

    node(bench, "n1", 8, 1000, "\"IDLE\"", "p");
    node(bench, "n2", 8, 1000, "\"IDLE\"", "p");
    node(bench, "n3", 8, 1000, "\"IDLE\"", "p");
    job(bench, 1, "RUNNING", "n[1-3]", 3, 16, "cpu=16,mem=900M,node=3", "");
    assert_true(fits(bench, 2, 700)); /* 16 on three nodes: 6 on each, to be safe */
    assert_false(fits(bench, 3, 1));
    assert_false(fits(bench, 1, 701));
}

static void a_job_may_be_seen_before_its_node(void **state)
{
    struct bench *bench = *state;

    job(bench, 1, "RUNNING", "n1", 1, 6, "cpu=6,mem=10M", "");
    node(bench, "n1", 8, 1000, "\"IDLE\"", "p");
    assert_false(fits(bench, 3, 1));
    gone(bench, bench->nodes, "n1");
    assert_false(fits(bench, 1, 1));
    node(bench, "n1", 8, 1000, "\"IDLE\"", "p");
    assert_false(fits(bench, 3, 1));
    gone(bench, bench->jobs, "1");
    assert_true(fits(bench, 8, 1));
}

static void an_id_that_another_job_has_now_is_counted_once(void **state)
{
    struct bench *bench = *state;

    node(bench, "n1", 8, 1000, "\"IDLE\"", "p");
    job(bench, 1, "RUNNING", "n1", 1, 6, "", ",\"step_id\":{\"sluid\":\"a\"}");
    job(bench, 1, "RUNNING", "n1", 1, 3, "", ",\"step_id\":{\"sluid\":\"b\"}");
    assert_true(fits(bench, 5, 1));
    assert_false(fits(bench, 6, 1));
}

static void those_who_may_start_wait_in_each_partition_they_name(void **state)
{
    struct bench *bench = *state;

    see(bench, bench->jobs, &slurm_job_kind,
        "{\"job_id\":1,\"job_state\":[\"PENDING\"],\"partition\":\"p,q\"}");
    see(bench, bench->jobs, &slurm_job_kind,
        "{\"job_id\":2,\"job_state\":[\"PENDING\"],\"partition\":\"p\",\"hold\":true}");
    see(bench, bench->jobs, &slurm_job_kind,
        "{\"job_id\":3,\"job_state\":[\"PENDING\"],\"partition\":\"p\","
        "\"state_reason\":\"Dependency\"}");
    see(bench, bench->jobs, &slurm_job_kind,
        "{\"job_id\":6,\"job_state\":[\"PENDING\"],\"partition\":\"p\","
        "\"state_reason\":\"AssocGrpCpuLimit\"}");
    see(bench, bench->jobs, &slurm_job_kind,
        "{\"job_id\":7,\"job_state\":[\"PENDING\"],\"partition\":\"p\","
        "\"state_reason\":\"QOSMaxJobsPerUserLimit\"}");
    see(bench, bench->jobs, &slurm_job_kind,
        "{\"job_id\":4,\"job_state\":[\"PENDING\",\"CONFIGURING\"],\"partition\":\"p\"}");
    see(bench, bench->jobs, &slurm_job_kind,
        "{\"job_id\":5,\"job_state\":[\"RUNNING\"],\"partition\":\"p\"}");
    assert_int_equal(capacity_waiting(bench->capacity, "p"), 1);
    assert_int_equal(capacity_waiting(bench->capacity, "q"), 1);
    assert_int_equal(capacity_waiting(bench->capacity, "none"), 0);
    see(bench, bench->jobs, &slurm_job_kind,
        "{\"job_id\":1,\"job_state\":[\"PENDING\"],\"partition\":\"q\"}");
    assert_int_equal(capacity_waiting(bench->capacity, "p"), 0);
    gone(bench, bench->jobs, "1");
    assert_int_equal(capacity_waiting(bench->capacity, "q"), 0);
}

static void what_it_cannot_judge_never_fits(void **state)
{
    struct bench *bench = *state;
    const struct capacity_need plain = bench->need;
    struct capacity_need odd[5];
    size_t count = 0;

    for (size_t i = 0; i < 5; i++)
        odd[i] = plain;
    odd[count++].gres = "gres/gpu=1"; /* of which no node has any */
    odd[count++].partition = "";
    odd[count++].partition = "p,q";
    odd[count++].partition = "unheard";
    odd[count++].excluded_nodes = "n[1-";
    node(bench, "n1", 8, 1000, "\"IDLE\"", "p,q");
    assert_true(capacity_fits(bench->capacity, &plain));
    for (size_t i = 0; i < count; i++) {
        assert_false(capacity_fits(bench->capacity, &odd[i]));
        assert_int_equal(capacity_reserve(bench->capacity, &odd[i]), 0);
    }
    capacity_unreserve(bench->capacity, 0);
    capacity_confirm(bench->capacity, 0, 7);
}

static bool gres_fits(const struct bench *bench, const char *gres)
{
    struct capacity_need need = bench->need;

    need.gres = gres;
    return capacity_fits(bench->capacity, &need);
}

static void devices_are_counted_by_name_and_type(void **state)
{
    struct bench *bench = *state;

    node_with(
        bench, "n1", 64, 10000, "\"IDLE\"", "p",
        ",\"gres\":\"gpu:a:4(S:0,1),gpu:b:2,nic:1\",\"gres_used\":\"gpu:a:0(IDX:N/A),nic:0\"");
    assert_true(gres_fits(bench, "gres/gpu:a=4,gres/nic=1"));
    assert_true(gres_fits(bench, "gres/gpu:b:2"));
    assert_true(gres_fits(bench, "gpu:6"));
    assert_true(gres_fits(bench, "gres:gpu:6"));
    assert_false(gres_fits(bench, "gres/gpu=1k"));
    assert_false(gres_fits(bench, "gres/gpu:a=5"));
    assert_false(gres_fits(bench, "gres/gpu=7"));
    assert_false(gres_fits(bench, "gres/gpu:a=1,gres/nic=2"));
    assert_false(gres_fits(bench, "gres/fpga=1"));
    assert_false(gres_fits(bench, "gres/gpu=many"));
    job(bench, 1, "RUNNING", "n1", 1, 1, "", ",\"tres_per_node\":\"gres/gpu:a=3\"");
    assert_true(gres_fits(bench, "gres/gpu:a=1"));
    assert_false(gres_fits(bench, "gres/gpu:a=2"));
    assert_true(gres_fits(bench, "gres/gpu:b=2"));
    assert_false(gres_fits(bench, "gres/gpu=4"));
    job(bench, 2, "RUNNING", "n1", 1, 1, "", ",\"tres_per_node\":\"gres/gpu:1\""); /* of any type */
    assert_false(gres_fits(bench, "gres/gpu:a=1"));
    gone(bench, bench->jobs, "1");
    gone(bench, bench->jobs, "2");
    assert_true(gres_fits(bench, "gres/gpu:a=4,gres/gpu:b=2"));
}

/* By jobs of others that say in other ways what they need. */
static void devices_that_slurm_shows_as_used_are_taken(void **state)
{
    struct bench *bench = *state;

    node_with(bench, "n1", 64, 10000, "\"MIXED\"", "p",
              ",\"gres\":\"gpu:a:4\",\"gres_used\":\"gpu:a:3(IDX:0-2)\"");
    assert_true(gres_fits(bench, "gres/gpu:a=1"));
    assert_false(gres_fits(bench, "gres/gpu:a=2"));
}

static void a_device_is_not_promised_twice(void **state)
{
    struct bench *bench = *state;
    uint64_t reserved;

    node_with(bench, "n1", 64, 10000, "\"IDLE\"", "p", ",\"gres\":\"gpu:a:2\"");
    bench->need.gres = "gres/gpu:a=1";
    assert_true(capacity_reserve(bench->capacity, &bench->need) != 0);
    reserved = capacity_reserve(bench->capacity, &bench->need);
    assert_true(reserved != 0);
    assert_false(capacity_fits(bench->capacity, &bench->need));
    capacity_confirm(bench->capacity, reserved, 7);
    job(bench, 7, "RUNNING", "n1", 1, 1, "", ",\"tres_per_node\":\"gres/gpu:a=1\"");
    assert_false(capacity_fits(bench->capacity, &bench->need)); /* by the job now */
    gone(bench, bench->jobs, "7");
    assert_true(capacity_fits(bench->capacity, &bench->need));
}

static void an_excluded_node_does_not_count(void **state)
{
    struct bench *bench = *state;

    node(bench, "n1", 8, 1000, "\"IDLE\"", "p");
    node(bench, "n2", 2, 1000, "\"IDLE\"", "p");
    bench->need.excluded_nodes = "n[1,3-9]";
    assert_true(fits(bench, 2, 1));
    assert_false(fits(bench, 3, 1));
}

static void a_node_whose_partitions_are_folded_counts(void **state)
{
    struct bench *bench = *state;

    node(bench, "n1", 8, 1000, "\"IDLE\"", "a,p[1-3]");
    bench->need.partition = "p2";
    assert_true(fits(bench, 2, 1));
    bench->need.partition = "p4";
    assert_false(fits(bench, 2, 1));
}

/* However many are looked up before one is found. */
static void many_excluded_nodes_do_not_count(void **state)
{
    enum { NODES = 100 };
    struct bench *bench = *state;
    auto_buf struct buf all = { .max = 4096 };
    char name[16];

    for (int i = 0; i < NODES; i++) {
        snprintf(name, sizeof(name), "n-%d-x", i);
        node(bench, name, 8, 1000, "\"IDLE\"", "p");
        buf_printf(&all, "%s%s", i > 0 ? "," : "", name);
    }
    bench->need.excluded_nodes = buf_text(&all);
    assert_false(fits(bench, 1, 1));
    node(bench, "n-100-x", 8, 1000, "\"IDLE\"", "p");
    assert_true(fits(bench, 1, 1));
    bench->need.excluded_nodes = "n-[";
    assert_false(fits(bench, 1, 1));
}

static void a_promise_is_not_made_twice(void **state)
{
    struct bench *bench = *state;
    uint64_t first, second;

    node(bench, "n1", 4, 1000, "\"IDLE\"", "p");
    first = capacity_reserve(bench->capacity, &bench->need);
    second = capacity_reserve(bench->capacity, &bench->need);
    assert_true(first != 0 && second != 0 && first != second);
    assert_int_equal(capacity_reserve(bench->capacity, &bench->need), 0);
    assert_false(capacity_fits(bench->capacity, &bench->need));
    capacity_unreserve(bench->capacity, first);
    assert_true(capacity_fits(bench->capacity, &bench->need));
    capacity_unreserve(bench->capacity, first); /* no more */
    assert_false(fits(bench, 4, 1));
    capacity_unreserve(bench->capacity, second);
    assert_true(fits(bench, 4, 1));
}

static void a_kept_promise_goes_when_the_cache_shows_what_the_job_holds(void **state)
{
    struct bench *bench = *state;
    uint64_t reserved;

    node(bench, "n1", 4, 1000, "\"IDLE\"", "p");
    reserved = capacity_reserve(bench->capacity, &bench->need);
    capacity_confirm(bench->capacity, reserved, 7);
    see(bench, bench->jobs, &slurm_job_kind,
        "{\"job_id\":7,\"job_state\":[\"PENDING\",\"CONFIGURING\"],\"partition\":\"p\"}");
    assert_false(fits(bench, 3, 1));
    job(bench, 7, "RUNNING", "n1", 1, 2, "cpu=2,mem=100M", "");
    assert_true(fits(bench, 2, 1));
    assert_false(fits(bench, 3, 1)); /* by the job now */
    job(bench, 7, "CANCELLED", "n1", 1, 2, "cpu=2,mem=100M", "");
    assert_true(fits(bench, 4, 1));
}

static void whole_nodes_are_promised_only_when_nobody_is_there(void **state)
{
    struct bench *bench = *state;
    uint64_t reserved;

    bench->need.exclusive = true;
    node(bench, "n1", 4, 1000, "\"IDLE\"", "p");
    job(bench, 1, "RUNNING", "n1", 1, 1, "cpu=1,mem=1M", "");
    assert_false(capacity_fits(bench->capacity, &bench->need));
    gone(bench, bench->jobs, "1");
    reserved = capacity_reserve(bench->capacity, &bench->need);
    assert_true(reserved != 0);
    bench->need.exclusive = false;
    assert_false(fits(bench, 1, 1));
    gone(bench, bench->nodes, "n1"); /* the promise outlives the node */
    capacity_unreserve(bench->capacity, reserved);
    assert_false(fits(bench, 1, 1));
}

static void nothing_fits_in_a_closed_partition(void **state)
{
    struct bench *bench = *state;

    node(bench, "n1", 4, 1000, "\"IDLE\"", "p,q");
    capacity_refused(bench->capacity, "p");
    assert_false(fits(bench, 1, 1));
    bench->need.partition = "q";
    assert_true(fits(bench, 1, 1));
    bench->need.partition = "p";
    clock_advance_us(&bench->clock, SECOND_US);
    assert_true(fits(bench, 1, 1));
}

static void the_generation_counts_news_about_nodes_only(void **state)
{
    struct bench *bench = *state;
    uint64_t last = capacity_generation(bench->capacity);

    node(bench, "n1", 4, 1000, "\"IDLE\"", "p");
    assert_true(capacity_generation(bench->capacity) != last);
    last = capacity_generation(bench->capacity);
    node(bench, "n1", 4, 1000, "\"ALLOCATED\"", "p");
    node(bench, "n1", 4, 1000, "\"MIXED\",\"PLANNED\"", "p");
    job(bench, 1, "RUNNING", "n1", 1, 1, "", "");
    assert_true(capacity_generation(bench->capacity) == last);
    node(bench, "n1", 4, 1000, "\"IDLE\",\"DRAIN\"", "p");
    assert_true(capacity_generation(bench->capacity) != last);
    last = capacity_generation(bench->capacity);
    node(bench, "n1", 8, 1000, "\"IDLE\",\"DRAIN\"", "p");
    assert_true(capacity_generation(bench->capacity) != last);
    last = capacity_generation(bench->capacity);
    gone(bench, bench->nodes, "n1");
    assert_true(capacity_generation(bench->capacity) != last);
}

/* Random changes against a plain sum over what the caches hold. */
static bool plain_fits(const struct bench *bench, int64_t cpus)
{
    struct slurm_cache_walk nodes = slurm_cache_walk(bench->nodes);
    const struct slurm_object *object;

    while ((object = slurm_cache_next(&nodes))) {
        const struct slurm_node *at = slurm_node_of(object);
        struct slurm_cache_walk jobs = slurm_cache_walk(bench->jobs);
        int64_t left = at->cpus;

        while ((object = slurm_cache_next(&jobs)))
            if (slurm_words_has(&slurm_job_of(object)->state, SLURM_JOB_RUNNING) &&
                strcmp(slurm_job_of(object)->nodes, at->name) == 0)
                left -= slurm_job_of(object)->cpus;
        if (strcmp(at->partitions, "p") == 0 && slurm_words_has(&at->state, SLURM_NODE_IDLE) &&
            !slurm_words_has(&at->state, SLURM_NODE_DRAIN) && left >= cpus)
            return true;
    }
    return false;
}

static void it_agrees_with_a_plain_sum_after_any_changes(void **state)
{
    struct bench *bench = *state;
    struct rand rand;
    char name[16], key[16];

    rand_init(&rand, 42);
    for (unsigned i = 0; i < 3000; i++) {
        unsigned pick = (unsigned)rand_below(&rand, 10);

        snprintf(name, sizeof(name), "n%u", (unsigned)rand_below(&rand, 4));
        snprintf(key, sizeof(key), "%u", 1 + (unsigned)rand_below(&rand, 8));
        if (pick < 3)
            node(bench, name, 1 + (int)rand_below(&rand, 8), 1000,
                 pick == 0 ? "\"IDLE\",\"DRAIN\"" : "\"IDLE\"", pick == 1 ? "q" : "p");
        else if (pick == 3)
            slurm_cache_seen_gone(bench->nodes, name, ++bench->stamp);
        else if (pick == 4)
            slurm_cache_seen_gone(bench->jobs, key, ++bench->stamp);
        else
            job(bench, key[0] - '0', pick == 5 ? "COMPLETED" : "RUNNING", name, 1,
                1 + (int)rand_below(&rand, 4), "", "");
        loop_run(bench->loop);
        for (int64_t cpus = 1; cpus < 9; cpus++)
            assert_int_equal(fits(bench, cpus, 0), plain_fits(bench, cpus));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_node_gives_what_it_has_and_no_more),
        TEST(only_nodes_of_the_partition_count),
        TEST(a_node_in_a_bad_state_gives_nothing),
        TEST(what_jobs_hold_is_taken_and_comes_back),
        TEST(memory_comes_in_several_units),
        TEST(a_job_on_several_nodes_has_its_share_of_each),
        TEST(a_job_may_be_seen_before_its_node),
        TEST(an_id_that_another_job_has_now_is_counted_once),
        TEST(those_who_may_start_wait_in_each_partition_they_name),
        TEST(what_it_cannot_judge_never_fits),
        TEST(devices_are_counted_by_name_and_type),
        TEST(devices_that_slurm_shows_as_used_are_taken),
        TEST(a_device_is_not_promised_twice),
        TEST(an_excluded_node_does_not_count),
        TEST(many_excluded_nodes_do_not_count),
        TEST(a_node_whose_partitions_are_folded_counts),
        TEST(a_promise_is_not_made_twice),
        TEST(a_kept_promise_goes_when_the_cache_shows_what_the_job_holds),
        TEST(whole_nodes_are_promised_only_when_nobody_is_there),
        TEST(nothing_fits_in_a_closed_partition),
        TEST(the_generation_counts_news_about_nodes_only),
        TEST(it_agrees_with_a_plain_sum_after_any_changes),
    };

    return cmocka_run_group_tests_name("capacity", tests, NULL, NULL);
}
