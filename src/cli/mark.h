/* mark.h - the mark by which `drain` and `resume` tell the bridge and the operator: a cordon of the
 * Kubernetes node, or an annotation of the worker's pod. Pure. */
#ifndef SLINC_CLI_MARK_H
#define SLINC_CLI_MARK_H

#include "base/arena.h"
#include "base/err.h"
#include "codec/json.h"

struct mark {
    const char *name, *reason; /* in */
    bool drains;               /* else it resumes */
    struct arena *arena;
    bool is_node;      /* out: else it is a pod */
    const char *patch; /* a merge patch; "": it is so already */
    const char *said;  /* for people */
};

/* node, pod: what has the name; NULL: there is none. A node goes first. -ERR_INVALID: the pod is no
 * worker; -ERR_DENIED: the operator has drained it for a reason of its own. */
int mark_plan(struct mark *mark, const struct json *node, const struct json *pod, struct err *err);

#endif
