/* fuzz_slurmconf.c - whatever keys and values are given, what is written reads back as exactly
 * those pairs on one line; and what was read can be written again. */
#include "codec/slurmconf.h"

#include <stdlib.h>

enum { ARENA = 64 * 1024 * 1024, MAX_PAIRS = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect_same(struct str text, const struct conf_pair *pairs, size_t count)
{
    auto_arena struct arena arena;
    const struct conf_pair *seen;
    size_t seen_count;

    arena_init(&arena, ARENA);
    if (conf_parse(&arena, text, &seen, &seen_count, NULL) < 0 || seen_count != count)
        abort();
    for (size_t i = 0; i < count; i++)
        if (!str_eq(seen[i].key, pairs[i].key) || !str_eq(seen[i].value, pairs[i].value) ||
            seen[i].op != pairs[i].op || seen[i].line != 1)
            abort();
}

static size_t lines_in(struct str text)
{
    size_t lines = 0;

    for (size_t i = 0; i < text.len; i++)
        lines += text.at[i] == '\n';
    return lines;
}

static void write_and_read(const struct conf_pair *pairs, size_t count)
{
    auto_buf struct buf out;
    struct conf conf;

    buf_init(&out, 8 * 1024 * 1024);
    conf_begin(&conf, &out);

    int status = conf_line(&conf, pairs, count, NULL);

    if (lines_in(buf_str(&out)) != (status == 0 ? 1 : 0) || out.overflowed)
        abort();
    expect_same(buf_str(&out), pairs, status == 0 ? count : 0);
}

/* "key op value" for each part between 0x01 bytes, the key in front of a 0x02. */
static size_t pairs_of(struct str input, struct conf_pair *pairs)
{
    struct str part;
    size_t count = 0;

    while (count < MAX_PAIRS && str_next(&input, '\x01', &part)) {
        struct conf_pair pair = { .key = STR("Key"), .value = part };

        str_cut(part, '\x02', &pair.key, &pair.value);
        pairs[count++] = pair;
    }
    return count;
}

static void read_and_write(struct str input)
{
    auto_arena struct arena arena;
    const struct conf_pair *pairs;
    size_t count;

    arena_init(&arena, ARENA);
    if (conf_parse(&arena, input, &pairs, &count, NULL) == 0)
        write_and_read(pairs, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str input = { size > 0 ? (const char *)data : "", size };
    struct conf_pair pairs[MAX_PAIRS];

    write_and_read(pairs, pairs_of(input, pairs));
    read_and_write(input);
    return 0;
}
