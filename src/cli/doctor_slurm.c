/* doctor_slurm.c - checks of the Slurm side as exporter and bridge see it, of tokens, and of the
 * nodes that are lent to Slurm. */
#include "cli/doctor.h"
#include "cli/text.h"

#include <inttypes.h>
#include <string.h>

static const double MAX_DBD_QUEUE = 1000, MAX_THREADS = 200, MAX_AGENT_QUEUE = 100, MIN_ROOM = 0.05;

enum {
    SOON_S = 600,
    DAY_S = 86400,
    MAX_NAMES_TEXT = 2048,
};

#define EXTERNAL_LABEL "scheduler.slinky.slurm.net/external-node"
#define TAINT          "slinky.slurm.net/managed-node"
#define JOB_LABEL      "scheduler.slinky.slurm.net/slurm-jobid"

static const struct json *items(const struct doctor *doctor, enum doctor_fact fact)
{
    return json_get(doctor->facts->of[fact].doc, "items");
}

/* ---- by the exporter's metrics ---- */

static struct str metrics(const struct doctor *doctor)
{
    return doctor->facts->of[FACT_EXPORTER].text;
}

void doctor_reads(const struct doctor *doctor, struct doctor_finding *finding)
{
    static const char *const kinds[] = { "jobs", "nodes", "partitions" };
    double up = 0, age = 0;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const char *row = arena_printf(doctor->arena, "slinc_slurm_up{kind=\"%s\"}", kinds[i]);

        if (!doctor_sample(metrics(doctor), row, &up)) {
            doctor_find(doctor, finding, DOCTOR_SKIPPED, "the exporter's metrics have no %s", row);
            return;
        }
        if (up < 1) {
            row = arena_printf(doctor->arena, "slinc_slurm_age_seconds{kind=\"%s\"}", kinds[i]);
            if (doctor_sample(metrics(doctor), row, &age))
                doctor_find(doctor, finding, DOCTOR_FAILS,
                            "the exporter has not read %s for %.0f s", kinds[i], age);
            else
                doctor_find(doctor, finding, DOCTOR_FAILS, "the exporter cannot read %s", kinds[i]);
            return;
        }
    }
    doctor_find(doctor, finding, DOCTOR_OK, "the exporter reads Slurm");
}

void doctor_database(const struct doctor *doctor, struct doctor_finding *finding)
{
    double queue;

    if (!doctor_sample(metrics(doctor), "slinc_controller_dbd_queue ", &queue))
        doctor_find(doctor, finding, DOCTOR_SKIPPED, "Slurm does not say how slurmdbd is");
    else if (queue >= MAX_DBD_QUEUE)
        doctor_find(doctor, finding, DOCTOR_FAILS,
                    "%.0f messages wait for slurmdbd: it is away or too slow, and slurmctld drops "
                    "records when its queue is full",
                    queue);
    else
        doctor_find(doctor, finding, DOCTOR_OK, "%.0f messages wait for slurmdbd", queue);
}

/* Of one pod, as its kubelet says; false: it says nothing. */
static bool state_room(const struct json *pod, double *ret_share)
{
    struct json_iter iter = json_iter(json_get(pod, "volume"));
    const struct json *volume;

    while (json_next_item(&iter, &volume)) {
        int64_t all = json_i64_or(json_get(volume, "capacityBytes"), 0);

        if (!str_is(json_str(json_get(volume, "name")), "statesave") || all <= 0)
            continue;
        *ret_share = (double)json_i64_or(json_get(volume, "availableBytes"), 0) / (double)all;
        return true;
    }
    return false;
}

static bool runs_slurmctld(const struct doctor *doctor, const struct json *ref)
{
    struct json_iter iter = json_iter(items(doctor, FACT_PODS));
    const struct json *pod;

    while (json_next_item(&iter, &pod)) {
        const struct json *metadata = json_get(pod, "metadata");

        if (json_equal(json_get(metadata, "name"), json_get(ref, "name")) &&
            json_equal(json_get(metadata, "namespace"), json_get(ref, "namespace")))
            return str_is(json_str(json_at(metadata, "labels", "app.kubernetes.io/name")),
                          "slurmctld");
    }
    return false;
}

void doctor_disks(const struct doctor *doctor, struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_DISKS)), pods;
    struct doctor_names full = { .count = 0 };
    const struct json *one, *pod;
    double least = 1, share = 1;
    size_t count = 0;

    buf_init(&full.text, MAX_NAMES_TEXT);
    while (json_next_item(&iter, &one)) {
        pods = json_iter(json_get(one, "pods"));
        while (json_next_item(&pods, &pod)) {
            const struct json *ref = json_get(pod, "podRef");

            if (!runs_slurmctld(doctor, ref) || !state_room(pod, &share))
                continue;
            count++;
            least = share < least ? share : least;
            if (share < MIN_ROOM)
                doctor_names_add(&full, json_str(json_get(ref, "namespace")),
                                 json_str(json_get(ref, "name")));
        }
    }
    if (full.count > 0)
        doctor_find(doctor, finding, DOCTOR_FAILS,
                    "slurmctld has less than %.0f %% of its disk left: %s", 100 * MIN_ROOM,
                    buf_text(&full.text));
    else if (count == 0)
        doctor_find(doctor, finding, DOCTOR_SKIPPED,
                    "no kubelet says how full the disk of a slurmctld is");
    else
        doctor_find(doctor, finding, DOCTOR_OK, "%.0f %% is free", 100 * least);
    buf_done(&full.text);
}

void doctor_load(const struct doctor *doctor, struct doctor_finding *finding)
{
    double threads, queue = 0;

    if (!doctor_sample(metrics(doctor), "slinc_controller_threads ", &threads)) {
        doctor_find(doctor, finding, DOCTOR_SKIPPED, "Slurm does not say how slurmctld is");
        return;
    }
    (void)doctor_sample(metrics(doctor), "slinc_controller_agent_queue ", &queue);
    doctor_find(doctor, finding,
                threads >= MAX_THREADS || queue >= MAX_AGENT_QUEUE ? DOCTOR_WARNS : DOCTOR_OK,
                "slurmctld serves %.0f requests at once and has %.0f messages to send", threads,
                queue);
}

/* The smallest bound that 19 of 20 requests kept; of all kinds. */
void doctor_latency(const struct doctor *doctor, struct doctor_finding *finding)
{
    static const char name[] = "slinc_slurm_request_duration_seconds_";
    double count = 0, within = 0;
    struct str text = metrics(doctor), line;

    while (text.len > 0 && str_next(&text, '\n', &line)) {
        struct str rest = str_sub(line, sizeof(name) - 1, line.len);
        double value = 0;

        if (!str_starts(line, str_of(name)) || !doctor_sample(line, name, &value))
            continue;
        if (str_starts(rest, STR("count")))
            count += value;
        else if (memmem(line.at, line.len, "le=\"0.25\"", 9))
            within += value;
    }
    if (count < 20)
        doctor_find(doctor, finding, DOCTOR_SKIPPED, "too few requests so far");
    else if (within < 0.95 * count)
        doctor_find(doctor, finding, DOCTOR_WARNS,
                    "%.0f of %.0f requests to slurmrestd took longer than 250 ms", count - within,
                    count);
    else
        doctor_find(doctor, finding, DOCTOR_OK, "%.0f of %.0f requests took less than 250 ms",
                    within, count);
}

void doctor_hidden(const struct doctor *doctor, struct doctor_finding *finding)
{
    static const char begins[] = "slinc_slurm_restricted{by=\"";
    struct doctor_names hidden = { .count = 0 };
    struct str text = metrics(doctor), line;
    bool is_told = false, is_unknown = false;

    buf_init(&hidden.text, MAX_NAMES_TEXT);
    while (text.len > 0 && str_next(&text, '\n', &line)) {
        struct str name = str_sub(line, sizeof(begins) - 1, line.len), rest;
        double hides = 0;

        if (!doctor_sample(line, begins, &hides) || !str_cut(name, '"', &name, &rest))
            continue;
        is_told = true;
        if (hides > 0 && str_is(name, "unknown"))
            is_unknown = true;
        else if (hides > 0)
            doctor_names_add(&hidden, STR(""), name);
    }
    if (hidden.count > 0)
        doctor_find(doctor, finding, DOCTOR_WARNS,
                    "Slurm hides %s from the exporter's user: their figures are absent",
                    buf_text(&hidden.text));
    else if (is_unknown)
        doctor_find(doctor, finding, DOCTOR_WARNS,
                    "Slurm may hide something from the exporter's user, who cannot find out");
    else if (!is_told)
        doctor_find(doctor, finding, DOCTOR_SKIPPED,
                    "the exporter does not know yet what Slurm hides");
    else
        doctor_find(doctor, finding, DOCTOR_OK, "nothing is hidden");
    buf_done(&hidden.text);
}

/* ---- tokens ---- */

void doctor_token(const struct doctor *doctor, struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_TOKENS));
    const struct json *one;
    size_t count = 0;

    while (json_next_item(&iter, &one)) {
        int64_t left = json_i64_or(json_get(one, "expires"), INT64_MAX) - doctor->facts->now_s;

        count++;
        if (left > SOON_S)
            continue;
        doctor_find(doctor, finding, left > 0 ? DOCTOR_WARNS : DOCTOR_FAILS,
                    "the token in Secret " STR_FMT " %s %" PRId64 " s%s",
                    STR_ARG(json_str(json_get(one, "name"))), left > 0 ? "ends in" : "ended",
                    left > 0 ? left : -left, left > 0 ? "" : " ago");
        return;
    }
    if (count == 0)
        doctor_find(doctor, finding, DOCTOR_SKIPPED,
                    "no program of ours uses a Secret with a token");
    else
        doctor_find(doctor, finding, DOCTOR_OK, "%zu tokens", count);
}

/* ---- nodes ---- */

void doctor_cpu_manager(const struct doctor *doctor, struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_KUBELETS));
    struct doctor_names wrong = { .count = 0 };
    const struct json *one;
    size_t count = 0;

    buf_init(&wrong.text, MAX_NAMES_TEXT);
    while (json_next_item(&iter, &one)) {
        count++;
        if (str_is(json_str(json_at(one, "kubeletconfig", "cpuManagerPolicy")), "static"))
            doctor_names_add(&wrong, STR(""), json_str(json_get(one, "node")));
    }
    if (wrong.count > 0)
        doctor_find(doctor, finding, DOCTOR_WARNS,
                    "the kubelet of %s pins containers to cores of its own choice, while Slurm "
                    "chooses cores, too",
                    buf_text(&wrong.text));
    else if (count == 0)
        doctor_find(doctor, finding, DOCTOR_SKIPPED, "no node is lent to Slurm");
    else
        doctor_find(doctor, finding, DOCTOR_OK, "%zu kubelets", count);
    buf_done(&wrong.text);
}

void doctor_taints(const struct doctor *doctor, struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_NODES));
    struct doctor_names wrong = { .count = 0 };
    const struct json *node, *taint;
    size_t count = 0;

    buf_init(&wrong.text, MAX_NAMES_TEXT);
    while (json_next_item(&iter, &node)) {
        struct json_iter taints = json_iter(json_at(node, "spec", "taints"));
        bool has = false;

        if (!json_exists(json_at(node, "metadata", "labels", EXTERNAL_LABEL)))
            continue;
        count++;
        while (json_next_item(&taints, &taint))
            has |= str_is(json_str(json_get(taint, "key")), TAINT);
        if (!has)
            doctor_names_add(&wrong, STR(""), json_str(json_at(node, "metadata", "name")));
    }
    if (wrong.count > 0)
        doctor_find(doctor, finding, DOCTOR_WARNS,
                    "%zu nodes that are lent to Slurm have no taint " TAINT
                    ", so other pods may come: %s",
                    wrong.count, buf_text(&wrong.text));
    else if (count == 0)
        doctor_find(doctor, finding, DOCTOR_SKIPPED, "no node is lent to Slurm");
    else
        doctor_find(doctor, finding, DOCTOR_OK, "%zu nodes", count);
    buf_done(&wrong.text);
}

/* By the condition with which the bridge says that a record is made again. */
void doctor_devices(const struct doctor *doctor, struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_NODES));
    struct doctor_names wrong = { .count = 0 };
    const struct json *node;
    size_t count = 0;

    buf_init(&wrong.text, MAX_NAMES_TEXT);
    while (json_next_item(&iter, &node)) {
        const struct json *says = doctor_condition(node, "SlurmAvailable");

        if (!json_exists(json_at(node, "metadata", "labels", EXTERNAL_LABEL)))
            continue;
        count++;
        if (str_is(json_str(json_get(says, "reason")), "DevicesDiffer"))
            doctor_names_add(&wrong, STR(""), json_str(json_at(node, "metadata", "name")));
    }
    if (wrong.count > 0)
        doctor_find(doctor, finding, DOCTOR_WARNS,
                    "%zu of %zu nodes have other devices than Slurm was told: %s", wrong.count,
                    count, buf_text(&wrong.text));
    else if (count == 0)
        doctor_find(doctor, finding, DOCTOR_SKIPPED, "no node is lent to Slurm");
    else
        doctor_find(doctor, finding, DOCTOR_OK, "%zu nodes", count);
    buf_done(&wrong.text);
}

void doctor_drained(const struct doctor *doctor, struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_VIEW_NODES));
    struct doctor_names wrong = { .count = 0 };
    const struct json *node;
    size_t count = 0;

    buf_init(&wrong.text, MAX_NAMES_TEXT);
    while (json_next_item(&iter, &node)) {
        struct str state = json_str(json_get(node, "state"));
        int64_t since = text_seconds(json_str(json_get(node, "reasonSince")));

        count++;
        if ((str_is(state, "drained") || str_is(state, "draining") || str_is(state, "down")) &&
            since > 0 && doctor->facts->now_s - since > DAY_S)
            doctor_names_add(&wrong, STR(""), json_str(json_get(node, "name")));
    }
    if (wrong.count > 0)
        doctor_find(doctor, finding, DOCTOR_WARNS,
                    "%zu of %zu nodes have been out of service for more than a day: %s",
                    wrong.count, count, buf_text(&wrong.text));
    else
        doctor_find(doctor, finding, DOCTOR_OK, "%zu nodes", count);
    buf_done(&wrong.text);
}

/* ---- jobs ---- */

static bool has_pod(const struct json *pods, int64_t id)
{
    struct json_iter iter = json_iter(pods);
    const struct json *pod;
    int64_t own;

    while (json_next_item(&iter, &pod))
        if (str_to_i64(json_str(json_at(pod, "metadata", "labels", JOB_LABEL)), 1, INT64_MAX, &own,
                       NULL) == 0 &&
            own == id)
            return true;
    return false;
}

/* A job that waits is on no pod yet: the label comes when it waits for long, or runs. */
void doctor_jobs_without_pods(const struct doctor *doctor, struct doctor_finding *finding)
{
    struct json_iter iter = json_iter(items(doctor, FACT_VIEW_JOBS));
    struct doctor_names wrong = { .count = 0 };
    const struct json *job;
    size_t count = 0;

    buf_init(&wrong.text, MAX_NAMES_TEXT);
    while (json_next_item(&iter, &job)) {
        int64_t id = json_i64_or(json_get(job, "id"), 0);
        int64_t started = text_seconds(json_str(json_get(job, "started")));

        if (!str_is(json_str(json_get(job, "holder")), "pod") ||
            !str_is(json_str(json_get(job, "state")), "running"))
            continue;
        count++;
        if (doctor->facts->now_s - started > SOON_S && !has_pod(items(doctor, FACT_PODS), id))
            doctor_names_add(&wrong, STR(""), str_of(arena_printf(doctor->arena, "%" PRId64, id)));
    }
    if (wrong.count > 0)
        doctor_find(doctor, finding, DOCTOR_WARNS,
                    "%zu jobs of the bridge hold nodes for no pod of this cluster: %s", wrong.count,
                    buf_text(&wrong.text));
    else
        doctor_find(doctor, finding, DOCTOR_OK, "%zu jobs", count);
    buf_done(&wrong.text);
}
