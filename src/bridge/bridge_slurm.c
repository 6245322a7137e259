/* bridge_slurm.c - what the bridge knows of Slurm beside its caches, as facts for plans: whether it
 * can be used, what slurmctld says of itself, whether it may have been restarted.
 *
 * Holds: the facts that plans read are those of the moment at which they plan. */
#include "bridge/bridge_private.h"

#include "base/log.h"
#include "slurm/submit.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SECOND_US = 1000000,
    RETRY_US = SECOND_US,      /* of the question about the configuration, until it is answered */
    SIGHT_US = 60 * SECOND_US, /* between questions about slurmctld's configuration */
    TROUBLE_US = SECOND_US,    /* between looks at whether Slurm can be used */
    MAX_SKEW_US = 2 * SECOND_US,
};

const char bridge_became_leader[] = "this bridge has just become the leader";

/* ---- the facts of the moment ---- */

/* The end of a suspicion, unless it came with the lease. */
static void note_restart(struct bridge *bridge)
{
    struct bridge_facts *facts = &bridge->world.facts;
    bool is_suspicious = slurm_poller_is_suspicious(bridge->poller);

    int64_t listed_us = slurm_cache_listed_us(bridge->world.slurm_jobs);

    if (is_suspicious && !bridge->was_restarted &&
        !str_is(str_of(slurm_poller_why(bridge->poller)), bridge_became_leader)) {
        bridge->was_restarted = true;
        bridge->listed_us = listed_us;
    }
    if (is_suspicious || !bridge->was_restarted)
        return;
    bridge->was_restarted = false;
    if (listed_us == bridge->listed_us)
        return; /* its boot time showed that it was not */
    log_warn("jobs were read again: slurmctld may have been restarted",
             LOG_TEXT("why", slurm_poller_why(bridge->poller)));
    facts->restarted_us = loop_now_us(bridge->links.loop);
}

/* What a unit that waits for Slurm to be read waits for. */
static bool jobs_are_read(const struct bridge_world *world)
{
    return slurm_is_clear(world) &&
           slurm_cache_listed_us(world->slurm_jobs) >= world->facts.leading_us;
}

int64_t bridge_takeover_delay_us(const struct bridge *bridge)
{
    return slurm_submit_fence_us(bridge->slurm,
                                 bridge->has_site ? bridge->site.message_timeout_s : 0);
}

static const char *slurm_user_of(const struct bridge *bridge)
{
    const char *user = slurm_client_user(bridge->slurm);

    return user[0] ? user : slurm_token_user(slurm_client_token(bridge->slurm));
}

void bridge_refresh_facts(struct bridge *bridge)
{
    struct bridge_facts *facts = &bridge->world.facts;

    facts->now_us = loop_now_us(bridge->links.loop);
    facts->wall_us = clock_wall_us(loop_clock(bridge->links.loop));
    if (facts->wall_us >= bridge->owner.former_until_s * 1000000)
        bridge->owner.former = STR("");
    facts->slurm_skew_us = bridge->has_site ? bridge->site.skew_us : 0;
    facts->slurm_synced = slurm_poller_is_synced(bridge->poller);
    facts->is_suspicious = slurm_poller_is_suspicious(bridge->poller);
    facts->suspicion = slurm_poller_why(bridge->poller);
    facts->pause_us = slurm_executor_pause_us(bridge->executor, &facts->pause_why);
    facts->denied_us = slurm_executor_denied_us(bridge->executor);
    if (facts->denied_us && bridge->trouble.why[0])
        facts->pause_why = bridge->trouble.why; /* the same words on all pods */
    facts->trouble = bridge->is_unread ? bridge->trouble.why : "";
    facts->trouble_us = bridge->trouble.since_us;
    facts->takeover_delay_us = bridge_takeover_delay_us(bridge);
    facts->waiting_pods = bridge->timings.waiting;
    facts->max_jobs = bridge->has_site ? bridge->site.max_job_count : 0;
    facts->agent_is_up = slurm_agent_is_up(bridge->slurm);
    facts->slurm_user = slurm_user_of(bridge);
    facts->unsubmitted = timings_unsubmitted(&bridge->timings);
    facts->queued = slurm_executor_queued(bridge->executor);
    facts->rebooking = bridge->timings.rebooking;
    if (watches_refresh(bridge->watches))
        bridge_look_at_all(bridge);
    note_restart(bridge);
    /* A plan that is made now may wait for this. */
    if (!jobs_are_read(&bridge->world))
        bridge->waits_for_slurm = true;
}

void bridge_slurm_settled(void *context)
{
    struct bridge *bridge = context;

    bridge_refresh_facts(bridge);
    if (!bridge->waits_for_slurm || !jobs_are_read(&bridge->world))
        return;
    bridge->waits_for_slurm = false;
    bridge_wake(bridge, ON_SLURM);
    bridge_look_at_all_nodes(bridge);
}

/* ---- whether Slurm can be used ---- */

/* A submit that is denied while polls are not: its token lives for seconds, so the clocks matter.
 */
static void write_denial(const struct bridge *bridge, const char *denied, char *why, size_t size)
{
    int64_t skew_us = bridge->has_site ? bridge->site.skew_us : 0;
    int64_t apart_us = skew_us > 0 ? skew_us : -skew_us;

    if (apart_us > MAX_SKEW_US)
        (void)snprintf(why, size, "%s (slurmctld's clock is %" PRId64 " s %s ours)", denied,
                       apart_us / SECOND_US, skew_us > 0 ? "ahead of" : "behind");
    else
        (void)snprintf(why, size, "%s", denied);
}

static void look_for_trouble(void *context)
{
    struct bridge *bridge = context;
    const char *error = slurm_trouble_of_polls(bridge->poller), *denied;
    bool was_unread = bridge->is_unread;
    char why[sizeof(bridge->trouble.why)] = "";

    bridge->is_unread = error[0] != '\0';
    if (was_unread && !bridge->is_unread)
        slurm_executor_forget_denial(bridge->executor);
    (void)slurm_executor_pause_us(bridge->executor, &denied);
    if (bridge->is_unread)
        (void)snprintf(why, sizeof(why), "Slurm cannot be used: %s", error);
    else if (slurm_executor_denied_us(bridge->executor) && denied[0])
        write_denial(bridge, denied, why, sizeof(why));
    else if (slurm_executor_denied_us(bridge->executor)) /* a submit tries whether it still is */
        (void)snprintf(why, sizeof(why), "%s", bridge->trouble.why);
    if (slurm_trouble_update(&bridge->trouble, why, loop_now_us(bridge->links.loop)))
        bridge_look_at_all_that_wait(bridge);
    bridge_slurm_settled(bridge);
    loop_timer_start(bridge->links.loop, &bridge->look_for_trouble, TROUBLE_US, look_for_trouble,
                     bridge);
}

/* ---- what slurmctld says of itself ---- */

static void ask_site(void *context);

static void on_site(void *context, enum slurm_sight sight, const char *why,
                    const struct slurm_site *site)
{
    struct bridge *bridge = context;
    struct bridge_facts *facts = &bridge->world.facts;
    bool is_news = sight != facts->job_visibility, knew = facts->knows_job_visibility;
    unsigned version = slurm_client_version(bridge->slurm); /* 0: nobody answered */
    bool has_conf = version == 0 || version >= slurm_endpoint(SLURM_CONF)->since;
    bool knew_user = facts->slurm_user[0] != '\0';

    bridge->is_checking = false;
    (void)snprintf(bridge->sight_why, sizeof(bridge->sight_why), "%s", why);
    facts->job_visibility = sight;
    facts->knows_job_visibility = true;
    facts->job_visibility_why = bridge->sight_why;
    if (site) {
        bridge->site = *site;
        bridge->has_site = true;
        facts->kill_wait_s = site->kill_wait_s;
        facts->immediate_jobs_last = site->inactive_limit_s == 0;
        slurm_executor_set_message_timeout(bridge->executor, site->message_timeout_s);
    }
    facts->slurm_user = slurm_user_of(bridge);
    if (is_news || !knew || (!knew_user && facts->slurm_user[0]))
        bridge_wake(bridge, ON_SLURM);
    if (is_news && sight == SLURM_SEES_PART)
        log_error("Slurm is not asked for jobs: its token must see all of them",
                  LOG_TEXT("why", why));
    loop_timer_start(bridge->links.loop, &bridge->look_at_site,
                     site || !has_conf ? SIGHT_US : RETRY_US, ask_site, bridge);
}

static void ask_site(void *context)
{
    struct bridge *bridge = context;

    bridge->is_checking = true;
    slurm_can_see_all(&bridge->sight, bridge->slurm, on_site, bridge);
}

/* ---- beginning and end ---- */

void bridge_observe_slurm(struct bridge *bridge)
{
    ask_site(bridge);
    look_for_trouble(bridge);
}

void bridge_stop_observing(struct bridge *bridge)
{
    loop_timer_stop(&bridge->look_at_site);
    loop_timer_stop(&bridge->look_for_trouble);
    if (bridge->is_checking)
        slurm_sight_stop(&bridge->sight);
}
