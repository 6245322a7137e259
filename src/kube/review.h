/* review.h - asking the API server who somebody is (TokenReview) and what they may do
 * (SubjectAccessReview): the bodies of the questions, and what the answers say.
 *
 * An answer that does not plainly say yes is a no; one that cannot be read is an error, and the
 * caller must not take it for either. */
#ifndef SLINC_KUBE_REVIEW_H
#define SLINC_KUBE_REVIEW_H

#include "kube/client.h"

enum { KUBE_REVIEW_MAX_BODY = 64 * 1024, KUBE_REVIEW_MAX_GROUPS = 256 };

/* NULL and "" are the same: not said. */
struct kube_access_question {
    const char *user, *uid;
    const struct str *groups;
    unsigned group_count;
    const struct json *extra; /* as a TokenReview gives it; may be NULL */
    const char *verb;
    const char *path; /* a URL path ("/metrics"), or else the attributes of a resource: */
    const char *group, *version, *resource, *subresource, *ns, *name;
};

/* Appends the body; out's maximum should be KUBE_REVIEW_MAX_BODY: ask buf_check of it. */
void kube_access_write(const struct kube_access_question *question, struct buf *out);
void kube_access_request(struct kube_request *ret_request, struct str body);

struct kube_access_answer {
    bool allowed;
    struct str reason; /* borrowed from the object; "" when there is none */
};
int kube_access_read(const struct json *object, struct kube_access_answer *ret_answer,
                     struct err *err);

/* The body holds the token: wipe it after sending. */
void kube_token_write(struct str token, const char *audience, struct buf *out);
void kube_token_request(struct kube_request *ret_request, struct str body);

struct kube_token_answer { /* borrowed from the object */
    bool authenticated;
    struct str user, uid;
    struct str groups[KUBE_REVIEW_MAX_GROUPS];
    unsigned group_count;
    const struct json *extra; /* NULL when there is none */
    struct str error;         /* why not, in the server's words */
};

/* audience: what the question named, NULL for none. A token for other audiences is not
 * authenticated, even where an old server says otherwise. */
int kube_token_read(const struct json *object, const char *audience,
                    struct kube_token_answer *ret_answer, struct err *err);

#endif
