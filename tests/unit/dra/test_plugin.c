/* test_plugin.c - the whole plugin on a made-up node: a client plays the kubelet over the real
 * sockets, a scripted transport plays the API server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"
#include "dra/kubelet_api.h"
#include "dra/metrics.h"
#include "dra/names.h"
#include "dra/plugin.h"
#include "fake_transport.h"
#include "sandbox.h"

#include <errno.h>

#include "grpc_client.h"

enum { PATIENCE_US = 1500000, MAX_CLAIMS = 8 };

#define HOME    "kubelet/plugins/" DRA_DRIVER
#define SERVICE HOME "/dra.sock"
#define REG     "kubelet/plugins_registry/" DRA_DRIVER "-reg.sock"

struct api_claim {
    const char *name, *uid, *cores;
    bool is_allocated;
};

struct world {
    struct sandbox box;
    char sys[128], root[128], cdi[128];
    struct loop *loop;
    struct fake_transport *fake;
    struct dra_plugin *plugin;
    struct client *kubelet; /* at the service socket */
    struct api_claim claims[MAX_CLAIMS];
    unsigned claim_count;
    bool api_is_away;
    char answer[4096];
};

static void quiet(void *context, struct str line)
{
    (void)context;
    (void)line;
}

/* ---- the API server ---- */

static struct fake_answer serve_claim(struct world *world, const char *name)
{
    for (unsigned i = 0; i < world->claim_count; i++) {
        const struct api_claim *claim = &world->claims[i];

        if (strcmp(claim->name, name) != 0)
            continue;
        snprintf(world->answer, sizeof(world->answer),
                 "{\"kind\":\"ResourceClaim\",\"metadata\":{\"namespace\":\"a\",\"name\":\"%s\","
                 "\"uid\":\"%s\"},\"status\":{%s\"devices\":{\"results\":[{\"request\":\"cores\","
                 "\"driver\":\"" DRA_DRIVER "\",\"pool\":\"n1\",\"device\":\"socket0-numa0\"}],"
                 "\"config\":[{\"source\":\"FromClass\",\"opaque\":{\"driver\":\"" DRA_DRIVER
                 "\",\"parameters\":{\"apiVersion\":\"" DRA_DRIVER "/v1\",\"kind\":\"SlurmCores\","
                 "\"cores\":\"%s\",\"sockets\":1,\"coresPerSocket\":2,\"threadsPerCore\":1,"
                 "\"job\":\"7\"}}}]}}}}",
                 claim->name, claim->uid,
                 claim->is_allocated ? "\"allocation\":{" : "\"nothing\":{", claim->cores);
        return (struct fake_answer){ .status = 200, .body = world->answer };
    }
    return (struct fake_answer){
        .status = 404,
        .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"claim not found\"}"
    };
}

static struct fake_answer serve(void *context, const struct fake_sent *sent)
{
    struct world *world = context;
    const char *claim = strstr(sent->path, "/resourceclaims/");

    if (world->api_is_away)
        return (struct fake_answer){ .class = ERR_UNAVAILABLE };
    if (claim)
        return serve_claim(world, claim + strlen("/resourceclaims/"));
    if (sent->stream)
        return (struct fake_answer){ .status = 200, .body = "" };
    if (strcmp(sent->method, "POST") == 0)
        return (struct fake_answer){ .status = 201, .body = sent->body };
    return (struct fake_answer){ .status = 200,
                                 .body = strstr(sent->path, "/nodes")
                                             ? "{\"metadata\":{\"resourceVersion\":\"9\"},"
                                               "\"items\":[{\"metadata\":{\"name\":\"n1\",\"uid\":"
                                               "\"u-n1\",\"resourceVersion\":\"1\"}}]}"
                                             : "{\"metadata\":{\"resourceVersion\":\"9\"},"
                                               "\"items\":[]}" };
}

static void add_claim(struct world *world, const char *name, const char *uid, const char *cores,
                      bool is_allocated)
{
    world->claims[world->claim_count++] = (struct api_claim){ name, uid, cores, is_allocated };
}

/* ---- the plugin ---- */

static int make_plugin(struct world *world, struct err *err)
{
    const struct dra_options options = { .node = "n1",
                                         .sys = world->sys,
                                         .kubelet_root = world->root,
                                         .cdi_folder = world->cdi,
                                         .hook_program = HOOK_PROGRAM,
                                         .patience_us = PATIENCE_US };
    int result = dra_plugin_new(world->loop, fake_http(world->fake), &options, &world->plugin, err);

    return result < 0 ? result : dra_plugin_start(world->plugin, err);
}

static void start(struct world *world)
{
    struct err err = { 0 };

    if (make_plugin(world, &err) < 0)
        fail_msg("%s", err.text);
    world->kubelet = client_new(world->loop, sandbox_path(&world->box, SERVICE));
}

static void stop(struct world *world)
{
    if (world->kubelet)
        client_free(world->kubelet);
    dra_plugin_free(world->plugin);
    world->kubelet = NULL;
    world->plugin = NULL;
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    log_setup(&(struct log_options){ .sink = quiet });
    sandbox_init(&world->box);
    sandbox_two_cores(&world->box);
    sandbox_write(&world->box, "sys/fs/cgroup/cpuset/cpuset.cpus", "0-1\n");
    sandbox_write(&world->box, "kubelet/plugins_registry/.keep", "");
    snprintf(world->sys, sizeof(world->sys), "%s/sys", world->box.root);
    snprintf(world->root, sizeof(world->root), "%s/kubelet", world->box.root);
    snprintf(world->cdi, sizeof(world->cdi), "%s/cdi", world->box.root);
    assert_int_equal(loop_new_real(&world->loop, NULL), 0);
    world->fake = fake_transport_new(world->loop);
    fake_serve(world->fake, serve, world);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    stop(world);
    fake_transport_free(world->fake);
    loop_free(world->loop);
    sandbox_done(&world->box);
    log_setup(NULL);
    free(world);
    return 0;
}

/* ---- what the kubelet asks ---- */

struct asked { /* the claims of one call: name and UID, one after the other */
    const char *names[4], *uids[4];
    size_t count;
};

struct reply {
    struct arena arena;
    struct buf bytes;
    struct kubelet_answers answers;
};

static void reply_done(struct reply *reply)
{
    arena_done(&reply->arena);
    buf_done(&reply->bytes);
}

#define auto_reply __attribute__((cleanup(reply_done)))

static void ask(struct world *world, const char *path, const struct protobuf_message *message,
                const struct asked *asked, struct reply *reply)
{
    struct kubelet_claim claims[4];
    struct client_call *call;
    struct err err = { 0 };
    auto_buf struct buf request;

    for (size_t i = 0; i < asked->count; i++)
        claims[i] =
            (struct kubelet_claim){ STR("a"), str_of(asked->uids[i]), str_of(asked->names[i]) };
    buf_init(&request, 4096);
    protobuf_encode(&kubelet_claims_message, &(struct kubelet_claims){ { claims, asked->count } },
                    &request);
    call = client_send(world->kubelet, path, (struct client_headers){ .timeout = "45S" },
                       buf_str(&request));
    client_until(world->kubelet, call->ended);
    assert_string_equal(call->grpc_status, "0");
    arena_init(&reply->arena, 1 << 20);
    buf_init(&reply->bytes, 1 << 16);
    assert_true(client_take(call, &reply->bytes));
    if (protobuf_decode(message, buf_str(&reply->bytes), &reply->arena, &reply->answers, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(reply->answers.claims.count, asked->count);
}

static void prepare(struct world *world, const char *name, const char *uid, struct reply *reply)
{
    ask(world, KUBELET_PREPARE, &kubelet_prepare_message, &(struct asked){ { name }, { uid }, 1 },
        reply);
}

static void unprepare(struct world *world, const char *name, const char *uid, struct reply *reply)
{
    ask(world, KUBELET_UNPREPARE, &kubelet_unprepare_message,
        &(struct asked){ { name }, { uid }, 1 }, reply);
}

static const struct kubelet_claim_answer *answer_of(const struct reply *reply, const char *uid)
{
    static const struct kubelet_claim_answer none = { .error = { "", 0 } };
    const struct kubelet_answer_entry *entries = reply->answers.claims.at;

    for (size_t i = 0; i < reply->answers.claims.count; i++)
        if (str_is(entries[i].uid, uid))
            return entries[i].answer ? entries[i].answer : &none;
    fail_msg("%s was not answered", uid);
    return NULL;
}

static void expect_prepared(const struct reply *reply, const char *uid)
{
    const struct kubelet_claim_answer *answer = answer_of(reply, uid);
    const struct kubelet_device *device = answer->devices.at;
    char id[256];

    assert_int_equal(answer->error.len, 0);
    assert_int_equal(answer->devices.count, 1);
    snprintf(id, sizeof(id), DRA_DRIVER "/cpuset=claim-%s", uid);
    assert_int_equal(device->requests.count, 0); /* for all of them */
    assert_true(str_is(device->pool, "n1"));
    assert_true(str_is(device->device, "socket0-numa0"));
    assert_int_equal(device->cdi_ids.count, 1);
    assert_true(str_is(*(const struct str *)device->cdi_ids.at, id));
}

static void expect_error(const struct reply *reply, const char *uid, const char *words)
{
    const struct kubelet_claim_answer *answer = answer_of(reply, uid);
    char text[512];

    snprintf(text, sizeof(text), STR_FMT, STR_ARG(answer->error));
    if (!strstr(text, words))
        fail_msg("'%s' says nothing of '%s'", text, words);
    assert_int_equal(answer->devices.count, 0);
}

static const char *device_file(struct world *world, const char *uid)
{
    char name[256];

    snprintf(name, sizeof(name), "cdi/" DRA_DRIVER "-claim-%s.json", uid);
    return sandbox_read(&world->box, name);
}

/* ---- the tests ---- */

static void the_registrar_tells_who_we_are(void **state)
{
    struct world *world = *state;
    struct kubelet_plugin_info info;
    auto_arena struct arena arena;
    auto_buf struct buf message;
    struct client *registrar;
    struct client_call *call;

    start(world);
    registrar = client_new(world->loop, sandbox_path(&world->box, REG));
    call = client_send(registrar, KUBELET_GET_INFO, (struct client_headers){ .timeout = "1S" },
                       STR(""));
    client_until(registrar, call->ended);
    buf_init(&message, 4096);
    arena_init(&arena, 1 << 20);
    assert_true(client_take(call, &message));
    assert_int_equal(
        protobuf_decode(&kubelet_plugin_info_message, buf_str(&message), &arena, &info, NULL), 0);
    assert_true(str_is(info.type, "DRAPlugin"));
    assert_true(str_is(info.name, DRA_DRIVER));
    assert_true(str_is(info.endpoint, sandbox_path(&world->box, SERVICE)));
    assert_int_equal(info.versions.count, 1);
    assert_true(str_is(*(struct str *)info.versions.at, "v1.DRAPlugin"));
    call = client_send(registrar, KUBELET_NOTIFY, (struct client_headers){ .timeout = "5S" },
                       (struct str){ "\x08\x01", 2 });
    client_until(registrar, call->ended);
    assert_string_equal(call->grpc_status, "0");
    client_free(registrar);
}

static void a_claim_is_prepared_and_its_device_runs_the_hook(void **state)
{
    struct world *world = *state;
    auto_reply struct reply reply;
    const char *file;

    add_claim(world, "c1", "u1", "1", true);
    start(world);
    prepare(world, "c1", "u1", &reply);
    expect_prepared(&reply, "u1");
    file = device_file(world, "u1");
    assert_non_null(strstr(file, "\"createRuntime\""));
    assert_non_null(strstr(file, "\"SLINC_CPUS=1\""));
    assert_non_null(strstr(file, "plugins/" DRA_DRIVER "/cpuset-hook-"));
    assert_non_null(strstr(sandbox_read(&world->box, HOME "/checkpoint.json"), "\"cpus\": \"1\""));
}

static void every_claim_of_a_call_is_answered(void **state)
{
    struct world *world = *state;
    auto_reply struct reply reply;

    add_claim(world, "c1", "u1", "0", true);
    add_claim(world, "c2", "other", "1", true);
    start(world);
    ask(world, KUBELET_PREPARE, &kubelet_prepare_message,
        &(struct asked){ { "c1", "c2", "c3", "c4" }, { "u1", "u2", "u3", "../u4" }, 4 }, &reply);
    expect_prepared(&reply, "u1");
    expect_error(&reply, "u2", "another claim has this name");
    expect_error(&reply, "u3", "claim not found");
    expect_error(&reply, "../u4", "no UID of a claim");
}

static void preparing_twice_gives_the_same_answer(void **state)
{
    struct world *world = *state;
    auto_reply struct reply first, second;

    add_claim(world, "c1", "u1", "1", true);
    start(world);
    prepare(world, "c1", "u1", &first);
    world->api_is_away = true; /* nobody is asked the second time */
    prepare(world, "c1", "u1", &second);
    assert_true(str_eq(buf_str(&first.bytes), buf_str(&second.bytes)));
}

static void a_claim_that_is_not_allocated_yet_is_waited_for(void **state)
{
    struct world *world = *state;
    auto_reply struct reply reply;
    size_t asked;

    add_claim(world, "c1", "u1", "1", false);
    start(world);
    prepare(world, "c1", "u1", &reply);
    expect_error(&reply, "u1", "not allocated");
    for (size_t i = asked = 0; i < fake_sent_count(world->fake); i++)
        asked += strstr(fake_sent(world->fake, i)->path, "resourceclaims/c1") != NULL;
    assert_true(asked >= 2); /* it was looked at again within the call */
}

static void an_api_server_that_comes_back_in_time_does_no_harm(void **state)
{
    struct world *world = *state;
    auto_reply struct reply reply;

    add_claim(world, "c1", "u1", "1", true);
    fake_answer(world->fake, "GET", "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/c1",
                (struct fake_answer){ .class = ERR_UNAVAILABLE });
    start(world);
    prepare(world, "c1", "u1", &reply);
    expect_prepared(&reply, "u1");
}

static void a_core_in_two_claims_is_refused_naming_both(void **state)
{
    struct world *world = *state;
    auto_reply struct reply first, second, gone, third;

    add_claim(world, "c1", "u1", "0-1", true);
    add_claim(world, "c2", "u2", "1", true);
    start(world);
    prepare(world, "c1", "u1", &first);
    expect_prepared(&first, "u1");
    prepare(world, "c2", "u2", &second);
    expect_error(&second, "u2", "CPUs 1 overlap CPUs 0-1 of claim a/c1");
    assert_string_equal(device_file(world, "u2"), "");
    unprepare(world, "c1", "u1", &gone);
    prepare(world, "c2", "u2", &third);
    expect_prepared(&third, "u2");
}

static void unpreparing_removes_all_and_may_be_repeated(void **state)
{
    struct world *world = *state;
    auto_reply struct reply first, second, third, stranger, wrong;

    add_claim(world, "c1", "u1", "1", true);
    start(world);
    prepare(world, "c1", "u1", &first);
    world->api_is_away = true; /* and the claim may be deleted long since */
    unprepare(world, "c1", "u1", &second);
    expect_error(&second, "u1", "");
    assert_string_equal(device_file(world, "u1"), "");
    assert_null(strstr(sandbox_read(&world->box, HOME "/checkpoint.json"), "u1"));
    unprepare(world, "c1", "u1", &third);
    assert_int_equal(answer_of(&third, "u1")->error.len, 0);
    unprepare(world, "never", "seen", &stranger);
    assert_int_equal(answer_of(&stranger, "seen")->error.len, 0);
    unprepare(world, "c1", "../../etc/passwd", &wrong);
    expect_error(&wrong, "../../etc/passwd", "no UID");
}

static void a_new_process_knows_what_the_old_one_prepared(void **state)
{
    struct world *world = *state;
    auto_reply struct reply first, second;

    add_claim(world, "c1", "u1", "1", true);
    start(world);
    prepare(world, "c1", "u1", &first);
    stop(world);
    assert_int_equal(unlink(sandbox_path(&world->box, "cdi/" DRA_DRIVER "-claim-u1.json")), 0);
    world->api_is_away = true;
    start(world);
    assert_non_null(strstr(device_file(world, "u1"), "createRuntime")); /* before anybody asks */
    prepare(world, "c1", "u1", &second);
    assert_true(str_eq(buf_str(&first.bytes), buf_str(&second.bytes)));
}

/* As after a kill between the CDI file and the checkpoint. */
static void a_device_file_without_a_checkpoint_is_used_or_removed(void **state)
{
    struct world *world = *state;
    auto_reply struct reply first, second;

    add_claim(world, "c1", "u1", "1", true);
    sandbox_write(&world->box, "cdi/" DRA_DRIVER "-claim-u1.json", "{}");
    sandbox_write(&world->box, "cdi/" DRA_DRIVER "-claim-u2.json", "{}");
    start(world);
    prepare(world, "c1", "u1", &first);
    expect_prepared(&first, "u1");
    assert_non_null(strstr(device_file(world, "u1"), "createRuntime"));
    unprepare(world, "c2", "u2", &second);
    assert_string_equal(device_file(world, "u2"), "");
}

static void a_broken_checkpoint_stops_the_start(void **state)
{
    struct world *world = *state;
    struct err err = { 0 };

    sandbox_write(&world->box, HOME "/checkpoint.json", "{\"version\": 1, \"claims\": [{\"uid\"");
    assert_true(make_plugin(world, &err) < 0);
    assert_non_null(strstr(err.text, "checkpoint.json"));
}

static const struct fake_sent *posted(const struct world *world)
{
    for (size_t i = 0; i < fake_sent_count(world->fake); i++)
        if (strcmp(fake_sent(world->fake, i)->method, "POST") == 0)
            return fake_sent(world->fake, i);
    return NULL;
}

static void a_static_cpu_manager_stops_pinning(void **state)
{
    struct world *world = *state;
    auto_reply struct reply reply;
    const struct fake_sent *sent = NULL;

    sandbox_write(&world->box, "kubelet/cpu_manager_state", "{\"policyName\":\"static\"}");
    add_claim(world, "c1", "u1", "1", true);
    start(world);
    prepare(world, "c1", "u1", &reply);
    expect_error(&reply, "u1", "policy 'static'");
    client_until(world->kubelet, (sent = posted(world)));
    assert_non_null(strstr(sent->body, "\"devices\":[]"));
    assert_non_null(strstr(sent->body, "policy 'static'"));
}

static void the_health_of_devices_is_told_at_once(void **state)
{
    struct world *world = *state;
    struct kubelet_healths healths;
    const struct kubelet_device_health *row;
    auto_arena struct arena arena;
    auto_buf struct buf message;
    struct client_call *call;

    start(world);
    buf_init(&message, 4096);
    arena_init(&arena, 1 << 20);
    call =
        client_send(world->kubelet, KUBELET_WATCH_HEALTH, (struct client_headers){ NULL }, STR(""));
    client_until(world->kubelet, client_take(call, &message));
    assert_int_equal(
        protobuf_decode(&kubelet_healths_message, buf_str(&message), &arena, &healths, NULL), 0);
    assert_int_equal(healths.devices.count, 1);
    row = healths.devices.at;
    assert_true(str_is(row->device->device, "socket0-numa0"));
    assert_int_equal(row->health, KUBELET_HEALTHY);
    assert_false(call->ended);
}

static void a_request_that_is_no_message_is_refused(void **state)
{
    struct world *world = *state;
    struct client_call *call;

    start(world);
    call = client_send(world->kubelet, KUBELET_PREPARE, (struct client_headers){ NULL },
                       STR("\x0a\x7f"));
    client_until(world->kubelet, call->ended);
    assert_string_equal(call->grpc_status, "3");
}

/* The kubelet hangs up while a claim is waited for. */
static void a_kubelet_that_leaves_is_no_harm(void **state)
{
    struct world *world = *state;
    auto_buf struct buf request;
    struct kubelet_claim claim = { STR("a"), STR("u1"), STR("c1") };

    add_claim(world, "c1", "u1", "1", false);
    start(world);
    buf_init(&request, 4096);
    protobuf_encode(&kubelet_claims_message, &(struct kubelet_claims){ { &claim, 1 } }, &request);
    client_send(world->kubelet, KUBELET_PREPARE, (struct client_headers){ NULL },
                buf_str(&request));
    client_until(world->kubelet, strstr(fake_last_sent(world->fake)->path, "resourceclaims/c1"));
    client_free(world->kubelet);
    world->kubelet = client_new(world->loop, sandbox_path(&world->box, SERVICE));
    client_until(world->kubelet, world->kubelet->has_settings);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_registrar_tells_who_we_are),
        TEST(a_claim_is_prepared_and_its_device_runs_the_hook),
        TEST(every_claim_of_a_call_is_answered),
        TEST(preparing_twice_gives_the_same_answer),
        TEST(a_claim_that_is_not_allocated_yet_is_waited_for),
        TEST(an_api_server_that_comes_back_in_time_does_no_harm),
        TEST(a_core_in_two_claims_is_refused_naming_both),
        TEST(unpreparing_removes_all_and_may_be_repeated),
        TEST(a_new_process_knows_what_the_old_one_prepared),
        TEST(a_device_file_without_a_checkpoint_is_used_or_removed),
        TEST(a_broken_checkpoint_stops_the_start),
        TEST(a_static_cpu_manager_stops_pinning),
        TEST(the_health_of_devices_is_told_at_once),
        TEST(a_request_that_is_no_message_is_refused),
        TEST(a_kubelet_that_leaves_is_no_harm),
    };

    return cmocka_run_group_tests_name("plugin", tests, NULL, NULL);
}
