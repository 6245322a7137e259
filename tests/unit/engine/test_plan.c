/* test_plan.c - actions are requests as the API server wants them, and nothing is left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/plan.h"

struct desk {
    struct arena arena;
    struct plan plan;
    struct json_build *build;
};

static void set_up(struct desk *desk)
{
    arena_init(&desk->arena, 64 << 20);
    plan_init(&desk->plan, &desk->arena);
    desk->build = json_build_new();
}

static void tear_down(struct desk *desk)
{
    json_build_free(desk->build);
    arena_done(&desk->arena);
}

static struct json_mut *value(struct desk *desk, const char *text)
{
    struct json_doc *doc = NULL;
    struct json_mut *copy;

    assert_int_equal(json_parse(str_of(text), 1 << 20, &doc, NULL), 0);
    copy = json_copy(desk->build, json_root(doc));
    json_doc_free(doc);
    return copy;
}

static void assert_same_json(struct str text, const char *wanted)
{
    auto_json_doc struct json_doc *have = NULL, *want = NULL;

    assert_int_equal(json_parse(text, 1 << 24, &have, NULL), 0);
    assert_int_equal(json_parse(str_of(wanted), 1 << 24, &want, NULL), 0);
    if (!json_equal(json_root(have), json_root(want)))
        fail_msg("have " STR_FMT "\nwant %s", STR_ARG(text), wanted);
}

static void assert_path(const struct action *action, const char *wanted)
{
    const struct kube_request *request = &action->request;
    auto_buf struct buf path;

    buf_init(&path, 1000);
    kube_path(&path, request->resource, request->ns, request->name, request->subresource);
    assert_string_equal(buf_text(&path), wanted);
}

/* ---- */

static void a_create_posts_the_object_with_its_type_and_namespace(void **state)
{
    struct desk desk;

    set_up(&desk);

    struct action *action =
        plan_create(&desk.plan, NULL, &kube_configmaps, "a",
                    value(&desk, "{\"metadata\":{\"name\":\"b\"},\"data\":{\"k\":\"v\"}}"));

    assert_int_equal(action->request.verb, KUBE_CREATE);
    assert_path(action, "/api/v1/namespaces/a/configmaps");
    assert_same_json(action->request.body, "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"data\":"
                                           "{\"k\":\"v\"},\"metadata\":{\"name\":\"b\","
                                           "\"namespace\":\"a\"}}");
    assert_true(str_eq(action->predicted, action->request.body));
    assert_string_equal(action->what, "create configmap a/b");
    assert_false(action->existing_is_fine);
    tear_down(&desk);
}

static void a_create_keeps_what_the_object_says_of_itself(void **state)
{
    struct desk desk;

    set_up(&desk);

    struct action *action = plan_create(
        &desk.plan, NULL, &kube_nodes, NULL,
        value(&desk, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}"));

    assert_path(action, "/api/v1/nodes");
    assert_same_json(action->request.body,
                     "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}");
    assert_string_equal(action->what, "create node n");
    action = plan_create(&desk.plan, NULL, &kube_events, "a",
                         value(&desk, "{\"metadata\":{\"generateName\":\"x-\"}}"));
    assert_string_equal(action->what, "create event a/x-*");
    tear_down(&desk);
}

static void a_patch_may_insist_on_a_version_which_is_no_part_of_its_effect(void **state)
{
    struct desk desk;
    struct json_mut *patch;

    set_up(&desk);
    patch = value(&desk, "{\"metadata\":{\"labels\":{\"x\":null}}}");

    struct action *action =
        plan_merge_patch(&desk.plan, NULL, &kube_pods, "a", "p", "status", "17", patch);

    assert_int_equal(action->request.verb, KUBE_MERGE_PATCH);
    assert_path(action, "/api/v1/namespaces/a/pods/p/status");
    assert_same_json(action->request.body,
                     "{\"metadata\":{\"labels\":{\"x\":null},\"resourceVersion\":\"17\"}}");
    assert_same_json(action->predicted, "{\"metadata\":{\"labels\":{\"x\":null}}}");
    assert_string_equal(action->what, "patch pod a/p status");

    action = plan_merge_patch(&desk.plan, NULL, &kube_pods, "a", "p", NULL, NULL, patch);
    assert_path(action, "/api/v1/namespaces/a/pods/p");
    assert_same_json(action->request.body, "{\"metadata\":{\"labels\":{\"x\":null}}}");
    tear_down(&desk);
}

static void a_delete_is_for_this_object_only(void **state)
{
    struct desk desk;

    set_up(&desk);

    struct action *action = plan_delete(&desk.plan, NULL, &kube_pods, "a", "p", "u-1", "17");

    assert_int_equal(action->request.verb, KUBE_DELETE);
    assert_path(action, "/api/v1/namespaces/a/pods/p");
    assert_same_json(action->request.body,
                     "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"propagationPolicy\":"
                     "\"Background\",\"preconditions\":{\"uid\":\"u-1\",\"resourceVersion\":"
                     "\"17\"}}");
    assert_true(action->missing_is_fine);
    action = plan_delete(&desk.plan, NULL, &kube_nodes, NULL, "n", "u-2", NULL);
    assert_path(action, "/api/v1/nodes/n");
    assert_same_json(action->request.body,
                     "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"propagationPolicy\":"
                     "\"Background\",\"preconditions\":{\"uid\":\"u-2\"}}");
    tear_down(&desk);
}

static void a_bind_names_pod_uid_and_node_and_carries_labels_and_annotations(void **state)
{
    struct desk desk;

    set_up(&desk);

    struct action *action =
        plan_bind(&desk.plan, NULL, "a", "p", "u-1", "n1",
                  value(&desk, "{\"labels\":{\"l\":\"1\"},\"annotations\":{\"x/y\":\"2\"},"
                               "\"name\":\"not this\"}"));

    assert_int_equal(action->request.verb, KUBE_CREATE);
    assert_path(action, "/api/v1/namespaces/a/pods/p/binding");
    assert_same_json(action->request.body,
                     "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"p\","
                     "\"namespace\":\"a\",\"uid\":\"u-1\",\"labels\":{\"l\":\"1\"},"
                     "\"annotations\":{\"x/y\":\"2\"}},\"target\":{\"apiVersion\":\"v1\","
                     "\"kind\":\"Node\",\"name\":\"n1\"}}");
    assert_same_json(action->predicted,
                     "{\"spec\":{\"nodeName\":\"n1\"},\"metadata\":{\"labels\":{\"l\":\"1\"},"
                     "\"annotations\":{\"x/y\":\"2\"}}}");
    assert_string_equal(action->what, "bind pod a/p to n1");
    action = plan_bind(&desk.plan, NULL, "a", "p", "u-1", "n1", NULL);
    assert_same_json(action->predicted, "{\"spec\":{\"nodeName\":\"n1\"}}");
    tear_down(&desk);
}

static void what_is_only_predicted_is_not_written_to(void **state)
{
    struct desk desk;

    (void)state;
    set_up(&desk);
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build);

    assert_null(plan_merge_patch(&desk.plan, NULL, &kube_configmaps, "a", "b", NULL, "", patch));
    assert_null(plan_delete(&desk.plan, NULL, &kube_configmaps, "a", "b", "", NULL));
    assert_null(plan_delete(&desk.plan, NULL, &kube_configmaps, "a", "b", "1", ""));
    assert_null(plan_bind(&desk.plan, NULL, "a", "b", "", "node", NULL));
    assert_null(
        plan_strategic_patch(&desk.plan, NULL, &kube_pods, "a", "b", NULL, "", patch, patch));
    assert_null(plan_json_patch(
        &desk.plan, NULL, &kube_pods, "a", "b", NULL,
        value(&desk, "[{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"\"}]"), patch));
    assert_null(plan_json_patch(&desk.plan, NULL, &kube_pods, "a", "b", NULL,
                                value(&desk, "[{\"op\":\"test\",\"path\":\"/metadata/"
                                             "resourceVersion\",\"value\":\"\"}]"),
                                patch));
    assert_true(list_is_empty(&desk.plan.actions));
    assert_non_null(strstr(desk.plan.waits, "it is not written yet"));
    tear_down(&desk);
}

static void a_json_patch_waits_for_what_the_cache_only_predicts(void **state)
{
    static const struct kube_kind kind = { .resource = &kube_configmaps };
    const struct kube_object *object = NULL;
    auto_json_doc struct json_doc *doc = NULL;
    struct clock clock;
    struct desk desk;

    set_up(&desk);
    clock_init_virtual(&clock, 0);
    assert_int_equal(
        json_parse(STR("{\"metadata\":{\"namespace\":\"a\",\"name\":\"b\"}}"), 1000, &doc, NULL),
        0);
    assert_int_equal(kube_object_predicted(&kind, json_root(doc), &object, NULL), 0);

    struct kube_cache *cache = kube_cache_new(&kind, &clock);
    struct kube_overlay *overlay = kube_overlay_lay(cache, "a", "b", object);
    struct json_mut *ops = value(&desk, "[{\"op\":\"remove\",\"path\":\"/data/k\"}]");

    assert_null(plan_json_patch(&desk.plan, cache, &kube_configmaps, "a", "b", NULL, ops, NULL));
    assert_non_null(desk.plan.waits);
    kube_overlay_failed(overlay);
    assert_non_null(
        plan_json_patch(&desk.plan, cache, &kube_configmaps, "a", "b", NULL, ops, NULL));
    kube_object_unref(object);
    kube_cache_free(cache);
    tear_down(&desk);
}

static void a_strategic_patch_may_foretell_something_else(void **state)
{
    struct desk desk;

    set_up(&desk);

    struct json_mut *patch =
        value(&desk, "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"x.io/f\"]}}");
    struct action *action =
        plan_strategic_patch(&desk.plan, NULL, &kube_pods, "a", "p", NULL, "17", patch,
                             value(&desk, "{\"metadata\":{\"finalizers\":[]}}"));

    assert_int_equal(action->request.verb, KUBE_STRATEGIC_PATCH);
    assert_path(action, "/api/v1/namespaces/a/pods/p");
    assert_same_json(action->request.body, "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":"
                                           "[\"x.io/f\"],\"resourceVersion\":\"17\"}}");
    assert_same_json(action->predicted, "{\"metadata\":{\"finalizers\":[]}}");
    assert_string_equal(action->what, "patch pod a/p");

    action =
        plan_strategic_patch(&desk.plan, NULL, &kube_nodes, NULL, "n", "status", NULL, patch, NULL);
    assert_path(action, "/api/v1/nodes/n/status");
    assert_same_json(action->request.body,
                     "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"x.io/f\"]}}");
    assert_same_json(action->predicted, "{}");
    tear_down(&desk);
}

static void a_json_patch_is_sent_as_it_is(void **state)
{
    static const char ops[] = "[{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"u\"},"
                              "{\"op\":\"add\",\"path\":\"/spec/x\",\"value\":1}]";
    struct desk desk;

    set_up(&desk);

    struct action *action = plan_json_patch(&desk.plan, NULL, &kube_pods, "a", "p", "resize",
                                            value(&desk, ops), value(&desk, "{\"spec\":null}"));

    assert_int_equal(action->request.verb, KUBE_JSON_PATCH);
    assert_path(action, "/api/v1/namespaces/a/pods/p/resize");
    assert_same_json(action->request.body, ops);
    assert_same_json(action->predicted, "{\"spec\":null}");
    assert_string_equal(action->what, "patch pod a/p resize");
    tear_down(&desk);
}

static void what_was_given_is_copied(void **state)
{
    struct desk desk;
    char name[] = "p", uid[] = "u", node[] = "n";
    struct json_build *build = json_build_new();
    struct json_mut *metadata = json_new_object(build);

    set_up(&desk);
    json_put_text(build, json_put_object(build, metadata, "labels"), "k", "v");

    struct action *action = plan_bind(&desk.plan, NULL, "a", name, uid, node, metadata);

    json_build_free(build);
    name[0] = uid[0] = node[0] = '!';
    assert_string_equal(action->request.name, "p");
    assert_same_json(action->predicted,
                     "{\"spec\":{\"nodeName\":\"n\"},\"metadata\":{\"labels\":{\"k\":\"v\"}}}");
    tear_down(&desk);
}

static void stages_number_the_actions_added_after_them(void **state)
{
    struct desk desk;

    set_up(&desk);
    assert_int_equal(plan_bind(&desk.plan, NULL, "a", "p", "u", "n", NULL)->stage, 0);
    plan_next_stage(&desk.plan);
    assert_int_equal(plan_bind(&desk.plan, NULL, "a", "p", "u", "n", NULL)->stage, 1);
    assert_int_equal(plan_bind(&desk.plan, NULL, "a", "q", "u", "n", NULL)->stage, 1);
    tear_down(&desk);
}

static void the_earliest_time_to_look_again_counts(void **state)
{
    struct desk desk;

    set_up(&desk);
    assert_int_equal(desk.plan.look_again_us, 0);
    plan_look_again(&desk.plan, 500);
    plan_look_again(&desk.plan, 200);
    plan_look_again(&desk.plan, 700);
    assert_int_equal(desk.plan.look_again_us, 200);
    plan_look_again(&desk.plan, -3);
    assert_int_equal(desk.plan.look_again_us, 1);
    tear_down(&desk);
}

static void reasons_to_wait_are_joined(void **state)
{
    struct desk desk;

    set_up(&desk);
    assert_null(desk.plan.waits);
    plan_wait(&desk.plan, "%d of %d pods exist", 1, 2);
    plan_wait(&desk.plan, "job 7: Resources");
    assert_string_equal(desk.plan.waits, "1 of 2 pods exist; job 7: Resources");
    tear_down(&desk);
}

static void write_detail(const struct action *action, struct buf *out)
{
    buf_printf(out, "{\"job\":%d}", *(const int *)action->detail);
}

static void other_types_of_action_show_their_detail(void **state)
{
    static const struct action_type slurm = { .name = "slurm", .write = write_detail };
    struct desk desk;
    auto_buf struct buf out;
    int job = 7;

    set_up(&desk);
    buf_init(&out, 10000);
    plan_add(&desk.plan, &slurm, "cancel job 7", &job);
    plan_write(&desk.plan, &out);
    assert_string_equal(buf_text(&out), "{\"actions\":[{\"detail\":{\"job\":7},\"stage\":0,"
                                        "\"type\":\"slurm\",\"what\":\"cancel job 7\"}]}");
    tear_down(&desk);
}

static void a_plan_is_written_as_canonical_json(void **state)
{
    struct desk desk;
    auto_buf struct buf out;

    set_up(&desk);
    buf_init(&out, 10000);
    plan_write(&desk.plan, &out);
    assert_string_equal(buf_text(&out), "{\"actions\":[]}");
    buf_clear(&out);

    plan_merge_patch(&desk.plan, NULL, &kube_pods, "a", "p", NULL, "9",
                     value(&desk, "{\"b\":1,\"a\":2}"));
    plan_next_stage(&desk.plan);
    plan_delete(&desk.plan, NULL, &kube_pods, "a", "p", "u", NULL);
    plan_look_again(&desk.plan, 5);
    plan_wait(&desk.plan, "for \"it\"");
    plan_write(&desk.plan, &out);
    assert_string_equal(
        buf_text(&out),
        "{\"actions\":[{\"body\":{\"a\":2,\"b\":1,\"metadata\":{\"resourceVersion\":\"9\"}},"
        "\"path\":\"/api/v1/namespaces/a/pods/p\",\"stage\":0,\"type\":\"kube\",\"verb\":\"patch\","
        "\"what\":\"patch pod a/p\"},"
        "{\"body\":{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":"
        "\"u\"},\"propagationPolicy\":\"Background\"},\"missingIsFine\":true,"
        "\"path\":\"/api/v1/namespaces/a/pods/p\",\"stage\":1,\"type\":\"kube\",\"verb\":"
        "\"delete\",\"what\":\"delete pod a/p\"}],"
        "\"lookAgainUs\":5,\"waits\":\"for \\\"it\\\"\"}");
    tear_down(&desk);
}

static void a_body_beyond_the_bound_is_not_sent_as_something_else(void **state)
{
    struct desk desk;
    struct json_mut *patch, *list;
    char text[1001];

    set_up(&desk);
    patch = json_new_object(desk.build);
    list = json_put_array(desk.build, patch, "list");
    memset(text, 'x', 1000);
    for (int i = 0; i < 9000; i++)
        json_push_str(desk.build, list, (struct str){ text, 1000 });

    struct action *action =
        plan_merge_patch(&desk.plan, NULL, &kube_pods, "a", "p", NULL, NULL, patch);

    assert_true(str_eq(action->request.body, STR("!")));
    tear_down(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_create_posts_the_object_with_its_type_and_namespace),
        cmocka_unit_test(a_create_keeps_what_the_object_says_of_itself),
        cmocka_unit_test(a_patch_may_insist_on_a_version_which_is_no_part_of_its_effect),
        cmocka_unit_test(a_delete_is_for_this_object_only),
        cmocka_unit_test(a_bind_names_pod_uid_and_node_and_carries_labels_and_annotations),
        cmocka_unit_test(what_is_only_predicted_is_not_written_to),
        cmocka_unit_test(a_json_patch_waits_for_what_the_cache_only_predicts),
        cmocka_unit_test(a_strategic_patch_may_foretell_something_else),
        cmocka_unit_test(a_json_patch_is_sent_as_it_is),
        cmocka_unit_test(what_was_given_is_copied),
        cmocka_unit_test(stages_number_the_actions_added_after_them),
        cmocka_unit_test(the_earliest_time_to_look_again_counts),
        cmocka_unit_test(reasons_to_wait_are_joined),
        cmocka_unit_test(other_types_of_action_show_their_detail),
        cmocka_unit_test(a_plan_is_written_as_canonical_json),
        cmocka_unit_test(a_body_beyond_the_bound_is_not_sent_as_something_else),
    };

    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
