/* metrics.c - the metric families of the plugin. */
#include "dra/metrics.h"

const struct metric_family dra_metric_prepared = {
    .name = "slinc_dra_prepare_total",
    .help = "Claims that the kubelet asked to prepare, by result (ok, error).",
    .type = METRIC_COUNTER,
    .labels = { "result", NULL },
};

const struct metric_family dra_metric_unprepared = {
    .name = "slinc_dra_unprepare_total",
    .help = "Claims that the kubelet asked to unprepare, by result (ok, error).",
    .type = METRIC_COUNTER,
    .labels = { "result", NULL },
};

const struct metric_family dra_metric_claims = {
    .name = "slinc_dra_prepared_claims",
    .help = "Claims that are prepared on this node.",
    .type = METRIC_GAUGE,
};

const struct metric_family dra_metric_containers = {
    .name = "slinc_dra_pinned_containers",
    .help = "Containers that are pinned to cores on this node.",
    .type = METRIC_GAUGE,
};

const struct metric_family dra_metric_repairs = {
    .name = "slinc_dra_repairs_total",
    .help = "Cpusets of containers that somebody else had changed and that were set again.",
    .type = METRIC_COUNTER,
};
