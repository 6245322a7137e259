/* cmd_view.c - `slinc queue`, `slinc nodes` and `slinc why`: what a person at a terminal asks.
 *
 * Reads the API server with the rights of the kubeconfig's user, and nothing else. What that user
 * may not read is named, with the right that is missing. */
#include "cli/fetch.h"
#include "cli/show.h"
#include "cmd/cmd.h"
#include "cmd/flags.h"
#include "cmd/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum view_exit { VIEW_OK, VIEW_FAILED, VIEW_USAGE, VIEW_NOT_FOUND, VIEW_FORBIDDEN };

enum { ANSWER_US = 10 * 1000000, SHOW_MEMORY = 1 << 30, MAX_OUT = 256 << 20, SECOND_US = 1000000 };

static const struct kube_resource view_jobs = { "view.slinky.slurm.net", "v1alpha1", "jobs",
                                                "SlurmJob", false };
static const struct kube_resource view_nodes = { "view.slinky.slurm.net", "v1alpha1", "nodes",
                                                 "SlurmNode", false };

struct view_flags {
    const char *partition, *user, *ns, *output, *color, *kubeconfig, *context;
    bool no_headers;
    bool is_json; /* of output */
};

#define AT(member) offsetof(struct view_flags, member)

static const struct flag flags[] = {
    { "partition", FLAG_TEXT, AT(partition), "", "only this partition" },
    { "p", FLAG_TEXT, AT(partition), NULL, "the same" },
    { "user", FLAG_TEXT, AT(user), "", "only jobs of this user" },
    { "u", FLAG_TEXT, AT(user), NULL, "the same" },
    { "namespace", FLAG_TEXT, AT(ns), "", "of the pod; else that of the context" },
    { "n", FLAG_TEXT, AT(ns), NULL, "the same" },
    { "output", FLAG_TEXT, AT(output), "", "json: the same facts for programs" },
    { "o", FLAG_TEXT, AT(output), NULL, "the same" },
    { "no-headers", FLAG_BOOL, AT(no_headers), "false", "without the first line of a table" },
    { "color", FLAG_TEXT, AT(color), "auto", "always, never, or auto: on a terminal" },
    { "kubeconfig", FLAG_TEXT, AT(kubeconfig), NULL, "instead of KUBECONFIG and ~/.kube/config" },
    { "context", FLAG_TEXT, AT(context), NULL, "of the kubeconfig" },
    { NULL, FLAG_TEXT, 0, NULL, NULL },
};

struct view { /* one command */
    const char *name;
    struct view_flags flags;
    struct process_api api;
    struct arena arena;
    struct buf out;
    struct show_options show;
};

static int fail(const struct view *view, enum view_exit code, const char *text)
{
    (void)fprintf(stderr, "slinc %s: %s\n", view->name, text);
    return (int)code;
}

static bool wants_colours(const struct view_flags *values)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

    if (!str_is(str_of(values->color), "auto"))
        return str_is(str_of(values->color), "always");
    return isatty(STDOUT_FILENO) && !(no_color && no_color[0]) && term &&
           !str_is(str_of(term), "dumb");
}

/* ---- reading ---- */

/* Why the view API gave nothing, and what would help. */
static const char *explain(struct arena *arena, const struct fetch *fetch, const char *resource)
{
    if (fetch->status == 403)
        return arena_printf(arena,
                            "not shown: needs the right to list %s.view.slinky.slurm.net "
                            "(ClusterRole slinc-viewer)",
                            resource);
    if (fetch->status == 404)
        return "not shown: this cluster has no view API (chart slurm-exporter, view.enabled)";
    return arena_printf(arena, "not shown: %s", fetch->message);
}

static int exit_of(const struct fetch *fetch)
{
    return fetch->status == 403   ? VIEW_FORBIDDEN
           : fetch->status == 404 ? VIEW_NOT_FOUND
                                  : VIEW_FAILED;
}

static int print(const struct view *view)
{
    (void)fputs(buf_text(&view->out), stdout);
    return VIEW_OK;
}

/* ---- queue and nodes ---- */

static int run_list(struct view *view, const struct kube_resource *resource,
                    void (*show)(const struct json *list, const struct show_options *options,
                                 struct arena *arena, struct buf *out))
{
    struct fetch fetch = { .request = {
                               .verb = KUBE_LIST, .resource = resource, .timeout_us = ANSWER_US } };

    fetch_all(view->api.loop, view->api.api, &fetch, 1);
    if (!fetch.doc)
        return fail(view, (enum view_exit)exit_of(&fetch),
                    explain(&view->arena, &fetch, resource->plural));
    if (view->flags.is_json)
        json_write_pretty(json_root(fetch.doc), &view->out);
    else
        show(json_root(fetch.doc), &view->show, &view->arena, &view->out);
    json_doc_free(fetch.doc);
    return print(view);
}

static int run_queue(struct view *view, int count, char **words)
{
    (void)words;
    if (count > 0)
        return fail(view, VIEW_USAGE, "takes no arguments; see --help");
    return run_list(view, &view_jobs, show_queue);
}

static int run_nodes(struct view *view, int count, char **words)
{
    (void)words;
    if (count > 0)
        return fail(view, VIEW_USAGE, "takes no arguments; see --help");
    return run_list(view, &view_nodes, show_nodes);
}

/* ---- why ---- */

static void write_json(struct view *view, const struct show_story *story)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);

    json_put_text(build, root, "apiVersion", "view.slinky.slurm.net/v1alpha1");
    json_put_text(build, root, "kind", "Why");
    if (story->pod) {
        json_put(build, root, "pod", json_copy(build, json_get(story->pod, "metadata")));
        json_put(build, root, "status", json_copy(build, json_get(story->pod, "status")));
    }
    if (story->job_id > 0)
        json_put_i64(build, root, "job", story->job_id);
    if (story->missing[0])
        json_put_text(build, root, "missing", story->missing);
    json_put_text(build, root, "text", buf_text(&view->out));
    buf_clear(&view->out);
    json_mut_write_pretty(root, &view->out);
}

static int tell_why(struct view *view, const struct show_story *story)
{
    struct err err = { .class = 0 };

    if (show_why(story, &view->show, &view->arena, &view->out, &err) < 0)
        return fail(view, VIEW_NOT_FOUND, err.text);
    if (view->flags.is_json)
        write_json(view, story);
    return print(view);
}

enum { WHY_JOBS, WHY_POD, WHY_EVENTS, WHY_FETCHES };

static int why_pod(struct view *view, const char *name)
{
    const char *ns = view->flags.ns[0] ? view->flags.ns : view->api.config->ns;
    const char *query = arena_printf(&view->arena, "fieldSelector=involvedObject.name%%3D%s", name);
    struct fetch fetches[WHY_FETCHES] = {
        [WHY_JOBS] = { .request = { KUBE_LIST, &view_jobs, .timeout_us = ANSWER_US } },
        [WHY_POD] = { .request = { KUBE_GET, &kube_pods, ns, name, .timeout_us = ANSWER_US } },
        [WHY_EVENTS] = { .request = { KUBE_LIST, &kube_events, ns, .query = query,
                                      .timeout_us = ANSWER_US } },
    };
    struct show_story story = { .missing = "" };
    int code;

    fetch_all(view->api.loop, view->api.api, fetches, WHY_FETCHES);
    if (fetches[WHY_JOBS].doc)
        story.jobs = json_root(fetches[WHY_JOBS].doc);
    else
        story.missing = explain(&view->arena, &fetches[WHY_JOBS], "jobs");
    if (fetches[WHY_EVENTS].doc)
        story.events = json_root(fetches[WHY_EVENTS].doc);
    if (fetches[WHY_POD].doc) {
        story.pod = json_root(fetches[WHY_POD].doc);
        code = tell_why(view, &story);
    } else {
        code = fail(view, (enum view_exit)exit_of(&fetches[WHY_POD]), fetches[WHY_POD].message);
    }
    for (unsigned i = 0; i < WHY_FETCHES; i++)
        json_doc_free(fetches[i].doc);
    return code;
}

static int why_job(struct view *view, int64_t id)
{
    struct fetch fetch = { .request = { KUBE_LIST, &view_jobs, .timeout_us = ANSWER_US } };
    struct show_story story = { .missing = "", .job_id = id };
    int code;

    fetch_all(view->api.loop, view->api.api, &fetch, 1);
    if (!fetch.doc)
        return fail(view, (enum view_exit)exit_of(&fetch), explain(&view->arena, &fetch, "jobs"));
    story.jobs = json_root(fetch.doc);
    code = tell_why(view, &story);
    json_doc_free(fetch.doc);
    return code;
}

/* `why NAME`, `why pod NAME`, `why job ID`; a number alone is a job. */
static int run_why(struct view *view, int count, char **words)
{
    bool says_pod = count == 2 && str_is(str_of(words[0]), "pod");
    bool says_job = count == 2 && str_is(str_of(words[0]), "job");
    const char *name = count > 0 ? words[count - 1] : "";
    int64_t id = 0;
    bool is_number = str_to_i64(str_of(name), 1, INT64_MAX, &id, NULL) == 0;

    if (count < 1 || count > 2 || (count == 2 && !says_pod && !says_job) ||
        (says_job && !is_number))
        return fail(view, VIEW_USAGE, "wants POD, `pod NAME` or `job ID`; see --help");
    return says_job || (is_number && !says_pod) ? why_job(view, id) : why_pod(view, name);
}

/* ---- all three ---- */

static const struct view_command {
    const char *name, *usage, *what;
    int (*run)(struct view *view, int count, char **words);
} commands[] = {
    { "queue", "slinc queue [flags]", "lists the jobs that wait, and why", run_queue },
    { "nodes", "slinc nodes [flags]", "lists nodes by state, and who holds them", run_nodes },
    { "why", "slinc why [pod] NAME | job ID [flags]", "tells why a pod or job waits", run_why },
};

static void print_help(const struct view_command *command)
{
    auto_buf struct buf out;

    buf_init(&out, 1 << 16);
    buf_printf(&out, "slinc %s: %s\n\nusage: %s\n\nflags:\n", command->name, command->what,
               command->usage);
    flags_help(flags, &out);
    buf_add_text(&out, "\nexit code: 0 answered, 1 failed, 2 usage, 3 not found, 4 forbidden\n");
    (void)fputs(buf_text(&out), stdout);
}

static int open_and_run(struct view *view, const struct view_command *command, int count,
                        char **words)
{
    const struct kube_config_options options = { .path = view->flags.kubeconfig,
                                                 .context = view->flags.context };
    struct err err = { .class = 0 };
    int code;

    if (process_api_open(&view->api, &options, &err) < 0) {
        code = fail(view, VIEW_FAILED, err.text);
    } else {
        view->show = (struct show_options){
            .partition = view->flags.partition,
            .user = view->flags.user,
            .now_s = clock_wall_us(loop_clock(view->api.loop)) / SECOND_US,
            .without_head = view->flags.no_headers,
            .colours = wants_colours(&view->flags),
        };
        code = command->run(view, count, words);
    }
    process_api_close(&view->api);
    return code;
}

static int run_command(const struct view_command *command, int argc, char **argv)
{
    struct view view = { .name = command->name };
    struct err err = { .class = 0 };
    int count = 0, code;
    bool help;

    while (count < argc && argv[count][0] != '-')
        count++;
    if (flags_parse(flags, argc - count, argv + count, &view.flags, &help, &err) < 0)
        return fail(&view, VIEW_USAGE, err.text);
    if (help) {
        print_help(command);
        return VIEW_OK;
    }
    view.flags.is_json = str_is(str_of(view.flags.output), "json");
    if (view.flags.output[0] && !view.flags.is_json)
        return fail(&view, VIEW_USAGE, "--output: only json is known");
    arena_init(&view.arena, SHOW_MEMORY);
    buf_init(&view.out, MAX_OUT);
    code = open_and_run(&view, command, count, argv);
    buf_done(&view.out);
    arena_done(&view.arena);
    return code;
}

int cmd_queue(int argc, char **argv)
{
    return run_command(&commands[0], argc, argv);
}

int cmd_nodes(int argc, char **argv)
{
    return run_command(&commands[1], argc, argv);
}

int cmd_why(int argc, char **argv)
{
    return run_command(&commands[2], argc, argv);
}
