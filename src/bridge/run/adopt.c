/* adopt.c - takes over the job of a bridge before ours.
 *
 * A job of another bridge names its pods and its pods name it, and that is all. It gets our key
 * into its comment and `extra`; the pods stay first in the comment, where the other bridge looks
 * for them, so that the way back is open. */
#include "bridge/run/release.h"

#include "bridge/slurm/slurm_action.h"
#include "slurm/submit.h"

int plan_adopt(const struct bridge_world *world, const struct unit *unit, struct plan *plan,
               struct err *err)
{
    const struct slurm_job *job = unit->jobs.inherited;
    const struct slurm_key parts = { unit->key, str_of(unit->uid), unit->jobs.attempt + 1 };
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *fields = json_new_object(build);
    auto_buf struct buf key = { .max = SLURM_MAX_KEY };

    slurm_key_write(&parts, &key);
    if (slurm_submit_adopt(job, world->owner, buf_str(&key), build, fields) < 0)
        return err_set(err, ERR_INVALID, "the comment of job %s cannot be written",
                       job->object.key);
    if (job->required_nodes[0] && job_phase(job) == JOB_WAITS)
        json_put_text(build, fields, "required_nodes", ""); /* we exclude: new nodes may do */
    plan_slurm_adopt(plan, job, fields);
    return 0;
}
