/* review_reads.h - objects that a review needs, read from the API server at the time of the review.
 *
 * A cache may be behind: whoever creates a ConfigMap and a Controller at once must not be refused.
 * So every review reads for itself, by its uid. The first question starts the read; the review is
 * repeated until the answer is there. */
#ifndef SLINC_ENGINE_REVIEW_READS_H
#define SLINC_ENGINE_REVIEW_READS_H

#include "kube/client.h"

enum { REVIEW_READS_MAX = 1024 }; /* at once; more cannot be read */

/* What is known of an object that a review names. */
enum review_known {
    REVIEW_EXISTS,
    REVIEW_ABSENT,
    REVIEW_NOT_READ_YET,  /* the review is to be repeated */
    REVIEW_CANNOT_BE_READ /* which is no reason to refuse anything */
};

/* uid: of the review, so that each review sees the cluster as it is at its own time. */
typedef enum review_known (*review_find)(void *context, struct str uid,
                                         const struct kube_resource *resource, struct str ns,
                                         struct str name, const struct json **ret_object);

struct review_reads;

struct review_reads *review_reads_new(struct kube_client *client); /* borrowed */
void review_reads_free(struct review_reads *reads);

/* An review_find; the context is a struct review_reads. The object stays for some seconds. */
enum review_known review_reads_find(void *context, struct str uid,
                                    const struct kube_resource *resource, struct str ns,
                                    struct str name, const struct json **ret_object);

#endif
