/* process_metrics.c - what the kernel knows about this process, as Prometheus clients show it.
 *
 * Read at each scrape from /proc; what cannot be read keeps its last value. */
#include "engine/engine_metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* Fields of /proc/self/stat behind the name, counted from the state (which is 0); see proc(5). */
enum { STAT_UTIME = 11, STAT_STIME = 12, STAT_STARTTIME = 19, STAT_VSIZE = 20, STAT_RSS = 21 };

static void set(struct metrics *metrics, enum engine_metric metric, double value)
{
    metrics_set(metrics, &engine_metrics[metric], value, NULL);
}

static struct str read_whole(const char *path, char *memory, size_t size)
{
    FILE *file = fopen(path, "re");
    size_t length = 0;

    if (file) {
        length = fread(memory, 1, size, file);
        fclose(file);
    }
    return (struct str){ memory, length };
}

/* The boot in seconds since 1970: the "btime" line of /proc/stat. */
static double boot_seconds(void)
{
    static double boot;
    FILE *file = boot > 0 ? NULL : fopen("/proc/stat", "re");
    char line[256];

    while (file && boot <= 0 && fgets(line, sizeof(line), file)) {
        struct str text = str_trim(str_of(line)), word, number;
        uint64_t seconds;

        if (str_cut(text, ' ', &word, &number) && str_is(word, "btime") &&
            str_to_u64(number, 0, INT64_MAX, &seconds, NULL) == 0)
            boot = (double)seconds;
    }
    if (file)
        fclose(file);
    return boot;
}

/* The name in parentheses may hold anything, so the fields begin behind the last ')'. */
static struct str behind_name(struct str stat)
{
    size_t at = stat.len;

    while (at > 0 && stat.at[at - 1] != ')')
        at--;
    return str_trim(str_sub(stat, at, stat.len));
}

static void refresh_stat(struct metrics *metrics)
{
    char memory[2048];
    struct str rest = behind_name(read_whole("/proc/self/stat", memory, sizeof(memory)));
    uint64_t fields[STAT_RSS + 1] = { 0 };
    double ticks = (double)sysconf(_SC_CLK_TCK);
    struct str word;
    unsigned count = 0;

    while (count <= STAT_RSS && str_next(&rest, ' ', &word)) {
        (void)str_to_u64(word, 0, UINT64_MAX, &fields[count], NULL); /* the state is a letter */
        count++;
    }
    if (count <= STAT_RSS)
        return;
    set(metrics, METRIC_PROCESS_CPU, (double)(fields[STAT_UTIME] + fields[STAT_STIME]) / ticks);
    set(metrics, METRIC_PROCESS_START, boot_seconds() + (double)fields[STAT_STARTTIME] / ticks);
    set(metrics, METRIC_PROCESS_VIRTUAL, (double)fields[STAT_VSIZE]);
    set(metrics, METRIC_PROCESS_RESIDENT, (double)fields[STAT_RSS] * (double)sysconf(_SC_PAGESIZE));
}

static void refresh_open_fds(struct metrics *metrics)
{
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;
    int count = -1; /* the one of the directory itself */

    if (!directory)
        return;
    while ((entry = readdir(directory)))
        count += entry->d_name[0] != '.';
    closedir(directory);
    set(metrics, METRIC_PROCESS_OPEN_FDS, count);
}

static void refresh_limits(struct metrics *metrics)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        set(metrics, METRIC_PROCESS_MAX_FDS, (double)limit.rlim_cur);
    if (getrlimit(RLIMIT_AS, &limit) == 0)
        set(metrics, METRIC_PROCESS_VIRTUAL_MAX,
            limit.rlim_cur == RLIM_INFINITY ? -1 : (double)limit.rlim_cur);
}

static void refresh(void *context)
{
    struct metrics *metrics = context;

    refresh_stat(metrics);
    refresh_open_fds(metrics);
    refresh_limits(metrics);
}

void process_metrics_watch(struct metrics *metrics)
{
    metrics_on_scrape(metrics, refresh, metrics);
}
