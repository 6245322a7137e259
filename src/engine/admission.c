/* admission.c - reads the request of an admission review and writes the answer. */
#include "engine/admission.h"

enum { MAX_UID = 256 };

static const char *const versions[] = { "admission.k8s.io/v1", "admission.k8s.io/v1beta1" };

static const char *read_version(const struct json *review)
{
    struct str named = json_str(json_get(review, "apiVersion"));

    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
        if (str_is(named, versions[i]))
            return versions[i];
    return NULL;
}

static const struct json *object_or_null(const struct json *value)
{
    return json_is_object(value) ? value : NULL;
}

int admission_read(const struct json *review, struct admission_request *ret_request,
                   struct err *err)
{
    const struct json *request = json_get(review, "request");
    const struct json *resource = json_get(request, "resource");
    struct str uid = json_str(json_get(request, "uid"));
    const char *version = read_version(review);

    if (!version || !str_is(json_str(json_get(review, "kind")), "AdmissionReview"))
        return err_set(err, ERR_INVALID, "this is no AdmissionReview of admission.k8s.io/v1");
    if (uid.len == 0 || uid.len > MAX_UID)
        return err_set(err, ERR_INVALID, "the review has no request with a uid");
    *ret_request = (struct admission_request){
        .version = version,
        .uid = uid,
        .ns = json_str(json_get(request, "namespace")),
        .name = json_str(json_get(request, "name")),
        .operation = json_str(json_get(request, "operation")),
        .subresource = json_str(json_get(request, "subResource")),
        .user = json_str(json_at(request, "userInfo", "username")),
        .group = json_str(json_get(resource, "group")),
        .resource = json_str(json_get(resource, "resource")),
        .groups = json_at(request, "userInfo", "groups"),
        .object = json_get(request, "object"),
        .old = object_or_null(json_get(request, "oldObject")),
    };
    if (ret_request->ns.len == 0)
        ret_request->ns = json_str(json_at(ret_request->object, "metadata", "namespace"));
    return 0;
}

static const char *reason_of(int code)
{
    switch (code) {
    case ADMISSION_FORBIDDEN:
        return "Forbidden";
    case ADMISSION_UNAVAILABLE:
        return "ServiceUnavailable";
    default:
        return "BadRequest";
    }
}

static void put_denial(struct json_build *build, struct json_mut *response,
                       const struct admission_answer *answer)
{
    struct json_mut *status = json_put_object(build, response, "status");

    json_put_text(build, status, "status", "Failure");
    json_put_str(build, status, "message", answer->message);
    json_put_text(build, status, "reason", reason_of(answer->code));
    json_put_i64(build, status, "code", answer->code);
    if (answer->retry_after_s > 0)
        json_put_i64(build, json_put_object(build, status, "details"), "retryAfterSeconds",
                     answer->retry_after_s);
}

void admission_write(const struct admission_request *request, const struct admission_answer *answer,
                     struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build), *response;

    json_put_text(build, root, "apiVersion", request->version);
    json_put_text(build, root, "kind", "AdmissionReview");
    response = json_put_object(build, root, "response");
    json_put_str(build, response, "uid", request->uid);
    json_put_bool(build, response, "allowed", answer->code == 0);
    if (answer->code != 0)
        put_denial(build, response, answer);
    if (answer->patch.len > 0) {
        json_put_text(build, response, "patchType", "JSONPatch");
        json_put_str(build, response, "patch", answer->patch);
    }
    if (answer->warning_count > 0) {
        struct json_mut *warnings = json_put_array(build, response, "warnings");

        for (unsigned i = 0; i < answer->warning_count; i++)
            json_push_str(build, warnings, answer->warnings[i]);
    }
    json_mut_write(root, out);
}
