/* group.h - which pods Slurm gives resources to as one, as far as a pod itself tells.
 *
 * Membership is a function of the pod alone, so that it is an index and never a search: the group
 * that the pod's spec or labels name, or the Job or JobSet that owns it when the pod says that this
 * is a gang. All within the pod's namespace: equal names of two tenants are two groups. */
#ifndef SLINC_BRIDGE_GROUP_H
#define SLINC_BRIDGE_GROUP_H

#include "base/buf.h"
#include "kube/kinds.h"

enum group_kind {
    GROUP_NONE,         /* a pod of its own */
    GROUP_PODGROUP,     /* scheduling.k8s.io: spec.schedulingGroup.podGroupName */
    GROUP_COSCHEDULING, /* scheduling.x-k8s.io: by label */
    GROUP_LWS,          /* one group of a LeaderWorkerSet: by labels */
    GROUP_JOB,          /* a Job whose pods ask to be a gang */
    GROUP_JOBSET,       /* the same of a JobSet, as often as it was restarted */
    GROUP_KINDS,        /* how many there are */
};

const char *group_kind_name(enum group_kind kind); /* "LeaderWorkerSet", for people */

struct group {
    enum group_kind kind;
    struct str name;   /* of the object whose words count: PodGroup, LeaderWorkerSet, Job ... */
    struct str id;     /* what tells it from others of its kind in the namespace */
    struct str number; /* which group of a LeaderWorkerSet, which restart of a JobSet; "" */
};

struct group group_of(const struct kube_pod *pod); /* borrows from the pod */

/* Appends the key of its group's unit, "namespace/kind/id", or nothing. */
void group_key(const struct kube_pod *pod, struct buf *out);
bool group_key_is_of_group(struct str key); /* else it is a pod's, "namespace/uid" */

/* The order in which members get the nodes of their job: by the index that their controller gave
 * them, then by name, numbers in it by value. */
enum { GROUP_INDEXES = 3 };
struct group_rank {
    int64_t indexes[GROUP_INDEXES]; /* -1 where the pod has none */
    const char *name;               /* the pod's */
};
struct group_rank group_rank_of(const struct kube_pod *pod);
int group_rank_compare(const struct group_rank *a, const struct group_rank *b);

#endif
