/* doctor.c - the table of checks, and what is written about their findings. */
#include "cli/doctor.h"

#include "cli/text.h"
#include "kube/condition_list.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_TEXT = 4096, MAX_NAMES = 5, MAX_AREAS = 16, MAX_CHECKS = 64 };

#define BIT(fact) (1u << (fact))

const struct doctor_check doctor_checks[] = {
    { 101, "kubernetes", "the API server is 1.34 or later", BIT(FACT_VERSION), NULL, doctor_version,
      "upgrade Kubernetes, or choose another --context" },
    { 102, "kubernetes", "the custom resources of slinky.slurm.net are served as v1beta1",
      BIT(FACT_CRDS), NULL, doctor_crds, "helm upgrade the chart slurm-operator-crds" },
    { 103, "kubernetes", "our pods are ready, those of a chart of one image", BIT(FACT_PODS), NULL,
      doctor_our_pods, "kubectl describe the named pod; finish the rollout" },
    { 104, "kubernetes", "the leases of bridge and operator are renewed",
      BIT(FACT_PODS) | BIT(FACT_LEASES), NULL, doctor_leases, "restart the pod that holds it" },
    { 105, "kubernetes", "our service accounts may do what they must", BIT(FACT_ACCESS), NULL,
      doctor_access, "helm upgrade the chart, which has the roles" },
    { 106, "kubernetes", "the clocks of the API server and the bridge agree", BIT(FACT_BRIDGE),
      "clock", NULL, "see to the time synchronisation of both machines" },
    { 107, "kubernetes", "the cluster's DNS has endpoints", BIT(FACT_ENDPOINTS), NULL, doctor_dns,
      "kubectl -n kube-system get pods -l k8s-app=kube-dns" },
    { 108, "kubernetes", "the definitions are as new as this program", BIT(FACT_CRDS), NULL,
      doctor_definitions,
      "helm upgrade slurm-operator-crds, or slurm-operator if it brought them" },

    { 201, "slurm", "slurmrestd answers the bridge", BIT(FACT_BRIDGE), "slurmrestd", NULL,
      "see that its name resolves, its Service has endpoints and the token is taken" },
    { 202, "slurm", "slurmrestd speaks v0.0.44 or later", BIT(FACT_BRIDGE), "version", NULL,
      "Slurm 25.11 or later is needed" },
    { 203, "slurm", "the exporter reads jobs and nodes", BIT(FACT_EXPORTER), NULL, doctor_reads,
      "see the exporter's log, its --server and its token" },
    { 204, "slurm", "slurmdbd keeps up", BIT(FACT_EXPORTER), NULL, doctor_database,
      "start slurmdbd, or see why its database is slow" },
    { 205, "slurm", "MaxNodeCount has room for all nodes", BIT(FACT_BRIDGE), "MaxNodeCount", NULL,
      "raise MaxNodeCount in slurm.conf and restart slurmctld" },
    { 206, "slurm", "MinJobAge is 60 s or more", BIT(FACT_BRIDGE), "MinJobAge", NULL,
      "set MinJobAge=300 in slurm.conf" },
    { 207, "slurm", "the bridge's user sees all jobs (PrivateData, MCS)", BIT(FACT_BRIDGE),
      "sees all jobs", NULL, "use a token of SlurmUser, or give its user AdminLevel=Operator" },
    { 208, "slurm", "nothing is hidden from the exporter (PrivateData, MCS)", BIT(FACT_EXPORTER),
      NULL, doctor_hidden, "use a token of SlurmUser, or give its user AdminLevel=Operator" },
    { 209, "slurm", "InactiveLimit is 0", BIT(FACT_BRIDGE), "InactiveLimit", NULL,
      "set InactiveLimit=0 in slurm.conf" },
    { 210, "slurm", "SchedulerParameters have short cycles", BIT(FACT_BRIDGE), "scheduler cycles",
      NULL, "add sched_interval=1,bf_interval=5 to SchedulerParameters" },
    { 211, "slurm", "slurmctld has threads to spare", BIT(FACT_EXPORTER), NULL, doctor_load,
      "set rl_enable, or have fewer clients that poll" },
    { 212, "slurm", "slurmrestd answers within 250 ms, 19 times of 20", BIT(FACT_EXPORTER), NULL,
      doctor_latency, "give slurmctld and slurmrestd more CPU; see slinc_controller_rpc*" },
    { 213, "slurm", "the clocks of slurmctld and the bridge agree", BIT(FACT_BRIDGE),
      "slurmctld's clock", NULL, "see to the time synchronisation of both machines" },
    { 214, "slurm", "the disk with slurmctld's state has room", BIT(FACT_PODS) | BIT(FACT_DISKS),
      NULL, doctor_disks,
      "enlarge its PersistentVolumeClaim; slurmctld forgets jobs without room" },
    { 215, "slurm", "the agent answers the bridge, if there is one", BIT(FACT_BRIDGE), "agent",
      NULL, "see the log of the container agent in the pod of the bridge" },

    { 301, "identity", "tokens for Slurm last longer than 10 minutes", BIT(FACT_TOKENS), NULL,
      doctor_token, "renew it (scontrol token), or let the program sign its own (jwtKey)" },

    { 401, "bridge", "the bridge's partition exists", BIT(FACT_BRIDGE), "partition", NULL,
      "add the partition to slurm.conf, or name another one" },
    { 402, "bridge", "webhooks have endpoints and a CA", BIT(FACT_WEBHOOKS) | BIT(FACT_ENDPOINTS),
      NULL, doctor_webhooks, "helm upgrade; see the pods behind the Service" },
    { 403, "bridge", "no finalizer of ours is left on pods that are over", BIT(FACT_PODS), NULL,
      doctor_finalizers, "start the bridge, or run slinc bridge --uninstall" },
    { 404, "bridge", "every job of the bridge has a pod", BIT(FACT_PODS) | BIT(FACT_VIEW_JOBS),
      NULL, doctor_jobs_without_pods, "scancel the jobs, if no other cluster uses this Slurm" },
    { 405, "bridge", "no pod is refused by Slurm for more than 10 minutes", BIT(FACT_PODS), NULL,
      doctor_refused, "slinc why POD" },
    { 406, "bridge", "annotations make no job somebody else's", BIT(FACT_BRIDGE), "annotations",
      NULL, "set trustAnnotations: own in the values of the chart slurm-bridge" },

    { 411, "nodes", "no static CPU manager on nodes that are lent to Slurm", BIT(FACT_KUBELETS),
      NULL, doctor_cpu_manager, "set cpuManagerPolicy: none in the kubelet's configuration" },
    { 412, "nodes", "nodes that are lent to Slurm have the bridge's taint", BIT(FACT_NODES), NULL,
      doctor_taints, "see that the bridge runs and leads" },
    { 413, "nodes", "no node is drained for more than a day", BIT(FACT_VIEW_NODES), NULL,
      doctor_drained,
      "mend it, then slinc resume NODE if it is cordoned, else scontrol update nodename=NODE "
      "state=resume" },
    { 414, "nodes", "Slurm has the devices of the nodes that are lent to it", BIT(FACT_NODES), NULL,
      doctor_devices,
      "wait until the node is idle, or drain it; its condition SlurmAvailable says what differs" },

    { 501, "workers", "the workers of NodeSets are registered and ready", BIT(FACT_NODESETS), NULL,
      doctor_workers, "slinc why nodeset NAME" },

    { 601, "autoscaling", "external.metrics.k8s.io is served", BIT(FACT_APISERVICES), NULL,
      doctor_external_metrics, "see the named Service; KEDA can read /autoscale/v1 instead" },
    { 602, "autoscaling", "autoscalers of NodeSets read their metric", BIT(FACT_HPAS), NULL,
      doctor_hpa, "see the name of the metric and its selector" },
    { 603, "autoscaling", "autoscalers of NodeSets can leave zero", BIT(FACT_HPAS), NULL,
      doctor_hpa_zero, "kubectl scale nodeset NAME --replicas=1, once" },

    { 701, "view", "the view API is served", BIT(FACT_APISERVICES), NULL, doctor_view_api,
      "helm upgrade slurm-exporter with view.enabled=true; see its pods" },
    { 702, "view", "no APIService of anybody is unavailable", BIT(FACT_APISERVICES), NULL,
      doctor_api_services, "mend or delete it: it keeps namespaces from being deleted" },
    { 0, NULL, NULL, 0, NULL, NULL, NULL },
};

/* ---- for checks ---- */

void doctor_find(const struct doctor *doctor, struct doctor_finding *finding,
                 enum doctor_result result, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    finding->result = result;
    finding->what = text_plain_vprintf(doctor->arena, format, args);
    va_end(args);
}

void doctor_fix(const struct doctor *doctor, struct doctor_finding *finding, const char *format,
                ...)
{
    va_list args;

    va_start(args, format);
    finding->fix = text_plain_vprintf(doctor->arena, format, args);
    va_end(args);
}

const struct json *doctor_condition(const struct json *object, const char *type)
{
    return kube_condition_entry(json_at(object, "status", "conditions"), type);
}

void doctor_names_add(struct doctor_names *names, struct str ns, struct str name)
{
    if (names->count++ >= MAX_NAMES)
        return;
    if (names->count > 1)
        buf_add_text(&names->text, ", ");
    buf_printf(&names->text, STR_FMT "%s" STR_FMT, STR_ARG(ns), ns.len > 0 ? "/" : "",
               STR_ARG(name));
    if (names->count == MAX_NAMES)
        buf_add_text(&names->text, " ...");
}

bool doctor_sample(struct str text, const char *begins, double *ret_value)
{
    struct str line, name, value;
    struct json_doc *doc;

    while (text.len > 0 && str_next(&text, '\n', &line)) {
        if (!str_starts(line, str_of(begins)))
            continue;
        for (name = line; str_cut(name, ' ', &value, &name);)
            ;
        if (json_parse(name, MAX_TEXT, &doc, NULL) < 0)
            return false;
        *ret_value = json_f64_or(json_root(doc), 0);
        json_doc_free(doc);
        return true;
    }
    return false;
}

/* ---- running ---- */

/* What the bridge found itself. */
static void take_from_bridge(const struct doctor *doctor, const char *name,
                             struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(json_get(doctor->facts->of[FACT_BRIDGE].doc, "checks"));
    const struct json *one;

    doctor_find(doctor, finding, DOCTOR_SKIPPED, "the bridge has not looked yet");
    while (json_next_item(&iter, &one)) {
        struct str result = json_str(json_get(one, "result"));

        if (!str_is(json_str(json_get(one, "name")), name) || str_is(result, "unknown"))
            continue;
        doctor_find(doctor, finding,
                    str_is(result, "good")    ? DOCTOR_OK
                    : str_is(result, "warns") ? DOCTOR_WARNS
                                              : DOCTOR_FAILS,
                    STR_FMT, STR_ARG(json_str(json_get(one, "what"))));
        doctor_fix(doctor, finding, STR_FMT, STR_ARG(json_str(json_get(one, "fix"))));
    }
}

void doctor_run(const struct doctor *doctor, const struct doctor_check *check,
                struct doctor_finding *ret_finding)
{
    *ret_finding = (struct doctor_finding){ DOCTOR_OK, "", "" };
    for (unsigned i = 0; i < DOCTOR_FACTS; i++) {
        if (!(check->needs & BIT(i)) || doctor->facts->of[i].doc ||
            doctor->facts->of[i].text.len > 0)
            continue;
        doctor_find(doctor, ret_finding, DOCTOR_SKIPPED, "%s", doctor->facts->of[i].missing);
        return;
    }
    if (check->bridge)
        take_from_bridge(doctor, check->bridge, ret_finding);
    else
        check->run(doctor, ret_finding);
    if (!ret_finding->fix[0] &&
        (ret_finding->result == DOCTOR_WARNS || ret_finding->result == DOCTOR_FAILS))
        ret_finding->fix = check->fix;
}

/* ---- choosing ---- */

static bool is_called(const struct doctor_check *check, struct str word)
{
    struct str number = str_starts(word, STR("SD")) ? str_sub(word, 2, word.len) : word;
    int64_t id;

    return str_is(word, check->area) ||
           (str_to_i64(number, 0, INT32_MAX, &id, NULL) == 0 && id == check->id);
}

static bool is_wanted(const struct doctor_check *check, struct str only)
{
    struct str word;

    if (only.len == 0)
        return true;
    while (only.len > 0 && str_next(&only, ',', &word))
        if (is_called(check, word))
            return true;
    return false;
}

static int refuse_word(struct str word, struct err *err)
{
    const char *area = "";
    auto_buf struct buf areas;

    buf_init(&areas, MAX_TEXT);
    for (const struct doctor_check *check = doctor_checks; check->id; check++) {
        if (strcmp(check->area, area) != 0)
            buf_printf(&areas, "%s%s", area[0] ? ", " : "", check->area);
        area = check->area;
    }
    return err_set(err, ERR_INVALID, "no check is called '" STR_FMT "'; wants ids or %s",
                   STR_ARG(word), buf_text(&areas));
}

int doctor_check_only(const char *only, struct err *err)
{
    struct str rest = str_of(only), word;

    while (rest.len > 0 && str_next(&rest, ',', &word)) {
        const struct doctor_check *check = doctor_checks;

        while (check->id && !is_called(check, word))
            check++;
        if (!check->id)
            return refuse_word(word, err);
    }
    return 0;
}

/* ---- writing ---- */

static const struct {
    const char *name, *mark, *colour;
} results[DOCTOR_RESULTS] = {
    [DOCTOR_OK] = { "ok", " ", "32" },
    [DOCTOR_WARNS] = { "warning", "!", "33" },
    [DOCTOR_FAILS] = { "failed", "x", "31" },
    [DOCTOR_SKIPPED] = { "skipped", "-", "36" },
};

struct found {
    const struct doctor_check *check;
    struct doctor_finding finding;
};

static void write_areas(const struct found *found, size_t count, struct buf *out)
{
    const char *between = "";

    for (size_t i = 0; i < count;) {
        const char *area = found[i].check->area;
        size_t of[DOCTOR_RESULTS] = { 0 };

        for (; i < count && strcmp(found[i].check->area, area) == 0; i++)
            of[found[i].finding.result]++;
        buf_printf(out, "%s%s", between, area);
        for (unsigned r = 0; r < DOCTOR_RESULTS; r++)
            if (of[r] > 0)
                buf_printf(out, " %zu %s", of[r], results[r].name);
        between = ", ";
    }
    buf_add_char(out, '\n');
}

static void write_bad(const struct found *found, size_t count, bool colours, struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct doctor_finding *finding = &found[i].finding;

        if (finding->result == DOCTOR_OK || finding->result == DOCTOR_SKIPPED)
            continue;
        if (colours)
            buf_printf(out, "\033[1;%sm%s\033[0m", results[finding->result].colour,
                       results[finding->result].mark);
        else
            buf_add_text(out, results[finding->result].mark);
        buf_printf(out, " SD%d %s\n", found[i].check->id, finding->what);
        if (finding->fix[0])
            buf_printf(out, "        fix: %s\n", finding->fix);
    }
}

/* By why they were skipped. */
static void write_skipped(const struct found *found, size_t count, struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        const char *why = found[i].finding.what;
        bool was_told = false;

        if (found[i].finding.result != DOCTOR_SKIPPED)
            continue;
        for (size_t j = 0; j < i; j++)
            was_told |= found[j].finding.result == DOCTOR_SKIPPED &&
                        strcmp(found[j].finding.what, why) == 0;
        if (was_told)
            continue;
        buf_add_char(out, '-');
        for (size_t j = i; j < count; j++)
            if (found[j].finding.result == DOCTOR_SKIPPED &&
                strcmp(found[j].finding.what, why) == 0)
                buf_printf(out, " SD%d", found[j].check->id);
        buf_printf(out, " skipped: %s\n", why);
    }
}

static void write_json(const struct found *found, size_t count, enum doctor_result worst,
                       struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build), *list;

    json_put_text(build, root, "apiVersion", "view.slinky.slurm.net/v1alpha1");
    json_put_text(build, root, "kind", "Diagnosis");
    json_put_text(build, root, "result", results[worst].name);
    list = json_put_array(build, root, "checks");
    for (size_t i = 0; i < count; i++) {
        struct json_mut *one = json_new_object(build);

        json_put_i64(build, one, "id", found[i].check->id);
        json_put_text(build, one, "area", found[i].check->area);
        json_put_text(build, one, "title", found[i].check->title);
        json_put_text(build, one, "result", results[found[i].finding.result].name);
        json_put_text(build, one, "found", found[i].finding.what);
        if (found[i].finding.fix[0])
            json_put_text(build, one, "fix", found[i].finding.fix);
        json_push(list, one);
    }
    json_mut_write_pretty(root, out);
}

enum doctor_result doctor_report(const struct doctor *doctor, const struct doctor_options *options,
                                 struct buf *out)
{
    struct found found[MAX_CHECKS];
    enum doctor_result worst = DOCTOR_SKIPPED;
    size_t count = 0;

    for (const struct doctor_check *check = doctor_checks; check->id && count < MAX_CHECKS;
         check++) {
        enum doctor_result result;

        if (!is_wanted(check, str_of(options->only)))
            continue;
        found[count].check = check;
        doctor_run(doctor, check, &found[count].finding);
        result = found[count++].finding.result;
        if (result != DOCTOR_SKIPPED && (worst == DOCTOR_SKIPPED || result > worst))
            worst = result;
    }
    if (options->is_json) {
        write_json(found, count, worst, out);
        return worst;
    }
    write_areas(found, count, out);
    write_bad(found, count, options->colours, out);
    write_skipped(found, count, out);
    return worst;
}

void doctor_list(bool is_json, struct arena *arena, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *list = json_new_array(build);
    struct text_table table;

    text_table_init(&table, arena, 4);
    text_table_row(&table, "ID", "AREA", "CHECKS THAT", "FIX");
    for (const struct doctor_check *check = doctor_checks; check->id; check++) {
        struct json_mut *one = json_new_object(build);

        text_table_row(&table, arena_printf(arena, "SD%d", check->id), check->area, check->title,
                       check->fix);
        json_put_i64(build, one, "id", check->id);
        json_put_text(build, one, "area", check->area);
        json_put_text(build, one, "title", check->title);
        json_put_text(build, one, "fix", check->fix);
        json_push(list, one);
    }
    if (is_json)
        json_mut_write_pretty(list, out);
    else
        text_table_write(&table, true, out);
}
