/* terminal.c - the frame of the commands for a person at a terminal. */
#include "cmd/terminal.h"

#include "cli/text.h"
#include "cmd/cmd.h"
#include "io/http_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    MAX_MEMORY = 1 << 30,
    MAX_OUT = 256 << 20,
    SECOND_US = 1000000,
    MAX_WORDS = 16,
    MAX_MESSAGE = 64 << 10,
    MAX_ESCAPED = 4096
};

#define VIEW_GROUP "view.slinky.slurm.net"

const struct kube_resource terminal_view_jobs = { VIEW_GROUP, "v1alpha1", "jobs", "SlurmJob",
                                                  false };
const struct kube_resource terminal_view_workloads = { VIEW_GROUP, "v1alpha1", "workloads",
                                                       "Workload", true };
const struct kube_resource terminal_view_checks = { VIEW_GROUP, "v1alpha1", "checks", "Checks",
                                                    false };
const struct kube_resource terminal_view_nodes = { VIEW_GROUP, "v1alpha1", "nodes", "SlurmNode",
                                                   false };

int terminal_fail(const struct terminal *terminal, enum terminal_exit code, const char *text)
{
    auto_buf struct buf safe;

    buf_init(&safe, MAX_MESSAGE);
    text_add_safe(&safe, str_of(text), false);
    (void)fprintf(stderr, "%s %s: %s\n", cmd_program(), terminal->name, buf_text(&safe));
    return (int)code;
}

int terminal_print(const struct terminal *terminal)
{
    auto_buf struct buf safe;

    buf_init(&safe, 2 * MAX_OUT);
    text_add_safe(&safe, buf_str(&terminal->out), terminal->flags.is_json);
    (void)fputs(buf_text(&safe), stdout);
    return TERMINAL_OK;
}

const char *terminal_namespace(const struct terminal *terminal)
{
    return terminal->flags.ns && terminal->flags.ns[0] ? terminal->flags.ns
                                                       : terminal->api.config->ns;
}

void terminal_fetch(struct terminal *terminal, struct fetch *fetches, size_t count)
{
    fetch_all(terminal->api.loop, terminal->api.api, fetches, count);
}

const char *terminal_escape(struct terminal *terminal, struct str text)
{
    auto_buf struct buf out;

    buf_init(&out, MAX_ESCAPED);
    http_escape(text, &out);
    return arena_strdup(&terminal->arena, buf_text(&out));
}

/* ---- what is missing ---- */

static const char *verb_of(const struct fetch *fetch)
{
    return fetch->path || fetch->request.verb == KUBE_GET ? "get"
           : fetch->request.verb == KUBE_LIST             ? "list"
           : fetch->request.verb == KUBE_CREATE           ? "create"
                                                          : "patch";
}

const char *terminal_missing(struct terminal *terminal, const struct fetch *fetch)
{
    const char *lacks = terminal_lacks(terminal, fetch);

    return lacks[0] ? arena_printf(&terminal->arena, "not shown: %s", lacks) : "";
}

const char *terminal_lacks(struct terminal *terminal, const struct fetch *fetch)
{
    const struct kube_request *request = &fetch->request;
    const struct kube_resource *resource = request->resource;
    bool is_view = resource && strcmp(resource->group, VIEW_GROUP) == 0;
    const char *scope;

    if (fetch->doc || fetch->text.len > 0)
        return "";
    if (is_view && !resource->namespaced && fetch->status == 404)
        return "this cluster has no view API (chart slurm-exporter, view.enabled)";
    if (fetch->status != 403 || !resource || fetch->is_text)
        return arena_strdup(&terminal->arena, fetch->message);
    scope = !resource->namespaced ? ""
            : request->ns && request->ns[0]
                ? arena_printf(&terminal->arena, " in namespace %s", request->ns)
                : " in all namespaces";
    return arena_printf(&terminal->arena, "needs the right to %s %s%s%s%s%s%s%s%s%s",
                        verb_of(fetch), resource->plural, request->subresource ? "/" : "",
                        request->subresource ? request->subresource : "",
                        resource->group[0] ? "." : "", resource->group, scope,
                        fetch->role            ? " (Role "
                        : !is_view             ? ""
                        : resource->namespaced ? " (ClusterRole slinc-why)"
                                               : " (ClusterRole slinc-viewer)",
                        fetch->role ? fetch->role : "", fetch->role ? ")" : "");
}

enum terminal_exit terminal_exit_of(const struct fetch *fetch)
{
    return fetch->status == 403   ? TERMINAL_FORBIDDEN
           : fetch->status == 404 ? TERMINAL_NOT_FOUND
                                  : TERMINAL_FAILED;
}

int terminal_refuse(struct terminal *terminal, const struct fetch *fetch, const char *what)
{
    const char *text = fetch->status == 404
                           ? arena_printf(&terminal->arena, "there is no %s %s in namespace %s",
                                          what, fetch->request.name, terminal_namespace(terminal))
                           : terminal_lacks(terminal, fetch);

    return terminal_fail(terminal, terminal_exit_of(fetch), text);
}

/* ---- running ---- */

static bool wants_colours(const struct terminal_flags *values)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

    if (!str_is(str_of(values->color), "auto"))
        return str_is(str_of(values->color), "always");
    return isatty(STDOUT_FILENO) && !(no_color && no_color[0]) && term &&
           !str_is(str_of(term), "dumb");
}

static void print_help(const struct terminal_command *command)
{
    auto_buf struct buf out;

    buf_init(&out, 1 << 18);
    buf_printf(&out, "%s %s: %s\n\nusage: %s %s %s[flags]\n\nflags:\n", cmd_program(),
               command->name, command->what, cmd_program(), command->name, command->words);
    flags_help(command->flags, &out);
    buf_add_text(&out, "\nexit code: 0 answered, 1 failed, 2 usage, 3 not found, 4 forbidden\n");
    if (command->help)
        command->help(&out);
    (void)fputs(buf_text(&out), stdout);
}

static int open_and_run(struct terminal *terminal, const struct terminal_command *command,
                        int count, char **words)
{
    const struct process_flags flags = { .kubeconfig = terminal->flags.kubeconfig,
                                         .context = terminal->flags.context };
    bool is_offline = command->is_offline && (terminal->flags.list || terminal->flags.client);
    struct err err = { .class = 0 };
    int code;

    if (!is_offline && process_api_open(&terminal->api, &flags, &err) < 0)
        terminal->without_api = arena_strdup(&terminal->arena, err.text);
    if (terminal->without_api && !command->may_lack_api) {
        code = terminal_fail(terminal, TERMINAL_FAILED, terminal->without_api);
    } else {
        terminal->show = (struct show_options){
            .partition = terminal->flags.partition ? terminal->flags.partition : "",
            .user = terminal->flags.user ? terminal->flags.user : "",
            .without_head = terminal->flags.no_headers,
            .colours = wants_colours(&terminal->flags),
        };
        if (terminal->api.loop)
            terminal->show.now_s = clock_wall_us(loop_clock(terminal->api.loop)) / SECOND_US;
        code = command->run(terminal, count, words);
    }
    process_api_close(&terminal->api);
    return code;
}

int terminal_run(const struct terminal_command *command, int argc, char **argv)
{
    struct terminal terminal = { .name = command->name };
    char *words[MAX_WORDS];
    struct err err = { .class = 0 };
    int count = 0, code;
    bool help;

    if (flags_parse_mixed(command->flags, argc, argv, &terminal.flags, &help, words, MAX_WORDS,
                          &count, &err) < 0)
        return terminal_fail(&terminal, TERMINAL_USAGE, err.text);
    if (help) {
        print_help(command);
        return TERMINAL_OK;
    }
    terminal.flags.is_json = str_is(str_of(terminal.flags.output), "json");
    if (terminal.flags.output[0] && !terminal.flags.is_json)
        return terminal_fail(&terminal, TERMINAL_USAGE, "--output: only json is known");
    arena_init(&terminal.arena, MAX_MEMORY);
    buf_init(&terminal.out, MAX_OUT);
    code = open_and_run(&terminal, command, count, words);
    buf_done(&terminal.out);
    arena_done(&terminal.arena);
    return code;
}
