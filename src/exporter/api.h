/* api.h - the aggregated API server of the exporter: HTTPS, discovery, and what whoever may read it
 * is told: external metrics (external.h), jobs and nodes (view.h). What the bridge thinks of a pod
 * is told to whoever may get that pod.
 *
 * Discovery answers always: while an aggregated API does not answer, no namespace of the cluster
 * can be deleted. Whose the APIService is, is looked at and said; it is never written. */
#ifndef SLINC_EXPORTER_API_H
#define SLINC_EXPORTER_API_H

#include "exporter/api_page.h"
#include "exporter/exporter.h"

struct api;

struct api_options {
    const char *address; /* NULL: all */
    uint16_t port;
    const char *folder;            /* of tls.crt and tls.key; they may change at any time */
    const char *service;           /* NAMESPACE/NAME of ours in the APIService; "": not looked at */
    struct ui *ui;                 /* the live page; NULL: it is not served */
    struct http_transport *bridge; /* to its /debug/why; NULL: it is not asked */
};

/* All are borrowed and outlive it. */
int api_new(struct loop *loop, struct http_transport *kube, struct exporter *exporter,
            struct metrics *metrics, const struct api_options *options, struct api **ret_api,
            struct err *err);
void api_free(struct api *api); /* takes NULL */
uint16_t api_port(const struct api *api);

#endif
