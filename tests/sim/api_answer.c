/* api_answer.c - what the server says when things go well. */
#include "api_private.h"

void api_write_api_version(struct buf *out, const struct api_kind *kind)
{
    if (*kind->group)
        buf_printf(out, "%s/", kind->group);
    buf_add_text(out, kind->version);
}

void api_answer_object(struct api_call *call, int status, const struct json *object)
{
    call->answer->status = status;
    json_write(object, &call->answer->body);
}

void api_answer_done_status(struct api_call *call, int status)
{
    call->answer->status = status;
    buf_printf(&call->answer->body,
               "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\","
               "\"code\":%d}",
               status);
}

void api_answer_deleted(struct api_call *call, const char *name, struct str uid)
{
    struct json_mut *root = json_new_object(call->build);

    call->answer->status = 200;
    json_put_text(call->build, root, "kind", "Status");
    json_put_text(call->build, root, "apiVersion", "v1");
    json_put_object(call->build, root, "metadata");
    json_put_text(call->build, root, "status", "Success");

    struct json_mut *details = json_put_object(call->build, root, "details");

    json_put_text(call->build, details, "name", name);
    if (*call->kind->group)
        json_put_text(call->build, details, "group", call->kind->group);
    json_put_text(call->build, details, "kind", call->kind->plural);
    json_put_str(call->build, details, "uid", uid);
    json_mut_write(root, &call->answer->body);
}

/* ---- discovery ---- */

static void put_resource(struct api_call *call, struct json_mut *list, const struct api_kind *kind,
                         const char *subresource)
{
    static const char *const words[] = { "create", "delete", "get",  "list",
                                         "patch",  "update", "watch" };
    struct json_mut *resource = json_new_object(call->build), *verbs;

    json_put_text(call->build, resource, "name",
                  arena_printf(call->arena, "%s%s", kind->plural, subresource));
    json_put_text(call->build, resource, "singularName", "");
    json_put_bool(call->build, resource, "namespaced", kind->traits & API_NAMESPACED);
    json_put_text(call->build, resource, "kind", kind->kind);
    verbs = json_put_array(call->build, resource, "verbs");
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        json_push_str(call->build, verbs, str_of(words[i]));
    json_push(list, resource);
}

int api_do_discover(struct api_call *call)
{
    struct json_mut *root = json_new_object(call->build), *list;

    json_put_text(call->build, root, "kind", "APIResourceList");
    json_put_text(call->build, root, "apiVersion", "v1");
    json_put_text(
        call->build, root, "groupVersion",
        arena_printf(call->arena, "%s%s%s", call->group, *call->group ? "/" : "", call->version));
    list = json_put_array(call->build, root, "resources");
    for (unsigned i = 0; i < call->store->table_count; i++) {
        const struct api_kind *kind = call->store->tables[i].kind;

        if (strcmp(kind->group, call->group) != 0 || strcmp(kind->version, call->version) != 0)
            continue;
        put_resource(call, list, kind, "");
        if (kind->traits & API_HAS_STATUS)
            put_resource(call, list, kind, "/status");
    }
    call->answer->status = 200;
    json_mut_write(root, &call->answer->body);
    return 0;
}
