/* test_worker_identity.c - names of workers, and the argument with which slurmd registers them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "made.h"
#include "operator/names.h"
#include "operator/worker_conf.h"
#include "operator/worker_identity.h"

/* ---- names ---- */

static void numbered_workers_have_their_ordinal_in_their_names(void **state)
{
    static const struct {
        const char *spec;
        int64_t ordinal;
        const char *name, *hostname; /* NULL: refused */
    } rows[] = {
        { "{}", 0, "n-0", "n-0" },
        { "{'ordinalPadding':3}", 7, "n-007", "n-007" },
        { "{'ordinalPadding':3}", 1234, "n-1234", "n-1234" },
        { "{'template':{'spec':{'hostname':'slinky-'}}}", 2, "n-2", "slinky-2" },
        { "{'template':{'spec':{'hostname':'gpu'}},'ordinalPadding':2}", 2, "n-02", "gpu02" },
        { "{'ordinalPadding':-1}", 0, NULL, NULL },
        { "{'ordinalPadding':100}", 0, NULL, NULL },
        { "{'template':{'spec':{'hostname':'  '}}}", 0, NULL, NULL },
        { "{'template':{'spec':{'hostname':'a;b'}}}", 0, NULL, NULL },
        { "{'template':{'spec':{'hostname':'Upper'}}}", 0, NULL, NULL },
        { "{'template':{'spec':{'hostname':'-a'}}}", 0, NULL, NULL },
        { "{'template':{'spec':{'hostname':"
          "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'}}}",
          0, NULL, NULL },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct worker_identity worker;
        struct err err = { 0 };
        struct desk desk;
        int result;

        desk_init(&desk);
        result = worker_of_ordinal(&desk.arena, made_nodeset(&desk, rows[i].spec), rows[i].ordinal,
                                   NULL, &worker, &err);
        if (rows[i].name) {
            assert_int_equal(result, 0);
            assert_string_equal(worker.name, rows[i].name);
            assert_string_equal(worker.hostname, rows[i].hostname);
            assert_int_equal(worker.ordinal, rows[i].ordinal);
        } else {
            assert_int_equal(result, -ERR_INVALID);
            assert_true(err.text[0]);
        }
        desk_done(&desk);
    }
}

static void a_worker_of_a_node_has_its_hostname(void **state)
{
    static const struct {
        const char *node, *hostname;
    } rows[] = {
        { "{'kind':'Node','metadata':{'name':'a.example'}}", "a" },
        { "{'kind':'Node','metadata':{'name':'b'}}", "b" },
        { "{'kind':'Node','metadata':{'name':'c','annotations':{"
          "'nodeset.slinky.slurm.net/hostname-override':'gpu-7'}}}",
          "gpu-7" },
        { "{'kind':'Node','metadata':{'name':'d','annotations':{"
          "'nodeset.slinky.slurm.net/hostname-override':'x y'}}}",
          NULL },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct worker_identity worker;
        struct err err = { 0 };
        struct desk desk;
        int result;

        desk_init(&desk);
        result = worker_of_node(&desk.arena, made_nodeset(&desk, "{'scalingMode':'DaemonSet'}"),
                                made(&desk, rows[i].node), 0, &worker, &err);
        assert_int_equal(result, rows[i].hostname ? 0 : -ERR_INVALID);
        if (rows[i].hostname) {
            assert_string_equal(worker.hostname, rows[i].hostname);
            assert_int_equal(worker.ordinal, -1);
        }
        desk_done(&desk);
    }
}

static void the_name_on_a_node_follows_from_its_uid_and_the_attempt(void **state)
{
    const struct kube_object *nodeset, *node;
    struct worker_identity first, same, next, other;
    struct desk desk;

    desk_init(&desk);
    nodeset = made_nodeset(&desk, "{}");
    node = made(&desk, "{'kind':'Node','metadata':{'name':'a'}}");
    assert_int_equal(worker_of_node(&desk.arena, nodeset, node, 0, &first, NULL), 0);
    assert_int_equal(worker_of_node(&desk.arena, nodeset, node, 0, &same, NULL), 0);
    assert_int_equal(worker_of_node(&desk.arena, nodeset, node, 1, &next, NULL), 0);
    node = made(&desk, "{'kind':'Node','metadata':{'name':'b'}}");
    assert_int_equal(worker_of_node(&desk.arena, nodeset, node, 0, &other, NULL), 0);
    assert_string_equal(first.name, same.name);
    assert_string_not_equal(first.name, next.name);
    assert_string_not_equal(first.name, other.name);
    assert_int_equal(strlen(first.name), strlen("n-") + 5);
    for (unsigned attempt = 0; attempt < 200; attempt++) { /* none of them looks like an ordinal */
        assert_int_equal(worker_of_node(&desk.arena, nodeset, node, attempt, &next, NULL), 0);
        assert_int_equal(worker_ordinal(nodeset, next.name), -1);
    }
    desk_done(&desk);
}

static void ordinals_are_read_from_names_of_this_nodeset_only(void **state)
{
    static const struct {
        const char *name;
        int64_t ordinal;
    } rows[] = { { "n-0", 0 },           { "n-007", 7 }, { "n-12", 12 },
                 { "n-a-0", -1 },        { "n", -1 },    { "n-", -1 },
                 { "m-0", -1 },          { "nn-0", -1 }, { "n--1", -1 },
                 { "n-1x", -1 },         { "n-+1", -1 }, { "n- 1", -1 },
                 { "n-99999999999", -1 } };
    const struct kube_object *nodeset;
    struct desk desk;

    desk_init(&desk);
    nodeset = made_nodeset(&desk, "{}");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (worker_ordinal(nodeset, rows[i].name) != rows[i].ordinal)
            fail_msg("%s", rows[i].name);
    desk_done(&desk);
}

static void slurm_knows_a_pod_by_its_hostname_or_its_node(void **state)
{
    static const struct {
        const char *mode, *spec, *name;
    } rows[] = {
        { "StatefulSet", "{'hostname':'slinky-0'}", "slinky-0" },
        { "StatefulSet", "{}", "p" },
        { "StatefulSet", "{'hostname':'x','hostNetwork':true,'nodeName':'host'}", "host" },
        { "StatefulSet", "{'hostname':'x','hostNetwork':true}", "" },
        { "DaemonSet", "{'hostname':'ip-10-0-1-2'}", "ip-10-0-1-2" },
        { "DaemonSet",
          "{'hostname':'ip-10-0-1-2','hostNetwork':true,'nodeName':'ip-10-0-1-2.example'}",
          "ip-10-0-1-2" },
        { "DaemonSet", "{'hostname':'ip-10-0-1-2','hostNetwork':true}", "ip-10-0-1-2" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct desk desk;
        char text[512];

        (void)snprintf(text, sizeof(text),
                       "{'kind':'Pod','metadata':{'name':'p','labels':{'" LABEL_SCALING_MODE
                       "':'%s'}},'spec':%s}",
                       rows[i].mode, rows[i].spec);
        desk_init(&desk);
        assert_string_equal(worker_slurm_name(&desk.arena, kube_pod_of(made(&desk, text)), NULL),
                            rows[i].name);
        desk_done(&desk);
    }
}

static void the_slurm_name_of_a_nodeset_is_a_name_for_slurm(void **state)
{
    static const struct {
        const char *hostname, *name;
    } rows[] = { { "slinky-", "slinky" },  { "--gpu--", "gpu" }, { "  ", "n" },
                 { "a b", "a" },           { "a\\tb", "a" },     { "---", "n" },
                 { "a=b", "n" },           { "DEFAULT", "n" },   { "a,b", "n" },
                 { "x\\nNodeName=y", "x" } };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct desk desk;
        char spec[256];

        (void)snprintf(spec, sizeof(spec), "{'template':{'spec':{'hostname':'%s'}}}",
                       rows[i].hostname);
        desk_init(&desk);
        if (!str_is(nodeset_slurm_name(made_nodeset(&desk, spec)), rows[i].name))
            fail_msg("'%s' is not %s", rows[i].hostname, rows[i].name);
        desk_done(&desk);
    }
}

/* ---- --conf ---- */

static const struct kube_object *with_extra(struct desk *desk, const char *extra)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *object = json_freeze(json_format(
        build, "{'kind':'NodeSet','metadata':{'name':'big'},'spec':{'extraConf':%s}}", extra));

    return made_json(desk, json_root(object));
}

static void extra_conf_becomes_one_argument(void **state)
{
    static const struct {
        const char *extra, *conf;
    } rows[] = {
        { "", "'Features=big'" },
        { "gres=gpu:2 features=x", "'Features=big,x Gres=gpu:2'" },
        { "Feature=x,big FEATURES=a", "'Features=a,big,x'" },
        { "gres=gpu:2 GRES=shard:4", "'Features=big Gres=gpu:2,shard:4'" },
        { "foo-bar=1 a_b.c=2", "'A_b.c=2 Features=big Foo-Bar=1'" },
        { "  cpus=4\tweight=2\nport=7 ", "'Cpus=4 Features=big Port=7 Weight=2'" },
        { "topology=a:b", "'Features=big Topology=a:b'" },
        { "topology= gres=", "'Features=big'" },
        { "Reason=a=b;c|d", "'Features=big Reason=a=b;c|d'" },
        { "gres=\"gpu:2\" features=\"x\" topology=\"\"", "'Features=big,x Gres=gpu:2'" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = { 0 };
        struct desk desk;

        desk_init(&desk);
        assert_string_equal(worker_conf(&desk.arena, with_extra(&desk, rows[i].extra)),
                            rows[i].conf);
        if (worker_conf_check(str_of(rows[i].extra), &err) < 0)
            fail_msg("%s", err.text);
        desk_done(&desk);
    }
}

static void an_item_that_cannot_be_read_is_left_out(void **state)
{
    static const char *const rows[] = {
        "x",        "=1",    "'a=b",  "a=$(id)", "a=`id`",     "$a=b", "a=b\"c",
        "a=\"b'\"", "a=b\\", "a=b#c", "a=b\x01", "a=\xc3\xa4", "a=\"", "a='b'",
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = { 0 };
        struct desk desk;
        const char *extra;

        desk_init(&desk);
        extra = arena_printf(&desk.arena, "Gres=gpu:1 %s Weight=2", rows[i]);
        assert_string_equal(worker_conf(&desk.arena, with_extra(&desk, extra)),
                            "'Features=big Gres=gpu:1 Weight=2'");
        if (worker_conf_check(str_of(extra), &err) != -ERR_INVALID)
            fail_msg("%s is accepted", rows[i]);
        assert_true(str_starts(str_of(err.text), STR("spec.extraConf: ")));
        desk_done(&desk);
    }
}

static void a_topology_in_extra_conf_is_told_to_others(void **state)
{
    struct desk desk;

    desk_init(&desk);
    assert_true(worker_conf_has_topology(&desk.arena, with_extra(&desk, "TOPOLOGY=a:b")));
    assert_false(worker_conf_has_topology(&desk.arena, with_extra(&desk, "topology=")));
    desk_done(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbered_workers_have_their_ordinal_in_their_names),
        cmocka_unit_test(a_worker_of_a_node_has_its_hostname),
        cmocka_unit_test(the_name_on_a_node_follows_from_its_uid_and_the_attempt),
        cmocka_unit_test(ordinals_are_read_from_names_of_this_nodeset_only),
        cmocka_unit_test(slurm_knows_a_pod_by_its_hostname_or_its_node),
        cmocka_unit_test(the_slurm_name_of_a_nodeset_is_a_name_for_slurm),
        cmocka_unit_test(extra_conf_becomes_one_argument),
        cmocka_unit_test(an_item_that_cannot_be_read_is_left_out),
        cmocka_unit_test(a_topology_in_extra_conf_is_told_to_others),
    };

    return cmocka_run_group_tests_name("worker_identity", tests, NULL, NULL);
}
