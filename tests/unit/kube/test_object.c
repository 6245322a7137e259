/* test_object.c - JSON into objects: one block, sorted pairs, trees without ballast, predictions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/timestamp.h"
#include "kube/kinds.h"

#include <stdio.h>

enum { MAX = 1 << 22 };

static const char *const no_images[] = { "status.images", "nowhere.at.all", "spec", NULL };
static const struct kube_kind configmap_kind = { .resource = &kube_configmaps };
static const struct kube_kind lean_kind = { .resource = &kube_configmaps, .drop = no_images };

static struct json_doc *parsed(const char *text)
{
    struct json_doc *doc = NULL;
    struct err err = { 0 };

    if (json_parse(str_of(text), MAX, &doc, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return doc;
}

static const struct kube_object *decoded(const struct kube_kind *kind, const char *text)
{
    auto_json_doc struct json_doc *doc = parsed(text);
    const struct kube_object *object = NULL;
    struct err err = { 0 };

    if (kube_object_decode(kind, json_root(doc), &object, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return object;
}

static const struct kube_object *patched(const struct kube_object *object, const char *patch)
{
    auto_json_doc struct json_doc *doc = parsed(patch);
    const struct kube_object *next = NULL;
    struct err err = { 0 };

    if (kube_object_patched(object, json_root(doc), &next, &err) < 0)
        fail_msg("%s: %s", patch, err.text);
    return next;
}

/* A kind whose objects keep two rules as text. */
struct ruled {
    struct kube_object object;
    const char *near, *far;
};

static int decode_rules(struct kube_decoder *decoder, const struct json *root, void *object,
                        struct err *err)
{
    struct ruled *ruled = object;
    int rc = kube_decoder_rule(decoder, json_get(root, "near"), "the near", &ruled->near, err);

    if (rc < 0)
        return rc;
    return kube_decoder_rule(decoder, json_get(root, "far"), "the far", &ruled->far, err);
}

static const struct kube_field no_fields[] = { { { NULL }, KUBE_STR, 0 } };
static const struct kube_kind ruled_kind = { .resource = &kube_configmaps,
                                             .size = sizeof(struct ruled),
                                             .fields = no_fields,
                                             .decode_more = decode_rules };

static void assert_pairs(const struct kube_pairs *pairs, const char *want)
{
    auto_buf struct buf out = { .max = 10000 };

    for (unsigned i = 0; i < pairs->count; i++)
        buf_printf(&out, "%s=%s;", pairs->at[i].key.at, pairs->at[i].value.at);
    assert_string_equal(buf_text(&out), want);
}

static const char full[] =
    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u-1\",\"resourceVersion\":\"42\","
    "\"generation\":3,\"creationTimestamp\":\"2026-01-01T00:00:00Z\","
    "\"deletionTimestamp\":\"2026-01-01T00:00:01Z\",\"deletionGracePeriodSeconds\":30,"
    "\"labels\":{\"a\":\"1\",\"b\":\"2\"},\"annotations\":{\"z\":\"26\",\"y\":\"\"},"
    "\"finalizers\":[\"f/one\",\"f/two\"],\"ownerReferences\":[{\"kind\":\"Other\",\"name\":\"x\","
    "\"uid\":\"x\"},{\"apiVersion\":\"batch/"
    "v1\",\"kind\":\"Job\",\"name\":\"j\",\"uid\":\"u-j\",\"controller\":true}],"
    "\"managedFields\":[{\"manager\":\"somebody\"}]},"
    "\"spec\":{\"nodeName\":\"n1\",\"priority\":-5,\"hostNetwork\":true},"
    "\"status\":{\"phase\":\"Running\",\"images\":[1,2,3]}}";

static void metadata_and_fields_are_projected(void **state)
{
    const struct kube_object *object = decoded(&kube_pod_kind, full);
    const struct kube_pod *pod = kube_pod_of(object);
    int64_t created = 0;

    assert_int_equal(timestamp_parse(STR("2026-01-01T00:00:00Z"), &created, NULL), 0);
    assert_ptr_equal(object->kind, &kube_pod_kind);
    assert_string_equal(object->ns, "n");
    assert_string_equal(object->name, "a");
    assert_string_equal(object->uid, "u-1");
    assert_string_equal(object->version, "42");
    assert_true(object->version_number == 42);
    assert_int_equal(object->generation, 3);
    assert_true(object->created_us == created);
    assert_true(object->deleted_us == created + TIMESTAMP_SECOND);
    assert_string_equal(object->owner.group, "batch");
    assert_string_equal(object->owner.kind, "Job");
    assert_string_equal(object->owner.name, "j");
    assert_string_equal(object->owner.uid, "u-j");
    assert_pairs(&object->labels, "a=1;b=2;");
    assert_pairs(&object->annotations, "y=;z=26;");
    assert_int_equal(object->finalizer_count, 2);
    assert_true(kube_object_has_finalizer(object, "f/two"));
    assert_false(kube_object_has_finalizer(object, "f/three"));
    assert_string_equal(pod->node_name, "n1");
    assert_string_equal(pod->phase, "Running");
    assert_int_equal(pod->priority, -5);
    assert_true(pod->host_network);
    assert_string_equal(pod->scheduler_name, "");
    kube_object_unref(object);
}

static void the_group_of_an_owner_is_known_of_objects_that_keep_their_tree(void **state)
{
    static const struct kube_kind tree_kind = { .resource = &kube_configmaps };
    const struct kube_object *object = decoded(&tree_kind, full);

    assert_string_equal(object->owner.group, "batch");
    kube_object_unref(object);
}

static void what_is_absent_is_empty(void **state)
{
    const struct kube_object *object = decoded(
        &kube_pod_kind, "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"v\"}}");
    bool found = true;

    assert_string_equal(object->ns, "");
    assert_true(object->version_number == 0); /* it is no number */
    assert_string_equal(object->version, "v");
    assert_string_equal(object->owner.uid, "");
    assert_int_equal(object->labels.count + object->annotations.count + object->finalizer_count, 0);
    assert_int_equal(kube_pairs_get(&object->labels, "x", &found).len, 0);
    assert_false(found);
    assert_string_equal(kube_pod_of(object)->phase, "");
    assert_true(object->created_us == 0 && object->deleted_us == 0);
    kube_object_unref(object);
}

static void an_object_without_identity_is_refused(void **state)
{
    static const struct {
        const char *text, *what;
    } cases[] = {
        { "null", "no name" },
        { "{}", "no name" },
        { "[]", "no name" },
        { "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"1\"}}", "no name" },
        { "{\"metadata\":{\"name\":7,\"uid\":\"u\",\"resourceVersion\":\"1\"}}", "no name" },
        { "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}", "no uid" },
        { "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}", "no resourceVersion" },
        { "{\"metadata\":{\"name\":\"a\\u0000b\",\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
          "NUL" },
        { "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\","
          "\"creationTimestamp\":\"soon\"}}",
          "creationTimestamp" },
        { "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"},"
          "\"status\":{\"allocatable\":{\"memory\":\"lots\"}}}",
          "status: allocatable: memory: " },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        auto_json_doc struct json_doc *doc = parsed(cases[i].text);
        const struct kube_object *object = NULL;
        struct err err = { 0 };

        assert_int_equal(kube_object_decode(&kube_node_kind, json_root(doc), &object, &err),
                         -ERR_INVALID);
        assert_null(object);
        if (!strstr(err.text, cases[i].what))
            fail_msg("%s: '%s'", cases[i].text, err.text);
    }
}

static void a_name_has_a_bound(void **state)
{
    auto_buf struct buf text = { .max = 10000 };

    for (unsigned extra = 0; extra < 2; extra++) {
        auto_json_doc struct json_doc *doc = NULL;
        const struct kube_object *object = NULL;

        buf_clear(&text);
        buf_add_text(&text, "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"1\",\"name\":\"");
        for (unsigned i = 0; i < KUBE_MAX_NAME + extra; i++)
            buf_add_char(&text, 'a');
        buf_add_text(&text, "\"}}");
        doc = parsed(buf_text(&text));
        assert_int_equal(kube_object_decode(&kube_pod_kind, json_root(doc), &object, NULL),
                         extra ? -ERR_TOO_BIG : 0);
        kube_object_unref(object);
    }
}

static void pairs_are_sorted_and_of_equal_keys_the_last_counts(void **state)
{
    const struct kube_object *object =
        decoded(&kube_pod_kind,
                "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\",\"labels\":{"
                "\"c\":\"3\",\"a\":\"0\",\"b\":\"2\",\"a\":\"1\",\"d\":null,\"e\":5}}}");
    bool found = false;

    assert_pairs(&object->labels, "a=1;b=2;c=3;e=;");
    assert_true(str_is(kube_pairs_get(&object->labels, "b", &found), "2"));
    assert_true(found);
    assert_true(str_is(kube_pairs_get(&object->labels, "zz", NULL), ""));
    kube_object_unref(object);
}

static void many_labels_are_found(void **state)
{
    auto_buf struct buf text = { .max = 100000 };
    const struct kube_object *object;

    buf_add_text(&text, "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\","
                        "\"labels\":{");
    for (int i = 999; i >= 0; i--)
        buf_printf(&text, "\"k%03d\":\"%d\"%s", i, i, i ? "," : "}}}");
    object = decoded(&kube_pod_kind, buf_text(&text));
    for (int i = 0; i < 1000; i++) {
        char key[16], value[16];

        snprintf(key, sizeof(key), "k%03d", i);
        snprintf(value, sizeof(value), "%d", i);
        assert_true(str_is(kube_pairs_get(&object->labels, key, NULL), value));
    }
    kube_object_unref(object);
}

static void a_text_said_twice_is_kept_once(void **state)
{
    const struct kube_object *object =
        decoded(&kube_pod_kind,
                "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\",\"labels\":{"
                "\"x\":\"0123456789\",\"y\":\"0123456789\"}}}");

    assert_ptr_equal(object->labels.at[0].value.at, object->labels.at[1].value.at);
    kube_object_unref(object);
}

static void a_rule_is_kept_as_text(void **state)
{
    static const struct {
        const char *members, *near, *far;
    } cases[] = {
        { "\"other\":1", "", "" },
        { "\"near\":null,\"far\":{}", "", "{}" },
        { "\"near\":[{\"a\":1}]", "[{\"a\":1}]", "" },
        { "\"near\":[\"0123456789\"],\"far\":[\"9876543210\"]", "[\"0123456789\"]",
          "[\"9876543210\"]" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct kube_object *object;
        const struct ruled *ruled;
        auto_buf struct buf text = { .max = MAX };

        buf_printf(&text,
                   "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"},%s}",
                   cases[i].members);
        object = decoded(&ruled_kind, buf_text(&text));
        ruled = (const struct ruled *)(const void *)object;
        assert_string_equal(ruled->near, cases[i].near);
        assert_string_equal(ruled->far, cases[i].far);
        kube_object_unref(object);
    }
}

static void a_rule_has_a_bound(void **state)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *object = NULL;
    auto_buf struct buf text = { .max = MAX };
    struct err err = { 0 };

    buf_add_text(&text, "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"},"
                        "\"near\":[1],\"far\":[\"");
    for (unsigned i = 0; i < KUBE_MAX_RULE; i++)
        buf_add_char(&text, 'x');
    buf_add_text(&text, "\"]}");
    doc = parsed(buf_text(&text));
    assert_int_equal(kube_object_decode(&ruled_kind, json_root(doc), &object, &err), -ERR_TOO_BIG);
    assert_non_null(strstr(err.text, "the far"));
    assert_null(object);
}

static void a_tree_is_kept_without_ballast(void **state)
{
    const struct kube_object *object = decoded(&configmap_kind, full);
    const struct json *root = ((const struct kube_tree *)(const void *)object)->root;

    assert_string_equal(object->name, "a");
    assert_pairs(&object->labels, "a=1;b=2;");
    assert_true(kube_object_has_finalizer(object, "f/one"));
    assert_true(json_exists(json_at(root, "status", "images")));
    assert_null(json_at(root, "metadata", "managedFields"));
    kube_object_unref(object);

    object = decoded(&lean_kind, full);
    root = ((const struct kube_tree *)(const void *)object)->root;
    assert_null(json_at(root, "status", "images"));
    assert_null(json_get(root, "spec"));
    assert_true(str_is(json_str(json_at(root, "status", "phase")), "Running"));
    kube_object_unref(object);
}

static void references_keep_it_alive(void **state)
{
    const struct kube_object *object = decoded(&kube_pod_kind, full);

    assert_ptr_equal(kube_object_ref(object), object);
    kube_object_unref(object);
    assert_string_equal(object->name, "a");
    kube_object_unref(object);
    kube_object_unref(NULL);
}

static void a_create_is_predicted_without_uid_and_version(void **state)
{
    auto_json_doc struct json_doc *doc =
        parsed("{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"labels\":{\"x\":\"y\"}}}");
    const struct kube_object *object = NULL;

    assert_int_equal(kube_object_decode(&configmap_kind, json_root(doc), &object, NULL),
                     -ERR_INVALID);
    assert_int_equal(kube_object_predicted(&configmap_kind, json_root(doc), &object, NULL), 0);
    assert_string_equal(object->uid, "");
    assert_string_equal(object->version, "");
    kube_object_unref(object);
    assert_int_equal(kube_object_predicted(&kube_pod_kind, json_root(doc), &object, NULL), 0);
    assert_pairs(&object->labels, "x=y;");
    kube_object_unref(object);
}

static void a_deletion_is_predicted_on_a_projected_kind(void **state)
{
    const struct kube_object *pod =
        decoded(&kube_pod_kind, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\","
                                "\"uid\":\"u\",\"resourceVersion\":\"1\"}}");
    const struct kube_object *next =
        patched(pod, "{\"metadata\":{\"deletionTimestamp\":\"1970-01-01T00:00:03Z\"}}");
    const struct kube_object *again = patched(next, "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");

    assert_int_equal(pod->deleted_us, 0);
    assert_int_equal(next->deleted_us, 3000000);
    assert_int_equal(again->deleted_us, 3000000);
    kube_object_unref(pod);
    kube_object_unref(next);
    kube_object_unref(again);
}

static void a_patch_is_predicted_on_a_projected_kind(void **state)
{
    const struct kube_object *object = decoded(&kube_pod_kind, full);
    const struct kube_object *next = patched(
        object, "{\"metadata\":{\"resourceVersion\":\"42\",\"labels\":{\"b\":null,\"c\":\"3\","
                "\"a\":\"9\",\"zz\":null},\"finalizers\":[\"f/two\"]},\"status\":{\"phase\":"
                "\"Failed\",\"unknown\":{\"deep\":1}},\"spec\":{\"hostNetwork\":null}}");

    kube_object_unref(object); /* the prediction leans on it */
    assert_string_equal(next->uid, "u-1");
    assert_string_equal(next->version, "42");
    assert_pairs(&next->labels, "a=9;c=3;");
    assert_pairs(&next->annotations, "y=;z=26;");
    assert_int_equal(next->finalizer_count, 1);
    assert_true(kube_object_has_finalizer(next, "f/two"));
    assert_string_equal(kube_pod_of(next)->phase, "Failed");
    assert_string_equal(kube_pod_of(next)->node_name, "n1");
    assert_false(kube_pod_of(next)->host_network);
    assert_int_equal(kube_pod_of(next)->priority, -5);
    assert_string_equal(next->owner.name, "j");
    kube_object_unref(next);
}

static void null_takes_everything_away(void **state)
{
    const struct kube_object *object = decoded(&kube_pod_kind, full);
    const struct kube_object *next =
        patched(object, "{\"metadata\":{\"labels\":null,\"annotations\":{},\"finalizers\":null,"
                        "\"ownerReferences\":[]}}");

    assert_int_equal(next->labels.count, 0);
    assert_pairs(&next->annotations, "y=;z=26;");
    assert_int_equal(next->finalizer_count, 0);
    assert_string_equal(next->owner.uid, "");
    kube_object_unref(object);
    kube_object_unref(next);
}

static void predictions_may_lean_on_predictions(void **state)
{
    const struct kube_object *object = decoded(&kube_pod_kind, full);

    for (int i = 0; i < 100000; i++) {
        const struct kube_object *next =
            patched(object, i % 2 ? "{\"metadata\":{\"labels\":{\"x\":\"1\"}}}"
                                  : "{\"metadata\":{\"labels\":{\"x\":null}}}");

        kube_object_unref(object);
        object = next;
    }
    assert_pairs(&object->labels, "a=1;b=2;x=1;");
    kube_object_unref(object); /* and go without deep recursion */
}

static void a_patch_is_predicted_on_a_tree(void **state)
{
    const struct kube_object *object = decoded(&configmap_kind, full);
    const struct kube_object *next =
        patched(object, "{\"metadata\":{\"labels\":{\"a\":null}},\"data\":{\"k\":\"v\"}}");
    const struct json *root = ((const struct kube_tree *)(const void *)next)->root;

    kube_object_unref(object);
    assert_pairs(&next->labels, "b=2;");
    assert_true(str_is(json_str(json_at(root, "data", "k")), "v"));
    assert_true(str_is(json_str(json_at(root, "spec", "nodeName")), "n1"));
    assert_string_equal(next->uid, "u-1");
    kube_object_unref(next);
}

static void a_patch_that_is_no_object_is_refused(void **state)
{
    static const char *const patches[] = { "null", "[]", "\"x\"", "1" };
    const struct kube_object *object = decoded(&kube_pod_kind, full);

    for (size_t i = 0; i < sizeof(patches) / sizeof(patches[0]); i++) {
        auto_json_doc struct json_doc *doc = parsed(patches[i]);
        const struct kube_object *next = NULL;

        assert_int_equal(kube_object_patched(object, json_root(doc), &next, NULL), -ERR_INVALID);
        assert_null(next);
    }
    kube_object_unref(object);
}

static void too_many_finalizers_are_refused(void **state)
{
    auto_buf struct buf text = { .max = MAX };
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *object = NULL;

    buf_add_text(&text, "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\","
                        "\"finalizers\":[\"x\"");
    for (int i = 0; i < 4096; i++)
        buf_add_text(&text, ",\"x\"");
    buf_add_text(&text, "]}}");
    doc = parsed(buf_text(&text));
    assert_int_equal(kube_object_decode(&kube_pod_kind, json_root(doc), &object, NULL),
                     -ERR_TOO_BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metadata_and_fields_are_projected),
        cmocka_unit_test(the_group_of_an_owner_is_known_of_objects_that_keep_their_tree),
        cmocka_unit_test(what_is_absent_is_empty),
        cmocka_unit_test(an_object_without_identity_is_refused),
        cmocka_unit_test(a_name_has_a_bound),
        cmocka_unit_test(pairs_are_sorted_and_of_equal_keys_the_last_counts),
        cmocka_unit_test(many_labels_are_found),
        cmocka_unit_test(a_text_said_twice_is_kept_once),
        cmocka_unit_test(a_rule_is_kept_as_text),
        cmocka_unit_test(a_rule_has_a_bound),
        cmocka_unit_test(a_tree_is_kept_without_ballast),
        cmocka_unit_test(references_keep_it_alive),
        cmocka_unit_test(a_create_is_predicted_without_uid_and_version),
        cmocka_unit_test(a_deletion_is_predicted_on_a_projected_kind),
        cmocka_unit_test(a_patch_is_predicted_on_a_projected_kind),
        cmocka_unit_test(null_takes_everything_away),
        cmocka_unit_test(predictions_may_lean_on_predictions),
        cmocka_unit_test(a_patch_is_predicted_on_a_tree),
        cmocka_unit_test(a_patch_that_is_no_object_is_refused),
        cmocka_unit_test(too_many_finalizers_are_refused),
    };

    return cmocka_run_group_tests_name("object", tests, NULL, NULL);
}
