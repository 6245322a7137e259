/* poller_read.c - direct reads of single objects: those that differ, those in doubt, those that a
 * caller asks for.
 *
 * Holds: "not found" takes an object away only while no restart is suspected, and a job that has
 * not ended only when the last whole list lacked it too. */
#include "base/mem.h"
#include "slurm/poller_private.h"

#include <stdio.h>

struct slurm_read {
    struct list link;
    struct feed *feed;
    struct slurm_call *call;
    bool of_poll; /* the poll under way waits for it */
    char key[];
};

static bool comes_back(const struct slurm_job *job)
{
    return slurm_words_has(&job->state, SLURM_JOB_REQUEUED) ||
           slurm_words_has(&job->state, SLURM_JOB_REQUEUE_HOLD) ||
           slurm_words_has(&job->state, SLURM_JOB_SPECIAL_EXIT);
}

/* Where there is no sluid the time of submission stands for it, but for a job that goes back into
 * the queue: that is submitted anew. */
static bool same_job(const struct slurm_job *old, const struct slurm_job *next)
{
    if (old->sluid[0] && next->sluid[0])
        return strcmp(old->sluid, next->sluid) == 0;
    return old->sluid[0] || next->sluid[0] || old->submit_time == 0 || next->submit_time == 0 ||
           old->submit_time == next->submit_time || comes_back(next);
}

void slurm_job_check(struct slurm_poller *poller, const struct slurm_object *object,
                     int64_t started_us)
{
    const struct slurm_cache *cache = poller->feeds[SLURM_FEED_JOBS].cache;
    const struct slurm_entry *entry = slurm_entry_find(cache, str_of(object->key));
    const struct slurm_job *next = slurm_job_of(object), *old;

    if (!entry || !entry->object || started_us < slurm_entry_newest(cache, entry))
        return;
    old = slurm_job_of(entry->object);
    if (next->restarts > old->restarts)
        return; /* requeued */
    if (!same_job(old, next))
        slurm_poller_suspect(poller, "a job id belongs to another job now");
    else if (slurm_words_has(&old->state, SLURM_JOB_RUNNING) &&
             slurm_words_has(&next->state, SLURM_JOB_PENDING) && !comes_back(next))
        slurm_poller_suspect(poller, "a running job turned pending");
}

static int found(struct feed *feed, const struct slurm_answer *answer, struct err *err)
{
    auto_slurm_list struct slurm_list list = { 0 };
    int result = slurm_list_decode(feed->row->kind, answer->body, &list, err);

    if (result < 0)
        return result;  /* says nothing; the next poll reads it again */
    if (list.count > 1) /* an array with all its parts: paced as a list is */
        feed->poll_bytes += answer->bytes;
    for (size_t i = 0; i < list.count; i++) {
        if (feed->row->one == SLURM_JOB)
            slurm_job_check(feed->poller, list.at[i], answer->sent_us);
        slurm_cache_seen(feed->cache, list.at[i], answer->sent_us);
    }
    return 0;
}

static void not_found(struct feed *feed, const char *key, int64_t started_us)
{
    const struct slurm_entry *entry = slurm_entry_find(feed->cache, str_of(key));
    struct slurm_poller *poller = feed->poller;
    bool live = entry && entry->object && feed->row->one == SLURM_JOB &&
                !slurm_job_has_ended(&slurm_job_of(entry->object)->state);

    if (entry && started_us < slurm_entry_newest(feed->cache, entry))
        return;
    if (live && !entry->doubted && !poller->suspicious)
        slurm_poller_suspect(poller, "a job that had not ended is not there");
    if (!slurm_is_in_doubt(poller))
        slurm_cache_seen_gone(feed->cache, key, started_us);
    else if (feed->row->one != SLURM_JOB)
        feed->update_time = 0; /* the next list tells, and must not say "unchanged" */
}

/* False when it told nothing. */
static bool take_read(struct feed *feed, const char *key, const struct slurm_answer *answer)
{
    bool is_there = answer->error.class == SLURM_DONE;
    struct err why = { 0 };

    if (answer->error.class == SLURM_NOT_FOUND) {
        not_found(feed, key, answer->sent_us);
        return true;
    }
    if (is_there && found(feed, answer, &why) == 0)
        return true;
    slurm_feed_flawed(feed, is_there ? why.text : answer->error.text);
    return false;
}

static void on_read(void *context, const struct slurm_answer *answer)
{
    struct slurm_read *read = context;
    struct feed *feed = read->feed;
    bool well;

    slurm_feed_count(feed, answer);
    feed->stats.reads++;
    well = take_read(feed, read->key, answer);
    list_remove(&read->link);
    if (read->of_poll)
        slurm_jobs_read_ended(feed, read->key, well);
    mem_free(read);
}

static struct slurm_read *new_read(struct feed *feed, struct str key,
                                   const struct slurm_request *request, slurm_done done)
{
    struct slurm_read *read = mem_alloc(sizeof(*read) + key.len + 1);

    read->feed = feed;
    if (key.len > 0)
        memcpy(read->key, key.at, key.len);
    list_push_back(&feed->poller->reads, &read->link);
    read->call = slurm_send(feed->poller->client, request, done, read);
    return read;
}

void slurm_read_start(struct feed *feed, struct str key, bool of_poll)
{
    struct slurm_param flags = { "flags", STR("LOCAL") };
    struct slurm_request request = { .verb = SLURM_GET,
                                     .endpoint = feed->row->one,
                                     .name = key,
                                     .query = &flags,
                                     .query_count = feed->row->one == SLURM_JOB,
                                     .once = of_poll };

    new_read(feed, key, &request, on_read)->of_poll = of_poll;
}

bool slurm_read_is_under_way(const struct feed *feed, const char *key)
{
    list_each (const struct slurm_read, read, &feed->poller->reads, link)
        if (read->feed == feed && strcmp(read->key, key) == 0)
            return true;
    return false;
}

void slurm_reads_cancel(struct slurm_poller *poller)
{
    list_each (struct slurm_read, read, &poller->reads, link) {
        slurm_call_cancel(read->call);
        list_remove(&read->link);
        mem_free(read);
    }
}

void slurm_poller_read(struct slurm_poller *poller, enum slurm_feed feed, const char *key)
{
    slurm_read_start(&poller->feeds[feed], str_of(key), false);
}

void slurm_poller_wrote(struct slurm_poller *poller, enum slurm_feed feed, const char *key)
{
    slurm_cache_wrote(poller->feeds[feed].cache, key, loop_now_us(poller->loop));
    slurm_poller_read(poller, feed, key);
}
