/* config.h - what the administrator decided: the bridge's config file, one row per key.
 *
 * The keys of the table in config.c are the reference: parser, validation, `--help` and the docs
 * speak from it. Keys match without regard to letter case, as in the file's Go ancestor; a key that
 * the table lacks is kept as a warning, not an error, so that files of other versions still work.
 */
#ifndef SLINC_BRIDGE_CONFIG_H
#define SLINC_BRIDGE_CONFIG_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "codec/json.h"

#include <stdbool.h>
#include <stdint.h>

struct bridge_config {
    const char *scheduler_name; /* schedulerName */
    const char *slurm_rest_api; /* slurmRestApi: http://, https:// or unix:// */
    const char *mcs_label;      /* mcsLabel; "" sends none */
    const char *partition;      /* partition: where jobs go that name none */
    const struct str *managed_namespaces;
    unsigned managed_namespace_count;
    const struct json *managed_namespace_selector; /* NULL: the list counts */
    bool shared;            /* sharedNodes: pods that say nothing about `exclusive` share nodes */
    bool submit_only;       /* submitOnly: never ask for an immediate allocation */
    int64_t fence_after_s;  /* fenceAfterSeconds: a node NotReady for so long, and drained in Slurm,
                               counts as fenced; 0: never by time alone */
    int64_t ask_per_second; /* asksPerSecond: the most submissions a second; 0: no limit */
    const char *jwt_key_file; /* jwtKeyFile: sign our own short-lived tokens; "" = token file */
    const char *jwt_user;     /* jwtUser: whose tokens those are; default "slurm" */
    const char *warnings;     /* what was ignored, one line each; "" */
    struct json_doc *doc;     /* private: holds the selector */
    struct arena arena;       /* private: holds all the others */
};

/* Defaults are those of the chart. The text is YAML; an empty one gives the defaults. Errors name
 * the key and the form that is allowed. */
int bridge_config_parse(struct str text, struct bridge_config *ret_config, struct err *err);
int bridge_config_load(const char *path, struct bridge_config *ret_config, struct err *err);
void bridge_config_done(struct bridge_config *config);

/* The reference table as Markdown: key, type, default, meaning. */
void bridge_config_reference(struct buf *out);

#endif
