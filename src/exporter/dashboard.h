/* dashboard.h - a Grafana dashboard of the cluster: one row per panel, over families of the table.
 */
#ifndef SLINC_EXPORTER_DASHBOARD_H
#define SLINC_EXPORTER_DASHBOARD_H

#include "base/buf.h"

/* The JSON that Grafana imports. `slinc exporter --dashboard` prints it, and the chart ships it. */
void dashboard_write(struct buf *out);

/* The query of the i-th curve; NULL behind the last. For tests. */
const char *dashboard_query(size_t i);

#endif
