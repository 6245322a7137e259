/* metrics.c - the registry, and its text.
 *
 * Holds: a series is known by the values of its labels, each followed by NUL, which no value can
 * contain; a family has at most max_series of them and one more, all "other". Nothing is sorted
 * until somebody asks for the text. */
#include "engine/metrics.h"

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    DEFAULT_MAX_SERIES = 1000,
    MAX_FAMILIES = 1000,
    MAX_REFRESHERS = 64,
    MAX_KEY = METRICS_MAX_LABELS * (METRICS_MAX_VALUE + 1),
};

struct series {
    struct str key;
    double value;     /* of a histogram: the sum */
    uint64_t count;   /* histograms: observations */
    uint64_t *counts; /* histograms: per bucket, not cumulated */
};

struct known_family {
    const struct metric_family *family;
    struct map series; /* key -> struct series */
};

struct metrics {
    struct map families; /* name -> struct known_family */
    struct {
        void (*refresh)(void *context);
        void *context;
    } refreshers[MAX_REFRESHERS];
    unsigned refresher_count;
};

static void free_series(void *value)
{
    struct series *series = value;

    mem_free((char *)series->key.at);
    mem_free(series->counts);
    mem_free(series);
}

static void free_family(void *value)
{
    struct known_family *known = value;

    map_done(&known->series);
    mem_free(known);
}

struct metrics *metrics_new(void)
{
    struct metrics *metrics = mem_alloc(sizeof(*metrics));

    map_init(&metrics->families, &(struct map_options){ .max = MAX_FAMILIES,
                                                        .borrow_keys = true,
                                                        .free_value = free_family });
    return metrics;
}

void metrics_free(struct metrics *metrics)
{
    if (!metrics)
        return;
    map_done(&metrics->families);
    mem_free(metrics);
}

static void defect(const char *what, const char *name)
{
    fprintf(stderr, "metrics: %s: %s\n", name, what);
    abort();
}

/* ---- finding the series ---- */

/* Cuts between characters; what is not UTF-8 ends the value, as no scraper would take it. */
static size_t fit_value(const char *value)
{
    struct str rest = str_of(value);
    size_t kept = 0, step;

    while ((step = str_utf8_char(rest)) > 0 && kept + step <= METRICS_MAX_VALUE) {
        kept += step;
        rest = str_sub(rest, step, rest.len);
    }
    return kept;
}

static struct str key_of(const struct metric_family *family, va_list values, char *key)
{
    size_t used = 0;

    for (unsigned i = 0; i < METRICS_MAX_LABELS && family->labels[i]; i++) {
        const char *value = va_arg(values, const char *);

        if (!value)
            defect("fewer label values than labels", family->name);

        size_t length = fit_value(value);

        memcpy(key + used, value, length);
        key[used + length] = '\0';
        used += length + 1;
    }
    if (va_arg(values, const char *))
        defect("more label values than labels", family->name);
    return (struct str){ key, used };
}

static struct str other_key(const struct metric_family *family, char *key)
{
    static const char word[] = "other";
    size_t used = 0;

    for (unsigned i = 0; i < METRICS_MAX_LABELS && family->labels[i]; i++) {
        memcpy(key + used, word, sizeof(word));
        used += sizeof(word);
    }
    return (struct str){ key, used };
}

static size_t bucket_count(const struct metric_family *family)
{
    size_t count = 0;

    while (family->buckets && family->buckets[count] > 0)
        count++;
    return count;
}

static struct known_family *find_family(struct metrics *metrics, const struct metric_family *family)
{
    struct known_family *known = map_get(&metrics->families, str_of(family->name));
    size_t max = family->max_series ? family->max_series : DEFAULT_MAX_SERIES;

    if (known)
        return known;
    known = mem_alloc(sizeof(*known));
    known->family = family;
    map_init(&known->series, &(struct map_options){
                                 .max = max + 1, .borrow_keys = true, .free_value = free_series });
    if (map_put(&metrics->families, str_of(family->name), known, NULL) < 0)
        defect("too many families", family->name);
    return known;
}

static struct series *add_series(struct known_family *known, struct str key)
{
    struct series *series = mem_alloc(sizeof(*series));

    series->key = (struct str){ mem_strndup(key.at, key.len), key.len };
    if (known->family->type == METRIC_HISTOGRAM)
        series->counts = mem_alloc_array(bucket_count(known->family) + 1, sizeof(*series->counts));
    map_put(&known->series, series->key, series, NULL); /* the callers keep to the maximum */
    return series;
}

static struct series *find_series(struct metrics *metrics, const struct metric_family *family,
                                  va_list values)
{
    struct known_family *known = find_family(metrics, family);
    char memory[MAX_KEY];
    struct str key = key_of(family, values, memory);
    struct series *series = map_get(&known->series, key);

    if (!series && known->series.count + 1 >= known->series.options.max) {
        key = other_key(family, memory);
        series = map_get(&known->series, key);
    }
    return series ? series : add_series(known, key);
}

/* ---- counting ---- */

void metrics_add(struct metrics *metrics, const struct metric_family *family, double by, ...)
{
    va_list values;

    va_start(values, by);
    find_series(metrics, family, values)->value += by;
    va_end(values);
}

void metrics_set(struct metrics *metrics, const struct metric_family *family, double value, ...)
{
    va_list values;

    va_start(values, value);
    find_series(metrics, family, values)->value = value;
    va_end(values);
}

void metrics_observe(struct metrics *metrics, const struct metric_family *family, double value, ...)
{
    va_list values;
    size_t bucket = 0;

    if (family->type != METRIC_HISTOGRAM)
        defect("an observation of what is no histogram", family->name);
    va_start(values, value);

    struct series *series = find_series(metrics, family, values);

    va_end(values);
    while (bucket < bucket_count(family) && value > family->buckets[bucket])
        bucket++;
    series->counts[bucket]++;
    series->count++;
    series->value += value;
}

double metrics_get(const struct metrics *metrics, const struct metric_family *family, ...)
{
    const struct known_family *known = map_get(&metrics->families, str_of(family->name));
    char memory[MAX_KEY];
    va_list values;

    if (!known)
        return 0;
    va_start(values, family);

    const struct series *series = map_get(&known->series, key_of(family, values, memory));

    va_end(values);
    return series ? series->value : 0;
}

void metrics_on_scrape(struct metrics *metrics, void (*refresh)(void *context), void *context)
{
    if (metrics->refresher_count == MAX_REFRESHERS)
        defect("too many of them", "on_scrape");
    metrics->refreshers[metrics->refresher_count].refresh = refresh;
    metrics->refreshers[metrics->refresher_count].context = context;
    metrics->refresher_count++;
}

/* ---- the text ---- */

const char *metric_type_name(enum metric_type type)
{
    static const char *const names[] = {
        [METRIC_COUNTER] = "counter",
        [METRIC_GAUGE] = "gauge",
        [METRIC_HISTOGRAM] = "histogram",
    };

    return names[type];
}

/* Whole numbers, without printf: a page has tens of thousands. */
static void write_whole(struct buf *out, uint64_t value)
{
    char digits[24];
    size_t at = sizeof(digits);

    do
        digits[--at] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    buf_add(out, digits + at, sizeof(digits) - at);
}

static void write_number(struct buf *out, double value)
{
    if (value >= 0 && value < 9e15 && floor(value) == value)
        write_whole(out, (uint64_t)value);
    else if (isnan(value))
        buf_add_text(out, "NaN");
    else if (isinf(value))
        buf_add_text(out, value > 0 ? "+Inf" : "-Inf");
    else if (fabs(value) < 9e15 && floor(value) == value)
        buf_printf(out, "%.0f", value + 0.0); /* whole numbers without an exponent */
    else
        buf_printf(out, "%.15g", value);
}

static void write_escaped(struct buf *out, struct str text, bool quotes)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];

        if (c == '\n')
            buf_add_text(out, "\\n");
        else if (c == '\\')
            buf_add_text(out, "\\\\");
        else if (c == '"' && quotes)
            buf_add_text(out, "\\\"");
        else
            buf_add_char(out, c);
    }
}

/* {a="1",b="2",le="5"}; `le` is NULL except for buckets. */
static void write_labels(struct buf *out, const struct metric_family *family, struct str key,
                         const char *le)
{
    const char *separator = "{";

    for (unsigned i = 0; i < METRICS_MAX_LABELS && family->labels[i]; i++) {
        struct str value = str_of(key.at);

        buf_printf(out, "%s%s=\"", separator, family->labels[i]);
        write_escaped(out, value, true);
        buf_add_char(out, '"');
        key = str_sub(key, value.len + 1, key.len);
        separator = ",";
    }
    if (le)
        buf_printf(out, "%sle=\"%s\"", separator, le);
    if (le || family->labels[0])
        buf_add_char(out, '}');
}

static void write_sample(struct buf *out, const struct metric_family *family, const char *suffix,
                         const struct series *series, const char *le, double value)
{
    buf_printf(out, "%s%s", family->name, suffix);
    write_labels(out, family, series->key, le);
    buf_add_char(out, ' ');
    write_number(out, value);
    buf_add_char(out, '\n');
}

static void write_histogram(struct buf *out, const struct metric_family *family,
                            const struct series *series)
{
    uint64_t so_far = 0;
    char le[32];

    for (size_t i = 0; i < bucket_count(family); i++) {
        so_far += series->counts[i];
        snprintf(le, sizeof(le), "%g", family->buckets[i]);
        write_sample(out, family, "_bucket", series, le, (double)so_far);
    }
    write_sample(out, family, "_bucket", series, "+Inf", (double)series->count);
    write_sample(out, family, "_sum", series, NULL, series->value);
    write_sample(out, family, "_count", series, NULL, (double)series->count);
}

static int compare_items(const void *a, const void *b)
{
    const struct map_item *const *left = a;
    const struct map_item *const *right = b;

    return str_cmp((*left)->key, (*right)->key);
}

/* The items of a map in byte order of their keys; to be freed. */
static struct map_item **sorted(const struct map *map)
{
    struct map_item **items = mem_alloc_array(map->count + 1, sizeof(struct map_item *));
    size_t count = 0;

    map_each (item, map)
        items[count++] = item;
    qsort(items, count, sizeof(struct map_item *), compare_items);
    return items;
}

void metrics_write_head(const struct metric_family *family, struct buf *out)
{
    buf_printf(out, "# HELP %s ", family->name);
    write_escaped(out, str_of(family->help), false);
    buf_printf(out, "\n# TYPE %s %s\n", family->name, metric_type_name(family->type));
}

/* A label's value. Nearly all are plain ASCII, which goes in as a whole. */
static void write_value(struct buf *out, const char *value)
{
    size_t plain = 0;

    while (value[plain] >= ' ' && value[plain] < 0x7f && value[plain] != '"' &&
           value[plain] != '\\')
        plain++;
    if (!value[plain] && plain <= METRICS_MAX_VALUE)
        buf_add(out, value, plain);
    else
        write_escaped(out, (struct str){ value, fit_value(value) }, true);
}

void metrics_write_sample(const struct metric_family *family, const char *const *values,
                          double value, struct buf *out)
{
    buf_add_text(out, family->name);
    for (unsigned i = 0; i < METRICS_MAX_LABELS && family->labels[i]; i++) {
        buf_add_char(out, i == 0 ? '{' : ',');
        buf_add_text(out, family->labels[i]);
        buf_add_text(out, "=\"");
        write_value(out, values[i]);
        buf_add_char(out, '"');
    }
    buf_add_text(out, family->labels[0] ? "} " : " ");
    write_number(out, value);
    buf_add_char(out, '\n');
}

static void write_family(struct buf *out, const struct known_family *known)
{
    const struct metric_family *family = known->family;
    auto_free struct map_item **series = sorted(&known->series);

    metrics_write_head(family, out);
    for (size_t i = 0; i < known->series.count; i++) {
        const struct series *one = series[i]->value;

        if (family->type == METRIC_HISTOGRAM)
            write_histogram(out, family, one);
        else
            write_sample(out, family, "", one, NULL, one->value);
    }
}

void metrics_write(struct metrics *metrics, struct buf *out)
{
    for (unsigned i = 0; i < metrics->refresher_count; i++)
        metrics->refreshers[i].refresh(metrics->refreshers[i].context);

    auto_free struct map_item **families = sorted(&metrics->families);

    for (size_t i = 0; i < metrics->families.count; i++)
        write_family(out, families[i]->value);
}

void metrics_write_reference(const struct metric_family *families, size_t count, struct buf *out)
{
    buf_add_text(out, "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < count; i++) {
        const struct metric_family *family = &families[i];

        buf_printf(out, "| `%s` | %s | ", family->name, metric_type_name(family->type));
        for (unsigned k = 0; k < METRICS_MAX_LABELS && family->labels[k]; k++)
            buf_printf(out, "%s`%s`", k > 0 ? ", " : "", family->labels[k]);
        buf_printf(out, " | %s |\n", family->help);
    }
}
