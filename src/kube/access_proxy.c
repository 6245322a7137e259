/* access_proxy.c - what kube-system/extension-apiserver-authentication says about the front proxy,
 * and the user that its headers name. Does no I/O. */
#include "kube/access.h"

#include "base/mem.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { MAX_LIST = 64 * 1024, MAX_KEY = 256 };

/* The value of a key is a JSON array as text. */
static int read_list(const struct json *data, const char *key, struct json_doc **ret_doc,
                     const struct json **ret_list, struct err *err)
{
    struct str text = json_str(json_get(data, key));

    *ret_list = NULL;
    if (text.len == 0)
        return 0;
    if (json_parse(text, MAX_LIST, ret_doc, err) < 0)
        return err_wrap(err, "%s", key);
    *ret_list = json_root(*ret_doc);
    return 0;
}

int access_read_proxy(const struct json *data, struct json_doc *docs[5],
                      struct access_proxy *ret_proxy, struct err *err)
{
    struct access_proxy proxy = { .ca = json_str(json_get(data, "requestheader-client-ca-file")) };
    int result;

    if ((result = read_list(data, "requestheader-allowed-names", &docs[0], &proxy.names, err)) <
            0 ||
        (result = read_list(data, "requestheader-username-headers", &docs[1], &proxy.users, err)) <
            0 ||
        (result = read_list(data, "requestheader-group-headers", &docs[2], &proxy.groups, err)) <
            0 ||
        (result = read_list(data, "requestheader-uid-headers", &docs[3], &proxy.uids, err)) < 0 ||
        (result = read_list(data, "requestheader-extra-headers-prefix", &docs[4], &proxy.extras,
                            err)) < 0)
        return result;
    if (proxy.ca.len == 0 || json_len(proxy.users) == 0)
        return err_set(err, ERR_INVALID, "there is no CA of the front proxy");
    *ret_proxy = proxy;
    return 0;
}

static bool is_one_of(const struct json *names, const char *header)
{
    struct json_iter iter = json_iter(names);
    const struct json *name;

    while (json_next_item(&iter, &name))
        if (strcasecmp(json_str(name).at, header) == 0)
            return true;
    return false;
}

/* The key behind the prefix: in lower case, with escapes taken out. */
static bool read_key(const char *text, char ret_key[MAX_KEY])
{
    size_t used = 0;

    for (; *text; text++) {
        int high = text[0] == '%' && text[1] ? str_hex_digit(text[1]) : -1;
        int low = high >= 0 && text[2] ? str_hex_digit(text[2]) : -1;
        char c = *text;

        if (low >= 0) {
            c = (char)(high * 16 + low);
            text += 2;
        }
        if (used + 1 >= MAX_KEY || !c)
            return false;
        ret_key[used++] = (char)tolower((unsigned char)c);
    }
    ret_key[used] = '\0';
    return used > 0;
}

static void take_extra(struct access_user *user, const char *rest, const char *value)
{
    struct json_mut *list;
    char key[MAX_KEY];

    if (!read_key(rest, key))
        return;
    if (!user->extra_build) {
        user->extra_build = json_build_new();
        user->extra = json_new_object(user->extra_build);
    }
    list = json_mut_get(user->extra, str_of(key));
    if (!list)
        list = json_put_array(user->extra_build, user->extra, key);
    json_push_str(user->extra_build, list, str_of(value));
}

void access_take_header(const struct access_proxy *proxy, struct access_user *user,
                        struct arena *arena, const char *name, const char *value)
{
    struct json_iter iter = json_iter(proxy->extras);
    const struct json *prefix;

    if (is_one_of(proxy->users, name) && !user->name)
        user->name = arena_strdup(arena, value);
    if (is_one_of(proxy->uids, name) && !user->uid)
        user->uid = arena_strdup(arena, value);
    if (is_one_of(proxy->groups, name)) {
        if (user->group_count == KUBE_REVIEW_MAX_GROUPS)
            user->is_too_much = true;
        else
            user->groups[user->group_count++] = str_of(arena_strdup(arena, value));
    }
    while (json_next_item(&iter, &prefix)) {
        struct str text = json_str(prefix);

        if (text.len > 0 && strncasecmp(text.at, name, text.len) == 0)
            take_extra(user, name + text.len, value);
    }
}
