/* replica.h - which pod of ours to ask, and by which path of the API server's proxy. Pure. */
#ifndef SLINC_CLI_REPLICA_H
#define SLINC_CLI_REPLICA_H

#include "base/arena.h"
#include "codec/json.h"

/* Whether a container of the pod runs this command of slinc: "bridge", "operator", "exporter".
 * (Names and labels differ between releases, and no chart puts its own name on its pods.) */
bool replica_runs(const struct json *pod, const char *command);

/* The pod that runs and holds one of the leases, else the first that runs: all replicas have the
 * same caches. command NULL: any. NULL: none runs. */
const struct json *replica_choose(const struct json *pods, const struct json *leases,
                                  const char *command);

/* Whether it serves metrics, and what is beside them, over TLS. */
bool replica_is_secure(const struct json *pod);

/* What it serves beside its metrics: "/debug/state". In the arena. */
const char *replica_path(struct arena *arena, const struct json *pod, const char *path);

#endif
