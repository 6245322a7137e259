/* follow.c - a job that waits follows its unit: only what differs is sent.
 *
 * Holds: what people changed in Slurm stays, while it is known what the job was asked with: this
 * process remembers it, or the note in the job's comment says it; a change that Slurm refused is
 * told to the pods, and not sent again while nothing changes; what cannot be translated leaves the
 * job as it was. The nodes that the job must not get are followed whatever becomes of the rest. */
#include "bridge/follow.h"

#include "bridge/exclude.h"
#include "bridge/hosts.h"
#include "bridge/slurm_action.h"
#include "bridge/submit.h"
#include "bridge/tell.h"
#include "slurm/submit.h"

#include <string.h>

enum { READ_US = 500000 }; /* by then the record has been read */

struct following {
    struct json_build *build;
    struct json_mut *fields; /* of the update */
    struct job_desc desc;    /* as the job is then */
    struct job_marks marks;  /* what it was asked with */
    struct job_marks noted;  /* the same until the update was made */
    bool is_known;           /* that is: it is remembered, or noted in its comment */
    bool is_remembered;
    bool differs; /* by what its unit asks for */
};

/* ---- what it was asked with ---- */

static bool read_note(const struct slurm_job *job, struct job_marks *ret_marks)
{
    auto_buf struct buf note = { .max = SLURM_MAX_NOTE };

    return slurm_submit_note(job, &note) && job_marks_read(buf_str(&note), ret_marks);
}

/* What its note leaves open may be an update that came late, unless we know that it was made. */
static void recall(const struct unit *unit, struct following *follow)
{
    const struct said_memory *said = unit->state ? &unit->state->said : NULL;
    struct job_marks noted;
    bool is_noted = read_note(unit->job, &noted);

    follow->is_remembered = said && said->job_id == unit->job->id;
    follow->is_known = follow->is_remembered || is_noted;
    if (follow->is_remembered)
        follow->marks = said->marks;
    else if (is_noted)
        follow->marks = noted;
    if (follow->is_remembered && is_noted && !said->settles)
        job_marks_open(&follow->marks, &noted);
}

/* pods NULL: the same. A comment that others have written stays. */
static bool put_comment(const struct unit *unit, const struct str *pods, unsigned pod_count,
                        const struct job_marks *marks, const struct following *follow)
{
    auto_buf struct buf note = { .max = SLURM_MAX_NOTE }, comment = { .max = SLURM_MAX_COMMENT };

    job_marks_write(marks, &note);
    if (slurm_submit_comment(unit->job, pods, pod_count, buf_str(&note), &comment) < 0)
        return false;
    json_put_str(follow->build, follow->fields, "admin_comment", buf_str(&comment));
    return true;
}

/* The update that left something open was made: a leader after us need not say it again. */
static bool put_settled_note(const struct unit *unit, struct following *follow)
{
    struct job_marks noted;

    if (follow->differs || !follow->is_remembered || !unit->state->said.settles ||
        !read_note(unit->job, &noted) || !job_marks_are_open(&noted))
        return false;
    return put_comment(unit, NULL, 0, &follow->noted, follow);
}

/* ---- nodes ---- */

/* An empty list says nothing to Slurm, an empty text clears. */
static bool put_excluded(const struct unit *unit, const char *nodes, struct arena *arena,
                         struct following *follow)
{
    if (hosts_equal(arena, nodes, unit->job->excluded_nodes))
        return false;
    if (nodes[0])
        json_push_str(follow->build,
                      json_put_array(follow->build, follow->fields, "excluded_nodes"),
                      str_of(nodes));
    else
        json_put_text(follow->build, follow->fields, "excluded_nodes", "");
    return true;
}

/* Slurm takes a preference that no node can meet any more for a bad constraint, and holds the job.
 * Without it the job goes on. Beside constraints it would be tried in their place. */
static bool put_preference(const struct slurm_job *job, const struct following *follow)
{
    bool is_bad = strcmp(job->reason, "BadConstraints") == 0;

    if (!job->prefer[0] || (!is_bad && !json_mut_get(follow->fields, STR("constraints"))))
        return false;
    json_put_text(follow->build, follow->fields, "prefer", "");
    return true;
}

/* ---- members ---- */

/* 0: it is none that can be written again. */
static size_t pods_in_comment(const struct slurm_job *job)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct json *comment;

    if (json_parse(str_of(job->admin_comment), SLURM_MAX_COMMENT, &doc, NULL) < 0)
        return 0;
    comment = json_root(doc);
    if (json_str(json_get(comment, "cluster")).len == 0 ||
        json_str(json_get(comment, "unit")).len == 0)
        return 0;
    return json_len(json_get(comment, "pods"));
}

/* Members came or went while it waited. Its comment says for how many it was asked. NULL: no. */
static const struct str *other_members(const struct unit *unit, struct arena *arena,
                                       unsigned *ret_count)
{
    const struct str *names;
    unsigned count = unit_names_waiting(unit, arena, &names);
    size_t asked = unit->kind == GROUP_NONE ? 0 : pods_in_comment(unit->job);

    if (asked == 0 || asked == count)
        return NULL;
    *ret_count = count;
    return names;
}

/* ---- what is asked for ---- */

/* A job that its annotation held is first let go: only then Slurm takes another priority. */
static void release_first(const struct unit *unit, struct following *follow)
{
    if (follow->is_known && unit->job->hold && follow->desc.priority > 0 &&
        job_marks_may_hold(&follow->marks))
        follow->desc.priority = -1;
}

/* What a job gets that names none. */
static void put_usual_time(const struct bridge_world *world, const struct slurm_job *job,
                           const struct following *follow)
{
    const struct slurm_object *object = slurm_cache_get(world->slurm_partitions, job->partition);
    const struct slurm_partition *partition = object ? slurm_partition_of(object) : NULL;

    if (follow->desc.time_limit >= 0 || !json_mut_get(follow->fields, STR("time_limit")) ||
        !partition)
        return;
    if (partition->default_time.set)
        slurm_number_put(follow->build, follow->fields, "time_limit", partition->default_time);
    else if (partition->max_time.set)
        slurm_number_put(follow->build, follow->fields, "time_limit", partition->max_time);
}

static void put_changes(const struct bridge_world *world, const struct unit *unit,
                        struct arena *arena, struct following *follow)
{
    unsigned count = 0;
    const struct str *members = other_members(unit, arena, &count);
    struct job_change_from from = { .marks = follow->is_known ? &follow->marks : NULL,
                                    .job = follow->is_known ? NULL : unit->job,
                                    .resized = members && !follow->is_known };

    release_first(unit, follow);
    follow->differs =
        job_change(follow->build, follow->fields, &follow->desc, &from, &follow->noted);
    follow->differs |= members != NULL;
    put_usual_time(world, unit->job, follow);
    if (follow->differs)
        put_comment(unit, members, count, &follow->noted, follow);
}

static bool is_still_refused(const struct bridge_world *world, const struct unit *unit,
                             const struct job_desc *desc)
{
    const struct said_memory *said = unit->state ? &unit->state->said : NULL;

    return said && said->refused && said->refused == job_desc_hash(desc) &&
           said->site == room_generation(world->room) && world->facts.now_us < said->again_us;
}

static void tell(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                 const char *reason, const char *what, const char *why)
{
    const char *message =
        arena_printf(plan->arena, "%s job %s: %s", what, unit->job->object.key, why);

    if (tell_trouble(world, unit, plan, reason, "%s", message))
        plan_event(plan, &unit->pod->object, KUBE_EVENT_WARNING, "FailedScheduling", "%s", message);
}

/* False: what cannot be translated is told. */
static bool is_described(const struct bridge_world *world, const struct unit *unit,
                         struct plan *plan, struct following *follow)
{
    struct err why = { .class = 0 };

    if (unit_describe_waiting(world, unit, plan->arena, &follow->desc, &why) == 0)
        return true;
    tell(world, unit, plan, "Invalid", "nothing changes of", why.text);
    return false;
}

/* Its annotations do not say that it is held. */
static bool is_held_by_people(const struct unit *unit, const struct following *follow)
{
    return unit->job->hold && strcmp(unit->job->reason, "BadConstraints") != 0 &&
           !job_marks_hold(&follow->marks);
}

/* What Slurm does not change of a job, a new one has; its place in the queue is the price. One that
 * people hold stays: a new one would not be held. */
static bool is_replaced(const struct unit *unit, struct plan *plan, const struct following *follow)
{
    const char *field =
        follow->is_known ? job_marks_need_anew(&follow->marks, &follow->desc) : NULL;

    if (!field || is_held_by_people(unit, follow))
        return false;
    plan_event(plan, &unit->pod->object, KUBE_EVENT_NORMAL, "SlurmJobReplaced",
               "job %s is asked for anew: Slurm can not change what %s says of a job",
               unit->job->object.key, job_desc_annotation(field));
    plan_slurm_cancel(plan, unit->job, NULL, "it is asked for anew");
    plan_wait(plan, "job %s is asked for anew", unit->job->object.key);
    return true;
}

/* Then only the nodes are followed. */
static bool is_refused(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                       struct following *follow)
{
    put_changes(world, unit, plan->arena, follow);
    if (!follow->differs || !is_still_refused(world, unit, &follow->desc))
        return false;
    tell(world, unit, plan, "Refused", "Slurm refused to change", unit->state->submit.text);
    follow->fields = json_new_object(follow->build);
    follow->differs = false;
    return true;
}

/* Without the object that they belong to nobody says what its pods should have: they are about to
 * go, too. */
bool plan_follow(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
                 bool is_fresh)
{
    auto_json_build struct json_build *build = json_build_new();
    struct following follow = { .build = build, .fields = json_new_object(build) };
    const char *partition = unit->job->partition;
    bool in_trouble, nodes_differ, remembers = false;
    struct exclusion exclusion;

    recall(unit, &follow);
    in_trouble = unit->root && !is_described(world, unit, plan, &follow);
    if (unit->root && !in_trouble) {
        if (!follow.is_remembered)
            job_marks_fix(&follow.marks, &follow.desc);
        if (is_fresh && is_replaced(unit, plan, &follow))
            return true;
        in_trouble = is_refused(world, unit, plan, &follow);
        if (!in_trouble && follow.desc.partition[0])
            partition = follow.desc.partition;
    }
    if (unit->root && !in_trouble)
        remembers = put_settled_note(unit, &follow) || follow.differs ||
                    (unit->state && !follow.is_remembered);
    exclusion = exclusion_of(world, unit, partition, plan->arena);
    if (unit->root && !in_trouble) /* else Slurm says that its constraints are bad */
        in_trouble = !unit_has_nodes(world, unit, plan, &exclusion, &follow.desc);
    nodes_differ = put_excluded(unit, exclusion.nodes, plan->arena, &follow);
    nodes_differ |= put_preference(unit->job, &follow);
    if (!remembers && !nodes_differ)
        return in_trouble;
    if (!is_fresh)
        plan_look_again(plan, READ_US);
    else if (remembers)
        plan_slurm_follow(plan, unit->job, follow.fields, &follow.desc, &follow.noted);
    else
        plan_slurm_update_job(plan, unit->job, follow.fields);
    return in_trouble;
}
