/* sim_bridge_respect.c - what is not ours is not touched: every write of ours to the API server
 * changes only those members that are an interface of the bridge. */
#include "sim_bridge.h"

static const char *name_of(const struct json *object)
{
    return json_str(json_at(object, "metadata", "name")).at;
}

static bool is_one_of(struct str word, const char *const *ours)
{
    for (; *ours; ours++)
        if (str_is(word, *ours))
            return true;
    return false;
}

/* Members of two objects, but for those that are ours. */
static bool same_but(const struct json *old, const struct json *next, const char *const *ours)
{
    struct json_iter a = json_iter(old), b = json_iter(next);
    const struct json *value;
    struct str key;
    size_t before = 0, after = 0;

    while (json_next_member(&a, &key, &value)) {
        if (is_one_of(key, ours))
            continue;
        before++;
        if (!json_equal(value, json_get_str(next, key)))
            return false;
    }
    while (json_next_member(&b, &key, &value))
        after += !is_one_of(key, ours);
    return before == after;
}

/* Items of two lists, in order, but for those whose name (a member, or the item itself) is ours. */
static bool same_items_but(const struct json *old, const struct json *next, const char *member,
                           const char *const *ours)
{
    struct json_iter a = json_iter(old), b = json_iter(next);
    const struct json *left = NULL, *right = NULL;

    for (;;) {
        bool has_left, has_right;

        while ((has_left = json_next_item(&a, &left)) &&
               is_one_of(json_str(member ? json_get(left, member) : left), ours))
            ;
        while ((has_right = json_next_item(&b, &right)) &&
               is_one_of(json_str(member ? json_get(right, member) : right), ours))
            ;
        if (!has_left || !has_right)
            return has_left == has_right;
        if (!json_equal(left, right))
            return false;
    }
}

static bool same_metadata(const struct json *a, const struct json *b, const char *const *labels,
                          const char *const *annotations, const char *const *finalizers)
{
    const struct json *old = json_get(a, "metadata"), *next = json_get(b, "metadata");

    return same_but(json_get(old, "labels"), json_get(next, "labels"), labels) &&
           same_but(json_get(old, "annotations"), json_get(next, "annotations"), annotations) &&
           same_items_but(json_get(old, "finalizers"), json_get(next, "finalizers"), NULL,
                          finalizers) &&
           json_equal(json_get(old, "ownerReferences"), json_get(next, "ownerReferences"));
}

static const char *const no_items[] = { NULL };

static bool pod_is_respected(const struct json *old, const struct json *next)
{
    static const char *const conditions[] = { BRIDGE_PENDING_CONDITION, BRIDGE_ENDED_CONDITION,
                                              "PodScheduled", NULL };
    static const char *const finalizers[] = { BRIDGE_FINALIZER, NULL };
    static const char *const tolerations[] = { BRIDGE_TAINT, NULL };
    static const char *const labels[] = { BRIDGE_JOB_LABEL, NULL };
    static const char *const annotations[] = { BRIDGE_NODE_ANNOTATION, BRIDGE_ALONE_ANNOTATION,
                                               NULL };
    const struct json *a = json_get(old, "spec"), *b = json_get(next, "spec");
    const struct json *was = json_get(old, "status"), *is = json_get(next, "status");

    return same_metadata(old, next, labels, annotations, finalizers) &&
           json_equal(json_get(a, "containers"), json_get(b, "containers")) &&
           json_equal(json_get(a, "schedulingGates"), json_get(b, "schedulingGates")) &&
           same_items_but(json_get(a, "tolerations"), json_get(b, "tolerations"), "key",
                          tolerations) &&
           json_equal(json_get(was, "phase"), json_get(is, "phase")) &&
           json_equal(json_get(was, "containerStatuses"), json_get(is, "containerStatuses")) &&
           same_items_but(json_get(was, "conditions"), json_get(is, "conditions"), "type",
                          conditions);
}

static bool node_is_respected(const struct json *old, const struct json *next)
{
    static const char *const conditions[] = { BRIDGE_NODE_CONDITION, NULL };
    static const char *const taints[] = { BRIDGE_TAINT, NULL };
    const struct json *a = json_get(old, "spec"), *b = json_get(next, "spec");
    const struct json *was = json_get(old, "status"), *is = json_get(next, "status");

    return same_metadata(old, next, no_items, no_items, no_items) &&
           json_equal(json_get(a, "unschedulable"), json_get(b, "unschedulable")) &&
           same_items_but(json_get(a, "taints"), json_get(b, "taints"), "key", taints) &&
           json_equal(json_get(was, "capacity"), json_get(is, "capacity")) &&
           json_equal(json_get(was, "allocatable"), json_get(is, "allocatable")) &&
           same_items_but(json_get(was, "conditions"), json_get(is, "conditions"), "type",
                          conditions);
}

static bool podgroup_is_respected(const struct json *old, const struct json *next)
{
    static const char *const conditions[] = { "PodGroupScheduled", NULL };

    return same_metadata(old, next, no_items, no_items, no_items) &&
           json_equal(json_get(old, "spec"), json_get(next, "spec")) &&
           same_items_but(json_at(old, "status", "conditions"),
                          json_at(next, "status", "conditions"), "type", conditions);
}

static bool claim_is_respected(const struct json *old, const struct json *next)
{
    return json_equal(json_get(old, "spec"), json_get(next, "spec")) &&
           json_equal(json_at(old, "metadata", "ownerReferences"),
                      json_at(next, "metadata", "ownerReferences"));
}

/* Of the ConfigMap for the names of lent nodes the data are ours. */
static bool configmap_is_respected(const struct json *old, const struct json *next)
{
    return str_is(json_str(json_at(next, "metadata", "name")), SCENE_LENT_NODES) &&
           json_equal(json_at(old, "metadata", "annotations"),
                      json_at(next, "metadata", "annotations"));
}

/* The kinds that we write at all, besides leases and events. */
static const struct {
    const char *group, *plural;
    bool (*is_respected)(const struct json *old, const struct json *next);
    bool may_delete, may_create;
} written[] = {
    { "", "pods", pod_is_respected, true, false },
    { "", "nodes", node_is_respected, false, false },
    { "", "configmaps", configmap_is_respected, false, false },
    { "scheduling.k8s.io", "podgroups", podgroup_is_respected, false, false },
    { "resource.k8s.io", "resourceclaims", claim_is_respected, false, true },
};

void bridge_promises_on_our_write(struct bridge_scene *scene, const struct api_change *change)
{
    const struct json *old = change->old, *next = change->next;
    const char *plural = change->kind->plural;
    size_t row = 0;

    if (strcmp(plural, "events") == 0 || strcmp(plural, "leases") == 0)
        return;
    while (row < sizeof(written) / sizeof(written[0]) &&
           (strcmp(written[row].plural, plural) != 0 ||
            strcmp(written[row].group, change->kind->group) != 0))
        row++;
    if (row == sizeof(written) / sizeof(written[0]) || (!old && !written[row].may_create))
        world_break(scene->world, "%s wrote %s %s", change->user, plural,
                    name_of(old ? old : next));
    else if (strcmp(plural, "pods") == 0 &&
             !str_is(json_str(json_at(old, "spec", "schedulerName")), SCENE_SCHEDULER))
        world_break(scene->world, "%s touched pod %s of another scheduler", change->user,
                    name_of(old));
    else if (!next && !written[row].may_delete)
        world_break(scene->world, "%s deleted %s %s", change->user, plural, name_of(old));
    else if (old && next && !written[row].is_respected(old, next))
        world_break(scene->world, "%s changed what is not ours in %s %s", change->user, plural,
                    name_of(old));
}
