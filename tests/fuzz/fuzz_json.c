/* fuzz_json.c - any text is refused or read; what was read is written and read back as the same
 * value, and any bytes can be written as a JSON string. */
#include "codec/json.h"

#include <stdlib.h>

enum { MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

typedef void writer(const struct json *value, struct buf *out);

static void check_written(const struct json *value, writer *write)
{
    auto_json_doc struct json_doc *again = NULL;
    auto_buf struct buf text = { .max = MAX * 8 }, canonical = { .max = MAX * 8 },
                        canonical_again = { .max = MAX * 8 };

    write(value, &text);
    must(json_parse(buf_str(&text), text.max, &again, NULL) == 0);
    must(json_equal(value, json_root(again)));
    json_write_canonical(value, &canonical);
    json_write_canonical(json_root(again), &canonical_again);
    must(str_eq(buf_str(&canonical), buf_str(&canonical_again)));
}

static void check_copies(const struct json *value)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *clone = json_clone(value), *text_again = NULL;
    auto_buf struct buf text = { .max = MAX * 8 };

    must(json_equal(value, json_root(clone)));
    must(json_depth(value) <= JSON_MAX_DEPTH && json_depth(value) == json_depth(json_root(clone)));
    json_mut_write(json_copy(build, value), &text);
    must(json_parse(buf_str(&text), text.max, &text_again, NULL) == 0);
    must(json_equal(value, json_root(text_again)));
}

static void check_string(struct str bytes)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *built = json_freeze(json_new_str(build, bytes)), *read = NULL;
    auto_buf struct buf text = { .max = MAX * 8 };

    json_escape(&text, bytes);
    must(json_parse(buf_str(&text), text.max, &read, NULL) == 0);
    must(json_equal(json_root(built), json_root(read)));
    must(!str_is_utf8(bytes) || str_eq(json_str(json_root(read)), bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    auto_json_doc struct json_doc *doc = NULL;
    struct err err = { 0 };

    if (size == 0)
        return 0;
    check_string(text);
    if (json_parse(text, MAX, &doc, &err) < 0) {
        must(err.class == ERR_INVALID || err.class == ERR_TOO_BIG);
        return 0;
    }
    check_written(json_root(doc), json_write);
    check_written(json_root(doc), json_write_pretty);
    check_written(json_root(doc), json_write_canonical);
    check_copies(json_root(doc));
    return 0;
}
