/* made_secret.h - an action that creates a Secret whose data another process makes.
 *
 * Making an RSA key takes seconds, and the loop must not wait for it. */
#ifndef SLINC_ENGINE_MADE_SECRET_H
#define SLINC_ENGINE_MADE_SECRET_H

#include "engine/plan.h"

extern const struct action_type action_made_secret; /* its service is a struct made_secrets */

struct made_secrets;

struct made_secret_options { /* all is borrowed */
    struct kube_client *client;
    /* An absolute path, and its only argument: it prints the data as JSON with base64 values. NULL:
     * nothing is run, for loops on virtual time, and the data are placeholders of these names. */
    const char *program, *argument;
    const char *const *placeholders; /* NULL at the end */
};

struct made_secrets *made_secrets_new(const struct made_secret_options *options);
void made_secrets_free(struct made_secrets *secrets);

/* Adds the action. what: is made, in words. secret: the Secret without its data; its answer is that
 * of the create. */
void plan_made_secret(struct plan *plan, const char *what, const char *ns, const char *name,
                      const struct json_mut *secret);

#endif
