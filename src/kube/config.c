/* config.c - finds the configuration: the pod's service account or kubeconfig files; and makes a
 * transport of it. What the files mean is in kubeconfig.c.
 *
 * Holds: what was read from files is wiped before it is freed. */
#include "kube/config.h"

#include "base/buf.h"
#include "base/mem.h"
#include "io/http_client.h"
#include "io/reload.h"
#include "kube/config_exec.h"
#include "kube/informer.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESOLV_CONF    "/etc/resolv.conf"
#define ACCOUNT_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

enum {
    MAX_PATH = 4096,
    MAX_TOKEN = 16 * 1024,
    MAX_RESOLV_CONF = 64 * 1024,
    MAX_DOMAIN = 253,
    /* The operator watches 16 kinds in each namespace that it is told, and the nodes. A stream that
     * finds no connection would wait for ever: the others never end. */
    MAX_STREAMS = 17 * KUBE_INFORMER_MAX_NAMESPACES,
};

static void secret_done(struct kube_config_secret *secret)
{
    if (secret->at)
        mem_free_secret(secret->at, secret->len);
}

void kube_config_free(struct kube_config *config)
{
    if (!config)
        return;
    kube_exec_free(config->exec);
    reload_file_free(config->token_reload);
    secret_done(&config->ca);
    secret_done(&config->cert);
    secret_done(&config->key);
    secret_done(&config->token);
    mem_free(config->server);
    mem_free(config->ns);
    mem_free(config->context);
    mem_free(config->cluster_domain);
    mem_free(config->ca_file);
    mem_free(config->cert_file);
    mem_free(config->key_file);
    mem_free(config->server_name);
    mem_free(config->token_file);
    mem_free(config);
}

/* --- finding the files --- */

static const char *env_of(const struct kube_config_options *options, const char *name)
{
    const char *value =
        options->env ? options->env(options->env_context, name) : secure_getenv(name);

    return value && value[0] ? value : NULL;
}

struct texts { /* what was read, to be wiped */
    struct kube_config_file files[KUBE_CONFIG_MAX_FILES];
    char *bytes[KUBE_CONFIG_MAX_FILES], *paths[KUBE_CONFIG_MAX_FILES];
    unsigned count;
};

static void texts_done(struct texts *texts)
{
    for (unsigned i = 0; i < texts->count; i++) {
        mem_free_secret(texts->bytes[i], texts->files[i].text.len + 1);
        mem_free(texts->paths[i]);
    }
}

static bool says_something(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && (status.st_size > 0 || !S_ISREG(status.st_mode));
}

/* In a list, files that do not exist or are empty are passed over. */
static int texts_add(struct texts *texts, struct str path, bool must_exist, struct err *err)
{
    auto_free char *name = mem_strndup(path.at, path.len);
    char *bytes;
    size_t length;

    if (!must_exist && !says_something(name))
        return 0;
    if (texts->count == KUBE_CONFIG_MAX_FILES)
        return err_set(err, ERR_TOO_BIG, "more than %d kubeconfig files", KUBE_CONFIG_MAX_FILES);

    int result = reload_read(name, KUBE_CONFIG_MAX_BYTES, &bytes, &length, err);

    if (result < 0)
        return err_wrap(err, "kubeconfig");
    texts->bytes[texts->count] = bytes;
    texts->paths[texts->count] = mem_take(name);
    texts->files[texts->count] =
        (struct kube_config_file){ .text = { bytes, length }, .path = texts->paths[texts->count] };
    texts->count++;
    return 0;
}

static int load_list(struct str list, bool must_exist, const char *context,
                     struct kube_config **ret_config, struct err *err)
{
    struct texts texts = { .count = 0 };
    struct str path;
    int result = 0;

    while (result == 0 && str_next(&list, ':', &path))
        if (path.len > 0)
            result = texts_add(&texts, path, must_exist, err);
    if (result == 0 && texts.count == 0)
        result = err_set(err, ERR_NOT_FOUND, "every kubeconfig file is missing or empty");
    if (result == 0)
        result = kube_config_resolve(texts.files, texts.count, context, ret_config, err);
    texts_done(&texts);
    return result;
}

/* --- in a pod --- */

static char *account_file(const struct kube_config_options *options, const char *name)
{
    auto_buf struct buf path = { .max = MAX_PATH };

    buf_printf(&path, "%s%s/%s", options->root ? options->root : "", ACCOUNT_FOLDER, name);
    return mem_strdup(buf_text(&path));
}

static char *account_namespace(const struct kube_config_options *options)
{
    auto_free char *path = account_file(options, "namespace");
    char *bytes, *ns;
    size_t length;

    if (reload_read(path, 256, &bytes, &length, NULL) < 0)
        return mem_strdup("default");

    struct str text = str_trim((struct str){ bytes, length });

    ns = text.len > 0 ? mem_strndup(text.at, text.len) : mem_strdup("default");
    mem_free_secret(bytes, length + 1);
    return ns;
}

static int load_account(const struct kube_config_options *options, const char *host,
                        struct kube_config **ret_config, struct err *err)
{
    const char *port = env_of(options, "KUBERNETES_SERVICE_PORT");
    bool is_ipv6 = strchr(host, ':') != NULL && host[0] != '[';
    auto_buf struct buf server = { .max = 512 };
    uint64_t number;

    if (!port || str_to_u64(str_of(port), 1, 65535, &number, NULL) < 0)
        return err_set(err, ERR_INVALID, "KUBERNETES_SERVICE_PORT is not a port");
    if (strlen(host) > 255 || strpbrk(host, "/@?# \t\r\n"))
        return err_set(err, ERR_INVALID, "KUBERNETES_SERVICE_HOST is not a host");
    buf_printf(&server, is_ipv6 ? "https://[%s]:%s" : "https://%s:%s", host, port);

    struct kube_config *config = mem_alloc(sizeof(*config));

    config->server = mem_strdup(buf_text(&server));
    config->ns = account_namespace(options);
    config->context = mem_strdup("");
    config->ca_file = account_file(options, "ca.crt");
    config->token_file = account_file(options, "token");
    *ret_config = config;
    return 0;
}

static bool has_account(const struct kube_config_options *options)
{
    auto_free char *token = account_file(options, "token");

    return access(token, F_OK) == 0;
}

/* --- the domain of Services --- */

static bool is_domain(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!str_is_alnum(text.at[i]) && !strchr("-.", text.at[i]))
            return false;
    return text.len > 0 && text.len <= MAX_DOMAIN;
}

/* The first "svc.<domain>" of a line that begins with "search"; empty when there is none. */
static struct str domain_of_line(struct str line)
{
    struct str domain = STR(""), word;

    if (!str_next(&line, ' ', &word) || !str_is(word, "search"))
        return domain;
    while (domain.len == 0 && str_next(&line, ' ', &word))
        if (str_starts(word, STR("svc.")))
            domain = str_sub(word, sizeof("svc.") - 1, word.len);
    if (str_ends(domain, STR(".")))
        domain.len--;
    return is_domain(domain) ? domain : STR("");
}

/* The last line with a search list counts, as it does for the resolver. */
static char *read_cluster_domain(const struct kube_config_options *options)
{
    auto_buf struct buf path = { .max = MAX_PATH };
    struct str rest, line, domain = STR("cluster.local"), found;
    char *bytes, *copy;
    size_t length;

    buf_printf(&path, "%s" RESOLV_CONF, options->root ? options->root : "");
    if (reload_read(buf_text(&path), MAX_RESOLV_CONF, &bytes, &length, NULL) < 0)
        return mem_strndup(domain.at, domain.len);
    for (char *tab = bytes; (tab = strpbrk(tab, "\t\r"));)
        *tab = ' ';
    rest = (struct str){ bytes, length };
    while (str_next(&rest, '\n', &line))
        if ((found = domain_of_line(line)).len > 0)
            domain = found;
    copy = mem_strndup(domain.at, domain.len);
    mem_free_secret(bytes, length + 1);
    return copy;
}

static int load_config(const struct kube_config_options *options, struct kube_config **ret_config,
                       struct err *err)
{
    const char *list = env_of(options, "KUBECONFIG");
    const char *host = env_of(options, "KUBERNETES_SERVICE_HOST");
    const char *home = env_of(options, "HOME");
    auto_buf struct buf path = { .max = MAX_PATH };

    if (options->path)
        return load_list(str_of(options->path), true, options->context, ret_config, err);
    if (list)
        return load_list(str_of(list), false, options->context, ret_config, err);
    if (host && !options->context && has_account(options))
        return load_account(options, host, ret_config, err);
    if (home) {
        buf_printf(&path, "%s/.kube/config", home);
        if (!path.overflowed && access(buf_text(&path), F_OK) == 0)
            return load_list(buf_str(&path), true, options->context, ret_config, err);
    }
    return err_set(err, ERR_NOT_FOUND,
                   "no way to the API server: not in a pod with a service account, KUBECONFIG is "
                   "not set, and there is no ~/.kube/config");
}

int kube_config_load(const struct kube_config_options *options, struct kube_config **ret_config,
                     struct err *err)
{
    int result = load_config(options, ret_config, err);

    if (result == 0)
        (*ret_config)->cluster_domain = read_cluster_domain(options);
    return result;
}

/* --- using it --- */

int kube_config_open(struct kube_config *config, struct loop *loop, struct err *err)
{
    struct reload_options options = { .path = config->token_file, .max = MAX_TOKEN };

    if (config->exec)
        return kube_exec_open(config->exec, config, loop, err);
    if (!config->token_file || config->token_reload)
        return 0;
    if (reload_file_new(loop, &options, &config->token_reload, err) < 0)
        return err_wrap(err, "token");
    return 0;
}

struct str kube_config_token(const struct kube_config *config)
{
    if (config->token_reload)
        return str_trim(reload_file_content(config->token_reload));
    return config->token.at ? (struct str){ config->token.at, config->token.len } : STR("");
}

static struct str bearer(void *context)
{
    return kube_config_token(context);
}

static struct str pem_of(const struct kube_config_secret *secret)
{
    return secret->at ? (struct str){ secret->at, secret->len } : STR("");
}

int kube_config_transport(struct loop *loop, struct kube_config *config,
                          struct http_transport **ret_transport, struct err *err)
{
    int result = kube_config_open(config, loop, err);
    struct http_client_options options = {
        .base_url = config->server,
        .tls = { .ca_file = config->ca.at ? NULL : config->ca_file,
                 .cert_file = config->cert.at ? NULL : config->cert_file,
                 .key_file = config->key.at ? NULL : config->key_file,
                 .ca = pem_of(&config->ca),
                 .cert = pem_of(&config->cert),
                 .key = pem_of(&config->key) },
        .tls_kept = config->tls_kept,
        .tls_context = config->tls_context,
        .server_name = config->server_name,
        .insecure = config->insecure,
        .bearer_token = bearer,
        .bearer_context = config,
        .gzip = true,
        .proxy_from_environment = true,
        .max_streams = MAX_STREAMS,
    };

    if (result < 0)
        return result;
    result = http_client_new(loop, &options, ret_transport, err);
    if (result < 0)
        err_wrap(err, "API server %s", config->server);
    return result;
}
