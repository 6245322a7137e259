/* rules.h - recording rules and alerts for Prometheus, over families of the table of metrics. */
#ifndef SLINC_EXPORTER_RULES_H
#define SLINC_EXPORTER_RULES_H

#include "base/buf.h"

/* Groups of rules as JSON, which Prometheus reads as YAML. `slinc exporter --print=rules` prints
 * it, and the chart ships it as a PrometheusRule. */
void rules_write(struct buf *out);

/* The expression of the i-th rule; NULL behind the last. For tests. */
const char *rules_query(size_t i);

#endif
