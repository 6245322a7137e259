/* poller_start.c - jobs that have started: their nodes alone are read, which is cheap.
 *
 * Nodes do not show whose job it is. So what was read waits until slurmctld's boot time, asked for
 * after it, is seen to be the one that was known before the job was: then no other job can have its
 * id. One such look serves all that were read before it.
 *
 * Holds: a job whose nodes cannot be read, or believed, is read whole, or by the list after a
 * suspicion. */
#include "slurm/object_private.h"

#include "base/mem.h"
#include "slurm/poller_private.h"

enum {
    LOOK_US = 100000, /* between looks at the boot time: in a burst one serves several */
    LOOK_REST = 3,    /* or so many times what the last one took: slurmrestd is busy then */
};

struct slurm_nodes_read {
    struct list link;
    struct slurm_poller *poller;
    struct slurm_call *call;
    char key[SLURM_ID_TEXT];
};

bool slurm_start_is_believable(const struct slurm_poller *poller, const struct slurm_entry *entry)
{
    return poller->boot_time != 0 && entry->seen_us > poller->boot_known_us;
}

/* A later round of states has shown it waiting: it was requeued, or the answer took its time. */
static bool is_outdated(const struct slurm_entry *entry, int64_t sent_us)
{
    return sent_us < entry->stated_us;
}

static struct slurm_cache *jobs_of(const struct slurm_poller *poller)
{
    return poller->feeds[SLURM_FEED_JOBS].cache;
}

/* ---- believing ---- */

static void look_at_boot_time(void *context);

static void forget(struct job_starts *starts)
{
    for (size_t i = 0; i < starts->count; i++) {
        slurm_object_unref(starts->at[i].job);
        json_doc_free(starts->at[i].layout);
    }
    starts->count = 0;
}

static void take_start(struct slurm_poller *poller, const struct job_start *start)
{
    const struct slurm_entry *entry = slurm_entry_find(jobs_of(poller), str_of(start->job->key));

    if (entry && is_outdated(entry, start->sent_us)) {
        slurm_poller_read(poller, SLURM_FEED_JOBS, start->job->key);
        return;
    }
    if (slurm_cache_seen(jobs_of(poller), start->job, start->sent_us) && start->layout)
        poller->options.layout_read(poller->options.context, slurm_job_of(start->job),
                                    json_root(start->layout));
}

static void rest(struct slurm_poller *poller, const struct slurm_answer *answer)
{
    int64_t now_us = loop_now_us(poller->loop);
    int64_t from_us = now_us + LOOK_REST * (now_us - answer->sent_us);

    if (!answer->error.unsent && from_us > poller->starts.look_from_us)
        poller->starts.look_from_us = from_us;
}

static void on_boot_time(void *context, const struct slurm_answer *answer)
{
    struct slurm_poller *poller = context;
    struct start_reads *starts = &poller->starts;

    starts->boot_call = NULL;
    rest(poller, answer);
    if (slurm_take_conf(poller, answer) && !slurm_is_in_doubt(poller))
        for (size_t i = 0; i < starts->checked.count; i++)
            take_start(poller, &starts->checked.at[i]);
    forget(&starts->checked);
    look_at_boot_time(poller);
}

static void look_at_boot_time(void *context)
{
    struct slurm_poller *poller = context;
    struct start_reads *starts = &poller->starts;
    int64_t now_us = loop_now_us(poller->loop);
    struct slurm_request request = { .verb = SLURM_GET, .endpoint = SLURM_CONF, .once = true };
    struct job_starts empty = starts->checked;

    if (starts->boot_call || starts->answered.count == 0)
        return;
    if (now_us < starts->look_from_us) {
        if (!loop_timer_is_armed(&starts->look_timer))
            loop_timer_start(poller->loop, &starts->look_timer, starts->look_from_us - now_us,
                             look_at_boot_time, poller);
        return;
    }
    starts->look_from_us = now_us + LOOK_US;
    starts->checked = starts->answered;
    starts->answered = empty;
    starts->boot_call = slurm_send(poller->client, &request, on_boot_time, poller);
}

/* ---- reading ---- */

static const char *join_nodes(struct arena *arena, const struct slurm_layout *layout)
{
    auto_buf struct buf names;

    buf_init(&names, SLURM_MAX_OBJECT_TEXT);
    for (size_t i = 0; i < layout->count; i++)
        buf_printf(&names, "%s%s", i > 0 ? "," : "", layout->nodes[i].name);
    return arena_strdup(arena, buf_text(&names));
}

static void keep(struct job_starts *starts, struct job_start start)
{
    if (starts->count == starts->capacity) {
        starts->capacity = starts->capacity ? 2 * starts->capacity : 16;
        starts->at = mem_resize_array(starts->at, starts->capacity, sizeof(*starts->at));
    }
    starts->at[starts->count++] = start;
}

/* False when the answer does not tell. */
static bool take_nodes(struct slurm_poller *poller, const char *key,
                       const struct slurm_answer *answer)
{
    const struct slurm_entry *entry = slurm_entry_find(jobs_of(poller), str_of(key));
    auto_arena struct arena arena;
    struct slurm_layout layout;

    arena_init(&arena, SLURM_LAYOUT_MEMORY);
    if (answer->error.class != SLURM_DONE || !entry || !entry->object ||
        !slurm_start_is_believable(poller, entry) || is_outdated(entry, answer->sent_us) ||
        slurm_layout_decode(&arena, answer->body, &layout, NULL) < 0 || layout.count == 0)
        return false;
    keep(&poller->starts.answered,
         (struct job_start){
             slurm_job_started(slurm_job_of(entry->object), join_nodes(&arena, &layout)),
             poller->options.layout_read ? json_clone(answer->body) : NULL, answer->sent_us });
    return true;
}

static void read_next(struct slurm_poller *poller);

static void on_nodes(void *context, const struct slurm_answer *answer)
{
    struct slurm_nodes_read *read = context;
    struct slurm_poller *poller = read->poller;
    struct feed *feed = &poller->feeds[SLURM_FEED_JOBS];

    poller->starts.reading--;
    slurm_feed_count(feed, answer);
    feed->stats.reads++;
    if (take_nodes(poller, read->key, answer))
        look_at_boot_time(poller);
    else
        slurm_poller_read(poller, SLURM_FEED_JOBS, read->key);
    list_remove(&read->link);
    mem_free(read);
    read_next(poller);
}

static void read_nodes(struct slurm_poller *poller, int64_t id)
{
    struct slurm_nodes_read *read = mem_alloc(sizeof(*read));
    struct slurm_request request = { .verb = SLURM_GET, .endpoint = SLURM_RESOURCES, .once = true };

    read->poller = poller;
    request.name = slurm_id_key(id, read->key);
    list_push_back(&poller->starts.reads, &read->link);
    poller->starts.reading++;
    read->call = slurm_send(poller->client, &request, on_nodes, read);
}

static void read_next(struct slurm_poller *poller)
{
    struct start_reads *starts = &poller->starts;

    while (starts->reading < SLURM_STARTS_AT_ONCE && starts->next < starts->count)
        read_nodes(poller, starts->ids[starts->next++]);
    if (starts->next == starts->count)
        starts->next = starts->count = 0;
}

/* Those that wait for their turn or their look are not read twice. */
static bool is_under_way(const struct start_reads *starts, int64_t id)
{
    char text[SLURM_ID_TEXT];
    struct str key = slurm_id_key(id, text);

    for (size_t i = starts->next; i < starts->count; i++)
        if (starts->ids[i] == id)
            return true;
    for (size_t i = 0; i < starts->answered.count; i++)
        if (slurm_job_of(starts->answered.at[i].job)->id == id)
            return true;
    for (size_t i = 0; i < starts->checked.count; i++)
        if (slurm_job_of(starts->checked.at[i].job)->id == id)
            return true;
    list_each (const struct slurm_nodes_read, read, &starts->reads, link)
        if (str_is(key, read->key))
            return true;
    return false;
}

void slurm_start_read(struct slurm_poller *poller, int64_t id)
{
    struct start_reads *starts = &poller->starts;

    if (is_under_way(starts, id))
        return;
    if (starts->count == starts->capacity) {
        starts->capacity = starts->capacity ? 2 * starts->capacity : 64;
        starts->ids = mem_resize_array(starts->ids, starts->capacity, sizeof(*starts->ids));
    }
    starts->ids[starts->count++] = id;
    read_next(poller);
}

void slurm_poller_started(struct slurm_poller *poller, const char *key)
{
    const struct slurm_entry *entry = slurm_entry_find(jobs_of(poller), str_of(key));

    if (poller->options.nodes_only && entry && entry->object &&
        slurm_start_is_believable(poller, entry))
        slurm_start_read(poller, slurm_job_of(entry->object)->id);
    else
        slurm_poller_read(poller, SLURM_FEED_JOBS, key);
}

void slurm_starts_done(struct slurm_poller *poller)
{
    struct start_reads *starts = &poller->starts;

    slurm_call_cancel(starts->boot_call);
    loop_timer_stop(&starts->look_timer);
    list_each (struct slurm_nodes_read, read, &starts->reads, link) {
        slurm_call_cancel(read->call);
        list_remove(&read->link);
        mem_free(read);
    }
    forget(&starts->answered);
    forget(&starts->checked);
    mem_free(starts->answered.at);
    mem_free(starts->checked.at);
    mem_free(starts->ids);
}
