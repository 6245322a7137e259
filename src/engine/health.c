/* health.c - checks, and the routes that show them. */
#include "engine/health.h"

#include "base/mem.h"
#include "codec/json.h"
#include "engine/engine_metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ANSWER = 64 << 20, MAX_READY = 64 << 10 };

struct watched {
    const struct kube_cache *cache;
    const struct kube_informer *informer;
    const struct kube_reader *reader; /* instead of an informer */
    bool is_required;
    int64_t limit_us; /* if it is */
};

struct check {
    const char *name;
    bool (*check)(void *context, struct buf *why);
    void *context;
};

struct part { /* of /debug/state */
    const char *name;
    void (*write)(void *context, struct buf *out);
    void *context;
};

struct health {
    struct loop *loop;
    struct metrics *metrics;
    struct engine *engine;
    struct watched watched[HEALTH_MAX_CHECKS];
    unsigned watched_count;
    struct check checks[HEALTH_MAX_CHECKS];
    unsigned check_count;
    struct part parts[HEALTH_MAX_PARTS];
    unsigned part_count;
    const char *version, *slurm;
    bool is_stopping;
};

static const char *kind_of(const struct watched *watched)
{
    return kube_cache_kind(watched->cache)->resource->plural;
}

static const char *error_of(const struct watched *watched)
{
    return watched->reader ? kube_reader_last_error(watched->reader)
                           : kube_informer_last_error(watched->informer);
}

static const char *state_of(const struct watched *watched)
{
    return watched->reader ? "reading by name"
                           : kube_informer_state_name(kube_informer_state(watched->informer));
}

static uint64_t undecoded_of(const struct watched *watched)
{
    return watched->reader ? kube_reader_undecoded(watched->reader)
                           : kube_informer_undecoded(watched->informer);
}

/* A kind that the server does not have has no age. */
static bool has_age(const struct watched *watched)
{
    return watched->is_required || kube_informer_state(watched->informer) != KUBE_IDLE;
}

/* How long nothing was heard; -1: never was. */
static int64_t silence_us(const struct health *health, const struct watched *watched)
{
    int64_t last_us = watched->reader ? kube_reader_last_contact_us(watched->reader)
                                      : kube_informer_last_contact_us(watched->informer);

    return last_us == 0 ? -1 : loop_now_us(health->loop) - last_us;
}

/* Two caches of one kind hold different parts of it: the older age and the sum are shown. */
static void refresh_kind(const struct health *health, const char *kind)
{
    int64_t age_us = 0;
    uint64_t undecoded = 0;
    size_t count = 0;

    for (unsigned i = 0; i < health->watched_count; i++) {
        const struct watched *watched = &health->watched[i];
        int64_t silence = silence_us(health, watched);

        if (strcmp(kind_of(watched), kind) != 0 || !has_age(watched))
            continue;
        count += kube_cache_count(watched->cache);
        undecoded += undecoded_of(watched);
        if (age_us >= 0 && (silence < 0 || silence > age_us))
            age_us = silence;
    }
    metrics_set(health->metrics, &engine_metrics[METRIC_CACHE_AGE],
                age_us < 0 ? -1 : (double)age_us / 1e6, kind, NULL);
    metrics_set(health->metrics, &engine_metrics[METRIC_CACHE_OBJECTS], (double)count, kind, NULL);
    metrics_set(health->metrics, &engine_metrics[METRIC_CACHE_UNDECODED], (double)undecoded, kind,
                NULL);
}

static void refresh(void *context)
{
    struct health *health = context;

    for (unsigned i = 0; i < health->watched_count; i++)
        if (has_age(&health->watched[i]))
            refresh_kind(health, kind_of(&health->watched[i]));
}

struct health *health_new(struct loop *loop, struct metrics *metrics, struct engine *engine)
{
    struct health *health = mem_alloc(sizeof(*health));

    health->loop = loop;
    health->metrics = metrics;
    health->engine = engine;
    metrics_on_scrape(metrics, refresh, health);
    return health;
}

void health_free(struct health *health)
{
    mem_free(health);
}

static void too_many(const char *what, int limit)
{
    fprintf(stderr, "health: more than %d %s\n", limit, what);
    abort();
}

static void watch(struct health *health, const struct watched *watched)
{
    if (health->watched_count == HEALTH_MAX_CHECKS)
        too_many("caches", HEALTH_MAX_CHECKS);
    health->watched[health->watched_count++] = *watched;
}

void health_watch(struct health *health, const struct kube_cache *cache,
                  const struct kube_informer *informer, int64_t limit_us)
{
    watch(health, &(struct watched){ .cache = cache,
                                     .informer = informer,
                                     .limit_us = limit_us > 0 ? limit_us : HEALTH_SILENCE_US,
                                     .is_required = true });
}

void health_watch_optional(struct health *health, const struct kube_cache *cache,
                           const struct kube_informer *informer)
{
    watch(health, &(struct watched){ .cache = cache, .informer = informer });
}

void health_watch_reader(struct health *health, const struct kube_cache *cache,
                         const struct kube_reader *reader)
{
    watch(health, &(struct watched){ .cache = cache,
                                     .reader = reader,
                                     .limit_us = HEALTH_SILENCE_US,
                                     .is_required = true });
}

void health_check(struct health *health, const char *name,
                  bool (*check)(void *context, struct buf *why), void *context)
{
    if (health->check_count == HEALTH_MAX_CHECKS)
        too_many("checks", HEALTH_MAX_CHECKS);
    health->checks[health->check_count++] = (struct check){ name, check, context };
}

void health_show(struct health *health, const char *name,
                 void (*write)(void *context, struct buf *out), void *context)
{
    if (health->part_count == HEALTH_MAX_PARTS)
        too_many("parts of the state", HEALTH_MAX_PARTS);
    health->parts[health->part_count++] = (struct part){ name, write, context };
}

void health_stopping(struct health *health)
{
    health->is_stopping = true;
}

/* ---- readiness ---- */

static bool watched_is_well(const struct health *health, const struct watched *watched,
                            struct buf *why)
{
    const char *error = error_of(watched);
    int64_t age_us = silence_us(health, watched);

    if (!kube_cache_is_synced(watched->cache))
        buf_add_text(why, "not synced");
    else if (age_us > watched->limit_us)
        buf_printf(why, "silent for %.0f s, more than %.0f s", (double)age_us / 1e6,
                   (double)watched->limit_us / 1e6);
    else
        return true;
    if (error[0])
        buf_printf(why, " (%s)", error);
    return false;
}

/* One line per check that is shown; returns whether it went well. */
static bool show(struct buf *out, bool verbose, bool is_well, const char *prefix, const char *name,
                 const struct buf *why)
{
    if (!is_well)
        buf_printf(out, "[-] %s%s: %s\n", prefix, name, buf_text(why));
    else if (verbose)
        buf_printf(out, "[+] %s%s: ok\n", prefix, name);
    return is_well;
}

static bool is_ready_without(const struct health *health, struct str left_out, bool verbose,
                             struct buf *out)
{
    bool is_ready = true;
    auto_buf struct buf why;

    buf_init(&why, MAX_READY);
    for (unsigned i = 0; i < health->watched_count; i++) {
        bool is_well = watched_is_well(health, &health->watched[i], &why);

        if (health->watched[i].is_required)
            is_ready &=
                show(out, verbose, is_well, "cache of ", kind_of(&health->watched[i]), &why);
        buf_clear(&why);
    }
    for (unsigned i = 0; i < health->check_count; i++) {
        const struct check *check = &health->checks[i];
        bool is_well = str_is(left_out, check->name) || check->check(check->context, &why);

        is_ready &= show(out, verbose, is_well, "", check->name, &why);
        buf_clear(&why);
    }
    if (health->is_stopping) {
        buf_add_text(out, "[-] process: is stopping\n");
        is_ready = false;
    }
    return is_ready;
}

bool health_is_ready(const struct health *health, bool verbose, struct buf *out)
{
    return is_ready_without(health, STR(""), verbose, out);
}

/* ---- /debug/state ---- */

static void write_watched(const struct health *health, const struct watched *watched,
                          struct buf *out)
{
    int64_t age_us = silence_us(health, watched);

    buf_printf(out, "{\"kind\":\"%s\",\"state\":\"%s\",\"synced\":%s,\"objects\":%zu",
               kind_of(watched), state_of(watched),
               kube_cache_is_synced(watched->cache) ? "true" : "false",
               kube_cache_count(watched->cache));
    if (age_us >= 0)
        buf_printf(out, ",\"silentForSeconds\":%.3f", (double)age_us / 1e6);
    buf_printf(out, ",\"required\":%s,\"undecoded\":%" PRIu64,
               watched->is_required ? "true" : "false", undecoded_of(watched));
    buf_add_text(out, ",\"error\":");
    json_escape(out, str_of(error_of(watched)));
    buf_add_char(out, '}');
}

void health_write_state(const struct health *health, struct buf *out)
{
    auto_buf struct buf why;

    buf_init(&why, MAX_READY);
    buf_printf(out,
               "{\"ready\":%s,\"why\":", health_is_ready(health, false, &why) ? "true" : "false");
    json_escape(out, buf_str(&why));
    buf_add_text(out, ",\"caches\":[");
    for (unsigned i = 0; i < health->watched_count; i++) {
        if (i > 0)
            buf_add_char(out, ',');
        write_watched(health, &health->watched[i], out);
    }
    buf_add_text(out, "],\"engine\":");
    if (health->engine)
        engine_write_state(health->engine, out);
    else
        buf_add_text(out, "null");
    for (unsigned i = 0; i < health->part_count; i++) {
        buf_printf(out, ",\"%s\":", health->parts[i].name);
        health->parts[i].write(health->parts[i].context, out);
    }
    buf_add_char(out, '}');
}

/* ---- routes ---- */

static bool is_read(const struct http_view *view, struct http_responder *responder)
{
    if (str_is(STR("GET"), view->method) || str_is(STR("HEAD"), view->method))
        return true;
    http_respond_header(responder, "Allow", "GET, HEAD");
    http_respond_text(responder, 405, "only GET and HEAD\n");
    return false;
}

static void handle_live(void *context, const struct http_view *view,
                        struct http_responder *responder)
{
    if (is_read(view, responder))
        http_respond_text(responder, 200, "ok\n");
}

static void handle_ready(void *context, const struct http_view *view,
                         struct http_responder *responder)
{
    struct str rest = view->query, word, left_out = STR("");
    bool verbose = false;
    auto_buf struct buf out;

    buf_init(&out, MAX_READY);
    if (!is_read(view, responder))
        return;
    while (str_next(&rest, '&', &word)) {
        verbose |= str_starts(word, STR("verbose"));
        if (str_starts(word, STR("exclude=")))
            left_out = str_sub(word, sizeof("exclude=") - 1, word.len);
    }
    if (is_ready_without(context, left_out, verbose, &out)) {
        buf_add_text(&out, "ok\n");
        http_respond_text(responder, 200, buf_text(&out));
    } else {
        http_respond_text(responder, 503, buf_text(&out));
    }
}

static void respond_buf(struct http_responder *responder, const char *type, const struct buf *out)
{
    if (out->overflowed)
        http_respond_text(responder, 500, "the answer is too big\n");
    else
        http_respond(responder, 200, type, buf_str(out));
}

static void handle_metrics(void *context, const struct http_view *view,
                           struct http_responder *responder)
{
    const struct health *health = context;
    auto_buf struct buf out;

    buf_init(&out, MAX_ANSWER);
    if (!is_read(view, responder))
        return;
    metrics_write(health->metrics, &out);
    respond_buf(responder, "text/plain; version=0.0.4; charset=utf-8", &out);
}

static void handle_state(void *context, const struct http_view *view,
                         struct http_responder *responder)
{
    auto_buf struct buf out;

    buf_init(&out, MAX_ANSWER);
    if (!is_read(view, responder))
        return;
    health_write_state(context, &out);
    respond_buf(responder, "application/json", &out);
}

void health_version(struct health *health, const char *version)
{
    health->version = version;
    metrics_set(health->metrics, &engine_metrics[METRIC_BUILD_INFO], 1, version, NULL);
}

void health_slurm(struct health *health, const char *slurm)
{
    health->slurm = slurm;
}

static void handle_version(void *context, const struct http_view *view,
                           struct http_responder *responder)
{
    const struct health *health = context;
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);
    auto_buf struct buf out;

    buf_init(&out, MAX_READY);
    if (!is_read(view, responder))
        return;
    json_put_text(build, root, "version", health->version ? health->version : "");
    if (health->slurm && health->slurm[0])
        json_put_text(build, root, "slurm", health->slurm);
    json_mut_write(root, &out);
    respond_buf(responder, "application/json", &out);
}

void health_routes(struct health *health, struct http_route ret_routes[HEALTH_ROUTES])
{
    ret_routes[0] = (struct http_route){ "/healthz", false, handle_live, health };
    ret_routes[1] = (struct http_route){ "/livez", false, handle_live, health };
    ret_routes[2] = (struct http_route){ "/readyz", false, handle_ready, health };
}

void health_metrics_routes(struct health *health,
                           struct http_route ret_routes[HEALTH_METRICS_ROUTES])
{
    ret_routes[0] = (struct http_route){ "/metrics", false, handle_metrics, health };
    ret_routes[1] = (struct http_route){ "/version", false, handle_version, health };
}

struct http_route health_state_route(struct health *health)
{
    return (struct http_route){ "/debug/state", false, handle_state, health };
}
