/* reason.c - the table of Slurm's reasons. */
#include "slurm/reason.h"

#define USER  "the user"
#define ADMIN "an administrator"
#define BOTH  "the user or an administrator"

enum { MAX_CONDITION_REASON = 64 };

#define CLASS(name) SLURM_REASON_##name

/* The first row that matches counts; what most jobs wait for is found first. */
static const struct slurm_reason rows[] = {
    { "Priority", CLASS(PRIORITY), "", "others come first",
      "nobody has to act; a {qos} of higher priority moves it up, a lower {timelimit} may let it "
      "start before others" },
    { "None", CLASS(PRIORITY), "", "Slurm has not looked at it yet",
      "nobody has to act: Slurm has not looked at it yet" },
    { "SchedDefer", CLASS(PRIORITY), "", "Slurm looks at it in its next cycle",
      "nobody has to act: Slurm looks at it in its next cycle" },
    { "Resources", CLASS(RESOURCES), "", "waits for free nodes",
      "nobody has to act; a lower {timelimit} may let it start before others (backfill)" },
    { "ReqNodeNotAvail*", CLASS(RESOURCES), "", "its nodes are kept, drained or down",
      "nodes that it needs are kept for other jobs, drained or down: see `slinc nodes`" },
    { "NodeDown", CLASS(RESOURCES), "", "a node that it needs is down",
      "a node that it needs is down: see `slinc nodes`" },
    { "Dependency", CLASS(DEPENDENCY), "", "waits for another job",
      "it starts when the jobs of its {dependency} have ended" },
    { "BeginTime", CLASS(TIME), "", "begins later", "it starts after its {starttime}" },
    { "Reservation", CLASS(RESERVATION), "", "waits for its reservation",
      "it starts when its reservation begins and has room" },
    { "Licenses", CLASS(LICENSE), "", "waits for licenses",
      "it starts when licenses are given back" },
    { "Prolog", CLASS(STARTING), "", "is being started", "nobody has to act: its prolog runs" },
    { "Cleaning", CLASS(STARTING), "", "its last run is being cleaned up",
      "nobody has to act: it starts when its last run is cleaned up" },
    { "BurstBuffer*", CLASS(STARTING), "", "its burst buffer is being prepared",
      "nobody has to act: it starts when its burst buffer is ready" },
    { "NvidiaImexChannels", CLASS(STARTING), "", "waits for an IMEX channel",
      "it starts when an IMEX channel is given back" },
    { "MpiPortsBusy", CLASS(STARTING), "", "waits for MPI ports",
      "it starts when MPI ports are given back" },
    { "FedJobLock", CLASS(STARTING), "", "waits for its federation",
      "nobody has to act: the clusters of its federation agree which of them starts it" },

    { "PartitionTimeLimit", CLASS(NEVER), USER, "never: over the partition's time limit",
      "lower its {timelimit}, or name another {partition}" },
    { "PartitionDown", CLASS(NEVER), ADMIN, "never: its partition is down",
      "scontrol update partitionname=... state=up, or name another {partition}" },
    { "PartitionInactive", CLASS(NEVER), ADMIN, "never: its partition is inactive",
      "scontrol update partitionname=... state=up, or name another {partition}" },
    { "Partition*", CLASS(NEVER), USER, "never: more than its partition has or allows",
      "ask for fewer nodes ({numnodes}), or name another {partition}" },
    { "BadConstraints", CLASS(NEVER), USER, "never: no node has what it asks for",
      "change its {features}, or ask for less of each node" },
    { "Constraints", CLASS(NEVER), USER, "never: no node has its features now",
      "change its {features}" },
    { "DependencyNeverSatisfied", CLASS(NEVER), USER, "never: a job it depends on failed",
      "change its {dependency}" },
    { "InvalidAccount", CLASS(NEVER), USER, "never: the user has no such account",
      "name an {account} that this user has (sacctmgr show assoc)" },
    { "AccountNotAllowed", CLASS(NEVER), USER, "never: its partition does not take its account",
      "change its {account} or {partition}" },
    { "InvalidQOS", CLASS(NEVER), USER, "never: the account has no such QOS",
      "name a {qos} that the account has (sacctmgr show assoc format=qos)" },
    { "QOSNotAllowed", CLASS(NEVER), USER, "never: its partition does not take its QOS",
      "change its {qos} or {partition}" },
    { "ReservationDeleted", CLASS(NEVER), USER, "never: its reservation is gone",
      "change its {reservationname}" },
    { "ReservationInvalid", CLASS(NEVER), USER, "never: it may not use its reservation",
      "change its {reservationname}" },
    { "DeadLine", CLASS(NEVER), USER, "never: cannot end before its deadline",
      "move its {deadline}, or lower its {timelimit}" },
    { "MaxMemPerLimit", CLASS(NEVER), USER, "never: over the partition's memory limit",
      "ask for less memory, or name another {partition}" },

    { "JobHeldUser", CLASS(HOLD), USER, "held by its user",
      "scontrol release {id}, or a {priority} above 0" },
    { "JobHeldAdmin", CLASS(HOLD), ADMIN, "held by an administrator", "scontrol release {id}" },
    { "JobHoldMaxRequeue", CLASS(HOLD), ADMIN, "held: requeued too often",
      "look why it fails, then scontrol release {id}" },
    { "JobLaunchFailure", CLASS(HOLD), ADMIN, "held: could not be launched",
      "look into the log of slurmctld, then scontrol release {id}" },
    { "JobHeld*", CLASS(HOLD), "whoever holds it", "held", "scontrol release {id}" },

    { "QOSMin*", CLASS(LIMIT), BOTH, "below the least of its QOS",
      "ask for more, take another {qos}, or lower the least (sacctmgr show qos)" },
    { "QOS*", CLASS(LIMIT), BOTH, "at a limit of its QOS",
      "wait for other jobs, ask for less, take another {qos}, or raise the limit (sacctmgr show "
      "qos)" },
    { "Assoc*", CLASS(LIMIT), BOTH, "at a limit of its account",
      "wait for other jobs, ask for less, or raise the limit (sacctmgr show assoc)" },
    { "MaxPoweredUpNodes", CLASS(LIMIT), BOTH, "at the limit of powered-up nodes",
      "wait for other jobs, or raise MaxPoweredUpNodes of the partition" },
    { "Max*", CLASS(LIMIT), BOTH, "at a limit of its QOS",
      "wait for other jobs, ask for less, take another {qos}, or raise the limit (sacctmgr show "
      "qos)" },
    { "AccountingPolicy", CLASS(LIMIT), BOTH, "at a limit of accounting",
      "wait for other jobs, ask for less, or raise the limit (sacctmgr show assoc, qos)" },
    { "JobArrayTaskLimit", CLASS(LIMIT), "", "waits for other tasks of its array",
      "it starts when other tasks of its array have ended" },
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static const char *const class_names[SLURM_REASON_CLASSES] = {
    [SLURM_REASON_PRIORITY] = "priority",
    [SLURM_REASON_RESOURCES] = "resources",
    [SLURM_REASON_LIMIT] = "limit",
    [SLURM_REASON_DEPENDENCY] = "dependency",
    [SLURM_REASON_TIME] = "time",
    [SLURM_REASON_HOLD] = "hold",
    [SLURM_REASON_RESERVATION] = "reservation",
    [SLURM_REASON_LICENSE] = "license",
    [SLURM_REASON_STARTING] = "starting",
    [SLURM_REASON_NEVER] = "never",
};

static bool matches(struct str word, struct str pattern)
{
    return str_ends(pattern, STR("*")) ? str_starts(word, str_sub(pattern, 0, pattern.len - 1))
                                       : str_eq(word, pattern);
}

static const struct slurm_reason *find(struct str word)
{
    for (size_t i = 0; i < ROWS; i++)
        if (matches(word, str_of(rows[i].word)))
            return &rows[i];
    return NULL;
}

struct slurm_reason slurm_reason_of(const char *word, bool is_held)
{
    const struct slurm_reason *row = find(str_of(word[0] ? word : "None"));

    if (is_held && (!row || row->class != SLURM_REASON_HOLD))
        row = find(STR("JobHeld"));
    return row ? *row : (struct slurm_reason){ word, SLURM_REASON_RESOURCES, "", word, "" };
}

const struct slurm_reason *slurm_reason_row(size_t index)
{
    return index < ROWS ? &rows[index] : NULL;
}

const char *slurm_reason_class_name(enum slurm_reason_class class)
{
    return class_names[class];
}

bool slurm_reason_wants_nodes(enum slurm_reason_class class)
{
    return class == SLURM_REASON_PRIORITY || class == SLURM_REASON_RESOURCES;
}

void slurm_reason_help_cell(const char *help, struct buf *out)
{
    for (; *help; help++)
        buf_add_char(out, *help == '{' || *help == '}' ? '`' : *help);
}

void slurm_reason_reference(struct buf *out)
{
    buf_add_text(out, "| Class | Slurm's reason | Meaning | Who acts | What helps |\n"
                      "|---|---|---|---|---|\n");
    for (const struct slurm_reason *row = rows; row < rows + ROWS; row++) {
        buf_printf(out, "| `%s` | `%s` | %s | %s | ", class_names[row->class], row->word, row->text,
                   row->actor[0] ? row->actor : "nobody");
        slurm_reason_help_cell(row->help, out);
        buf_add_text(out, " |\n");
    }
}

const char *slurm_reason_condition(const char *word, struct arena *arena)
{
    auto_buf struct buf reason = { .max = MAX_CONDITION_REASON };
    struct str text;

    for (const char *at = word; *at && reason.len < MAX_CONDITION_REASON - 1; at++)
        if ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9'))
            buf_add(&reason, at, 1);
    text = buf_str(&reason);
    if (text.len == 0 || str_is(text, "None") || (text.at[0] >= '0' && text.at[0] <= '9'))
        return "Pending";
    return arena_strdup(arena, buf_text(&reason));
}
