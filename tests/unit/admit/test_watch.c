/* test_watch.c - what a webhook without a bridge reads of the cluster, and who it is. */
#include "admit/watch.h"
#include "admit_rig.h"
#include "fake_transport.h"

#define NAMESPACES  "/api/v1/namespaces"
#define JOBS        "/apis/batch/v1/jobs"
#define JOBSETS     "/apis/jobset.x-k8s.io/v1alpha2/jobsets"
#define GROUP       "/apis/jobset.x-k8s.io/v1alpha2"
#define SELF        "/apis/authentication.k8s.io/v1/selfsubjectreviews"
#define LIST(items) "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" items "]}"

enum { SECOND = 1000000 };

struct world {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *fake;
    struct kube_client *client;
    bool has_jobsets;
};

static struct fake_answer serve(void *context, const struct fake_sent *sent)
{
    struct world *world = context;
    bool is_watch = sent->stream;

    if (is_watch)
        return (struct fake_answer){ .status = 200 };
    if (strncmp(sent->path, JOBSETS, strlen(JOBSETS)) == 0)
        return (struct fake_answer){
            .status = 200,
            .body = LIST("{\"metadata\":{\"name\":\"s\",\"namespace\":\"n\",\"uid\":\"s-1\","
                         "\"resourceVersion\":\"3\"}}")
        };
    if (strncmp(sent->path, GROUP, strlen(GROUP)) == 0 && world->has_jobsets)
        return (struct fake_answer){ .status = 200,
                                     .body = "{\"resources\":[{\"name\":\"jobsets\"}]}" };
    if (strncmp(sent->path, GROUP, strlen(GROUP)) == 0)
        return (struct fake_answer){ .status = 404,
                                     .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\"}" };
    return (struct fake_answer){
        .status = 200,
        .body = LIST("{\"metadata\":{\"name\":\"one\",\"uid\":\"1\",\"resourceVersion\":\"3\","
                     "\"labels\":{\"slurm\":\"yes\"}}}")
    };
}

static void begin(struct world *world)
{
    clock_init_virtual(&world->clock, 0);
    world->loop = loop_new_virtual(&world->clock);
    world->fake = fake_transport_new(world->loop);
    fake_serve(world->fake, serve, world);
    world->client = kube_client_new(world->loop, fake_http(world->fake));
}

static void end(struct world *world)
{
    kube_client_free(world->client);
    fake_transport_free(world->fake);
    loop_free(world->loop);
}

static unsigned asked(const struct world *world, const char *path)
{
    unsigned count = 0;

    for (size_t i = 0; i < fake_sent_count(world->fake); i++)
        count += strncmp(fake_sent(world->fake, i)->path, path, strlen(path)) == 0;
    return count;
}

static void namespaces_and_jobs_are_read_at_once(void **state)
{
    struct world world = { .has_jobsets = true };
    struct admit_watch *watch;
    const struct bridge_world *caches;
    bool found;

    begin(&world);
    watch = admit_watch_new(world.client, 7);
    caches = admit_watch_world(watch);
    assert_false(kube_cache_is_synced(caches->namespaces));
    fake_run_for(world.fake, SECOND);
    assert_true(kube_cache_is_synced(caches->namespaces) && kube_cache_is_synced(caches->jobs));
    assert_true(kube_cache_is_synced(caches->optional[OPTIONAL_JOBSETS].cache));
    assert_non_null(kube_cache_get(caches->optional[OPTIONAL_JOBSETS].cache, "n", "s"));
    assert_true(str_is(
        kube_pairs_get(&kube_cache_get(caches->namespaces, "", "one")->labels, "slurm", &found),
        "yes"));
    admit_watch_free(watch);
    end(&world);
}

static void jobsets_are_read_once_the_server_has_them(void **state)
{
    struct world world = { .has_jobsets = false };
    struct admit_watch *watch;

    begin(&world);
    watch = admit_watch_new(world.client, 7);
    fake_run_for(world.fake, 65 * SECOND);
    assert_int_equal(asked(&world, JOBSETS), 0);
    assert_true(asked(&world, GROUP) >= 2);
    world.has_jobsets = true;
    fake_run_for(world.fake, 65 * SECOND);
    assert_true(kube_cache_is_synced(admit_watch_world(watch)->optional[OPTIONAL_JOBSETS].cache));
    admit_watch_free(watch);
    end(&world);
}

static void it_is_ready_when_namespaces_and_jobs_were_read(void **state)
{
    struct world world = { .has_jobsets = false };
    struct metrics *metrics = metrics_new();
    auto_buf struct buf out = { .max = 4096 };
    struct admit_watch *watch;
    struct health *health;

    begin(&world);
    health = health_new(world.loop, metrics, NULL);
    watch = admit_watch_new(world.client, 7);
    admit_watch_add_health(watch, health);
    assert_false(health_is_ready(health, false, &out));
    fake_run_for(world.fake, SECOND);
    assert_true(health_is_ready(health, false, &out));
    admit_watch_free(watch);
    health_free(health);
    metrics_free(metrics);
    end(&world);
}

/* ---- who we are ---- */

static bool is_never_refused(struct rig *rig, const char *user)
{
    return rig_ask(rig, ADMIT_VALIDATE,
                   (struct call){ .op = "UPDATE",
                                  .user = user,
                                  .sub = "resize",
                                  .pod = "{'metadata':{},'spec':{}}" })
               .answer.verdict == ADMIT_ALLOWED;
}

static void we_are_who_the_server_says(void **state)
{
    struct world world = { .has_jobsets = false };
    struct admit_self *self;
    struct rig rig;

    begin(&world);
    rig_begin(&rig, "");
    fake_status(world.fake, "POST", SELF, 503, "ServiceUnavailable", "not now");
    fake_answer(world.fake, "POST", SELF, (struct fake_answer){ .status = 201, .body = "{}" });
    fake_answer(
        world.fake, "POST", SELF,
        (struct fake_answer){
            .status = 201, .body = "{\"status\":{\"userInfo\":{\"username\":\"the-bridge\"}}}" });
    self = admit_self_new(world.client, rig.admit);
    fake_run_for(world.fake, 8 * SECOND);
    assert_int_equal(asked(&world, SELF), 2);
    assert_false(is_never_refused(&rig, "the-bridge"));
    fake_run_for(world.fake, 20 * SECOND);
    assert_int_equal(asked(&world, SELF), 3); /* and that is all */
    assert_true(is_never_refused(&rig, "the-bridge"));
    assert_false(is_never_refused(&rig, "another"));
    admit_self_free(self);
    rig_end(&rig);
    end(&world);
}

static void an_end_before_the_answer_leaves_nothing_behind(void **state)
{
    struct world world = { .has_jobsets = false };
    struct admit_self *self;
    struct rig rig;

    begin(&world);
    rig_begin(&rig, "");
    fake_answer(world.fake, "POST", SELF, (struct fake_answer){ .status = 0 });
    self = admit_self_new(world.client, rig.admit);
    fake_run_for(world.fake, 1000);
    admit_self_free(self);
    admit_self_free(NULL);
    admit_watch_free(NULL);
    rig_end(&rig);
    end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(namespaces_and_jobs_are_read_at_once),
        cmocka_unit_test(jobsets_are_read_once_the_server_has_them),
        cmocka_unit_test(it_is_ready_when_namespaces_and_jobs_were_read),
        cmocka_unit_test(we_are_who_the_server_says),
        cmocka_unit_test(an_end_before_the_answer_leaves_nothing_behind),
    };

    return cmocka_run_group_tests_name("admit watch", tests, NULL, NULL);
}
