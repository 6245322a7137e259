/* exclude.c - the nodes that Slurm must not give to a unit: those that Kubernetes does not have,
 * those that its rules leave out for one of the pods, and those that Slurm gave before and that
 * still do not fit. When Slurm gave nodes that fit each pod but not all of them together, or when
 * too few nodes fit all of the pods, the job may use only nodes that the bridge chose
 * (preselect.c).
 *
 * Holds: a name that Slurm does not know (any more) is never sent, because Slurm would refuse the
 * whole submit. */
#include "bridge/run/exclude.h"

#include "base/map.h"
#include "bridge/run/assign.h"
#include "bridge/unit/describe.h"
#include "codec/host_set.h"
#include "codec/hostlist.h"

#include <string.h>

enum {
    MAX_LISTS = 16,
    MAX_ASIDE = 64 << 20, /* a list of the longest text */
};

bool node_takes_pods(const struct kube_node *node)
{
    return !node->object.deleted_us && !node->unschedulable && node->ready;
}

const char *node_misfit(const struct bridge_world *world, struct filter_reserved *reserved,
                        struct arena *arena, const struct kube_pod *pod,
                        const struct kube_node *node, const char *slurm_name)
{
    if (!node)
        return arena_printf(arena, "slurm node matches no Kube nodes: %s", slurm_name);
    if (node->object.deleted_us)
        return arena_printf(arena, "node %s is being deleted", node->object.name);
    if (node->unschedulable)
        return arena_printf(arena, "node %s is cordoned", node->object.name);
    if (!node->ready)
        return arena_printf(arena, "node %s is not ready", node->object.name);
    return world->filter ? filter_misfit(world->filter, reserved, pod, node, arena) : NULL;
}

/* ---- devices ---- */

uint64_t node_devices_version(const struct bridge_world *world, const char *slurm_name)
{
    const struct kube_node *node = world_node_by_slurm_name(world, str_of(slurm_name));
    const struct slurm_node *record = world_slurm_node(world, str_of(slurm_name));
    const struct device_view view = world_device_view(world);
    const uint64_t secret[2] = { 0, 0 };
    auto_buf struct buf text = { .max = MAX_ASIDE };
    struct kube_index_walk walk;
    struct kube_cache_walk rules;
    const struct kube_object *slice;

    if (record)
        buf_printf(&text, "%s %s", record->gres, record->extra);
    if (node && view.slices) {
        walk = kube_cache_by(view.slices, view.indexes.slices_by_node, str_of(node->object.name));
        while ((slice = kube_index_next(&walk)) != NULL)
            buf_printf(&text, " %s:%s", slice->uid, slice->version);
    }
    rules = view.taint_rules ? kube_cache_walk(view.taint_rules) : (struct kube_cache_walk){ 0 };
    while (view.taint_rules && (slice = kube_cache_next(&rules)) != NULL)
        buf_printf(&text, " %s:%s", slice->uid, slice->version);
    return map_hash(buf_str(&text), secret) | 1; /* 0: of no devices */
}

bool do_devices_not_do(const struct bridge_world *world, const struct misfit *misfit)
{
    return misfit->why && world->facts.now_us < misfit->until_us &&
           node_devices_version(world, misfit->name) == misfit->devices;
}

/* ---- what is left out ---- */

struct names {
    struct arena *arena;
    struct str *at;
    size_t count, room;
};

static void add_name(struct names *names, struct str name)
{
    if (names->count == names->room) {
        size_t room = names->room > 0 ? names->room * 2 : 64;
        struct str *more = arena_alloc_array(names->arena, room, sizeof(*more));

        if (names->count > 0)
            memcpy(more, names->at, names->count * sizeof(*more));
        names->at = more;
        names->room = room;
    }
    names->at[names->count++] =
        (struct str){ arena_strndup(names->arena, name.at, name.len), name.len };
}

static void add_known(const struct bridge_world *world, struct names *names, const char *hosts)
{
    auto_arena struct arena aside;
    const struct hostlist *list;
    struct hostlist_iter iter;
    struct str name;

    arena_init(&aside, MAX_ASIDE);
    if (!hosts[0] || hostlist_parse(&aside, str_of(hosts), HOSTLIST_MAX_NAMES, &list, NULL) < 0)
        return;
    iter = hostlist_iter(list);
    while (hostlist_next(&iter, &name))
        if (world_slurm_node(world, name))
            add_name(names, name);
}

static bool has_name(const struct names *names, struct str name)
{
    for (size_t i = 0; i < names->count; i++)
        if (str_eq(names->at[i], name))
            return true;
    return false;
}

/* Nodes that Slurm gave before and that still do not fit. The filter lets these pass, because it
 * does not count what our own pods request and how a node is just now. Foreign nodes are left out
 * anyhow. if_it_fits: the reason against a node that fits by itself; NULL: it may be given. */
static void add_misfits(const struct bridge_world *world, const struct unit *unit,
                        struct names *names, struct exclusion *exclusion, const char *if_it_fits)
{
    for (unsigned i = 0; unit->state && i < unit->state->misfit_count; i++) {
        const struct misfit *misfit = &unit->state->misfits[i];
        struct str name = str_of(misfit->name);
        const struct kube_node *node = world_node_by_slurm_name(world, name);
        const char *why;

        if (!node || !world_slurm_node(world, name) || has_name(names, name))
            continue;
        why = node_misfit(world, NULL, names->arena, unit->pod, node, name.at);
        if (!why && world_has_pod_without_job(world, node->object.name))
            why = arena_printf(names->arena,
                               "node %s: a pod whose job Slurm has forgotten runs there",
                               node->object.name);
        if (!why && do_devices_not_do(world, misfit))
            why = misfit->why;
        if (!why && !(why = if_it_fits))
            continue;
        add_name(names, name);
        exclusion->fit -= exclusion->fit > 0;
        exclusion->why = arena_printf(names->arena, "%s%s%s", exclusion->why,
                                      exclusion->why[0] ? ", " : "", why);
    }
}

/* Slurm shows each name once: a list with a name twice would be sent again and again. */
static void drop_those_in(struct names *names, const char *hosts)
{
    struct host_set set = { 0 };
    size_t kept = 0;

    if (names->count > 0)
        set = host_set_of(names->arena, hosts);
    for (size_t i = 0; i < names->count; i++)
        if (!host_set_has(&set, names->at[i].at))
            names->at[kept++] = names->at[i];
    names->count = kept;
}

static unsigned count_each_once(const struct names *names)
{
    struct err err = { .class = 0 };
    auto_buf struct buf list;

    buf_init(&list, HOSTLIST_MAX_TEXT);
    if (names->count == 0 || hostlist_fold(names->at, names->count, &list, &err) < 0 ||
        list.overflowed)
        return 0;
    return hosts_count(names->arena, buf_text(&list));
}

static bool has_text(const char *const *texts, unsigned count, const char *text)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(texts[i], text) == 0)
            return true;
    return false;
}

/* Whether its pods may use different nodes. Members are mostly alike: equal lists are looked at
 * once. What more than MAX_LISTS exclude is seen when their nodes are assigned. */
static bool add_unfit(const struct bridge_world *world, const struct unit *unit,
                      struct names *names, struct exclusion *exclusion)
{
    const char *lists[MAX_LISTS];
    unsigned count = 0;

    for (unsigned i = 0; world->filter && i < unit->member_count && count < MAX_LISTS; i++) {
        const struct filter_set *set;

        if (unit->members[i].stage != POD_WAITS)
            continue;
        set = filter_nodes(world->filter, unit->members[i].pod);
        if (has_text(lists, count, set->excluded))
            continue;
        if (count == 0 || set->fit < exclusion->fit) {
            exclusion->fit = set->fit;
            exclusion->why = arena_strdup(names->arena, set->why);
        }
        exclusion->total = set->total;
        lists[count] = arena_strdup(names->arena, set->excluded);
        add_known(world, names, lists[count++]);
    }
    if (count > 1) {
        exclusion->fit = exclusion->total - count_each_once(names);
        exclusion->why =
            arena_printf(names->arena, "%s, for one or another of its pods", exclusion->why);
    }
    return count > 1;
}

/* ---- preselected nodes ---- */

static bool has_node(const struct preselection *preselection, const struct kube_node *node)
{
    for (unsigned i = 0; i < preselection->count; i++)
        if (preselection->nodes[i] == node)
            return true;
    return false;
}

/* The bridge chooses for Slurm, anew at every look while the job waits. False: it cannot. */
static bool choose(const struct bridge_world *world, const struct unit *unit,
                   const struct job_desc *desc, struct names *names, struct exclusion *exclusion)
{
    struct kube_cache_walk walk = kube_cache_walk(world->nodes);
    struct preselection preselection;
    const struct kube_object *object;

    if (!preselect_nodes(world, unit, desc, names->arena, &preselection) ||
        (!preselection.is_enough && (!preselection.why || exclusion->fit == 0)))
        return false;
    exclusion->fit = preselection.count;
    if (!preselection.is_enough) {
        if (preselection.count >= job_desc_least_nodes(desc))
            exclusion->fit = 0; /* enough nodes, but not for all of its pods */
        exclusion->why =
            arena_printf(names->arena, "%s, by the pods of its own group", preselection.why);
        return true;
    }
    names->count = 0;
    while ((object = kube_cache_next(&walk)) != NULL) {
        struct str name = str_of(world_slurm_name(kube_node_of(object)));

        if (world_slurm_node(world, name) && !has_node(&preselection, kube_node_of(object)))
            add_name(names, name);
    }
    return true;
}

/* All that is needed on the way is in memory of its own: a plan may wait long for its submit, and
 * keeps only the text. */
struct exclusion exclusion_of(const struct bridge_world *world, const struct unit *unit,
                              const char *partitions, struct arena *arena)
{
    const char *foreign = foreign_nodes_in(world->foreign_nodes, partitions);
    struct exclusion exclusion = { .why = "" };
    auto_arena struct arena aside;
    struct names names = { .arena = &aside };
    struct err err = { .class = 0 };
    bool differs, go_together = true, is_chosen = false;
    struct job_desc desc;
    auto_buf struct buf list;

    arena_init(&aside, MAX_ASIDE);
    buf_init(&list, HOSTLIST_MAX_TEXT);
    differs = add_unfit(world, unit, &names, &exclusion);
    if ((unit->state && unit->state->misfit_count > 0) || exclusion.fit == 0)
        go_together = !assign_has_pod_rules(world, unit);
    if ((differs || !go_together) && unit->owner.object &&
        unit_describe(world, unit, DESCRIBE_BOTH, &aside, &desc, &err) == 0 &&
        (!go_together || exclusion.fit < (uint64_t)job_desc_least_nodes(&desc)))
        is_chosen = choose(world, unit, &desc, &names, &exclusion);
    if (!is_chosen)
        add_misfits(world, unit, &names, &exclusion,
                    go_together ? NULL : "its pods do not go together there");
    exclusion.why = arena_strdup(arena, exclusion.why);
    if (foreign[0])
        drop_those_in(&names, foreign);
    if (names.count > 0 && hostlist_fold(names.at, names.count, &list, NULL) == 0 &&
        !list.overflowed) /* half a list means other nodes; misfits show at bind */
        exclusion.nodes =
            arena_printf(arena, "%s%s%s", buf_text(&list), foreign[0] ? "," : "", foreign);
    else
        exclusion.nodes = arena_strdup(arena, foreign);
    return exclusion;
}
