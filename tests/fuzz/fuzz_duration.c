/* fuzz_duration.c - a span of time that is read prints as a text of the same span. */
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

    buf_init(&text, 64);
    if (duration_parse(input, &span, NULL) == 0) {
        duration_print(span, &text);
        check(!text.overflowed);
        check(duration_parse(buf_str(&text), &again, NULL) == 0 && again == span);
    }
    buf_clear(&text);
    if (duration_parse_limit(input, &span, NULL) == 0) {
        check(span == DURATION_UNLIMITED || (span >= 0 && span <= DURATION_LIMIT_MAX));
        duration_print_limit(span, &text);
        check(!text.overflowed);
        check(duration_parse_limit(buf_str(&text), &again, NULL) == 0 && again == span);
    }
    return 0;
}
