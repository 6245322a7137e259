/* rules.c - the table of rules, in the order in which they are asked. */
#include "admit/rules.h"

#include "admit/admit_private.h"
#include "bridge/unit/rights.h"
#include "bridge/world/config.h"
#include "bridge/world/names.h"

#define DEVICE_CLASS    "deviceclass.resource.kubernetes.io/" /* begins resources that are devices */
#define CPU_CLASS       "dra.cpu"
#define CPU_DEVICE      DEVICE_CLASS CPU_CLASS
#define CPU_ANNOTATION  BRIDGE_ANNOTATION_PREFIX "cpu-per-task"
#define GRES_ANNOTATION BRIDGE_ANNOTATION_PREFIX "gres"

enum {
    MAX_SHOWN = 320, /* bytes of a name in a message; Kubernetes' longest are shorter */
    MAX_WHY = 4096,
    MAX_ARENA = 64 << 20, /* annotations and their values: a review is much smaller */
};

static struct str shown(struct str name)
{
    return str_sub(name, 0, MAX_SHOWN);
}

/* ---- resources ---- */

/* A walk over what init containers, then containers, request or limit, in the order of the text. */
struct resource_walk {
    const struct json *pod, *container;
    struct json_iter containers, resources;
    unsigned list; /* which of the two lists of containers is next */
    unsigned kind; /* which of requests and limits of this container is next */
};

static struct resource_walk resource_walk(const struct json *pod)
{
    return (struct resource_walk){
        .pod = pod, .containers = json_iter(NULL), .resources = json_iter(NULL), .kind = 2
    };
}

static bool next_container(struct resource_walk *walk)
{
    static const char *const lists[] = { "initContainers", "containers" };

    while (!json_next_item(&walk->containers, &walk->container)) {
        if (walk->list == 2)
            return false;
        walk->containers = json_iter(json_at(walk->pod, "spec", lists[walk->list++]));
    }
    walk->kind = 0;
    return true;
}

static bool next_resource(struct resource_walk *walk, struct str *ret_name)
{
    static const char *const kinds[] = { "requests", "limits" };
    const struct json *amount;

    while (!json_next_member(&walk->resources, ret_name, &amount)) {
        if (walk->kind == 2 && !next_container(walk))
            return false;
        walk->resources = json_iter(json_at(walk->container, "resources", kinds[walk->kind++]));
    }
    return true;
}

/* The next resource that is a device class. */
static bool next_device(struct resource_walk *walk, struct str *ret_name, struct str *ret_class)
{
    struct str prefix = STR(DEVICE_CLASS);

    while (next_resource(walk, ret_name))
        if (str_starts(*ret_name, prefix)) {
            *ret_class = str_sub(*ret_name, prefix.len, ret_name->len);
            return true;
        }
    return false;
}

bool admit_names_resource(const struct json *pod, const char *resource)
{
    struct resource_walk walk = resource_walk(pod);
    struct str name;

    while (next_resource(&walk, &name))
        if (str_is(name, resource))
            return true;
    return false;
}

/* ---- rules: whether a pod breaks them; those whose words depend on the pod write them ---- */

static bool is_resize(const struct admit_request *request, const struct json *pod, struct buf *why)
{
    return str_is(request->review.subresource, "resize");
}

static bool has_job(const struct admit_request *request, const struct json *pod, struct buf *why)
{
    return admit_label(pod, BRIDGE_JOB_LABEL).len > 0;
}

static bool has_node(const struct admit_request *request, const struct json *pod, struct buf *why)
{
    return admit_annotation(pod, BRIDGE_NODE_ANNOTATION).len > 0;
}

static bool has_two_cpus(const struct admit_request *request, const struct json *pod,
                         struct buf *why)
{
    const struct json *whole = json_at(pod, "spec", "resources");

    return admit_names_resource(pod, CPU_DEVICE) &&
           (json_at(whole, "requests", "cpu") || json_at(whole, "limits", "cpu") ||
            admit_names_resource(pod, "cpu"));
}

static bool has_foreign_class(const struct admit_request *request, const struct json *pod,
                              struct buf *why)
{
    struct resource_walk walk = resource_walk(pod);
    struct str name, class;

    while (next_device(&walk, &name, &class)) {
        struct str container = json_str(json_get(walk.container, "name"));

        if (device_row_of_class(&request->config->devices, class))
            continue;
        buf_printf(why,
                   "container \"" STR_FMT "\" uses unsupported DRA device class \"" STR_FMT "\"",
                   STR_ARG(shown(container)), STR_ARG(shown(class)));
        return true;
    }
    return false;
}

static bool says_cpus_twice(const struct admit_request *request, const struct json *pod,
                            struct buf *why)
{
    return admit_has_annotation(pod, CPU_ANNOTATION) && admit_names_resource(pod, CPU_DEVICE);
}

static bool says_gres_twice(const struct admit_request *request, const struct json *pod,
                            struct buf *why)
{
    struct resource_walk walk = resource_walk(pod);
    struct str name, class;

    if (!admit_has_annotation(pod, GRES_ANNOTATION))
        return false;
    while (next_device(&walk, &name, &class)) {
        if (str_is(class, CPU_CLASS))
            continue;
        buf_printf(why,
                   "annotation \"" GRES_ANNOTATION "\" conflicts with DRA resource \"" STR_FMT
                   "\": explicit DRA requests are authoritative",
                   STR_ARG(shown(name)));
        return true;
    }
    return false;
}

static bool is_running(const struct json *pod)
{
    return str_is(json_str(json_at(pod, "status", "phase")), "Running");
}

static bool moves_job(const struct admit_request *request, const struct json *pod, struct buf *why)
{
    return is_running(pod) && !str_eq(admit_label(pod, BRIDGE_JOB_LABEL),
                                      admit_label(request->review.old, BRIDGE_JOB_LABEL));
}

static bool moves_node(const struct admit_request *request, const struct json *pod, struct buf *why)
{
    return is_running(pod) &&
           !str_eq(admit_annotation(pod, BRIDGE_NODE_ANNOTATION),
                   admit_annotation(request->review.old, BRIDGE_NODE_ANNOTATION));
}

/* Those with our prefix; the others are nobody's business here. */
static struct kube_pairs our_annotations(const struct json *pod, struct arena *arena)
{
    const struct json *all = json_at(pod, "metadata", "annotations");
    struct json_iter iter = json_iter(all);
    struct kube_pair *pairs;
    struct kube_pairs found = { .count = 0 };
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value))
        found.count += str_starts(key, STR(BRIDGE_ANNOTATION_PREFIX));
    pairs = arena_alloc_array(arena, found.count, sizeof(*pairs));
    found.at = pairs;
    iter = json_iter(all);
    while (json_next_member(&iter, &key, &value))
        if (str_starts(key, STR(BRIDGE_ANNOTATION_PREFIX)))
            *pairs++ = (struct kube_pair){ key, json_str(value) };
    return found;
}

static bool cannot_be_read(const struct admit_request *request, const struct json *pod,
                           struct buf *why)
{
    auto_arena struct arena arena;
    struct kube_pairs annotations;
    struct job_desc desc;
    struct err err = { .class = 0 };

    arena_init(&arena, MAX_ARENA);
    annotations = our_annotations(pod, &arena);
    job_desc_init(&desc);
    if (job_desc_annotate(&desc, &arena, &annotations, &err) == 0)
        return false;
    buf_add_text(why, err.text);
    return true;
}

static bool says_too_much(const struct admit_request *request, const struct json *pod,
                          struct buf *why)
{
    auto_arena struct arena arena;
    struct kube_pairs annotations;
    struct err err = { .class = 0 };

    arena_init(&arena, MAX_ARENA);
    annotations = our_annotations(pod, &arena);
    if (rights_check(request->config->trust, &annotations, &err) == 0)
        return false;
    buf_add_text(why, err.text);
    return true;
}

/* ---- the table ---- */

enum { BOTH = ADMIT_CREATE | ADMIT_UPDATE };

static const struct rule {
    unsigned ops;     /* enum admit_op */
    bool is_of_state; /* of the pod, not of the change: an update is not refused for what was so */
    bool (*is_broken)(const struct admit_request *request, const struct json *pod, struct buf *why);
    const char *refused; /* for the reference */
    const char *message; /* what is told, unless is_broken wrote it */
} rules[] = {
    { ADMIT_UPDATE, false, is_resize, "a resize", "can't resize a Slurm Bridge-managed pod" },
    { ADMIT_CREATE, false, has_job, "the label `" BRIDGE_JOB_LABEL "`",
      "can't create a pod with a slurm external jobid label" },
    { ADMIT_CREATE, false, has_node, "the annotation `" BRIDGE_NODE_ANNOTATION "`",
      "can't create a pod with a slurm external node annotation" },
    { ADMIT_CREATE, false, has_two_cpus, "`cpu` beside `" CPU_DEVICE "`",
      "can't specify both native \"cpu\" and CPU DRA resource \"" CPU_DEVICE "\"" },
    { BOTH, true, has_foreign_class, "a device class that the config key `devices` does not know",
      "container \"<c>\" uses unsupported DRA device class \"<class>\"" },
    { BOTH, true, says_cpus_twice, "the annotation `cpu-per-task` beside `" CPU_DEVICE "`",
      "annotation \"" CPU_ANNOTATION "\" conflicts with CPU DRA resource \"" CPU_DEVICE
      "\": explicit DRA requests are authoritative" },
    { BOTH, true, says_gres_twice, "the annotation `gres` beside another device class",
      "annotation \"" GRES_ANNOTATION "\" conflicts with DRA resource \"<resource>\": "
      "explicit DRA requests are authoritative" },
    { ADMIT_UPDATE, false, moves_job, "another job label on a pod that runs",
      "can't update a running pod's external jobid label" },
    { ADMIT_UPDATE, false, moves_node, "another node annotation on a pod that runs",
      "can't update a running pod's external node annotation" },
    { BOTH, true, cannot_be_read, "an annotation `" BRIDGE_ANNOTATION_PREFIX "...` of a wrong form",
      "<annotation>: \"<value>\" is not <form>" },
    { BOTH, true, says_too_much, "an annotation that `trustAnnotations: own` does not trust",
      "<annotation>: annotations may say <what> here (`trustAnnotations: own`)" },
};

static const struct rule *const rules_end = rules + sizeof(rules) / sizeof(rules[0]);

static bool is_broken(const struct rule *rule, const struct admit_request *request,
                      const struct json *pod, struct buf *why)
{
    buf_clear(why);
    if (!rule->is_broken(request, pod, why))
        return false;
    if (why->len == 0)
        buf_add_text(why, rule->message);
    return true;
}

static bool was_broken(const struct rule *rule, const struct admit_request *request,
                       const struct buf *why)
{
    auto_buf struct buf before = { .max = MAX_WHY };

    return rule->is_of_state && request->op == ADMIT_UPDATE && request->review.old &&
           is_broken(rule, request, request->review.old, &before) &&
           str_eq(buf_str(&before), buf_str(why));
}

bool admit_rules_allow(const struct admit_request *request, struct buf *why)
{
    for (const struct rule *rule = rules; rule < rules_end; rule++)
        if ((rule->ops & request->op) && is_broken(rule, request, request->review.object, why) &&
            !was_broken(rule, request, why))
            return false;
    return true;
}

void admit_rules_reference(struct buf *out)
{
    static const char *const when[] = { "", "create", "update", "create, update" };

    buf_add_text(out, "| when | what is refused | message |\n|---|---|---|\n");
    for (const struct rule *rule = rules; rule < rules_end; rule++)
        buf_printf(out, "| %s | %s | `%s` |\n", when[rule->ops & BOTH], rule->refused,
                   rule->message);
}
