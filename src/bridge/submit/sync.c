/* sync.c - how a job that waits differs from what its unit would submit now, and the update.
 *
 * Holds: what people changed in Slurm stays, because the unit is compared with what the job was
 * last submitted or updated with. This process remembers that, or the note in the job's comment
 * says it; a job without either is taken for submitted as its unit says now. A change that Slurm
 * refused is not sent again while nothing changes; what cannot be described leaves the job as it
 * was. The nodes that the job must not get are updated whatever becomes of the rest. */
#include "bridge/submit/sync.h"

#include "bridge/slurm/slurm_action.h"
#include "bridge/submit/submit.h"
#include "codec/host_set.h"
#include "slurm/submit.h"

#include <string.h>

/* ---- what it was submitted with ---- */

static bool read_note(const struct slurm_job *job, struct field_hashes *ret_hashes)
{
    auto_buf struct buf note = { .max = SLURM_MAX_NOTE };

    return slurm_submit_note(job, &note) && field_hashes_read(buf_str(&note), ret_hashes);
}

/* Fields that its note calls unknown may be those of an update that came late, unless we know that
 * it was made. */
static void recall(const struct unit *unit, struct sync *sync)
{
    const struct last_applied *last = unit->state ? &unit->state->last_applied : NULL;
    struct field_hashes noted;
    bool is_noted = read_note(unit->job, &noted);

    sync->is_remembered = last && last->job_id == unit->job->id;
    if (sync->is_remembered) {
        sync->hashes = last->hashes;
        if (is_noted && !last->needs_final_note)
            field_hashes_add_unknown(&sync->hashes, &noted);
    } else if (is_noted) {
        sync->hashes = noted;
        field_hashes_assume_current(&sync->hashes, &sync->desc);
    } else {
        field_hashes_of(&sync->desc, &sync->hashes);
    }
}

/* pods NULL: the same. A comment that others have written stays. */
static bool put_comment(const struct unit *unit, const struct str *pods, unsigned pod_count,
                        const struct field_hashes *hashes, const struct sync *sync)
{
    auto_buf struct buf note = { .max = SLURM_MAX_NOTE }, comment = { .max = SLURM_MAX_COMMENT };

    field_hashes_write(hashes, &note);
    if (slurm_submit_comment(unit->job, pods, pod_count, buf_str(&note), &comment) < 0)
        return false;
    json_put_str(sync->build, sync->fields, "admin_comment", buf_str(&comment));
    return true;
}

/* The update that left something open was made: a leader after us need not say it again. */
static bool put_settled_note(const struct unit *unit, struct sync *sync)
{
    struct field_hashes noted;

    if (sync->differs || !sync->is_remembered || !unit->state->last_applied.needs_final_note ||
        !read_note(unit->job, &noted) || !field_hashes_have_unknown(&noted))
        return false;
    return put_comment(unit, NULL, 0, &sync->noted, sync);
}

/* ---- nodes ---- */

/* An empty list says nothing to Slurm, an empty text clears. */
static bool put_excluded(const struct unit *unit, const char *nodes, struct arena *arena,
                         struct sync *sync)
{
    if (hosts_equal(arena, nodes, unit->job->excluded_nodes))
        return false;
    if (nodes[0])
        json_push_str(sync->build, json_put_array(sync->build, sync->fields, "excluded_nodes"),
                      str_of(nodes));
    else
        json_put_text(sync->build, sync->fields, "excluded_nodes", "");
    return true;
}

/* Slurm takes a preference that no node can meet any more for a bad constraint, and holds the job.
 * Without it the job goes on. Beside constraints it would be tried in their place. */
static bool put_preference(const struct slurm_job *job, const struct sync *sync)
{
    bool is_bad = strcmp(job->reason, "BadConstraints") == 0;

    if (!job->prefer[0] || (!is_bad && !json_mut_get(sync->fields, STR("constraints"))))
        return false;
    json_put_text(sync->build, sync->fields, "prefer", "");
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

/* The members, if some came or went while the job waited: its comment has those that it was
 * submitted for. NULL: they are the same. */
static const struct str *other_members(const struct unit *unit, struct arena *arena,
                                       unsigned *ret_count)
{
    const struct str *names;
    unsigned count = unit_names(unit, DESCRIBE_WAITING, arena, &names);
    size_t asked = unit->kind == GROUP_NONE ? 0 : pods_in_comment(unit->job);

    if (asked == 0 || asked == count)
        return NULL;
    *ret_count = count;
    return names;
}

/* ---- what is sent ---- */

/* What a job gets that names none. */
static void put_usual_time(const struct bridge_world *world, const struct slurm_job *job,
                           const struct sync *sync)
{
    const struct slurm_object *object = slurm_cache_get(world->slurm_partitions, job->partition);
    const struct slurm_partition *partition = object ? slurm_partition_of(object) : NULL;

    if (sync->desc.time_limit >= 0 || !json_mut_get(sync->fields, STR("time_limit")) || !partition)
        return;
    if (partition->default_time.set)
        slurm_number_put(sync->build, sync->fields, "time_limit", partition->default_time);
    else if (partition->max_time.set)
        slurm_number_put(sync->build, sync->fields, "time_limit", partition->max_time);
}

static void put_changes(const struct bridge_world *world, const struct unit *unit,
                        struct arena *arena, struct sync *sync)
{
    unsigned count = 0;
    const struct str *members = other_members(unit, arena, &count);

    /* A job that its annotation held is first let go: only then Slurm takes another priority. */
    if (unit->job->hold && sync->desc.priority > 0 && field_hashes_may_hold(&sync->hashes))
        sync->desc.priority = -1;
    sync->differs = job_change(sync->build, sync->fields, &sync->desc, &sync->hashes,
                               members != NULL, &sync->noted);
    put_usual_time(world, unit->job, sync);
    if (sync->differs)
        put_comment(unit, members, count, &sync->noted, sync);
}

static bool is_still_refused(const struct bridge_world *world, const struct unit *unit,
                             const struct job_desc *desc)
{
    const struct last_applied *last = unit->state ? &unit->state->last_applied : NULL;

    return last && last->refused && last->refused == job_desc_hash(desc) &&
           last->site == capacity_generation(world->capacity) &&
           world->facts.now_us < last->again_us;
}

/* What Slurm does not change of a job, a new job has; its place in the queue is the price. A job
 * that people hold stays, because a new one would not be held. */
static const char *field_for_new_job(const struct unit *unit, const struct sync *sync)
{
    const char *annotation = field_hashes_need_anew(&sync->hashes, &sync->desc);

    if (!annotation || (unit->job->hold && strcmp(unit->job->reason, "BadConstraints") != 0 &&
                        !field_hashes_hold(&sync->hashes)))
        return NULL;
    return annotation;
}

/* After a refusal only the nodes are updated. */
static void drop_refused(const struct bridge_world *world, const struct unit *unit,
                         struct sync *sync)
{
    if (!sync->differs || !is_still_refused(world, unit, &sync->desc))
        return;
    sync->is_refused = true;
    sync->fields = json_new_object(sync->build);
    sync->differs = false;
}

/* Nobody says what the pods should have while their owner is not seen: the pods are about to go,
 * too. */
void sync_look(const struct bridge_world *world, const struct unit *unit, struct arena *arena,
               struct sync *ret_sync)
{
    struct sync *sync = ret_sync;
    struct err why = { .class = 0 };
    struct exclusion exclusion;
    bool is_described;

    *sync = (struct sync){ .build = json_build_new(), .has_nodes = true };
    sync->fields = json_new_object(sync->build);
    is_described = unit->owner.object &&
                   unit_describe(world, unit, DESCRIBE_WAITING, arena, &sync->desc, &why) == 0;
    if (unit->owner.object && !is_described)
        sync->invalid = arena_strdup(arena, why.text);
    if (is_described) {
        recall(unit, sync);
        sync->anew = field_for_new_job(unit, sync);
        put_changes(world, unit, arena, sync);
        drop_refused(world, unit, sync);
        is_described = !sync->is_refused;
    }
    if (is_described)
        sync->remembers =
            put_settled_note(unit, sync) || sync->differs || (unit->state && !sync->is_remembered);
    exclusion = exclusion_of(world, unit,
                             is_described && sync->desc.partition[0] ? sync->desc.partition
                                                                     : unit->job->partition,
                             arena);
    sync->exclusion = exclusion;
    if (is_described) /* else Slurm says that its constraints are bad */
        sync->has_nodes = exclusion_leaves_enough(&exclusion, &sync->desc);
    sync->nodes_differ = put_excluded(unit, exclusion.nodes, arena, sync);
    sync->nodes_differ |= put_preference(unit->job, sync);
}

void sync_done(struct sync *sync)
{
    json_build_free(sync->build);
}

bool sync_has_update(const struct sync *sync)
{
    return sync->remembers || sync->nodes_differ;
}

void plan_sync(const struct unit *unit, struct plan *plan, const struct sync *sync)
{
    if (sync->remembers)
        plan_slurm_sync(plan, unit->job, sync->fields, &sync->desc, &sync->noted);
    else if (sync->nodes_differ)
        plan_slurm_update_job(plan, unit->job, sync->fields);
}
