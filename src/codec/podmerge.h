/* podmerge.h - a user's container or pod spec laid over ours.
 *
 * Objects merge member by member and the user's scalar wins. A member of the user's that is null,
 * "", {} or [] counts as not given; an explicit false or 0 counts. Lists follow a table:
 *
 *   appended      ours first, then the user's (args, containers, tolerations ...)
 *   by key        items with the same key become one (env by name, volumeMounts by mountPath ...)
 *   anything else the user's list replaces ours
 *
 * The order of a list merged by key is that of Kubernetes' strategic merge, so that pod templates
 * made by the Slinky operator stay the same byte for byte: entries of ours that the user does not
 * name keep their order, the user's keep theirs, and one of ours goes before one of the user's only
 * where both are ours and ours comes first. A probe's handler is replaced when the user gives one
 * and stays otherwise. */
#ifndef SLINC_CODEC_PODMERGE_H
#define SLINC_CODEC_PODMERGE_H

#include "base/err.h"
#include "codec/json.h"

/* Both may be absent. A value of the wrong type is -ERR_INVALID, naming its path:
 * "containers[0].env: wants array, found string". */
int podmerge(struct json_build *build, const struct json *ours, const struct json *users,
             struct json_mut **ret_merged, struct err *err);

/* Whether a value counts as given: it is neither absent nor null, "", [] or {}. */
bool json_is_given(const struct json *value);

#endif
