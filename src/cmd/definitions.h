/* definitions.h - the operator's look at the definitions of its custom resources: it says in its
 * log and in /debug/state which are older than this build wants. */
#ifndef SLINC_CMD_DEFINITIONS_H
#define SLINC_CMD_DEFINITIONS_H

#include "engine/health.h"

struct definitions;

/* Looks at once, and then every quarter of a minute. All are borrowed. */
struct definitions *definitions_new(struct loop *loop, struct http_transport *api,
                                    struct health *health);
void definitions_free(struct definitions *definitions);

#endif
