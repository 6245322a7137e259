/* version.c - the version of the program, which meson.build names. */
#include "cmd/cmd.h"

const char cmd_version[] = SLINC_VERSION;
