/* metrics.h - counters, gauges and histograms, and the Prometheus text of them.
 *
 * Families are declared in static const tables with their help text and label names, so that the
 * reference documentation is printed from the same rows. Label values are bounded per family: what
 * comes above the bound is counted under "other". Label values are cut at METRICS_MAX_VALUE bytes.
 */
#ifndef SLINC_ENGINE_METRICS_H
#define SLINC_ENGINE_METRICS_H

#include "base/buf.h"

#include <stdint.h>

enum { METRICS_MAX_VALUE = 200, METRICS_MAX_LABELS = 4 };

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_family {
    const char *name, *help;
    enum metric_type type;
    const char *labels[METRICS_MAX_LABELS + 1]; /* NULL-terminated */
    const double *buckets;                      /* histograms: rising, ends with 0 */
    unsigned max_series;                        /* 0 = 1000 */
};

struct metrics;
struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);

/* Families must outlive the registry. Label values in the order of `labels`, then NULL. */
void metrics_add(struct metrics *metrics, const struct metric_family *family, double by, ...)
    __attribute__((sentinel));
void metrics_set(struct metrics *metrics, const struct metric_family *family, double value, ...)
    __attribute__((sentinel));
void metrics_observe(struct metrics *metrics, const struct metric_family *family, double value, ...)
    __attribute__((sentinel));
double metrics_get(const struct metrics *metrics, const struct metric_family *family, ...)
    __attribute__((sentinel)); /* counters and gauges; for tests */

/* Called before each scrape to bring gauges up to date. */
void metrics_on_scrape(struct metrics *metrics, void (*refresh)(void *context), void *context);
/* Families by name and series by label values, each in byte order. */
void metrics_write(struct metrics *metrics, struct buf *out); /* Prometheus text format 0.0.4 */

/* The same text for families whose samples somebody else keeps: the head once, then its samples. Of
 * no histograms. values: as many as the family has labels. */
void metrics_write_head(const struct metric_family *family, struct buf *out);
void metrics_write_sample(const struct metric_family *family, const char *const *values,
                          double value, struct buf *out);
const char *metric_type_name(enum metric_type type);

/* The table for the reference documentation (Markdown): name, type, labels, meaning. */
void metrics_write_reference(const struct metric_family *families, size_t count, struct buf *out);

#endif
