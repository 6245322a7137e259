/* slurm_conf.c - slurm.conf, section by section. */
#include "operator/slurm_conf.h"

#include "codec/slurmconf.h"
#include "codec/slurmconf_merge.h"
#include "operator/build.h"
#include "operator/gpus.h"
#include "operator/names.h"
#include "operator/nodeset_partition.h"
#include "operator/worker_identity.h"

#include <stdlib.h>
#include <strings.h>

enum { MAX_SCRIPTS = 1024, MAX_NODE_COUNT = 1024 };

struct writer {
    const struct slurm_conf_input *in;
    struct arena *arena;
    struct buf *out;
    struct conf conf;
    struct err *err;
    int result; /* of the first line that could not be written */
};

static void option(struct writer *writer, const char *key, const char *value)
{
    if (writer->result == 0)
        writer->result = conf_option(&writer->conf, key, str_of(value), writer->err);
}

#define TEXT(writer, ...) arena_printf((writer)->arena, __VA_ARGS__)

const char *slurm_cluster_name(struct arena *arena, const struct kube_object *controller)
{
    struct str name = json_str(json_get(operator_spec(controller), "clusterName"));

    return name.len > 0 ? arena_strndup(arena, name.at, name.len)
                        : arena_printf(arena, "%s_%s", controller->ns, controller->name);
}

/* ---- sections ---- */

static void write_hosts(struct writer *writer)
{
    const struct kube_object *controller = writer->in->controller;
    const char *name = controller->name, *ns = controller->ns;

    if (writer->in->shape == SHAPE_SINGLE) {
        option(writer, "SlurmctldHost",
               TEXT(writer, "%s-controller-0(%s-controller.%s)", name, name, ns));
        return;
    }
    for (int64_t i = 0; i < writer->in->replicas; i++)
        option(writer, "SlurmctldHost",
               TEXT(writer, "%s-controller-%lld(%s-controller-%lld.%s-controller-internal.%s)",
                    name, (long long)i, name, (long long)i, name, ns));
}

static void write_general(struct writer *writer)
{
    const struct kube_object *controller = writer->in->controller;
    const char *cluster = slurm_cluster_name(writer->arena, controller);

    conf_section(writer->out, "GENERAL");
    option(writer, "ClusterName", cluster);
    option(writer, "SlurmUser", "slurm");
    write_hosts(writer);
    option(writer, "SlurmctldPort", TEXT(writer, "%d", SLURMCTLD_PORT));
    if (writer->in->shape == SHAPE_HA)
        option(writer, "SlurmctldAddr",
               TEXT(writer, "%s-controller.%s", controller->name, controller->ns));
    option(writer, "StateSaveLocation", TEXT(writer, "/var/spool/slurmctld/%s", cluster));
    option(writer, "SlurmdUser", "root");
    option(writer, "SlurmdPort", TEXT(writer, "%d", SLURMD_PORT));
    option(writer, "SlurmdSpoolDir", "/var/spool/slurmd");
    option(writer, "MaxNodeCount", TEXT(writer, "%d", MAX_NODE_COUNT));
}

static void write_logging(struct writer *writer)
{
    conf_section(writer->out, "LOGGING");
    option(writer, "SlurmctldLogFile", "/var/log/slurm/slurmctld.log");
    option(writer, "SlurmSchedLogFile", "/var/log/slurm/slurmctld.log");
    option(writer, "SlurmdLogFile", "/var/log/slurm/slurmd.log");
}

static const char *auth_alt_parameters(const struct json *spec)
{
    return json_exists(json_get(spec, "jwksKeyRef"))
               ? "jwt_key=/etc/slurm/jwt.key,jwks=/etc/slurm/jwks.json"
               : "jwt_key=/etc/slurm/jwt.key";
}

static const char auth_info[] = "use_client_ids";
static const char slurmctld_parameters[] = "enable_configless,reconfig_on_restart";

static void write_plugins(struct writer *writer)
{
    const struct json *spec = operator_spec(writer->in->controller);

    conf_section(writer->out, "PLUGINS & PARAMETERS");
    option(writer, "AuthType", "auth/slurm");
    option(writer, "CredType", "cred/slurm");
    option(writer, "AuthAltTypes", "auth/jwt");
    if (spec_flag(writer->in->controller, "external"))
        return;
    option(writer, "AuthAltParameters", auth_alt_parameters(spec));
    option(writer, "AuthInfo", auth_info);
    option(writer, "SlurmctldParameters", slurmctld_parameters);
    if (spec_flag(writer->in->controller, "metrics.enabled"))
        option(writer, "MetricsType", "metrics/openmetrics");
}

static void write_accounting(struct writer *writer)
{
    const struct kube_object *accounting =
        operator_world_ref(writer->in->world->accountings, writer->in->controller, "accountingRef");
    const struct json *spec = accounting ? operator_spec(accounting) : NULL;
    const struct json *elsewhere = json_get(spec, "externalConfig");
    int64_t port = json_i64_or(json_at(spec, "service", "port"), 0);
    const char *host;

    conf_section(writer->out, "ACCOUNTING");
    if (!accounting) {
        option(writer, "AccountingStorageType", "accounting_storage/none");
        return;
    }
    host = TEXT(writer, "%s-accounting", accounting->name);
    if (spec_flag(accounting, "external")) {
        host = json_str(json_get(elsewhere, "host")).at;
        port = json_i64_or(json_get(elsewhere, "port"), 0);
    }
    option(writer, "AccountingStorageType", "accounting_storage/slurmdbd");
    option(writer, "AccountingStorageHost", host);
    option(writer, "AccountingStoragePort",
           TEXT(writer, "%lld", (long long)(port > 0 ? port : SLURMDBD_PORT)));
}

/* ---- prolog and epilog ---- */

/* The files of all ConfigMaps in this list, sorted. */
static size_t script_names(struct writer *writer, const char *list, const char **names)
{
    const struct kube_object *controller = writer->in->controller;
    struct json_iter refs = json_iter(json_get(operator_spec(controller), list)), files;
    const struct json *ref, *value;
    size_t count = 0;
    struct str key;

    while (writer->result == 0 && json_next_item(&refs, &ref)) {
        struct str name = json_str(json_get(ref, "name"));
        const struct kube_object *map =
            kube_cache_get(writer->in->world->configmaps, controller->ns, name.at);

        if (!map) {
            writer->result = err_set(writer->err, ERR_NOT_FOUND,
                                     "spec.%s: ConfigMap %s does not exist", list, name.at);
            return 0;
        }
        files = json_iter(json_get(operator_tree(map), "data"));
        while (count < MAX_SCRIPTS && json_next_member(&files, &key, &value))
            names[count++] = arena_strndup(writer->arena, key.at, key.len);
    }
    qsort(names, count, sizeof(names[0]), str_compare_texts);
    return count;
}

static void write_scripts(struct writer *writer, const char *title, const char *folder,
                          const char *const lists[2], const char *const keys[2])
{
    const char **names = arena_alloc_array(writer->arena, MAX_SCRIPTS, sizeof(*names));
    bool has_title = false;

    for (size_t i = 0; i < 2; i++) {
        size_t count = script_names(writer, lists[i], names);

        for (size_t k = 0; k < count; k++) {
            if (!has_title)
                conf_section(writer->out, title);
            has_title = true;
            option(writer, keys[i], TEXT(writer, "%s%s", folder, names[k]));
        }
    }
}

static void write_all_scripts(struct writer *writer)
{
    write_scripts(writer, "SLURMCTLD PROLOG & EPILOG", "/etc/slurm/",
                  (const char *const[]){ "prologSlurmctldScriptRefs", "epilogSlurmctldScriptRefs" },
                  (const char *const[]){ "PrologSlurmctld", "EpilogSlurmctld" });
    write_scripts(writer, "PROLOG & EPILOG", "",
                  (const char *const[]){ "prologScriptRefs", "epilogScriptRefs" },
                  (const char *const[]){ "Prolog", "Epilog" });
}

/* ---- NodeSets ---- */

static void write_nodeset(struct writer *writer, const struct kube_object *nodeset)
{
    const char *options = nodeset_partition_options(writer->in->world, writer->arena,
                                                    writer->in->controller, nodeset);
    struct str name = nodeset_slurm_name(nodeset);
    const struct conf_pair pairs[] = { { .key = STR("NodeSet"), .value = name },
                                       { .key = STR("Feature"), .value = name } };

    if (writer->result == 0)
        writer->result = conf_line(&writer->conf, pairs, 2, writer->err);
    if (writer->result < 0 || !options)
        return;
    if (strchr(options, '\n'))
        writer->result =
            err_set(writer->err, ERR_INVALID,
                    "NodeSet %s: spec.partition.config has more than one line", nodeset->name);
    else
        buf_printf(writer->out, "PartitionName=" STR_FMT " Nodes=" STR_FMT " %s\n", STR_ARG(name),
                   STR_ARG(name), options);
}

static void write_nodesets(struct writer *writer)
{
    size_t count;
    const struct kube_object **nodesets =
        nodesets_of(writer->in->world, writer->arena, writer->in->controller, &count);

    if (count == 0)
        return;
    conf_section(writer->out, "NODESET & PARTITION");
    for (size_t i = 0; i < count; i++)
        write_nodeset(writer, nodesets[i]);
}

/* ---- what Slurm will take from it ---- */

int64_t slurm_conf_max_nodes(const struct kube_object *controller)
{
    struct str rest = json_str(json_get(operator_spec(controller), "extraConf")), line;
    struct str key = STR("MaxNodeCount=");
    int64_t count = MAX_NODE_COUNT;
    size_t digits;

    while (rest.len > 0 && str_next(&rest, '\n', &line)) {
        line = str_trim(line);
        if (line.len <= key.len || strncasecmp(line.at, key.at, key.len) != 0)
            continue;
        line = str_sub(line, key.len, line.len);
        digits = 0;
        while (digits < line.len && line.at[digits] >= '0' && line.at[digits] <= '9')
            digits++;
        (void)str_to_i64(str_sub(line, 0, digits), 1, INT32_MAX, &count, NULL);
    }
    return count;
}

/* ---- the whole ---- */

static void write_extra(struct writer *writer)
{
    const struct json *spec = operator_spec(writer->in->controller);
    struct str extra = json_str(json_get(spec, "extraConf"));
    const struct conf_merge_row rows[] = {
        { .key = "AuthAltParameters", .values = auth_alt_parameters(spec) },
        { .key = "AuthInfo", .values = auth_info },
        { .key = "SlurmctldParameters", .values = slurmctld_parameters },
        { "GresTypes", gpus_gres_types(writer->in->world, writer->arena, writer->in->controller),
          true },
    };

    if (extra.len > 0) {
        conf_section(writer->out, "EXTRA CONFIG");
        buf_add_str(writer->out, extra);
        buf_add_char(writer->out, '\n');
    }
    if (writer->result == 0)
        writer->result = conf_merged(rows, sizeof(rows) / sizeof(rows[0]), extra, writer->arena,
                                     writer->out, writer->err);
}

/* slurmctld runs elsewhere: clients need to find it, and no more. */
static void write_external(struct writer *writer)
{
    const struct json *spec = operator_spec(writer->in->controller);
    const struct json *elsewhere = json_get(spec, "externalConfig");

    conf_section(writer->out, "GENERAL");
    option(writer, "ClusterName", slurm_cluster_name(writer->arena, writer->in->controller));
    option(writer, "SlurmUser", "slurm");
    option(writer, "SlurmctldHost", json_str(json_get(elsewhere, "host")).at);
    option(
        writer, "SlurmctldPort",
        TEXT(writer, "%lld", (long long)json_i64_or(json_get(elsewhere, "port"), SLURMCTLD_PORT)));
    write_plugins(writer);
    write_accounting(writer);
}

int slurm_conf_write(const struct slurm_conf_input *input, struct arena *arena, struct buf *out,
                     struct err *err)
{
    struct writer writer = { .in = input, .arena = arena, .out = out, .err = err };

    conf_begin(&writer.conf, out);
    if (spec_flag(input->controller, "external")) {
        write_external(&writer);
    } else {
        write_general(&writer);
        write_logging(&writer);
        write_plugins(&writer);
        write_accounting(&writer);
        write_all_scripts(&writer);
        write_nodesets(&writer);
        write_extra(&writer);
    }
    return writer.result < 0 ? writer.result : conf_end(&writer.conf, err);
}
