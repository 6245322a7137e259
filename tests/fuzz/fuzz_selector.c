/* fuzz_selector.c - a selector printed and parsed again prints the same and matches the same, as
 * label selector and as field selector. */
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

static void fuzz_fields(struct arena *arena, struct str text)
{
    auto_buf struct buf once, twice;
    const struct selector_fields *first, *second;

    buf_init(&once, 1 << 20);
    buf_init(&twice, 1 << 20);
    if (selector_fields_parse(arena, text, &first, NULL) < 0)
        return;
    selector_fields_print(first, &once);
    if (selector_fields_parse(arena, buf_str(&once), &second, NULL) < 0)
        abort();
    selector_fields_print(second, &twice);
    if (!str_eq(buf_str(&once), buf_str(&twice)) ||
        selector_fields_match(first, subject) != selector_fields_match(second, subject))
        abort();
}

/* Any text can be the value of a field. */
static void fuzz_escape(struct arena *arena, struct str text)
{
    auto_buf struct buf selector;
    const struct selector_fields *fields;

    buf_init(&selector, 1 << 20);
    if (!str_is_utf8(text) || (text.len > 0 && memchr(text.at, '\0', text.len)))
        return;
    buf_add_text(&selector, "name=");
    selector_escape_field(&selector, text);
    if (selector_fields_parse(arena, buf_str(&selector), &fields, NULL) < 0)
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
    fuzz_fields(&arena, text);
    if (text.len < 10000)
        fuzz_escape(&arena, text);
    fuzz_json(&arena, text);
    return 0;
}
