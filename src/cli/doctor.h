/* doctor.h - what is wrong with a whole installation, and what to do about it.
 *
 * Facts are documents of the API server and of our own processes. A check is a row of a table and a
 * pure function from facts to a finding. A check whose facts could not be read is skipped, with the
 * right that is missing. */
#ifndef SLINC_CLI_DOCTOR_H
#define SLINC_CLI_DOCTOR_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "codec/json.h"

enum doctor_fact {
    FACT_VERSION,     /* /version of the API server */
    FACT_CRDS,        /* CustomResourceDefinitions */
    FACT_PODS,        /* of all namespaces */
    FACT_NODES,       /* of Kubernetes */
    FACT_LEASES,      /* of all namespaces */
    FACT_WEBHOOKS,    /* MutatingWebhookConfigurations */
    FACT_ENDPOINTS,   /* EndpointSlices of all namespaces */
    FACT_APISERVICES, /* APIServices */
    FACT_HPAS,        /* HorizontalPodAutoscalers of all namespaces */
    FACT_NODESETS,    /* of all namespaces */
    FACT_VIEW_JOBS,   /* of the view API */
    FACT_VIEW_NODES,
    FACT_BRIDGE,   /* /debug/state of the bridge that leads */
    FACT_EXPORTER, /* /metrics/cluster of the exporter, as text */
    FACT_ACCESS,   /* {items: [{user, verb, resource, allowed}]}: what our accounts may do */
    FACT_KUBELETS, /* {items: [{node, kubeletconfig}]}: of nodes that are lent to Slurm */
    FACT_DISKS,    /* {items: [{node, pods}]}: what the kubelets of slurmctld say of its volumes */
    FACT_TOKENS,   /* {items: [{name, expires}]}: of Secrets with a token for Slurm; seconds */
    DOCTOR_FACTS,
};

struct doctor_facts {
    struct {
        const struct json *doc; /* NULL: not read */
        struct str text;        /* in its place, of FACT_EXPORTER */
        const char *missing;    /* why it was not read */
    } of[DOCTOR_FACTS];
    int64_t now_s;
};

enum doctor_result { DOCTOR_OK, DOCTOR_WARNS, DOCTOR_FAILS, DOCTOR_SKIPPED, DOCTOR_RESULTS };

struct doctor_finding {
    enum doctor_result result;
    const char *what; /* what was found, or why it was not looked at; in the arena */
    const char *fix;  /* what to do about it; "" */
};

struct doctor {
    const struct doctor_facts *facts;
    struct arena *arena;
};

struct doctor_check {
    int id;
    const char *area, *title; /* title: what is checked, as it should be */
    unsigned needs;           /* facts, as bits */
    const char *bridge; /* the check of the bridge that finds it (bridge/checks.c), or NULL: */
    void (*run)(const struct doctor *doctor, struct doctor_finding *ret_finding);
    const char *fix; /* what helps, for the documentation */
};

extern const struct doctor_check doctor_checks[]; /* id 0 behind the last */

void doctor_run(const struct doctor *doctor, const struct doctor_check *check,
                struct doctor_finding *ret_finding);

struct doctor_options {
    const char *only; /* areas and ids, by commas; "": all */
    bool colours;
    bool is_json;
};

/* -ERR_INVALID: a word is neither an area nor an id. */
int doctor_check_only(const char *only, struct err *err);

/* Runs the checks and writes what they found. Returns the worst result; DOCTOR_SKIPPED when every
 * check was skipped. */
enum doctor_result doctor_report(const struct doctor *doctor, const struct doctor_options *options,
                                 struct buf *out);

void doctor_list(bool is_json, struct arena *arena, struct buf *out); /* the table itself */

/* ---- for checks ---- */

void doctor_find(const struct doctor *doctor, struct doctor_finding *finding,
                 enum doctor_result result, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void doctor_fix(const struct doctor *doctor, struct doctor_finding *finding, const char *format,
                ...) __attribute__((format(printf, 3, 4)));

/* Names that something is wrong with; the first few are shown. */
struct doctor_names {
    struct buf text;
    size_t count;
};
void doctor_names_add(struct doctor_names *names, struct str ns, struct str name);

/* The condition of this type in the status of an object; NULL: it has none. */
const struct json *doctor_condition(const struct json *object, const char *type);

/* ---- doctor_cluster.c ---- */
typedef void doctor_function(const struct doctor *doctor, struct doctor_finding *finding);
doctor_function doctor_version, doctor_crds, doctor_definitions, doctor_our_pods, doctor_leases,
    doctor_access, doctor_dns, doctor_webhooks, doctor_api_services, doctor_view_api,
    doctor_external_metrics;
/* ---- doctor_slurm.c ---- */
doctor_function doctor_reads, doctor_database, doctor_load, doctor_latency, doctor_hidden,
    doctor_token, doctor_cpu_manager, doctor_taints, doctor_drained, doctor_jobs_without_pods,
    doctor_devices, doctor_disks;
/* ---- doctor_work.c ---- */
doctor_function doctor_finalizers, doctor_refused, doctor_workers, doctor_hpa, doctor_hpa_zero;

/* One sample of Prometheus text: the first whose line begins with this. False: there is none. */
bool doctor_sample(struct str text, const char *begins, double *ret_value);

#endif
