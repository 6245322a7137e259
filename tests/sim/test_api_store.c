/* test_api_store.c - what the conformance script cannot show of the API server model: forgotten
 * history, admission, listeners, background work, and that it repeats itself exactly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api_store.h"

#include <stdio.h>

#define CONFIGMAPS "/api/v1/namespaces/default/configmaps"

struct server {
    struct clock clock;
    struct api_store *store;
    struct api_answer answer; /* the last one */
};

static int set_up(void **state)
{
    static struct server server;

    clock_init_virtual(&server.clock, INT64_C(1767225600000000));
    server.store = api_store_new(&server.clock, 1);
    api_answer_init(&server.answer);
    *state = &server;
    return 0;
}

static int tear_down(void **state)
{
    struct server *server = *state;

    api_answer_done(&server->answer);
    api_store_free(server->store);
    return 0;
}

static int call_as(struct server *server, const char *method, const char *target, const char *body,
                   const char *type)
{
    api_answer_done(&server->answer);
    api_answer_init(&server->answer);
    api_serve(
        server->store,
        &(struct api_request){ method, str_of(target), str_of(type), str_of(body), "somebody" },
        &server->answer);
    return server->answer.status;
}

static int call(struct server *server, const char *method, const char *target, const char *body)
{
    return call_as(server, method, target, body,
                   strcmp(method, "PATCH") == 0 ? "application/merge-patch+json"
                                                : "application/json");
}

static void make(struct server *server, const char *name)
{
    char body[100];

    (void)snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%s\"}}", name);
    assert_int_equal(call(server, "POST", CONFIGMAPS, body), 201);
}

static struct api_watch *watch(struct server *server, const char *target)
{
    struct api_watch *opened = NULL;
    struct api_request request = { "GET", str_of(target), STR(""), STR(""), "somebody" };

    assert_int_equal(api_watch_open(server->store, &request, &server->answer, &opened), 0);
    return opened;
}

static void assert_next_has(struct api_watch *opened, const char *text)
{
    auto_buf struct buf line;

    buf_init(&line, 1u << 20);
    assert_true(api_watch_next(opened, &line));
    assert_non_null(strstr(buf_text(&line), text));
}

/* ---- history ---- */

static void a_watch_behind_the_history_gets_410_and_ends(void **state)
{
    struct server *server = *state;
    auto_buf struct buf line;

    buf_init(&line, 10000);
    make(server, "a");

    struct api_watch *opened = watch(server, CONFIGMAPS "?watch=1&resourceVersion=1");

    api_store_compact(server->store, api_store_version(server->store));
    assert_next_has(opened, "\"type\":\"ERROR\"");
    assert_true(api_watch_has_ended(opened));
    assert_false(api_watch_next(opened, &line));
    api_watch_free(opened);
}

static void a_watch_that_has_kept_up_does_not_notice_a_compaction(void **state)
{
    struct server *server = *state;

    make(server, "a");

    struct api_watch *opened = watch(server, CONFIGMAPS "?watch=1&resourceVersion=2");

    assert_next_has(opened, "\"ADDED\"");
    api_store_compact(server->store, api_store_version(server->store));
    make(server, "b");
    assert_next_has(opened, "\"name\":\"b\"");
    api_watch_free(opened);
}

static void a_page_of_a_forgotten_moment_is_410(void **state)
{
    struct server *server = *state;
    auto_json_doc struct json_doc *page = NULL;
    char target[300];

    make(server, "a");
    make(server, "b");
    assert_int_equal(call(server, "GET", CONFIGMAPS "?limit=1", NULL), 200);
    assert_int_equal(json_parse(buf_str(&server->answer.body), 100000, &page, NULL), 0);
    make(server, "c");
    api_store_compact(server->store, api_store_version(server->store));
    (void)snprintf(target, sizeof(target), CONFIGMAPS "?limit=1&continue=%s",
                   json_str(json_at(json_root(page), "metadata", "continue")).at);
    assert_int_equal(call(server, "GET", target, NULL), 410);
    assert_non_null(strstr(buf_text(&server->answer.body), "\"Expired\""));
}

static void a_bookmark_comes_only_behind_all_events(void **state)
{
    struct server *server = *state;
    auto_buf struct buf line;

    buf_init(&line, 10000);
    make(server, "a");

    struct api_watch *opened =
        watch(server, CONFIGMAPS "?watch=1&resourceVersion=2&allowWatchBookmarks=true");

    api_watch_bookmark(opened, &line);
    assert_int_equal(line.len, 0);
    assert_next_has(opened, "\"ADDED\"");
    api_watch_bookmark(opened, &line);
    assert_non_null(strstr(buf_text(&line), "\"BOOKMARK\""));
    assert_non_null(strstr(buf_text(&line), "\"resourceVersion\":\"3\""));
    api_watch_free(opened);
}

static void the_history_is_bounded(void **state)
{
    struct server *server = *state;

    struct api_watch *opened = watch(server, CONFIGMAPS "?watch=1&resourceVersion=1");

    make(server, "a");
    for (unsigned i = 0; i < 21000; i++) {
        char body[60];

        (void)snprintf(body, sizeof(body), "{\"data\":{\"k\":\"%u\"}}", i);
        assert_int_equal(call(server, "PATCH", CONFIGMAPS "/a", body), 200);
    }
    assert_next_has(opened, "\"ERROR\"");
    api_watch_free(opened);
}

/* ---- admission and listeners ---- */

static int refuse_forbidden_names(void *context, const struct api_admission *admission,
                                  struct err *err)
{
    if (!admission->next)
        return err_set(err, ERR_DENIED, "nothing goes");
    json_put_at(admission->build, admission->next, json_new_str(admission->build, STR("hook")),
                "metadata", "labels", "by");
    *(unsigned *)context += 1;
    return 0;
}

static void a_hook_changes_and_refuses(void **state)
{
    struct server *server = *state;
    unsigned asked = 0;

    api_store_admit(server->store, refuse_forbidden_names, &asked);
    make(server, "a");
    assert_non_null(strstr(buf_text(&server->answer.body), "\"by\":\"hook\""));
    assert_int_equal(asked, 1);
    assert_int_equal(call(server, "DELETE", CONFIGMAPS "/a", NULL), 403);
    assert_non_null(strstr(buf_text(&server->answer.body), "nothing goes"));
    assert_non_null(api_store_find(server->store, "configmaps", "default", "a"));
}

static void count_change(void *context, const struct api_change *change)
{
    unsigned *counts = context;

    counts[0] += !change->old;
    counts[1] += change->old && change->next;
    counts[2] += !change->next;
    assert_string_equal(change->user, "somebody");
}

static void a_listener_hears_every_change_once_and_no_others(void **state)
{
    struct server *server = *state;
    unsigned counts[3] = { 0, 0, 0 };

    api_store_listen(server->store, count_change, counts);
    make(server, "a");
    assert_int_equal(call(server, "PATCH", CONFIGMAPS "/a", "{\"data\":{\"k\":\"v\"}}"), 200);
    assert_int_equal(call(server, "PATCH", CONFIGMAPS "/a", "{\"data\":{\"k\":\"v\"}}"), 200);
    assert_int_equal(call(server, "PATCH", CONFIGMAPS "/b", "{}"), 404);
    assert_int_equal(call(server, "DELETE", CONFIGMAPS "/a", NULL), 200);
    assert_int_equal(counts[0], 1);
    assert_int_equal(counts[1], 1);
    assert_int_equal(counts[2], 1);
}

/* ---- the background ---- */

static void dependents_go_only_when_a_step_is_made(void **state)
{
    struct server *server = *state;
    char body[300];

    make(server, "owner");
    (void)snprintf(body, sizeof(body),
                   "{\"metadata\":{\"name\":\"child\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
                   "\"kind\":\"ConfigMap\",\"name\":\"owner\",\"uid\":\"%s\"}]}}",
                   json_str(json_at(api_store_find(server->store, "configmaps", "default", "owner"),
                                    "metadata", "uid"))
                       .at);
    assert_int_equal(call(server, "POST", CONFIGMAPS, body), 201);
    while (api_store_step(server->store))
        ;
    assert_non_null(api_store_find(server->store, "configmaps", "default", "child"));
    assert_int_equal(call(server, "DELETE", CONFIGMAPS "/owner", NULL), 200);
    assert_non_null(api_store_find(server->store, "configmaps", "default", "child"));
    assert_true(api_store_has_work(server->store));
    assert_true(api_store_step(server->store));
    assert_null(api_store_find(server->store, "configmaps", "default", "child"));
    assert_false(api_store_step(server->store));
    assert_false(api_store_has_work(server->store));
}

/* ---- discovery ---- */

static void what_a_group_has_is_told_and_no_other(void **state)
{
    static const struct api_kind workloads = { "scheduling.k8s.io", "v1alpha2", "workloads",
                                               "Workload", API_NAMESPACED | API_HAS_STATUS };
    static const char path[] = "/apis/scheduling.k8s.io/v1alpha2";
    struct server *server = *state;
    auto_json_doc struct json_doc *doc = NULL;
    const struct json *resources;

    assert_int_equal(call(server, "GET", path, ""), 404);
    api_store_add_kind(server->store, &workloads);
    assert_int_equal(call(server, "GET", path, ""), 200);
    assert_int_equal(json_parse(buf_str(&server->answer.body), 1 << 16, &doc, NULL), 0);
    resources = json_get(json_root(doc), "resources");
    assert_int_equal(json_len(resources), 2);
    assert_true(str_is(json_str(json_get(json_item(resources, 0), "name")), "workloads"));
    assert_true(str_is(json_str(json_get(json_item(resources, 1), "name")), "workloads/status"));
    assert_int_equal(call(server, "GET", "/apis/scheduling.k8s.io/v1", ""), 404);
    assert_int_equal(call(server, "POST", path, "{}"), 404);
}

static void two_groups_may_have_the_same_plural(void **state)
{
    static const struct api_kind kinds[] = {
        { "a.dev", "v1", "groups", "Group", API_NAMESPACED },
        { "b.dev", "v1", "groups", "Group", API_NAMESPACED },
    };
    struct server *server = *state;

    api_store_add_kind(server->store, &kinds[0]);
    api_store_add_kind(server->store, &kinds[1]);
    assert_int_equal(call(server, "POST", "/apis/b.dev/v1/namespaces/default/groups",
                          "{\"metadata\":{\"name\":\"g\"}}"),
                     201);
    assert_null(api_store_find(server->store, "groups", "default", "g"));
    assert_null(api_store_find(server->store, "groups.a.dev", "default", "g"));
    assert_non_null(api_store_find(server->store, "groups.b.dev", "default", "g"));
}

static void an_annotation_of_a_deployment_counts_as_a_generation_and_a_label_does_not(void **state)
{
    static const struct api_kind deployments = { "apps", "v1", "deployments", "Deployment",
                                                 API_NAMESPACED | API_HAS_GENERATION |
                                                     API_COUNTS_ANNOTATIONS };
    static const char path[] = "/apis/apps/v1/namespaces/default/deployments/d";
    static const char merge[] = "application/merge-patch+json";
    struct server *server = *state;
    const struct json *found;

    api_store_add_kind(server->store, &deployments);
    assert_int_equal(call(server, "POST", "/apis/apps/v1/namespaces/default/deployments",
                          "{\"metadata\":{\"name\":\"d\"}}"),
                     201);
    (void)call_as(server, "PATCH", path, "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}", merge);
    found = api_store_find(server->store, "deployments", "default", "d");
    assert_int_equal(json_i64_or(json_at(found, "metadata", "generation"), 0), 1);
    (void)call_as(server, "PATCH", path, "{\"metadata\":{\"annotations\":{\"a\":\"b\"}}}", merge);
    found = api_store_find(server->store, "deployments", "default", "d");
    assert_int_equal(json_i64_or(json_at(found, "metadata", "generation"), 0), 2);
}

static void a_body_above_the_maximum_is_refused(void **state)
{
    struct server *server = *state;
    static char body[(3 << 20) + 100];

    memset(body, ' ', sizeof(body) - 1);
    memcpy(body, "{\"metadata\":{\"name\":\"a\"}}", 25);
    assert_int_equal(call(server, "POST", CONFIGMAPS, body), 400);
    assert_null(api_store_find(server->store, "configmaps", "default", "a"));
}

/* ---- strategic patches: what the real server knows and the model does not is no silent success */

#define PODS "/api/v1/namespaces/default/pods"

static int strategic(struct server *server, const char *target, const char *body)
{
    return call_as(server, "PATCH", target, body, "application/strategic-merge-patch+json");
}

static void directives_that_are_not_modelled_are_refused(void **state)
{
    static const char *const patches[] = {
        "{\"metadata\":{\"$patch\":\"replace\"}}",
        "{\"metadata\":{\"$setElementOrder/finalizers\":[\"x.io/f\"]}}",
        "{\"$retainKeys\":[\"spec\"]}",
        "{\"status\":{\"conditions\":[{\"type\":\"A\",\"$patch\":\"merge\"}]}}",
        "{\"status\":{\"conditions\":[{\"type\":\"A\"},{\"type\":\"A\"}]}}",
    };
    struct server *server = *state;

    assert_int_equal(call(server, "POST", PODS, "{\"metadata\":{\"name\":\"p\"}}"), 201);
    for (size_t i = 0; i < sizeof(patches) / sizeof(patches[0]); i++)
        if (strategic(server, PODS "/p/status", patches[i]) != 500)
            fail_msg("%s: %s", patches[i], buf_text(&server->answer.body));
    assert_int_equal(strategic(server, PODS "/p", "{}"), 200);
}

static void lists_without_a_rule_are_replaced(void **state)
{
    struct server *server = *state;

    assert_int_equal(call(server, "POST", "/api/v1/nodes",
                          "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"taints\":[{\"key\":\"a\"}],"
                          "\"podCIDRs\":[\"x\"]}}"),
                     201);
    assert_int_equal(
        strategic(server, "/api/v1/nodes/n", "{\"spec\":{\"taints\":[{\"key\":\"b\"}]}}"), 200);
    assert_non_null(strstr(buf_text(&server->answer.body), "\"taints\":[{\"key\":\"b\"}]"));
    assert_non_null(strstr(buf_text(&server->answer.body), "\"podCIDRs\":[\"x\"]"));
    assert_int_equal(strategic(server, "/api/v1/nodes/n", "{\"spec\":{\"taints\":[]}}"), 200);
    assert_null(strstr(buf_text(&server->answer.body), "taints"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_watch_behind_the_history_gets_410_and_ends),
        TEST(a_watch_that_has_kept_up_does_not_notice_a_compaction),
        TEST(a_page_of_a_forgotten_moment_is_410),
        TEST(a_bookmark_comes_only_behind_all_events),
        TEST(the_history_is_bounded),
        TEST(a_hook_changes_and_refuses),
        TEST(a_listener_hears_every_change_once_and_no_others),
        TEST(dependents_go_only_when_a_step_is_made),
        TEST(what_a_group_has_is_told_and_no_other),
        TEST(two_groups_may_have_the_same_plural),
        TEST(an_annotation_of_a_deployment_counts_as_a_generation_and_a_label_does_not),
        TEST(a_body_above_the_maximum_is_refused),
        TEST(directives_that_are_not_modelled_are_refused),
        TEST(lists_without_a_rule_are_replaced),
    };

    return cmocka_run_group_tests_name("api_store", tests, NULL, NULL);
}
