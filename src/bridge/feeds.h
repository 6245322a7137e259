/* feeds.h - what is heard of Slurm, as others see it: /readyz, /debug/state and /metrics. */
#ifndef SLINC_BRIDGE_FEEDS_H
#define SLINC_BRIDGE_FEEDS_H

#include "engine/health.h"
#include "engine/metrics.h"
#include "slurm/poller.h"

struct feeds { /* all private */
    struct metrics *metrics;
    struct slurm_poller *poller; /* NULL while it is not known which cluster this is */
};

/* metrics is borrowed; the poller is set when there is one. */
void feeds_init(struct feeds *feeds, struct metrics *metrics);
void feeds_add_health(struct feeds *feeds, struct health *health);

extern const struct metric_family feeds_metrics[];
extern const size_t feeds_metric_count;

#endif
