/* host_set.c - reads host lists into sorted arrays.
 *
 * Holds: to compare two lists, or to look up each name of one list in another, takes about as many
 * steps as there are names. Names of cloud nodes do not fold, so a list may have thousands. */
#include "codec/host_set.h"

#include "codec/hostlist.h"

#include <stdlib.h>
#include <string.h>

static const struct hostlist *parse(struct arena *arena, const char *hosts)
{
    const struct hostlist *list = NULL;
    struct err err = { .class = 0 };

    (void)hostlist_parse(arena, str_of(hosts), HOSTLIST_MAX_NAMES, &list, &err);
    return list;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

struct host_set host_set_of(struct arena *arena, const char *hosts)
{
    const struct hostlist *list = hosts[0] ? parse(arena, hosts) : NULL;
    struct host_set set = { .count = 0 };
    struct hostlist_iter iter;
    struct str *names, name;

    if (!list)
        return set;
    names = arena_alloc_array(arena, (size_t)hostlist_count(list) + 1, sizeof(*names));
    iter = hostlist_iter(list);
    while (hostlist_next(&iter, &name))
        names[set.count++] = (struct str){ arena_strndup(arena, name.at, name.len), name.len };
    qsort(names, set.count, sizeof(*names), by_name);
    set.names = names;
    return set;
}

bool host_set_has(const struct host_set *set, const char *name)
{
    struct str key = str_of(name);

    return set->count > 0 &&
           bsearch(&key, set->names, set->count, sizeof(*set->names), by_name) != NULL;
}

bool hosts_equal(struct arena *arena, const char *a, const char *b)
{
    struct host_set left, right;

    if (strcmp(a, b) == 0)
        return true;
    left = host_set_of(arena, a);
    right = host_set_of(arena, b);
    if (left.count != right.count || left.count == 0)
        return false;
    for (size_t i = 0; i < left.count; i++)
        if (!str_eq(left.names[i], right.names[i]))
            return false;
    return true;
}

unsigned hosts_count(struct arena *arena, const char *hosts)
{
    const struct hostlist *list = parse(arena, hosts);
    uint64_t count = list ? hostlist_count(list) : 0;

    return count > 0 ? (unsigned)count : 1;
}

bool hosts_have(struct arena *arena, const char *hosts, const char *name)
{
    const struct hostlist *list = parse(arena, hosts);

    return list && hostlist_contains(list, str_of(name));
}
