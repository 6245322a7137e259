/* review.c - TokenReview and SubjectAccessReview, written and read. */
#include "kube/review.h"

static bool is_given(const char *text)
{
    return text && text[0];
}

static struct json_mut *begin(struct json_build *build, const struct kube_resource *resource,
                              struct json_mut **ret_spec)
{
    auto_buf struct buf version = { .max = 128 };
    struct json_mut *root = json_new_object(build);

    kube_api_version(&version, resource);
    json_put_str(build, root, "apiVersion", buf_str(&version));
    json_put_text(build, root, "kind", resource->kind);
    *ret_spec = json_put_object(build, root, "spec");
    return root;
}

struct row {
    const char *key, *value;
};

static void put_rows(struct json_build *build, struct json_mut *object, const struct row *rows,
                     size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_given(rows[i].value))
            json_put_text(build, object, rows[i].key, rows[i].value);
}

/* --- SubjectAccessReview --- */

static void put_attributes(struct json_build *build, struct json_mut *spec,
                           const struct kube_access_question *question)
{
    const struct row of_path[] = { { "path", question->path }, { "verb", question->verb } };
    const struct row of_resource[] = {
        { "namespace", question->ns },      { "verb", question->verb },
        { "group", question->group },       { "version", question->version },
        { "resource", question->resource }, { "subresource", question->subresource },
        { "name", question->name },
    };

    if (is_given(question->path))
        put_rows(build, json_put_object(build, spec, "nonResourceAttributes"), of_path,
                 sizeof(of_path) / sizeof(of_path[0]));
    else
        put_rows(build, json_put_object(build, spec, "resourceAttributes"), of_resource,
                 sizeof(of_resource) / sizeof(of_resource[0]));
}

void kube_access_write(const struct kube_access_question *question, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    const struct row who[] = { { "user", question->user }, { "uid", question->uid } };
    struct json_mut *spec;
    struct json_mut *root = begin(build, &kube_subject_access_reviews, &spec);

    put_rows(build, spec, who, sizeof(who) / sizeof(who[0]));
    if (question->group_count > 0) {
        struct json_mut *groups = json_put_array(build, spec, "groups");

        for (unsigned i = 0; i < question->group_count; i++)
            json_push_str(build, groups, question->groups[i]);
    }
    if (json_is_object(question->extra))
        json_put(build, spec, "extra", json_copy(build, question->extra));
    put_attributes(build, spec, question);
    json_mut_write(root, out);
}

void kube_access_request(struct kube_request *ret_request, struct str body)
{
    *ret_request = (struct kube_request){ .verb = KUBE_CREATE,
                                          .resource = &kube_subject_access_reviews,
                                          .body = body };
}

int kube_access_read(const struct json *object, struct kube_access_answer *ret_answer,
                     struct err *err)
{
    const struct json *status;
    struct kube_access_answer answer;
    bool allowed;

    if (json_want_object(object, "status", &status, err) < 0 ||
        json_want_bool(status, "allowed", &allowed, err) < 0) {
        err_wrap(err, "SubjectAccessReview");
        return -ERR_INVALID;
    }
    answer.allowed = allowed && !json_bool_or(json_get(status, "denied"), false);
    answer.reason = json_str(json_get(status, "reason"));
    if (answer.reason.len == 0)
        answer.reason = json_str(json_get(status, "evaluationError"));
    *ret_answer = answer;
    return 0;
}

/* --- TokenReview --- */

void kube_token_write(struct str token, const char *audience, struct buf *out)
{
    /* By hand: a tree would leave a copy of the token behind. */
    buf_add_text(out, "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\","
                      "\"spec\":{\"token\":");
    json_escape(out, token);
    if (is_given(audience)) {
        buf_add_text(out, ",\"audiences\":[");
        json_escape(out, str_of(audience));
        buf_add_char(out, ']');
    }
    buf_add_text(out, "}}");
}

void kube_token_request(struct kube_request *ret_request, struct str body)
{
    *ret_request =
        (struct kube_request){ .verb = KUBE_CREATE, .resource = &kube_token_reviews, .body = body };
}

static bool has_audience(const struct json *status, const char *audience)
{
    struct json_iter iter = json_iter(json_get(status, "audiences"));
    const struct json *item;

    if (!is_given(audience))
        return true;
    while (json_next_item(&iter, &item))
        if (str_is(json_str(item), audience))
            return true;
    return false;
}

static int read_user(const struct json *user, struct kube_token_answer *answer, struct err *err)
{
    struct json_iter iter = json_iter(json_get(user, "groups"));
    const struct json *item;

    if (json_want_str(user, "username", &answer->user, err) < 0)
        return -ERR_INVALID;
    answer->uid = json_str(json_get(user, "uid"));
    answer->extra = json_is_object(json_get(user, "extra")) ? json_get(user, "extra") : NULL;
    while (json_next_item(&iter, &item)) {
        if (answer->group_count == KUBE_REVIEW_MAX_GROUPS)
            return err_set(err, ERR_TOO_BIG, "more than %d groups", KUBE_REVIEW_MAX_GROUPS);
        answer->groups[answer->group_count++] = json_str(item);
    }
    return 0;
}

int kube_token_read(const struct json *object, const char *audience,
                    struct kube_token_answer *ret_answer, struct err *err)
{
    struct kube_token_answer answer = { .user = STR(""), .uid = STR(""), .error = STR("") };
    const struct json *status;
    int result = json_want_object(object, "status", &status, err);

    if (result == 0) {
        /* Go leaves the field out when it is false. */
        answer.authenticated = json_bool_or(json_get(status, "authenticated"), false);
        answer.error = json_str(json_get(status, "error"));
        if (answer.authenticated && !has_audience(status, audience)) {
            answer.authenticated = false;
            answer.error = STR("the token is for another audience");
        }
        if (answer.authenticated)
            result = read_user(json_get(status, "user"), &answer, err);
    }
    if (result < 0) {
        err_wrap(err, "TokenReview");
        return result;
    }
    *ret_answer = answer;
    return 0;
}
