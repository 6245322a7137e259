/* test_base64.c - base64 in both alphabets, and the texts it must not read. */
#include "codec/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void bytes_become_text_and_back(void **state)
{
    static const struct {
        struct str bytes;
        unsigned options;
        const char *text;
    } cases[] = {
        { { "", 0 }, 0, "" },
        { { "f", 1 }, 0, "Zg==" },
        { { "fo", 2 }, 0, "Zm8=" },
        { { "foo", 3 }, 0, "Zm9v" },
        { { "foob", 4 }, 0, "Zm9vYg==" },
        { { "fooba", 5 }, 0, "Zm9vYmE=" },
        { { "foobar", 6 }, 0, "Zm9vYmFy" },
        { { "f", 1 }, BASE64_UNPADDED, "Zg" },
        { { "fo", 2 }, BASE64_UNPADDED, "Zm8" },
        { { "foo", 3 }, BASE64_UNPADDED, "Zm9v" },
        { { "\xfb\xff\xbf", 3 }, 0, "+/+/" },
        { { "\xfb\xff\xbf", 3 }, BASE64_URL, "-_-_" },
        { { "\xff", 1 }, BASE64_URL, "_w==" },
        { { "\xff", 1 }, BASE64_URL | BASE64_UNPADDED, "_w" },
        { { "\0\0\0", 3 }, 0, "AAAA" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf text, bytes;

        buf_init(&text, 100);
        buf_init(&bytes, 100);
        base64_encode(cases[i].bytes, cases[i].options, &text);
        assert_string_equal(buf_text(&text), cases[i].text);
        assert_int_equal(base64_decode(buf_str(&text), cases[i].options, &bytes, NULL), 0);
        assert_true(str_eq(buf_str(&bytes), cases[i].bytes));
    }
}

static void all_bytes_survive_at_all_lengths(void **state)
{
    char data[256];

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)i;
    for (unsigned options = 0; options < 4; options++) {
        for (size_t length = 0; length <= sizeof(data); length++) {
            auto_buf struct buf text, bytes;
            struct str original = { data + sizeof(data) - length, length };

            buf_init(&text, 400);
            buf_init(&bytes, 400);
            base64_encode(original, options, &text);
            assert_int_equal(base64_decode(buf_str(&text), options, &bytes, NULL), 0);
            assert_true(str_eq(buf_str(&bytes), original));
        }
    }
}

static void what_is_not_canonical_is_refused(void **state)
{
    static const struct {
        const char *text;
        unsigned options;
    } cases[] = {
        { "Z", 0 },
        { "Zg", 0 },
        { "Zg=", 0 },
        { "Zg===", 0 },
        { "Zh==", 0 },
        { "Zm9=", 0 },
        { "Zm8==", 0 },
        { "Zm9v=", 0 },
        { "=", 0 },
        { "====", 0 },
        { "Z===", 0 },
        { "Zg==Zg==", 0 },
        { "Zg=v", 0 },
        { "Zm=8", 0 },
        { "Z=g=", 0 },
        { "Zm9v!", 0 },
        { "Zm 9v", 0 },
        { "Zm9v\n", 0 },
        { "-_-_", 0 },
        { "+/+/", BASE64_URL },
        { "Zg==", BASE64_UNPADDED },
        { "Zh", BASE64_UNPADDED },
        { "Z", BASE64_UNPADDED },
        { "Zm9vZ", BASE64_UNPADDED },
        { "Zm\t9v", BASE64_NEWLINES },
        { "Zm 9v", BASE64_NEWLINES },
        { "Zg=\n", BASE64_NEWLINES },
        { "Zg==\nZg==", BASE64_NEWLINES },
        { "\xc3\xa9", 0 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf bytes;
        struct err err = { 0 };

        buf_init(&bytes, 100);
        buf_add_text(&bytes, "before");
        if (base64_decode(str_of(cases[i].text), cases[i].options, &bytes, &err) != -ERR_INVALID)
            fail_msg("\"%s\" was read", cases[i].text);
        assert_int_equal(err.class, ERR_INVALID);
        assert_string_equal(buf_text(&bytes), "before");
    }
}

static void a_nul_byte_is_no_end_of_the_text(void **state)
{
    auto_buf struct buf bytes;

    buf_init(&bytes, 100);
    assert_int_equal(base64_decode(STR("Zm9v\0"), 0, &bytes, NULL), -ERR_INVALID);
    assert_int_equal(base64_decode(STR("Zm9\0"), 0, &bytes, NULL), -ERR_INVALID);
}

static void newlines_are_skipped_on_demand(void **state)
{
    static const char *const cases[] = { "Zm9vYmE=\n", "\nZm9v\nYmE=", "Zm\r\n9vYmE\n=",
                                         "Z\nm\n9\nv\nY\nm\nE\n=\n\n" };

    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf bytes;

        buf_init(&bytes, 100);
        assert_int_equal(base64_decode(str_of(cases[i]), BASE64_NEWLINES, &bytes, NULL), 0);
        assert_string_equal(buf_text(&bytes), "fooba");
    }
}

static void an_error_tells_the_place_but_not_the_text(void **state)
{
    auto_buf struct buf bytes;
    struct err err = { 0 };

    buf_init(&bytes, 100);
    assert_int_equal(base64_decode(STR("c2VjcmV0?xyz"), 0, &bytes, &err), -ERR_INVALID);
    assert_string_equal(err.text, "base64: unexpected character at byte 8");
}

static void the_maximum_of_the_buffer_holds(void **state)
{
    auto_buf struct buf bytes, text;
    struct err err = { 0 };

    buf_init(&bytes, 5);
    assert_int_equal(base64_decode(STR("Zm9vYmE="), 0, &bytes, &err), 0);
    buf_clear(&bytes);
    assert_int_equal(base64_decode(STR("Zm9vYmFy"), 0, &bytes, &err), -ERR_TOO_BIG);
    assert_int_equal(err.class, ERR_TOO_BIG);
    assert_int_equal(bytes.len, 0);

    buf_init(&text, 7);
    base64_encode(STR("foobar"), 0, &text);
    assert_int_equal(buf_check(&text, "text", NULL), -ERR_TOO_BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_become_text_and_back),
        cmocka_unit_test(all_bytes_survive_at_all_lengths),
        cmocka_unit_test(what_is_not_canonical_is_refused),
        cmocka_unit_test(a_nul_byte_is_no_end_of_the_text),
        cmocka_unit_test(newlines_are_skipped_on_demand),
        cmocka_unit_test(an_error_tells_the_place_but_not_the_text),
        cmocka_unit_test(the_maximum_of_the_buffer_holds),
    };

    return cmocka_run_group_tests_name("base64", tests, NULL, NULL);
}
