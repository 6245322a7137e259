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
#include "codec/patch.h"
#include "fixtures.h"
#include "operator/plans.h"
#include "operator/rehearse.h"

enum { MAX_TEXT = 1 << 20 };

static const char *next_version(struct desk *desk)
{
    static unsigned version = 9000000;

    return arena_printf(&desk->arena, "%u", ++version);
}

static void give_password(struct desk *desk, const char *encoded)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *secret = json_freeze(
        json_format(build,
                    "{'kind':'Secret','metadata':{'name':'mariadb-password','resourceVersion':%s},"
                    "'data':{'password':%s}}",
                    next_version(desk), encoded));

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

    if (strcmp(action->what, "create secret site/slurm-auth-slurm-jwks") == 0)
        return; /* no pod reads it before the key changes */
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

/* Lays this text over each object. */
static void give(struct desk *desk, struct kube_cache *cache, const char *kind,
                 const struct json_mut *more)
{
    struct kube_cache_walk walk = kube_cache_walk(cache);
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *patch = json_freeze(more);
    const struct kube_object *object;

    while ((object = kube_cache_next(&walk))) {
        struct json_mut *copy = patch_merge_apply(build, operator_tree(object), json_root(patch));
        auto_json_doc struct json_doc *changed = NULL;

        json_put_text(build, copy, "kind", kind);
        json_put_at(build, copy, json_new_str(build, str_of(next_version(desk))), "metadata",
                    "resourceVersion");
        changed = json_freeze(copy);
        assert_int_equal(desk_add(desk, json_root(changed), NULL), 0);
    }
}

/* Over the pod spec of each, as the Slinky operator did with these lists. */
static void give_lists(struct desk *desk, struct kube_cache *cache, const char *kind)
{
    auto_json_build struct json_build *build = json_build_new();

    give(desk, cache, kind,
         json_format(build, "{'spec':{'template':{'spec':{'tolerations':[{'key':'a'}],"
                            "'dnsConfig':{'searches':['corp.example']},"
                            "'affinity':{'podAntiAffinity':"
                            "{'requiredDuringSchedulingIgnoredDuringExecution':"
                            "[{'topologyKey':'rack'}]}}}}}}"));
}

/* Zeros and falses of the user, which the Slinky operator dropped before it merged. */
static void give_zeros(struct desk *desk)
{
    static const struct {
        const char *kind, *block;
    } rows[] = { { "Controller", "slurmctld" }, { "Controller", "logfile" },
                 { "RestApi", "slurmrestd" },   { "Accounting", "slurmdbd" },
                 { "LoginSet", "login" },       { "LoginSet", "initconf" } };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        auto_json_build struct json_build *build = json_build_new();
        struct json_mut *more = json_format(
            build, "{'spec':{'template':{'spec':{'enableServiceLinks':false,"
                   "'terminationGracePeriodSeconds':0,"
                   "'securityContext':{'runAsUser':0,'runAsNonRoot':false,'fsGroup':0}}}}}");

        json_put_at(build, more,
                    json_format(build, "{'privileged':false,'runAsUser':0,"
                                       "'allowPrivilegeEscalation':false}"),
                    "spec", rows[i].block, "securityContext");
        give(desk, operator_world_cache(&desk->world, rows[i].kind), rows[i].kind, more);
    }
}

static void begin(struct desk *desk, const char *fixture)
{
    desk_init(desk);
    fixtures_load(desk, fixture);
    give_password(desk, "eA=="); /* it is not in the fixtures; the recorded hash is that of this */
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

static void nothing_rolls_where_the_user_says_zero_or_false(void **state)
{
    struct desk desk;

    begin(&desk, *state);
    give_zeros(&desk);
    check_nothing_rolls(&desk);
}

/* Of the text that the Slinky operator makes of these values. */
static void nothing_rolls_where_values_of_the_database_are_unusual(void **state)
{
    static const struct {
        const char *username, *password, *hash;
    } rows[] = {
        { "slurm", "eAo=", "de512c85909e3915ca8cb3932bf4193c46764e2545d9b61e17133a91929bac3f" },
        { "", "eA==", "7353cb32c4ad9da9bfbfd451c3fcefe060c93153f234922f1e7568e68956b75c" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        auto_json_build struct json_build *build = json_build_new();
        struct desk desk;

        begin(&desk, *state);
        give_password(&desk, rows[i].password);
        give(&desk, desk.world.accountings, "Accounting",
             json_format(build, "{'spec':{'storageConfig':{'username':%s}}}", rows[i].username));
        give(&desk, desk.world.statefulsets, "StatefulSet",
             json_format(build,
                         "{'spec':{'template':{'metadata':{'annotations':{'slinky.slurm.net/"
                         "slurmdbd-conf-hash':%s}}}}}",
                         rows[i].hash));
        check_nothing_rolls(&desk);
    }
}

/* ---- what was dropped counts from the next change on ---- */

/* What is written to the LoginSet's Deployment now; NULL: nothing. */
static struct json_doc *next_write(struct desk *desk)
{
    const struct kube_object *loginset =
        kube_cache_get(desk->world.loginsets, "site", "slurm-login-slinky");
    struct json_doc *body = NULL;

    plan_clear(&desk->plan);
    operator_plan_of("LoginSet")->plan(&desk->world, loginset, &desk->plan);
    list_each (const struct action, action, &desk->plan.actions, link)
        if (strcmp(action->what, "patch deployment site/slurm-login-slinky") == 0)
            assert_int_equal(json_parse(action->request.body, MAX_TEXT, &body, NULL), 0);
    return body;
}

/* It is written; the fixtures have one Deployment more. */
static void take_write(struct desk *desk, const struct json *body)
{
    auto_json_build struct json_build *build = json_build_new();

    give(desk, desk->world.deployments, "Deployment", json_copy(build, body));
}

static const struct json *pod_of(const struct json_doc *body)
{
    return json_at(json_root(body), "spec", "template", "spec");
}

static void what_was_dropped_counts_from_the_next_change_on(void **state)
{
    auto_json_doc struct json_doc *first = NULL, *second = NULL, *third = NULL, *fourth = NULL;
    auto_json_build struct json_build *build = json_build_new();
    struct desk desk;

    begin(&desk, *state);
    give_zeros(&desk);
    first = next_write(&desk);
    assert_null(pod_of(first));
    take_write(&desk, json_root(first));
    second = next_write(&desk);
    assert_null(second);
    give(&desk, desk.world.loginsets, "LoginSet", /* a false is a change, too */
         json_format(build, "{'spec':{'template':{'spec':{'hostUsers':false}}}}"));
    third = next_write(&desk);
    assert_int_equal(json_i64_or(json_get(pod_of(third), "terminationGracePeriodSeconds"), -1), 0);
    assert_false(json_bool_or(json_get(pod_of(third), "hostUsers"), true));
    take_write(&desk, json_root(third));
    fourth = next_write(&desk);
    assert_null(fourth);
    desk_done(&desk);
}

/* The images of the custom resource's container change: that restarts pods anyway. */
static void give_image(struct desk *desk, const char *kind, const char *container)
{
    struct kube_cache *cache = operator_world_cache(&desk->world, kind);
    struct kube_cache_walk walk = kube_cache_walk(cache);
    const struct kube_object *object = kube_cache_next(&walk);
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *changed = NULL;
    struct json_mut *copy = json_copy(build, operator_tree(object));

    json_put_text(build, json_object_at(build, copy, "metadata"), "resourceVersion", "9999999");
    json_put_text(build, json_object_at(build, copy, "spec", container), "image", "next");
    changed = json_freeze(copy);
    assert_int_equal(desk_add(desk, json_root(changed), NULL), 0);
}

static struct str written_profile(const struct desk *desk, const struct kube_cache *cache,
                                  struct json_doc **ret_body)
{
    list_each (const struct action, action, &desk->plan.actions, link) {
        if (action->cache != cache)
            continue;
        assert_int_equal(json_parse(action->request.body, MAX_TEXT, ret_body, NULL), 0);
        return json_str(json_at(json_root(*ret_body), "spec", "template", "spec", "securityContext",
                                "seccompProfile", "type"));
    }
    return STR("nothing is written");
}

static void pods_give_up_rights_with_the_next_change_that_rolls_them(void **state)
{
    static const struct {
        const char *kind, *container, *workload;
    } rows[] = {
        { "Controller", "slurmctld", "StatefulSet" },
        { "Accounting", "slurmdbd", "StatefulSet" },
        { "RestApi", "slurmrestd", "Deployment" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        auto_json_doc struct json_doc *body = NULL;
        struct desk desk;

        begin(&desk, *state);
        give_image(&desk, rows[i].kind, rows[i].container);
        (void)plan_all(&desk, operator_plan_of(rows[i].kind));
        assert_true(str_is(
            written_profile(&desk, operator_world_cache(&desk.world, rows[i].workload), &body),
            "RuntimeDefault"));
        desk_done(&desk);
    }
}

/* ---- what is told before ---- */

struct told {
    struct buf of[REHEARSED_WARNED + 1];
};

static void on_told(void *context, enum rehearsed what, const char *text)
{
    buf_printf(&((struct told *)context)->of[what], "%s\n", text);
}

static void told_init(struct told *told)
{
    for (unsigned i = 0; i <= REHEARSED_WARNED; i++)
        buf_init(&told->of[i], MAX_TEXT);
}

static void told_done(struct told *told)
{
    for (unsigned i = 0; i <= REHEARSED_WARNED; i++)
        buf_done(&told->of[i]);
}

static void a_rehearsal_of_a_take_over_tells_nothing(void **state)
{
    struct desk desk;
    struct told told;

    begin(&desk, *state);
    desk.world.speaks_slurm = true;
    told_init(&told);
    operator_rehearse(&desk.world, on_told, &told);
    for (unsigned i = 0; i <= REHEARSED_WARNED; i++)
        assert_string_equal(buf_text(&told.of[i]), "");
    told_done(&told);
    desk_done(&desk);
}

static void a_rehearsal_tells_which_pods_an_image_replaces(void **state)
{
    struct desk desk;
    struct told told;

    begin(&desk, *state);
    desk.world.speaks_slurm = true;
    told_init(&told);
    give_image(&desk, "Controller", "slurmctld");
    give_image(&desk, "NodeSet", "slurmd");
    operator_rehearse(&desk.world, on_told, &told);
    if (!strstr(buf_text(&told.of[REHEARSED_ROLLS]),
                "StatefulSet site/slurm-controller: its pods are replaced: "
                "spec.containers[slurmctld].image (ghcr.io/slinkyproject/slurmctld:"
                "26.05-ubuntu26.04 becomes next), ") ||
        !strstr(buf_text(&told.of[REHEARSED_ROLLS]),
                "NodeSet site/slurm-worker-slinky: its 2 workers are replaced, each after its "
                "drain: spec.slurmd.image (ghcr.io/slinkyproject/slurmd:26.05-ubuntu26.04 becomes "
                "next)\n"))
        fail_msg("told: %s", buf_text(&told.of[REHEARSED_ROLLS]));
    assert_string_equal(buf_text(&told.of[REHEARSED_FAILS]), "");
    told_done(&told);
    desk_done(&desk);
}

static void a_rehearsal_tells_what_the_webhook_refuses(void **state)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *changed = NULL, *patch = NULL;
    const struct json *old;
    struct desk desk;
    struct told told;

    begin(&desk, *state);
    desk.world.speaks_slurm = true;
    told_init(&told);
    old = operator_tree(kube_cache_get(desk.world.nodesets, "site", "slurm-worker-slinky"));
    patch = json_freeze(json_format(build, "{'spec':{'slurmd':{'image':['a list']}}}"));
    changed = json_freeze(patch_merge_apply(build, old, json_root(patch)));
    operator_rehearse_review(&desk.world, "NodeSet", old, old, on_told, &told);
    assert_string_equal(buf_text(&told.of[REHEARSED_REFUSED]), "");
    operator_rehearse_review(&desk.world, "NodeSet", old, json_root(changed), on_told, &told);
    if (!strstr(buf_text(&told.of[REHEARSED_REFUSED]),
                "NodeSet site/slurm-worker-slinky: spec.slurmd.image"))
        fail_msg("told: %s", buf_text(&told.of[REHEARSED_REFUSED]));
    told_done(&told);
    desk_done(&desk);
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
        cmocka_unit_test_prestate(nothing_rolls_where_the_user_says_zero_or_false,
                                  (void *)"slinky-1.2.1"),
        cmocka_unit_test_prestate(nothing_rolls_where_the_user_says_zero_or_false,
                                  (void *)"slinky-main"),
        cmocka_unit_test_prestate(nothing_rolls_where_values_of_the_database_are_unusual,
                                  (void *)"slinky-main"),
        cmocka_unit_test_prestate(what_was_dropped_counts_from_the_next_change_on,
                                  (void *)"slinky-main"),
        cmocka_unit_test_prestate(pods_give_up_rights_with_the_next_change_that_rolls_them,
                                  (void *)"slinky-1.2.1"),
        cmocka_unit_test_prestate(pods_give_up_rights_with_the_next_change_that_rolls_them,
                                  (void *)"slinky-main"),
        cmocka_unit_test_prestate(a_rehearsal_of_a_take_over_tells_nothing, (void *)"slinky-1.2.1"),
        cmocka_unit_test_prestate(a_rehearsal_of_a_take_over_tells_nothing, (void *)"slinky-main"),
        cmocka_unit_test_prestate(a_rehearsal_tells_which_pods_an_image_replaces,
                                  (void *)"slinky-main"),
        cmocka_unit_test_prestate(a_rehearsal_tells_what_the_webhook_refuses,
                                  (void *)"slinky-main"),
    };

    fixtures_folder = argc > 1 ? argv[1] : fixtures_folder;
    return cmocka_run_group_tests_name("takeover", tests, NULL, NULL);
}
