/* podmerge.c - the rules of podmerge.h, list by list. */
#include "codec/podmerge.h"

#include <stdio.h>

enum { MAX_PATH = 200, MAX_ITEMS = 1024 };

enum list_rule {
    LIST_REPLACE, /* the user's list */
    LIST_APPEND,  /* ours, then the user's; what is there already is not added again */
    LIST_BY_KEY,  /* items of one key merge */
    LIST_WHOLE,   /* by key too, but the user's item replaces ours: a source excludes another */
};

static const struct list_row {
    const char *name; /* of the list */
    enum list_rule rule;
    const char *key; /* of an item */
} list_rows[] = {
    { "args", LIST_APPEND, NULL },
    { "containers", LIST_APPEND, NULL },
    { "initContainers", LIST_APPEND, NULL },
    { "tolerations", LIST_APPEND, NULL },
    { "searches", LIST_APPEND, NULL },
    { "requiredDuringSchedulingIgnoredDuringExecution", LIST_APPEND, NULL },
    { "env", LIST_WHOLE, "name" },
    { "volumes", LIST_WHOLE, "name" },
    { "ports", LIST_BY_KEY, "containerPort" },
    { "volumeMounts", LIST_BY_KEY, "mountPath" },
    { "volumeDevices", LIST_BY_KEY, "devicePath" },
    { "imagePullSecrets", LIST_BY_KEY, "name" },
    { "hostAliases", LIST_BY_KEY, "ip" },
    { "topologySpreadConstraints", LIST_BY_KEY, "topologyKey" },
    { "resourceClaims", LIST_BY_KEY, "name" },
    { "schedulingGates", LIST_BY_KEY, "name" },
    { "ephemeralContainers", LIST_BY_KEY, "name" },
};

static const char *const probe_names[] = { "startupProbe", "livenessProbe", "readinessProbe" };
static const char *const handler_names[] = { "exec", "httpGet", "tcpSocket", "grpc" };

struct merge {
    struct json_build *build;
    char path[MAX_PATH];
    size_t length;
    struct err *err;
};

static int merge_value(struct merge *merge, const char *key, const struct json *ours,
                       const struct json *users, struct json_mut **ret_value);

/* ---- paths, for errors ---- */

static size_t enter(struct merge *merge, const char *dot, struct str name)
{
    size_t before = merge->length;
    int written = snprintf(merge->path + before, MAX_PATH - before, "%s" STR_FMT,
                           before > 0 ? dot : "", STR_ARG(name));

    if (written > 0 && before + (size_t)written < MAX_PATH)
        merge->length = before + (size_t)written;
    return before;
}

static size_t enter_item(struct merge *merge, size_t index)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "[%zu]", index);
    return enter(merge, "", str_of(text));
}

static void leave(struct merge *merge, size_t before)
{
    merge->length = before;
    merge->path[before] = '\0';
}

static int refuse_type(struct merge *merge, const char *wanted, const struct json *found)
{
    return err_set(merge->err, ERR_INVALID, "%s: wants %s, found %s", merge->path, wanted,
                   json_type_name(json_type(found)));
}

/* ---- what counts as given ---- */

bool json_is_given(const struct json *value)
{
    if (json_is_string(value))
        return json_str(value).len > 0;
    if (json_is_array(value) || json_is_object(value))
        return json_len(value) > 0;
    return json_exists(value);
}

/* The user's object without members that count as not given. Items of lists stay as they are: an
 * `emptyDir: {}` there means something. NULL when nothing is left. */
static struct json_mut *copy_given(struct merge *merge, const struct json *users)
{
    struct json_iter iter = json_iter(users);
    const struct json *value;
    struct json_mut *object, *copy;
    struct str key;

    if (!json_is_object(users))
        return json_copy(merge->build, users);
    object = json_new_object(merge->build);
    while (json_next_member(&iter, &key, &value))
        if (json_is_given(value) && (copy = copy_given(merge, value)))
            json_put_key(merge->build, object, key, copy);
    return json_mut_len(object) > 0 ? object : NULL;
}

static bool is_in(const char *key, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], key) == 0)
            return true;
    return false;
}

/* ---- objects ---- */

/* A probe has one handler: the user's, if there is one, takes the place of ours. */
static bool loses_handler(const char *probe, struct str member, const struct json *users)
{
    if (!probe || !is_in(probe, probe_names, sizeof(probe_names) / sizeof(probe_names[0])))
        return false;
    if (!is_in(member.at, handler_names, sizeof(handler_names) / sizeof(handler_names[0])))
        return false;
    for (size_t i = 0; i < sizeof(handler_names) / sizeof(handler_names[0]); i++)
        if (json_is_given(json_get(users, handler_names[i])))
            return !json_is_given(json_get_str(users, member));
    return false;
}

static int merge_member(struct merge *merge, struct json_mut *into, struct str key,
                        const struct json *ours, const struct json *users)
{
    size_t before = enter(merge, ".", key);
    struct json_mut *value = NULL;
    int result = merge_value(merge, key.at, ours, users, &value);

    leave(merge, before);
    if (result == 0 && value)
        json_put_key(merge->build, into, key, value);
    return result;
}

static int merge_object(struct merge *merge, const char *name, const struct json *ours,
                        const struct json *users, struct json_mut **ret_value)
{
    struct json_mut *object = json_new_object(merge->build);
    struct json_iter iter = json_iter(ours);
    const struct json *value;
    struct str key;
    int result;

    if (!json_is_object(users))
        return refuse_type(merge, "object", users);
    while (json_next_member(&iter, &key, &value)) {
        if (loses_handler(name, key, users))
            continue;
        if ((result = merge_member(merge, object, key, value, json_get_str(users, key))) < 0)
            return result;
    }
    iter = json_iter(users);
    while (json_next_member(&iter, &key, &value)) {
        if (json_get_str(ours, key))
            continue;
        if ((result = merge_member(merge, object, key, NULL, value)) < 0)
            return result;
    }
    *ret_value = object;
    return 0;
}

/* ---- lists ---- */

static const struct list_row *row_of(const char *key)
{
    for (size_t i = 0; key && i < sizeof(list_rows) / sizeof(list_rows[0]); i++)
        if (strcmp(list_rows[i].name, key) == 0)
            return &list_rows[i];
    return NULL;
}

static bool has_item(const struct json *list, const struct json *wanted)
{
    struct json_iter iter = json_iter(list);
    const struct json *item;

    while (json_next_item(&iter, &item))
        if (json_equal(item, wanted))
            return true;
    return false;
}

/* Arguments may come twice and mean it; of a set (tolerations, terms) one is enough. */
static struct json_mut *append_list(struct merge *merge, const char *name, const struct json *ours,
                                    const struct json *users)
{
    struct json_mut *list = json_copy(merge->build, ours);
    bool is_set = strcmp(name, "args") != 0;
    struct json_iter iter = json_iter(users);
    const struct json *item;

    while (json_next_item(&iter, &item))
        if (!is_set || !has_item(ours, item))
            json_push(list, json_copy(merge->build, item));
    return list;
}

struct keyed { /* a list as an array of items and their keys */
    const struct json *items[MAX_ITEMS];
    const struct json *keys[MAX_ITEMS];
    size_t count;
};

static int read_keyed(struct merge *merge, const struct json *list, const char *key,
                      struct keyed *ret_keyed)
{
    struct json_iter iter = json_iter(list);
    const struct json *item;

    ret_keyed->count = 0;
    while (json_next_item(&iter, &item)) {
        size_t before = enter_item(merge, ret_keyed->count);

        if (ret_keyed->count == MAX_ITEMS)
            return err_set(merge->err, ERR_TOO_BIG, "%s: more than %d items", merge->path,
                           MAX_ITEMS);
        if (!json_is_object(item))
            return refuse_type(merge, "object", item);
        if (!json_exists(json_get(item, key)))
            return err_set(merge->err, ERR_INVALID, "%s: %s is missing", merge->path, key);
        ret_keyed->items[ret_keyed->count] = item;
        ret_keyed->keys[ret_keyed->count++] = json_get(item, key);
        leave(merge, before);
    }
    return 0;
}

static const size_t nowhere = (size_t)-1;

static size_t place_of(const struct keyed *keyed, const struct json *key)
{
    for (size_t i = 0; i < keyed->count; i++)
        if (json_equal(keyed->keys[i], key))
            return i;
    return nowhere;
}

static int push_users(struct merge *merge, const struct list_row *row, const struct keyed *ours,
                      const struct keyed *users, size_t at, struct json_mut *into)
{
    size_t base = place_of(ours, users->keys[at]);
    size_t before = enter_item(merge, at);
    struct json_mut *item = NULL;
    int result = 0;

    if (base == nowhere || row->rule == LIST_WHOLE)
        item = json_copy(merge->build, users->items[at]);
    else
        result = merge_object(merge, NULL, ours->items[base], users->items[at], &item);
    leave(merge, before);
    if (result == 0)
        json_push(into, item);
    return result;
}

/* Two pointers: one over the entries of ours that the user does not name, one over the user's. */
static int merge_keyed(struct merge *merge, const struct list_row *row, const struct json *ours,
                       const struct json *users, struct json_mut **ret_value)
{
    struct keyed base, user;
    struct json_mut *list = json_new_array(merge->build);
    size_t left = 0, right = 0;
    int result;

    if ((result = read_keyed(merge, ours, row->key, &base)) < 0 ||
        (result = read_keyed(merge, users, row->key, &user)) < 0)
        return result;
    while (left < base.count || right < user.count) {
        if (left < base.count && place_of(&user, base.keys[left]) != nowhere) {
            left++; /* comes with the user's */
            continue;
        }
        size_t in_base = right < user.count ? place_of(&base, user.keys[right]) : nowhere;

        if (left < base.count && (right == user.count || (in_base != nowhere && left < in_base)))
            json_push(list, json_copy(merge->build, base.items[left++]));
        else if (right < user.count &&
                 (result = push_users(merge, row, &base, &user, right++, list)) < 0)
            return result;
    }
    *ret_value = list;
    return 0;
}

static int merge_list(struct merge *merge, const char *key, const struct json *ours,
                      const struct json *users, struct json_mut **ret_value)
{
    const struct list_row *row = row_of(key);

    if (!json_is_array(users))
        return refuse_type(merge, "array", users);
    if (!row || row->rule == LIST_REPLACE)
        *ret_value = json_copy(merge->build, users);
    else if (row->rule == LIST_APPEND)
        *ret_value = append_list(merge, key, ours, users);
    else
        return merge_keyed(merge, row, ours, users, ret_value);
    return 0;
}

/* ---- values ---- */

/* Ports and thresholds may be a number or a name; nothing else changes its type. */
static bool may_be_either(const char *key)
{
    return key && (strcmp(key, "port") == 0 || strcmp(key, "targetPort") == 0);
}

static int merge_value(struct merge *merge, const char *key, const struct json *ours,
                       const struct json *users, struct json_mut **ret_value)
{
    const struct list_row *row = row_of(key);

    if (!json_is_given(users)) {
        *ret_value = ours ? json_copy(merge->build, ours) : NULL;
        return 0;
    }
    if (!json_exists(ours)) {
        if (row && !json_is_array(users))
            return refuse_type(merge, "array", users);
        *ret_value = copy_given(merge, users);
        return 0;
    }
    if (json_is_object(ours))
        return merge_object(merge, key, ours, users, ret_value);
    if (json_is_array(ours))
        return merge_list(merge, key, ours, users, ret_value);
    if (json_type(ours) != json_type(users) && !may_be_either(key))
        return refuse_type(merge, json_type_name(json_type(ours)), users);
    *ret_value = json_copy(merge->build, users);
    return 0;
}

int podmerge(struct json_build *build, const struct json *ours, const struct json *users,
             struct json_mut **ret_merged, struct err *err)
{
    struct merge merge = { .build = build, .err = err };

    *ret_merged = NULL;
    if (json_exists(users) && !json_is_object(users))
        return err_set(err, ERR_INVALID, "wants object, found %s",
                       json_type_name(json_type(users)));
    return merge_value(&merge, NULL, ours, users, ret_merged);
}
