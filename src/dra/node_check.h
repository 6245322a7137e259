/* node_check.h - whether containers of this node can be pinned, and what stands in the way.
 *
 * The plugin asks at start and every minute: a node that cannot pin offers no cores. `slinc dra
 * --check` prints the rows for people. */
#ifndef SLINC_DRA_NODE_CHECK_H
#define SLINC_DRA_NODE_CHECK_H

#include "base/buf.h"
#include "dra/topology.h"

struct node_paths {
    const char *sys;          /* /sys */
    const char *kubelet_root; /* /var/lib/kubelet */
    const char *cdi_folder;   /* /var/run/cdi */
    const char *hook;         /* where the hook is installed; NULL: not yet */
};

enum { NODE_CHECK_ROWS = 6 };

struct node_check_row {
    const char *name; /* "topology", "cgroup" ... */
    bool is_well;
    char text[256]; /* what was found, or what to do */
};

struct node_check {
    struct node_check_row rows[NODE_CHECK_ROWS];
    struct topology *topology; /* NULL when it cannot be read; the owner frees it */
};

void node_check_run(const struct node_paths *paths, struct node_check *ret_check);

/* The first row that is not well; NULL: all are. */
const struct node_check_row *node_check_problem(const struct node_check *check);

/* One line per row. */
void node_check_write(const struct node_check *check, struct buf *out);

#endif
