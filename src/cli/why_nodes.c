/* why_nodes.c - which nodes of the job's partitions have room now, and what is wrong with the
 * others: a summary of what Slurm says of them. It is Slurm that decides. */
#include "cli/why_private.h"
#include "codec/quantity.h"

#include <inttypes.h>

enum { MAX_CAUSES = 8, MAX_CAUSE_TEXT = 120 };

struct cause { /* why some nodes have no room */
    const char *text;
    size_t count;
};

struct room {
    size_t total, free, busy, small;
    const char *why_small; /* of the first of them */
    struct cause causes[MAX_CAUSES];
    size_t cause_count, other;
};

static bool lists_one_of(struct str partitions, struct str wanted)
{
    struct str name;

    while (wanted.len > 0 && str_next(&wanted, ',', &name))
        if (text_lists(partitions, name))
            return true;
    return false;
}

static void count_cause(struct room *room, const char *text)
{
    for (size_t i = 0; i < room->cause_count; i++) {
        if (str_is(str_of(room->causes[i].text), text)) {
            room->causes[i].count++;
            return;
        }
    }
    if (room->cause_count == MAX_CAUSES)
        room->other++;
    else
        room->causes[room->cause_count++] = (struct cause){ text, 1 };
}

static int64_t total_of(const struct json *shares)
{
    struct json_iter iter = json_iter(shares);
    const struct json *share;
    struct str name;
    int64_t sum = 0;

    while (json_next_member(&iter, &name, &share))
        sum += json_i64_or(share, 0);
    return sum;
}

/* What each node must give, when the job takes so many nodes. */
static int64_t each(int64_t amount, int64_t nodes)
{
    return nodes > 1 ? (amount + nodes - 1) / nodes : amount;
}

/* Of this name; a name without a type stands for all its types. */
static int64_t count_gres(const struct json *gres, struct str wanted)
{
    struct json_iter iter = json_iter(gres);
    const struct json *count;
    struct str name, kind, type;
    int64_t sum = 0;

    while (json_next_member(&iter, &name, &count))
        if (str_eq(name, wanted) || (str_cut(name, ':', &kind, &type) && str_eq(kind, wanted)))
            sum += json_i64_or(count, 0);
    return sum;
}

static const char *memory_text(struct arena *arena, int64_t bytes)
{
    const struct quantity quantity = quantity_of_units(bytes, QUANTITY_BINARY_SI);
    auto_buf struct buf text;

    buf_init(&text, QUANTITY_TEXT_MAX);
    quantity_print(&quantity, &text);
    return arena_printf(arena, "%s memory", buf_text(&text));
}

/* NULL, or what the node lacks: of what is free now, or of all that it has. */
static const char *what_lacks(struct why *why, const struct json *node, bool now)
{
    const struct json *cpus = json_get(node, "cpus"), *memory = json_get(node, "memoryBytes");
    int64_t nodes = json_i64_or(json_get(why->job, "nodes"), 1);
    int64_t has_cpus = now ? json_i64_or(json_get(cpus, "idle"), 0) : total_of(cpus);
    int64_t has_memory = now ? json_i64_or(json_get(memory, "idle"), 0) : total_of(memory);
    struct json_iter iter = json_iter(json_get(why->job, "gres"));
    const struct json *wanted;
    struct str name;

    if (has_cpus < each(json_i64_or(json_get(why->job, "cpus"), 0), nodes))
        return arena_printf(why->arena, "%" PRId64 " cpus", has_cpus);
    if (has_memory < each(json_i64_or(json_get(why->job, "memoryBytes"), 0), nodes))
        return memory_text(why->arena, has_memory);
    while (json_next_member(&iter, &name, &wanted)) {
        int64_t count = count_gres(json_get(node, "gres"), name);

        if (now)
            count -= count_gres(json_get(node, "gresUsed"), name);
        if (count < each(json_i64_or(wanted, 0), nodes))
            return arena_printf(why->arena, "%" PRId64 " %s", count, text_plain(why->arena, name));
    }
    return NULL;
}

static void count_node(struct why *why, const struct json *node, struct room *room)
{
    struct str state = json_str(json_get(node, "state"));
    struct str reason = str_sub(json_str(json_get(node, "reason")), 0, MAX_CAUSE_TEXT);
    bool works = str_is(state, "idle") || str_is(state, "mixed") || str_is(state, "allocated") ||
                 str_is(state, "completing") || str_is(state, "planned");
    const char *lacks;

    room->total++;
    if (!works) {
        count_cause(room, reason.len > 0 ? arena_printf(why->arena, STR_FMT ": \"" STR_FMT "\"",
                                                        STR_ARG(state), STR_ARG(reason))
                                         : text_plain(why->arena, state));
    } else if ((lacks = what_lacks(why, node, false))) {
        room->small++;
        if (!room->why_small)
            room->why_small = lacks;
    } else if (what_lacks(why, node, true)) {
        room->busy++;
    } else {
        room->free++;
    }
}

/* What Kubernetes' rules leave, as the bridge decided it. */
static void add_decided(struct why *why)
{
    const struct json *nodes = json_get(why->facts->decision, "nodes");
    const char *others = why_text(why, nodes, "why");

    if (!json_exists(nodes)) {
        if (why->facts->pod && why->facts->no_decision[0])
            story_add(why->story, "nodes", "%s", why->facts->no_decision);
        return;
    }
    story_add(why->story, "nodes",
              "by Kubernetes' rules %" PRId64 " of %" PRId64 " fit, %" PRId64 " needed%s%s",
              json_i64_or(json_get(nodes, "fit"), 0), json_i64_or(json_get(nodes, "total"), 0),
              json_i64_or(json_get(nodes, "needed"), 0), others[0] ? "; the others: " : "", others);
}

void why_add_nodes(struct why *why)
{
    struct json_iter iter = json_iter(json_get(why->facts->nodes, "items"));
    struct str partitions = json_str(json_get(why->job, "partition"));
    struct room room = { .why_small = NULL };
    const struct json *node;
    auto_buf struct buf text;

    buf_init(&text, 4096);
    add_decided(why);
    if (!why->job)
        return;
    if (!why->facts->nodes) {
        story_add(why->story, "nodes", "the room on Slurm's nodes is %s", why->facts->no_nodes);
        return;
    }
    while (json_next_item(&iter, &node))
        if (lists_one_of(json_str(json_get(node, "partitions")), partitions))
            count_node(why, node, &room);
    buf_printf(&text, "in %s %zu of %zu have room now, %" PRId64 " needed",
               text_plain(why->arena, partitions), room.free, room.total,
               json_i64_or(json_get(why->job, "nodes"), 1));
    if (room.busy > 0)
        buf_printf(&text, "; %zu busy", room.busy);
    if (room.small > 0)
        buf_printf(&text, "; %zu too small (%s)", room.small, room.why_small);
    story_add(why->story, "nodes", "%s", buf_text(&text));
    for (size_t i = 0; i < room.cause_count; i++)
        story_add(why->story, "nodes", "%zu %s", room.causes[i].count, room.causes[i].text);
    if (room.other > 0)
        story_add(why->story, "nodes", "%zu out of service for other reasons", room.other);
}
