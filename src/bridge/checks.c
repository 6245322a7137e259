/* checks.c - what is wrong with the site, and what to do about it. */
#include "bridge/checks.h"

#include "base/log.h"
#include "base/mem.h"
#include "bridge/bridge.h"
#include "io/loop.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    SECOND_US = 1000000,
    FIRST_US = 5 * SECOND_US,
    PERIOD_US = 30 * SECOND_US,
    MIN_JOB_AGE_S = 60,
    MAX_SKEW_US = 2 * SECOND_US, /* submit_guard.c takes clocks to be that close */
    MIN_VERSION = 44,            /* external nodes: Slurm 25.11 */
};

__attribute__((format(printf, 3, 4))) static void find(struct check_finding *finding,
                                                       enum check_result result, const char *format,
                                                       ...)
{
    va_list args;

    finding->result = result;
    va_start(args, format);
    (void)vsnprintf(finding->what, sizeof(finding->what), format, args);
    va_end(args);
}

__attribute__((format(printf, 2, 3))) static void fix(struct check_finding *finding,
                                                      const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(finding->fix, sizeof(finding->fix), format, args);
    va_end(args);
}

/* ---- one function each ---- */

static void check_answers(const struct check_facts *facts, struct check_finding *finding)
{
    if (!facts->slurm_error[0]) {
        find(finding, CHECK_GOOD, "slurmrestd answers at %s", facts->config->slurm_rest_api);
        return;
    }
    find(finding, CHECK_BAD, "slurmrestd does not answer at %s: %s", facts->config->slurm_rest_api,
         facts->slurm_error);
    fix(finding, "see that the host of `slurmRestApi` resolves from here (DNS), that the Service "
                 "has endpoints, and that the token is one that Slurm takes");
}

static void check_version(const struct check_facts *facts, struct check_finding *finding)
{
    if (facts->version == 0)
        return;
    if (facts->version >= MIN_VERSION) {
        find(finding, CHECK_GOOD, "slurmrestd speaks v0.0.%u", facts->version);
        return;
    }
    find(finding, CHECK_BAD, "slurmrestd speaks v0.0.%u, which knows no external nodes",
         facts->version);
    fix(finding, "Slurm 25.11 or later is needed");
}

static void check_job_visibility(const struct check_facts *facts, struct check_finding *finding)
{
    switch (facts->job_visibility) {
    case SLURM_SEES_ALL:
        find(finding, CHECK_GOOD, "our Slurm user sees all jobs");
        break;
    case SLURM_SEES_PART:
        find(finding, CHECK_BAD, "our Slurm user does not see all jobs, so none is asked for: %s",
             facts->job_visibility_why);
        fix(finding, "use a token of SlurmUser, or of a user with AdminLevel=Operator");
        break;
    case SLURM_SIGHT_UNKNOWN:
        if (facts->slurm_error[0])
            return;
        find(finding, CHECK_WARNS, "whether our Slurm user sees all jobs is not known: %s",
             facts->job_visibility_why);
        fix(finding, "use a token of SlurmUser, which always does");
        break;
    }
}

static void check_partition(const struct check_facts *facts, struct check_finding *finding)
{
    const char *name = facts->config->partition;

    if (!facts->partitions_known || !name[0])
        return;
    if (facts->partition_exists) {
        find(finding, CHECK_GOOD, "partition %s exists", name);
        return;
    }
    find(finding, CHECK_BAD, "there is no partition %s", name);
    fix(finding,
        "add `Nodeset=%s Feature=%s` and `PartitionName=%s Nodes=%s` to slurm.conf and run "
        "`scontrol reconfigure`, or name another one as `partition` in the config",
        name, name, name, name);
}

static void check_room_for_nodes(const struct check_facts *facts, struct check_finding *finding)
{
    size_t wanted =
        facts->slurm_nodes > facts->labelled_nodes ? facts->slurm_nodes : facts->labelled_nodes;

    if (!facts->site || facts->site->max_node_count <= 0)
        return;
    if ((int64_t)wanted <= facts->site->max_node_count) {
        find(finding, CHECK_GOOD, "MaxNodeCount=%" PRId64 " has room for %zu nodes",
             facts->site->max_node_count, wanted);
        return;
    }
    find(finding, CHECK_BAD, "MaxNodeCount=%" PRId64 " is less than the %zu nodes to be registered",
         facts->site->max_node_count, wanted);
    fix(finding, "set MaxNodeCount=%zu in slurm.conf and restart slurmctld", 2 * wanted);
}

static void check_job_age(const struct check_facts *facts, struct check_finding *finding)
{
    if (!facts->site)
        return;
    if (facts->site->min_job_age_s >= MIN_JOB_AGE_S || facts->site->min_job_age_s == 0) {
        find(finding, CHECK_GOOD, "MinJobAge=%" PRId64, facts->site->min_job_age_s);
        return;
    }
    find(finding, CHECK_WARNS,
         "MinJobAge=%" PRId64 ": how a job ended may be forgotten before the bridge has read it",
         facts->site->min_job_age_s);
    fix(finding, "set MinJobAge=300 in slurm.conf");
}

static void check_inactive(const struct check_facts *facts, struct check_finding *finding)
{
    if (!facts->site)
        return;
    if (facts->site->inactive_limit_s == 0) {
        find(finding, CHECK_GOOD, "pods that fit are placed at once");
        return;
    }
    find(finding, CHECK_WARNS,
         "InactiveLimit=%" PRId64
         " would end immediate allocations, so every pod goes by the queue",
         facts->site->inactive_limit_s);
    fix(finding, "set InactiveLimit=0 in slurm.conf for pods that start in milliseconds");
}

/* The end of an external job wakes no scheduler. */
static void check_cycles(const struct check_facts *facts, struct check_finding *finding)
{
    if (!facts->site)
        return;
    if (strstr(facts->site->scheduler_parameters, "bf_interval=") ||
        strstr(facts->site->scheduler_parameters, "sched_interval=")) {
        find(finding, CHECK_GOOD, "SchedulerParameters=%s", facts->site->scheduler_parameters);
        return;
    }
    find(finding, CHECK_WARNS,
         "a pod that waits for the end of another may start up to 30 s after "
         "it: Slurm looks again only in its next backfill cycle");
    fix(finding, "add `sched_interval=5,bf_interval=10` to SchedulerParameters in slurm.conf");
}

static void check_clock(const struct check_facts *facts, struct check_finding *finding)
{
    int64_t skew_us = facts->skew_us < 0 ? -facts->skew_us : facts->skew_us;

    if (!facts->has_skew)
        return;
    if (skew_us <= MAX_SKEW_US) {
        find(finding, CHECK_GOOD, "the API server's clock agrees with ours");
        return;
    }
    find(finding, CHECK_BAD, "the API server's clock and ours differ by %" PRId64 " s",
         skew_us / SECOND_US);
    fix(finding, "see to the time synchronisation of this machine and of the control plane");
}

/* Tokens that the bridge signs count by its own clock, and some of them live for seconds. */
static void check_slurm_clock(const struct check_facts *facts, struct check_finding *finding)
{
    int64_t skew_us = facts->site ? facts->site->skew_us : 0;

    if (!facts->site || facts->site->time == 0)
        return;
    if (skew_us <= MAX_SKEW_US && -skew_us <= MAX_SKEW_US) {
        find(finding, CHECK_GOOD, "slurmctld's clock agrees with ours");
        return;
    }
    find(finding, CHECK_BAD, "slurmctld's clock is %" PRId64 " s %s ours: it may refuse our tokens",
         (skew_us > 0 ? skew_us : -skew_us) / SECOND_US, skew_us > 0 ? "ahead of" : "behind");
    fix(finding, "see to the time synchronisation of this machine and of slurmctld's");
}

const struct check checks_table[CHECK_COUNT] = {
    { "slurmrestd", check_answers },
    { "version", check_version },
    { "sees all jobs", check_job_visibility },
    { "partition", check_partition },
    { "MaxNodeCount", check_room_for_nodes },
    { "MinJobAge", check_job_age },
    { "InactiveLimit", check_inactive },
    { "scheduler cycles", check_cycles },
    { "clock", check_clock },
    { "slurmctld's clock", check_slurm_clock },
};

/* ---- running them ---- */

struct checks {
    struct loop *loop;
    struct bridge *bridge;
    const struct bridge_config *config;
    struct loop_timer timer;
    struct check_finding last[CHECK_COUNT];
};

struct checks *checks_new(struct loop *loop, struct bridge *bridge,
                          const struct bridge_config *config)
{
    struct checks *checks = mem_alloc(sizeof(*checks));

    *checks = (struct checks){ .loop = loop, .bridge = bridge, .config = config };
    return checks;
}

static void tell(const char *name, const struct check_finding *finding)
{
    switch (finding->result) {
    case CHECK_UNKNOWN:
        break;
    case CHECK_GOOD:
        log_info("check", LOG_TEXT("of", name), LOG_TEXT("found", finding->what));
        break;
    case CHECK_WARNS:
        log_warn("check", LOG_TEXT("of", name), LOG_TEXT("found", finding->what),
                 LOG_TEXT("fix", finding->fix));
        break;
    case CHECK_BAD:
        log_error("check", LOG_TEXT("of", name), LOG_TEXT("found", finding->what),
                  LOG_TEXT("fix", finding->fix));
        break;
    }
}

static void run_all(void *context)
{
    struct checks *checks = context;
    struct check_facts facts = { .config = checks->config,
                                 .slurm_error = "",
                                 .job_visibility_why = "" };

    bridge_check_facts(checks->bridge, &facts);
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        struct check_finding finding = { .result = CHECK_UNKNOWN };

        checks_table[i].run(&facts, &finding);
        if (finding.result != checks->last[i].result)
            tell(checks_table[i].name, &finding);
        checks->last[i] = finding;
    }
    loop_timer_start(checks->loop, &checks->timer, PERIOD_US, run_all, checks);
}

void checks_start(struct checks *checks)
{
    loop_timer_start(checks->loop, &checks->timer, FIRST_US, run_all, checks);
}

void checks_free(struct checks *checks)
{
    if (!checks)
        return;
    loop_timer_stop(&checks->timer);
    mem_free(checks);
}
