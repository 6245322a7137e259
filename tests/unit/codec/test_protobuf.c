/* test_protobuf.c - messages by tables: bytes in, bytes out, and whatever is wrong with bytes. */
#include "codec/protobuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct pair {
    struct str key;
    struct tree *value;
};

struct tree {
    struct str name;
    bool flag;
    int64_t number;
    struct protobuf_list words;    /* struct str */
    struct protobuf_list children; /* struct tree */
    struct tree *only;
    struct protobuf_list map; /* struct pair */
};

static const struct protobuf_message tree_message;

static const struct protobuf_message pair_message = {
    "Pair",
    sizeof(struct pair),
    (const struct protobuf_field[]){
        { 1, PROTOBUF_STRING, false, offsetof(struct pair, key), NULL },
        { 2, PROTOBUF_MESSAGE, false, offsetof(struct pair, value), &tree_message },
        { .number = 0 },
    },
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
        { 500, PROTOBUF_MESSAGE, true, offsetof(struct tree, map), &pair_message },
        { .number = 0 },
    },
};

enum { ARENA = 1 << 20 };

static struct arena arena;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, ARENA);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

#define BYTES(literal) ((struct str){ "" literal, sizeof(literal) - 1 })

static struct tree decoded(struct str bytes)
{
    struct tree tree = { .flag = false };
    struct err err = { 0 };

    if (protobuf_decode(&tree_message, bytes, &arena, &tree, &err) < 0)
        fail_msg("%s", err.text);
    return tree;
}

static void expect_encoded(const struct tree *tree, struct str expected)
{
    auto_buf struct buf out;

    buf_init(&out, 4096);
    protobuf_encode(&tree_message, tree, &out);
    assert_int_equal(out.len, expected.len);
    assert_memory_equal(buf_text(&out), expected.at, expected.len);
}

static const struct str *word(const struct tree *tree, size_t index)
{
    return (const struct str *)tree->words.at + index;
}

static void every_kind_of_field_is_read_and_written_back(void **state)
{
    struct str bytes = BYTES("\x0a\x03pod"                           /* name */
                             "\x10\x01"                              /* flag */
                             "\x18\xac\x02"                          /* number 300 */
                             "\x22\x01x\x22\x00"                     /* words "x" and "" */
                             "\x2a\x02\x10\x01"                      /* a child with a flag */
                             "\x2a\x00"                              /* an empty child */
                             "\x32\x03\x0a\x01y"                     /* only: y */
                             "\xa2\x1f\x07\x0a\x01k\x12\x02\x18\x01" /* map: k -> number 1 */
    );
    struct tree tree = decoded(bytes);
    const struct pair *pair = tree.map.at;

    assert_true(str_is(tree.name, "pod"));
    assert_true(tree.flag);
    assert_int_equal(tree.number, 300);
    assert_int_equal(tree.words.count, 2);
    assert_true(str_is(*word(&tree, 0), "x") && word(&tree, 1)->len == 0);
    assert_int_equal(tree.children.count, 2);
    assert_true(((struct tree *)tree.children.at)[0].flag);
    assert_false(((struct tree *)tree.children.at)[1].flag);
    assert_true(str_is(tree.only->name, "y"));
    assert_int_equal(tree.map.count, 1);
    assert_true(str_is(pair->key, "k"));
    assert_int_equal(pair->value->number, 1);
    expect_encoded(&tree, bytes);
}

static void an_empty_message_has_empty_fields(void **state)
{
    struct tree tree = decoded(BYTES(""));

    assert_non_null(tree.name.at);
    assert_int_equal(tree.name.len, 0);
    assert_null(tree.only);
    assert_int_equal(tree.words.count, 0);
    expect_encoded(&tree, BYTES(""));
}

static void numbers_of_all_sizes_survive(void **state)
{
    static const int64_t numbers[] = { 1, 127, 128, INT32_MAX, INT64_MAX, -1, INT64_MIN };

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct tree tree = { .number = numbers[i] };
        auto_buf struct buf out;

        buf_init(&out, 64);
        protobuf_encode(&tree_message, &tree, &out);
        assert_int_equal(decoded(buf_str(&out)).number, numbers[i]);
    }
}

static void unknown_fields_are_skipped(void **state)
{
    struct tree tree = decoded(BYTES("\x78\x96\x01" /* 15: a varint */
                                     "\x7a\x02zz"   /* 15: bytes */
                                     "\x79"
                                     "12345678" /* 15: 8 bytes */
                                     "\x7d"
                                     "1234"                              /* 15: 4 bytes */
                                     "\x7b\x08\x01\x0b\x0c\x12\x01q\x7c" /* 15: group in a group */
                                     "\x0a\x01n"));

    assert_true(str_is(tree.name, "n"));
}

static void a_field_of_another_wire_type_is_skipped(void **state)
{
    struct tree tree = decoded(BYTES("\x08\x05\x12\x01x\x2d"
                                     "1234"));

    assert_int_equal(tree.name.len, 0);
    assert_false(tree.flag);
    assert_int_equal(tree.children.count, 0);
}

static void the_last_of_a_field_counts(void **state)
{
    assert_true(str_is(decoded(BYTES("\x0a\x01"
                                     "a\x0a\x01"
                                     "b"))
                           .name,
                       "b"));
}

static void what_is_no_message_is_refused(void **state)
{
    static const struct {
        struct str bytes;
        int class;
    } wrong[] = {
        { BYTES("\x0a"), ERR_INVALID }, /* no length */
        { BYTES("\x0a\x05"
                "abc"),
          ERR_INVALID },                                                        /* cut */
        { BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), ERR_INVALID }, /* huge length */
        { BYTES("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), ERR_INVALID }, /* 65 bits */
        { BYTES("\x18\x80"), ERR_INVALID },                                     /* varint cut */
        { BYTES("\x00\x01"), ERR_INVALID },                                     /* field 0 */
        { BYTES("\xff\xff\xff\xff\x7f"), ERR_INVALID }, /* number too large */
        { BYTES("\x0e"), ERR_INVALID },                 /* wire type 6 */
        { BYTES("\x0f"), ERR_INVALID },                 /* wire type 7 */
        { BYTES("\x0c"), ERR_INVALID },                 /* stray group end */
        { BYTES("\x0b"), ERR_INVALID },                 /* group cut */
        { BYTES("\x0b\x14"), ERR_INVALID },             /* other group ends */
        { BYTES("\x0a\x01\xff"), ERR_INVALID },         /* not UTF-8 */
        { BYTES("\x22\x01\xff"), ERR_INVALID },
        { BYTES("\x2a\x01\x0a"), ERR_INVALID }, /* wrong inside a child */
        { BYTES("\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b"),
          ERR_TOO_BIG },
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct tree tree = { .number = 7 };
        struct err err = { 0 };

        if (protobuf_decode(&tree_message, wrong[i].bytes, &arena, &tree, &err) != -wrong[i].class)
            fail_msg("row %zu: %s", i, err.text);
        assert_int_equal(tree.number, 7); /* nothing is written on failure */
        assert_true(str_starts(str_of(err.text), STR("Tree: ")));
    }
}

static void depth_is_bounded(void **state)
{
    struct tree trees[PROTOBUF_MAX_DEPTH + 1] = { { .flag = false } }, read;
    auto_buf struct buf out;

    for (size_t i = 0; i < PROTOBUF_MAX_DEPTH; i++)
        trees[i].only = &trees[i + 1];
    trees[PROTOBUF_MAX_DEPTH].flag = true;
    buf_init(&out, 4096);
    protobuf_encode(&tree_message, &trees[1], &out);
    assert_true(decoded(buf_str(&out)).only->only->only != NULL);
    buf_clear(&out);
    protobuf_encode(&tree_message, &trees[0], &out);
    assert_int_equal(protobuf_decode(&tree_message, buf_str(&out), &arena, &read, NULL),
                     -ERR_TOO_BIG);
}

static void the_number_of_items_is_bounded(void **state)
{
    auto_buf struct buf out;
    struct tree tree;

    buf_init(&out, 1 << 16);
    for (size_t i = 0; i < PROTOBUF_MAX_ITEMS; i++)
        buf_add(&out, "\x2a\x00", 2);
    assert_int_equal(decoded(buf_str(&out)).children.count, PROTOBUF_MAX_ITEMS);
    buf_add(&out, "\x32\x00", 2);
    assert_int_equal(protobuf_decode(&tree_message, buf_str(&out), &arena, &tree, NULL),
                     -ERR_TOO_BIG);
}

static void writing_respects_the_maximum_of_its_buffer(void **state)
{
    struct tree tree = { .name = STR("a name that is longer than the buffer") };
    auto_buf struct buf out;

    buf_init(&out, 8);
    protobuf_encode(&tree_message, &tree, &out);
    assert_int_equal(buf_check(&out, "message", NULL), -ERR_TOO_BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_field_is_read_and_written_back),
        cmocka_unit_test(an_empty_message_has_empty_fields),
        cmocka_unit_test(numbers_of_all_sizes_survive),
        cmocka_unit_test(unknown_fields_are_skipped),
        cmocka_unit_test(a_field_of_another_wire_type_is_skipped),
        cmocka_unit_test(the_last_of_a_field_counts),
        cmocka_unit_test(what_is_no_message_is_refused),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(the_number_of_items_is_bounded),
        cmocka_unit_test(writing_respects_the_maximum_of_its_buffer),
    };

    return cmocka_run_group_tests_name("protobuf", tests, set_up, tear_down);
}
