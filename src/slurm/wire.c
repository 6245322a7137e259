/* wire.c - a request as slurmrestd wants it on the wire, and its answer read.
 *
 * Holds: a token goes into a header that is marked secret, and nowhere else. */
#include "slurm/client_private.h"

static void add_header(struct http_request *http, const char *name, const char *value, bool secret)
{
    http->headers[http->header_count++] = (struct http_header){ name, value, secret };
}

int slurm_wire_headers(struct slurm_client *client, const char *user, int64_t token_s,
                       bool to_agent, struct http_request *http, struct err *err)
{
    struct str token = STR("");
    int result = to_agent      ? 0
                 : token_s > 0 ? slurm_token_get_short(client->token, token_s, &token, err)
                               : slurm_token_get(client->token, &token, err);

    if (result < 0) {
        err_wrap(err, "token");
        if (err)
            err->class = ERR_DENIED;
        return -ERR_DENIED;
    }
    add_header(http, "Accept", "application/json", false);
    if (!to_agent)
        add_header(http, "X-SLURM-USER-TOKEN", token.at, true);
    if (user && user[0])
        add_header(http, "X-SLURM-USER-NAME", user, false);
    if (http->body.len > 0)
        add_header(http, "Content-Type", "application/json", false);
    return 0;
}

void slurm_wire_path(struct buf *path, unsigned version, enum slurm_endpoint endpoint,
                     const char *name, const char *query)
{
    const struct slurm_endpoint_row *row = slurm_endpoint(endpoint);

    if (row->agent_only)
        buf_add_text(path, "/agent/v1/");
    else
        buf_printf(path, "/%s/v0.0.%u/", row->db ? "slurmdb" : "slurm", version);
    buf_printf(path, "%s%s%s%s%s", row->path, name, row->after ? row->after : "",
               query[0] ? "?" : "", query);
}

void slurm_wire_read(enum slurm_verb verb, enum slurm_endpoint endpoint,
                     const struct http_answer *http, struct json_doc **ret_doc,
                     struct slurm_error *ret_error)
{
    struct slurm_reply reply = { .verb = verb,
                                 .endpoint = endpoint,
                                 .status = http->status,
                                 .content_type = http->content_type,
                                 .raw = http->body };

    *ret_doc = NULL;
    if (http->body.len > 0) /* what cannot be parsed is classified as that */
        json_parse(http->body, http->body.len, ret_doc, NULL);
    reply.body = json_root(*ret_doc);
    slurm_classify(&reply, ret_error);
}
