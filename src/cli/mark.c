/* mark.c - which mark drains a node or a worker, and which takes that back. */
#include "cli/mark.h"

#include "cli/text.h"

#define CORDON_REASON "nodeset.slinky.slurm.net/node-cordon-reason"
#define POD_CORDON    "nodeset.slinky.slurm.net/pod-cordon"
#define CORDONED_BY   "slinc.slurm.net/cordoned-by"
#define SLURM_NAME    "slinky.slurm.net/slurm-nodename"

static const char *write_patch(struct arena *arena, const struct json_mut *patch)
{
    auto_buf struct buf out;

    buf_init(&out, 1 << 16);
    json_mut_write(patch, &out);
    return arena_strdup(arena, buf_text(&out));
}

/* A node without a cordon may still be drained in Slurm, by somebody else. slurm_name: "" when it
 * is that of Kubernetes. */
static void say_unchanged(struct mark *mark, const char *kind, struct str slurm_name)
{
    if (slurm_name.len == 0)
        slurm_name = str_of(mark->name);
    mark->patch = "";
    if (mark->drains)
        mark->said = arena_printf(mark->arena, "%s %s is cordoned already", kind, mark->name);
    else
        mark->said = arena_printf(mark->arena,
                                  "%s %s is not cordoned; if Slurm drained it: scontrol update "
                                  "nodename=" STR_FMT " state=resume",
                                  kind, mark->name, STR_ARG(slurm_name));
}

/* The bridge drains the Slurm node of a cordoned node, and the operator its workers. */
static void plan_node(struct mark *mark, const struct json *node)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build);
    bool is_cordoned = json_bool_or(json_at(node, "spec", "unschedulable"), false);
    struct str has = json_str(json_at(node, "metadata", "annotations", CORDON_REASON));
    bool same_reason = mark->drains ? !mark->reason[0] || str_is(has, mark->reason) : has.len == 0;

    mark->is_node = true;
    if (is_cordoned == mark->drains && same_reason) {
        say_unchanged(mark, "node", json_str(json_at(node, "metadata", "labels", SLURM_NAME)));
        return;
    }
    json_put_at(build, patch, mark->drains ? json_new_bool(build, true) : json_new_null(build),
                "spec", "unschedulable");
    if (mark->drains && mark->reason[0])
        json_put_at(build, patch, json_new_str(build, str_of(mark->reason)), "metadata",
                    "annotations", CORDON_REASON);
    else if (!mark->drains && has.len > 0)
        json_put_at(build, patch, json_new_null(build), "metadata", "annotations", CORDON_REASON);
    mark->patch = write_patch(mark->arena, patch);
    mark->said =
        arena_printf(mark->arena,
                     mark->drains ? "node %s is cordoned: Slurm starts no job there, and what runs "
                                    "there goes on"
                                  : "node %s is back in service",
                     mark->name);
}

static int plan_worker(struct mark *mark, const struct json *pod, struct err *err)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *patch = json_new_object(build);
    const struct json *notes = json_at(pod, "metadata", "annotations");
    struct str by = json_str(json_get(notes, CORDONED_BY));
    bool is_cordoned = str_is(json_str(json_get(notes, POD_CORDON)), "true");

    if (!str_is(json_str(json_at(pod, "metadata", "labels", "app.kubernetes.io/name")), "slurmd"))
        return err_set(
            err, ERR_INVALID,
            "%s is neither a node nor a worker of a NodeSet; a pod of the bridge is ended "
            "by deleting it",
            mark->name);
    if (!mark->drains && by.len > 0)
        return err_set(err, ERR_DENIED,
                       "the operator drained worker %s itself (" STR_FMT
                       "), and resumes it when that "
                       "is over",
                       mark->name, STR_ARG(by));
    if (is_cordoned == mark->drains) {
        say_unchanged(mark, "worker", json_str(json_at(pod, "spec", "hostname")));
        return 0;
    }
    json_put_at(build, patch,
                mark->drains ? json_new_str(build, STR("true")) : json_new_null(build), "metadata",
                "annotations", POD_CORDON);
    mark->patch = write_patch(mark->arena, patch);
    mark->said =
        arena_printf(mark->arena,
                     mark->drains ? "worker %s is cordoned: the operator drains its node in "
                                    "Slurm, and its jobs go on%s"
                                  : "worker %s is back in service%s",
                     mark->name, mark->reason[0] ? " (only a node can have a reason)" : "");
    return 0;
}

int mark_plan(struct mark *mark, const struct json *node, const struct json *pod, struct err *err)
{
    if (node) {
        plan_node(mark, node);
        return 0;
    }
    return plan_worker(mark, pod, err);
}
