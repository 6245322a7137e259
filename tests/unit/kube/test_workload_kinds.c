/* test_workload_kinds.c - the owners of pods, as small as they are read. */
#include "kube/workload_kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define HEAD                                                                                       \
    "{\"metadata\":{\"name\":\"x\",\"uid\":\"u\",\"resourceVersion\":\"1\","                       \
    "\"annotations\":{\"a\":\"b\"}},\"spec\":"

static const struct kube_object *decoded(const struct kube_kind *kind, const char *text)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *object = NULL;

    assert_int_equal(json_parse(str_of(text), 1000, &doc, NULL), 0);
    assert_int_equal(kube_object_decode(kind, json_root(doc), &object, NULL), 0);
    return object;
}

static void a_job_is_read_and_patched(void **state)
{
    const struct kube_object *job =
        decoded(&kube_job_kind, HEAD "{\"activeDeadlineSeconds\":5,\"parallelism\":2,\"template\":{"
                                     "\"spec\":{\"resources\":{\"limits\":{\"cpu\":\"250m\","
                                     "\"memory\":\"1Ki\"}}}}}}");
    const struct kube_object *patched = NULL;
    auto_json_doc struct json_doc *patch = NULL;

    assert_int_equal(kube_job_of(job)->active_deadline, 5);
    assert_int_equal(kube_job_of(job)->cpu_milli, 250);
    assert_int_equal(kube_job_of(job)->memory, 1024);

    assert_int_equal(json_parse(STR("{\"spec\":{\"parallelism\":3}}"), 100, &patch, NULL), 0);
    assert_int_equal(kube_object_patched(job, json_root(patch), &patched, NULL), 0);
    assert_int_equal(kube_job_of(patched)->parallelism, 3);
    assert_int_equal(kube_job_of(patched)->active_deadline, 5);
    assert_int_equal(kube_job_of(patched)->cpu_milli, 250);
    kube_object_unref(patched);
    kube_object_unref(job);
}

static void a_job_with_a_bad_limit_is_refused(void **state)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *job = NULL;
    struct err err = { 0 };

    assert_int_equal(json_parse(STR(HEAD "{\"template\":{\"spec\":{\"resources\":{\"limits\":{"
                                         "\"cpu\":\"x\"}}}}}}"),
                                1000, &doc, NULL),
                     0);
    assert_int_equal(kube_object_decode(&kube_job_kind, json_root(doc), &job, &err), -ERR_INVALID);
    assert_non_null(strstr(err.text, "spec.template.spec.resources.limits"));
}

static void owners_live_where_the_api_server_keeps_them(void **state)
{
    static const struct {
        const struct kube_kind *kind;
        const char *path;
    } cases[] = {
        { &kube_job_kind, "/apis/batch/v1/namespaces/n/jobs/x" },
        { &kube_replicaset_kind, "/apis/apps/v1/namespaces/n/replicasets/x" },
        { &kube_statefulset_kind, "/apis/apps/v1/namespaces/n/statefulsets/x" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct kube_object *object = decoded(cases[i].kind, HEAD "{}}");
        auto_buf struct buf path = { .max = 100 };

        kube_path(&path, cases[i].kind->resource, "n", "x", NULL);
        assert_string_equal(buf_text(&path), cases[i].path);
        assert_true(str_is(kube_pairs_get(&object->annotations, "a", NULL), "b"));
        kube_object_unref(object);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_read_and_patched),
        cmocka_unit_test(a_job_with_a_bad_limit_is_refused),
        cmocka_unit_test(owners_live_where_the_api_server_keeps_them),
    };

    return cmocka_run_group_tests_name("workload_kinds", tests, NULL, NULL);
}
