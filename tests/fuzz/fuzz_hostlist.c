/* fuzz_hostlist.c - expanding, folding and expanding again gives the same set of names, and folding
 * what was folded changes nothing. */
#include "base/mem.h"
#include "codec/hostlist.h"

#include <stdlib.h>

enum { MAX_NAMES = 512, ARENA = 16 * 1024 * 1024 };

struct names {
    struct str name[MAX_NAMES];
    size_t count;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expand(struct arena *arena, const struct hostlist *list, struct names *names)
{
    struct hostlist_iter iter = hostlist_iter(list);
    struct str name;

    names->count = 0;
    while (hostlist_next(&iter, &name)) {
        if (names->count == MAX_NAMES || hostlist_check_name(name, NULL) < 0 ||
            !hostlist_contains(list, name))
            abort();
        names->name[names->count++] =
            (struct str){ arena_strndup(arena, name.at, name.len), name.len };
    }
    if (names->count != hostlist_count(list))
        abort();
}

static void fold(const struct names *names, struct buf *out)
{
    if (hostlist_fold(names->name, names->count, out, NULL) < 0 || out->overflowed)
        abort();
}

static void expect_all_in(const struct names *names, const struct hostlist *list)
{
    for (size_t i = 0; i < names->count; i++)
        if (!hostlist_contains(list, names->name[i]))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct names first, second;
    auto_arena struct arena arena;
    auto_buf struct buf once, twice;
    const struct hostlist *list, *folded;

    arena_init(&arena, ARENA);
    buf_init(&once, 1 << 20);
    buf_init(&twice, 1 << 20);
    if (hostlist_parse(&arena, (struct str){ (const char *)data, size }, MAX_NAMES, &list, NULL) <
        0)
        return 0;
    expand(&arena, list, &first);
    fold(&first, &once);
    if (hostlist_parse(&arena, buf_str(&once), MAX_NAMES, &folded, NULL) < 0)
        abort();
    expand(&arena, folded, &second);
    expect_all_in(&first, folded);
    expect_all_in(&second, list);
    fold(&second, &twice);
    if (!str_eq(buf_str(&once), buf_str(&twice)) || second.count > first.count)
        abort();
    return 0;
}
