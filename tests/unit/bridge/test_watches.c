/* test_watches.c - an owner whose words about jobs change is told of, and nobody else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bridge/watches.h"
#include "fake_transport.h"

#define TIME "slurmjob.slinky.slurm.net/timelimit"

struct bench {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *api;
    struct kube_client *kube;
    struct rand rand;
    struct bridge_config config;
    struct bridge_world world;
    struct watches *watches;
    unsigned seen, told, volumes;
};

static void on_owner(void *context, const struct kube_object *owner, bool says_otherwise)
{
    struct bench *bench = context;

    assert_string_equal(owner->name, "o");
    bench->seen++;
    bench->told += says_otherwise;
}

static void on_volume(void *context)
{
    struct bench *bench = context;

    bench->volumes++;
}

static int set_up(void **state)
{
    static struct bench bench;

    bench = (struct bench){ .told = 0 };
    clock_init_virtual(&bench.clock, 1000000);
    bench.loop = loop_new_virtual(&bench.clock);
    bench.api = fake_transport_new(bench.loop);
    bench.kube = kube_client_new(bench.loop, fake_http(bench.api));
    rand_init(&bench.rand, 1);
    assert_int_equal(bridge_config_parse(STR(""), &bench.config, NULL), 0);
    bench.world.config = &bench.config;
    bench.watches = watches_new(bench.kube, &bench.rand, &bench.world, 0);
    watches_listen(bench.watches, on_owner, on_volume, &bench);
    *state = &bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    watches_stop(bench->watches);
    watches_free(bench->watches);
    bridge_config_done(&bench->config);
    kube_client_free(bench->kube);
    fake_transport_free(bench->api);
    loop_free(bench->loop);
    return 0;
}

static void see(struct kube_cache *cache, int version, const char *annotations)
{
    auto_json_doc struct json_doc *doc = NULL;
    auto_buf struct buf text = { .max = 2000 };
    const struct kube_object *object = NULL;

    buf_printf(
        &text,
        "{\"metadata\":{\"name\":\"o\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":"
        "\"%d\",\"annotations\":{%s}}}",
        version, annotations);
    assert_int_equal(json_parse(buf_str(&text), 2000, &doc, NULL), 0);
    assert_int_equal(kube_object_decode(kube_cache_kind(cache), json_root(doc), &object, NULL), 0);
    kube_cache_seen(cache, object);
    kube_object_unref(object);
}

/* Each follows the one before. */
static const struct {
    const char *annotations;
    unsigned told; /* so often by now */
} steps[] = {
    { "", 0 }, /* a new owner: its pods come after it */
    { "\"deployment.kubernetes.io/revision\":\"1\"", 0 },
    { "\"deployment.kubernetes.io/revision\":\"2\",\"" TIME "\":\"5\"", 1 },
    { "\"deployment.kubernetes.io/revision\":\"3\",\"" TIME "\":\"5\",\"z\":\"1\"", 1 },
    { "\"" TIME "\":\"6\"", 2 },
    { "\"" TIME "\":\"6\",\"" TIME "2\":\"6\"", 3 },
    { "\"" TIME "2\":\"6\"", 4 },
    { "", 5 },
};

static void the_words_of_an_owner_are_told_when_they_change(void **state)
{
    struct bench *bench = *state;
    struct kube_cache *const caches[] = { bench->world.jobs, bench->world.replicasets,
                                          bench->world.statefulsets,
                                          bench->world.optional[OPTIONAL_JOBSETS].cache,
                                          bench->world.optional[OPTIONAL_WORKLOADS].cache };

    for (size_t k = 0; k < sizeof(caches) / sizeof(caches[0]); k++) {
        bench->seen = bench->told = 0;
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
            see(caches[k], 5 + (int)i, steps[i].annotations);
            assert_int_equal(bench->told, steps[i].told);
            assert_int_equal(bench->seen, i + 1); /* units may wait for just this object */
        }
    }
}

static void pods_speak_for_themselves(void **state)
{
    struct bench *bench = *state;

    see(bench->world.pods, 5, "");
    see(bench->world.pods, 6, "\"" TIME "\":\"5\"");
    assert_int_equal(bench->told, 0);
}

static void a_change_of_a_volume_is_told(void **state)
{
    struct bench *bench = *state;

    see(bench->world.volumes, 5, "");
    assert_int_equal(bench->volumes, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_words_of_an_owner_are_told_when_they_change, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_change_of_a_volume_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pods_speak_for_themselves, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("watches", tests, NULL, NULL);
}
