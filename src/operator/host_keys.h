/* host_keys.h - an action that makes SSH host keys and puts them into a new Secret.
 *
 * Making an RSA key takes seconds, so another process does it (`slinc host-keys`). The keys are
 * made once: the Secret is immutable. */
#ifndef SLINC_OPERATOR_HOST_KEYS_H
#define SLINC_OPERATOR_HOST_KEYS_H

#include "engine/plan.h"

enum { HOST_KEY_FILES = 6 };
/* In the order in which pods mount them; every second one is public. */
extern const char *const host_key_files[HOST_KEY_FILES];

extern const struct action_type action_host_keys; /* its service is a struct host_keys */

struct host_keys;

/* program: what prints the keys as JSON, an absolute path. NULL: nothing is run, and the keys are
 * placeholders; for loops on virtual time. All is borrowed. */
struct host_keys *host_keys_new(struct kube_client *client, const char *program);
void host_keys_free(struct host_keys *keys);

/* Adds the action. secret: the Secret without its data; its answer is that of the create. */
void plan_host_keys(struct plan *plan, const char *ns, const char *name,
                    const struct json_mut *secret);

/* The data of the Secret, as JSON with base64 values; takes seconds. */
int host_keys_make(struct buf *ret_json, struct err *err);

#endif
