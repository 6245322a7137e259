/* event.h - tells people what happened to an object: events.k8s.io/v1, fire and forget.
 *
 * Never blocks, never fails the caller, never grows without bound. The same thing said again within
 * six minutes is counted in the series of the first Event and written at most every ten seconds;
 * what goes above the rates is dropped. */
#ifndef SLINC_KUBE_EVENT_H
#define SLINC_KUBE_EVENT_H

#include "kube/client.h"

#include <stdarg.h>
#include <stdint.h>

enum { KUBE_EVENT_MAX_NOTE = 1024 }; /* bytes; the API server takes no more */

enum kube_event_type { KUBE_EVENT_NORMAL, KUBE_EVENT_WARNING };

struct kube_event_object {
    const char *api_version, *kind;
    const char *ns; /* "" or NULL for cluster-scoped objects: their Events live in "default" */
    const char *name, *uid;
};

struct kube_recorder_options {
    const char *controller; /* who reports: "slinc.slurm.net/bridge" */
    const char *instance;   /* and which of them: the pod's name */
    unsigned per_second;    /* Events written in all; 0 = 20 */
    unsigned per_object;    /* new Events per second about one object; 0 = 5 */
};

struct kube_recorder;

/* The client is borrowed and outlives the recorder. */
struct kube_recorder *kube_recorder_new(struct kube_client *client,
                                        const struct kube_recorder_options *options);
void kube_recorder_free(struct kube_recorder *recorder); /* what is under way is given up */
struct loop *kube_recorder_loop(const struct kube_recorder *recorder);

/* action: what was done or tried ("Binding"); NULL or "" = the same word as reason. */
void kube_event(struct kube_recorder *recorder, const struct kube_event_object *regarding,
                enum kube_event_type type, const char *reason, const char *action, const char *note,
                ...) __attribute__((format(printf, 6, 7)));

#endif
