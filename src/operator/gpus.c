/* gpus.c - which limits are GPUs, and what slurm.conf and gres.conf say of them. */
#include "operator/gpus.h"

#include "codec/slurmconf.h"
#include "operator/names.h"
#include "operator/worker_conf.h"
#include "operator/worker_identity.h"

#include <stdio.h>

static const struct gpu_resource {
    const char *resource;
    const char *detect; /* AutoDetect of gres.conf(5) */
} resources[] = {
    { "nvidia.com/gpu", "nvidia" },
    { "amd.com/gpu", "rsmi" },
    { "gpu.intel.com/i915", "oneapi" },
    { "gpu.intel.com/xe", "oneapi" },
};

int64_t nodeset_gpus(const struct kube_object *nodeset, const char **ret_detect)
{
    const struct json *limits = json_at(operator_spec(nodeset), "slurmd", "resources", "limits");
    int64_t count = 0, amount;

    for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++) {
        if (kube_quantity(json_get(limits, resources[i].resource), false, &amount, NULL) < 0 ||
            amount <= 0)
            continue;
        count += amount;
        if (ret_detect)
            *ret_detect = resources[i].detect;
    }
    return count;
}

/* ---- slurm.conf ---- */

/* A text that cannot be read names whatever it is asked for: others tell its error. */
static bool names(struct arena *arena, struct str conf, const char *key, const char *value)
{
    const struct conf_pair *pairs;
    size_t count;

    if (conf_parse(arena, conf, &pairs, &count, NULL) < 0)
        return true;
    for (size_t i = 0; i < count; i++)
        if (conf_key_is(&pairs[i], key) && (!value || str_is(pairs[i].value, value)))
            return true;
    return false;
}

/* "gpu:h100:8,nic:1" gives "gpu,nic". */
static const char *add_names(struct arena *arena, const char *types, struct str gres)
{
    struct str item, name, rest;

    while (str_next(&gres, ',', &item)) {
        if (!str_cut(item, ':', &name, &rest))
            name = item;
        if (name.len > 0)
            types = arena_printf(arena, "%s%s" STR_FMT, types, types[0] ? "," : "", STR_ARG(name));
    }
    return types;
}

const char *gpus_gres_types(const struct operator_world *world, struct arena *arena,
                            const struct kube_object *controller)
{
    struct str users = json_str(json_get(operator_spec(controller), "extraConf"));
    /* The bridge registers nodes with the devices of Kubernetes nodes, in this set. */
    const char *types = names(arena, users, "NodeSet", "slurm-bridge") ? "gpu" : "";
    size_t count;
    const struct kube_object **all = nodesets_of(world, arena, controller, &count);

    for (size_t i = 0; i < count; i++)
        types = add_names(arena, types, str_of(worker_gres(arena, all[i])));
    return types;
}

/* ---- gres.conf ---- */

const char *gpus_gres_conf(const struct operator_world *world, struct arena *arena,
                           const struct kube_object *controller)
{
    const char *detect = NULL, *other = NULL;
    size_t count;
    const struct kube_object **all = nodesets_of(world, arena, controller, &count);

    for (size_t i = 0; i < count; i++) {
        if (!worker_gres(arena, all[i])[0] || nodeset_gpus(all[i], &other) == 0)
            continue;
        if (detect && strcmp(detect, other) != 0)
            return NULL;
        detect = other;
    }
    return detect ? arena_printf(arena, "AutoDetect=%s\n", detect) : NULL;
}

/* ---- when workers start ---- */

static bool has_gres_types(const struct operator_world *world, struct arena *arena,
                           const struct kube_object *controller)
{
    const char *name = arena_printf(arena, "%s-config", controller->name);
    const struct kube_object *config = kube_cache_get(world->configmaps, controller->ns, name);

    return config && names(arena, json_str(json_at(operator_tree(config), "data", "slurm.conf")),
                           "GresTypes", NULL);
}

/* A reconfigure is under way: see reconfigure.h. */
static bool is_reading(const struct operator_world *world, struct arena *arena,
                       const struct kube_object *controller)
{
    const struct slurm_facts *facts = operator_world_slurm(world, controller);
    const struct kube_object *pod;

    if (!facts || !facts->is_reachable)
        return false;
    pod = kube_cache_get(world->pods, controller->ns,
                         arena_printf(arena, "%s-controller-%d", controller->name, facts->active));
    return pod && !str_eq(kube_pairs_get(&pod->annotations, ANNOTATION_CONFIG_VERSION, NULL),
                          kube_pairs_get(&pod->annotations, ANNOTATION_CONFIG_RECONFIGURED, NULL));
}

const char *gpus_wait(const struct operator_world *world, struct arena *arena,
                      const struct kube_object *controller, const struct kube_object *nodeset)
{
    if (!worker_gres(arena, nodeset)[0] || spec_flag(controller, "external"))
        return NULL;
    if (!has_gres_types(world, arena, controller))
        return "slurm.conf does not name their GPUs yet";
    return is_reading(world, arena, controller)
               ? "slurmctld has not read yet what slurm.conf says of GPUs"
               : NULL;
}
