/* kinds.c - the owners of pods, as small as the bridge uses them.
 *
 * Holds: a part that is absent is left as it is, so that a patch can be laid over an object. */
#include "bridge/kinds.h"

static const struct kube_resource jobs = { "batch", "v1", "jobs", "Job", true };
static const struct kube_resource replicasets = { "apps", "v1", "replicasets", "ReplicaSet", true };
static const struct kube_resource statefulsets = { "apps", "v1", "statefulsets", "StatefulSet",
                                                   true };

static const struct kube_field job_fields[] = {
    { { "spec", "activeDeadlineSeconds" }, KUBE_I64, offsetof(struct kube_job, active_deadline) },
    { { "spec", "suspend" }, KUBE_BOOL, offsetof(struct kube_job, suspended) },
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
    const struct json *resources, *limits;
    struct kube_job *job = object;
    int rc;

    if (kube_decoder_is_counting(decoder))
        return 0; /* takes no memory */
    resources = json_at(root, "spec", "template", "spec", "resources");
    limits = json_get(resources, "limits");
    if (resources)
        job->has_pod_resources = json_exists(resources);
    rc = decode_amount(json_get(limits, "cpu"), true, &job->cpu_milli, err);
    if (rc == 0)
        rc = decode_amount(json_get(limits, "memory"), false, &job->memory, err);
    return rc < 0 ? err_wrap(err, "spec.template.spec.resources.limits") : 0;
}

const struct kube_kind bridge_job_kind = {
    .resource = &jobs,
    .size = sizeof(struct kube_job),
    .fields = job_fields,
    .decode_more = decode_job,
};

const struct kube_kind bridge_replicaset_kind = {
    .resource = &replicasets,
    .size = sizeof(struct kube_object),
    .fields = no_fields,
};

const struct kube_kind bridge_statefulset_kind = {
    .resource = &statefulsets,
    .size = sizeof(struct kube_object),
    .fields = no_fields,
};
