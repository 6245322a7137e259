/* test_metrics.c - the registry counts what it is told and writes what Prometheus reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../base/aborts.h"
#include "engine/engine_metrics.h"

#include <math.h>
#include <stdio.h>

static const double bounds[] = { 0.1, 1, 10, 0 };

static const struct metric_family requests = { .name = "requests_total",
                                               .help = "Requests.",
                                               .type = METRIC_COUNTER,
                                               .labels = { "code", "path" } };
static const struct metric_family level = { .name = "level",
                                            .help = "Level.",
                                            .type = METRIC_GAUGE };
static const struct metric_family took = { .name = "took_seconds",
                                           .help = "Time.",
                                           .type = METRIC_HISTOGRAM,
                                           .labels = { "what" },
                                           .buckets = bounds };

static void assert_text(struct metrics *metrics, const char *wanted)
{
    auto_buf struct buf out;

    buf_init(&out, 1 << 20);
    metrics_write(metrics, &out);
    assert_string_equal(buf_text(&out), wanted);
}

static void counters_and_gauges_are_written_in_one_order(void **state)
{
    struct metrics *metrics = metrics_new();

    assert_text(metrics, "");
    metrics_add(metrics, &requests, 1, "500", "/b", NULL);
    metrics_add(metrics, &requests, 2, "200", "/b", NULL);
    metrics_add(metrics, &requests, 3, "200", "/a", NULL);
    metrics_add(metrics, &requests, 1, "200", "/a", NULL);
    metrics_set(metrics, &level, 1.5, NULL);
    metrics_set(metrics, &level, -2, NULL);
    assert_text(metrics, "# HELP level Level.\n# TYPE level gauge\nlevel -2\n"
                         "# HELP requests_total Requests.\n# TYPE requests_total counter\n"
                         "requests_total{code=\"200\",path=\"/a\"} 4\n"
                         "requests_total{code=\"200\",path=\"/b\"} 2\n"
                         "requests_total{code=\"500\",path=\"/b\"} 1\n");
    assert_true(metrics_get(metrics, &requests, "200", "/a", NULL) == 4);
    assert_true(metrics_get(metrics, &requests, "200", "/c", NULL) == 0);
    assert_true(metrics_get(metrics, &took, "x", NULL) == 0);
    metrics_free(metrics);
    metrics_free(NULL);
}

static void histograms_are_cumulated_and_bounds_belong_to_their_bucket(void **state)
{
    static const double values[] = { 0.05, 0.1, 0.5, 1, 5, 100 };
    struct metrics *metrics = metrics_new();

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        metrics_observe(metrics, &took, values[i], "x", NULL);
    assert_text(metrics, "# HELP took_seconds Time.\n# TYPE took_seconds histogram\n"
                         "took_seconds_bucket{what=\"x\",le=\"0.1\"} 2\n"
                         "took_seconds_bucket{what=\"x\",le=\"1\"} 4\n"
                         "took_seconds_bucket{what=\"x\",le=\"10\"} 5\n"
                         "took_seconds_bucket{what=\"x\",le=\"+Inf\"} 6\n"
                         "took_seconds_sum{what=\"x\"} 106.65\n"
                         "took_seconds_count{what=\"x\"} 6\n");
    metrics_free(metrics);
}

static void label_values_are_escaped_and_bounded(void **state)
{
    static const struct metric_family family = {
        .name = "f", .help = "A \\ and\na line.", .type = METRIC_COUNTER, .labels = { "l" }
    };
    struct metrics *metrics = metrics_new();
    char longer[METRICS_MAX_VALUE + 10], wanted[1000];

    metrics_add(metrics, &family, 1, "a\"b\\c\nd", NULL);
    metrics_add(metrics, &family, 1, "\xff not utf-8", NULL);
    assert_text(metrics, "# HELP f A \\\\ and\\na line.\n# TYPE f counter\n"
                         "f{l=\"\"} 1\nf{l=\"a\\\"b\\\\c\\nd\"} 1\n");
    metrics_free(metrics);

    metrics = metrics_new();
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    memcpy(longer + METRICS_MAX_VALUE - 1, "\xc3\xa4", 2); /* would be cut in the middle */
    metrics_add(metrics, &family, 1, longer, NULL);
    snprintf(wanted, sizeof(wanted),
             "# HELP f A \\\\ and\\na line.\n# TYPE f counter\nf{l=\"%.*s\"} 1\n",
             METRICS_MAX_VALUE - 1, longer);
    assert_text(metrics, wanted);
    metrics_free(metrics);
}

static void numbers_are_written_as_prometheus_reads_them(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        { 0, "0" },           { -0.0, "0" },
        { 0.1, "0.1" },       { 1e15, "1000000000000000" },
        { 1e300, "1e+300" },  { 123456.789, "123456.789" },
        { INFINITY, "+Inf" }, { -INFINITY, "-Inf" },
        { NAN, "NaN" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct metrics *metrics = metrics_new();
        char wanted[200];

        snprintf(wanted, sizeof(wanted), "# HELP level Level.\n# TYPE level gauge\nlevel %s\n",
                 cases[i].text);
        metrics_set(metrics, &level, cases[i].value, NULL);
        assert_text(metrics, wanted);
        metrics_free(metrics);
    }
}

static void what_is_above_the_bound_counts_as_other(void **state)
{
    static const struct metric_family family = {
        .name = "f", .help = "F.", .type = METRIC_COUNTER, .labels = { "a", "b" }, .max_series = 3
    };
    struct metrics *metrics = metrics_new();
    char name[16];

    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "%d", i);
        metrics_add(metrics, &family, 1, name, "x", NULL);
        metrics_add(metrics, &family, 1, "0", "x", NULL);
    }
    assert_text(metrics, "# HELP f F.\n# TYPE f counter\nf{a=\"0\",b=\"x\"} 11\n"
                         "f{a=\"1\",b=\"x\"} 1\nf{a=\"2\",b=\"x\"} 1\n"
                         "f{a=\"other\",b=\"other\"} 7\n");
    metrics_free(metrics);
}

static void raise_level(void *context)
{
    metrics_add(context, &level, 1, NULL);
}

static void gauges_are_refreshed_before_each_scrape(void **state)
{
    struct metrics *metrics = metrics_new();

    metrics_on_scrape(metrics, raise_level, metrics);
    assert_text(metrics, "# HELP level Level.\n# TYPE level gauge\nlevel 1\n");
    assert_text(metrics, "# HELP level Level.\n# TYPE level gauge\nlevel 2\n");
    metrics_free(metrics);
}

static void one_value_too_few(void)
{
    metrics_add(metrics_new(), &requests, 1, "200", NULL);
}

static void one_value_too_many(void)
{
    metrics_set(metrics_new(), &level, 1, "200", NULL);
}

static void observing_a_counter(void)
{
    metrics_observe(metrics_new(), &requests, 1, "200", "/", NULL);
}

static void wrong_labels_and_types_are_defects(void **state)
{
    assert_true(aborts(one_value_too_few));
    assert_true(aborts(one_value_too_many));
    assert_true(aborts(observing_a_counter));
}

static void the_table_has_every_family_once_with_help_and_rising_buckets(void **state)
{
    for (size_t i = 0; i < ENGINE_METRIC_COUNT; i++) {
        const struct metric_family *family = &engine_metrics[i];

        assert_non_null(family->name);
        assert_true(strlen(family->help) > 5);
        assert_true((family->buckets != NULL) == (family->type == METRIC_HISTOGRAM));
        for (size_t k = 0; family->buckets && family->buckets[k] > 0; k++)
            assert_true(k == 0 || family->buckets[k] > family->buckets[k - 1]);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(family->name, engine_metrics[k].name);
        if (family->type == METRIC_COUNTER)
            assert_true(str_ends(str_of(family->name), STR("_total")));
    }
}

static void the_reference_is_printed_from_the_same_table(void **state)
{
    static const struct metric_family families[] = {
        { .name = "a", .help = "One.", .type = METRIC_GAUGE },
        { .name = "b", .help = "Two.", .type = METRIC_COUNTER, .labels = { "x", "y" } },
    };
    auto_buf struct buf out;

    buf_init(&out, 10000);
    metrics_write_reference(families, 2, &out);
    assert_string_equal(buf_text(&out), "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n"
                                        "| `a` | gauge |  | One. |\n"
                                        "| `b` | counter | `x`, `y` | Two. |\n");
}

static void the_process_is_read_from_proc(void **state)
{
    struct metrics *metrics = metrics_new();
    auto_buf struct buf out;

    buf_init(&out, 1 << 20);
    process_metrics_watch(metrics);
    metrics_write(metrics, &out);
    assert_true(metrics_get(metrics, &engine_metrics[METRIC_PROCESS_RESIDENT], NULL) > 100000);
    assert_true(metrics_get(metrics, &engine_metrics[METRIC_PROCESS_VIRTUAL], NULL) > 100000);
    assert_true(metrics_get(metrics, &engine_metrics[METRIC_PROCESS_OPEN_FDS], NULL) >= 3);
    assert_true(metrics_get(metrics, &engine_metrics[METRIC_PROCESS_MAX_FDS], NULL) >= 16);
    assert_true(metrics_get(metrics, &engine_metrics[METRIC_PROCESS_START], NULL) > 1.5e9);
    assert_true(metrics_get(metrics, &engine_metrics[METRIC_PROCESS_CPU], NULL) >= 0);
    metrics_free(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_and_gauges_are_written_in_one_order),
        cmocka_unit_test(histograms_are_cumulated_and_bounds_belong_to_their_bucket),
        cmocka_unit_test(label_values_are_escaped_and_bounded),
        cmocka_unit_test(numbers_are_written_as_prometheus_reads_them),
        cmocka_unit_test(what_is_above_the_bound_counts_as_other),
        cmocka_unit_test(gauges_are_refreshed_before_each_scrape),
        cmocka_unit_test(wrong_labels_and_types_are_defects),
        cmocka_unit_test(the_table_has_every_family_once_with_help_and_rising_buckets),
        cmocka_unit_test(the_reference_is_printed_from_the_same_table),
        cmocka_unit_test(the_process_is_read_from_proc),
    };

    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
