/* test_restarts.c - which changes restart slurmctld and slurmdbd, and which do not.
 *
 * A custom resource is planned, what it creates is taken as the live objects, something changes,
 * and it is planned again. Pods restart when the template of the StatefulSet is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/json_format.h"
#include "desk.h"
#include "operator/names.h"

enum { MAX_TEXT = 1 << 20 };

static void add(struct desk *desk, struct json_build *build, struct json_mut *object)
{
    auto_json_doc struct json_doc *doc = json_freeze(object);

    assert_int_equal(desk_add(desk, json_root(doc), NULL), 0);
    (void)build;
}

static void add_controller(struct desk *desk, const char *version, const char *annotation,
                           const char *extra)
{
    auto_json_build struct json_build *build = json_build_new();

    add(desk, build,
        json_format(build,
                    "{'kind':'Controller','metadata':{'name':'slurm','resourceVersion':%s,"
                    "'annotations':{'note':%s}},'spec':{'extraConf':%s,"
                    "'slurmKeyRef':{'name':'keys','key':'k'},"
                    "'jwtKeyRef':{'name':'jwt','key':'k'}}}",
                    version, annotation, extra));
    add(desk, build,
        json_format(build, "{'kind':'Secret','metadata':{'name':'jwt'},'data':{'k':'and0'}}"));
}

static void add_nodeset(struct desk *desk)
{
    auto_json_build struct json_build *build = json_build_new();

    add(desk, build,
        json_format(build,
                    "{'kind':'NodeSet','metadata':{'name':'w'},"
                    "'spec':{'controllerRef':{'name':'slurm'},'partition':{'enabled':true}}}"));
}

/* As another operator made it: the template does not name our options. */
static void remove_options(struct json_build *build, struct json_mut *object)
{
    struct json_mut *template =
        json_object_at(build, json_object_at(build, object, "spec"), "template");
    struct json_mut *metadata = json_object_at(build, template, "metadata");

    json_remove(json_object_at(build, metadata, "annotations"), STR(ANNOTATION_RESTART_OPTIONS));
}

/* The objects that the plan creates are there, with the versions of an API server. */
static void take_created(struct desk *desk, bool is_taken_over)
{
    list_each (const struct action, action, &desk->plan.actions, link) {
        auto_json_build struct json_build *build = json_build_new();
        auto_json_doc struct json_doc *body = NULL;
        struct json_mut *object;

        if (action->request.verb != KUBE_CREATE)
            continue;
        assert_int_equal(json_parse(action->request.body, MAX_TEXT, &body, NULL), 0);
        object = json_copy(build, json_root(body));
        if (is_taken_over && action->cache == desk->world.statefulsets)
            remove_options(build, object);
        add(desk, build, object);
    }
}

static bool writes(const struct desk *desk, const struct kube_cache *cache)
{
    list_each (const struct action, action, &desk->plan.actions, link) {
        auto_json_doc struct json_doc *body = NULL;

        if (action->cache != cache)
            continue;
        assert_int_equal(json_parse(action->request.body, MAX_TEXT, &body, NULL), 0);
        if (json_exists(json_get(json_root(body), "spec")) ||
            json_exists(json_get(json_root(body), "data")))
            return true;
    }
    return false;
}

static unsigned stage_of(const struct desk *desk, const struct kube_cache *cache)
{
    list_each (const struct action, action, &desk->plan.actions, link)
        if (action->cache == cache)
            return action->stage;
    fail_msg("nothing is written to this cache");
    return 0;
}

static const struct change {
    const char *name;
    const char *annotation, *before, *after; /* the annotation, and extraConf before and after */
    bool adds_nodeset, is_taken_over;
    bool writes_config, restarts;
} changes[] = {
    { .name = "nothing changed" },
    { .name = "an annotation of the Controller", .annotation = "new" },
    { .name = "a NodeSet with a partition", .adds_nodeset = true, .writes_config = true },
    { .name = "an ordinary option", .after = "SlurmctldDebug=debug\n", .writes_config = true },
    { .name = "an option that names a plugin",
      .after = "SelectType=select/linear\n",
      .writes_config = true },
    { .name = "a comment", .after = "# SlurmctldPort=7000\n", .writes_config = true },
    { .name = "the same value by the user",
      .after = "SlurmctldPort=6817\n",
      .writes_config = true },
    { .name = "the port of slurmctld",
      .after = "slurmctldport=7000\n",
      .writes_config = true,
      .restarts = true },
    { .name = "how many nodes it has room for",
      .after = "MaxNodeCount=5000\n",
      .writes_config = true,
      .restarts = true },
    { .name = "IPv6 for its sockets",
      .after = "CommunicationParameters=EnableIPv6\n",
      .writes_config = true,
      .restarts = true },
    { .name = "TLS for its sockets",
      .after = "TLSType=tls/s2n\n",
      .writes_config = true,
      .restarts = true },
    { .name = "how daemons authenticate",
      .after = "AuthType=auth/munge\nCredType=cred/munge\n",
      .writes_config = true,
      .restarts = true },
    { .name = "an option that is taken back",
      .before = "CommunicationParameters=EnableIPv6\n",
      .after = "",
      .writes_config = true,
      .restarts = true },
    { .name = "a cluster of another operator, unchanged",
      .before = "SlurmctldPort=7000\n",
      .after = "SlurmctldPort=7000\n",
      .is_taken_over = true },
    { .name = "a cluster of another operator, an ordinary option",
      .before = "SlurmctldPort=7000\n",
      .after = "SlurmctldPort=7000\nSlurmctldDebug=debug\n",
      .is_taken_over = true,
      .writes_config = true },
    { .name = "a cluster of another operator, another port",
      .after = "SlurmctldPort=7000\n",
      .is_taken_over = true,
      .writes_config = true,
      .restarts = true },
};

static void slurmctld_restarts_only_for_options_that_need_it(void **state)
{
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        const struct change *change = &changes[i];
        const char *before = change->before ? change->before : "";
        auto_json_build struct json_build *build = json_build_new();
        struct desk desk;

        desk_init(&desk);
        add(&desk, build,
            json_format(build, "{'kind':'Secret','metadata':{'name':'keys'},"
                               "'data':{'k':'a2V5'}}"));
        add_controller(&desk, "1", "old", before);
        assert_int_equal(desk_plan(&desk, STR("Controller"), STR("slurm"), NULL), 0);
        assert_null(desk.plan.failure);
        take_created(&desk, change->is_taken_over);
        add_controller(&desk, "2", change->annotation ? change->annotation : "old",
                       change->after ? change->after : before);
        if (change->adds_nodeset)
            add_nodeset(&desk);
        plan_clear(&desk.plan);
        assert_int_equal(desk_plan(&desk, STR("Controller"), STR("slurm"), NULL), 0);
        assert_null(desk.plan.failure);
        if (writes(&desk, desk.world.configmaps) != change->writes_config)
            fail_msg("%s: the configuration is %swritten", change->name,
                     change->writes_config ? "not " : "");
        if (writes(&desk, desk.world.statefulsets) != change->restarts)
            fail_msg("%s: slurmctld %s", change->name,
                     change->restarts ? "does not restart" : "restarts");
        /* Only the ConfigMap says with which options the pods of another operator run: if it were
         * written and the StatefulSet not, the restart would be forgotten. */
        if (change->is_taken_over && change->restarts)
            assert_true(stage_of(&desk, desk.world.configmaps) >
                        stage_of(&desk, desk.world.statefulsets));
        desk_done(&desk);
    }
    (void)state;
}

static void add_password(struct desk *desk, const char *version, const char *password)
{
    auto_json_build struct json_build *build = json_build_new();

    add(desk, build,
        json_format(build,
                    "{'kind':'Secret','metadata':{'name':'database','resourceVersion':%s},"
                    "'data':{'password':%s}}",
                    version, password));
}

/* Another password is another slurmdbd.conf, which slurmdbd reads when it starts. */
static void slurmdbd_restarts_for_a_new_password(void **state)
{
    auto_json_build struct json_build *build = json_build_new();
    struct desk desk;

    desk_init(&desk);
    add(&desk, build,
        json_format(build, "{'kind':'Secret','metadata':{'name':'keys'},'data':{'k':'a2V5'}}"));
    add(&desk, build,
        json_format(build, "{'kind':'Accounting','metadata':{'name':'acct'},'spec':{"
                           "'slurmKeyRef':{'name':'keys','key':'k'},"
                           "'jwtKeyRef':{'name':'keys','key':'k'},"
                           "'storageConfig':{'host':'db','passwordKeyRef':{'name':'database',"
                           "'key':'password'}}}}"));
    add_password(&desk, "1", "b2xk");
    assert_int_equal(desk_plan(&desk, STR("Accounting"), STR("acct"), NULL), 0);
    assert_null(desk.plan.failure);
    take_created(&desk, false);
    plan_clear(&desk.plan);
    assert_int_equal(desk_plan(&desk, STR("Accounting"), STR("acct"), NULL), 0);
    assert_false(writes(&desk, desk.world.secrets) || writes(&desk, desk.world.statefulsets));
    add_password(&desk, "2", "bmV3");
    plan_clear(&desk.plan);
    assert_int_equal(desk_plan(&desk, STR("Accounting"), STR("acct"), NULL), 0);
    assert_true(writes(&desk, desk.world.secrets) && writes(&desk, desk.world.statefulsets));
    desk_done(&desk);
    (void)state;
}

/* ---- another slurm.key ---- */

static void add_key(struct desk *desk, const char *version, const char *key)
{
    auto_json_build struct json_build *build = json_build_new();

    add(desk, build,
        json_format(build,
                    "{'kind':'Secret','metadata':{'name':'keys','resourceVersion':%s},"
                    "'data':{'k':%s}}",
                    version, key));
}

/* What the API server has of slurm.jwks after the plan. */
static void take_keys(struct desk *desk, const char *version)
{
    list_each (const struct action, action, &desk->plan.actions, link) {
        auto_json_build struct json_build *build = json_build_new();
        auto_json_doc struct json_doc *body = NULL;
        struct json_mut *secret;

        if (action->cache != desk->world.secrets)
            continue;
        assert_int_equal(json_parse(action->request.body, MAX_TEXT, &body, NULL), 0);
        secret = json_copy(build, json_root(body));
        json_put_text(build, secret, "kind", "Secret");
        json_put_text(build, json_object_at(build, secret, "metadata"), "name", "keys-jwks");
        json_put_text(build, json_object_at(build, secret, "metadata"), "resourceVersion", version);
        add(desk, build, secret);
    }
}

static void add_worker(struct desk *desk, const char *version, struct str mark)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *pod =
        json_format(build,
                    "{'kind':'Pod','worker':'w','runs':'n','metadata':{'name':'w-0',"
                    "'resourceVersion':%s}}",
                    version);

    json_put_at(build, pod, json_new_str(build, mark), "metadata", "annotations",
                ANNOTATION_SLURM_KEYS);
    add(desk, build, pod);
}

static void plan_again(struct desk *desk)
{
    plan_clear(&desk->plan);
    assert_int_equal(desk_plan(desk, STR("Controller"), STR("slurm"), NULL), 0);
    assert_null(desk->plan.failure);
}

static void another_key_restarts_slurmctld_after_all_others(void **state)
{
    const struct kube_object *kept;
    struct desk desk;

    desk_init(&desk);
    add_key(&desk, "1", "b2xk");
    add_controller(&desk, "1", "", "");
    add_nodeset(&desk);
    plan_again(&desk);
    take_created(&desk, false);
    add_worker(&desk, "1", STR(""));
    add_key(&desk, "2", "bmV3");
    plan_again(&desk);
    assert_false(writes(&desk, desk.world.statefulsets));
    take_keys(&desk, "3");
    plan_again(&desk);
    assert_false(writes(&desk, desk.world.statefulsets)); /* the worker has not read both */
    add_controller(&desk, "2", "", "MaxNodeCount=5000\n");
    plan_again(&desk);
    assert_true(writes(&desk, desk.world.statefulsets)); /* it must not start with the new alone */
    add_controller(&desk, "3", "", "");
    kept = kube_cache_get(desk.world.secrets, "site", "keys-jwks");
    add_worker(&desk, "2", kube_pairs_get(&kept->annotations, ANNOTATION_SLURM_KEYS, NULL));
    plan_again(&desk);
    assert_true(writes(&desk, desk.world.statefulsets));
    desk_done(&desk);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slurmdbd_restarts_for_a_new_password),
        cmocka_unit_test(another_key_restarts_slurmctld_after_all_others),
        cmocka_unit_test(slurmctld_restarts_only_for_options_that_need_it),
    };

    return cmocka_run_group_tests_name("restarts", tests, NULL, NULL);
}
