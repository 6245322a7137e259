/* test_http_reader.c - what is a request, where it ends, and what is refused; however the bytes
 * come. */
#include "io/http_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define H            "Host: a\r\n"

enum { MAX_HEAD = 1000, MAX_BODY = 100 };

/* Takes the bytes in pieces of this size; *ret_left is what was not taken. */
static enum http_progress take(struct http_reader *reader, struct str bytes, size_t piece,
                               size_t *ret_left)
{
    enum http_progress progress = HTTP_INCOMPLETE;

    while (progress == HTTP_INCOMPLETE && bytes.len > 0) {
        struct str part = str_sub(bytes, 0, piece);
        size_t length = part.len;

        progress = http_reader_take(reader, &part);
        assert_true(progress != HTTP_INCOMPLETE || part.len == 0);
        bytes = str_sub(bytes, length - part.len, bytes.len);
    }
    *ret_left = bytes.len;
    return progress;
}

static const size_t pieces[] = { 1, 2, 3, 7, 100, 100000 };

static void what_leaves_a_doubt_is_refused(void **state)
{
    static const struct {
        struct str text;
        int status;
    } cases[] = {
        { STR("\r\n"), 400 },
        { STR("rubbish\r\n\r\n"), 400 },
        { STR("GET\r\n\r\n"), 400 },
        { STR("GET /\r\n\r\n"), 400 },
        { STR(" GET / HTTP/1.1\r\n" H "\r\n"), 400 },
        { STR("GET  / HTTP/1.1\r\n" H "\r\n"), 400 },
        { STR("GET /  HTTP/1.1\r\n" H "\r\n"), 400 },
        { STR("GET / HTTP/1.1 \r\n" H "\r\n"), 505 },
        { STR("GET\t/\tHTTP/1.1\r\n" H "\r\n"), 400 },
        { STR("GET / HTTP/1.1 x\r\n" H "\r\n"), 505 },
        { STR("GET / http/1.1\r\n" H "\r\n"), 400 },
        { STR("GET / HTTP/2.0\r\n" H "\r\n"), 505 },
        { STR("GET / HTTP/1.10\r\n" H "\r\n"), 505 },
        { STR("PRI * HTTP/2.0\r\n\r\n"), 505 },
        { STR("get / HTTP/1.1\r\n" H "\r\n"), 400 },
        { STR("BREW / HTTP/1.1\r\n" H "\r\n"), 501 },
        { STR("OPTIONS * HTTP/1.1\r\n" H "\r\n"), 501 },
        { STR("CONNECT a:1 HTTP/1.1\r\n" H "\r\n"), 501 },
        { STR("GET a HTTP/1.1\r\n" H "\r\n"), 400 },
        { STR("GET http://a/ HTTP/1.1\r\n" H "\r\n"), 400 },
        { STR("GET /\0 HTTP/1.1\r\n" H "\r\n"), 400 },
        { STR("GET /\xc3\xa4 HTTP/1.1\r\n" H "\r\n"), 400 },
        { STR("GET /#a HTTP/1.1\r\n" H "\r\n"), 400 },
        { STR("GET /%2 HTTP/1.1\r\n" H "\r\n"), 400 },
        { STR("GET /%zz HTTP/1.1\r\n" H "\r\n"), 400 },
        { STR("GET / HTTP/1.1\n" H "\r\n"), 400 },
        { STR("GET / HTTP/1.1\r\nHost: a\n\r\n"), 400 },
        { STR("GET / HTTP/1.1\r\n" H "\n"), 400 },
        { STR("GET / HTTP/1.1\r\n" H "A: b\rC: d\r\n\r\n"), 400 },
        { STR("GET / HTTP/1.1\r\n" H "A: b\r\r\n\r\n"), 400 },
        { STR("GET / HTTP/1.1\r\n" H "A: b\0c\r\n\r\n"), 400 },
        { STR("GET / HTTP/1.1\r\n" H "A: b\x7f\r\n\r\n"), 400 },
        { STR("GET / HTTP/1.1\r\n" H "A: b\r\n c\r\n\r\n"), 400 },
        { STR("GET / HTTP/1.1\r\n" H "A: b\r\n\tc: d\r\n\r\n"), 400 },
        { STR("GET / HTTP/1.1\r\n A: b\r\n" H "\r\n"), 400 },
        { STR("GET / HTTP/1.1\r\n" H "A\r\n\r\n"), 400 },
        { STR("GET / HTTP/1.1\r\n" H ": b\r\n\r\n"), 400 },
        { STR("GET / HTTP/1.1\r\n" H "A : b\r\n\r\n"), 400 },
        { STR("GET / HTTP/1.1\r\n" H "A b: c\r\n\r\n"), 400 },
        { STR("GET / HTTP/1.1\r\n\r\n"), 400 },
        { STR("GET / HTTP/1.1\r\n" H H "\r\n"), 400 },
        { STR("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), 400 },
        { STR("GET / HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\nx"), 400 },
        { STR("HEAD / HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\nx"), 400 },
        { STR("DELETE / HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\nx"), 400 },
        { STR("GET / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400 },
        { STR("HEAD / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400 },
        { STR("POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx"), 400 },
        { STR("POST / HTTP/1.1\r\n" H "Content-Length: 1, 1\r\n\r\nx"), 400 },
        { STR("POST / HTTP/1.1\r\n" H "Content-Length: +1\r\n\r\nx"), 400 },
        { STR("POST / HTTP/1.1\r\n" H "Content-Length: -1\r\n\r\nx"), 400 },
        { STR("POST / HTTP/1.1\r\n" H "Content-Length: 0x1\r\n\r\nx"), 400 },
        { STR("POST / HTTP/1.1\r\n" H "Content-Length: 1 1\r\n\r\nx"), 400 },
        { STR("POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\nx"), 400 },
        { STR("POST / HTTP/1.1\r\n" H "Content-Length: 99999999999999999999\r\n\r\nx"), 400 },
        { STR("POST / HTTP/1.1\r\n" H "Content-Length: 101\r\n\r\nx"), 413 },
        { STR("POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
          400 },
        { STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n"),
          400 },
        { STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n"
              "Transfer-Encoding: chunked\r\n\r\n"),
          400 },
        { STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n"), 501 },
        { STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n"), 501 },
        { STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding: \"chunked\"\r\n\r\n"), 501 },
        { STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n\r\n"), 501 },
        { STR("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400 },
        { STR("POST / HTTP/1.1\r\n" H "Expect: tea\r\nContent-Length: 1\r\n\r\nx"), 417 },
#define CHUNKED "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
        { STR(CHUNKED "\r\n"), 400 },
        { STR(CHUNKED "x\r\n"), 400 },
        { STR(CHUNKED "0x1\r\nx\r\n0\r\n\r\n"), 400 },
        { STR(CHUNKED "+1\r\nx\r\n0\r\n\r\n"), 400 },
        { STR(CHUNKED " 1\r\nx\r\n0\r\n\r\n"), 400 },
        { STR(CHUNKED "1 \r\nx\r\n0\r\n\r\n"), 400 },
        { STR(CHUNKED "1;a=b\r\nx\r\n0\r\n\r\n"), 400 },
        { STR(CHUNKED "1\nx\r\n0\r\n\r\n"), 400 },
        { STR(CHUNKED "1\r\rx\r\n0\r\n\r\n"), 400 },
        { STR(CHUNKED "1\r\nxy\r\n0\r\n\r\n"), 400 },
        { STR(CHUNKED "2\r\nx\r\n0\r\n\r\n"), 400 },
        { STR(CHUNKED "1\r\nx0\r\n\r\n"), 400 },
        { STR(CHUNKED "1\r\nx\n0\r\n\r\n"), 400 },
        { STR(CHUNKED "0\r\nA: b\r\n\r\n"), 400 },
        { STR(CHUNKED "000000001\r\n"), 400 },
        { STR(CHUNKED "ffffffff\r\n"), 413 },
        { STR(CHUNKED "65\r\n"), 413 },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t p = 0; p < COUNT(pieces); p++) {
            struct http_reader reader;
            size_t left;

            http_reader_init(&reader, MAX_HEAD, MAX_BODY);
            if (take(&reader, cases[i].text, pieces[p], &left) != HTTP_REFUSED ||
                reader.status != cases[i].status)
                fail_msg("case %zu in pieces of %zu: status %d, expected %d", i, pieces[p],
                         reader.status, cases[i].status);
            assert_true(reader.why[0]);
            http_reader_done(&reader);
        }
}

static void a_request_is_taken_with_all_its_parts(void **state)
{
    static const struct {
        struct str text;
        const char *method, *path, *query, *a, *body; /* a: the first header of this name */
        bool closes;
    } cases[] = {
        { STR("GET / HTTP/1.1\r\n" H "\r\n"), "GET", "/", "", NULL, "", false },
        { STR("GET / HTTP/1.0\r\n\r\n"), "GET", "/", "", NULL, "", true },
        { STR("HEAD /a%2Fb?c=%zz&d HTTP/1.1\r\n" H "a:\r\nA: b\r\n\r\n"), "HEAD", "/a%2Fb",
          "c=%zz&d", "", "", false },
        { STR("GET /?? HTTP/1.1\r\nhOST:\t\r\nA:\t b c\t \r\n\r\n"), "GET", "/", "?", "b c", "",
          false },
        { STR("GET //b HTTP/1.1\r\n" H "A: \xc3\xa4\r\n\r\n"), "GET", "//b", "", "\xc3\xa4", "",
          false },
        { STR("DELETE / HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n"), "DELETE", "/", "", NULL, "",
          false },
        { STR("GET / HTTP/1.1\r\n" H "Connection: x, CLOSE\r\n\r\n"), "GET", "/", "", NULL, "",
          true },
        { STR("GET / HTTP/1.1\r\n" H "Connection: closed\r\n\r\n"), "GET", "/", "", NULL, "",
          false },
        { STR("PUT / HTTP/1.1\r\n" H "Content-Length: 005\r\n\r\na\r\nb\n"), "PUT", "/", "", NULL,
          "a\r\nb\n", false },
        { STR("PATCH / HTTP/1.0\r\nContent-Length: 1\r\n\r\nx"), "PATCH", "/", "", NULL, "x",
          true },
        { STR(CHUNKED "0\r\n\r\n"), "POST", "/", "", NULL, "", false },
        { STR(CHUNKED "01\r\nx\r\nA\r\n0123456789\r\n000\r\n\r\n"), "POST", "/", "", NULL,
          "x0123456789", false },
        { STR("POST / HTTP/1.1\r\n" H "TRANSFER-ENCODING: Chunked\r\nA: b\r\n\r\n"
              "2\r\n\r\n\r\n0\r\n\r\n"),
          "POST", "/", "", "b", "\r\n", false },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t p = 0; p < COUNT(pieces); p++) {
            struct http_reader reader;
            const char *a;
            size_t left;

            http_reader_init(&reader, MAX_HEAD, MAX_BODY);
            if (take(&reader, cases[i].text, pieces[p], &left) != HTTP_COMPLETE || left > 0)
                fail_msg("case %zu in pieces of %zu: %s", i, pieces[p], reader.why);
            a = http_reader_header(&reader, "a");
            assert_string_equal(reader.method, cases[i].method);
            assert_string_equal(reader.path, cases[i].path);
            assert_true(str_is(reader.query, cases[i].query));
            assert_string_equal(buf_text(&reader.body), cases[i].body);
            assert_string_equal(a ? a : "(none)", cases[i].a ? cases[i].a : "(none)");
            assert_int_equal(reader.closes, cases[i].closes);
            http_reader_done(&reader);
        }
}

static void requests_follow_each_other(void **state)
{
    static const char text[] = CHUNKED "1\r\nx\r\n0\r\n\r\n"
                                       "GET /a?b HTTP/1.1\r\n" H "\r\n"
                                       "POST /c HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\ny"
                                       "GET /d HTTP/1.1\r\n" H;
    static const char *const paths[] = { "/", "/a", "/c" };
    struct http_reader reader;
    struct str rest = str_of(text);
    size_t left;

    http_reader_init(&reader, MAX_HEAD, MAX_BODY);
    for (size_t i = 0; i < COUNT(paths); i++) {
        assert_int_equal(take(&reader, rest, 5, &left), HTTP_COMPLETE);
        assert_string_equal(reader.path, paths[i]);
        assert_string_equal(buf_text(&reader.body), i == 0 ? "x" : i == 2 ? "y" : "");
        rest = str_sub(rest, rest.len - left, rest.len);
        assert_true(http_reader_has_begun(&reader));
        http_reader_next(&reader);
        assert_false(http_reader_has_begun(&reader));
    }
    assert_int_equal(take(&reader, rest, 5, &left), HTTP_INCOMPLETE);
    http_reader_done(&reader);
}

static void a_client_that_waits_for_a_word_is_told_to_go_on(void **state)
{
    struct http_reader reader;
    size_t left;

    http_reader_init(&reader, MAX_HEAD, MAX_BODY);
    assert_int_equal(
        take(&reader,
             STR("POST / HTTP/1.1\r\n" H "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\n"), 9,
             &left),
        HTTP_INCOMPLETE);
    assert_true(reader.expects_continue);
    assert_int_equal(take(&reader, STR("x"), 1, &left), HTTP_COMPLETE);
    http_reader_done(&reader);
}

static void a_head_is_bounded_in_bytes_and_in_lines(void **state)
{
    static const char first[] = "GET / HTTP/1.1\r\n" H;
    struct http_reader reader;
    size_t left;
    char text[8192];

    http_reader_init(&reader, MAX_HEAD, MAX_BODY);
    memset(text, 'x', sizeof(text));
    assert_int_equal(take(&reader, (struct str){ text, MAX_HEAD }, 100, &left), HTTP_INCOMPLETE);
    assert_int_equal(take(&reader, STR("x"), 1, &left), HTTP_REFUSED);
    assert_int_equal(reader.status, 431);
    http_reader_done(&reader);

    for (unsigned lines = HTTP_READER_MAX_LINES; lines <= HTTP_READER_MAX_LINES + 1; lines++) {
        size_t length = strlen(strcpy(text, first));

        for (unsigned i = 1; i < lines; i++) /* Host is one */
            length += (size_t)snprintf(text + length, sizeof(text) - length, "A: b\r\n");
        length += (size_t)snprintf(text + length, sizeof(text) - length, "\r\n");
        http_reader_init(&reader, sizeof(text), MAX_BODY);
        assert_int_equal(take(&reader, (struct str){ text, length }, 1000, &left),
                         lines > HTTP_READER_MAX_LINES ? HTTP_REFUSED : HTTP_COMPLETE);
        http_reader_done(&reader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_leaves_a_doubt_is_refused),
        cmocka_unit_test(a_request_is_taken_with_all_its_parts),
        cmocka_unit_test(requests_follow_each_other),
        cmocka_unit_test(a_client_that_waits_for_a_word_is_told_to_go_on),
        cmocka_unit_test(a_head_is_bounded_in_bytes_and_in_lines),
    };

    return cmocka_run_group_tests_name("io/http_reader", tests, NULL, NULL);
}
