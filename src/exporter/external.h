/* external.h - external.metrics.k8s.io/v1beta1: the documents that the API server and
 * HorizontalPodAutoscalers read. Pure.
 *
 * Every gauge of /metrics that is by partition or for the whole cluster is a metric there, with its
 * labels. A HorizontalPodAutoscaler adds up all items, so it selects: partition=gpu. */
#ifndef SLINC_EXPORTER_EXTERNAL_H
#define SLINC_EXPORTER_EXTERNAL_H

#include "exporter/tally.h"

#define EXTERNAL_GROUP "external.metrics.k8s.io"
#define EXTERNAL_PATH  "/apis/external.metrics.k8s.io"

enum { EXTERNAL_MAX_ANSWER = 4 << 20 };

/* What a path asks for. */
enum external_kind { EXTERNAL_IS_GROUP, EXTERNAL_IS_LIST, EXTERNAL_IS_VALUE };
struct external_question {
    enum external_kind kind;
    struct str ns, metric; /* of a value; borrowed from the path */
};
/* -ERR_NOT_FOUND for a path that is none of ours. */
int external_parse(struct str path, struct external_question *ret_question, struct err *err);

void external_write_group(struct buf *out);
void external_write_list(struct buf *out);

/* -ERR_NOT_FOUND: no such metric; -ERR_INVALID: the selector; -ERR_UNAVAILABLE: what it would tell
 * is stale or hidden, so that an autoscaler keeps the size. selector: as in a URL, decoded. */
int external_write_value(const struct tally *tally, struct str metric, struct str selector,
                         struct buf *out, struct err *err);

/* A Status object of Kubernetes for a refusal. */
void external_write_status(int code, const char *message, struct buf *out);

#endif
