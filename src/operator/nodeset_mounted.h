/* nodeset_mounted.h - what the pods of a NodeSet read from ConfigMaps and Secrets. */
#ifndef SLINC_OPERATOR_NODESET_MOUNTED_H
#define SLINC_OPERATOR_NODESET_MOUNTED_H

#include "operator/world.h"

/* Whether workers are replaced when it changes: the annotation reload-on-change is "true". */
bool nodeset_reloads(const struct kube_object *nodeset);

/* A hash of the content of all ConfigMaps and Secrets that volumes and environment of the workers
 * name; one that does not exist counts as absent. NULL: workers are not replaced for it. In the
 * arena. -ERR_TOO_BIG when the names or the content are too many. */
int nodeset_mounted_hash(const struct operator_world *world, struct arena *arena,
                         const struct kube_object *nodeset, const char **ret_hash, struct err *err);

#endif
