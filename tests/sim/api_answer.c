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
