/* fuzz_bitmap.c - what a text of ranges or hex digits means survives printing in either form. */
#include "codec/bitmap.h"

#include <stdlib.h>

enum { BITS = 300 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect_same(const struct bitmap *map)
{
    auto_buf struct buf ranges, hex;
    auto_bitmap struct bitmap from_ranges = { 0 }, from_hex = { 0 };
    size_t seen = 0;

    buf_init(&ranges, 4096);
    buf_init(&hex, 4096);
    bitmap_print_ranges(map, &ranges);
    bitmap_print_hex(map, &hex);
    if (bitmap_parse_ranges(buf_str(&ranges), BITS, &from_ranges, NULL) < 0 ||
        bitmap_parse_hex(buf_str(&hex), BITS, &from_hex, NULL) < 0)
        abort();
    if (!bitmap_equal(map, &from_ranges) || !bitmap_equal(map, &from_hex))
        abort();
    for (size_t bit = 0; bitmap_next(map, bit, &bit); bit++)
        seen++;
    if (seen != bitmap_count(map))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    auto_bitmap struct bitmap ranges = { 0 }, hex = { 0 };

    if (bitmap_parse_ranges(text, BITS, &ranges, NULL) == 0)
        expect_same(&ranges);
    if (bitmap_parse_hex(text, BITS, &hex, NULL) == 0)
        expect_same(&hex);
    return 0;
}
