/* poller.c - when to ask for which list, and what its answer does to the cache.
 *
 * Each kind has a feed that goes round: wait, ask, decode what arrives, commit. Holds: one poll per
 * feed at a time (and one long list per client, which the client sees to); a wait is never shorter
 * than a few times what the last answer took, nor than a second for each megabyte of it, but that a
 * suspicion does not wait so long for its list, and that nodes which are to be seen soon (nodes_us)
 * may owe half a minute of waits; only a whole answer to a list can take objects away, and none
 * while a restart of slurmctld is suspected. */
#include "base/mem.h"
#include "slurm/calls.h"
#include "slurm/poller_private.h"
#include "slurm/sight.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum {
    MS = 1000,
    SECOND = 1000 * MS,
    FAST_REST = 3,    /* times the last answer took: then we wait, while something is expected */
    SLOW_REST = 10,   /* and else */
    BYTES_PER_US = 1, /* 60 MB a minute, of each feed */
    CREDIT_US = 30 * SECOND, /* of waits, which nodes that are to be seen soon may owe */
    UNREACHED_LONGEST_US = 30 * SECOND,
    UNREACHED_US = SECOND,          /* between looks at the boot time after a 502 */
    LONGEST_WAIT_US = 15 * SECOND,  /* after failures, and after an answer that took for ever */
    LIST_TIMEOUT_US = 300 * SECOND, /* 50,000 jobs take slurmrestd half a minute when it is idle */
};

static_assert((int64_t)SLURM_GHOST_US > (int64_t)LIST_TIMEOUT_US,
              "what has gone is remembered for longer than any read takes");

static const struct feed_row rows[SLURM_FEEDS] = {
    [SLURM_FEED_JOBS] = { &slurm_job_kind, SLURM_JOBS, SLURM_JOB, true },
    [SLURM_FEED_NODES] = { &slurm_node_kind, SLURM_NODES, SLURM_NODE, false },
    [SLURM_FEED_PARTITIONS] = { &slurm_partition_kind, SLURM_PARTITIONS, SLURM_PARTITION, false },
    [SLURM_FEED_RESERVATIONS] = { &slurm_reservation_kind, SLURM_RESERVATIONS, SLURM_RESERVATION,
                                  false },
};

static bool is_jobs(const struct feed *feed)
{
    return feed->row->list == SLURM_JOBS;
}

/* Slurm 25.11 answers 500, "Unable to query partitions", to a list of nodes since a time at which
 * nodes have changed and partitions have not. There such a list is always read whole. */
static bool takes_update_time(const struct feed *feed)
{
    if (feed->row->list == SLURM_NODES)
        return slurm_client_version(feed->poller->client) >= 45;
    return !is_jobs(feed);
}

/* ---- waiting ---- */

static void turn(void *context)
{
    struct feed *feed = context;

    feed->again = false;
    if (is_jobs(feed))
        slurm_jobs_poll(feed);
    else
        slurm_feed_list(feed);
}

void slurm_feed_wait(struct feed *feed, int64_t us)
{
    feed->phase = FEED_WAITS;
    loop_timer_start(feed->poller->loop, &feed->timer, us, turn, feed);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool may_owe(const struct feed *feed)
{
    return feed->row->list == SLURM_NODES && feed->poller->options.nodes_us > 0;
}

/* How long slurmrestd is left alone for what the last answer took it. */
static int64_t rest_us(const struct feed *feed, int times)
{
    return smaller(times * feed->stats.took_us, LONGEST_WAIT_US);
}

static int64_t period(const struct feed *feed)
{
    const struct slurm_poller *poller = feed->poller;
    int64_t now_us = loop_now_us(poller->loop);
    bool fast = feed->row->hastens && poller->expect_until_us > now_us;

    if (may_owe(feed))
        return larger(poller->options.nodes_us, feed->owed_until_us - now_us - CREDIT_US);
    return larger(fast ? poller->options.fast_us : poller->options.slow_us,
                  larger(rest_us(feed, fast ? FAST_REST : SLOW_REST),
                         (int64_t)feed->poll_bytes / BYTES_PER_US));
}

void slurm_feed_good(struct feed *feed)
{
    feed->failures = 0;
    feed->last_error[0] = '\0';
    feed->good_us = feed->started_us;
    slurm_feed_wait(feed, feed->again ? 0 : period(feed));
}

static void drop_answer(struct feed *feed)
{
    slurm_merge_free(feed->merge);
    feed->merge = NULL;
    json_doc_free(feed->doc);
    feed->doc = NULL;
}

void slurm_feed_flawed(struct feed *feed, const char *why)
{
    feed->stats.failures++;
    snprintf(feed->last_error, sizeof(feed->last_error), "%s", why);
}

void slurm_feed_failed(struct feed *feed, const char *why)
{
    int64_t wait_us = period(feed);

    drop_answer(feed);
    slurm_feed_flawed(feed, why);
    for (unsigned i = 0; i < feed->failures && wait_us < LONGEST_WAIT_US; i++)
        wait_us *= 2;
    feed->failures++;
    slurm_feed_wait(feed, wait_us < LONGEST_WAIT_US ? wait_us : LONGEST_WAIT_US);
}

void slurm_feed_count(struct feed *feed, const struct slurm_answer *answer)
{
    feed->stats.requests++;
    feed->stats.bytes += answer->bytes;
    feed->stats.unchanged += answer->error.class == SLURM_NOT_MODIFIED;
    slurm_poller_heard(feed->poller, answer);
}

/* ---- lists ---- */

/* Jobs: those that have ended are purged; of others a direct read has the last word. */
static bool may_go(void *context, const struct slurm_object *object)
{
    const struct feed *feed = context;
    const struct slurm_poller *poller = feed->poller;

    if (!is_jobs(feed))
        return !slurm_is_in_doubt(poller);
    return poller->suspicions == feed->suspicions_then && !poller->unreached &&
           slurm_job_has_ended(&slurm_job_of(object)->state);
}

static void tell_settled(const struct slurm_poller *poller)
{
    if (poller->options.settled)
        poller->options.settled(poller->options.context);
}

static void merged(struct feed *feed)
{
    bool whole = slurm_merge_ignored(feed->merge) == 0;

    if (feed->suspicions_then != feed->poller->suspicions)
        whole = false; /* the time in it may be by the clock of a slurmctld that has gone */
    drop_answer(feed);
    feed->stats.lists++;
    feed->update_time = whole ? feed->next_update : 0;
    feed->updated_us = loop_now_us(feed->poller->loop);
    if (is_jobs(feed))
        slurm_jobs_listed(feed);
    else
        slurm_feed_good(feed);
    tell_settled(feed->poller);
}

static void commit_slice(void *context)
{
    struct feed *feed = context;

    /* A list without its time may be one that says "unchanged" in a way that we do not know. */
    if (slurm_merge_commit(feed->merge, feed->next_update > 0 ? may_go : NULL, feed))
        merged(feed);
    else
        loop_timer_start(feed->poller->loop, &feed->timer, 0, commit_slice, feed);
}

static void begin_merge(struct feed *feed, int64_t sent_us)
{
    if (feed->merge)
        return;
    feed->merge = slurm_merge_new(feed->cache, sent_us);
    feed->started_us = sent_us;
}

/* While the list arrives. */
static void on_item(void *context, const struct json *item, int64_t sent_us)
{
    struct feed *feed = context;
    const struct slurm_object *object;

    begin_merge(feed, sent_us);
    if (slurm_merge_count(feed->merge) >= feed->poller->max_list && feed->flaw.class == 0)
        err_set(&feed->flaw, ERR_TOO_BIG, "more than %zu %s", feed->poller->max_list,
                slurm_endpoint(feed->row->list)->array);
    if (feed->flaw.class != 0 ||
        slurm_object_decode(feed->row->kind, item, &object, &feed->flaw) < 0)
        return;
    if (is_jobs(feed) && !feed->poller->suspicious) /* else it is what was expected */
        slurm_job_check(feed->poller, object, feed->started_us);
    slurm_merge_add(feed->merge, object);
}

static void list_came(struct feed *feed, const struct slurm_answer *answer)
{
    const struct json *last_update = json_get(answer->body, "last_update");

    begin_merge(feed, answer->sent_us);
    feed->next_update = slurm_number_or(slurm_number_of(last_update), 0, 0);
    feed->phase = FEED_COMMITS;
    commit_slice(feed);
}

static void note_time(struct feed *feed, const struct slurm_answer *answer)
{
    int64_t now_us = loop_now_us(feed->poller->loop), took_us = now_us - answer->sent_us;
    struct job_poll *jobs = &feed->poller->jobs;

    if (!is_jobs(feed)) {
        feed->stats.took_us = took_us; /* without the wait for its turn */
        feed->owed_until_us = larger(feed->owed_until_us, now_us) + rest_us(feed, FAST_REST);
        return;
    }
    /* The next one comes, but not at once. One that failed may have hung for minutes. */
    jobs->list_from_us =
        now_us +
        (answer->error.class == SLURM_DONE ? 2 * took_us : smaller(2 * took_us, LONGEST_WAIT_US));
    jobs->calm_from_us = now_us + (int64_t)answer->bytes / BYTES_PER_US;
}

static void on_list(void *context, const struct slurm_answer *answer)
{
    struct feed *feed = context;

    feed->call = NULL;
    slurm_feed_count(feed, answer);
    feed->started_us = answer->sent_us;
    feed->poll_bytes = is_jobs(feed) ? 0 : answer->bytes;
    if (!answer->error.unsent) /* else it took nobody's time, and has none of its own */
        note_time(feed, answer);
    if (answer->error.class == SLURM_NOT_MODIFIED && feed->update_time > 0) {
        drop_answer(feed); /* whatever came with it */
        slurm_cache_unchanged(feed->cache, answer->sent_us);
        slurm_feed_good(feed);
    } else if (answer->error.class == SLURM_NOT_MODIFIED && feed->asked_time > 0) {
        drop_answer(feed); /* the time was forgotten meanwhile */
        slurm_feed_wait(feed, 0);
    } else if (answer->error.class != SLURM_DONE) {
        slurm_feed_failed(feed, answer->error.text);
    } else if (feed->flaw.class != 0) {
        slurm_feed_failed(feed, feed->flaw.text); /* a hole would look as if it had gone */
    } else {
        list_came(feed, answer);
    }
}

void slurm_feed_list(struct feed *feed)
{
    struct slurm_param query[1];
    struct slurm_request request = { .verb = SLURM_GET,
                                     .endpoint = feed->row->list,
                                     .query = query,
                                     .item = on_item,
                                     .timeout_us = LIST_TIMEOUT_US };
    char text[24];

    if (is_jobs(feed))
        query[request.query_count++] = (struct slurm_param){ "flags", STR("LOCAL") };
    if (!takes_update_time(feed)) {
        feed->update_time = 0;
    } else if (feed->update_time > 0) {
        snprintf(text, sizeof(text), "%" PRId64, feed->update_time);
        query[request.query_count++] = (struct slurm_param){ "update_time", str_of(text) };
    }
    feed->asked_time = feed->update_time;
    feed->phase = FEED_LISTS;
    feed->flaw = (struct err){ 0 };
    feed->suspicions_then = feed->poller->suspicions;
    feed->call = slurm_send(feed->poller->client, &request, on_list, feed);
}

/* ---- suspicion ---- */

/* Another slurmctld may have another clock: what it says has not changed since a time of the old
 * one's may well have. */
static void forget_times(struct slurm_poller *poller)
{
    for (unsigned i = 0; i < SLURM_FEEDS; i++)
        poller->feeds[i].update_time = 0;
}

void slurm_poller_suspect(struct slurm_poller *poller, const char *why)
{
    snprintf(poller->why, sizeof(poller->why), "%s", why);
    poller->suspicious = true;
    poller->suspicions++;
    forget_times(poller);
    slurm_jobs_wants_list(poller);
}

static const char not_reached[] = "slurmctld could not be reached";

static void ask_conf(void *context);

/* A 502 comes from a slurmctld that restarts, and from one that is only busy. The boot time tells
 * the two apart, and costs less than a list: at 50,000 jobs a list takes longer than it is from one
 * 502 to the next. Where nothing tells the boot time the list decides. */
void slurm_poller_heard(struct slurm_poller *poller, const struct slurm_answer *answer)
{
    if (answer->error.http != 502)
        return;
    if (poller->boot_time == 0) {
        slurm_poller_suspect(poller, not_reached);
        return;
    }
    poller->unreached_us = loop_now_us(poller->loop);
    if (poller->unreached)
        return;
    poller->unreached = true;
    poller->unreached_from_us = poller->unreached_us;
    poller->unreached_count++;
    snprintf(poller->why, sizeof(poller->why), "%s", not_reached);
    loop_timer_start(poller->loop, &poller->conf_timer, 0, ask_conf, poller);
}

bool slurm_is_in_doubt(const struct slurm_poller *poller)
{
    return poller->suspicious || poller->unreached;
}

bool slurm_poller_is_suspicious(const struct slurm_poller *poller)
{
    return slurm_is_in_doubt(poller);
}

const char *slurm_poller_why(const struct slurm_poller *poller)
{
    return poller->why;
}

uint64_t slurm_poller_suspicions(const struct slurm_poller *poller)
{
    return poller->suspicions + poller->unreached_count;
}

/* ---- slurmctld's own word ---- */

/* A time that slurmctld told later and that is earlier: its clock was set back, and what changes
 * before it has come to where it was would seem to have changed long ago. */
static void forget_later_times(struct slurm_poller *poller, int64_t time, int64_t sent_us)
{
    for (unsigned i = 0; i < SLURM_FEEDS; i++) {
        struct feed *feed = &poller->feeds[i];

        if (time > 0 && time < feed->update_time && feed->updated_us <= sent_us)
            feed->update_time = 0;
    }
}

/* The boot time that was asked for after the last 502 is the same: slurmctld was not restarted.
 * That is no proof when the jobs were listed before the boot time was known: they may be those of
 * the slurmctld before. */
static void judge_unreached(struct slurm_poller *poller, bool is_same, int64_t sent_us)
{
    const struct slurm_cache *jobs = poller->feeds[SLURM_FEED_JOBS].cache;

    if (!poller->unreached || sent_us < poller->unreached_us)
        return;
    poller->unreached = false;
    if (is_same ? slurm_cache_listed_us(jobs) < poller->boot_known_us : poller->boot_time == 0)
        slurm_poller_suspect(poller, not_reached);
    tell_settled(poller);
}

bool slurm_take_conf(struct slurm_poller *poller, const struct slurm_answer *answer)
{
    struct slurm_site site;
    bool is_same, is_later = answer->sent_us >= poller->conf_taken_us;

    slurm_poller_heard(poller, answer);
    if (answer->error.class != SLURM_DONE || slurm_site_decode(answer->body, &site, NULL) < 0)
        return false;
    is_same = poller->boot_time != 0 && site.boot_time == poller->boot_time;
    forget_later_times(poller, site.time, answer->sent_us);
    if (poller->boot_time != 0 && !is_same) {
        slurm_poller_suspect(poller, "slurmctld was restarted");
    } else if (is_later && site.next_job_id > 0 && site.next_job_id < poller->next_job_id) {
        slurm_poller_suspect(poller, "slurmctld's next job id fell");
    }
    if (!is_same)
        poller->boot_known_us = answer->sent_us;
    poller->boot_time = site.boot_time;
    if (is_later || !is_same || site.next_job_id > poller->next_job_id)
        poller->next_job_id = site.next_job_id;
    poller->conf_taken_us = loop_now_us(poller->loop);
    judge_unreached(poller, is_same, answer->sent_us);
    return is_same;
}

static void on_conf(void *context, const struct slurm_answer *answer)
{
    struct slurm_poller *poller = context;

    poller->conf_call = NULL;
    if (answer->error.class == SLURM_NOT_SUPPORTED && answer->error.http == 0) {
        /* before v0.0.45 there is no such word, and so it was not even sent */
        poller->boot_time = 0;
        judge_unreached(poller, false, loop_now_us(poller->loop));
        return;
    }
    (void)slurm_take_conf(poller, answer);
    if (poller->unreached &&
        loop_now_us(poller->loop) - poller->unreached_from_us > UNREACHED_LONGEST_US) {
        poller->unreached = false; /* nobody tells the boot time: the list decides */
        slurm_poller_suspect(poller, not_reached);
    }
    loop_timer_start(poller->loop, &poller->conf_timer,
                     poller->unreached ? UNREACHED_US : poller->options.conf_us, ask_conf, poller);
}

void slurm_ask_conf_now(struct slurm_poller *poller)
{
    loop_timer_stop(&poller->conf_timer);
    ask_conf(poller);
}

static void ask_conf(void *context)
{
    struct slurm_poller *poller = context;
    struct slurm_request request = { .verb = SLURM_GET, .endpoint = SLURM_CONF, .once = true };

    if (poller->conf_call)
        return; /* its answer starts the timer again */
    poller->conf_call = slurm_send(poller->client, &request, on_conf, poller);
}

/* ---- the poller ---- */

static int64_t or_else(int64_t value, int64_t usual)
{
    return value > 0 ? value : usual;
}

struct slurm_poller *slurm_poller_new(struct slurm_client *client,
                                      const struct slurm_poller_options *options)
{
    struct map_options tracked = { .max = SLURM_MAX_LIST };
    struct map_options parts = { .max = SLURM_MAX_LIST,
                                 .borrow_keys = true,
                                 .free_value = mem_free };
    struct slurm_poller *poller = mem_alloc(sizeof(*poller));
    struct slurm_poller_options *own = &poller->options;

    poller->client = client;
    poller->loop = slurm_client_loop(client);
    if (options)
        *own = *options;
    own->fast_us = or_else(own->fast_us, 150 * MS);
    own->slow_us = or_else(own->slow_us, 2 * SECOND);
    own->conf_us = or_else(own->conf_us, 30 * SECOND);
    map_init(&poller->tracked, &tracked);
    map_init(&poller->jobs.parts, &parts);
    list_init(&poller->reads);
    list_init(&poller->starts.reads);
    poller->jobs.wants_list = true;
    poller->jobs.list_from_us = poller->jobs.calm_from_us = poller->jobs.wanted_us = INT64_MIN;
    poller->max_list = SLURM_MAX_LIST;
    for (unsigned i = 0; i < SLURM_FEEDS; i++) {
        struct feed *feed = &poller->feeds[i];

        feed->poller = poller;
        feed->row = &rows[i];
        feed->good_us = INT64_MIN;
        feed->cache = slurm_cache_new(rows[i].kind, poller->loop, own->owner);
    }
    return poller;
}

void slurm_poller_start(struct slurm_poller *poller)
{
    /* First: jobs that were listed later are those of the slurmctld whose boot time is known. */
    loop_timer_start(poller->loop, &poller->conf_timer, 0, ask_conf, poller);
    for (unsigned i = 0; i < SLURM_FEEDS; i++)
        slurm_feed_wait(&poller->feeds[i], 0);
}

void slurm_poller_free(struct slurm_poller *poller)
{
    if (!poller)
        return;
    slurm_reads_cancel(poller);
    slurm_call_cancel(poller->conf_call);
    slurm_starts_done(poller);
    loop_timer_stop(&poller->conf_timer);
    for (unsigned i = 0; i < SLURM_FEEDS; i++) {
        struct feed *feed = &poller->feeds[i];

        slurm_call_cancel(feed->call);
        loop_timer_stop(&feed->timer);
        drop_answer(feed);
        slurm_cache_free(feed->cache);
    }
    map_done(&poller->tracked);
    map_done(&poller->jobs.parts);
    mem_free(poller->jobs.reads);
    mem_free(poller);
}

struct slurm_cache *slurm_poller_cache(struct slurm_poller *poller, enum slurm_feed feed)
{
    return poller->feeds[feed].cache;
}

bool slurm_poller_is_synced(const struct slurm_poller *poller)
{
    for (unsigned i = 0; i < SLURM_FEEDS; i++)
        if (!slurm_cache_is_synced(poller->feeds[i].cache))
            return false;
    return true;
}

void slurm_poller_expect(struct slurm_poller *poller, int64_t until_us)
{
    int64_t now_us = loop_now_us(poller->loop);

    if (until_us > poller->expect_until_us)
        poller->expect_until_us = until_us;
    for (unsigned i = 0; i < SLURM_FEEDS; i++) {
        struct feed *feed = &poller->feeds[i];

        if (feed->phase == FEED_WAITS && feed->failures == 0 &&
            feed->timer.due_us > now_us + period(feed))
            slurm_feed_wait(feed, period(feed));
    }
}

void slurm_poller_refresh(struct slurm_poller *poller, enum slurm_feed which)
{
    struct feed *feed = &poller->feeds[which];

    if (feed->phase != FEED_WAITS)
        feed->again = true; /* what is under way may have passed it already */
    else if (feed->failures == 0)
        slurm_feed_wait(feed, 0);
}

void slurm_poller_stats(const struct slurm_poller *poller, enum slurm_feed which,
                        struct slurm_feed_stats *ret_stats)
{
    const struct feed *feed = &poller->feeds[which];

    *ret_stats = feed->stats;
    ret_stats->last_error = feed->last_error;
    ret_stats->failed_in_a_row = feed->failures;
    ret_stats->age_us =
        feed->good_us == INT64_MIN ? INT64_MAX : loop_now_us(poller->loop) - feed->good_us;
}
