/* cmd_drain.c - `slinc drain` and `slinc resume`: marks a Kubernetes node or a worker of a NodeSet.
 *
 * Slurm is never called: the bridge and the operator see the mark and drain the node there. */
#include "cmd/terminal.h"

#include "cli/mark.h"

#include <stdio.h>

static const struct flag drain_flags[] = {
    TERMINAL_NAMESPACE,
    { "reason", FLAG_TEXT, TERMINAL_AT(reason), "", "why; Slurm shows it (of a node)" },
    TERMINAL_FLAGS,
};

static const struct flag resume_flags[] = { TERMINAL_NAMESPACE, TERMINAL_FLAGS };

static void write_result(struct terminal *terminal, const struct mark *mark)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);

    if (!terminal->flags.is_json) {
        buf_printf(&terminal->out, "%s\n", mark->said);
        return;
    }
    json_put_text(build, root, "apiVersion", "view.slinky.slurm.net/v1alpha1");
    json_put_text(build, root, "kind", "Marked");
    json_put_text(build, root, "object", mark->is_node ? "Node" : "Pod");
    json_put_text(build, root, "name", mark->name);
    json_put_bool(build, root, "changed", mark->patch[0] != '\0');
    json_put_text(build, root, "text", mark->said);
    json_mut_write_pretty(root, &terminal->out);
}

static int patch(struct terminal *terminal, const struct mark *mark)
{
    struct fetch fetch = { .request = { .verb = KUBE_MERGE_PATCH,
                                        .resource = mark->is_node ? &kube_nodes : &kube_pods,
                                        .ns = mark->is_node ? NULL : terminal_namespace(terminal),
                                        .name = mark->name,
                                        .body = str_of(mark->patch),
                                        .timeout_us = TERMINAL_ANSWER_US } };
    int code = TERMINAL_OK;

    if (mark->patch[0])
        terminal_fetch(terminal, &fetch, 1);
    if (mark->patch[0] && fetch.outcome != KUBE_DONE)
        code = terminal_fail(terminal, terminal_exit_of(&fetch), terminal_lacks(terminal, &fetch));
    else
        write_result(terminal, mark);
    fetch_done(&fetch, 1);
    return code == TERMINAL_OK ? terminal_print(terminal) : code;
}

/* A node or a worker, whichever has the name; `node NAME` and `worker NAME` say which. */
static int run(struct terminal *terminal, int count, char **words, bool drains)
{
    struct str kind = str_of(count == 2 ? words[0] : "");
    const char *name = count > 0 ? words[count - 1] : "";
    bool says_node = str_is(kind, "node"),
         says_worker = str_is(kind, "worker") || str_is(kind, "pod");
    struct fetch fetches[2] = {
        { .request = { KUBE_GET, says_worker ? NULL : &kube_nodes, NULL, name,
                       .timeout_us = TERMINAL_ANSWER_US } },
        { .request = { KUBE_GET, says_node ? NULL : &kube_pods, terminal_namespace(terminal), name,
                       .timeout_us = TERMINAL_ANSWER_US } },
    };
    struct mark mark = { .name = name, .drains = drains, .arena = &terminal->arena };
    struct err err = { .class = 0 };
    int code;

    if (count < 1 || count > 2 || (count == 2 && !says_node && !says_worker))
        return terminal_fail(terminal, TERMINAL_USAGE,
                             "wants NAME, `node NAME` or `worker NAME`; see --help");
    mark.reason = terminal->flags.reason ? terminal->flags.reason : "";
    terminal_fetch(terminal, fetches, 2);
    if (!fetches[0].doc && !fetches[1].doc)
        code = terminal_refuse(terminal, &fetches[says_worker || fetches[0].status == 404],
                               says_node ? "node" : "node or worker");
    else if (mark_plan(&mark, fetch_root(&fetches[0]), fetch_root(&fetches[1]), &err) < 0)
        code = terminal_fail(terminal, TERMINAL_FAILED, err.text);
    else
        code = patch(terminal, &mark);
    fetch_done(fetches, 2);
    return code;
}

static int run_drain(struct terminal *terminal, int count, char **words)
{
    return run(terminal, count, words, true);
}

static int run_resume(struct terminal *terminal, int count, char **words)
{
    return run(terminal, count, words, false);
}

const struct terminal_command terminal_drain = {
    .name = "drain",
    .words = "[node|worker] NAME ",
    .what = "takes a node or a worker out of service: jobs there end as usual, none starts",
    .kinds = "node worker",
    .flags = drain_flags,
    .run = run_drain,
};
const struct terminal_command terminal_resume = {
    .name = "resume",
    .words = "[node|worker] NAME ",
    .what = "puts a node or a worker back into service",
    .kinds = "node worker",
    .flags = resume_flags,
    .run = run_resume,
};
