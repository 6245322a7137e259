/* drive_hostlist.c - answers one question about a host list per line of input, for
 * test_hostlist.py.
 *
 *     expand <list>   the names, separated by spaces
 *     fold <list>     the set of its names, folded
 *
 * Each answer is one line: "= <answer>" or "! <error>". */
#include "codec/hostlist.h"

#include <stdio.h>
#include <stdlib.h>

enum { ARENA = 256 * 1024 * 1024 };

static void answer_expand(const struct hostlist *list)
{
    struct hostlist_iter iter = hostlist_iter(list);
    struct str name;

    putchar('=');
    while (hostlist_next(&iter, &name))
        printf(" " STR_FMT, STR_ARG(name));
    putchar('\n');
}

static void answer_fold(struct arena *arena, const struct hostlist *list)
{
    struct hostlist_iter iter = hostlist_iter(list);
    struct str *names = arena_alloc_array(arena, hostlist_count(list), sizeof(*names)), name;
    auto_buf struct buf out;
    size_t count = 0;
    struct err err;

    buf_init(&out, HOSTLIST_MAX_TEXT);
    while (hostlist_next(&iter, &name))
        names[count++] = (struct str){ arena_strndup(arena, name.at, name.len), name.len };
    if (hostlist_fold(names, count, &out, &err) < 0)
        printf("! %s\n", err.text);
    else
        printf("= %s\n", buf_text(&out));
}

static void answer(struct str line)
{
    auto_arena struct arena arena;
    struct str question, text;
    const struct hostlist *list;
    struct err err;

    arena_init(&arena, ARENA);
    if (!str_cut(line, ' ', &question, &text))
        printf("! no question\n");
    else if (hostlist_parse(&arena, text, HOSTLIST_MAX_NAMES, &list, &err) < 0)
        printf("! %s\n", err.text);
    else if (str_is(question, "fold"))
        answer_fold(&arena, list);
    else
        answer_expand(list);
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;

    setvbuf(stdout, NULL, _IOLBF, 0); /* the test waits for each answer */
    while ((length = getline(&line, &room, stdin)) > 0)
        answer((struct str){ line, (size_t)length - (line[length - 1] == '\n') });
    free(line);
    return 0;
}
