/* cmd_view.c - `slinc queue` and `slinc nodes`: lists of the view API of the exporter. */
#include "cmd/terminal.h"

static const struct flag queue_flags[] = {
    { "partition", FLAG_TEXT, TERMINAL_AT(partition), "", "only this partition" },
    { "p", FLAG_TEXT, TERMINAL_AT(partition), NULL, "as --partition" },
    { "user", FLAG_TEXT, TERMINAL_AT(user), "", "only jobs of this user" },
    { "u", FLAG_TEXT, TERMINAL_AT(user), NULL, "as --user" },
    { "no-headers", FLAG_BOOL, TERMINAL_AT(no_headers), "false",
      "without the first line of a table" },
    TERMINAL_FLAGS,
};

static const struct flag nodes_flags[] = {
    { "partition", FLAG_TEXT, TERMINAL_AT(partition), "", "only this partition" },
    { "p", FLAG_TEXT, TERMINAL_AT(partition), NULL, "as --partition" },
    { "no-headers", FLAG_BOOL, TERMINAL_AT(no_headers), "false",
      "without the first line of a table" },
    TERMINAL_FLAGS,
};

static int run_list(struct terminal *terminal, int count, const struct kube_resource *resource,
                    void (*show)(const struct json *list, const struct show_options *options,
                                 struct arena *arena, struct buf *out))
{
    struct fetch fetch = {
        .request = { .verb = KUBE_LIST, .resource = resource, .timeout_us = TERMINAL_ANSWER_US }
    };

    if (count > 0)
        return terminal_fail(terminal, TERMINAL_USAGE, "takes no arguments; see --help");
    terminal_fetch(terminal, &fetch, 1);
    if (!fetch.doc)
        return terminal_fail(terminal, terminal_exit_of(&fetch),
                             terminal_missing(terminal, &fetch));
    if (terminal->flags.is_json)
        json_write_pretty(json_root(fetch.doc), &terminal->out);
    else
        show(json_root(fetch.doc), &terminal->show, &terminal->arena, &terminal->out);
    fetch_done(&fetch, 1);
    return terminal_print(terminal);
}

static int run_queue(struct terminal *terminal, int count, char **words)
{
    (void)words;
    return run_list(terminal, count, &terminal_view_jobs, show_queue);
}

static int run_nodes(struct terminal *terminal, int count, char **words)
{
    (void)words;
    return run_list(terminal, count, &terminal_view_nodes, show_nodes);
}

const struct terminal_command terminal_queue = { .name = "queue",
                                                 .words = "",
                                                 .what = "lists the jobs that wait, and why",
                                                 .kinds = "",
                                                 .flags = queue_flags,
                                                 .run = run_queue };
const struct terminal_command terminal_nodes = { .name = "nodes",
                                                 .words = "",
                                                 .what = "lists nodes by state, and who holds them",
                                                 .kinds = "",
                                                 .flags = nodes_flags,
                                                 .run = run_nodes };
