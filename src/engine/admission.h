/* admission.h - the envelope of an admission review: the request that it holds, and the answer.
 *
 * Both versions of the review are read (v1 and v1beta1); the answer has the version and the uid of
 * its request. */
#ifndef SLINC_ENGINE_ADMISSION_H
#define SLINC_ENGINE_ADMISSION_H

#include "codec/json.h"

enum {
    ADMISSION_BAD_REQUEST = 400,
    ADMISSION_FORBIDDEN = 403,
    ADMISSION_TOO_LARGE = 413,
    ADMISSION_UNAVAILABLE = 503,
};

/* Borrowed from the review's document. */
struct admission_request {
    const char *version; /* "admission.k8s.io/v1" */
    struct str uid, ns, name, operation, subresource, user;
    struct str group, resource;      /* "slinky.slurm.net", "controllers" */
    const struct json *groups;       /* of the user: a list of texts; NULL when there is none */
    const struct json *object, *old; /* NULL when there is none */
};

/* -ERR_INVALID when it is no review, or has no request with a uid. */
int admission_read(const struct json *review, struct admission_request *ret_request,
                   struct err *err);

struct admission_answer {
    int code;              /* 0: allowed; else the HTTP status of the denial */
    struct str message;    /* of a denial */
    int64_t retry_after_s; /* of a denial: makes clients try again by themselves; 0: not said */
    struct str patch;      /* a JSON patch in base64; "": none */
    const struct str *warnings;
    unsigned warning_count;
};

void admission_write(const struct admission_request *request, const struct admission_answer *answer,
                     struct buf *out);

#endif
