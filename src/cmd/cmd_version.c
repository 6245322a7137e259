/* cmd_version.c - `slinc version`: the version of this program, of Kubernetes, of our servers in
 * the cluster, each asked itself, and of Slurm, as the servers know it. */
#include "cli/replica.h"
#include "cmd/cmd.h"
#include "cmd/terminal.h"

enum { ANSWER_US = 5 * 1000000 };

static const struct flag version_flags[] = {
    { "client", FLAG_BOOL, TERMINAL_AT(client), "false", "only that of this program" },
    TERMINAL_FLAGS,
};

static const char *const servers[] = { "operator", "bridge", "exporter" };

/* Kubernetes, Slurm, the servers or why they are not known. */
enum { SERVERS = sizeof(servers) / sizeof(servers[0]), MAX_ROWS = 2 + SERVERS };

struct row {
    const char *name, *version, *pod; /* version "": not known */
    const char *missing;              /* why */
};

static const char *text_of(struct terminal *terminal, const struct json *value)
{
    return arena_printf(&terminal->arena, STR_FMT, STR_ARG(json_str(value)));
}

static void write_text(struct terminal *terminal, const struct row *rows, size_t count)
{
    buf_printf(&terminal->out, "slinc %s\n", cmd_version);
    for (size_t i = 0; i < count; i++)
        if (rows[i].version[0])
            buf_printf(&terminal->out, "%s %s%s%s\n", rows[i].name, rows[i].version,
                       rows[i].pod[0] ? "  " : "", rows[i].pod);
        else
            buf_printf(&terminal->out, "%s not known: %s\n", rows[i].name, rows[i].missing);
}

static void write_json(struct terminal *terminal, const struct row *rows, size_t count)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build), *list;

    json_put_text(build, root, "slinc", cmd_version);
    list = json_put_array(build, root, "servers");
    for (size_t i = 0; i < count; i++) {
        struct json_mut *one = json_new_object(build);

        json_put_text(build, one, "name", rows[i].name);
        json_put_text(build, one, rows[i].version[0] ? "version" : "missing",
                      rows[i].version[0] ? rows[i].version : rows[i].missing);
        if (rows[i].pod[0])
            json_put_text(build, one, "pod", rows[i].pod);
        json_push(list, one);
    }
    json_mut_write_pretty(root, &terminal->out);
}

/* Which pods run our servers; a server that no pod runs is not asked. */
static void choose_pods(struct terminal *terminal, const struct json *pods,
                        const struct json *leases, struct fetch *fetches, struct row *rows)
{
    for (size_t i = 0; i < SERVERS; i++) {
        const struct json *pod = replica_choose(pods, leases, servers[i]);

        fetches[i] = (struct fetch){ .path = NULL };
        rows[i] = (struct row){ servers[i], "", "", "" };
        if (!pod)
            continue;
        rows[i].pod = arena_printf(&terminal->arena, STR_FMT "/" STR_FMT,
                                   STR_ARG(json_str(json_at(pod, "metadata", "namespace"))),
                                   STR_ARG(json_str(json_at(pod, "metadata", "name"))));
        fetches[i].request =
            (struct kube_request){ .verb = KUBE_GET,
                                   .resource = &kube_pods,
                                   .ns = text_of(terminal, json_at(pod, "metadata", "namespace")),
                                   .subresource = "proxy",
                                   .timeout_us = ANSWER_US };
        fetches[i].path = replica_path(&terminal->arena, pod, "/version");
    }
}

static void read_row(struct terminal *terminal, struct row *row, const char *field,
                     const struct fetch *fetch)
{
    const struct json *version = json_get(fetch_root(fetch), field);

    row->version = text_of(terminal, version);
    row->missing = row->version[0]        ? ""
                   : fetch->status == 404 ? "it is older than 1.0.0, or no server of Slinc"
                   : fetch->doc           ? "its answer names none"
                                          : terminal_lacks(terminal, fetch);
}

/* A server that reads no /conf, which Slurm has from 26.05 on, does not know it. */
static bool read_slurm(struct terminal *terminal, struct row *row, const struct fetch *fetch)
{
    row->version = text_of(terminal, json_get(fetch_root(fetch), "slurm"));
    return row->version[0] != '\0';
}

static size_t read_servers(struct terminal *terminal, struct row rows[MAX_ROWS])
{
    enum { VERSION, PODS, LEASES, LISTS };
    struct fetch lists[LISTS] = {
        [VERSION] = { .path = "/version", .request = { .timeout_us = ANSWER_US } },
        [PODS] = { .request = { KUBE_LIST, &kube_pods, .timeout_us = ANSWER_US } },
        [LEASES] = { .request = { KUBE_LIST, &kube_leases, .timeout_us = ANSWER_US } },
    };
    struct fetch fetches[SERVERS];
    struct row of_servers[SERVERS], slurm = { "Slurm", "", "", "" };
    size_t count = 1;

    terminal_fetch(terminal, lists, LISTS);
    rows[0] = (struct row){ "Kubernetes", "", "", "" };
    read_row(terminal, &rows[0], "gitVersion", &lists[VERSION]);
    choose_pods(terminal, fetch_root(&lists[PODS]), fetch_root(&lists[LEASES]), fetches,
                of_servers);
    terminal_fetch(terminal, fetches, SERVERS);
    for (size_t i = 0; i < SERVERS && !slurm.version[0]; i++)
        if (fetches[i].path && read_slurm(terminal, &slurm, &fetches[i]))
            rows[count++] = slurm;
    for (size_t i = 0; i < SERVERS; i++) {
        if (!fetches[i].path)
            continue;
        read_row(terminal, &of_servers[i], "version", &fetches[i]);
        rows[count++] = of_servers[i];
    }
    if (rows[0].version[0] && !lists[PODS].doc)
        rows[count++] = (struct row){ "servers", "", "", terminal_lacks(terminal, &lists[PODS]) };
    fetch_done(fetches, SERVERS);
    fetch_done(lists, LISTS);
    return count;
}

static int run_version(struct terminal *terminal, int count, char **words)
{
    struct row rows[MAX_ROWS];
    size_t found = 0;

    (void)words;
    if (count > 0)
        return terminal_fail(terminal, TERMINAL_USAGE, "takes no arguments; see --help");
    if (terminal->without_api && (terminal->flags.kubeconfig || terminal->flags.context))
        return terminal_fail(terminal, TERMINAL_FAILED, terminal->without_api);
    if (terminal->api.loop && !terminal->without_api)
        found = read_servers(terminal, rows);
    if (terminal->flags.is_json)
        write_json(terminal, rows, found);
    else
        write_text(terminal, rows, found);
    return terminal_print(terminal);
}

const struct terminal_command terminal_version = {
    .name = "version",
    .words = "",
    .what = "prints its version, and those of Kubernetes, Slurm and our servers in the cluster; "
            "without an API server only its own",
    .kinds = "",
    .flags = version_flags,
    .run = run_version,
    .is_offline = true,
    .may_lack_api = true,
};
