/* slurm_health.h - what is heard of Slurm, as others see it: /readyz, /debug/state and /metrics. */
#ifndef SLINC_BRIDGE_SLURM_HEALTH_H
#define SLINC_BRIDGE_SLURM_HEALTH_H

#include "engine/health.h"
#include "engine/metrics.h"
#include "slurm/poller.h"

struct slurm_health { /* all private */
    struct metrics *metrics;
    struct slurm_poller *poller; /* NULL while it is not known which cluster this is */
};

/* metrics is borrowed; the poller is set when there is one. */
void slurm_health_init(struct slurm_health *slurm_health, struct metrics *metrics);
void slurm_health_add_health(struct slurm_health *slurm_health, struct health *health);

extern const struct metric_family slurm_health_metrics[];
extern const size_t slurm_health_metric_count;

#endif
