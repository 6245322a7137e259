/* slurm_address.c - the RestApi, the URL and the key by which a Controller's Slurm is spoken to. */
#include "operator/slurm_address.h"

#include "codec/base64.h"
#include "operator/build.h"
#include "operator/hashes.h"
#include "operator/names.h"

#include <stdio.h>

static bool is_older(const struct kube_object *a, const struct kube_object *b)
{
    return a->created_us != b->created_us ? a->created_us < b->created_us
                                          : strcmp(a->name, b->name) < 0;
}

const struct kube_object *slurm_restapi(const struct operator_world *world, const char *key)
{
    struct kube_index_walk walk = kube_cache_by(world->restapis, world->by_controller, str_of(key));
    const struct kube_object *oldest = NULL, *found;

    while ((found = kube_index_next(&walk)))
        if (found->deleted_us == 0 && (!oldest || is_older(found, oldest)))
            oldest = found;
    return oldest;
}

/* The address of the Service needs no DNS; a headless one has none, and its name is
 * that of the pods. */
int slurm_url(const struct operator_world *world, const struct kube_object *restapi,
              char ret_url[SLURM_MAX_URL], struct err *err)
{
    char name[KUBE_MAX_NAME + 64], host[2 * KUBE_MAX_NAME];
    const struct kube_object *service;
    const struct json *port;
    struct json_iter ports;
    int64_t number = SLURMRESTD_PORT;
    struct str ip;

    (void)snprintf(name, sizeof(name), "%s%s", restapi->name, component_slurmrestd.suffix);
    service = kube_cache_get(world->services, restapi->ns, name);
    if (!service)
        return err_set(err, ERR_NOT_FOUND, "Service %s does not exist", name);
    ip = json_str(json_get(operator_spec(service), "clusterIP"));
    ports = json_iter(json_get(operator_spec(service), "ports"));
    if (ip.len == 0 || str_is(ip, "None")) {
        (void)snprintf(host, sizeof(host), "%s.%s", name, restapi->ns);
    } else {
        (void)snprintf(host, sizeof(host), strchr(ip.at, ':') ? "[%s]" : "%s", ip.at);
        while (json_next_item(&ports, &port)) /* the user may have added others */
            if (str_is(json_str(json_get(port, "name")), component_slurmrestd.app))
                number = json_i64_or(json_get(port, "port"), SLURMRESTD_PORT);
    }
    (void)snprintf(ret_url, SLURM_MAX_URL, "http://%s:%lld", host, (long long)number);
    return 0;
}

int slurm_jwt_key(const struct operator_world *world, const struct kube_object *controller,
                  struct buf *ret_key, struct err *err)
{
    const char *ref = jwt_key_ref(controller);
    const struct kube_object *secret = operator_world_ref(world->secrets, controller, ref);
    const struct json *key = json_at(operator_spec(controller), ref, "key");
    const struct json *value =
        secret ? json_get_str(json_get(operator_tree(secret), "data"), json_str(key)) : NULL;

    if (!value)
        return err_set(err, ERR_NOT_FOUND, "spec.%s: Secret %s with the key %s does not exist", ref,
                       json_str(json_at(operator_spec(controller), ref, "name")).at,
                       json_str(key).at);
    return base64_decode(json_str(value), 0, ret_key, err);
}
