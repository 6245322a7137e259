/* config_exec.c - credentials that a program gives.
 *
 * Holds: no error and no log holds what the program printed; what was read from it is wiped. */
#include "kube/config_exec.h"

#include "base/buf.h"
#include "base/mem.h"
#include "codec/base64.h"
#include "codec/timestamp.h"
#include "io/http_text.h"
#include "io/subprocess.h"

#include <string.h>

extern char **environ;

enum {
    SECOND_US = 1000000,
    EARLY_US = 60 * SECOND_US, /* before a token ends it is renewed */
    AGAIN_US = 15 * SECOND_US, /* after a failure */
    MAX_TOKEN = 16 * 1024,
    MAX_PEM = 256 * 1024,
    MAX_INFO = 1 << 20,
    MAX_WORD = 64 * 1024,
    MAX_HINT = 200,
};

#define GROUP "client.authentication.k8s.io/"

struct kube_exec {
    char *user, *api_version, *hint;
    char *argv[KUBE_EXEC_MAX_WORDS + 2];
    char *env[KUBE_EXEC_MAX_WORDS + 2]; /* NAME=VALUE, over the environment of the process */
    unsigned arg_count, env_count;
    bool wants_cluster;

    struct kube_config *config; /* while it is in use */
    struct loop *loop;
    struct subprocess *process;
    struct loop_timer renew;
    bool is_first; /* somebody waits for it */
    struct err err;
    int result;
};

static void secret_free(struct kube_config_secret *secret)
{
    if (secret->at)
        mem_free_secret(secret->at, secret->len);
    *secret = (struct kube_config_secret){ .at = NULL };
}

/* ---- what the kubeconfig says ---- */

static int take_word(const struct json *value, const char *what, char **ret_word, struct err *err)
{
    struct str text = json_str(value);

    if (!json_is_string(value) || text.len > MAX_WORD || memchr(text.at, '\0', text.len))
        return err_set(err, ERR_INVALID, "exec: %s is not a text that can be used", what);
    *ret_word = mem_strndup(text.at, text.len);
    return 0;
}

/* A name alone is looked for in PATH; another relative one is relative to the kubeconfig. */
static int take_command(struct kube_exec *exec, const struct json *from, const char *path,
                        struct err *err)
{
    const char *slash = strrchr(path, '/');
    auto_free char *word = NULL;
    auto_buf struct buf whole = { .max = (size_t)2 * MAX_WORD };
    int result = take_word(json_get(from, "command"), "command", &word, err);

    if (result < 0)
        return result;
    if (!word[0])
        return err_set(err, ERR_INVALID, "exec: it names no command");
    if (word[0] != '/' && strchr(word, '/') && slash)
        buf_add(&whole, path, (size_t)(slash - path) + 1);
    buf_add_text(&whole, word);
    exec->argv[exec->arg_count++] = mem_strdup(buf_text(&whole));
    return 0;
}

static int take_arguments(struct kube_exec *exec, const struct json *from, struct err *err)
{
    struct json_iter iter = json_iter(json_get(from, "args"));
    const struct json *word;

    while (json_next_item(&iter, &word)) {
        if (exec->arg_count > KUBE_EXEC_MAX_WORDS)
            return err_set(err, ERR_TOO_BIG, "exec: more than %d args", KUBE_EXEC_MAX_WORDS);
        if (take_word(word, "one of args", &exec->argv[exec->arg_count], err) < 0)
            return -err->class;
        exec->arg_count++;
    }
    return 0;
}

static int take_environment(struct kube_exec *exec, const struct json *from, struct err *err)
{
    struct json_iter iter = json_iter(json_get(from, "env"));
    const struct json *entry;

    while (json_next_item(&iter, &entry)) {
        struct str name = json_str(json_get(entry, "name"));
        struct str value = json_str(json_get(entry, "value"));
        struct buf pair;

        if (exec->env_count >= KUBE_EXEC_MAX_WORDS)
            return err_set(err, ERR_TOO_BIG, "exec: more than %d variables", KUBE_EXEC_MAX_WORDS);
        if (name.len == 0 || name.len + value.len > MAX_WORD || memchr(name.at, '=', name.len) ||
            memchr(name.at, '\0', name.len) || memchr(value.at, '\0', value.len))
            return err_set(err, ERR_INVALID, "exec: env has an entry that cannot be used");
        buf_init(&pair, MAX_WORD + 2);
        buf_printf(&pair, STR_FMT "=" STR_FMT, STR_ARG(name), STR_ARG(value));
        exec->env[exec->env_count++] = mem_strdup(buf_text(&pair));
        explicit_bzero(pair.data, pair.len);
        buf_done(&pair);
    }
    return 0;
}

static int take_mode(const struct json *from, struct err *err)
{
    struct str mode = json_str(json_get(from, "interactiveMode"));

    if (str_is(mode, "Always"))
        return err_set(
            err, ERR_INVALID,
            "exec: interactiveMode Always is not supported: the program gets no terminal. "
            "Log in with it once (kubectl get --raw /version), or use a token");
    if (mode.len > 0 && !str_is(mode, "Never") && !str_is(mode, "IfAvailable"))
        return err_set(err, ERR_INVALID, "exec: interactiveMode is none of Never, IfAvailable");
    return 0;
}

static int fill(struct kube_exec *exec, const struct json *from, const char *path, struct err *err)
{
    struct str version = json_str(json_get(from, "apiVersion"));
    struct str hint = str_trim(json_str(json_get(from, "installHint")));
    const char *line;

    if (!str_is(version, GROUP "v1") && !str_is(version, GROUP "v1beta1"))
        return err_set(err, ERR_INVALID,
                       "exec: apiVersion must be " GROUP "v1 or v1beta1; a newer version of the "
                       "program writes it");
    exec->api_version = mem_strndup(version.at, version.len);
    line = memchr(hint.at, '\n', hint.len);
    if (line)
        hint.len = (size_t)(line - hint.at);
    if (http_is_header_value(hint))
        exec->hint = mem_strndup(hint.at, hint.len < MAX_HINT ? hint.len : MAX_HINT);
    exec->wants_cluster = json_bool_or(json_get(from, "provideClusterInfo"), false);
    if (take_mode(from, err) < 0 || take_command(exec, from, path, err) < 0 ||
        take_arguments(exec, from, err) < 0)
        return -err->class;
    return take_environment(exec, from, err);
}

int kube_exec_new(const struct json *exec, struct str user, const char *path,
                  struct kube_exec **ret_exec, struct err *err)
{
    struct kube_exec *made = mem_alloc(sizeof(*made));
    struct err why = { .class = 0 };
    int result;

    made->user = mem_strndup(user.at, user.len < MAX_HINT ? user.len : MAX_HINT);
    result = fill(made, exec, path, &why);
    if (result < 0) {
        (void)err_set(err, (enum err_class)why.class, "user \"%s\" in %s: %s", made->user, path,
                      why.text);
        kube_exec_free(made);
        return result;
    }
    *ret_exec = made;
    return 0;
}

void kube_exec_free(struct kube_exec *exec)
{
    if (!exec)
        return;
    if (exec->process)
        subprocess_cancel(exec->process);
    loop_timer_stop(&exec->renew);
    for (unsigned i = 0; i < exec->arg_count; i++)
        mem_free(exec->argv[i]);
    for (unsigned i = 0; i < exec->env_count; i++)
        mem_free_secret(exec->env[i], strlen(exec->env[i]));
    mem_free(exec->user);
    mem_free(exec->api_version);
    mem_free(exec->hint);
    mem_free(exec);
}

/* ---- what the program says ---- */

static void wipe(const struct json *status)
{
    static const char *const keys[] = { "token", "clientKeyData", "clientCertificateData" };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct str text = json_str(json_get(status, keys[i]));

        if (text.len > 0)
            explicit_bzero((void *)(uintptr_t)text.at, text.len);
    }
}

static void take_secret(struct kube_config_secret *secret, struct str text)
{
    secret->at = mem_strndup(text.at, text.len);
    secret->len = text.len;
}

static int read_status(const struct json *root, const char *api_version,
                       struct kube_exec_answer *ret_answer, struct err *err)
{
    const struct json *status = json_get(root, "status");
    struct str token = str_trim(json_str(json_get(status, "token")));
    struct str cert = json_str(json_get(status, "clientCertificateData"));
    struct str key = json_str(json_get(status, "clientKeyData"));
    struct str end = json_str(json_get(status, "expirationTimestamp"));
    int64_t ends_us = INT64_MAX;

    if (!str_is(json_str(json_get(root, "kind")), "ExecCredential") ||
        !str_is(json_str(json_get(root, "apiVersion")), api_version))
        return err_set(err, ERR_INVALID, "it did not print an ExecCredential of %s", api_version);
    if (token.len > MAX_TOKEN || cert.len > MAX_PEM || key.len > MAX_PEM ||
        !http_is_header_value(token))
        return err_set(err, ERR_INVALID, "its token or certificate is not fit to be used");
    if ((cert.len > 0) != (key.len > 0))
        return err_set(err, ERR_INVALID, "a client certificate and its key belong together");
    if (token.len == 0 && cert.len == 0)
        return err_set(err, ERR_INVALID, "it gave neither a token nor a client certificate");
    if (end.len > 0 && timestamp_parse(end, &ends_us, NULL) < 0)
        return err_set(err, ERR_INVALID, "its expirationTimestamp is no time");
    *ret_answer = (struct kube_exec_answer){ .ends_us = ends_us };
    if (token.len > 0)
        take_secret(&ret_answer->token, token);
    if (cert.len > 0) {
        take_secret(&ret_answer->cert, cert);
        take_secret(&ret_answer->key, key);
    }
    return 0;
}

int kube_exec_read(struct str output, const char *api_version, struct kube_exec_answer *ret_answer,
                   struct err *err)
{
    struct json_doc *doc = NULL;
    int result;

    if (json_parse(output, SUBPROCESS_MAX_OUTPUT, &doc, NULL) < 0)
        return err_set(err, ERR_INVALID, "what it printed is no JSON");
    result = read_status(json_root(doc), api_version, ret_answer, err);
    wipe(json_get(json_root(doc), "status"));
    json_doc_free(doc);
    return result;
}

/* ---- running it ---- */

static void run_again(void *context);

/* The new token takes the place of the old one. A certificate is part of connections that are open:
 * a process that needs it longer than it lasts has to be started again. */
static void use(struct kube_exec *exec, struct kube_exec_answer *answer)
{
    struct kube_config *config = exec->config;
    int64_t left_us = answer->ends_us == INT64_MAX
                          ? INT64_MAX
                          : answer->ends_us - clock_wall_us(loop_clock(exec->loop)) - EARLY_US;

    secret_free(&config->token);
    config->token = answer->token;
    if (answer->cert.at && exec->is_first) {
        config->cert = answer->cert;
        config->key = answer->key;
    } else {
        secret_free(&answer->cert);
        secret_free(&answer->key);
    }
    if (left_us != INT64_MAX)
        loop_timer_start(exec->loop, &exec->renew, left_us > 0 ? left_us : AGAIN_US, run_again,
                         exec);
}

static void on_done(void *context, int result, struct str output, const struct err *err)
{
    struct kube_exec *exec = context;
    struct kube_exec_answer answer;

    exec->process = NULL;
    exec->err = (struct err){ .class = 0 };
    if (result < 0)
        (void)err_set(&exec->err, (enum err_class)err->class, "%s", err->text);
    else
        result = kube_exec_read(output, exec->api_version, &answer, &exec->err);
    exec->result = result;
    if (result == 0) {
        use(exec, &answer);
    } else {
        (void)err_wrap(&exec->err, "user \"%s\": %s", exec->user, exec->argv[0]);
        if (!exec->is_first) /* the old token lasts for a moment; then requests are refused */
            loop_timer_start(exec->loop, &exec->renew, AGAIN_US, run_again, exec);
    }
    if (exec->is_first)
        loop_stop(exec->loop);
}

/* KUBERNETES_EXEC_INFO: what the program may want to know of us and the cluster. */
static char *info_variable(const struct kube_exec *exec)
{
    auto_json_build struct json_build *build = json_build_new();
    const struct kube_config *config = exec->config;
    struct json_mut *root = json_new_object(build), *spec, *cluster;
    auto_buf struct buf out, ca;

    buf_init(&out, MAX_INFO);
    buf_init(&ca, MAX_INFO);
    json_put_text(build, root, "kind", "ExecCredential");
    json_put_text(build, root, "apiVersion", exec->api_version);
    spec = json_put_object(build, root, "spec");
    json_put_bool(build, spec, "interactive", false);
    if (exec->wants_cluster) {
        cluster = json_put_object(build, spec, "cluster");
        json_put_text(build, cluster, "server", config->server);
        if (config->server_name)
            json_put_text(build, cluster, "tls-server-name", config->server_name);
        if (config->insecure)
            json_put_bool(build, cluster, "insecure-skip-tls-verify", true);
        if (config->ca.at) {
            base64_encode((struct str){ config->ca.at, config->ca.len }, 0, &ca);
            json_put_str(build, cluster, "certificate-authority-data", buf_str(&ca));
        }
    }
    buf_add_text(&out, "KUBERNETES_EXEC_INFO=");
    json_mut_write(root, &out);
    return mem_strdup(buf_text(&out));
}

static bool is_set_by(const struct kube_exec *exec, const char *pair)
{
    const char *equals = strchr(pair, '=');
    struct str name = { pair, equals ? (size_t)(equals - pair) + 1 : strlen(pair) };

    for (unsigned i = 0; i < exec->env_count; i++)
        if (str_starts(str_of(exec->env[i]), name))
            return true;
    return str_starts(STR("KUBERNETES_EXEC_INFO="), name);
}

static int start(struct kube_exec *exec, struct err *err)
{
    auto_free char *info = info_variable(exec);
    const char **env;
    size_t count = 0;

    for (char **pair = environ; *pair; pair++)
        count++;
    env = mem_alloc_array(count + exec->env_count + 2, sizeof(*env));
    count = 0;
    for (char **pair = environ; *pair; pair++)
        if (!is_set_by(exec, *pair))
            env[count++] = *pair;
    for (unsigned i = 0; i < exec->env_count; i++)
        env[count++] = exec->env[i];
    env[count] = info;
    exec->process = subprocess_start_env(exec->loop, (const char *const *)exec->argv, env,
                                         KUBE_EXEC_US, on_done, exec, err);
    mem_free((void *)(uintptr_t)env);
    if (exec->process)
        return 0;
    return err_set(err, ERR_NOT_FOUND, "user \"%s\": the program %s cannot be started%s%s",
                   exec->user, exec->argv[0], exec->hint && exec->hint[0] ? ": " : "",
                   exec->hint ? exec->hint : "");
}

static void run_again(void *context)
{
    struct kube_exec *exec = context;
    struct err err = { .class = 0 };

    if (start(exec, &err) < 0)
        loop_timer_start(exec->loop, &exec->renew, AGAIN_US, run_again, exec);
}

int kube_exec_open(struct kube_exec *exec, struct kube_config *config, struct loop *loop,
                   struct err *err)
{
    if (exec->config)
        return 0;
    exec->config = config;
    exec->loop = loop;
    exec->is_first = true;
    if (start(exec, err) < 0)
        return -err->class;
    loop_run(loop);
    exec->is_first = false;
    if (exec->result < 0)
        return err_set(err, (enum err_class)exec->err.class, "%s", exec->err.text);
    return 0;
}
