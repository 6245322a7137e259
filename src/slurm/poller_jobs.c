/* poller_jobs.c - jobs by their states: what differs from the cache is read, what is missing is
 * judged.
 *
 * Holds: no judgement before all states have been seen; a suspicion leads to a whole list before
 * anything is reported as gone. */
#include "base/mem.h"
#include "slurm/poller_private.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    FEW_READS = 256,
    READS_US = 2000000,  /* of one round: no job is seen to start meanwhile */
    ALL_US = 5000000,    /* between questions about all jobs, where few are tracked */
    ALL_PACE = 20,       /* or so many times what the last one took */
    TRACKED_US = 500000, /* between questions about all tracked jobs, while some of them wait */
    TRACKED_PACE = 10,
    LOOKED_AWAY_US = 5000000,
};

/* ---- tracking ---- */

struct str slurm_id_key(int64_t id, char text[SLURM_ID_TEXT])
{
    snprintf(text, SLURM_ID_TEXT, "%" PRId64, id);
    return str_of(text);
}

void slurm_poller_track(struct slurm_poller *poller, int64_t job_id)
{
    char text[SLURM_ID_TEXT];

    if (job_id > 0) /* more than a list can hold: polled by the whole lists alone */
        map_put(&poller->tracked, slurm_id_key(job_id, text), NULL, NULL);
}

void slurm_poller_untrack(struct slurm_poller *poller, int64_t job_id)
{
    char text[SLURM_ID_TEXT];

    map_remove(&poller->tracked, slurm_id_key(job_id, text));
}

void slurm_jobs_wants_list(struct slurm_poller *poller)
{
    struct feed *feed = &poller->feeds[SLURM_FEED_JOBS];

    poller->jobs.wants_list = true;
    if (feed->phase == FEED_WAITS && feed->failures == 0)
        slurm_feed_wait(feed, 0);
}

void slurm_poller_list(struct slurm_poller *poller)
{
    poller->jobs.wanted_us = loop_now_us(poller->loop);
    slurm_jobs_wants_list(poller);
}

/* ---- reading those that differ ---- */

static void begin_reads(struct job_poll *jobs)
{
    jobs->count = jobs->next = 0;
    jobs->failed = jobs->well = 0;
    jobs->next_highest = 0;
    jobs->reads_until_us = INT64_MAX;
}

void slurm_jobs_want_read(struct job_poll *jobs, int64_t id, bool started)
{
    if (jobs->count == jobs->capacity) {
        jobs->capacity = jobs->capacity ? 2 * jobs->capacity : 64;
        jobs->reads = mem_resize_array(jobs->reads, jobs->capacity, sizeof(*jobs->reads));
    }
    jobs->reads[jobs->count++] = (struct job_read){ id, started };
}

/* It will be new again, and that is no sign of anything. */
static void leave_unread(struct job_poll *jobs, int64_t id)
{
    if (id <= jobs->next_highest)
        jobs->next_highest = id - 1;
}

/* When the next whole list may be asked for. */
static int64_t list_time(const struct slurm_poller *poller)
{
    const struct job_poll *jobs = &poller->jobs;

    return poller->suspicious || jobs->calm_from_us < jobs->list_from_us ? jobs->list_from_us
                                                                         : jobs->calm_from_us;
}

/* A list that is wanted comes as soon as it may. */
static void wait_for_list(struct feed *feed)
{
    int64_t now_us = loop_now_us(feed->poller->loop), list_us = list_time(feed->poller);

    if (feed->timer.due_us > list_us)
        slurm_feed_wait(feed, list_us > now_us ? list_us - now_us : 0);
}

/* A poll all of whose reads failed has told nothing. */
static void end_round(struct feed *feed)
{
    struct job_poll *jobs = &feed->poller->jobs;
    char why[sizeof(feed->last_error)];

    if (jobs->next_highest > jobs->highest)
        jobs->highest = jobs->next_highest;
    jobs->count = jobs->next = 0;
    snprintf(why, sizeof(why), "%s", feed->last_error);
    if (jobs->failed > 0 && jobs->well == 0) {
        slurm_feed_failed(feed, why);
        return;
    }
    slurm_feed_good(feed);
    if (jobs->failed > 0)
        snprintf(feed->last_error, sizeof(feed->last_error), "%s", why);
    if (jobs->wants_list)
        wait_for_list(feed);
}

/* The next round finds them again. */
static void leave_rest(struct slurm_poller *poller)
{
    struct job_poll *jobs = &poller->jobs;
    char text[SLURM_ID_TEXT];

    while (jobs->count > jobs->next) {
        int64_t id = jobs->reads[--jobs->count].id;

        slurm_part_unread(poller, slurm_id_key(id, text).at);
        leave_unread(jobs, id);
    }
}

static void read_more(struct feed *feed)
{
    struct job_poll *jobs = &feed->poller->jobs;
    char text[SLURM_ID_TEXT];

    feed->phase = FEED_READS;
    if (loop_now_us(feed->poller->loop) > jobs->reads_until_us)
        leave_rest(feed->poller);
    while (jobs->reading < SLURM_READS_AT_ONCE && jobs->next < jobs->count) {
        jobs->reading++;
        slurm_read_start(feed, slurm_id_key(jobs->reads[jobs->next++].id, text), true);
    }
    if (jobs->reading == 0)
        end_round(feed);
}

void slurm_jobs_read_ended(struct feed *feed, const char *key, bool well)
{
    struct job_poll *jobs = &feed->poller->jobs;
    uint64_t id = 0;

    jobs->reading--;
    jobs->well += well;
    jobs->failed += !well;
    if (!well && str_to_u64(str_of(key), 1, INT64_MAX, &id, NULL) == 0) {
        slurm_part_unread(feed->poller, key);
        leave_unread(jobs, (int64_t)id);
    }
    read_more(feed);
}

/* ---- a whole list ---- */

/* Of what the list itself showed: later reads may have passed ids that it was too early for. */
static void note_highest(struct feed *feed)
{
    list_each (const struct slurm_entry, entry, &feed->cache->shown, place) {
        int64_t id = slurm_job_of(entry->object)->id;

        if (entry->seen_us <= feed->started_us && id > feed->poller->jobs.highest)
            feed->poller->jobs.highest = id;
    }
}

void slurm_jobs_listed(struct feed *feed)
{
    struct slurm_poller *poller = feed->poller;

    poller->jobs.all_from_us = loop_now_us(poller->loop) + ALL_US;
    begin_reads(&poller->jobs);
    poller->jobs.highest = 0;
    note_highest(feed);
    if (feed->suspicions_then == poller->suspicions) {
        poller->suspicious = false;
        poller->jobs.wants_list = feed->started_us < poller->jobs.wanted_us;
        list_each (const struct slurm_entry, entry, &feed->cache->shown, place)
            if (entry->doubted)
                slurm_jobs_want_read(&poller->jobs, slurm_job_of(entry->object)->id, false);
    }
    read_more(feed);
}

/* ---- states ---- */

/* Of a job that waited and runs now, only its nodes are news: they cost a tenth of the whole. */
static bool has_started(const struct slurm_poller *poller, const struct slurm_entry *entry,
                        uint64_t state)
{
    const struct slurm_job *job = slurm_job_of(entry->object);
    const uint64_t one = 1, waiting = one << SLURM_JOB_PENDING | one << SLURM_JOB_CONFIGURING;

    return poller->options.nodes_only && slurm_start_is_believable(poller, entry) &&
           state == one << SLURM_JOB_RUNNING && !job->nodes[0] &&
           slurm_words_has(&job->state, SLURM_JOB_PENDING) && !(job->state.known & ~waiting);
}

/* A job that is in the cache: what is known since, or about to be, is newer than the states; if
 * not, the next round tells again. */
static void compare_known(struct feed *feed, struct slurm_entry *entry, uint64_t state,
                          bool is_part)
{
    const struct slurm_job *job = slurm_job_of(entry->object);

    if (job->state.known == state) {
        entry->stated_us = feed->started_us;
        return;
    }
    if (slurm_entry_newest(feed->cache, entry) > feed->started_us)
        return;
    if (slurm_words_has(&job->state, SLURM_JOB_RUNNING)) /* nobody acts as if it still ran */
        slurm_cache_wrote(feed->cache, entry->object->key, feed->started_us);
    if (!slurm_read_is_under_way(feed, entry->object->key))
        slurm_jobs_want_read(&feed->poller->jobs, job->id,
                             !is_part && has_started(feed->poller, entry, state));
}

static void compare(struct feed *feed, const struct slurm_brief *brief)
{
    struct job_poll *jobs = &feed->poller->jobs;
    bool is_part = brief->number == 0;
    int64_t id = is_part ? slurm_part_note(feed, brief) : brief->number;
    char text[SLURM_ID_TEXT];
    struct slurm_entry *entry;

    if (id == 0)
        return; /* was named before */
    entry = slurm_entry_find(feed->cache, slurm_id_key(id, text));
    if (entry)
        entry->round = jobs->round;
    if (entry && entry->object) {
        compare_known(feed, entry, brief->state, is_part);
        return;
    }
    if (entry && slurm_entry_newest(feed->cache, entry) > feed->started_us)
        return; /* went meanwhile */
    if (!is_part && id <= jobs->highest && jobs->about == ROUND_ALL)
        jobs->fell = true;
    slurm_jobs_want_read(jobs, id, false);
}

static bool is_expected(const struct feed *feed, const struct slurm_entry *entry)
{
    const struct slurm_job *job = slurm_job_of(entry->object);
    const struct slurm_poller *poller = feed->poller;

    if ((job->array_job_id.number > 0 && !slurm_part_is_named(poller, entry->object)) ||
        slurm_entry_newest(feed->cache, entry) >= feed->started_us)
        return false;
    return poller->jobs.about == ROUND_ALL || entry->asked == poller->jobs.round;
}

/* Marks what is missing by its round: purged, unless one that has not ended is missing too. */
static void judge_missing(struct feed *feed)
{
    struct slurm_poller *poller = feed->poller;

    list_each (const struct slurm_entry, entry, &feed->cache->shown, place)
        if (entry->round != poller->jobs.round && is_expected(feed, entry) &&
            !slurm_job_has_ended(&slurm_job_of(entry->object)->state))
            poller->jobs.lost = true;
    if (poller->jobs.lost)
        slurm_poller_suspect(poller, "a job that had not ended is missing");
    if (poller->jobs.fell)
        slurm_poller_suspect(poller, "a new job has an id that was passed before");
    if (slurm_is_in_doubt(poller))
        return;
    list_each (const struct slurm_entry, entry, &feed->cache->shown, place)
        if (entry->round != poller->jobs.round && is_expected(feed, entry))
            slurm_cache_seen_gone(feed->cache, entry->object->key, feed->started_us);
}

static int64_t later_us(const struct feed *feed, int64_t at_least_us, int64_t times)
{
    int64_t pause_us = times * feed->stats.took_us;

    return loop_now_us(feed->poller->loop) + (pause_us > at_least_us ? pause_us : at_least_us);
}

/* A round about more is one about less, too. */
static void set_next_rounds(struct feed *feed)
{
    struct job_poll *jobs = &feed->poller->jobs;

    if (jobs->about == ROUND_ALL)
        jobs->all_from_us = later_us(feed, ALL_US, ALL_PACE);
    if (jobs->about >= ROUND_TRACKED)
        jobs->tracked_from_us = later_us(feed, TRACKED_US, TRACKED_PACE);
}

/* A list that may come at once has all that differs; until it may, the first of them are read. */
static void limit_reads(struct feed *feed)
{
    struct slurm_poller *poller = feed->poller;
    struct job_poll *jobs = &poller->jobs;
    bool is_due = loop_now_us(poller->loop) >= list_time(poller);
    size_t most = !jobs->wants_list ? jobs->count : poller->suspicious || is_due ? 0 : FEW_READS;

    while (jobs->count > most)
        leave_unread(jobs, jobs->reads[--jobs->count].id);
}

/* Beside the others, which they do not wait for. */
static void read_starts(struct slurm_poller *poller)
{
    struct job_poll *jobs = &poller->jobs;
    size_t left = 0;

    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->reads[i].started)
            slurm_start_read(poller, jobs->reads[i].id);
        else
            jobs->reads[left++] = jobs->reads[i];
    jobs->count = left;
}

static void compare_all(struct feed *feed)
{
    struct job_poll *jobs = &feed->poller->jobs;

    slurm_parts_compare(feed);
    judge_missing(feed);
    slurm_parts_forget(feed);
    if (jobs->count > FEW_READS && jobs->count > feed->cache->count / 2)
        jobs->wants_list = true;
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->reads[i].id > jobs->next_highest)
            jobs->next_highest = jobs->reads[i].id;
}

static void compared(struct feed *feed)
{
    if (feed->poller->jobs.about == ROUND_ALL)
        compare_all(feed);
    else
        judge_missing(feed);
    set_next_rounds(feed);
    limit_reads(feed);
    read_starts(feed->poller);
    feed->poller->jobs.reads_until_us = loop_now_us(feed->poller->loop) + READS_US;
    read_more(feed);
}

static void ask_states(struct feed *feed);

/* One of which nothing is known may wait, too. */
static bool waits(const struct slurm_entry *entry)
{
    return !entry || !entry->object ||
           slurm_words_has(&slurm_job_of(entry->object)->state, SLURM_JOB_PENDING);
}

/* Whether a tracked job is left, of those not asked for yet, that this round is about. */
static bool has_more_ids(const struct feed *feed)
{
    const struct slurm_poller *poller = feed->poller;
    size_t index = 0;

    map_each (item, &poller->tracked)
        if (index++ >= poller->jobs.asked && (poller->jobs.about == ROUND_TRACKED ||
                                              waits(slurm_entry_find(feed->cache, item->key))))
            return true;
    return false;
}

static enum job_round choose_round(struct feed *feed, int64_t now_us)
{
    struct job_poll *jobs = &feed->poller->jobs;

    if (!feed->poller->options.tracked_only || now_us >= jobs->all_from_us)
        return ROUND_ALL;
    jobs->asked = 0;
    jobs->about = ROUND_WAITING;
    return now_us < jobs->tracked_from_us && has_more_ids(feed) ? ROUND_WAITING : ROUND_TRACKED;
}

static void compare_slice(void *context)
{
    struct feed *feed = context;
    struct slurm_poller *poller = feed->poller;
    struct slurm_brief brief;
    const struct json *item;
    struct err why = { 0 };

    for (unsigned i = 0; i < SLURM_STATES_AT_ONCE; i++) {
        if (!json_next_item(&feed->iter, &item)) {
            json_doc_free(feed->doc);
            feed->doc = NULL;
            if (poller->jobs.about != ROUND_ALL && poller->jobs.asked < poller->tracked.count &&
                has_more_ids(feed))
                ask_states(feed);
            else
                compared(feed);
            return;
        }
        if (slurm_brief_of(item, &brief, &why) < 0) {
            slurm_feed_failed(feed, why.text);
            return;
        }
        compare(feed, &brief);
    }
    loop_timer_start(poller->loop, &feed->timer, 0, compare_slice, feed);
}

static void on_states(void *context, const struct slurm_answer *answer)
{
    struct feed *feed = context;

    feed->call = NULL;
    slurm_feed_count(feed, answer);
    if (!answer->error.unsent)
        feed->stats.took_us = loop_now_us(feed->poller->loop) - answer->sent_us;
    if (feed->started_us == INT64_MIN)
        feed->started_us = answer->sent_us; /* of the first query: the others are newer */
    feed->poll_bytes += answer->bytes;
    if (answer->error.class != SLURM_DONE) {
        /* Whoever looks away for longer may miss that a job went back into the queue and was
         * started elsewhere: its state is the same again. */
        if (feed->good_us < loop_now_us(feed->poller->loop) - LOOKED_AWAY_US)
            feed->poller->jobs.wants_list = true;
        slurm_feed_failed(feed, answer->error.text);
        return;
    }
    feed->doc = slurm_answer_take(answer);
    feed->iter = json_iter(json_get(json_root(feed->doc), "jobs"));
    feed->phase = FEED_COMPARES;
    compare_slice(feed);
}

/* As many of the ids as fit, from where the last query ended. Those that are tracked only after
 * this are not missing when the answer lacks them. */
static size_t next_ids(struct feed *feed, struct slurm_param *query)
{
    struct slurm_poller *poller = feed->poller;
    size_t index = 0, count = 0, bytes = 0;

    map_each (item, &poller->tracked) {
        struct slurm_entry *entry;

        if (index++ < poller->jobs.asked)
            continue;
        entry = slurm_entry_find(feed->cache, item->key);
        if (poller->jobs.about == ROUND_TRACKED || waits(entry)) {
            bytes += strlen("job_id=&") + item->key.len;
            if (bytes > SLURM_STATE_QUERY)
                break;
            query[count++] = (struct slurm_param){ "job_id", item->key };
            if (entry)
                entry->asked = poller->jobs.round;
        }
        poller->jobs.asked = index;
    }
    return count;
}

/* The next of the tracked ids, or all jobs in one query. */
static void ask_states(struct feed *feed)
{
    struct slurm_poller *poller = feed->poller;
    struct slurm_request request = { .verb = SLURM_GET,
                                     .endpoint = SLURM_JOBS_STATE,
                                     .once = true };
    struct slurm_param *query = NULL;

    if (poller->jobs.about != ROUND_ALL) {
        query = mem_alloc_array(SLURM_STATE_QUERY / strlen("job_id=&"), sizeof(*query));
        request.query_count = next_ids(feed, query);
        request.query = query;
    }
    feed->phase = FEED_ASKS_STATE;
    feed->call = slurm_send(poller->client, &request, on_states, feed);
    mem_free(query);
}

static void poll_states(struct feed *feed, int64_t now_us)
{
    struct slurm_poller *poller = feed->poller;
    struct job_poll *jobs = &poller->jobs;

    if (feed->good_us < now_us - LOOKED_AWAY_US) /* after a long rest states alone do not tell */
        slurm_ask_conf_now(poller);
    jobs->about = choose_round(feed, now_us);
    if (jobs->about != ROUND_ALL && poller->tracked.count == 0) {
        feed->started_us = now_us;
        end_round(feed); /* a query without ids would ask for all */
        return;
    }
    jobs->round = ++feed->cache->round;
    jobs->lost = jobs->fell = false;
    jobs->asked = 0;
    feed->poll_bytes = 0;
    feed->started_us = INT64_MIN;
    ask_states(feed);
}

/* While a list has to wait for its time, states and reads go on, unless they might mislead. */
void slurm_jobs_poll(struct feed *feed)
{
    struct slurm_poller *poller = feed->poller;
    int64_t now_us = loop_now_us(poller->loop), list_us = list_time(poller);

    begin_reads(&poller->jobs);
    if (poller->options.list_us > 0 && slurm_cache_is_synced(feed->cache) &&
        now_us - slurm_cache_listed_us(feed->cache) >= poller->options.list_us)
        poller->jobs.wants_list = true;
    if (poller->jobs.wants_list && now_us >= list_us)
        slurm_feed_list(feed);
    else if (poller->jobs.wants_list && poller->suspicious)
        slurm_feed_wait(feed, list_us - now_us);
    else
        poll_states(feed, now_us);
}
