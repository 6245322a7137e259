/* admit.h - the validating webhook of the operator: one path for each kind of custom resource.
 *
 *     /validate-slinky-slurm-net-v1beta1-<kind>   POST of an AdmissionReview
 *     /healthz                                    200
 *
 * A review that breaks a rule (admit_rules.h) is answered 403 with all reasons; one with values of
 * the wrong type 400. Warnings come with every answer. */
#ifndef SLINC_OPERATOR_ADMIT_H
#define SLINC_OPERATOR_ADMIT_H

#include "engine/webhook.h"
#include "kube/client.h"
#include "operator/admit_rules.h"

struct operator_admit;

struct operator_admit_options {
    struct kube_client *client; /* borrowed, as the metrics are */
    struct metrics *metrics;
    const char *address; /* NULL: all */
    uint16_t port;       /* 0: any */
    const char *folder;  /* of tls.crt and tls.key; borrowed */
    bool is_needed;      /* not ready without a certificate, even when there is no folder */
};

/* 0 also when there is no certificate yet, which is logged; an error when the port is taken. */
int operator_admit_new(const struct operator_admit_options *options,
                       struct operator_admit **ret_admit, struct err *err);
void operator_admit_free(struct operator_admit *admit);

void operator_admit_add_health(struct operator_admit *admit, struct health *health);

extern const struct metric_family operator_admit_metrics[];
extern const size_t operator_admit_metric_count;

/* The answer to one review: bytes in, bytes out. Never fails, whatever the bytes. */
struct webhook_answer operator_admit_review(const char *kind, struct str body, review_find find,
                                            void *find_context, struct buf *out);

#endif
