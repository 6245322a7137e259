/* doctor_work.c - checks of what runs: pods of the bridge, workers of NodeSets, autoscalers. */
#include "cli/doctor.h"
#include "cli/text.h"

#include <inttypes.h>

enum { LONG_S = 600, MAX_NAMES_TEXT = 2048 };

#define FINALIZER "scheduler.slinky.slurm.net/finalizer"

static const struct json *items(const struct doctor *doctor, enum doctor_fact fact)
{
    return json_get(doctor->facts->of[fact].doc, "items");
}

static void add_name(struct doctor_names *names, const struct json *object)
{
    doctor_names_add(names, json_str(json_at(object, "metadata", "namespace")),
                     json_str(json_at(object, "metadata", "name")));
}

static bool has_finalizer(const struct json *pod)
{
    struct json_iter iter = json_iter(json_at(pod, "metadata", "finalizers"));
    const struct json *one;

    while (json_next_item(&iter, &one))
        if (str_is(json_str(one), FINALIZER))
            return true;
    return false;
}

void doctor_finalizers(const struct doctor *doctor, struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_PODS));
    struct doctor_names wrong = { .count = 0 };
    const struct json *pod;

    buf_init(&wrong.text, MAX_NAMES_TEXT);
    while (json_next_item(&iter, &pod)) {
        int64_t since = text_seconds(json_str(json_at(pod, "metadata", "deletionTimestamp")));

        if (since > 0 && doctor->facts->now_s - since > LONG_S && has_finalizer(pod))
            add_name(&wrong, pod);
    }
    if (wrong.count > 0)
        doctor_find(doctor, finding, DOCTOR_FAILS,
                    "%zu deleted pods wait for the bridge to let them go: %s", wrong.count,
                    buf_text(&wrong.text));
    else
        doctor_find(doctor, finding, DOCTOR_OK, "none");
    buf_done(&wrong.text);
}

void doctor_refused(const struct doctor *doctor, struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_PODS));
    struct doctor_names wrong = { .count = 0 };
    const struct json *pod;

    buf_init(&wrong.text, MAX_NAMES_TEXT);
    while (json_next_item(&iter, &pod)) {
        const struct json *waits = doctor_condition(pod, "SlurmPending");
        int64_t since = text_seconds(json_str(json_get(waits, "lastTransitionTime")));

        if (str_is(json_str(json_get(waits, "reason")), "Refused") &&
            str_is(json_str(json_get(waits, "status")), "True") &&
            doctor->facts->now_s - since > LONG_S)
            add_name(&wrong, pod);
    }
    if (wrong.count > 0)
        doctor_find(doctor, finding, DOCTOR_WARNS, "Slurm refuses the jobs of %zu pods: %s",
                    wrong.count, buf_text(&wrong.text));
    else
        doctor_find(doctor, finding, DOCTOR_OK, "none");
    buf_done(&wrong.text);
}

/* A worker counts as missing when the NodeSet has been incomplete for long. */
void doctor_workers(const struct doctor *doctor, struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_NODESETS));
    struct doctor_names wrong = { .count = 0 };
    const struct json *nodeset;
    size_t count = 0;

    buf_init(&wrong.text, MAX_NAMES_TEXT);
    while (json_next_item(&iter, &nodeset)) {
        const struct json *ready = doctor_condition(nodeset, "Ready");
        int64_t since = text_seconds(json_str(json_get(ready, "lastTransitionTime")));

        count++;
        if (!str_is(json_str(json_get(ready, "status")), "True") &&
            doctor->facts->now_s - since > LONG_S)
            add_name(&wrong, nodeset);
    }
    if (wrong.count > 0)
        doctor_find(doctor, finding, DOCTOR_FAILS,
                    "%zu of %zu NodeSets have not been ready for 10 minutes: %s", wrong.count,
                    count, buf_text(&wrong.text));
    else if (count == 0)
        doctor_find(doctor, finding, DOCTOR_SKIPPED, "there is no NodeSet");
    else
        doctor_find(doctor, finding, DOCTOR_OK, "%zu NodeSets", count);
    buf_done(&wrong.text);
}

/* ---- autoscalers ---- */

/* Those of NodeSets whose condition ScalingActive is False for this reason or, reason NULL, for any
 * other than being switched off at zero. */
static void judge_autoscalers(const struct doctor *doctor, bool at_zero, const char *what,
                              struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_HPAS));
    struct doctor_names wrong = { .count = 0 };
    const struct json *hpa;
    struct str said = STR("");
    size_t count = 0;

    buf_init(&wrong.text, MAX_NAMES_TEXT);
    while (json_next_item(&iter, &hpa)) {
        const struct json *active = doctor_condition(hpa, "ScalingActive");
        bool is_off = str_is(json_str(json_get(active, "reason")), "ScalingDisabled");

        if (!str_is(json_str(json_at(hpa, "spec", "scaleTargetRef", "kind")), "NodeSet"))
            continue;
        count++;
        if (!str_is(json_str(json_get(active, "status")), "False") || is_off != at_zero)
            continue;
        add_name(&wrong, hpa);
        said = json_str(json_get(active, "message"));
    }
    if (wrong.count > 0)
        doctor_find(doctor, finding, DOCTOR_FAILS, "%s: %s (" STR_FMT ")", buf_text(&wrong.text),
                    what, STR_ARG(said));
    else if (count == 0)
        doctor_find(doctor, finding, DOCTOR_SKIPPED, "no autoscaler of a NodeSet");
    else
        doctor_find(doctor, finding, DOCTOR_OK, "%zu autoscalers", count);
    buf_done(&wrong.text);
}

void doctor_hpa(const struct doctor *doctor, struct doctor_finding *finding)
{
    judge_autoscalers(doctor, false, "cannot read its metric", finding);
}

void doctor_hpa_zero(const struct doctor *doctor, struct doctor_finding *finding)
{
    judge_autoscalers(doctor, true, "cannot leave zero", finding);
}
