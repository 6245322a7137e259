/* admit_server.h - the bridge's webhook: two paths of engine/webhook.h, and what it counts.
 *
 *     /mutate--v1-pod, /validate--v1-pod   POST of an AdmissionReview (admit.h)
 *     /healthz                             200
 *
 * An answer is held while the namespace or the Job of a pod is not in the caches yet. */
#ifndef SLINC_BRIDGE_ADMIT_SERVER_H
#define SLINC_BRIDGE_ADMIT_SERVER_H

#include "bridge/admit.h"
#include "engine/health.h"
#include "engine/metrics.h"
#include "io/loop.h"

struct admit_server_options {
    const struct admit *admit; /* borrowed, as the metrics are */
    struct metrics *metrics;
    const char *address; /* NULL: all */
    uint16_t port;       /* 0: any; see admit_server_port */
    const char *folder;  /* of tls.crt and tls.key */
    int64_t look_us;     /* between looks at the folder; 0 = 10 s */
    int64_t hold_us;     /* how long an early answer is held back at most; 0 = 1 s */
    bool is_needed;      /* not ready without a certificate, even when there is no folder */
};

struct admit_server;

/* 0 also when there is no certificate yet, which is logged; an error when the port is taken. */
int admit_server_new(struct loop *loop, const struct admit_server_options *options,
                     struct admit_server **ret_server, struct err *err);
void admit_server_free(struct admit_server *server);

bool admit_server_is_serving(const struct admit_server *server);
uint16_t admit_server_port(const struct admit_server *server); /* 0 while nothing is served */
/* Ready when it serves; or when nobody wants it to: there is no folder, and it is not needed. */
void admit_server_add_health(struct admit_server *server, struct health *health);

extern const struct metric_family admit_metrics[];
extern const size_t admit_metric_count;

#endif
