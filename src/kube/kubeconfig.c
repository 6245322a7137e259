/* kubeconfig.c - merges kubeconfig files and takes one context out of them.
 *
 * Holds: a setting that would change who we are or how we connect is honoured or refused, never
 * skipped; no secret appears in an error; the secrets in the parsed text are wiped. Inside this
 * file err is never NULL. */
#include "kube/config.h"

#include "base/buf.h"
#include "base/mem.h"
#include "codec/base64.h"
#include "codec/podmerge.h"
#include "codec/yaml.h"
#include "io/http_text.h"
#include "kube/config_exec.h"

enum { MAX_PATH = 4096, MAX_TOKEN = 16 * 1024, MAX_PEM = 256 * 1024 };

struct section { /* as the lists and their entries are called */
    const char *list, *key;
};

static const struct section contexts = { "contexts", "context" };
static const struct section clusters = { "clusters", "cluster" };
static const struct section users = { "users", "user" };

/* What is refused, and what to do instead. */
static const struct {
    const struct section *section;
    const char *key, *instead;
} refused[] = {
    { &users, "auth-provider", "use a token, a tokenFile or a client certificate" },
    { &users, "username", "basic authentication is gone from Kubernetes; use a token" },
    { &users, "password", "basic authentication is gone from Kubernetes; use a token" },
    { &users, "as", "impersonation is not supported; use credentials of that user" },
    { &users, "as-uid", "impersonation is not supported; use credentials of that user" },
    { &users, "as-groups", "impersonation is not supported; use credentials of that user" },
    { &users, "as-user-extra", "impersonation is not supported; use credentials of that user" },
    { &clusters, "proxy-url", "set HTTPS_PROXY and NO_PROXY in the environment" },
};

static const char *const secret_keys[] = { "token", "password", "client-key-data" };

/* --- one context out of parsed files --- */

struct source {
    const struct json *root;
    const char *path;
};

struct sources {
    struct json_doc *docs[KUBE_CONFIG_MAX_FILES];
    struct source at[KUBE_CONFIG_MAX_FILES];
    unsigned count;
};

/* Entries look like {"name": ..., "cluster": {...}}; the first of a name wins. */
static const struct json *find(const struct sources *sources, const struct section *section,
                               struct str name, const char **ret_path)
{
    for (unsigned i = 0; i < sources->count; i++) {
        struct json_iter iter = json_iter(json_get(sources->at[i].root, section->list));
        const struct json *entry;

        while (json_next_item(&iter, &entry)) {
            if (!json_is_string(json_get(entry, "name")) ||
                !str_eq(json_str(json_get(entry, "name")), name))
                continue;
            *ret_path = sources->at[i].path;
            return json_get(entry, section->key);
        }
    }
    return NULL;
}

static int want_section(const struct sources *sources, const struct section *section,
                        struct str name, const struct json **ret_section, const char **ret_path,
                        struct err *err)
{
    const struct json *found = find(sources, section, name, ret_path);

    if (!json_is_object(found))
        return err_set(err, ERR_NOT_FOUND, "kubeconfig has no %s \"" STR_FMT "\"", section->key,
                       STR_ARG(str_sub(name, 0, 64)));
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (refused[i].section == section && json_is_given(json_get(found, refused[i].key)))
            return err_set(err, ERR_INVALID, "%s \"" STR_FMT "\" in %s: %s is not supported: %s",
                           section->key, STR_ARG(str_sub(name, 0, 64)), *ret_path, refused[i].key,
                           refused[i].instead);
    *ret_section = found;
    return 0;
}

/* A text, NULL when it is not set; refuses what cannot be part of a path or a header. */
static int take_text(const struct json *section, const char *key, char **ret_text, struct err *err)
{
    const struct json *value = json_get(section, key);
    struct str text = json_str(value);

    if (!json_is_given(value))
        return 0;
    if (!json_is_string(value) || text.len > MAX_PATH || !http_is_header_value(text))
        return err_set(err, ERR_INVALID, "kubeconfig: %s is not a text that can be used", key);
    *ret_text = mem_strndup(text.at, text.len);
    return 0;
}

static int take_path(const struct json *section, const char *key, const char *from, char **ret_path,
                     struct err *err)
{
    auto_free char *name = NULL;
    auto_buf struct buf path = { .max = (size_t)2 * MAX_PATH };
    const char *slash = strrchr(from, '/');
    int result = take_text(section, key, &name, err);

    if (result < 0 || !name)
        return result;
    if (name[0] != '/' && slash)
        buf_add(&path, from, (size_t)(slash - from) + 1);
    buf_add_text(&path, name);
    if (buf_check(&path, key, err) < 0)
        return -ERR_TOO_BIG;
    *ret_path = mem_strdup(buf_text(&path));
    return 0;
}

static void secret_set(struct kube_config_secret *secret, struct str text)
{
    secret->at = mem_strndup(text.at, text.len);
    secret->len = text.len;
}

static int take_data(const struct json *section, const char *key, struct kube_config_secret *ret,
                     struct err *err)
{
    const struct json *value = json_get(section, key);
    struct buf bytes;
    int result;

    if (!json_is_given(value))
        return 0;
    if (!json_is_string(value))
        return err_set(err, ERR_INVALID, "kubeconfig: %s is not a text", key);
    buf_init(&bytes, MAX_PEM);
    /* One allocation from the start: growing would leave copies of a key behind. */
    bytes.data = mem_alloc(MAX_PEM + 1);
    bytes.cap = MAX_PEM + 1;
    result = base64_decode(json_str(value), BASE64_NEWLINES, &bytes, err);
    if (result < 0)
        err_wrap(err, "kubeconfig: %s", key);
    else
        secret_set(ret, buf_str(&bytes));
    explicit_bzero(bytes.data, bytes.len);
    buf_done(&bytes);
    return result;
}

static int take_server(struct kube_config *config, const struct json *cluster, struct err *err)
{
    int result = take_text(cluster, "server", &config->server, err);

    if (result < 0)
        return result;
    if (!config->server)
        return err_set(err, ERR_INVALID, "kubeconfig: the cluster has no server");
    if (!str_starts(str_of(config->server), STR("https://")) &&
        !str_starts(str_of(config->server), STR("http://")))
        return err_set(err, ERR_INVALID, "kubeconfig: server must begin with https:// or http://");
    if (strpbrk(config->server, "@?# "))
        return err_set(err, ERR_INVALID,
                       "kubeconfig: server must be a plain address: no user, "
                       "query or fragment");
    return 0;
}

static int take_cluster(struct kube_config *config, const struct json *cluster, const char *path,
                        struct err *err)
{
    const struct json *insecure = json_get(cluster, "insecure-skip-tls-verify");

    if (take_server(config, cluster, err) < 0 ||
        take_path(cluster, "certificate-authority", path, &config->ca_file, err) < 0 ||
        take_data(cluster, "certificate-authority-data", &config->ca, err) < 0 ||
        take_text(cluster, "tls-server-name", &config->server_name, err) < 0)
        return -err->class;
    if (json_exists(insecure) && !json_is_bool(insecure))
        return err_set(err, ERR_INVALID,
                       "kubeconfig: insecure-skip-tls-verify is neither true nor false");
    config->insecure = json_bool_or(insecure, false);
    if (config->insecure && (config->ca.at || config->ca_file))
        return err_set(err, ERR_INVALID,
                       "kubeconfig: insecure-skip-tls-verify and a certificate authority exclude "
                       "each other");
    return 0;
}

static int take_token(struct kube_config *config, const struct json *user, struct err *err)
{
    const struct json *value = json_get(user, "token");
    struct str token = str_trim(json_str(value));

    if (!json_is_given(value))
        return 0;
    if (!json_is_string(value) || token.len > MAX_TOKEN || !http_is_header_value(token))
        return err_set(err, ERR_INVALID, "kubeconfig: token is not fit to be sent");
    secret_set(&config->token, token);
    return 0;
}

static int take_user(struct kube_config *config, const struct json *user, const char *path,
                     struct err *err)
{
    if (take_path(user, "client-certificate", path, &config->cert_file, err) < 0 ||
        take_data(user, "client-certificate-data", &config->cert, err) < 0 ||
        take_path(user, "client-key", path, &config->key_file, err) < 0 ||
        take_data(user, "client-key-data", &config->key, err) < 0 ||
        take_path(user, "tokenFile", path, &config->token_file, err) < 0 ||
        take_token(config, user, err) < 0)
        return -err->class;
    if (json_is_given(json_get(user, "exec")) &&
        (config->token.at || config->token_file || config->cert.at || config->cert_file))
        return err_set(err, ERR_INVALID,
                       "kubeconfig: a user with exec has also a token or a certificate: which of "
                       "them counts is not clear");
    if (json_is_given(json_get(user, "exec")) && str_starts(str_of(config->server), STR("http://")))
        return err_set(err, ERR_INVALID, "kubeconfig: a token would go over plain http; use https");
    if ((config->cert.at || config->cert_file) != (config->key.at || config->key_file))
        return err_set(err, ERR_INVALID,
                       "kubeconfig: a client certificate and its key belong together");
    if ((config->token.at || config->token_file) &&
        str_starts(str_of(config->server), STR("http://")))
        return err_set(err, ERR_INVALID, "kubeconfig: a token would go over plain http; use https");
    return 0;
}

static int pick_context(const struct sources *sources, const char *context, struct str *ret_name,
                        struct err *err)
{
    if (context && context[0]) {
        *ret_name = str_of(context);
        return 0;
    }
    for (unsigned i = 0; i < sources->count; i++) {
        *ret_name = json_str(json_get(sources->at[i].root, "current-context"));
        if (ret_name->len > 0)
            return 0;
    }
    return err_set(err, ERR_NOT_FOUND, "kubeconfig names no current-context; name a context");
}

static int fill(struct kube_config *config, const struct sources *sources, const char *wanted,
                struct err *err)
{
    const struct json *context, *cluster, *user;
    const char *path = "";
    struct str name, user_name;

    if (pick_context(sources, wanted, &name, err) < 0 ||
        want_section(sources, &contexts, name, &context, &path, err) < 0 ||
        want_section(sources, &clusters, json_str(json_get(context, "cluster")), &cluster, &path,
                     err) < 0 ||
        take_cluster(config, cluster, path, err) < 0)
        return -err->class;
    user_name = json_str(json_get(context, "user"));
    if (user_name.len > 0 && (want_section(sources, &users, user_name, &user, &path, err) < 0 ||
                              take_user(config, user, path, err) < 0))
        return -err->class;
    if (user_name.len > 0 && json_is_given(json_get(user, "exec")) &&
        kube_exec_new(json_get(user, "exec"), user_name, path, &config->exec, err) < 0)
        return -err->class;
    if (take_text(context, "namespace", &config->ns, err) < 0)
        return -err->class;
    if (!config->ns)
        config->ns = mem_strdup("default");
    config->context = mem_strndup(name.at, strnlen(name.at, name.len));
    return 0;
}

/* --- parsed text, wiped afterwards --- */

static void wipe_text(const struct json *value)
{
    struct str text = json_str(value);

    if (text.len > 0)
        explicit_bzero((void *)(uintptr_t)text.at, text.len);
}

/* The document is ours alone, and nobody reads it after this. */
static void wipe(const struct json_doc *doc)
{
    struct json_iter iter = json_iter(json_get(json_root(doc), "users"));
    const struct json *entry;

    while (json_next_item(&iter, &entry)) {
        struct json_iter env = json_iter(json_at(entry, "user", "exec", "env"));
        const struct json *variable;

        for (size_t i = 0; i < sizeof(secret_keys) / sizeof(secret_keys[0]); i++)
            wipe_text(json_at(entry, "user", secret_keys[i]));
        while (json_next_item(&env, &variable))
            wipe_text(json_get(variable, "value"));
    }
}

static void sources_done(struct sources *sources)
{
    for (unsigned i = 0; i < sources->count; i++) {
        wipe(sources->docs[i]);
        json_doc_free(sources->docs[i]);
    }
}

static int sources_add(struct sources *sources, const struct kube_config_file *file,
                       struct err *err)
{
    static const struct yaml_limits limits = { .max_bytes = KUBE_CONFIG_MAX_BYTES,
                                               .max_documents = 1,
                                               .max_values = 100000 };
    struct json_doc *doc = NULL;
    int result = yaml_parse_one(file->text, &limits, &doc, err);

    if (result < 0)
        return err_wrap(err, "%s", file->path);
    sources->docs[sources->count] = doc;
    sources->at[sources->count++] = (struct source){ .root = json_root(doc), .path = file->path };
    return 0;
}

int kube_config_resolve(const struct kube_config_file *files, unsigned count, const char *context,
                        struct kube_config **ret_config, struct err *err)
{
    struct kube_config *config = mem_alloc(sizeof(*config));
    struct sources sources = { .count = 0 };
    struct err why = { 0 };
    int result = 0;

    if (count > KUBE_CONFIG_MAX_FILES)
        result = err_set(&why, ERR_TOO_BIG, "more than %d kubeconfig files", KUBE_CONFIG_MAX_FILES);
    for (unsigned i = 0; result == 0 && i < count; i++)
        result = sources_add(&sources, &files[i], &why);
    if (result == 0)
        result = fill(config, &sources, context, &why);
    sources_done(&sources);
    if (result < 0) {
        kube_config_free(config);
        return err_set(err, (enum err_class)why.class, "%s", why.text);
    }
    *ret_config = config;
    return 0;
}
