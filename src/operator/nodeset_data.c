/* nodeset_data.c - the data of a revision: the bytes that the Slinky operator writes, and what they
 * mean.
 *
 * The Slinky operator reads a NodeSet into the types of Kubernetes and writes those as JSON. What
 * is left is given by the types alone: a member with its zero value goes, unless its type is a
 * pointer, where "not given" and "zero" differ; unknown members go; quantities are written in one
 * way. The tables below and kube/types.c are that knowledge. */
#include "operator/nodeset_data.h"

#include "codec/json_format.h"
#include "codec/quantity.h"
#include "kube/types.h"
#include "operator/build.h"
#include "operator/names.h"

enum { MAX_DATA = 1 << 20 };

/* Scalars behind a pointer: false, 0 and "" mean something. */
static const char *const pointers[] = {
    "activeDeadlineSeconds",
    "allowPrivilegeEscalation",
    "automountServiceAccountToken",
    "containerPort",
    "defaultMode",
    "enableServiceLinks",
    "expirationSeconds",
    "fsGroup",
    "hostProcess",
    "hostUsers",
    "maxSkew",
    "minDomains",
    "mode",
    "optional",
    "port",
    "preemptionPolicy",
    "priority",
    "privileged",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "runtimeClassName",
    "seconds",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "storageClassName",
    "terminationGracePeriodSeconds",
    "tolerationSeconds",
    "weight",
};

/* Objects with keys of the user's choice: an empty one goes, where an empty struct stays. */
static const char *const maps[] = {
    "annotations", "labels",       "limits",   "matchLabels",
    "overhead",    "nodeSelector", "requests", "volumeAttributes",
};

#define IS_IN(names, key) is_in((key), (names), sizeof(names) / sizeof((names)[0]))

static bool is_in(struct str key, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(key, names[i]))
            return true;
    return false;
}

/* What the result is for. */
enum purpose {
    FOR_BYTES,   /* an empty struct stays */
    FOR_MEANING, /* it goes: it says nothing */
};

struct typed {
    struct json_build *build;
    enum purpose purpose;
};

static struct json_mut *typed_object(const struct typed *typed, const struct json *object,
                                     const char *type);

/* ---- values by the name of their member; NULL: the member goes ---- */

static struct json_mut *typed_quantity(const struct typed *typed, const struct json *value)
{
    auto_buf struct buf text = { .max = QUANTITY_TEXT_MAX };
    struct quantity quantity;

    if (quantity_from_json(value, &quantity, NULL) < 0)
        return json_copy(typed->build, value);
    quantity_print(&quantity, &text);
    return json_new_str(typed->build, buf_str(&text));
}

static struct json_mut *typed_map(const struct typed *typed, struct str name,
                                  const struct json *map)
{
    struct json_mut *copy = json_new_object(typed->build);
    bool has_quantities = quantity_is_name(name);
    struct json_iter iter = json_iter(map);
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value))
        json_put_key(typed->build, copy, key,
                     has_quantities ? typed_quantity(typed, value)
                                    : json_copy(typed->build, value));
    return json_mut_len(copy) > 0 ? copy : NULL;
}

/* A container says its name and its resources even when it has none. */
static struct json_mut *typed_container(const struct typed *typed, const struct json *container)
{
    struct json_mut *copy = typed_object(typed, container, "Container");

    if (typed->purpose == FOR_BYTES) {
        if (!json_mut_get(copy, STR("name")))
            json_put_text(typed->build, copy, "name", "");
        if (!json_mut_get(copy, STR("resources")))
            (void)json_put_object(typed->build, copy, "resources");
    }
    return copy;
}

static struct json_mut *typed_list(const struct typed *typed, struct str name,
                                   const struct json *list)
{
    bool are_containers = str_is(name, "containers") || str_is(name, "initContainers");
    struct json_mut *copy = json_new_array(typed->build);
    struct json_iter iter = json_iter(list);
    const struct json *item;

    while (json_next_item(&iter, &item))
        json_push(copy, !json_is_object(item) ? json_copy(typed->build, item)
                        : are_containers      ? typed_container(typed, item)
                                              : typed_object(typed, item, NULL));
    return json_mut_len(copy) > 0 ? copy : NULL;
}

static struct json_mut *typed_struct(const struct typed *typed, struct str name,
                                     const struct json *object)
{
    struct json_mut *copy = typed_object(typed, object, NULL);

    if (typed->purpose == FOR_MEANING)
        return json_mut_len(copy) > 0 ? copy : NULL;
    if (str_is(name, "resourceFieldRef") && !json_mut_get(copy, STR("divisor")))
        json_put_text(typed->build, copy, "divisor", "0");
    return copy;
}

static bool is_zero(const struct json *value)
{
    switch (json_type(value)) {
    case JSON_BOOL:
        return !json_bool_or(value, false);
    case JSON_NUMBER:
        return json_i64_or(value, 1) == 0;
    case JSON_STRING:
        return json_str(value).len == 0;
    default:
        return true;
    }
}

static struct json_mut *typed_member(const struct typed *typed, struct str name,
                                     const struct json *value)
{
    if (!json_exists(value))
        return NULL;
    if (json_is_array(value))
        return typed_list(typed, name, value);
    if (json_is_object(value))
        return IS_IN(maps, name) ? typed_map(typed, name, value) : typed_struct(typed, name, value);
    if (quantity_is_name(name))
        return typed_quantity(typed, value);
    return is_zero(value) && !IS_IN(pointers, name) ? NULL : json_copy(typed->build, value);
}

/* type: whose members stay (kube/types.h); NULL: all stay. */
static struct json_mut *typed_object(const struct typed *typed, const struct json *object,
                                     const char *type)
{
    struct json_mut *copy = json_new_object(typed->build), *member;
    struct json_iter iter = json_iter(object);
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value))
        if ((!type || kube_type_has(type, key)) && (member = typed_member(typed, key, value)))
            json_put_key(typed->build, copy, key, member);
    return copy;
}

/* ---- bytes ---- */

/* As Go's encoder: what a browser could take for a tag, and two line ends of Unicode. */
static void add_escaped(struct str text, struct buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        struct str rest = str_sub(text, i, text.len);

        if (strchr("<>&", text.at[i])) {
            buf_printf(out, "\\u%04x", (unsigned)text.at[i]);
        } else if (str_starts(rest, STR("\xe2\x80\xa8")) || str_starts(rest, STR("\xe2\x80\xa9"))) {
            buf_printf(out, "\\u202%x", (unsigned char)text.at[i + 2] - 0xa0U);
            i += 2;
        } else {
            buf_add_char(out, text.at[i]);
        }
    }
}

static struct json_mut *replacing(struct json_build *build, struct json_mut *object)
{
    json_put_text(build, object, "$patch", "replace");
    return object;
}

/* Fields that the Slinky operator does not know are in the bytes only when they say something. */
static void put_own_fields(struct json_build *build, const struct json *spec,
                           struct json_mut *wanted)
{
    static const char *const known[] = { "template",  "slurmd",         "logfile",          "ssh",
                                         "extraConf", "ordinalPadding", "oversubscribeNode" };

    for (const struct spec_field *field = spec_nodeset; field->path; field++)
        if (field->traits & SPEC_ROLLS && !IS_IN(known, str_of(field->path)) &&
            !spec_is_absent(field, spec_at(spec, field->path)))
            json_put(build, wanted, field->path, json_copy(build, spec_at(spec, field->path)));
}

static struct json_mut *wanted_spec(struct json_build *build, const struct kube_object *nodeset)
{
    const struct typed typed = { build, FOR_BYTES };
    const struct json *spec = operator_spec(nodeset);
    const struct json *pod = json_at(spec, "template", "spec");
    struct json_mut *pod_spec = typed_object(&typed, pod, "PodSpec");
    struct json_mut *wanted = json_new_object(build);

    if (!json_mut_get(pod_spec, STR("containers")))
        json_put(build, pod_spec, "containers",
                 json_is_array(json_get(pod, "containers")) ? json_new_array(build)
                                                            : json_new_null(build));
    json_put(build, wanted, "template",
             json_format(build, "{'$patch':'replace','metadata':%m,'spec':%m}",
                         typed_object(&typed, json_at(spec, "template", "metadata"), NULL),
                         pod_spec));
    json_put(build, wanted, "slurmd",
             replacing(build, typed_container(&typed, json_get(spec, "slurmd"))));
    if (json_exists(json_get(spec, "logfile")))
        json_put(build, wanted, "logfile",
                 replacing(build, typed_container(&typed, json_get(spec, "logfile"))));
    if (json_exists(json_get(spec, "ssh")))
        json_put(build, wanted, "ssh",
                 replacing(build, typed_object(&typed, json_get(spec, "ssh"), NULL)));
    if (json_str(json_get(spec, "extraConf")).len > 0)
        json_put_str(build, wanted, "extraConf", json_str(json_get(spec, "extraConf")));
    json_put_i64(build, wanted, "ordinalPadding", spec_number(nodeset, "ordinalPadding"));
    json_put_bool(build, wanted, "oversubscribeNode", spec_flag(nodeset, "oversubscribeNode"));
    put_own_fields(build, spec, wanted);
    return wanted;
}

int nodeset_data(const struct kube_object *nodeset, const char *mounted, struct buf *out,
                 struct err *err)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *spec = wanted_spec(build, nodeset);
    auto_json_doc struct json_doc *doc = NULL;
    auto_buf struct buf text;

    if (mounted)
        json_put_at(build, spec, json_new_str(build, str_of(mounted)), "template", "metadata",
                    "annotations", ANNOTATION_MOUNTED_HASH);
    doc = json_freeze(json_format(build, "{'spec':%m}", spec));
    buf_init(&text, MAX_DATA);
    json_write_canonical(json_root(doc), &text);
    add_escaped(buf_str(&text), out);
    return buf_check(&text, "data of the revision", err) < 0
               ? -ERR_TOO_BIG
               : buf_check(out, "data of the revision", err);
}

/* ---- meaning ---- */

struct json_doc *nodeset_data_meaning(const struct json *data)
{
    auto_json_build struct json_build *build = json_build_new();
    const struct typed typed = { build, FOR_MEANING };
    const struct json *spec = json_get(data, "spec"), *value;
    struct json_mut *meaning = json_new_object(build), *labels;
    struct json_iter iter = json_iter(spec);
    struct str key;

    while (json_next_member(&iter, &key, &value)) {
        struct json_mut *member = str_is(key, "slurmd") || str_is(key, "logfile")
                                      ? typed_container(&typed, value)
                                      : typed_member(&typed, key, value);

        if (member && json_mut_type(member) == JSON_OBJECT)
            (void)json_remove(member, STR("$patch"));
        if (member && (json_mut_type(member) != JSON_OBJECT || json_mut_len(member) > 0))
            json_put_key(build, meaning, key, member);
    }
    json_put_at(build, meaning, typed_object(&typed, json_at(spec, "template", "spec"), "PodSpec"),
                "template", "spec");
    labels = json_object_at(build, meaning, "template", "metadata", "labels");
    iter = json_iter(json_at(spec, "template", "metadata", "labels"));
    while (json_next_member(&iter, &key, &value))
        if (build_is_chart_label(key))
            (void)json_remove(labels, key);
    return json_freeze(meaning);
}
