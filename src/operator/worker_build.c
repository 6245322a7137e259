/* worker_build.c - the pod of a worker. */
#include "operator/worker_build.h"

#include "kube/owners.h"
#include "operator/build.h"
#include "operator/hashes.h"
#include "operator/names.h"
#include "operator/scripts.h"
#include "operator/slurm_keys.h"
#include "operator/worker_claims.h"
#include "operator/worker_conf.h"

#include <ctype.h>
#include <stdio.h>

enum { MAX_CONF = 1 << 20, PRIVATE_MODE = 0600, MEBIBYTE = 1 << 20 };

/* ---- sshd ---- */

bool nodeset_has_ssh(const struct kube_object *nodeset)
{
    return spec_flag(nodeset, "ssh.enabled");
}

static void write_sshd_config(const struct kube_object *nodeset, struct buf *out)
{
    buf_add_text(out, "#\n### GENERAL ###\n"
                      "Include /etc/ssh/sshd_config.d/*.conf\n"
                      "UsePAM yes\n"
                      "Subsystem sftp internal-sftp\n"
                      "AuthenticationMethods publickey password\n"
                      "#\n### EXTRA CONFIG ###\n");
    buf_add_str(out, json_str(json_at(operator_spec(nodeset), "ssh", "extraSshdConfig")));
    buf_add_char(out, '\n');
}

struct json_mut *worker_ssh_config(struct json_build *build, const struct kube_object *nodeset,
                                   const struct kube_object *controller)
{
    struct json_mut *metadata =
        build_metadata(build, &component_slurmd, nodeset, "-ssh-config", META_OWNER);
    auto_buf struct buf text;

    buf_init(&text, MAX_CONF);
    write_sshd_config(nodeset, &text);
    json_put_at(build, metadata, json_new_str(build, str_of(controller->name)), "labels",
                LABEL_CLUSTER);
    return json_format(build, "{'metadata':%m,'immutable':false,'data':{'sshd_config':%s}}",
                       metadata, buf_text(&text));
}

/* Without sshd both are the hash of nothing. */
static int build_hashes(struct json_build *build, const struct worker_input *input,
                        struct json_mut **ret_annotations, struct err *err)
{
    const struct json *ref = json_at(operator_spec(input->nodeset), "ssh", "sssdConfRef");
    char sshd[DIGEST_HEX], sssd[DIGEST_HEX];
    auto_buf struct buf config;
    int result;

    buf_init(&config, MAX_CONF);
    digest_sha256(STR(""), sssd);
    if (nodeset_has_ssh(input->nodeset)) {
        write_sshd_config(input->nodeset, &config);
        result = hash_sssd(input->world, input->nodeset->ns, ref, sssd, err);
        if (result < 0)
            return result;
    }
    digest_sha256(buf_str(&config), sshd);
    *ret_annotations = json_format(build,
                                   "{'" ANNOTATION_SSHD_CONF_HASH "':%s,"
                                   "'" ANNOTATION_SSSD_CONF_HASH "':%s}",
                                   sshd, sssd);
    return 0;
}

/* ---- the container slurmd ---- */

/* The images run the arguments through a shell. */
static int check_server(const char *server, struct err *err)
{
    for (const char *c = server; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(".-_:[]", *c))
            return err_set(err, ERR_INVALID,
                           "Controller: spec.externalConfig.host holds the character '%c'", *c);
    return 0;
}

/* The limit of the container, or else of the whole pod; 0: none. */
static int limit_of(const struct kube_object *nodeset, const char *resource, int64_t *ret_amount,
                    struct err *err)
{
    const struct json *spec = operator_spec(nodeset);
    const struct json *limit = json_at(spec, "slurmd", "resources", "limits", resource);
    int result;

    if (!json_exists(limit))
        limit = json_at(spec, "template", "spec", "resources", "limits", resource);
    result = kube_quantity(limit, false, ret_amount, err);
    return result < 0 ? err_wrap(err, "limit of %s", resource) : 0;
}

/* Both names: images of Slinky read the first, and pods of its later operators have the second.
 * The image turns the one into an item of --conf, so an item of extraConf leaves no room for it. */
static int build_env(struct json_build *build, const struct worker_input *input,
                     struct json_mut **ret_env, struct err *err)
{
    static const char *const names[] = { "POD_TOPOLOGY", "SLINKY_TOPOLOGY" };
    struct json_mut *env = json_new_array(build);
    int64_t cpus, memory;
    char text[32];
    int result;

    if ((result = limit_of(input->nodeset, "cpu", &cpus, err)) < 0 ||
        (result = limit_of(input->nodeset, "memory", &memory, err)) < 0)
        return result;
    if (!worker_conf_has_topology(input->arena, input->nodeset))
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
            json_push(env,
                      json_format(build,
                                  "{'name':%s,'valueFrom':{'fieldRef':{'apiVersion':'v1',"
                                  "'fieldPath':%s}}}",
                                  names[i], "metadata.annotations['" ANNOTATION_TOPOLOGY "']"));
    (void)snprintf(text, sizeof(text), "%lld", (long long)cpus);
    json_push(env, json_format(build, "{'name':'POD_CPUS','value':%s}", text));
    (void)snprintf(text, sizeof(text), "%lld", (long long)(memory / MEBIBYTE));
    json_push(env, json_format(build, "{'name':'POD_MEMORY','value':%s}", text));
    *ret_env = env;
    return 0;
}

static struct json_mut *build_ports(struct json_build *build, bool has_ssh)
{
    struct json_mut *ports =
        json_format(build, "[{'name':'slurmd','containerPort':%d,'protocol':'TCP'}]", SLURMD_PORT);

    if (has_ssh)
        json_push(ports, json_format(build, "{'name':'ssh','containerPort':%d,'protocol':'TCP'}",
                                     SSH_PORT));
    return ports;
}

static struct json_mut *build_mounts(struct json_build *build, bool has_ssh)
{
    struct json_mut *mounts =
        json_format(build, "[{'name':'slurm-etc','mountPath':'/etc/slurm','readOnly':true},"
                           " {'name':'slurm-logfile','mountPath':'/var/log/slurm'}]");

    if (has_ssh) {
        json_push(mounts, json_format(build, "{'name':'ssh-config','mountPath':"
                                             "'/etc/ssh/sshd_config','subPath':'sshd_config',"
                                             "'readOnly':true}"));
        json_push(mounts, json_format(build, "{'name':'sssd-conf','mountPath':"
                                             "'/etc/sssd/sssd.conf','subPath':'sssd.conf',"
                                             "'readOnly':true}"));
    }
    return mounts;
}

/* A user who denies all gain of privileges gets none of ours; the API server refuses both at once.
 */
static struct json_mut *build_privileges(struct json_build *build,
                                         const struct kube_object *nodeset)
{
    const struct json *users = json_at(operator_spec(nodeset), "slurmd", "securityContext");

    if (!json_bool_or(json_get(users, "allowPrivilegeEscalation"), true))
        return json_new_object(build);
    return json_format(build, "{'privileged':true,'capabilities':{'add':["
                              "'BPF','NET_ADMIN','SYS_ADMIN','SYS_NICE']}}");
}

/* Without slurmctld scontrol may wait longer than the pod has. An image may lack `timeout`. */
static const char pre_stop[] = "command -v timeout >/dev/null || timeout() { shift; \"$@\"; }; "
                               "timeout 10 scontrol update nodename=$(hostname) state=down "
                               "reason='" REASON_TERMINATING "';";

static int build_slurmd(struct json_build *build, const struct worker_input *input,
                        struct json_mut **ret_container, struct err *err)
{
    bool has_ssh = nodeset_has_ssh(input->nodeset);
    char server[BUILD_MAX_SERVER];
    struct json_mut *env;
    int result;

    build_conf_server(input->controller, server);
    if ((result = check_server(server, err)) < 0 ||
        (result = build_env(build, input, &env, err)) < 0)
        return result;
    return build_container(
        build, input->nodeset, "slurmd",
        json_format(build,
                    "{'name':'slurmd','args':['-Z','--conf-server',%s,'--conf',%s],"
                    "'env':%m,'ports':%m,"
                    "'startupProbe':{'httpGet':{'path':'/livez','port':'slurmd'},"
                    "                'periodSeconds':10,'failureThreshold':6},"
                    "'livenessProbe':{'httpGet':{'path':'/livez','port':'slurmd'},"
                    "                 'periodSeconds':10,'failureThreshold':6},"
                    "'readinessProbe':{'httpGet':{'path':'/readyz','port':'slurmd'}},"
                    "'securityContext':%m,"
                    "'lifecycle':{'preStop':{'exec':{'command':['/usr/bin/sh','-c',%s]}}},"
                    "'volumeMounts':%m}",
                    server, worker_conf(input->arena, input->nodeset), env,
                    build_ports(build, has_ssh), build_privileges(build, input->nodeset), pre_stop,
                    build_mounts(build, has_ssh)),
        ret_container, err);
}

/* ---- what all workers have in common ---- */

static struct json_mut *build_volumes(struct json_build *build, const struct worker_input *input)
{
    const struct json *key = json_get(operator_spec(input->controller), "slurmKeyRef");
    const struct json *sssd = json_at(operator_spec(input->nodeset), "ssh", "sssdConfRef");
    struct json_mut *volumes =
        json_format(build,
                    "[{'name':'slurm-etc','projected':{'defaultMode':%d,'sources':["
                    "  {'secret':{'name':%j,'items':[{'key':%j,'path':'slurm.key'}]}}]}},"
                    " {'name':'slurm-logfile','emptyDir':{'medium':'Memory'}}]",
                    PRIVATE_MODE, json_get(key, "name"), json_get(key, "key"));

    if (!nodeset_has_ssh(input->nodeset))
        return volumes;
    json_push(volumes, json_format(build,
                                   "{'name':'ssh-config','projected':{'defaultMode':%d,'sources':["
                                   "{'configMap':{'name':%m,'items':[{'key':'sshd_config',"
                                   "'path':'sshd_config','mode':%d}]}}]}}",
                                   PRIVATE_MODE, build_name(build, input->nodeset, "-ssh-config"),
                                   PRIVATE_MODE));
    json_push(volumes, json_format(build,
                                   "{'name':'sssd-conf','projected':{'defaultMode':%d,'sources':["
                                   "{'secret':{'name':%j,'items':[{'key':%j,'path':'sssd.conf',"
                                   "'mode':%d}]}}]}}",
                                   PRIVATE_MODE, json_get(sssd, "name"), json_get(sssd, "key"),
                                   PRIVATE_MODE));
    return volumes;
}

static int build_pod(struct json_build *build, const struct worker_input *input,
                     struct json_mut **ret_pod, struct err *err)
{
    const char *subdomain = arena_printf(input->arena, "slurm-workers-%s", input->controller->name);
    const char *search = arena_printf(input->arena, "%s.%s.svc.%s", subdomain, input->nodeset->ns,
                                      input->world->dns_domain);
    struct json_mut *slurmd, *logfile;
    int result;

    if ((result = build_slurmd(build, input, &slurmd, err)) < 0 ||
        (result =
             build_container(build, input->nodeset, "logfile",
                             build_logfile(build, "/var/log/slurm/slurmd.log"), &logfile, err)) < 0)
        return result;
    *ret_pod = json_format(
        build,
        "{'automountServiceAccountToken':false,'enableServiceLinks':false,'subdomain':%s,"
        "'dnsConfig':{'searches':[%s]},'initContainers':[%m],'containers':[%m],"
        "'tolerations':[{'key':'" TAINT_WORKER "','operator':'Equal','effect':'NoExecute'}],"
        "'volumes':%m}",
        subdomain, search, logfile, slurmd, build_volumes(build, input));
    return 0;
}

/* One worker on each Node, of all NodeSets together. It goes behind the user's own terms. */
static void put_anti_affinity(struct json_build *build, struct json_mut *spec)
{
    struct json_mut *rules = json_object_at(build, spec, "affinity", "podAntiAffinity");
    struct str key = STR("requiredDuringSchedulingIgnoredDuringExecution");
    struct json_mut *terms = json_mut_get(rules, key);

    if (json_mut_type(terms) != JSON_ARRAY)
        terms = json_put_key(build, rules, key, json_new_array(build));
    json_push(terms, json_format(build,
                                 "{'topologyKey':'kubernetes.io/hostname','labelSelector':{"
                                 "'matchExpressions':[{'key':'" LABEL_NAME "','operator':'In',"
                                 "'values':[%s]}]}}",
                                 component_slurmd.app));
}

int worker_template(const struct worker_input *input, struct json_doc **ret_template,
                    struct err *err)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *hashes, *pod, *template, *labels;
    int result;

    if ((result = build_hashes(build, input, &hashes, err)) < 0 ||
        (result = build_pod(build, input, &pod, err)) < 0 ||
        (result = build_template(build, &component_slurmd, input->nodeset,
                                 META_OWNER | META_TEMPLATE, hashes, pod, &template, err)) < 0)
        return result;
    labels = json_object_at(build, template, "metadata", "labels");
    json_put_text(build, labels, LABEL_CLUSTER, input->controller->name);
    json_put_text(build, labels, LABEL_REVISION, input->revision);
    json_put_text(build, labels, LABEL_SCALING_MODE,
                  nodeset_is_daemonset(input->nodeset) ? "DaemonSet" : "StatefulSet");
    slurm_keys_put(build, input->controller, slurm_keys_mark(input->world, input->controller),
                   template);
    if (!spec_flag(input->nodeset, "oversubscribeNode"))
        put_anti_affinity(build, json_object_at(build, template, "spec"));
    *ret_template = json_freeze(template);
    return 0;
}

/* ---- one worker ---- */

static void put_identity(struct json_build *build, struct json_mut *metadata,
                         const struct kube_object *nodeset, const struct worker_identity *identity)
{
    struct json_mut *labels = json_object_at(build, metadata, "labels");
    struct json_mut *owners = json_new_array(build);
    char text[KUBE_MAX_NAME + 2];

    json_push(owners, kube_owner_reference(build, nodeset));
    (void)snprintf(text, sizeof(text), "%s-", nodeset->name);
    json_put_text(build, metadata, "name", identity->name);
    json_put_text(build, metadata, "generateName", text);
    json_put(build, metadata, "ownerReferences", owners);
    json_put_text(build, labels, LABEL_POD_NAME, identity->name);
    json_put_text(build, labels, LABEL_POD_HOSTNAME, identity->hostname);
    (void)snprintf(text, sizeof(text), "%lld", (long long)identity->ordinal);
    if (identity->ordinal >= 0)
        json_put_text(build, labels, LABEL_POD_INDEX, text);
}

/* It takes the place of what the user requires of Nodes: the Node was found by that. */
static void put_node(struct json_build *build, struct json_mut *spec, const char *node)
{
    json_put_at(build, spec,
                json_format(build,
                            "{'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name',"
                            "'operator':'In','values':[%s]}]}]}",
                            node),
                "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution");
}

static void push_toleration(struct json_build *build, struct json_mut *spec, const char *taint,
                            const char *effect)
{
    struct json_mut *list = json_mut_get(spec, STR("tolerations"));

    json_push(list,
              json_format(build, "{'key':%s,'operator':'Exists','effect':%s}", taint, effect));
}

/* Volumes of claims come first. A volume of the template with the name of one gives way. */
static void put_volumes(struct json_build *build, struct json_mut *spec, const struct json *volumes,
                        struct json_mut *claims)
{
    auto_json_doc struct json_doc *doc = json_freeze(claims);
    struct json_iter iter = json_iter(volumes), own;
    const struct json *volume, *claim;

    while (json_next_item(&iter, &volume)) {
        bool is_taken = false;

        own = json_iter(json_root(doc));
        while (json_next_item(&own, &claim))
            is_taken = is_taken || json_equal(json_get(claim, "name"), json_get(volume, "name"));
        if (!is_taken)
            json_push(claims, json_copy(build, volume));
    }
    json_put(build, spec, "volumes", claims);
}

struct json_mut *worker_pod(struct json_build *build, struct arena *arena,
                            const struct kube_object *nodeset, const struct json_doc *template,
                            const struct worker_identity *identity, bool was_there)
{
    const struct json *root = json_root(template);
    struct json_mut *pod = json_copy(build, root);
    struct json_mut *spec = json_object_at(build, pod, "spec");

    put_identity(build, json_object_at(build, pod, "metadata"), nodeset, identity);
    json_put_text(build, spec, "hostname", identity->hostname);
    (void)json_remove(spec, STR("nodeName"));
    if (identity->node)
        put_node(build, spec, identity->node->name);
    if (identity->ordinal < 0) { /* as the pods of a DaemonSet, it stays where it is */
        push_toleration(build, spec, "node.kubernetes.io/not-ready", "NoExecute");
        push_toleration(build, spec, "node.kubernetes.io/unreachable", "NoExecute");
    }
    if (was_there)
        push_toleration(build, spec, "node.kubernetes.io/unschedulable", "NoSchedule");
    put_volumes(build, spec, json_at(root, "spec", "volumes"),
                worker_claim_volumes(build, arena, nodeset, identity));
    return pod;
}

struct json_mut *worker_chart_labels(struct json_build *build, const struct kube_object *nodeset,
                                     const struct kube_object *pod)
{
    auto_json_doc struct json_doc *wanted = json_freeze(
        build_metadata(build, &component_slurmd, nodeset, "", META_OWNER | META_TEMPLATE));
    struct json_iter iter = json_iter(json_get(json_root(wanted), "labels"));
    struct json_mut *labels = json_new_object(build);
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value)) {
        bool found = false;

        if (build_is_chart_label(key) &&
            !str_eq(kube_pairs_get(&pod->labels, key.at, &found), json_str(value)))
            json_put_key(build, labels, key, json_copy(build, value));
    }
    return json_mut_len(labels) > 0 ? json_format(build, "{'metadata':{'labels':%m}}", labels)
                                    : NULL;
}
