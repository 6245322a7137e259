/* describe.c - what a unit wants of Slurm, and the pods that it is for. */
#include "bridge/unit/describe.h"

#include "bridge/unit/translate.h"
#include "codec/hostlist.h"

/* The members that are described, by rank. */
static unsigned find_pods(const struct unit *unit, enum described described, struct arena *arena,
                          const struct kube_pod ***ret_pods)
{
    const struct kube_pod **pods =
        arena_alloc_array(arena, unit->member_count + 1, sizeof(const struct kube_pod *));
    unsigned count = 0;

    for (unsigned i = 0; i < unit->member_count; i++)
        if (((described & DESCRIBE_WAITING) && unit->members[i].stage == POD_WAITS) ||
            ((described & DESCRIBE_BOUND) && unit->members[i].stage == POD_BOUND))
            pods[count++] = unit->members[i].pod;
    *ret_pods = pods;
    return count;
}

/* The job of a leader has nodes for the workers that are created when the leader runs. */
static void add_later_workers(const struct unit *unit, unsigned pod_count, struct job_desc *desc)
{
    const struct kube_group *group = unit->kind == GROUP_LWS ? unit->owner.group : NULL;

    if (group && group->leader_first && desc->max_nodes == pod_count && pod_count < group->size)
        desc->nodes = desc->min_nodes = desc->max_nodes = group->size;
}

int unit_describe(const struct bridge_world *world, const struct unit *unit,
                  enum described described, struct arena *arena, struct job_desc *ret_desc,
                  struct err *err)
{
    const struct kube_pod **pods;
    struct translate_from from = { .config = world->config,
                                   .slurm_nodes = world->slurm_nodes,
                                   .site = { .partitions = world->slurm_partitions,
                                             .reservations = world->slurm_reservations,
                                             .user = world->facts.slurm_user },
                                   .classes = world->optional[OPTIONAL_DEVICE_CLASSES].cache,
                                   .claims = world->optional[OPTIONAL_CLAIMS].cache,
                                   .owner = unit->owner.object,
                                   .job = unit->owner.job,
                                   .more = unit->owner.more,
                                   .more_count = unit->owner.more_count,
                                   .name = unit->owner.job_name,
                                   .is_gang = unit->kind != GROUP_NONE,
                                   .is_bound = described == DESCRIBE_BOUND };

    from.pod_count = find_pods(unit, described, arena, &pods);
    from.pods = pods;
    if (unit->owner.group && unit->kind == GROUP_COSCHEDULING) {
        from.min_pods = unit->owner.needed < from.pod_count ? unit->owner.needed : from.pod_count;
        from.group_cpu_milli = unit->owner.group->cpu_milli;
        from.group_memory = unit->owner.group->memory;
    }
    if (from.pod_count == 0)
        return err_set(err, ERR_BUG, "a unit without pods is described");
    if (world->config->asks_who_made_it &&
        unit_find_creator(world, pods, from.pod_count, arena, &from.creator, err) < 0 &&
        !from.is_bound)
        return -err->class;
    if (translate(&from, arena, ret_desc, err) < 0)
        return -err->class;
    if (described & DESCRIBE_WAITING)
        add_later_workers(unit, from.pod_count, ret_desc);
    return 0;
}

unsigned unit_names(const struct unit *unit, enum described described, struct arena *arena,
                    const struct str **ret_names)
{
    const struct kube_pod **pods;
    unsigned count = find_pods(unit, described, arena, &pods);
    struct str *names = arena_alloc_array(arena, count + 1, sizeof(*names));

    for (unsigned i = 0; i < count; i++)
        names[i] = str_of(arena_printf(arena, "%s/%s", pods[i]->object.ns, pods[i]->object.name));
    *ret_names = names;
    return count;
}

const char *unit_nodes(const struct bridge_world *world, const struct unit *unit,
                       struct arena *arena)
{
    struct str *names = arena_alloc_array(arena, unit->member_count + 1, sizeof(*names));
    auto_buf struct buf list;
    struct err err = { .class = 0 };
    unsigned count = 0;

    buf_init(&list, HOSTLIST_MAX_TEXT);
    for (unsigned i = 0; i < unit->member_count; i++) {
        const struct kube_pod *pod = unit->members[i].pod;
        const struct kube_object *node = kube_cache_get(world->nodes, "", pod->node_name);
        struct str name = node ? str_of(world_record_name(world, kube_node_of(node))) : STR("");

        if (unit->members[i].stage == POD_BOUND && world_slurm_node(world, name))
            names[count++] = name;
    }
    if (count == 0 || hostlist_fold(names, count, &list, &err) < 0)
        return "";
    return arena_strdup(arena, buf_text(&list));
}
