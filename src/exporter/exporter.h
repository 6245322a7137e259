/* exporter.h - Slurm's figures as pages: what `slinc exporter` serves.
 *
 *     /metrics          cluster, partitions, accounts, users, QOS, scheduler; /metrics/cluster too
 *     /metrics/nodes    node by node
 *     /metrics/slinky   the series of Slinky's exporter, under their old names
 *     /metrics/native   the series of slurmctld's own endpoints
 *     /autoscale/v1/partitions/NAME   what an autoscaler needs, as JSON (KEDA's metrics-api);
 *     /autoscale/v1/nodesets/NAME     the same of a NodeSet of slurm.conf
 *
 * A page is computed from the caches when it is asked for, at most once a second; it costs Slurm
 * nothing. */
#ifndef SLINC_EXPORTER_EXPORTER_H
#define SLINC_EXPORTER_EXPORTER_H

#include "exporter/source.h"
#include "exporter/top.h"
#include "io/http_server.h"

enum exporter_page {
    EXPORTER_CLUSTER,
    EXPORTER_NODES,
    EXPORTER_LEGACY,
    EXPORTER_NATIVE,
    EXPORTER_PAGES
};

enum {
    EXPORTER_ROUTES = EXPORTER_PAGES + 3,
    EXPORTER_MAX_PAGE = 256 << 20, /* bytes: 64,000 nodes */
    EXPORTER_KEEP_US = 1000000,
};

struct exporter_options {
    struct source_options source;
    size_t max_names;        /* accounts, users, QOS each; 0 = 200 */
    const char *legacy_path; /* also here; NULL or "": nowhere else */
};

struct exporter;

/* All are borrowed and outlive it. */
struct exporter *exporter_new(struct loop *loop, struct http_transport *transport,
                              struct slurm_token *token, struct metrics *metrics,
                              const struct exporter_options *options);
void exporter_start(struct exporter *exporter);
void exporter_free(struct exporter *exporter); /* takes NULL */

/* Everything added up as it is now. */
struct exporter_pass {
    struct arena arena;
    struct tally_health health;
    struct tally_view view;
    struct tally tally;
};
void exporter_pass(struct exporter *exporter, struct exporter_pass *ret_pass);
void exporter_pass_done(struct exporter_pass *pass);

/* What it reads; borrowed. */
struct source *exporter_source(const struct exporter *exporter);

/* The text of a page; borrowed until the next call. */
int exporter_page(struct exporter *exporter, enum exporter_page page, struct str *ret_text,
                  struct err *err);

/* Returns how many rows were filled; they come before health's, which has a /metrics too. */
size_t exporter_routes(struct exporter *exporter, struct http_route ret_routes[EXPORTER_ROUTES]);

#endif
