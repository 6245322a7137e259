/* advice.c - what would help something that waits. */
#include "cli/advice.h"

#include <inttypes.h>

#define USER  "the user"
#define ADMIN "an administrator"
#define BOTH  "the user or an administrator"

#define PREFIX "slurmjob.slinky.slurm.net/"

static const struct advice table[] = {
    /* Slurm's reasons */
    { "PartitionTimeLimit", USER,
      "lower {timelimit} below the limit of the partition, or name another {partition}",
      "scontrol update jobid={id} timelimit=..., or partition=... of a longer limit", true },
    { "PartitionNodeLimit", USER,
      "ask for fewer nodes ({max-nodes}, fewer pods of the group), or name another {partition}",
      "scontrol update jobid={id} numnodes=..., or another partition", true },
    { "PartitionDown", ADMIN,
      "scontrol update partitionname=... state=up, or name another {partition}",
      "scontrol update partitionname=... state=up", true },
    { "PartitionInactive", ADMIN,
      "scontrol update partitionname=... state=up, or name another {partition}",
      "scontrol update partitionname=... state=up", true },
    { "BadConstraints", USER,
      "no node can ever satisfy the request: change {constraints}, {gres}, {mem-per-node} or the "
      "resources of the pod",
      "no node can ever satisfy the request: scontrol update jobid={id} features=... or ask for "
      "less",
      true },
    { "Constraints", USER, "no node has these features now: change {constraints}",
      "no node has these features now: scontrol update jobid={id} features=...", true },
    { "DependencyNeverSatisfied", USER, "the job it depends on failed: change {dependency}",
      "scontrol update jobid={id} dependency=", true },
    { "Dependency*", "", "it starts when the jobs of {dependency} have ended",
      "it starts when the jobs it depends on have ended", false },
    { "JobHeldUser", USER, "scontrol release {id}, or {priority} above 0", "scontrol release {id}",
      false },
    { "JobHeldAdmin", ADMIN, "scontrol release {id}", "scontrol release {id}", false },
    { "JobHoldMaxRequeue", ADMIN,
      "it was requeued too often: look why it fails, then scontrol release {id}",
      "it was requeued too often: look why it fails, then scontrol release {id}", false },
    { "InvalidAccount", USER, "name an {account} that this user has (sacctmgr show assoc)",
      "scontrol update jobid={id} account=...", true },
    { "AccountNotAllowed", USER,
      "the partition does not take this account: change {account} or {partition}",
      "scontrol update jobid={id} account=... or partition=...", true },
    { "InvalidQOS", USER, "name a {qos} that the account has (sacctmgr show assoc format=qos)",
      "scontrol update jobid={id} qos=...", true },
    { "QOSNotAllowed", USER, "the partition does not take this QOS: change {qos} or {partition}",
      "scontrol update jobid={id} qos=... or partition=...", true },
    { "ReservationDeleted", USER, "the reservation is gone: change {reservation}",
      "scontrol update jobid={id} reservationname=", true },
    { "Reservation*", "", "it starts when its reservation begins and has room",
      "it starts when its reservation begins and has room", false },
    { "DeadLine", USER, "it cannot end before its {deadline}: move it, or lower {timelimit}",
      "scontrol update jobid={id} deadline=... or timelimit=...", true },
    { "BeginTime", "", "it starts after its {begin-time}", "it starts after its begin time",
      false },
    { "Licenses*", "", "it starts when licenses are given back",
      "it starts when licenses are given back", false },
    { "MaxMemPerLimit", USER, "ask for less memory than the limit of the partition",
      "ask for less memory than the limit of the partition", true },
    { "AssocGrp*", BOTH,
      "its account is at a limit: wait for its other jobs, or raise the limit (sacctmgr show "
      "assoc)",
      "its account is at a limit: wait for its other jobs, or raise the limit (sacctmgr show "
      "assoc)",
      false },
    { "AssocMax*", BOTH,
      "it asks for more than its account may: ask for less, or raise the limit (sacctmgr show "
      "assoc)",
      "it asks for more than its account may: ask for less, or raise the limit (sacctmgr show "
      "assoc)",
      false },
    { "QOSGrp*", BOTH,
      "its QOS is at a limit: wait, take another {qos}, or raise the limit (sacctmgr show qos)",
      "its QOS is at a limit: wait, take another QOS, or raise the limit (sacctmgr show qos)",
      false },
    { "QOS*", BOTH,
      "it is over a limit of its QOS: ask for less, or take another {qos} (sacctmgr show qos)",
      "it is over a limit of its QOS: ask for less, or take another QOS (sacctmgr show qos)",
      false },
    { "ReqNodeNotAvail*", "",
      "nodes that it needs are kept for other jobs, drained or down: see `slinc nodes`",
      "nodes that it needs are kept for other jobs, drained or down: see `slinc nodes`", false },
    { "Resources", "",
      "nobody has to act; a lower {timelimit} may let it start before others (backfill)",
      "nobody has to act; a lower time limit may let it start before others (backfill)", false },
    { "Priority", "",
      "nobody has to act; a {qos} of higher priority moves it up, a lower {timelimit} may let it "
      "start before others",
      "nobody has to act; a QOS of higher priority moves it up, a lower time limit may let it "
      "start before others",
      false },
    { "None", "", "nobody has to act: Slurm has not looked at it yet",
      "nobody has to act: Slurm has not looked at it yet", false },

    /* reasons of the condition SlurmPending */
    { "SlurmUnavailable", ADMIN, "the bridge cannot use Slurm: `slinc doctor` says what is wrong",
      "", false },
    { "NoNodeFits", BOTH,
      "change the selector, affinity, tolerations or requests that leave no node, or lend nodes to "
      "Slurm (label scheduler.slinky.slurm.net/external-node)",
      "", false },
    { "NodeMisfit", BOTH,
      "Slurm gave a node that Kubernetes' rules exclude; the bridge asks for another one", "",
      false },
    { "GroupIncomplete", USER,
      "create the pods of the group that are missing, or lower its smallest number", "", false },
    { "GroupEnded", USER, "the group has ended: delete it and create it anew", "", false },
    { "OwnerUnknown", USER, "create the object that the pod names as its owner or group", "",
      false },
    { "Invalid", USER, "correct what the message names", "", true },
    { "TooBig", USER, "ask for less in one unit", "", true },
    { "TooFewPlaces", USER, "ask for as many places as there are pods: {min-nodes}, {max-nodes}",
      "", false },
    { "Refused", BOTH,
      "correct what Slurm's message names; the bridge submits again when the pod, its owner or the "
      "nodes change, and every ten minutes",
      "", true },
    { "WaitingForTurn", "",
      "nobody has to act: pods with rules about each other are submitted one at a time", "",
      false },
    { "WaitingForSlurm", "", "nobody has to act: the bridge waits for an answer of Slurm", "",
      false },
    { "Pending", "", "nobody has to act: Slurm has not looked at it yet", "", false },
    { "ClaimRefused", BOTH, "see the claim that the message names (docs/devices.md)", "", false },
    { "DevicesNotReady", "",
      "nobody has to act: its devices are being claimed, or another pod still has them", "",
      false },
    { "VolumesNotBound", BOTH, "see why its claims are not bound: kubectl describe pvc", "",
      false },
    { "PlaceNotFree", "", "nobody has to act: another pod has to leave the node first", "", false },
    { "NotCovered", ADMIN,
      "the pod runs without a job in Slurm: see the events, and `slinc doctor`", "", false },
    { "Suspended", BOTH, "scontrol resume {id}", "scontrol resume {id}", false },
};

const struct advice *advice_of(struct str reason)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct str pattern = str_of(table[i].reason);

        if (str_ends(pattern, STR("*")) ? str_starts(reason, str_sub(pattern, 0, pattern.len - 1))
                                        : str_eq(reason, pattern))
            return &table[i];
    }
    return NULL;
}

void advice_write(const char *text, int64_t job_id, struct buf *out)
{
    struct str rest = str_of(text), before, behind, word;
    bool was_told = false; /* where such words stand */

    while (str_cut(rest, '{', &before, &behind) && str_cut(behind, '}', &word, &rest)) {
        buf_add_str(out, before);
        if (str_is(word, "id")) {
            buf_printf(out, "%" PRId64, job_id);
            continue;
        }
        buf_add_str(out, word);
        if (!was_told)
            buf_printf(out, " (annotation " PREFIX STR_FMT ")", STR_ARG(word));
        was_told = true;
    }
    buf_add_str(out, rest);
}

static void write_cell(const char *text, struct buf *out)
{
    for (; *text; text++)
        if (*text == '{' || *text == '}')
            buf_add_char(out, '`');
        else
            buf_add_char(out, *text);
}

void advice_reference(struct buf *out)
{
    buf_add_text(
        out, "| Reason | Who acts | What helps a pod | What helps a job |\n|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        buf_printf(out, "| `%s` | %s | ", table[i].reason,
                   table[i].actor[0] ? table[i].actor : "nobody");
        write_cell(table[i].pod, out);
        buf_add_text(out, " | ");
        write_cell(table[i].job, out);
        buf_add_text(out, " |\n");
    }
}
