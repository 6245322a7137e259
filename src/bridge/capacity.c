/* capacity.c - nodes with what is taken of them, partitions with their nodes and who waits there.
 *
 * What a job holds is a function of the job alone (holding_of), so a change takes away what the old
 * one held and adds what the next one holds. Jobs that have whole nodes need no rule: Slurm counts
 * all processors of the node as theirs.
 *
 * Holds: a place is there as long as its node is in the cache or something is taken of it; taken is
 * the sum over the live jobs on it and the promises on it. */
#include "bridge/capacity.h"

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/hostlist.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MAX_NAMES = 1 << 22,
    HOSTLIST_MEMORY = 64 << 20,
    ID_TEXT = 24,
    KIB_SHIFT = 10,
};

struct part {
    struct list links; /* struct link: its nodes */
    struct list *hint; /* where something fitted last; NULL or in links */
    size_t waiting;
    bool is_closed;
    size_t size; /* of links */
};

struct place;
struct link { /* one node in one partition */
    struct list in_part;
    struct part *part;
    struct place *place;
    struct link *next; /* of the same place */
};

struct amount {
    int64_t cpus, memory;
    unsigned users;
};

struct place {
    struct amount has, taken;
    struct link *parts;
    bool in_cache, is_usable;
    struct str name;
    char text[];
};

struct reserved {
    uint64_t number;
    struct place *place;
    struct amount amount;
    struct list link;
    char job[ID_TEXT]; /* "" until it is fulfilled */
};

struct capacity {
    struct map places, parts; /* by name */
    struct list reserved;
    struct map kept; /* promises by job id */
    uint64_t generation, last_reserved;
};

static const struct map_options by_own_name = { .max = MAX_NAMES, .borrow_keys = true };

static void put(struct map *map, struct str key, void *value)
{
    if (map_put(map, key, value, NULL) == 0)
        return;
    fprintf(stderr, "room: more than %d names\n", MAX_NAMES);
    abort();
}

/* ---- partitions ---- */

static struct part *part_of(struct capacity *capacity, struct str name)
{
    struct part *part = map_get(&capacity->parts, name);

    if (part)
        return part;
    part = mem_alloc(sizeof(*part));
    list_init(&part->links);
    put(&capacity->parts, name, part);
    return part;
}

static const struct part *find_part(const struct capacity *capacity, const char *name)
{
    return map_get(&capacity->parts, str_of(name));
}

static void leave_parts(struct place *place)
{
    while (place->parts) {
        struct link *link = place->parts;

        place->parts = link->next;
        if (link->part->hint == &link->in_part)
            link->part->hint = NULL;
        link->part->size--;
        list_remove(&link->in_part);
        mem_free(link);
    }
}

static void join_parts(struct capacity *capacity, struct place *place, const char *names)
{
    struct str rest = str_of(names), name;

    while (str_next(&rest, ',', &name)) {
        struct link *link;

        if (name.len == 0)
            continue;
        link = mem_alloc(sizeof(*link));
        *link =
            (struct link){ .part = part_of(capacity, name), .place = place, .next = place->parts };
        place->parts = link;
        link->part->size++;
        list_push_back(&link->part->links, &link->in_part);
    }
}

/* ---- places ---- */

static struct place *need_place(struct capacity *capacity, struct str name)
{
    struct place *place = map_get(&capacity->places, name);

    if (place)
        return place;
    place = mem_alloc(sizeof(*place) + name.len + 1);
    if (name.len > 0)
        memcpy(place->text, name.at, name.len);
    place->name = (struct str){ place->text, name.len };
    put(&capacity->places, place->name, place);
    return place;
}

static void free_place(struct place *place)
{
    leave_parts(place);
    mem_free(place);
}

static void drop_if_empty(struct capacity *capacity, struct place *place)
{
    if (place->in_cache || place->taken.users > 0)
        return;
    map_take(&capacity->places, place->name);
    free_place(place);
}

static void take(struct place *place, struct amount amount)
{
    place->taken.cpus += amount.cpus;
    place->taken.memory += amount.memory;
    place->taken.users++;
}

static void give_back(struct capacity *capacity, struct place *place, struct amount amount)
{
    place->taken.cpus -= amount.cpus;
    place->taken.memory -= amount.memory;
    place->taken.users--;
    drop_if_empty(capacity, place);
}

/* ---- nodes ---- */

#define STATE(name) (UINT64_C(1) << SLURM_NODE_##name)

/* In these a node starts no job, whatever it is. */
static const uint64_t out_of_service = STATE(UNKNOWN) | STATE(DOWN) | STATE(ERROR) | STATE(FUTURE) |
                                       STATE(DRAIN) | STATE(FAIL) | STATE(NOT_RESPONDING) |
                                       STATE(RESERVED) | STATE(MAINTENANCE) | STATE(POWERED_DOWN) |
                                       STATE(POWERING_DOWN) | STATE(BLOCKED) | STATE(INVALID_REG);
/* And in these not at once; they come and go, and are no news about the node. */
static const uint64_t not_at_once = STATE(PLANNED) | STATE(POWERING_UP);

static bool is_in_service(const struct slurm_node *node)
{
    return (node->state.known & out_of_service) == 0;
}

/* Whether a refused submit is worth another try. */
static bool is_news(const struct slurm_node *old, const struct slurm_node *next)
{
    return !old || !next || is_in_service(old) != is_in_service(next) || old->cpus != next->cpus ||
           old->effective_cpus != next->effective_cpus || old->real_memory != next->real_memory ||
           old->specialized_memory != next->specialized_memory || old->sockets != next->sockets ||
           old->cores != next->cores || old->threads != next->threads ||
           strcmp(old->features, next->features) != 0 ||
           strcmp(old->partitions, next->partitions) != 0 || strcmp(old->gres, next->gres) != 0 ||
           strcmp(old->topology, next->topology) != 0;
}

static void node_changed(void *context, const struct slurm_object *old_object,
                         const struct slurm_object *next_object)
{
    struct capacity *capacity = context;
    const struct slurm_node *old = old_object ? slurm_node_of(old_object) : NULL;
    const struct slurm_node *next = next_object ? slurm_node_of(next_object) : NULL;
    const struct slurm_object *either = next_object ? next_object : old_object;
    struct place *place;

    assert(either);
    place = need_place(capacity, str_of(either->key));
    if (is_news(old, next))
        capacity->generation++;
    if (!old || !next || strcmp(old->partitions, next->partitions) != 0) {
        leave_parts(place);
        join_parts(capacity, place, next ? next->partitions : "");
    }
    place->in_cache = next != NULL;
    place->is_usable = next && is_in_service(next) && (next->state.known & not_at_once) == 0;
    if (next) {
        place->has.cpus = next->effective_cpus > 0 ? next->effective_cpus : next->cpus;
        place->has.memory = next->real_memory - next->specialized_memory;
    }
    drop_if_empty(capacity, place);
}

/* ---- jobs ---- */

/* "cpu=4,mem=1.50G,node=1": in MiB, rounded up; -1 when it names none. */
static int64_t memory_of_tres(const char *tres)
{
    struct str rest = str_of(tres), part, key, value;
    uint64_t whole;

    while (str_next(&rest, ',', &part)) {
        struct str number, fraction;
        char unit;

        if (!str_cut(part, '=', &key, &value) || !str_is(key, "mem") || value.len < 2)
            continue;
        unit = value.at[value.len - 1];
        number = str_sub(value, 0, value.len - 1);
        bool has_fraction = str_cut(number, '.', &number, &fraction);

        if (str_to_u64(number, 0, UINT64_C(1) << 30, &whole, NULL) < 0)
            return -1;
        whole += has_fraction;
        switch (unit) {
        case 'T':
            return (int64_t)(whole << 2 * KIB_SHIFT);
        case 'G':
            return (int64_t)(whole << KIB_SHIFT);
        case 'M':
            return (int64_t)whole;
        default:
            return (int64_t)(whole >> KIB_SHIFT) + 1;
        }
    }
    return -1;
}

static int64_t share(int64_t amount, int64_t nodes)
{
    return (amount + nodes - 1) / nodes;
}

/* What a job has of each of its nodes. */
static struct amount holding_of(const struct slurm_job *job)
{
    int64_t nodes = job->node_count > 1 ? job->node_count : 1;
    int64_t memory = memory_of_tres(job->tres_alloc);

    memory = memory >= 0 ? share(memory, nodes) : slurm_number_or(job->memory_per_node, 0, 0);
    return (struct amount){ .cpus = share(job->cpus, nodes), .memory = memory };
}

static bool has_state(const struct slurm_job *job, enum slurm_job_state state)
{
    return slurm_words_has(&job->state, state);
}

static bool holds_nodes(const struct slurm_job *job)
{
    return job->nodes[0] && !slurm_job_has_ended(&job->state) && !has_state(job, SLURM_JOB_PENDING);
}

/* How the reasons begin of those that nobody has to wait for; the last two are at a limit of their
 * account or QOS. */
static const char *const idle_reasons[] = {
    "JobHeld", "Dependency", "BeginTime", "Assoc", "QOS",
};

static bool waits(const struct slurm_job *job)
{
    if (!has_state(job, SLURM_JOB_PENDING) || job->hold || has_state(job, SLURM_JOB_CONFIGURING) ||
        slurm_job_has_ended(&job->state))
        return false; /* CONFIGURING: an allocation of ours whose nodes were not read yet */
    for (size_t i = 0; i < sizeof(idle_reasons) / sizeof(idle_reasons[0]); i++)
        if (str_starts(str_of(job->reason), str_of(idle_reasons[i])))
            return false;
    return true;
}

static void count_waiting(struct capacity *capacity, const struct slurm_job *job, bool more)
{
    struct str rest = str_of(job->partition), name;

    while (str_next(&rest, ',', &name)) {
        struct part *part = part_of(capacity, name);

        part->waiting = more ? part->waiting + 1 : part->waiting - 1;
    }
}

static void count_held(struct capacity *capacity, const struct slurm_job *job, bool more)
{
    struct amount amount = holding_of(job);
    auto_arena struct arena arena;
    const struct hostlist *list;
    struct hostlist_iter iter;
    struct str name;

    arena_init(&arena, HOSTLIST_MEMORY);
    if (hostlist_parse(&arena, str_of(job->nodes), HOSTLIST_MAX_NAMES, &list, NULL) < 0)
        return; /* the same both times */
    iter = hostlist_iter(list);
    while (hostlist_next(&iter, &name)) {
        struct place *place = need_place(capacity, name);

        if (more)
            take(place, amount);
        else
            give_back(capacity, place, amount);
    }
}

static bool same_holding(const struct slurm_job *old, const struct slurm_job *next)
{
    struct amount a, b;

    if (!holds_nodes(old) || !holds_nodes(next) || strcmp(old->nodes, next->nodes) != 0)
        return false;
    a = holding_of(old);
    b = holding_of(next);
    return a.cpus == b.cpus && a.memory == b.memory;
}

static void drop_reserved(struct capacity *capacity, const char *job_key)
{
    struct reserved *reserved = map_get(&capacity->kept, str_of(job_key));

    if (reserved)
        capacity_unreserve(capacity, reserved->number);
}

static void job_changed(void *context, const struct slurm_object *old_object,
                        const struct slurm_object *next_object)
{
    struct capacity *capacity = context;
    const struct slurm_job *old = old_object ? slurm_job_of(old_object) : NULL;
    const struct slurm_job *next = next_object ? slurm_job_of(next_object) : NULL;

    const struct slurm_object *either = next_object ? next_object : old_object;

    assert(either);
    if (!next || !has_state(next, SLURM_JOB_PENDING))
        drop_reserved(capacity, either->key);
    if (old && waits(old))
        count_waiting(capacity, old, false);
    if (next && waits(next))
        count_waiting(capacity, next, true);
    if (old && next && same_holding(old, next))
        return;
    if (old && holds_nodes(old))
        count_held(capacity, old, false);
    if (next && holds_nodes(next))
        count_held(capacity, next, true);
}

/* ---- the room ---- */

struct capacity *capacity_new(struct slurm_cache *jobs, struct slurm_cache *nodes)
{
    struct map_options parts = { .max = MAX_NAMES, .free_value = mem_free };
    struct capacity *capacity = mem_alloc(sizeof(*capacity));

    capacity->generation = 1;
    map_init(&capacity->places, &by_own_name);
    map_init(&capacity->parts, &parts);
    map_init(&capacity->kept, &by_own_name);
    list_init(&capacity->reserved);
    slurm_cache_listen(jobs, job_changed, capacity);
    slurm_cache_listen(nodes, node_changed, capacity);
    return capacity;
}

void capacity_free(struct capacity *capacity)
{
    if (!capacity)
        return;
    map_done(&capacity->kept);
    list_each (struct reserved, reserved, &capacity->reserved, link)
        mem_free(reserved);
    map_each (item, &capacity->places)
        free_place(item->value);
    map_done(&capacity->places);
    map_done(&capacity->parts);
    mem_free(capacity);
}

uint64_t capacity_generation(const struct capacity *capacity)
{
    return capacity->generation;
}

size_t capacity_waiting(const struct capacity *capacity, const char *partition)
{
    const struct part *part = find_part(capacity, partition);

    return part ? part->waiting : 0;
}

void capacity_close(struct capacity *capacity, const char *partition)
{
    part_of(capacity, str_of(partition))->is_closed = true;
}

void capacity_open(struct capacity *capacity, const char *partition)
{
    part_of(capacity, str_of(partition))->is_closed = false;
}

/* ---- what fits ---- */

static bool is_said(const char *text)
{
    return text && text[0];
}

static bool is_simple(const struct job_desc *desc)
{
    return is_said(desc->partition) && !strchr(desc->partition, ',') && !is_said(desc->gres) &&
           !is_said(desc->constraints) && !is_said(desc->licenses) && !is_said(desc->reservation) &&
           !is_said(desc->required_nodes) && desc->nodes <= 1 && desc->min_nodes <= 1 &&
           desc->max_nodes <= 1;
}

static int64_t at_least(int64_t value, int64_t least)
{
    return value > least ? value : least;
}

static struct amount need_of(const struct job_desc *desc)
{
    int64_t tasks = at_least(desc->tasks_per_node, 1), each = at_least(desc->cpus_per_task, 1);
    bool is_absurd = tasks > INT32_MAX || each > INT32_MAX;

    return (struct amount){ .cpus = is_absurd ? INT64_MAX / 2 : tasks * each,
                            .memory = at_least(desc->memory, 0) };
}

static bool place_fits(const struct place *place, const struct job_desc *desc, struct amount need,
                       const struct hostlist *excluded)
{
    if (!place->is_usable || (desc->exclusive && place->taken.users > 0))
        return false;
    if (need.cpus > place->has.cpus - place->taken.cpus ||
        need.memory > place->has.memory - place->taken.memory)
        return false;
    return !excluded || !hostlist_contains(excluded, place->name);
}

/* Goes round once, from where something fitted last. */
static struct place *scan(struct part *part, const struct job_desc *desc,
                          const struct hostlist *excluded)
{
    struct amount need = need_of(desc);
    struct list *at = part->hint ? part->hint : part->links.next;

    for (size_t i = 0; i < part->size; i++, at = at->next) {
        if (at == &part->links) /* the head is no node */
            at = at->next;

        struct place *place = list_item(at, struct link, in_part)->place;

        if (place_fits(place, desc, need, excluded)) {
            part->hint = at;
            return place;
        }
    }
    return NULL;
}

static struct place *find(const struct capacity *capacity, const struct job_desc *desc)
{
    const struct hostlist *excluded = NULL;
    auto_arena struct arena arena;
    struct part *part;

    arena_init(&arena, HOSTLIST_MEMORY);
    if (!is_simple(desc))
        return NULL;
    part = map_get(&capacity->parts, str_of(desc->partition));
    if (!part || part->is_closed)
        return NULL;
    if (is_said(desc->excluded_nodes) && hostlist_parse(&arena, str_of(desc->excluded_nodes),
                                                        HOSTLIST_MAX_NAMES, &excluded, NULL) < 0)
        return NULL;
    return scan(part, desc, excluded);
}

bool capacity_fits(const struct capacity *capacity, const struct job_desc *desc)
{
    return find(capacity, desc) != NULL;
}

/* ---- promises ---- */

uint64_t capacity_reserve(struct capacity *capacity, const struct job_desc *desc)
{
    struct place *place = find(capacity, desc);
    struct reserved *reserved;

    if (!place)
        return 0;
    reserved = mem_alloc(sizeof(*reserved));
    reserved->number = ++capacity->last_reserved;
    reserved->place = place;
    reserved->amount = need_of(desc);
    if (desc->exclusive)
        reserved->amount = (struct amount){ .cpus = place->has.cpus, .memory = place->has.memory };
    take(place, reserved->amount);
    list_push_back(&capacity->reserved, &reserved->link);
    return reserved->number;
}

static struct reserved *find_reserved(const struct capacity *capacity, uint64_t number)
{
    list_each (struct reserved, reserved, &capacity->reserved, link)
        if (reserved->number == number) /* there are as many as submits in flight */
            return reserved;
    return NULL;
}

void capacity_unreserve(struct capacity *capacity, uint64_t number)
{
    struct reserved *reserved = find_reserved(capacity, number);

    if (!reserved)
        return;
    if (reserved->job[0])
        map_remove(&capacity->kept, str_of(reserved->job));
    list_remove(&reserved->link);
    give_back(capacity, reserved->place, reserved->amount);
    mem_free(reserved);
}

void capacity_confirm(struct capacity *capacity, uint64_t number, int64_t job_id)
{
    struct reserved *reserved = find_reserved(capacity, number);

    if (!reserved)
        return;
    snprintf(reserved->job, sizeof(reserved->job), "%" PRId64, job_id);
    if (map_has(&capacity->kept, str_of(reserved->job))) {
        reserved->job[0] = '\0';
        capacity_unreserve(capacity, number);
        return;
    }
    put(&capacity->kept, str_of(reserved->job), reserved);
}
