/* admit_private.h - a review as it was read, and what the files of admission share. */
#ifndef SLINC_ADMIT_ADMIT_PRIVATE_H
#define SLINC_ADMIT_ADMIT_PRIVATE_H

#include "admit/admit.h"
#include "codec/selector.h"
#include "engine/admission.h"

enum admit_op { ADMIT_CREATE = 1, ADMIT_UPDATE = 2 }; /* bits: rules name both */

/* Borrowed from the review's document. */
struct admit_request {
    struct admission_request review; /* its object is the pod */
    const struct bridge_config *config;
    unsigned op; /* enum admit_op; 0: another, of which we say nothing */
};

struct admit {
    const struct bridge_config *config;
    const struct bridge_world *world; /* NULL: nothing is known of the cluster */
    const struct selector *selector;  /* NULL: the list of names counts */
    struct arena arena;               /* holds it */
    char *users[2];                   /* whose updates are never refused; NULL: nobody's */
};

/* ---- pod.c: questions about a pod that is JSON ---- */

/* -ERR_INVALID when a part that is looked at is not of the type that a pod has there. */
int admit_pod_check(const struct json *pod, struct err *err);

struct str admit_label(const struct json *pod, const char *key);      /* "" when absent */
struct str admit_annotation(const struct json *pod, const char *key); /* "" when absent */
bool admit_has_annotation(const struct json *pod, const char *key);
/* Whether a container requests or limits it. */
bool admit_names_resource(const struct json *pod, const char *resource); /* rules.c */

struct admit_owner { /* the controller among its owners; "" when there is none */
    struct str version, kind, name, uid; /* version: "batch/v1" */
};
struct admit_owner admit_owner(const struct json *pod);

/* The mirror of a static pod, which the kubelet of its node shows to us. It runs already. */
bool admit_is_of_kubelet(const struct admit_request *request);
/* A pod that the DaemonSet controller creates. Of a pod that is there already the owner alone says
 * so: that decides nothing for a pod that names our scheduler. */
bool admit_is_of_daemonset(const struct admit_request *request);

/* ---- mutate.c ---- */

struct admit_mutation {
    bool has_annotations;  /* the object has some, or gets them by an earlier operation */
    struct json_mut *ops;  /* a JSON patch; without items when the pod is as it should be */
    const char *not_known; /* what decides, and was not read yet; NULL: all is known */
    bool is_early;         /* an owner was not seen yet */
};

/* What the bridge needs of a pod that is in scope. */
void admit_mutate(const struct admit *admit, const struct admit_request *request,
                  struct json_build *build, struct admit_mutation *ret_mutation);

/* Who made it, for what pods inherit that from. */
void admit_mutate_workload(const struct admit_request *request, struct json_build *build,
                           struct admit_mutation *ret_mutation);

#endif
