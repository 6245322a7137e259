/* preparer.h - NodePrepareResources and NodeUnprepareResources.
 *
 * Every claim of a call is answered, each with its own error. The kubelet tries a failed Prepare
 * again only after a minute, so what may pass (the API server is away, the allocation is not
 * there yet) is tried again inside the call. Both calls may come twice. */
#ifndef SLINC_DRA_PREPARER_H
#define SLINC_DRA_PREPARER_H

#include "dra/cdi.h"
#include "dra/topology.h"
#include "engine/metrics.h"
#include "io/grpc_server.h"
#include "kube/client.h"

struct preparer_options { /* all are borrowed and outlive the preparer */
    struct kube_client *client;
    struct prepared *prepared;
    const struct cdi *cdi;
    const char *node;
    struct metrics *metrics;
    int64_t patience_us; /* within one call; 0 = 35 s */
};

struct preparer;

struct preparer *preparer_new(const struct preparer_options *options);
void preparer_free(struct preparer *preparer); /* fails the calls under way */

/* What this node can do: cores to pin to, or why it cannot pin. Both are borrowed; one is NULL. */
void preparer_set_node(struct preparer *preparer, const struct topology *topology,
                       const char *problem);

void preparer_prepare(struct preparer *preparer, struct str message, struct grpc_call *call);
void preparer_unprepare(struct preparer *preparer, struct str message, struct grpc_call *call);

#endif
