/* config.h - where the API server is and who we are to it: from the pod we run in, or from
 * kubeconfig files.
 *
 * Order: an explicit path; KUBECONFIG (a list, merged as kubectl does: the first that says a thing
 * wins); the service account of the pod; ~/.kube/config. What a kubeconfig asks for and we cannot
 * do (auth-provider, basic auth, impersonation, proxy-url) is refused with a message that names
 * what to do instead: nothing that changes who we are is ever skipped. Credentials of a program
 * (exec) are in config_exec.h. */
#ifndef SLINC_KUBE_CONFIG_H
#define SLINC_KUBE_CONFIG_H

#include "base/err.h"
#include "base/str.h"
#include "io/http.h"
#include "io/loop.h"

#include <stdbool.h>

enum { KUBE_CONFIG_MAX_FILES = 16, KUBE_CONFIG_MAX_BYTES = 1 << 20 };

struct reload_file;
struct kube_exec;

struct kube_config_secret { /* wiped when freed; at is NULL when there is none */
    char *at;
    size_t len;
};

struct kube_config {
    char *server;         /* "https://host:6443", perhaps with a path */
    char *ns;             /* of the context or the pod; "default" when they name none */
    char *context;        /* its name; "" in a pod */
    char *cluster_domain; /* of Services, by the pod's resolv.conf; else "cluster.local" */
    char *ca_file;        /* each of these NULL when not given; text from inside the kubeconfig */
    char *cert_file, *key_file;              /* wins over files */
    struct kube_config_secret ca, cert, key; /* PEM */
    char *server_name;                       /* the name in the server's certificate, if another */
    bool insecure;
    char *token_file; /* read again as it rotates; wins over token */
    struct kube_config_secret token;
    struct kube_exec *exec;           /* the program that gives token or certificate; NULL */
    struct reload_file *token_reload; /* private: after kube_config_open */
    void (*tls_kept)(void *context, const struct err *why); /* as in http_client.h; NULL at first */
    void *tls_context;
};

struct kube_config_options {
    const char *path;    /* this kubeconfig and no other; NULL = by the order above */
    const char *context; /* NULL = current-context. When given, the pod's account is not used */
    const char *root;    /* in front of all paths of a pod, for tests; NULL = "" */
    const char *(*env)(void *context, const char *name); /* NULL = the process's environment */
    void *env_context;
};

/* -ERR_NOT_FOUND when there is no configuration anywhere, or no such context. */
int kube_config_load(const struct kube_config_options *options, struct kube_config **ret_config,
                     struct err *err);

/* The part without files: texts in order of precedence, each with the path it came from (relative
 * names in it are relative to that). */
struct kube_config_file {
    struct str text;
    const char *path;
};
int kube_config_resolve(const struct kube_config_file *files, unsigned count, const char *context,
                        struct kube_config **ret_config, struct err *err);

void kube_config_free(struct kube_config *config);

/* Begins to follow the token file, if there is one; runs the program that gives credentials, if
 * there is one, and waits for it: not from inside the loop. Called by kube_config_transport;
 * calling it again does nothing. The config is freed before the loop. */
int kube_config_open(struct kube_config *config, struct loop *loop, struct err *err);
struct str kube_config_token(const struct kube_config *config); /* now; empty when there is none */

/* A transport of its own to this API server; call it once per transport wanted. The loop must be a
 * real one. The config outlives its transports. */
int kube_config_transport(struct loop *loop, struct kube_config *config,
                          struct http_transport **ret_transport, struct err *err);

#endif
