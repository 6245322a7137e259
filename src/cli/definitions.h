/* definitions.h - how new the definitions of our custom resources are.
 *
 * The chart slurm-operator-crds writes a level on each definition, and raises it when a field comes
 * or goes. A program that wants a higher level than the cluster has says so: the API server drops
 * fields that it does not know, without a word. */
#ifndef SLINC_CLI_DEFINITIONS_H
#define SLINC_CLI_DEFINITIONS_H

#include "codec/json.h"

#define DEFINITIONS_GROUP "slinky.slurm.net"

enum {
    DEFINITIONS_LEVEL = 1, /* that this build wants */
    DEFINITIONS_COUNT = 6,
};

extern const char *const definitions_names[DEFINITIONS_COUNT]; /* of the definitions */

/* 0: it is of another chart, or from before there were levels. */
int64_t definitions_level(const struct json *definition);

#endif
