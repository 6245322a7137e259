/* unit.h - one unit as a plan looks at it: its pods, its jobs in Slurm, what is remembered of it.
 *
 * A unit is what Slurm gives resources to as one: a pod, or the pods of a group (group.h). It is
 * gathered anew for each plan and lives in the plan's arena. */
#ifndef SLINC_BRIDGE_UNIT_H
#define SLINC_BRIDGE_UNIT_H

#include "bridge/world/group.h"
#include "bridge/world/world.h"

/* Where a pod is in its life, as far as Slurm is concerned. */
enum pod_stage {
    POD_GATED,  /* somebody still holds it back */
    POD_WAITS,  /* wants a place */
    POD_BOUND,  /* has a place, and may run */
    POD_ENDING, /* being deleted, and its containers may still run */
    POD_OVER,   /* nothing of it runs, or ever will */
    POD_STAGES, /* how many there are */
};

enum pod_stage pod_stage(const struct bridge_world *world, const struct kube_pod *pod);

/* Where a job is. */
enum job_phase {
    JOB_WAITS,
    JOB_RUNS,
    JOB_SUSPENDED,
    JOB_ENDS,  /* over, and Slurm is still cleaning up */
    JOB_ENDED, /* holds nothing any more */
};

enum job_phase job_phase(const struct slurm_job *job);

enum {
    UNIT_MAX_JOBS = 16, /* live ones of one unit; one is right, two may happen */
    UNIT_MAX_MEMBERS = 1 << 16,
    UNIT_MAX_MORE = 2, /* objects beside the owner whose annotations count */
};

struct member {
    const struct kube_pod *pod;
    enum pod_stage stage;
    int64_t recorded_id; /* of the job that its label names; 0 */
    struct group_rank rank;
};

/* Whose annotations count, and how many pods belong together (owner.c). */
struct unit_owner {
    const struct kube_object *object;              /* NULL: not seen yet, see wanting */
    const struct kube_object *more[UNIT_MAX_MORE]; /* their annotations win, the last most */
    unsigned more_count;
    const struct kube_job *job;     /* the Job that made the pods; NULL */
    const struct kube_group *group; /* what says how many belong together; NULL */
    const char *job_name;           /* in Slurm, where neither pod nor owner give it; NULL */
    const char *wanting;            /* what of the owner is not there yet */
    int64_t needed;                 /* members that must exist before the unit is submitted */
    bool is_open;                   /* more than these may come: they are given a moment */
};

/* What Slurm has, or had, for the unit. */
struct unit_jobs {
    const struct slurm_job *at[UNIT_MAX_JOBS]; /* that have not ended */
    unsigned count;
    bool is_behind;                    /* what we last did to one of them is not seen yet */
    bool is_given_up;                  /* we wanted the job that counts cancelled */
    const struct slurm_job *inherited; /* of a bridge before ours, without our key; NULL */
    const struct slurm_job *bound_ended[UNIT_MAX_JOBS]; /* ended jobs that members are bound by */
    unsigned bound_ended_count;
    /* Jobs that still run for a deleted object of the same name (a PodGroup, a LeaderWorkerSet):
     * pods that were bound by them keep them. */
    const struct slurm_job *former[UNIT_MAX_JOBS];
    unsigned former_count;
    unsigned failed_attempts; /* jobs that ended before the unit was placed */
    int64_t ended_at;         /* when the last of them did; seconds since 1970 */
    unsigned attempt;         /* the highest so far; 0 = none */
    int64_t recorded_id;      /* of the job that the pod's label names; 0 */
};

struct unit {
    struct str key;
    enum group_kind kind;
    const char *uid; /* in the keys of its jobs: of the object that its group is named by; "" */
    const struct member *members; /* by rank; none when there is no pod any more */
    unsigned member_count;
    unsigned in[POD_STAGES];    /* how many members are in each stage */
    enum pod_stage stage;       /* POD_BOUND when one is, else POD_WAITS when one does, ... */
    const struct kube_pod *pod; /* the first member in that stage; NULL: there is none any more */
    bool is_elsewhere;          /* a pod that is planned with its group */
    int64_t created_us;         /* of its oldest member that is not over */
    /* Only in a unit of a former job (unit_gather_former): the object that has the name now. */
    const struct kube_object *successor;
    struct unit_owner owner;
    const struct slurm_job *job; /* the one that counts; NULL without any */
    struct unit_jobs jobs;
    const struct unit_state *state; /* NULL: nothing is remembered */
};

void unit_gather(const struct bridge_world *world, struct str key, struct arena *arena,
                 struct unit *ret_unit);

/* The unit of a former job: the pods that are bound by it, and nothing else. */
void unit_gather_former(const struct bridge_world *world, const struct unit *unit,
                        const struct slurm_job *former, struct arena *arena, struct unit *ret_unit);

/* Whether the pod is bound by a job of the object that had the group's name before. */
bool unit_is_of_former(const struct unit *unit, const struct kube_pod *pod);

/* The same unit with one member only: reports and actions are about that pod. */
struct unit unit_focus(const struct unit *unit, unsigned member);

/* The same unit with its members in this stage: reports are about these. */
struct unit unit_in(const struct unit *unit, enum pod_stage stage);

/* The ended job that a member was bound by; NULL. */
const struct slurm_job *unit_ended(const struct unit *unit, const struct member *member);

enum submit_state unit_submit_state(const struct unit *unit);

/* Plans a member by its own key, because the running job of its group has no place for it. */
void plan_enqueue_member(struct plan *plan, const struct member *member);

/* owner.c: whose words count, and how many pods belong together. */
void unit_find_owner(const struct bridge_world *world, struct arena *arena, struct unit *unit);

/* Who made these pods: as the webhook wrote it on them, or on what owns them. The user and his
 * groups, a line each; "": not known. Borrowed from the caches. -ERR_INVALID: several people made
 * them, and ret_creator is the first. */
int unit_find_creator(const struct bridge_world *world, const struct kube_pod *const *pods,
                      unsigned count, struct arena *arena, struct str *ret_creator,
                      struct err *err);

#endif
