/* node_state.c - marks, drains and undrains a node's record in Slurm. */
#include "bridge/nodes/node_state.h"

#include "bridge/slurm/slurm_action.h"
#include "device/registered.h"

/* A node whose names are equal does not say them: so the marks of many nodes go in one call. */
void node_plan_mark(struct plan *plan, const char *name, const struct slurm_owner *we,
                    const char *kube_name, bool inherited, const char *devices)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *fields = json_new_object(build);
    struct json_mut *mark = json_new_object(build);
    auto_buf struct buf text;

    json_put_i64(build, mark, "v", 1);
    json_put_str(build, mark, "cluster", we->cluster);
    json_put_str(build, mark, "release", we->release);
    if (!str_is(str_of(name), kube_name))
        json_put_text(build, mark, "node", kube_name);
    if (inherited)
        json_put_bool(build, mark, "inherited", true);
    if (*devices)
        json_put_text(build, mark, REGISTERED_KEY, devices);
    buf_init(&text, NODE_MAX_MARK);
    json_mut_write(mark, &text);
    json_put_str(build, fields, "extra", buf_str(&text));
    plan_slurm_update_node(plan, name, fields);
}

/* ---- drains ---- */

static void plan_state(struct plan *plan, const struct slurm_node *slurm, const char *state,
                       const char *reason)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *fields = json_new_object(build);

    json_push_str(build, json_put_array(build, fields, "state"), str_of(state));
    if (reason)
        json_put_text(build, fields, "reason", reason);
    plan_slurm_update_node(plan, slurm->name, fields);
}

bool node_plan_drain(struct plan *plan, const struct slurm_node *slurm, const char *reason)
{
    bool is_ours = node_is_out_by_us(slurm);

    if (is_ours ? str_is(str_of(slurm->reason), reason) : node_is_out(slurm))
        return true;
    plan_state(plan, slurm, "DRAIN", reason);
    return false;
}

bool node_plan_undrain(struct plan *plan, const struct slurm_node *slurm)
{
    if (!node_is_out_by_us(slurm))
        return true;
    plan_state(plan, slurm, "UNDRAIN", NULL);
    return false;
}
