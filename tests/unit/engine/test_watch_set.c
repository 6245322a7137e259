/* test_watch_set.c - informers of required kinds start at once; an optional kind is looked for, and
 * its absence is a fact that holds until the server has the kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../kube/fake_transport.h"
#include "base/log.h"
#include "engine/watch_set.h"
#include "kube/kinds.h"

#define MAPS        "/api/v1/configmaps"
#define GROUP       "/apis/jobset.x-k8s.io/v1alpha2"
#define JOBSETS     GROUP "/jobsets"
#define OTHER_GROUP "/apis/resource.k8s.io/v1"
#define OTHERS      OTHER_GROUP "/resourceclaims"
#define EMPTY_LIST  "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[]}"

enum { MS = 1000, SECOND = 1000000 };

static const struct kube_kind map_kind = { .resource = &kube_configmaps };
static const struct kube_resource jobsets = { "jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet",
                                              true };
static const struct kube_kind jobset_kind = { .resource = &jobsets };
static const struct kube_resource claims = { "resource.k8s.io", "v1", "resourceclaims",
                                             "ResourceClaim", true };
static const struct kube_kind claim_kind = { .resource = &claims };

struct bench {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *api;
    struct kube_client *client;
    struct rand rand;
    struct kube_cache *maps, *jobsets, *claims;
    struct watch_set *set;
};

/* ConfigMaps are required; JobSets and ResourceClaims are optional. */
static int set_up(void **state)
{
    static struct bench bench;

    bench = (struct bench){ .set = NULL };
    clock_init_virtual(&bench.clock, SECOND);
    bench.loop = loop_new_virtual(&bench.clock);
    bench.api = fake_transport_new(bench.loop);
    bench.client = kube_client_new(bench.loop, fake_http(bench.api));
    rand_init(&bench.rand, 1);
    bench.maps = kube_cache_new(&map_kind, &bench.clock);
    bench.jobsets = kube_cache_new(&jobset_kind, &bench.clock);
    bench.claims = kube_cache_new(&claim_kind, &bench.clock);

    const struct watch_row rows[] = {
        { .cache = bench.maps, .label_selector = "app=slurm", .field_selector = "type=x" },
        { .cache = bench.jobsets, .is_optional = true },
        { .cache = bench.claims, .is_optional = true },
    };

    bench.set = watch_set_new(bench.client, &bench.rand, rows, 3, NULL, 0, 0);
    *state = &bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    watch_set_free(bench->set);
    kube_cache_free(bench->maps);
    kube_cache_free(bench->jobsets);
    kube_cache_free(bench->claims);
    kube_client_free(bench->client);
    fake_transport_free(bench->api);
    loop_free(bench->loop);
    return 0;
}

/* A list, then a watch that stays open. */
static void answer_reads(struct bench *bench, const char *path)
{
    fake_answer(bench->api, "GET", path, (struct fake_answer){ .status = 200, .body = EMPTY_LIST });
    fake_answer(bench->api, "GET", path, (struct fake_answer){ .status = 200 });
}

static void answer_group(struct bench *bench, const char *path, const char *plural)
{
    auto_buf struct buf body = { .max = 1000 };

    buf_printf(&body, "{\"resources\":[{\"name\":\"%s\"}]}", plural);
    fake_answer(bench->api, "GET", path,
                (struct fake_answer){ .status = 200, .body = buf_text(&body) });
}

static void answer_absent(struct bench *bench, const char *path)
{
    fake_answer(bench->api, "GET", path,
                (struct fake_answer){ .status = 404, .body = "404 page not found" });
}

static unsigned sent_to(const struct bench *bench, const char *path)
{
    struct str wanted = str_of(path);
    unsigned count = 0;

    for (size_t i = 0; i < fake_sent_count(bench->api); i++) {
        struct str sent = str_of(fake_sent(bench->api, i)->path);

        count += str_starts(sent, wanted) && (sent.len == wanted.len || sent.at[wanted.len] == '?');
    }
    return count;
}

/* ---- */

static void a_required_kind_is_read_at_once_with_its_selectors(void **state)
{
    struct bench *bench = *state;

    answer_reads(bench, MAPS);
    answer_absent(bench, GROUP);
    answer_absent(bench, OTHER_GROUP);
    assert_int_equal(watch_set_state(bench->set, bench->maps), WATCH_UNKNOWN);
    watch_set_start(bench->set);
    fake_run_for(bench->api, MS);
    assert_int_equal(watch_set_state(bench->set, bench->maps), WATCH_PRESENT);
    assert_int_equal(sent_to(bench, MAPS), 2);
    assert_non_null(strstr(fake_sent(bench->api, 0)->path, "labelSelector=app%3Dslurm"));
    assert_non_null(strstr(fake_sent(bench->api, 0)->path, "fieldSelector=type%3Dx"));
}

static void an_optional_kind_is_looked_for_before_it_is_read(void **state)
{
    struct bench *bench = *state;

    answer_reads(bench, MAPS);
    answer_group(bench, GROUP, "jobsets");
    answer_reads(bench, JOBSETS);
    answer_absent(bench, OTHER_GROUP);
    watch_set_start(bench->set);
    assert_int_equal(watch_set_state(bench->set, bench->jobsets), WATCH_UNKNOWN);
    fake_run_for(bench->api, MS);
    assert_int_equal(watch_set_state(bench->set, bench->jobsets), WATCH_PRESENT);
    assert_int_equal(watch_set_state(bench->set, bench->claims), WATCH_ABSENT);
    assert_int_equal(sent_to(bench, OTHERS), 0);
}

static void a_kind_that_is_installed_later_is_found(void **state)
{
    struct bench *bench = *state;

    answer_reads(bench, MAPS);
    answer_absent(bench, GROUP);
    answer_absent(bench, OTHER_GROUP);
    watch_set_start(bench->set);
    fake_run_for(bench->api, MS);
    assert_int_equal(watch_set_state(bench->set, bench->jobsets), WATCH_ABSENT);

    fake_answer(bench->api, "GET", MAPS,
                (struct fake_answer){ .status = 200, .times = FAKE_ALWAYS });
    answer_group(bench, GROUP, "jobsets");
    answer_reads(bench, JOBSETS);
    answer_absent(bench, OTHER_GROUP);
    fake_run_for(bench->api, 9 * SECOND);
    assert_int_equal(sent_to(bench, GROUP), 1);
    fake_run_for(bench->api, 2 * SECOND);
    assert_int_equal(watch_set_state(bench->set, bench->jobsets), WATCH_PRESENT);
    assert_int_equal(watch_set_state(bench->set, bench->claims), WATCH_ABSENT);
}

/* Also when another kind is absent, which alone would be looked for ten seconds later. */
static void a_server_that_cannot_be_asked_is_asked_again_after_a_second(void **state)
{
    struct bench *bench = *state;

    answer_reads(bench, MAPS);
    answer_absent(bench, GROUP);
    fake_answer(bench->api, "GET", OTHER_GROUP,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .delay_us = MS });
    watch_set_start(bench->set);
    fake_run_for(bench->api, 10 * MS);
    assert_int_equal(watch_set_state(bench->set, bench->jobsets), WATCH_ABSENT);
    assert_int_equal(watch_set_state(bench->set, bench->claims), WATCH_UNKNOWN);

    answer_group(bench, OTHER_GROUP, "resourceclaims");
    answer_reads(bench, OTHERS);
    fake_run_for(bench->api, SECOND);
    assert_int_equal(watch_set_state(bench->set, bench->claims), WATCH_PRESENT);
    assert_int_equal(sent_to(bench, GROUP), 1);
}

static void only_required_kinds_count_for_readiness(void **state)
{
    struct bench *bench = *state;
    struct metrics *metrics = metrics_new();
    struct health *health = health_new(bench->loop, metrics, NULL);
    auto_buf struct buf why = { .max = 1000 };

    answer_reads(bench, MAPS);
    answer_absent(bench, GROUP);
    answer_absent(bench, OTHER_GROUP);
    watch_set_add_health(bench->set, health);
    assert_false(health_is_ready(health, false, &why));
    assert_string_equal(buf_text(&why), "[-] cache of configmaps: not synced\n");
    watch_set_start(bench->set);
    fake_run_for(bench->api, MS);
    assert_true(health_is_ready(health, false, &why));
    health_write_state(health, &why);
    assert_non_null(strstr(buf_text(&why), "\"kind\":\"jobsets\",\"state\":\"idle\""));
    health_free(health);
    metrics_free(metrics);
}

/* ---- what is logged ---- */

static void keep_line(void *context, struct str line)
{
    buf_add_str(context, line);
}

static unsigned count_of(const struct buf *lines, const char *word)
{
    unsigned count = 0;

    for (const char *at = buf_text(lines); (at = strstr(at, word)); at++)
        count++;
    return count;
}

static void log_into(const struct bench *bench, struct buf *lines)
{
    log_setup(&(struct log_options){
        .clock = &bench->clock, .sink = keep_line, .context = lines, .format = LOG_FORMAT_JSON });
}

static void a_kind_that_cannot_be_read_is_logged_once_and_its_end_too(void **state)
{
    struct bench *bench = *state;
    auto_buf struct buf lines = { .max = 1 << 20 };

    log_into(bench, &lines);
    fake_answer(bench->api, "GET", MAPS, (struct fake_answer){ .status = 200, .body = EMPTY_LIST });
    fake_answer(bench->api, "GET", MAPS,
                (struct fake_answer){ .status = 200, .times = FAKE_ALWAYS });
    answer_group(bench, GROUP, "jobsets");
    for (int i = 0; i < 10; i++)
        fake_status(bench->api, "GET", JOBSETS, 403, "Forbidden", "jobsets is forbidden");
    fake_answer(
        bench->api, "GET", OTHER_GROUP,
        (struct fake_answer){ .status = 404, .body = "404 page not found", .times = FAKE_ALWAYS });
    watch_set_start(bench->set);
    fake_run_for(bench->api, 35 * SECOND);
    assert_int_equal(count_of(&lines, "jobsets is forbidden"), 1);
    fake_answer(bench->api, "GET", JOBSETS,
                (struct fake_answer){ .status = 200, .body = EMPTY_LIST });
    fake_answer(bench->api, "GET", JOBSETS,
                (struct fake_answer){ .status = 200, .times = FAKE_ALWAYS });
    fake_run_for(bench->api, 120 * SECOND);
    assert_int_equal(count_of(&lines, "jobsets is forbidden"), 1);
    assert_int_equal(count_of(&lines, "a kind is watched again"), 1);
    log_setup(NULL);
}

static void a_kind_that_cannot_be_asked_for_is_logged_once(void **state)
{
    struct bench *bench = *state;
    auto_buf struct buf lines = { .max = 1 << 20 };

    log_into(bench, &lines);
    fake_answer(bench->api, "GET", MAPS,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = FAKE_ALWAYS });
    fake_answer(bench->api, "GET", GROUP,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = FAKE_ALWAYS });
    fake_answer(bench->api, "GET", OTHER_GROUP,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = FAKE_ALWAYS });
    watch_set_start(bench->set);
    fake_run_for(bench->api, 60 * SECOND);
    assert_true(sent_to(bench, GROUP) >= 50);
    assert_int_equal(count_of(&lines, "cannot ask the API server"), 2);
    log_setup(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_required_kind_is_read_at_once_with_its_selectors),
        TEST(an_optional_kind_is_looked_for_before_it_is_read),
        TEST(a_kind_that_is_installed_later_is_found),
        TEST(a_server_that_cannot_be_asked_is_asked_again_after_a_second),
        TEST(only_required_kinds_count_for_readiness),
        TEST(a_kind_that_cannot_be_read_is_logged_once_and_its_end_too),
        TEST(a_kind_that_cannot_be_asked_for_is_logged_once),
    };

    return cmocka_run_group_tests_name("watch_set", tests, NULL, NULL);
}
