/* cmd_doctor.c - `slinc doctor`: gathers the facts that the checks need, with the rights that the
 * user has, and reports what they find. What may not be read is said, and its checks are skipped.
 *
 * Of Secrets only the end of a token is kept. */
#include "cli/doctor.h"
#include "cli/replica.h"
#include "cmd/replica_page.h"
#include "cmd/takeover.h"
#include "codec/base64.h"
#include "codec/jwt.h"
#include "kube/review.h"

#include <stdio.h>
#include <string.h>

enum { ANSWER_US = 5 * 1000000, MAX_KUBELETS = 20, MAX_TOKENS = 8, MAX_RIGHTS = 16 };

#define EXTERNAL_LABEL "scheduler.slinky.slurm.net/external-node"

static const struct flag doctor_flags[] = {
    { "only", FLAG_TEXT, TERMINAL_AT(only), "", "areas or ids of checks, by commas" },
    { "fail-on", FLAG_TEXT, TERMINAL_AT(fail_on), "fail",
      "exit with 6 when a check fails, also when it warns (warn), or never" },
    { "takeover", FLAG_TEXT, TERMINAL_AT(takeover), "",
      "what this switch would do: a file that helm upgrade --dry-run=server -o json wrote" },
    { "from", FLAG_TEXT, TERMINAL_AT(from), "",
      "the release that is there: a file that helm status -o json wrote" },
    { "list", FLAG_BOOL, TERMINAL_AT(list), "false", "list the checks and run none" },
    TERMINAL_FLAGS,
};

static const struct kube_resource crds = { "apiextensions.k8s.io", "v1",
                                           "customresourcedefinitions", "CustomResourceDefinition",
                                           false };
static const struct kube_resource webhooks = { "admissionregistration.k8s.io", "v1",
                                               "mutatingwebhookconfigurations",
                                               "MutatingWebhookConfiguration", false };
static const struct kube_resource slices = { "discovery.k8s.io", "v1", "endpointslices",
                                             "EndpointSlice", true };
static const struct kube_resource api_services = { "apiregistration.k8s.io", "v1", "apiservices",
                                                   "APIService", false };
static const struct kube_resource hpas = { "autoscaling", "v2", "horizontalpodautoscalers",
                                           "HorizontalPodAutoscaler", true };
static const struct kube_resource nodesets = { "slinky.slurm.net", "v1beta1", "nodesets", "NodeSet",
                                               true };

/* What is read first, each by one request. */
static const struct {
    enum doctor_fact fact;
    const struct kube_resource *resource; /* NULL: path */
    const char *path;
} reads[] = {
    { FACT_VERSION, NULL, "/version" }, /* the first: whether there is a server at all */
    { FACT_CRDS, &crds, NULL },
    { FACT_PODS, &kube_pods, NULL },
    { FACT_NODES, &kube_nodes, NULL },
    { FACT_LEASES, &kube_leases, NULL },
    { FACT_WEBHOOKS, &webhooks, NULL },
    { FACT_ENDPOINTS, &slices, NULL },
    { FACT_APISERVICES, &api_services, NULL },
    { FACT_HPAS, &hpas, NULL },
    { FACT_NODESETS, &nodesets, NULL },
    { FACT_VIEW_JOBS, &terminal_view_jobs, NULL },
    { FACT_VIEW_NODES, &terminal_view_nodes, NULL },
};

enum { READS = sizeof(reads) / sizeof(reads[0]) };

/* What bridge and operator cannot do without. */
static const struct {
    const char *command, *verb, *group, *resource, *subresource;
} rights[] = {
    { "bridge", "create", "", "pods", "binding" },
    { "bridge", "patch", "", "pods", "status" },
    { "bridge", "patch", "", "pods", "" },
    { "bridge", "delete", "", "pods", "" },
    { "bridge", "list", "", "nodes", "" },
    { "bridge", "patch", "", "nodes", "" },
    { "bridge", "patch", "", "nodes", "status" },
    { "operator", "create", "", "pods", "" },
    { "operator", "create", "", "secrets", "" },
    { "operator", "create", "apps", "statefulsets", "" },
    { "operator", "list", "slinky.slurm.net", "nodesets", "" },
    { "operator", "patch", "slinky.slurm.net", "nodesets", "status" },
};

enum { RIGHTS = sizeof(rights) / sizeof(rights[0]) };

struct examination {
    struct terminal *terminal;
    struct doctor_facts facts;
    struct fetch fetches[READS], view, bridge, exporter;
    struct json_doc *made[DOCTOR_FACTS]; /* facts that are put together here */
};

static const char *text_of(struct examination *exam, const struct json *value)
{
    return arena_printf(&exam->terminal->arena, STR_FMT, STR_ARG(json_str(value)));
}

static void take(struct examination *exam, enum doctor_fact fact, const struct fetch *fetch)
{
    exam->facts.of[fact].doc = fetch_root(fetch);
    exam->facts.of[fact].text = buf_str(&fetch->text);
    exam->facts.of[fact].missing = terminal_lacks(exam->terminal, fetch);
}

static void read_lists(struct examination *exam)
{
    for (size_t i = 0; i < READS; i++) {
        exam->fetches[i] =
            (struct fetch){ .request = { .verb = KUBE_LIST, .timeout_us = ANSWER_US } };
        if (reads[i].path)
            exam->fetches[i].path = reads[i].path;
        else
            exam->fetches[i].request.resource = reads[i].resource;
    }
    terminal_fetch(exam->terminal, exam->fetches, READS);
    for (size_t i = 0; i < READS; i++)
        take(exam, reads[i].fact, &exam->fetches[i]);
}

/* ---- our own processes ---- */

static void read_process(struct examination *exam, enum doctor_fact fact, struct fetch *fetch,
                         const char *command, const char *path)
{
    const struct json *pods = exam->facts.of[FACT_PODS].doc;
    const struct json *pod = replica_choose(pods, exam->facts.of[FACT_LEASES].doc, command);

    exam->facts.of[fact].missing =
        pods ? arena_printf(&exam->terminal->arena, "no pod runs slinc %s", command)
             : exam->facts.of[FACT_PODS].missing;
    if (!pod)
        return;
    replica_page_read(exam->terminal, pod, path, ANSWER_US, fetch);
    take(exam, fact, fetch);
}

/* By the view API where there is one, which asks the bridge for whoever may list checks; else by
 * the proxy, which needs more rights. */
static void read_processes(struct examination *exam)
{
    const struct json *root;

    exam->view =
        (struct fetch){ .request = { KUBE_LIST, &terminal_view_checks, .timeout_us = ANSWER_US } };
    terminal_fetch(exam->terminal, &exam->view, 1);
    root = fetch_root(&exam->view);
    if (json_is_array(json_at(root, "bridge", "checks"))) {
        exam->facts.of[FACT_BRIDGE].doc = json_get(root, "bridge");
        exam->facts.of[FACT_BRIDGE].missing = "";
    } else {
        read_process(exam, FACT_BRIDGE, &exam->bridge, "bridge", "/debug/state");
    }
    exam->facts.of[FACT_EXPORTER].text = json_str(json_get(root, "metrics"));
    exam->facts.of[FACT_EXPORTER].missing = "";
    if (exam->facts.of[FACT_EXPORTER].text.len ==
        0) /* not /metrics, where --legacy-path may put the old series */
        read_process(exam, FACT_EXPORTER, &exam->exporter, "exporter", "/metrics/cluster");
}

/* ---- facts of several answers ---- */

struct gathered { /* {"items": [...]}, as it grows */
    struct json_build *build;
    struct json_mut *root, *items;
    const char *missing; /* of one that could not be read; "" */
};

static void gather_begin(struct gathered *gathered, struct json_build *build)
{
    *gathered = (struct gathered){ .build = build, .root = json_new_object(build), .missing = "" };
    gathered->items = json_put_array(build, gathered->root, "items");
}

/* One that could not be read makes the fact missing: the check would say that all is well. */
static void gather_end(struct examination *exam, enum doctor_fact fact,
                       const struct gathered *gathered)
{
    exam->facts.of[fact].missing = gathered->missing;
    if (gathered->missing[0])
        return;
    exam->made[fact] = json_freeze(gathered->root);
    exam->facts.of[fact].doc = json_root(exam->made[fact]);
}

/* The account of the first pod that runs the command, as RBAC names it; NULL. */
static const char *account_of(struct examination *exam, const char *command)
{
    const struct json *pod = replica_choose(exam->facts.of[FACT_PODS].doc, NULL, command);

    if (!pod)
        return NULL;
    return arena_printf(&exam->terminal->arena, "system:serviceaccount:" STR_FMT ":" STR_FMT,
                        STR_ARG(json_str(json_at(pod, "metadata", "namespace"))),
                        STR_ARG(json_str(json_at(pod, "spec", "serviceAccountName"))));
}

static void ask_right(struct examination *exam, size_t row, const char *user, struct fetch *fetch)
{
    auto_buf struct buf body;

    buf_init(&body, KUBE_REVIEW_MAX_BODY);
    kube_access_write(&(struct kube_access_question){ .user = user,
                                                      .verb = rights[row].verb,
                                                      .group = rights[row].group,
                                                      .resource = rights[row].resource,
                                                      .subresource = rights[row].subresource },
                      &body);
    *fetch = (struct fetch){ .path = NULL };
    kube_access_request(&fetch->request,
                        str_of(arena_strdup(&exam->terminal->arena, buf_text(&body))));
    fetch->request.timeout_us = ANSWER_US;
}

static void read_rights(struct examination *exam)
{
    auto_json_build struct json_build *build = json_build_new();
    struct fetch fetches[RIGHTS];
    const char *users[RIGHTS];
    struct gathered gathered;

    gather_begin(&gathered, build);
    for (size_t i = 0; i < RIGHTS; i++) {
        users[i] = account_of(exam, rights[i].command);
        fetches[i] = (struct fetch){ .path = NULL };
        if (users[i])
            ask_right(exam, i, users[i], &fetches[i]);
    }
    terminal_fetch(exam->terminal, fetches, RIGHTS);
    for (size_t i = 0; i < RIGHTS; i++) {
        struct kube_access_answer answer;
        struct json_mut *one = json_new_object(build);

        if (!users[i])
            continue;
        if (!fetches[i].doc || kube_access_read(fetch_root(&fetches[i]), &answer, NULL) < 0) {
            gathered.missing = terminal_lacks(exam->terminal, &fetches[i]);
            continue;
        }
        json_put_text(build, one, "user", users[i]);
        json_put_text(build, one, "verb", rights[i].verb);
        json_put_text(build, one, "resource",
                      arena_printf(&exam->terminal->arena, "%s%s%s", rights[i].resource,
                                   rights[i].subresource[0] ? "/" : "", rights[i].subresource));
        json_put_bool(build, one, "allowed", answer.allowed);
        json_push(gathered.items, one);
    }
    if (!exam->facts.of[FACT_PODS].doc)
        gathered.missing = exam->facts.of[FACT_PODS].missing;
    gather_end(exam, FACT_ACCESS, &gathered);
    fetch_done(fetches, RIGHTS);
}

/* Asks the kubelets of these Nodes; `member` of each answer goes into the fact. */
static void ask_kubelets(struct examination *exam, enum doctor_fact fact, const char *path,
                         const char *member, const char *const *nodes, size_t count)
{
    auto_json_build struct json_build *build = json_build_new();
    struct fetch fetches[MAX_KUBELETS];
    struct gathered gathered;

    gather_begin(&gathered, build);
    for (size_t i = 0; i < count; i++)
        fetches[i] = (struct fetch){
            .request = { KUBE_GET, &kube_nodes, NULL, nodes[i], "proxy", .timeout_us = ANSWER_US },
            .path = arena_printf(&exam->terminal->arena, "/api/v1/nodes/%s/proxy/%s",
                                 terminal_escape(exam->terminal, str_of(nodes[i])), path),
        };
    terminal_fetch(exam->terminal, fetches, count);
    for (size_t i = 0; i < count; i++) {
        struct json_mut *one = json_new_object(build);

        if (!fetches[i].doc)
            gathered.missing = terminal_lacks(exam->terminal, &fetches[i]);
        json_put_text(build, one, "node", nodes[i]);
        json_put(build, one, member, json_copy(build, json_get(fetch_root(&fetches[i]), member)));
        json_push(gathered.items, one);
    }
    gather_end(exam, fact, &gathered);
    fetch_done(fetches, count);
}

static void read_kubelets(struct examination *exam)
{
    struct json_iter iter = json_iter(json_get(exam->facts.of[FACT_NODES].doc, "items"));
    const char *nodes[MAX_KUBELETS];
    const struct json *node;
    size_t count = 0;

    while (json_next_item(&iter, &node) && count < MAX_KUBELETS)
        if (json_exists(json_at(node, "metadata", "labels", EXTERNAL_LABEL)) &&
            json_len(json_at(node, "status", "addresses")) > 0) /* else nobody plays its kubelet */
            nodes[count++] = text_of(exam, json_at(node, "metadata", "name"));
    if (exam->facts.of[FACT_NODES].doc)
        ask_kubelets(exam, FACT_KUBELETS, "configz", "kubeletconfig", nodes, count);
    else
        exam->facts.of[FACT_KUBELETS].missing = exam->facts.of[FACT_NODES].missing;
}

static void read_disks(struct examination *exam)
{
    struct json_iter iter = json_iter(json_get(exam->facts.of[FACT_PODS].doc, "items"));
    const char *nodes[MAX_KUBELETS];
    const struct json *pod;
    size_t count = 0;

    while (json_next_item(&iter, &pod) && count < MAX_KUBELETS) {
        struct str name = json_str(json_at(pod, "metadata", "labels", "app.kubernetes.io/name"));
        const char *node = text_of(exam, json_at(pod, "spec", "nodeName"));
        bool is_new = node[0] && str_is(name, "slurmctld");

        for (size_t i = 0; i < count && is_new; i++)
            is_new = strcmp(nodes[i], node) != 0;
        if (is_new)
            nodes[count++] = node;
    }
    if (exam->facts.of[FACT_PODS].doc)
        ask_kubelets(exam, FACT_DISKS, "stats/summary", "pods", nodes, count);
    else
        exam->facts.of[FACT_DISKS].missing = exam->facts.of[FACT_PODS].missing;
}

/* ---- tokens ---- */

/* Of the first text in the Secret that is a token; false: it has none. */
static bool token_end(const struct json *secret, int64_t *ret_end)
{
    struct json_iter iter = json_iter(json_get(secret, "data"));
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value)) {
        struct jwt_claims claims;
        struct buf text;
        bool found;

        buf_init(&text, JWT_TOKEN_MAX);
        found = base64_decode(json_str(value), BASE64_NEWLINES, &text, NULL) == 0 &&
                jwt_peek(str_trim(buf_str(&text)), &claims, NULL) == 0;
        if (text.data)
            explicit_bzero(text.data, text.len);
        buf_done(&text);
        if (found) {
            *ret_end = claims.exp;
            return true;
        }
    }
    return false;
}

/* The Secrets that pods of bridge and exporter mount. */
static size_t list_secrets(struct examination *exam, struct fetch *fetches)
{
    static const char *const commands[] = { "bridge", "exporter" };
    size_t count = 0;

    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        const struct json *pod = replica_choose(exam->facts.of[FACT_PODS].doc, NULL, commands[i]);
        struct json_iter iter = json_iter(json_at(pod, "spec", "volumes"));
        const struct json *volume;

        while (json_next_item(&iter, &volume) && count < MAX_TOKENS) {
            const struct json *name = json_at(volume, "secret", "secretName");

            if (!json_exists(name)) /* or with other sources */
                name = json_at(json_item(json_at(volume, "projected", "sources"), 0), "secret",
                               "name");
            if (json_exists(name))
                fetches[count++] = (struct fetch){
                    .request = { KUBE_GET, &kube_secrets,
                                 text_of(exam, json_at(pod, "metadata", "namespace")),
                                 text_of(exam, name), .timeout_us = ANSWER_US }
                };
        }
    }
    return count;
}

static void read_tokens(struct examination *exam)
{
    auto_json_build struct json_build *build = json_build_new();
    struct fetch fetches[MAX_TOKENS];
    size_t count = list_secrets(exam, fetches);
    struct gathered gathered;

    gather_begin(&gathered, build);
    terminal_fetch(exam->terminal, fetches, count);
    for (size_t i = 0; i < count; i++) {
        const struct kube_request *request = &fetches[i].request;
        struct json_mut *one = json_new_object(build);
        int64_t end;

        if (!fetches[i].doc)
            gathered.missing = terminal_lacks(exam->terminal, &fetches[i]);
        if (!fetches[i].doc || !token_end(fetch_root(&fetches[i]), &end))
            continue;
        json_put_text(build, one, "name",
                      arena_printf(&exam->terminal->arena, "%s/%s", request->ns, request->name));
        json_put_i64(build, one, "expires", end);
        json_push(gathered.items, one);
    }
    if (!exam->facts.of[FACT_PODS].doc)
        gathered.missing = exam->facts.of[FACT_PODS].missing;
    gather_end(exam, FACT_TOKENS, &gathered);
    fetch_done(fetches, count);
}

/* ---- the command ---- */

static int exit_of(const struct terminal *terminal, enum doctor_result worst)
{
    struct str fail_on = str_of(terminal->flags.fail_on);
    bool fails = worst == DOCTOR_FAILS || (worst == DOCTOR_WARNS && str_is(fail_on, "warn"));

    return fails && !str_is(fail_on, "never") ? TERMINAL_FINDINGS : TERMINAL_OK;
}

/* A server that may not say its version is there; of any other all checks would be skipped. */
static const char *why_no_server(struct terminal *terminal, const struct fetch *version)
{
    if (version->doc || version->status == 403)
        return "";
    return arena_printf(&terminal->arena, "the API server cannot be read: %s",
                        version->text.len > 0 ? "its answer to /version is no JSON"
                                              : terminal_lacks(terminal, version));
}

static int report(struct examination *exam)
{
    struct terminal *terminal = exam->terminal;
    const struct doctor doctor = { .facts = &exam->facts, .arena = &terminal->arena };
    enum doctor_result worst;

    read_processes(exam);
    read_rights(exam);
    read_kubelets(exam);
    read_disks(exam);
    read_tokens(exam);
    worst = doctor_report(&doctor,
                          &(struct doctor_options){ .only = terminal->flags.only,
                                                    .colours = terminal->show.colours,
                                                    .is_json = terminal->flags.is_json },
                          &terminal->out);
    fetch_done(&exam->view, 1);
    fetch_done(&exam->bridge, 1);
    fetch_done(&exam->exporter, 1);
    for (unsigned i = 0; i < DOCTOR_FACTS; i++)
        json_doc_free(exam->made[i]);
    (void)terminal_print(terminal);
    return exit_of(terminal, worst);
}

static int examine(struct terminal *terminal)
{
    struct examination *exam = arena_alloc(&terminal->arena, sizeof(*exam));
    const char *no_server;
    int code;

    exam->terminal = terminal;
    exam->facts.now_s = terminal->show.now_s;
    for (unsigned i = 0; i < DOCTOR_FACTS; i++)
        exam->facts.of[i].missing = "not read";
    read_lists(exam);
    no_server = why_no_server(terminal, &exam->fetches[0]);
    code = no_server[0] ? terminal_fail(terminal, TERMINAL_FAILED, no_server) : report(exam);
    fetch_done(exam->fetches, READS);
    return code;
}

static int examine_takeover(struct terminal *terminal)
{
    enum doctor_result worst = DOCTOR_OK;
    int code = takeover_examine(terminal, &worst);

    if (code != TERMINAL_OK)
        return code;
    (void)terminal_print(terminal);
    return exit_of(terminal, worst);
}

static int run_doctor(struct terminal *terminal, int count, char **words)
{
    struct str fail_on = str_of(terminal->flags.fail_on);
    struct err err = { .class = 0 };

    (void)words;
    if (count > 0)
        return terminal_fail(terminal, TERMINAL_USAGE, "takes no arguments; see --help");
    if (!str_is(fail_on, "warn") && !str_is(fail_on, "fail") && !str_is(fail_on, "never"))
        return terminal_fail(terminal, TERMINAL_USAGE, "--fail-on: wants warn, fail or never");
    if (doctor_check_only(terminal->flags.only, &err) < 0) {
        (void)err_wrap(&err, "--only");
        return terminal_fail(terminal, TERMINAL_USAGE, err.text);
    }
    if (terminal->flags.takeover[0])
        return examine_takeover(terminal);
    if (!terminal->flags.list)
        return examine(terminal);
    doctor_list(terminal->flags.is_json, &terminal->arena, &terminal->out);
    return terminal_print(terminal);
}

static void write_help(struct buf *out)
{
    auto_arena struct arena arena;

    arena_init(&arena, 1 << 20);
    buf_add_text(out, "           6 a check failed (--fail-on)\n\nchecks:\n");
    doctor_list(false, &arena, out);
}

const struct terminal_command terminal_doctor = {
    .name = "doctor",
    .words = "",
    .what = "checks a whole installation, and says how to mend it",
    .kinds = "",
    .flags = doctor_flags,
    .run = run_doctor,
    .help = write_help,
    .is_offline = true,
};
