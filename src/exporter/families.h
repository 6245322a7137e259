/* families.h - every series of the exporter: one row per family, from which the pages, `--help` and
 * the documentation come.
 *
 * Families that are computed from the caches at a scrape have a function that writes their samples.
 * Those that count events over time (histograms, counters of ends) have none: they are kept in a
 * registry (engine/metrics.h) by history.c and source.c, and their rows stand here for the
 * reference and for their buckets. */
#ifndef SLINC_EXPORTER_FAMILIES_H
#define SLINC_EXPORTER_FAMILIES_H

#include "engine/metrics.h"
#include "exporter/tally.h"

enum family_page { FAMILY_CLUSTER, FAMILY_NODES }; /* /metrics and /metrics/nodes */

enum family_needs { /* kinds of Slurm that must be fresh and visible; else the family is absent */
                    NEEDS_JOBS = 1 << 0,
                    NEEDS_NODES = 1 << 1,
                    NEEDS_RESERVATIONS = 1 << 2,
                    NEEDS_DIAG = 1 << 3,
                    NEEDS_LICENSES = 1 << 4,
                    NEEDS_HEALTH = 1 << 5,
};

struct page { /* where samples go: the text of one scrape */
    struct buf *out;
    const struct family *family;
    size_t samples; /* of this family so far: the head comes with the first */
    /* Set: gets the samples instead of the text. */
    void (*take)(void *context, const struct family *family, const char *const *values,
                 double value);
    void *context;
};

struct family {
    struct metric_family row;
    const char *unit; /* base unit; "" for a count */
    const char *from; /* how it is computed */
    enum family_page page;
    unsigned needs;                                              /* enum family_needs */
    void (*write)(struct page *page, const struct tally *tally); /* NULL: in the registry */
    size_t at; /* of the figure, for functions that write several families */
};

extern const struct family families[];
extern const size_t family_count;

/* The rows that history.c and source.c keep. */
enum family_index {
    FAMILY_REQUEST_SECONDS,
    FAMILY_FAILURES,
    FAMILY_JOB_WAIT,
    FAMILY_JOB_RUN,
    FAMILY_JOB_LIMIT_USED,
    FAMILY_JOBS_FINISHED,
    FAMILY_API_OWNED,
    FAMILY_KEPT, /* how many there are; they are the first rows */
};

/* One sample; values: one for each label. */
#define page_sample(page, value, ...)                                                              \
    page_add((page), (value), (const char *const[]){ __VA_ARGS__, "" })
void page_add(struct page *page, double value, const char *const *values);

/* All computed families of a page whose kinds the view has. */
void families_write(const struct tally *tally, enum family_page page, struct buf *out);

/* Whether the view has the kinds that a family needs. */
bool family_is_shown(const struct family *family, const struct tally_view *view);

/* The table for the reference documentation (Markdown). */
void families_reference(struct buf *out);

/* ---- writers in other files ---- */
void write_up(struct page *page, const struct tally *tally);
void write_age(struct page *page, const struct tally *tally);
void write_restricted(struct page *page, const struct tally *tally);
void write_info(struct page *page, const struct tally *tally);
void write_folded(struct page *page, const struct tally *tally);
void write_wanted(struct page *page, const struct tally *tally);
void write_nodeset_wanted(struct page *page, const struct tally *tally);
void write_node_state(struct page *page, const struct tally *tally);
void write_node_total(struct page *page, const struct tally *tally);
void write_node_by_holder(struct page *page, const struct tally *tally);
void write_node_gres(struct page *page, const struct tally *tally);
void write_node_gres_used(struct page *page, const struct tally *tally);
void write_node_reason(struct page *page, const struct tally *tally);
void write_node_reason_time(struct page *page, const struct tally *tally);
void write_reservation(struct page *page, const struct tally *tally);
void write_license(struct page *page, const struct tally *tally);
void write_diag_number(struct page *page, const struct tally *tally);
void write_diag_scheduler(struct page *page, const struct tally *tally);
void write_diag_exits(struct page *page, const struct tally *tally);
void write_diag_rpcs(struct page *page, const struct tally *tally);

#endif
