/* nodeset_reservation.c - ScheduledUpdate: Slurm reserves the nodes of a NodeSet for maintenance.
 *
 * The reservation SlurmOperatorMaint-<NodeSet> is made once for a start time, changed while it has
 * not begun, and then only follows the nodes. It is deleted with the strategy, with the last worker
 * and with the NodeSet. One that repeats is made for its next time; Slurm moves it on. For which
 * start time and flags it was made stands on the NodeSet: one that is over is not made again, and
 * one whose flags change is deleted first, because Slurm takes few flags away from one that is
 * there. */
#include "codec/duration.h"
#include "codec/hostlist.h"
#include "codec/timestamp.h"
#include "operator/names.h"
#include "operator/nodeset.h"
#include "operator/slurm_actions.h"

#include <ctype.h>
#include <stdlib.h>

enum { MAX_FLAGS = 32, MAX_NODES_TEXT = 1 << 20, HOUR_S = 3600, DAY_S = 24 * HOUR_S };

struct wish {                 /* the reservation as it should be */
    const char *name, *nodes; /* nodes: a folded hostlist */
    const char *start_text, *flags_text;
    int64_t start_s, minutes; /* start_s: the next, of one that repeats */
    const char *flags[MAX_FLAGS];
    size_t flag_count;
};

/* ---- what is wanted ---- */

static bool wants_flag(const struct wish *wish, const char *flag)
{
    for (size_t i = 0; i < wish->flag_count; i++)
        if (strcmp(wish->flags[i], flag) == 0)
            return true;
    return false;
}

static void add_flag(struct wish *wish, const char *flag)
{
    if (!wants_flag(wish, flag) && wish->flag_count < MAX_FLAGS)
        wish->flags[wish->flag_count++] = flag;
}

static void read_flags(struct arena *arena, const struct json *list, struct wish *wish)
{
    struct json_iter iter = json_iter(list);
    auto_buf struct buf text = { .max = MAX_NODES_TEXT };
    const struct json *item;

    add_flag(wish, "MAINT");
    add_flag(wish, "IGNORE_JOBS");
    while (json_next_item(&iter, &item)) {
        char *flag = arena_strndup(arena, json_str(item).at, json_str(item).len);

        for (char *c = flag; *c; c++)
            *c = (char)toupper((unsigned char)*c);
        add_flag(wish, flag);
    }
    qsort(wish->flags, wish->flag_count, sizeof(wish->flags[0]), str_compare_texts);
    for (size_t i = 0; i < wish->flag_count; i++)
        buf_printf(&text, "%s%s", i > 0 ? "," : "", wish->flags[i]);
    wish->flags_text = arena_strdup(arena, buf_text(&text));
}

/* ---- one that repeats ---- */

/* Seconds; 0: it does not. */
static int64_t period_of(const struct wish *wish)
{
    static const struct {
        const char *flag;
        int64_t period_s;
    } rows[] = { { "HOURLY", HOUR_S },
                 { "DAILY", DAY_S },
                 { "WEEKDAY", DAY_S },
                 { "WEEKEND", DAY_S },
                 { "WEEKLY", 7 * (int64_t)DAY_S } };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (wants_flag(wish, rows[i].flag))
            return rows[i].period_s;
    return 0;
}

static bool is_on_weekend(int64_t seconds)
{
    int64_t day = (seconds / DAY_S + 4) % 7; /* 1970 began on a Thursday; 0: Sunday */

    return day == 0 || day == 6;
}

/* Slurm refuses a start in the past. */
static void move_to_next(struct wish *wish, int64_t now_s)
{
    int64_t period_s = period_of(wish);

    if (period_s == 0 || wish->start_s > now_s)
        return;
    wish->start_s += ((now_s - wish->start_s) / period_s + 1) * period_s;
    while ((wants_flag(wish, "WEEKDAY") && is_on_weekend(wish->start_s)) ||
           (wants_flag(wish, "WEEKEND") && !is_on_weekend(wish->start_s)))
        wish->start_s += DAY_S;
}

/* ---- all of it ---- */

/* The nodes that Slurm has of workers; "" for none. */
static const char *registered_nodes(const struct nodeset *nodeset)
{
    struct arena *arena = nodeset->sync.plan->arena;
    struct str *names = arena_alloc_array(arena, nodeset->count + 1, sizeof(*names));
    auto_buf struct buf text = { .max = MAX_NODES_TEXT };
    size_t count = 0;

    for (size_t i = 0; i < nodeset->count; i++)
        if (worker_is_live(&nodeset->workers[i]) && nodeset->workers[i].record &&
            nodeset->workers[i].knowledge != SLURM_ABSENT)
            names[count++] = str_of(nodeset->workers[i].slurm_name);
    if (count == 0 || hostlist_fold(names, count, &text, NULL) < 0 || text.overflowed)
        return "";
    return arena_strdup(arena, buf_text(&text));
}

const char *nodeset_reservation_name(const struct nodeset *nodeset)
{
    return arena_printf(nodeset->sync.plan->arena, RESERVATION_PREFIX "%s",
                        nodeset->sync.object->name);
}

bool nodeset_wants_reservation(const struct nodeset *nodeset)
{
    struct str type = json_str(json_at(nodeset->sync.spec, "updateStrategy", "type"));

    return nodeset->sync.object->deleted_us == 0 && str_is(type, "ScheduledUpdate") &&
           (nodeset->is_daemonset ? nodeset->slot_count > 0 : nodeset->replicas > 0);
}

/* False when a field of the spec cannot be read, or there is no node to reserve. */
static bool read_wish(const struct nodeset *nodeset, struct wish *ret_wish)
{
    const struct json *spec = json_at(nodeset->sync.spec, "updateStrategy", "scheduledUpdate");
    struct wish wish = { .name = nodeset_reservation_name(nodeset),
                         .nodes = registered_nodes(nodeset) };
    struct str start = json_str(json_get(spec, "startTime"));
    int64_t start_us, nanos;

    if (wish.nodes[0] == '\0' || timestamp_parse(start, &start_us, NULL) < 0 ||
        duration_parse(json_str_or(json_get(spec, "duration"), STR("30m")), &nanos, NULL) < 0)
        return false;
    wish.start_s = timestamp_to_seconds(start_us);
    wish.minutes = nanos / (60 * DURATION_SECOND);
    wish.start_text = arena_strndup(nodeset->sync.plan->arena, start.at, start.len);
    read_flags(nodeset->sync.plan->arena, json_get(spec, "flags"), &wish);
    move_to_next(&wish, timestamp_to_seconds(nodeset->sync.world->wall_us));
    *ret_wish = wish;
    return true;
}

/* ---- what is there ---- */

/* True when it is known; *ret_live is NULL when there is none. */
static bool read_live(const struct nodeset *nodeset, const struct slurm_reservation **ret_live)
{
    const char *name = nodeset_reservation_name(nodeset);
    const struct slurm_object *found;

    if (nodeset_slurm_trouble(nodeset) || !slurm_cache_is_synced(nodeset->facts->reservations) ||
        slurm_cache_is_behind(nodeset->facts->reservations, name))
        return false;
    found = slurm_cache_get(nodeset->facts->reservations, name);
    *ret_live = found ? slurm_reservation_of(found) : NULL;
    return true;
}

static struct str annotation(const struct nodeset *nodeset, const char *name)
{
    return kube_pairs_get(&nodeset->sync.object->annotations, name, NULL);
}

bool nodeset_has_reservation(const struct nodeset *nodeset)
{
    const struct slurm_reservation *live = NULL;

    return read_live(nodeset, &live) && live;
}

bool nodeset_may_have_reservation(const struct nodeset *nodeset)
{
    const struct slurm_reservation *live = NULL;

    return read_live(nodeset, &live)
               ? live != NULL
               : annotation(nodeset, ANNOTATION_RESERVATION_START).len > 0 ||
                     kube_object_has_finalizer(nodeset->sync.object, FINALIZER_RESERVATION);
}

static bool has_nodes(struct arena *arena, const struct slurm_reservation *live, const char *wanted)
{
    const struct hostlist *now, *then;
    struct hostlist_iter iter;
    struct str name;

    if (hostlist_parse(arena, str_of(live->nodes), HOSTLIST_MAX_NAMES, &now, NULL) < 0 ||
        hostlist_parse(arena, str_of(wanted), HOSTLIST_MAX_NAMES, &then, NULL) < 0 ||
        hostlist_count(now) != hostlist_count(then))
        return false;
    iter = hostlist_iter(then);
    while (hostlist_next(&iter, &name))
        if (!hostlist_contains(now, name))
            return false;
    return true;
}

/* Slurm moves a reservation that repeats to its next time. */
static bool repeats(const struct slurm_reservation *live)
{
    static const char *const words[] = { "HOURLY", "DAILY", "WEEKLY", "WEEKDAY", "WEEKEND" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (slurm_reservation_has(live, words[i]))
            return true;
    return false;
}

/* ---- what is done ---- */

static void put_number(struct json_build *build, struct json_mut *fields, const char *key,
                       int64_t number)
{
    json_put(build, fields, key, json_format(build, "{'set':true,'number':%l}", number));
}

static void plan_put(struct nodeset *nodeset, const struct wish *wish, int64_t start_s,
                     int64_t minutes)
{
    struct json_build *build = nodeset->sync.build;
    struct json_mut *fields = json_format(build, "{'name':%s,'users':['slurm'],'node_list':[%s]}",
                                          wish->name, wish->nodes);
    struct json_mut *flags = json_put_array(build, fields, "flags");

    put_number(build, fields, "start_time", start_s);
    put_number(build, fields, "duration", minutes);
    for (size_t i = 0; i < wish->flag_count; i++)
        json_push_str(build, flags, str_of(wish->flags[i]));
    plan_slurm_reservation_put(nodeset->sync.plan, nodeset->controller, wish->name, fields);
}

static void plan_mark(struct nodeset *nodeset, const struct wish *wish)
{
    const struct kube_object *object = nodeset->sync.object;

    plan_next_stage(nodeset->sync.plan);
    (void)plan_merge_patch(
        nodeset->sync.plan, nodeset->sync.world->nodesets, object->kind->resource, object->ns,
        object->name, NULL, NULL,
        json_format(nodeset->sync.build,
                    "{'metadata':{'uid':%s,'annotations':{'" ANNOTATION_RESERVATION_START "':%s,"
                    "'" ANNOTATION_RESERVATION_FLAGS "':%s}}}",
                    object->uid, wish->start_text, wish->flags_text));
}

static void plan_new(struct nodeset *nodeset, const struct wish *wish)
{
    plan_put(nodeset, wish, wish->start_s, wish->minutes);
    plan_mark(nodeset, wish);
}

/* A start in the past is forced once. */
static bool may_be_made(const struct nodeset *nodeset, const struct wish *wish)
{
    return wish->start_s > timestamp_to_seconds(nodeset->sync.world->wall_us) ||
           (wants_flag(wish, "FORCE_START") &&
            !str_is(annotation(nodeset, ANNOTATION_RESERVATION_START), wish->start_text));
}

/* Of one that has not begun. */
static void plan_change(struct nodeset *nodeset, const struct wish *wish,
                        const struct slurm_reservation *live)
{
    struct str start = annotation(nodeset, ANNOTATION_RESERVATION_START);
    struct str flags = annotation(nodeset, ANNOTATION_RESERVATION_FLAGS);
    bool is_moved = repeats(live) ? start.len > 0 && !str_is(start, wish->start_text)
                                  : live->start_time != wish->start_s;

    if (flags.len > 0 && !str_is(flags, wish->flags_text))
        plan_slurm_reservation_delete(nodeset->sync.plan, nodeset->controller, live->name);
    else if (is_moved && may_be_made(nodeset, wish))
        plan_new(nodeset, wish);
    else if (!has_nodes(nodeset->sync.plan->arena, live, wish->nodes))
        plan_put(nodeset, wish, live->start_time, wish->minutes);
    else if (start.len == 0 || flags.len == 0) /* another operator made it */
        plan_mark(nodeset, wish);
}

void nodeset_plan_reservation(struct nodeset *nodeset)
{
    const struct slurm_reservation *live = NULL;
    int64_t now_s = timestamp_to_seconds(nodeset->sync.world->wall_us);
    struct wish wish;

    if (!read_live(nodeset, &live))
        return;
    if (!nodeset_wants_reservation(nodeset)) {
        if (live)
            plan_slurm_reservation_delete(nodeset->sync.plan, nodeset->controller, live->name);
        return;
    }
    if (!read_wish(nodeset, &wish))
        return;
    if (!live) {
        if (may_be_made(nodeset, &wish))
            plan_new(nodeset, &wish);
    } else if (now_s < live->start_time || live->end_time <= now_s) {
        plan_change(nodeset, &wish, live);
    } else if (!has_nodes(nodeset->sync.plan->arena, live, wish.nodes)) {
        plan_put(nodeset, &wish, live->start_time, (live->end_time - live->start_time) / 60);
    } else if (annotation(nodeset, ANNOTATION_RESERVATION_START).len == 0) {
        plan_mark(nodeset, &wish);
    }
}
