/* version.c - finds the newest version that the server has: by a ping at each path, newest first.
 *
 * An unknown version is a 404 in plain text, and a ping is answered even while slurmctld is away.
 *
 * Holds: one ping at a time; nothing is called back from inside slurm_version_ask. */
#include "slurm/client_private.h"

#include <stdio.h>

static void ask(struct slurm_client *client, unsigned version);

static void version_failed(struct slurm_client *client, struct slurm_error *error)
{
    error->nothing_done = error->unsent = true; /* of the calls that waited for it */
    if (error->class == SLURM_UNKNOWN)
        error->class = SLURM_UNAVAILABLE;
    slurm_version_settled(client, error);
}

static void on_ping_answered(void *context, const struct http_answer *http)
{
    struct slurm_client *client = context;
    auto_json_doc struct json_doc *doc = NULL;
    struct slurm_error error;

    client->ping = NULL;
    slurm_wire_read(SLURM_GET, SLURM_PING, http, &doc, &error);
    if (error.class == SLURM_DONE) {
        client->version = client->asked;
        slurm_version_settled(client, NULL);
    } else if (error.class == SLURM_NOT_SUPPORTED && client->asked > SLURM_VERSION_MIN) {
        ask(client, client->asked - 1);
    } else {
        if (error.class == SLURM_NOT_SUPPORTED)
            snprintf(error.text, sizeof(error.text), "the server has none of v0.0.%d to v0.0.%d",
                     SLURM_VERSION_MIN, SLURM_VERSION_MAX);
        version_failed(client, &error);
    }
}

static void on_ping_failed(void *context, const struct err *why)
{
    struct slurm_client *client = context;
    struct slurm_error error;

    client->ping = NULL;
    slurm_classify_failure(SLURM_GET, SLURM_PING, why, &error);
    version_failed(client, &error);
}

static void ask(struct slurm_client *client, unsigned version)
{
    struct http_request http = { .method = "GET",
                                 .deadline_us =
                                     loop_now_us(client->loop) + client->options.try_timeout_us,
                                 .max_answer = slurm_endpoint(SLURM_PING)->max_answer };
    struct http_handlers handlers = { .answered = on_ping_answered,
                                      .failed = on_ping_failed,
                                      .context = client };
    auto_buf struct buf path;
    struct slurm_error error;
    struct err why = { 0 };

    buf_init(&path, SLURM_MAX_PATH);
    slurm_wire_path(&path, version, SLURM_PING, "", "");
    client->asked = version;
    if (slurm_wire_headers(client, client->user, 0, false, &http, &why) < 0) {
        slurm_classify_failure(SLURM_GET, SLURM_PING, &why, &error);
        version_failed(client, &error);
        return;
    }
    http.path = buf_text(&path);
    client->ping = http_send(client->transport, &http, &handlers);
}

void slurm_version_ask(struct slurm_client *client)
{
    if (client->asked == 0)
        ask(client, SLURM_VERSION_MAX);
}
