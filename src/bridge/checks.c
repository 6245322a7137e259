/* checks.c - what is wrong with the site, and what to do about it. */
#include "bridge/checks.h"

#include "bridge/bridge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    SECOND_US = 1000000,
    MIN_JOB_AGE_S = 60,
    MAX_SKEW_US = 2 * SECOND_US, /* situation.c takes clocks to be that close */
    MIN_VERSION = 44,            /* external nodes: Slurm 25.11 */
};

/* ---- one function each ---- */

static void check_answers(const struct check_facts *facts, struct check_finding *finding)
{
    const char *url = facts->config->slurm_rest_api;

    if (!facts->slurm_error[0])
        check_find(finding, CHECK_GOOD, "", "slurmrestd answers at %s", url);
    else
        check_find(
            finding, CHECK_BAD,
            "see that the host of `slurmRestApi` resolves from here (DNS), that the Service has "
            "endpoints, and that the token is one that Slurm takes",
            "slurmrestd does not answer at %s: %s", url, facts->slurm_error);
}

static void check_annotations(const struct check_facts *facts, struct check_finding *finding)
{
    if (facts->config->trust == TRUST_ALL)
        check_find(
            finding, CHECK_WARNS,
            "set trustAnnotations: own in the values of the chart, or in the config",
            "whoever may create pods of ours is any Slurm user by annotation, with any priority");
    else
        check_find(finding, CHECK_GOOD, "", "annotations make no job somebody else's");
}

static void check_version(const struct check_facts *facts, struct check_finding *finding)
{
    if (facts->version >= MIN_VERSION)
        check_find(finding, CHECK_GOOD, "", "slurmrestd speaks v0.0.%u", facts->version);
    else if (facts->version > 0)
        check_find(finding, CHECK_BAD, "Slurm 25.11 or later is needed",
                   "slurmrestd speaks v0.0.%u, which knows no external nodes", facts->version);
}

static void check_job_visibility(const struct check_facts *facts, struct check_finding *finding)
{
    if (facts->lacks_user)
        check_find(
            finding, CHECK_BAD, "name its user as `jwtUser` in the config",
            "the token names no Slurm user, so no job is submitted: it could not be proven ours");
    else if (facts->job_visibility == SLURM_SEES_ALL)
        check_find(finding, CHECK_GOOD, "", "our Slurm user sees all jobs");
    else if (facts->job_visibility == SLURM_SEES_PART)
        check_find(finding, CHECK_BAD,
                   "use a token of SlurmUser, or of a user with AdminLevel=Operator",
                   "our Slurm user does not see all jobs, so no job is submitted: %s",
                   facts->job_visibility_why);
    else if (!facts->slurm_error[0] && facts->job_visibility_why[0])
        check_find(finding, CHECK_WARNS, "use a token of SlurmUser, which always does",
                   "whether our Slurm user sees all jobs is not known: %s",
                   facts->job_visibility_why);
}

static void check_partition(const struct check_facts *facts, struct check_finding *finding)
{
    const char *name = facts->config->partition;
    char fix[sizeof(finding->fix)];

    if (!facts->partitions_known || !name[0])
        return;
    (void)snprintf(fix, sizeof(fix),
                   "add `Nodeset=%s Feature=%s` and `PartitionName=%s Nodes=%s` to slurm.conf and "
                   "run `scontrol reconfigure`, or name another one as `partition` in the config",
                   name, name, name, name);
    if (facts->partition_exists)
        check_find(finding, CHECK_GOOD, "", "partition %s exists", name);
    else
        check_find(finding, CHECK_BAD, fix, "there is no partition %s", name);
}

static void check_room_for_nodes(const struct check_facts *facts, struct check_finding *finding)
{
    size_t wanted =
        facts->slurm_nodes > facts->labelled_nodes ? facts->slurm_nodes : facts->labelled_nodes;
    int64_t most = facts->site ? facts->site->max_node_count : 0;
    char fix[sizeof(finding->fix)];

    (void)snprintf(fix, sizeof(fix), "set MaxNodeCount=%zu in slurm.conf and restart slurmctld",
                   2 * wanted);
    if (most > 0 && (int64_t)wanted <= most)
        check_find(finding, CHECK_GOOD, "", "MaxNodeCount=%" PRId64 " has room for %zu nodes", most,
                   wanted);
    else if (most > 0)
        check_find(finding, CHECK_BAD, fix,
                   "MaxNodeCount=%" PRId64 " is less than the %zu nodes to be registered", most,
                   wanted);
}

static void check_job_age(const struct check_facts *facts, struct check_finding *finding)
{
    int64_t age_s = facts->site ? facts->site->min_job_age_s : 0;

    if (facts->site && (age_s >= MIN_JOB_AGE_S || age_s == 0))
        check_find(finding, CHECK_GOOD, "", "MinJobAge=%" PRId64, age_s);
    else if (facts->site)
        check_find(finding, CHECK_WARNS, "set MinJobAge=300 in slurm.conf",
                   "MinJobAge=%" PRId64
                   ": how a job ended may be forgotten before the bridge has read it",
                   age_s);
}

static void check_inactive(const struct check_facts *facts, struct check_finding *finding)
{
    int64_t limit_s = facts->site ? facts->site->inactive_limit_s : 0;

    if (limit_s != 0)
        check_find(finding, CHECK_WARNS,
                   "set InactiveLimit=0 in slurm.conf for pods that start in milliseconds",
                   "InactiveLimit=%" PRId64
                   " would end immediate allocations, so every pod goes by the queue",
                   limit_s);
    else if (facts->site)
        check_find(finding, CHECK_GOOD, "", "pods that fit are placed at once");
}

/* The end of an external job wakes no scheduler. */
static void check_cycles(const struct check_facts *facts, struct check_finding *finding)
{
    const char *said = facts->site ? facts->site->scheduler_parameters : "";

    if (strstr(said, "bf_interval=") || strstr(said, "sched_interval="))
        check_find(finding, CHECK_GOOD, "", "SchedulerParameters=%s", said);
    else if (facts->site)
        check_find(
            finding, CHECK_WARNS,
            "add `sched_interval=1,bf_interval=5` to SchedulerParameters in slurm.conf",
            "a pod that waits for the end of another may start up to 30 s after it: Slurm looks "
            "again only in its next backfill cycle");
}

static void check_clock(const struct check_facts *facts, struct check_finding *finding)
{
    int64_t skew_us = facts->skew_us < 0 ? -facts->skew_us : facts->skew_us;

    if (facts->has_skew && skew_us <= MAX_SKEW_US)
        check_find(finding, CHECK_GOOD, "", "the API server's clock agrees with ours");
    else if (facts->has_skew)
        check_find(finding, CHECK_BAD,
                   "see to the time synchronisation of this machine and of the control plane",
                   "the API server's clock and ours differ by %" PRId64 " s", skew_us / SECOND_US);
}

/* Tokens that the bridge signs count by its own clock, and some of them live for seconds. */
static void check_slurm_clock(const struct check_facts *facts, struct check_finding *finding)
{
    int64_t skew_us = facts->site ? facts->site->skew_us : 0;
    int64_t apart_us = skew_us > 0 ? skew_us : -skew_us;

    if (!facts->site || facts->site->time == 0)
        return;
    if (apart_us <= MAX_SKEW_US)
        check_find(finding, CHECK_GOOD, "", "slurmctld's clock agrees with ours");
    else
        check_find(finding, CHECK_BAD,
                   "see to the time synchronisation of this machine and of slurmctld's",
                   "slurmctld's clock is %" PRId64 " s %s ours: it may refuse our tokens",
                   apart_us / SECOND_US, skew_us > 0 ? "ahead of" : "behind");
}

static void check_daemonsets(const struct check_facts *facts, struct check_finding *finding)
{
    if (facts->daemonsets_read)
        check_find(finding, CHECK_GOOD, "",
                   "what pods of DaemonSets request is not given to Slurm");
    else if (facts->pods_read)
        check_find(
            finding, CHECK_WARNS,
            "let the account of the bridge `list` and `watch` `daemonsets` of the group `apps`",
            "DaemonSets cannot be read: what their pods request is given to Slurm, too");
}

/* The agent speaks the newest version alone. */
static void check_agent(const struct check_facts *facts, struct check_finding *finding)
{
    if (!facts->has_agent)
        check_find(finding, CHECK_GOOD, "", "there is none: every call goes to slurmrestd");
    else if (!facts->agent.is_known || facts->version == 0)
        return;
    else if (facts->agent.is_up && facts->version == SLURM_VERSION_MAX)
        check_find(finding, CHECK_GOOD, "", "the agent answers, with Slurm %s",
                   facts->agent.version);
    else if (facts->agent.is_up)
        check_find(finding, CHECK_WARNS, "upgrade slurmrestd, or switch the agent off",
                   "the agent is not used, because slurmrestd speaks v0.0.%u and the agent v0.0.%d",
                   facts->version, SLURM_VERSION_MAX);
    else
        check_find(finding, CHECK_WARNS,
                   "see the log of the container `agent` in the pod of the bridge, its token, and "
                   "whether its Slurm version is that of slurmctld",
                   "the agent is not used, slurmrestd is: %s", facts->agent.why);
}

const struct check checks_table[CHECK_COUNT] = {
    { "slurmrestd", check_answers },
    { "annotations", check_annotations },
    { "version", check_version },
    { "sees all jobs", check_job_visibility },
    { "partition", check_partition },
    { "MaxNodeCount", check_room_for_nodes },
    { "MinJobAge", check_job_age },
    { "InactiveLimit", check_inactive },
    { "scheduler cycles", check_cycles },
    { "clock", check_clock },
    { "slurmctld's clock", check_slurm_clock },
    { "DaemonSets", check_daemonsets },
    { "agent", check_agent },
};

static void look(void *context, struct checks *checks)
{
    struct check_facts facts = { .slurm_error = "", .job_visibility_why = "" };

    bridge_check_facts(context, &facts);
    checks_run(checks, &facts);
}

struct checks *bridge_checks_new(struct loop *loop, struct bridge *bridge)
{
    return checks_new(loop, checks_table, CHECK_COUNT, look, bridge);
}
