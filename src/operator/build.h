/* build.h - the pieces that children of all custom resources are made of.
 *
 * Pure functions of a custom resource: each gives a JSON value in the caller's build. */
#ifndef SLINC_OPERATOR_BUILD_H
#define SLINC_OPERATOR_BUILD_H

#include "codec/json_format.h"
#include "operator/kinds.h"

/* One row per daemon that the operator runs. */
struct component {
    const char *app;       /* app.kubernetes.io/name, and the name of the main container */
    const char *component; /* app.kubernetes.io/component */
    const char *suffix;    /* of the names of workload and Service */
    int port;
    bool needs_no_rights; /* its pods pass the profile "restricted" of Pod Security */
};

extern const struct component component_slurmctld, component_slurmdbd, component_slurmrestd,
    component_login, component_slurmd;

/* "<name of the custom resource><suffix>"; suffix may be longer than the component's own. */
struct json_mut *build_name(struct json_build *build, const struct kube_object *owner,
                            const char *suffix);

/* The labels by which pods are found: they never change. */
struct json_mut *build_selector(struct json_build *build, const struct component *component,
                                const struct kube_object *owner);

/* Which metadata a child takes over, beside the labels of its component. Later ones win. */
enum meta_source {
    META_OWNER = 1,    /* labels and annotations of the custom resource */
    META_TEMPLATE = 2, /* spec.template.metadata */
    META_SERVICE = 4,  /* spec.service.metadata */
    META_MONITOR = 8,  /* spec.metrics.serviceMonitor */
};

/* {name, labels, annotations}. Annotations that kubectl and Helm keep for themselves are left out.
 */
struct json_mut *build_metadata(struct json_build *build, const struct component *component,
                                const struct kube_object *owner, const char *suffix,
                                unsigned sources);

/* The user's container block over ours; spec.<key> may be absent. */
int build_container(struct json_build *build, const struct kube_object *owner, const char *key,
                    const struct json_mut *ours, struct json_mut **ret_container, struct err *err);

/* A pod template: spec.template.spec over our pod spec, with metadata as in `sources` and these
 * annotations on top (an object, or NULL). */
int build_template(struct json_build *build, const struct component *component,
                   const struct kube_object *owner, unsigned sources,
                   const struct json_mut *annotations, const struct json_mut *pod_spec,
                   struct json_mut **ret_template, struct err *err);

/* The Service of a component from spec.service. The selector is build_selector and `more`. */
int build_service(struct json_build *build, const struct component *component,
                  const struct kube_object *owner, unsigned sources, const struct json_mut *more,
                  struct json_mut **ret_service, struct err *err);

/* Where slurmctld is asked for its configuration: "host:port". */
enum { BUILD_MAX_SERVER = 2 * KUBE_MAX_NAME };
void build_conf_server(const struct kube_object *controller, char ret_text[BUILD_MAX_SERVER]);

/* Whether a label names the release of a chart: it changes without anything else. */
bool build_is_chart_label(struct str key);

/* The same template for a pod that needs no rights: a seccomp profile, no capabilities. */
struct json_mut *build_hardened(struct json_build *build, const struct component *component,
                                const struct json_mut *template);

/* A Deployment or StatefulSet around this pod template: its metadata, selector and template. live:
 * the one that exists, or NULL.
 *
 * Some differences must never restart a pod by themselves: labels and annotations that come from
 * the custom resource or name a chart, hashes of what is reconfigured in place, the text of our
 * scripts, what the Slinky operator dropped, and that a pod gives up rights. If the live template
 * differs in these alone, it stays as it is; otherwise they go along with the change that counts
 * (keep_live.c). */
struct json_mut *build_workload(struct json_build *build, const struct component *component,
                                const struct kube_object *owner, const struct kube_object *live,
                                struct json_mut *template);

#endif
