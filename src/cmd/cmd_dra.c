/* cmd_dra.c - `slinc dra`: a kubelet plugin that pins containers to the cores that Slurm chose.
 *
 * `slinc dra --check` looks at the node, prints what it found and ends with 1 when containers could
 * not be pinned there. */
#include "cmd/cmd.h"
#include "cmd/flags.h"
#include "cmd/process.h"
#include "dra/plugin.h"
#include "engine/run.h"

#include <stdio.h>
#include <unistd.h>

struct dra_flags {
    struct process_flags process;
    const char *node, *sys, *kubelet_root, *cdi_folder, *hook;
    const char *health_address, *metrics_address;
    bool check;
};

#define AT(member) offsetof(struct dra_flags, member)

static const struct flag flags[] = {
    { "check", FLAG_BOOL, AT(check), NULL, "say whether this node can pin containers, and end" },
    { "node-name", FLAG_TEXT, AT(node), "",
      "the Node object of this machine; else the host's name" },
    { "kubelet-root", FLAG_TEXT, AT(kubelet_root), "/var/lib/kubelet", "the kubelet's folder" },
    { "cdi-root", FLAG_TEXT, AT(cdi_folder), "/var/run/cdi",
      "where the container runtime looks for device files" },
    { "sysfs", FLAG_TEXT, AT(sys), "/sys", "where cores and control groups are read" },
    { "hook", FLAG_TEXT, AT(hook), "",
      "the hook program; else slinc-cpuset-hook in the folder of this program" },
    { "health-addr", FLAG_TEXT, AT(health_address), ":8081",
      "where /healthz and /readyz are served; 0: nowhere" },
    { "metrics-addr", FLAG_TEXT, AT(metrics_address), ":8080",
      "where /metrics is served, and /debug/state to whoever may get it; 0: nowhere" },
    PROCESS_OWN_FLAGS(AT(process)),
    PROCESS_METRICS_FLAGS(AT(process)),
    { NULL, FLAG_TEXT, 0, NULL, NULL },
};

struct names { /* what flags leave open */
    char node[256], hook[4096];
};

static void fill_names(struct dra_flags *values, struct names *names)
{
    ssize_t length;
    char *slash;

    if (!values->node[0]) {
        (void)gethostname(names->node, sizeof(names->node) - 1);
        values->node = names->node;
    }
    if (values->hook[0])
        return;
    length = readlink("/proc/self/exe", names->hook, sizeof(names->hook) - 64);
    names->hook[length > 0 ? length : 0] = '\0';
    slash = strrchr(names->hook, '/');
    memcpy(slash ? slash + 1 : names->hook, "slinc-cpuset-hook", sizeof("slinc-cpuset-hook"));
    values->hook = names->hook;
}

static struct dra_options options_of(const struct dra_flags *values)
{
    return (struct dra_options){ .node = values->node,
                                 .sys = values->sys,
                                 .kubelet_root = values->kubelet_root,
                                 .cdi_folder = values->cdi_folder,
                                 .hook_program = values->hook };
}

static enum run_exit check(const struct dra_flags *values)
{
    const struct dra_options options = options_of(values);
    struct err err = { .class = 0 };
    struct node_check found;
    auto_buf struct buf out;
    bool is_well;

    buf_init(&out, 1 << 16);
    if (dra_check(&options, &found, &err) < 0) {
        (void)fprintf(stderr, "slinc dra --check: %s\n", err.text);
        return RUN_FAILED;
    }
    node_check_write(&found, &out);
    is_well = !node_check_problem(&found);
    topology_free(found.topology);
    (void)fputs(buf_text(&out), stdout);
    return is_well ? RUN_OK : RUN_FAILED;
}

static enum run_exit run_plugin(struct dra_plugin *plugin, const struct process_api *api,
                                const struct dra_flags *values)
{
    struct loop *loop = api->loop;
    struct metrics *metrics = dra_plugin_metrics(plugin);
    struct health *health = health_new(loop, metrics, dra_plugin_engine(plugin));
    struct run *run = run_new(loop, &(struct run_options){ .engine = dra_plugin_engine(plugin),
                                                           .health = health,
                                                           .metrics = metrics });
    struct process_listeners listeners = { .metrics = NULL };
    struct err err = { .class = 0 };
    enum run_exit code;

    dra_plugin_add_health(plugin, health);
    if (dra_plugin_start(plugin, &err) < 0 ||
        process_listen(
            &listeners,
            &(struct process_serve){ .loop = loop,
                                     .api = api->api,
                                     .of = health,
                                     .flags = &values->process,
                                     .metrics = { "--metrics-addr", values->metrics_address },
                                     .health = { "--health-addr", values->health_address } },
            &err) < 0)
        run_fail(run, &err);
    code = run_loop(run);
    process_listen_end(&listeners);
    run_free(run);
    health_free(health);
    return code;
}

static enum run_exit run_with(const struct process_api *api, const struct dra_flags *values)
{
    struct dra_options options = options_of(values);
    char identity[PROCESS_IDENTITY];
    struct dra_plugin *plugin;
    struct err err = { .class = 0 };
    enum run_exit code;

    process_identity(identity, &options.seed);
    if (dra_plugin_new(api->loop, api->api, &options, &plugin, &err) < 0) {
        process_cannot_start("dra", &values->process, &err);
        return RUN_FAILED;
    }
    code = run_plugin(plugin, api, values);
    dra_plugin_free(plugin);
    return code;
}

static const struct process_command command = {
    .name = "dra",
    .what = "a kubelet plugin that pins containers to the cores that Slurm chose",
    .flags = flags,
    .process_flags = AT(process),
};

int cmd_dra(int argc, char **argv)
{
    struct dra_flags values = { .node = NULL };
    struct process_api api = { .loop = NULL };
    struct names names = { .node = "" };
    struct err err = { .class = 0 };
    enum run_exit code = RUN_FAILED;

    if (!process_begin(&command, argc, argv, &values, &code))
        return (int)code;
    fill_names(&values, &names);
    if (values.check)
        return (int)check(&values);
    if (process_api_open(&api, &values.process, &err) == 0)
        code = run_with(&api, &values);
    else
        process_cannot_start("dra", &values.process, &err);
    process_api_close(&api);
    return (int)code;
}
