/* slurm_health.h - what is heard of Slurm, as others see it: /readyz, /debug/state and /metrics. */
#ifndef SLINC_ENGINE_SLURM_HEALTH_H
#define SLINC_ENGINE_SLURM_HEALTH_H

#include "engine/health.h"
#include "engine/metrics.h"
#include "slurm/agent.h"
#include "slurm/poller.h"

struct slurm_health { /* all private */
    struct metrics *metrics;
    struct slurm_poller *poller;       /* NULL while it is not known which cluster this is */
    const struct slurm_client *client; /* whose agent is shown; NULL: none */
};

/* metrics is borrowed; poller and client are set when there are any. */
void slurm_health_init(struct slurm_health *slurm_health, struct metrics *metrics);
void slurm_health_add_health(struct slurm_health *slurm_health, struct health *health);

extern const struct metric_family slurm_health_metrics[];
extern const size_t slurm_health_metric_count;

/* ---- trouble: one episode in which the bridge can do nothing in Slurm, since when, and why ----
 * Slurm cannot be reached or read, or denies us: no token, one that has expired, a user without
 * rights. An episode is logged once when it begins, when its reason changes, and when it ends. */

struct slurm_trouble {
    char why[320];    /* for people; "" = there is none */
    int64_t since_us; /* loop time */
};

/* why is "" when there is none. The words of an episode stay for a minute: thousands of pods say
 * them, and are not to be written again for every error. True when pods have something new to say.
 */
bool slurm_trouble_update(struct slurm_trouble *trouble, const char *why, int64_t now_us);

/* Why Slurm cannot be read; "" when it can. One failure among good polls is none.
 * Borrowed until the loop runs. */
const char *slurm_trouble_of_polls(const struct slurm_poller *poller);

#endif
