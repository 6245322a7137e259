/* resource.c - the kinds of object we speak of, and their paths.
 *
 * Holds: a name never becomes more than one segment of a path, whatever is in it. */
#include "kube/resource.h"

#include "io/http_text.h"

const struct kube_resource kube_pods = { "", "v1", "pods", "Pod", true };
const struct kube_resource kube_nodes = { "", "v1", "nodes", "Node", false };
const struct kube_resource kube_namespaces = { "", "v1", "namespaces", "Namespace", false };
const struct kube_resource kube_configmaps = { "", "v1", "configmaps", "ConfigMap", true };
const struct kube_resource kube_secrets = { "", "v1", "secrets", "Secret", true };
const struct kube_resource kube_services = { "", "v1", "services", "Service", true };
const struct kube_resource kube_volume_claims = { "", "v1", "persistentvolumeclaims",
                                                  "PersistentVolumeClaim", true };
const struct kube_resource kube_volumes = { "", "v1", "persistentvolumes", "PersistentVolume",
                                            false };
const struct kube_resource kube_leases = { "coordination.k8s.io", "v1", "leases", "Lease", true };
const struct kube_resource kube_events = { "events.k8s.io", "v1", "events", "Event", true };
const struct kube_resource kube_subject_access_reviews = { "authorization.k8s.io", "v1",
                                                           "subjectaccessreviews",
                                                           "SubjectAccessReview", false };
const struct kube_resource kube_token_reviews = { "authentication.k8s.io", "v1", "tokenreviews",
                                                  "TokenReview", false };

static bool is_given(const char *text)
{
    return text && text[0] != '\0';
}

static void add_segment(struct buf *out, const char *text)
{
    struct str segment = str_of(text);

    buf_add_char(out, '/');
    /* These two mean something else in a path, escaped or not: some servers tidy both away. The
     * doubled escape is a name that cannot exist. */
    if (str_is(segment, ".") || str_is(segment, ".."))
        buf_add_text(out, "%252E");
    else
        http_escape(segment, out);
}

void kube_path(struct buf *out, const struct kube_resource *resource, const char *ns,
               const char *name, const char *subresource)
{
    buf_add_text(out, resource->group[0] ? "/apis" : "/api");
    if (resource->group[0])
        add_segment(out, resource->group);
    add_segment(out, resource->version);
    if (resource->namespaced && is_given(ns)) {
        buf_add_text(out, "/namespaces");
        add_segment(out, ns);
    }
    if (is_given(resource->plural))
        add_segment(out, resource->plural);
    if (is_given(name))
        add_segment(out, name);
    if (is_given(subresource))
        add_segment(out, subresource);
}

void kube_api_version(struct buf *out, const struct kube_resource *resource)
{
    if (resource->group[0])
        buf_printf(out, "%s/", resource->group);
    buf_add_text(out, resource->version);
}
