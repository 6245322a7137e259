/* made_secret.c - has another process make the data, then creates the Secret that holds them. */
#include "engine/made_secret.h"

#include "base/mem.h"
#include "io/subprocess.h"

enum { MAX_JSON = 256 << 10, MAKE_US = 120000000 };

struct made_secrets {
    struct made_secret_options options;
};

struct making { /* one action on its way: first a process, then a call */
    struct made_secrets *secrets;
    const struct action *action;
    struct subprocess *process;
    struct kube_call *call;
    struct loop_timer soon;
    struct err err; /* why the process could not be started */
    void (*finish)(void *context, const struct kube_answer *answer);
    void *context;
};

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
    making->call = kube_send(making->secrets->options.client,
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
    struct making *making = context;
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *doc = NULL;
    struct json_mut *data = json_new_object(build);

    for (const char *const *name = making->secrets->options.placeholders; *name; name++)
        json_put_text(build, data, *name, "cGxhY2Vob2xkZXI=");
    doc = json_freeze(data);
    create(making, json_root(doc));
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
    struct made_secrets *secrets = service;
    const struct made_secret_options *options = &secrets->options;
    struct loop *loop = kube_client_loop(options->client);
    const char *const argv[] = { options->program, options->argument, NULL };
    struct making *making = mem_alloc(sizeof(*making));

    *making = (struct making){
        .secrets = secrets, .action = action, .finish = finish, .context = context
    };
    if (!options->program)
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

const struct action_type action_made_secret = {
    .name = "made-secret",
    .max_in_flight = 1,
    .start = start,
    .cancel = cancel,
};

struct made_secrets *made_secrets_new(const struct made_secret_options *options)
{
    struct made_secrets *secrets = mem_alloc(sizeof(*secrets));

    secrets->options = *options;
    return secrets;
}

void made_secrets_free(struct made_secrets *secrets)
{
    mem_free(secrets);
}

void plan_made_secret(struct plan *plan, const char *what, const char *ns, const char *name,
                      const struct json_mut *secret)
{
    auto_buf struct buf body;
    struct action *action =
        plan_add(plan, &action_made_secret,
                 arena_printf(plan->arena, "create secret %s/%s with %s", ns, name, what), NULL);

    buf_init(&body, MAX_JSON);
    json_mut_write(secret, &body);
    action->request.ns = arena_strdup(plan->arena, ns);
    action->request.body =
        (struct str){ arena_strndup(plan->arena, buf_text(&body), body.len), body.len };
    action->existing_is_fine = true;
}
