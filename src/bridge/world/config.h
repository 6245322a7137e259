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
#include "device/table.h"

#include <stdbool.h>
#include <stdint.h>

/* trustAnnotations: what annotations may say of whose job it is, and what it may have. */
enum trust {
    TRUST_ALL,  /* everything */
    TRUST_OWN,  /* nothing that makes the job somebody else's, or puts it before others */
    TRUST_NONE, /* nor account and QOS */
};
const char *trust_name(enum trust trust);

struct bridge_user {             /* in Slurm, of the pods that match; "" where nothing is said */
    const char *ns;              /* a pattern: '*' stands for any characters */
    const char *service_account; /* likewise; "": any */
    const char *user, *group, *account, *qos;
    const char *creator, *creator_group;   /* patterns of who made them; "": anybody */
    const char *partitions, *reservations; /* that are open to them besides; patterns by ',' */
};

struct bridge_priority { /* what a priority class of Kubernetes is in Slurm: one of the two */
    const char *class, *qos;
    int64_t priority; /* -1: it is a QOS */
};

struct bridge_config {
    const char *scheduler_name;     /* schedulerName */
    const char *slurm_rest_api;     /* slurmRestApi: http://, https:// or unix:// */
    const char *slurm_rest_ca_file; /* slurmRestCaFile: "" = the system's */
    const char *mcs_label;          /* mcsLabel; "" sends none */
    const char *partition;          /* partition: where jobs go that name none */
    const struct str *managed_namespaces;
    unsigned managed_namespace_count;
    const struct json *managed_namespace_selector; /* NULL: the list counts */
    bool shared;           /* sharedNodes: pods that say nothing about `exclusive` share nodes */
    bool submit_only;      /* submitOnly: never ask for an immediate allocation */
    int64_t fence_after_s; /* fenceAfterSeconds: a node NotReady for so long, and drained in Slurm,
                              counts as fenced; 0: never by time alone */
    int64_t jobs_per_namespace; /* maxJobsPerNamespace; 0: no limit */
    int64_t max_grace_s; /* maxGraceSeconds: of pods whose job Slurm ended; 0: Slurm's KillWait */
    int64_t submits_per_second; /* asksPerSecond: the most submissions a second; 0: no limit */
    int64_t memory_margin;      /* nodeMemoryMarginMiB: of a node, that Slurm is not told of */
    int64_t resize_after_s;     /* nodeResizeSeconds: a size that differs for so long is followed */
    bool drains_to_resize;      /* drainToResize: also of a node that has grown and is busy */
    const struct str *node_features; /* nodeFeatures: labels of nodes that become features */
    unsigned node_feature_count;
    bool pod_deadline; /* podDeadlineAsTimeLimit: the pods' own activeDeadlineSeconds count */
    bool adds_grace;   /* gracePeriodInTimeLimit: a deadline's time limit ends when its pods must */
    const struct bridge_priority *priorities; /* priorityClasses */
    unsigned priority_count;
    const struct bridge_user *users; /* users: the first that matches counts */
    unsigned user_count;
    bool asks_who_made_it;           /* some of them do */
    const char *controller_accounts; /* controllerAccounts: who makes objects for others, whose
                                        owners tell who that is; patterns by ',' */
    bool pins_cpus; /* pinCpus: auto: the webhook has pods that share nodes pinned to their cores */
    struct device_table devices; /* devices: what they are in Slurm */
    enum trust trust;            /* trustAnnotations */
    const char *jwt_key_file;    /* jwtKeyFile: sign our own short-lived tokens; "" = token file */
    const char *jwt_user;        /* jwtUser: whose tokens those are; or the token of the file is */
    const char *warnings;        /* what was ignored, one line each; "" */
    struct json_doc *doc;        /* private: holds the selector */
    struct arena arena;          /* private: holds all the others */
};

/* Defaults are those of the chart. The text is YAML; an empty one gives the defaults. Errors name
 * the key and the form that is allowed. */
int bridge_config_parse(struct str text, struct bridge_config *ret_config, struct err *err);
int bridge_config_load(const char *path, struct bridge_config *ret_config, struct err *err);
void bridge_config_done(struct bridge_config *config);

/* The first rule that matches, or NULL. creator: as in BRIDGE_CREATOR_ANNOTATION; "": not known. */
const struct bridge_user *bridge_config_user(const struct bridge_config *config, const char *ns,
                                             const char *service_account, struct str creator);
/* Whether one of the patterns ("a*,b") matches the word. */
bool bridge_config_is_like_any(const char *patterns, struct str word);
/* NULL for a class that has no rule. */
const struct bridge_priority *bridge_config_priority(const struct bridge_config *config,
                                                     const char *class);

/* Whether the webhook gives a pod an entry for a claim of cores (DEVICE_CPU_CLAIM), unless the pod
 * requests cores itself: it shares its node. says: it has the annotation `exclusive`. */
bool bridge_config_pins(const struct bridge_config *config, bool says, struct str exclusive);

/* The reference table as Markdown: key, type, default, meaning. */
void bridge_config_reference(struct buf *out);

#endif
