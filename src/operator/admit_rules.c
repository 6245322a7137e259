/* admit_rules.c - the rules for custom resources as a table, and those of all kinds but NodeSet. */
#include "operator/admit_rules.h"

#include "codec/duration.h"
#include "kube/kinds.h"
#include "operator/kinds.h"

#include <stdarg.h>

enum { MAX_CLUSTER_NAME = 40, MAX_SHOWN = 100, MAX_REFS = 64 };

enum moment { ON_CREATE = 1, ON_UPDATE = 2, ON_BOTH = 3 };

/* ---- findings ---- */

__attribute__((format(printf, 3, 0))) static void add(struct admit_check *check,
                                                      struct admit_findings *findings,
                                                      const char *format, va_list args)
{
    if (findings->count < ADMIT_MAX_FINDINGS)
        findings->at[findings->count++] = str_of(arena_vprintf(check->arena, format, args));
}

void admit_deny(struct admit_check *check, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add(check, &check->denials, format, args);
    va_end(args);
}

void admit_warn(struct admit_check *check, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add(check, &check->warnings, format, args);
    va_end(args);
}

const struct json *admit_spec(const struct admit_check *check, const char *member)
{
    return json_get(json_get(check->object, "spec"), member);
}

const struct json *admit_old_spec(const struct admit_check *check, const char *member)
{
    return json_get(json_get(check->old, "spec"), member);
}

static bool is_one_of(const char *kinds, const char *kind)
{
    struct str rest = str_of(kinds), word;

    while (str_next(&rest, ',', &word))
        if (str_is(str_trim(word), kind))
            return true;
    return false;
}

static struct str shown(struct str text)
{
    return str_sub(text, 0, MAX_SHOWN);
}

/* ---- names that never change ---- */

static const char *cluster_name(const struct admit_check *check, const struct json *object)
{
    struct str named = json_str(json_at(object, "spec", "clusterName"));

    return named.len > 0 ? named.at
                         : arena_printf(check->arena, STR_FMT "_" STR_FMT, STR_ARG(check->ns),
                                        STR_ARG(check->name));
}

static void check_cluster_name(struct admit_check *check)
{
    const char *name = cluster_name(check, check->object);

    if (strlen(name) > MAX_CLUSTER_NAME)
        admit_deny(check, "spec.clusterName: %.*s has %zu bytes, Slurm takes at most %d", MAX_SHOWN,
                   name, strlen(name), MAX_CLUSTER_NAME);
}

static void keep_cluster_name(struct admit_check *check)
{
    const char *before = cluster_name(check, check->old);

    if (strcmp(before, cluster_name(check, check->object)) != 0)
        admit_deny(check, "spec.clusterName: cannot be changed, it is %.*s", MAX_SHOWN, before);
}

static void keep_name_of(struct admit_check *check, const char *ref)
{
    struct str before = json_str(json_get(admit_old_spec(check, ref), "name"));

    if (!str_eq(before, json_str(json_get(admit_spec(check, ref), "name"))))
        admit_deny(check, "spec.%s.name: cannot be changed, it is \"" STR_FMT "\"", ref,
                   STR_ARG(shown(before)));
}

static void keep_slurm_key(struct admit_check *check)
{
    keep_name_of(check, "slurmKeyRef");
}

static void keep_controller(struct admit_check *check)
{
    keep_name_of(check, "controllerRef");
}

/* jwtKeyRef, or its former name where only that is given. */
static const struct json *jwt_ref(const struct json *object)
{
    const struct json *ref = json_at(object, "spec", "jwtKeyRef");

    return json_exists(ref) ? ref : json_at(object, "spec", "jwtHs256KeyRef");
}

static void keep_jwt_key(struct admit_check *check)
{
    const struct json *before = jwt_ref(check->old), *after = jwt_ref(check->object);

    if (strcmp(check->kind, "Accounting") == 0 &&
        json_bool_or(admit_spec(check, "external"), false))
        return; /* nothing is signed with it */
    if (!str_eq(json_str(json_get(before, "name")), json_str(json_get(after, "name"))) ||
        !str_eq(json_str(json_get(before, "key")), json_str(json_get(after, "key"))))
        admit_deny(check,
                   "spec.jwtKeyRef: cannot be changed, it is key \"" STR_FMT "\" of \"" STR_FMT
                   "\"",
                   STR_ARG(shown(json_str(json_get(before, "key")))),
                   STR_ARG(shown(json_str(json_get(before, "name")))));
}

static void keep_persistence(struct admit_check *check)
{
    const struct json *before = admit_old_spec(check, "persistence");
    const struct json *after = admit_spec(check, "persistence");
    bool was_enabled = json_bool_or(json_get(before, "enabled"), true);
    struct str claim = json_str(json_get(before, "existingClaim"));

    if (was_enabled != json_bool_or(json_get(after, "enabled"), true))
        admit_deny(check, "spec.persistence.enabled: cannot be changed, it is %s",
                   was_enabled ? "true" : "false");
    else if (was_enabled && !str_eq(claim, json_str(json_get(after, "existingClaim"))))
        admit_deny(check,
                   "spec.persistence.existingClaim: cannot be changed while persistence is "
                   "enabled, it is \"" STR_FMT "\"",
                   STR_ARG(shown(claim)));
}

/* ---- names that must be given ---- */

static void need_name(struct admit_check *check, const char *ref, const char *what)
{
    if (json_str(json_get(admit_spec(check, ref), "name")).len == 0)
        admit_deny(check, "spec.%s.name: is empty, it must name %s", ref, what);
}

static void need_controller(struct admit_check *check)
{
    need_name(check, "controllerRef", "a Controller");
}

static void need_sssd_conf(struct admit_check *check)
{
    need_name(check, "sssdConfRef", "the Secret with sssd.conf");
}

static void need_spec(struct admit_check *check)
{
    if (!json_is_object(json_get(check->object, "spec")))
        admit_deny(check, "spec: is missing");
}

/* ---- the files of a Controller ---- */

static bool is_known_file(struct str name)
{
    static const char *const known[] = {
        "acct_gather.conf", "burst_buffer.conf", "cgroup.conf",    "cli_filter.lua",
        "gres.conf",        "helpers.conf",      "job_submit.lua", "job_container.conf",
        "mpi.conf",         "namespace.yaml",    "oci.conf",       "plugstack.conf",
        "topology.conf",    "topology.yaml",
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (str_is(name, known[i]))
            return true;
    return false;
}

/* slurm.conf and slurmdbd.conf are the operator's own files. */
static void check_files(struct admit_check *check, unsigned at, struct str map,
                        const struct json *data)
{
    struct json_iter iter = json_iter(data);
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value)) {
        if (str_is(key, "slurm.conf") || str_is(key, "slurmdbd.conf"))
            admit_deny(check,
                       "spec.configFileRefs[%u]: ConfigMap " STR_FMT " has the key " STR_FMT
                       ", a file that the operator writes: use spec.extraConf",
                       at, STR_ARG(shown(map)), STR_ARG(key));
        else if (!is_known_file(key))
            admit_warn(check,
                       "spec.configFileRefs[%u]: ConfigMap " STR_FMT " has the key " STR_FMT
                       ", which is no file that Slurm is known to read",
                       at, STR_ARG(shown(map)), STR_ARG(shown(key)));
    }
}

static bool was_named(const struct admit_check *check, struct str name)
{
    struct json_iter refs = json_iter(admit_old_spec(check, "configFileRefs"));
    const struct json *ref;

    while (json_next_item(&refs, &ref))
        if (str_eq(json_str(json_get(ref, "name")), name))
            return true;
    return false;
}

static void check_config_files(struct admit_check *check)
{
    struct json_iter refs = json_iter(admit_spec(check, "configFileRefs"));
    const struct json *ref, *map = NULL;

    for (unsigned i = 0; i < MAX_REFS && json_next_item(&refs, &ref); i++) {
        struct str name = json_str(json_get(ref, "name"));

        if (was_named(check, name))
            continue;
        if (name.len == 0) {
            admit_deny(check, "spec.configFileRefs[%u].name: is empty, it must name a ConfigMap",
                       i);
            continue;
        }
        switch (
            check->find(check->find_context, check->uid, &kube_configmaps, check->ns, name, &map)) {
        case ADMIT_EXISTS:
            check_files(check, i, name, json_get(map, "data"));
            break;
        case ADMIT_ABSENT:
            admit_deny(check,
                       "spec.configFileRefs[%u].name: ConfigMap " STR_FMT
                       " does not exist in namespace " STR_FMT,
                       i, STR_ARG(shown(name)), STR_ARG(check->ns));
            break;
        case ADMIT_NOT_READ_YET:
            check->is_early = true;
            break;
        case ADMIT_CANNOT_BE_READ:
            break;
        }
    }
}

static bool has_mode(const struct json *claim, const char *mode)
{
    struct json_iter modes = json_iter(json_at(claim, "spec", "accessModes"));
    const struct json *item;

    while (json_next_item(&modes, &item))
        if (str_is(json_str(item), mode))
            return true;
    return false;
}

/* A claim that does not exist yet may still become a good one. */
static void check_shared_claim(struct admit_check *check)
{
    struct str name = json_str(json_get(admit_spec(check, "persistence"), "existingClaim"));
    const struct json *claim = NULL;

    if (!json_bool_or(json_get(admit_spec(check, "ha"), "enabled"), false) || name.len == 0)
        return;
    switch (check->find(check->find_context, check->uid, &kube_volume_claims, check->ns, name,
                        &claim)) {
    case ADMIT_EXISTS:
        if (!has_mode(claim, "ReadWriteMany"))
            admit_deny(check,
                       "spec.persistence.existingClaim: PersistentVolumeClaim " STR_FMT
                       " is not ReadWriteMany, which spec.ha needs",
                       STR_ARG(shown(name)));
        break;
    case ADMIT_NOT_READ_YET:
        check->is_early = true;
        break;
    case ADMIT_ABSENT:
    case ADMIT_CANNOT_BE_READ:
        break;
    }
}

/* ---- small ones ---- */

static void check_lifetime(struct admit_check *check)
{
    const struct json *lifetime = admit_spec(check, "lifetime");
    struct err err = { .class = 0 };
    int64_t nanos;

    if (json_exists(lifetime) && duration_parse(json_str(lifetime), &nanos, &err) < 0)
        admit_deny(check, "spec.lifetime: %s", err.text);
}

static void warn_of_external_ips(struct admit_check *check)
{
    if (json_len(json_at(admit_spec(check, "service"), "spec", "externalIPs")) > 0)
        admit_warn(check, "spec.service.spec.externalIPs: is ignored");
}

/* ---- blocks that Kubernetes types have ---- */

static const struct block_row {
    const char *kinds;          /* with ", " between */
    const char *member, *inner; /* spec.<member>, spec.<member>.<inner> */
    const char *type;
} blocks[] = {
    { "Controller", "slurmctld", NULL, "Container" },
    { "Controller", "reconfigure", NULL, "Container" },
    { "Controller, NodeSet", "logfile", NULL, "Container" },
    { "Accounting", "slurmdbd", NULL, "Container" },
    { "RestApi", "slurmrestd", NULL, "Container" },
    { "LoginSet", "login", NULL, "Container" },
    { "LoginSet", "initconf", NULL, "Container" },
    { "NodeSet", "slurmd", NULL, "Container" },
    { "NodeSet", "volumeClaimTemplates", NULL, "[]PersistentVolumeClaim" },
    { "Controller, Accounting, RestApi, LoginSet, NodeSet", "template", "spec", "PodSpec" },
    { "Controller, Accounting, RestApi, LoginSet", "service", "spec", "ServiceSpec" },
};

static const struct json *block_of(const struct json *object, const struct block_row *row)
{
    const struct json *member = json_at(object, "spec", row->member);

    return row->inner ? json_get(member, row->inner) : member;
}

static void check_blocks(struct admit_check *check)
{
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        const struct block_row *row = &blocks[i];
        const struct json *block = block_of(check->object, row);

        if (!is_one_of(row->kinds, check->kind) ||
            (check->old && json_equal(block, block_of(check->old, row))))
            continue;
        admit_check_type(check,
                         arena_printf(check->arena, "spec.%s%s%s", row->member,
                                      row->inner ? "." : "", row->inner ? row->inner : ""),
                         block, row->type);
    }
}

/* ---- the table ---- */

enum { MAX_READS = 3 };

static const struct rule {
    const char *kinds; /* with ", " between */
    enum moment moment;
    const char *reads[MAX_READS]; /* paths below spec; an update that changes none is not checked */
    const char *what;             /* for the documentation */
    void (*check)(struct admit_check *check);
} rules[] = {
    { "Controller, Accounting, RestApi, LoginSet, NodeSet, Token",
      ON_CREATE,
      { NULL },
      "there is no `spec`",
      need_spec },
    { "Controller",
      ON_CREATE,
      { "clusterName" },
      "`clusterName`, or `<namespace>_<name>`, has more than 40 bytes",
      check_cluster_name },
    { "Controller", ON_UPDATE, { "clusterName" }, "`clusterName` changes", keep_cluster_name },
    { "Controller", ON_UPDATE, { "slurmKeyRef" }, "`slurmKeyRef.name` changes", keep_slurm_key },
    { "Controller, Accounting, Token",
      ON_UPDATE,
      { "jwtKeyRef", "jwtHs256KeyRef" },
      "`jwtKeyRef` changes",
      keep_jwt_key },
    { "Controller",
      ON_UPDATE,
      { "persistence" },
      "`persistence.enabled` changes, or `persistence.existingClaim` while it is enabled",
      keep_persistence },
    { "Controller",
      ON_BOTH,
      { "configFileRefs" },
      "a ConfigMap of `configFileRefs` does not exist, or has the key slurm.conf or slurmdbd.conf; "
      "warning: a key that is no file of Slurm",
      check_config_files },
    { "Controller",
      ON_BOTH,
      { "ha.enabled", "persistence.existingClaim" },
      "`persistence.existingClaim` is not ReadWriteMany although `ha.enabled`",
      check_shared_claim },
    { "LoginSet, NodeSet",
      ON_BOTH,
      { "controllerRef" },
      "`controllerRef.name` is empty",
      need_controller },
    { "LoginSet, NodeSet",
      ON_UPDATE,
      { "controllerRef" },
      "`controllerRef.name` changes",
      keep_controller },
    { "LoginSet", ON_BOTH, { "sssdConfRef" }, "`sssdConfRef.name` is empty", need_sssd_conf },
    { "NodeSet",
      ON_BOTH,
      { "updateStrategy.rollingUpdate.maxUnavailable" },
      "`updateStrategy.rollingUpdate.maxUnavailable` is less than 1, `0%`, or no number",
      admit_max_unavailable },
    { "NodeSet",
      ON_BOTH,
      { "updateStrategy.scheduledUpdate.duration", "updateStrategy.scheduledUpdate.startTime" },
      "`updateStrategy.scheduledUpdate.duration` is shorter than 1m or no duration; `startTime` is "
      "no time",
      admit_schedule },
    { "NodeSet",
      ON_BOTH,
      { "ssh" },
      "`ssh.sssdConfRef.name` is empty although `ssh.enabled`",
      admit_ssh },
    { "NodeSet",
      ON_BOTH,
      { "template.spec.hostname" },
      "`template.spec.hostname` is no DNS name (it may end in a dash)",
      admit_hostname },
    { "NodeSet",
      ON_BOTH,
      { "extraConf" },
      "a word of `extraConf` is not Key=Value",
      admit_extra_conf },
    { "NodeSet", ON_BOTH, { "ordinalPadding" }, "`ordinalPadding` is negative", admit_padding },
    { "NodeSet",
      ON_UPDATE,
      { "volumeClaimTemplates" },
      "`volumeClaimTemplates` changes",
      admit_claim_templates },
    { "Token", ON_BOTH, { "lifetime" }, "`lifetime` is no duration", check_lifetime },
    { "Controller, Accounting, RestApi, LoginSet",
      ON_BOTH,
      { "service.spec.externalIPs" },
      "warning: `service.spec.externalIPs` is given, and ignored",
      warn_of_external_ips },
};

static const struct rule *const rules_end = rules + sizeof(rules) / sizeof(rules[0]);

static const struct json *at_path(const struct json *object, const char *path)
{
    const struct json *value = json_get(object, "spec");
    struct str rest = str_of(path), member;

    while (str_next(&rest, '.', &member))
        value = json_get_str(value, member);
    return value;
}

static bool applies(const struct rule *rule, const struct admit_check *check)
{
    if (!is_one_of(rule->kinds, check->kind) ||
        !(rule->moment & (check->old ? ON_UPDATE : ON_CREATE)))
        return false;
    if (!check->old)
        return true;
    for (unsigned i = 0; i < MAX_READS && rule->reads[i]; i++)
        if (!json_equal(at_path(check->object, rule->reads[i]),
                        at_path(check->old, rule->reads[i])))
            return true;
    return false;
}

void admit_check(struct admit_check *check)
{
    if (json_exists(json_at(check->object, "metadata", "deletionTimestamp")))
        return;
    check_blocks(check);
    if (check->mistyped.count > 0)
        return; /* rules read what has its type */
    for (const struct rule *rule = rules; rule < rules_end; rule++)
        if (applies(rule, check))
            rule->check(check);
}

void admit_rules_describe(struct buf *out)
{
    static const char *const moments[] = { "", "create", "update", "create, update" };

    buf_add_text(out, "| kinds | when | what is refused |\n|---|---|---|\n");
    for (const struct rule *rule = rules; rule < rules_end; rule++)
        buf_printf(out, "| %s | %s | %s |\n", rule->kinds, moments[rule->moment], rule->what);
}
