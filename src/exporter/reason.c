/* reason.c - Slurm's reasons for waiting, folded into classes. */
#include "exporter/reason.h"

static const struct {
    const char *name, *actor, *meaning;
} classes[REASON_CLASSES] = {
    [REASON_PRIORITY] = { "priority", "", "jobs of higher priority come first" },
    [REASON_RESOURCES] = { "resources", "", "the nodes it needs are busy" },
    [REASON_LIMIT] = { "limit", "the user or an administrator",
                       "a limit of its association, QOS or account is reached" },
    [REASON_DEPENDENCY] = { "dependency", "", "another job has not ended" },
    [REASON_TIME] = { "time", "", "its begin time has not come" },
    [REASON_HOLD] = { "hold", "whoever holds it", "it is held" },
    [REASON_RESERVATION] = { "reservation", "", "its reservation has not begun or is full" },
    [REASON_LICENSE] = { "license", "", "licenses are in use" },
    [REASON_STARTING] = { "starting", "", "its nodes or buffers are being prepared" },
    [REASON_NEVER] = { "never", "the user or an administrator",
                       "it cannot start unless somebody changes something" },
};

/* The first row that matches counts. A '*' at the end stands for anything. */
static const struct {
    const char *word;
    enum reason_class class;
} rows[] = {
    { "None", REASON_PRIORITY },
    { "", REASON_PRIORITY },
    { "Priority", REASON_PRIORITY },
    { "Resources", REASON_RESOURCES },
    { "ReqNodeNotAvail*", REASON_RESOURCES },
    { "NodeDown", REASON_RESOURCES },
    { "FrontEndDown", REASON_RESOURCES },
    { "JobHeld*", REASON_HOLD },
    { "JobHoldMaxRequeue", REASON_HOLD },
    { "JobLaunchFailure", REASON_HOLD },
    { "BeginTime", REASON_TIME },
    { "DeadLine", REASON_NEVER },
    { "DependencyNeverSatisfied", REASON_NEVER },
    { "Dependency*", REASON_DEPENDENCY },
    { "JobArrayTaskLimit", REASON_LIMIT },
    { "ReservationDeleted", REASON_NEVER },
    { "ReservationInvalid*", REASON_NEVER },
    { "Reservation*", REASON_RESERVATION },
    { "Licenses*", REASON_LICENSE },
    { "Prolog*", REASON_STARTING },
    { "BurstBuffer*", REASON_STARTING },
    { "ImexChannels", REASON_STARTING },
    { "Cleaning", REASON_STARTING },
    { "PowerNotAvail", REASON_RESOURCES },
    { "PowerReserved", REASON_RESOURCES },
    { "BadConstraints", REASON_NEVER },
    { "Constraints", REASON_NEVER },
    { "Partition*", REASON_NEVER },
    { "Invalid*", REASON_NEVER },
    { "AccountNotAllowed", REASON_NEVER },
    { "QOSNotAllowed", REASON_NEVER },
    { "MaxMemPerLimit", REASON_NEVER },
    { "Assoc*", REASON_LIMIT },
    { "Association*", REASON_LIMIT },
    { "QOS*", REASON_LIMIT },
    { "Max*", REASON_LIMIT },
    { "AccountingPolicy", REASON_LIMIT },
};

const char *reason_class_name(enum reason_class class)
{
    return classes[class].name;
}

const char *reason_class_actor(enum reason_class class)
{
    return classes[class].actor;
}

static bool matches(struct str reason, struct str word)
{
    if (word.len > 0 && word.at[word.len - 1] == '*')
        return str_starts(reason, str_sub(word, 0, word.len - 1));
    return str_eq(reason, word);
}

enum reason_class reason_class_of(const char *reason, bool hold)
{
    if (hold)
        return REASON_HOLD;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (matches(str_of(reason), str_of(rows[i].word)))
            return rows[i].class;
    return REASON_RESOURCES;
}

bool reason_wants_nodes(enum reason_class class)
{
    return class == REASON_PRIORITY || class == REASON_RESOURCES;
}

void reason_reference(struct buf *out)
{
    buf_add_text(out,
                 "| Class | Meaning | Who has to act | Slurm's reasons |\n|---|---|---|---|\n");
    for (unsigned class = 0; class < REASON_CLASSES; class ++) {
        const char *between = "";

        buf_printf(out, "| `%s` | %s | %s | ", classes[class].name, classes[class].meaning,
                   classes[class].actor[0] ? classes[class].actor : "nobody");
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            if (rows[i].class != class || !rows[i].word[0])
                continue;
            buf_printf(out, "%s`%s`", between, rows[i].word);
            between = ", ";
        }
        buf_add_text(out, " |\n");
    }
}
