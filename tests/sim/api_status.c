/* api_status.c - the ways in which the server says no, in its own words.
 *
 * A refusal is a Status object; programs read its code and reason, people its message. The words
 * were taken from a real server and are compared with it by the conformance test. */
#include "api_private.h"

#include <stdarg.h>

struct status {
    int code;
    const char *reason; /* NULL: none */
    const char *message;
    const char *name, *kind; /* of details; NULL: none */
    const struct api_kind *of;
    bool has_details;
    const char *cause_reason, *cause_message, *cause_field;
    unsigned cause_times;
    int retry_after;
};

static void put_cause(struct json_build *build, struct json_mut *causes,
                      const struct status *status)
{
    struct json_mut *cause = json_new_object(build);

    json_put_text(build, cause, "reason", status->cause_reason);
    json_put_text(build, cause, "message", status->cause_message);
    if (status->cause_field)
        json_put_text(build, cause, "field", status->cause_field);
    json_push(causes, cause);
}

static void put_details(struct json_build *build, struct json_mut *root,
                        const struct status *status)
{
    struct json_mut *details = json_put_object(build, root, "details");

    if (status->name && *status->name)
        json_put_text(build, details, "name", status->name);
    if (status->of && *status->of->group)
        json_put_text(build, details, "group", status->of->group);
    if (status->kind)
        json_put_text(build, details, "kind", status->kind);
    if (status->cause_reason) {
        struct json_mut *causes = json_put_array(build, details, "causes");

        for (unsigned i = 0; i < (status->cause_times ? status->cause_times : 1); i++)
            put_cause(build, causes, status);
    }
    if (status->retry_after > 0)
        json_put_i64(build, details, "retryAfterSeconds", status->retry_after);
}

static void write_status(struct buf *out, const struct status *status)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);

    json_put_text(build, root, "kind", "Status");
    json_put_text(build, root, "apiVersion", "v1");
    json_put_object(build, root, "metadata");
    json_put_text(build, root, "status", "Failure");
    json_put_text(build, root, "message", status->message);
    if (status->reason)
        json_put_text(build, root, "reason", status->reason);
    if (status->has_details || status->kind || status->cause_reason || status->retry_after)
        put_details(build, root, status);
    json_put_i64(build, root, "code", status->code);
    json_mut_write(root, out);
}

static enum err_class class_of(int code)
{
    switch (code) {
    case 403:
        return ERR_DENIED;
    case 404:
    case 410:
        return ERR_NOT_FOUND;
    case 409:
        return ERR_CONFLICT;
    case 429:
    case 503:
    case 504:
        return ERR_UNAVAILABLE;
    default:
        return ERR_INVALID;
    }
}

static int refuse(struct api_call *call, const struct status *status)
{
    buf_clear(&call->answer->body);
    call->answer->status = status->code;
    call->answer->retry_after = status->retry_after;
    write_status(&call->answer->body, status);
    return -(int)class_of(status->code);
}

/* "configmaps", "leases.coordination.k8s.io" */
static const char *resource_of(struct api_call *call, const struct api_kind *kind)
{
    return *kind->group ? arena_printf(call->arena, "%s.%s", kind->plural, kind->group)
                        : kind->plural;
}

void api_answer_trouble(struct api_answer *answer, int status, const char *reason,
                        const char *message)
{
    buf_clear(&answer->body);
    answer->status = status;
    write_status(&answer->body, &(struct status){ .code = status,
                                                  .reason = reason,
                                                  .message = message,
                                                  .has_details = true,
                                                  .retry_after = answer->retry_after });
}

int api_refuse_not_found(struct api_call *call, const struct api_kind *kind, const char *name)
{
    return refuse(call,
                  &(struct status){ .code = 404,
                                    .reason = "NotFound",
                                    .message = arena_printf(call->arena, "%s \"%s\" not found",
                                                            resource_of(call, kind), name),
                                    .name = name,
                                    .kind = kind->plural,
                                    .of = kind });
}

int api_refuse_no_resource(struct api_call *call)
{
    return refuse(call,
                  &(struct status){ .code = 404,
                                    .reason = "NotFound",
                                    .message = "the server could not find the requested resource",
                                    .has_details = true });
}

int api_refuse_method(struct api_call *call)
{
    static const char message[] = "the server does not allow this method on the requested resource";

    return refuse(call, &(struct status){ .code = 405,
                                          .reason = "MethodNotAllowed",
                                          .message = message,
                                          .has_details = true });
}

int api_refuse_media_type(struct api_call *call)
{
    /* One that others have is told what this kind takes. */
    bool known = str_is(call->content_type, "application/strategic-merge-patch+json");

    return refuse(call, &(struct status){
                            .code = 415,
                            .reason = "UnsupportedMediaType",
                            .message = known ? "the body of the request was in an unknown format - "
                                               "accepted media types include: "
                                               "application/json-patch+json, "
                                               "application/merge-patch+json, "
                                               "application/apply-patch+yaml"
                                             : "415: Unsupported Media Type",
                            .has_details = !known });
}

int api_refuse_exists(struct api_call *call, const struct json *old, const char *name)
{
    const char *why = api_is_deleting(old) ? "object is being deleted: " : "";
    const char *message = arena_printf(call->arena, "%s%s \"%s\" already exists", why,
                                       resource_of(call, call->kind), name);

    return refuse(call, &(struct status){ .code = 409,
                                          .reason = "AlreadyExists",
                                          .message = message,
                                          .name = name,
                                          .kind = call->kind->plural,
                                          .of = call->kind });
}

/* "kind" is what the server calls the thing here: the resource, mostly. */
static int conflict(struct api_call *call, const char *kind, const char *shown, const char *name,
                    const char *why)
{
    return refuse(
        call, &(struct status){ .code = 409,
                                .reason = "Conflict",
                                .message = arena_printf(
                                    call->arena, "Operation cannot be fulfilled on %s \"%s\": %s",
                                    shown, name, why),
                                .name = name,
                                .kind = kind,
                                .of = call->kind });
}

int api_refuse_modified(struct api_call *call, const char *name)
{
    return conflict(call, call->kind->plural, resource_of(call, call->kind), name,
                    "the object has been modified; please apply your changes to the latest version "
                    "and try again");
}

int api_refuse_uid(struct api_call *call, struct str asked, struct str found)
{
    const char *key =
        *call->ns ? arena_printf(call->arena, "%s/%s", call->ns, call->name) : call->name;

    return conflict(call, call->kind->plural, resource_of(call, call->kind), call->name,
                    arena_printf(call->arena,
                                 "StorageError: invalid object, Code: 4, Key: /registry/%s/%s, "
                                 "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID "
                                 "in precondition: " STR_FMT ", UID in object meta: " STR_FMT,
                                 call->kind->plural, key, STR_ARG(asked), STR_ARG(found)));
}

int api_refuse_stale_precondition(struct api_call *call, const char *what, struct str asked,
                                  struct str found)
{
    bool uid = strcmp(what, "UID") == 0;
    const char *why =
        arena_printf(call->arena,
                     "the %s in the precondition (" STR_FMT ") does not match the %s in record "
                     "(" STR_FMT "). The object might have been %s",
                     what, STR_ARG(asked), what, STR_ARG(found),
                     uid ? "deleted and then recreated" : "modified");
    const char *kind = call->kind->kind;
    const char *shown =
        *call->kind->group ? arena_printf(call->arena, "%s.%s", kind, call->kind->group) : kind;

    return conflict(call, kind, shown, call->name, why);
}

int api_refuse_binding(struct api_call *call, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const char *why = arena_vprintf(call->arena, format, args);
    va_end(args);
    return conflict(call, "pods/binding", "pods/binding", call->name, why);
}

int api_refuse_bad_request(struct api_call *call, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const char *message = arena_vprintf(call->arena, format, args);
    va_end(args);
    return refuse(call,
                  &(struct status){ .code = 400, .reason = "BadRequest", .message = message });
}

int api_refuse_patch(struct api_call *call)
{
    static const char message[] = "the server rejected our request due to an error in our request";

    return refuse(call,
                  &(struct status){
                      .code = 422, .reason = "Invalid", .message = message, .has_details = true });
}

int api_refuse_invalid(struct api_call *call, const char *name, const struct api_wrong *wrong)
{
    bool by_resource = wrong->by_resource;
    const char *shown =
        by_resource || !*call->kind->group
            ? (by_resource ? resource_of(call, call->kind) : call->kind->kind)
            : arena_printf(call->arena, "%s.%s", call->kind->kind, call->kind->group);

    return refuse(
        call, &(struct status){ .code = 422,
                                .reason = "Invalid",
                                .message = arena_printf(call->arena, "%s \"%s\" is invalid: %s: %s",
                                                        shown, name, wrong->field, wrong->message),
                                .name = name,
                                .kind = by_resource ? call->kind->plural : call->kind->kind,
                                .of = call->kind,
                                .cause_reason = wrong->reason,
                                .cause_message = wrong->message,
                                .cause_field = wrong->field,
                                .cause_times = wrong->times });
}

int api_refuse_forbidden(struct api_call *call, const char *name, const char *why)
{
    return refuse(
        call, &(struct status){ .code = 403,
                                .reason = "Forbidden",
                                .message = arena_printf(call->arena, "%s \"%s\" is forbidden: %s",
                                                        resource_of(call, call->kind), name, why),
                                .name = name,
                                .kind = call->kind->plural,
                                .of = call->kind });
}

int api_refuse_terminating(struct api_call *call, const char *name)
{
    const char *message = arena_printf(call->arena,
                                       "%s \"%s\" is forbidden: unable to create new content in "
                                       "namespace %s because it is being terminated",
                                       resource_of(call, call->kind), name, call->ns);

    return refuse(call,
                  &(struct status){ .code = 403,
                                    .reason = "Forbidden",
                                    .message = message,
                                    .name = name,
                                    .kind = call->kind->plural,
                                    .of = call->kind,
                                    .cause_reason = "NamespaceTerminating",
                                    .cause_message = arena_printf(
                                        call->arena, "namespace %s is being terminated", call->ns),
                                    .cause_field = "metadata.namespace" });
}

void api_write_expired(struct buf *out, const char *message)
{
    write_status(out, &(struct status){ .code = 410, .reason = "Expired", .message = message });
}

int api_refuse_expired(struct api_call *call, const char *message)
{
    return refuse(call, &(struct status){ .code = 410, .reason = "Expired", .message = message });
}

int api_refuse_future(struct api_call *call, uint64_t version)
{
    const char *message =
        arena_printf(call->arena, "Timeout: Too large resource version: %llu, current: %llu",
                     (unsigned long long)version, (unsigned long long)call->store->version);

    return refuse(call, &(struct status){ .code = 504,
                                          .reason = "Timeout",
                                          .message = message,
                                          .cause_reason = "ResourceVersionTooLarge",
                                          .cause_message = "Too large resource version",
                                          .retry_after = 1 });
}

int api_refuse_unclassified(struct api_call *call, const char *message)
{
    return refuse(call, &(struct status){ .code = 500, .message = message });
}

int api_refuse_plain(struct api_call *call, int status, const char *message)
{
    buf_clear(&call->answer->body);
    call->answer->status = status;
    buf_add_text(&call->answer->body, message);
    return -(int)class_of(status);
}
