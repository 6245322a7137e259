/* accounting_build.c - slurmdbd.conf and the children of an Accounting, as they should be. */
#include "codec/base64.h"
#include "codec/slurmconf.h"
#include "codec/slurmconf_merge.h"
#include "operator/accounting.h"
#include "operator/build.h"
#include "operator/hashes.h"
#include "operator/names.h"
#include "operator/slurm_conf.h"
#include "operator/slurm_keys.h"

enum { MAX_TEXT = 2 << 20, CONFIG_MODE = 0600 };

int accounting_service(struct json_build *build, const struct kube_object *accounting,
                       struct json_mut **ret_service, struct err *err)
{
    return build_service(build, &component_slurmdbd, accounting, META_OWNER | META_SERVICE, NULL,
                         ret_service, err);
}

/* ---- slurmdbd.conf ---- */

/* The value of one key of a Secret, in clear. */
static int read_password(const struct operator_world *world, const struct kube_object *accounting,
                         struct buf *out, struct err *err)
{
    const struct json *ref = json_at(operator_spec(accounting), "storageConfig", "passwordKeyRef");
    const char *name = json_str(json_get(ref, "name")).at;
    const struct kube_object *secret = kube_cache_get(world->secrets, accounting->ns, name);
    const struct json *value = secret ? json_get(json_get(operator_tree(secret), "data"),
                                                 json_str(json_get(ref, "key")).at)
                                      : NULL;

    if (!secret)
        return err_set(err, ERR_NOT_FOUND,
                       "spec.storageConfig.passwordKeyRef: Secret %s does not exist", name);
    if (!value)
        return err_set(err, ERR_NOT_FOUND,
                       "spec.storageConfig.passwordKeyRef: Secret %s has no key %s", name,
                       json_str(json_get(ref, "key")).at);
    return base64_decode(json_str(value), 0, out, err);
}

/* `echo pw | base64` leaves a newline at the end, which no password of a database has. It stays in
 * the file as an empty line, as the Slinky operator wrote it: another text restarts slurmdbd. */
static int write_password(struct conf *conf, struct str secret, struct err *err)
{
    struct str password = secret;
    int result;

    while (password.len > 0 && strchr("\r\n", password.at[password.len - 1]))
        password.len--;
    if ((result = conf_option(conf, "StoragePass", password, err)) == 0 &&
        password.len < secret.len)
        buf_add_text(conf->out, "\n");
    return result;
}

/* Without a user the Slinky operator wrote no value, where conf_option writes an empty one. */
static int write_user(struct conf *conf, struct str user, struct err *err)
{
    if (user.len > 0)
        return conf_option(conf, "StorageUser", user, err);
    buf_add_text(conf->out, "StorageUser=\n");
    return 0;
}

static int write_storage(struct conf *conf, const struct json *storage, struct str password,
                         struct arena *arena, struct err *err)
{
    int64_t port = json_i64_or(json_get(storage, "port"), 0);
    struct str database = json_str(json_get(storage, "database"));
    const char *number = arena_printf(arena, "%lld", (long long)(port > 0 ? port : 3306));
    int result;

    conf_section(conf->out, "STORAGE");
    if ((result = conf_option(conf, "StorageType", STR("accounting_storage/mysql"), err)) < 0 ||
        (result = conf_option(conf, "StorageHost", json_str(json_get(storage, "host")), err)) < 0 ||
        (result = conf_option(conf, "StoragePort", str_of(number), err)) < 0 ||
        (result = write_user(conf, json_str(json_get(storage, "username")), err)) < 0 ||
        (result = conf_option(conf, "StorageLoc",
                              database.len > 0 ? database : STR("slurm_acct_db"), err)) < 0)
        return result;
    return write_password(conf, password, err);
}

int accounting_conf(const struct operator_world *world, const struct kube_object *accounting,
                    struct arena *arena, struct buf *out, struct err *err)
{
    const struct json *spec = operator_spec(accounting);
    struct str extra = json_str(json_get(spec, "extraConf"));
    const char *host = arena_printf(arena, "%s-accounting-0", accounting->name);
    const char *keys = json_exists(json_get(spec, "jwksKeyRef"))
                           ? "jwt_key=/etc/slurm/jwt.key,jwks=/etc/slurm/jwks.json"
                           : "jwt_key=/etc/slurm/jwt.key";
    const struct conf_merge_row rows[] = { { .key = "AuthAltParameters", .values = keys },
                                           { .key = "AuthInfo", .values = "use_client_ids" } };
    auto_buf struct buf password;
    struct conf conf;
    int result;

    buf_init(&password, MAX_TEXT);
    conf_begin(&conf, out);
    if ((result = read_password(world, accounting, &password, err)) < 0)
        return result;
    conf_section(out, "GENERAL");
    (void)conf_option(&conf, "DbdHost", str_of(host), NULL);
    (void)conf_option(&conf, "DbdPort", STR("6819"), NULL);
    (void)conf_option(&conf, "SlurmUser", STR("slurm"), NULL);
    conf_section(out, "PLUGINS & PARAMETERS");
    (void)conf_option(&conf, "AuthType", STR("auth/slurm"), NULL);
    (void)conf_option(&conf, "AuthAltTypes", STR("auth/jwt"), NULL);
    (void)conf_option(&conf, "AuthAltParameters", str_of(keys), NULL);
    (void)conf_option(&conf, "AuthInfo", STR("use_client_ids"), NULL);
    if ((result = write_storage(&conf, json_get(spec, "storageConfig"), buf_str(&password), arena,
                                err)) < 0)
        return result;
    conf_section(out, "LOGGING");
    (void)conf_option(&conf, "LogFile", STR("/dev/null"), NULL);
    if (extra.len > 0) {
        conf_section(out, "EXTRA CONFIG");
        buf_add_str(out, extra);
        buf_add_char(out, '\n');
        if ((result = conf_merged(rows, 2, extra, arena, out, err)) < 0)
            return result;
    }
    return conf_end(&conf, err);
}

struct json_mut *accounting_secret(struct json_build *build, const struct kube_object *accounting,
                                   struct str conf)
{
    auto_buf struct buf text;

    buf_init(&text, MAX_TEXT);
    base64_encode(conf, 0, &text);
    return json_format(build, "{'metadata':%m,'immutable':false,'data':{'slurmdbd.conf':%s}}",
                       build_metadata(build, &component_slurmdbd, accounting,
                                      component_slurmdbd.suffix, META_OWNER),
                       buf_text(&text));
}

/* ---- the StatefulSet ---- */

static struct json_mut *etc_sources(struct json_build *build, const struct kube_object *accounting)
{
    const struct json *spec = operator_spec(accounting);
    const struct json *slurm_key = json_get(spec, "slurmKeyRef");
    const struct json *jwt_key = json_get(spec, jwt_key_ref(accounting));
    const struct json *jwks = json_get(spec, "jwksKeyRef");
    struct json_mut *sources = json_format(
        build,
        "[{'secret':{'name':%m,'items':[{'key':'slurmdbd.conf','path':'slurmdbd.conf'}]}},"
        " {'secret':{'name':%j,'items':[{'key':%j,'path':'slurm.key'}]}},"
        " {'secret':{'name':%j,'items':[{'key':%j,'path':'jwt.key'}]}}]",
        build_name(build, accounting, component_slurmdbd.suffix), json_get(slurm_key, "name"),
        json_get(slurm_key, "key"), json_get(jwt_key, "name"), json_get(jwt_key, "key"));

    if (json_exists(jwks))
        json_push(sources, json_format(build,
                                       "{'configMap':{'name':%j,'items':[{'key':%j,"
                                       "'path':'jwks.json'}]}}",
                                       json_get(jwks, "name"), json_get(jwks, "key")));
    return sources;
}

static int build_pod(struct json_build *build, const struct kube_object *accounting,
                     struct json_mut **ret_pod, struct err *err)
{
    struct json_mut *container;
    int result = build_container(
        build, accounting, "slurmdbd",
        json_format(build,
                    "{'name':'slurmdbd',"
                    "'ports':[{'name':'slurmdbd','containerPort':%d,'protocol':'TCP'}],"
                    "'readinessProbe':{'tcpSocket':{'port':%d}},"
                    "'securityContext':{'runAsNonRoot':true,'runAsUser':%d,'runAsGroup':%d},"
                    "'volumeMounts':[{'name':'slurm-etc','mountPath':'/etc/slurm',"
                    "'readOnly':true},{'name':'run','mountPath':'/run'}]}",
                    SLURMDBD_PORT, SLURMDBD_PORT, SLURM_UID, SLURM_UID),
        &container, err);

    if (result < 0)
        return result;
    *ret_pod = json_format(
        build,
        "{'automountServiceAccountToken':false,"
        "'securityContext':{'runAsNonRoot':true,'runAsUser':%d,'runAsGroup':%d,'fsGroup':%d},"
        "'containers':[%m],"
        "'volumes':[{'name':'slurm-etc','projected':{'defaultMode':%d,'sources':%m}},"
        "  {'name':'run','emptyDir':{'medium':'Memory'}}]}",
        SLURM_UID, SLURM_UID, SLURM_UID, container, CONFIG_MODE, etc_sources(build, accounting));
    return 0;
}

static int build_hashes(struct json_build *build, const struct operator_world *world,
                        const struct kube_object *accounting, struct str conf,
                        struct json_mut **ret_annotations, struct err *err)
{
    char slurm_key[DIGEST_HEX], jwt_key[DIGEST_HEX], text[DIGEST_HEX];
    int result;

    if ((result = hash_secret_ref(world, accounting, "slurmKeyRef", slurm_key, err)) < 0 ||
        (result = hash_secret_ref(world, accounting, jwt_key_ref(accounting), jwt_key, err)) < 0)
        return result;
    digest_sha256(conf, text);
    *ret_annotations = json_format(build,
                                   "{'" ANNOTATION_SLURM_KEY_HASH "':%s,"
                                   "'" ANNOTATION_JWT_KEY_HASH "':%s,"
                                   "'" ANNOTATION_DBD_CONF_HASH "':%s}",
                                   slurm_key, jwt_key, text);
    return 0;
}

int accounting_statefulset(struct json_build *build, const struct operator_world *world,
                           const struct kube_object *accounting, struct str conf,
                           const struct kube_object *live, struct json_mut **ret_statefulset,
                           struct err *err)
{
    const struct component *component = &component_slurmdbd;
    struct json_mut *pod, *hashes, *template, *spec;
    int result;

    if ((result = build_hashes(build, world, accounting, conf, &hashes, err)) < 0 ||
        (result = build_pod(build, accounting, &pod, err)) < 0 ||
        (result = build_template(build, component, accounting, META_OWNER, hashes, pod, &template,
                                 err)) < 0)
        return result;
    slurm_keys_put(build, accounting, slurm_keys_mark(world, accounting), template);
    *ret_statefulset = build_workload(build, component, accounting, live, template);
    spec = json_mut_get(*ret_statefulset, STR("spec"));
    json_put_i64(build, spec, "replicas", 1);
    json_put_text(build, spec, "podManagementPolicy", "Parallel");
    json_put(build, spec, "serviceName", build_name(build, accounting, component->suffix));
    return 0;
}
