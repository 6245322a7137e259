/* controller_build.c - the children of a Controller, as they should be. */
#include "codec/covers.h"
#include "operator/build.h"
#include "operator/controller.h"
#include "operator/gpus.h"
#include "operator/hashes.h"
#include "operator/names.h"
#include "operator/restart_options.h"
#include "operator/scripts.h"
#include "operator/slurm_keys.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_CONF = 4 << 20, MAX_REFS = 256, CONFIG_MODE = 0610 };

static const struct kube_object *object_of(const struct controller_input *input)
{
    return input->conf.controller;
}

static const struct json *spec_of(const struct controller_input *input)
{
    return operator_spec(object_of(input));
}

/* ---- configuration ---- */

/* A file of the user's takes the place of ours. */
static bool user_has_file(const struct controller_input *input, const char *file)
{
    struct json_iter refs = json_iter(json_get(spec_of(input), "configFileRefs"));
    const struct json *ref;

    while (json_next_item(&refs, &ref)) {
        const struct kube_object *map =
            kube_cache_get(input->conf.world->configmaps, object_of(input)->ns,
                           json_str(json_get(ref, "name")).at);

        if (map && json_get(json_get(operator_tree(map), "data"), file))
            return true;
    }
    return false;
}

int controller_config_data(struct json_build *build, const struct controller_input *input,
                           struct json_mut **ret_data, struct err *err)
{
    bool is_external = spec_flag(object_of(input), "external");
    struct json_mut *data = json_new_object(build);
    const char *gres;
    auto_buf struct buf text;
    int result;

    buf_init(&text, MAX_CONF);
    if ((result = slurm_conf_write(&input->conf, input->arena, &text, err)) < 0)
        return result;
    json_put_text(build, data, "slurm.conf", buf_text(&text));
    *ret_data = data;
    if (is_external)
        return 0;
    json_put(build, data, "cgroup.conf",
             user_has_file(input, "cgroup.conf")
                 ? json_new_null(build)
                 : json_new_str(build, STR("CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n")));
    gres = gpus_gres_conf(input->conf.world, input->arena, object_of(input));
    if (user_has_file(input, "gres.conf"))
        json_put(build, data, "gres.conf", json_new_null(build));
    else if (gres)
        json_put_text(build, data, "gres.conf", gres);
    return 0;
}

struct json_mut *controller_config(struct json_build *build, const struct controller_input *input)
{
    bool is_external = spec_flag(object_of(input), "external");

    return json_format(build, "{'metadata':%m,'immutable':false,'data':%m}",
                       build_metadata(build, &component_slurmctld, object_of(input), "-config",
                                      is_external ? META_OWNER | META_TEMPLATE : META_OWNER),
                       input->config);
}

/* ---- Services ---- */

struct json_mut *controller_internal_service(struct json_build *build,
                                             const struct controller_input *input)
{
    const struct component *component = &component_slurmctld;

    return json_format(
        build,
        "{'metadata':%m,'spec':{'clusterIP':'None','publishNotReadyAddresses':true,'selector':%m,"
        "'ports':[{'name':%s,'protocol':'TCP','port':%d,'targetPort':%s}]}}",
        build_metadata(build, component, object_of(input), "-controller-internal", META_OWNER),
        build_selector(build, component, object_of(input)), component->app, component->port,
        component->app);
}

/* slurm.conf names the Service with slurmctld's own port, whatever port the user gives it. */
static void add_own_port(struct json_build *build, struct json_mut *service)
{
    auto_json_doc struct json_doc *doc = json_freeze(service);
    const struct json *list = json_at(json_root(doc), "spec", "ports"), *port;
    struct json_iter iter = json_iter(list);

    while (json_next_item(&iter, &port))
        if (json_i64_or(json_get(port, "port"), 0) == SLURMCTLD_PORT)
            return;
    json_push(json_mut_get(json_mut_get(service, STR("spec")), STR("ports")),
              json_format(build,
                          "{'name':'slurmctld-6817','protocol':'TCP','port':%d,'targetPort':%s}",
                          SLURMCTLD_PORT, component_slurmctld.app));
}

int controller_service(struct json_build *build, const struct controller_input *input,
                       struct json_mut **ret_service, struct err *err)
{
    struct json_mut *active =
        input->service_selects_active ? json_format(build, "{'" LABEL_ACTIVE "':'true'}") : NULL;
    int result = build_service(build, &component_slurmctld, object_of(input),
                               META_OWNER | META_SERVICE, active, ret_service, err);

    if (result == 0)
        add_own_port(build, *ret_service);
    return result;
}

/* ---- metrics ---- */

static void put_given(struct json_build *build, struct json_mut *into, const char *key,
                      const struct json *own, const struct json *fallback)
{
    struct str value = json_str(json_get(own, key));

    if (value.len == 0)
        value = json_str(json_get(fallback, key));
    if (value.len > 0)
        json_put_str(build, into, key, value);
}

/* Both Services of slurmctld carry the labels that are selected: only the clients' is kept, or each
 * slurmctld would be scraped twice. */
static struct json_mut *endpoint(struct json_build *build, const struct kube_object *controller,
                                 struct str path, const struct json *own)
{
    const struct json *block = json_at(operator_spec(controller), "metrics", "serviceMonitor");
    struct json_mut *item = json_format(
        build,
        "{'port':%s,'scheme':'http','relabelings':[{'sourceLabels':["
        "'__meta_kubernetes_service_name'],'regex':%m,'action':'keep'}]}",
        component_slurmctld.app, build_name(build, controller, component_slurmctld.suffix));

    json_put_str(build, item, "path", path);
    put_given(build, item, "interval", own, block);
    put_given(build, item, "scrapeTimeout", own, block);
    return item;
}

static struct json_mut *endpoints(struct json_build *build, const struct kube_object *controller)
{
    static const char *const usual[] = { "/metrics/jobs", "/metrics/nodes", "/metrics/partitions",
                                         "/metrics/scheduler" };
    const struct json *given =
        json_at(operator_spec(controller), "metrics", "serviceMonitor", "endpoints");
    struct json_mut *list = json_new_array(build);
    struct json_iter iter = json_iter(given);
    const struct json *item;

    while (json_next_item(&iter, &item))
        json_push(list, endpoint(build, controller, json_str(json_get(item, "path")), item));
    for (size_t i = 0; json_len(given) == 0 && i < sizeof(usual) / sizeof(usual[0]); i++)
        json_push(list, endpoint(build, controller, str_of(usual[i]), NULL));
    return list;
}

struct json_mut *controller_service_monitor(struct json_build *build,
                                            const struct kube_object *controller)
{
    const struct component *component = &component_slurmctld;

    return json_format(
        build,
        "{'metadata':%m,'spec':{'selector':{'matchLabels':%m},'namespaceSelector':{'matchNames':["
        "%s]},'endpoints':%m}}",
        build_metadata(build, component, controller, component->suffix, META_OWNER | META_MONITOR),
        build_selector(build, component, controller), controller->ns, endpoints(build, controller));
}

/* ---- the pod ---- */

/* The ConfigMaps of all lists of references, sorted by name. */
static void push_user_files(struct json_build *build, const struct controller_input *input,
                            struct json_mut *sources)
{
    const char *names[MAX_REFS];
    const struct json *ref;
    size_t count = 0;

    for (size_t i = 0; i < config_ref_list_count; i++) {
        struct json_iter refs = json_iter(json_get(spec_of(input), config_ref_lists[i]));

        while (count < MAX_REFS && json_next_item(&refs, &ref))
            names[count++] = json_str(json_get(ref, "name")).at;
    }
    qsort(names, count, sizeof(names[0]), str_compare_texts);
    for (size_t i = 0; i < count; i++)
        json_push(sources, json_format(build, "{'configMap':{'name':%s}}", names[i]));
}

static struct json_mut *etc_sources(struct json_build *build, const struct controller_input *input)
{
    const struct json *slurm_key = json_get(spec_of(input), "slurmKeyRef");
    const struct json *jwt_key = json_get(spec_of(input), jwt_key_ref(object_of(input)));
    const struct json *jwks = json_get(spec_of(input), "jwksKeyRef");
    struct json_mut *sources = json_format(
        build,
        "[{'configMap':{'name':%m}},"
        " {'secret':{'name':%j,'items':[{'key':%j,'path':'slurm.key'}]}},"
        " {'secret':{'name':%j,'items':[{'key':%j,'path':'jwt.key'}]}}]",
        build_name(build, object_of(input), "-config"), json_get(slurm_key, "name"),
        json_get(slurm_key, "key"), json_get(jwt_key, "name"), json_get(jwt_key, "key"));

    push_user_files(build, input, sources);
    if (json_exists(jwks))
        json_push(sources, json_format(build,
                                       "{'configMap':{'name':%j,'items':[{'key':%j,"
                                       "'path':'jwks.json'}]}}",
                                       json_get(jwks, "name"), json_get(jwks, "key")));
    return sources;
}

/* The claim for slurmctld's state, if the pod names one itself; the claims that the StatefulSet
 * makes are no part of the pod. */
static struct json_mut *state_volume(struct json_build *build, const struct controller_input *input)
{
    const struct json *persistence = json_get(spec_of(input), "persistence");
    struct str claim = json_str(json_get(persistence, "existingClaim"));

    if (!spec_flag(object_of(input), "persistence.enabled"))
        return json_format(build, "{'name':'statesave','emptyDir':{}}");
    if (claim.len > 0)
        return json_format(build, "{'name':'statesave','persistentVolumeClaim':{'claimName':%s}}",
                           claim.at);
    return NULL;
}

static struct json_mut *claim_templates(struct json_build *build,
                                        const struct controller_input *input)
{
    const struct json *persistence = json_get(spec_of(input), "persistence");
    struct json_mut *spec =
        json_is_object(persistence) ? json_copy(build, persistence) : json_new_object(build);

    json_remove(spec, STR("enabled"));
    json_remove(spec, STR("existingClaim"));
    return json_format(build, "[{'metadata':{'name':'statesave','namespace':%s},'spec':%m}]",
                       object_of(input)->ns, spec);
}

static int build_slurmctld(struct json_build *build, const struct controller_input *input,
                           struct json_mut **ret_container, struct err *err)
{
    char state[KUBE_MAX_NAME * 2];
    struct json_mut *ours;

    (void)snprintf(state, sizeof(state), "/var/spool/slurmctld/%s",
                   slurm_cluster_name(input->arena, object_of(input)));
    ours =
        json_format(build,
                    "{'name':'slurmctld',"
                    "'ports':[{'name':'slurmctld','containerPort':%d,'protocol':'TCP'}],"
                    "'startupProbe':{'httpGet':{'path':'/livez','port':'slurmctld'},"
                    "                'periodSeconds':10,'failureThreshold':6},"
                    "'livenessProbe':{'httpGet':{'path':'/livez','port':'slurmctld'},"
                    "                 'periodSeconds':10,'failureThreshold':6},"
                    "'readinessProbe':{'httpGet':{'path':%s,'port':'slurmctld'}},"
                    "'securityContext':{'runAsNonRoot':true,'runAsUser':%d,'runAsGroup':%d},"
                    "'volumeMounts':[{'name':'slurm-etc','mountPath':'/etc/slurm','readOnly':true},"
                    "  {'name':'run','mountPath':'/run'},"
                    "  {'name':'statesave','mountPath':%s},"
                    "  {'name':'slurm-authsocket','mountPath':'/run/slurmctld'},"
                    "  {'name':'slurm-logfile','mountPath':'/var/log/slurm'}]}",
                    SLURMCTLD_PORT, input->conf.replicas > 1 ? "/livez" : "/readyz", SLURM_UID,
                    SLURM_UID, state);
    return build_container(build, object_of(input), "slurmctld", ours, ret_container, err);
}

/* Sidecars: one that reconfigures slurmctld when files change (only where the user wants that
 * done in the pod), and one that gives its log to Kubernetes. */
static int build_sidecars(struct json_build *build, const struct controller_input *input,
                          struct json_mut *ret_list, struct err *err)
{
    struct json_mut *container;
    int result;

    if (spec_flag(object_of(input), "inplaceReconfigure")) {
        result = build_container(
            build, object_of(input), "reconfigure",
            json_format(build,
                        "{'name':'reconfigure','restartPolicy':'Always',"
                        "'command':['tini','-g','--','bash','-c',%s],"
                        "'volumeMounts':[{'name':'slurm-etc','mountPath':'/etc/slurm',"
                        "'readOnly':true},{'name':'slurm-authsocket',"
                        "'mountPath':'/run/slurmctld','readOnly':true}]}",
                        script_reconfigure),
            &container, err);
        if (result < 0)
            return result;
        json_push(ret_list, container);
    }
    result = build_container(build, object_of(input), "logfile",
                             build_logfile(build, "/var/log/slurm/slurmctld.log"), &container, err);
    if (result == 0)
        json_push(ret_list, container);
    return result;
}

static struct json_mut *anti_affinity(struct json_build *build,
                                      const struct controller_input *input)
{
    return json_format(build,
                       "{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':["
                       "{'topologyKey':'kubernetes.io/hostname','labelSelector':{"
                       "'matchLabels':%m}}]}}",
                       build_selector(build, &component_slurmctld, object_of(input)));
}

static int build_pod(struct json_build *build, const struct controller_input *input,
                     struct json_mut **ret_pod, struct err *err)
{
    struct json_mut *sidecars = json_new_array(build), *container, *pod;
    int result;

    if ((result = build_slurmctld(build, input, &container, err)) < 0 ||
        (result = build_sidecars(build, input, sidecars, err)) < 0)
        return result;
    pod = json_format(
        build,
        "{'automountServiceAccountToken':false,"
        "'securityContext':{'runAsNonRoot':true,'runAsUser':%d,'runAsGroup':%d,'fsGroup':%d},"
        "'initContainers':%m,'containers':[%m],"
        "'volumes':[{'name':'slurm-etc','projected':{'defaultMode':%d,'sources':%m}},"
        "  {'name':'slurm-logfile','emptyDir':{'medium':'Memory'}},"
        "  {'name':'run','emptyDir':{'medium':'Memory'}},"
        "  {'name':'slurm-authsocket','emptyDir':{}}]}",
        SLURM_UID, SLURM_UID, SLURM_UID, sidecars, container, CONFIG_MODE,
        etc_sources(build, input));
    if (input->conf.shape == SHAPE_HA)
        json_put(build, pod, "affinity", anti_affinity(build, input));
    *ret_pod = pod;
    return 0;
}

/* The options that slurmctld reads from the live ConfigMap; NULL: nobody knows. */
static const char *live_options(const struct controller_input *input)
{
    const struct kube_object *config =
        kube_cache_get(input->conf.world->configmaps, object_of(input)->ns,
                       arena_printf(input->arena, "%s-config", object_of(input)->name));
    const struct json *data = config ? json_get(operator_tree(config), "data") : NULL;
    const char *text;

    return config && restart_options(input->arena, json_str(json_get(data, "slurm.conf")), &text,
                                     NULL) == 0
               ? text
               : NULL;
}

/* NULL: the text cannot be read. */
static const char *wanted_options(const struct controller_input *input)
{
    auto_json_doc struct json_doc *config = json_freeze(input->config);
    const char *text;

    return restart_options(input->arena, json_str(json_get(json_root(config), "slurm.conf")), &text,
                           NULL) == 0
               ? text
               : NULL;
}

static const struct json *written_options(const struct controller_input *input)
{
    return input->live ? json_at(operator_spec(input->live), "template", "metadata", "annotations",
                                 ANNOTATION_RESTART_OPTIONS)
                       : NULL;
}

bool controller_is_first_restart(const struct controller_input *input)
{
    const char *wanted = wanted_options(input), *live = live_options(input);

    return input->live && !json_exists(written_options(input)) && wanted && live &&
           strcmp(live, wanted) != 0;
}

/* A template that another operator made does not have the annotation. It gets it with the first
 * change that needs a restart; until then its pods run with the ConfigMap as it is. A text that
 * cannot be read restarts nothing: slurmctld refuses it. */
static void put_restart_options(struct json_build *build, const struct controller_input *input,
                                struct json_mut *annotations)
{
    const struct json *written = written_options(input);
    const char *wanted = wanted_options(input);

    if (!wanted)
        wanted = json_exists(written) ? json_str(written).at : NULL;
    if (wanted && (!input->live || json_exists(written) || controller_is_first_restart(input)))
        json_put_text(build, annotations, ANNOTATION_RESTART_OPTIONS, wanted);
}

static int build_hashes(struct json_build *build, const struct controller_input *input,
                        struct json_mut **ret_annotations, struct err *err)
{
    auto_json_doc struct json_doc *config = json_freeze(input->config);
    char slurm_key[DIGEST_HEX], jwt_key[DIGEST_HEX], files[DIGEST_HEX];
    const struct operator_world *world = input->conf.world;
    bool in_place = spec_flag(object_of(input), "inplaceReconfigure");
    int result;

    if ((result = hash_secret_ref(world, object_of(input), "slurmKeyRef", slurm_key, err)) < 0 ||
        (result = hash_secret_ref(world, object_of(input), jwt_key_ref(object_of(input)), jwt_key,
                                  err)) < 0 ||
        (result = hash_map(json_root(config), false, files, err)) < 0)
        return result;
    *ret_annotations = json_format(build,
                                   "{'" ANNOTATION_SLURM_KEY_HASH "':%s,"
                                   "'" ANNOTATION_JWT_KEY_HASH "':%s}",
                                   slurm_key, jwt_key);
    if (!in_place)
        json_put_text(build, *ret_annotations, ANNOTATION_CONFIG_HASH, files);
    put_restart_options(build, input, *ret_annotations);
    return 0;
}

/* ---- the StatefulSet ---- */

/* A backup goes on with the state of the first slurmctld. The definition asks for the claim, too;
 * an older one does not. */
static int check_shared_state(const struct controller_input *input, struct err *err)
{
    const struct json *persistence = json_get(spec_of(input), "persistence");

    return input->conf.replicas == 1 || (spec_flag(object_of(input), "persistence.enabled") &&
                                         json_str(json_get(persistence, "existingClaim")).len > 0)
               ? 0
               : err_set(err, ERR_INVALID,
                         "spec.ha.enabled needs spec.persistence.existingClaim, a claim that all "
                         "replicas share");
}

/* While other pods lack the keys, other keys alone restart no slurmctld: it keeps the mark that it
 * has. They go along with what does restart it. */
static struct json_mut *build_with_keys(struct json_build *build,
                                        const struct controller_input *input,
                                        struct json_mut *template)
{
    const struct kube_object *controller = object_of(input);
    const struct json *live = input->live ? json_get(operator_spec(input->live), "template") : NULL;
    auto_json_doc struct json_doc *bare = json_freeze(template), *kept = NULL;
    struct json_mut *copy = json_copy(build, json_root(bare)), *workload;

    if (live && input->keys_may_wait) {
        slurm_keys_put(build, controller,
                       json_str(json_at(live, "metadata", "annotations", ANNOTATION_SLURM_KEYS)),
                       copy);
        workload = build_workload(build, &component_slurmctld, controller, input->live, copy);
        kept = json_freeze(workload);
        if (json_covers(live, json_at(json_root(kept), "spec", "template")))
            return workload;
    }
    slurm_keys_put(build, controller, slurm_keys_mark(input->conf.world, controller), template);
    return build_workload(build, &component_slurmctld, controller, input->live, template);
}

int controller_statefulset(struct json_build *build, const struct controller_input *input,
                           struct json_mut **ret_statefulset, struct err *err)
{
    const struct component *component = &component_slurmctld;
    const struct kube_object *controller = object_of(input);
    bool is_single = input->conf.shape == SHAPE_SINGLE;
    struct json_mut *state = state_volume(build, input), *pod, *hashes, *template, *spec;
    int result;

    if ((result = check_shared_state(input, err)) < 0 ||
        (result = build_hashes(build, input, &hashes, err)) < 0 ||
        (result = build_pod(build, input, &pod, err)) < 0 ||
        (result = build_template(build, component, controller, META_OWNER | META_TEMPLATE, hashes,
                                 pod, &template, err)) < 0)
        return result;
    if (state) /* always the last volume */
        json_push(json_mut_get(json_mut_get(template, STR("spec")), STR("volumes")), state);
    if (input->conf.replicas == 1) /* the only one is the active one, whoever asks */
        json_put_at(build, template, json_new_str(build, STR("true")), "metadata", "labels",
                    LABEL_ACTIVE);
    *ret_statefulset = build_with_keys(build, input, template);
    spec = json_mut_get(*ret_statefulset, STR("spec"));
    json_put_i64(build, spec, "replicas", input->conf.replicas);
    json_put(build, spec, "serviceName",
             build_name(build, controller, is_single ? "-controller" : "-controller-internal"));
    if (is_single)
        json_put_text(build, spec, "podManagementPolicy", "Parallel");
    if (!state)
        json_put(build, spec, "volumeClaimTemplates", claim_templates(build, input));
    return 0;
}
