/* test_takeover.c - objects of the Slinky operator are taken over without a change that rolls pods.
 *
 * tests/fixtures holds clusters as its releases leave them. For every custom resource that we plan,
 * no child is created and none is patched outside of its own metadata. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/base64.h"
#include "codec/json_format.h"
#include "fixtures.h"
#include "operator/plans.h"

enum { MAX_TEXT = 1 << 20 };

/* Passwords are not in the fixtures; the recorded hash is that of this one. */
static void give_password(struct desk *desk)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *secret = json_freeze(json_format(
        build,
        "{'kind':'Secret','metadata':{'name':'mariadb-password','resourceVersion':'9999999'},"
        "'data':{'password':'eA=='}}"));

    assert_int_equal(desk_add(desk, json_root(secret), NULL), 0);
}

/* The sssd file stands in the annotation with which it was applied. */
static void restore_sssd(struct desk *desk)
{
    const struct kube_object *secret =
        kube_cache_get(desk->world.secrets, "site", "slurm-sssd-conf");
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *applied = NULL, *whole = NULL;
    auto_buf struct buf text = { .max = MAX_TEXT };
    bool found = false;
    struct str last;

    last = kube_pairs_get(&secret->annotations, "kubectl.kubernetes.io/last-applied-configuration",
                          &found);
    assert_int_equal(json_parse(last, MAX_TEXT, &applied, NULL), 0);
    base64_encode(json_str(json_at(json_root(applied), "stringData", "sssd.conf")), 0, &text);
    whole = json_freeze(json_format(
        build,
        "{'kind':'Secret','metadata':{'name':'slurm-sssd-conf','resourceVersion':'9999999'},"
        "'data':{'sssd.conf':%s}}",
        buf_text(&text)));
    assert_int_equal(desk_add(desk, json_root(whole), NULL), 0);
}

/* Nothing but metadata (our stamp) and the status of the custom resource may be written; and what
 * the fixtures hold a placeholder for, the data of Secrets. */
static void check_harmless(const struct action *action)
{
    auto_json_doc struct json_doc *body = NULL;
    struct json_iter iter;
    const struct json *value;
    struct str key;

    assert_int_equal(action->request.verb, KUBE_MERGE_PATCH);
    assert_int_equal(json_parse(action->request.body, MAX_TEXT, &body, NULL), 0);
    iter = json_iter(json_root(body));
    while (json_next_member(&iter, &key, &value))
        if (!str_is(key, "metadata") && !str_is(key, "status") &&
            !(str_is(key, "data") && action->request.resource == &kube_secrets))
            fail_msg("'%s' changes more than metadata: " STR_FMT, action->what,
                     STR_ARG(action->request.body));
    if (json_at(json_root(body), "metadata", "ownerReferences"))
        fail_msg("'%s' changes the owner", action->what);
}

static unsigned plan_all(struct desk *desk, const struct operator_plan *row)
{
    struct kube_cache_walk walk = kube_cache_walk(operator_world_cache(&desk->world, row->kind));
    const struct kube_object *object;
    unsigned count = 0;

    while ((object = kube_cache_next(&walk))) {
        row->plan(&desk->world, object, &desk->plan);
        count++;
    }
    return count;
}

/* Lays the same text over the pod spec of each, as the Slinky operator did with these lists. */
static void give_lists(struct desk *desk, struct kube_cache *cache, const char *kind)
{
    struct kube_cache_walk walk = kube_cache_walk(cache);
    auto_json_build struct json_build *build = json_build_new();
    const struct kube_object *object;

    while ((object = kube_cache_next(&walk))) {
        struct json_mut *copy = json_copy(build, operator_tree(object));
        struct json_mut *spec = json_object_at(build, copy, "spec", "template", "spec");
        auto_json_doc struct json_doc *changed = NULL;

        json_put(build, spec, "tolerations", json_format(build, "[{'key':'a'}]"));
        json_put(build, spec, "dnsConfig", json_format(build, "{'searches':['corp.example']}"));
        json_put(build, spec, "affinity",
                 json_format(build, "{'podAntiAffinity':"
                                    "{'requiredDuringSchedulingIgnoredDuringExecution':"
                                    "[{'topologyKey':'rack'}]}}"));
        json_put_text(build, copy, "kind", kind);
        json_put_at(build, copy, json_new_str(build, STR("9999999")), "metadata",
                    "resourceVersion");
        changed = json_freeze(copy);
        assert_int_equal(desk_add(desk, json_root(changed), NULL), 0);
    }
}

static void begin(struct desk *desk, const char *fixture)
{
    desk_init(desk);
    fixtures_load(desk, fixture);
    give_password(desk);
    restore_sssd(desk);
}

static void check_nothing_rolls(struct desk *desk)
{
    unsigned count = 0;

    for (size_t i = 0; i < operator_plan_count; i++)
        count += plan_all(desk, &operator_plans[i]);
    assert_true(count >= 1);
    if (desk->plan.failure)
        fail_msg("%s", desk->plan.failure);
    list_each (const struct action, action, &desk->plan.actions, link)
        check_harmless(action);
    desk_done(desk);
}

static void nothing_rolls(void **state)
{
    struct desk desk;

    begin(&desk, *state);
    check_nothing_rolls(&desk);
}

static void nothing_rolls_where_a_list_of_the_user_stands_alone(void **state)
{
    struct desk desk;

    begin(&desk, *state);
    give_lists(&desk, desk.world.loginsets, "LoginSet");
    give_lists(&desk, desk.world.controllers, "Controller");
    give_lists(&desk, desk.world.deployments, "Deployment");
    give_lists(&desk, desk.world.statefulsets, "StatefulSet");
    check_nothing_rolls(&desk);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(nothing_rolls, (void *)"slinky-1.2.1"),
        cmocka_unit_test_prestate(nothing_rolls, (void *)"slinky-main"),
        cmocka_unit_test_prestate(nothing_rolls_where_a_list_of_the_user_stands_alone,
                                  (void *)"slinky-1.2.1"),
        cmocka_unit_test_prestate(nothing_rolls_where_a_list_of_the_user_stands_alone,
                                  (void *)"slinky-main"),
    };

    fixtures_folder = argc > 1 ? argv[1] : fixtures_folder;
    return cmocka_run_group_tests_name("takeover", tests, NULL, NULL);
}
