/* translate.c - from pods to a job description, in the order of precedence, lowest first.
 *
 * Every node of a job gets the same ask, so each amount is the largest over the pods; amounts are
 * taken one by one and may come from different pods.
 *
 * Holds: an amount is rounded up, and one that nobody named is not sent; what does not fit into
 * Slurm's fields is refused here, because Slurm would cut it without a word. */
#include "bridge/translate.h"

#include <inttypes.h>

#define DEVICE_CLASS "deviceclass.resource.kubernetes.io/"
#define DRA_CPU      DEVICE_CLASS "dra.cpu"

enum {
    MIB = 1 << 20,
    MINUTE = 60,
    MAX_GRES_TEXT = 64 << 10, /* bytes of a gres list */
};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t divide_up(int64_t amount, int64_t unit)
{
    return amount / unit + (amount % unit > 0);
}

/* ---- what the administrator and the workload object say ---- */

static void take_config(struct job_ask *ask, const struct bridge_config *config)
{
    ask->mcs_label = config->mcs_label;
    ask->partition = config->partition;
    ask->exclusive = !config->shared;
}

/* A Job's pods go one by one, each with a job of its own. */
static int take_job(struct job_ask *ask, const struct kube_job *job, struct err *err)
{
    int64_t minutes = divide_up(job->active_deadline, MINUTE);

    ask->min_nodes = 1;
    if (minutes > INT32_MAX)
        return err_set(err, ERR_INVALID,
                       "activeDeadlineSeconds of %" PRId64 " is more than Slurm's time limit holds",
                       job->active_deadline);
    if (job->active_deadline > 0)
        ask->time_limit = minutes;
    return 0;
}

static void take_count(struct job_ask *ask, unsigned pods)
{
    if (pods > 1)
        ask->min_nodes = pods;
    ask->max_nodes = pods;
    ask->tasks_per_node = 1;
}

static int take_workload(struct job_ask *ask, const struct translate_from *from, struct err *err)
{
    ask->nodes = from->pod_count;
    ask->name = from->pod_count == 1 ? from->pods[0]->object.name : from->root->name;
    if (from->job && from->pod_count == 1)
        return take_job(ask, from->job, err);
    take_count(ask, from->pod_count);
    return 0;
}

/* ---- CPUs and memory ---- */

static int64_t milli_of_units(int64_t units)
{
    return units > INT64_MAX / 1000 ? INT64_MAX : units * 1000;
}

/* Cores by the device class dra.cpu are CPUs like any others. */
static int64_t cpu_of(const struct kube_requests *amounts)
{
    return larger(amounts->cpu_milli, milli_of_units(kube_amount_of(&amounts->extended, DRA_CPU)));
}

/* Pod-level limits of a Job's template are what its pods have, unless an admission hook took them
 * away: they count where the pods say nothing. */
static int64_t cpu_wanted(const struct translate_from *from)
{
    int64_t milli = 0;

    for (unsigned i = 0; i < from->pod_count; i++)
        milli =
            larger(milli, larger(cpu_of(&from->pods[i]->requests), cpu_of(&from->pods[i]->limits)));
    return milli == 0 && from->job ? from->job->cpu_milli : milli;
}

static int64_t memory_wanted(const struct translate_from *from)
{
    int64_t bytes = 0;

    for (unsigned i = 0; i < from->pod_count; i++)
        bytes = larger(bytes, larger(from->pods[i]->requests.memory, from->pods[i]->limits.memory));
    return bytes == 0 && from->job ? from->job->memory : bytes;
}

static int take_amounts(struct job_ask *ask, const struct translate_from *from, struct err *err)
{
    int64_t cpus = divide_up(cpu_wanted(from), 1000);
    int64_t memory = divide_up(memory_wanted(from), MIB);

    if (cpus > JOB_ASK_MAX_CPUS)
        return err_set(err, ERR_INVALID, "asks for %" PRId64 " CPUs; Slurm knows at most %d", cpus,
                       JOB_ASK_MAX_CPUS);
    if (cpus > 0)
        ask->cpus_per_task = cpus;
    if (memory > 0)
        ask->memory = memory;
    return 0;
}

/* ---- devices ---- */

struct gres {
    struct str class; /* "" for GPUs of a device plugin, whoever made them */
    int64_t amount;   /* the most that a pod wants */
    int64_t of_pod;   /* what the pod at hand wants */
};

struct gres_list { /* in byte order of the classes: equal pods give equal texts */
    struct gres *at;
    unsigned count;
};

/* Whether an extended resource is a GPU for Slurm, and of what class. */
static bool is_gres(const char *resource, struct str *ret_class)
{
    struct str name = str_of(resource);

    if (str_is(name, "nvidia.com/gpu") || str_is(name, "amd.com/gpu")) {
        *ret_class = STR("");
        return true;
    }
    if (!str_starts(name, STR(DEVICE_CLASS)) || str_is(name, DRA_CPU))
        return false;
    *ret_class = str_sub(name, sizeof(DEVICE_CLASS) - 1, name.len);
    return ret_class->len > 0;
}

/* A class becomes part of a list that Slurm reads: nothing in it may end its item. */
static int check_class(struct str class, struct err *err)
{
    for (size_t i = 0; i < class.len; i++) {
        char c = class.at[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        if (!is_letter && !(c >= '0' && c <= '9') && c != '-' && c != '.' && c != '_')
            return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is no name of a DeviceClass",
                           STR_ARG(class));
    }
    return 0;
}

static struct gres *need_gres(struct gres_list *list, struct str class)
{
    unsigned i = 0;

    while (i < list->count && str_cmp(list->at[i].class, class) < 0)
        i++;
    if (i < list->count && str_eq(list->at[i].class, class))
        return &list->at[i];
    memmove(&list->at[i + 1], &list->at[i], (list->count - i) * sizeof(list->at[0]));
    list->at[i] = (struct gres){ .class = class };
    list->count++;
    return &list->at[i];
}

/* GPUs of different makers on one pod add up to one count. */
static int add_pod(struct gres_list *list, const struct kube_pod *pod, struct err *err)
{
    const struct kube_amounts *amounts = &pod->limits.extended;

    for (unsigned i = 0; i < amounts->count; i++) {
        struct str class;
        struct gres *gres;

        if (!is_gres(amounts->at[i].name, &class) || amounts->at[i].amount <= 0)
            continue;
        if (check_class(class, err) < 0)
            return -ERR_INVALID;
        gres = need_gres(list, class);
        if (__builtin_add_overflow(gres->of_pod, amounts->at[i].amount, &gres->of_pod))
            gres->of_pod = INT64_MAX;
    }
    for (unsigned i = 0; i < list->count; i++) {
        list->at[i].amount = larger(list->at[i].amount, list->at[i].of_pod);
        list->at[i].of_pod = 0;
    }
    return 0;
}

static void write_gres(const struct gres_list *list, struct buf *out)
{
    for (unsigned i = 0; i < list->count; i++)
        buf_printf(out, "%sgres/gpu%s" STR_FMT "=%" PRId64, i > 0 ? "," : "",
                   list->at[i].class.len > 0 ? ":" : "", STR_ARG(list->at[i].class),
                   list->at[i].amount);
}

/* Only limits: Kubernetes has them equal to the requests for every device. */
static int take_devices(struct job_ask *ask, const struct translate_from *from, struct arena *arena,
                        struct err *err)
{
    struct gres_list list = { 0 };
    auto_buf struct buf text = { .max = MAX_GRES_TEXT };
    size_t most = 0;

    for (unsigned i = 0; i < from->pod_count; i++)
        most += from->pods[i]->limits.extended.count;
    if (most == 0)
        return 0;
    list.at = arena_alloc_array(arena, most, sizeof(list.at[0]));
    for (unsigned i = 0; i < from->pod_count; i++)
        if (add_pod(&list, from->pods[i], err) < 0)
            return -ERR_INVALID;
    write_gres(&list, &text);
    if (buf_check(&text, "devices", NULL) < 0)
        return err_set(err, ERR_INVALID, "%u kinds of devices are too many for one job",
                       list.count);
    ask->gres = arena_strdup(arena, buf_text(&text));
    return 0;
}

/* ---- the whole ---- */

int translate(const struct translate_from *from, struct arena *arena, struct job_ask *ret_ask,
              struct err *err)
{
    struct job_ask ask;
    int rc;

    job_ask_init(&ask);
    take_config(&ask, from->config);
    rc = take_workload(&ask, from, err);
    if (rc == 0)
        rc = take_amounts(&ask, from, err);
    if (rc == 0)
        rc = take_devices(&ask, from, arena, err);
    if (rc == 0)
        rc = job_ask_annotate(&ask, arena, &from->root->annotations, err);
    if (rc == 0)
        *ret_ask = ask;
    return rc;
}
