/* sim_main.c - runs a scenario for many seeds; replays one.
 *
 *     sim --scenario configcopy --seeds 0:1000
 *     sim --scenario configcopy --seed 17 --trace     replay one, print all that happens
 *     sim --scenario configcopy --seeds 0:20 --twice  each seed twice: must be the same run
 *     sim --scenario crashes                          every case: a seed is the number of one
 *     sim --scenario crashes --slice 2/5              every fifth case, from the second on
 *     sim --scenario bridge --calls FILE              the calls to the API server, each once */
#include "base/map.h"
#include "calls.h"
#include "crash_cases.h"

#include <getopt.h>
#include <stdlib.h>
#include <time.h>

static const struct scenario *const scenarios[] = {
    &scenario_configcopy, &scenario_bridge,           &scenario_crashes, &scenario_leaving,
    &scenario_operator,   &scenario_operator_crashes, &scenario_workers, &scenario_workers_crashes
};

struct options {
    const struct scenario *scenario;
    uint64_t from, to;
    bool trace, twice, chosen; /* chosen: seeds were named */
    struct crash_slice slice;
    const char *calls; /* the file for them; NULL: none */
};

static const char usage[] =
    "usage: sim [--scenario NAME] [--seeds FROM:TO | --seed N] [--trace] "
    "[--twice] [--calls FILE]\n"
    "       sim --scenario crashes|operator-crashes|workers-crashes [--slice NUMBER/OF]\n";

static void refuse(const char *what)
{
    (void)fprintf(stderr, "%s: not understood\n%s", what, usage);
    exit(2);
}

static const struct scenario *scenario_named(const char *name)
{
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
        if (strcmp(scenarios[i]->name, name) == 0)
            return scenarios[i];
    refuse(name);
    return NULL;
}

static void read_seeds(const char *text, struct options *options)
{
    struct str from, to;

    if (!str_cut(str_of(text), ':', &from, &to) ||
        str_to_u64(from, 0, UINT64_MAX, &options->from, NULL) < 0 ||
        str_to_u64(to, 0, UINT64_MAX, &options->to, NULL) < 0)
        refuse(text);
}

static void read_seed(const char *text, struct options *options)
{
    if (str_to_u64(str_of(text), 0, UINT64_MAX - 1, &options->from, NULL) < 0)
        refuse(text);
    options->to = options->from + 1;
}

static void read_slice(const char *text, struct options *options)
{
    struct str number, of;

    if (!str_cut(str_of(text), '/', &number, &of) ||
        str_to_u64(of, 1, UINT64_MAX, &options->slice.of, NULL) < 0 ||
        str_to_u64(number, 1, options->slice.of, &options->slice.number, NULL) < 0)
        refuse(text);
}

static struct options read_options(int argc, char **argv)
{
    static const struct option names[] = {
        { "scenario", required_argument, NULL, 'c' }, { "seeds", required_argument, NULL, 's' },
        { "seed", required_argument, NULL, 'n' },     { "trace", no_argument, NULL, 't' },
        { "twice", no_argument, NULL, '2' },          { "slice", required_argument, NULL, 'l' },
        { "calls", required_argument, NULL, 'a' },    { NULL, 0, NULL, 0 },
    };
    struct options options = {
        .scenario = scenarios[0], .from = 0, .to = 100, .slice = { .number = 1, .of = 1 }
    };
    int option;

    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 'c':
            options.scenario = scenario_named(optarg);
            break;
        case 's':
            options.chosen = true;
            read_seeds(optarg, &options);
            break;
        case 'n':
            options.chosen = true;
            read_seed(optarg, &options);
            break;
        case 't':
            options.trace = true;
            break;
        case '2':
            options.twice = true;
            break;
        case 'l':
            read_slice(optarg, &options);
            break;
        case 'a':
            options.calls = optarg;
            break;
        default:
            refuse("options");
        }
    }
    if (options.slice.of > 1 && (!options.scenario->cases || options.chosen))
        refuse("--slice of a scenario that has no cases");
    return options;
}

static int run_seed(const struct options *options, uint64_t seed, struct world_result *result)
{
    struct world_result again;
    FILE *trace = options->trace ? stdout : NULL;

    if (world_run(options->scenario, seed, trace, result, NULL) < 0)
        return -1;
    if (!options->twice)
        return 0;
    if (world_run(options->scenario, seed, NULL, &again, NULL) < 0)
        return -1;
    if (again.digest == result->digest && again.lines == result->lines &&
        again.steps == result->steps)
        return 0;
    (void)fprintf(stderr, "%s: seed %llu: two runs differ\n", options->scenario->name,
                  (unsigned long long)seed);
    return -1;
}

static double now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint64_t run_seeds(const struct options *options, struct world_result *sum, uint64_t *failed)
{
    for (uint64_t seed = options->from; seed < options->to; seed++) {
        struct world_result result = { .steps = 0 };

        *failed += run_seed(options, seed, &result) < 0;
        sum->steps += result.steps;
        sum->writes += result.writes;
        sum->virtual_us += result.virtual_us;
    }
    return options->to - options->from;
}

static void print_sum(const struct options *options, bool are_cases, uint64_t runs, uint64_t failed,
                      const struct world_result *sum, double seconds)
{
    char of[32] = "";

    if (are_cases)
        (void)snprintf(of, sizeof(of), " of %llu", (unsigned long long)options->slice.cases);
    (void)printf("%s: %llu%s %s, %llu failed, %llu steps, %llu writes, %.1f virtual hours, "
                 "%.1f s\n",
                 options->scenario->name, (unsigned long long)runs, of,
                 are_cases ? "cases" : "seeds", (unsigned long long)failed,
                 (unsigned long long)sum->steps, (unsigned long long)sum->writes,
                 (double)sum->virtual_us / 3.6e9, seconds);
}

int main(int argc, char **argv)
{
    struct options options = read_options(argc, argv);
    bool are_cases = options.scenario->cases && !options.chosen;
    struct world_result sum = { .steps = 0 };
    uint64_t failed = 0, runs;
    double begun = now();
    struct err err = { .class = 0 };

    map_set_secret(1, 2);
    if (options.calls)
        options.scenario = calls_of(options.scenario);
    runs = are_cases ? crash_cases_run_slice(options.scenario, &options.slice, &sum, &failed)
                     : run_seeds(&options, &sum, &failed);
    print_sum(&options, are_cases, runs, failed, &sum, now() - begun);
    if (options.calls && calls_write(options.calls, &err) < 0) {
        (void)fprintf(stderr, "--calls: %s\n", err.text);
        return 1;
    }
    return failed > 0;
}
