/* core_dump.c - the limit of core dumps, and whether there are any. */
#include "base/core_dump.h"

#include <sys/prctl.h>
#include <sys/resource.h>

static struct rlimit before;

void core_dump_forbid(void)
{
    struct rlimit none;

    if (getrlimit(RLIMIT_CORE, &before) == 0) {
        none = before; /* the hard limit stays: a child may need it */
        none.rlim_cur = 0;
        (void)setrlimit(RLIMIT_CORE, &none);
    }
    (void)prctl(PR_SET_DUMPABLE, 0);
}

void core_dump_restore_limit(void)
{
    (void)setrlimit(RLIMIT_CORE, &before);
}
