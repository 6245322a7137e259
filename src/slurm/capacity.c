/* capacity.c - nodes with what is taken of them, partitions with who waits there.
 *
 * What a job holds is a function of the job alone (holding_of), so a change takes away what the old
 * one held and adds what the next one holds. Jobs that have whole nodes need no rule: Slurm counts
 * all processors of the node as theirs.
 *
 * Holds: a node is kept as long as it is in the cache or something is taken of it; taken is the sum
 * over the live jobs and the reservations on it. */
#include "slurm/capacity.h"

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/host_set.h"
#include "codec/hostlist.h"
#include "slurm/gres.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SECOND_US = 1000000,
    LONGEST_CLOSED_US = 60 * SECOND_US,
    MAX_NAMES = 1 << 22,
    HOSTLIST_MEMORY = 64 << 20,
    ID_TEXT = 24,
    FEW_LOOKUPS = 32,
    KIB_SHIFT = 10,
};

struct part {
    size_t waiting;
    unsigned refusals;                /* in a row */
    int64_t closed_until_us;          /* loop time */
    char hint[HOSTLIST_MAX_NAME + 1]; /* the node where something fitted last */
};

struct amount {
    int64_t cpus, memory;
    unsigned users;
    const char *gres; /* "gres/gpu:a=2,gres/nic=1"; "" or NULL: none. Not summed up in a node */
};

struct gres_taken {
    int64_t count;
    char *name, *type; /* type "": Slurm chooses */
};

struct node {
    const struct slurm_node *slurm; /* the one in the cache; NULL */
    struct amount taken;
    struct gres_taken *gres;
    unsigned gres_count;
};

struct reserved {
    uint64_t number;
    char *node, *gres;
    struct amount amount;
    struct list link;
    char job[ID_TEXT]; /* "" until it is confirmed */
};

struct capacity {
    struct loop *loop;
    struct map nodes, parts; /* by name */
    struct list reserved;
    uint64_t generation, last_reserved;
};

static void *need_entry(struct map *map, struct str name, size_t size)
{
    void *value = map_get(map, name);

    if (value)
        return value;
    value = mem_alloc(size);
    if (map_put(map, name, value, NULL) < 0) {
        fprintf(stderr, "capacity: more than %d names\n", MAX_NAMES);
        abort();
    }
    return value;
}

static struct part *part_of(struct capacity *capacity, struct str name)
{
    return need_entry(&capacity->parts, name, sizeof(struct part));
}

static void free_node(void *value)
{
    struct node *node = value;

    for (unsigned i = 0; i < node->gres_count; i++) {
        mem_free(node->gres[i].name);
        mem_free(node->gres[i].type);
    }
    mem_free(node->gres);
    mem_free(node);
}

static void take_gres(struct node *node, const char *list, int sign)
{
    struct str rest = str_of(list), name, type;
    int64_t count;

    while (gres_next_requested(&rest, &name, &type, &count)) {
        unsigned at = 0;

        while (at < node->gres_count &&
               !(str_is(name, node->gres[at].name) && str_is(type, node->gres[at].type)))
            at++;
        if (at == node->gres_count) {
            node->gres = mem_resize_array(node->gres, ++node->gres_count, sizeof(*node->gres));
            node->gres[at] = (struct gres_taken){ 0, mem_strndup(name.at, name.len),
                                                  mem_strndup(type.at, type.len) };
        }
        node->gres[at].count += sign * (count < 0 ? INT32_MAX : count);
    }
}

/* Takes an amount of a node, or with sign -1 gives it back. */
static void take(struct capacity *capacity, struct str name, struct amount amount, int sign)
{
    struct node *node = need_entry(&capacity->nodes, name, sizeof(*node));

    node->taken.cpus += sign * amount.cpus;
    node->taken.memory += sign * amount.memory;
    node->taken.users = sign > 0 ? node->taken.users + 1 : node->taken.users - 1;
    if (amount.gres)
        take_gres(node, amount.gres, sign);
    if (!node->slurm && node->taken.users == 0)
        map_remove(&capacity->nodes, name);
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

/* Whether a refused submit is worth another try. */
static bool is_news(const struct slurm_node *old, const struct slurm_node *next)
{
    return !old || !next ||
           !(old->state.known & out_of_service) != !(next->state.known & out_of_service) ||
           old->cpus != next->cpus || old->effective_cpus != next->effective_cpus ||
           old->real_memory != next->real_memory ||
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
    const struct slurm_node *next = next_object ? slurm_node_of(next_object) : NULL;
    const struct slurm_object *either = next_object ? next_object : old_object;
    struct node *node;

    assert(either);
    if (is_news(old_object ? slurm_node_of(old_object) : NULL, next))
        capacity->generation++;
    node = need_entry(&capacity->nodes, str_of(either->key), sizeof(*node));
    node->slurm = next;
    if (!next && node->taken.users == 0)
        map_remove(&capacity->nodes, str_of(either->key));
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

/* What a job has of each of its nodes. */
static struct amount holding_of(const struct slurm_job *job)
{
    int64_t nodes = job->node_count > 1 ? job->node_count : 1;
    int64_t memory = memory_of_tres(job->tres_alloc);

    memory =
        memory >= 0 ? (memory + nodes - 1) / nodes : slurm_number_or(job->memory_per_node, 0, 0);
    return (struct amount){ .cpus = (job->cpus + nodes - 1) / nodes,
                            .memory = memory,
                            .gres = job->tres_per_node };
}

static bool is_pending(const struct slurm_job *job)
{
    return slurm_words_has(&job->state, SLURM_JOB_PENDING);
}

/* How the reasons begin of those that nobody has to wait for; the last two are at a limit of their
 * account or QOS. */
static const char *const idle_reasons[] = {
    "JobHeld", "Dependency", "BeginTime", "Assoc", "QOS",
};

static bool waits(const struct slurm_job *job)
{
    if (!is_pending(job) || job->hold || slurm_job_has_ended(&job->state) ||
        slurm_words_has(&job->state, SLURM_JOB_CONFIGURING))
        return false; /* CONFIGURING: an allocation of ours whose nodes were not read yet */
    for (size_t i = 0; i < sizeof(idle_reasons) / sizeof(idle_reasons[0]); i++)
        if (str_starts(str_of(job->reason), str_of(idle_reasons[i])))
            return false;
    return true;
}

static void count_waiting(struct capacity *capacity, const struct slurm_job *job, int sign)
{
    struct str rest = str_of(job->partition), name;

    while (waits(job) && str_next(&rest, ',', &name))
        part_of(capacity, name)->waiting += (size_t)sign;
}

static void count_held(struct capacity *capacity, const struct slurm_job *job, int sign)
{
    auto_arena struct arena arena;
    const struct hostlist *list;
    struct hostlist_iter iter;
    struct str name;

    arena_init(&arena, HOSTLIST_MEMORY);
    if (!job->nodes[0] || slurm_job_has_ended(&job->state) || is_pending(job) ||
        hostlist_parse(&arena, str_of(job->nodes), HOSTLIST_MAX_NAMES, &list, NULL) < 0)
        return; /* the same both times */
    iter = hostlist_iter(list);
    while (hostlist_next(&iter, &name))
        take(capacity, name, holding_of(job), sign);
}

static void unreserve(struct capacity *capacity, struct reserved *reserved)
{
    list_remove(&reserved->link);
    take(capacity, str_of(reserved->node), reserved->amount, -1);
    mem_free(reserved->node);
    mem_free(reserved->gres);
    mem_free(reserved);
}

static void job_changed(void *context, const struct slurm_object *old_object,
                        const struct slurm_object *next_object)
{
    struct capacity *capacity = context;
    const struct slurm_job *old = old_object ? slurm_job_of(old_object) : NULL;
    const struct slurm_job *next = next_object ? slurm_job_of(next_object) : NULL;
    const struct slurm_object *either = next_object ? next_object : old_object;

    assert(either);
    if (!next || !is_pending(next))
        list_each (struct reserved, reserved, &capacity->reserved, link)
            if (strcmp(reserved->job, either->key) == 0)
                unreserve(capacity, reserved);
    if (next) { /* first, so that a node that stays is not forgotten between the two */
        count_waiting(capacity, next, 1);
        count_held(capacity, next, 1);
    }
    if (old) {
        count_waiting(capacity, old, -1);
        count_held(capacity, old, -1);
    }
}

/* ---- the view ---- */

struct capacity *capacity_new(struct loop *loop, struct slurm_cache *jobs,
                              struct slurm_cache *nodes)
{
    const struct map_options of_nodes = { .max = MAX_NAMES, .free_value = free_node };
    const struct map_options of_parts = { .max = MAX_NAMES, .free_value = mem_free };
    struct capacity *capacity = mem_alloc(sizeof(*capacity));

    capacity->loop = loop;
    capacity->generation = 1;
    map_init(&capacity->nodes, &of_nodes);
    map_init(&capacity->parts, &of_parts);
    list_init(&capacity->reserved);
    slurm_cache_listen(jobs, job_changed, capacity);
    slurm_cache_listen(nodes, node_changed, capacity);
    return capacity;
}

void capacity_free(struct capacity *capacity)
{
    if (!capacity)
        return;
    list_each (struct reserved, reserved, &capacity->reserved, link)
        unreserve(capacity, reserved);
    map_done(&capacity->nodes);
    map_done(&capacity->parts);
    mem_free(capacity);
}

uint64_t capacity_generation(const struct capacity *capacity)
{
    return capacity->generation;
}

size_t capacity_waiting(const struct capacity *capacity, const char *partition)
{
    const struct part *part = map_get(&capacity->parts, str_of(partition));

    return part ? part->waiting : 0;
}

/* Of submits that were refused side by side the first one counts. */
void capacity_refused(struct capacity *capacity, const char *partition)
{
    struct part *part = part_of(capacity, str_of(partition));
    int64_t now_us = loop_now_us(capacity->loop), pause_us;

    if (part->closed_until_us > now_us)
        return;
    pause_us = (int64_t)SECOND_US << part->refusals;
    if (pause_us < LONGEST_CLOSED_US)
        part->refusals++;
    part->closed_until_us = now_us + (pause_us < LONGEST_CLOSED_US ? pause_us : LONGEST_CLOSED_US);
}

void capacity_taken(struct capacity *capacity, const char *partition)
{
    part_of(capacity, str_of(partition))->refusals = 0;
}

/* ---- what fits ---- */

static struct amount size_of(const struct slurm_node *node)
{
    return (struct amount){ .cpus = node->effective_cpus > 0 ? node->effective_cpus : node->cpus,
                            .memory = node->real_memory - node->specialized_memory };
}

/* What Slurm shows as used may be old, and jobs may have asked in ways that are not counted here:
 * the larger of the two counts. */
static int64_t gres_left(const struct node *node, struct str name, struct str type)
{
    int64_t shown = gres_count(node->slurm->gres_used, name, type), taken = 0;

    for (unsigned i = 0; i < node->gres_count; i++)
        if (str_is(name, node->gres[i].name) &&
            (type.len == 0 || !node->gres[i].type[0] || str_is(type, node->gres[i].type)))
            taken += node->gres[i].count;
    return gres_count(node->slurm->gres, name, type) - (shown > taken ? shown : taken);
}

int64_t capacity_most(const struct capacity *capacity, const char *gres, const char *type,
                      const char **ret_node)
{
    int64_t most = 0;

    *ret_node = "";
    map_each (item, &capacity->nodes) {
        const struct slurm_node *node = ((const struct node *)item->value)->slurm;
        int64_t count = node ? gres_count(node->gres, str_of(gres), str_of(type)) : 0;

        if (node && count > most) {
            most = count;
            *ret_node = node->name;
        }
    }
    return most;
}

static bool gres_fits(const struct node *node, const char *list)
{
    struct str rest = str_of(list), name, type;
    int64_t count;

    while (gres_next_requested(&rest, &name, &type, &count))
        if (count < 0 || count > gres_left(node, name, type))
            return false;
    return true;
}

static bool node_fits(const struct node *node, const struct capacity_need *need)
{
    struct amount has;

    if (!node->slurm || (node->slurm->state.known & (out_of_service | not_at_once)) != 0 ||
        (need->exclusive && node->taken.users > 0))
        return false;
    has = size_of(node->slurm);
    return need->cpus <= has.cpus - node->taken.cpus &&
           need->memory <= has.memory - node->taken.memory && gres_fits(node, need->gres) &&
           slurm_partitions_have(node->slurm->partitions, str_of(need->partition));
}

/* The nodes that a job excludes. */
struct excluded {
    const char *text;
    const struct hostlist *list; /* NULL: there are none */
    struct host_set set;         /* made when many nodes are looked up */
    unsigned lookups;
};

/* A lookup in the list goes over all its patterns. Names of cloud nodes do not fold, so there may
 * be as many patterns as nodes. */
static bool is_excluded(struct excluded *excluded, struct arena *arena, const struct node *node)
{
    if (!excluded->list)
        return false;
    if (++excluded->lookups <= FEW_LOOKUPS)
        return hostlist_contains(excluded->list, str_of(node->slurm->name));
    if (excluded->set.count == 0)
        excluded->set = host_set_of(arena, excluded->text);
    return host_set_has(&excluded->set, node->slurm->name);
}

/* Where the job would fit: first looked for where something fitted last. NULL: nowhere. */
static const struct slurm_node *find(const struct capacity *capacity,
                                     const struct capacity_need *need)
{
    struct excluded excluded = { .text = need->excluded_nodes };
    auto_arena struct arena arena;
    const struct node *node;
    struct part *part;

    arena_init(&arena, HOSTLIST_MEMORY);
    part = map_get(&capacity->parts, str_of(need->partition));
    if (part && part->closed_until_us > loop_now_us(capacity->loop))
        return NULL;
    if (need->excluded_nodes[0] && hostlist_parse(&arena, str_of(need->excluded_nodes),
                                                  HOSTLIST_MAX_NAMES, &excluded.list, NULL) < 0)
        return NULL;
    node = part ? map_get(&capacity->nodes, str_of(part->hint)) : NULL;
    if (node && node_fits(node, need) && !is_excluded(&excluded, &arena, node))
        return node->slurm;
    map_each (item, &capacity->nodes) {
        node = item->value;
        if (!node_fits(node, need) || is_excluded(&excluded, &arena, node))
            continue;
        if (part)
            snprintf(part->hint, sizeof(part->hint), "%s", node->slurm->name);
        return node->slurm;
    }
    return NULL;
}

bool capacity_fits(const struct capacity *capacity, const struct capacity_need *need)
{
    return find(capacity, need) != NULL;
}

/* ---- reservations: as many as submits in flight ---- */

uint64_t capacity_reserve(struct capacity *capacity, const struct capacity_need *need)
{
    const struct slurm_node *node = find(capacity, need);
    struct reserved *reserved;

    if (!node)
        return 0;
    reserved = mem_alloc(sizeof(*reserved));
    reserved->number = ++capacity->last_reserved;
    reserved->node = mem_strdup(node->name);
    reserved->amount = need->exclusive
                           ? size_of(node)
                           : (struct amount){ .cpus = need->cpus, .memory = need->memory };
    reserved->gres = mem_strdup(need->gres);
    reserved->amount.gres = reserved->gres;
    take(capacity, str_of(reserved->node), reserved->amount, 1);
    list_push_back(&capacity->reserved, &reserved->link);
    return reserved->number;
}

void capacity_unreserve(struct capacity *capacity, uint64_t number)
{
    list_each (struct reserved, reserved, &capacity->reserved, link)
        if (reserved->number == number)
            unreserve(capacity, reserved);
}

void capacity_confirm(struct capacity *capacity, uint64_t number, int64_t job_id)
{
    char job[ID_TEXT];
    bool has_one = false;

    snprintf(job, sizeof(job), "%" PRId64, job_id);
    list_each (const struct reserved, reserved, &capacity->reserved, link)
        has_one |= strcmp(reserved->job, job) == 0;
    list_each (struct reserved, reserved, &capacity->reserved, link)
        if (reserved->number == number && has_one)
            unreserve(capacity, reserved);
        else if (reserved->number == number)
            snprintf(reserved->job, sizeof(reserved->job), "%s", job);
}
