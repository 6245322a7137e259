/* nodeset_status.c - the status of a NodeSet: how many workers it has, in which states.
 *
 * `replicas` counts the workers that stay: autoscalers copy it into the spec, and one that is
 * drained to be removed would push the size up again. Counts that are zero are left out, as the
 * Slinky operator does; Slurm's counts stay as they are while Slurm cannot be asked. */
#include "operator/names.h"
#include "operator/nodeset.h"

#include <stdio.h>

struct counts {
    int64_t desired, stay, updated, ready, available, current;
    int64_t idle, allocated, down, drain;
    int64_t condemned;
    const char *first_condemned;
    bool has_leaving;
};

static void count_record(const struct slurm_node *record, struct counts *counts)
{
    if (slurm_words_has(&record->state, SLURM_NODE_ALLOCATED) ||
        slurm_words_has(&record->state, SLURM_NODE_MIXED))
        counts->allocated++;
    else if (slurm_words_has(&record->state, SLURM_NODE_DOWN))
        counts->down++;
    else if (slurm_words_has(&record->state, SLURM_NODE_IDLE))
        counts->idle++;
    counts->drain += slurm_words_has(&record->state, SLURM_NODE_DRAIN);
}

static void count_workers(const struct nodeset *nodeset, struct counts *ret_counts)
{
    struct counts counts = { .desired = nodeset->is_daemonset ? (int64_t)nodeset->slot_count
                                                              : nodeset->replicas };

    for (size_t i = 0; i < nodeset->count; i++) {
        const struct worker *worker = &nodeset->workers[i];

        if (!worker_is_live(worker)) {
            counts.has_leaving = true;
            continue;
        }
        if (worker->record && worker->knowledge != SLURM_ABSENT)
            count_record(worker->record, &counts);
        counts.updated += worker->is_current;
        if (worker_is_condemned(worker)) {
            if (counts.condemned++ == 0)
                counts.first_condemned = worker->pod->object.name;
            continue;
        }
        counts.stay++;
        counts.current += worker->is_current;
        counts.ready += worker->is_healthy;
        counts.available += worker->is_available;
    }
    *ret_counts = counts;
}

/* ---- conditions ---- */

static struct kube_condition_want want_draining(const struct nodeset *nodeset,
                                                const struct counts *counts)
{
    struct arena *arena = nodeset->sync.plan->arena;
    const char *trouble = nodeset_slurm_trouble(nodeset), *waits;
    const char *who;

    if (counts->condemned == 0) {
        waits = nodeset->sync.object->deleted_us != 0 ? nodeset_end_waits(nodeset) : NULL;
        return waits
                   ? (struct kube_condition_want){ "Draining", KUBE_TRUE, "WaitingForJobs", waits }
                   : (struct kube_condition_want){ "Draining", KUBE_FALSE, "Settled",
                                                   "no worker is being removed" };
    }
    who = counts->condemned == 1
              ? arena_printf(arena, "worker %s", counts->first_condemned)
              : arena_printf(arena, "%lld workers (%s ...)", (long long)counts->condemned,
                             counts->first_condemned);
    if (trouble)
        return (struct kube_condition_want){ "Draining", KUBE_TRUE, "SlurmUnknown",
                                             arena_printf(arena, "%s cannot be removed: %s", who,
                                                          trouble) };
    return (struct kube_condition_want){ "Draining", KUBE_TRUE, "WaitingForJobs",
                                         arena_printf(arena, "%s: removed when no job runs there",
                                                      who) };
}

static struct kube_condition_want want_reserved(const struct nodeset *nodeset)
{
    const struct json *live = json_at(operator_tree(nodeset->sync.object), "status", "conditions");
    bool is_wanted = nodeset_wants_reservation(nodeset);

    if (is_wanted ? nodeset_slurm_trouble(nodeset) != NULL
                  : !kube_condition_entry(live, "ReservationCreated"))
        return (struct kube_condition_want){ .type = NULL };
    if (!is_wanted)
        return (struct kube_condition_want){ "ReservationCreated", KUBE_FALSE, "NotWanted",
                                             "nothing is to be reserved" };
    if (nodeset_has_reservation(nodeset))
        return (struct kube_condition_want){ "ReservationCreated", KUBE_TRUE, "Created",
                                             nodeset_reservation_name(nodeset) };
    return (struct kube_condition_want){ "ReservationCreated", KUBE_FALSE, "NotExists",
                                         "Slurm has no reservation for the update" };
}

/* ---- pins ---- */

/* Where running workers are, and where those were that are to come back: the Node must still be
 * there and fit. What is no longer true is null, which a merge patch takes away. */
static struct json_mut *ordinal_to_node(struct nodeset *nodeset)
{
    const struct sync *sync = &nodeset->sync;
    const struct json *live = json_at(operator_tree(sync->object), "status", "ordinalToNode");
    struct json_mut *map = json_new_object(sync->build);
    struct json_iter iter = json_iter(live);
    const struct json *value;
    struct str key;
    size_t kept = 0;

    if (nodeset->is_daemonset || !spec_flag(sync->object, "pinToNode"))
        return json_new_null(sync->build);
    while (json_next_member(&iter, &key, &value)) {
        const struct kube_object *node = kube_cache_get(sync->world->nodes, "", json_str(value).at);
        bool is_there = node && nodeset_fits(nodeset, node);

        json_put_key(sync->build, map, key,
                     is_there ? json_copy(sync->build, value) : json_new_null(sync->build));
        kept += is_there;
    }
    for (size_t i = 0; i < nodeset->count; i++) {
        const struct worker *worker = &nodeset->workers[i];
        char ordinal[24];

        if (!worker_stays(worker) || !worker->node || worker->ordinal < 0)
            continue;
        (void)snprintf(ordinal, sizeof(ordinal), "%lld", (long long)worker->ordinal);
        json_put_text(sync->build, map, ordinal, worker->pod->node_name);
        kept++;
    }
    return kept > 0 ? map : json_new_null(sync->build);
}

/* ---- the status ---- */

static void put_count(struct json_build *build, struct json_mut *status, const char *key,
                      int64_t count)
{
    json_put(build, status, key, count > 0 ? json_new_i64(build, count) : json_new_null(build));
}

static struct json_mut *status_members(struct nodeset *nodeset, const struct counts *counts)
{
    const struct sync *sync = &nodeset->sync;
    struct json_build *build = sync->build;
    struct json_mut *status = json_new_object(build);
    bool is_read =
        nodeset->facts && nodeset->facts->nodes && slurm_cache_is_synced(nodeset->facts->nodes);

    put_count(build, status, "replicas", counts->stay);
    put_count(build, status, "updatedReplicas", counts->updated);
    put_count(build, status, "readyReplicas", counts->ready);
    put_count(build, status, "availableReplicas", counts->available);
    put_count(build, status, "unavailableReplicas", counts->desired - counts->available);
    put_count(build, status, "desired", counts->desired);
    if (is_read) {
        put_count(build, status, "slurmIdle", counts->idle);
        put_count(build, status, "slurmAllocated", counts->allocated);
        put_count(build, status, "slurmDown", counts->down);
        put_count(build, status, "slurmDrain", counts->drain);
    }
    put_count(build, status, "observedGeneration", sync->object->generation);
    if (nodeset->revision_err.class == 0) {
        json_put_text(build, status, "nodeSetHash", nodeset->revision.hash);
        json_put_i64(build, status, "collisionCount", nodeset->revision.collision_count);
    }
    json_put_text(build, status, "selector",
                  arena_printf(sync->plan->arena, LABEL_INSTANCE "=%s," LABEL_NAME "=slurmd",
                               sync->object->name));
    json_put(build, status, "ordinalToNode", ordinal_to_node(nodeset));
    return status;
}

void nodeset_plan_status(struct nodeset *nodeset)
{
    struct sync *sync = &nodeset->sync;
    struct counts counts;
    struct sync_pods pods;
    struct sync_workload workload = { .kind = "NodeSet",
                                      .name = sync->object->name,
                                      .pods = &pods };

    count_workers(nodeset, &counts);
    pods = (struct sync_pods){ .ready = counts.ready,
                               .is_settled = counts.stay == counts.desired &&
                                             counts.current == counts.stay &&
                                             counts.condemned == 0 && !counts.has_leaving };
    workload.wanted = counts.desired;
    workload.also[0] = want_draining(nodeset, &counts);
    workload.also[1] = want_reserved(nodeset);
    sync_status(sync, &workload, status_members(nodeset, &counts));
}
