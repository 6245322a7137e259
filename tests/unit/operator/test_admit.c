/* test_admit.c - reviews of custom resources: every document of reviews/ is a review and its
 * answer.
 *
 *     name: a ConfigMap that does not exist is refused     the sentence that it proves
 *     kind: Controller                                     of the object
 *     given: [objects]                                     ConfigMaps and claims that exist
 *     unread: [names]                                      what is still being read
 *     unreadable: [names]                                  what cannot be read
 *     old: {...}                                           for an update
 *     object: {...}                                        metadata may leave out name ("slurm")
 *     denied: [texts]                                      all denials, in this order; code 403
 *     mistyped: [texts]                                    the same for values of a wrong type; 400
 *     warned: [texts]                                      all warnings
 *     early: true                                          the answer is not final
 *
 *     test_operator_admit FOLDER [NAME]                    all, or the review of this name */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../worlds_read.h"
#include "codec/json_format.h"
#include "operator/admit.h"
#include "operator/kinds.h"

#include <stdio.h>

enum { MAX_TEXT = 1 << 20 };

static struct written_worlds all;

static int check_review(const struct json *root, struct err *err)
{
    static const char *const known[] = { "name",       "kind",   "given",  "unread",
                                         "unreadable", "old",    "object", "denied",
                                         "mistyped",   "warned", "early",  NULL };

    if (worlds_check_keys(root, known, err) < 0)
        return -ERR_INVALID;
    if (!json_is_object(json_get(root, "object")))
        return err_set(err, ERR_INVALID, "there is no object");
    return 0;
}

static bool is_in(const struct json *names, struct str name)
{
    struct json_iter iter = json_iter(names);
    const struct json *item;

    while (json_next_item(&iter, &item))
        if (str_eq(json_str(item), name))
            return true;
    return false;
}

static enum review_known find(void *context, struct str uid, const struct kube_resource *resource,
                              struct str ns, struct str name, const struct json **ret_object)
{
    const struct json *root = context, *object;
    struct json_iter given = json_iter(json_get(root, "given"));

    assert_true(str_is(uid, "u-1"));
    assert_true(str_is(ns, "site"));
    if (is_in(json_get(root, "unread"), name))
        return REVIEW_NOT_READ_YET;
    if (is_in(json_get(root, "unreadable"), name))
        return REVIEW_CANNOT_BE_READ;
    while (json_next_item(&given, &object))
        if (str_is(json_str(json_get(object, "kind")), resource->kind) &&
            str_eq(json_str(json_at(object, "metadata", "name")), name)) {
            *ret_object = object;
            return REVIEW_EXISTS;
        }
    return REVIEW_ABSENT;
}

static void write_review(const struct json *root, const char *plural, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    const struct json *old = json_get(root, "old");
    struct str name = json_str_or(json_at(root, "object", "metadata", "name"), STR("slurm"));
    struct json_mut *review =
        json_format(build,
                    "{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview','request':{'uid':"
                    "'u-1','namespace':'site','name':%s,'operation':%s,'resource':{'group':"
                    "'slinky.slurm.net','version':'v1beta1','resource':%s}}}",
                    name.at, old ? "UPDATE" : "CREATE", plural);

    json_put_at(build, review, json_copy(build, json_get(root, "object")), "request", "object");
    json_put_at(build, review, json_copy(build, old), "request", "oldObject");
    json_mut_write(review, out);
}

static void check_list(const struct json *wanted, const char *what, struct str found)
{
    auto_buf struct buf text = { .max = MAX_TEXT };
    struct json_iter iter = json_iter(wanted);
    const struct json *item;

    while (json_next_item(&iter, &item))
        buf_printf(&text, "%s" STR_FMT, text.len > 0 ? "; " : "", STR_ARG(json_str(item)));
    if (!str_eq(buf_str(&text), found))
        fail_msg("%s is\n  " STR_FMT "\nnot\n  %s", what, STR_ARG(found), buf_text(&text));
}

static void check_answer(const struct json *root, const struct json *response)
{
    const struct json *denied = json_get(root, "denied"), *mistyped = json_get(root, "mistyped");
    const struct json *status = json_get(response, "status");
    auto_buf struct buf warned = { .max = MAX_TEXT };
    struct json_iter iter = json_iter(json_get(response, "warnings"));
    const struct json *item;

    assert_true(str_is(json_str(json_get(response, "uid")), "u-1"));
    check_list(denied ? denied : mistyped, "the denial", json_str(json_get(status, "message")));
    assert_int_equal(json_bool_or(json_get(response, "allowed"), false), !denied && !mistyped);
    if (denied || mistyped)
        assert_int_equal(json_i64_or(json_get(status, "code"), 0), denied ? 403 : 400);
    while (json_next_item(&iter, &item))
        buf_printf(&warned, "%s" STR_FMT, warned.len > 0 ? "; " : "", STR_ARG(json_str(item)));
    check_list(json_get(root, "warned"), "the warning", buf_str(&warned));
}

static void the_answer_is_as_expected(void **state)
{
    const struct json *root = ((const struct written_world *)*state)->root;
    auto_buf struct buf body = { .max = MAX_TEXT }, out = { .max = WEBHOOK_MAX_ANSWER };
    auto_json_doc struct json_doc *doc = NULL;
    struct webhook_answer answer;
    const char *name = json_str(json_get(root, "kind")).at;
    const struct kube_kind *kind = operator_kind_of(name);

    assert_non_null(kind);
    write_review(root, kind->resource->plural, &body);
    answer = operator_admit_review(name, buf_str(&body), find, (void *)(uintptr_t)root, &out);
    assert_int_equal(answer.status, 200);
    assert_int_equal(answer.is_early, json_bool_or(json_get(root, "early"), false));
    assert_int_equal(json_parse(buf_str(&out), MAX_TEXT, &doc, NULL), 0);
    check_answer(root, json_get(json_root(doc), "response"));
}

/* ---- envelopes ---- */

static void assert_allowed(const char *request)
{
    auto_buf struct buf body = { .max = MAX_TEXT }, out = { .max = WEBHOOK_MAX_ANSWER };
    struct webhook_answer answer;

    buf_printf(&body,
               "{\"apiVersion\":\"admission.k8s.io/v1beta1\",\"kind\":\"AdmissionReview\","
               "\"request\":{\"uid\":\"u-1\",\"namespace\":\"site\",%s}}",
               request);
    answer = operator_admit_review("LoginSet", buf_str(&body), NULL, NULL, &out);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.result, "allowed");
    assert_string_equal(buf_text(&out),
                        "{\"apiVersion\":\"admission.k8s.io/v1beta1\",\"kind\":\"AdmissionReview\","
                        "\"response\":{\"uid\":\"u-1\",\"allowed\":true}}");
}

#define LOGINSETS "\"resource\":{\"group\":\"slinky.slurm.net\",\"resource\":\"loginsets\"}"
#define EMPTY     "\"object\":{\"spec\":{}}"

static void what_is_none_of_our_business_is_allowed_in_the_version_of_the_review(void **state)
{
    assert_allowed("\"operation\":\"DELETE\"," LOGINSETS "," EMPTY);
    assert_allowed("\"operation\":\"UPDATE\",\"subResource\":\"scale\"," LOGINSETS "," EMPTY);
    assert_allowed("\"operation\":\"CREATE\",\"resource\":{\"group\":\"apps\",\"resource\":"
                   "\"loginsets\"}," EMPTY);
    assert_allowed("\"operation\":\"CREATE\",\"resource\":{\"group\":\"slinky.slurm.net\","
                   "\"resource\":\"nodesets\"}," EMPTY);
    assert_allowed("\"operation\":\"CREATE\"," LOGINSETS ",\"object\":null");
}

static void what_is_no_review_is_answered_in_text(void **state)
{
    static const char *const bodies[] = { "", "{", "[]", "{\"kind\":\"AdmissionReview\"}" };

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        auto_buf struct buf out = { .max = WEBHOOK_MAX_ANSWER };
        struct webhook_answer answer =
            operator_admit_review("Token", str_of(bodies[i]), NULL, NULL, &out);

        assert_int_equal(answer.status, 400);
        assert_string_equal(answer.result, "unreadable");
        assert_true(str_ends(buf_str(&out), STR("\n")));
    }
}

static void every_rule_is_described(void **state)
{
    auto_buf struct buf out = { .max = MAX_TEXT };

    admit_rules_describe(&out);
    assert_non_null(strstr(buf_text(&out),
                           "| Controller, Accounting, Token | update | `jwtKeyRef` changes |\n"));
    assert_non_null(
        strstr(buf_text(&out), "| NodeSet | create, update | `ordinalPadding` is negative |\n"));
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[MAX_WORLDS + 3] = {
        cmocka_unit_test(what_is_none_of_our_business_is_allowed_in_the_version_of_the_review),
        cmocka_unit_test(what_is_no_review_is_answered_in_text),
        cmocka_unit_test(every_rule_is_described),
    };
    struct err err = { .class = 0 };
    size_t count = argc < 3 ? 3 : 0;
    int rc;

    all.check = check_review;
    if (argc < 2 || worlds_read_folder(&all, argv[1], &err) < 0) {
        (void)fprintf(stderr, "%s\n", argc < 2 ? "which folder?" : err.text);
        return 1;
    }
    for (size_t i = 0; i < all.count; i++)
        if (argc < 3 || strcmp(all.worlds[i].name, argv[2]) == 0)
            tests[count++] = (struct CMUnitTest){ .name = all.worlds[i].name,
                                                  .test_func = the_answer_is_as_expected,
                                                  .initial_state = &all.worlds[i] };
    rc = count == 0 ? 1 : _cmocka_run_group_tests("reviews", tests, count, NULL, NULL);
    worlds_read_done(&all);
    return rc;
}
