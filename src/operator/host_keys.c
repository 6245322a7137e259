/* host_keys.c - makes host keys in another process, then creates the Secret that holds them. */
#include "operator/host_keys.h"

#include "base/mem.h"
#include "codec/base64.h"
#include "codec/sshkey.h"
#include "io/subprocess.h"

#include <stdio.h>

enum { MAX_JSON = 256 << 10, MAKE_US = 120000000 };

const char *const host_key_files[HOST_KEY_FILES] = {
    "ssh_host_rsa_key",         "ssh_host_rsa_key.pub", "ssh_host_ed25519_key",
    "ssh_host_ed25519_key.pub", "ssh_host_ecdsa_key",   "ssh_host_ecdsa_key.pub",
};

struct host_keys {
    struct kube_client *client;
    const char *program;
};

struct making { /* one action on its way: first a process, then a call */
    struct host_keys *keys;
    const struct action *action;
    struct subprocess *process;
    struct kube_call *call;
    struct loop_timer soon;
    struct err err; /* why the process could not be started */
    void (*finish)(void *context, const struct kube_answer *answer);
    void *context;
};

/* ---- the keys ---- */

static void put_file(struct json_build *build, struct json_mut *data, const char *name,
                     struct str text)
{
    auto_buf struct buf value;

    buf_init(&value, MAX_JSON);
    base64_encode(text, 0, &value);
    json_put_text(build, data, name, buf_text(&value));
}

int host_keys_make(struct buf *ret_json, struct err *err)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *data = json_new_object(build);
    int result = 0;

    for (int type = SSHKEY_RSA; type <= SSHKEY_ECDSA && result == 0; type++) {
        struct buf private, public;

        buf_init(&private, SSHKEY_MAX_TEXT);
        buf_init(&public, SSHKEY_MAX_TEXT);
        result = sshkey_make((enum sshkey_type)type, &private, &public, err);
        put_file(build, data, host_key_files[2 * type], buf_str(&private));
        put_file(build, data, host_key_files[2 * type + 1], buf_str(&public));
        mem_free_secret(private.data, private.len);
        buf_done(&public);
    }
    json_mut_write(data, ret_json);
    return result;
}

/* ---- the action ---- */

static void on_created(void *context, const struct kube_answer *answer)
{
    struct making *making = context;

    making->finish(making->context, answer);
    mem_free(making);
}

/* What is wrong here is nothing that a person could mend in the custom resource: try again. */
static void fail(struct making *making, const struct err *err)
{
    making->finish(
        making->context,
        &(struct kube_answer){ .outcome = KUBE_UNAVAILABLE, .reason = "", .message = err->text });
    mem_free(making);
}

static void create(struct making *making, const struct json *data)
{
    const struct action *action = making->action;
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *doc = NULL;
    struct json_mut *secret;
    struct buf body;

    (void)json_parse(action->request.body, MAX_JSON, &doc, NULL);
    secret = json_copy(build, json_root(doc));
    json_put(build, secret, "data", json_copy(build, data));
    buf_init(&body, MAX_JSON);
    json_mut_write(secret, &body);
    making->call = kube_send(making->keys->client,
                             &(struct kube_request){ .verb = KUBE_CREATE,
                                                     .resource = &kube_secrets,
                                                     .ns = action->request.ns,
                                                     .body = buf_str(&body) },
                             on_created, making);
    mem_free_secret(body.data, body.len);
}

static void on_made(void *context, int result, struct str output, const struct err *err)
{
    struct making *making = context;
    auto_json_doc struct json_doc *doc = NULL;
    struct err wrong = { .class = 0 };

    making->process = NULL;
    if (result < 0)
        fail(making, err);
    else if (json_parse(output, MAX_JSON, &doc, &wrong) < 0)
        fail(making, &wrong);
    else
        create(making, json_root(doc));
}

static void on_soon(void *context)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *doc = NULL;
    struct json_mut *data = json_new_object(build);

    for (size_t i = 0; i < HOST_KEY_FILES; i++)
        json_put_text(build, data, host_key_files[i], "cGxhY2Vob2xkZXI=");
    doc = json_freeze(data);
    create(context, json_root(doc));
}

static void on_not_started(void *context)
{
    struct making *making = context;
    struct err err = making->err;

    fail(making, &err);
}

static void *start(void *service, const struct action *action,
                   void (*finish)(void *context, const struct kube_answer *answer), void *context)
{
    struct host_keys *keys = service;
    struct loop *loop = kube_client_loop(keys->client);
    const char *const argv[] = { keys->program, "host-keys", NULL };
    struct making *making = mem_alloc(sizeof(*making));

    *making =
        (struct making){ .keys = keys, .action = action, .finish = finish, .context = context };
    if (!keys->program)
        loop_timer_start(loop, &making->soon, 0, on_soon, making);
    else if (!(making->process =
                   subprocess_start(loop, argv, MAKE_US, on_made, making, &making->err)))
        loop_timer_start(loop, &making->soon, 0, on_not_started, making);
    return making;
}

static void cancel(void *service, void *handle)
{
    struct making *making = handle;

    (void)service;
    loop_timer_stop(&making->soon);
    if (making->process)
        subprocess_cancel(making->process);
    if (making->call)
        kube_call_cancel(making->call);
    mem_free(making);
}

const struct action_type action_host_keys = {
    .name = "host-keys",
    .max_in_flight = 1,
    .start = start,
    .cancel = cancel,
};

struct host_keys *host_keys_new(struct kube_client *client, const char *program)
{
    struct host_keys *keys = mem_alloc(sizeof(*keys));

    *keys = (struct host_keys){ client, program };
    return keys;
}

void host_keys_free(struct host_keys *keys)
{
    mem_free(keys);
}

void plan_host_keys(struct plan *plan, const char *ns, const char *name,
                    const struct json_mut *secret)
{
    auto_buf struct buf body;
    struct action *action =
        plan_add(plan, &action_host_keys,
                 arena_printf(plan->arena, "create secret %s/%s with host keys", ns, name), NULL);

    buf_init(&body, MAX_JSON);
    json_mut_write(secret, &body);
    action->request.ns = arena_strdup(plan->arena, ns);
    action->request.body =
        (struct str){ arena_strndup(plan->arena, buf_text(&body), body.len), body.len };
    action->existing_is_fine = true;
}
