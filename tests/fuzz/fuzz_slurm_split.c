/* fuzz_slurm_split.c - an answer gives the same elements and the same rest however it is cut; of an
 * answer that is JSON, the elements are those of its array. The first byte chooses the cuts. */
#include "base/mem.h"
#include "codec/json.h"
#include "slurm/split.h"

#include <stdlib.h>

enum { MAX = 1 << 18 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Elements as a JSON array would have them, and the rest; false when it cannot be told. */
static bool split_by(struct str text, size_t step, struct buf *items, struct buf *rest)
{
    struct slurm_split split;
    struct str item;
    int result = 0;

    slurm_split_init(&split, "jobs", MAX);
    while (text.len > 0 && result >= 0) {
        size_t length = text.len < step ? text.len : step;
        auto_free char *copy = mem_strndup(text.at, length);
        struct str piece = { copy, length };

        text = str_sub(text, length, text.len);
        while ((result = slurm_split_next(&split, &piece, &item, NULL)) > 0) {
            buf_add_text(items, items->len > 0 ? "," : "");
            buf_add_str(items, item);
        }
        must(result < 0 || piece.len == 0);
    }
    buf_add_str(rest, slurm_split_rest(&split));
    slurm_split_done(&split);
    return result >= 0;
}

static bool has_one(const struct json *root)
{
    struct json_iter iter = json_iter(root);
    const struct json *value;
    struct str key;
    unsigned count = 0;

    while (json_next_member(&iter, &key, &value))
        count += str_is(key, "jobs");
    return json_is_object(root) && count == 1 && json_is_array(json_get(root, "jobs"));
}

/* `"jobs"` may be written with escapes, which slurmrestd does not do: then it is left whole. */
static void check_json(struct str text, const struct buf *items, const struct buf *rest)
{
    auto_json_doc struct json_doc *whole = NULL, *array = NULL, *left = NULL;
    auto_buf struct buf listed = { .max = 2 * MAX };

    if (json_parse(text, MAX, &whole, NULL) < 0 || !has_one(json_root(whole)))
        return;
    must(json_parse(buf_str(rest), MAX, &left, NULL) == 0);
    buf_printf(&listed, "[%s]", buf_text(items));
    must(json_parse(buf_str(&listed), 2 * MAX, &array, NULL) == 0);
    must(json_equal(json_root(array), json_get(json_root(whole), "jobs")) ||
         json_equal(json_root(left), json_root(whole)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_buf struct buf items = { .max = 2 * MAX }, rest = { .max = MAX };
    auto_buf struct buf cut_items = { .max = 2 * MAX }, cut_rest = { .max = MAX };
    struct str text;
    bool good;

    if (size < 2 || size > MAX)
        return 0;
    text = (struct str){ (const char *)data + 1, size - 1 };
    good = split_by(text, text.len, &items, &rest);
    must(split_by(text, 1 + data[0] % 64, &cut_items, &cut_rest) == good);
    must(str_eq(buf_str(&items), buf_str(&cut_items)) &&
         str_eq(buf_str(&rest), buf_str(&cut_rest)));
    if (good)
        check_json(text, &items, &rest);
    return 0;
}
