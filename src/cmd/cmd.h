/* cmd.h - the subcommands of slinc. */
#ifndef SLINC_CMD_CMD_H
#define SLINC_CMD_CMD_H

/* That of meson.build: "1.0.0", or "1.0.0-rc.1" of a release candidate. */
extern const char cmd_version[];

/* Each gets the arguments behind its name, and returns the process's exit code (engine/run.h). */
int cmd_bridge(int argc, char **argv);
int cmd_dra(int argc, char **argv);
int cmd_operator(int argc, char **argv);
int cmd_exporter(int argc, char **argv);
int cmd_keys(int argc, char **argv);
int cmd_host_keys(int argc, char **argv);

/* By what name it was called: "slinc", or "kubectl slinc" as a plugin of kubectl. */
const char *cmd_program(void);

#endif
