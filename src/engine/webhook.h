/* webhook.h - answers admission reviews over TLS, by a table of paths; certificate files may change
 * while it serves.
 *
 *     the paths of the table   POST of an AdmissionReview
 *     /healthz                 200
 *
 * A review may say that its answer is early: it depends on an object that the caches do not have
 * yet. Such an answer is held, and the review repeated, for a second at most. Without a certificate
 * nothing is served; the files are read again until there is one. */
#ifndef SLINC_ENGINE_WEBHOOK_H
#define SLINC_ENGINE_WEBHOOK_H

#include "engine/health.h"
#include "engine/metrics.h"

enum {
    WEBHOOK_MAX_PATHS = 16,
    WEBHOOK_MAX_BODY = 8 << 20,
    WEBHOOK_MAX_ANSWER = 1 << 20,
    WEBHOOK_MAX_HELD = 256, /* requests; the answers of more are given although they are early */
};

struct webhook_answer {
    int status;         /* HTTP: 200 with an AdmissionReview; 400 or 413 with one line of text */
    const char *result; /* for webhook_options.results: "allowed"; static */
    bool is_early;
};

/* Appends the answer to out, whose maximum is WEBHOOK_MAX_ANSWER. */
typedef struct webhook_answer (*webhook_review)(void *context, struct str body, struct buf *out);

struct webhook_path {
    const char *path; /* borrowed */
    webhook_review review;
    void *context;
};

struct webhook_options {
    const struct webhook_path *paths; /* copied */
    unsigned path_count;
    struct metrics *metrics;             /* borrowed */
    const struct metric_family *results; /* counter by path and result; NULL: none */
    const struct metric_family *held;    /* counter of held answers by path; NULL: none */
    const char *address;                 /* NULL: all; borrowed */
    uint16_t port;                       /* 0: any; see webhook_server_port */
    const char *folder;                  /* of tls.crt and tls.key; borrowed */
    int64_t reload_us;                   /* between reads of the files; 0 = 10 s */
    int64_t hold_us;                     /* how long an answer is held at most; 0 = 1 s */
    bool is_needed; /* not ready without a certificate, even when there is no folder */
};

struct webhook_server;

/* 0 also when there is no certificate yet, which is logged; an error when the port is taken. */
int webhook_server_new(struct loop *loop, const struct webhook_options *options,
                       struct webhook_server **ret_server, struct err *err);
void webhook_server_free(struct webhook_server *server);

uint16_t webhook_server_port(const struct webhook_server *server); /* 0 while nothing is served */
/* Ready when it serves, or when there is no folder and it is not needed. */
void webhook_server_add_health(struct webhook_server *server, struct health *health);

#endif
