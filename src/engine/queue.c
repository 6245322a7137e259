/* queue.c - keys in four states, each in the one structure that its state names:
 *
 *     WAITING       the ring of namespaces (whose turn it is) and the list by age
 *     DELAYED       the heap by due time
 *     BACKING_OFF   the same heap
 *     WORKING       nowhere: the taker has it
 *
 * Holds: a key is known while it is in one of these states and forgotten at the end of work that
 * left nothing to do; a namespace is in the ring if and only if it has a waiting key. All
 * operations are O(1), or O(log n) where the heap is touched; order depends on calls and time
 * alone. */
#include "engine/queue.h"

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

enum { JITTER_PERCENT = 20 };

/* So that even the longest pause, jitter added, keeps to the maximum. */
static const int64_t longest_base_us = (int64_t)QUEUE_RETRY_MAX_US * 100 / (100 + JITTER_PERCENT);

struct space { /* a namespace with waiting keys */
    struct str name;
    struct list turn;  /* in queue->turns */
    struct list items; /* struct item */
};

struct item {
    struct str key;
    enum queue_state state;
    unsigned failures;
    int64_t since_us;
    int64_t waited_us; /* WORKING: how long it was WAITING before */

    struct space *space;      /* WAITING */
    struct list in_space;     /* WAITING */
    struct heap_node delayed; /* DELAYED, BACKING_OFF */
    int64_t due_us;           /* the same */
    int64_t floor_us;         /* BACKING_OFF: no addition brings it before this */

    bool added_again; /* WORKING: to be looked at again at the end */
    int64_t again_us; /* WORKING: the same, at this time; 0 = not asked for */
};

struct queue {
    struct loop *loop;
    struct rand *rand;
    void (*ready)(void *context);
    void *context;

    struct map items;  /* key -> struct item */
    struct map spaces; /* name -> struct space */
    struct list turns; /* struct space: the front one is next */
    struct heap delayed;
    size_t waiting, working;
    uint64_t added, retried, dropped;

    struct loop_timer timer;
    bool has_news; /* keys became due since ready was called */
};

static int compare_due(const struct heap_node *a, const struct heap_node *b)
{
    int64_t left = heap_item(a, const struct item, delayed)->due_us;
    int64_t right = heap_item(b, const struct item, delayed)->due_us;

    return (left > right) - (left < right);
}

static void free_item(void *value)
{
    struct item *item = value;

    mem_free((char *)item->key.at);
    mem_free(item);
}

static void free_space(void *value)
{
    struct space *space = value;

    mem_free((char *)space->name.at);
    mem_free(space);
}

struct queue *queue_new(struct loop *loop, struct rand *rand, size_t max_keys,
                        void (*ready)(void *context), void *context)
{
    struct queue *queue = mem_alloc(sizeof(*queue));

    queue->loop = loop;
    queue->rand = rand;
    queue->ready = ready;
    queue->context = context;
    map_init(&queue->items, &(struct map_options){
                                .max = max_keys, .borrow_keys = true, .free_value = free_item });
    map_init(&queue->spaces, &(struct map_options){
                                 .max = max_keys, .borrow_keys = true, .free_value = free_space });
    list_init(&queue->turns);
    heap_init(&queue->delayed, compare_due, max_keys);
    return queue;
}

void queue_free(struct queue *queue)
{
    if (!queue)
        return;
    loop_timer_stop(&queue->timer);
    heap_done(&queue->delayed);
    map_done(&queue->items);
    map_done(&queue->spaces);
    mem_free(queue);
}

/* ---- telling the owner ---- */

static void on_timer(void *context);

/* Wakes us at once for news, else for the first delayed key. */
static void set_timer(struct queue *queue)
{
    const struct heap_node *first = heap_first(&queue->delayed);
    int64_t now_us = loop_now_us(queue->loop);
    int64_t due_us = INT64_MAX;

    if (first)
        due_us = heap_item(first, const struct item, delayed)->due_us;
    if (queue->has_news && due_us > now_us)
        due_us = now_us;

    if (due_us == INT64_MAX)
        loop_timer_stop(&queue->timer);
    else if (!loop_timer_is_armed(&queue->timer) || queue->timer.due_us > due_us)
        loop_timer_start(queue->loop, &queue->timer, due_us - now_us, on_timer, queue);
}

/* ---- moving between states ---- */

static struct space *space_of(struct queue *queue, struct str key)
{
    struct str name = STR(""), rest;

    str_cut(key, '/', &name, &rest);

    struct space *space = map_get(&queue->spaces, name);

    if (space)
        return space;
    space = mem_alloc(sizeof(*space));
    space->name = (struct str){ mem_strndup(name.at, name.len), name.len };
    list_init(&space->items);
    list_push_back(&queue->turns, &space->turn);
    map_put(&queue->spaces, space->name, space, NULL); /* never more spaces than keys */
    return space;
}

static void enter_waiting(struct queue *queue, struct item *item)
{
    item->state = QUEUE_WAITING;
    item->since_us = loop_now_us(queue->loop);
    item->space = space_of(queue, item->key);
    list_push_back(&item->space->items, &item->in_space);
    queue->waiting++;
    queue->has_news = true;
}

static void leave_waiting(struct queue *queue, struct item *item)
{
    list_remove(&item->in_space);
    if (list_is_empty(&item->space->items)) {
        list_remove(&item->space->turn);
        map_remove(&queue->spaces, item->space->name);
    }
    item->space = NULL;
    queue->waiting--;
}

static void enter_delayed(struct queue *queue, struct item *item, enum queue_state state,
                          int64_t due_us)
{
    item->state = state;
    item->since_us = loop_now_us(queue->loop);
    item->due_us = due_us;
    heap_push(&queue->delayed, &item->delayed, NULL); /* has room for every key */
}

static void bring_forward(struct queue *queue, struct item *item, int64_t due_us)
{
    if (item->state == QUEUE_BACKING_OFF && due_us < item->floor_us)
        due_us = item->floor_us;
    if (due_us >= item->due_us)
        return;
    item->due_us = due_us;
    heap_update(&queue->delayed, &item->delayed);
}

static void promote_due(struct queue *queue)
{
    int64_t now_us = loop_now_us(queue->loop);
    struct heap_node *first;

    while ((first = heap_first(&queue->delayed))) {
        struct item *item = heap_item(first, struct item, delayed);

        if (item->due_us > now_us)
            break;
        heap_pop(&queue->delayed);
        enter_waiting(queue, item);
    }
}

static void on_timer(void *context)
{
    struct queue *queue = context;

    promote_due(queue);

    bool has_news = queue->has_news;

    queue->has_news = false;
    set_timer(queue);
    if (has_news)
        queue->ready(queue->context);
}

/* ---- adding ---- */

static int64_t time_after(const struct queue *queue, int64_t delay_us)
{
    int64_t due_us;

    if (__builtin_add_overflow(loop_now_us(queue->loop), delay_us, &due_us))
        return INT64_MAX - 1;
    return due_us;
}

static struct item *new_item(struct queue *queue, struct str key)
{
    struct item *item = mem_alloc(sizeof(*item));

    item->key = (struct str){ mem_strndup(key.at, key.len), key.len };
    if (map_put(&queue->items, item->key, item, NULL) < 0) {
        free_item(item);
        queue->dropped++;
        return NULL;
    }
    return item;
}

static void add_at(struct queue *queue, struct str key, int64_t due_us)
{
    struct item *item = map_get(&queue->items, key);

    queue->added++;
    if (!item) {
        item = new_item(queue, key);
        if (item)
            enter_delayed(queue, item, QUEUE_DELAYED, due_us);
        return;
    }
    switch (item->state) {
    case QUEUE_WAITING:
        break;
    case QUEUE_DELAYED:
    case QUEUE_BACKING_OFF:
        bring_forward(queue, item, due_us);
        break;
    case QUEUE_WORKING:
        if (item->again_us == 0 || item->again_us > due_us)
            item->again_us = due_us;
        break;
    }
}

void queue_add(struct queue *queue, struct str key)
{
    struct item *item = map_get(&queue->items, key);

    if (item && item->state == QUEUE_WORKING) {
        queue->added++;
        item->added_again = true;
        return;
    }
    add_at(queue, key, loop_now_us(queue->loop));
    promote_due(queue);
    set_timer(queue);
}

void queue_add_after(struct queue *queue, struct str key, int64_t delay_us)
{
    if (delay_us <= 0) {
        queue_add(queue, key);
        return;
    }
    add_at(queue, key, time_after(queue, delay_us));
    set_timer(queue);
}

/* ---- work ---- */

bool queue_take(struct queue *queue, struct str *ret_key)
{
    promote_due(queue);

    struct list *turn = list_first(&queue->turns);

    if (!turn)
        return false;

    struct space *space = list_item(turn, struct space, turn);
    struct item *item = list_item(list_first(&space->items), struct item, in_space);
    int64_t now_us = loop_now_us(queue->loop);

    list_remove(&space->turn);
    list_push_back(&queue->turns, &space->turn);
    leave_waiting(queue, item);
    item->state = QUEUE_WORKING;
    item->waited_us = now_us - item->since_us;
    item->since_us = now_us;
    item->added_again = false;
    item->again_us = 0;
    queue->working++;
    *ret_key = item->key;
    return true;
}

static struct item *end_work(struct queue *queue, struct str key)
{
    struct item *item = map_get(&queue->items, key);

    if (!item || item->state != QUEUE_WORKING) {
        fprintf(stderr, "queue: the end of work on " STR_FMT ", which nobody took\n", STR_ARG(key));
        abort(); /* two would work on one key */
    }
    queue->working--;
    return item;
}

void queue_done(struct queue *queue, struct str key)
{
    struct item *item = end_work(queue, key);

    item->failures = 0;
    if (item->added_again)
        enter_waiting(queue, item);
    else if (item->again_us != 0)
        enter_delayed(queue, item, QUEUE_DELAYED, item->again_us);
    else
        map_remove(&queue->items, item->key);
    set_timer(queue);
}

static int64_t back_off_us(struct queue *queue, unsigned failures)
{
    int64_t base_us = QUEUE_RETRY_MIN_US;

    for (unsigned i = 1; i < failures && base_us < longest_base_us; i++)
        base_us *= 2;
    if (base_us > longest_base_us)
        base_us = longest_base_us;
    return rand_jitter(queue->rand, base_us, JITTER_PERCENT);
}

void queue_failed(struct queue *queue, struct str key, int64_t not_before_us)
{
    struct item *item = end_work(queue, key);
    int64_t now_us = loop_now_us(queue->loop);
    int64_t pause_us;

    if (item->failures < UINT32_MAX)
        item->failures++;
    queue->retried++;
    pause_us = back_off_us(queue, item->failures);
    item->floor_us = now_us + (pause_us < QUEUE_CALM_US ? pause_us : QUEUE_CALM_US);
    if (item->floor_us < not_before_us)
        item->floor_us = not_before_us;
    enter_delayed(queue, item, QUEUE_BACKING_OFF,
                  not_before_us ? item->floor_us : now_us + pause_us);
    set_timer(queue);
}

void queue_put_back(struct queue *queue, struct str key)
{
    enter_waiting(queue, end_work(queue, key));
    set_timer(queue);
}

/* ---- looking in ---- */

void queue_stats(const struct queue *queue, struct queue_stats *ret_stats)
{
    *ret_stats = (struct queue_stats){
        .waiting = queue->waiting,
        .working = queue->working,
        .delayed = queue->delayed.count,
        .added = queue->added,
        .retried = queue->retried,
        .dropped = queue->dropped,
    };
}

unsigned queue_failures(const struct queue *queue, struct str key)
{
    const struct item *item = map_get(&queue->items, key);

    return item ? item->failures : 0;
}

int64_t queue_waited_us(const struct queue *queue, struct str key)
{
    const struct item *item = map_get(&queue->items, key);

    return item && item->state == QUEUE_WORKING ? item->waited_us : 0;
}

void queue_each(const struct queue *queue,
                void (*visit)(void *context, const struct queue_view *view), void *context)
{
    map_each (entry, &queue->items) {
        const struct item *item = entry->value;

        visit(context, &(struct queue_view){ .key = item->key,
                                             .state = item->state,
                                             .failures = item->failures,
                                             .since_us = item->since_us,
                                             .due_us = item->due_us });
    }
}
