/* api_select.c - which objects a list or a watch is about: namespace, labels, fields. */
#include "api_private.h"

/* Fields that may be selected by; all others are refused. */
static const struct field {
    const char *plural; /* NULL: every kind */
    const char *name;
    const char *path[3];
} fields[] = {
    { NULL, "metadata.name", { "metadata", "name" } },
    { NULL, "metadata.namespace", { "metadata", "namespace" } },
    { "pods", "spec.nodeName", { "spec", "nodeName" } },
    { "pods", "spec.schedulerName", { "spec", "schedulerName" } },
    { "pods", "status.phase", { "status", "phase" } },
    { "events", "involvedObject.name", { "involvedObject", "name" } },
    { "events", "involvedObject.uid", { "involvedObject", "uid" } },
    { "events", "reason", { "reason" } },
    { "namespaces", "status.phase", { "status", "phase" } },
    { "secrets", "type", { "type" } },
};

static const struct field *find_field(const struct api_kind *kind, struct str name)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (str_is(name, fields[i].name) &&
            (!fields[i].plural || strcmp(fields[i].plural, kind->plural) == 0))
            return &fields[i];
    return NULL;
}

struct subject {
    const struct api_kind *kind;
    const struct json *object;
};

static bool look_up(const void *data, struct str key, struct str *ret_value)
{
    const struct subject *subject = data;
    const struct field *field = find_field(subject->kind, key);

    if (!field)
        return false;
    *ret_value = json_str(json_at_path(subject->object, field->path));
    return true;
}

static int check_fields(struct api_call *call, struct str text)
{
    struct str part;

    while (str_next(&text, ',', &part)) {
        size_t end = 0;

        while (end < part.len && part.at[end] != '=' && part.at[end] != '!')
            end++;

        struct str name = str_sub(part, 0, end);

        if (name.len > 0 && !find_field(call->kind, name))
            return api_refuse_bad_request(call,
                                          "\"" STR_FMT "\" is not a known field selector: only "
                                          "\"metadata.name\", \"metadata.namespace\"",
                                          STR_ARG(name));
    }
    return 0;
}

static struct str kept(struct arena *arena, struct str text)
{
    return (struct str){ arena_strndup(arena, text.at, text.len), text.len };
}

int api_select(struct api_call *call, struct arena *arena, struct api_selection *ret_selection)
{
    struct str labels = kept(arena, api_query(call, "labelSelector"));
    struct str by_field = kept(arena, api_query(call, "fieldSelector"));
    struct err why = { .class = 0 };
    int result;

    *ret_selection = (struct api_selection){ .kind = call->kind,
                                             .ns = arena_strdup(arena, call->ns),
                                             .narrow = labels.len > 0 || by_field.len > 0 };
    if (selector_parse(arena, labels, &ret_selection->labels, &why) < 0)
        return api_refuse_bad_request(call, "unable to parse requirement: %s", why.text);
    if ((result = check_fields(call, by_field)) < 0)
        return result;
    if (selector_fields_parse(arena, by_field, &ret_selection->fields, &why) < 0)
        return api_refuse_bad_request(call, "%s", why.text);
    return 0;
}

bool api_is_selected(const struct api_selection *selection, const struct json *object)
{
    const struct subject subject = { selection->kind, object };

    if (*selection->ns && !str_is(api_meta_str(object, "namespace"), selection->ns))
        return false;
    return selector_matches(selection->labels,
                            selector_labels(json_at(object, "metadata", "labels"))) &&
           selector_fields_match(selection->fields, (struct selector_subject){ look_up, &subject });
}
