/* adopt.c - takes over the job of a bridge before ours.
 *
 * Such a job names its pods and its pods name it, and that is all. It gets our key into its comment
 * and `extra`; the pods stay first in the comment, where the other bridge looks for them, so that
 * the way back is open.
 *
 * Holds: nothing else is done for the unit before its job carries the key. */
#include "bridge/adopt.h"

#include "bridge/act.h"
#include "bridge/gate.h"
#include "slurm/submit.h"

enum { LOOK_AGAIN_US = 1000000 };

int plan_adopt(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
               struct err *err)
{
    const char *key =
        arena_printf(plan->arena, STR_FMT ".%u", STR_ARG(unit->key), unit->attempt + 1);
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *fields = json_new_object(build);
    auto_buf struct buf comment = { .max = SLURM_MAX_COMMENT }, extra = { .max = SLURM_MAX_KEY };

    plan_wait(plan, "job %s of a bridge before this one is being taken over",
              unit->inherited->object.key);
    plan_look_again(plan, LOOK_AGAIN_US);
    if (!gate_slurm_is_clear(world))
        return 0;
    if (slurm_submit_adopt(unit->inherited, world->cluster, str_of(key), &comment) < 0)
        return err_set(err, ERR_INVALID, "the comment of job %s cannot be written",
                       unit->inherited->object.key);
    json_put_str(build, fields, "admin_comment", buf_str(&comment));
    slurm_submit_extra(world->cluster, str_of(key), &extra);
    json_put_str(build, fields, "extra", buf_str(&extra));
    if (unit->inherited->required_nodes[0] && job_phase(unit->inherited) == JOB_WAITS)
        json_put_text(build, fields, "required_nodes", ""); /* we exclude: new nodes may do */
    plan_slurm_update_job(plan, unit->inherited, fields);
    return 0;
}
