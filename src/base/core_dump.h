/* core_dump.h - no core dump of a process that holds keys or tokens, and no debugger beside it. */
#ifndef SLINC_BASE_CORE_DUMP_H
#define SLINC_BASE_CORE_DUMP_H

/* The first thing that main does. Without the right to trace everything, nobody may read this
 * process's memory any more. */
void core_dump_forbid(void);

/* For a child before it becomes another program: the limit is again what it was. (The program is
 * readable again by itself.) */
void core_dump_restore_limit(void);

#endif
