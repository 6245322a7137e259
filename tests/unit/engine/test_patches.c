/* test_patches.c - strategic and JSON patches from plan to answer: what plans see meanwhile, and
 * that a patch which does not fit is no trouble. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world.h"

#define POD "/api/v1/namespaces/a/pods/p"

static const char *pod_text(unsigned version, const char *finalizers, const char *conditions)
{
    static char text[600];

    snprintf(text, sizeof(text),
             "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\",\"name\":\"p\",\"uid\":\"u\","
             "\"resourceVersion\":\"%u\",\"finalizers\":[%s]},\"status\":{\"conditions\":[{"
             "\"type\":\"Ready\",\"status\":\"True\"}%s]}}",
             version, finalizers, conditions);
    return text;
}

static void see_pod(struct world *world, const char *text)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *pod = NULL;

    assert_int_equal(json_parse(str_of(text), 1000, &doc, NULL), 0);
    assert_int_equal(kube_object_decode(&kube_pod_kind, json_root(doc), &pod, NULL), 0);
    kube_cache_seen(world->more, pod);
    kube_object_unref(pod);
}

static const struct kube_object *pod_of(const struct world *world)
{
    return kube_cache_get(world->more, "a", "p");
}

/* The status of our condition as plans see it. */
static const char *status_of(const struct world *world)
{
    const struct kube_pod *pod = kube_pod_of(pod_of(world));
    const struct kube_condition *found =
        kube_condition_of(pod->conditions, pod->condition_count, "x.io/c");

    return found ? found->status : "none";
}

static void begin(struct world *world, world_plan plan, const char *finalizers)
{
    world_set_up(world, NULL);
    world->more = kube_cache_new(&kube_pod_kind, &world->clock);
    see_pod(world, pod_text(11, finalizers, ""));
    engine_start(world->engine);
    world_sync(world);
    world_run(world, 60 * MS);
    world->plan = plan;
    engine_enqueue(&world->controller, STR("a/x"));
}

/* ---- the last finalizer ---- */

static const char *deleted_pod(unsigned version, const char *finalizers, int grace)
{
    static char text[600];

    snprintf(text, sizeof(text),
             "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\",\"name\":\"p\",\"uid\":\"u\","
             "\"resourceVersion\":\"%u\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\","
             "\"deletionGracePeriodSeconds\":%d,\"finalizers\":[%s]}}",
             version, grace, finalizers);
    return text;
}

static int plan_let_go(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    const struct kube_object *pod = pod_of(world);

    if (pod && pod->finalizer_count > 0)
        plan_strategic_patch(
            plan, world->more, &kube_pods, "a", "p", NULL, NULL,
            world_value(world, "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"f\"]}}"),
            world_value(world, "{\"metadata\":{\"finalizers\":[]}}"));
    return 0;
}

/* The answer shows it in the version before; a watch that has passed that one must not bring it
 * back, or it would be patched once more. */
static void the_patch_that_takes_the_last_finalizer_takes_the_object(void **state)
{
    for (int grace = 0; grace <= 30; grace += 30) {
        struct world world;

        begin(&world, NULL, "\"f\"");
        world.plan = plan_let_go;
        see_pod(&world, deleted_pod(12, "\"f\"", grace));
        engine_enqueue(&world.controller, STR("a/x"));
        world_ok(&world, "PATCH", POD, deleted_pod(grace ? 13 : 12, "", grace), 10 * MS);
        world_run(&world, 20 * MS);
        engine_enqueue(&world.controller, STR("a/x"));
        world_run(&world, 20 * MS);
        assert_int_equal(fake_sent_count(world.fake), 1);
        assert_true((pod_of(&world) == NULL) == (grace == 0));
        world_tear_down(&world);
    }
}

/* ---- strategic patches ---- */

#define CONDITION "{\"status\":{\"conditions\":[{\"type\":\"x.io/c\",\"status\":\"True\"}]}}"

static int plan_condition(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    const struct kube_object *pod = pod_of(world);
    struct json_mut *patch = world_value(world, CONDITION);

    if (!str_is(STR("True"), status_of(world)))
        plan_strategic_patch(plan, world->more, &kube_pods, "a", "p", "status", pod->version, patch,
                             patch);
    return 0;
}

static void a_condition_is_seen_from_the_beginning(void **state)
{
    struct world world;

    begin(&world, plan_condition, "");
    world_ok(&world, "PATCH", POD "/status",
             pod_text(12, "", ",{\"type\":\"x.io/c\",\"status\":\"True\",\"reason\":\"R\"}"),
             50 * MS);
    for (int i = 0; i < 20; i++) {
        world_run(&world, 5 * MS);
        engine_enqueue(&world.controller, STR("a/x"));
        assert_string_equal(status_of(&world), "True");
        assert_true(kube_pod_of(pod_of(&world))->ready);
    }
    assert_int_equal(fake_sent_count(world.fake), 1);
    assert_int_equal(pod_of(&world)->version_number, 12); /* the server's own words */
    assert_non_null(strstr(fake_sent(world.fake, 0)->body, "\"resourceVersion\":\"11\""));
    world_tear_down(&world);
}

static int plan_unforetold(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    if (str_is(STR("none"), status_of(world)))
        plan_strategic_patch(plan, world->more, &kube_pods, "a", "p", "status", NULL,
                             world_value(world, CONDITION), NULL);
    return 0;
}

static void what_is_not_foretold_is_seen_with_the_answer(void **state)
{
    struct world world;

    begin(&world, plan_unforetold, "");
    world_ok(&world, "PATCH", POD "/status",
             pod_text(12, "", ",{\"type\":\"x.io/c\",\"status\":\"True\"}"), 50 * MS);
    world_run(&world, 40 * MS);
    assert_string_equal(status_of(&world), "none");
    world_run(&world, 20 * MS);
    assert_string_equal(status_of(&world), "True");
    engine_enqueue(&world.controller, STR("a/x"));
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 1);
    world_tear_down(&world);
}

static void a_condition_that_was_refused_is_gone_again(void **state)
{
    struct world world;

    begin(&world, plan_condition, "");
    fake_status(world.fake, "PATCH", POD "/status", 422, "Invalid", "no");
    fake_answer(world.fake, "PATCH", POD "/status",
                (struct fake_answer){ .status = 503, .times = FAKE_ALWAYS });
    world_run(&world, 10 * MS);
    assert_string_equal(status_of(&world), "none");
    assert_int_equal(world.troubles, 1);
    assert_int_equal(world.trouble.outcome, KUBE_INVALID);
    world_tear_down(&world);
}

/* ---- JSON patches ---- */

/* Takes the finalizer at place 0 away, if it is ours. */
static int plan_finalizer(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    if (!kube_object_has_finalizer(pod_of(world), "x.io/f"))
        return 0;
    plan_json_patch(plan, world->more, &kube_pods, "a", "p", NULL,
                    world_value(world, "[{\"op\":\"test\",\"path\":\"/metadata/finalizers/0\","
                                       "\"value\":\"x.io/f\"},{\"op\":\"remove\",\"path\":"
                                       "\"/metadata/finalizers/0\"}]"),
                    world_value(world, "{\"metadata\":{\"finalizers\":[]}}"));
    return 0;
}

static void a_removed_finalizer_is_missed_at_once(void **state)
{
    struct world world;

    begin(&world, plan_finalizer, "\"x.io/f\"");
    world_ok(&world, "PATCH", POD, pod_text(12, "", ""), 50 * MS);
    world_run(&world, 5 * MS);
    assert_int_equal(pod_of(&world)->finalizer_count, 0);
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 1);
    assert_int_equal(pod_of(&world)->version_number, 12);
    world_tear_down(&world);
}

static struct fake_answer test_failed(void)
{
    return (struct fake_answer){ .status = 422,
                                 .body = "{\"kind\":\"Status\",\"reason\":\"Invalid\",\"message\":"
                                         "\"the server rejected our request\",\"details\":{}}" };
}

static void a_failed_test_is_looked_at_again_and_told_nobody(void **state)
{
    struct world world;
    unsigned lines;

    begin(&world, plan_finalizer, "\"x.io/f\"");
    lines = world.log_lines;
    fake_answer(world.fake, "PATCH", POD, test_failed());
    world_run(&world, 10 * MS);
    assert_true(kube_object_has_finalizer(pod_of(&world), "x.io/f")); /* as it was */
    see_pod(&world, pod_text(12, "", ""));                            /* somebody was faster */
    world_run(&world, SECOND);
    assert_int_equal(fake_sent_count(world.fake), 1);
    assert_int_equal(world.troubles, 0);
    assert_int_equal(world.log_lines, lines);
    assert_true(engine_is_idle(world.engine));
    assert_true(metrics_get(world.metrics, &engine_metrics[METRIC_RECONCILE_TERMINAL_ERRORS],
                            "tester", NULL) == 0);
    world_tear_down(&world);
}

static void a_test_that_never_holds_is_logged_and_tried_at_leisure(void **state)
{
    struct fake_answer always = test_failed();
    struct world world;
    unsigned lines;

    begin(&world, plan_finalizer, "\"x.io/f\"");
    lines = world.log_lines;
    always.times = FAKE_ALWAYS;
    fake_answer(world.fake, "PATCH", POD, always);
    world_run(&world, 60 * SECOND);
    assert_in_range(fake_sent_count(world.fake), 6, 16);
    assert_int_equal(world.log_lines, lines + 1);
    assert_int_equal(world.troubles, 0);
    world_tear_down(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_patch_that_takes_the_last_finalizer_takes_the_object),
        cmocka_unit_test(a_condition_is_seen_from_the_beginning),
        cmocka_unit_test(what_is_not_foretold_is_seen_with_the_answer),
        cmocka_unit_test(a_condition_that_was_refused_is_gone_again),
        cmocka_unit_test(a_removed_finalizer_is_missed_at_once),
        cmocka_unit_test(a_failed_test_is_looked_at_again_and_told_nobody),
        cmocka_unit_test(a_test_that_never_holds_is_logged_and_tried_at_leisure),
    };

    return cmocka_run_group_tests_name("patches", tests, NULL, NULL);
}
