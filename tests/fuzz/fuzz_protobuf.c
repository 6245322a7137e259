/* fuzz_protobuf.c - whatever is read as a message is written to bytes that are read as the same. */
#include "codec/protobuf.h"

#include <stdint.h>
#include <stdlib.h>

enum { MAX = 1 << 14, ARENA = 64 << 20 };

struct tree {
    struct str name;
    bool flag;
    int64_t number;
    struct protobuf_list words, children;
    struct tree *only;
};

static const struct protobuf_message tree_message = {
    "Tree",
    sizeof(struct tree),
    (const struct protobuf_field[]){
        { 1, PROTOBUF_STRING, false, offsetof(struct tree, name), NULL },
        { 2, PROTOBUF_BOOL, false, offsetof(struct tree, flag), NULL },
        { 3, PROTOBUF_INT64, false, offsetof(struct tree, number), NULL },
        { 4, PROTOBUF_STRING, true, offsetof(struct tree, words), NULL },
        { 5, PROTOBUF_MESSAGE, true, offsetof(struct tree, children), &tree_message },
        { 6, PROTOBUF_MESSAGE, false, offsetof(struct tree, only), &tree_message },
        { .number = 0 },
    },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena arena;
    auto_buf struct buf once, twice;
    struct tree tree, again;

    arena_init(&arena, ARENA);
    buf_init(&once, 2 * MAX);
    buf_init(&twice, 2 * MAX);
    if (size > MAX || protobuf_decode(&tree_message, (struct str){ (const char *)data, size },
                                      &arena, &tree, NULL) < 0)
        return 0;
    protobuf_encode(&tree_message, &tree, &once);
    if (protobuf_decode(&tree_message, buf_str(&once), &arena, &again, NULL) < 0)
        abort();
    protobuf_encode(&tree_message, &again, &twice);
    if (once.overflowed || !str_eq(buf_str(&once), buf_str(&twice)))
        abort();
    return 0;
}
