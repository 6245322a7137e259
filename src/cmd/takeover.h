/* takeover.h - `slinc doctor --takeover`: what a switch to our charts would do, before it is done.
 */
#ifndef SLINC_CMD_TAKEOVER_H
#define SLINC_CMD_TAKEOVER_H

#include "cli/doctor.h"
#include "cmd/terminal.h"

/* Of the files that --from and --takeover name. An exit code, unless 0: then *ret_worst is what was
 * found, and the report is in terminal->out. */
int takeover_examine(struct terminal *terminal, enum doctor_result *ret_worst);

#endif
