/* workload_kinds.c - the owners and the groups of pods, by tables of fields.
 *
 * Holds: a part that is absent is left as it is, so that a patch can be laid over an object. */
#include "kube/workload_kinds.h"

static const struct kube_resource jobs = { "batch", "v1", "jobs", "Job", true };
static const struct kube_resource replicasets = { "apps", "v1", "replicasets", "ReplicaSet", true };
static const struct kube_resource statefulsets = { "apps", "v1", "statefulsets", "StatefulSet",
                                                   true };
static const struct kube_resource daemonsets = { "apps", "v1", "daemonsets", "DaemonSet", true };

static const struct kube_field job_fields[] = {
    { { "spec", "activeDeadlineSeconds" }, KUBE_I64, offsetof(struct kube_job, active_deadline) },
    { { "spec", "parallelism" }, KUBE_I64, offsetof(struct kube_job, parallelism) },
    { { "spec", "completions" }, KUBE_I64, offsetof(struct kube_job, completions) },
    { { "status", "succeeded" }, KUBE_I64, offsetof(struct kube_job, succeeded) },
    { { NULL }, KUBE_STR, 0 },
};

static const struct kube_field no_fields[] = { { { NULL }, KUBE_STR, 0 } };

static int decode_amount(const struct json *value, bool milli, int64_t *amount, struct err *err)
{
    return value ? kube_quantity(value, milli, amount, err) : 0;
}

/* The limits of the pod as a whole; too deep in the object for a row of the table. */
static int decode_job(struct kube_decoder *decoder, const struct json *root, void *object,
                      struct err *err)
{
    const struct json *limits = json_at(root, "spec", "template", "spec", "resources", "limits");
    struct kube_job *job = object;
    int rc;

    if (kube_decoder_is_counting(decoder))
        return 0; /* takes no memory */
    rc = decode_amount(json_get(limits, "cpu"), true, &job->cpu_milli, err);
    if (rc == 0)
        rc = decode_amount(json_get(limits, "memory"), false, &job->memory, err);
    return rc < 0 ? err_wrap(err, "spec.template.spec.resources.limits") : 0;
}

const struct kube_kind kube_job_kind = {
    .resource = &jobs,
    .size = sizeof(struct kube_job),
    .fields = job_fields,
    .decode_more = decode_job,
};

const struct kube_kind kube_replicaset_kind = {
    .resource = &replicasets,
    .size = sizeof(struct kube_object),
    .fields = no_fields,
};

const struct kube_kind kube_statefulset_kind = {
    .resource = &statefulsets,
    .size = sizeof(struct kube_object),
    .fields = no_fields,
};

const struct kube_kind kube_daemonset_kind = {
    .resource = &daemonsets,
    .size = sizeof(struct kube_object),
    .fields = no_fields,
};

/* ---- groups ---- */

#define IN_GROUP(member) offsetof(struct kube_group, member)

static const struct kube_resource podgroups = { "scheduling.k8s.io", "v1alpha2", "podgroups",
                                                "PodGroup", true };
static const struct kube_resource workloads = { "scheduling.k8s.io", "v1alpha2", "workloads",
                                                "Workload", true };
static const struct kube_resource coscheduling = { "scheduling.x-k8s.io", "v1alpha1", "podgroups",
                                                   "PodGroup", true };
static const struct kube_resource lws = { "leaderworkerset.x-k8s.io", "v1", "leaderworkersets",
                                          "LeaderWorkerSet", true };
static const struct kube_resource jobsets = { "jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet",
                                              true };

static const struct kube_field podgroup_fields[] = {
    { { "spec", "schedulingPolicy", "gang", "minCount" }, KUBE_I64, IN_GROUP(size) },
    { { "spec", "podGroupTemplateRef", "workload", "workloadName" }, KUBE_STR, IN_GROUP(workload) },
    { { NULL }, KUBE_STR, 0 },
};

static const struct kube_field coscheduling_fields[] = {
    { { "spec", "minMember" }, KUBE_I64, IN_GROUP(size) },
    { { "spec", "minResources", "cpu" }, KUBE_QUANTITY_MILLI, IN_GROUP(cpu_milli) },
    { { "spec", "minResources", "memory" }, KUBE_QUANTITY, IN_GROUP(memory) },
    { { "status", "phase" }, KUBE_STR, IN_GROUP(phase) },
    { { NULL }, KUBE_STR, 0 },
};

static const struct kube_field lws_fields[] = {
    { { "spec", "leaderWorkerTemplate", "size" }, KUBE_I64, IN_GROUP(size) },
    { { NULL }, KUBE_STR, 0 },
};

static int decode_lws(struct kube_decoder *decoder, const struct json *root, void *object,
                      struct err *err)
{
    const struct json *policy = json_at(root, "spec", "startupPolicy");
    struct kube_group *group = object;

    (void)err;
    if (!kube_decoder_is_counting(decoder) && policy)
        group->leader_first = str_is(json_str(policy), "LeaderReady");
    return 0;
}

static int decode_podgroup(struct kube_decoder *decoder, const struct json *root, void *object,
                           struct err *err)
{
    struct json_iter iter = json_iter(json_at(root, "status", "conditions"));
    struct kube_group *group = object;
    const struct json *condition;

    (void)err;
    if (kube_decoder_is_counting(decoder))
        return 0; /* takes no memory */
    while (json_next_item(&iter, &condition))
        if (str_is(json_str(json_get(condition, "type")), "PodGroupScheduled"))
            group->is_scheduled = str_is(json_str(json_get(condition, "status")), "True");
    return 0;
}

/* How many Jobs of this template have succeeded, as the status says. */
static int64_t succeeded_jobs(const struct json *root, struct str name)
{
    struct json_iter iter = json_iter(json_at(root, "status", "replicatedJobsStatus"));
    const struct json *status;
    int64_t count = 0;

    while (json_next_item(&iter, &status))
        if (str_eq(json_str(json_get(status, "name")), name))
            count = json_i64_or(json_get(status, "succeeded"), 0);
    return count > 0 ? count : 0;
}

static int decode_jobset(struct kube_decoder *decoder, const struct json *root, void *object,
                         struct err *err)
{
    const struct json *list = json_at(root, "spec", "replicatedJobs");
    bool in_order =
        str_is(json_str(json_at(root, "spec", "startupPolicy", "startupPolicyOrder")), "InOrder");
    struct json_iter iter = json_iter(list);
    struct kube_group *group = object;
    struct kube_replicated *replicated;
    const struct json *job;
    unsigned count = 0;
    int64_t size = 0;

    if (!list)
        return 0;
    replicated = kube_decoder_alloc(decoder, (json_len(list) + 1) * sizeof(*replicated));
    while (json_next_item(&iter, &job)) {
        struct kube_replicated *part = &replicated[count++];
        const struct json *spec = json_at(job, "template", "spec");
        int64_t parallelism = json_i64_or(json_get(spec, "parallelism"), 1);
        int64_t completions = json_i64_or(json_get(spec, "completions"), parallelism);
        int64_t pods = completions < parallelism ? completions : parallelism; /* at once */
        int64_t replicas = json_i64_or(json_get(job, "replicas"), 1);
        int64_t succeeded = succeeded_jobs(root, json_str(json_get(job, "name")));

        part->name = kube_decoder_str(decoder, json_str(json_get(job, "name")));
        part->comes_later = json_len(json_get(job, "dependsOn")) > 0 || (in_order && count > 1);
        if (__builtin_mul_overflow(replicas, pods, &part->pods) ||
            __builtin_add_overflow(size, part->pods, &size))
            return err_set(err, ERR_INVALID, "spec.replicatedJobs: more pods than can be counted");
        part->finished = succeeded < replicas ? succeeded * pods : part->pods;
    }
    group->size = size;
    group->replicated = replicated;
    group->replicated_count = count;
    return 0;
}

const struct kube_kind kube_podgroup_kind = {
    .resource = &podgroups,
    .size = sizeof(struct kube_group),
    .fields = podgroup_fields,
    .decode_more = decode_podgroup,
};

const struct kube_kind kube_workload_kind = {
    .resource = &workloads,
    .size = sizeof(struct kube_group),
    .fields = no_fields,
};

const struct kube_kind kube_coscheduling_kind = {
    .resource = &coscheduling,
    .size = sizeof(struct kube_group),
    .fields = coscheduling_fields,
};

const struct kube_kind kube_lws_kind = {
    .resource = &lws,
    .size = sizeof(struct kube_group),
    .fields = lws_fields,
    .decode_more = decode_lws,
};

const struct kube_kind kube_jobset_kind = {
    .resource = &jobsets,
    .size = sizeof(struct kube_group),
    .fields = no_fields,
    .decode_more = decode_jobset,
};
