/* patch.c - the differences between JSON trees, and carrying them out.
 *
 * Holds   apply(from, diff(from, to)) equals `to` when no object of `to` has a null member;
 *         a JSON patch never makes a tree deeper than JSON_MAX_DEPTH. */
#include "codec/patch.h"

#include <assert.h>

/* ---- merge patches (RFC 7386) ---- */

/* What the patch leaves of the target's members, in their order. Of equal keys the last counts. */
static void merge_old_members(struct json_build *build, const struct json_index *in_target,
                              const struct json_index *in_patch, struct json_mut *result)
{
    struct json_iter iter = json_iter(in_target->object);
    const struct json *value, *change;
    struct str key;

    while (json_next_member(&iter, &key, &value)) {
        if (json_index_get(in_target, key) != value)
            continue;
        change = json_index_get(in_patch, key);
        if (!json_is_null(change))
            json_append(build, result, key, patch_merge_apply(build, value, change));
    }
}

static void merge_new_members(struct json_build *build, const struct json_index *in_target,
                              const struct json_index *in_patch, struct json_mut *result)
{
    struct json_iter iter = json_iter(in_patch->object);
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value)) {
        if (json_index_get(in_patch, key) != value)
            continue;
        if (!json_is_null(value) && !json_index_get(in_target, key))
            json_append(build, result, key, patch_merge_apply(build, NULL, value));
    }
}

struct json_mut *patch_merge_apply(struct json_build *build, const struct json *target,
                                   const struct json *patch)
{
    auto_json_index struct json_index in_target = { 0 }, in_patch = { 0 };
    struct json_mut *result;

    if (!patch)
        return json_copy(build, target);
    if (!json_is_object(patch))
        return json_copy(build, patch);
    json_index_init(&in_target, target);
    json_index_init(&in_patch, patch);
    result = json_new_object(build);
    merge_old_members(build, &in_target, &in_patch, result);
    merge_new_members(build, &in_target, &in_patch, result);
    return result;
}

static void put_change(struct json_build *build, struct json_mut **patch, struct str key,
                       struct json_mut *change)
{
    if (!*patch)
        *patch = json_new_object(build);
    json_append(build, *patch, key, change);
}

static void diff_wanted_members(struct json_build *build, const struct json_index *in_from,
                                const struct json_index *in_to, struct json_mut **patch)
{
    struct json_iter iter = json_iter(in_to->object);
    const struct json *value, *old;
    struct json_mut *change;
    struct str key;

    while (json_next_member(&iter, &key, &value)) {
        if (json_index_get(in_to, key) != value || json_is_null(value))
            continue;
        old = json_index_get(in_from, key);
        change = old ? patch_merge_diff(build, old, value) : json_copy(build, value);
        if (change)
            put_change(build, patch, key, change);
    }
}

static void diff_unwanted_members(struct json_build *build, const struct json_index *in_from,
                                  const struct json_index *in_to, struct json_mut **patch)
{
    struct json_iter iter = json_iter(in_from->object);
    const struct json *old, *wanted;
    struct str key;

    while (json_next_member(&iter, &key, &old)) {
        if (json_index_get(in_from, key) != old)
            continue;
        wanted = json_index_get(in_to, key);
        if (!wanted || (json_is_null(wanted) && !json_is_null(old)))
            put_change(build, patch, key, json_new_null(build));
    }
}

struct json_mut *patch_merge_diff(struct json_build *build, const struct json *from,
                                  const struct json *to)
{
    auto_json_index struct json_index in_from = { 0 }, in_to = { 0 };
    struct json_mut *patch = NULL;

    if (!json_is_object(from) || !json_is_object(to))
        return json_equal(from, to) ? NULL : json_copy(build, to);
    json_index_init(&in_from, from);
    json_index_init(&in_to, to);
    diff_wanted_members(build, &in_from, &in_to, &patch);
    diff_unwanted_members(build, &in_from, &in_to, &patch);
    return patch;
}

/* ---- JSON pointers (RFC 6901) ---- */

void patch_pointer_add(struct buf *pointer, struct str key)
{
    buf_add_char(pointer, '/');
    for (size_t i = 0; i < key.len; i++) {
        if (key.at[i] == '~')
            buf_add_text(pointer, "~0");
        else if (key.at[i] == '/')
            buf_add_text(pointer, "~1");
        else
            buf_add_char(pointer, key.at[i]);
    }
}

/* The key that a part of a pointer spells; false when a '~' is not followed by 0 or 1. */
static bool unescape(struct str part, struct buf *out)
{
    buf_clear(out);
    for (size_t i = 0; i < part.len; i++) {
        if (part.at[i] != '~') {
            buf_add_char(out, part.at[i]);
            continue;
        }
        if (++i == part.len || (part.at[i] != '0' && part.at[i] != '1'))
            return false;
        buf_add_char(out, part.at[i] == '0' ? '~' : '/');
    }
    return true;
}

/* An index into an array: digits without leading zeros, below `end`. */
static bool read_index(struct str text, size_t end, size_t *ret_index)
{
    uint64_t index;

    if (end == 0 || (text.len > 1 && text.at[0] == '0'))
        return false;
    if (str_to_u64(text, 0, end - 1, &index, NULL) < 0)
        return false;
    *ret_index = (size_t)index;
    return true;
}

/* ---- JSON patches (RFC 6902) ---- */

enum op { OP_TEST, OP_ADD, OP_REMOVE, OP_REPLACE };

struct step {
    struct json_build *build;
    enum op op;
    struct str path;
    const struct json *value; /* NULL for remove */

    struct json_mut *parent; /* NULL when the path is the root */
    struct buf key;          /* in the parent */
    unsigned depth;          /* containers around the place */
};

static struct json_mut *child_of(const struct json_mut *parent, struct str key)
{
    size_t index;

    if (json_mut_type(parent) == JSON_OBJECT)
        return json_mut_get(parent, key);
    if (json_mut_type(parent) == JSON_ARRAY && read_index(key, json_mut_len(parent), &index))
        return json_mut_item(parent, index);
    return NULL;
}

/* Finds the container of the place that the path names, and the key in it. */
static int find_place(struct step *step, struct json_mut *root, struct err *err)
{
    struct str rest = step->path, part;
    struct json_mut *at = root;

    if (rest.len == 0)
        return 0;
    if (rest.at[0] != '/')
        return err_set(err, ERR_INVALID, "a path begins with '/'");
    rest = str_sub(rest, 1, rest.len);
    while (str_next(&rest, '/', &part)) {
        if (step->depth > 0)
            at = child_of(at, buf_str(&step->key));
        if (json_mut_type(at) != JSON_OBJECT && json_mut_type(at) != JSON_ARRAY)
            return err_set(err, ERR_INVALID, "there is nothing at level %u of the path",
                           step->depth);
        if (!unescape(part, &step->key))
            return err_set(err, ERR_INVALID, "'~' must be followed by 0 or 1");
        step->depth++;
        step->parent = at;
    }
    return 0;
}

static int add_to_array(struct step *step, struct err *err)
{
    size_t length = json_mut_len(step->parent), index = length;

    if (!str_is(buf_str(&step->key), "-") && !read_index(buf_str(&step->key), length + 1, &index))
        return err_set(err, ERR_INVALID, "the array has no place \"%s\"", buf_text(&step->key));
    json_insert(step->parent, index, json_copy(step->build, step->value));
    return 0;
}

static int add(struct step *step, struct json_mut **root, struct err *err)
{
    if (!step->parent) {
        *root = json_copy(step->build, step->value);
        return 0;
    }
    if (json_mut_type(step->parent) == JSON_ARRAY)
        return add_to_array(step, err);
    json_put_key(step->build, step->parent, buf_str(&step->key),
                 json_copy(step->build, step->value));
    return 0;
}

/* The index in the parent, an array where carry_out has found the place. */
static size_t index_found(const struct step *step)
{
    size_t index = 0;
    bool found = read_index(buf_str(&step->key), json_mut_len(step->parent), &index);

    assert(found);
    return index;
}

static int replace(struct step *step, struct json_mut **root, struct err *err)
{
    if (!step->parent || json_mut_type(step->parent) != JSON_ARRAY)
        return add(step, root, err);
    json_replace_item(step->parent, index_found(step), json_copy(step->build, step->value));
    return 0;
}

static int take_out(struct step *step, struct err *err)
{
    if (!step->parent)
        return err_set(err, ERR_INVALID, "the root cannot be removed");
    if (json_mut_type(step->parent) == JSON_OBJECT) {
        json_remove(step->parent, buf_str(&step->key));
        return 0;
    }
    json_remove_item(step->parent, index_found(step));
    return 0;
}

static int test(const struct step *step, const struct json_mut *found, struct err *err)
{
    auto_json_doc struct json_doc *frozen = json_freeze(found);

    if (!json_equal(json_root(frozen), step->value))
        return err_set(err, ERR_CONFLICT, "the value is another one");
    return 0;
}

static int carry_out(struct step *step, struct json_mut **root, struct err *err)
{
    struct json_mut *found = *root;
    int rc = find_place(step, *root, err);

    if (rc < 0)
        return rc;
    if (step->depth + json_depth(step->value) > JSON_MAX_DEPTH)
        return err_set(err, ERR_TOO_BIG, "nested deeper than %d levels", JSON_MAX_DEPTH);
    if (step->parent)
        found = child_of(step->parent, buf_str(&step->key));
    if (!found && step->op != OP_ADD)
        return err_set(err, ERR_INVALID, "there is no such place");
    switch (step->op) {
    case OP_TEST:
        return test(step, found, err);
    case OP_ADD:
        return add(step, root, err);
    case OP_REMOVE:
        return take_out(step, err);
    case OP_REPLACE:
        return replace(step, root, err);
    }
    return err_set(err, ERR_BUG, "no operation %d", (int)step->op);
}

static int read_op(const struct json *object, struct step *step, struct err *err)
{
    static const char *const names[] = {
        [OP_TEST] = "test", [OP_ADD] = "add", [OP_REMOVE] = "remove", [OP_REPLACE] = "replace"
    };
    struct str name;
    size_t op = 0;
    int rc = json_want_str(object, "op", &name, err);

    if (rc == 0)
        rc = json_want_str(object, "path", &step->path, err);
    if (rc < 0)
        return rc;
    while (op < sizeof(names) / sizeof(names[0]) && !str_is(name, names[op]))
        op++;
    if (op == sizeof(names) / sizeof(names[0]))
        return err_set(err, ERR_INVALID, "operation \"" STR_FMT "\" is not known", STR_ARG(name));
    step->op = (enum op)op;
    step->value = step->op == OP_REMOVE ? NULL : json_get(object, "value");
    if (step->op != OP_REMOVE && !step->value)
        return err_set(err, ERR_INVALID, "\"value\" is missing");
    return 0;
}

static int apply_op(struct json_build *build, const struct json *object, size_t number,
                    struct json_mut **root, struct err *err)
{
    struct step step = { .build = build, .path = STR("") };
    int rc = read_op(object, &step, err);

    if (rc == 0) {
        buf_init(&step.key, step.path.len);
        rc = carry_out(&step, root, err);
        buf_done(&step.key);
    }
    if (rc < 0)
        (void)err_wrap(err, "JSON patch, operation %zu, path \"" STR_FMT "\"", number,
                       STR_ARG(step.path));
    return rc;
}

int patch_json_apply(struct json_build *build, const struct json *target, const struct json *ops,
                     struct json_mut **ret_value, struct err *err)
{
    struct json_iter iter = json_iter(ops);
    struct json_mut *root;
    const struct json *op;
    size_t number = 0;

    if (!json_is_array(ops))
        return err_set(err, ERR_INVALID, "a JSON patch is an array");
    if (json_len(ops) > PATCH_MAX_OPS)
        return err_set(err, ERR_TOO_BIG, "a JSON patch of %zu operations, at most %d are taken",
                       json_len(ops), PATCH_MAX_OPS);
    root = json_copy(build, target);
    while (json_next_item(&iter, &op)) {
        int rc = apply_op(build, op, number++, &root, err);

        if (rc < 0)
            return rc;
    }
    *ret_value = root;
    return 0;
}

void patch_op(struct json_build *build, struct json_mut *ops, const char *op, struct str path,
              struct json_mut *value)
{
    struct json_mut *object = json_new_object(build);

    json_put_text(build, object, "op", op);
    json_put_str(build, object, "path", path);
    if (value)
        json_put(build, object, "value", value);
    json_push(ops, object);
}

void patch_append(struct json_build *build, struct json_mut *ops, struct str path, size_t count,
                  struct json_mut *item)
{
    auto_buf struct buf end = { .max = path.len + sizeof("/-") };
    struct json_mut *list;

    if (count > 0) {
        buf_printf(&end, STR_FMT "/-", STR_ARG(path));
        patch_op(build, ops, "add", buf_str(&end), item);
        return;
    }
    list = json_new_array(build);
    json_push(list, item);
    patch_op(build, ops, "add", path, list);
}
