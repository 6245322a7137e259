/* keys.h - the Secrets with the keys of a Slurm cluster: made once, kept from being deleted by
 * Helm, deleted when the release is uninstalled.
 *
 * Holds: a key that is there is never changed. A Secret that does not carry the name of the release
 * (Helm's annotations) is never changed and never deleted. */
#ifndef SLINC_CMD_KEYS_H
#define SLINC_CMD_KEYS_H

#include "codec/json.h"
#include "kube/client.h"

enum { KEYS_TEXT = 1024 };

/* Of Helm. */
struct keys_release {
    const char *name, *ns;
    const struct json *labels; /* of the Secrets that are made; may be absent */
};

struct keys_secret {
    const char *ns, *name;
    const char *file;               /* the key inside; NULL: the user's, and never made */
    const struct json *annotations; /* may be absent */
};

enum keys_step {
    KEYS_NOTHING,
    KEYS_CREATE, /* the body is the Secret */
    KEYS_MARK,   /* the body is a merge patch */
};

/* What to do about one Secret. found: as the API server has it, NULL when it is not there. key: the
 * text of a key to be made. -ERR_INVALID for a Secret without its key. */
int keys_plan(const struct keys_release *release, const struct keys_secret *secret,
              const struct json *found, struct str key, enum keys_step *ret_step,
              struct buf *ret_body, struct err *err);

/* Whether the release made it. */
bool keys_is_of(const struct keys_release *release, const struct json *found);

/* Random printable characters without a space. */
void keys_make_text(char ret_text[KEYS_TEXT]);

/* Each runs the client's loop until it is done; at most 60 s of tries. */
int keys_ensure(struct kube_client *client, const struct keys_release *release,
                const struct keys_secret *secret, struct err *err);
int keys_delete(struct kube_client *client, const struct keys_release *release,
                const struct keys_secret *secret, struct err *err);

/* Whether Helm's own record says that the release is being uninstalled. */
int keys_is_uninstalled(struct kube_client *client, const struct keys_release *release,
                        bool *ret_is_uninstalled, struct err *err);

#endif
