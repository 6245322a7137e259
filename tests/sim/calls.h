/* calls.h - which calls to the API server our processes make, for whoever compares them with their
 * rights. */
#ifndef SLINC_SIM_CALLS_H
#define SLINC_SIM_CALLS_H

#include "world.h"

/* The scenario to run in place of this one: the same, and its calls are noted. Once. */
const struct scenario *calls_of(const struct scenario *scenario);

/* Each call once, as a line "USER METHOD PATH"; the path without its query, and a watch has the
 * method WATCH. -ERR_SYSTEM: it could not be written. Frees what was noted. */
int calls_write(const char *path, struct err *err);

#endif
