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

/* "name=value", "name==value" or "name!=value". Nobody selects by a value that needs an escape. */
static int add_rule(struct api_call *call, struct str text, struct api_selection *selection)
{
    struct api_field_rule rule = { .equal = true };

    if (!str_cut(text, '=', &rule.name, &rule.value) || memchr(text.at, '\\', text.len) ||
        selection->field_count == API_MAX_FIELD_RULES)
        return api_refuse_bad_request(call, "invalid selector: '" STR_FMT "'", STR_ARG(text));
    if (rule.name.len > 0 && rule.name.at[rule.name.len - 1] == '!') {
        rule.equal = false;
        rule.name.len--;
    } else if (rule.value.len > 0 && rule.value.at[0] == '=') {
        rule.value = str_sub(rule.value, 1, rule.value.len);
    }
    if (!find_field(call->kind, rule.name))
        return api_refuse_bad_request(call,
                                      "\"" STR_FMT "\" is not a known field selector: only "
                                      "\"metadata.name\", \"metadata.namespace\"",
                                      STR_ARG(rule.name));
    selection->fields[selection->field_count++] = rule;
    return 0;
}

static int parse_fields(struct api_call *call, struct str text, struct api_selection *selection)
{
    struct str part;
    int result = 0;

    while (result == 0 && str_next(&text, ',', &part))
        if (part.len > 0)
            result = add_rule(call, part, selection);
    return result;
}

static bool has_fields(const struct api_selection *selection, const struct json *object)
{
    for (size_t i = 0; i < selection->field_count; i++) {
        const struct api_field_rule *rule = &selection->fields[i];
        const struct field *field = find_field(selection->kind, rule->name);

        if (str_eq(json_str(json_at_path(object, field->path)), rule->value) != rule->equal)
            return false;
    }
    return true;
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

    *ret_selection = (struct api_selection){ .kind = call->kind,
                                             .ns = arena_strdup(arena, call->ns),
                                             .narrow = labels.len > 0 || by_field.len > 0 };
    if (selector_parse(arena, labels, &ret_selection->labels, &why) < 0)
        return api_refuse_bad_request(call, "unable to parse requirement: %s", why.text);
    return parse_fields(call, by_field, ret_selection);
}

bool api_is_selected(const struct api_selection *selection, const struct json *object)
{
    if (*selection->ns && !str_is(api_meta_str(object, "namespace"), selection->ns))
        return false;
    return selector_matches(selection->labels,
                            selector_labels(json_at(object, "metadata", "labels"))) &&
           has_fields(selection, object);
}
