/* doctor_cluster.c - checks of the Kubernetes side: versions, our pods, leases, rights, webhooks,
 * aggregated APIs. */
#include "cli/definitions.h"
#include "cli/doctor.h"
#include "cli/replica.h"
#include "cli/text.h"

#include <inttypes.h>
#include <string.h>

enum { MIN_MINOR = 34, MAX_NAMES_TEXT = 2048, MAX_CHARTS = 8 };

#define GROUP           "slinky.slurm.net"
#define VIEW_SERVICE    "v1alpha1.view.slinky.slurm.net"
#define METRICS_SERVICE "v1beta1.external.metrics.k8s.io"

static const struct json *items(const struct doctor *doctor, enum doctor_fact fact)
{
    return json_get(doctor->facts->of[fact].doc, "items");
}

static struct str name_of(const struct json *object)
{
    return json_str(json_at(object, "metadata", "name"));
}

static struct str namespace_of(const struct json *object)
{
    return json_str(json_at(object, "metadata", "namespace"));
}

static bool is_true(const struct json *condition)
{
    return str_is(json_str(json_get(condition, "status")), "True");
}

/* ---- versions ---- */

void doctor_version(const struct doctor *doctor, struct doctor_finding *finding)
{
    const struct json *version = doctor->facts->of[FACT_VERSION].doc;
    struct str minor = json_str(json_get(version, "minor"));
    struct str git = json_str(json_get(version, "gitVersion"));
    int64_t number = 0;

    while (minor.len > 0 && str_to_i64(minor, 0, INT32_MAX, &number, NULL) < 0)
        minor.len--; /* "34+" */
    if (number >= MIN_MINOR)
        doctor_find(doctor, finding, DOCTOR_OK, "Kubernetes " STR_FMT, STR_ARG(git));
    else
        doctor_find(doctor, finding, DOCTOR_WARNS,
                    "Kubernetes " STR_FMT " is older than 1.34, with which this is tested",
                    STR_ARG(git));
}

void doctor_crds(const struct doctor *doctor, struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_CRDS));
    struct doctor_names wrong = { .count = 0 };
    const struct json *crd, *version;
    size_t count = 0;

    buf_init(&wrong.text, MAX_NAMES_TEXT);
    while (json_next_item(&iter, &crd)) {
        struct json_iter versions = json_iter(json_at(crd, "spec", "versions"));
        bool serves = false;

        if (!str_is(json_str(json_at(crd, "spec", "group")), GROUP))
            continue;
        count++;
        while (json_next_item(&versions, &version))
            serves |= str_is(json_str(json_get(version, "name")), "v1beta1") &&
                      json_bool_or(json_get(version, "served"), false);
        if (!serves)
            doctor_names_add(&wrong, STR(""), name_of(crd));
    }
    if (wrong.count > 0)
        doctor_find(doctor, finding, DOCTOR_FAILS, "v1beta1 is not served: %s",
                    buf_text(&wrong.text));
    else if (count == 0)
        doctor_find(doctor, finding, DOCTOR_SKIPPED, "the operator's chart is not installed");
    else
        doctor_find(doctor, finding, DOCTOR_OK, "%zu kinds of " GROUP, count);
    buf_done(&wrong.text);
}

void doctor_definitions(const struct doctor *doctor, struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_CRDS));
    struct doctor_names older = { .count = 0 };
    const struct json *crd;
    int64_t lowest = DEFINITIONS_LEVEL;
    size_t count = 0;

    buf_init(&older.text, MAX_NAMES_TEXT);
    while (json_next_item(&iter, &crd)) {
        int64_t level = definitions_level(crd);

        if (!str_is(json_str(json_at(crd, "spec", "group")), GROUP))
            continue;
        count++;
        if (level < DEFINITIONS_LEVEL)
            doctor_names_add(&older, STR(""), name_of(crd));
        if (level < lowest)
            lowest = level;
    }
    if (older.count > 0)
        doctor_find(doctor, finding, DOCTOR_WARNS,
                    "older than this program wants (level %" PRId64
                    " of %d), so fields may be dropped without a word: %s",
                    lowest, DEFINITIONS_LEVEL, buf_text(&older.text));
    else if (count == 0)
        doctor_find(doctor, finding, DOCTOR_SKIPPED, "the operator's chart is not installed");
    else
        doctor_find(doctor, finding, DOCTOR_OK, "level %" PRId64, lowest);
    buf_done(&older.text);
}

/* ---- our pods ---- */

static bool is_ours(const struct json *pod)
{
    return replica_runs(pod, "bridge") || replica_runs(pod, "operator") ||
           replica_runs(pod, "exporter");
}

static bool is_over(const struct json *pod)
{
    struct str phase = json_str(json_at(pod, "status", "phase"));

    return str_is(phase, "Succeeded") || str_is(phase, "Failed");
}

void doctor_our_pods(const struct doctor *doctor, struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_PODS));
    struct doctor_names unready = { .count = 0 }, mixed = { .count = 0 };
    struct {
        struct str app, image;
    } seen[MAX_CHARTS];
    size_t count = 0, apps = 0;
    const struct json *pod;

    buf_init(&unready.text, MAX_NAMES_TEXT);
    buf_init(&mixed.text, MAX_NAMES_TEXT);
    while (json_next_item(&iter, &pod)) {
        struct str app = json_str(json_at(pod, "metadata", "labels", "app.kubernetes.io/name"));
        struct str image =
            json_str(json_get(json_item(json_at(pod, "spec", "containers"), 0), "image"));
        size_t at = 0;

        if (!is_ours(pod) || is_over(pod))
            continue;
        count++;
        if (!is_true(doctor_condition(pod, "Ready")))
            doctor_names_add(&unready, namespace_of(pod), name_of(pod));
        while (at < apps && !str_eq(seen[at].app, app))
            at++;
        if (at == apps && apps < MAX_CHARTS) {
            seen[apps].app = app;
            seen[apps++].image = image;
        } else if (at < apps && !str_eq(seen[at].image, image)) {
            doctor_names_add(&mixed, namespace_of(pod), name_of(pod));
        }
    }
    if (unready.count > 0)
        doctor_find(doctor, finding, DOCTOR_FAILS, "%zu of %zu pods are not ready: %s",
                    unready.count, count, buf_text(&unready.text));
    else if (mixed.count > 0)
        doctor_find(doctor, finding, DOCTOR_WARNS, "replicas run different images: %s",
                    buf_text(&mixed.text));
    else if (count == 0)
        doctor_find(doctor, finding, DOCTOR_SKIPPED,
                    "no pod runs slinc bridge, operator or exporter");
    else
        doctor_find(doctor, finding, DOCTOR_OK, "%zu pods", count);
    buf_done(&unready.text);
    buf_done(&mixed.text);
}

/* A lease has the name of the Deployment, which is the name of the app. */
static bool leads(const struct doctor *doctor, const struct json *lease)
{
    struct json_iter iter = json_iter(items(doctor, FACT_PODS));
    const struct json *pod;

    while (json_next_item(&iter, &pod))
        if (is_ours(pod) && str_eq(namespace_of(pod), namespace_of(lease)) &&
            str_eq(json_str(json_at(pod, "metadata", "labels", "app.kubernetes.io/name")),
                   name_of(lease)))
            return true;
    return false;
}

void doctor_leases(const struct doctor *doctor, struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_LEASES));
    const struct json *lease;
    size_t count = 0;

    while (json_next_item(&iter, &lease)) {
        struct str holder = json_str(json_at(lease, "spec", "holderIdentity"));
        int64_t lasts = json_i64_or(json_at(lease, "spec", "leaseDurationSeconds"), 15);
        int64_t age =
            doctor->facts->now_s - text_seconds(json_str(json_at(lease, "spec", "renewTime")));

        if (!leads(doctor, lease))
            continue;
        count++;
        if (holder.len == 0 || age > 2 * lasts) {
            doctor_find(doctor, finding, DOCTOR_FAILS,
                        "lease " STR_FMT "/" STR_FMT " is %s" STR_FMT ", last renewed %" PRId64
                        " s ago: nobody acts",
                        STR_ARG(namespace_of(lease)), STR_ARG(name_of(lease)),
                        holder.len == 0 ? "held by nobody" : "held by ", STR_ARG(holder), age);
            return;
        }
        if (age < -2) {
            doctor_find(doctor, finding, DOCTOR_WARNS,
                        "the clock of " STR_FMT " is %" PRId64 " s ahead of ours", STR_ARG(holder),
                        -age);
            doctor_fix(doctor, finding, "see to the time synchronisation of both machines");
            return;
        }
    }
    if (count == 0)
        doctor_find(doctor, finding, DOCTOR_SKIPPED, "neither bridge nor operator runs");
    else
        doctor_find(doctor, finding, DOCTOR_OK, "%zu leases are renewed", count);
}

void doctor_access(const struct doctor *doctor, struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_ACCESS));
    const struct json *one;
    size_t count = 0;

    while (json_next_item(&iter, &one)) {
        count++;
        if (json_bool_or(json_get(one, "allowed"), false))
            continue;
        doctor_find(doctor, finding, DOCTOR_FAILS, STR_FMT " may not " STR_FMT " " STR_FMT,
                    STR_ARG(json_str(json_get(one, "user"))),
                    STR_ARG(json_str(json_get(one, "verb"))),
                    STR_ARG(json_str(json_get(one, "resource"))));
        return;
    }
    if (count == 0)
        doctor_find(doctor, finding, DOCTOR_SKIPPED, "neither bridge nor operator runs");
    else
        doctor_find(doctor, finding, DOCTOR_OK, "%zu rights", count);
}

/* ---- services ---- */

static bool has_endpoints(const struct doctor *doctor, struct str ns, struct str service)
{
    struct json_iter iter = json_iter(items(doctor, FACT_ENDPOINTS));
    const struct json *slice, *endpoint;

    while (json_next_item(&iter, &slice)) {
        struct json_iter endpoints = json_iter(json_get(slice, "endpoints"));

        if (!str_eq(namespace_of(slice), ns) ||
            !str_eq(json_str(json_at(slice, "metadata", "labels", "kubernetes.io/service-name")),
                    service))
            continue;
        while (json_next_item(&endpoints, &endpoint))
            if (json_bool_or(json_at(endpoint, "conditions", "ready"), true))
                return true;
    }
    return false;
}

void doctor_dns(const struct doctor *doctor, struct doctor_finding *finding)
{
    if (has_endpoints(doctor, STR("kube-system"), STR("kube-dns")))
        doctor_find(doctor, finding, DOCTOR_OK, "kube-system/kube-dns has endpoints");
    else
        doctor_find(
            doctor, finding, DOCTOR_WARNS,
            "Service kube-system/kube-dns has no endpoint that is ready: names such as that "
            "of slurmrestd may not resolve");
}

/* The charts put their name on a configuration, which nobody replaces when it changes. */
static bool is_our_webhook(const struct json *config)
{
    struct str chart = json_str(json_at(config, "metadata", "labels", "helm.sh/chart"));

    return str_starts(chart, STR("slurm-bridge-")) || str_starts(chart, STR("slurm-operator-"));
}

void doctor_webhooks(const struct doctor *doctor, struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_WEBHOOKS));
    const struct json *config, *webhook;
    size_t count = 0;

    while (json_next_item(&iter, &config)) {
        struct json_iter webhooks = json_iter(json_get(config, "webhooks"));

        while (is_our_webhook(config) && json_next_item(&webhooks, &webhook)) {
            const struct json *client = json_get(webhook, "clientConfig");
            struct str ns = json_str(json_at(client, "service", "namespace"));
            struct str service = json_str(json_at(client, "service", "name"));
            bool blocks = str_is(json_str(json_get(webhook, "failurePolicy")), "Fail");

            count++;
            if (json_str(json_get(client, "caBundle")).len == 0)
                doctor_find(doctor, finding, DOCTOR_FAILS,
                            "webhook " STR_FMT " has no CA: the API server trusts none of its "
                            "certificates",
                            STR_ARG(json_str(json_get(webhook, "name"))));
            else if (service.len > 0 && !has_endpoints(doctor, ns, service))
                doctor_find(doctor, finding, DOCTOR_FAILS,
                            "webhook " STR_FMT ": Service " STR_FMT "/" STR_FMT
                            " has no endpoint that is ready: pods %s",
                            STR_ARG(json_str(json_get(webhook, "name"))), STR_ARG(ns),
                            STR_ARG(service),
                            blocks ? "cannot be created" : "are created without our scheduler");
            else
                continue;
            return;
        }
    }
    if (count == 0)
        doctor_find(doctor, finding, DOCTOR_SKIPPED, "no webhook of ours is installed");
    else
        doctor_find(doctor, finding, DOCTOR_OK, "%zu webhooks", count);
}

/* ---- aggregated APIs ---- */

static const struct json *find_service(const struct doctor *doctor, const char *name)
{
    struct json_iter iter = json_iter(items(doctor, FACT_APISERVICES));
    const struct json *one;

    while (json_next_item(&iter, &one))
        if (str_is(name_of(one), name))
            return one;
    return NULL;
}

static void judge_service(const struct doctor *doctor, const char *name, const char *absent,
                          struct doctor_finding *finding)
{
    const struct json *service = find_service(doctor, name);
    const struct json *available = doctor_condition(service, "Available");
    const struct json *behind = json_at(service, "spec", "service");

    if (!service)
        doctor_find(doctor, finding, DOCTOR_SKIPPED, "%s", absent);
    else if (!is_true(available))
        doctor_find(doctor, finding, DOCTOR_FAILS, "%s is not available: " STR_FMT, name,
                    STR_ARG(json_str(json_get(available, "message"))));
    else
        doctor_find(doctor, finding, DOCTOR_OK, "%s is served by " STR_FMT "/" STR_FMT, name,
                    STR_ARG(json_str(json_get(behind, "namespace"))),
                    STR_ARG(json_str(json_get(behind, "name"))));
}

void doctor_view_api(const struct doctor *doctor, struct doctor_finding *finding)
{
    judge_service(doctor, VIEW_SERVICE,
                  "the view API is not installed (chart slurm-exporter, view.enabled)", finding);
}

void doctor_external_metrics(const struct doctor *doctor, struct doctor_finding *finding)
{
    judge_service(doctor, METRICS_SERVICE,
                  "external metrics are not installed (chart slurm-exporter, "
                  "externalMetrics.enabled)",
                  finding);
}

void doctor_api_services(const struct doctor *doctor, struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_APISERVICES));
    struct doctor_names wrong = { .count = 0 };
    const struct json *one;

    buf_init(&wrong.text, MAX_NAMES_TEXT);
    while (json_next_item(&iter, &one))
        if (json_exists(json_at(one, "spec", "service")) &&
            !is_true(doctor_condition(one, "Available")))
            doctor_names_add(&wrong, STR(""), name_of(one));
    if (wrong.count > 0)
        doctor_find(doctor, finding, DOCTOR_FAILS, "%zu unavailable: %s", wrong.count,
                    buf_text(&wrong.text));
    else
        doctor_find(doctor, finding, DOCTOR_OK, "all are available");
    buf_done(&wrong.text);
}
