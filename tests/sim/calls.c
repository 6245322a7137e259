/* calls.c - which calls to the API server our processes make.
 *
 * Holds: a call is noted when it is sent, whatever becomes of it; what scenarios hear of it is
 * unchanged, so a run is the same with and without. */
#include "calls.h"

#include "base/map.h"

#include <stdlib.h>

enum { MAX_CALLS = 1 << 18, MAX_LINE = 1024 };

static struct map lines; /* no values */
static const struct scenario *watched;

static void note(const char *user, const char *method, struct str target)
{
    struct str path = target, query = STR("");
    char line[MAX_LINE];

    (void)str_cut(target, '?', &path, &query);
    if (str_starts(query, STR("watch=")) || memmem(query.at, query.len, "&watch=", 7))
        method = "WATCH";
    (void)snprintf(line, sizeof(line), "%s %s " STR_FMT, user, method, STR_ARG(path));
    if (map_put(&lines, str_of(line), NULL, NULL) < 0) {
        (void)fprintf(stderr, "sim: more than %d different calls\n", MAX_CALLS);
        abort();
    }
}

static void on_sent(void *context, const char *user, const char *method, const char *path,
                    struct str body)
{
    if (str_starts(str_of(path), STR("/api"))) /* the others are Slurm's */
        note(user, method, str_of(path));
    if (watched->hooks->sent)
        watched->hooks->sent(context, user, method, path, body);
}

const struct scenario *calls_of(const struct scenario *scenario)
{
    static struct sim_hooks hooks;
    static struct scenario copy;

    map_init(&lines, &(struct map_options){ .max = MAX_CALLS });
    watched = scenario;
    hooks = *scenario->hooks;
    hooks.sent = on_sent;
    copy = *scenario;
    copy.hooks = &hooks;
    return &copy;
}

int calls_write(const char *path, struct err *err)
{
    FILE *file = fopen(path, "w");
    int result = 0;

    if (!file)
        return err_set(err, ERR_SYSTEM, "%s cannot be written", path);
    map_each (item, &lines)
        (void)fprintf(file, STR_FMT "\n", STR_ARG(item->key));
    if (ferror(file) != 0)
        result = err_set(err, ERR_SYSTEM, "%s cannot be written", path);
    if (fclose(file) != 0 && result == 0)
        result = err_set(err, ERR_SYSTEM, "%s cannot be written", path);
    map_done(&lines);
    return result;
}
