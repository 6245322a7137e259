/* spec.c - reads fields of custom resources, and prints the tables of them. */
#include "operator/spec.h"

#include "operator/kinds.h"

const struct json *spec_at(const struct json *spec, const char *path)
{
    struct str rest = str_of(path), member;

    while (str_next(&rest, '.', &member))
        spec = json_get_str(spec, member);
    return spec;
}

static const struct spec_field *field_at(const struct kube_object *object, const char *path)
{
    const struct spec_field *field = operator_fields_of(object->kind->resource->kind);

    while (field && field->path && strcmp(field->path, path) != 0)
        field++;
    return field;
}

int64_t spec_number(const struct kube_object *object, const char *path)
{
    const struct json *value = spec_at(operator_spec(object), path);
    const struct spec_field *field;
    uint64_t number = 0;

    if (json_is_bool(value))
        return json_bool_or(value, false);
    if (json_is_number(value))
        return json_i64_or(value, 0);
    field = field_at(object, path); /* or the end of the table, which says nothing */
    if (field && field->absent &&
        str_to_u64(str_of(field->absent), 0, INT32_MAX, &number, NULL) < 0)
        return strcmp(field->absent, "true") == 0;
    return (int64_t)number;
}

bool spec_flag(const struct kube_object *object, const char *path)
{
    return spec_number(object, path) != 0;
}

bool spec_is_absent(const struct spec_field *field, const struct json *value)
{
    auto_buf struct buf text = { .max = 1 << 10 };

    json_write(value, &text);
    return !json_exists(value) || (field->absent && strcmp(buf_text(&text), field->absent) == 0);
}

void spec_print(struct buf *out)
{
    static const char traits[] = "RFNWC"; /* in the order of enum spec_trait */

    for (size_t i = 0; i < operator_kind_count; i++)
        for (const struct spec_field *field = operator_kinds[i].fields; field && field->path;
             field++) {
            buf_printf(out, "%s\t%s\t%s\t%s\t", operator_kinds[i].kind->resource->plural,
                       field->path, field->type, field->absent ? field->absent : "");
            for (unsigned t = 0; traits[t]; t++)
                if (field->traits & (1U << t))
                    buf_add_char(out, traits[t]);
            buf_printf(out, "\t%s\n", field->words);
        }
}
