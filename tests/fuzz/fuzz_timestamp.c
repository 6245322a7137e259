/* fuzz_timestamp.c - a time that is read prints as a text of the same time. */
#include "codec/timestamp.h"

#include <stdbool.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_round_trip(int64_t time)
{
    auto_buf struct buf text;
    int64_t again, seconds;

    buf_init(&text, 64);
    check(timestamp_print_micro(time, &text, NULL) == 0);
    check(text.len == sizeof("2006-01-02T15:04:05.000000Z") - 1);
    check(timestamp_parse(buf_str(&text), &again, NULL) == 0 && again == time);

    buf_clear(&text);
    check(timestamp_print(time, &text, NULL) == 0);
    check(timestamp_parse(buf_str(&text), &again, NULL) == 0);
    check(timestamp_of_seconds(timestamp_to_seconds(time), &seconds, NULL) == 0);
    check(again == seconds);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t time;

    if (timestamp_parse((struct str){ (const char *)data, size }, &time, NULL) == 0)
        check_round_trip(time);
    if (size == sizeof(time)) {
        auto_buf struct buf text;

        memcpy(&time, data, size);
        buf_init(&text, 64);
        if (timestamp_print(time, &text, NULL) == 0)
            check_round_trip(time);
    }
    return 0;
}
