/* keys.c - makes, marks and deletes the Secrets with the keys of a Slurm cluster. */
#include "cmd/keys.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "codec/base64.h"

#include <stdio.h>
#include <string.h>

#define ANNOTATION_RELEASE    "meta.helm.sh/release-name"
#define ANNOTATION_RELEASE_NS "meta.helm.sh/release-namespace"
#define ANNOTATION_POLICY     "helm.sh/resource-policy"

enum { MAX_BODY = 256 << 10, TRIES_US = 60000000, PAUSE_US = 1000000 };

/* ---- what to do ---- */

void keys_make_text(char ret_text[KEYS_TEXT])
{
    enum { FIRST = '!', COUNT = '~' - '!' + 1, FAIR = 256 / COUNT * COUNT };
    unsigned char bytes[64];
    size_t length = 0;

    while (length < KEYS_TEXT) {
        rand_secret_bytes(bytes, sizeof(bytes));
        for (size_t i = 0; i < sizeof(bytes) && length < KEYS_TEXT; i++)
            if (bytes[i] < FAIR) /* all characters are equally likely */
                ret_text[length++] = (char)(FIRST + bytes[i] % COUNT);
    }
    explicit_bzero(bytes, sizeof(bytes));
}

bool keys_is_of(const struct keys_release *release, const struct json *found)
{
    const struct json *annotations = json_at(found, "metadata", "annotations");

    return str_is(json_str(json_get(annotations, ANNOTATION_RELEASE)), release->name) &&
           str_is(json_str(json_get(annotations, ANNOTATION_RELEASE_NS)), release->ns);
}

/* The user's annotations and the one that keeps the Secret; those that `found` has are left out.
 * How many were put. */
static unsigned put_annotations(struct json_build *build, struct json_mut *object,
                                const struct keys_secret *secret, const struct json *found)
{
    const struct json *there = json_at(found, "metadata", "annotations");
    struct json_iter iter = json_iter(secret->annotations);
    const struct json *value;
    struct str name;
    unsigned count = 0;

    while (json_next_member(&iter, &name, &value))
        if (!json_equal(json_get_str(there, name), value)) {
            json_put_key(build, object, name, json_copy(build, value));
            count++;
        }
    if (!str_is(json_str(json_get(there, ANNOTATION_POLICY)), "keep")) {
        json_put_text(build, object, ANNOTATION_POLICY, "keep");
        count++;
    }
    return count;
}

static void write_secret(const struct keys_release *release, const struct keys_secret *secret,
                         struct str key, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *object = json_new_object(build), *metadata, *annotations;
    auto_buf struct buf encoded;

    buf_init(&encoded, MAX_BODY);
    base64_encode(key, 0, &encoded);
    json_put_text(build, object, "apiVersion", "v1");
    json_put_text(build, object, "kind", "Secret");
    metadata = json_put_object(build, object, "metadata");
    json_put_text(build, metadata, "name", secret->name);
    json_put_text(build, metadata, "namespace", secret->ns);
    if (json_is_object(release->labels))
        json_put(build, metadata, "labels", json_copy(build, release->labels));
    annotations = json_put_object(build, metadata, "annotations");
    (void)put_annotations(build, annotations, secret, NULL);
    json_put_text(build, annotations, ANNOTATION_RELEASE, release->name);
    json_put_text(build, annotations, ANNOTATION_RELEASE_NS, release->ns);
    json_put_text(build, object, "type", "Opaque");
    json_put_bool(build, object, "immutable", true);
    json_put_text(build, json_put_object(build, object, "data"), secret->file, buf_text(&encoded));
    json_mut_write(object, out);
    if (encoded.data)
        explicit_bzero(encoded.data, encoded.len);
}

int keys_plan(const struct keys_release *release, const struct keys_secret *secret,
              const struct json *found, struct str key, enum keys_step *ret_step,
              struct buf *ret_body, struct err *err)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build);
    struct json_mut *metadata = json_put_object(build, patch, "metadata");

    *ret_step = KEYS_NOTHING;
    if (!found && secret->file) {
        *ret_step = KEYS_CREATE;
        write_secret(release, secret, key, ret_body);
        return buf_check(ret_body, "the Secret", err);
    }
    if (!found)
        return 0;
    if (secret->file && json_str(json_at(found, "data", secret->file)).len == 0)
        return err_set(err, ERR_INVALID,
                       "Secret %s is there, and has no key %s: put the key into it, or delete the "
                       "Secret to have a new one",
                       secret->name, secret->file);
    if (!keys_is_of(release, found) ||
        put_annotations(build, json_put_object(build, metadata, "annotations"), secret, found) == 0)
        return 0;
    *ret_step = KEYS_MARK;
    json_put_str(build, metadata, "uid", json_str(json_at(found, "metadata", "uid")));
    json_mut_write(patch, ret_body);
    return buf_check(ret_body, "the patch", err);
}

/* ---- calls ---- */

struct call { /* one call, waited for */
    struct loop *loop;
    enum kube_outcome outcome;
    struct json_doc *object;
    struct err err;
};

static void on_answer(void *context, const struct kube_answer *answer)
{
    struct call *call = context;

    call->outcome = answer->outcome;
    if (answer->outcome == KUBE_DONE)
        call->object = json_clone(answer->object);
    else
        err_write(&call->err, answer->outcome == KUBE_DENIED ? ERR_DENIED : ERR_UNAVAILABLE, "%s",
                  answer->message);
    loop_stop(call->loop);
}

static enum kube_outcome send_and_wait(struct kube_client *client, struct call *call,
                                       const struct kube_request *request)
{
    json_doc_free(call->object);
    *call = (struct call){ .loop = kube_client_loop(client), .outcome = KUBE_UNKNOWN };
    (void)kube_send(client, request, on_answer, call);
    loop_run(call->loop);
    return call->outcome;
}

static void end_pause(void *context)
{
    loop_stop(context);
}

static void wait_a_pause(struct loop *loop)
{
    struct loop_timer timer = { .loop = NULL };

    loop_timer_start(loop, &timer, PAUSE_US, end_pause, loop);
    loop_run(loop);
    loop_timer_stop(&timer);
}

/* One try; *ret_again: something else came in between, or the API server does not answer. */
static int ensure_once(struct kube_client *client, const struct keys_release *release,
                       const struct keys_secret *secret, struct call *call, bool *ret_again,
                       struct err *err)
{
    static const struct {
        enum kube_verb verb;
        const char *done;
    } steps[] = {
        [KEYS_CREATE] = { KUBE_CREATE, "made the key" },
        [KEYS_MARK] = { KUBE_MERGE_PATCH, "marked the key, so that Helm does not delete it" },
    };
    struct kube_request request = {
        .verb = KUBE_GET, .resource = &kube_secrets, .ns = secret->ns, .name = secret->name
    };
    enum kube_outcome outcome = send_and_wait(client, call, &request);
    char text[KEYS_TEXT];
    struct buf body;
    enum keys_step step;
    int result;

    *ret_again = outcome != KUBE_DONE && outcome != KUBE_GONE;
    if (*ret_again)
        return 0;
    buf_init(&body, MAX_BODY);
    keys_make_text(text);
    result = keys_plan(release, secret, json_root(call->object), (struct str){ text, KEYS_TEXT },
                       &step, &body, err);
    if (result == 0 && step == KEYS_NOTHING) {
        log_info("the key needs nothing", LOG_TEXT("secret", secret->name));
    } else if (result == 0) {
        request.verb = steps[step].verb;
        if (step == KEYS_CREATE)
            request.name = NULL;
        request.body = buf_str(&body);
        *ret_again = send_and_wait(client, call, &request) != KUBE_DONE;
        if (!*ret_again)
            log_info(steps[step].done, LOG_TEXT("secret", secret->name));
    }
    explicit_bzero(text, sizeof(text));
    mem_free_secret(body.data, body.len);
    return result;
}

static int delete_once(struct kube_client *client, const struct keys_release *release,
                       const struct keys_secret *secret, struct call *call, bool *ret_again,
                       struct err *err)
{
    struct kube_request request = {
        .verb = KUBE_GET, .resource = &kube_secrets, .ns = secret->ns, .name = secret->name
    };
    enum kube_outcome outcome = send_and_wait(client, call, &request);
    auto_buf struct buf body = { 0 };

    (void)err;
    buf_init(&body, MAX_BODY);
    *ret_again = outcome != KUBE_DONE && outcome != KUBE_GONE;
    if (outcome != KUBE_DONE || !keys_is_of(release, json_root(call->object)))
        return 0;
    buf_add_text(&body, "{\"preconditions\":{\"uid\":");
    json_escape(&body, json_str(json_at(json_root(call->object), "metadata", "uid")));
    buf_add_text(&body, "}}");
    request.verb = KUBE_DELETE;
    request.body = buf_str(&body);
    outcome = send_and_wait(client, call, &request);
    *ret_again = outcome != KUBE_DONE && outcome != KUBE_GONE;
    if (!*ret_again)
        log_info("deleted the key", LOG_TEXT("secret", secret->name));
    return 0;
}

typedef int (*keys_once)(struct kube_client *client, const struct keys_release *release,
                         const struct keys_secret *secret, struct call *call, bool *ret_again,
                         struct err *err);

static int try_until_done(keys_once once, struct kube_client *client,
                          const struct keys_release *release, const struct keys_secret *secret,
                          struct err *err)
{
    struct loop *loop = kube_client_loop(client);
    int64_t until_us = loop_now_us(loop) + TRIES_US;
    struct call call = { .loop = loop };
    bool again;
    int result;

    for (;;) {
        result = once(client, release, secret, &call, &again, err);
        if (result < 0 || !again)
            break;
        if (call.outcome == KUBE_DENIED || call.outcome == KUBE_INVALID ||
            loop_now_us(loop) + PAUSE_US > until_us) {
            result = err_set(err, ERR_UNAVAILABLE, "Secret %s: %s", secret->name, call.err.text);
            break;
        }
        wait_a_pause(loop);
    }
    json_doc_free(call.object);
    return result;
}

int keys_ensure(struct kube_client *client, const struct keys_release *release,
                const struct keys_secret *secret, struct err *err)
{
    return try_until_done(ensure_once, client, release, secret, err);
}

int keys_delete(struct kube_client *client, const struct keys_release *release,
                const struct keys_secret *secret, struct err *err)
{
    return try_until_done(delete_once, client, release, secret, err);
}

int keys_is_uninstalled(struct kube_client *client, const struct keys_release *release,
                        bool *ret_is_uninstalled, struct err *err)
{
    char query[256];
    struct call call = { .object = NULL };
    int result = 0;

    /* Names of releases are labels: nothing in them wants escaping. */
    (void)snprintf(query, sizeof(query),
                   "labelSelector=owner%%3Dhelm,name%%3D%s,status%%3Duninstalling", release->name);
    if (send_and_wait(client, &call,
                      &(struct kube_request){ .verb = KUBE_LIST,
                                              .resource = &kube_secrets,
                                              .ns = release->ns,
                                              .query = query }) != KUBE_DONE)
        result = err_set(err, ERR_UNAVAILABLE, "Helm's record of release %s: %s", release->name,
                         call.err.text);
    else
        *ret_is_uninstalled = json_len(json_get(json_root(call.object), "items")) > 0;
    json_doc_free(call.object);
    return result;
}
