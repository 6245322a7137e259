/* slurm_trouble.c - when an episode of trouble with Slurm begins, changes and ends. */
#include "bridge/slurm_trouble.h"

#include "base/log.h"

#include <stdio.h>

enum {
    SECOND_US = 1000000,
    SAME_WORDS_US = 60 * SECOND_US,
    FAILURES = 2, /* of polls of jobs in a row, once all kinds have been read */
};

bool slurm_trouble_update(struct slurm_trouble *trouble, const char *why, int64_t now_us)
{
    bool is_on = trouble->why[0] != '\0';

    if (strcmp(trouble->why, why) == 0 ||
        (is_on && why[0] && now_us - trouble->since_us < SAME_WORDS_US))
        return false;
    if (why[0])
        log_warn("pods wait because the bridge cannot use Slurm", LOG_TEXT("why", why));
    else
        log_info("the bridge can use Slurm again");
    (void)snprintf(trouble->why, sizeof(trouble->why), "%s", why);
    trouble->since_us = now_us;
    return true;
}

const char *slurm_trouble_of_polls(const struct slurm_poller *poller)
{
    bool is_synced = slurm_poller_is_synced(poller);
    struct slurm_feed_stats stats;

    for (unsigned feed = 0; feed < SLURM_FEEDS; feed++) {
        slurm_poller_stats(poller, (enum slurm_feed)feed, &stats);
        if (is_synced ? feed == SLURM_FEED_JOBS && stats.failed_in_a_row >= FAILURES
                      : stats.failed_in_a_row > 0)
            return stats.last_error;
    }
    return "";
}
