/* access.c - from a request to a user, from a user to yes or no.
 *
 * Holds: only a plain yes of the API server is a yes; a question that cannot be asked is 503. */
#include "kube/access.h"

#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/digest.h"
#include "codec/jwt.h"
#include "kube/informer.h"

#include <stdio.h>
#include <string.h>

enum {
    SECOND_US = 1000000,
    ANSWER_US = 10 * SECOND_US,
    REMEMBER_US = 10 * SECOND_US,
    MAX_REMEMBERED = 4096,
    MAX_ASKS = 1024,
    ASK_MEMORY = 1 << 20,
    MAX_NAME = 256,
};

struct remembered {
    int status;
    int64_t until_us;
    char why[200];
};

struct ask { /* one request on its way */
    struct list link;
    struct access *access;
    struct arena arena;
    struct access_question question;
    access_done done;
    void *context;
    struct kube_call *call;
    const char *audience; /* for which the token was made; NULL: the API server */
    char key[DIGEST_HEX];
};

struct access {
    struct kube_client *client;
    struct loop *loop;
    struct rand rand;
    struct kube_cache *maps; /* with the ConfigMap; NULL: no proxy is known */
    struct kube_informer *informer;
    struct json_doc *data, *docs[5];
    struct access_proxy proxy;
    bool knows_proxy;
    struct map answers; /* struct remembered, by digest of the question */
    struct list asks;
    unsigned ask_count, max_asks;
};

/* ---- how the API server proves itself ---- */

#define PROXY_MAP "extension-apiserver-authentication"

static const struct kube_kind map_kind = { .resource = &kube_configmaps };

static void free_docs(struct json_doc **docs)
{
    for (unsigned i = 0; i < 5; i++) {
        json_doc_free(docs[i]);
        docs[i] = NULL;
    }
}

static int take_data(struct access *access, const struct json *data, struct err *err)
{
    struct json_doc *copy = json_clone(data), *docs[5] = { NULL };
    struct access_proxy proxy;
    int result = access_read_proxy(json_root(copy), docs, &proxy, err);

    if (result < 0) {
        free_docs(docs);
        json_doc_free(copy);
        return result;
    }
    free_docs(access->docs);
    json_doc_free(access->data);
    access->data = copy;
    memcpy(access->docs, docs, sizeof(docs));
    access->proxy = proxy;
    access->knows_proxy = true;
    return 0;
}

/* A map without a CA changes nothing: what was known stays. */
static void on_map(void *context, const struct kube_object *old, const struct kube_object *next)
{
    struct access *access = context;
    struct err err = { .class = 0 };

    (void)old;
    if (next &&
        take_data(access, json_get(((const struct kube_tree *)next)->root, "data"), &err) < 0)
        log_warn("it is not known how the API server proves itself: kube-system/" PROXY_MAP
                 " cannot be read",
                 LOG_ERROR(&err));
}

static void watch_proxy(struct access *access)
{
    const struct kube_informer_options options = { .ns = "kube-system",
                                                   .field_selector = "metadata.name=" PROXY_MAP };

    rand_init_real(&access->rand);
    access->maps = kube_cache_new(&map_kind, loop_clock(access->loop));
    kube_cache_listen(access->maps, on_map, access);
    access->informer = kube_informer_new(access->client, access->maps, &access->rand, &options);
    kube_informer_start(access->informer);
}

struct access *access_new(struct kube_client *client, const struct access_options *options)
{
    struct access *access = mem_alloc(sizeof(*access));

    access->client = client;
    access->loop = kube_client_loop(client);
    access->max_asks = options->max_asks > 0 ? options->max_asks : MAX_ASKS;
    list_init(&access->asks);
    map_init(&access->answers,
             &(struct map_options){ .max = MAX_REMEMBERED, .free_value = mem_free });
    if (options->knows_proxy)
        watch_proxy(access);
    return access;
}

bool access_knows_proxy(const struct access *access)
{
    return access->knows_proxy;
}

static void ask_free(struct ask *ask)
{
    ask->access->ask_count--;
    list_remove(&ask->link);
    if (ask->call)
        kube_call_cancel(ask->call);
    arena_done(&ask->arena);
    mem_free(ask);
}

void access_free(struct access *access)
{
    if (!access)
        return;
    while (!list_is_empty(&access->asks))
        ask_free(list_item(list_first(&access->asks), struct ask, link));
    if (access->informer)
        kube_informer_free(access->informer);
    kube_cache_free(access->maps);
    free_docs(access->docs);
    json_doc_free(access->data);
    map_done(&access->answers);
    mem_free(access);
}

/* ---- what they may ---- */

static void tell(struct ask *ask, int status, const char *why)
{
    access_done done = ask->done;
    void *context = ask->context;

    ask->call = NULL;
    done(context, status, why);
    ask_free(ask);
}

static void remember(struct ask *ask, int status, const char *why)
{
    struct access *access = ask->access;
    struct remembered *answer = mem_alloc(sizeof(*answer));

    answer->status = status;
    answer->until_us = loop_now_us(access->loop) + REMEMBER_US;
    (void)snprintf(answer->why, sizeof(answer->why), "%s", why);
    if (access->answers.count == MAX_REMEMBERED)
        map_clear(&access->answers);
    (void)map_put(&access->answers, str_of(ask->key), answer, NULL);
}

static void on_access(void *context, const struct kube_answer *answer)
{
    struct ask *ask = context;
    struct kube_access_answer access;
    struct err err = { .class = 0 };
    char why[200];

    if (answer->outcome != KUBE_DONE) {
        tell(ask, 503, "the API server does not say what the user may do");
        return;
    }
    if (kube_access_read(answer->object, &access, &err) < 0) {
        tell(ask, 503, err.text);
        return;
    }
    if (ask->question.path)
        (void)snprintf(why, sizeof(why), "the user may not %s %s", ask->question.verb,
                       ask->question.path);
    else
        (void)snprintf(why, sizeof(why), "the user may not %s %s%s%s%s%s", ask->question.verb,
                       ask->question.resource, ask->question.group[0] ? "." : "",
                       ask->question.group, ask->question.ns[0] ? " in namespace " : "",
                       ask->question.ns);
    remember(ask, access.allowed ? 200 : 403, why);
    tell(ask, access.allowed ? 200 : 403, why);
}

static void ask_access(struct ask *ask, struct kube_access_question *question)
{
    const struct remembered *known;
    struct kube_request request;
    struct err err = { .class = 0 };
    auto_buf struct buf body;

    question->verb = ask->question.verb;
    question->path = ask->question.path;
    question->group = ask->question.group;
    question->version = ask->question.version;
    question->resource = ask->question.resource;
    question->ns = ask->question.ns;
    question->name = ask->question.name;
    buf_init(&body, KUBE_REVIEW_MAX_BODY);
    kube_access_write(question, &body);
    if (buf_check(&body, "the question about the user", &err) < 0) {
        tell(ask, 403, err.text);
        return;
    }
    digest_sha256(buf_str(&body), ask->key);
    known = map_get(&ask->access->answers, str_of(ask->key));
    if (known && known->until_us > loop_now_us(ask->access->loop)) {
        tell(ask, known->status, known->why);
        return;
    }
    kube_access_request(&request, buf_str(&body));
    request.timeout_us = ANSWER_US;
    ask->call = kube_send(ask->access->client, &request, on_access, ask);
}

/* ---- who they are ---- */

static void on_token(void *context, const struct kube_answer *answer)
{
    struct ask *ask = context;
    struct kube_access_question question = { .user = NULL };
    struct kube_token_answer token;
    struct err err = { .class = 0 };

    ask->call = NULL;
    if (answer->outcome != KUBE_DONE ||
        kube_token_read(answer->object, ask->audience, &token, &err) < 0) {
        tell(ask, 503, "the API server does not say whose token it is");
        return;
    }
    if (!token.authenticated) {
        tell(ask, 401, "the token does not count");
        return;
    }
    question.user = arena_strndup(&ask->arena, token.user.at, token.user.len);
    question.uid = arena_strndup(&ask->arena, token.uid.at, token.uid.len);
    question.groups = token.groups;
    question.group_count = token.group_count;
    question.extra = token.extra;
    ask_access(ask, &question);
}

static void ask_token(struct ask *ask, struct str token)
{
    struct kube_request request;
    struct buf body;

    ask->audience = jwt_has_audience(token, ACCESS_AUDIENCE) ? ACCESS_AUDIENCE : NULL;
    buf_init(&body, KUBE_REVIEW_MAX_BODY);
    kube_token_write(token, ask->audience, &body);
    if (body.overflowed) {
        tell(ask, 401, "the token is too long");
    } else {
        kube_token_request(&request, buf_str(&body));
        request.timeout_us = ANSWER_US;
        ask->call = kube_send(ask->access->client, &request, on_token, ask);
    }
    if (body.data)
        explicit_bzero(body.data, body.cap);
    buf_done(&body);
}

struct header_walk {
    const struct access_proxy *proxy;
    struct access_user *user;
    struct arena *arena;
};

static void on_header(void *context, const char *name, const char *value)
{
    const struct header_walk *walk = context;

    access_take_header(walk->proxy, walk->user, walk->arena, name, value);
}

/* The front proxy has proved itself: its headers count. */
static void ask_proxied(struct ask *ask, const struct http_view *view)
{
    struct access_user *user = arena_alloc(&ask->arena, sizeof(*user));
    struct header_walk walk = { &ask->access->proxy, user, &ask->arena };
    struct kube_access_question question = { .user = NULL };
    struct json_build *build;
    struct json_doc *extra = NULL;

    http_view_headers(view, on_header, &walk);
    if (user->extra)
        extra = json_freeze(user->extra);
    build = user->extra_build; /* an answer ends the ask, and the user with it */
    question = (struct kube_access_question){ .user = user->name,
                                              .uid = user->uid,
                                              .groups = user->groups,
                                              .group_count = user->group_count,
                                              .extra = extra ? json_root(extra) : NULL };
    if (!user->name || !user->name[0] || user->is_too_much)
        tell(ask, 401, "the API server names no user");
    else
        ask_access(ask, &question);
    json_build_free(build);
    json_doc_free(extra);
}

static bool is_proxy(const struct access *access, const struct http_view *view)
{
    char name[MAX_NAME] = "";
    struct json_iter iter = json_iter(access->proxy.names);
    const struct json *allowed;

    if (!access->knows_proxy ||
        http_view_peer(view, access->proxy.ca, name, sizeof(name), NULL) < 0)
        return false;
    if (json_len(access->proxy.names) == 0)
        return true; /* any certificate of that CA */
    while (json_next_item(&iter, &allowed))
        if (str_is(json_str(allowed), name))
            return true;
    return false;
}

static const char *copy(struct ask *ask, const char *text)
{
    return text ? arena_strdup(&ask->arena, text) : NULL;
}

void access_ask(struct access *access, const struct http_view *view,
                const struct access_question *question, access_done done, void *context)
{
    const char *authorization = http_view_header(view, "Authorization");
    struct str token = str_of(authorization);
    struct ask *ask;

    if (access->ask_count >= access->max_asks) {
        done(context, 503, "too many requests wait for the API server");
        return;
    }
    ask = mem_alloc(sizeof(*ask));
    ask->access = access;
    ask->done = done;
    ask->context = context;
    arena_init(&ask->arena, ASK_MEMORY);
    ask->question = (struct access_question){
        .verb = copy(ask, question->verb),
        .path = copy(ask, question->path),
        .group = copy(ask, question->group),
        .version = copy(ask, question->version),
        .resource = copy(ask, question->resource),
        .ns = copy(ask, question->ns),
        .name = copy(ask, question->name),
    };
    list_push_back(&access->asks, &ask->link);
    access->ask_count++;
    if (question->token)
        ask_token(ask, str_of(question->token));
    else if (is_proxy(access, view))
        ask_proxied(ask, view);
    else if (str_starts(token, STR("Bearer ")))
        ask_token(ask, str_trim(str_sub(token, strlen("Bearer "), token.len)));
    else
        tell(ask, 401, "there is neither a certificate of the API server nor a token");
}
