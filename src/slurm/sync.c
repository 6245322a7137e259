/* sync.c - a private loop that runs until the one answer is there.
 *
 * Holds: one call at a time; waiting without a call returns at once with -ERR_BUG. */
#include "slurm/sync.h"

#include "base/mem.h"
#include "io/http_client.h"
#include "io/loop_guest.h"
#include "io/reload.h"

enum { MINTED_LIFETIME_S = 900, MAX_KEY_FILE = 8192, MAX_CONNECTIONS = 4 };

struct slurm_sync {
    struct loop *loop;
    struct http_transport *transport;
    struct slurm_token *token;
    struct slurm_client *client;
    struct slurm_answer answer; /* its body is doc's */
    struct json_doc *doc;
    bool answered, waiting;
};

static int make_minted(struct slurm_sync *sync, const struct slurm_sync_options *options,
                       struct err *err)
{
    size_t length;
    char *key;
    int result = reload_read(options->key_file, MAX_KEY_FILE, &key, &length, err);

    if (result < 0)
        return result;
    result = slurm_token_new_minted(loop_clock(sync->loop), (struct str){ key, length },
                                    options->key_user ? options->key_user : "slurm",
                                    MINTED_LIFETIME_S, &sync->token, err);
    mem_free_secret(key, length + 1);
    return result;
}

static int make_token(struct slurm_sync *sync, const struct slurm_sync_options *options,
                      struct err *err)
{
    if (options->key_file)
        return make_minted(sync, options, err);
    if (options->token_file)
        return slurm_token_new_file(sync->loop, options->token_file, &sync->token, err);
    return slurm_token_new_static(str_of(options->token), &sync->token, err);
}

static int make_parts(struct slurm_sync *sync, const struct slurm_sync_options *options,
                      struct err *err)
{
    struct http_client_options http = { .base_url = options->url,
                                        .unix_socket = options->unix_socket,
                                        .tls = { .ca_file = options->ca_file },
                                        .user_agent = "libslinc-slurm",
                                        .max_connections = MAX_CONNECTIONS,
                                        .connect_timeout_us = 2000000 };
    struct slurm_client_options client = { .version = options->version, .user = options->user };
    int result = loop_new_guest(&sync->loop, err);

    if (result == 0)
        result = http_client_new(sync->loop, &http, &sync->transport, err);
    if (result == 0)
        result = make_token(sync, options, err);
    if (result == 0)
        sync->client = slurm_client_new(sync->loop, sync->transport, sync->token, &client);
    return result;
}

int slurm_sync_new(const struct slurm_sync_options *options, struct slurm_sync **ret_sync,
                   struct err *err)
{
    struct slurm_sync *sync = mem_alloc(sizeof(*sync));
    int result = make_parts(sync, options, err);

    if (result < 0) {
        slurm_sync_free(sync);
        return result;
    }
    *ret_sync = sync;
    return 0;
}

void slurm_sync_free(struct slurm_sync *sync)
{
    if (!sync)
        return;
    slurm_client_free(sync->client);
    slurm_token_free(sync->token);
    http_transport_free(sync->transport);
    loop_free(sync->loop);
    json_doc_free(sync->doc);
    mem_free(sync);
}

struct slurm_client *slurm_sync_client(struct slurm_sync *sync)
{
    return sync->client;
}

void slurm_sync_done(void *context, const struct slurm_answer *answer)
{
    struct slurm_sync *sync = context;

    json_doc_free(sync->doc);
    sync->doc = slurm_answer_take(answer);
    sync->answer = *answer;
    sync->answer.body = json_root(sync->doc);
    sync->answer.owner = NULL; /* that was the call's */
    sync->answered = true;
    loop_stop(sync->loop);
}

int slurm_sync_wait(struct slurm_sync *sync, struct slurm_error *ret_error, struct err *err)
{
    while (!sync->answered && slurm_client_in_flight(sync->client) > 0)
        loop_run(sync->loop);
    if (!sync->answered)
        return err_set(err, ERR_BUG, "nothing to wait for");
    sync->answered = false;
    if (ret_error)
        *ret_error = sync->answer.error;
    return slurm_error_to_err(&sync->answer.error, err);
}

const struct json *slurm_sync_body(const struct slurm_sync *sync)
{
    return sync->answer.body;
}

const struct slurm_answer *slurm_sync_answer(const struct slurm_sync *sync)
{
    return &sync->answer;
}

static void on_slept(void *context)
{
    struct slurm_sync *sync = context;

    sync->waiting = false;
    loop_stop(sync->loop);
}

void slurm_sync_sleep(struct slurm_sync *sync, int64_t us)
{
    struct loop_timer timer = { 0 };

    sync->waiting = true;
    loop_timer_start(sync->loop, &timer, us, on_slept, sync);
    while (sync->waiting)
        loop_run(sync->loop);
}
