/* turn.c - whether it is a unit's turn to be asked for.
 *
 * Slurm knows nothing of host ports, anti-affinity and spread constraints, and gives the same node
 * to all that are asked for at once: all but one would have to give it back. So of units whose
 * places depend on each other (rivals) one is asked for when the one before it has its place, and
 * is then kept from it by name. The order is that of eligible_goes_before.
 *
 * Nobody waits for a rival that does not move: one that cannot be asked for itself, or that was
 * asked for a while ago and has no place yet, because it waits in Slurm's queue or for people. When
 * even a pod of the same owner waits in that queue, so will this one, and turns would only cost it
 * its place there. What clashes then is found at bind.
 *
 * Holds   a unit waits only for units that go before it, and for those that are under way: never
 *         two for each other. */
#include "bridge/turn.h"

#include "bridge/ask.h"
#include "bridge/tell.h"
#include "slurm/submit.h"

#include <string.h>

enum {
    QUEUED_US = 2000000,     /* a job that has not started by then waits in Slurm's queue */
    UNDER_WAY_US = 10000000, /* a unit whose running job has not got it placed waits for others */
    STEP_US = 20000,         /* about what a turn takes */
    LOOK_MAX_US = 5000000,
    MAX_LOOKS = 256, /* at rivals that may come first, in one plan; the rest shows at bind */
};

enum standing {
    PASSED_OVER, /* nobody waits for it */
    COMES_FIRST,
    LEADS_TO_QUEUE, /* it waits in Slurm's queue, and so will this one */
};

struct turn {
    const struct bridge_world *world;
    const struct unit *unit;
    const struct kube_pod *first; /* of the unit's pods that wait */
    size_t arena_limit;           /* what is gathered of a rival is forgotten after each look */
    unsigned looks;
};

/* Its first pod speaks for a group, and so the order is the same whoever looks. */
static const struct kube_pod *first_of(const struct unit *unit)
{
    const struct kube_pod *first = NULL;

    for (unsigned i = 0; i < unit->member_count; i++)
        if (unit->members[i].stage == POD_WAITS &&
            (!first || eligible_goes_before(unit->members[i].pod, first)))
            first = unit->members[i].pod;
    return first;
}

static bool was_asked_for_within(const struct turn *turn, struct str key, int64_t time_us)
{
    const struct unit_memory *memory = memory_get(turn->world->memory, key);

    return memory && memory->ask.attempt > 0 &&
           (memory->ask.state == ASK_SENT ||
            turn->world->facts.now_us - memory->ask.sent_us < time_us);
}

static bool is_under_way(const struct turn *turn, const struct unit *rival)
{
    enum ask_state state = unit_ask_state(rival);
    enum job_phase phase = rival->job ? job_phase(rival->job) : JOB_ENDED;

    if (state != ASK_SENT && state != ASK_UNRESOLVED && (phase == JOB_ENDS || phase == JOB_ENDED))
        return false;
    return was_asked_for_within(turn, rival->key, phase == JOB_WAITS ? QUEUED_US : UNDER_WAY_US);
}

static bool have_one_owner(const struct kube_pod *a, const struct kube_pod *b)
{
    return a->object.owner.uid[0] && strcmp(a->object.owner.uid, b->object.owner.uid) == 0;
}

static enum standing standing_of(const struct turn *turn, const struct kube_pod *pod,
                                 struct str key, struct arena *arena)
{
    struct unit rival;

    unit_gather(turn->world, key, arena, &rival);
    if (is_under_way(turn, &rival))
        return COMES_FIRST;
    if (!eligible_goes_before(pod, turn->first))
        return PASSED_OVER;
    if (rival.job && job_phase(rival.job) == JOB_WAITS && have_one_owner(pod, turn->first))
        return LEADS_TO_QUEUE;
    return unit_can_be_asked_for(turn->world, &rival, arena) ? COMES_FIRST : PASSED_OVER;
}

/* Of those that come after it only what was asked for already matters: that is cheap to see. */
static enum standing look_at(struct turn *turn, const struct kube_pod *pod)
{
    auto_arena struct arena aside;
    auto_buf struct buf key;

    arena_init(&aside, turn->arena_limit);
    buf_init(&key, SLURM_MAX_KEY);
    world_unit_key(turn->world, pod, &key);
    if (str_eq(buf_str(&key), turn->unit->key) ||
        (!eligible_goes_before(pod, turn->first) &&
         !was_asked_for_within(turn, buf_str(&key), UNDER_WAY_US)))
        return PASSED_OVER;
    turn->looks++;
    return standing_of(turn, pod, buf_str(&key), &aside);
}

/* How many places in line the one that comes first is away; 0: nobody does. */
static unsigned find_who_comes_first(struct turn *turn, const struct kube_pod *pod)
{
    struct eligible_rivals rivals = eligible_rivals(turn->world->eligible, pod);
    const struct kube_pod *rival;

    while ((rival = eligible_next_rival(&rivals)) != NULL && turn->looks < MAX_LOOKS)
        switch (look_at(turn, rival)) {
        case PASSED_OVER:
            break;
        case COMES_FIRST:
            return eligible_rival_distance(&rivals);
        case LEADS_TO_QUEUE:
            return 0;
        }
    return 0;
}

/* Members are mostly alike. */
static unsigned distance_of(struct turn *turn)
{
    const struct kube_pod *last = NULL;
    const struct unit *unit = turn->unit;
    unsigned distance = 0;

    for (unsigned i = 0; distance == 0 && i < unit->member_count; i++) {
        const struct kube_pod *pod = unit->members[i].pod;

        if (unit->members[i].stage != POD_WAITS || !pod->rare ||
            (last && eligible_are_alike(turn->world->eligible, last, pod)))
            continue;
        distance = find_who_comes_first(turn, pod);
        last = pod;
    }
    return distance;
}

bool turn_has_come(const struct bridge_world *world, const struct unit *unit, struct plan *plan)
{
    struct turn turn = { world, unit, first_of(unit), plan->arena->limit, 0 };
    int64_t distance = world->eligible ? distance_of(&turn) : 0;

    if (distance == 0)
        return true;
    /* Not a word about who that is: it would be another one at every look. */
    tell_waiting(world, unit, plan, "WaitingForTurn",
                 "waits for its turn: a pod that decides where this one may go is placed first");
    plan_look_again(plan, distance < LOOK_MAX_US / STEP_US ? distance * STEP_US : LOOK_MAX_US);
    return false;
}
