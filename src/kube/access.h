/* access.h - who asks one of our servers, and whether they may.
 *
 * The API server proves with a client certificate that it is the front proxy; then the user is the
 * one that its headers name. Anybody else shows a bearer token, which the API server judges
 * (TokenReview). What the user may is asked by SubjectAccessReview, and remembered for ten seconds.
 * Headers without that certificate are ignored. */
#ifndef SLINC_KUBE_ACCESS_H
#define SLINC_KUBE_ACCESS_H

#include "base/arena.h"
#include "io/http_server.h"
#include "kube/review.h"

struct access;

/* Tokens that are made for this audience count as well as those for the API server: such a token is
 * good for nothing else, so it may travel where another could be overheard. */
#define ACCESS_AUDIENCE "slinc.slurm.net"

struct access_options {
    bool knows_proxy;  /* watches kube-system/extension-apiserver-authentication for its CA */
    unsigned max_asks; /* that wait for the API server at once; 0 = 1024 */
};

/* The client is borrowed. */
struct access *access_new(struct kube_client *client, const struct access_options *options);
void access_free(struct access *access);              /* takes NULL; nothing is told any more */
bool access_knows_proxy(const struct access *access); /* how the API server proves itself */

struct access_question { /* what they want to do; borrowed until access_ask returns */
    const char *verb;
    const char *path; /* a URL path ("/metrics"); NULL: the attributes of a resource: */
    const char *group, *version, *resource, *ns;
    const char *name;  /* of one object; NULL: of any */
    const char *token; /* instead of what the request shows; NULL for that */
};

/* status: 200 when they may; else 401, 403 or 503, with a sentence. Told once, at once or later. */
typedef void (*access_done)(void *context, int status, const char *why);
void access_ask(struct access *access, const struct http_view *view,
                const struct access_question *question, access_done done, void *context);

/* ---- for tests: the parts that do no I/O ---- */

struct access_proxy { /* as the ConfigMap has it; all in one arena */
    struct str ca;
    const struct json *names, *users, *groups, *uids, *extras; /* arrays of texts; may be absent */
};
/* data: of the ConfigMap. -ERR_INVALID without a CA or without names of headers. */
int access_read_proxy(const struct json *data, struct json_doc *docs[5],
                      struct access_proxy *ret_proxy, struct err *err);

struct access_user { /* as headers name one */
    const char *name, *uid;
    struct str groups[KUBE_REVIEW_MAX_GROUPS];
    unsigned group_count;
    struct json_build *extra_build;
    struct json_mut *extra; /* NULL: none */
    bool is_too_much;       /* more groups than may be */
};
void access_take_header(const struct access_proxy *proxy, struct access_user *user,
                        struct arena *arena, const char *name, const char *value);

#endif
