/* place.c - what to do next for one unit: a pod, or the pods of a group.
 *
 * A unit is in one phase, and the table of rules at the end of this file says which: the first rule
 * that matches wins. A rule says what a person is shown, what wakes the unit again, and what is
 * done. What must happen in every phase are steps before the table.
 *
 * To add a row: docs/internals/bridge.md, Two exercises.
 *
 * Holds   `when` answers from the facts of the situation and changes nothing; a unit whose last
 * submit is not settled never gets a second one (docs/internals/bridge.md, Submitting at most
 * once); a pod is bound only to a node of its own running job; a job ends only when nothing of its
 * pods runs any more; nothing is cancelled or deleted while slurmctld is suspected of a restart. */
#include "bridge/place.h"

#include "bridge/act.h"
#include "bridge/report.h"
#include "bridge/run/release.h"
#include "bridge/unit/conditions.h"
#include "bridge/words.h"
#include "slurm/capacity.h"

#include <stdio.h>

enum {
    SECOND_US = 1000000,
    FENCE_LOOK_US = 10 * SECOND_US,
    REBOOK_FIRST_US = 3 * SECOND_US, /* jobs that are missing are read one by one */
    CALM_US = 10 * SECOND_US,
    REREAD_US = 5 * SECOND_US,
    SOON_US = SECOND_US / 20,
    TOO_BIG_US = 60 * SECOND_US, /* a change of its pods is seen at once */
    MANY_MISFITS = 3,            /* after so many people should look */
};

/* WHEN is a question about the situation `s`: the `when` of a row. AFTER is the time after which a
 * unit looks again: the `due_us` of a row. */
#define WHEN(name, answer)                                                                         \
    static bool name(const struct situation *s)                                                    \
    {                                                                                              \
        (void)s;                                                                                   \
        return answer;                                                                             \
    }
#define AFTER(name, time_us)                                                                       \
    static int64_t name(const struct situation *s)                                                 \
    {                                                                                              \
        (void)s;                                                                                   \
        return time_us;                                                                            \
    }

/* ---- every unit ---- */

WHEN(is_uninstalling, s->world->facts.is_uninstalling)
WHEN(is_inherited, s->unit->jobs.inherited && !is_uninstalling(s) && s->is_ours)
WHEN(is_inherited_unread, is_inherited(s) && !s->is_clear)
WHEN(is_gone, !s->unit->pod)
WHEN(is_over, s->unit->stage == POD_OVER)
WHEN(is_foreign, !s->is_ours)
WHEN(is_in_group, s->unit->is_elsewhere && !s->lacks_slot)
WHEN(is_gated, s->unit->stage == POD_GATED && s->is_ours && !is_in_group(s))
WHEN(is_ending, s->unit->stage == POD_ENDING)
WHEN(gives_jobs_back,
     s->unit->jobs.count > 0 && (is_gone(s) || is_over(s) || is_uninstalling(s) || is_gated(s)))
WHEN(is_release_unread, gives_jobs_back(s) && !s->is_clear)
WHEN(is_release_behind, gives_jobs_back(s) && s->unit->jobs.is_behind)
WHEN(is_bound_unread, s->unit->stage == POD_BOUND && !s->is_clear)
/* A job that was just cancelled still looks alive. */
WHEN(is_job_behind, s->is_clear && s->unit->jobs.is_behind)
/* Lost answers can leave two jobs for one unit. Nothing is bound while there are two. The job that
 * is kept must be in the last whole list, or have been read after it. Otherwise slurmctld may have
 * lost this job, and the unit would have none when the other one is cancelled. */
WHEN(is_duplicated, s->is_clear && s->unit->jobs.count > 1)

static bool is_kept_job_unread(const struct situation *s)
{
    const struct slurm_cache *jobs = s->world->slurm_jobs;

    return is_duplicated(s) &&
           slurm_cache_known_us(jobs, s->unit->job->object.key) < slurm_cache_listed_us(jobs);
}

/* The first cancel had no answer and may still take effect, so no pod is bound by this job. */
WHEN(is_given_up, s->is_clear && s->unit->job && s->unit->jobs.is_given_up &&
                      s->unit->stage == POD_WAITS && s->unit->in[POD_BOUND] == 0)

/* ---- bound pods ---- */

WHEN(is_bound, s->unit->stage == POD_BOUND)
WHEN(is_bound_with_job, is_bound(s) && s->unit->job)
WHEN(are_bound_nodes_unread,
     is_bound(s) && s->job_phase == JOB_RUNS && s->bound.job_nodes.allocated.count == 0)
WHEN(does_rebooked_job_wait, is_bound(s) && s->job_phase == JOB_WAITS && !s->bound.is_requeued)
WHEN(is_rebooked_elsewhere, does_rebooked_job_wait(s) && !s->bound.is_on_nodes)
WHEN(is_stray, is_bound_with_job(s) && s->bound.is_stray)
WHEN(does_stray_end, is_stray(s) && s->job_phase == JOB_ENDS)
WHEN(has_job_ended,
     is_bound(s) && (s->unit->job ? s->job_phase != JOB_RUNS : s->bound.ended_count > 0))
WHEN(has_lost_claims, is_bound_with_job(s) && s->lost_claims.state != CLAIMS_READY)
WHEN(is_node_unknown, wants_rebooking(s) && !s->bound.nodes[0] &&
                          !kube_cache_get(s->world->nodes, "", s->unit->pod->node_name))
WHEN(is_node_not_in_slurm, wants_rebooking(s) && !s->bound.nodes[0])

/* ---- pods that wait without a job ---- */

WHEN(is_owner_unseen, wants_job(s) && !s->unit->owner.object)
WHEN(has_group_ended, wants_job(s) && group_end(s->unit))
WHEN(is_group_incomplete, wants_job(s) && s->unit->in[POD_WAITS] < (uint64_t)s->unit->owner.needed)
WHEN(may_group_grow, wants_job(s) && group_grows_us(s->world, s->unit) > 0)
WHEN(is_invalid, s->invalid != NULL)
WHEN(has_no_nodes, wants_job(s) && !exclusion_leaves_enough(&s->exclusion, &s->desc))

/* ---- the guard: whether a job may be submitted ---- */

WHEN(submits, wants_job(s) || wants_rebooking(s))

static const struct submit_record *last_submit(const struct situation *s)
{
    static const struct submit_record none = { .state = SUBMIT_NONE };

    return s->unit->state ? &s->unit->state->submit : &none;
}

WHEN(is_slurm_unusable, submits(s) && s->world->facts.trouble[0])
WHEN(is_slurm_unread, submits(s) && !s->world->facts.slurm_synced)
WHEN(is_slurm_suspected, submits(s) && s->world->facts.is_suspicious)
WHEN(is_sight_unknown, submits(s) && !s->world->facts.knows_job_visibility)
WHEN(sees_part, submits(s) && s->world->facts.job_visibility == SLURM_SEES_PART)
WHEN(is_user_unknown, submits(s) && !s->world->facts.slurm_user[0])
WHEN(are_jobs_unread,
     submits(s) && slurm_cache_listed_us(s->world->slurm_jobs) < s->world->facts.leading_us)
WHEN(is_slurm_full, submits(s) && s->world->facts.pause_us > s->world->facts.now_us)
WHEN(is_denied, is_slurm_full(s) && s->world->facts.denied_us > 0)
WHEN(is_unanswered, submits(s) && last_submit(s)->state == SUBMIT_SENT)
WHEN(is_last_tenth, wants_job(s) && !submit_leaves_a_tenth(s->world))
WHEN(is_namespace_full, wants_job(s) && submit_is_over_cap(s->world, s->unit))
/* A report about a submit that is on its way would be out of date before anybody has read it, and
 * such writes would slow down other pods. */
WHEN(is_submitting, is_unanswered(s) && answer_left_us(s) > 0)
/* A whole list of jobs settles the submit, if the list began when the submit could no longer take
 * effect. If slurmctld had answered, and the list shows no job, then the answer was a refusal: the
 * executor sets SUBMIT_REFUSED. */
WHEN(is_answered_with_error,
     submits(s) && last_submit(s)->state == SUBMIT_UNRESOLVED && last_submit(s)->is_answered)
WHEN(is_unresolved, submits(s) && last_submit(s)->state == SUBMIT_UNRESOLVED &&
                        slurm_cache_listed_us(s->world->slurm_jobs) <= last_submit(s)->settles_us)

static bool is_refused(const struct situation *s)
{
    const struct submit_record *submit = last_submit(s);

    return submits(s) && submit->state == SUBMIT_REFUSED && submit->hash == s->desc_hash &&
           submit->site == capacity_generation(s->world->capacity) &&
           s->world->facts.now_us < submit->again_us;
}

/* Jobs were just read again after a restart, and it is not known yet which jobs are missing: a node
 * that looks free may be in use by a pod that lost its job. */
static bool was_just_restarted(const struct situation *s)
{
    const struct bridge_facts *facts = &s->world->facts;

    return facts->restarted_us && facts->now_us - facts->restarted_us < REBOOK_FIRST_US;
}

/* Bound pods use their nodes, even if slurmctld has forgotten their jobs: these jobs are submitted
 * before all others. */
WHEN(does_rebooking_come_first,
     wants_job(s) && (s->world->facts.rebooking > 0 || was_just_restarted(s)))
WHEN(is_takeover_delayed, submits(s) && takeover_delay_left_us(s) > 0)

static const struct write_refusal *refused_write(const struct situation *s)
{
    static const struct write_refusal none = { .text = NULL };

    return s->unit->state ? &s->unit->state->write_refusal : &none;
}

WHEN(was_write_refused, wants_job(s) && s->world->facts.now_us < refused_write(s)->submit_us)
WHEN(is_backing_off, submits(s) && backoff_left_us(s) > 0)
WHEN(is_behind_others, wants_job(s) && s->queue_us > 0)
WHEN(is_submitted_soon, wants_job(s) && s->mode == SUBMIT_SOON)

/* ---- pods that wait with a job ---- */

static bool is_too_small(const struct situation *s)
{
    const struct unit *unit = s->unit;

    return unit->kind != GROUP_NONE && unit->owner.object && unit->in[POD_BOUND] == 0 &&
           unit->in[POD_WAITS] < (uint64_t)unit->owner.needed && s->job_phase != JOB_ENDS &&
           unit->in[POD_ENDING] == 0;
}

WHEN(is_pending, s->job_phase == JOB_WAITS)
WHEN(is_pending_unusable, is_pending(s) && s->world->facts.trouble[0])
/* The job runs, and where is being read. */
WHEN(is_configuring, is_pending(s) && slurm_words_has(&s->unit->job->state, SLURM_JOB_CONFIGURING))
WHEN(is_replaced, is_pending(s) && s->sync.anew && s->read_left_us > 0)
WHEN(is_change_invalid, is_pending(s) && s->sync.invalid)
WHEN(is_change_refused, is_pending(s) && s->sync.is_refused)
WHEN(has_pending_no_nodes, is_pending(s) && !s->sync.has_nodes)
WHEN(is_suspended, s->job_phase == JOB_SUSPENDED)
WHEN(does_job_end, s->job_phase == JOB_ENDS || s->job_phase == JOB_ENDED)

/* ---- pods whose job runs ---- */

/* The state of the job was seen, its nodes not yet. */
WHEN(are_nodes_unread, !s->unit->job->nodes[0])
/* Pods that came after the submit may join the job, and it may have been submitted for fewer. */
WHEN(are_places_unread,
     s->assigned.is_guess || (s->is_placed && !allocation_is_known(s->unit->job)))
WHEN(has_too_few, s->assigned.count == 0 || !assigned_is_enough(s->unit, &s->assigned))
/* The job of a group that has bound pods is never given back. */
WHEN(is_misfit, has_too_few(s) && s->assigned.misfit && !s->is_placed)
WHEN(are_neighbours_unread, is_misfit(s) && s->has_stale_jobs)
WHEN(had_many_misfits, s->unit->state && s->unit->state->misfit_count >= MANY_MISFITS)
WHEN(is_misfit_again, is_misfit(s) && had_many_misfits(s))
WHEN(is_place_not_free, has_too_few(s) && s->assigned.will_be_freed)
/* The job was submitted for other pods than those that wait now. */
WHEN(has_too_few_places,
     has_too_few(s) && !s->is_placed && !assigned_is_enough(s->unit, &s->assigned))
WHEN(is_node_forgotten, s->forgotten && s->unit->in[POD_BOUND] == 0)
/* The job is not given back while pods of the unit are still ending on it. */
WHEN(is_node_in_use, is_node_forgotten(s) && s->unit->in[POD_ENDING] > 0)
/* The API server refuses what the job is for: its node is not kept for ever. */
WHEN(is_write_refused_long, !s->is_placed &&
                                s->world->facts.now_us >= refused_write(s)->given_back_us &&
                                s->world->facts.now_us < refused_write(s)->submit_us)
WHEN(is_write_refused, s->world->facts.now_us < refused_write(s)->again_us)
WHEN(is_unprepared, !s->is_prepared)
WHEN(have_volumes_timed_out, s->volumes_timed_out && !s->is_placed)
WHEN(are_volumes_unbound, s->volumes.count > 0)
WHEN(is_layout_unread, s->claims.state == CLAIMS_UNREAD)
WHEN(is_claim_refused, s->claims.state == CLAIMS_REFUSED)
WHEN(is_device_misfit,
     !s->is_placed && (s->claims.state == CLAIMS_MISFIT ||
                       (s->claims.state == CLAIMS_HELD &&
                        job_has_run_for(s->world, s->unit->job, HELD_TOO_LONG_S))))
WHEN(is_device_misfit_again, is_device_misfit(s) && had_many_misfits(s))
WHEN(are_devices_not_ready, s->claims.state != CLAIMS_READY && s->claims.state != CLAIMS_UNWRITTEN)
WHEN(are_claims_unwritten, s->claims.state == CLAIMS_UNWRITTEN)
WHEN(always, true)

/* ---- when a unit looks again, where time is what it waits for ---- */

AFTER(due_soon, SOON_US)
AFTER(due_half_second, SECOND_US / 2)
AFTER(due_second, SECOND_US)
/* A read that has not come by then is asked for again. */
AFTER(due_reread, REREAD_US)
AFTER(due_calm, CALM_US)
AFTER(due_answer, answer_left_us(s))
/* Other units wait for this one only for so long (timings.c). */
AFTER(due_rebook_given_up, REREAD_US)
AFTER(due_rebooked, was_just_restarted(s)
                        ? s->world->facts.restarted_us + REBOOK_FIRST_US - s->world->facts.now_us
                        : REREAD_US)
AFTER(due_volumes, SECOND_US)
AFTER(due_place, 5 * SECOND_US)
AFTER(due_devices, SECOND_US / 10)
AFTER(due_grown, group_grows_us(s->world, s->unit))
/* Units that wait for room look one after another, so that they do not all try for one place. */
AFTER(due_room, 5 * SECOND_US + (int64_t)s->world->facts.waiting_pods * SECOND_US / 50)
AFTER(due_pause, s->world->facts.pause_us - s->world->facts.now_us)

static int64_t due_refused(const struct situation *s)
{
    int64_t left_us = last_submit(s)->again_us - s->world->facts.now_us;

    return left_us < 15 * SECOND_US ? left_us : 15 * SECOND_US;
}

AFTER(due_misfit,
      s->unit->state && s->unit->state->misfit_count > 0 ? 5 * SECOND_US : 15 * SECOND_US)
AFTER(due_write, refused_write(s)->again_us - s->world->facts.now_us)
AFTER(due_submit_after_refusal, refused_write(s)->submit_us - s->world->facts.now_us)
AFTER(due_queue, s->queue_us)

static int64_t due_read(const struct situation *s)
{
    if (s->read_left_us > 0)
        return s->read_left_us;
    return s->has[PART_SYNC] && sync_has_update(&s->sync) ? SECOND_US / 2 : s->read_pause_us;
}

/* Only the nodes of a job were read when it started. When there is time, the whole record is read:
 * it has the sluid, by which the job can be cancelled even if its id belongs to another job by
 * then. */
static int64_t due_whole_record(const struct situation *s)
{
    return s->unit->job->start_time > 0 ? 0 : CALM_US;
}

/* ---- the table ---- */

struct rule {
    enum unit_phase phase;
    const char *name;                        /* in /debug/state and metrics */
    bool (*when)(const struct situation *s); /* answers, and changes nothing */
    enum part needs;                         /* the facts that `when` reads */
    enum show show;
    const char *reason, *text; /* shown to a person; templates: words.h */
    const char *event;         /* the reason of an event with the same text; NULL */
    bool event_is_normal, event_repeats;
    bool guards; /* asked once more when a submit is sent: reads no part but PART_BOUND, of the job
                    description only desc_hash */
    unsigned woken_by;                            /* enum wake */
    int64_t (*due_us)(const struct situation *s); /* with ON_TIME: in how long; 0: never */
    void (*act)(const struct situation *s, struct plan *plan);
};

#define AT(which, word)      .phase = (which), .name = (word)
#define IF(question, part)   .when = (question), .needs = (part)
#define WAIT(words)          .show = SHOW_NOT, .text = (words) /* only in /debug/state */
#define WAITING(word, words) .show = SHOW_WAITING, .reason = (word), .text = (words)
#define TROUBLE(word, words) .show = SHOW_TROUBLE, .reason = (word), .text = (words)
#define OUTAGE(word, words)  .show = SHOW_OUTAGE, .reason = (word), .text = (words)
#define EVENT(word)          .event = (word)                        /* when the condition is new */
#define ALARM(word)          .event = (word), .event_repeats = true /* at every such plan */
#define NEWS(word)           .event = (word), .event_repeats = true, .event_is_normal = true
#define GUARD                .guards = true
#define WOKEN(sources)       .woken_by = (sources)
#define DUE(time)            .due_us = (time)
#define DO(action)           .act = (action)

/* clang-format off */
static const struct rule rules[] = {
    /* every unit */
    { AT(UNIT_INHERITED_UNREAD, "inherited, Slurm unread"), IF(is_inherited_unread, PART_NONE),
      WAIT("job {inherited} of a bridge before this one is being taken over"), WOKEN(ON_SLURM) },
    { AT(UNIT_INHERITED, "inherited"), IF(is_inherited, PART_NONE),
      WAIT("job {inherited} of a bridge before this one is being taken over"),
      WOKEN(ON_JOB | ON_TIME), DUE(due_second), DO(act_adopt) },
    { AT(UNIT_RELEASE_UNREAD, "over, Slurm unread"), IF(is_release_unread, PART_NONE),
      WAIT("its job ends when Slurm's jobs have been read again"), WOKEN(ON_SLURM) },
    { AT(UNIT_RELEASE_BEHIND, "over, job unread"), IF(is_release_behind, PART_NONE),
      WAIT("its job is being read"), WOKEN(ON_JOB), DO(act_read_jobs) },
    { AT(UNIT_GONE, "gone"), IF(is_gone, PART_NONE), WOKEN(ON_JOB), DO(act_end_jobs) },
    { AT(UNIT_OVER, "over"), IF(is_over, PART_NONE), WOKEN(ON_POD | ON_JOB), DO(act_end_jobs) },
    { AT(UNIT_UNINSTALLED, "uninstalled"), IF(is_uninstalling, PART_NONE),
      WOKEN(ON_POD | ON_JOB), DO(act_end_jobs) },
    { AT(UNIT_FOREIGN, "of another scheduler"), IF(is_foreign, PART_NONE), WOKEN(ON_POD) },
    { AT(UNIT_IN_GROUP, "planned with its group"), IF(is_in_group, PART_NONE), WOKEN(ON_POD) },
    { AT(UNIT_ENDING, "ending"), IF(is_ending, PART_NONE),
      WAIT("its containers may still run"), WOKEN(ON_POD) },
    { AT(UNIT_GATED, "gated"), IF(is_gated, PART_NONE),
      WAIT("{gates} scheduling gates are closed"), WOKEN(ON_POD), DO(act_end_jobs) },
    { AT(UNIT_BOUND_UNREAD, "bound, Slurm unread"), IF(is_bound_unread, PART_NONE),
      WAIT("Slurm's jobs are being read"), WOKEN(ON_SLURM) },
    { AT(UNIT_JOB_BEHIND, "job unread"), IF(is_job_behind, PART_NONE),
      WAIT("its job is being read"), WOKEN(ON_JOB), DO(act_read_jobs) },
    { AT(UNIT_KEPT_JOB_UNREAD, "duplicate jobs, unread"), IF(is_kept_job_unread, PART_NONE),
      WAIT("whether job {job} is still there is being read"), WOKEN(ON_JOB), DO(act_read_job) },
    { AT(UNIT_DUPLICATED, "duplicate jobs"), IF(is_duplicated, PART_NONE),
      WAIT("{others} jobs of this unit are being cancelled"), WOKEN(ON_JOB),
      DO(act_cancel_others) },
    { AT(UNIT_GIVEN_UP, "job given up"), IF(is_given_up, PART_NONE),
      WAIT("job {job} was given up, and ends"), WOKEN(ON_JOB | ON_TIME), DUE(due_second),
      DO(act_cancel_given_up) },
    /* pods that are bound */
    { AT(UNIT_BOUND_NODES_UNREAD, "bound, nodes unread"), IF(are_bound_nodes_unread, PART_BOUND),
      WAIT("the nodes of job {job} are being read"), WOKEN(ON_JOB | ON_TIME), DUE(due_reread),
      DO(act_read_job) },
    { AT(UNIT_REBOOK_MISPLACED, "rebooked elsewhere"), IF(is_rebooked_elsewhere, PART_BOUND),
      WAITING("NotCovered", "it runs on {node}, and job {job} that holds its resources waits: "
          "{slurm reason}"), WOKEN(ON_JOB), DO(act_require_nodes) },
    { AT(UNIT_REBOOK_WAITS, "rebooked"), IF(does_rebooked_job_wait, PART_BOUND),
      WAITING("NotCovered", "it runs on {node}, and job {job} that holds its resources waits: "
          "{slurm reason}"), WOKEN(ON_JOB | ON_TIME), DUE(due_calm), DO(act_read_calmly) },
    { AT(UNIT_STRAY_ENDS, "foreign job ends"), IF(does_stray_end, PART_BOUND),
      WAIT("job {job}, which is not its own, ends"), WOKEN(ON_JOB) },
    { AT(UNIT_STRAY, "foreign job"), IF(is_stray, PART_BOUND),
      WOKEN(ON_JOB), DO(act_cancel_stray) },
    { AT(UNIT_JOB_ENDED, "job ended"), IF(has_job_ended, PART_BOUND),
      WOKEN(ON_POD | ON_JOB), DO(act_end_pods) },
    { AT(UNIT_CLAIMS_LOST, "bound, claims lost"), IF(has_lost_claims, PART_BOUND),
      WAIT("its claims are being written"), WOKEN(ON_CLAIM | ON_TIME), DUE(due_whole_record),
      DO(act_restore_claims) },
    { AT(UNIT_BOUND, "bound"), IF(is_bound_with_job, PART_BOUND),
      WOKEN(ON_POD | ON_JOB | ON_TIME), DUE(due_whole_record), DO(act_keep_bound) },
    { AT(UNIT_NODE_UNKNOWN, "bound, node unknown"), IF(is_node_unknown, PART_BOUND),
      WAIT("its node {node} is not known"), WOKEN(ON_NODES | ON_TIME), DUE(due_rebook_given_up) },
    { AT(UNIT_NODE_NOT_IN_SLURM, "bound, node not in Slurm"), IF(is_node_not_in_slurm, PART_BOUND),
      TROUBLE("NotCovered", "it runs on {node}, which Slurm does not have"),
      WOKEN(ON_NODES | ON_TIME), DUE(due_rebook_given_up) },
    /* pods that wait and have no job */
    { AT(UNIT_OWNER_UNSEEN, "owner unseen"), IF(is_owner_unseen, PART_NONE),
      WAITING("OwnerUnknown", "{owner} has not been seen"), WOKEN(ON_OWNER) },
    { AT(UNIT_GROUP_ENDED, "group ended"), IF(has_group_ended, PART_NONE),
      TROUBLE("GroupEnded", "PodGroup coscheduling status is {group phase}"), WOKEN(ON_OWNER) },
    { AT(UNIT_GROUP_INCOMPLETE, "group incomplete"), IF(is_group_incomplete, PART_NONE),
      WAITING("GroupIncomplete", "not enough pending pods to create external job: {waiting} of "
          "{needed} pods of its {group} are there"), WOKEN(ON_POD | ON_OWNER) },
    { AT(UNIT_GROUP_GROWS, "group may grow"), IF(may_group_grow, PART_NONE),
      WAIT("more pods of its {group} may come"), WOKEN(ON_POD | ON_TIME), DUE(due_grown) },
    { AT(UNIT_INVALID, "invalid"), IF(is_invalid, PART_DESC),
      TROUBLE("Invalid", "{invalid}"), WOKEN(ON_POD | ON_OWNER | ON_NODES | ON_CLAIM) },
    { AT(UNIT_NO_NODE_FITS, "no node fits"), IF(has_no_nodes, PART_NODES),
      TROUBLE("NoNodeFits", "{nodes left}"), EVENT("FailedScheduling"), WOKEN(ON_NODES | ON_CLAIM | ON_TIME),
      DUE(due_misfit) },
    /* the guard */
    { AT(UNIT_SLURM_UNUSABLE, "Slurm unusable"), IF(is_slurm_unusable, PART_NONE),
      OUTAGE("SlurmUnavailable", "{trouble}"), GUARD, WOKEN(ON_SLURM) },
    { AT(UNIT_SLURM_UNREAD, "Slurm unread"), IF(is_slurm_unread, PART_NONE),
      WAITING("WaitingForSlurm", "Slurm has not been read yet"), GUARD, WOKEN(ON_SLURM) },
    { AT(UNIT_SLURM_SUSPECTED, "Slurm suspected"), IF(is_slurm_suspected, PART_NONE),
      WAITING("WaitingForSlurm", "jobs are being read again: {suspicion}"), GUARD,
      WOKEN(ON_SLURM) },
    { AT(UNIT_SIGHT_UNKNOWN, "sight unknown"), IF(is_sight_unknown, PART_NONE),
      WAITING("WaitingForSlurm", "it is not known yet whether the bridge's Slurm user sees all "
          "jobs"), GUARD, WOKEN(ON_SLURM) },
    { AT(UNIT_SEES_PART, "sees part of the jobs"), IF(sees_part, PART_NONE),
      OUTAGE("SlurmUnavailable", "the bridge's Slurm user does not see all jobs: {visibility}"),
      GUARD, WOKEN(ON_SLURM) },
    { AT(UNIT_USER_UNKNOWN, "Slurm user unknown"), IF(is_user_unknown, PART_NONE),
      OUTAGE("SlurmUnavailable", "the bridge's token names no Slurm user, so none of its jobs could be "
          "proven its own: jwtUser in the config names the user"), GUARD, WOKEN(ON_SLURM) },
    { AT(UNIT_JOBS_UNREAD, "jobs unread"), IF(are_jobs_unread, PART_NONE),
      WAITING("WaitingForSlurm", "jobs have not been read since this bridge leads"), GUARD,
      WOKEN(ON_SLURM) },
    { AT(UNIT_DENIED, "denied"), IF(is_denied, PART_NONE),
      OUTAGE("SlurmUnavailable", "{pause}"), GUARD, WOKEN(ON_SLURM | ON_TIME), DUE(due_pause) },
    { AT(UNIT_SLURM_FULL, "Slurm full"), IF(is_slurm_full, PART_NONE),
      WAITING("WaitingForSlurm", "{pause}"), GUARD, WOKEN(ON_SLURM | ON_TIME), DUE(due_pause) },
    { AT(UNIT_SUBMITTING, "submitting"), IF(is_submitting, PART_NONE),
      WAIT("Slurm is being asked"), GUARD, WOKEN(ON_ANSWER | ON_TIME), DUE(due_answer) },
    { AT(UNIT_UNANSWERED, "unanswered"), IF(is_unanswered, PART_NONE),
      WAITING("WaitingForSlurm", "Slurm is being asked"), GUARD, WOKEN(ON_ANSWER) },
    { AT(UNIT_ANSWERED_WITH_ERROR, "unresolved, answered"), IF(is_answered_with_error, PART_NONE),
      WAITING("WaitingForSlurm", "whether there is a job will be known soon; Slurm said: {answer}"),
      GUARD, WOKEN(ON_ANSWER) },
    { AT(UNIT_UNRESOLVED, "unresolved"), IF(is_unresolved, PART_NONE),
      WAITING("WaitingForSlurm", "Slurm did not answer: whether there is a job will be known soon"),
      GUARD, WOKEN(ON_ANSWER) },
    { AT(UNIT_LAST_TENTH, "last tenth"), IF(is_last_tenth, PART_NONE),
      WAITING("TooManyJobs", "Slurm keeps {most jobs} jobs at most (MaxJobCount), and pods leave a "
          "tenth of them to others"), GUARD, WOKEN(ON_TIME), DUE(due_room) },
    { AT(UNIT_NAMESPACE_FULL, "namespace full"), IF(is_namespace_full, PART_NONE),
      WAITING("TooManyJobs", "its namespace has {cap} jobs, as many as it may have "
          "(maxJobsPerNamespace)"), GUARD, WOKEN(ON_TIME), DUE(due_room) },
    { AT(UNIT_REFUSED, "refused"), IF(is_refused, PART_DESC),
      TROUBLE("Refused", "Slurm refused the job: {answer}{lack}"), EVENT("FailedScheduling"),
      GUARD, WOKEN(ON_POD | ON_OWNER | ON_NODES | ON_TIME), DUE(due_refused) },
    { AT(UNIT_REBOOKING_FIRST, "rebooking of others first"), IF(does_rebooking_come_first, PART_NONE),
      WAITING("WaitingForSlurm", "pods that may have lost their jobs come first"), GUARD,
      WOKEN(ON_REBOOKED | ON_TIME), DUE(due_rebooked) },
    { AT(UNIT_TAKEOVER_DELAY, "take-over delay"), IF(is_takeover_delayed, PART_NONE),
      WAITING("WaitingForSlurm", "the bridge before this one may have asked Slurm already"), GUARD,
      WOKEN(ON_TIME), DUE(takeover_delay_left_us) },
    { AT(UNIT_WRITE_REFUSED_BEFORE, "write refused before"), IF(was_write_refused, PART_NONE),
      TROUBLE("WriteRefused", "its last job was given back: the API server refused to {refusal}"),
      GUARD, WOKEN(ON_TIME), DUE(due_submit_after_refusal) },
    { AT(UNIT_BACKING_OFF, "backing off"), IF(is_backing_off, PART_NONE),
      WAITING("WaitingForSlurm", "{attempts} jobs of it ended before it was placed"), GUARD,
      WOKEN(ON_TIME), DUE(backoff_left_us) },
    { AT(UNIT_REBOOKING, "rebooking"), IF(wants_rebooking, PART_NONE),
      WOKEN(ON_ANSWER), DO(act_rebook) },
    { AT(UNIT_QUEUES, "queues behind its owner's pods"), IF(is_behind_others, PART_QUEUE),
      WAITING("WaitingForTurn", "waits for its turn: a pod that decides where this one may go is "
          "placed first"), WOKEN(ON_TIME), DUE(due_queue) },
    { AT(UNIT_SUBMIT_SOON, "submitted soon"), IF(is_submitted_soon, PART_QUEUE),
      WAIT("jobs that were queued just now are about to start"), WOKEN(ON_TIME), DUE(due_soon) },
    { AT(UNIT_SUBMITTABLE, "not submitted"), IF(wants_job, PART_QUEUE),
      WOKEN(ON_ANSWER), DO(act_submit) },
    /* pods that wait, as their job does */
    { AT(UNIT_TOO_SMALL, "group too small"), IF(is_too_small, PART_NONE),
      WAITING("GroupIncomplete", "not enough pending pods for created external job: {waiting} of "
          "{needed} pods of its {group} are there"), WOKEN(ON_JOB), DO(act_cancel_small) },
    { AT(UNIT_PENDING_UNUSABLE, "pending, Slurm unusable"), IF(is_pending_unusable, PART_NONE),
      OUTAGE("SlurmUnavailable", "{trouble}"), WOKEN(ON_SLURM) },
    { AT(UNIT_CONFIGURING, "configuring"), IF(is_configuring, PART_NONE),
      WAIT("the nodes of job {job} are being read"), WOKEN(ON_JOB | ON_TIME), DUE(due_read),
      DO(act_read_again) },
    { AT(UNIT_REPLACED, "submitted anew"), IF(is_replaced, PART_SYNC),
      WAIT("job {job} is submitted anew: Slurm cannot change what {annotation} says of a job"),
      NEWS("SlurmJobReplaced"), WOKEN(ON_JOB), DO(act_cancel_replaced) },
    { AT(UNIT_CHANGE_INVALID, "pending, invalid"), IF(is_change_invalid, PART_SYNC),
      TROUBLE("Invalid", "nothing changes of job {job}: {change}"), EVENT("FailedScheduling"),
      WOKEN(ON_JOB | ON_TIME), DUE(due_read), DO(act_sync) },
    { AT(UNIT_CHANGE_REFUSED, "pending, change refused"), IF(is_change_refused, PART_SYNC),
      TROUBLE("Refused", "Slurm refused to change job {job}: {answer}"), EVENT("FailedScheduling"),
      WOKEN(ON_JOB | ON_TIME), DUE(due_read), DO(act_sync) },
    { AT(UNIT_PENDING_NO_NODE, "pending, no node fits"), IF(has_pending_no_nodes, PART_SYNC),
      TROUBLE("NoNodeFits", "{pending nodes left}"), EVENT("FailedScheduling"),
      WOKEN(ON_JOB | ON_NODES | ON_TIME), DUE(due_read), DO(act_sync) },
    { AT(UNIT_PENDING, "pending"), IF(is_pending, PART_SYNC),
      WAITING("{SlurmReason}", "{pending}"), WOKEN(ON_JOB | ON_TIME), DUE(due_read),
      DO(act_sync) },
    { AT(UNIT_SUSPENDED, "suspended"), IF(is_suspended, PART_NONE),
      WAITING("Suspended", "job {job} is suspended"), WOKEN(ON_JOB) },
    { AT(UNIT_JOB_ENDS, "job ends"), IF(does_job_end, PART_NONE),
      WAIT("job {job} ends"), WOKEN(ON_JOB) },
    /* pods that wait, and their job runs */
    { AT(UNIT_NODES_UNREAD, "allocated, nodes unread"), IF(are_nodes_unread, PART_NONE),
      WAIT("the nodes of job {job} are being read"), WOKEN(ON_JOB | ON_TIME), DUE(due_reread),
      DO(act_read_job) },
    { AT(UNIT_PLACES_UNREAD, "allocated, places unread"), IF(are_places_unread, PART_PLACES),
      WAIT("what job {job} has on its nodes is being read"), WOKEN(ON_JOB | ON_TIME),
      DUE(due_reread), DO(act_read_job) },
    { AT(UNIT_NEIGHBOURS_UNREAD, "allocated, neighbours unread"), IF(are_neighbours_unread, PART_PLACES),
      WAIT("job {job} runs; the other jobs on {misfit} are being read"), WOKEN(ON_TIME),
      DUE(due_half_second), DO(act_read_neighbours) },
    { AT(UNIT_MISFIT_AGAIN, "misfit again"), IF(is_misfit_again, PART_PLACES),
      TROUBLE("NodeMisfit", "job {job} was given a node that will not do, as {misfits} were "
          "before it: {misfit why}"), ALARM("SlurmNodeMisfit"), WOKEN(ON_JOB), DO(act_give_back) },
    { AT(UNIT_MISFIT, "misfit"), IF(is_misfit, PART_PLACES),
      WAITING("NodeMisfit", "job {job} was given a node that will not do: {misfit why}"),
      ALARM("SlurmNodeMisfit"), WOKEN(ON_JOB), DO(act_give_back) },
    { AT(UNIT_PLACE_NOT_FREE, "place not free"), IF(is_place_not_free, PART_PLACES),
      WAITING("PlaceNotFree", "job {job} runs; its place is free when the pods there are gone, "
          "within {place wait} s, or it is given back"), WOKEN(ON_PLACE | ON_TIME), DUE(due_place),
      DO(act_wait_for_place) },
    { AT(UNIT_TOO_FEW_PLACES, "too few places"), IF(has_too_few_places, PART_PLACES),
      WAITING("TooFewPlaces", "job {job} has no place for {left} of its pods: it is given back"),
      WOKEN(ON_JOB), DO(act_cancel_few_places) },
    { AT(UNIT_NO_PLACE, "no place"), IF(has_too_few, PART_PLACES),
      WAIT("job {job} has no place for {left} of its pods"), WOKEN(ON_PLACE | ON_NODES | ON_TIME),
      DUE(due_reread) },
    { AT(UNIT_BIND_LATER, "bind after rebooking"), IF(was_just_restarted, PART_PLACES),
      WAIT("pods that may have lost their jobs come first"), WOKEN(ON_TIME), DUE(due_rebooked) },
    { AT(UNIT_NODE_IN_USE, "node in use, own pods end"), IF(is_node_in_use, PART_PLACES),
      WAIT("a pod whose job Slurm has forgotten runs on {forgotten}"),
      WOKEN(ON_PLACE | ON_REBOOKED) },
    { AT(UNIT_NODE_FORGOTTEN, "node in use"), IF(is_node_forgotten, PART_PLACES),
      WAITING("NodeMisfit", "job {job} was given a node that will not do: a pod whose job Slurm "
          "has forgotten runs there"), ALARM("SlurmNodeMisfit"), WOKEN(ON_JOB),
      DO(act_give_forgotten_back) },
    { AT(UNIT_WRITE_REFUSED_LONG, "write refused for long"),
      IF(is_write_refused_long, PART_PLACES),
      TROUBLE("WriteRefused", "job {job} is given back: the API server refused to {refusal}"),
      ALARM("SlurmJobGivenBack"), WOKEN(ON_JOB), DO(act_cancel_refused) },
    { AT(UNIT_WRITE_REFUSED, "write refused"), IF(is_write_refused, PART_PLACES),
      TROUBLE("WriteRefused", "job {job} runs; the API server refused to {refusal}"),
      EVENT("FailedScheduling"), WOKEN(ON_TIME), DUE(due_write) },
    { AT(UNIT_UNPREPARED, "unprepared"), IF(is_unprepared, PART_NONE),
      WAIT("it is being prepared to be bound"), WOKEN(ON_POD) },
    { AT(UNIT_VOLUMES_TIMED_OUT, "volumes timed out"), IF(have_volumes_timed_out, PART_VOLUMES),
      WAITING("NodeMisfit", "job {job} is given back after {time-out} s: {volume}"),
      ALARM("SlurmNodeMisfit"), WOKEN(ON_JOB), DO(act_cancel_volumes) },
    { AT(UNIT_VOLUMES, "volumes"), IF(are_volumes_unbound, PART_VOLUMES),
      WAITING("VolumesNotBound", "job {job} runs; {volume}"), WOKEN(ON_VOLUME | ON_TIME),
      DUE(due_volumes), DO(act_bind_volumes) },
    { AT(UNIT_LAYOUT_UNREAD, "layout unread"), IF(is_layout_unread, PART_CLAIMS),
      WAIT("what job {job} has on its nodes is being read"), WOKEN(ON_ANSWER),
      DO(act_read_layout) },
    { AT(UNIT_CLAIM_REFUSED, "claim refused"), IF(is_claim_refused, PART_CLAIMS),
      TROUBLE("ClaimRefused", "{claim}"), WOKEN(ON_JOB | ON_CLAIM), DO(act_cancel_claim) },
    { AT(UNIT_DEVICE_MISFIT_AGAIN, "device misfit again"), IF(is_device_misfit_again, PART_CLAIMS),
      TROUBLE("NodeMisfit", "job {job} was given a node that will not do, as {misfits} were "
          "before it: {claim}"), ALARM("SlurmNodeMisfit"), WOKEN(ON_JOB),
      DO(act_give_device_back) },
    { AT(UNIT_DEVICE_MISFIT, "device misfit"), IF(is_device_misfit, PART_CLAIMS),
      WAITING("NodeMisfit", "job {job} was given a node that will not do: {claim}"),
      ALARM("SlurmNodeMisfit"), WOKEN(ON_JOB), DO(act_give_device_back) },
    { AT(UNIT_DEVICES_NOT_READY, "devices not ready"), IF(are_devices_not_ready, PART_CLAIMS),
      WAITING("DevicesNotReady", "job {job} runs; {claim}"), WOKEN(ON_CLAIM | ON_TIME),
      DUE(due_devices), DO(act_wait_for_devices) },
    { AT(UNIT_CLAIMS_UNWRITTEN, "claims unwritten"), IF(are_claims_unwritten, PART_CLAIMS),
      WAIT("its claims are being written"), WOKEN(ON_CLAIM), DO(act_write_claims) },
    { AT(UNIT_ALLOCATED, "allocated"), IF(always, PART_CLAIMS), WOKEN(ON_POD), DO(act_bind) },
};
/* clang-format on */
_Static_assert(sizeof(rules) / sizeof(rules[0]) == UNIT_PHASES, "a row for each phase");

/* ---- deciding ---- */

static bool is_submittable(const struct bridge_world *world, const struct unit *unit,
                           struct arena *arena);

/* The first rule that matches, among the rules above the row of `before`. NULL: none does, or the
 * situation has an error. */
static const struct rule *first_match(struct situation *s, enum unit_phase before)
{
    for (unsigned i = 0; i < UNIT_PHASES && rules[i].phase != before; i++) {
        situation_need(s, rules[i].needs, is_submittable);
        if (s->err.class)
            return NULL;
        if (rules[i].when(s))
            return &rules[i];
    }
    return NULL;
}

/* Whether a unit would be submitted now if it did not queue behind other pods of its owner. */
static bool is_submittable(const struct bridge_world *world, const struct unit *unit,
                           struct arena *arena)
{
    struct situation s;
    bool answer;

    situation_init(&s, world, unit, arena);
    answer = !first_match(&s, UNIT_REBOOKING) && !s.err.class && wants_job(&s);
    situation_done(&s);
    return answer;
}

const char *place_submit_objection(const struct bridge_world *world, struct str key,
                                   uint64_t desc_hash, struct arena *arena)
{
    const char *objection = NULL;
    struct situation s;
    struct unit unit;

    unit_gather(world, key, arena, &unit);
    situation_init(&s, world, &unit, arena);
    situation_need(&s, PART_BOUND, is_submittable);
    s.desc_hash = desc_hash;
    if (!submits(&s))
        objection = "its pods want no other job any more";
    for (unsigned i = 0; !objection && i < UNIT_PHASES; i++)
        if (rules[i].guards && rules[i].when(&s))
            objection = words_fill(&s, rules[i].text);
    situation_done(&s);
    return objection;
}

enum unit_phase unit_phase(const struct bridge_world *world, const struct unit *unit,
                           struct arena *arena)
{
    const struct rule *rule;
    struct situation s;

    situation_init(&s, world, unit, arena);
    rule = first_match(&s, UNIT_PHASES);
    situation_done(&s);
    return rule ? rule->phase : UNIT_ALLOCATED;
}

const char *unit_phase_name(unsigned phase)
{
    unsigned i = 0;

    while (i < UNIT_PHASES - 1 && rules[i].phase != phase)
        i++;
    return rules[i].name;
}

/* ---- the table as text ---- */

static const char *const wake_names[] = { "owner",    "Slurm", "nodes", "place",  "claim", "volume",
                                          "rebooked", "pod",   "job",   "answer", "time" };

void wake_write(unsigned sources, struct buf *out)
{
    const char *between = "";

    for (unsigned i = 0; i < sizeof(wake_names) / sizeof(wake_names[0]); i++)
        if (sources & 1u << i) {
            buf_printf(out, "%s%s", between, wake_names[i]);
            between = ", ";
        }
}

void place_reference(struct buf *out)
{
    buf_add_text(out, "| phase | reason on the pod | text | woken by |\n|---|---|---|---|\n");
    for (unsigned i = 0; i < UNIT_PHASES; i++) {
        buf_printf(out, "| %s | %s | %s | ", rules[i].name, rules[i].reason ? rules[i].reason : "",
                   rules[i].text ? rules[i].text : "");
        wake_write(rules[i].woken_by, out);
        buf_add_text(out, " |\n");
    }
}

/* ---- steps: what must happen in every phase ---- */

static void plan_steps(const struct situation *s, struct plan *plan)
{
    const struct unit *unit = s->unit;
    bool wants_place = (unit->stage == POD_WAITS || unit->stage == POD_BOUND) && s->is_ours &&
                       !is_in_group(s) && !is_uninstalling(s);

    if (unit->jobs.inherited) /* nothing else is done before the job carries our key */
        return;
    plan_remove_finalizers(s->world, unit, plan);
    if (unit->in[POD_ENDING] > 0 && s->is_ours) {
        plan_look_again(plan, FENCE_LOOK_US); /* a node is fenced by time alone, too */
        if (s->is_clear && !unit->job && !unit->jobs.is_behind)
            plan_cap_grace(s->world, unit, plan);
    }
    if (!wants_place)
        return;
    if (s->lacks_slot)
        plan_wait(plan, "the job of its group has no place for it: it gets one of its own");
    if (!s->is_prepared)
        plan_prepare(s->world, unit, plan);
    if (!s->is_clear || unit->jobs.is_behind || unit->jobs.count > 1)
        return;
    plan_show_group(s->world, unit, plan);
    if (unit->stage == POD_WAITS && s->job_phase != JOB_RUNS && !is_given_up(s))
        plan_free_claims(s->world, unit, plan);
}

/* ---- the plan ---- */

static void carry_out(const struct situation *s, const struct rule *rule, struct plan *plan)
{
    const struct report report = { .show = rule->show,
                                   .reason = rule->reason ? words_fill(s, rule->reason) : "",
                                   .text = rule->text ? words_fill(s, rule->text) : "",
                                   .event = rule->event,
                                   .is_normal = rule->event_is_normal,
                                   .repeats = rule->event_repeats,
                                   .since_us = s->outage_us };
    int64_t due_us = rule->due_us ? rule->due_us(s) : 0;
    struct unit told = *s->unit;

    if (s->has[PART_PLACES] && s->assigned.at)
        told = plan_left_over(s->unit, plan, &s->assigned);
    plan_report(s->world, &told, plan, &report);
    if (rule->act)
        rule->act(s, plan);
    if (due_us > 0)
        plan_look_again(plan, due_us);
}

/* A unit, or the members of it in one stage. with_steps: not for members whose unit had them. */
static int place_part(const struct bridge_world *world, const struct unit *unit, bool with_steps,
                      struct plan *plan, struct placed *ret_placed, struct err *err)
{
    const struct rule *rule;
    struct situation s;

    situation_init(&s, world, unit, plan->arena);
    if (with_steps)
        plan_steps(&s, plan);
    rule = first_match(&s, UNIT_PHASES);
    if (rule) {
        carry_out(&s, rule, plan);
        ret_placed->phase = rule->phase;
        ret_placed->woken_by |= rule->woken_by;
    } else {
        *err = s.err;
    }
    situation_done(&s);
    return rule ? 0 : -err->class;
}

/* The object of a group may have been deleted and made again under the same name. The job of the
 * first object stays with the pods that are bound by it, and ends with them, so these pods are
 * planned as a unit of their own. If some pods of a group are bound and others wait, the bound pods
 * are planned first, and the others when the bound pods have their job. */
static int place_unit(const struct bridge_world *world, struct str key, struct plan *plan,
                      struct placed *ret_placed, struct err *err)
{
    struct unit unit, part;
    struct placed rest = { .woken_by = 0 };
    int result = 0;

    unit_gather(world, key, plan->arena, &unit);
    for (unsigned i = 0; i < unit.jobs.former_count && result == 0; i++) {
        unit_gather_former(world, &unit, unit.jobs.former[i], plan->arena, &part);
        result = place_part(world, &part, true, plan, ret_placed, err);
    }
    if (result == 0)
        result = place_part(world, &unit, true, plan, ret_placed, err);
    if (result < 0 || ret_placed->phase != UNIT_BOUND || unit.in[POD_WAITS] == 0)
        return result;
    part = unit_in(&unit, POD_WAITS);
    result = place_part(world, &part, false, plan, &rest, err);
    ret_placed->late = rest.phase;
    ret_placed->woken_by |= rest.woken_by;
    return result;
}

/* A unit whose plan needs too much memory is left as it is, and its pods report that. */
static int report_too_big(const struct bridge_world *world, struct str key, struct plan *plan)
{
    struct report report = { .show = SHOW_TROUBLE, .reason = "TooBig" };
    struct unit unit;

    plan_clear(plan);
    unit_gather(world, key, plan->arena, &unit);
    report.text = arena_printf(
        plan->arena, "a plan for its %u pods takes more than %zu MiB of the bridge's memory",
        unit.member_count, plan->arena->budget >> 20);
    if (unit.pod && world_is_ours(world, unit.pod))
        plan_report(world, &unit, plan, &report);
    plan_look_again(plan, TOO_BIG_US);
    return 0;
}

int place_plan(const struct bridge_world *world, struct str key, struct plan *plan,
               struct placed *ret_placed, struct err *err)
{
    struct placed placed = { .phase = UNIT_GONE, .late = UNIT_PHASES };
    int result = place_unit(world, key, plan, &placed, err);

    if (arena_is_over_budget(plan->arena))
        result = report_too_big(world, key, plan);
    if (ret_placed)
        *ret_placed = placed;
    return result;
}
