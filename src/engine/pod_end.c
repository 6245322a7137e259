/* pod_end.c - the table of ends: what became of a pod, and what its job is told.
 *
 * Exit codes above 128 are how the kubelet tells a signal, and Slurm shows them as one. */
#include "engine/pod_end.h"

#include <string.h>

enum {
    SECOND_US = 1000000,
    SIGNAL_OFFSET = 128, /* of an exit code that means a signal */
    LAST_SIGNAL = 64,
    SIGKILL_STATUS = 9,
    OUT_OF_MEMORY_STATUS = 253, /* Slurm's own number for it */
};

static bool has_phase(const struct kube_pod *pod, const char *phase)
{
    return strcmp(pod->phase, phase) == 0;
}

/* A second is as exact as both times are: in doubt the deletion was first. */
static bool was_deleted_before(const struct kube_pod *pod)
{
    const struct kube_end *end = pod->end;

    if (pod->object.deleted_us == 0)
        return false;
    return !end || !kube_pod_is_finished(pod) || end->finished_us == 0 ||
           end->finished_us >= pod->object.deleted_us - end->grace_s * SECOND_US;
}

/* ---- the rows: the first that fits counts ---- */

static bool has_succeeded(const struct kube_pod *pod)
{
    return has_phase(pod, "Succeeded") && !was_deleted_before(pod);
}

static bool is_disrupted(const struct kube_pod *pod)
{
    static const char *const reasons[] = { "Evicted", "NodeLost", "NodeShutdown", "Terminated" };

    if (!pod->end || pod->end->disruption[0])
        return pod->end != NULL;
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (strcmp(pod->end->reason, reasons[i]) == 0)
            return true;
    return false;
}

static bool is_oom_killed(const struct kube_pod *pod)
{
    return has_phase(pod, "Failed") && pod->end && pod->end->is_oom_killed &&
           !was_deleted_before(pod);
}

static bool has_failed(const struct kube_pod *pod)
{
    return has_phase(pod, "Failed") && pod->end && !was_deleted_before(pod);
}

static bool always(const struct kube_pod *pod)
{
    (void)pod;
    return true;
}

static const struct row {
    bool (*when)(const struct kube_pod *pod);
    enum pod_end_kind kind;
    const char *what, *slurm;
} rows[] = {
    { has_succeeded, POD_END_COMPLETED, "Succeeded", "COMPLETED 0:0" },
    { is_disrupted, POD_END_DISRUPTED, "evicted, or its node was lost",
      "FAILED with the code of its container, else signal 9; the reason is in the comment" },
    { is_oom_killed, POD_END_OUT_OF_MEMORY, "Failed, the first container that failed: OOMKilled",
      "OUT_OF_MEMORY" },
    { has_failed, POD_END_FAILED, "Failed",
      "FAILED with the code of the container that failed first (above 128: the signal), else 1" },
    { always, POD_END_CANCELLED, "deleted before it had ended", "CANCELLED" },
};

/* ---- exit codes ---- */

static uint32_t status_of_code(int32_t code, uint32_t otherwise)
{
    if (code <= 0)
        return otherwise;
    if (code > SIGNAL_OFFSET && code <= SIGNAL_OFFSET + LAST_SIGNAL)
        return (uint32_t)(code - SIGNAL_OFFSET);
    return (uint32_t)(code & 255 ? code & 255 : 1) << 8;
}

static uint32_t status_of(const struct kube_pod *pod, enum pod_end_kind kind)
{
    switch (kind) {
    case POD_END_FAILED:
        return status_of_code(pod->end->exit_code, 1 << 8);
    case POD_END_OUT_OF_MEMORY:
        return OUT_OF_MEMORY_STATUS;
    case POD_END_DISRUPTED:
        return status_of_code(pod->end->exit_code, SIGKILL_STATUS);
    case POD_END_COMPLETED:
    case POD_END_CANCELLED:
        break;
    }
    return 0;
}

struct pod_end pod_end_of(const struct kube_pod *pod)
{
    const struct row *row = rows;

    while (!row->when(pod))
        row++;
    return (struct pod_end){ .kind = row->kind,
                             .wait_status = status_of(pod, row->kind),
                             .reason = row->kind != POD_END_DISRUPTED ? ""
                                       : pod->end->disruption[0]      ? pod->end->disruption
                                                                      : pod->end->reason };
}

/* As a shell counts: a signal is above all exit codes that are none. */
static uint32_t code_of(const struct pod_end *end)
{
    uint32_t signal = end->wait_status & 127;

    return signal ? SIGNAL_OFFSET + signal : end->wait_status >> 8;
}

bool pod_end_is_worse(const struct pod_end *a, const struct pod_end *b)
{
    return a->kind != b->kind ? a->kind > b->kind : code_of(a) > code_of(b);
}

void pod_end_reference(struct buf *out)
{
    buf_add_text(out, "| the pod | its job in Slurm |\n|---|---|\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        buf_printf(out, "| %s | %s |\n", rows[i].what, rows[i].slurm);
}
