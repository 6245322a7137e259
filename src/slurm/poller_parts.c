/* poller_parts.c - states of parts: tasks of job arrays and components of heterogeneous jobs.
 *
 * They are named "7_2", "7_[1-3]" or "8+1". What stands in front is the id of the record itself (of
 * an array: each task that has started has one, those that wait share one), so that a part is a job
 * as any other; several items may name one record. Should one id be named in several states at
 * once, then it stands for a whole array: it is read, with all that belongs to it, when any of its
 * items has changed, and a list tells what has gone with it.
 *
 * Holds: whatever arrays do, states and reads of other jobs go on. */
#include "base/mem.h"
#include "slurm/poller_private.h"

struct job_part {
    int64_t id;
    uint64_t round; /* that named it last */
    uint64_t state; /* by its first item in that round */
    uint64_t hash;  /* of all its items in that round */
    uint64_t known; /* the hash with which it was read last; 0: not yet */
    bool is_array;  /* was named in several states at once */
    char key[];
};

static int64_t record_id(struct str name)
{
    size_t digits = 0;
    uint64_t id = 0;

    while (digits < name.len && name.at[digits] >= '0' && name.at[digits] <= '9')
        digits++;
    if (str_to_u64(str_sub(name, 0, digits), 1, INT64_MAX, &id, NULL) < 0)
        return 0;
    return (int64_t)id;
}

static struct job_part *need_part(struct map *parts, int64_t id, struct str key)
{
    struct job_part *part = map_get(parts, key);

    if (part)
        return part;
    part = mem_alloc(sizeof(*part) + key.len + 1);
    part->id = id;
    memcpy(part->key, key.at, key.len);
    if (map_put(parts, str_of(part->key), part, NULL) == 0)
        return part;
    mem_free(part);
    return NULL;
}

static void begin_round(struct feed *feed, struct job_part *part, uint64_t state)
{
    struct slurm_entry *entry = slurm_entry_find(feed->cache, str_of(part->key));

    part->round = feed->poller->jobs.round;
    part->state = state;
    part->hash = 0;
    if (entry)
        entry->round = part->round;
}

int64_t slurm_part_note(struct feed *feed, const struct slurm_brief *brief)
{
    const uint64_t secret[2] = { brief->state, 0 };
    struct job_poll *jobs = &feed->poller->jobs;
    int64_t id = record_id(brief->id);
    struct job_part *part = NULL;
    char text[SLURM_ID_TEXT];
    bool is_first;

    if (id > 0)
        part = need_part(&jobs->parts, id, slurm_id_key(id, text));
    if (!part) { /* a name of no kind that we know, or too many */
        jobs->wants_list = true;
        return 0;
    }
    is_first = part->round != jobs->round;
    if (is_first)
        begin_round(feed, part, brief->state);
    part->hash += map_hash(brief->id, secret) | 1;
    if (part->state != brief->state)
        part->is_array = true;
    return is_first && !part->is_array ? id : 0;
}

bool slurm_part_is_named(const struct slurm_poller *poller, const struct slurm_object *job)
{
    return map_has(&poller->jobs.parts, str_of(job->key));
}

void slurm_part_unread(struct slurm_poller *poller, const char *key)
{
    struct job_part *part = map_get(&poller->jobs.parts, str_of(key));

    if (part)
        part->known = 0;
}

static bool is_shown(const struct feed *feed, const struct job_part *part)
{
    const struct slurm_entry *entry = slurm_entry_find(feed->cache, str_of(part->key));

    return entry && entry->object;
}

static bool has_changed(const struct feed *feed, const struct job_part *part)
{
    const struct slurm_entry *entry = slurm_entry_find(feed->cache, str_of(part->key));

    return part->hash != part->known &&
           (!entry || slurm_entry_newest(feed->cache, entry) <= feed->started_us) &&
           !slurm_read_is_under_way(feed, part->key);
}

static bool is_wanted(const struct job_poll *jobs, int64_t id)
{
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->reads[i].id == id)
            return true;
    return false;
}

void slurm_parts_compare(struct feed *feed)
{
    struct job_poll *jobs = &feed->poller->jobs;

    map_each (item, &jobs->parts) {
        struct job_part *part = item->value;

        if (!part->is_array || part->round != jobs->round || !has_changed(feed, part))
            continue;
        part->known = part->hash;
        if (!is_wanted(jobs, part->id))
            slurm_jobs_want_read(jobs, part->id, false);
    }
}

void slurm_parts_forget(struct feed *feed)
{
    struct job_poll *jobs = &feed->poller->jobs;

    map_each (item, &jobs->parts) {
        struct job_part *part = item->value;

        if (part->round == jobs->round || is_shown(feed, part))
            continue;
        if (part->is_array)
            jobs->wants_list = true; /* nothing else tells which records went with it */
        map_remove(&jobs->parts, item->key);
    }
}
