/* adopt.c - takes over the job of a bridge before ours, or of ours before keys had a uid.
 *
 * A job of another bridge names its pods and its pods name it, and that is all. It gets our key
 * into its comment and `extra`; the pods stay first in the comment, where the other bridge looks
 * for them, so that the way back is open.
 *
 * Holds: nothing else is done for the unit before its job carries the key. */
#include "bridge/place.h"

#include "bridge/slurm/slurm_action.h"
#include "bridge/submit/submit_guard.h"
#include "slurm/submit.h"

enum { LOOK_AGAIN_US = 1000000 };

int plan_adopt(const struct bridge_world *world, const struct unit *unit,
               const struct slurm_job *job, struct plan *plan, struct err *err)
{
    struct slurm_key parts;
    auto_buf struct buf old = { .max = SLURM_MAX_KEY }, key = { .max = SLURM_MAX_KEY };
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *fields = json_new_object(build);
    auto_buf struct buf comment = { .max = SLURM_MAX_COMMENT }, extra = { .max = SLURM_MAX_KEY };

    if (!world_read_job(world, job, &old, &parts)) /* of another bridge */
        parts = (struct slurm_key){ .unit = unit->key, .attempt = unit->attempt + 1 };
    parts.uid = str_of(unit->uid);
    slurm_key_write(&parts, &key);
    plan_wait(plan, "job %s of a bridge before this one is being taken over", job->object.key);
    plan_look_again(plan, LOOK_AGAIN_US);
    if (!slurm_is_clear(world))
        return 0;
    if (slurm_submit_adopt(job, world->cluster, buf_str(&key), &comment) < 0)
        return err_set(err, ERR_INVALID, "the comment of job %s cannot be written",
                       job->object.key);
    json_put_str(build, fields, "admin_comment", buf_str(&comment));
    slurm_submit_extra(world->cluster, buf_str(&key), &extra);
    json_put_str(build, fields, "extra", buf_str(&extra));
    if (job == unit->inherited && job->required_nodes[0] && job_phase(job) == JOB_WAITS)
        json_put_text(build, fields, "required_nodes", ""); /* we exclude: new nodes may do */
    plan_slurm_update_job(plan, job, fields);
    return 0;
}
