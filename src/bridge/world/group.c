/* group.c - which pods Slurm gives resources to as one, as far as a pod itself tells.
 *
 * Holds: the first rule that applies decides; keys of different kinds, and of groups and pods, are
 * never equal. */
#include "bridge/world/group.h"

#include "bridge/world/names.h"
#include "kube/workload_kinds.h"

#include <string.h>

static const struct {
    const char *name, *word; /* word: in keys, so it never changes */
} kinds[] = {
    [GROUP_NONE] = { "Pod", "" },
    [GROUP_PODGROUP] = { "PodGroup", "podgroup" },
    [GROUP_COSCHEDULING] = { "PodGroup", "coscheduling" },
    [GROUP_LWS] = { "LeaderWorkerSet", "lws" },
    [GROUP_JOB] = { "Job", "job" },
    [GROUP_JOBSET] = { "JobSet", "jobset" },
};

const char *group_kind_name(enum group_kind kind)
{
    return kinds[kind].name;
}

static struct str label(const struct kube_pod *pod, const char *key)
{
    bool found;

    return kube_pairs_get(&pod->object.labels, key, &found);
}

static bool asks_to_be_a_gang(const struct kube_pod *pod)
{
    bool found;
    struct str value =
        kube_pairs_get(&pod->object.annotations, BRIDGE_ANNOTATION_PREFIX BRIDGE_GANG, &found);

    return found && value.len > 0 && !str_is(value, "false");
}

struct group group_of(const struct kube_pod *pod)
{
    struct str podgroup = str_of(pod->pod_group);
    struct str coscheduling = label(pod, BRIDGE_COSCHEDULING_LABEL);
    struct str lws = label(pod, BRIDGE_LWS_NAME_LABEL);
    struct str lws_key = label(pod, BRIDGE_LWS_KEY_LABEL);

    if (podgroup.len > 0)
        return (struct group){ GROUP_PODGROUP, podgroup, podgroup, STR("") };
    if (coscheduling.len > 0)
        return (struct group){ GROUP_COSCHEDULING, coscheduling, coscheduling, STR("") };
    if (lws.len > 0 && lws_key.len > 0)
        return (struct group){ GROUP_LWS, lws, lws_key, label(pod, BRIDGE_LWS_GROUP_LABEL) };
    if (asks_to_be_a_gang(pod)) {
        /* A JobSet is found by the labels that it puts on its pods: their owner is one of its Jobs.
         */
        struct str jobset = label(pod, BRIDGE_JOBSET_NAME_LABEL);
        struct str uid = label(pod, BRIDGE_JOBSET_UID_LABEL);

        if (jobset.len > 0)
            return (struct group){ GROUP_JOBSET, jobset, uid.len > 0 ? uid : jobset,
                                   label(pod, BRIDGE_JOBSET_RESTART_LABEL) };
        if (kube_owner_is(&pod->object.owner, &kube_job_kind))
            return (struct group){ GROUP_JOB, str_of(pod->object.owner.name),
                                   str_of(pod->object.owner.uid), STR("") };
    }
    return (struct group){ .kind = GROUP_NONE };
}

void group_key(const struct kube_pod *pod, struct buf *out)
{
    struct group group = group_of(pod);

    if (group.kind == GROUP_NONE)
        return;
    buf_printf(out, "%s/%s/" STR_FMT, pod->object.ns, kinds[group.kind].word, STR_ARG(group.id));
    if (group.kind == GROUP_JOBSET)
        buf_printf(out, "/" STR_FMT, STR_ARG(group.number));
}

bool group_key_is_of_group(struct str key)
{
    struct str ns, rest;

    return str_cut(key, '/', &ns, &rest) && memchr(rest.at, '/', rest.len) != NULL;
}

/* ---- rank ---- */

struct group_rank group_rank_of(const struct kube_pod *pod)
{
    static const char *const labels[GROUP_INDEXES] = {
        BRIDGE_JOBSET_INDEX_LABEL, /* which Job of the JobSet, before which pod of the Job */
        BRIDGE_COMPLETION_LABEL,
        BRIDGE_LWS_WORKER_LABEL,
    };
    struct group_rank rank = { .name = pod->object.name };

    for (size_t i = 0; i < GROUP_INDEXES; i++) {
        uint64_t number;

        rank.indexes[i] = str_to_u64(label(pod, labels[i]), 0, INT32_MAX, &number, NULL) == 0
                              ? (int64_t)number
                              : -1;
    }
    return rank;
}

int group_rank_compare(const struct group_rank *a, const struct group_rank *b)
{
    for (size_t i = 0; i < GROUP_INDEXES; i++)
        if (a->indexes[i] != b->indexes[i])
            return a->indexes[i] < b->indexes[i] ? -1 : 1;
    return strverscmp(a->name, b->name); /* "w-9" before "w-10" */
}
