/* admit_reads.h - objects that a review needs, read from the API server at the time of the review.
 *
 * A cache may be behind: whoever creates a ConfigMap and a Controller at once must not be refused.
 * So every review reads for itself, by its uid. The first question starts the read; the review is
 * repeated until the answer is there. */
#ifndef SLINC_OPERATOR_ADMIT_READS_H
#define SLINC_OPERATOR_ADMIT_READS_H

#include "kube/client.h"
#include "operator/admit_rules.h"

enum { ADMIT_READS_MAX = 1024 }; /* at once; more cannot be read */

struct admit_reads;

struct admit_reads *admit_reads_new(struct kube_client *client); /* borrowed */
void admit_reads_free(struct admit_reads *reads);

/* An admit_find; the context is a struct admit_reads. The object stays for some seconds. */
enum admit_known admit_reads_find(void *context, struct str uid,
                                  const struct kube_resource *resource, struct str ns,
                                  struct str name, const struct json **ret_object);

#endif
