/* test_sweep.c - all pods without a node are looked at, and the loop has time for others. */
#include "engine/sweep.h"

#include "base/mem.h"
#include "kube/kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { SECOND_US = 1000000, MS_US = 1000 };

struct bench {
    struct clock clock;
    struct loop *loop;
    struct kube_cache *pods;
    struct sweep sweep;
    unsigned version, looks;
    int64_t began_us;          /* when the first look of all was */
    int64_t last_us;           /* when the last look ended */
    unsigned at_once, longest; /* looks without a pause between them */
    int64_t look_us;           /* how long one takes */
    unsigned requests;         /* that looks still make */
    const char *drops;         /* a pod that goes during the first look; NULL */
};

static bool has_no_node(const struct kube_object *pod)
{
    return !kube_pod_of(pod)->node_name[0];
}

static void look(void *context, const struct kube_object *pod)
{
    struct bench *bench = context;
    int64_t now_us = loop_now_us(bench->loop);

    assert_false(kube_pod_of(pod)->node_name[0]);
    bench->began_us = bench->looks == 0 ? now_us : bench->began_us;
    bench->at_once = bench->looks > 0 && now_us == bench->last_us ? bench->at_once + 1 : 1;
    bench->longest = bench->at_once > bench->longest ? bench->at_once : bench->longest;
    bench->looks++;
    clock_advance_us(&bench->clock, bench->look_us);
    bench->last_us = loop_now_us(bench->loop);
    if (bench->requests > 0) {
        bench->requests--;
        sweep_request(&bench->sweep);
    }
    if (bench->drops)
        kube_cache_seen_gone(bench->pods, "ns", bench->drops, ++bench->version);
    bench->drops = NULL;
}

static int up(void **state)
{
    struct bench *bench = mem_alloc(sizeof(*bench));

    clock_init_virtual(&bench->clock, INT64_C(1700000000000000));
    bench->loop = loop_new_virtual(&bench->clock);
    bench->pods = kube_cache_new(&kube_pod_kind, &bench->clock);
    bench->sweep = (struct sweep){ .loop = bench->loop,
                                   .cache = bench->pods,
                                   .wants = has_no_node,
                                   .look = look,
                                   .context = bench };
    *state = bench;
    return 0;
}

static int down(void **state)
{
    struct bench *bench = *state;

    sweep_stop(&bench->sweep);
    kube_cache_free(bench->pods);
    loop_free(bench->loop);
    mem_free(bench);
    return 0;
}

static void add_pod(struct bench *bench, const char *name, const char *node)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *object;
    auto_buf struct buf text = { .max = 500 };

    buf_printf(&text,
               "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"u-%s\","
               "\"resourceVersion\":\"%u\"},\"spec\":{\"nodeName\":\"%s\"}}",
               name, name, ++bench->version, node);
    assert_int_equal(json_parse(buf_str(&text), 1000, &doc, NULL), 0);
    assert_int_equal(kube_object_decode(&kube_pod_kind, json_root(doc), &object, NULL), 0);
    kube_cache_seen(bench->pods, object);
    kube_object_unref(object);
}

static void add_pods(struct bench *bench, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        auto_buf struct buf name = { .max = 32 };

        buf_printf(&name, "p%u", i);
        add_pod(bench, buf_text(&name), "");
    }
}

static void one_sweep_a_second_later_serves_all_requests(void **state)
{
    struct bench *bench = *state;
    int64_t from_us = loop_now_us(bench->loop);

    add_pods(bench, 3);
    add_pod(bench, "bound", "n1");
    sweep_request(&bench->sweep);
    sweep_request(&bench->sweep);
    assert_int_equal(bench->looks, 0);
    loop_run(bench->loop);
    assert_int_equal(bench->looks, 3);
    assert_int_equal(loop_now_us(bench->loop) - from_us, SECOND_US);
}

static void a_dear_sweep_leaves_most_of_the_time_to_others(void **state)
{
    enum { PODS = 100 };
    struct bench *bench = *state;

    bench->look_us = MS_US;
    add_pods(bench, PODS);
    sweep_request(&bench->sweep);
    loop_run(bench->loop);
    assert_int_equal(bench->looks, PODS);
    assert_in_range(bench->longest, 1, 10);
    assert_true(bench->last_us - bench->began_us >= 8 * PODS * MS_US);
}

static void what_changes_during_a_sweep_is_seen_by_another(void **state)
{
    struct bench *bench = *state;

    bench->look_us = 20 * MS_US; /* each look is a slice */
    bench->requests = 1;
    add_pods(bench, 3);
    sweep_request(&bench->sweep);
    loop_run(bench->loop);
    assert_int_equal(bench->looks, 6);
    assert_true(bench->last_us - bench->began_us >= SECOND_US);
}

static void a_pod_that_goes_during_a_sweep_is_passed_over(void **state)
{
    struct bench *bench = *state;

    bench->drops = "p2";
    add_pods(bench, 3);
    sweep_request(&bench->sweep);
    loop_run(bench->loop);
    assert_int_equal(bench->looks, 2);
}

static void a_sweep_may_be_stopped_between_its_slices(void **state)
{
    struct bench *bench = *state;

    bench->look_us = 20 * MS_US;
    add_pods(bench, 3);
    sweep_request(&bench->sweep);
    while (bench->looks == 0)
        assert_true(loop_step(bench->loop));
    sweep_stop(&bench->sweep);
    loop_run(bench->loop);
    assert_int_equal(bench->looks, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_sweep_a_second_later_serves_all_requests),
        TEST(a_dear_sweep_leaves_most_of_the_time_to_others),
        TEST(what_changes_during_a_sweep_is_seen_by_another),
        TEST(a_pod_that_goes_during_a_sweep_is_passed_over),
        TEST(a_sweep_may_be_stopped_between_its_slices),
    };

    return cmocka_run_group_tests_name("sweep", tests, NULL, NULL);
}
