/* dashboard.h - Grafana dashboards of the cluster and of the bridge: one row per curve, over
 * families of the tables of metrics. */
#ifndef SLINC_EXPORTER_DASHBOARD_H
#define SLINC_EXPORTER_DASHBOARD_H

#include "base/buf.h"

enum dashboard_kind { DASHBOARD_CLUSTER, DASHBOARD_BRIDGE, DASHBOARDS };

const char *dashboard_name(enum dashboard_kind kind);

/* The JSON that Grafana imports. `slinc exporter --print=NAME` prints it, and the chart ships it.
 */
void dashboard_write(enum dashboard_kind kind, struct buf *out);

/* The query of the i-th curve; NULL behind the last. For tests. */
const char *dashboard_query(enum dashboard_kind kind, size_t i);

#endif
