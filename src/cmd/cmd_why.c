/* cmd_why.c - `slinc why`: reads what is known of one pod, job or NodeSet, and tells it.
 *
 * The bridge's own decision comes from the view API, which asks the bridge for whoever may get the
 * pod; where there is no view API, from the bridge itself through the proxy of the API server,
 * which needs more rights. What is missing is said, and the rest is told. */
#include "cli/advice.h"
#include "cli/replica.h"
#include "cli/text.h"
#include "cmd/replica_page.h"
#include "codec/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BRIDGE_US = 2 * 1000000 };

static const struct kube_resource nodesets = { "slinky.slurm.net", "v1beta1", "nodesets", "NodeSet",
                                               true };
/* Those of the core API: their messages are called so. */
static const struct kube_resource events = { "", "v1", "events", "Event", true };

static const struct flag why_flags[] = {
    TERMINAL_NAMESPACE,
    { "exit-code", FLAG_BOOL, TERMINAL_AT(exit_code), "false",
      "end with 10 when it waits, 11 when it cannot start as it is, 12 when it failed" },
    TERMINAL_FLAGS,
};

enum { WHY_JOBS, WHY_NODES, WHY_POD, WHY_DECISION, WHY_NODESET, WHY_EVENTS, WHY_FETCHES };

/* ---- the bridge ---- */

/* What the bridge thinks of the pod, by the proxy. more: of the query, "" or "&cpus=2".
 * ret_decision is freed by the caller. Says whether the user may use the proxy. */
static bool ask_bridge(struct terminal *terminal, const struct json *pod, const char *ns,
                       const char *name, const char *more, struct fetch *ret_decision,
                       const char **ret_missing)
{
    const char *scheduler =
        terminal_escape(terminal, json_str(json_at(pod, "spec", "schedulerName")));
    const char *label =
        arena_printf(&terminal->arena, "labelSelector=app.kubernetes.io%%2Fname%%3D%s", scheduler);
    const char *field =
        arena_printf(&terminal->arena, "fieldSelector=metadata.name%%3D%s", scheduler);
    struct fetch found[] = {
        { .request = { KUBE_LIST, &kube_pods, .query = label, .timeout_us = BRIDGE_US } },
        { .request = { KUBE_LIST, &kube_leases, .query = field, .timeout_us = BRIDGE_US } },
    };
    const struct json *replica;
    bool may;

    terminal_fetch(terminal, found, 2);
    replica = replica_choose(fetch_root(&found[0]), fetch_root(&found[1]), NULL);
    *ret_missing = terminal_missing(terminal, &found[0]);
    if (replica) {
        replica_page_read(terminal, replica,
                          arena_printf(&terminal->arena, "/debug/why?pod=%s%%2F%s%s",
                                       terminal_escape(terminal, str_of(ns)),
                                       terminal_escape(terminal, str_of(name)), more),
                          BRIDGE_US, ret_decision);
        *ret_missing = terminal_missing(terminal, ret_decision);
    } else if (!(*ret_missing)[0]) {
        *ret_missing = arena_printf(
            &terminal->arena, "not shown: no pod of scheduler %s runs in this cluster", scheduler);
    }
    may = found[0].status != 403 && ret_decision->status != 403;
    fetch_done(found, 2);
    return may;
}

/* ---- telling ---- */

static int tell(struct terminal *terminal, const struct why_facts *facts)
{
    struct story story = { .arena = &terminal->arena, .summary = "" };
    struct err err = { .class = 0 };

    if (why_tell(facts, &terminal->show, &story, &err) < 0)
        return terminal_fail(terminal, TERMINAL_NOT_FOUND, err.text);
    if (terminal->flags.is_json)
        story_write_json(&story, &terminal->out);
    else
        story_write_text(&story, terminal->show.colours, &terminal->out);
    (void)terminal_print(terminal);
    return terminal->flags.exit_code ? story_exit_code(story.result) : TERMINAL_OK;
}

/* By the bridge; others are placed by Kubernetes. */
static bool is_bridged(const struct json *pod)
{
    return !str_is(json_str(json_at(pod, "spec", "schedulerName")), "default-scheduler");
}

/* There are two ways to the decision, and none is open. The same is said of the job: the decision
 * would tell of that, too. */
static void say_both(struct terminal *terminal, struct why_facts *facts,
                     const struct fetch *decided, const struct fetch *decision)
{
    facts->no_decision = decided->status == 404 && facts->no_jobs[0]
                             ? facts->no_jobs
                             : terminal_missing(terminal, decided);
    if (decision->status == 403)
        facts->no_jobs = facts->no_decision =
            arena_printf(&terminal->arena, "%s; to ask the bridge itself %s", facts->no_decision,
                         terminal_lacks(terminal, decision));
}

/* decided: what the view API said. */
static int tell_pod(struct terminal *terminal, struct why_facts *facts, const char *ns,
                    const char *name, const struct fetch *decided)
{
    struct fetch decision = { .path = NULL };
    int code;

    if (decided->doc) {
        facts->decision = json_get(fetch_root(decided), "decision");
    } else if (is_bridged(facts->pod)) {
        if (!ask_bridge(terminal, facts->pod, ns, name, "", &decision, &facts->no_decision))
            say_both(terminal, facts, decided, &decision);
        facts->decision = fetch_root(&decision);
    }
    code = tell(terminal, facts);
    fetch_done(&decision, 1);
    return code;
}

static int tell_nodeset(struct terminal *terminal, struct why_facts *facts, const char *ns,
                        const char *name)
{
    const char *query = arena_printf(
        &terminal->arena,
        "labelSelector=app.kubernetes.io%%2Fname%%3Dslurmd%%2Capp.kubernetes.io%%2Finstance%%3D%s",
        terminal_escape(terminal, str_of(name)));
    struct fetch workers = { .request = { KUBE_LIST, &kube_pods, ns, .query = query,
                                          .timeout_us = TERMINAL_ANSWER_US } };
    int code;

    terminal_fetch(terminal, &workers, 1);
    facts->pods = fetch_root(&workers);
    facts->no_pods = terminal_missing(terminal, &workers);
    code = tell(terminal, facts);
    fetch_done(&workers, 1);
    return code;
}

/* A pod or a NodeSet, whichever has the name; the pod first. */
static int why_object(struct terminal *terminal, const char *name, bool is_pod, bool is_nodeset)
{
    const char *ns = terminal_namespace(terminal);
    const char *query = arena_printf(&terminal->arena, "fieldSelector=involvedObject.name%%3D%s",
                                     terminal_escape(terminal, str_of(name)));
    struct fetch fetches[WHY_FETCHES] = {
        [WHY_JOBS] = { .request = { KUBE_LIST, &terminal_view_jobs,
                                    .timeout_us = TERMINAL_ANSWER_US } },
        [WHY_NODES] = { .request = { KUBE_LIST, &terminal_view_nodes,
                                     .timeout_us = TERMINAL_ANSWER_US } },
        [WHY_POD] = { .request = { KUBE_GET, is_pod ? &kube_pods : NULL, ns, name,
                                   .timeout_us = TERMINAL_ANSWER_US } },
        [WHY_DECISION] = { .request = { KUBE_GET, is_pod ? &terminal_view_workloads : NULL, ns,
                                        name, "why", .timeout_us = BRIDGE_US } },
        [WHY_NODESET] = { .request = { KUBE_GET, is_nodeset ? &nodesets : NULL, ns, name,
                                       .timeout_us = TERMINAL_ANSWER_US } },
        [WHY_EVENTS] = { .request = { KUBE_LIST, &events, ns, .query = query,
                                      .timeout_us = TERMINAL_ANSWER_US } },
    };
    struct why_facts facts = { .no_decision = "", .no_pods = "" };
    int code;

    terminal_fetch(terminal, fetches, WHY_FETCHES);
    facts.jobs = fetch_root(&fetches[WHY_JOBS]);
    facts.nodes = fetch_root(&fetches[WHY_NODES]);
    facts.events = fetch_root(&fetches[WHY_EVENTS]);
    facts.no_jobs = terminal_missing(terminal, &fetches[WHY_JOBS]);
    facts.no_nodes = terminal_missing(terminal, &fetches[WHY_NODES]);
    if ((facts.pod = fetch_root(&fetches[WHY_POD])))
        code = tell_pod(terminal, &facts, ns, name, &fetches[WHY_DECISION]);
    else if ((facts.nodeset = fetch_root(&fetches[WHY_NODESET])))
        code = tell_nodeset(terminal, &facts, ns, name);
    else
        code = terminal_refuse(terminal, &fetches[is_pod ? WHY_POD : WHY_NODESET],
                               is_pod && is_nodeset ? "pod or NodeSet"
                               : is_pod             ? "pod"
                                                    : "NodeSet");
    fetch_done(fetches, WHY_FETCHES);
    return code;
}

static int why_job(struct terminal *terminal, int64_t id)
{
    const char *query =
        arena_printf(&terminal->arena,
                     "labelSelector=scheduler.slinky.slurm.net%%2Fslurm-jobid%%3D%" PRId64, id);
    struct fetch fetches[] = {
        { .request = { KUBE_LIST, &terminal_view_jobs, .timeout_us = TERMINAL_ANSWER_US } },
        { .request = { KUBE_LIST, &terminal_view_nodes, .timeout_us = TERMINAL_ANSWER_US } },
        { .request = { KUBE_LIST, &kube_pods, .query = query, .timeout_us = TERMINAL_ANSWER_US } },
    };
    struct why_facts facts = { .job_id = id, .no_jobs = "", .no_decision = "" };
    int code;

    terminal_fetch(terminal, fetches, 3);
    facts.jobs = fetch_root(&fetches[0]);
    facts.nodes = fetch_root(&fetches[1]);
    facts.pods = fetch_root(&fetches[2]);
    facts.no_nodes = terminal_missing(terminal, &fetches[1]);
    facts.no_pods = terminal_missing(terminal, &fetches[2]);
    code = facts.jobs ? tell(terminal, &facts)
                      : terminal_fail(terminal, terminal_exit_of(&fetches[0]),
                                      terminal_lacks(terminal, &fetches[0]));
    fetch_done(fetches, 3);
    return code;
}

/* `why NAME`, `why pod NAME`, `why nodeset NAME`, `why job ID`, `why pod/NAME`; a number alone is
 * a job. */
static int run_why(struct terminal *terminal, int count, char **words)
{
    struct str kind = STR(""), name = str_of(count > 0 ? words[count - 1] : "");
    int64_t id = 0;
    bool is_number, says_pod, says_job, says_nodeset;

    if (count == 2)
        kind = str_of(words[0]);
    else if (count == 1)
        (void)str_cut(name, '/', &kind, &name);
    is_number = str_to_i64(name, 1, INT64_MAX, &id, NULL) == 0;
    says_pod = str_is(kind, "pod") || str_is(kind, "pods") || str_is(kind, "po");
    says_job = str_is(kind, "job") || str_is(kind, "jobs");
    says_nodeset = str_is(kind, "nodeset") || str_is(kind, "nodesets");
    if (count < 1 || count > 2 || (says_job && !is_number) ||
        (kind.len > 0 && !says_pod && !says_job && !says_nodeset))
        return terminal_fail(terminal, TERMINAL_USAGE,
                             "wants POD, `pod NAME`, `nodeset NAME` or `job ID`; see --help");
    if (says_job || (is_number && kind.len == 0))
        return why_job(terminal, id);
    return why_object(terminal, name.at, !says_nodeset, !says_pod);
}

static void write_help(struct buf *out)
{
    buf_add_text(out, "\nwhy a job waits (Slurm's reason) or a pod (the reason of its condition "
                      "SlurmPending), and what helps:\n\n");
    advice_reference(out);
}

const struct terminal_command terminal_why = {
    .name = "why",
    .words = "[pod|nodeset] NAME | job ID ",
    .what = "tells why a pod, a job or a NodeSet waits, and what would help",
    .kinds = "pod job nodeset",
    .flags = why_flags,
    .run = run_why,
    .help = write_help,
};

/* ---- what-if ---- */

static const struct flag what_if_flags[] = {
    TERMINAL_NAMESPACE,
    { "timelimit", FLAG_TEXT, TERMINAL_AT(time_limit), "", "such as 90m or 2h" },
    { "cpus", FLAG_TEXT, TERMINAL_AT(cpus), "", "of each pod" },
    { "partition", FLAG_TEXT, TERMINAL_AT(partition), "", "of Slurm" },
    TERMINAL_FLAGS,
};

/* As a query of the bridge; NULL: a flag cannot be read. */
static const char *change_of(struct terminal *terminal)
{
    const struct terminal_flags *flags = &terminal->flags;
    int64_t nanos = 0, cpus = 0;
    auto_buf struct buf query;

    buf_init(&query, 1024);
    if (flags->time_limit[0] && (duration_parse(str_of(flags->time_limit), &nanos, NULL) < 0 ||
                                 nanos < INT64_C(60000000000)))
        return NULL;
    if (flags->cpus[0] && str_to_i64(str_of(flags->cpus), 1, INT32_MAX, &cpus, NULL) < 0)
        return NULL;
    if (nanos > 0)
        buf_printf(&query, "&timelimit=%" PRId64, nanos / INT64_C(60000000000));
    if (cpus > 0)
        buf_printf(&query, "&cpus=%" PRId64, cpus);
    if (flags->partition[0])
        buf_printf(&query, "&partition=%s", terminal_escape(terminal, str_of(flags->partition)));
    return query.len > 0 ? arena_strdup(&terminal->arena, buf_text(&query)) : NULL;
}

static int tell_start(struct terminal *terminal, const struct json *answer, const char *missing)
{
    struct arena *arena = &terminal->arena;
    int64_t now_s = terminal->show.now_s;
    int64_t start_s = text_seconds(json_str(json_get(answer, "start")));
    int64_t after = json_i64_or(json_get(answer, "after"), 0);

    if (!json_exists(answer))
        return terminal_fail(terminal, TERMINAL_FAILED,
                             missing[0]
                                 ? missing
                                 : "nobody can say: the pod has a place, slurmctld was asked "
                                   "a moment ago, or the bridge has no agent");
    if (terminal->flags.is_json)
        json_write(answer, &terminal->out);
    else if (start_s == 0)
        buf_printf(&terminal->out, "it would not start: %s",
                   text_plain(arena, json_str(json_get(answer, "error"))));
    else
        buf_printf(&terminal->out, "about %s UTC (in %s) on %s", text_clock(arena, now_s, start_s),
                   text_age(arena, start_s > now_s ? start_s : now_s, now_s),
                   text_plain(arena, json_str(json_get(answer, "nodes"))));
    if (!terminal->flags.is_json && after > 0)
        buf_printf(&terminal->out, ", after job %" PRId64, after);
    buf_add_char(&terminal->out, '\n');
    return terminal_print(terminal);
}

/* Through the bridge: it knows the job of the pod, and what the change is there. */
static int run_what_if(struct terminal *terminal, int count, char **words)
{
    struct str kind, name = str_of(count == 1 ? words[0] : "");
    const char *ns = terminal_namespace(terminal), *change = change_of(terminal), *missing = "";
    struct fetch pod = { .request = { KUBE_GET, &kube_pods, ns,
                                      .timeout_us = TERMINAL_ANSWER_US } };
    struct fetch decision = { .path = NULL };
    int code;

    (void)str_cut(name, '/', &kind, &name);
    if (name.len == 0 || !change)
        return terminal_fail(
            terminal, TERMINAL_USAGE,
            "wants POD and one of --timelimit, --cpus and --partition; see --help");
    pod.request.name = name.at;
    terminal_fetch(terminal, &pod, 1);
    if (!fetch_root(&pod)) {
        code = terminal_refuse(terminal, &pod, "pod");
    } else {
        (void)ask_bridge(terminal, fetch_root(&pod), ns, name.at, change, &decision, &missing);
        code = tell_start(terminal, json_get(fetch_root(&decision), "whatIf"), missing);
    }
    fetch_done(&decision, 1);
    fetch_done(&pod, 1);
    return code;
}

const struct terminal_command terminal_what_if = {
    .name = "what-if",
    .words = "POD ",
    .what = "tells when a pod that waits would start with another time limit, size or partition; "
            "changes nothing",
    .kinds = "",
    .flags = what_if_flags,
    .run = run_what_if,
};
