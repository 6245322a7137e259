/* checks.c - what is wrong with the site, and what to do about it. */
#include "bridge/checks.h"

#include "base/log.h"
#include "base/mem.h"
#include "bridge/bridge.h"
#include "codec/json.h"
#include "engine/health.h"
#include "io/loop.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    SECOND_US = 1000000,
    FIRST_US = 5 * SECOND_US, /* and while something is not known */
    PERIOD_US = 30 * SECOND_US,
    MIN_JOB_AGE_S = 60,
    MAX_SKEW_US = 2 * SECOND_US, /* situation.c takes clocks to be that close */
    MIN_VERSION = 44,            /* external nodes: Slurm 25.11 */
    MAX_ALL = 64 << 10,
};

/* fix: what to do about it; "" when it is good. */
__attribute__((format(printf, 4, 5))) static void find(struct check_finding *finding,
                                                       enum check_result result, const char *fix,
                                                       const char *format, ...)
{
    va_list args;

    finding->result = result;
    (void)snprintf(finding->fix, sizeof(finding->fix), "%s", fix);
    va_start(args, format);
    (void)vsnprintf(finding->what, sizeof(finding->what), format, args);
    va_end(args);
}

/* ---- one function each ---- */

static void check_answers(const struct check_facts *facts, struct check_finding *finding)
{
    const char *url = facts->config->slurm_rest_api;

    if (!facts->slurm_error[0])
        find(finding, CHECK_GOOD, "", "slurmrestd answers at %s", url);
    else
        find(finding, CHECK_BAD,
             "see that the host of `slurmRestApi` resolves from here (DNS), that the Service has "
             "endpoints, and that the token is one that Slurm takes",
             "slurmrestd does not answer at %s: %s", url, facts->slurm_error);
}

static void check_annotations(const struct check_facts *facts, struct check_finding *finding)
{
    if (facts->config->trust == TRUST_ALL)
        find(finding, CHECK_WARNS,
             "set trustAnnotations: own in the values of the chart, or in the config",
             "whoever may create pods of ours is any Slurm user by annotation, with any priority");
    else
        find(finding, CHECK_GOOD, "", "annotations make no job somebody else's");
}

static void check_version(const struct check_facts *facts, struct check_finding *finding)
{
    if (facts->version >= MIN_VERSION)
        find(finding, CHECK_GOOD, "", "slurmrestd speaks v0.0.%u", facts->version);
    else if (facts->version > 0)
        find(finding, CHECK_BAD, "Slurm 25.11 or later is needed",
             "slurmrestd speaks v0.0.%u, which knows no external nodes", facts->version);
}

static void check_job_visibility(const struct check_facts *facts, struct check_finding *finding)
{
    if (facts->lacks_user)
        find(finding, CHECK_BAD, "name its user as `jwtUser` in the config",
             "the token names no Slurm user, so no job is submitted: it could not be proven ours");
    else if (facts->job_visibility == SLURM_SEES_ALL)
        find(finding, CHECK_GOOD, "", "our Slurm user sees all jobs");
    else if (facts->job_visibility == SLURM_SEES_PART)
        find(finding, CHECK_BAD, "use a token of SlurmUser, or of a user with AdminLevel=Operator",
             "our Slurm user does not see all jobs, so no job is submitted: %s",
             facts->job_visibility_why);
    else if (!facts->slurm_error[0] && facts->job_visibility_why[0])
        find(finding, CHECK_WARNS, "use a token of SlurmUser, which always does",
             "whether our Slurm user sees all jobs is not known: %s", facts->job_visibility_why);
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
        find(finding, CHECK_GOOD, "", "partition %s exists", name);
    else
        find(finding, CHECK_BAD, fix, "there is no partition %s", name);
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
        find(finding, CHECK_GOOD, "", "MaxNodeCount=%" PRId64 " has room for %zu nodes", most,
             wanted);
    else if (most > 0)
        find(finding, CHECK_BAD, fix,
             "MaxNodeCount=%" PRId64 " is less than the %zu nodes to be registered", most, wanted);
}

static void check_job_age(const struct check_facts *facts, struct check_finding *finding)
{
    int64_t age_s = facts->site ? facts->site->min_job_age_s : 0;

    if (facts->site && (age_s >= MIN_JOB_AGE_S || age_s == 0))
        find(finding, CHECK_GOOD, "", "MinJobAge=%" PRId64, age_s);
    else if (facts->site)
        find(finding, CHECK_WARNS, "set MinJobAge=300 in slurm.conf",
             "MinJobAge=%" PRId64
             ": how a job ended may be forgotten before the bridge has read it",
             age_s);
}

static void check_inactive(const struct check_facts *facts, struct check_finding *finding)
{
    int64_t limit_s = facts->site ? facts->site->inactive_limit_s : 0;

    if (limit_s != 0)
        find(finding, CHECK_WARNS,
             "set InactiveLimit=0 in slurm.conf for pods that start in milliseconds",
             "InactiveLimit=%" PRId64
             " would end immediate allocations, so every pod goes by the queue",
             limit_s);
    else if (facts->site)
        find(finding, CHECK_GOOD, "", "pods that fit are placed at once");
}

/* The end of an external job wakes no scheduler. */
static void check_cycles(const struct check_facts *facts, struct check_finding *finding)
{
    const char *said = facts->site ? facts->site->scheduler_parameters : "";

    if (strstr(said, "bf_interval=") || strstr(said, "sched_interval="))
        find(finding, CHECK_GOOD, "", "SchedulerParameters=%s", said);
    else if (facts->site)
        find(finding, CHECK_WARNS,
             "add `sched_interval=1,bf_interval=5` to SchedulerParameters in slurm.conf",
             "a pod that waits for the end of another may start up to 30 s after it: Slurm looks "
             "again only in its next backfill cycle");
}

static void check_clock(const struct check_facts *facts, struct check_finding *finding)
{
    int64_t skew_us = facts->skew_us < 0 ? -facts->skew_us : facts->skew_us;

    if (facts->has_skew && skew_us <= MAX_SKEW_US)
        find(finding, CHECK_GOOD, "", "the API server's clock agrees with ours");
    else if (facts->has_skew)
        find(finding, CHECK_BAD,
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
        find(finding, CHECK_GOOD, "", "slurmctld's clock agrees with ours");
    else
        find(finding, CHECK_BAD,
             "see to the time synchronisation of this machine and of slurmctld's",
             "slurmctld's clock is %" PRId64 " s %s ours: it may refuse our tokens",
             apart_us / SECOND_US, skew_us > 0 ? "ahead of" : "behind");
}

static void check_daemonsets(const struct check_facts *facts, struct check_finding *finding)
{
    if (facts->daemonsets_read)
        find(finding, CHECK_GOOD, "", "what pods of DaemonSets request is not given to Slurm");
    else if (facts->pods_read)
        find(finding, CHECK_WARNS,
             "let the account of the bridge `list` and `watch` `daemonsets` of the group `apps`",
             "DaemonSets cannot be read: what their pods request is given to Slurm, too");
}

/* The agent speaks the newest version alone. */
static void check_agent(const struct check_facts *facts, struct check_finding *finding)
{
    if (!facts->has_agent)
        find(finding, CHECK_GOOD, "", "there is none: every call goes to slurmrestd");
    else if (!facts->agent.is_known || facts->version == 0)
        return;
    else if (facts->agent.is_up && facts->version == SLURM_VERSION_MAX)
        find(finding, CHECK_GOOD, "", "the agent answers, with Slurm %s", facts->agent.version);
    else if (facts->agent.is_up)
        find(finding, CHECK_WARNS, "upgrade slurmrestd, or switch the agent off",
             "the agent is not used, because slurmrestd speaks v0.0.%u and the agent v0.0.%d",
             facts->version, SLURM_VERSION_MAX);
    else
        find(finding, CHECK_WARNS,
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
    if (finding->result == CHECK_GOOD)
        log_info("check", LOG_TEXT("of", name), LOG_TEXT("found", finding->what));
    else if (finding->result == CHECK_WARNS)
        log_warn("check", LOG_TEXT("of", name), LOG_TEXT("found", finding->what),
                 LOG_TEXT("fix", finding->fix));
    else if (finding->result == CHECK_BAD)
        log_error("check", LOG_TEXT("of", name), LOG_TEXT("found", finding->what),
                  LOG_TEXT("fix", finding->fix));
}

static void run_all(void *context)
{
    struct checks *checks = context;
    struct check_facts facts = { .config = checks->config,
                                 .slurm_error = "",
                                 .job_visibility_why = "" };
    bool all_known = true;

    bridge_check_facts(checks->bridge, &facts);
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        struct check_finding finding = { .result = CHECK_UNKNOWN };

        checks_table[i].run(&facts, &finding);
        if (finding.result != checks->last[i].result)
            tell(checks_table[i].name, &finding);
        checks->last[i] = finding;
        all_known = all_known && finding.result != CHECK_UNKNOWN;
    }
    loop_timer_start(checks->loop, &checks->timer, all_known ? PERIOD_US : FIRST_US, run_all,
                     checks);
}

void checks_start(struct checks *checks)
{
    loop_timer_start(checks->loop, &checks->timer, FIRST_US, run_all, checks);
}

static void write_all(void *context, struct buf *out)
{
    static const char *const results[] = { [CHECK_UNKNOWN] = "unknown",
                                           [CHECK_GOOD] = "good",
                                           [CHECK_WARNS] = "warns",
                                           [CHECK_BAD] = "bad" };
    const struct checks *checks = context;

    for (size_t i = 0; i < CHECK_COUNT; i++) {
        buf_printf(out, "%s{\"name\":", i == 0 ? "[" : ",");
        json_escape(out, str_of(checks_table[i].name));
        buf_printf(out, ",\"result\":\"%s\",\"what\":", results[checks->last[i].result]);
        json_escape(out, str_of(checks->last[i].what));
        buf_add_text(out, ",\"fix\":");
        json_escape(out, str_of(checks->last[i].fix));
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
}

void checks_add_health(struct checks *checks, struct health *health)
{
    health_show(health, "checks", write_all, checks);
}

void checks_serve(void *context, const struct http_view *view, struct http_responder *responder)
{
    auto_buf struct buf out = { .max = MAX_ALL };

    (void)view;
    buf_add_text(&out, "{\"checks\":");
    write_all(context, &out);
    buf_add_char(&out, '}');
    http_respond_json(responder, 200, buf_str(&out));
}

void checks_free(struct checks *checks)
{
    if (!checks)
        return;
    loop_timer_stop(&checks->timer);
    mem_free(checks);
}
