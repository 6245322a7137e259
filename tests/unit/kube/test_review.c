/* test_review.c - what is asked about a person, and that only a plain yes is a yes. */
#include "kube/review.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct json_doc *parse(const char *text)
{
    struct json_doc *doc = NULL;

    assert_int_equal(json_parse(str_of(text), 1 << 20, &doc, NULL), 0);
    return doc;
}

static void a_question_about_a_path_has_non_resource_attributes(void **state)
{
    auto_buf struct buf out = { .max = KUBE_REVIEW_MAX_BODY };
    const struct str groups[] = { STR("g1"), STR("g\"2") };
    struct kube_access_question question = { .user = "eve",
                                             .uid = "7",
                                             .groups = groups,
                                             .group_count = 2,
                                             .verb = "get",
                                             .path = "/metrics" };

    kube_access_write(&question, &out);
    assert_string_equal(
        buf_text(&out),
        "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\",\"spec\":"
        "{\"user\":\"eve\",\"uid\":\"7\",\"groups\":[\"g1\",\"g\\\"2\"],"
        "\"nonResourceAttributes\":{\"path\":\"/metrics\",\"verb\":\"get\"}}}");
}

static void a_question_about_a_resource_has_resource_attributes(void **state)
{
    auto_buf struct buf out = { .max = KUBE_REVIEW_MAX_BODY };
    auto_json_doc struct json_doc *extra = parse("{\"scopes\":[\"a\"]}");
    struct kube_access_question question = { .user = "eve",
                                             .extra = json_root(extra),
                                             .verb = "create",
                                             .group = "",
                                             .version = "v1",
                                             .resource = "pods",
                                             .subresource = "exec",
                                             .ns = "a",
                                             .name = "b" };

    kube_access_write(&question, &out);
    assert_string_equal(
        buf_text(&out),
        "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\",\"spec\":"
        "{\"user\":\"eve\",\"extra\":{\"scopes\":[\"a\"]},\"resourceAttributes\":"
        "{\"namespace\":\"a\",\"verb\":\"create\",\"version\":\"v1\",\"resource\":\"pods\","
        "\"subresource\":\"exec\",\"name\":\"b\"}}}");
}

static void only_a_plain_yes_allows(void **state)
{
    static const struct {
        const char *answer;
        bool allowed;
        const char *reason;
    } rows[] = {
        { "{\"status\":{\"allowed\":true,\"reason\":\"RBAC\"}}", true, "RBAC" },
        { "{\"status\":{\"allowed\":false}}", false, "" },
        { "{\"status\":{\"allowed\":true,\"denied\":true,\"reason\":\"no\"}}", false, "no" },
        { "{\"status\":{\"allowed\":false,\"evaluationError\":\"broken\"}}", false, "broken" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        auto_json_doc struct json_doc *doc = parse(rows[i].answer);
        struct kube_access_answer answer;

        assert_int_equal(kube_access_read(json_root(doc), &answer, NULL), 0);
        assert_int_equal(answer.allowed, rows[i].allowed);
        assert_true(str_is(answer.reason, rows[i].reason));
    }
}

static void an_access_answer_that_cannot_be_read_is_an_error(void **state)
{
    static const char *const rows[] = { "{}",
                                        "[]",
                                        "{\"status\":{}}",
                                        "{\"status\":null}",
                                        "{\"status\":{\"allowed\":\"true\"}}",
                                        "{\"status\":{\"allowed\":1}}" };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        auto_json_doc struct json_doc *doc = parse(rows[i]);
        struct kube_access_answer answer = { .allowed = false };
        struct err err = { 0 };

        assert_int_equal(kube_access_read(json_root(doc), &answer, &err), -ERR_INVALID);
        assert_non_null(strstr(err.text, "SubjectAccessReview"));
    }
}

static void a_token_question_names_its_audience(void **state)
{
    auto_buf struct buf out = { .max = KUBE_REVIEW_MAX_BODY }, bare = { .max = 512 };

    kube_token_write(STR("a\"b"), "slinc", &out);
    assert_string_equal(buf_text(&out),
                        "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\","
                        "\"spec\":{\"token\":\"a\\\"b\",\"audiences\":[\"slinc\"]}}");
    kube_token_write(STR("t"), NULL, &bare);
    assert_string_equal(buf_text(&bare),
                        "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\","
                        "\"spec\":{\"token\":\"t\"}}");
}

static void an_authenticated_token_has_a_user_and_groups(void **state)
{
    auto_json_doc struct json_doc *doc =
        parse("{\"status\":{\"authenticated\":true,\"audiences\":[\"x\",\"slinc\"],\"user\":"
              "{\"username\":\"eve\",\"uid\":\"7\",\"groups\":[\"a\",\"b\"],"
              "\"extra\":{\"k\":[\"v\"]}}}}");
    struct kube_token_answer answer;

    assert_int_equal(kube_token_read(json_root(doc), "slinc", &answer, NULL), 0);
    assert_true(answer.authenticated);
    assert_true(str_is(answer.user, "eve"));
    assert_true(str_is(answer.uid, "7"));
    assert_int_equal(answer.group_count, 2);
    assert_true(str_is(answer.groups[1], "b"));
    assert_int_equal(json_len(answer.extra), 1);
    assert_int_equal(kube_token_read(json_root(doc), NULL, &answer, NULL), 0);
    assert_true(answer.authenticated);
}

static void anything_less_is_not_authenticated(void **state)
{
    static const struct {
        const char *answer, *error;
    } rows[] = {
        { "{\"status\":{\"error\":\"expired\"}}", "expired" },
        { "{\"status\":{\"authenticated\":false,\"user\":{\"username\":\"eve\"}}}", "" },
        { "{\"status\":{\"authenticated\":\"true\",\"user\":{\"username\":\"eve\"}}}", "" },
        { "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"eve\"}}}",
          "the token is for another audience" },
        { "{\"status\":{\"authenticated\":true,\"audiences\":[\"else\"],"
          "\"user\":{\"username\":\"eve\"}}}",
          "the token is for another audience" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        auto_json_doc struct json_doc *doc = parse(rows[i].answer);
        struct kube_token_answer answer;

        assert_int_equal(kube_token_read(json_root(doc), "slinc", &answer, NULL), 0);
        assert_false(answer.authenticated);
        assert_true(str_is(answer.error, rows[i].error));
        assert_int_equal(answer.user.len, 0);
    }
}

static void a_token_answer_that_cannot_be_read_is_an_error(void **state)
{
    static const char *const rows[] = { "{}", "{\"status\":7}",
                                        "{\"status\":{\"authenticated\":true}}",
                                        "{\"status\":{\"authenticated\":true,\"user\":{}}}" };
    auto_buf struct buf many = { .max = 8192 };
    auto_json_doc struct json_doc *crowd = NULL;
    struct kube_token_answer answer;
    struct err err = { 0 };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        auto_json_doc struct json_doc *doc = parse(rows[i]);

        assert_int_equal(kube_token_read(json_root(doc), NULL, &answer, &err), -ERR_INVALID);
        assert_non_null(strstr(err.text, "TokenReview"));
    }
    buf_add_text(&many, "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"e\","
                        "\"groups\":[\"g\"");
    for (int i = 0; i < KUBE_REVIEW_MAX_GROUPS; i++)
        buf_add_text(&many, ",\"g\"");
    buf_add_text(&many, "]}}}");
    crowd = parse(buf_text(&many));
    assert_int_equal(kube_token_read(json_root(crowd), NULL, &answer, &err), -ERR_TOO_BIG);
}

static void the_requests_are_creations_without_a_name(void **state)
{
    struct kube_request request;

    kube_access_request(&request, STR("{}"));
    assert_int_equal(request.verb, KUBE_CREATE);
    assert_ptr_equal(request.resource, &kube_subject_access_reviews);
    kube_token_request(&request, STR("{}"));
    assert_ptr_equal(request.resource, &kube_token_reviews);
    assert_null(request.name);
    assert_true(str_is(request.body, "{}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_about_a_path_has_non_resource_attributes),
        cmocka_unit_test(a_question_about_a_resource_has_resource_attributes),
        cmocka_unit_test(only_a_plain_yes_allows),
        cmocka_unit_test(an_access_answer_that_cannot_be_read_is_an_error),
        cmocka_unit_test(a_token_question_names_its_audience),
        cmocka_unit_test(an_authenticated_token_has_a_user_and_groups),
        cmocka_unit_test(anything_less_is_not_authenticated),
        cmocka_unit_test(a_token_answer_that_cannot_be_read_is_an_error),
        cmocka_unit_test(the_requests_are_creations_without_a_name),
    };

    return cmocka_run_group_tests_name("kube/review", tests, NULL, NULL);
}
