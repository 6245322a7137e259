/* slurm_trouble.h - one episode in which the bridge can do nothing in Slurm: since when, and why.
 *
 * Slurm cannot be reached or read, or denies us: no token, one that has expired, a user without
 * rights. An episode is logged once when it begins, when its reason changes, and when it ends. */
#ifndef SLINC_BRIDGE_SLURM_TROUBLE_H
#define SLINC_BRIDGE_SLURM_TROUBLE_H

#include "slurm/poller.h"

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
