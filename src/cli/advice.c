/* advice.c - what would help something that waits. */
#include "cli/advice.h"

#include "slurm/reason.h"

#include <inttypes.h>

#define USER  "the user"
#define ADMIN "an administrator"
#define BOTH  "the user or an administrator"

#define PREFIX "slurmjob.slinky.slurm.net/"

/* Reasons of the bridge's condition SlurmPending. */
static const struct advice table[] = {
    { "SlurmUnavailable", ADMIN, "the bridge cannot use Slurm: `slinc doctor` says what is wrong",
      false },
    { "NoNodeFits", BOTH,
      "change the selector, affinity, tolerations or requests that leave no node, or lend nodes to "
      "Slurm (label scheduler.slinky.slurm.net/external-node)",
      false },
    { "NodeMisfit", BOTH,
      "Slurm gave a node that Kubernetes' rules exclude; the bridge asks for another one", false },
    { "GroupIncomplete", USER,
      "create the pods of the group that are missing, or lower its smallest number", false },
    { "GroupEnded", USER, "the group has ended: delete it and create it anew", false },
    { "OwnerUnknown", USER, "create the object that the pod names as its owner or group", false },
    { "Invalid", USER, "correct what the message names", true },
    { "TooBig", USER, "ask for less in one unit", true },
    { "TooFewPlaces", USER, "ask for as many places as there are pods: {min-nodes}, {max-nodes}",
      false },
    { "Refused", BOTH,
      "correct what Slurm's message names; the bridge submits again when the pod, its owner or the "
      "nodes change, and every ten minutes",
      true },
    { "TooManyJobs", ADMIN,
      "it starts when other jobs have ended; raise MaxJobCount of Slurm, or maxJobsPerNamespace of "
      "the bridge",
      false },
    { "WaitingForTurn", "",
      "nobody has to act: pods with rules about each other are submitted one at a time", false },
    { "WaitingForSlurm", "", "nobody has to act: the bridge waits for an answer of Slurm", false },
    { "Pending", "", "nobody has to act: Slurm has not looked at it yet", false },
    { "ClaimRefused", BOTH, "see the claim that the message names (docs/devices.md)", false },
    { "DevicesNotReady", "",
      "nobody has to act: its devices are being claimed, or another pod still has them", false },
    { "VolumesNotBound", BOTH, "see why its claims are not bound: kubectl describe pvc", false },
    { "WriteRefused", ADMIN,
      "make the API server take the write that the message names: a quota, a policy or a right "
      "refuses it",
      false },
    { "PlaceNotFree", "", "nobody has to act: another pod has to leave the node first", false },
    { "NotCovered", ADMIN,
      "the pod runs without a job in Slurm: see the events, and `slinc doctor`", false },
    { "Suspended", BOTH, "scontrol resume {id}", false },
};

/* Annotations that are not called as `scontrol update` calls the field. */
static const struct {
    const char *field, *annotation;
} renamed[] = { { "features", "constraints" },
                { "numnodes", "max-nodes" },
                { "reservationname", "reservation" },
                { "starttime", "begin-time" } };

enum { ADVICES = sizeof(table) / sizeof(table[0]), RENAMED = sizeof(renamed) / sizeof(renamed[0]) };

struct advice advice_of(const char *reason, bool is_held)
{
    struct slurm_reason found = { .word = "" };

    for (size_t i = 0; i < ADVICES; i++)
        if (str_is(str_of(reason), table[i].reason))
            return table[i];
    found = slurm_reason_of(reason, is_held);
    return (struct advice){ reason, found.actor, found.help, found.class == SLURM_REASON_NEVER };
}

static struct str annotation_of(struct str field)
{
    for (size_t i = 0; i < RENAMED; i++)
        if (str_is(field, renamed[i].field))
            return str_of(renamed[i].annotation);
    return field;
}

void advice_write(const char *help, int64_t job_id, bool is_pod, struct buf *out)
{
    struct str rest = str_of(help), before, behind, word;
    bool was_told = false; /* where such words stand */

    while (str_cut(rest, '{', &before, &behind) && str_cut(behind, '}', &word, &rest)) {
        buf_add_str(out, before);
        if (str_is(word, "id")) {
            buf_printf(out, "%" PRId64, job_id);
            continue;
        }
        word = is_pod ? annotation_of(word) : word;
        buf_add_str(out, word);
        if (!was_told && is_pod)
            buf_printf(out, " (annotation " PREFIX STR_FMT ")", STR_ARG(word));
        else if (!was_told)
            buf_printf(out, " (scontrol update jobid=%" PRId64 " " STR_FMT "=...)", job_id,
                       STR_ARG(word));
        was_told = true;
    }
    buf_add_str(out, rest);
}

void advice_reference(struct buf *out)
{
    slurm_reason_reference(out);
    buf_add_text(out, "\nA word such as `partition` is a field of `scontrol update`, and of a pod "
                      "the annotation " PREFIX "partition.\nOther names have:");
    for (size_t i = 0; i < RENAMED; i++)
        buf_printf(out, "%s `%s` (annotation %s)", i > 0 ? "," : "", renamed[i].field,
                   renamed[i].annotation);
    buf_add_text(out, ".\n\n| Reason of the bridge | Who acts | What helps |\n|---|---|---|\n");
    for (size_t i = 0; i < ADVICES; i++) {
        buf_printf(out, "| `%s` | %s | ", table[i].reason,
                   table[i].actor[0] ? table[i].actor : "nobody");
        slurm_reason_help_cell(table[i].help, out);
        buf_add_text(out, " |\n");
    }
}
