/* config_exec.h - users of a kubeconfig whose credentials come from a program (clouds, OIDC):
 * client.authentication.k8s.io, v1 and v1beta1.
 *
 * The program runs as a child with a deadline, without a terminal: one that insists on asking a
 * person is refused. It gives a token or a client certificate. A token that ends is renewed a
 * minute before. Nothing that the program prints on its standard output is ever logged. */
#ifndef SLINC_KUBE_CONFIG_EXEC_H
#define SLINC_KUBE_CONFIG_EXEC_H

#include "codec/json.h"
#include "kube/config.h"

enum { KUBE_EXEC_MAX_WORDS = 64, KUBE_EXEC_US = 60 * 1000000 };

struct kube_exec;

/* exec: that part of the user; path: of the kubeconfig, whose folder relative commands are in. */
int kube_exec_new(const struct json *exec, struct str user, const char *path,
                  struct kube_exec **ret_exec, struct err *err);
void kube_exec_free(struct kube_exec *exec); /* takes NULL; before the loop */

/* Runs the program and waits for it: config has a token or a certificate then. Must not be called
 * from inside the loop. */
int kube_exec_open(struct kube_exec *exec, struct kube_config *config, struct loop *loop,
                   struct err *err);

/* What the program said: fills the token, or certificate and key. *ret_ends_us is INT64_MAX when it
 * named no end. No error holds any of the text. */
struct kube_exec_answer {
    struct kube_config_secret token, cert, key;
    int64_t ends_us;
};
int kube_exec_read(struct str output, const char *api_version, struct kube_exec_answer *ret_answer,
                   struct err *err);

#endif
