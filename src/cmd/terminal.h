/* terminal.h - the frame of the commands for a person at a terminal: flags, kubeconfig, colours,
 * exit codes. Such a command reads the API server with the rights of the kubeconfig's user, and
 * says which right is missing. */
#ifndef SLINC_CMD_TERMINAL_H
#define SLINC_CMD_TERMINAL_H

#include "cli/fetch.h"
#include "cli/show.h"
#include "cmd/flags.h"
#include "cmd/process.h"

enum terminal_exit {
    TERMINAL_OK,
    TERMINAL_FAILED,
    TERMINAL_USAGE,
    TERMINAL_NOT_FOUND,
    TERMINAL_FORBIDDEN,
    TERMINAL_FINDINGS = 6, /* of the doctor */
};

enum { TERMINAL_ANSWER_US = 10 * 1000000 };

struct terminal_flags {
    const char *partition, *user, *ns, *output, *color, *kubeconfig, *context;
    const char *reason, *only, *fail_on, *takeover, *from;
    const char *time_limit, *cpus; /* of what-if */
    bool no_headers, exit_code, list, client;
    bool is_json; /* of output */
};

#define TERMINAL_AT(member) offsetof(struct terminal_flags, member)

/* Rows of a flag table that all these commands have, and its end. */
#define TERMINAL_FLAGS                                                                             \
    { "output", FLAG_TEXT, TERMINAL_AT(output), "", "json: the same facts for programs" },         \
        { "o", FLAG_TEXT, TERMINAL_AT(output), NULL, "as --output" },                              \
        { "color", FLAG_TEXT, TERMINAL_AT(color), "auto",                                          \
          "always, never, or auto: on a terminal" },                                               \
        { "kubeconfig", FLAG_TEXT, TERMINAL_AT(kubeconfig), NULL,                                  \
          "instead of KUBECONFIG and ~/.kube/config" },                                            \
        { "context", FLAG_TEXT, TERMINAL_AT(context), NULL, "of the kubeconfig" },                 \
    {                                                                                              \
        NULL, FLAG_TEXT, 0, NULL, NULL                                                             \
    }
#define TERMINAL_NAMESPACE                                                                         \
    { "namespace", FLAG_TEXT, TERMINAL_AT(ns), "", "of the object; else that of the context" },    \
        { "n", FLAG_TEXT, TERMINAL_AT(ns), NULL, "as --namespace" }

struct terminal { /* one command that runs */
    const char *name;
    struct terminal_flags flags;
    struct process_api api;
    const char *without_api; /* why there is no API server, for a command that can do without */
    struct arena arena;
    struct buf out; /* what is printed at the end */
    struct show_options show;
};

struct terminal_command {
    const char *name, *words; /* words: behind the name, for the usage */
    const char *what;
    const char *kinds; /* words that may come first, for completion: "pod job nodeset" */
    const struct flag *flags;
    int (*run)(struct terminal *terminal, int count, char **words);
    void (*help)(struct buf *out); /* more for --help; NULL */
    bool is_offline;               /* with --list or --client it needs no API server */
    bool may_lack_api;             /* it runs, and says what it cannot */
};

extern const struct terminal_command terminal_queue, terminal_nodes, terminal_why, terminal_what_if,
    terminal_doctor, terminal_drain, terminal_resume, terminal_version;

int terminal_run(const struct terminal_command *command, int argc, char **argv);

/* ---- for commands ---- */

int terminal_fail(const struct terminal *terminal, enum terminal_exit code, const char *text);
int terminal_print(const struct terminal *terminal); /* TERMINAL_OK */
const char *terminal_namespace(const struct terminal *terminal);
void terminal_fetch(struct terminal *terminal, struct fetch *fetches, size_t count);

/* Fit to stand in a path or a query. */
const char *terminal_escape(struct terminal *terminal, struct str text);

/* Why a read gave nothing, and which right would help: "needs the right to list pods in namespace
 * x". "" for what was read. terminal_missing begins with "not shown: ". */
const char *terminal_lacks(struct terminal *terminal, const struct fetch *fetch);
const char *terminal_missing(struct terminal *terminal, const struct fetch *fetch);
/* Ends because this was not read: "there is no WHAT name in namespace x", or why not. */
int terminal_refuse(struct terminal *terminal, const struct fetch *fetch, const char *what);
enum terminal_exit terminal_exit_of(const struct fetch *fetch);

/* Of the view API of the exporter. */
extern const struct kube_resource terminal_view_jobs, terminal_view_nodes, terminal_view_workloads,
    terminal_view_checks;

#endif
