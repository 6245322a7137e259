/* test_gone.c - a pod that was deleted behind our back holds up nothing of its NodeSet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/json_format.h"
#include "desk.h"
#include "engine/executor.h"
#include "fake_transport.h"

static const char *const objects[] = {
    "{'kind':'Controller','metadata':{'name':'slurm'},'spec':{}}",
    "{'kind':'NodeSet','metadata':{'name':'w','finalizers':['slinc.slurm.net/drain']},"
    "'spec':{'controllerRef':{'name':'slurm'},'replicas':2,'slurmd':{'image':'s'}}}",
    "{'kind':'Pod','worker':'w','metadata':{'name':'w-0'},'runs':'n0'}",
    "{'kind':'Pod','worker':'w','metadata':{'name':'w-1'},'runs':'n1'}",
};

/* Pod w-0 is gone, and the cache has not heard of it. Of others it matters only that they are
 * written. */
static struct fake_answer answer(void *context, const struct fake_sent *sent)
{
    (void)context;
    if (strstr(sent->path, "/pods/w-0"))
        return (struct fake_answer){ .status = 404,
                                     .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\","
                                             "\"message\":\"pods \\\"w-0\\\" not found\"}" };
    return (struct fake_answer){ .status = 200, .body = "{\"kind\":\"Other\"}" };
}

struct result {
    struct execution execution; /* first */
    bool has_ended;
    enum execution_end end;
};

static void ended(struct execution *execution, enum execution_end end)
{
    struct result *result = (struct result *)(void *)execution;

    result->has_ended = true;
    result->end = end;
}

static bool was_sent(const struct fake_transport *fake, const char *path)
{
    for (size_t i = 0; i < fake_sent_count(fake); i++)
        if (strcmp(fake_sent(fake, i)->path, path) == 0)
            return true;
    return false;
}

static void a_pod_that_is_gone_holds_up_no_other(void **state)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *facts = NULL;
    struct metrics *metrics = metrics_new();
    struct result result = { .has_ended = false };
    struct fake_transport *fake;
    struct kube_client *client;
    struct settler *settler;
    struct executor *executor;
    struct rand rand;
    struct desk desk;

    desk_init(&desk);
    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        auto_json_doc struct json_doc *object = json_freeze(json_format(build, objects[i]));

        assert_int_equal(desk_add(&desk, json_root(object), NULL), 0);
    }
    facts = json_freeze(json_format(build, "{'slurm':{'nodes':[{'name':'w-0','state':['MIXED']},"
                                           "{'name':'w-1','state':['MIXED']}]}}"));
    assert_int_equal(desk_slurm(&desk, json_root(facts), NULL), 0);
    rand_init(&rand, 1);
    fake = fake_transport_new(desk.loop);
    fake_serve(fake, answer, NULL);
    client = kube_client_new(desk.loop, fake_http(fake));
    settler = settler_new(client, &rand);
    executor = executor_new(&(struct executor_options){
        .loop = desk.loop, .settler = settler, .metrics = metrics, .max_in_flight = 8 });
    executor_add_lane(executor, &action_kube, client);

    assert_int_equal(desk_plan(&desk, STR("NodeSet"), STR("w"), NULL), 0);
    execution_begin(executor, &result.execution, &desk.plan, ended);
    fake_run_for(fake, 1000000);
    assert_true(result.has_ended);
    assert_int_equal(result.end, EXECUTION_DONE);
    assert_true(was_sent(fake, "/api/v1/namespaces/site/pods/w-0/status"));
    assert_true(was_sent(fake, "/api/v1/namespaces/site/pods/w-1/status"));
    assert_true(was_sent(fake, "/api/v1/namespaces/site/pods/w-1")); /* in the stage behind it */
    assert_null(kube_cache_get(desk.world.pods, "site", "w-0"));     /* the next plan knows */

    executor_free(executor);
    settler_free(settler);
    kube_client_free(client);
    fake_transport_free(fake);
    metrics_free(metrics);
    desk_done(&desk);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_that_is_gone_holds_up_no_other),
    };

    return cmocka_run_group_tests_name("gone", tests, NULL, NULL);
}
