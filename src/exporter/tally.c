/* tally.c - the pass over the jobs: by partition, account, user and QOS. */
#include "exporter/tally.h"
#include "exporter/demand.h"

#include <inttypes.h>
#include <math.h>

enum { MAX_ARRAY_TASKS = 10000000 };

const char *const tally_job_state_names[TALLY_JOB_STATES] = {
    [TALLY_JOB_PENDING] = "pending",       [TALLY_JOB_CONFIGURING] = "configuring",
    [TALLY_JOB_RUNNING] = "running",       [TALLY_JOB_SUSPENDED] = "suspended",
    [TALLY_JOB_COMPLETING] = "completing",
};
const char *const tally_standing_names[TALLY_STANDINGS] = { "running", "pending" };

static void group_init(struct tally_group *group, const char *name)
{
    group->name = name;
    map_init(&group->reasons,
             &(struct map_options){ .max = TALLY_MAX_REASONS + 1, .borrow_keys = true });
}

void tally_init(struct tally *tally, const struct tally_view *view, struct arena *arena)
{
    *tally = (struct tally){ .arena = arena, .view = view };
    group_init(&tally->cluster, "");
    map_init(&tally->partitions,
             &(struct map_options){ .max = TALLY_MAX_PARTITIONS + 1, .borrow_keys = true });
    map_init(&tally->nodesets,
             &(struct map_options){ .max = TALLY_MAX_PARTITIONS + 1, .borrow_keys = true });
    map_init(&tally->array_tasks,
             &(struct map_options){ .max = TALLY_MAX_ARRAYS, .borrow_keys = true });
    for (unsigned i = 0; i < TALLY_OWNER_KINDS; i++)
        map_init(&tally->owners[i],
                 &(struct map_options){ .max = TALLY_MAX_OWNERS + 1, .borrow_keys = true });
    tally->gres_names[TALLY_GRES_KINDS] = "other";
}

static void groups_done(struct map *groups)
{
    map_each (item, groups) {
        struct tally_group *group = item->value;

        map_done(&group->reasons);
    }
    map_done(groups);
}

void tally_done(struct tally *tally)
{
    groups_done(&tally->partitions);
    groups_done(&tally->nodesets);
    map_done(&tally->array_tasks);
    map_done(&tally->cluster.reasons);
    for (unsigned i = 0; i < TALLY_OWNER_KINDS; i++)
        map_done(&tally->owners[i]);
}

/* ---- finding where to add ---- */

/* A map that is full but for one place has "other" there. */
static struct str name_or_other(const struct map *map, struct str name)
{
    return map->count + 1 < map->options.max ? name : STR("other");
}

struct tally_group *tally_group(struct tally *tally, struct map *groups, struct str name)
{
    struct tally_group *group = map_get(groups, name);

    if (group)
        return group;
    name = name_or_other(groups, name);
    group = map_get(groups, name);
    if (group)
        return group;
    group = arena_alloc(tally->arena, sizeof(*group));
    group_init(group, arena_strndup(tally->arena, name.at, name.len));
    (void)map_put(groups, str_of(group->name), group, NULL);
    return group;
}

static struct tally_owner *find_owner(struct tally *tally, enum tally_owner_kind kind,
                                      const char *name)
{
    struct map *map = &tally->owners[kind];
    struct tally_owner *owner = map_get(map, str_of(name));
    struct str key;

    if (owner)
        return owner;
    key = name_or_other(map, str_of(name));
    owner = map_get(map, key);
    if (owner)
        return owner;
    owner = arena_alloc(tally->arena, sizeof(*owner));
    owner->name = arena_strndup(tally->arena, key.at, key.len);
    (void)map_put(map, str_of(owner->name), owner, NULL);
    return owner;
}

static struct tally_reason *find_reason(struct tally *tally, struct tally_group *group,
                                        const char *word)
{
    struct str name = word[0] ? str_of(word) : STR("None");
    struct tally_reason *reason = map_get(&group->reasons, name);

    if (reason)
        return reason;
    name = name_or_other(&group->reasons, name);
    reason = map_get(&group->reasons, name);
    if (reason)
        return reason;
    reason = arena_alloc(tally->arena, sizeof(*reason));
    reason->name = arena_strndup(tally->arena, name.at, name.len);
    (void)map_put(&group->reasons, str_of(reason->name), reason, NULL);
    return reason;
}

unsigned tally_gres_index(struct tally *tally, struct str name)
{
    for (unsigned i = 0; i < tally->gres_count; i++)
        if (str_is(name, tally->gres_names[i]))
            return i;
    if (tally->gres_count == TALLY_GRES_KINDS) {
        tally->has_other_gres = true;
        return TALLY_GRES_KINDS;
    }
    tally->gres_names[tally->gres_count] = arena_strndup(tally->arena, name.at, name.len);
    return tally->gres_count++;
}

/* ---- what one job is, asks for and holds ---- */

bool tally_job_state_of(const struct slurm_job *job, enum tally_job_state *ret_state)
{
    if (slurm_words_has(&job->state, SLURM_JOB_COMPLETING))
        *ret_state = TALLY_JOB_COMPLETING;
    else if (slurm_job_has_ended(&job->state))
        return false;
    else if (slurm_words_has(&job->state, SLURM_JOB_PENDING))
        *ret_state = TALLY_JOB_PENDING;
    else if (slurm_words_has(&job->state, SLURM_JOB_CONFIGURING))
        *ret_state = TALLY_JOB_CONFIGURING;
    else if (slurm_words_has(&job->state, SLURM_JOB_SUSPENDED))
        *ret_state = TALLY_JOB_SUSPENDED;
    else
        *ret_state = TALLY_JOB_RUNNING;
    return true;
}

enum tally_holder tally_holder_of(const struct slurm_job *job)
{
    return slurm_words_has(&job->flags, SLURM_JOB_EXTERNAL) ? TALLY_POD : TALLY_JOB;
}

static int64_t number_of(struct str text)
{
    int64_t number = 0;

    (void)str_to_i64(text, 0, MAX_ARRAY_TASKS, &number, NULL);
    return number;
}

/* "2-4", "1,3,5-9:2%4": how many. 1 for what is no array. */
static int64_t count_tasks(struct str text)
{
    struct str rest = text, part, ignored;
    int64_t count = 0;

    (void)str_cut(text, '%', &rest, &ignored);
    while (rest.len > 0 && str_next(&rest, ',', &part)) {
        struct str from = part, to = part, step = STR("1");

        (void)str_cut(part, ':', &part, &step);
        if (!str_cut(part, '-', &from, &to)) {
            count += part.len > 0 && part.at[0] != '.';
            continue;
        }
        if (number_of(to) >= number_of(from) && number_of(step) > 0)
            count += (number_of(to) - number_of(from)) / number_of(step) + 1;
    }
    return count > 0 ? count : 1;
}

void tally_request_of(const struct tally *tally, const struct slurm_job *job,
                      struct tally_request *ret_request)
{
    double most = (double)slurm_number_or(job->array_max_tasks, 0, 0);
    struct tres *each = &ret_request->each;

    ret_request->is_exclusive = str_is(str_of(job->shared), "none");
    ret_request->tasks = (double)count_tasks(str_of(job->array_tasks));
    ret_request->at_once = ret_request->tasks;
    if (most > 0)
        ret_request->at_once = fmin(ret_request->tasks, fmax(most - demand_running(tally, job), 0));
    tres_read(str_of(job->tres_request), each);
    if (each->nodes <= 0)
        each->nodes = job->node_count > 0 ? job->node_count : 1;
    if (each->cpus <= 0)
        each->cpus = job->cpus;
    if (each->memory_bytes <= 0)
        each->memory_bytes =
            (double)slurm_number_or(job->memory_per_node, 0, 0) * (double)each->nodes * 1048576.0;
    if (each->gres_count > 0)
        return;
    tres_add_gres(each, str_of(job->tres_per_job), 1);
    if (each->gres_count == 0)
        tres_add_gres(each, str_of(job->tres_per_node), each->nodes);
}

void tally_allocation_of(const struct slurm_job *job, struct tres *ret_tres)
{
    tres_read(str_of(job->tres_alloc), ret_tres);
    if (ret_tres->cpus <= 0)
        ret_tres->cpus = job->cpus;
    if (ret_tres->nodes <= 0)
        ret_tres->nodes = job->node_count > 0 ? job->node_count : 1;
    if (ret_tres->gres_count == 0)
        tres_add_gres(ret_tres, str_of(job->tres_per_node), ret_tres->nodes);
}

/* ---- adding ---- */

static void add_pending(struct tally *tally, struct tally_group *group, const struct slurm_job *job,
                        const struct tally_request *request)
{
    enum slurm_reason_class class = slurm_reason_of(job->reason, job->hold).class;
    struct tally_pending *pending = &group->pending[class];
    int64_t since_s = job->eligible_time > 0 ? job->eligible_time : job->submit_time;

    find_reason(tally, group, job->reason)->jobs[class] += request->tasks;
    pending->jobs += request->tasks;
    pending->nodes += request->at_once * (double)request->each.nodes;
    pending->cpus += request->at_once * (double)request->each.cpus;
    pending->memory_bytes += request->at_once * request->each.memory_bytes;
    for (unsigned i = 0; i < request->each.gres_count; i++)
        pending->gres[tally_gres_index(tally, request->each.gres[i].name)] +=
            request->at_once * (double)request->each.gres[i].count;
    if (since_s > 0 && (pending->since_s == 0 || since_s < pending->since_s))
        pending->since_s = since_s;
}

static void add_to_group(struct tally *tally, struct tally_group *group,
                         const struct slurm_job *job, enum tally_job_state state,
                         const struct tally_request *request)
{
    group->has_jobs = true;
    group->jobs[state] += state == TALLY_JOB_PENDING ? request->tasks : 1;
    if (state == TALLY_JOB_PENDING)
        add_pending(tally, group, job, request);
}

static void add_to_owner(struct tally *tally, enum tally_owner_kind kind, const char *name,
                         unsigned standing, double jobs, double times, const struct tres *tres)
{
    struct tally_owner *owner;

    if (!name[0])
        return;
    owner = find_owner(tally, kind, name);
    owner->jobs[standing] += jobs;
    owner->nodes[standing] += times * (double)tres->nodes;
    owner->cpus[standing] += times * (double)tres->cpus;
    owner->memory_bytes[standing] += times * tres->memory_bytes;
    for (unsigned i = 0; i < tres->gres_count; i++)
        owner->gres[tally_gres_index(tally, tres->gres[i].name)][standing] +=
            times * (double)tres->gres[i].count;
    if (standing == TALLY_RUNS)
        owner->billing += (double)tres->billing;
}

static void add_to_owners(struct tally *tally, const struct slurm_job *job, unsigned standing,
                          double jobs, double times, const struct tres *tres)
{
    const char *user = job->user;

    add_to_owner(tally, TALLY_ACCOUNT, job->account, standing, jobs, times, tres);
    add_to_owner(tally, TALLY_QOS, job->qos, standing, jobs, times, tres);
    if (!tally->view->shows_users)
        return;
    if (!user[0])
        user = arena_printf(tally->arena, "%" PRId64, job->user_id);
    add_to_owner(tally, TALLY_USER, user, standing, jobs, times, tres);
}

void tally_jobs(struct tally *tally)
{
    struct slurm_cache_walk walk = slurm_cache_walk(tally->view->jobs);
    const struct slurm_object *object;

    demand_count_running(tally);
    while ((object = slurm_cache_next(&walk))) {
        const struct slurm_job *job = slurm_job_of(object);
        struct tally_group *nodeset = NULL;
        struct str rest = str_of(job->partition), name;
        struct tally_request request = { .tasks = 1 };
        enum tally_job_state state;
        struct tres held;

        if (!tally_job_state_of(job, &state))
            continue;
        if (state == TALLY_JOB_PENDING) {
            tally_request_of(tally, job, &request);
            nodeset = demand_add(tally, job, &request);
            add_to_owners(tally, job, TALLY_WAITS, request.tasks, request.at_once, &request.each);
        } else {
            tally_allocation_of(job, &held);
            add_to_owners(tally, job, TALLY_RUNS, 1, 1, &held);
        }
        add_to_group(tally, &tally->cluster, job, state, &request);
        if (nodeset)
            add_to_group(tally, nodeset, job, state, &request);
        while (rest.len > 0 && str_next(&rest, ',', &name))
            add_to_group(tally, tally_group(tally, &tally->partitions, name), job, state, &request);
    }
}
