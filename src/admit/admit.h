/* admit.h - the bridge's word on a pod before it is stored: bytes of an AdmissionReview in, bytes
 * of the answer out.
 *
 * In scope is a pod whose namespace is managed, or that names our scheduler. Such a pod is given
 * what Slurm's placing needs (mutate.c), or is refused with words for its author
 * (rules.h). All others pass as they are: so do mirror pods, and the pods of DaemonSets,
 * which belong to their nodes, unless they name our scheduler themselves. Only the kubelet makes
 * the former, and only the DaemonSet controller the latter: owners and annotations of a pod are
 * what whoever creates it likes. */
#ifndef SLINC_ADMIT_ADMIT_H
#define SLINC_ADMIT_ADMIT_H

#include "base/buf.h"
#include "bridge/world/config.h"
#include "bridge/world/world.h"

enum { ADMIT_MAX_BODY = 8 << 20, ADMIT_MAX_ANSWER = 1 << 20 };

enum admit_hook { ADMIT_MUTATE, ADMIT_VALIDATE };

enum admit_verdict {
    ADMIT_ALLOWED,    /* as it is */
    ADMIT_CHANGED,    /* with a patch */
    ADMIT_REFUSED,    /* 403: a rule is broken */
    ADMIT_NOT_KNOWN,  /* 503: what decides was not seen yet; the client tries again */
    ADMIT_UNREADABLE, /* 400: no pod, or no review at all */
};
enum { ADMIT_VERDICTS = ADMIT_UNREADABLE + 1 };
const char *admit_verdict_name(enum admit_verdict verdict);

struct admit_answer {
    int status; /* HTTP: 200 with an AdmissionReview; 400 or 413 with one line of text */
    enum admit_verdict verdict;
    bool is_early; /* another look soon may say more: an object was not seen yet */
};

struct admit;

/* Both are borrowed. Of the world only the caches of namespaces and of whatever may own a pod are
 * read. It may be NULL: a selector decides nothing then, and no annotation is taken from owners. */
int admit_new(const struct bridge_config *config, const struct bridge_world *world,
              struct admit **ret_admit, struct err *err);
void admit_free(struct admit *admit);

/* Whose updates of pods are never refused: the bridge itself. "": nobody. Copied. */
void admit_trust(struct admit *admit, struct str user);
/* The same for one more user, for a webhook that runs under another account than the bridge. */
void admit_trust_also(struct admit *admit, struct str user);

/* Appends the answer; out's maximum should be ADMIT_MAX_ANSWER. Never fails, whatever the bytes. */
struct admit_answer admit_review(const struct admit *admit, enum admit_hook hook, struct str body,
                                 struct buf *out);

#endif
