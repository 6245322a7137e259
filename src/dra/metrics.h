/* metrics.h - the metric families of the plugin. */
#ifndef SLINC_DRA_METRICS_H
#define SLINC_DRA_METRICS_H

#include "engine/metrics.h"

extern const struct metric_family dra_metric_prepared, dra_metric_unprepared, dra_metric_claims,
    dra_metric_containers, dra_metric_repairs;

#endif
