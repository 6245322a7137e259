/* fuzz_duration.c - a span of time with a sign in front is read as the negated span. */
#include "base/buf.h"
#include "codec/duration.h"

#include <stdbool.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str input = { (const char *)data, size };
    auto_buf struct buf text;
    int64_t span, again;

    buf_init(&text, size + 2);
    if (duration_parse(input, &span, NULL) < 0)
        return 0;
    if (input.at[0] == '-' || input.at[0] == '+')
        return 0;
    check(span >= 0);
    buf_add_char(&text, '-');
    buf_add_str(&text, input);
    check(duration_parse(buf_str(&text), &again, NULL) == 0 && again == -span);
    return 0;
}
