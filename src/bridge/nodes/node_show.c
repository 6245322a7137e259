/* node_show.c - what a Kubernetes node shows of its Slurm node.
 *
 * Holds: only our own taint and our own condition are written, each on a difference alone. Taints
 * are one list to the API server, and of others' we know less than it keeps (timeAdded): so ours is
 * changed by a JSON patch at its place, valid for the version that we saw. */
#include "bridge/nodes/node_show.h"

#include "bridge/world/names.h"
#include "codec/patch.h"
#include "codec/timestamp.h"

#include <stdio.h>

enum { MAX_PATH = 128, NOWHERE = -1 };

/* ---- the taint ---- */

/* Or of one that is nobody's. */
static int place_of_ours(const struct bridge_world *world, const struct kube_node *node)
{
    for (unsigned i = 0; i < node->taint_count; i++)
        if (node->taints[i].effect == KUBE_NO_EXECUTE &&
            str_is(str_of(node->taints[i].key), BRIDGE_TAINT) &&
            (!node->taints[i].value[0] ||
             str_is(str_of(node->taints[i].value), world->config->scheduler_name)))
            return (int)i;
    return NOWHERE;
}

/* value NULL: the taint goes. */
static void plan_taint(const struct bridge_world *world, const struct kube_node *node, int place,
                       const char *value, struct plan *plan)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *ops = json_new_array(build), *taint = json_new_object(build);
    char path[MAX_PATH];

    (void)snprintf(path, sizeof(path), "/spec/taints/%d%s", place, value ? "/value" : "");
    patch_op(build, ops, "test", STR("/metadata/resourceVersion"),
             json_new_str(build, str_of(node->object.version)));
    if (!value) {
        patch_op(build, ops, "remove", str_of(path), NULL);
    } else if (place != NOWHERE) {
        patch_op(build, ops, "add", str_of(path), json_new_str(build, str_of(value)));
    } else {
        json_put_text(build, taint, "key", BRIDGE_TAINT);
        if (value[0])
            json_put_text(build, taint, "value", value);
        json_put_text(build, taint, "effect", "NoExecute");
        patch_append(build, ops, STR("/spec/taints"), node->taint_count, taint);
    }
    plan_json_patch(plan, world->nodes, &kube_nodes, NULL, node->object.name, NULL, ops, NULL);
}

void node_show_taint(const struct bridge_world *world, const struct kube_node *node,
                     struct plan *plan)
{
    const char *value = world->config->scheduler_name;
    int place = place_of_ours(world, node);

    if (place == NOWHERE || !str_is(str_of(node->taints[place].value), value))
        plan_taint(world, node, place, value, plan);
}

bool node_shows_taint(const struct bridge_world *world, const struct kube_node *node)
{
    return place_of_ours(world, node) != NOWHERE;
}

void node_hide_taint(const struct bridge_world *world, const struct kube_node *node,
                     struct plan *plan)
{
    int place = place_of_ours(world, node);

    if (place != NOWHERE)
        plan_taint(world, node, place, NULL, plan);
}

/* ---- the condition ---- */

static const struct kube_condition *condition_of(const struct kube_node *node)
{
    return kube_condition_of(node->conditions, node->condition_count, BRIDGE_NODE_CONDITION);
}

bool node_has_condition(const struct kube_node *node)
{
    return condition_of(node) != NULL;
}

/* A patch with the one condition in its list, which is merged by type. */
static struct json_mut *put_condition(struct json_build *build, struct json_mut *root)
{
    struct json_mut *list =
        json_put_array(build, json_put_object(build, root, "status"), "conditions");
    struct json_mut *condition = json_new_object(build);

    json_put_text(build, condition, "type", BRIDGE_NODE_CONDITION);
    json_push(list, condition);
    return condition;
}

bool node_show_condition(const struct bridge_world *world, const struct kube_node *node,
                         const struct node_word *word, struct plan *plan)
{
    auto_json_build struct json_build *build = json_build_new();
    const struct kube_condition *has = condition_of(node);
    const char *status = word->available ? "True" : "False";
    bool turns = !has || !str_is(str_of(has->status), status);
    struct json_mut *patch = json_new_object(build);
    struct json_mut *condition;

    if (!turns && str_is(str_of(has->reason), word->reason) &&
        str_is(str_of(has->message), word->message))
        return false;
    condition = put_condition(build, patch);
    json_put_text(build, condition, "status", status);
    json_put_text(build, condition, "reason", word->reason);
    json_put_text(build, condition, "message", word->message);
    if (turns)
        json_put_text(build, condition, "lastTransitionTime",
                      timestamp_text(world->facts.wall_us, plan->arena));
    plan_strategic_patch(plan, world->nodes, &kube_nodes, NULL, node->object.name, "status", NULL,
                         patch, patch);
    return true;
}

void node_hide_condition(const struct bridge_world *world, const struct kube_node *node,
                         struct plan *plan)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build);

    if (!node_has_condition(node))
        return;
    json_put_text(build, put_condition(build, patch), "$patch", "delete");
    plan_strategic_patch(plan, world->nodes, &kube_nodes, NULL, node->object.name, "status", NULL,
                         patch, patch);
}
