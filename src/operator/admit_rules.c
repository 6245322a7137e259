/* admit_rules.c - the rules for custom resources as a table, and those of all kinds but NodeSet. */
#include "operator/admit_rules.h"

#include "codec/duration.h"
#include "kube/kinds.h"
#include "kube/types.h"
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

static const struct json *now_at(const struct admit_check *check, const char *path)
{
    return spec_at(json_get(check->object, "spec"), path);
}

static const struct json *old_at(const struct admit_check *check, const char *path)
{
    return spec_at(json_get(check->old, "spec"), path);
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

void admit_config_files(struct admit_check *check, const struct json *value)
{
    struct json_iter refs = json_iter(value);
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
        case REVIEW_EXISTS:
            check_files(check, i, name, json_get(map, "data"));
            break;
        case REVIEW_ABSENT:
            admit_deny(check,
                       "spec.configFileRefs[%u].name: ConfigMap " STR_FMT
                       " does not exist in namespace " STR_FMT,
                       i, STR_ARG(shown(name)), STR_ARG(check->ns));
            break;
        case REVIEW_NOT_READ_YET:
            check->is_early = true;
            break;
        case REVIEW_CANNOT_BE_READ:
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
    case REVIEW_EXISTS:
        if (!has_mode(claim, "ReadWriteMany"))
            admit_deny(check,
                       "spec.persistence.existingClaim: PersistentVolumeClaim " STR_FMT
                       " is not ReadWriteMany, which spec.ha needs",
                       STR_ARG(shown(name)));
        break;
    case REVIEW_NOT_READ_YET:
        check->is_early = true;
        break;
    case REVIEW_ABSENT:
    case REVIEW_CANNOT_BE_READ:
        break;
    }
}

/* ---- small ones ---- */

void admit_lifetime(struct admit_check *check, const struct json *value)
{
    struct err err = { .class = 0 };
    int64_t nanos;

    if (duration_parse(json_str(value), &nanos, &err) < 0)
        admit_deny(check, "spec.lifetime: %s", err.text);
}

static void warn_of_external_ips(struct admit_check *check)
{
    if (json_len(json_at(admit_spec(check, "service"), "spec", "externalIPs")) > 0)
        admit_warn(check, "spec.service.spec.externalIPs: is ignored");
}

/* ---- fields ---- */

/* What is to be checked against a type of Kubernetes: of a template or a Service its spec. */
static const struct json *typed_part(const struct json *value, const char *type, const char **ret)
{
    bool is_template = strcmp(type, "PodTemplate") == 0;
    bool has_spec = is_template || strcmp(type, "Service") == 0;

    *ret = is_template ? "PodSpec" : has_spec ? "ServiceSpec" : type;
    return has_spec ? json_get(value, "spec") : value;
}

static void add_mistyped(void *context, const char *text)
{
    struct admit_check *check = context;

    if (check->mistyped.count < ADMIT_MAX_FINDINGS)
        check->mistyped.at[check->mistyped.count++] = str_of(arena_strdup(check->arena, text));
}

static void check_types(struct admit_check *check, const struct spec_field *fields)
{
    for (const struct spec_field *field = fields; field->path; field++) {
        const char *type;
        const struct json *value = typed_part(now_at(check, field->path), field->type, &type);
        const struct json *old = typed_part(old_at(check, field->path), field->type, &type);

        if (kube_type_is_known(type) && !(check->old && json_equal(value, old)))
            kube_type_check(type,
                            arena_printf(check->arena, "spec.%s%s", field->path,
                                         type == field->type ? "" : ".spec"),
                            value, add_mistyped, check);
    }
}

static bool is_ref(const struct spec_field *field)
{
    return strcmp(field->type, "Ref") == 0 || strcmp(field->type, "KeyRef") == 0;
}

static void check_fixed(struct admit_check *check, const struct spec_field *field,
                        const struct json *value, const struct json *old)
{
    struct str before = json_str(json_get(old, "name"));

    if (is_ref(field) && !str_eq(before, json_str(json_get(value, "name"))))
        admit_deny(check, "spec.%s.name: cannot be changed, it is \"" STR_FMT "\"", field->path,
                   STR_ARG(shown(before)));
    else if (!is_ref(field) && json_len(value) + json_len(old) > 0)
        admit_deny(check, "spec.%s: cannot be changed", field->path);
}

/* What the rows of the kind say of a field that is new or was changed. */
static void check_field(struct admit_check *check, const struct spec_field *field)
{
    const struct json *value = now_at(check, field->path), *old = old_at(check, field->path);

    if (check->old && json_equal(value, old))
        return;
    if (check->old && field->traits & SPEC_FIXED)
        check_fixed(check, field, value, old);
    if (field->traits & SPEC_NAMED && json_str(json_get(value, "name")).len == 0)
        admit_deny(check, "spec.%s.name: is empty, it must name an object: %s", field->path,
                   field->words);
    if (strcmp(field->type, "count") == 0 && json_i64_or(value, 0) < 0)
        admit_deny(check, "spec.%s: is negative", field->path);
    if (field->check && json_exists(value))
        field->check(check, value);
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
      { "ha.enabled", "persistence.existingClaim" },
      "`persistence.existingClaim` is not ReadWriteMany although `ha.enabled`",
      check_shared_claim },
    { "NodeSet",
      ON_BOTH,
      { "template.spec.hostname" },
      "`template.spec.hostname` is no DNS name (it may end in a dash)",
      admit_hostname },
    { "Controller, Accounting, RestApi, LoginSet",
      ON_BOTH,
      { "service.spec.externalIPs" },
      "warning: `service.spec.externalIPs` is given, and ignored",
      warn_of_external_ips },
};

static const struct rule *const rules_end = rules + sizeof(rules) / sizeof(rules[0]);

static bool applies(const struct rule *rule, const struct admit_check *check)
{
    if (!is_one_of(rule->kinds, check->kind) ||
        !(rule->moment & (check->old ? ON_UPDATE : ON_CREATE)))
        return false;
    if (!check->old)
        return true;
    for (unsigned i = 0; i < MAX_READS && rule->reads[i]; i++)
        if (!json_equal(now_at(check, rule->reads[i]), old_at(check, rule->reads[i])))
            return true;
    return false;
}

void admit_check(struct admit_check *check)
{
    const struct spec_field *fields = operator_fields_of(check->kind);

    if (json_exists(json_at(check->object, "metadata", "deletionTimestamp")))
        return;
    check_types(check, fields);
    if (check->mistyped.count > 0)
        return; /* the rest reads what has its type */
    for (const struct spec_field *field = fields; field->path; field++)
        check_field(check, field);
    for (const struct rule *rule = rules; rule < rules_end; rule++)
        if (applies(rule, check))
            rule->check(check);
}

static void describe(struct buf *out, const char *kind, const struct spec_field *field)
{
    if (field->traits & SPEC_FIXED)
        buf_printf(out, "| %s | update | `%s%s` changes |\n", kind, field->path,
                   is_ref(field) ? ".name" : "");
    if (field->traits & SPEC_NAMED)
        buf_printf(out, "| %s | create, update | `%s.name` is empty |\n", kind, field->path);
    if (strcmp(field->type, "count") == 0)
        buf_printf(out, "| %s | create, update | `%s` is negative |\n", kind, field->path);
    if (field->check)
        buf_printf(out, "| %s | create, update | `%s`: %s |\n", kind, field->path, field->refuses);
}

void admit_rules_describe(struct buf *out)
{
    static const char *const moments[] = { "", "create", "update", "create, update" };

    buf_add_text(out, "| kinds | when | what is refused |\n|---|---|---|\n");
    for (const struct rule *rule = rules; rule < rules_end; rule++)
        buf_printf(out, "| %s | %s | %s |\n", rule->kinds, moments[rule->moment], rule->what);
    for (size_t i = 0; i < operator_kind_count; i++)
        for (const struct spec_field *field = operator_kinds[i].fields; field && field->path;
             field++)
            describe(out, operator_kinds[i].kind->resource->kind, field);
}
