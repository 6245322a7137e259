/* worker_conf.c - slurmd's --conf of a worker: the user's extraConf, the NodeSet's name, its GPUs.
 */
#include "operator/worker_conf.h"

#include "codec/slurmd_conf.h"
#include "operator/gpus.h"
#include "operator/worker_identity.h"

/* The features begin with the name of the NodeSet: slurm.conf finds its nodes by it. */
static void read_conf(struct arena *arena, const struct kube_object *nodeset,
                      struct slurmd_conf *ret_items)
{
    struct str extra = json_str(json_get(operator_spec(nodeset), "extraConf"));

    *ret_items = (struct slurmd_conf){ .arena = arena };
    (void)slurmd_conf_add_features(ret_items, nodeset_slurm_name(nodeset));
    (void)slurmd_conf_read(extra, ret_items, NULL);
    if (!ret_items->has_gres && nodeset_gpus(nodeset, NULL) > 0)
        (void)slurmd_conf_add(
            ret_items, STR("Gres"),
            str_of(arena_printf(arena, "gpu:%lld", (long long)nodeset_gpus(nodeset, NULL))));
}

int worker_conf_check(struct str extra_conf, struct err *err)
{
    auto_arena struct arena arena;
    struct slurmd_conf items = { .arena = &arena };
    int result;

    arena_init(&arena, 8 << 20);
    result = slurmd_conf_read(extra_conf, &items, err);
    return result < 0 ? err_wrap(err, "spec.extraConf") : 0;
}

const char *worker_conf(struct arena *arena, const struct kube_object *nodeset)
{
    struct slurmd_conf items;

    read_conf(arena, nodeset, &items);
    return slurmd_conf_write(&items);
}

bool worker_conf_has_topology(struct arena *arena, const struct kube_object *nodeset)
{
    struct slurmd_conf items;

    read_conf(arena, nodeset, &items);
    return slurmd_conf_get(&items, "Topology")[0] != '\0';
}

const char *worker_gres(struct arena *arena, const struct kube_object *nodeset)
{
    struct slurmd_conf items;

    read_conf(arena, nodeset, &items);
    return slurmd_conf_get(&items, "Gres");
}
