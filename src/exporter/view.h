/* view.h - view.slinky.slurm.net/v1alpha1: Slurm's jobs and nodes as documents, for the terminal
 * and the page, and what the bridge thinks of one pod. Read-only and pure.
 *
 * Times are RFC 3339, durations seconds, memory bytes. What is not known is absent. */
#ifndef SLINC_EXPORTER_VIEW_H
#define SLINC_EXPORTER_VIEW_H

#include "exporter/tally.h"

#define VIEW_GROUP "view.slinky.slurm.net"
#define VIEW_PATH  "/apis/view.slinky.slurm.net"

enum { VIEW_MAX_ANSWER = 256 << 20 };

enum view_kind {
    VIEW_IS_GROUP,
    VIEW_IS_LIST,
    VIEW_IS_JOBS,
    VIEW_IS_NODES,
    VIEW_IS_CHECKS,
    VIEW_IS_WHY,
};

struct view_question {
    enum view_kind kind;
    struct str ns, pod; /* of VIEW_IS_WHY; borrowed from the path */
};

/* -ERR_NOT_FOUND for a path that is none of ours. */
int view_parse(struct str path, struct view_question *ret_question, struct err *err);
const char *view_resource(enum view_kind kind); /* "jobs", "nodes"; NULL: everybody may read it */

/* Of jobs, nodes and discovery. -ERR_UNAVAILABLE: what it would tell is stale or hidden. tally may
 * be NULL for discovery. */
int view_write(struct tally *tally, enum view_kind kind, struct buf *out, struct err *err);

/* What `slinc doctor` asks: what the bridge answered to GET /debug/checks, "" when it did not, and
 * the page /metrics/cluster. */
void view_write_checks(struct str bridge, struct str metrics, struct buf *out);

/* What the bridge answered to GET /debug/why, as a document of this API. */
void view_write_why(const struct view_question *question, struct str decision, struct buf *out);

#endif
