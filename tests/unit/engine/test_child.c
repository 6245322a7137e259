/* test_child.c - a child is created, adopted, mended or left alone, with one write at most. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../codec/parsed.h"
#include "engine/child.h"

static const struct kube_resource deployments = { "apps", "v1", "deployments", "Deployment", true };
static const struct kube_kind configmap_kind = { .resource = &kube_configmaps };
static const struct kube_kind service_kind = { .resource = &kube_services };
static const struct kube_kind deployment_kind = { .resource = &deployments };

#define OWNER_META "'name':'boss','namespace':'a','uid':'u-boss','resourceVersion':'1'"
#define OWNED                                                                                      \
    "'ownerReferences':[{'apiVersion':'v1','kind':'ConfigMap','name':'boss','uid':'u-boss',"       \
    "'controller':true,'blockOwnerDeletion':true}]"
#define LIVE_META "'name':'c','namespace':'a','uid':'u-c','resourceVersion':'7'"

struct desk {
    struct clock clock;
    struct arena arena;
    struct plan plan;
    struct kube_cache *cache;
    const struct kube_object *owner;
};

static const struct kube_object *decoded(const struct kube_kind *kind, const char *text)
{
    auto_json_doc struct json_doc *doc = parsed(text);
    const struct kube_object *object = NULL;
    struct err err = { 0 };

    if (kube_object_decode(kind, json_root(doc), &object, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return object;
}

static void set_up(struct desk *desk, const struct kube_kind *kind, const char *live)
{
    clock_init_virtual(&desk->clock, 0);
    arena_init(&desk->arena, 8 << 20);
    plan_init(&desk->plan, &desk->arena);
    desk->cache = kube_cache_new(kind, &desk->clock);
    desk->owner = decoded(&configmap_kind, "{'metadata':{" OWNER_META "}}");
    if (live) {
        const struct kube_object *object = decoded(kind, live);

        kube_cache_seen(desk->cache, object);
        kube_object_unref(object);
    }
}

static void tear_down(struct desk *desk)
{
    kube_object_unref(desk->owner);
    kube_cache_free(desk->cache);
    arena_done(&desk->arena);
}

static int want(struct desk *desk, const char *text, struct err *err)
{
    auto_json_doc struct json_doc *doc = parsed(text);
    auto_json_build struct json_build *build = json_build_new();

    return plan_child(&desk->plan, desk->cache, desk->owner, json_copy(build, json_root(doc)), err);
}

static const struct action *only_action(const struct desk *desk)
{
    const struct action *only = NULL;

    list_each (const struct action, action, &desk->plan.actions, link) {
        assert_null(only);
        only = action;
    }
    return only;
}

/* The body of the only action, without the stamp; NULL when there is none. */
static struct json_doc *written(const struct desk *desk)
{
    const struct action *action = only_action(desk);
    auto_json_doc struct json_doc *body = NULL;
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *copy, *labels;

    if (!action)
        return NULL;
    assert_int_equal(json_parse(action->request.body, 1 << 20, &body, NULL), 0);
    copy = json_copy(build, json_root(body));
    labels = json_mut_get(json_mut_get(copy, STR("metadata")), STR("labels"));
    assert_true(json_remove(labels, STR(CHILD_STAMP)));
    if (json_mut_len(labels) == 0)
        json_remove(json_mut_get(copy, STR("metadata")), STR("labels"));
    return json_freeze(copy);
}

static void assert_written(const struct desk *desk, const char *wanted)
{
    auto_json_doc struct json_doc *is = written(desk);
    auto_json_doc struct json_doc *should_be = parsed(wanted);
    auto_buf struct buf text = { .max = 1 << 20 };

    assert_non_null(is);
    json_write(json_root(is), &text);
    if (!json_equal(json_root(is), json_root(should_be)))
        fail_msg("written %s\n wanted %s", buf_text(&text), wanted);
}

/* The stamp that this wish gives a new child. */
static void stamp_for(const struct kube_kind *kind, const char *wanted, char ret_stamp[64])
{
    auto_json_doc struct json_doc *body = NULL;
    struct desk desk;

    set_up(&desk, kind, NULL);
    assert_int_equal(want(&desk, wanted, NULL), 0);
    assert_int_equal(json_parse(only_action(&desk)->request.body, 1 << 20, &body, NULL), 0);
    (void)snprintf(ret_stamp, 64, "%s",
                   json_str(json_at(json_root(body), "metadata", "labels", CHILD_STAMP)).at);
    assert_int_equal(strlen(ret_stamp), 16);
    tear_down(&desk);
}

/* ---- */

static void a_missing_child_is_created_with_its_owner(void **state)
{
    struct desk desk;

    set_up(&desk, &configmap_kind, NULL);
    assert_int_equal(want(&desk, "{'metadata':{'name':'c'},'data':{'k':'v'}}", NULL), 0);
    assert_int_equal(only_action(&desk)->request.verb, KUBE_CREATE);
    assert_written(&desk, "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'c',"
                          "'namespace':'a'," OWNED "},'data':{'k':'v'}}");
    tear_down(&desk);
}

static void a_key_that_must_be_absent_is_no_part_of_a_new_child(void **state)
{
    struct desk desk;

    set_up(&desk, &configmap_kind, NULL);
    assert_int_equal(want(&desk, "{'metadata':{'name':'c'},'data':{'k':'v','n':null}}", NULL), 0);
    assert_written(&desk, "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'c',"
                          "'namespace':'a'," OWNED "},'data':{'k':'v'}}");
    tear_down(&desk);
}

static void no_labels_wanted_is_no_difference(void **state)
{
    static const char wanted[] = "{'metadata':{'name':'c','labels':null},'data':{'k':'v'}}";
    char stamp[64], live[1024];
    struct desk desk;

    stamp_for(&configmap_kind, wanted, stamp);
    (void)snprintf(live, sizeof(live),
                   "{'metadata':{" LIVE_META "," OWNED ",'labels':{'" CHILD_STAMP "':'%s'}},"
                   "'data':{'k':'v'}}",
                   stamp);
    set_up(&desk, &configmap_kind, live);
    assert_int_equal(want(&desk, wanted, NULL), 0);
    assert_null(only_action(&desk));
    tear_down(&desk);
}

static void a_child_that_is_as_we_left_it_costs_no_write(void **state)
{
    static const char wanted[] =
        "{'metadata':{'name':'c'},'spec':{'replicas':1,'template':{'spec':{'x':1}}}}";
    char stamp[64], live[1024];
    struct desk desk;

    stamp_for(&deployment_kind, wanted, stamp);
    (void)snprintf(live, sizeof(live),
                   "{'metadata':{" LIVE_META "," OWNED ",'labels':{'" CHILD_STAMP "':'%s'}},"
                   "'spec':{'replicas':1,'template':{'spec':{'x':1,'dnsPolicy':'ClusterFirst'}}}}",
                   stamp);
    set_up(&desk, &deployment_kind, live);
    assert_int_equal(want(&desk, wanted, NULL), 0);
    assert_null(only_action(&desk));
    tear_down(&desk);
}

static void what_somebody_changed_in_our_fields_is_mended(void **state)
{
    static const char wanted[] =
        "{'metadata':{'name':'c'},'spec':{'replicas':1,'template':{'spec':{'x':1}}}}";
    char stamp[64], live[1024];
    struct desk desk;

    stamp_for(&deployment_kind, wanted, stamp);
    (void)snprintf(live, sizeof(live),
                   "{'metadata':{" LIVE_META "," OWNED ",'labels':{'" CHILD_STAMP "':'%s'}},"
                   "'spec':{'replicas':3,'paused':true,'template':{'spec':{'x':1}}}}",
                   stamp);
    set_up(&desk, &deployment_kind, live);
    assert_int_equal(want(&desk, wanted, NULL), 0);
    assert_written(&desk, "{'metadata':{'resourceVersion':'7'},'spec':{'replicas':1}}");
    tear_down(&desk);
}

/* The label that the only action writes. */
static void stamp_written(const struct desk *desk, char ret_stamp[64])
{
    auto_json_doc struct json_doc *body = NULL;

    assert_non_null(only_action(desk));
    assert_int_equal(json_parse(only_action(desk)->request.body, 1 << 20, &body, NULL), 0);
    (void)snprintf(ret_stamp, 64, "%s",
                   json_str(json_at(json_root(body), "metadata", "labels", CHILD_STAMP)).at);
}

/* A child with this label, generation (0: none) and spec; true when something is written. */
static bool is_written(const struct kube_kind *kind, const char *wanted, const char *stamp,
                       int generation, const char *spec, char ret_stamp[64])
{
    char live[1024], counted[40] = "";
    struct desk desk;
    bool result;

    if (generation > 0)
        (void)snprintf(counted, sizeof(counted), ",'generation':%d", generation);
    (void)snprintf(live, sizeof(live),
                   "{'metadata':{" LIVE_META "%s," OWNED ",'labels':{'" CHILD_STAMP "':'%s'}},"
                   "'spec':%s}",
                   counted, stamp, spec);
    set_up(&desk, kind, live);
    assert_int_equal(want(&desk, wanted, NULL), 0);
    result = only_action(&desk) != NULL;
    if (result)
        stamp_written(&desk, ret_stamp);
    tear_down(&desk);
    return result;
}

static void what_the_server_does_not_keep_is_written_once(void **state)
{
    static const char wanted[] =
        "{'metadata':{'name':'c'},'spec':{'replicas':1,'template':{'spec':{'typo':1}}}}";
    static const char kept[] = "{'replicas':1,'template':{'spec':{}}}";
    static const char drifted[] = "{'replicas':2,'template':{'spec':{}}}";
    static const char covered[] = "{'replicas':1,'template':{'spec':{'typo':1}}}";
    char stamp[64], tried[64], again[64], expected[70];

    stamp_for(&deployment_kind, wanted, stamp);
    assert_true(is_written(&deployment_kind, wanted, stamp, 3, kept, tried));
    (void)snprintf(expected, sizeof(expected), "%s-3", stamp);
    assert_string_equal(tried, expected);
    assert_false(is_written(&deployment_kind, wanted, tried, 3, kept, again));
    /* somebody changed our fields */
    assert_true(is_written(&deployment_kind, wanted, tried, 4, drifted, again));
    (void)snprintf(expected, sizeof(expected), "%s-4", stamp);
    assert_string_equal(again, expected);
    assert_true(is_written(&deployment_kind, wanted, again, 5, kept, tried));
    assert_false(is_written(&deployment_kind, wanted, tried, 5, kept, again));
    /* a newer server knows the field: one write more, and it is there */
    assert_true(is_written(&deployment_kind, wanted, tried, 6, kept, again));
    assert_false(is_written(&deployment_kind, wanted, again, 7, covered, tried));
}

static void what_the_server_does_not_keep_of_a_service_is_written_once(void **state)
{
    static const char wanted[] = "{'metadata':{'name':'c'},'spec':{'ports':[{'port':1,"
                                 "'targetPort':0}]}}";
    static const char kept[] = "{'ports':[{'port':1,'targetPort':1}]}";
    static const char drifted[] = "{'ports':[{'port':2,'targetPort':2}]}";
    static const char covered[] = "{'ports':[{'port':1,'targetPort':0}]}";
    char stamp[64], tried[64], again[64];

    stamp_for(&service_kind, wanted, stamp);
    assert_true(is_written(&service_kind, wanted, stamp, 0, kept, tried));
    assert_false(is_written(&service_kind, wanted, tried, 0, kept, again));
    assert_true(is_written(&service_kind, wanted, tried, 0, drifted, again));
    assert_true(is_written(&service_kind, wanted, again, 0, kept, tried));
    assert_false(is_written(&service_kind, wanted, tried, 0, kept, again));
    /* once it is mended the label is the plain hash: the same change is mended a second time */
    assert_true(is_written(&service_kind, wanted, stamp, 0, drifted, tried));
    assert_true(is_written(&service_kind, wanted, tried, 0, covered, again));
    assert_string_equal(again, stamp);
    assert_true(is_written(&service_kind, wanted, again, 0, drifted, tried));
}

static void a_field_that_we_no_longer_want_goes(void **state)
{
    struct desk desk;

    set_up(&desk, &deployment_kind,
           "{'metadata':{" LIVE_META "," OWNED ",'labels':{'" CHILD_STAMP "':'older'}},"
           "'spec':{'replicas':1,'minReadySeconds':5,'template':{'spec':{'x':1,'y':2}}}}");
    assert_int_equal(
        want(&desk, "{'metadata':{'name':'c'},'spec':{'replicas':1,'template':{'spec':{'x':1}}}}",
             NULL),
        0);
    assert_written(&desk, "{'metadata':{'resourceVersion':'7'},'spec':{'minReadySeconds':null,"
                          "'template':{'spec':{'y':null}}}}");
    tear_down(&desk);
}

static void a_child_of_another_operator_that_fits_gets_the_stamp_alone(void **state)
{
    struct desk desk;

    set_up(&desk, &deployment_kind,
           "{'metadata':{" LIVE_META "," OWNED "},"
           "'spec':{'replicas':1,'template':{'spec':{'x':1,'left':'over'}}}}");
    assert_int_equal(
        want(&desk, "{'metadata':{'name':'c'},'spec':{'replicas':1,'template':{'spec':{'x':1}}}}",
             NULL),
        0);
    assert_written(&desk, "{'metadata':{'resourceVersion':'7'}}");
    tear_down(&desk);
}

static void a_child_without_a_controller_is_adopted(void **state)
{
    struct desk desk;

    set_up(&desk, &configmap_kind,
           "{'metadata':{" LIVE_META ",'ownerReferences':[{'apiVersion':'v1','kind':'Pod',"
           "'name':'p','uid':'u-p'}]},'data':{'k':'v','foreign':'1'}}");
    assert_int_equal(
        want(&desk, "{'metadata':{'name':'c','labels':{'l':'1'}},'data':{'k':'v'}}", NULL), 0);
    assert_written(&desk,
                   "{'metadata':{'resourceVersion':'7','labels':{'l':'1'},'ownerReferences':["
                   "{'apiVersion':'v1','kind':'Pod','name':'p','uid':'u-p'},"
                   "{'apiVersion':'v1','kind':'ConfigMap','name':'boss','uid':'u-boss',"
                   "'controller':true,'blockOwnerDeletion':true}]}}");
    tear_down(&desk);
}

static void a_child_of_another_controller_is_not_touched(void **state)
{
    struct err err = { 0 };
    struct desk desk;

    set_up(&desk, &configmap_kind,
           "{'metadata':{" LIVE_META ",'ownerReferences':[{'apiVersion':'v1','kind':'Pod',"
           "'name':'p','uid':'u-p','controller':true}]},'data':{}}");
    assert_int_equal(want(&desk, "{'metadata':{'name':'c'},'data':{'k':'v'}}", &err),
                     -ERR_CONFLICT);
    assert_string_equal(err.text, "ConfigMap c exists and is controlled by Pod p");
    assert_null(only_action(&desk));
    tear_down(&desk);
}

static void keys_of_others_in_a_configmap_survive_and_a_null_takes_ours_away(void **state)
{
    struct desk desk;

    set_up(&desk, &configmap_kind,
           "{'metadata':{" LIVE_META "," OWNED ",'labels':{'" CHILD_STAMP "':'older'}},"
           "'data':{'slurm.conf':'a','cgroup.conf':'b','topology.conf':'theirs'}}");
    assert_int_equal(
        want(&desk, "{'metadata':{'name':'c'},'data':{'slurm.conf':'new','cgroup.conf':null}}",
             NULL),
        0);
    assert_written(&desk, "{'metadata':{'resourceVersion':'7'},'data':{'slurm.conf':'new',"
                          "'cgroup.conf':null}}");
    tear_down(&desk);
}

static void what_the_server_gave_a_service_stays(void **state)
{
    struct desk desk;

    set_up(&desk, &service_kind,
           "{'metadata':{" LIVE_META "," OWNED ",'labels':{'" CHILD_STAMP "':'older'}},"
           "'spec':{'clusterIP':'10.0.0.1','type':'LoadBalancer','selector':{'a':'b'},"
           "'ports':[{'name':'x','port':1,'nodePort':30000}]}}");
    assert_int_equal(want(&desk,
                          "{'metadata':{'name':'c'},'spec':{'selector':{'a':'c'},"
                          "'ports':[{'name':'x','port':1}]}}",
                          NULL),
                     0);
    assert_written(&desk, "{'metadata':{'resourceVersion':'7'},'spec':{'type':null,"
                          "'selector':{'a':'c'},'ports':[{'name':'x','port':1}]}}");
    tear_down(&desk);
}

static void a_child_that_goes_or_cannot_change_is_left_alone(void **state)
{
    static const char *const lives[] = {
        "{'metadata':{" LIVE_META "," OWNED
        ",'deletionTimestamp':'2026-01-01T00:00:00Z'},'data':{}}",
        "{'metadata':{" LIVE_META "," OWNED "},'immutable':true,'data':{}}",
    };

    for (size_t i = 0; i < 2; i++) {
        struct desk desk;

        set_up(&desk, &configmap_kind, lives[i]);
        assert_int_equal(want(&desk, "{'metadata':{'name':'c'},'data':{'k':'v'}}", NULL), 0);
        assert_null(only_action(&desk));
        tear_down(&desk);
    }
}

static void only_a_child_of_ours_is_deleted(void **state)
{
    struct desk desk;

    set_up(&desk, &configmap_kind, "{'metadata':{" LIVE_META "},'data':{}}");
    plan_child_absent(&desk.plan, desk.cache, desk.owner, "c");
    plan_child_absent(&desk.plan, desk.cache, desk.owner, "other");
    assert_null(only_action(&desk));
    tear_down(&desk);
    set_up(&desk, &configmap_kind, "{'metadata':{" LIVE_META "," OWNED "},'data':{}}");
    plan_child_absent(&desk.plan, desk.cache, desk.owner, "c");
    assert_int_equal(only_action(&desk)->request.verb, KUBE_DELETE);
    tear_down(&desk);
}

/* ---- shared children ---- */

static const struct kube_kind budget_kind = {
    .resource = &(const struct kube_resource){ "policy", "v1", "poddisruptionbudgets",
                                               "PodDisruptionBudget", true },
};

#define SHARER(name)                                                                               \
    "{'apiVersion':'v1','kind':'ConfigMap','name':'" name "','uid':'u-" name "',"                  \
    "'blockOwnerDeletion':true}"
#define STRANGER "{'apiVersion':'apps/v1','kind':'Deployment','name':'d','uid':'u-d'}"

/* By the owners a and b. */
static int want_shared(struct desk *desk, const char *text, struct err *err)
{
    auto_json_doc struct json_doc *doc = parsed(text);
    auto_json_build struct json_build *build = json_build_new();
    const struct kube_object *owners[] = {
        decoded(&configmap_kind, "{'metadata':{'name':'a','namespace':'a','uid':'u-a',"
                                 "'resourceVersion':'1'}}"),
        decoded(&configmap_kind, "{'metadata':{'name':'b','namespace':'a','uid':'u-b',"
                                 "'resourceVersion':'1'}}"),
    };
    int result = plan_shared_child(&desk->plan, desk->cache, owners, 2,
                                   json_copy(build, json_root(doc)), err);

    kube_object_unref(owners[0]);
    kube_object_unref(owners[1]);
    return result;
}

static const char shared_wish[] = "{'metadata':{'name':'c'},'spec':{'minAvailable':5}}";

static void a_shared_child_has_all_owners_and_no_controller(void **state)
{
    struct desk desk;

    set_up(&desk, &budget_kind, NULL);
    assert_int_equal(want_shared(&desk, shared_wish, NULL), 0);
    assert_written(&desk, "{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','metadata':{"
                          "'name':'c','namespace':'a','ownerReferences':[" SHARER("a") "," SHARER(
                              "b") "]},'spec':{'minAvailable':5}}");
    tear_down(&desk);
}

static void a_shared_child_with_the_right_owners_gets_the_stamp_alone(void **state)
{
    struct desk desk;

    set_up(&desk, &budget_kind,
           "{'metadata':{" LIVE_META ",'ownerReferences':[" STRANGER
           "," SHARER("a") "," SHARER("b") "]},'spec':{'minAvailable':5}}");
    assert_int_equal(want_shared(&desk, shared_wish, NULL), 0);
    assert_written(&desk, "{'metadata':{'resourceVersion':'7'}}");
    tear_down(&desk);
}

static void an_owner_that_is_gone_is_removed_and_other_kinds_stay(void **state)
{
    struct desk desk;

    set_up(&desk, &budget_kind,
           "{'metadata':{" LIVE_META
           ",'ownerReferences':[" SHARER("a") "," SHARER("gone") "," STRANGER
                                                                 "]},'spec':{'minAvailable':5}}");
    assert_int_equal(want_shared(&desk, shared_wish, NULL), 0);
    assert_written(&desk, "{'metadata':{'resourceVersion':'7','ownerReferences':[" STRANGER
                          "," SHARER("a") "," SHARER("b") "]}}");
    tear_down(&desk);
}

static void drift_of_a_shared_child_is_mended(void **state)
{
    struct desk desk;

    set_up(&desk, &budget_kind,
           "{'metadata':{" LIVE_META
           ",'ownerReferences':[" SHARER("a") "," SHARER("b") "]},'spec':{'maxUnavailable':0}}");
    assert_int_equal(want_shared(&desk, shared_wish, NULL), 0);
    assert_written(&desk, "{'metadata':{'resourceVersion':'7'},"
                          "'spec':{'maxUnavailable':null,'minAvailable':5}}");
    tear_down(&desk);
}

static void a_shared_child_with_a_controller_is_not_touched(void **state)
{
    struct err err = { 0 };
    struct desk desk;

    set_up(&desk, &budget_kind, "{'metadata':{" LIVE_META "," OWNED "},'spec':{}}");
    assert_int_equal(want_shared(&desk, shared_wish, &err), -ERR_CONFLICT);
    assert_null(only_action(&desk));
    tear_down(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_child_is_created_with_its_owner),
        cmocka_unit_test(a_key_that_must_be_absent_is_no_part_of_a_new_child),
        cmocka_unit_test(no_labels_wanted_is_no_difference),
        cmocka_unit_test(a_child_that_is_as_we_left_it_costs_no_write),
        cmocka_unit_test(what_somebody_changed_in_our_fields_is_mended),
        cmocka_unit_test(what_the_server_does_not_keep_is_written_once),
        cmocka_unit_test(what_the_server_does_not_keep_of_a_service_is_written_once),
        cmocka_unit_test(a_field_that_we_no_longer_want_goes),
        cmocka_unit_test(a_child_of_another_operator_that_fits_gets_the_stamp_alone),
        cmocka_unit_test(a_child_without_a_controller_is_adopted),
        cmocka_unit_test(a_child_of_another_controller_is_not_touched),
        cmocka_unit_test(keys_of_others_in_a_configmap_survive_and_a_null_takes_ours_away),
        cmocka_unit_test(what_the_server_gave_a_service_stays),
        cmocka_unit_test(a_child_that_goes_or_cannot_change_is_left_alone),
        cmocka_unit_test(only_a_child_of_ours_is_deleted),
        cmocka_unit_test(a_shared_child_has_all_owners_and_no_controller),
        cmocka_unit_test(a_shared_child_with_the_right_owners_gets_the_stamp_alone),
        cmocka_unit_test(an_owner_that_is_gone_is_removed_and_other_kinds_stay),
        cmocka_unit_test(drift_of_a_shared_child_is_mended),
        cmocka_unit_test(a_shared_child_with_a_controller_is_not_touched),
    };

    return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
