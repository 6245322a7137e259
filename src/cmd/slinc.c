/* slinc.c - one executable, one subcommand per part of the system. Called as kubectl-slinc it is a
 * plugin of kubectl, as kubectl_complete-slinc it completes the plugin's command line. */
#include "base/core_dump.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/completion.h"
#include "io/memory.h"

#include <stdio.h>
#include <string.h>

static int cmd_completion(int argc, char **argv);

static const struct command commands[] = {
    { "bridge", "lets Slurm place the pods of Kubernetes", cmd_bridge, NULL },
    { "operator", "runs Slurm clusters as custom resources of Kubernetes", cmd_operator, NULL },
    { "exporter", "shows Slurm's figures to Prometheus and autoscalers", cmd_exporter, NULL },
    { "keys", "makes and keeps the keys of a Slurm cluster, for the chart slurm", cmd_keys, NULL },
    { "dra", "pins containers to the cores that Slurm chose (kubelet plugin)", cmd_dra, NULL },
    { "queue", "lists the jobs that wait, and why", NULL, &terminal_queue },
    { "nodes", "lists nodes by state, and who holds them", NULL, &terminal_nodes },
    { "why", "tells why a pod, a job or a NodeSet waits, and what would help", NULL,
      &terminal_why },
    { "what-if",
      "tells when a pod that waits would start with another time limit, size or partition", NULL,
      &terminal_what_if },
    { "doctor", "checks a whole installation, and says how to mend it", NULL, &terminal_doctor },
    { "drain", "takes a node or a worker out of service, without ending jobs", NULL,
      &terminal_drain },
    { "resume", "puts a node or a worker back into service", NULL, &terminal_resume },
    { "host-keys", "prints a new set of SSH host keys as JSON", cmd_host_keys, NULL },
    { "completion", "prints the completion script for bash, zsh or fish", cmd_completion, NULL },
    { "version", "prints its version, and those of Kubernetes, Slurm and our servers", NULL,
      &terminal_version },
    { NULL, NULL, NULL, NULL },
};

enum { EXIT_USAGE = 2 };

static bool is_plugin;

const char *cmd_program(void)
{
    return is_plugin ? "kubectl slinc" : "slinc";
}

static int cmd_completion(int argc, char **argv)
{
    auto_buf struct buf out;

    buf_init(&out, COMPLETION_MAX);
    if (argc != 1 || !completion_script(str_of(argv[0]), &out)) {
        (void)fprintf(stderr, "%s completion: wants bash, zsh or fish\n\n%s\n", cmd_program(),
                      completion_help);
        return argc == 1 && (str_is(str_of(argv[0]), "--help") || str_is(str_of(argv[0]), "-h"))
                   ? 0
                   : EXIT_USAGE;
    }
    (void)fputs(buf_text(&out), stdout);
    return 0;
}

static int complete(int argc, char **argv)
{
    auto_buf struct buf out;

    buf_init(&out, COMPLETION_MAX);
    completion_candidates(commands, argc, argv, &out);
    (void)fputs(buf_text(&out), stdout);
    return 0;
}

static void print_help(FILE *to)
{
    (void)fprintf(to, "slinc: Slurm and Kubernetes as one system\n\nusage: %s COMMAND [flags]\n\n",
                  cmd_program());
    for (const struct command *command = commands; command->name; command++)
        (void)fprintf(to, "  %-10s %s\n", command->name, command->what);
    (void)fprintf(to, "\n`%s COMMAND --help` lists the flags of a command.\n", cmd_program());
}

static int run(const struct command *command, int argc, char **argv)
{
    return command->terminal ? terminal_run(command->terminal, argc, argv)
                             : command->run(argc, argv);
}

int main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    struct str called = str_of(slash ? slash + 1 : argc > 0 ? argv[0] : "");
    struct str name = str_of(argc > 1 ? argv[1] : "");

    core_dump_forbid();
    io_share_memory();
    is_plugin = str_is(called, "kubectl-slinc");
    if (str_is(called, "kubectl_complete-slinc"))
        return complete(argc - 1, argv + 1);
    if (str_is(name, "help") || str_is(name, "--help") || str_is(name, "-h")) {
        print_help(stdout);
        return 0;
    }
    if (str_is(name, "--version")) {
        (void)printf("slinc %s\n", cmd_version);
        return 0;
    }
    if (str_is(name, "__complete"))
        return complete(argc - 2, argv + 2);
    for (const struct command *command = commands; command->name; command++)
        if (str_is(name, command->name))
            return run(command, argc - 2, argv + 2);
    if (name.len > 0)
        (void)fprintf(stderr, "slinc: there is no command '" STR_FMT "'\n\n", STR_ARG(name));
    print_help(stderr);
    return EXIT_USAGE;
}
