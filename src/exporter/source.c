/* source.c - the poller and the smaller reads beside it, each with its own period.
 *
 * Holds: a read that fails changes nothing but the age of what is known; what is older than
 * stale_us is not shown; what PrivateData may hide is shown only when PrivateData is known, or
 * cannot be read from this version of Slurm. */
#include "exporter/source.h"

#include "base/log.h"
#include "base/mem.h"
#include "exporter/families.h"
#include "exporter/history.h"
#include "slurm/calls.h"

#include <stdio.h>

enum {
    SECOND_US = 1000000,
    DIAG_US = 15 * SECOND_US,
    LICENSES_US = 30 * SECOND_US,
    SIGHT_US = 60 * SECOND_US,
};

struct side_read { /* a document that is read whole */
    struct source *source;
    struct slurm_call *(*ask)(struct slurm_client *client, slurm_done done, void *context);
    int64_t period_us, good_us; /* good_us: the start of the last good one; INT64_MIN: none */
    struct slurm_call *call;
    struct json_doc *doc;
    struct loop_timer timer;
};

struct source {
    struct loop *loop;
    struct metrics *metrics;
    struct source_options options;
    struct slurm_client *client;
    struct slurm_poller *poller;
    struct history *history;
    struct layouts *layouts; /* NULL: nobody wants them */
    struct side_read diag, licenses;
    struct slurm_sight_check check;
    struct loop_timer check_timer;
    struct tally_health hidden; /* what the last check found, and the names of the cluster */
    bool is_judged;             /* until then all that PrivateData may hide counts as hidden */
    bool knows_site;            /* /conf was read: a check without it changes nothing */
};

/* ---- the reads beside the poller ---- */

static void ask(void *context);

static void on_document(void *context, const struct slurm_answer *answer)
{
    struct side_read *read = context;

    read->call = NULL;
    if (answer->error.class == SLURM_DONE) {
        json_doc_free(read->doc);
        read->doc = slurm_answer_take(answer);
        read->good_us = answer->sent_us;
    }
    loop_timer_start(read->source->loop, &read->timer, read->period_us, ask, read);
}

static void ask(void *context)
{
    struct side_read *read = context;

    read->call = read->ask(read->source->client, on_document, read);
}

static void read_done(struct side_read *read)
{
    slurm_call_cancel(read->call);
    loop_timer_stop(&read->timer);
    json_doc_free(read->doc);
}

/* ---- what is hidden ---- */

static bool lists(const char *words, const char *wanted)
{
    struct str rest = str_of(words), word;

    while (rest.len > 0 && str_next(&rest, ',', &word))
        if (str_is(word, wanted))
            return true;
    return false;
}

void source_judge(const struct slurm_site *site, enum slurm_sight sight,
                  struct tally_health *health)
{
    bool sees_all = sight == SLURM_SEES_ALL;
    /* SEES_ALL may mean that jobs are not private; of the rest only rights tell. */
    bool may_miss = site && (!sees_all || !site->hides_jobs);

    health->knows_hidden = true;
    health->hides[HIDES_JOBS] = site && site->hides_jobs && !sees_all;
    health->hides[HIDES_NODES] = may_miss && lists(site->private_data, "nodes");
    health->hides[HIDES_RESERVATIONS] = may_miss && lists(site->private_data, "reservations");
    health->hides[HIDES_USERS] = site && lists(site->private_data, "users");
    health->hides[HIDES_UNKNOWN] = !site && !sees_all;
}

static void check_sight(void *context);

/* old: NULL when nothing was judged before. */
static void report_hidden(const struct tally_health *old, const struct tally_health *next,
                          const char *why)
{
    static const char *const messages[TALLY_HIDDEN] = {
        [HIDES_JOBS] = "Slurm hides jobs from the exporter's user: series of jobs are absent",
        [HIDES_NODES] = "Slurm hides nodes from the exporter's user: series of nodes are absent",
        [HIDES_RESERVATIONS] =
            "Slurm hides reservations from the exporter's user: their series are absent",
        [HIDES_USERS] = "PrivateData hides users: there are no series by user",
        [HIDES_UNKNOWN] = "Slurm may hide something from the exporter's user",
    };

    for (unsigned i = 0; i < TALLY_HIDDEN; i++)
        if (next->hides[i] && (!old || !old->hides[i]))
            log_warn(messages[i], LOG_TEXT("reason", why));
        else if (!next->hides[i] && old && old->hides[i])
            log_info("Slurm hides them no longer", LOG_TEXT("hidden", tally_hidden_names[i]));
}

static void judge(struct source *source, const struct slurm_site *site, enum slurm_sight sight,
                  const char *why)
{
    struct tally_health next = source->hidden;

    source_judge(site, sight, &next);
    if (site) {
        (void)snprintf(next.cluster, sizeof(next.cluster), "%s", site->cluster);
        (void)snprintf(next.version, sizeof(next.version), "%s", site->version);
        source->knows_site = true;
    }
    report_hidden(source->is_judged ? &source->hidden : NULL, &next, why);
    source->hidden = next;
    source->is_judged = true;
}

/* A read of /conf that failed says nothing about PrivateData: what was known of it stays. Only a
 * Slurm that does not have /conf is judged without it. */
static void on_sight(void *context, enum slurm_sight sight, const char *why,
                     const struct slurm_site *site)
{
    struct source *source = context;
    unsigned version = slurm_client_version(source->client);
    bool is_known = version > 0; /* else nobody answered */

    if (site || (is_known && version < slurm_endpoint(SLURM_CONF)->since && !source->knows_site)) {
        judge(source, site, sight, why);
    } else if (is_known && !source->hidden.knows_hidden) {
        log_warn("PrivateData is not known yet: series of jobs, nodes and users are absent",
                 LOG_TEXT("reason", why));
        source->hidden.knows_hidden = source->hidden.hides[HIDES_UNKNOWN] = true;
    }
    loop_timer_start(source->loop, &source->check_timer,
                     source->is_judged ? SIGHT_US : source->options.poll_us, check_sight, source);
}

static void check_sight(void *context)
{
    struct source *source = context;

    slurm_can_see_all(&source->check, source->client, on_sight, source);
}

/* ---- requests ---- */

static void on_call(void *context, enum slurm_verb verb, enum slurm_endpoint endpoint,
                    const struct slurm_answer *answer)
{
    struct source *source = context;
    const char *kind = slurm_endpoint(endpoint)->name;

    (void)verb;
    if (!answer->error.unsent)
        metrics_observe(source->metrics, &families[FAMILY_REQUEST_SECONDS].row,
                        (double)(loop_now_us(source->loop) - answer->sent_us) / 1e6, kind, NULL);
    if (answer->error.class != SLURM_DONE && answer->error.class != SLURM_NOT_MODIFIED)
        metrics_add(source->metrics, &families[FAMILY_FAILURES].row, 1, kind,
                    slurm_class_name(answer->error.class), NULL);
}

/* ---- its life ---- */

static int64_t or_else(int64_t value, int64_t usual)
{
    return value > 0 ? value : usual;
}

struct source *source_new(struct loop *loop, struct http_transport *transport,
                          struct slurm_token *token, struct metrics *metrics,
                          const struct source_options *options)
{
    struct source *source = mem_alloc(sizeof(*source));
    struct slurm_poller_options poller;

    source->loop = loop;
    source->metrics = metrics;
    source->options = *options;
    source->options.poll_us = or_else(options->poll_us, 5 * SECOND_US);
    source->options.list_us = or_else(options->list_us, 30 * SECOND_US);
    source->options.stale_us = or_else(options->stale_us, 60 * SECOND_US);
    for (unsigned i = 0; i < HIDES_UNKNOWN; i++)
        source->hidden.hides[i] = true;
    source->client = slurm_client_new(loop, transport, token,
                                      &(struct slurm_client_options){ .seed = options->seed });
    slurm_client_observe(source->client, on_call, source);
    poller = (struct slurm_poller_options){ .slow_us = source->options.poll_us,
                                            .list_us = source->options.list_us };
    source->poller = slurm_poller_new(source->client, &poller);
    source->history = history_new(metrics, clock_wall_us(loop_clock(loop)) / SECOND_US);
    slurm_cache_listen(slurm_poller_cache(source->poller, SLURM_FEED_JOBS), history_take,
                       source->history);
    source->diag = (struct side_read){
        .source = source, .ask = slurm_diag_get, .period_us = DIAG_US, .good_us = INT64_MIN
    };
    source->licenses = (struct side_read){
        .source = source, .ask = slurm_licenses_list, .period_us = LICENSES_US, .good_us = INT64_MIN
    };
    return source;
}

void source_start(struct source *source)
{
    slurm_poller_start(source->poller);
    loop_timer_start(source->loop, &source->check_timer, 0, check_sight, source);
    loop_timer_start(source->loop, &source->diag.timer, 0, ask, &source->diag);
    loop_timer_start(source->loop, &source->licenses.timer, 0, ask, &source->licenses);
}

void source_free(struct source *source)
{
    if (!source)
        return;
    slurm_sight_stop(&source->check);
    loop_timer_stop(&source->check_timer);
    read_done(&source->diag);
    read_done(&source->licenses);
    layouts_free(source->layouts);
    slurm_poller_free(source->poller);
    slurm_client_free(source->client);
    history_free(source->history);
    mem_free(source);
}

struct layouts *source_layouts(struct source *source)
{
    if (!source->layouts)
        source->layouts = layouts_new(source->loop, source->client,
                                      slurm_poller_cache(source->poller, SLURM_FEED_JOBS),
                                      slurm_poller_cache(source->poller, SLURM_FEED_NODES));
    return source->layouts;
}

/* ---- what may be shown ---- */

static void set_kind(const struct source *source, struct tally_health *health, enum tally_kind kind,
                     int64_t age_us)
{
    bool is_known = age_us >= 0 && age_us < INT64_MAX;

    health->kinds[kind].is_up = is_known && age_us <= source->options.stale_us;
    health->kinds[kind].age_s = is_known ? (double)age_us / 1e6 : -1;
}

static int64_t age_of(const struct source *source, const struct side_read *read)
{
    return read->good_us == INT64_MIN ? INT64_MAX : loop_now_us(source->loop) - read->good_us;
}

static const struct slurm_cache *shown(struct source *source, const struct tally_health *health,
                                       enum tally_kind kind, bool is_hidden)
{
    const struct slurm_cache *cache = slurm_poller_cache(source->poller, (enum slurm_feed)kind);

    return health->kinds[kind].is_up && !is_hidden && slurm_cache_is_synced(cache) ? cache : NULL;
}

const char *source_slurm_version(const struct source *source)
{
    return source->hidden.version;
}

void source_view(struct source *source, struct tally_health *ret_health,
                 struct tally_view *ret_view)
{
    unsigned version = slurm_client_version(source->client);
    struct slurm_feed_stats stats;

    *ret_health = source->hidden;
    if (version > 0)
        (void)snprintf(ret_health->parser, sizeof(ret_health->parser), "v0.0.%u", version);
    for (unsigned kind = 0; kind < SLURM_FEEDS; kind++) {
        slurm_poller_stats(source->poller, (enum slurm_feed)kind, &stats);
        set_kind(source, ret_health, (enum tally_kind)kind, stats.age_us);
    }
    set_kind(source, ret_health, KIND_DIAG, age_of(source, &source->diag));
    set_kind(source, ret_health, KIND_LICENSES, age_of(source, &source->licenses));
    *ret_view = (struct tally_view){
        .jobs = shown(source, ret_health, KIND_JOBS, ret_health->hides[HIDES_JOBS]),
        .nodes = shown(source, ret_health, KIND_NODES, ret_health->hides[HIDES_NODES]),
        .partitions = shown(source, ret_health, KIND_PARTITIONS, false),
        .reservations =
            shown(source, ret_health, KIND_RESERVATIONS, ret_health->hides[HIDES_RESERVATIONS]),
        .diag = ret_health->kinds[KIND_DIAG].is_up ? json_root(source->diag.doc) : NULL,
        .licenses = ret_health->kinds[KIND_LICENSES].is_up ? json_root(source->licenses.doc) : NULL,
        .health = ret_health,
        .now_s = clock_wall_us(loop_clock(source->loop)) / SECOND_US,
        .shows_users =
            source->options.users == SOURCE_USERS_SHOWN ||
            (source->options.users == SOURCE_USERS_AUTO && !ret_health->hides[HIDES_USERS]),
    };
}
