/* oci_state.h - the state of a container as the runtime tells it to a hook on stdin (OCI runtime
 * specification): its id and the process whose control group is the container's. */
#ifndef SLINC_DRA_HOOK_OCI_STATE_H
#define SLINC_DRA_HOOK_OCI_STATE_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct oci_state {
    struct str id; /* borrowed from the text; no escapes in it */
    int64_t pid;
};

int oci_state_read(struct str json, struct oci_state *ret_state, struct err *err);

#endif
