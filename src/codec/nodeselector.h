/* nodeselector.h - which nodes a pod or a volume may use: v1.NodeSelector and node affinity.
 *
 * Terms are ORed, what stands in one term is ANDed; a term with nothing in it matches no node.
 * Compiled once into an arena, then asked of many nodes.
 *
 * The API server lets some requirements through that the scheduler cannot read (values that are no
 * label values). As there, a term with such a requirement matches no node, and the other terms
 * still do. */
#ifndef SLINC_CODEC_NODESELECTOR_H
#define SLINC_CODEC_NODESELECTOR_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "codec/json.h"
#include "codec/selector.h"

#include <stdbool.h>

enum {
    NODESELECTOR_MAX_TERMS = 256, /* SELECTOR_MAX_* bound each term */
};

struct nodeselector_node {
    struct str name; /* not empty */
    struct selector_subject labels;
};

/* ---- v1.NodeSelector: of a volume, a resource slice, a required affinity ---- */

struct nodeselector;

/* Absent and null match every node; one without terms matches none. -ERR_INVALID when it is not an
 * object with an array of terms, -ERR_TOO_BIG past a bound. */
int nodeselector_from_json(struct arena *arena, const struct json *value,
                           const struct nodeselector **ret_selector, struct err *err);
bool nodeselector_matches(const struct nodeselector *selector,
                          const struct nodeselector_node *node);

/* ---- all that a pod requires of nodes by itself ---- */

struct nodeselector_pod;

/* From the pod's spec: nodeSelector, and what affinity.nodeAffinity requires. */
int nodeselector_from_pod_spec(struct arena *arena, const struct json *spec,
                               const struct nodeselector_pod **ret_pod, struct err *err);
bool nodeselector_pod_matches(const struct nodeselector_pod *pod,
                              const struct nodeselector_node *node);

#endif
