/* view.h - view.slinky.slurm.net/v1alpha1: Slurm's jobs and nodes as documents, for the terminal
 * and the page. Read-only and pure.
 *
 * Times are RFC 3339, durations seconds, memory bytes. What is not known is absent. */
#ifndef SLINC_EXPORTER_VIEW_H
#define SLINC_EXPORTER_VIEW_H

#include "exporter/tally.h"

#define VIEW_GROUP "view.slinky.slurm.net"
#define VIEW_PATH  "/apis/view.slinky.slurm.net"

enum { VIEW_MAX_ANSWER = 256 << 20 };

enum view_kind { VIEW_IS_GROUP, VIEW_IS_LIST, VIEW_IS_JOBS, VIEW_IS_NODES };

/* -ERR_NOT_FOUND for a path that is none of ours. */
int view_parse(struct str path, enum view_kind *ret_kind, struct err *err);
const char *view_resource(enum view_kind kind); /* "jobs", "nodes"; NULL: everybody may read it */

/* -ERR_UNAVAILABLE: what it would tell is stale or hidden. tally may be NULL for discovery. */
int view_write(const struct tally *tally, enum view_kind kind, struct buf *out, struct err *err);

#endif
