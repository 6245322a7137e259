/* test_watch_lines.c - a stream cut anywhere gives the same lines, and lines become events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rand.h"
#include "kube/watch_lines.h"

enum { MAX = 32 };

/* All lines of the pieces, each followed by '|'; ends with "!" when the maximum was reached. */
static void collect(struct watch_lines *lines, struct str piece, struct buf *out)
{
    struct str line;
    int rc;

    watch_lines_feed(lines, piece);
    while ((rc = watch_lines_next(lines, &line, NULL)) > 0) {
        buf_add_str(out, line);
        buf_add_char(out, '|');
    }
    if (rc < 0)
        buf_add_char(out, '!');
}

static void a_stream_is_cut_into_lines(void **state)
{
    static const struct {
        const char *pieces[4], *want;
    } cases[] = {
        { { "one\ntwo\n" }, "one|two|" },
        { { "on", "e\ntw", "o\n" }, "one|two|" },
        { { "one\n", "\n\r\n", "two\r\n" }, "one|two|" },
        { { "one", "\n", "two" }, "one|" }, /* the last one never ended */
        { { "", "\n", "" }, "" },
        { { " spaced \n" }, "spaced|" },
        { { "12345678901234567890123456789012\nx\n" }, "12345678901234567890123456789012|x|" },
        { { "1234567890123456789012345678901", "2\nx\n" }, "12345678901234567890123456789012|x|" },
        { { "ok\n123456789012345678901234567890123\nx\n" }, "ok|!" },
        { { "123456789012345678901234567890", "123", "\nx\n" }, "!!" },
        { { "123456789012345678901234567890", "123\nx\n", "y\n" }, "!!" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        auto_buf struct buf out = { .max = 1000 };
        struct watch_lines lines;

        watch_lines_init(&lines, MAX);
        for (size_t j = 0; j < 4 && cases[i].pieces[j]; j++)
            collect(&lines, str_of(cases[i].pieces[j]), &out);
        assert_string_equal(buf_text(&out), cases[i].want);
        watch_lines_done(&lines);
    }
}

static void a_reset_begins_a_new_stream(void **state)
{
    auto_buf struct buf out = { .max = 1000 };
    struct watch_lines lines;

    watch_lines_init(&lines, MAX);
    collect(&lines, STR("123456789012345678901234567890123\n"), &out);
    watch_lines_reset(&lines);
    collect(&lines, STR("half a li"), &out);
    watch_lines_reset(&lines);
    collect(&lines, STR("whole\n"), &out);
    assert_string_equal(buf_text(&out), "!whole|");
    watch_lines_done(&lines);
}

static void it_does_not_matter_where_the_stream_is_cut(void **state)
{
    static const char text[] = "first\n\nsecond line\nthird\nfourth, a longer one\n5\nsix";
    struct rand rand;

    rand_init(&rand, 7);
    for (int round = 0; round < 2000; round++) {
        auto_buf struct buf out = { .max = 1000 };
        struct str rest = str_of(text);
        struct watch_lines lines;

        watch_lines_init(&lines, MAX);
        while (rest.len > 0) {
            size_t cut = 1 + (size_t)rand_below(&rand, 9);
            /* On the heap, so that a line kept beyond its piece is found out. */
            size_t length = cut < rest.len ? cut : rest.len;
            auto_free char *piece = mem_strndup(rest.at, length);

            collect(&lines, (struct str){ piece, length }, &out);
            rest = str_sub(rest, length, rest.len);
        }
        assert_string_equal(buf_text(&out), "first|second line|third|fourth, a longer one|5|");
        watch_lines_done(&lines);
    }
}

static void every_type_of_event_is_read(void **state)
{
    static const struct {
        const char *line;
        enum watch_type type;
        const char *ns, *name, *version;
        uint64_t number;
        int code;
    } cases[] = {
        { "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\","
          "\"resourceVersion\":\"12\"}}}",
          WATCH_ADDED, "n", "a", "12", 12, 0 },
        { "{\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"13\"}},"
          "\"type\":\"MODIFIED\"}",
          WATCH_MODIFIED, "", "a", "13", 13, 0 },
        { "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"a\","
          "\"resourceVersion\":\"x1\"}}}",
          WATCH_DELETED, "", "a", "x1", 0, 0 },
        { "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{"
          "\"resourceVersion\":\"18446744073709551615\",\"creationTimestamp\":null}}}",
          WATCH_BOOKMARK, "", "", "18446744073709551615", UINT64_MAX, 0 },
        { "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"metadata\":{},\"code\":410}}",
          WATCH_ERROR, "", "", "", 0, 410 },
        { "{\"type\":\"ERROR\",\"object\":{\"code\":\"410\"}}", WATCH_ERROR, "", "", "", 0, 0 },
        { "{\"type\":\"ERROR\",\"object\":{\"code\":99999999999}}", WATCH_ERROR, "", "", "", 0, 0 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        auto_watch_event struct watch_event event = { 0 };

        assert_int_equal(watch_event_parse(str_of(cases[i].line), &event, NULL), 0);
        assert_int_equal(event.type, cases[i].type);
        assert_true(str_is(event.ns, cases[i].ns));
        assert_true(str_is(event.name, cases[i].name));
        assert_true(str_is(event.version, cases[i].version));
        assert_true(event.version_number == cases[i].number);
        assert_int_equal(event.code, cases[i].code);
        assert_true(json_is_object(event.object));
    }
}

static void what_is_no_event_is_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "x",
        "{",
        "[]",
        "{}",
        "null",
        "{\"type\":\"ADDED\"}",
        "{\"type\":\"ADDED\",\"object\":null}",
        "{\"type\":\"ADDED\",\"object\":[]}",
        "{\"type\":\"added\",\"object\":{}}",
        "{\"type\":7,\"object\":{}}",
        "{\"object\":{}}",
        "{\"type\":\"ADDED\",\"object\":{}} trailing",
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct watch_event event = { .code = -1 };
        struct err err = { 0 };

        assert_int_equal(watch_event_parse(str_of(cases[i]), &event, &err), -ERR_INVALID);
        assert_int_equal(event.code, -1); /* nothing written */
        assert_non_null(strstr(err.text, "watch line: "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_is_cut_into_lines),
        cmocka_unit_test(a_reset_begins_a_new_stream),
        cmocka_unit_test(it_does_not_matter_where_the_stream_is_cut),
        cmocka_unit_test(every_type_of_event_is_read),
        cmocka_unit_test(what_is_no_event_is_refused),
    };

    return cmocka_run_group_tests_name("watch_lines", tests, NULL, NULL);
}
