/* test_resource.c - where the API server keeps each kind. */
#include "kube/resource.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct kube_resource group_itself = { "resource.k8s.io", "v1", "", "", false };
static const struct kube_resource core_itself = { "", "v1", "", "", false };

static void a_path_names_group_namespace_object_and_subresource(void **state)
{
    static const struct {
        const struct kube_resource *resource;
        const char *ns, *name, *subresource, *path;
    } rows[] = {
        { &kube_pods, "a", "b", NULL, "/api/v1/namespaces/a/pods/b" },
        { &kube_pods, "a", "b", "status", "/api/v1/namespaces/a/pods/b/status" },
        { &kube_pods, "a", NULL, NULL, "/api/v1/namespaces/a/pods" },
        { &kube_pods, "", NULL, NULL, "/api/v1/pods" },
        { &kube_pods, NULL, NULL, NULL, "/api/v1/pods" },
        { &kube_pods, "a", "", "", "/api/v1/namespaces/a/pods" },
        { &kube_nodes, NULL, "n1", NULL, "/api/v1/nodes/n1" },
        { &kube_nodes, "ignored", "n1", NULL, "/api/v1/nodes/n1" },
        { &kube_namespaces, NULL, "a", NULL, "/api/v1/namespaces/a" },
        { &kube_leases, "a", "l", NULL, "/apis/coordination.k8s.io/v1/namespaces/a/leases/l" },
        { &kube_events, "a", NULL, NULL, "/apis/events.k8s.io/v1/namespaces/a/events" },
        { &kube_token_reviews, NULL, NULL, NULL, "/apis/authentication.k8s.io/v1/tokenreviews" },
        { &kube_subject_access_reviews, NULL, NULL, NULL,
          "/apis/authorization.k8s.io/v1/subjectaccessreviews" },
        { &group_itself, NULL, NULL, NULL, "/apis/resource.k8s.io/v1" },
        { &core_itself, NULL, NULL, NULL, "/api/v1" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        auto_buf struct buf out = { .max = 512 };

        kube_path(&out, rows[i].resource, rows[i].ns, rows[i].name, rows[i].subresource);
        assert_string_equal(buf_text(&out), rows[i].path);
    }
}

static void a_name_never_becomes_more_than_one_segment(void **state)
{
    static const struct {
        const char *name, *path;
    } rows[] = {
        { "a/b", "/api/v1/nodes/a%2Fb" },
        { "a?x=1", "/api/v1/nodes/a%3Fx%3D1" },
        { "a b\n", "/api/v1/nodes/a%20b%0A" },
        { "..", "/api/v1/nodes/%252E" },
        { ".", "/api/v1/nodes/%252E" },
        { "n.example.com", "/api/v1/nodes/n.example.com" },
        { "a#b%2F", "/api/v1/nodes/a%23b%252F" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        auto_buf struct buf out = { .max = 512 };

        kube_path(&out, &kube_nodes, NULL, rows[i].name, NULL);
        assert_string_equal(buf_text(&out), rows[i].path);
    }
}

static void an_api_version_has_no_slash_for_the_core_group(void **state)
{
    auto_buf struct buf core = { .max = 64 }, group = { .max = 64 };

    kube_api_version(&core, &kube_pods);
    kube_api_version(&group, &kube_leases);
    assert_string_equal(buf_text(&core), "v1");
    assert_string_equal(buf_text(&group), "coordination.k8s.io/v1");
}

static void a_path_that_does_not_fit_marks_the_buffer(void **state)
{
    auto_buf struct buf out = { .max = 10 };

    kube_path(&out, &kube_pods, "a", "b", NULL);
    assert_true(out.overflowed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_names_group_namespace_object_and_subresource),
        cmocka_unit_test(a_name_never_becomes_more_than_one_segment),
        cmocka_unit_test(an_api_version_has_no_slash_for_the_core_group),
        cmocka_unit_test(a_path_that_does_not_fit_marks_the_buffer),
    };

    return cmocka_run_group_tests_name("kube/resource", tests, NULL, NULL);
}
