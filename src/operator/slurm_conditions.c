/* slurm_conditions.c - conditions that say whether Slurm and its database answer, and since when
 * not.
 *
 * Holds   an outage is one write: its time and its reason are those of the first failure. */
#include "operator/slurm_conditions.h"

#include "codec/timestamp.h"

static const struct json *live_condition(const struct sync *sync, const char *type)
{
    return kube_condition_entry(json_at(operator_tree(sync->object), "status", "conditions"), type);
}

/* The time of a condition that says so already stays: an operator that starts anew has another. */
static const char *since_text(const struct sync *sync, const char *type, int64_t since_us,
                              const char *reason)
{
    static const char words[] = "not reachable since ";
    struct str before = json_str(json_get(live_condition(sync, type), "message"));
    auto_buf struct buf text = { .max = 64 };

    buf_add_text(&text, words);
    (void)timestamp_print(since_us, &text, NULL);
    if (str_starts(before, str_of(words)) && before.len > text.len)
        return arena_printf(sync->plan->arena, "%.*s: %s", (int)text.len, before.at, reason);
    return arena_printf(sync->plan->arena, "%s: %s", buf_text(&text), reason);
}

struct kube_condition_want want_slurm(const struct sync *sync, const struct slurm_facts *facts)
{
    static const char type[] = "SlurmReachable";

    if (!facts)
        return (struct kube_condition_want){ .type = NULL };
    if (!facts->has_restapi)
        return (struct kube_condition_want){ type, KUBE_FALSE, "NoRestApi",
                                             "no RestApi refers to this Controller" };
    if (!facts->is_known)
        return (struct kube_condition_want){ .type = NULL };
    if (facts->is_reachable)
        return (struct kube_condition_want){ type, KUBE_TRUE, "Responding", "slurmctld responds" };
    return (struct kube_condition_want){ type, KUBE_FALSE, "NotReachable",
                                         since_text(sync, type, facts->since_us, facts->reason) };
}

struct kube_condition_want want_database(const struct sync *sync, const struct slurm_facts *facts)
{
    static const char type[] = "DatabaseReachable";

    if (facts && facts->is_reachable && facts->accounting == ACCOUNTING_ANSWERS)
        return (struct kube_condition_want){ type, KUBE_TRUE, "Responding",
                                             "slurmdbd answers from its database" };
    if (facts && facts->is_reachable && facts->accounting == ACCOUNTING_LOST)
        return (struct kube_condition_want){ type, KUBE_FALSE, "NotReachable",
                                             since_text(sync, type, facts->accounting_since_us,
                                                        facts->accounting_reason) };
    /* Reachable and not asked yet: an operator that starts anew says nothing. */
    if (facts && !facts->is_reachable && (facts->is_known || !facts->has_restapi) &&
        live_condition(sync, type))
        return (struct kube_condition_want){ type, KUBE_UNKNOWN_TRUTH, "NotAsked",
                                             "slurmdbd cannot be asked: see the condition "
                                             "SlurmReachable of its Controller" };
    return (struct kube_condition_want){ .type = NULL };
}
