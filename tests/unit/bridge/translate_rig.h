/* translate_rig.h - cases for the translation: pods in YAML, and what their ask should say. */
#ifndef SLINC_TESTS_BRIDGE_TRANSLATE_RIG_H
#define SLINC_TESTS_BRIDGE_TRANSLATE_RIG_H

#include "bridge/unit/translate.h"
#include "codec/yaml.h"

#include <inttypes.h>

enum { RIG_PODS = 4, RIG_MORE = 2 };

static struct arena rig_arena;

static inline int rig_up(void **state)
{
    arena_init(&rig_arena, 16 << 20);
    return 0;
}

static inline int rig_down(void **state)
{
    arena_done(&rig_arena);
    return 0;
}

/* ---- small objects from YAML ---- */

static inline const struct kube_object *rig_object(const struct kube_kind *kind, const char *name,
                                                   const char *annotations, const char *rest)
{
    const char *text =
        arena_printf(&rig_arena,
                     "metadata: {name: %s, namespace: ns, uid: u-%s, resourceVersion: '1', "
                     "creationTimestamp: '2027-01-15T08:00:00Z', annotations: {%s}}\n"
                     "%s\n",
                     name, name, annotations, rest);
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *object = NULL;
    struct err err = { 0 };

    if (yaml_parse_one(str_of(text), NULL, &doc, &err) < 0 ||
        kube_object_decode(kind, json_root(doc), &object, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return object;
}

/* What a case is made of. Pods are spec in YAML, and named pod-0, pod-1 ...; a Job is its spec;
 * more are the annotations of objects beside the root. */
struct rig_given {
    const char *config, *annotations, *job;
    const char *more[RIG_MORE];
    const char *name;
    bool is_gang, is_bound;
    int64_t min_pods, group_cpu_milli, group_memory;
    const char *pods[RIG_PODS];
};

struct rig_scene {
    struct bridge_config config;
    const struct kube_object *job, *root, *objects[RIG_PODS], *others[RIG_MORE];
    const struct kube_pod *pods[RIG_PODS];
    unsigned pod_count, more_count;
    const struct rig_given *given;
};

static inline const char *rig_text_or(const char *text, const char *fallback)
{
    return text ? text : fallback;
}

static inline void rig_scene_init(struct rig_scene *scene, const struct rig_given *given)
{
    struct err err = { 0 };

    *scene = (struct rig_scene){ .given = given };
    if (bridge_config_parse(str_of(rig_text_or(given->config, "")), &scene->config, &err) < 0)
        fail_msg("%s: %s", given->config, err.text);
    for (unsigned i = 0; i < RIG_PODS && given->pods[i]; i++) {
        const char *annotations = given->job || i > 0 ? "" : rig_text_or(given->annotations, "");

        scene->objects[i] =
            rig_object(&kube_pod_kind, arena_printf(&rig_arena, "pod-%u", i), annotations,
                       arena_printf(&rig_arena, "spec: {%s}", given->pods[i]));
        scene->pods[i] = kube_pod_of(scene->objects[i]);
        scene->pod_count++;
    }
    for (unsigned i = 0; i < RIG_MORE && given->more[i]; i++) {
        scene->others[i] = rig_object(&kube_replicaset_kind,
                                      arena_printf(&rig_arena, "other-%u", i), given->more[i], "");
        scene->more_count++;
    }
    if (given->job)
        scene->job = rig_object(&kube_job_kind, "job", rig_text_or(given->annotations, ""),
                                arena_printf(&rig_arena, "spec: {%s}", given->job));
    scene->root = given->job ? scene->job : scene->objects[0];
}

static inline void rig_scene_done(struct rig_scene *scene)
{
    for (unsigned i = 0; i < scene->pod_count; i++)
        kube_object_unref(scene->objects[i]);
    for (unsigned i = 0; i < scene->more_count; i++)
        kube_object_unref(scene->others[i]);
    kube_object_unref(scene->job);
    bridge_config_done(&scene->config);
}

static inline int rig_translated(const struct rig_scene *scene, struct job_desc *ret_desc,
                                 struct err *err)
{
    const struct translate_from from = { .config = &scene->config,
                                         .pods = scene->pods,
                                         .pod_count = scene->pod_count,
                                         .owner = scene->root,
                                         .job = scene->job ? kube_job_of(scene->job) : NULL,
                                         .more = scene->others,
                                         .more_count = scene->more_count,
                                         .name = scene->given->name,
                                         .is_gang = scene->given->is_gang,
                                         .is_bound = scene->given->is_bound,
                                         .min_pods = scene->given->min_pods,
                                         .group_cpu_milli = scene->given->group_cpu_milli,
                                         .group_memory = scene->given->group_memory };

    return translate(&from, &rig_arena, ret_desc, err);
}

static inline void rig_add_number(struct buf *out, const char *name, int64_t number)
{
    if (number >= 0)
        buf_printf(out, "%s%s=%" PRId64, out->len ? " " : "", name, number);
}

/* The amounts of an ask, those that are sent. */
static inline void rig_write_amounts(const struct job_desc *desc, struct buf *out)
{
    rig_add_number(out, "cpus", desc->cpus_per_task);
    rig_add_number(out, "memory", desc->memory);
    if (desc->gres[0])
        buf_printf(out, "%s%s", out->len ? " " : "", desc->gres);
    if (desc->gres_per_task[0])
        buf_printf(out, "%seach %s", out->len ? " " : "", desc->gres_per_task);
}

struct rig_row {
    const char *what;
    struct rig_given given;
    const char *want;
};

static inline void rig_check_row(const struct rig_row *row,
                                 void (*write)(const struct job_desc *desc, struct buf *out))
{
    auto_buf struct buf out = { .max = 10000 };
    struct err err = { 0 };
    struct job_desc desc;
    struct rig_scene scene;

    rig_scene_init(&scene, &row->given);
    if (rig_translated(&scene, &desc, &err) < 0)
        buf_printf(&out, "refused: %s", err.text);
    else
        write(&desc, &out);
    if (strcmp(buf_text(&out), row->want) != 0)
        fail_msg("%s: %s, not %s", row->what, buf_text(&out), row->want);
    rig_scene_done(&scene);
}

#define RIG_CHECK(rows, write)                                                                     \
    for (size_t i = 0; i < sizeof(rows) / sizeof((rows)[0]); i++)                                  \
    rig_check_row(&(rows)[i], write)

#define ASK(list)   "{resources: {requests: {" list "}}}"
#define LIMIT(list) "{resources: {limits: {" list "}}}"
#define C(list)     "containers: [" list "]"
#define DRA         "deviceclass.resource.kubernetes.io/"
#define S           "slurmjob.slinky.slurm.net/"

#endif
