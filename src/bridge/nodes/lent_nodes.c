/* lent_nodes.c - which nodes have our taint, written where a policy of the API server can see it.
 *
 * Holds: nodes that get or lose the taint together cost one write. */
#include "bridge/nodes/lent_nodes.h"

#include "bridge/world/names.h"
#include "codec/patch.h"
#include "kube/kinds.h"

enum {
    TOGETHER_US = 1000000, /* changes that come within it are one write */
};

#define AGAIN_US INT64_C(3600000000) /* somebody may have written to the ConfigMap */

#define KEY STR("lent-nodes")

static bool is_lent(const struct lent_nodes *lent, const struct kube_object *object)
{
    const struct kube_node *node = object ? kube_node_of(object) : NULL;

    for (unsigned i = 0; node && i < node->taint_count; i++)
        if (strcmp(node->taints[i].key, BRIDGE_TAINT) == 0 &&
            strcmp(node->taints[i].value, lent->scheduler_name) == 0)
            return true;
    return false;
}

static void on_node(struct controller *controller, const struct kube_object *old,
                    const struct kube_object *next)
{
    const struct lent_nodes *lent = controller->context;

    if (is_lent(lent, old) != is_lent(lent, next))
        engine_enqueue_after(controller, KEY, TOGETHER_US);
}

void lent_nodes_plan(const struct lent_nodes *lent, struct plan *plan)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *ops = json_new_array(build), *names = json_new_object(build);
    struct kube_cache_walk walk = kube_cache_walk(lent->nodes);
    const struct kube_object *node;

    while ((node = kube_cache_next(&walk)) != NULL)
        if (is_lent(lent, node))
            json_put_text(build, names, node->name, "");
    patch_op(build, ops, "add", STR("/data"), names);
    plan_json_patch(plan, NULL, &kube_configmaps, lent->ns, lent->name, NULL, ops, NULL);
    plan_look_again(plan, AGAIN_US);
}

static int plan_lent(struct controller *controller, struct str key, struct plan *plan,
                     struct err *err)
{
    (void)key;
    (void)err;
    lent_nodes_plan(controller->context, plan);
    return 0;
}

void lent_nodes_init(struct lent_nodes *lent, struct kube_cache *nodes, const char *scheduler_name,
                     const char *ns, const char *name)
{
    *lent = (struct lent_nodes){ .nodes = nodes,
                                 .scheduler_name = scheduler_name,
                                 .ns = ns,
                                 .name = name,
                                 .watch = { nodes, on_node } };
    lent->controller = (struct controller){ .name = "lent-nodes",
                                            .watches = &lent->watch,
                                            .watch_count = 1,
                                            .plan = plan_lent,
                                            .context = lent };
}
