/* slurm_executor_layout.c - reads what a running job was given on its nodes. */
#include "bridge/slurm_executor_private.h"

#include "base/log.h"

static void on_layout(void *context, const struct slurm_answer *answer)
{
    struct slurm_task *task = context;
    struct slurm_executor *executor = task->executor;
    const struct slurm_action *detail = task->detail;
    struct err err = { .class = 0 };

    task->call = NULL;
    slurm_poller_heard(executor->options.poller, answer);
    if (answer->error.class != SLURM_DONE) {
        task_end(task, executor_outcome(answer->error.class), answer->error.text);
        return;
    }
    if (job_layouts_put(executor->options.layouts, detail->job_id, detail->sluid, answer->body,
                        &err) < 0) {
        task_end(task, KUBE_INVALID, err.text);
        return;
    }
    executor->options.wake_unit(executor->options.context, slurm_action_unit(detail));
    task_end(task, KUBE_DONE, "");
}

void layout_start(struct slurm_task *task)
{
    task->call =
        slurm_resources_get(task->executor->options.slurm, task->detail->job_id, on_layout, task);
}
