/* api_meta.c - what the server itself keeps in an object: names, uid, times, generation, and the
 * rules about who may change them. */
#include "api_private.h"
#include "codec/timestamp.h"

#include <stdio.h>

struct json_mut *api_metadata(struct api_call *call, struct json_mut *object)
{
    return json_object_at(call->build, object, "metadata");
}

struct str api_meta_str(const struct json *object, const char *field)
{
    return json_str(json_at(object, "metadata", field));
}

bool api_is_deleting(const struct json *object)
{
    return json_exists(json_at(object, "metadata", "deletionTimestamp"));
}

bool api_has_finalizers(const struct json *object)
{
    return json_len(json_at(object, "metadata", "finalizers")) > 0;
}

void api_put_time(struct api_call *call, struct json_mut *metadata, const char *field,
                  int64_t seconds_from_now)
{
    auto_buf struct buf text;

    buf_init(&text, 64);
    (void)timestamp_print(clock_wall_us(call->store->clock) + seconds_from_now * TIMESTAMP_SECOND,
                          &text, NULL);
    json_put_str(call->build, metadata, field, buf_str(&text));
}

/* ---- names ---- */

#define SUBDOMAIN                                                                                  \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "  \
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define LABEL                                                                                      \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "   \
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "     \
    "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_label(struct str part)
{
    if (part.len == 0 || !is_alnum(part.at[0]) || !is_alnum(part.at[part.len - 1]))
        return false;
    for (size_t i = 0; i < part.len; i++)
        if (!is_alnum(part.at[i]) && part.at[i] != '-')
            return false;
    return true;
}

static bool is_subdomain(struct str name)
{
    struct str part;

    while (str_next(&name, '.', &part))
        if (!is_label(part))
            return false;
    return true;
}

static const char *what_is_wrong_with(const struct api_kind *kind, struct str name)
{
    bool label = kind->traits & API_LABEL_NAME;

    if (name.len > (label ? 63u : 253u))
        return label ? "must be no more than 63 bytes" : "must be no more than 253 bytes";
    if (label && memchr(name.at, '.', name.len))
        return "must not contain dots";
    if (label)
        return is_label(name) ? NULL : LABEL;
    return is_subdomain(name) ? NULL : SUBDOMAIN;
}

int api_check_name(struct api_call *call, const char *name)
{
    const char *wrong = what_is_wrong_with(call->kind, str_of(name));

    if (!wrong)
        return 0;
    return api_refuse_invalid(
        call, name,
        &(struct api_wrong){
            .reason = "FieldValueInvalid",
            .field = "metadata.name",
            .message = arena_printf(call->arena, "Invalid value: \"%s\": %s", name, wrong) });
}

static const char *generated(struct api_call *call, struct str prefix)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    char suffix[6] = "";

    for (unsigned i = 0; i < 5; i++)
        suffix[i] = letters[rand_below(&call->store->rand, sizeof(letters) - 1)];
    return arena_printf(call->arena, STR_FMT "%s", STR_ARG(prefix), suffix);
}

static int choose_name(struct api_call *call, struct json_mut *metadata, const char **ret_name)
{
    struct str name = api_meta_str(call->body, "name");
    struct str prefix = api_meta_str(call->body, "generateName");

    if (name.len == 0 && prefix.len == 0)
        return api_refuse_invalid(
            call, "",
            &(struct api_wrong){ .reason = "FieldValueRequired",
                                 .field = "metadata.name",
                                 .message = "Required value: name or generateName is required" });
    *ret_name = name.len ? arena_strndup(call->arena, name.at, name.len) : generated(call, prefix);
    json_put_text(call->build, metadata, "name", *ret_name);
    return api_check_name(call, *ret_name);
}

/* ---- other things that people get wrong ---- */

static int check_finalizers(struct api_call *call, const char *name, const struct json *object)
{
    struct json_iter iter = json_iter(json_at(object, "metadata", "finalizers"));
    const struct json *item;

    for (unsigned i = 0; json_next_item(&iter, &item); i++) {
        struct str text = json_str(item);

        if (memchr(text.at, '/', text.len) || str_is(text, "orphan") ||
            str_is(text, "foregroundDeletion"))
            continue;
        return api_refuse_invalid(
            call, name,
            &(struct api_wrong){ .reason = "FieldValueInvalid",
                                 .field = arena_printf(call->arena, "metadata.finalizers[%u]", i),
                                 .times = *call->name ? 2 : 1, /* looked at twice in updates */
                                 .message = arena_printf(call->arena,
                                                         "Invalid value: \"" STR_FMT
                                                         "\": name is neither a standard finalizer "
                                                         "name nor is it fully qualified",
                                                         STR_ARG(text)) });
    }
    return 0;
}

static int check_owners(struct api_call *call, const char *name, const struct json *object)
{
    struct json_iter iter = json_iter(json_at(object, "metadata", "ownerReferences"));
    const struct json *owner;

    while (json_next_item(&iter, &owner))
        if (json_str(json_get(owner, "uid")).len == 0)
            return api_refuse_invalid(
                call, name,
                &(struct api_wrong){ .reason = "FieldValueInvalid",
                                     .field = "metadata.ownerReferences.uid",
                                     .message = "Invalid value: \"\": must not be empty" });
    return 0;
}

static int check_labels(struct api_call *call, const char *name, const struct json *object)
{
    struct json_iter iter = json_iter(json_at(object, "metadata", "labels"));
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value)) {
        if (selector_check_key(key, NULL) == 0 && selector_check_value(json_str(value), NULL) == 0)
            continue;
        return api_refuse_invalid(
            call, name,
            &(struct api_wrong){
                .reason = "FieldValueInvalid",
                .field = "metadata.labels",
                .message =
                    arena_printf(call->arena, "Invalid value: \"" STR_FMT "\"", STR_ARG(key)) });
    }
    return 0;
}

static int check_data(struct api_call *call, const char *name, const struct json *object)
{
    struct json_iter iter = json_iter(json_get(object, "data"));
    const struct json *value;
    struct str key;

    if ((call->kind->traits & API_CUSTOM) || strcmp(call->kind->kind, "ControllerRevision") == 0)
        return 0;
    while (json_next_member(&iter, &key, &value))
        if (!json_is_string(value))
            return api_refuse_bad_request(
                call,
                "%s in version \"%s\" cannot be handled as a %s: json: cannot unmarshal %s "
                "into Go struct field %s.data of type string",
                call->kind->kind, call->kind->version, call->kind->kind,
                json_type_name(json_type(value)), call->kind->kind);
    (void)name;
    return 0;
}

/* What must be right in every object that is written. */
static int check_object(struct api_call *call, const char *name, const struct json *object)
{
    static int (*const checks[])(struct api_call *, const char *,
                                 const struct json *) = { check_data, check_labels, check_owners,
                                                          check_finalizers };

    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        int result = checks[i](call, name, object);

        if (result < 0)
            return result;
    }
    return 0;
}

/* ---- creating ---- */

static void put_new_uid(struct api_call *call, struct json_mut *metadata)
{
    char uid[40];

    (void)snprintf(uid, sizeof(uid), "%08x-0000-4000-8000-%012llx",
                   (unsigned)(rand_u64(&call->store->rand) & 0xffffffffu),
                   (unsigned long long)++call->store->uid_count);
    json_put_text(call->build, metadata, "uid", uid);
}

static void put_type(struct api_call *call, struct json_mut *object)
{
    auto_buf struct buf version;

    buf_init(&version, 300);
    api_write_api_version(&version, call->kind);
    json_put_text(call->build, object, "kind", call->kind->kind);
    json_put_str(call->build, object, "apiVersion", buf_str(&version));
}

static void fill_namespace(struct api_call *call, struct json_mut *object, const char *name)
{
    struct json_build *build = call->build;
    struct json_mut *finalizers = json_new_array(build);

    json_push_str(build, finalizers, STR("kubernetes"));
    json_put_at(build, object, json_new_str(build, str_of(name)), "metadata", "labels",
                "kubernetes.io/metadata.name");
    json_put_at(build, object, finalizers, "spec", "finalizers");
    json_put_at(build, object, json_new_str(build, STR("Active")), "status", "phase");
}

static void default_text(struct api_call *call, struct json_mut *object, const char *key,
                         const char *text)
{
    if (!json_mut_get(object, str_of(key)))
        json_put_text(call->build, object, key, text);
}

static void fill_pod(struct api_call *call, struct json_mut *object)
{
    struct json_build *build = call->build;
    struct json_mut *spec = json_object_at(build, object, "spec");

    default_text(call, spec, "schedulerName", "default-scheduler");
    default_text(call, spec, "restartPolicy", "Always");
    if (!json_mut_get(spec, STR("terminationGracePeriodSeconds")))
        json_put_i64(build, spec, "terminationGracePeriodSeconds", 30);
    json_put_text(build, json_put_object(build, object, "status"), "phase", "Pending");
}

static void fill_defaults(struct api_call *call, struct json_mut *object, const char *name)
{
    unsigned traits = call->kind->traits;

    put_type(call, object);
    if ((traits & API_HAS_STATUS) && strcmp(call->kind->plural, "nodes") != 0)
        (void)json_remove(object, STR("status"));
    if (strcmp(call->kind->plural, "namespaces") == 0)
        fill_namespace(call, object, name);
    if (strcmp(call->kind->plural, "pods") == 0)
        fill_pod(call, object);
    if (strcmp(call->kind->plural, "secrets") == 0)
        default_text(call, object, "type", "Opaque");
}

int api_prepare_create(struct api_call *call, struct json_mut *object, const char **ret_name)
{
    struct json_mut *metadata = api_metadata(call, object);
    int result = choose_name(call, metadata, ret_name);

    if (result < 0)
        return result;
    if (call->kind->traits & API_NAMESPACED)
        json_put_text(call->build, metadata, "namespace", call->ns);
    put_new_uid(call, metadata);
    api_put_time(call, metadata, "creationTimestamp", 0);
    (void)json_remove(metadata, STR("deletionTimestamp"));
    (void)json_remove(metadata, STR("deletionGracePeriodSeconds"));
    (void)json_remove(metadata, STR("managedFields"));
    (void)json_remove(metadata, STR("generation"));
    if (call->kind->traits & API_HAS_GENERATION)
        json_put_i64(call->build, metadata, "generation", 1);
    fill_defaults(call, object, *ret_name);
    return check_object(call, *ret_name, call->body);
}

/* ---- updating ---- */

static void keep(struct api_call *call, struct json_mut *next, const struct json *old,
                 const char *key)
{
    const struct json *value = json_get(old, key);

    if (json_exists(value))
        json_put(call->build, next, key, json_copy(call->build, value));
    else
        (void)json_remove(next, str_of(key));
}

/* Fields that nobody can change by writing them. */
static void keep_servers_fields(struct api_call *call, struct json_mut *next,
                                const struct json *old)
{
    static const char *const fields[] = { "name",
                                          "namespace",
                                          "uid",
                                          "generation",
                                          "creationTimestamp",
                                          "deletionTimestamp",
                                          "generateName",
                                          "deletionGracePeriodSeconds",
                                          "resourceVersion" };
    struct json_mut *metadata = api_metadata(call, next);

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        keep(call, metadata, json_get(old, "metadata"), fields[i]);
    (void)json_remove(metadata, STR("managedFields"));
    put_type(call, next);
}

static bool differs_in_content(const struct json *old, const struct json *next)
{
    struct json_iter iter = json_iter(next);
    const struct json *value;
    struct str key;
    size_t old_count = 0, next_count = 0;

    while (json_next_member(&iter, &key, &value)) {
        if (str_is(key, "metadata") || str_is(key, "status"))
            continue;
        next_count++;
        if (!json_equal(value, json_get_str(old, key)))
            return true;
    }
    iter = json_iter(old);
    while (json_next_member(&iter, &key, &value))
        old_count += !str_is(key, "metadata") && !str_is(key, "status");
    return old_count != next_count;
}

/* A write to /status changes the status; of a built-in kind also what metadata people may write. */
static struct json_mut *only_the_status(struct api_call *call, const struct json *old,
                                        const struct json *next)
{
    struct json_mut *result = json_copy(call->build, old);

    keep(call, result, next, "status");
    if (!(call->kind->traits & API_CUSTOM))
        keep(call, result, next, "metadata");
    return result;
}

static bool list_has(const struct json *list, const struct json *wanted)
{
    struct json_iter iter = json_iter(list);
    const struct json *item;

    while (json_next_item(&iter, &item))
        if (json_equal(item, wanted))
            return true;
    return false;
}

static bool differs_only_by_new_tolerations(struct api_call *call, const struct json *old,
                                            const struct json *next)
{
    const struct json *tolerations = json_get(old, "tolerations");
    struct json_iter iter = json_iter(tolerations);
    struct json_mut *same = json_copy(call->build, next);
    const struct json *item;

    if (!json_is_object(next))
        return json_equal(old, next);
    while (json_next_item(&iter, &item))
        if (!list_has(json_get(next, "tolerations"), item))
            return false;
    keep(call, same, old, "tolerations");

    auto_json_doc struct json_doc *frozen = json_freeze(same);

    return json_equal(old, json_root(frozen));
}

static int check_immutable(struct api_call *call, const struct json *old, const struct json *next)
{
    static const char pods[] =
        "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
        "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be "
        "set to 1 if it was previously negative)";

    if (strcmp(call->kind->plural, "pods") == 0 &&
        !differs_only_by_new_tolerations(call, json_get(old, "spec"), json_get(next, "spec")))
        return api_refuse_invalid(call, call->name,
                                  &(struct api_wrong){ .reason = "FieldValueForbidden",
                                                       .field = "spec",
                                                       .message = pods });
    if (strcmp(call->kind->plural, "resourceclaims") == 0 &&
        json_exists(json_at(old, "status", "allocation")) &&
        json_exists(json_at(next, "status", "allocation")) &&
        !json_equal(json_at(old, "status", "allocation"), json_at(next, "status", "allocation")))
        return api_refuse_invalid(
            call, call->name,
            &(struct api_wrong){ .reason = "FieldValueInvalid",
                                 .field = "status.allocation",
                                 .message = "Invalid value: field is immutable" });
    if (json_bool_or(json_get(old, "immutable"), false) &&
        !json_equal(json_get(old, "data"), json_get(next, "data")))
        return api_refuse_invalid(
            call, call->name,
            &(struct api_wrong){ .reason = "FieldValueForbidden",
                                 .field = "data",
                                 .message =
                                     "Forbidden: field is immutable when `immutable` is set" });
    return 0;
}

static bool array_has(const struct json *array, struct str text)
{
    struct json_iter iter = json_iter(array);
    const struct json *item;

    while (json_next_item(&iter, &item))
        if (str_eq(json_str(item), text))
            return true;
    return false;
}

static int check_new_finalizers(struct api_call *call, const struct json *old,
                                const struct json *next)
{
    struct json_iter iter = json_iter(json_at(next, "metadata", "finalizers"));
    const struct json *item;

    if (!api_is_deleting(old))
        return 0;
    while (json_next_item(&iter, &item))
        if (!array_has(json_at(old, "metadata", "finalizers"), json_str(item)))
            return api_refuse_invalid(
                call, call->name,
                &(struct api_wrong){
                    .reason = "FieldValueForbidden",
                    .field = "metadata.finalizers",
                    .times = 2,
                    .message = arena_printf(
                        call->arena,
                        "Forbidden: no new finalizers can be added if the object is being "
                        "deleted, found new finalizers []string{\"" STR_FMT "\"}",
                        STR_ARG(json_str(item))) });
    return 0;
}

void api_count_generation(struct api_call *call, const struct json *old, struct json_mut *next)
{
    struct json_doc *frozen = json_freeze(next);

    bool counts_annotations = call->kind->traits & API_COUNTS_ANNOTATIONS;

    if ((call->kind->traits & API_HAS_GENERATION) &&
        (differs_in_content(old, json_root(frozen)) ||
         (counts_annotations &&
          !json_equal(json_at(old, "metadata", "annotations"),
                      json_at(json_root(frozen), "metadata", "annotations")))))
        json_put_i64(call->build, api_metadata(call, next), "generation",
                     json_i64_or(json_at(old, "metadata", "generation"), 0) + 1);
    json_doc_free(frozen);
}

int api_prepare_update(struct api_call *call, const struct json *old, struct json_mut **next)
{
    auto_json_doc struct json_doc *asked = json_freeze(*next);
    const struct json *root = json_root(asked);
    int result;

    if (*call->subresource)
        *next = only_the_status(call, old, root);
    else if (call->kind->traits & API_HAS_STATUS)
        keep(call, *next, old, "status");
    keep_servers_fields(call, *next, old);
    api_normalise(call, next);

    auto_json_doc struct json_doc *frozen = json_freeze(*next);

    root = json_root(frozen);
    if ((result = check_object(call, call->name, root)) < 0 ||
        (result = check_immutable(call, old, root)) < 0)
        return result;
    return check_new_finalizers(call, old, root);
}
