/* fuzz_selector.c - a selector printed and parsed again prints the same and matches the same. */
#include "codec/selector.h"

#include <stdlib.h>

enum { ARENA = 64 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A subject whose value for each key follows from the key: some absent, some empty. */
static bool lookup(const void *data, struct str key, struct str *ret_value)
{
    static const char *const values[] = { "", "a", "5", "x" };
    size_t kind = key.len > 0 ? (size_t)(unsigned char)key.at[0] : 0;

    (void)data;
    if (kind % 5 == 4)
        return false;
    *ret_value = str_of(values[kind % 5]);
    return true;
}

static const struct selector_subject subject = { lookup, NULL };

static void fuzz_labels(struct arena *arena, struct str text)
{
    auto_buf struct buf once, twice;
    const struct selector *first, *second;

    buf_init(&once, 1 << 20);
    buf_init(&twice, 1 << 20);
    if (selector_parse(arena, text, &first, NULL) < 0)
        return;
    if (selector_print(first, &once, NULL) < 0 || once.overflowed)
        abort();
    if (selector_parse(arena, buf_str(&once), &second, NULL) < 0 ||
        selector_print(second, &twice, NULL) < 0)
        abort();
    if (!str_eq(buf_str(&once), buf_str(&twice)) ||
        selector_matches(first, subject) != selector_matches(second, subject))
        abort();
}

static void fuzz_json(struct arena *arena, struct str text)
{
    auto_json_doc struct json_doc *doc = NULL;
    auto_buf struct buf out;
    const struct selector *selector;

    buf_init(&out, 1 << 20);
    if (json_parse(text, 1 << 16, &doc, NULL) < 0 ||
        selector_from_json(arena, json_root(doc), SELECTOR_ABSENT_MATCHES_ALL, &selector, NULL) < 0)
        return;
    if (selector_print(selector, &out, NULL) < 0)
        abort();
    fuzz_labels(arena, buf_str(&out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { size > 0 ? (const char *)data : "", size };
    auto_arena struct arena arena;

    arena_init(&arena, ARENA);
    fuzz_labels(&arena, text);
    fuzz_json(&arena, text);
    return 0;
}
