/* host_set.h - the names of a host list, for those who look up many of them. */
#ifndef SLINC_CODEC_HOST_SET_H
#define SLINC_CODEC_HOST_SET_H

#include "base/arena.h"
#include "base/str.h"

#include <stdbool.h>

/* A list that was read once: each lookup costs a few comparisons. */
struct host_set {
    const struct str *names; /* sorted, in the arena */
    size_t count;
};

/* Empty when the list cannot be read. Takes about 100 bytes per name from the arena. */
struct host_set host_set_of(struct arena *arena, const char *hosts);
bool host_set_has(const struct host_set *set, const char *name);

/* Whether both lists name the same hosts. */
bool hosts_equal(struct arena *arena, const char *a, const char *b);
unsigned hosts_count(struct arena *arena, const char *hosts); /* at least 1 */
/* Reads the whole list: for more than one name make a host_set. */
bool hosts_have(struct arena *arena, const char *hosts, const char *name);

#endif
