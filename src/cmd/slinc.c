/* slinc.c - one executable, one subcommand per part of the system. */
#include "base/str.h"
#include "cmd/cmd.h"

#include <stdio.h>

static int cmd_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    (void)printf("slinc %s\n", SLINC_VERSION);
    return 0;
}

static const struct command {
    const char *name, *what;
    int (*run)(int argc, char **argv);
} commands[] = {
    { "bridge", "lets Slurm place the pods of Kubernetes", cmd_bridge },
    { "operator", "runs Slurm clusters as custom resources of Kubernetes", cmd_operator },
    { "exporter", "shows Slurm's figures to Prometheus and autoscalers", cmd_exporter },
    { "keys", "makes and keeps the keys of a Slurm cluster, for the chart slurm", cmd_keys },
    { "dra", "pins containers to the cores that Slurm chose (kubelet plugin)", cmd_dra },
    { "queue", "lists the jobs that wait, and why", cmd_queue },
    { "nodes", "lists nodes by state, and who holds them", cmd_nodes },
    { "why", "tells why a pod or a job waits", cmd_why },
    { "host-keys", "prints a new set of SSH host keys as JSON", cmd_host_keys },
    { "version", "prints the version, as --version does", cmd_version },
};

enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]), EXIT_USAGE = 2 };

static void print_help(FILE *to)
{
    (void)fprintf(to,
                  "slinc: Slurm and Kubernetes as one system\n\nusage: slinc COMMAND [flags]\n\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        (void)fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].what);
    (void)fprintf(to, "\n`slinc COMMAND --help` lists the flags of a command.\n");
}

int main(int argc, char **argv)
{
    struct str name = str_of(argc > 1 ? argv[1] : "");

    if (str_is(name, "help") || str_is(name, "--help") || str_is(name, "-h")) {
        print_help(stdout);
        return 0;
    }
    if (str_is(name, "--version"))
        return cmd_version(0, NULL);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (str_is(name, commands[i].name))
            return commands[i].run(argc - 2, argv + 2);
    if (name.len > 0)
        (void)fprintf(stderr, "slinc: there is no command '" STR_FMT "'\n\n", STR_ARG(name));
    print_help(stderr);
    return EXIT_USAGE;
}
