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

struct listing { /* what a command lists */
    const struct kube_resource *resource;
    bool (*has)(const struct json *item, const struct show_options *options);
    void (*show)(const struct json *list, const struct show_options *options, struct arena *arena,
                 struct buf *out);
};

/* The document, with the items that are wanted. */
static void write_json(const struct listing *list, const struct json *root,
                       const struct show_options *options, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *copy = json_new_object(build), *items;
    struct json_iter iter = json_iter(root);
    const struct json *value;
    struct str name;

    while (json_next_member(&iter, &name, &value))
        if (!str_is(name, "items"))
            json_put(build, copy, name.at, json_copy(build, value));
    items = json_put_array(build, copy, "items");
    iter = json_iter(json_get(root, "items"));
    while (json_next_item(&iter, &value))
        if (list->has(value, options))
            json_push(items, json_copy(build, value));
    json_mut_write_pretty(copy, out);
}

static int run_list(struct terminal *terminal, int count, const struct listing *list)
{
    struct fetch fetch = { .request = { .verb = KUBE_LIST,
                                        .resource = list->resource,
                                        .timeout_us = TERMINAL_ANSWER_US } };

    if (count > 0)
        return terminal_fail(terminal, TERMINAL_USAGE, "takes no arguments; see --help");
    terminal_fetch(terminal, &fetch, 1);
    if (!fetch.doc)
        return terminal_fail(terminal, terminal_exit_of(&fetch), terminal_lacks(terminal, &fetch));
    if (terminal->flags.is_json)
        write_json(list, json_root(fetch.doc), &terminal->show, &terminal->out);
    else
        list->show(json_root(fetch.doc), &terminal->show, &terminal->arena, &terminal->out);
    fetch_done(&fetch, 1);
    return terminal_print(terminal);
}

static int run_queue(struct terminal *terminal, int count, char **words)
{
    static const struct listing list = { &terminal_view_jobs, show_queue_has, show_queue };

    (void)words;
    return run_list(terminal, count, &list);
}

static int run_nodes(struct terminal *terminal, int count, char **words)
{
    static const struct listing list = { &terminal_view_nodes, show_nodes_has, show_nodes };

    (void)words;
    return run_list(terminal, count, &list);
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
