/* covers.c - compares what we want with what the API server has made of it. */
#include "codec/covers.h"

#include "codec/quantity.h"

static bool covers(const struct json *live, const struct json *wanted, bool in_quantities);

static bool is_zero_value(const struct json *value)
{
    struct json_iter iter = json_iter(value);
    const struct json *member;
    struct str key;

    switch (json_type(value)) {
    case JSON_ABSENT:
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return !json_bool_or(value, true);
    case JSON_NUMBER:
        return json_i64_or(value, 1) == 0;
    case JSON_STRING:
        return json_str(value).len == 0;
    case JSON_ARRAY:
        return json_len(value) == 0;
    case JSON_OBJECT:
        while (json_next_member(&iter, &key, &member))
            if (!is_zero_value(member))
                return false;
        return true;
    }
    return false;
}

/* The server rewrites quantities in their canonical form. */
static bool same_quantity(const struct json *live, const struct json *wanted)
{
    struct quantity left, right;

    return quantity_from_json(live, &left, NULL) == 0 &&
           quantity_from_json(wanted, &right, NULL) == 0 && quantity_cmp(&left, &right) == 0;
}

static bool covers_array(const struct json *live, const struct json *wanted, bool in_quantities)
{
    struct json_iter in_live = json_iter(live), in_wanted = json_iter(wanted);
    const struct json *left, *right;

    if (!json_is_array(live) || json_len(live) != json_len(wanted))
        return false;
    while (json_next_item(&in_live, &left) && json_next_item(&in_wanted, &right))
        if (!covers(left, right, in_quantities))
            return false;
    return true;
}

static bool covers_object(const struct json *live, const struct json *wanted, bool in_quantities)
{
    struct json_iter iter = json_iter(wanted);
    const struct json *value;
    struct str key;

    if (!json_is_object(live))
        return false;
    while (json_next_member(&iter, &key, &value))
        if (!covers(json_get_str(live, key), value, in_quantities || quantity_is_name(key)))
            return false;
    return true;
}

static bool covers(const struct json *live, const struct json *wanted, bool in_quantities)
{
    if (!json_exists(live))
        return is_zero_value(wanted);
    switch (json_type(wanted)) {
    case JSON_OBJECT:
        return covers_object(live, wanted, in_quantities);
    case JSON_ARRAY:
        return covers_array(live, wanted, in_quantities);
    default:
        return json_equal(live, wanted) || (in_quantities && same_quantity(live, wanted));
    }
}

bool json_covers(const struct json *live, const struct json *wanted)
{
    return !wanted || covers(live, wanted, false);
}
