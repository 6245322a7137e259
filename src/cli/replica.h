/* replica.h - which pod of ours to ask, and by which path of the API server's proxy. Pure. */
#ifndef SLINC_CLI_REPLICA_H
#define SLINC_CLI_REPLICA_H

#include "base/arena.h"
#include "codec/json.h"

/* Whether the chart of this name made the pod. */
bool replica_is_of(const struct json *pod, const char *chart);

/* The pod that runs and holds one of the leases, else the first that runs: all replicas have the
 * same caches. chart NULL: any. NULL: none runs. */
const struct json *replica_choose(const struct json *pods, const struct json *leases,
                                  const char *chart);

/* What it serves beside its metrics: "/debug/state". In the arena. */
const char *replica_path(struct arena *arena, const struct json *pod, const char *path);

#endif
