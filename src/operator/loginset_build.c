/* loginset_build.c - the children of a LoginSet, as they should be. */
#include "codec/sshkey.h"
#include "engine/child.h"
#include "operator/build.h"
#include "operator/hashes.h"
#include "operator/loginset.h"
#include "operator/names.h"
#include "operator/scripts.h"
#include "operator/slurm_keys.h"

#include <stdio.h>

enum { MAX_CONF = 1 << 20, PRIVATE_MODE = 0600, PUBLIC_MODE = 0644 };

struct json_mut *loginset_host_keys(struct json_build *build, const struct kube_object *loginset)
{
    struct json_mut *metadata =
        build_metadata(build, &component_login, loginset, "-ssh-host-keys", META_OWNER);
    struct json_mut *owners = json_new_array(build);

    json_push(owners, kube_owner_reference(build, loginset));
    json_put(build, metadata, "ownerReferences", owners);
    return json_format(build, "{'apiVersion':'v1','kind':'Secret','immutable':true,'metadata':%m}",
                       metadata);
}

/* ---- files of sshd ---- */

static void write_sshd_config(const struct kube_object *loginset, struct buf *out)
{
    buf_add_text(out, "#\n### GENERAL ###\n"
                      "Include /etc/ssh/sshd_config.d/*.conf\n"
                      "UsePAM yes\n"
                      "X11Forwarding yes\n"
                      "Subsystem sftp internal-sftp\n"
                      "#\n### EXTRA CONFIG ###\n");
    buf_add_str(out, json_str(json_get(operator_spec(loginset), "extraSshdConfig")));
    buf_add_char(out, '\n');
}

struct json_mut *loginset_ssh_config(struct json_build *build, const struct kube_object *loginset)
{
    auto_buf struct buf sshd, authorized;

    buf_init(&sshd, MAX_CONF);
    buf_init(&authorized, MAX_CONF);
    write_sshd_config(loginset, &sshd);
    buf_add_text(&authorized, "#\n### SLINKY ###\n");
    buf_add_str(&authorized, json_str(json_get(operator_spec(loginset), "rootSshAuthorizedKeys")));
    buf_add_char(&authorized, '\n');
    return json_format(build,
                       "{'metadata':%m,'immutable':false,"
                       "'data':{'authorized_keys':%s,'sshd_config':%s}}",
                       build_metadata(build, &component_login, loginset, "-ssh-config", META_OWNER),
                       buf_text(&authorized), buf_text(&sshd));
}

int loginset_service(struct json_build *build, const struct kube_object *loginset,
                     struct json_mut **ret_service, struct err *err)
{
    return build_service(build, &component_login, loginset, META_OWNER | META_SERVICE, NULL,
                         ret_service, err);
}

/* ---- the pod ---- */

/* A port of the user's with the name of ours says where sshd listens. */
static int64_t ssh_port(const struct kube_object *loginset)
{
    struct json_iter iter = json_iter(json_at(operator_spec(loginset), "login", "ports"));
    const struct json *port;

    while (json_next_item(&iter, &port))
        if (str_is(json_str(json_get(port, "name")), component_login.app))
            return json_i64_or(json_get(port, "containerPort"), SSH_PORT);
    return SSH_PORT;
}

static struct json_mut *login_mounts(struct json_build *build)
{
    static const char *const files[][3] = {
        { "ssh-config", "/etc/ssh/sshd_config", "sshd_config" },
        { "ssh-config", "/root/.ssh/authorized_keys", "authorized_keys" },
        { "sssd-conf", "/etc/sssd/sssd.conf", "sssd.conf" },
    };
    struct json_mut *mounts =
        json_format(build, "[{'name':'slurm-etc','mountPath':'/etc/slurm','readOnly':true},"
                           " {'name':'sackd-dir','mountPath':'/run/slurm'}]");
    char path[128];

    for (size_t i = 0; sshkey_host_files[i]; i++) {
        (void)snprintf(path, sizeof(path), "/etc/ssh/%s", sshkey_host_files[i]);
        json_push(mounts, json_format(build,
                                      "{'name':'ssh-host-keys','mountPath':%s,'subPath':%s,"
                                      "'readOnly':true}",
                                      path, sshkey_host_files[i]));
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        json_push(mounts,
                  json_format(build, "{'name':%s,'mountPath':%s,'subPath':%s,'readOnly':true}",
                              files[i][0], files[i][1], files[i][2]));
    return mounts;
}

static struct json_mut *host_key_items(struct json_build *build)
{
    struct json_mut *items = json_new_array(build);

    for (size_t i = 0; sshkey_host_files[i]; i++)
        json_push(items,
                  json_format(build, "{'key':%s,'path':%s,'mode':%d}", sshkey_host_files[i],
                              sshkey_host_files[i], i % 2 == 0 ? PRIVATE_MODE : PUBLIC_MODE));
    return items;
}

static struct json_mut *volumes(struct json_build *build, const struct loginset_input *input)
{
    const struct json *slurm_key = json_get(operator_spec(input->controller), "slurmKeyRef");
    const struct json *sssd = json_get(operator_spec(input->loginset), "sssdConfRef");

    return json_format(
        build,
        "[{'name':'slurm-etc','emptyDir':{'medium':'Memory'}},"
        " {'name':'sackd-dir','emptyDir':{'medium':'Memory'}},"
        " {'name':'slurm-config','projected':{'defaultMode':%d,'sources':["
        "  {'secret':{'name':%j,'items':[{'key':%j,'path':'slurm.key'}]}}]}},"
        " {'name':'ssh-host-keys','projected':{'defaultMode':%d,'sources':["
        "  {'secret':{'name':%m,'items':%m}}]}},"
        " {'name':'ssh-config','projected':{'defaultMode':%d,'sources':[{'configMap':{'name':%m,"
        "  'items':[{'key':'sshd_config','path':'sshd_config','mode':%d},"
        "           {'key':'authorized_keys','path':'authorized_keys','mode':%d}]}}]}},"
        " {'name':'sssd-conf','projected':{'defaultMode':%d,'sources':["
        "  {'secret':{'name':%j,'items':[{'key':%j,'path':'sssd.conf','mode':%d}]}}]}}]",
        PRIVATE_MODE, json_get(slurm_key, "name"), json_get(slurm_key, "key"), PRIVATE_MODE,
        build_name(build, input->loginset, "-ssh-host-keys"), host_key_items(build), PRIVATE_MODE,
        build_name(build, input->loginset, "-ssh-config"), PRIVATE_MODE, PRIVATE_MODE, PRIVATE_MODE,
        json_get(sssd, "name"), json_get(sssd, "key"), PRIVATE_MODE);
}

static int build_login(struct json_build *build, const struct loginset_input *input,
                       struct json_mut **ret_container, struct err *err)
{
    char server[BUILD_MAX_SERVER], options[BUILD_MAX_SERVER + 32];

    build_conf_server(input->controller, server);
    (void)snprintf(options, sizeof(options), "--conf-server %s", server);
    return build_container(
        build, input->loginset, "login",
        json_format(build,
                    "{'name':'login','env':[{'name':'SACKD_OPTIONS','value':%s}],"
                    "'ports':[{'name':'login','containerPort':%l,'protocol':'TCP'}],"
                    "'readinessProbe':{'exec':{'command':['test','-S',"
                    "'/run/slurm/sack.socket']}},'volumeMounts':%m}",
                    options, ssh_port(input->loginset), login_mounts(build)),
        ret_container, err);
}

static int build_pod(struct json_build *build, const struct loginset_input *input,
                     struct json_mut **ret_pod, struct err *err)
{
    struct json_mut *login, *initconf;
    char search[3 * KUBE_MAX_NAME];
    int result;

    (void)snprintf(search, sizeof(search), "slurm-workers-%s.%s.svc.%s", input->controller->name,
                   input->loginset->ns, input->world->dns_domain);
    if ((result = build_login(build, input, &login, err)) < 0 ||
        (result = build_container(build, input->loginset, "initconf", build_initconf(build),
                                  &initconf, err)) < 0)
        return result;
    *ret_pod = json_format(build,
                           "{'automountServiceAccountToken':false,'enableServiceLinks':false,"
                           "'dnsConfig':{'searches':[%s]},'initContainers':[%m],"
                           "'containers':[%m],'volumes':%m}",
                           search, initconf, login, volumes(build, input));
    return 0;
}

static int build_hashes(struct json_build *build, const struct loginset_input *input,
                        struct json_mut **ret_annotations, struct err *err)
{
    char keys[DIGEST_HEX], sshd[DIGEST_HEX], sssd[DIGEST_HEX];
    auto_buf struct buf config;
    int result;

    buf_init(&config, MAX_CONF);
    write_sshd_config(input->loginset, &config);
    digest_sha256(buf_str(&config), sshd);
    if ((result = hash_map(json_get(operator_tree(input->host_keys), "data"), true, keys, err)) <
            0 ||
        (result = hash_sssd(input->world, input->loginset->ns,
                            json_get(operator_spec(input->loginset), "sssdConfRef"), sssd, err)) <
            0)
        return result;
    *ret_annotations = json_format(build,
                                   "{'" ANNOTATION_HOST_KEYS_HASH "':%s,"
                                   "'" ANNOTATION_SSHD_CONF_HASH "':%s,"
                                   "'" ANNOTATION_SSSD_CONF_HASH "':%s}",
                                   keys, sshd, sssd);
    return 0;
}

int loginset_deployment(struct json_build *build, const struct loginset_input *input,
                        struct json_mut **ret_deployment, struct err *err)
{
    const struct component *component = &component_login;
    const struct json *spec = operator_spec(input->loginset);
    struct json_mut *hashes, *pod, *template;
    int result;

    if ((result = build_hashes(build, input, &hashes, err)) < 0 ||
        (result = build_pod(build, input, &pod, err)) < 0 ||
        (result = build_template(build, component, input->loginset, META_OWNER | META_TEMPLATE,
                                 hashes, pod, &template, err)) < 0)
        return result;
    slurm_keys_put(build, input->controller, slurm_keys_mark(input->world, input->controller),
                   template);
    *ret_deployment = build_workload(build, component, input->loginset, input->live, template);
    json_put_at(build, *ret_deployment,
                json_new_i64(build, json_i64_or(json_get(spec, "replicas"), 1)), "spec",
                "replicas");
    if (json_len(json_get(spec, "strategy")) > 0)
        json_put_at(build, *ret_deployment, json_copy(build, json_get(spec, "strategy")), "spec",
                    "strategy");
    return 0;
}
