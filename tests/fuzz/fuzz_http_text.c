/* fuzz_http_text.c - what passes the checks cannot break a request; escaping is undone by reading.
 */
#include "io/http_text.h"

#include <stdint.h>
#include <stdlib.h>

enum { MAX = 1 << 14, US_PER_DAY_S = 86400 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool has_any(struct str text, const char *characters, size_t count)
{
    for (size_t i = 0; i < text.len; i++)
        if (memchr(characters, text.at[i], count))
            return true;
    return false;
}

static void check_words(struct str text)
{
    struct str value = STR("");

    if (http_is_path(text))
        check(!has_any(text, "\0\r\n #", 5));
    if (http_is_header_name(text))
        check(text.len > 0 && !has_any(text, "\0\r\n :", 5));
    if (http_is_header_value(text))
        check(!has_any(text, "\0\r\n", 3));
    if (http_is_method(text))
        check(http_is_header_name(text));
    if (http_header_is(text, "Retry-After", &value))
        check(value.len == str_trim(value).len && value.len < text.len);
    int64_t wait_us = http_retry_after_us(text);

    check(wait_us >= 0 && wait_us <= (int64_t)US_PER_DAY_S * 1000000);
}

static void check_round_trip(struct str text)
{
    auto_buf struct buf query, back;

    if (has_any(text, "\0", 1))
        return;
    buf_init(&query, 4 * MAX);
    buf_init(&back, MAX);
    buf_add_text(&query, "b=1&a=");
    http_escape(text, &query);
    buf_add_text(&query, "&a=2");
    check(http_is_path(STR("/x")) && !has_any(buf_str(&query), "\r\n #+", 5));
    check(http_query_get(buf_str(&query), "a", &back, NULL) == 0);
    check(str_eq(buf_str(&back), text));
}

static void check_query(struct str query)
{
    auto_buf struct buf value;

    buf_init(&value, MAX);
    if (http_query_get(query, "a", &value, NULL) < 0)
        check(value.len == 0);
    else
        check(value.len <= query.len && !has_any(buf_str(&value), "\0", 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str input = { (const char *)data, size };

    if (size > MAX)
        return 0;
    check_words(input);
    check_round_trip(input);
    check_query(input);
    return 0;
}
