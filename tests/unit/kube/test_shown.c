/* test_shown.c - which objects show a write, kind by kind and place by place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kube/cache_private.h"
#include "kube/kinds.h"

#include <stdio.h>

static const struct kube_kind tree_kind = { .resource = &kube_configmaps };

static const struct kube_object *make(const struct kube_kind *kind, const char *rest)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *object = NULL;
    char text[1000];

    snprintf(text, sizeof(text),
             "{\"metadata\":{\"namespace\":\"a\",\"name\":\"x\",\"uid\":\"u\","
             "\"resourceVersion\":\"5\"%s}",
             rest);
    assert_int_equal(json_parse(str_of(text), sizeof(text), &doc, NULL), 0);
    assert_int_equal(kube_object_decode(kind, json_root(doc), &object, NULL), 0);
    return object;
}

#define LABELS(labels)    ",\"labels\":{" labels "}}"
#define NODE(node)        "},\"spec\":{\"nodeName\":\"" node "\"}"
#define BOUND(note, node) ",\"annotations\":{" note "}},\"spec\":{\"nodeName\":\"" node "\"}"
#define DATA(data)        "},\"data\":{" data "}"

struct row {
    const char *before, *next, *seen;
    bool shown;
};

static const struct row pods[] = {
    { NODE(""), NODE("n1"), NODE(""), false },
    { NODE(""), NODE("n1"), NODE("n1"), true },
    { NODE(""), NODE("n1"), NODE("n2"), true },
    { NODE(""), NODE("n1"), "},\"spec\":{\"nodeName\":\"\",\"priority\":7}", false },
    { NODE(""), NODE(""), NODE("n1"), false }, /* changes nothing: nothing shows it */
    /* the node tells, not what goes with it */
    { BOUND("", ""), BOUND("\"k\":\"v\"", "n1"), BOUND("\"k\":\"v\"", ""), false },
    { BOUND("", ""), BOUND("\"k\":\"v\"", "n1"), BOUND("", "n2"), true },
    /* metadata alone */
    { LABELS(""), LABELS("\"k\":\"v\""), LABELS("\"other\":\"v\""), false },
    { LABELS(""), LABELS("\"k\":\"v\""), LABELS("\"k\":\"v\""), true },
    { LABELS(""), LABELS("\"k\":\"v\""), LABELS("\"k\":\"w\""), true },
    { LABELS("\"k\":\"v\""), LABELS(""), LABELS("\"k\":\"v\""), false },
    { LABELS("\"k\":\"v\""), LABELS(""), LABELS(""), true },
    { LABELS(""), LABELS("\"k\":\"\""), LABELS(""), false }, /* an empty one is not none */
    { LABELS(""), LABELS("\"k\":\"\""), LABELS("\"k\":\"\""), true },
    { "}", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}", "}", false },
    { "}", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}",
      ",\"deletionTimestamp\":\"2026-01-01T00:00:09Z\"}", true },
    { ",\"finalizers\":[\"f\",\"g\"]}", ",\"finalizers\":[\"g\"]}",
      ",\"finalizers\":[\"f\",\"g\"]}", false },
    { ",\"finalizers\":[\"f\",\"g\"]}", ",\"finalizers\":[\"g\"]}", ",\"finalizers\":[\"g\"]}",
      true },
    { "},\"spec\":{\"hostNetwork\":false}", "},\"spec\":{\"hostNetwork\":true}",
      "},\"spec\":{\"hostNetwork\":true}", true },
    { "},\"spec\":{\"priority\":1}", "},\"spec\":{\"priority\":2}", "},\"spec\":{\"priority\":1}",
      false },
};

static const struct row trees[] = {
    { DATA(""), DATA("\"k\":1"), DATA(""), false },
    { DATA(""), DATA("\"k\":1"), DATA("\"k\":1"), true },
    { DATA(""), DATA("\"k\":1"), DATA("\"other\":1"), false },
    { DATA("\"k\":1"), DATA(""), DATA("\"k\":1,\"other\":1"), false },
    { DATA("\"k\":1"), DATA(""), DATA("\"other\":1"), true },
    { DATA("\"k\":1"), DATA("\"k\":2"), DATA("\"k\":3"), true },
    { DATA("\"a\":{\"b\":{\"c\":1,\"d\":1}}"), DATA("\"a\":{\"b\":{\"c\":2,\"d\":1}}"),
      DATA("\"a\":{\"b\":{\"c\":1,\"d\":9}}"), false },
    { DATA("\"a\":{\"b\":{\"c\":1,\"d\":1}}"), DATA("\"a\":{\"b\":{\"c\":2,\"d\":1}}"),
      DATA("\"a\":{\"b\":{\"c\":2,\"d\":9}}"), true },
    { DATA("\"a\":[1]"), DATA("\"a\":[1,2]"), DATA("\"a\":[1,3]"), true },
    { DATA("\"a\":{\"b\":1}"), DATA("\"a\":{\"b\":2}"), DATA("\"a\":null"), true },
    { "}", DATA("\"k\":1"), "}", false },
    { LABELS(""), LABELS("\"k\":\"v\""), LABELS("\"k\":\"v\""), true },
    { LABELS(""), LABELS("\"k\":\"v\""), LABELS(""), false },
};

static void check(const struct kube_kind *kind, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct kube_object *before = make(kind, rows[i].before);
        const struct kube_object *next = make(kind, rows[i].next);
        const struct kube_object *seen = make(kind, rows[i].seen);

        if (kube_is_shown(before, next, seen) != rows[i].shown)
            fail_msg("row %zu: %s", i, rows[i].seen);
        kube_object_unref(before);
        kube_object_unref(next);
        kube_object_unref(seen);
    }
}

static void fields_that_a_write_changes_show_it(void **state)
{
    check(&kube_pod_kind, pods, sizeof(pods) / sizeof(pods[0]));
}

static void members_that_a_write_changes_show_it(void **state)
{
    check(&tree_kind, trees, sizeof(trees) / sizeof(trees[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_that_a_write_changes_show_it),
        cmocka_unit_test(members_that_a_write_changes_show_it),
    };

    return cmocka_run_group_tests_name("shown", tests, NULL, NULL);
}
