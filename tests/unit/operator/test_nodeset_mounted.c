/* test_nodeset_mounted.c - the content of ConfigMaps and Secrets that workers read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "made.h"
#include "operator/nodeset_data.h"
#include "operator/nodeset_mounted.h"

#define HEAD(value)                                                                                \
    "{'kind':'NodeSet','metadata':{'name':'n','annotations':{'slinky.slurm.net/"                   \
    "reload-on-change':'" value "'}},'spec':"
#define VOLUME(volume) HEAD("true") "{'template':{'spec':{'volumes':[{'name':'v'," volume "}]}}}}"
#define ENV(env)       HEAD("true") "{'slurmd':{" env "}}}"

static const char *hash(struct desk *desk, const char *nodeset)
{
    const char *found = NULL;

    assert_int_equal(
        nodeset_mounted_hash(&desk->world, &desk->arena, made(desk, nodeset), &found, NULL), 0);
    return found;
}

static void put(struct desk *desk, const char *kind, const char *name, const char *value)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *doc = json_freeze(json_format(
        build, "{'kind':%s,'metadata':{'name':%s},'data':{'k':%s}}", kind, name, value));

    (void)made_json(desk, json_root(doc));
}

static void nothing_is_read_for_a_nodeset_that_does_not_ask_for_it(void **state)
{
    struct desk desk;

    desk_init(&desk);
    assert_null(hash(&desk, HEAD("yes") "{}}"));
    assert_null(hash(&desk, "{'kind':'NodeSet','metadata':{'name':'n'},'spec':{}}"));
    assert_non_null(hash(&desk, HEAD("true") "{}}"));
    desk_done(&desk);
}

static void every_way_to_refer_to_a_configmap_or_a_secret_counts(void **state)
{
    static const struct {
        const char *nodeset, *kind;
    } rows[] = {
        { VOLUME("'configMap':{'name':'x'}"), "ConfigMap" },
        { VOLUME("'secret':{'secretName':'x'}"), "Secret" },
        { VOLUME("'projected':{'sources':[{'configMap':{'name':'x'}}]}"), "ConfigMap" },
        { VOLUME("'projected':{'sources':[{'secret':{'name':'x'}}]}"), "Secret" },
        { ENV("'envFrom':[{'configMapRef':{'name':'x'}}]"), "ConfigMap" },
        { ENV("'envFrom':[{'secretRef':{'name':'x'}}]"), "Secret" },
        { ENV("'env':[{'name':'E','valueFrom':{'configMapKeyRef':{'name':'x','key':'k'}}}]"),
          "ConfigMap" },
        { ENV("'env':[{'name':'E','valueFrom':{'secretKeyRef':{'name':'x','key':'k'}}}]"),
          "Secret" },
        { HEAD("true") "{'ssh':{'enabled':true,'sssdConfRef':{'name':'x','key':'k'}}}}", "Secret" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *other = strcmp(rows[i].kind, "Secret") == 0 ? "ConfigMap" : "Secret";
        const char *absent, *first;
        struct desk desk;

        desk_init(&desk);
        absent = hash(&desk, rows[i].nodeset);
        put(&desk, rows[i].kind, "x", "b25l");
        first = hash(&desk, rows[i].nodeset);
        assert_string_not_equal(absent, first);
        put(&desk, rows[i].kind, "y", "dHdv"); /* nobody refers to these */
        put(&desk, other, "x", "dHdv");
        assert_string_equal(hash(&desk, rows[i].nodeset), first);
        put(&desk, rows[i].kind, "x", "dHdv");
        assert_string_not_equal(hash(&desk, rows[i].nodeset), first);
        put(&desk, rows[i].kind, "x", "b25l");
        assert_string_equal(hash(&desk, rows[i].nodeset), first);
        desk_done(&desk);
    }
}

static void the_hash_is_part_of_the_revision(void **state)
{
    auto_buf struct buf with = { .max = 1 << 20 }, without = { .max = 1 << 20 };
    const struct kube_object *nodeset;
    struct desk desk;

    desk_init(&desk);
    nodeset = made_nodeset(&desk, "{}");
    assert_int_equal(nodeset_data(nodeset, "abc", &with, NULL), 0);
    assert_int_equal(nodeset_data(nodeset, NULL, &without, NULL), 0);
    assert_non_null(strstr(buf_text(&with),
                           "\"metadata\":{\"annotations\":{\"slinc.slurm.net/mounted-hash\":"
                           "\"abc\"}}"));
    assert_null(strstr(buf_text(&without), "mounted"));
    desk_done(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_read_for_a_nodeset_that_does_not_ask_for_it),
        cmocka_unit_test(every_way_to_refer_to_a_configmap_or_a_secret_counts),
        cmocka_unit_test(the_hash_is_part_of_the_revision),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
