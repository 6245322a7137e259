/* fuzz_base64.c - text and bytes belong to each other one to one. */
#include "codec/base64.h"

#include <stdint.h>
#include <stdlib.h>

enum { MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_bytes(struct str bytes, unsigned options)
{
    auto_buf struct buf text, again;

    buf_init(&text, 2 * MAX);
    buf_init(&again, MAX);
    base64_encode(bytes, options, &text);
    check(base64_decode(buf_str(&text), options, &again, NULL) == 0);
    check(str_eq(buf_str(&again), bytes));
}

static void check_text(struct str text, unsigned options)
{
    auto_buf struct buf bytes, again, plain;

    buf_init(&bytes, MAX);
    buf_init(&again, 2 * MAX);
    buf_init(&plain, MAX);
    if (base64_decode(text, options, &bytes, NULL) < 0) {
        check(bytes.len == 0);
        return;
    }
    for (size_t i = 0; i < text.len; i++)
        if (!(options & BASE64_NEWLINES) || (text.at[i] != '\n' && text.at[i] != '\r'))
            buf_add_char(&plain, text.at[i]);
    base64_encode(buf_str(&bytes), options, &again);
    check(str_eq(buf_str(&again), buf_str(&plain)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str input = { (const char *)data, size };

    if (size > MAX)
        return 0;
    for (unsigned options = 0; options < 8; options++) {
        check_bytes(input, options);
        check_text(input, options);
    }
    return 0;
}
