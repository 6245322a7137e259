/* restapi_build.c - the Service and the Deployment of slurmrestd, as they should be. */
#include "operator/build.h"
#include "operator/names.h"
#include "operator/restapi.h"
#include "operator/slurm_keys.h"

#include <stdio.h>

int restapi_service(struct json_build *build, const struct kube_object *restapi,
                    struct json_mut **ret_service, struct err *err)
{
    return build_service(build, &component_slurmrestd, restapi, META_SERVICE, NULL, ret_service,
                         err);
}

/* Without accounting the plugins that ask slurmdbd fail to load, so only slurmctld's are named. */
static struct json_mut *first_arguments(struct json_build *build,
                                        const struct kube_object *controller)
{
    return json_exists(json_get(operator_spec(controller), "accountingRef"))
               ? json_new_array(build)
               : json_format(build, "['-s','openapi/slurmctld']");
}

/* The address that slurmrestd listens at must be its last argument. */
static void add_listener(struct json_build *build, struct json_mut *container)
{
    struct json_mut *args = json_mut_get(container, STR("args"));

    if (json_mut_type(args) != JSON_ARRAY)
        args = json_put(build, container, "args", json_new_array(build));
    json_push_str(build, args, STR("0.0.0.0:6820"));
}

static int build_slurmrestd(struct json_build *build, const struct kube_object *restapi,
                            const struct kube_object *controller, struct json_mut **ret_container,
                            struct err *err)
{
    struct json_mut *ours = json_format(
        build,
        "{'name':'slurmrestd','args':%m,"
        "'env':[{'name':'SLURM_JWT','value':'daemon'},"
        "       {'name':'SLURMRESTD_SECURITY',"
        "        'value':'disable_unshare_files,disable_unshare_sysv'}],"
        "'ports':[{'name':'slurmrestd','containerPort':%d,'protocol':'TCP'}],"
        "'startupProbe':{'tcpSocket':{'port':%d},'periodSeconds':10,'failureThreshold':6},"
        "'livenessProbe':{'tcpSocket':{'port':%d},'periodSeconds':10,'failureThreshold':6},"
        "'readinessProbe':{'tcpSocket':{'port':%d}},"
        "'securityContext':{'runAsNonRoot':true,'runAsUser':%d,'runAsGroup':%d},"
        "'volumeMounts':[{'name':'slurm-etc','mountPath':'/etc/slurm','readOnly':true}]}",
        first_arguments(build, controller), SLURMRESTD_PORT, SLURMRESTD_PORT, SLURMRESTD_PORT,
        SLURMRESTD_PORT, SLURMRESTD_UID, SLURMRESTD_UID);
    int result = build_container(build, restapi, "slurmrestd", ours, ret_container, err);

    if (result == 0)
        add_listener(build, *ret_container);
    return result;
}

static struct json_mut *build_pod(struct json_build *build, const struct kube_object *controller,
                                  const struct json_mut *container)
{
    const struct json *key = json_get(operator_spec(controller), "slurmKeyRef");
    char config[KUBE_MAX_NAME + 64];

    (void)snprintf(config, sizeof(config), "%s-config", controller->name);
    return json_format(
        build,
        "{'automountServiceAccountToken':false,"
        "'securityContext':{'runAsNonRoot':true,'runAsUser':%d,'runAsGroup':%d,'fsGroup':%d},"
        "'containers':[%m],"
        "'volumes':[{'name':'slurm-etc','projected':{'defaultMode':%d,'sources':["
        "  {'configMap':{'name':%s,'items':[{'key':'slurm.conf','path':'slurm.conf'}]}},"
        "  {'secret':{'name':%j,'items':[{'key':%j,'path':'slurm.key'}]}}]}}]}",
        SLURMRESTD_UID, SLURMRESTD_UID, SLURMRESTD_UID, container, 0600, config,
        json_get(key, "name"), json_get(key, "key"));
}

int restapi_deployment(struct json_build *build, const struct operator_world *world,
                       const struct kube_object *restapi, const struct kube_object *controller,
                       const struct kube_object *live, struct json_mut **ret_deployment,
                       struct err *err)
{
    const struct component *component = &component_slurmrestd;
    struct json_mut *container, *template;
    int result = build_slurmrestd(build, restapi, controller, &container, err);

    if (result < 0)
        return result;
    result = build_template(build, component, restapi, META_OWNER | META_TEMPLATE, NULL,
                            build_pod(build, controller, container), &template, err);
    if (result < 0)
        return result;
    slurm_keys_put(build, controller, slurm_keys_mark(world, controller), template);
    *ret_deployment = build_workload(build, component, restapi, live, template);
    json_put_at(build, *ret_deployment, json_new_i64(build, spec_number(restapi, "replicas")),
                "spec", "replicas");
    return 0;
}
