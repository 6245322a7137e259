/* owner.c - whose annotations count for a unit, how many pods belong together, and who made them.
 *
 * Holds: an object that is merely not seen yet is waited for, by name; only an API that the server
 * does not have is passed over. */
#include "bridge/unit/unit.h"
#include "bridge/world/names.h"
#include "kube/workload_kinds.h"

static const struct kube_object *find(const struct kube_cache *cache, const char *ns,
                                      struct str name, const char *uid, struct arena *arena)
{
    const struct kube_object *object =
        kube_cache_get(cache, ns, arena_strndup(arena, name.at, name.len));

    return object && (!uid || str_is(str_of(object->uid), uid)) ? object : NULL;
}

static void want(struct arena *arena, struct unit *unit, const char *kind, struct str name)
{
    unit->owner.object = NULL;
    unit->owner.wanting = arena_printf(arena, "its %s " STR_FMT, kind, STR_ARG(name));
}

/* ---- pods of their own ---- */

/* A JobSet speaks for the pods of its Jobs. */
static void take_job(const struct bridge_world *world, struct arena *arena, struct unit *unit,
                     const struct kube_object *job)
{
    const struct optional *jobsets = &world->optional[OPTIONAL_JOBSETS];
    struct str above = str_of(job->owner.name);

    unit->owner.object = job;
    unit->owner.job = kube_job_of(job);
    if (!kube_owner_is(&job->owner, &kube_jobset_kind) || jobsets->state == WATCH_ABSENT)
        return;
    unit->owner.object = find(jobsets->cache, job->ns, above, job->owner.uid, arena);
    if (!unit->owner.object)
        want(arena, unit, "JobSet", above);
}

/* A controller of a kind that we do not watch says nothing about the job: the pod speaks for
 * itself. */
static void owner_of_pod(const struct bridge_world *world, struct arena *arena, struct unit *unit)
{
    const struct kube_owner *owner = &unit->pod->object.owner;
    const struct {
        const struct kube_kind *kind;
        struct kube_cache *cache;
    } watched[] = {
        { &kube_job_kind, world->jobs },
        { &kube_replicaset_kind, world->replicasets },
        { &kube_statefulset_kind, world->statefulsets },
    };

    unit->owner.object = &unit->pod->object;
    for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++) {
        if (!watched[i].cache || !kube_owner_is(owner, watched[i].kind))
            continue;
        unit->owner.object =
            find(watched[i].cache, unit->pod->object.ns, str_of(owner->name), owner->uid, arena);
        if (!unit->owner.object)
            want(arena, unit, owner->kind, str_of(owner->name));
        else if (i == 0)
            take_job(world, arena, unit, unit->owner.object);
    }
}

/* ---- groups ---- */

static const struct kube_object *owning_job(const struct bridge_world *world, struct arena *arena,
                                            const struct kube_pod *pod)
{
    const struct kube_owner *owner = &pod->object.owner;

    if (!kube_owner_is(owner, &kube_job_kind))
        return NULL;
    return find(world->jobs, pod->object.ns, str_of(owner->name), owner->uid, arena);
}

/* Of the Jobs whose pods are in the group, the one with the most time. Where one of its pods has
 * none, no Job ends them all. */
static void take_longest_job(const struct bridge_world *world, struct arena *arena,
                             struct unit *unit)
{
    const struct kube_owner *last = NULL;

    for (unsigned i = 0; i < unit->member_count; i++) {
        const struct kube_owner *owner = &unit->members[i].pod->object.owner;
        const struct kube_object *job;
        int64_t deadline;

        if (last && str_is(str_of(owner->uid), last->uid))
            continue;
        last = owner;
        job = owning_job(world, arena, unit->members[i].pod);
        if (!job && kube_owner_is(owner, &kube_job_kind))
            want(arena, unit, "Job", str_of(owner->name));
        if (!job) {
            unit->owner.job = NULL;
            return;
        }
        deadline = kube_job_of(job)->active_deadline; /* 0: it has none */
        if (!unit->owner.job || deadline == 0 ||
            (unit->owner.job->active_deadline != 0 && deadline > unit->owner.job->active_deadline))
            unit->owner.job = kube_job_of(job);
    }
}

/* A Workload that is not there says nothing. */
static void take_words(const struct bridge_world *world, struct arena *arena, struct unit *unit)
{
    const struct optional *workloads = &world->optional[OPTIONAL_WORKLOADS];
    const struct kube_object *job = owning_job(world, arena, unit->pod), *workload = NULL;
    struct str name = str_of(unit->owner.group->workload);

    if (name.len > 0 && workloads->state == WATCH_UNKNOWN)
        want(arena, unit, "Workload", name);
    if (name.len > 0 && workloads->state == WATCH_PRESENT)
        workload = find(workloads->cache, unit->pod->object.ns, name, NULL, arena);
    if (job)
        unit->owner.more[unit->owner.more_count++] = job;
    if (workload)
        unit->owner.more[unit->owner.more_count++] = workload;
}

/* `gang: "4"` starts with four of them; what a Job has finished does not come again. */
static int64_t needed_of_gang(const struct unit *unit, int64_t all)
{
    bool found;
    struct str value = kube_pairs_get(&unit->pod->object.annotations,
                                      BRIDGE_ANNOTATION_PREFIX BRIDGE_GANG, &found);
    uint64_t wanted;

    if (str_to_u64(value, 1, UNIT_MAX_MEMBERS, &wanted, NULL) == 0)
        return all > 0 && all < (int64_t)wanted ? all : (int64_t)wanted;
    return all;
}

static bool has_succeeded(const struct member *member)
{
    return str_is(str_of(member->pod->phase), "Succeeded");
}

/* Jobs that wait for others (dependsOn) have no pods yet: they count when the first one comes. Pods
 * that have succeeded may have been deleted since; the JobSet still counts their Jobs. Pods that
 * are there are needed, whatever a status from before a restart says. */
static int64_t pods_left_of(const struct unit *unit, const struct kube_replicated *replicated)
{
    int64_t succeeded = 0, others = 0, there = 0, left;

    for (unsigned i = 0; i < unit->member_count; i++) {
        const struct member *member = &unit->members[i];
        bool found;
        struct str name =
            kube_pairs_get(&member->pod->object.labels, BRIDGE_JOBSET_PART_LABEL, &found);

        if (!found || !str_is(name, replicated->name))
            continue;
        succeeded += has_succeeded(member);
        others += !has_succeeded(member);
        there += member->stage == POD_WAITS || member->stage == POD_BOUND;
    }
    if (replicated->comes_later && succeeded + others == 0)
        return 0;
    left = replicated->pods - (succeeded > replicated->finished ? succeeded : replicated->finished);
    return left > there ? left : there;
}

static int64_t pods_left_of_jobset(const struct unit *unit)
{
    int64_t pods = 0;

    for (unsigned i = 0; i < unit->owner.group->replicated_count; i++)
        pods += pods_left_of(unit, &unit->owner.group->replicated[i]);
    for (unsigned i = 0; i < unit->member_count; i++) {
        const struct member *member = &unit->members[i];
        bool has_part;

        (void)kube_pairs_get(&member->pod->object.labels, BRIDGE_JOBSET_PART_LABEL, &has_part);
        pods -= !has_part && has_succeeded(member);
    }
    return pods;
}

static void owner_of_job_gang(const struct bridge_world *world, struct arena *arena,
                              struct unit *unit)
{
    const struct kube_object *object = owning_job(world, arena, unit->pod);
    const struct kube_job *job;
    int64_t left;

    if (!object) {
        want(arena, unit, "Job", str_of(unit->pod->object.owner.name));
        return;
    }
    job = kube_job_of(object);
    left = job->completions > 0 ? job->completions - job->succeeded : job->parallelism;
    unit->owner.object = object;
    unit->owner.job_name = object->name;
    unit->owner.job = job;
    unit->owner.needed = needed_of_gang(unit, left < job->parallelism ? left : job->parallelism);
}

static void owner_of_group(const struct bridge_world *world, struct arena *arena, struct unit *unit)
{
    struct group group = group_of(unit->pod);
    const struct optional *api = world_group_api(world, unit->kind);

    unit->owner.object = find(api->cache, unit->pod->object.ns, group.name, NULL, arena);
    if (!unit->owner.object) {
        want(arena, unit, group_kind_name(unit->kind), group.name);
        return;
    }
    unit->owner.group = kube_group_of(unit->owner.object);
    unit->owner.job_name = unit->owner.object->name;
    unit->owner.needed = unit->owner.group->size;
    if (unit->kind == GROUP_PODGROUP)
        take_words(world, arena, unit);
    take_longest_job(world, arena, unit);
    if (unit->kind == GROUP_LWS)
        unit->owner.job_name =
            arena_printf(arena, STR_FMT "-" STR_FMT, STR_ARG(group.name), STR_ARG(group.number));
    if (unit->owner.group->leader_first)
        unit->owner.needed = 1;
    unit->owner.is_open = unit->kind == GROUP_PODGROUP || unit->kind == GROUP_COSCHEDULING;
    /* What the group has finished does not come again; the group does not count its pods. */
    for (unsigned i = 0; unit->owner.is_open && i < unit->member_count; i++)
        unit->owner.needed -= has_succeeded(&unit->members[i]);
    if (unit->kind == GROUP_JOBSET)
        unit->owner.needed = needed_of_gang(unit, pods_left_of_jobset(unit));
}

static void find_owner(const struct bridge_world *world, struct arena *arena, struct unit *unit)
{
    if (unit->kind == GROUP_NONE)
        owner_of_pod(world, arena, unit);
    else if (unit->kind == GROUP_JOB)
        owner_of_job_gang(world, arena, unit);
    else
        owner_of_group(world, arena, unit);
}

/* For a member with a job of its own the same words count as for its group. */
static void owner_of_member(const struct bridge_world *world, struct arena *arena,
                            struct unit *unit)
{
    const struct unit_owner own = unit->owner;
    struct unit member = *unit;

    member.kind = group_of(unit->pod).kind;
    find_owner(world, arena, &member);
    unit->owner = member.owner;
    unit->owner.group = own.group;
    unit->owner.job_name = own.job_name;
    unit->owner.needed = own.needed;
    unit->owner.is_open = own.is_open;
}

void unit_find_owner(const struct bridge_world *world, struct arena *arena, struct unit *unit)
{
    unit->owner.needed = 1;
    if (unit->kind == GROUP_NONE && world_has_group(world, unit->pod))
        owner_of_member(world, arena, unit);
    else
        find_owner(world, arena, unit);
    if (unit->owner.needed < 1)
        unit->owner.needed = 1;
}

/* ---- who made them ----
 *
 * The nearest word counts, from a pod upwards. The word of what a controller made names the owner
 * for which it was made, so nobody gets another's name by naming his object as the owner, nor by
 * having a controller adopt a pod. What is older than these words is of whoever made its owner. */

enum { MAX_DEPTH = 6, MAX_NAME = 64 };

static const struct kube_object *controller_of(const struct bridge_world *world,
                                               const struct kube_object *object,
                                               struct arena *arena)
{
    const struct kube_owner *owner = &object->owner;
    struct kube_cache *const caches[] = { world->jobs,
                                          world->statefulsets,
                                          world->replicasets,
                                          world->pods,
                                          world->optional[OPTIONAL_JOBSETS].cache,
                                          world->optional[OPTIONAL_LWS].cache };

    for (size_t i = 0; i < sizeof(caches) / sizeof(caches[0]); i++) {
        const struct kube_object *found;

        if (!caches[i] || !kube_owner_is(owner, kube_cache_kind(caches[i])))
            continue;
        found = kube_cache_get(caches[i], object->ns, arena_strdup(arena, owner->name));
        return found && strcmp(found->uid, owner->uid) == 0 ? found : NULL;
    }
    return NULL;
}

static struct str creator_of(const struct bridge_world *world, const struct kube_object *object,
                             struct arena *arena)
{
    const struct str mark = STR(BRIDGE_CREATOR_IS_OWNERS);

    for (unsigned i = 0; object && i < MAX_DEPTH; i++) {
        bool found = false;
        struct str word = kube_pairs_get(&object->annotations, BRIDGE_CREATOR_ANNOTATION, &found);

        if (found && !str_starts(word, mark))
            return word;
        if (found && !str_is(str_sub(word, mark.len, word.len), object->owner.uid))
            break;
        object = controller_of(world, object, arena);
    }
    return STR("");
}

int unit_find_creator(const struct bridge_world *world, const struct kube_pod *const *pods,
                      unsigned count, struct arena *arena, struct str *ret_creator, struct err *err)
{
    *ret_creator = creator_of(world, &pods[0]->object, arena);
    for (unsigned i = 1; i < count; i++) {
        struct str creator = creator_of(world, &pods[i]->object, arena);

        if (!str_eq(creator, *ret_creator))
            return err_set(err, ERR_INVALID,
                           "pods %s and %s were made by different people, \"" STR_FMT
                           "\" and \"" STR_FMT "\": one job cannot be of both",
                           pods[0]->object.name, pods[i]->object.name,
                           STR_ARG(str_sub(*ret_creator, 0, MAX_NAME)),
                           STR_ARG(str_sub(creator, 0, MAX_NAME)));
    }
    return 0;
}
